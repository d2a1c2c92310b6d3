//! How requests end, and whose fault it is.

use super::Phase;

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Not ended yet; a record that is finished with this is a bug of ours and counts as such.
    #[default]
    Unfinished,
    /// A server's response was passed on whole, whatever its status.
    Served,
    /// The gate answered by itself as it was told to: a fixed answer, a redirect.
    Answered,
    /// No site or route for it.
    NoRoute,
    /// The connection became a tunnel (an upgrade), which has ended.
    Tunnel,
    /// The client went away before the end.
    ClientClosed,
    /// The client sent what cannot be accepted.
    ClientError,
    /// A phase took longer than it may.
    Timeout(Phase),
    /// A limit or a full queue turned it away.
    Limit,
    /// No server of the group could be asked.
    NoServer,
    /// No connection to the server came about.
    UpstreamRefused,
    /// The TLS handshake with the server failed.
    UpstreamTls,
    /// The server broke off.
    UpstreamReset,
    /// The server sent what cannot be accepted.
    UpstreamInvalid,
    /// The gate itself failed.
    Internal,
}

impl Outcome {
    /// How many outcomes there are, timeouts of all phases taken together.
    pub const COUNT: usize = Self::NAMES.len();

    /// The names, in the order of [`Outcome::index`].
    pub const NAMES: [&'static str; 15] = [
        "unfinished",
        "served",
        "answered",
        "no_route",
        "tunnel",
        "client_closed",
        "client_error",
        "timeout",
        "limit",
        "no_server",
        "upstream_refused",
        "upstream_tls",
        "upstream_reset",
        "upstream_invalid",
        "internal",
    ];

    /// As in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The position in [`Outcome::NAMES`].
    pub const fn index(self) -> usize {
        match self {
            Outcome::Unfinished => 0,
            Outcome::Served => 1,
            Outcome::Answered => 2,
            Outcome::NoRoute => 3,
            Outcome::Tunnel => 4,
            Outcome::ClientClosed => 5,
            Outcome::ClientError => 6,
            Outcome::Timeout(_) => 7,
            Outcome::Limit => 8,
            Outcome::NoServer => 9,
            Outcome::UpstreamRefused => 10,
            Outcome::UpstreamTls => 11,
            Outcome::UpstreamReset => 12,
            Outcome::UpstreamInvalid => 13,
            Outcome::Internal => 14,
        }
    }

    /// The phase that took too long, where one did.
    pub const fn timed_out(self) -> Option<Phase> {
        match self {
            Outcome::Timeout(phase) => Some(phase),
            _ => None,
        }
    }
}

/// Whose doing an ending is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Nobody's: it ended well.
    #[default]
    None,
    /// The client's.
    Downstream,
    /// The server's.
    Upstream,
    /// The gate's own.
    Gate,
}

impl Side {
    /// All sides, in the order of [`Side::index`].
    pub const ALL: [Side; 4] = [Side::None, Side::Downstream, Side::Upstream, Side::Gate];

    /// As in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::None => "none",
            Side::Downstream => "downstream",
            Side::Upstream => "upstream",
            Side::Gate => "gate",
        }
    }

    /// The position in [`Side::ALL`].
    pub const fn index(self) -> usize {
        self as usize
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
