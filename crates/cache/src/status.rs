//! `Cache-Status` (RFC 9211): what the cache did with a request, told to whoever reads the response.

use crate::lookup::{Bypass, Doubt};
use tidegate_http::field::is_name_byte;
use tidegate_http::write;

/// What the cache did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// It answered by itself.
    Hit,
    /// The request went to the origin.
    Forwarded(Forward),
}

/// Why a request went to the origin (RFC 9211, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The cache was told not to look.
    Bypass,
    /// The method is not cached.
    Method,
    /// Nothing is stored for the URI.
    UriMiss,
    /// Something is stored for the URI, but nothing that this request selects.
    VaryMiss,
    /// Nothing is stored, whichever of the two it is.
    Miss,
    /// The request did not want what is stored.
    Request,
    /// What is stored is stale.
    Stale,
    /// Not all that was asked for is stored.
    Partial,
}

impl Forward {
    /// Its token.
    pub const fn name(self) -> &'static str {
        match self {
            Forward::Bypass => "bypass",
            Forward::Method => "method",
            Forward::UriMiss => "uri-miss",
            Forward::VaryMiss => "vary-miss",
            Forward::Miss => "miss",
            Forward::Request => "request",
            Forward::Stale => "stale",
            Forward::Partial => "partial",
        }
    }
}

impl From<Bypass> for Forward {
    fn from(bypass: Bypass) -> Forward {
        if bypass == Bypass::Method { Forward::Method } else { Forward::Bypass }
    }
}

impl From<Doubt> for Forward {
    fn from(doubt: Doubt) -> Forward {
        match doubt {
            // What may not be used without validation is as good as stale.
            Doubt::Stale | Doubt::NoCache => Forward::Stale,
            Doubt::Request => Forward::Request,
        }
    }
}

/// The name by which a cache calls itself, in the form it has in the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheName(Box<[u8]>);

/// A name with bytes beyond printable ASCII, or none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadName;

impl CacheName {
    /// A name: as a token if it is one, else as a string (RFC 9651, sections 3.3.3 and 3.3.4).
    pub fn new(name: &str) -> Result<CacheName, BadName> {
        let bytes = name.as_bytes();
        let Some(first) = bytes.first() else { return Err(BadName) };
        let is_token = (first.is_ascii_alphabetic() || *first == b'*')
            && bytes.iter().all(|&byte| is_name_byte(byte) || matches!(byte, b':' | b'/'));
        if is_token {
            return Ok(CacheName(bytes.into()));
        }
        if !bytes.iter().all(|&byte| matches!(byte, b' '..=b'~')) {
            return Err(BadName);
        }
        let mut quoted = Vec::with_capacity(bytes.len() + 2);
        quoted.push(b'"');
        for &byte in bytes {
            if matches!(byte, b'"' | b'\\') {
                quoted.push(b'\\');
            }
            quoted.push(byte);
        }
        quoted.push(b'"');
        Ok(CacheName(quoted.into()))
    }
}

/// What one cache says of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it did.
    pub handling: Handling,
    /// The status the origin answered with, where it is not the one that is sent.
    pub forward_status: Option<u16>,
    /// Seconds for which the response is fresh; below zero if it is stale.
    pub ttl: Option<i64>,
    /// Whether the origin's response was stored.
    pub stored: Stored,
    /// Whether the request waited for another one's response.
    pub collapsed: Collapsed,
    /// A reason in a word; a token.
    pub detail: Option<&'static str>,
}

/// Whether a forwarded request's response was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It was.
    Yes,
    /// It was not, or there was none.
    No,
}

/// Whether a request was answered with the response to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapsed {
    /// It was.
    Yes,
    /// It was not.
    No,
}

impl Member {
    /// A member that says what was done and nothing else.
    pub const fn new(handling: Handling) -> Member {
        Member {
            handling,
            forward_status: None,
            ttl: None,
            stored: Stored::No,
            collapsed: Collapsed::No,
            detail: None,
        }
    }

    /// Writes it as the value of a field of its own. Those of caches before us come in fields before
    /// it and stay (RFC 9211, section 2).
    pub fn write(&self, cache: &CacheName, out: &mut Vec<u8>) {
        out.extend_from_slice(&cache.0);
        match self.handling {
            Handling::Hit => out.extend_from_slice(b"; hit"),
            Handling::Forwarded(reason) => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(reason.name().as_bytes());
                // These two have a meaning only where a request went out.
                if let Some(status) = self.forward_status {
                    out.extend_from_slice(b"; fwd-status=");
                    write::decimal(out, status.into());
                }
                if self.stored == Stored::Yes {
                    out.extend_from_slice(b"; stored");
                }
                if self.collapsed == Collapsed::Yes {
                    out.extend_from_slice(b"; collapsed");
                }
            }
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(if ttl < 0 { b"; ttl=-" } else { b"; ttl=" });
            // An Integer has fifteen digits (RFC 9651, section 3.3.1).
            write::decimal(out, ttl.unsigned_abs().min(999_999_999_999_999));
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            out.extend_from_slice(detail.as_bytes());
        }
    }
}

/// What the cache did in one word, as other caches' `X-Cache-Status` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Fresh from the cache.
    Hit,
    /// Nothing was stored.
    Miss,
    /// It was stale, and served so because the origin failed or the client did not mind.
    Stale,
    /// It is stale, and served so while it is fetched anew.
    Updating,
    /// The origin said that it still holds.
    Revalidated,
    /// It was stale or unwanted, and the origin sent another.
    Expired,
    /// The request went past the cache.
    Bypass,
}

impl Word {
    /// All of them.
    pub const ALL: [Word; 7] = [
        Word::Hit,
        Word::Miss,
        Word::Stale,
        Word::Updating,
        Word::Revalidated,
        Word::Expired,
        Word::Bypass,
    ];

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Word::Hit => "HIT",
            Word::Miss => "MISS",
            Word::Stale => "STALE",
            Word::Updating => "UPDATING",
            Word::Revalidated => "REVALIDATED",
            Word::Expired => "EXPIRED",
            Word::Bypass => "BYPASS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfv::Parser;
    use sfv::visitor::Ignored;

    fn check(member: &Member, expected: &str) {
        let mut out = Vec::new();
        member.write(&CacheName::new("Tidegate").unwrap(), &mut out);
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expected);
        Parser::new(&out).parse_list_with_visitor(Ignored).unwrap();
    }

    #[test]
    fn members_are_written_as_the_rfc_has_them() {
        // RFC 9211, section 2
        let hit = Member { ttl: Some(376), ..Member::new(Handling::Hit) };
        check(&hit, "Tidegate; hit; ttl=376");
        check(&Member { ttl: Some(-412), ..hit }, "Tidegate; hit; ttl=-412");
        check(
            &Member { stored: Stored::Yes, forward_status: Some(200), ..hit },
            "Tidegate; hit; ttl=376",
        );
        let forwarded = |reason| Member::new(Handling::Forwarded(reason));
        check(
            &Member {
                stored: Stored::Yes,
                collapsed: Collapsed::Yes,
                ..forwarded(Forward::UriMiss)
            },
            "Tidegate; fwd=uri-miss; stored; collapsed",
        );
        check(
            &Member { forward_status: Some(304), ttl: Some(0), ..forwarded(Forward::Stale) },
            "Tidegate; fwd=stale; fwd-status=304; ttl=0",
        );
        check(
            &Member { detail: Some("session-cookie"), ..forwarded(Forward::Bypass) },
            "Tidegate; fwd=bypass; detail=session-cookie",
        );
        for reason in
            [Forward::Method, Forward::VaryMiss, Forward::Miss, Forward::Request, Forward::Partial]
        {
            check(&forwarded(reason), &format!("Tidegate; fwd={}", reason.name()));
        }
        check(&Member { ttl: Some(i64::MIN), ..hit }, "Tidegate; hit; ttl=-999999999999999");
    }

    #[test]
    fn every_reason_is_a_token() {
        use crate::storing::NotStored;
        for reason in [
            Bypass::Off.name(),
            Bypass::SessionCookie.name(),
            NotStored::VaryAny.name(),
            NotStored::TooFewUses.name(),
        ] {
            let member =
                Member { detail: Some(reason), ..Member::new(Handling::Forwarded(Forward::Miss)) };
            check(&member, &format!("Tidegate; fwd=miss; detail={reason}"));
        }
    }

    #[test]
    fn decisions_have_their_reasons() {
        assert_eq!(Forward::from(Bypass::Method), Forward::Method);
        assert_eq!(Forward::from(Bypass::Path), Forward::Bypass);
        assert_eq!(Forward::from(Doubt::Stale), Forward::Stale);
        assert_eq!(Forward::from(Doubt::NoCache), Forward::Stale);
        assert_eq!(Forward::from(Doubt::Request), Forward::Request);
    }

    #[test]
    fn names_are_tokens_or_strings() {
        let check = |name: &str, expected: Option<&str>| {
            let written = CacheName::new(name).ok();
            let written = written.map(|name| String::from_utf8(name.0.to_vec()).unwrap());
            assert_eq!(written.as_deref(), expected, "{name}");
        };
        check("Tidegate", Some("Tidegate"));
        check("gate.example:8443/a", Some("gate.example:8443/a"));
        check("1", Some("\"1\""));
        check("my gate", Some("\"my gate\""));
        check("a\"b\\", Some("\"a\\\"b\\\\\""));
        check("", None);
        check("a\nb", None);
        check("t\u{fc}r", None);
    }
}
