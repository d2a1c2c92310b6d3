//! `@validateUrlEncoding` and `@validateUtf8Encoding`: where a value is not encoded as it should be.

use std::{fmt, ops::Range};

use crate::transformation::hex;

/// A fault in a value's encoding: the bytes and what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw<Reason> {
    /// The faulty bytes, never none.
    pub range: Range<usize>,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a `%` escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFlaw {
    /// What follows is no hexadecimal digit.
    NotHexadecimal,
    /// The value ends before two digits.
    Incomplete,
}

/// What is wrong with a character of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utf8Flaw {
    /// The value ends within it.
    Incomplete,
    /// A byte that cannot stand where it does.
    InvalidByte,
    /// It is encoded in more bytes than it needs.
    Overlong,
    /// It is half of a surrogate pair or beyond U+10FFFF.
    Restricted,
}

/// The first faulty `%` escape of a value.
pub fn find_url_flaw(value: &[u8]) -> Option<Flaw<UrlFlaw>> {
    let is_digit = |byte: &u8| hex::digit(*byte).is_some();
    let mut at = 0;
    loop {
        let start = at + memchr::memchr(b'%', &value[at..])?;
        at = start + 3;
        let reason = match &value[start + 1..] {
            [high, low, ..] if is_digit(high) && is_digit(low) => continue,
            [_, _, ..] => UrlFlaw::NotHexadecimal,
            _ => UrlFlaw::Incomplete,
        };
        return Some(Flaw { range: start..at.min(value.len()), reason });
    }
}

/// The first faulty character of a value.
///
/// The verdict is that of RFC 3629. ModSecurity's differs for the bytes F4 90 and above, which it
/// takes for characters although they are beyond U+10FFFF.
pub fn find_utf8_flaw(value: &[u8]) -> Option<Flaw<Utf8Flaw>> {
    let start = str::from_utf8(value).err()?.valid_up_to();
    let (length, reason) = flaw_at_start(&value[start..]);
    Some(Flaw { range: start..start + length, reason })
}

/// What is wrong with the faulty character at the beginning, and of how many bytes it is. The questions
/// come in ModSecurity's order, so that both give the same reason.
fn flaw_at_start(rest: &[u8]) -> (usize, Utf8Flaw) {
    let Some((&lead, following)) = rest.split_first() else {
        return (0, Utf8Flaw::Incomplete);
    };
    let length = match lead {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        0xf5..0xf8 => return (1, Utf8Flaw::Restricted),
        _ => return (1, Utf8Flaw::InvalidByte),
    };
    let Some(following) = following.get(..length - 1) else {
        return (rest.len(), Utf8Flaw::Incomplete);
    };
    if let Some(valid) = following.iter().position(|&byte| byte & 0xc0 != 0x80) {
        return (valid + 2, Utf8Flaw::InvalidByte);
    }
    // All bytes have the right form, so it is the character that is wrong. Half of a surrogate pair
    // in four bytes is both: restricted and overlong.
    let reason = match (lead, following) {
        (0xf0, [0x8d, 0xa0..=0xbf, _]) => Utf8Flaw::Restricted,
        (0xc0 | 0xc1, _) | (0xe0, [..0xa0, ..]) | (0xf0, [..0x90, ..]) => Utf8Flaw::Overlong,
        _ => Utf8Flaw::Restricted,
    };
    (length, reason)
}

impl fmt::Display for UrlFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHexadecimal => "Invalid URL Encoding: Non-hexadecimal digits used",
            Self::Incomplete => "Invalid URL Encoding: Not enough characters at the end of input",
        })
    }
}

impl fmt::Display for Utf8Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "Invalid UTF-8 encoding: not enough bytes in character",
            Self::InvalidByte => "Invalid UTF-8 encoding: invalid byte value in character",
            Self::Overlong => "Invalid UTF-8 encoding: overlong character detected",
            Self::Restricted => "Invalid UTF-8 encoding: use of restricted character",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_escapes() {
        use UrlFlaw::{Incomplete, NotHexadecimal};
        let check = |value: &[u8], expected: Option<(Range<usize>, UrlFlaw)>| {
            let expected = expected.map(|(range, reason)| Flaw { range, reason });
            assert_eq!(find_url_flaw(value), expected, "{}", value.escape_ascii());
        };
        check(b"", None);
        check(b"plain+text", None);
        check(b"%41%fF%00", None);
        check(b"%41%4", Some((3..5, Incomplete)));
        check(b"100%", Some((3..4, Incomplete)));
        check(b"%zz%4", Some((0..3, NotHexadecimal)));
        check(b"a%4gb", Some((1..4, NotHexadecimal)));
        check(b"%u0041", Some((0..3, NotHexadecimal)));
        check(b"%%41", Some((0..3, NotHexadecimal)));
    }

    #[test]
    fn utf8_characters() {
        use Utf8Flaw::{Incomplete, InvalidByte, Overlong, Restricted};
        let check = |value: &[u8], expected: Option<(Range<usize>, Utf8Flaw)>| {
            let expected = expected.map(|(range, reason)| Flaw { range, reason });
            assert_eq!(find_utf8_flaw(value), expected, "{}", value.escape_ascii());
        };
        check(b"", None);
        check("plain, é, 日本, 😀, \u{10ffff}".as_bytes(), None);
        check(b"ab\xc3", Some((2..3, Incomplete)));
        check(b"\xe2\x82", Some((0..2, Incomplete)));
        check(b"\xe2(", Some((0..2, Incomplete)));
        check(b"\xf0\x9f\x98", Some((0..3, Incomplete)));
        check(b"\xc3(x", Some((0..2, InvalidByte)));
        check(b"a\xe2\x82(", Some((1..4, InvalidByte)));
        check(b"\xf0\x9f(\x98", Some((0..3, InvalidByte)));
        check(b"a\x80", Some((1..2, InvalidByte)));
        check(b"\xff", Some((0..1, InvalidByte)));
        check(b"\xc0\xaf", Some((0..2, Overlong)));
        check(b"\xe0\x80\xaf", Some((0..3, Overlong)));
        check(b"\xf0\x80\x80\xaf", Some((0..4, Overlong)));
        check(b"\xf0\x8d\xa0\x80", Some((0..4, Restricted)));
        check(b"\xf0\x8d\x9f\xbf", Some((0..4, Overlong)));
        check(b"\xed\xa0\x80", Some((0..3, Restricted)));
        check(b"\xf4\x90\x80\x80", Some((0..4, Restricted)));
        check(b"\xf5", Some((0..1, Restricted)));
    }
}
