//! Request targets, hosts and paths (RFC 9112, section 3.2, and RFC 3986).
//!
//! A target is refused where servers are known to read it differently. What is left has one host,
//! in one spelling, and after [`normalize_path`] one path, which is both what routes are chosen by
//! and what goes upstream.

use crate::error::{HostError, TargetError};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

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
    let odd = |byte: u8| !(0x21..=0x7e).contains(&byte) || matches!(byte, b'#' | b'\\');
    // Without a branch per byte, so that it is done for many bytes at once.
    if target.chunks(32).all(|chunk| !chunk.iter().fold(false, |any, &byte| any | odd(byte))) {
        return Ok(());
    }
    why_odd(target)
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
    let port = match value {
        [b'[', inside @ ..] => {
            let close = memchr::memchr(b']', inside).ok_or(HostError::Malformed)?;
            ipv6(&inside[..close], out)?;
            &inside[close + 1..]
        }
        _ => {
            let end = memchr::memchr(b':', value).unwrap_or(value.len());
            name(&value[..end], out)?;
            &value[end..]
        }
    };
    match port {
        [] => Ok(None),
        [b':', digits @ ..] => self::port(digits).map(Some),
        _ => Err(HostError::Malformed),
    }
}

fn name(text: &[u8], out: &mut Vec<u8>) -> Result<(), HostError> {
    let text = text.strip_suffix(b".").unwrap_or(text);
    if text.is_empty() || text.len() > HOST_BYTES_MAX {
        return Err(HostError::Malformed);
    }
    let mut before = b'.';
    for &byte in text {
        let fits = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => true,
            b'.' => before != b'.',
            _ => false,
        };
        if !fits {
            return Err(HostError::Malformed);
        }
        before = byte;
    }
    if before == b'.' {
        return Err(HostError::Malformed);
    }
    if ends_in_number(text) && !is_ipv4(text) {
        return Err(HostError::Malformed);
    }
    out.extend(text.iter().map(u8::to_ascii_lowercase));
    Ok(())
}

fn ends_in_number(name: &[u8]) -> bool {
    let last = memchr::memrchr(b'.', name).map_or(name, |dot| &name[dot + 1..]);
    match last {
        [b'0', b'x' | b'X', hex @ ..] => hex.iter().all(u8::is_ascii_hexdigit),
        _ => last.iter().all(u8::is_ascii_digit),
    }
}

fn is_ipv4(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok())
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
    if digits.is_empty() || padded || !digits.iter().all(u8::is_ascii_digit) {
        return Err(HostError::Port);
    }
    digits
        .iter()
        .try_fold(0_u16, |sum, digit| sum.checked_mul(10)?.checked_add(u16::from(digit - b'0')))
        .ok_or(HostError::Port)
}

/// Whether a path was in its normal form already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// It was; the output is left alone.
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
