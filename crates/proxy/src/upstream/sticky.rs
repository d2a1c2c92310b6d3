//! The sticky cookie: a client stays on the server that it had first.
//!
//! The value names a server without showing its address: a keyed hash (SipHash-2-4) of the address.
//! The key comes from the group's `secret`, or from its name where none is set; either way restarts
//! and several gates with one configuration agree on every value. Without a secret, someone who knows
//! the group's name can test guesses of an address against a cookie; with one, nobody can. A client can
//! make up a value, but only reach by it a server whose value it guesses, and every client may be sent
//! to every server anyway.

use siphasher::sip::SipHasher24;
use siphasher::sip128::SipHasher24 as SipHasher24x128;
use tidegate_http::Headers;
use tidegate_http::field::Known;
use tidegate_http::target::Scheme;

use crate::settings::Sticky;

/// The value of a sticky cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; 16]);

/// The key behind a group's cookie values.
pub(super) struct TagKey([u8; 16]);

impl TagKey {
    pub(super) fn of(group: &str, sticky: &Sticky) -> TagKey {
        let (domain, text) = match &sticky.secret {
            Some(secret) => (1, secret.as_str()),
            None => (0, group),
        };
        TagKey(SipHasher24x128::new_with_keys(domain, 0).hash(text.as_bytes()).as_bytes())
    }

    pub(super) fn tag(&self, server: &str) -> Tag {
        let hash = SipHasher24::new_with_key(&self.0).hash(server.as_bytes());
        let mut text = [0; 16];
        for (position, digit) in text.iter_mut().enumerate() {
            let nibble = (hash >> (60 - 4 * position)) & 0xF;
            *digit = b"0123456789abcdef"[nibble as usize];
        }
        Tag(text)
    }
}

impl Tag {
    /// The tag of a cookie's value; `None` if it cannot be one.
    pub(super) fn from_value(value: &[u8]) -> Option<Tag> {
        value.try_into().ok().map(Tag)
    }

    /// The value.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends the value of a `Set-Cookie` field (RFC 6265, section 4.1). `HttpOnly` and
    /// `SameSite=Lax`: no script and no foreign form needs it. `Secure` where the client used TLS.
    pub fn write_set_cookie(&self, sticky: &Sticky, scheme: Scheme, out: &mut Vec<u8>) {
        out.extend_from_slice(sticky.cookie.as_bytes());
        out.push(b'=');
        out.extend_from_slice(&self.0);
        out.extend_from_slice(b"; Path=/; HttpOnly; SameSite=Lax");
        if scheme == Scheme::Https {
            out.extend_from_slice(b"; Secure");
        }
        if let Some(max_age) = sticky.max_age {
            out.extend_from_slice(b"; Max-Age=");
            out.extend_from_slice(max_age.as_secs().to_string().as_bytes());
        }
    }
}

/// The value of the first cookie with this name, over all `Cookie` fields: HTTP/2 clients may send
/// one field per cookie (RFC 9113, section 8.2.3).
pub fn cookie<'a>(headers: &'a Headers, name: &[u8]) -> Option<&'a [u8]> {
    let pairs = headers.all(Known::Cookie).flat_map(|value| value.split(|byte| *byte == b';'));
    pairs.map(<[u8]>::trim_ascii).find_map(|pair| {
        let value = pair.strip_prefix(name)?.strip_prefix(b"=")?;
        let quoted = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        Some(quoted.unwrap_or(value))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sticky() -> Sticky {
        Sticky { cookie: "gate".into(), max_age: None, secret: None }
    }

    #[test]
    fn a_value_is_stable_and_differs_by_server_group_and_secret() {
        let secret = |text: &str| Sticky { secret: Some(text.into()), ..sticky() };
        let tag = |group: &str, sticky: &Sticky, server| TagKey::of(group, sticky).tag(server);
        let value = tag("app", &sticky(), "10.0.0.1:80");
        // Written down: a change of the hash would move every client of every gate.
        assert_eq!(std::str::from_utf8(value.as_bytes()), Ok("e904a3398efd828f"));
        assert_eq!(Tag::from_value(value.as_bytes()), Some(value));
        assert_ne!(tag("app", &sticky(), "10.0.0.2:80"), value);
        assert_ne!(tag("api", &sticky(), "10.0.0.1:80"), value);
        assert_ne!(tag("app", &secret("s"), "10.0.0.1:80"), value);
        assert_ne!(tag("app", &secret("app"), "10.0.0.1:80"), value);
        assert_eq!(tag("app", &secret("s"), "a"), tag("renamed", &secret("s"), "a"));
        assert_eq!(Tag::from_value(b"short"), None);
    }

    #[test]
    fn set_cookie_has_the_careful_attributes() {
        let check = |sticky: Sticky, scheme, expected: &str| {
            let mut out = Vec::new();
            Tag(*b"0123456789abcdef").write_set_cookie(&sticky, scheme, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        };
        check(sticky(), Scheme::Http, "gate=0123456789abcdef; Path=/; HttpOnly; SameSite=Lax");
        check(
            Sticky { max_age: Some(Duration::from_hours(1)), ..sticky() },
            Scheme::Https,
            "gate=0123456789abcdef; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=3600",
        );
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let check = |fields: &[&str], expected: Option<&str>| {
            let mut headers = Headers::new();
            for field in fields {
                headers.push(b"cookie", field.as_bytes());
            }
            let got = cookie(&headers, b"gate").map(|value| std::str::from_utf8(value).unwrap());
            assert_eq!(got, expected, "{fields:?}");
        };
        check(&[], None);
        check(&["gate=1"], Some("1"));
        check(&["a=b; gate=1; gate=2"], Some("1"));
        check(&["a=b;gate=1"], Some("1"));
        check(&["a=b", "gate=\"q\""], Some("q"));
        check(&["gates=1; xgate=2; gate"], None);
        check(&["a=gate=1"], None);
        check(&["gate="], Some(""));
        check(&["gate=\""], Some("\""));
    }
}
