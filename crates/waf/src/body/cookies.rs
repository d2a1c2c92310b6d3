//! Cookies of a request: the `Cookie` field as version 0 writes it.
//!
//! Pairs end at `;`, a name ends at its first `=`, spaces around a name are dropped and nothing is
//! decoded or unquoted, as ModSecurity (`SecCookieFormat 0`) and Coraza do. A pair without a name is
//! no cookie; a name without `=` has an empty value. Version 1 (RFC 2965) is history: no browser
//! sends it, and a reader of it would see other cookies than the server behind us.

use memchr::memchr;

use super::sink::Flow;

/// Gives the name and the value of every cookie of one `Cookie` field, until `cookie` says stop.
///
/// `separator` is `;` unless `SecCookieV0Separator` says otherwise. The caller bounds the number.
pub fn cookies(field: &[u8], separator: u8, mut cookie: impl FnMut(&[u8], &[u8]) -> Flow) {
    let mut rest = field;
    while !rest.is_empty() {
        let end = memchr(separator, rest).unwrap_or(rest.len());
        let pair = rest[..end].trim_ascii();
        rest = rest.get(end + 1..).unwrap_or_default();
        let (name, value) = match memchr(b'=', pair) {
            Some(at) => (pair[..at].trim_ascii_end(), &pair[at + 1..]),
            None => (pair, &[][..]),
        };
        if !name.is_empty() && cookie(name, value) == Flow::Stop {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(field: &str, expected: &[(&str, &str)]) {
        let mut seen = Vec::new();
        cookies(field.as_bytes(), b';', |name, value| {
            seen.push((name.to_vec(), value.to_vec()));
            Flow::Continue
        });
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect();
        assert_eq!(seen, expected, "{field:?}");
    }

    #[test]
    fn pairs() {
        check("", &[]);
        check(" \t ", &[]);
        check("a=1", &[("a", "1")]);
        check("a=1; b=2", &[("a", "1"), ("b", "2")]);
        check("a=1;b=2;", &[("a", "1"), ("b", "2")]);
        check("a=1; a=2", &[("a", "1"), ("a", "2")]);
        check(" a = 1 ;b", &[("a", " 1"), ("b", "")]);
    }

    #[test]
    fn nothing_is_decoded() {
        check("a=%41+b", &[("a", "%41+b")]);
        check("a=\"x; y\"", &[("a", "\"x"), ("y\"", "")]);
        check("a=b=c", &[("a", "b=c")]);
        check("a=1, b=2", &[("a", "1, b=2")]);
    }

    #[test]
    fn pairs_without_a_name_are_none() {
        check("=x; ;;  =y; z=", &[("z", "")]);
    }

    #[test]
    fn stops_when_told() {
        let mut seen = 0;
        cookies(b"a=1; b=2; c=3", b';', |_, _| {
            seen += 1;
            if seen == 2 { Flow::Stop } else { Flow::Continue }
        });
        assert_eq!(seen, 2);
    }
}
