//! Strings: found in place when nothing in them is escaped, decoded otherwise.

use super::{Misplaced, Reason};
use crate::body::swar;
use crate::body::urlencoded::hex_digit;

/// A string or scalar that could not be taken in place, decoded so far.
#[derive(Debug)]
pub(super) struct Text {
    decoded: Vec<u8>,
    escape: Escape,
    /// The first half of a surrogate pair, whose second may follow.
    surrogate: Option<u16>,
    encoding: Encoding,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            decoded: Vec::new(),
            escape: Escape::None,
            surrogate: None,
            encoding: Encoding::Ascii,
        }
    }
}

/// How much of an escape has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
    /// The value of the hex digits behind `\u`, and how many are missing.
    Unicode {
        value: u16,
        missing: u8,
    },
}

/// Whether a text needs to be looked at as UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Ascii,
    Other,
}

/// How far a string was read.
pub(super) struct Progress<'a> {
    /// The place behind its quote, or of the piece's end.
    pub(super) behind: usize,
    /// All of it, decoded; none if the piece has cut it.
    pub(super) whole: Option<&'a [u8]>,
}

impl Text {
    /// What has been kept.
    pub(super) fn decoded(&self) -> &[u8] {
        &self.decoded
    }

    /// Forgets what has been kept.
    pub(super) fn clear(&mut self) {
        self.decoded.clear();
        self.encoding = Encoding::Ascii;
    }

    /// Keeps bytes as they are.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.decoded.extend_from_slice(bytes);
    }

    /// What has been kept and `last`, without a copy if nothing has.
    pub(super) fn joined_with<'a>(&'a mut self, last: &'a [u8]) -> &'a [u8] {
        if self.decoded.is_empty() {
            return last;
        }
        self.decoded.extend_from_slice(last);
        &self.decoded
    }

    /// Reads a string from `at`, which is behind its opening quote or where the last piece ended.
    pub(super) fn read<'a>(
        &'a mut self,
        bytes: &'a [u8],
        at: usize,
    ) -> Result<Progress<'a>, Misplaced> {
        if !self.is_fresh() {
            return self.decode(bytes, at);
        }
        let run = Run::of(&bytes[at..]);
        let end = at + run.len;
        let text = &bytes[at..end];
        if bytes.get(end) == Some(&b'"') {
            check(text, run.encoding, end)?;
            return Ok(Progress { behind: end + 1, whole: Some(text) });
        }
        self.decoded.extend_from_slice(text);
        self.encoding = run.encoding;
        self.decode(bytes, end)
    }

    fn is_fresh(&self) -> bool {
        self.decoded.is_empty() && self.escape == Escape::None && self.surrogate.is_none()
    }

    fn decode(&mut self, bytes: &[u8], mut at: usize) -> Result<Progress<'_>, Misplaced> {
        while let Some(&byte) = bytes.get(at) {
            match self.escape {
                Escape::None => {
                    let run = Run::of(&bytes[at..]);
                    if run.len > 0 {
                        self.end_surrogate();
                        self.decoded.extend_from_slice(&bytes[at..at + run.len]);
                        self.encoding = self.encoding.and(run.encoding);
                        at += run.len;
                        continue;
                    }
                    match byte {
                        b'"' => {
                            self.end_surrogate();
                            check(&self.decoded, self.encoding, at)?;
                            return Ok(Progress { behind: at + 1, whole: Some(&self.decoded) });
                        }
                        b'\\' => self.escape = Escape::Backslash,
                        _ => return Err((Reason::Control, at)),
                    }
                }
                Escape::Backslash => self.escaped(byte).ok_or((Reason::Escape, at))?,
                Escape::Unicode { value, missing } => {
                    let digit = hex_digit(byte).ok_or((Reason::Escape, at))?;
                    let value = value << 4 | u16::from(digit);
                    if missing == 1 {
                        self.escape = Escape::None;
                        self.utf16(value);
                    } else {
                        self.escape = Escape::Unicode { value, missing: missing - 1 };
                    }
                }
            }
            at += 1;
        }
        Ok(Progress { behind: at, whole: None })
    }

    /// The character behind a backslash.
    fn escaped(&mut self, byte: u8) -> Option<()> {
        let decoded = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.escape = Escape::Unicode { value: 0, missing: 4 };
                return Some(());
            }
            _ => return None,
        };
        self.escape = Escape::None;
        self.end_surrogate();
        self.decoded.push(decoded);
        Some(())
    }

    /// A unit of UTF-16, which may complete a pair.
    fn utf16(&mut self, unit: u16) {
        if let (Some(high), 0xdc00..=0xdfff) = (self.surrogate, unit) {
            self.surrogate = None;
            let code = 0x10000 + (u32::from(high & 0x3ff) << 10 | u32::from(unit & 0x3ff));
            self.push_char(char::from_u32(code));
            return;
        }
        self.end_surrogate();
        if matches!(unit, 0xd800..=0xdbff) {
            self.surrogate = Some(unit);
        } else {
            self.push_char(char::from_u32(u32::from(unit)));
        }
    }

    /// Replaces the first half of a pair whose second has not come.
    fn end_surrogate(&mut self) {
        if self.surrogate.take().is_some() {
            self.push_char(None);
        }
    }

    fn push_char(&mut self, char: Option<char>) {
        let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
        self.decoded.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

impl Encoding {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ascii, Self::Ascii) => Self::Ascii,
            _ => Self::Other,
        }
    }
}

fn check(text: &[u8], encoding: Encoding, at: usize) -> Result<(), Misplaced> {
    match encoding {
        Encoding::Other if std::str::from_utf8(text).is_err() => Err((Reason::Utf8, at)),
        Encoding::Ascii | Encoding::Other => Ok(()),
    }
}

/// Bytes that stand for themselves: neither quote, backslash nor control character.
struct Run {
    len: usize,
    encoding: Encoding,
}

impl Run {
    /// The longest run that `bytes` begin with.
    ///
    /// Looks at eight bytes at a time, since most strings are too short for a vector search to pay.
    fn of(bytes: &[u8]) -> Self {
        let mut len = 0;
        let mut seen = 0;
        for eight in bytes.chunks_exact(8) {
            let word = swar::word(eight);
            let ends = swar::below(word, b' ') | swar::is(word, b'"') | swar::is(word, b'\\');
            if let Some(before) = swar::first(ends) {
                seen |= word & (1_u64 << (8 * before)).wrapping_sub(1);
                return Self::with(len + before, seen);
            }
            seen |= word;
            len += 8;
        }
        for &byte in &bytes[len..] {
            if byte < b' ' || byte == b'"' || byte == b'\\' {
                break;
            }
            seen |= u64::from(byte);
            len += 1;
        }
        Self::with(len, seen)
    }

    fn with(len: usize, seen: u64) -> Self {
        let encoding = if swar::is_ascii(seen) { Encoding::Ascii } else { Encoding::Other };
        Self { len, encoding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_the_first_byte_that_ends_them() {
        for end in 0..=255 {
            for (at, filler) in (0..20).flat_map(|at| [b'a', 0x7f, 0x80, 0xff].map(|f| (at, f))) {
                let mut bytes = [filler; 24];
                bytes[at] = end;
                let plain = |&byte: &u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
                let len = bytes.iter().take_while(|&byte| plain(byte)).count();
                let run = Run::of(&bytes);
                assert_eq!(run.len, len, "{end:#x} at {at} among {filler:#x}");
                assert_eq!(run.encoding == Encoding::Ascii, bytes[..len].is_ascii());
            }
        }
    }
}
