//! How requests end, and whose fault it is.

use super::Phase;
use crate::labelled::labelled;

/// Declares the outcomes once. `Timeout` carries its phase, and all phases count together.
macro_rules! outcomes {
    ($(#[doc = $doc:literal] $(#[$default:ident])? $name:ident $(($phase:ty))? = $text:literal,)+) => {
        /// How a request ended.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Outcome {
            $(#[doc = $doc] $(#[$default])? $name $(($phase))?,)+
        }

        /// The outcomes without their phases, for their positions.
        #[derive(Clone, Copy)]
        enum Position {
            $($name,)+
        }

        impl Outcome {
            /// The names, in the order of [`Outcome::index`].
            pub const NAMES: [&'static str; [$($text),+].len()] = [$($text),+];

            /// Names and meanings, for the reference.
            pub(crate) const REFERENCE: [(&'static str, &'static str); Self::COUNT] =
                [$(($text, $doc.trim_ascii())),+];

            /// The position in [`Outcome::NAMES`].
            pub const fn index(self) -> usize {
                let position = match self {
                    $(Outcome::$name { .. } => Position::$name,)+
                };
                position as usize
            }
        }
    };
}

outcomes! {
    /// Not ended yet; a record that is finished with this is a bug of ours and counts as such.
    #[default]
    Unfinished = "unfinished",
    /// A server's response was passed on whole, whatever its status.
    Served = "served",
    /// The gate answered by itself as it was told to: a fixed answer, a redirect.
    Answered = "answered",
    /// No site or route for it.
    NoRoute = "no_route",
    /// The connection became a tunnel (an upgrade), which has ended.
    Tunnel = "tunnel",
    /// The client went away before the end.
    ClientClosed = "client_closed",
    /// The client sent what cannot be accepted.
    ClientError = "client_error",
    /// A phase took longer than it may.
    Timeout(Phase) = "timeout",
    /// The WAF stopped it.
    Denied = "denied",
    /// A limit or a full queue turned it away.
    Limit = "limit",
    /// No server of the group could be asked.
    NoServer = "no_server",
    /// No connection to the server came about.
    UpstreamRefused = "upstream_refused",
    /// The TLS handshake with the server failed.
    UpstreamTls = "upstream_tls",
    /// The server broke off.
    UpstreamReset = "upstream_reset",
    /// The server sent what cannot be accepted.
    UpstreamInvalid = "upstream_invalid",
    /// The gate itself failed.
    Internal = "internal",
}

impl Outcome {
    /// How many outcomes there are, timeouts of all phases taken together.
    pub const COUNT: usize = Self::NAMES.len();

    /// As in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The phase that took too long, where one did.
    pub const fn timed_out(self) -> Option<Phase> {
        match self {
            Outcome::Timeout(phase) => Some(phase),
            _ => None,
        }
    }
}

labelled! {
    /// Whose doing an ending is.
    #[derive(Default)]
    pub enum Side {
        /// Nobody's: it ended well.
        #[default]
        None = "none",
        /// The client's.
        Downstream = "downstream",
        /// The server's.
        Upstream = "upstream",
        /// The gate's own.
        Gate = "gate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_name() {
        let mut names = Outcome::NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Outcome::COUNT);
        assert_eq!(Outcome::Timeout(Phase::Connect).as_str(), "timeout");
        assert_eq!(Outcome::Timeout(Phase::Connect).timed_out(), Some(Phase::Connect));
        assert_eq!(Outcome::Internal.as_str(), "internal");
        assert_eq!(Outcome::Internal.index(), Outcome::COUNT - 1);
    }
}
