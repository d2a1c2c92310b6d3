//! `@rbl`: DNS block lists, asked for the client's address or a name (RFC 5782).
//!
//! Here are the name to ask for and the meaning of the answer. The look-up takes time and is made by
//! others, who bound and cache it.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
};

use super::Fault;

/// The longest name that DNS can be asked for, in bytes without the final dot (RFC 1035 section
/// 2.3.4).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A block list: the domain under which it lists addresses or names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockList {
    domain: Box<str>,
    provider: Provider,
}

/// Whose answers have a meaning beyond being there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Project Honey Pot's `http:BL`. It wants the key of `SecHttpBlKey`.
    HttpBl,
    /// URIBL.
    UriBl,
    /// Spamhaus.
    Spamhaus,
    /// Any other.
    Other,
}

/// Why nothing can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The list wants a key, and there is none.
    NoKey,
    /// The list has only IPv4 addresses.
    NotIpv4,
    /// The value is no address and no name that DNS could have.
    NoName,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// It is listed, in the words of the list.
    Listed(Words),
    /// `http:BL` knows it.
    Visitor {
        /// What it was seen doing, as bits: 1 suspicious, 2 harvester, 4 comment spammer; 0 is a
        /// search engine.
        kind: u8,
        /// Days since it was last seen.
        days: u8,
        /// How much of a threat it is, 0 to 255.
        score: u8,
    },
    /// The list does not answer us, so the answer says nothing about what was asked.
    Unanswered,
    /// The answer is none that a block list gives, perhaps that of a resolver that has an answer for
    /// every name.
    Invalid,
}

/// What a list says of what it lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Nothing more.
    Plain,
    /// URIBL: black, grey, red, or all of these.
    Black,
    /// URIBL.
    Grey,
    /// URIBL.
    Red,
    /// URIBL.
    BlackGreyRed,
    /// URIBL, any other code.
    White,
    /// Spamhaus SBL and CSS.
    StaticSource,
    /// Spamhaus XBL.
    Exploit,
    /// Spamhaus PBL.
    Dynamic,
}

impl BlockList {
    /// Reads the argument: a domain.
    pub fn parse(argument: &[u8]) -> Result<Self, Fault> {
        let domain = super::readable(argument)?.trim();
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        if !is_name(domain) {
            return Err(Fault::new(format!("`{domain}` is no domain"))
                .hint("name the domain of a list, such as sbl.example.org"));
        }
        let domain = domain.to_ascii_lowercase();
        let provider = [
            ("httpbl.org", Provider::HttpBl),
            ("uribl.com", Provider::UriBl),
            ("spamhaus.org", Provider::Spamhaus),
            ("spamhaus.net", Provider::Spamhaus),
        ]
        .into_iter()
        .find(|(known, _)| is_under(&domain, known))
        .map_or(Provider::Other, |(_, provider)| provider);
        Ok(Self { domain: domain.into(), provider })
    }

    /// Whose list it is.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The name whose A record says whether `value` is listed; no dot at its end. `key` is that of
    /// `SecHttpBlKey`.
    ///
    /// Addresses are written backwards before the domain, IPv6 by its hexadecimal digits (RFC 5782
    /// sections 2.1 and 2.4); names as they are.
    pub fn query(&self, value: &[u8], key: Option<&str>) -> Result<String, Refusal> {
        let value = str::from_utf8(value).map_err(|_| Refusal::NoName)?;
        let subject = match value.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(IpAddr::V4(address)) => {
                let [a, b, c, d] = address.octets();
                format!("{d}.{c}.{b}.{a}")
            }
            Ok(IpAddr::V6(_)) if self.provider == Provider::HttpBl => return Err(Refusal::NotIpv4),
            Ok(IpAddr::V6(address)) => nibbles(&address.octets()),
            Err(_) => value.strip_suffix('.').unwrap_or(value).to_owned(),
        };
        let name = match (self.provider, key) {
            (Provider::HttpBl, None) => return Err(Refusal::NoKey),
            (Provider::HttpBl, Some(key)) => format!("{key}.{subject}.{}", self.domain),
            _ => format!("{subject}.{}", self.domain),
        };
        if is_name(&name) { Ok(name) } else { Err(Refusal::NoName) }
    }

    /// What the address in an A record means. No record at all means that nothing is listed.
    ///
    /// ModSecurity takes every answer for a listing. Answers outside of 127.0.0.0/8 (RFC 5782
    /// section 2.1), and the codes by which Spamhaus and URIBL refuse public or busy resolvers, are
    /// none here: with a foreign resolver they would have every visitor listed.
    pub fn interpret(&self, answer: Ipv4Addr) -> Listing {
        let [first, second, third, code] = answer.octets();
        if first != 127 {
            return Listing::Invalid;
        }
        match self.provider {
            Provider::HttpBl => Listing::Visitor { kind: code, days: second, score: third },
            Provider::UriBl => match code {
                1 | 255 => Listing::Unanswered,
                2 => Listing::Listed(Words::Black),
                4 => Listing::Listed(Words::Grey),
                8 => Listing::Listed(Words::Red),
                14 => Listing::Listed(Words::BlackGreyRed),
                _ => Listing::Listed(Words::White),
            },
            Provider::Spamhaus if (second, third) == (255, 255) => Listing::Unanswered,
            Provider::Spamhaus => Listing::Listed(match code {
                2 | 3 => Words::StaticSource,
                4..=7 => Words::Exploit,
                10 | 11 => Words::Dynamic,
                _ => Words::Plain,
            }),
            Provider::Other => Listing::Listed(Words::Plain),
        }
    }
}

impl Listing {
    /// Whether the operator matches.
    pub fn matches(self) -> bool {
        matches!(self, Self::Listed(_) | Self::Visitor { .. })
    }
}

/// The hexadecimal digits of an address from the last to the first, with dots between them.
fn nibbles(octets: &[u8; 16]) -> String {
    let mut text = String::with_capacity(64);
    for octet in octets.iter().rev() {
        for nibble in [octet & 15, octet >> 4] {
            if !text.is_empty() {
                text.push('.');
            }
            text.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    text
}

/// Whether it is `domain` or a name under it.
fn is_under(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether DNS may be asked for it: labels of letters, digits, hyphens and underscores.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKey => "the list wants a key: set it with SecHttpBlKey",
            Self::NotIpv4 => "the list has only IPv4 addresses",
            Self::NoName => "the value is neither an address nor a domain name",
        })
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed(Words::Plain) => f.write_str("listed"),
            Self::Listed(words) => write!(f, "listed ({words})"),
            Self::Visitor { kind, days, score } => write!(
                f,
                "{}: {days} days since last activity, threat score {score}",
                visitor(*kind)
            ),
            Self::Unanswered => f.write_str("the list refuses to answer this resolver"),
            Self::Invalid => f.write_str("bad response"),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "",
            Self::Black => "BLACK",
            Self::Grey => "GREY",
            Self::Red => "RED",
            Self::BlackGreyRed => "BLACK,GREY,RED",
            Self::White => "WHITE",
            Self::StaticSource => "Static UBE sources",
            Self::Exploit => "Illegal 3rd party exploits",
            Self::Dynamic => "Delivering unauthenticated SMTP email",
        })
    }
}

/// The kinds of `http:BL` in words.
fn visitor(kind: u8) -> &'static str {
    match kind {
        0 => "Search Engine",
        1 => "Suspicious IP",
        2 => "Harvester IP",
        3 => "Suspicious harvester IP",
        4 => "Comment spammer IP",
        5 => "Suspicious comment spammer IP",
        6 => "Harvester and comment spammer IP",
        7 => "Suspicious harvester comment spammer IP",
        _ => "Unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(domain: &str) -> BlockList {
        BlockList::parse(domain.as_bytes()).expect("a domain")
    }

    #[test]
    fn providers_are_known_by_their_domains() {
        for (domain, provider) in [
            ("dnsbl.httpbl.org", Provider::HttpBl),
            ("Multi.URIBL.com.", Provider::UriBl),
            ("sbl-xbl.spamhaus.org", Provider::Spamhaus),
            ("notspamhaus.org", Provider::Other),
            ("list.example", Provider::Other),
        ] {
            assert_eq!(list(domain).provider(), provider, "{domain}");
        }
        for domain in ["", ".", "a..b", "a b", "http://list.example", &"x".repeat(64)] {
            assert!(BlockList::parse(domain.as_bytes()).is_err(), "{domain:?}");
        }
    }

    #[test]
    fn names_to_ask_for() {
        let ask = |domain, value: &str, key| list(domain).query(value.as_bytes(), key);
        let check = |value: &str, expected: &str| {
            assert_eq!(ask("list.example", value, Some("key")).as_deref(), Ok(expected));
        };
        check("192.0.2.99", "99.2.0.192.list.example");
        check("::ffff:192.0.2.99", "99.2.0.192.list.example");
        check(
            "2001:db8:1:2:3:4:567:89ab",
            "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.list.example",
        );
        check("spam.example.", "spam.example.list.example");
        let honey = "dnsbl.httpbl.org";
        assert_eq!(
            ask(honey, "192.0.2.9", Some("k")).as_deref(),
            Ok("k.9.2.0.192.dnsbl.httpbl.org")
        );
        assert_eq!(ask(honey, "192.0.2.9", None), Err(Refusal::NoKey));
        assert_eq!(ask(honey, "::1", Some("k")), Err(Refusal::NotIpv4));
        let long = ["abcdefgh"; 30].join(".");
        for value in ["", "a b", "a/b", "a..b", "\u{e9}.example", &long] {
            assert_eq!(ask("list.example", value, None), Err(Refusal::NoName), "{value:?}");
        }
    }

    #[test]
    fn answers_mean() {
        let check = |domain, answer: [u8; 4], expected: Listing, words: &str| {
            let listing = list(domain).interpret(answer.into());
            assert_eq!(listing, expected, "{domain} {answer:?}");
            assert_eq!(listing.to_string(), words);
        };
        check("list.example", [127, 0, 0, 2], Listing::Listed(Words::Plain), "listed");
        check("list.example", [192, 0, 2, 1], Listing::Invalid, "bad response");
        check("x.uribl.com", [127, 0, 0, 2], Listing::Listed(Words::Black), "listed (BLACK)");
        check("x.uribl.com", [127, 0, 0, 16], Listing::Listed(Words::White), "listed (WHITE)");
        let refused = "the list refuses to answer this resolver";
        check("x.uribl.com", [127, 0, 0, 1], Listing::Unanswered, refused);
        check("zen.spamhaus.org", [127, 255, 255, 254], Listing::Unanswered, refused);
        let exploit = Listing::Listed(Words::Exploit);
        check("zen.spamhaus.org", [127, 0, 0, 4], exploit, "listed (Illegal 3rd party exploits)");
        check(
            "dnsbl.httpbl.org",
            [127, 3, 77, 5],
            Listing::Visitor { kind: 5, days: 3, score: 77 },
            "Suspicious comment spammer IP: 3 days since last activity, threat score 77",
        );
        assert!(exploit.matches() && !Listing::Unanswered.matches() && !Listing::Invalid.matches());
    }
}
