//! JSON bodies (RFC 8259) to arguments, streaming.
//!
//! Names are those of ModSecurity 3, which exclusions in the field are written for: a member is
//! `json.a.b`, an element `json.a.array_0`, a value alone in its body `json`, a member with an empty
//! name `json.empty-key`. (ModSecurity 2 leaves `json` out, Coraza writes `json.a.0`. The Core Rule
//! Set's tests pass with any of them; its exclusions say `json.`.) Strings are unescaped, numbers,
//! `true` and `false` stand as written, `null` is empty as in all three. Members of the same name are
//! all given. An empty object or array is an empty argument, so that its name does not pass unseen,
//! which it does in all three.
//!
//! Strict where servers are known to disagree: comments, trailing commas, bare words, unescaped
//! control characters, invalid UTF-8, a byte order mark, and anything behind the value are faults.
//! Half a surrogate pair is not, since browsers send it when text is cut; it becomes U+FFFD.

mod name;
mod scalar;
mod string;

use std::fmt;

use name::Name;
use string::{Progress, Text};

use super::fault::{Fault as BodyFault, Halt};
use super::options::Options;
use super::sink::Sink;

/// Why a body is no JSON, or too much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub reason: Reason,
    /// Where that became clear: bytes from the beginning of the body.
    pub at: u64,
}

/// What can be wrong with a JSON body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// More arrays and objects are open than [`Limits::json_depth_max`](super::Limits).
    Depth,
    /// A name is longer than [`Limits::name_bytes_max`](super::Limits).
    NameLength,
    /// A character that cannot stand where it does.
    Character,
    /// Neither a number nor `true`, `false` or `null`.
    Scalar,
    /// A control character in a string.
    Control,
    /// A backslash before something that it cannot escape.
    Escape,
    /// A string that is not UTF-8.
    Utf8,
    /// The body ends before its value does.
    Unfinished,
    /// Something follows the value.
    Trailing,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.reason {
            // These words are ModSecurity's.
            Reason::Depth => "JSON depth limit exceeded",
            Reason::NameLength => "a name is too long",
            Reason::Character => "invalid character",
            Reason::Scalar => "invalid number or word",
            Reason::Control => "invalid character inside string",
            Reason::Escape => "invalid escape inside string",
            Reason::Utf8 => "invalid bytes in UTF8 string",
            Reason::Unfinished => "premature EOF",
            Reason::Trailing => "trailing garbage",
        };
        write!(f, "{text}, at byte {}", self.at)
    }
}

/// The processor for JSON bodies.
///
/// Holds the open containers, the current name, and a string or scalar that is not over yet.
#[derive(Debug)]
pub struct Json {
    arguments_left: u32,
    depth_max: usize,
    expect: Expect,
    token: Token,
    name: Name,
    text: Text,
    /// Bytes in all pieces before the current one.
    before: u64,
}

/// What may come next, besides white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// What the end of a piece has cut, kept in [`Json::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    None,
    Key,
    String,
    Scalar,
}

/// A fault's reason and its place in the current piece.
type Misplaced = (Reason, usize);

impl Json {
    /// A processor for one body.
    pub(super) fn new(options: &Options) -> Self {
        let limits = &options.limits;
        Self {
            arguments_left: limits.arguments_max,
            depth_max: limits.json_depth_max as usize,
            expect: Expect::Value,
            token: Token::None,
            name: Name::new(limits.name_bytes_max),
            text: Text::default(),
            before: 0,
        }
    }

    /// Takes the next bytes of the body.
    pub(super) fn feed<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), Halt> {
        self.read(bytes, sink)?;
        self.before += bytes.len() as u64;
        Ok(())
    }

    /// Takes the end of the body, which ends a number that stands alone.
    pub(super) fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.before == 0 {
            return Ok(());
        }
        if self.token == Token::Scalar {
            self.read(b" ", sink)?;
        }
        if self.expect == Expect::Nothing {
            return Ok(());
        }
        Err(self.fault((Reason::Unfinished, 0)))
    }

    /// Gives what has begun as far as it came.
    pub(super) fn truncate<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        let begun = match self.token {
            Token::Key => self.name.member(self.text.decoded()).is_ok().then_some(&[][..]),
            Token::String | Token::Scalar => Some(self.text.decoded()),
            // A key without its value.
            Token::None => (self.expect == Expect::Colon
                || self.expect == Expect::Value && self.name.in_object())
            .then_some(&[][..]),
        };
        let Some(value) = begun else { return Ok(()) };
        give(&mut self.arguments_left, self.name.bytes(), value, sink)
    }

    fn read<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), Halt> {
        let mut at = match self.token {
            Token::None => 0,
            Token::Scalar => self.scalar(bytes, 0, sink)?,
            Token::Key | Token::String => self.string(bytes, 0, sink)?,
        };
        while let Some(&byte) = bytes.get(at) {
            at = match byte {
                b' ' | b'\n' | b'\t' | b'\r' => at + 1,
                b'"' => {
                    self.token = self.string_begins(at)?;
                    self.string(bytes, at + 1, sink)?
                }
                b',' => {
                    self.comma(at)?;
                    at + 1
                }
                b':' if self.expect == Expect::Colon => {
                    self.expect = Expect::Value;
                    at + 1
                }
                b'{' | b'[' => {
                    self.open(byte, at)?;
                    at + 1
                }
                b'}' | b']' => {
                    self.close(byte, at, sink)?;
                    at + 1
                }
                _ if scalar::is_part(byte) => {
                    self.value_begins(at)?;
                    self.token = Token::Scalar;
                    self.scalar(bytes, at, sink)?
                }
                _ => return Err(self.misplaced(at)),
            };
        }
        Ok(())
    }

    /// A string from behind its quote, or from wherever the last piece cut it; the place behind it.
    fn string<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        let before = self.before;
        let fault = |misplaced| fault(before, misplaced);
        let Progress { behind, whole: Some(text) } = self.text.read(bytes, at).map_err(fault)?
        else {
            return Ok(bytes.len());
        };
        if self.token == Token::Key {
            self.name.member(text).map_err(|reason| fault((reason, behind)))?;
            self.expect = Expect::Colon;
        } else {
            give(&mut self.arguments_left, self.name.bytes(), text, sink)?;
            self.expect = self.name.after_value();
        }
        Ok(self.token_ends(bytes, behind))
    }

    /// A number or word from its first byte, or from wherever the last piece cut it.
    fn scalar<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        let rest = &bytes[at..];
        let len = rest.iter().position(|&byte| !scalar::is_part(byte));
        let run = &rest[..len.unwrap_or(rest.len())];
        if len.is_none() {
            self.text.push(run);
            return Ok(bytes.len());
        }
        let behind = at + run.len();
        let text = self.text.joined_with(run);
        let value =
            scalar::value(text).ok_or_else(|| fault(self.before, (Reason::Scalar, behind)))?;
        give(&mut self.arguments_left, self.name.bytes(), value, sink)?;
        self.expect = self.name.after_value();
        Ok(self.token_ends(bytes, behind))
    }

    /// Forgets a token that has been taken; the place behind it, and behind the separator that
    /// usually follows: to meet it here is cheaper than in the loop, whose jump it would mislead.
    fn token_ends(&mut self, bytes: &[u8], behind: usize) -> usize {
        self.text.clear();
        self.token = Token::None;
        match (self.expect, bytes.get(behind)) {
            (Expect::Colon, Some(b':')) => self.expect = Expect::Value,
            (Expect::CommaOrEnd, Some(b',')) => self.separated(),
            _ => return behind,
        }
        behind + 1
    }

    fn string_begins(&mut self, at: usize) -> Result<Token, Halt> {
        if matches!(self.expect, Expect::Key | Expect::KeyOrEnd) {
            return Ok(Token::Key);
        }
        self.value_begins(at)?;
        Ok(Token::String)
    }

    fn value_begins(&mut self, at: usize) -> Result<(), Halt> {
        if !matches!(self.expect, Expect::Value | Expect::ValueOrEnd) {
            return Err(self.misplaced(at));
        }
        self.name.value_begins().map_err(|reason| self.fault((reason, at)))
    }

    fn open(&mut self, bracket: u8, at: usize) -> Result<(), Halt> {
        self.value_begins(at)?;
        if self.name.depth() == self.depth_max {
            return Err(self.fault((Reason::Depth, at)));
        }
        self.expect = if bracket == b'{' {
            self.name.open_object();
            Expect::KeyOrEnd
        } else {
            self.name.open_array();
            Expect::ValueOrEnd
        };
        Ok(())
    }

    fn close<S: Sink + ?Sized>(
        &mut self,
        bracket: u8,
        at: usize,
        sink: &mut S,
    ) -> Result<(), Halt> {
        let fits = match self.expect {
            Expect::CommaOrEnd => (bracket == b'}') == self.name.in_object(),
            Expect::KeyOrEnd => bracket == b'}',
            Expect::ValueOrEnd => bracket == b']',
            Expect::Value | Expect::Key | Expect::Colon | Expect::Nothing => false,
        };
        if !fits {
            return Err(self.misplaced(at));
        }
        let is_empty = self.expect != Expect::CommaOrEnd;
        self.name.close();
        self.expect = self.name.after_value();
        if is_empty && self.expect != Expect::Nothing {
            give(&mut self.arguments_left, self.name.bytes(), &[], sink)?;
        }
        Ok(())
    }

    fn comma(&mut self, at: usize) -> Result<(), Halt> {
        if self.expect != Expect::CommaOrEnd {
            return Err(self.misplaced(at));
        }
        self.separated();
        Ok(())
    }

    fn separated(&mut self) {
        self.expect = if self.name.in_object() { Expect::Key } else { Expect::Value };
    }

    fn misplaced(&self, at: usize) -> Halt {
        let reason = match self.expect {
            Expect::Nothing => Reason::Trailing,
            _ => Reason::Character,
        };
        self.fault((reason, at))
    }

    fn fault(&self, misplaced: Misplaced) -> Halt {
        fault(self.before, misplaced)
    }
}

fn fault(before: u64, (reason, at): Misplaced) -> Halt {
    Fault { reason, at: before + at as u64 }.into()
}

fn give<S: Sink + ?Sized>(
    arguments_left: &mut u32,
    name: &[u8],
    value: &[u8],
    sink: &mut S,
) -> Result<(), Halt> {
    *arguments_left = arguments_left.checked_sub(1).ok_or(BodyFault::Arguments)?;
    sink.argument(name, value).checked()
}

#[cfg(test)]
mod tests;
