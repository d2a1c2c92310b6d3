//! Request targets, hosts and paths (RFC 9112, section 3.2, and RFC 3986).
//!
//! A target is refused where servers are known to read it differently. What is left has one host,
//! in one spelling, and after [`normalize_path`] one path, which is both what routes are chosen by
//! and what goes upstream.

use crate::block;
use crate::error::{HostError, TargetError};
use std::io::Write;
use std::net::Ipv6Addr;

/// The longest host: a DNS name in its text form (RFC 1035, section 2.3.4).
pub const HOST_BYTES_MAX: usize = 253;

/// A scheme that HTTP/1 requests may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// The scheme in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port that is meant where none is written.
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// A target's form. The authority form belongs to `CONNECT`, which is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// A path, perhaps a query: the whole target.
    Origin,
    /// `*`
    Asterisk,
    /// A URI in its absolute form.
    Absolute {
        /// Its scheme.
        scheme: Scheme,
        /// Host and port, unjudged; [`host`] judges.
        authority: &'a [u8],
        /// The rest: empty, or from the first `/` or `?` on.
        path_and_query: &'a [u8],
    },
}

/// Judges a target's bytes and tells its form.
pub fn form(target: &[u8]) -> Result<Form<'_>, TargetError> {
    check_bytes(target)?;
    match target {
        [] => Err(TargetError::Empty),
        [b'/', ..] => Ok(Form::Origin),
        b"*" => Ok(Form::Asterisk),
        _ => absolute(target),
    }
}

fn absolute(target: &[u8]) -> Result<Form<'_>, TargetError> {
    let colon = memchr::memchr(b':', target).ok_or(TargetError::Form)?;
    let (scheme, rest) = (&target[..colon], &target[colon + 1..]);
    let rest = rest.strip_prefix(b"//").ok_or(TargetError::Form)?;
    let scheme = if scheme.eq_ignore_ascii_case(b"http") {
        Scheme::Http
    } else if scheme.eq_ignore_ascii_case(b"https") {
        Scheme::Https
    } else {
        return Err(TargetError::Scheme);
    };
    let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(end);
    if authority.contains(&b'@') {
        return Err(TargetError::UserInfo);
    }
    Ok(Form::Absolute { scheme, authority, path_and_query })
}

/// Refuses bytes that no target holds, and those that servers read in more than one way.
///
/// Browsers send `"`, `<`, `>`, `^`, `` ` ``, `{`, `|` and `}` raw, and a backslash in queries, so
/// these pass although RFC 3986 has them encoded; nobody gives them a meaning.
fn check_bytes(target: &[u8]) -> Result<(), TargetError> {
    let is_odd = |byte: u8| !(0x21..=0x7e).contains(&byte) || byte == b'#' || byte == b'\\';
    if block::none(target, is_odd) { Ok(()) } else { why_odd(target) }
}

#[cold]
fn why_odd(target: &[u8]) -> Result<(), TargetError> {
    let path_len = memchr::memchr(b'?', target).unwrap_or(target.len());
    for (at, &byte) in target.iter().enumerate() {
        match byte {
            0..=b' ' | 0x7f => return Err(TargetError::Control),
            0x80.. => return Err(TargetError::NotAscii),
            b'#' => return Err(TargetError::Fragment),
            b'\\' if at < path_len => return Err(TargetError::Backslash),
            _ => {}
        }
    }
    Ok(())
}

/// Reads `host [ ":" port ]`, as in `Host` (RFC 9110, section 7.2) and in authorities.
///
/// `out` gets the host in its one spelling: lower case, no final dot, IPv6 in brackets and in the
/// form of RFC 5952. A name is letters, digits, `-` and `_` in labels that are not empty; what RFC
/// 3986 allows beyond that is in no DNS name. A name whose last label is a number is an IPv4 address
/// to some (`127.1`, `0x7f.1`), so it has to be one to all.
pub fn host(value: &[u8], out: &mut Vec<u8>) -> Result<Option<u16>, HostError> {
    out.clear();
    if value.is_empty() {
        return Err(HostError::Empty);
    }
    let port = if let [b'[', inside @ ..] = value {
        let close = memchr::memchr(b']', inside).ok_or(HostError::Malformed)?;
        ipv6(&inside[..close], out)?;
        &inside[close + 1..]
    } else {
        let end = name(value, out)?;
        &value[end..]
    };
    match port {
        [] => Ok(None),
        [b':', digits @ ..] => self::port(digits).map(Some),
        _ => Err(HostError::Malformed),
    }
}

/// What the bytes of a name are; a set of them says what a label or a name is made of.
mod class {
    pub(super) const FOREIGN: u8 = 0;
    pub(super) const DOT: u8 = 1;
    pub(super) const DIGIT: u8 = 2;
    pub(super) const SMALL: u8 = 4;
    pub(super) const CAPITAL: u8 = 8;
}

const CLASSES: [u8; 256] = {
    let mut classes = [class::FOREIGN; 256];
    set(&mut classes, b".", class::DOT);
    set(&mut classes, b"0123456789", class::DIGIT);
    set(&mut classes, b"abcdefghijklmnopqrstuvwxyz-_", class::SMALL);
    set(&mut classes, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", class::CAPITAL);
    classes
};

const fn set(classes: &mut [u8; 256], bytes: &[u8], class: u8) {
    let mut at = 0;
    while at < bytes.len() {
        classes[bytes[at] as usize] = class;
        at += 1;
    }
}

/// Takes the name that `value` begins with, and gives the place behind it.
fn name(value: &[u8], out: &mut Vec<u8>) -> Result<usize, HostError> {
    let mut end = 0;
    // Where the last label begins, and the one before it.
    let (mut label, mut label_before) = (0, 0);
    let mut last = class::DOT;
    let mut all = 0;
    while let Some(&byte) = value.get(end) {
        let class = CLASSES[usize::from(byte)];
        if class <= class::DOT {
            if class == class::FOREIGN {
                break;
            }
            if last == class::DOT {
                return Err(HostError::Malformed);
            }
            (label, label_before) = (end + 1, label);
        }
        all |= class;
        last = class;
        end += 1;
    }
    let mut text = &value[..end];
    if last == class::DOT {
        text = text.strip_suffix(b".").ok_or(HostError::Malformed)?;
        label = label_before;
    }
    let is_malformed = if all <= class::DOT | class::DIGIT {
        !is_ipv4(text)
    } else {
        text[label].is_ascii_digit() && is_number(&text[label..])
    };
    if is_malformed || text.len() > HOST_BYTES_MAX {
        return Err(HostError::Malformed);
    }
    out.extend_from_slice(text);
    if all & class::CAPITAL != 0 {
        out.make_ascii_lowercase();
    }
    Ok(end)
}

/// Whether a label is a number where IPv4 addresses may have hexadecimal parts.
fn is_number(label: &[u8]) -> bool {
    match label {
        [b'0', b'x' | b'X', hex @ ..] => hex.iter().all(u8::is_ascii_hexdigit),
        _ => label.iter().all(u8::is_ascii_digit),
    }
}

/// Whether this is four numbers of a byte each, in their shortest form.
fn is_ipv4(text: &[u8]) -> bool {
    let (mut parts, mut number) = (1, None);
    for &byte in text {
        let digit = u16::from(byte.wrapping_sub(b'0'));
        number = match number {
            None if digit < 10 => Some(digit),
            // What begins with a zero is that zero.
            Some(1..=25) if digit < 10 => number.map(|number| number * 10 + digit),
            Some(0..=255) if byte == b'.' => {
                parts += 1;
                None
            }
            _ => return false,
        };
    }
    parts == 4 && matches!(number, Some(0..=255))
}

fn ipv6(text: &[u8], out: &mut Vec<u8>) -> Result<(), HostError> {
    let address: Ipv6Addr = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(HostError::Malformed)?;
    write!(out, "[{address}]").map_err(|_| HostError::Malformed)
}

fn port(digits: &[u8]) -> Result<u16, HostError> {
    let padded = digits.len() > 1 && digits[0] == b'0';
    if digits.is_empty() || digits.len() > 5 || padded {
        return Err(HostError::Port);
    }
    let mut number = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return Err(HostError::Port);
        }
        number = number * 10 + u32::from(byte - b'0');
    }
    u16::try_from(number).map_err(|_| HostError::Port)
}

/// Whether a path was in its normal form already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// It was; the path itself is to be used, and the output holds nothing of meaning.
    Normal,
    /// It was not; the output holds the normal form.
    Rewritten,
}

/// Brings a path (no query) into the one form that routes are chosen by and that goes upstream
/// (RFC 3986, section 6.2.2).
///
/// - Percent-encoded unreserved characters are decoded; other escapes get upper-case digits. An
///   encoded slash stays encoded and parts no segments.
/// - Dot segments are removed. A path that climbs above its root is refused, as nginx and Apache
///   do, though RFC 3986 (5.2.4) would clamp it.
/// - A `%` without two hex digits is refused, as by nginx and Apache; HAProxy passes it on, and
///   decoders behind it disagree.
/// - An encoded control byte is refused.
/// - A dot segment that only some servers see is refused: `..;x` is one for Tomcat, `..%2F` and
///   `..%5C` for those who decode before they part segments.
///
/// Empty segments stay: `//` and `/` are different paths. `*` is in normal form.
pub fn normalize_path(path: &[u8], out: &mut Vec<u8>) -> Result<PathForm, TargetError> {
    if path == b"*" || is_plain(path) {
        return Ok(PathForm::Normal);
    }
    out.clear();
    out.reserve(path.len());
    let mut rest = path.strip_prefix(b"/").ok_or(TargetError::Form)?;
    loop {
        let end = memchr::memchr(b'/', rest);
        let segment = &rest[..end.unwrap_or(rest.len())];
        out.push(b'/');
        let start = out.len();
        push_segment(segment, out)?;
        match &out[start..] {
            b"." => out.truncate(if end.is_some() { start - 1 } else { start }),
            b".." => {
                out.truncate(start - 1);
                let parent = memchr::memrchr(b'/', out).ok_or(TargetError::Climbs)?;
                out.truncate(if end.is_some() { parent } else { parent + 1 });
            }
            segment if hides_dots(segment) => return Err(TargetError::HiddenDots),
            _ => {}
        }
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => break,
        }
    }
    Ok(if out == path { PathForm::Normal } else { PathForm::Rewritten })
}

/// Whether a path has neither escapes nor segments that begin with a dot. Nearly all are so.
fn is_plain(path: &[u8]) -> bool {
    if path.first() != Some(&b'/') || memchr::memchr(b'%', path).is_some() {
        return false;
    }
    memchr::memchr_iter(b'.', path).all(|dot| path[dot - 1] != b'/')
}

fn push_segment(segment: &[u8], out: &mut Vec<u8>) -> Result<(), TargetError> {
    let mut rest = segment;
    while let Some(percent) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..percent]);
        let [high, low, behind @ ..] = &rest[percent + 1..] else {
            return Err(TargetError::Escape);
        };
        let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low)) else {
            return Err(TargetError::Escape);
        };
        let byte = high << 4 | low;
        match byte {
            0..=0x1f | 0x7f => return Err(TargetError::EncodedControl),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.extend([b'%', DIGITS[usize::from(high)], DIGITS[usize::from(low)]]);
            }
        }
        rest = behind;
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Whether a normalised segment that is no dot segment is one for somebody.
fn hides_dots(segment: &[u8]) -> bool {
    let mut rest = segment;
    loop {
        let separator = memchr::memmem::find(rest, b"%2F")
            .into_iter()
            .chain(memchr::memmem::find(rest, b"%5C"))
            .min();
        let part = &rest[..separator.unwrap_or(rest.len())];
        let without_parameters = memchr::memchr(b';', part).map_or(part, |end| &part[..end]);
        if matches!(without_parameters, b"." | b"..") {
            return true;
        }
        match separator {
            Some(separator) => rest = &rest[separator + 3..],
            None => return false,
        }
    }
}

const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        let check = |value: &str, expected: (&str, Option<u16>)| {
            let mut out = b"left over".to_vec();
            let port = host(value.as_bytes(), &mut out).unwrap();
            assert_eq!((std::str::from_utf8(&out).unwrap(), port), expected, "{value}");
        };
        check("a", ("a", None));
        check("WWW.Example.COM", ("www.example.com", None));
        check("example.com.", ("example.com", None));
        check("a:0", ("a", Some(0)));
        check("a:80", ("a", Some(80)));
        check("a.:65535", ("a", Some(65535)));
        check("a_b-c.d", ("a_b-c.d", None));
        check("xn--mnchen-3ya.de", ("xn--mnchen-3ya.de", None));
        check("1a.2b", ("1a.2b", None));
        check("1.2.3.4", ("1.2.3.4", None));
        check("1.2.3.4:5", ("1.2.3.4", Some(5)));
        check("1.2.3.4.example", ("1.2.3.4.example", None));
        check("0xa.example", ("0xa.example", None));
        check("[::1]", ("[::1]", None));
        check("[2001:DB8:0:0:0:0:0:1]:443", ("[2001:db8::1]", Some(443)));
        check("[::ffff:1.2.3.4]", ("[::ffff:1.2.3.4]", None));
        let longest = vec!["a".repeat(63); 4].join(".")[..HOST_BYTES_MAX].to_owned();
        check(&longest, (&longest, None));
    }

    #[test]
    fn addresses_are_what_the_standard_library_reads() {
        let numbers =
            ["", "0", "00", "01", "9", "10", "25", "99", "199", "249", "255", "256", "260"];
        for first in numbers {
            for second in numbers {
                for text in [
                    format!("{first}.{second}.0.7"),
                    format!("1.2.{first}.{second}"),
                    format!("{first}.{second}"),
                    format!("1.{first}.2.3.{second}"),
                    format!("1.2.3.{first}x{second}"),
                ] {
                    let expected = text.parse::<std::net::Ipv4Addr>().is_ok();
                    assert_eq!(is_ipv4(text.as_bytes()), expected, "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let check = |value: &[u8], reason: HostError| {
            let found = host(value, &mut Vec::new());
            assert_eq!(found, Err(reason), "{}", String::from_utf8_lossy(value));
        };
        check(b"", HostError::Empty);
        for malformed in [
            &b"."[..],
            b"..",
            b".a",
            b"a..",
            b"a..b",
            b":80",
            b"a b",
            b" a",
            b"a\t",
            b"a/b",
            b"a\\b",
            b"a?b",
            b"a#b",
            b"u@a",
            b"a,b",
            b"a;b",
            b"a%2eb",
            b"a%00",
            b"a\0",
            b"a\xff",
            b"m\xc3\xbcnchen",
            b"a*",
            b"a'b",
            b"a(b",
            b"[",
            b"[]",
            b"[::1",
            b"::1",
            b"[1.2.3.4]",
            b"[::1]x",
            b"[::1]]",
            b"[[::1]]",
            b"[fe80::1%25eth0]",
            b"[fe80::1%eth0]",
            b"[v1.a]",
            b"[::g]",
            b"[ ::1]",
            b"1",
            b"127.1",
            b"1.2.3",
            b"1.2.3.4.5",
            b"1.2.3.256",
            b"01.2.3.4",
            b"a.1",
            b"0x7f000001",
            b"0x7f.0.0.0x1",
            b"a.0x",
            &[b'a'; HOST_BYTES_MAX + 1],
        ] {
            check(malformed, HostError::Malformed);
        }
        for port in [
            &b"a:"[..],
            b"u:p@a",
            b"a:-1",
            b"a:+1",
            b"a:080",
            b"a:00",
            b"a:65536",
            b"a:99999999999",
            b"a:x",
            b"a: 1",
            b"a:1 ",
            b"a:1:2",
            b"[::1]:",
            b"[::1]:0x1",
            b"a:\xd9\xa1",
        ] {
            check(port, HostError::Port);
        }
    }

    #[test]
    fn each_byte_that_a_name_may_hold() {
        for byte in 0..=255_u8 {
            let allowed = byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
            let found = host(&[b'a', byte, b'1'], &mut Vec::new());
            // `a.1` ends in a number, and is no address.
            assert_eq!(found.is_ok(), allowed && byte != b'.', "{byte:#x}");
        }
    }

    #[test]
    fn targets_have_four_forms_of_which_three_are_served() {
        let check = |target: &[u8], expected: Result<Form<'_>, TargetError>| {
            assert_eq!(form(target), expected, "{}", String::from_utf8_lossy(target));
        };
        check(b"/", Ok(Form::Origin));
        check(b"//a/b", Ok(Form::Origin));
        check(b"/a?b=http://c/", Ok(Form::Origin));
        check(b"*", Ok(Form::Asterisk));
        let absolute = |scheme, authority, path_and_query| {
            Ok(Form::Absolute { scheme, authority, path_and_query })
        };
        check(b"http://a/b?c", absolute(Scheme::Http, b"a", b"/b?c"));
        check(b"HTTPS://a:1", absolute(Scheme::Https, b"a:1", b""));
        check(b"http://a?b/c", absolute(Scheme::Http, b"a", b"?b/c"));
        check(b"http:///b", absolute(Scheme::Http, b"", b"/b"));
        check(b"http://a/@b", absolute(Scheme::Http, b"a", b"/@b"));
        check(b"", Err(TargetError::Empty));
        check(b"a", Err(TargetError::Form));
        check(b"a:443", Err(TargetError::Form));
        check(b"?a", Err(TargetError::Form));
        check(b"**", Err(TargetError::Form));
        check(b"http:/a", Err(TargetError::Form));
        check(b"http:a", Err(TargetError::Form));
        check(b"ftp://a/", Err(TargetError::Scheme));
        check(b"ws://a/", Err(TargetError::Scheme));
        check(b"://a/", Err(TargetError::Scheme));
        check(b"http://u@a/", Err(TargetError::UserInfo));
        check(b"http://u:p@a/", Err(TargetError::UserInfo));
        check(b"http://a@", Err(TargetError::UserInfo));
    }

    #[test]
    fn each_byte_of_a_target_has_one_meaning() {
        for byte in 0..=255_u8 {
            let expected = match byte {
                0..=b' ' | 0x7f => Err(TargetError::Control),
                0x80.. => Err(TargetError::NotAscii),
                b'#' => Err(TargetError::Fragment),
                b'\\' => Err(TargetError::Backslash),
                _ => Ok(Form::Origin),
            };
            for at in [1, 15, 16, 17, 39] {
                let mut target = [b'a'; 40];
                target[0] = b'/';
                target[at] = byte;
                assert_eq!(form(&target), expected, "{byte:#x} at {at}");
            }
            let with_query = [b'/', b'?', byte];
            let expected = if byte == b'\\' { Ok(Form::Origin) } else { expected };
            assert_eq!(form(&with_query), expected, "{byte:#x} in the query");
        }
    }

    #[test]
    fn paths_have_one_spelling() {
        let check = |path: &str, expected: &str| {
            let mut out = b"left over".to_vec();
            let form = normalize_path(path.as_bytes(), &mut out).unwrap();
            if path == expected {
                assert_eq!(form, PathForm::Normal, "{path}");
            } else {
                assert_eq!(form, PathForm::Rewritten, "{path}");
                assert_eq!(std::str::from_utf8(&out).unwrap(), expected, "{path}");
            }
            let again = normalize_path(expected.as_bytes(), &mut out);
            assert_eq!(again, Ok(PathForm::Normal), "{path} twice");
        };
        for normal in [
            "/",
            "*",
            "/a",
            "/a/",
            "//",
            "//a",
            "/a//b",
            "/.a",
            "/..a",
            "/a.",
            "/a..",
            "/a/.b/..c/...",
            "/a.b/c.d",
            "/%20",
            "/%2F",
            "/a%2Fb",
            "/%C3%BC",
            "/%25",
            "/%252e%252e/",
            "/a;b=c",
            "/%3B",
            "/a..%2Fb",
            "/a%2F..b",
            "/{a}|^`\"<>",
            "/a%5Cb",
        ] {
            check(normal, normal);
        }
        // Escapes.
        check("/%41%7a%30%2D%2e%5F%7E", "/Az0-._~");
        check("/%c3%bc", "/%C3%BC");
        check("/%2f", "/%2F");
        check("/%5c", "/%5C");
        check("/%3f%23", "/%3F%23");
        // Dot segments.
        check("/.", "/");
        check("/./", "/");
        check("/a/.", "/a/");
        check("/a/./b", "/a/b");
        check("/a/..", "/");
        check("/a/../", "/");
        check("/a/b/..", "/a/");
        check("/a/b/../c", "/a/c");
        check("/a/b/../../c", "/c");
        check("/a//../b", "/a/b");
        check("/a/b/c/./../../g", "/a/g");
        check("//..", "/");
        check("//../a", "/a");
        check("/a/%2e", "/a/");
        check("/a/%2E%2e/b", "/b");
        check("/a/.%2e/b", "/b");
        check("/a/%2e./b", "/b");
        check("/./.a", "/.a");
    }

    #[test]
    fn paths_that_servers_read_differently_are_refused() {
        let check = |path: &str, reason: TargetError| {
            assert_eq!(normalize_path(path.as_bytes(), &mut Vec::new()), Err(reason), "{path}");
        };
        for path in ["/%", "/%a", "/a%", "/%/a", "/%g0", "/%0g", "/%%20", "/%u0041", "/% 0", "/%-1"]
        {
            check(path, TargetError::Escape);
        }
        for path in ["/%00", "/a%0Ab", "/%0d%0a", "/%1f", "/%7f", "/%09"] {
            check(path, TargetError::EncodedControl);
        }
        for path in
            ["/..", "/../", "/../a", "/a/../..", "/a/../../b", "/./..", "/%2e%2e", "/%2e%2e/a"]
        {
            check(path, TargetError::Climbs);
        }
        for path in [
            "/..;/a",
            "/a/..;x=y/b",
            "/.;/a",
            "/a/..;",
            "/%2e%2e;/a",
            "/a/..%2Fb",
            "/a/..%2fb",
            "/a/b%2F..",
            "/a/b%2f%2e%2e%2fc",
            "/a/..%5Cb",
            "/a%5c..",
            "/a/.%2Fb",
            "/a%2F..;x",
        ] {
            check(path, TargetError::HiddenDots);
        }
        for path in ["", "a", "?", "**"] {
            check(path, TargetError::Form);
        }
    }

    #[test]
    fn a_plain_path_costs_no_memory() {
        let mut out = Vec::new();
        assert_eq!(normalize_path(b"/static/app.0123.js", &mut out), Ok(PathForm::Normal));
        assert_eq!(out.capacity(), 0);
    }
}
