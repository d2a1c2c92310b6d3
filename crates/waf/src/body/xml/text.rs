//! Characters: the document's encoding, and references to single characters.

use super::fault::{Fault, Reason};

/// How the document's characters are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    #[default]
    Utf8,
    /// Each byte is the character of that number.
    Latin1,
}

impl Encoding {
    /// The encoding that an XML declaration names, UTF-8 if it names none.
    pub(super) fn declared(declaration: &[u8]) -> Result<Self, Reason> {
        const NAME: &[u8] = b"encoding";
        let Some(at) = declaration.windows(NAME.len()).position(|window| window == NAME) else {
            return Ok(Self::Utf8);
        };
        let value = declaration[at + NAME.len()..].trim_ascii_start();
        let value = value.strip_prefix(b"=").ok_or(Reason::Declaration)?.trim_ascii_start();
        let (&quote, value) = value.split_first().ok_or(Reason::Declaration)?;
        let end = value.iter().position(|&byte| byte == quote).ok_or(Reason::Declaration)?;
        let is = |names: &[&str]| {
            names.iter().any(|name| value[..end].eq_ignore_ascii_case(name.as_bytes()))
        };
        if is(&["utf-8", "utf8", "us-ascii", "ascii"]) {
            Ok(Self::Utf8)
        } else if is(&["iso-8859-1", "latin1"]) {
            Ok(Self::Latin1)
        } else {
            Err(Reason::Encoding)
        }
    }

    /// Appends text in UTF-8; it must be whole.
    pub(super) fn append(self, text: &[u8], to: &mut Vec<u8>) -> Result<(), Reason> {
        match self {
            Self::Utf8 => {
                if std::str::from_utf8(text).is_err() {
                    return Err(Reason::Utf8);
                }
                to.extend_from_slice(text);
            }
            Self::Latin1 => {
                for &byte in text {
                    push_char(to, char::from(byte));
                }
            }
        }
        Ok(())
    }
}

/// A character of UTF-8 that the end of a piece has cut.
#[derive(Debug, Default)]
pub(super) struct Cut {
    bytes: [u8; 4],
    len: usize,
    /// Where it begins, from the beginning of the body.
    since: u64,
}

/// A character that was cut and is whole now, or nothing.
pub(super) struct Completed {
    bytes: [u8; 4],
    len: usize,
}

impl Completed {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Cut {
    /// Where the cut character begins, if there is one.
    pub(super) fn since(&self) -> Option<u64> {
        (self.len > 0).then_some(self.since)
    }

    /// Completes the cut character from the beginning of `text`; the rest follows.
    pub(super) fn complete<'a>(&mut self, text: &'a [u8]) -> Result<(Completed, &'a [u8]), Fault> {
        let mut rest = text;
        while let (1.., Some((&byte, behind))) = (self.len, rest.split_first()) {
            self.bytes[self.len] = byte;
            self.len += 1;
            rest = behind;
            match std::str::from_utf8(&self.bytes[..self.len]) {
                Ok(_) => {
                    let len = std::mem::take(&mut self.len);
                    return Ok((Completed { bytes: self.bytes, len }, rest));
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Fault { reason: Reason::Utf8, at: self.since }),
            }
        }
        Ok((Completed { bytes: [0; 4], len: 0 }, rest))
    }

    /// The longest beginning of the text that is UTF-8, and whether what follows is too, but for a
    /// character that is cut, which is kept. `at` is where the text begins.
    pub(super) fn valid<'a>(&mut self, text: &'a [u8], at: u64) -> (&'a [u8], Result<(), Fault>) {
        let Err(error) = std::str::from_utf8(text) else { return (text, Ok(())) };
        let (valid, rest) = text.split_at(error.valid_up_to());
        let since = at + valid.len() as u64;
        if error.error_len().is_some() {
            return (valid, Err(Fault { reason: Reason::Utf8, at: since }));
        }
        self.bytes[..rest.len()].copy_from_slice(rest);
        self.len = rest.len();
        self.since = since;
        (valid, Ok(()))
    }
}

/// The place of the first control character that XML does not have.
pub(super) fn control(text: &[u8]) -> Option<usize> {
    // Without an early end this is vectors' work.
    let any = text.iter().fold(false, |any, &byte| any | is_control(byte));
    if any { text.iter().position(|&byte| is_control(byte)) } else { None }
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && !is_blank(byte)
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Bytes of the longest reference between `&` and `;`: `#x10FFFF` with some leading zeros.
pub(super) const REFERENCE_BYTES_MAX: usize = 16;

/// The character that a reference stands for (XML 1.0 sections 4.1 and 4.6).
pub(super) fn referenced(reference: &[u8]) -> Result<char, Reason> {
    let number = match reference {
        b"lt" => return Ok('<'),
        b"gt" => return Ok('>'),
        b"amp" => return Ok('&'),
        b"quot" => return Ok('"'),
        b"apos" => return Ok('\''),
        [b'#', b'x', digits @ ..] => parse(digits, 16),
        [b'#', digits @ ..] => parse(digits, 10),
        _ => None,
    };
    let char = number.and_then(char::from_u32).ok_or(Reason::Reference)?;
    if char < ' ' && !matches!(char, '\t' | '\n' | '\r') {
        return Err(Reason::Reference);
    }
    Ok(char)
}

fn parse(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u32, |number, &digit| {
        number.checked_mul(radix)?.checked_add(char::from(digit).to_digit(radix)?)
    })
}

/// Appends a character in UTF-8.
pub(super) fn push_char(to: &mut Vec<u8>, char: char) {
    to.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        for (reference, char) in [
            ("lt", '<'),
            ("gt", '>'),
            ("amp", '&'),
            ("quot", '"'),
            ("apos", '\''),
            ("#65", 'A'),
            ("#x41", 'A'),
            ("#x00e9", '\u{e9}'),
            ("#x1F600", '\u{1f600}'),
            ("#10", '\n'),
        ] {
            assert_eq!(referenced(reference.as_bytes()), Ok(char), "{reference}");
        }
        for bad in [
            "",
            "nbsp",
            "LT",
            "#",
            "#x",
            "#X41",
            "#0",
            "#x1",
            "#xd800",
            "#x110000",
            "#4294967361",
            "#+65",
            "#6a",
            "x41",
        ] {
            assert_eq!(referenced(bad.as_bytes()), Err(Reason::Reference), "{bad}");
        }
    }

    #[test]
    fn declared_encodings() {
        for (declaration, expected) in [
            (" version=\"1.0\"", Ok(Encoding::Utf8)),
            (" version='1.0' encoding='UTF-8' standalone='yes'", Ok(Encoding::Utf8)),
            (" version=\"1.0\" encoding = \"us-ascii\"", Ok(Encoding::Utf8)),
            (" version=\"1.0\" encoding=\"ISO-8859-1\"", Ok(Encoding::Latin1)),
            (" version=\"1.0\" encoding=\"UTF-16\"", Err(Reason::Encoding)),
            (" version=\"1.0\" encoding=\"utf-7\"", Err(Reason::Encoding)),
            (" version=\"1.0\" encoding", Err(Reason::Declaration)),
            (" version=\"1.0\" encoding=\"utf-8", Err(Reason::Declaration)),
        ] {
            assert_eq!(Encoding::declared(declaration.as_bytes()), expected, "{declaration}");
        }
    }

    #[test]
    fn controls() {
        for byte in 0..=255 {
            let text = [b'a', b'\n', b'\t', b'\r', byte, b'z', 0];
            let expected = if byte < 32 && !b"\t\n\r".contains(&byte) { 4 } else { 6 };
            assert_eq!(control(&text), Some(expected), "{byte:#x}");
            assert_eq!(control(&text[..6]), (expected == 4).then_some(4));
        }
    }
}
