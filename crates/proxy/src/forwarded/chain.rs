//! What a trusted peer says about the way a request came: `X-Forwarded-For` and its companions, or
//! `Forwarded` (RFC 7239).
//!
//! Both are read from the right, where the nearest proxy wrote, to the left, where in the end the
//! client may have written anything. Reading stops at the first address that is not trusted: that is
//! the client, and nothing to the left of it is even looked at. It also stops, without a client, at
//! the first thing that is no address, `unknown` and obfuscated names included; then the last proxy
//! before it has to stand for the client. Splitting goes from the right, too, so that an open quote of
//! the client's cannot swallow what proxies wrote behind it.

use std::net::{IpAddr, Ipv6Addr};

use tidegate_http::Headers;
use tidegate_http::field::Known;
use tidegate_http::target::Scheme;

use super::trusted::{TrustedProxies, canonical};

/// Proxies between the client and us that are followed; a longer chain is cut.
const HOPS_MAX: usize = 16;

/// What a trusted peer says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claim<'a> {
    /// The addresses on the way, nearest first: trusted proxies, and the client at the end. Empty if
    /// nothing usable was said.
    pub(super) hops: Vec<IpAddr>,
    pub(super) scheme: Option<Scheme>,
    pub(super) host: Option<&'a [u8]>,
    pub(super) port: Option<u16>,
}

/// What `X-Forwarded-For`, `-Proto`, `-Host` and `-Port` say; `None` without the first.
pub(super) fn x_forwarded<'a>(headers: &'a Headers, trusted: &TrustedProxies) -> Option<Claim<'a>> {
    if !headers.has(Known::XForwardedFor) {
        return None;
    }
    let elements = list(headers, Known::XForwardedFor);
    let hops = follow(elements.iter().map(|element| node(element)), trusted);
    let mut claim = companions(headers, hops.len(), elements.len());
    claim.hops = hops;
    Some(claim)
}

/// What `X-Real-IP` says, with the companions of `X-Forwarded-For`.
pub(super) fn x_real_ip(headers: &Headers) -> Claim<'_> {
    let mut claim = companions(headers, 1, 1);
    let mut values = headers.all(Known::XRealIp);
    if let (Some(value), None) = (values.next(), values.next()) {
        claim.hops.extend(node(value.trim_ascii()));
    }
    claim
}

fn companions(headers: &Headers, hop: usize, hops: usize) -> Claim<'_> {
    let value = |known| companion(headers, known, hop, hops);
    Claim {
        hops: Vec::new(),
        scheme: value(Known::XForwardedProto).and_then(scheme),
        host: value(Known::XForwardedHost),
        port: value(Known::XForwardedPort).and_then(port),
    }
}

/// The value that belongs to a hop (counted from the right, from 1). A proxy writes either one value
/// per hop, or just one; where the counts differ, the nearest proxy's is the only one that surely is
/// not the client's own.
fn companion(headers: &Headers, known: Known, hop: usize, hops: usize) -> Option<&[u8]> {
    let values = list(headers, known);
    let position = if values.len() == hops { hop.saturating_sub(1) } else { 0 };
    values.get(position).copied()
}

/// What `Forwarded` says; `None` without it.
pub(super) fn forwarded<'a>(headers: &'a Headers, trusted: &TrustedProxies) -> Option<Claim<'a>> {
    if !headers.has(Known::Forwarded) {
        return None;
    }
    let mut claim = Claim::default();
    for element in list(headers, Known::Forwarded) {
        let Some(element) = Element::parse(element) else { break };
        let Some(address) = element.node.and_then(node) else { break };
        claim.hops.push(address);
        claim.scheme = element.proto.and_then(scheme);
        claim.host = element.host;
        if claim.hops.len() == HOPS_MAX || !trusted.contains(address) {
            break;
        }
    }
    Some(claim)
}

fn follow(nodes: impl Iterator<Item = Option<IpAddr>>, trusted: &TrustedProxies) -> Vec<IpAddr> {
    let mut hops = Vec::new();
    for node in nodes {
        let Some(address) = node else { break };
        hops.push(address);
        if hops.len() == HOPS_MAX || !trusted.contains(address) {
            break;
        }
    }
    hops
}

/// The elements of all fields of a name as one list (RFC 9110, section 5.6.1), the last one first,
/// without empty ones. A few more than can be followed, so that counts can be compared.
fn list(headers: &Headers, known: Known) -> Vec<&[u8]> {
    let mut elements: Vec<&[u8]> = Vec::new();
    let values: Vec<&[u8]> = headers.all(known).collect();
    for value in values.into_iter().rev() {
        let split = FromRight { rest: Some(value), at: b',' };
        elements.extend(split.map(<[u8]>::trim_ascii).filter(|element| !element.is_empty()));
        if elements.len() > HOPS_MAX {
            break;
        }
    }
    elements
}

/// Splits at a byte that is not within quotes, from the right.
struct FromRight<'a> {
    rest: Option<&'a [u8]>,
    at: u8,
}

impl<'a> Iterator for FromRight<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let mut quoted = false;
        for (position, byte) in rest.iter().enumerate().rev() {
            match byte {
                b'"' => quoted = !quoted,
                byte if *byte == self.at && !quoted => {
                    self.rest = Some(&rest[..position]);
                    return Some(&rest[position + 1..]);
                }
                _ => {}
            }
        }
        Some(rest)
    }
}

/// The parameters of a `Forwarded` element that we use.
#[derive(Default)]
struct Element<'a> {
    node: Option<&'a [u8]>,
    proto: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
}

impl<'a> Element<'a> {
    /// RFC 7239, section 4: `name=value` pairs between semicolons, no name twice.
    fn parse(text: &'a [u8]) -> Option<Element<'a>> {
        let mut element = Element::default();
        for pair in (FromRight { rest: Some(text), at: b';' }).map(<[u8]>::trim_ascii) {
            if pair.is_empty() {
                continue;
            }
            let equals = memchr::memchr(b'=', pair)?;
            let value = unquoted(&pair[equals + 1..])?;
            let name = &pair[..equals];
            let slot = if name.eq_ignore_ascii_case(b"for") {
                &mut element.node
            } else if name.eq_ignore_ascii_case(b"proto") {
                &mut element.proto
            } else if name.eq_ignore_ascii_case(b"host") {
                &mut element.host
            } else {
                continue;
            };
            if slot.replace(value).is_some() {
                return None;
            }
        }
        Some(element)
    }
}

/// A value without its quotes. Escapes are refused: no address, scheme or host needs one, and with
/// them quotes cannot be told from the right. Unquoted brackets and colons are let pass, because many
/// proxies forget the quotes.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    let inside = match value {
        [b'"', inside @ .., b'"'] => inside,
        value => value,
    };
    let plain = !inside.is_empty() && !inside.iter().any(|byte| matches!(byte, b'"' | b'\\'));
    plain.then_some(inside)
}

/// An address, perhaps with a port; an IPv6 address with a port stands in brackets.
fn node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = if let Some(inside) = text.strip_prefix('[') {
        let (address, behind) = inside.split_once(']')?;
        let port_follows = behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port);
        IpAddr::V6(port_follows.then(|| address.parse::<Ipv6Addr>().ok())??)
    } else {
        match text.split_once(':') {
            Some((address, port)) if is_port(port) => IpAddr::V4(address.parse().ok()?),
            _ => text.parse().ok()?,
        }
    };
    Some(canonical(address))
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn scheme(text: &[u8]) -> Option<Scheme> {
    let known = [Scheme::Http, Scheme::Https];
    known.into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.name().as_bytes()))
}

fn port(text: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(text).ok().filter(|text| is_port(text))?;
    text.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted() -> TrustedProxies {
        TrustedProxies::new(&["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
    }

    fn headers(fields: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    fn hops(claim: &Claim<'_>) -> String {
        let text: Vec<_> = claim.hops.iter().map(ToString::to_string).collect();
        text.join(" ")
    }

    #[test]
    fn a_node_is_an_address_perhaps_with_a_port() {
        let check = |text: &str, expected: Option<&str>| {
            let got = node(text.as_bytes()).map(|address| address.to_string());
            assert_eq!(got.as_deref(), expected, "{text:?}");
        };
        check("192.0.2.1", Some("192.0.2.1"));
        check("192.0.2.1:8080", Some("192.0.2.1"));
        check("2001:db8::1", Some("2001:db8::1"));
        check("[2001:db8::1]", Some("2001:db8::1"));
        check("[2001:db8::1]:443", Some("2001:db8::1"));
        check("::ffff:192.0.2.1", Some("192.0.2.1"));
        for broken in [
            "",
            "unknown",
            "_hidden",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.01",
            "192.0.2.1:",
            "192.0.2.1:x",
            "192.0.2.1:123456",
            "[2001:db8::1",
            "[2001:db8::1]x",
            "[2001:db8::1]:",
            "[192.0.2.1]",
            "fe80::1%eth0",
            "192.0.2.1 ",
            "192.0.2.1, 192.0.2.2",
            "\u{ff11}",
        ] {
            check(broken, None);
        }
    }

    #[test]
    fn x_forwarded_for_is_followed_from_the_right_to_the_first_untrusted() {
        let check = |fields: &[&str], expected: &str| {
            let fields: Vec<_> = fields.iter().map(|value| ("x-forwarded-for", *value)).collect();
            let headers = headers(&fields);
            assert_eq!(hops(&x_forwarded(&headers, &trusted()).unwrap()), expected, "{fields:?}");
        };
        check(&["192.0.2.1"], "192.0.2.1");
        check(&["203.0.113.66, 192.0.2.1"], "192.0.2.1");
        check(&["203.0.113.66, 192.0.2.1, 10.0.0.1"], "10.0.0.1 192.0.2.1");
        check(&["192.0.2.1", "10.0.0.1"], "10.0.0.1 192.0.2.1");
        check(&["192.0.2.1, 10.0.0.2", "10.0.0.1, fd00::1"], "fd00::1 10.0.0.1 10.0.0.2 192.0.2.1");
        check(&["10.0.0.2, 10.0.0.1"], "10.0.0.1 10.0.0.2");
        check(&["192.0.2.1,, ,10.0.0.1,"], "10.0.0.1 192.0.2.1");
        check(&["192.0.2.1, unknown, 10.0.0.1"], "10.0.0.1");
        check(&["192.0.2.1, 10.0.0.1, nonsense"], "");
        check(&[""], "");
        check(&["192.0.2.1:4711"], "192.0.2.1");
    }

    #[test]
    fn a_chain_has_a_longest_length() {
        let long = ["10.0.0.1"; 500].join(", ");
        let headers = headers(&[("x-forwarded-for", &long)]);
        assert_eq!(x_forwarded(&headers, &trusted()).unwrap().hops.len(), HOPS_MAX);
    }

    #[test]
    fn companions_belong_to_the_clients_hop_or_are_the_nearest() {
        let check = |xff: &str, proto: &str, expected: Option<Scheme>| {
            let headers = headers(&[("x-forwarded-for", xff), ("x-forwarded-proto", proto)]);
            let claim = x_forwarded(&headers, &trusted()).unwrap();
            assert_eq!(claim.scheme, expected, "{xff:?} {proto:?}");
        };
        check("192.0.2.1", "https", Some(Scheme::Https));
        check("192.0.2.1", "HTTP", Some(Scheme::Http));
        check("192.0.2.1", "gopher", None);
        check("192.0.2.1, 10.0.0.1", "https, http", Some(Scheme::Https));
        check("192.0.2.1, 10.0.0.1", "https", Some(Scheme::Https));
        check("9.9.9.9, 192.0.2.1, 10.0.0.1", "http, https, http", Some(Scheme::Https));
        // The client sent one itself, and its proxy added the truth.
        check("192.0.2.1", "https, http", Some(Scheme::Http));
    }

    #[test]
    fn forwarded_is_followed_like_it() {
        let check = |fields: &[&str], expected: &str| {
            let fields: Vec<_> = fields.iter().map(|value| ("Forwarded", *value)).collect();
            let headers = headers(&fields);
            let claim = forwarded(&headers, &trusted()).unwrap();
            let scheme = claim.scheme.map_or("-", Scheme::name);
            let host = claim.host.map_or("-", |host| std::str::from_utf8(host).unwrap());
            assert_eq!(format!("{} {scheme} {host}", hops(&claim)), expected, "{fields:?}");
        };
        check(&["for=192.0.2.1"], "192.0.2.1 - -");
        check(&["For=\"192.0.2.1\";Proto=https;HOST=\"a.example\""], "192.0.2.1 https a.example");
        check(&["for=\"[2001:db8::1]:4711\""], "2001:db8::1 - -");
        check(&["for=[2001:db8::1]"], "2001:db8::1 - -");
        check(&["for=192.0.2.1;by=10.0.0.9 ; secret=\"a,b;c\""], "192.0.2.1 - -");
        check(
            &["for=9.9.9.9, for=192.0.2.1;proto=https, for=10.0.0.1;proto=http"],
            "10.0.0.1 192.0.2.1 https -",
        );
        check(&["for=192.0.2.1;proto=https", "for=10.0.0.1"], "10.0.0.1 192.0.2.1 https -");
        check(&["for=192.0.2.1, for=unknown, for=10.0.0.1"], "10.0.0.1 - -");
        check(&["for=192.0.2.1, for=_hidden;proto=https"], " - -");
        check(&["proto=https"], " - -");
        check(&["for=192.0.2.1;for=9.9.9.9"], " - -");
        check(&["for"], " - -");
        check(&["for="], " - -");
        check(&["for=\"192.0.2.1"], " - -");
        check(&["for=\"192.0.2\\.1\""], " - -");
        check(&["for=192.0.2.1;;proto=http;"], "192.0.2.1 http -");
    }

    #[test]
    fn an_open_quote_of_the_clients_swallows_nothing() {
        for forged in
            ["for=\"", "for=\"9.9.9.9", "for=9.9.9.9;x=\"", "\"", "for=\"a\\\"", "x=\"a\";y=\""]
        {
            for honest in ["for=192.0.2.1", "for=\"192.0.2.1\"", "for=\"192.0.2.1:80\";host=\"h\""]
            {
                let headers = headers(&[("forwarded", &format!("{forged}, {honest}"))]);
                let claim = forwarded(&headers, &trusted()).unwrap();
                assert_eq!(hops(&claim), "192.0.2.1", "{forged} {honest}");
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let alphabet = b"for=192.0.2.1,;\"\\[]: _h\x80unk";
        let mut seed = 7_u64;
        for _ in 0..20_000 {
            let mut text = Vec::new();
            for _ in 0..24 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push(alphabet[(seed >> 33) as usize % alphabet.len()]);
            }
            let mut headers = Headers::new();
            headers.push(b"forwarded", &text);
            headers.push(b"x-forwarded-for", &text);
            headers.push(b"x-forwarded-proto", &text);
            let trusted = trusted();
            let claims = [forwarded(&headers, &trusted), x_forwarded(&headers, &trusted)];
            assert!(claims.iter().flatten().all(|claim| claim.hops.len() <= HOPS_MAX));
        }
    }
}
