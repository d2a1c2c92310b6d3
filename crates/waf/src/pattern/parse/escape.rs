//! What a backslash means, outside classes and in them.

use super::{
    super::{
        ByteSet, Fault,
        syntax::{Assert, Irregular, LINE_ENDINGS, Node, WORD},
    },
    Atom, Parser,
};

const DIGITS: ByteSet = ByteSet::range(b'0', b'9');
const SPACES: ByteSet = ByteSet::of(b" \t\n\x0b\x0c\r");
/// `\h` without UTF: the no-break space of Latin-1 counts, as in PCRE.
const BLANKS: ByteSet = ByteSet::of(b" \t\xa0");

impl<'s> Parser<'s> {
    /// Outside a class, behind the backslash at `start`.
    pub(super) fn escape(&mut self, start: usize) -> Result<Atom, Fault> {
        let Some(byte) = self.peek() else {
            return Err(Fault::new(start, "a backslash at the end").hint(r"write \\ for the byte"));
        };
        if let Some(set) = class_escape(byte) {
            self.at += 1;
            return Ok(Atom::Repeatable(Node::Byte(set)));
        }
        let assert = match byte {
            b'A' => Some(Assert::Start),
            b'z' => Some(Assert::End),
            b'Z' => Some(Assert::EndOrLastLineFeed),
            b'b' => Some(Assert::WordBoundary),
            b'B' => Some(Assert::NotWordBoundary),
            b'G' => Some(Assert::SearchStart),
            _ => None,
        };
        if let Some(assert) = assert {
            self.at += 1;
            return Ok(Atom::NotRepeatable(Node::Assert(assert)));
        }
        match byte {
            b'N' => {
                self.at += 1;
                if self.peek() == Some(b'{') && self.braces(self.at).is_none() {
                    return Err(Fault::new(
                        start,
                        r"\N{...} names Unicode, and patterns match bytes",
                    ));
                }
                Ok(Atom::Repeatable(Node::Byte(ByteSet::of(b"\n").complement())))
            }
            b'C' => {
                self.at += 1;
                Ok(Atom::Repeatable(Node::Byte(ByteSet::ALL)))
            }
            b'R' => {
                self.at += 1;
                Ok(Atom::Repeatable(Node::Irregular(Box::new(Irregular::LineEnding), start)))
            }
            b'K' => {
                self.at += 1;
                Ok(Atom::NotRepeatable(Node::Irregular(Box::new(Irregular::Keep), start)))
            }
            b'1'..=b'9' => Ok(Atom::Repeatable(self.digits(start)?)),
            b'g' | b'k' => {
                self.at += 1;
                Ok(Atom::Repeatable(self.reference(start, byte)?))
            }
            _ => {
                let byte = self.byte_escape(start)?;
                Ok(Atom::Repeatable(self.literal(byte)))
            }
        }
    }

    /// `\1`: a back-reference, or an octal byte when there are not so many groups yet.
    fn digits(&mut self, start: usize) -> Result<Node, Fault> {
        let rest = &self.source[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = rest[..count].iter().fold(0u32, |value, digit| {
            value.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        });
        if number < 10 || rest[0] >= b'8' || number <= self.groups {
            self.at += count;
            return Ok(self.back_reference(start, vec![number]));
        }
        let byte = self.octal(start, 3)?;
        Ok(self.literal(byte))
    }

    pub(super) fn back_reference(&mut self, start: usize, groups: Vec<u32>) -> Node {
        self.refer(start, &groups);
        let case_insensitive = self.flags.case_insensitive;
        Node::Irregular(Box::new(Irregular::BackReference { groups, case_insensitive }), start)
    }

    /// `\g` and `\k`, behind the letter.
    fn reference(&mut self, start: usize, letter: u8) -> Result<Node, Fault> {
        let close = match (letter, self.peek()) {
            (_, Some(b'{')) => b'}',
            (_, Some(b'<')) => b'>',
            (_, Some(b'\'')) => b'\'',
            (b'g', _) => {
                let number = self.signed_number();
                let group = self.numbered(start, number)?;
                return Ok(self.back_reference(start, vec![group]));
            }
            _ => return Err(Fault::new(start, r"\k without a name")),
        };
        let calls = letter == b'g' && close != b'}';
        self.at += 1;
        let name = self.until(close, start)?;
        let groups = match parse_signed(name) {
            Some(number) if letter == b'g' => vec![self.numbered(start, Some(number))?],
            _ => self.named(start, name)?,
        };
        if calls {
            let group = groups.first().copied().unwrap_or(0);
            return Ok(self.call(start, group));
        }
        Ok(self.back_reference(start, groups))
    }

    /// A byte's escape, in a class or outside; at the byte behind the backslash.
    pub(super) fn byte_escape(&mut self, start: usize) -> Result<u8, Fault> {
        let Some(byte) = self.next() else {
            return Err(Fault::new(start, "a backslash at the end").hint(r"write \\ for the byte"));
        };
        Ok(match byte {
            b'a' => 0x07,
            b'e' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => {
                self.at -= 1;
                self.octal(start, 3)?
            }
            b'o' => {
                if !self.eat(b"{") {
                    return Err(Fault::new(start, r"\o without braces"));
                }
                let digits = self.until(b'}', start)?;
                code(digits, 8, start)?
            }
            b'x' if self.eat(b"{") => {
                let digits = self.until(b'}', start)?;
                code(digits, 16, start)?
            }
            b'x' => {
                let rest = &self.source[self.at..];
                let count = rest.iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                self.at += count;
                // Without a digit it is the byte 0, as in PCRE.
                if count == 0 { 0 } else { code(&rest[..count], 16, start)? }
            }
            b'c' => match self.next() {
                Some(letter @ 0x20..=0x7e) => letter.to_ascii_uppercase() ^ 0x40,
                _ => return Err(Fault::new(start, r"\c without a printable character behind it")),
            },
            b'p' | b'P' | b'X' => {
                return Err(Fault::new(
                    start,
                    format!(r"\{} asks for Unicode, and patterns match bytes", char::from(byte)),
                )
                .hint(r"write a class of bytes, such as [a-zA-Z]"));
            }
            b'L' | b'l' | b'N' | b'U' | b'u' => {
                return Err(Fault::new(
                    start,
                    format!(r"PCRE does not support \{}", char::from(byte)),
                )
                .hint(r"write a byte as \xhh"));
            }
            letter if letter.is_ascii_alphabetic() => {
                let letter = char::from(letter);
                self.note(start, format!(r"\{letter} has no meaning and is taken as {letter}"));
                byte
            }
            other => other,
        })
    }

    /// Up to `most` octal digits.
    pub(super) fn octal(&mut self, start: usize, most: usize) -> Result<u8, Fault> {
        let rest = &self.source[self.at..];
        let count = rest.iter().take(most).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        self.at += count;
        code(&rest[..count], 8, start)
    }

    /// Text up to a closing byte, which is passed.
    pub(super) fn until(&mut self, close: u8, start: usize) -> Result<&'s [u8], Fault> {
        let source = self.source;
        let rest = &source[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == close) else {
            let close = char::from(close);
            return Err(Fault::new(start, format!("the closing {close} is missing")));
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Digits with an optional sign, if they are there.
    pub(super) fn signed_number(&mut self) -> Option<(Sign, u32)> {
        let rest = &self.source[self.at..];
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = parse_signed(&rest[..sign + digits])?;
        self.at += sign + digits;
        Some(number)
    }
}

/// How a group's number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// From the pattern's beginning.
    None,
    /// Groups yet to open.
    Plus,
    /// Groups already opened, the last first.
    Minus,
}

/// `12`, `+1`, `-3`.
pub(super) fn parse_signed(text: &[u8]) -> Option<(Sign, u32)> {
    let (sign, digits) = match text {
        [b'+', digits @ ..] => (Sign::Plus, digits),
        [b'-', digits @ ..] => (Sign::Minus, digits),
        digits => (Sign::None, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((sign, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// A number that must be a byte. `\x{c2}` is the byte 0xc2 here, not the character's UTF-8.
fn code(digits: &[u8], radix: u32, start: usize) -> Result<u8, Fault> {
    let text = std::str::from_utf8(digits).unwrap_or("");
    let is_number = !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix));
    let value = if is_number {
        u32::from_str_radix(text, radix).unwrap_or(u32::MAX)
    } else {
        return Err(Fault::new(start, "a code that is no number"));
    };
    u8::try_from(value).map_err(|_| {
        Fault::new(start, "a code above 0xff, and patterns match bytes")
            .hint(r"write the character's bytes in UTF-8, each as \xhh")
    })
}

/// Escapes that stand for several bytes, in a class and outside.
pub(super) fn class_escape(byte: u8) -> Option<ByteSet> {
    Some(match byte {
        b'd' => DIGITS,
        b'D' => DIGITS.complement(),
        b'w' => WORD,
        b'W' => WORD.complement(),
        b's' => SPACES,
        b'S' => SPACES.complement(),
        b'h' => BLANKS,
        b'H' => BLANKS.complement(),
        b'v' => LINE_ENDINGS,
        b'V' => LINE_ENDINGS.complement(),
        _ => return None,
    })
}
