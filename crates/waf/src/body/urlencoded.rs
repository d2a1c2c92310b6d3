//! Pairs of names and values: query strings and `application/x-www-form-urlencoded` bodies.
//!
//! Reads as ModSecurity does: pairs are cut before anything is decoded, a name ends at its first
//! `=`, `+` is a space, and a `%` that two hex digits do not follow stays as it is and raises
//! `URLENCODED_ERROR`. An empty pair (`a=1&&b=2`) is nothing, as in Coraza; ModSecurity 2 makes a
//! nameless, empty argument of it, which no rule can tell from none but by counting.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::fault::Fault;
use super::limits::Limits;
use super::sink::{Flow, Sink};

/// Whether every `%` began an escape: `URLENCODED_ERROR`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// All were followed by two hex digits.
    #[default]
    Valid,
    /// At least one was not, and was kept.
    Invalid,
}

/// The processor for urlencoded bodies.
///
/// Holds at most the pair that is not over yet.
#[derive(Debug)]
pub struct Urlencoded {
    separator: u8,
    arguments_max: u32,
    arguments: u32,
    /// The bytes so far of a pair whose separator is still to come.
    begun: Vec<u8>,
    scratch: Scratch,
    escapes: Escapes,
}

/// Where names and values are decoded, if they have anything to decode.
#[derive(Debug, Default)]
struct Scratch {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Urlencoded {
    /// A processor for one body.
    pub fn new(limits: &Limits) -> Self {
        Self {
            separator: limits.argument_separator,
            arguments_max: limits.arguments_max,
            arguments: 0,
            begun: Vec::new(),
            scratch: Scratch::default(),
            escapes: Escapes::Valid,
        }
    }

    /// Takes the next bytes of the body.
    pub(super) fn feed<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Flow, Fault> {
        let mut rest = bytes;
        while let Some(end) = memchr(self.separator, rest) {
            let (pair, behind) = (&rest[..end], &rest[end + 1..]);
            let flow = if self.begun.is_empty() {
                self.pair(pair, sink)?
            } else {
                self.begun.extend_from_slice(pair);
                self.begun_pair(sink)?
            };
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
            rest = behind;
        }
        self.begun.extend_from_slice(rest);
        Ok(Flow::Continue)
    }

    /// Takes the end of the body, which ends the last pair.
    pub(super) fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Fault> {
        self.begun_pair(sink).map(|_| ())
    }

    /// Whether all escapes were valid so far.
    pub fn escapes(&self) -> Escapes {
        self.escapes
    }

    fn begun_pair<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<Flow, Fault> {
        let mut pair = std::mem::take(&mut self.begun);
        let flow = self.pair(&pair, sink);
        pair.clear();
        self.begun = pair;
        flow
    }

    fn pair<S: Sink + ?Sized>(&mut self, pair: &[u8], sink: &mut S) -> Result<Flow, Fault> {
        if pair.is_empty() {
            return Ok(Flow::Continue);
        }
        if self.arguments == self.arguments_max {
            return Err(Fault::Arguments);
        }
        self.arguments += 1;
        let (name, value) = halves(pair);
        let name = decode_into(name, &mut self.scratch.name, &mut self.escapes);
        let value = decode_into(value, &mut self.scratch.value, &mut self.escapes);
        Ok(sink.argument(name, value))
    }
}

/// Gives every pair of a whole query string, decoded, until `argument` says stop.
///
/// The caller bounds the number of arguments, since those of the query and of the body count
/// together.
pub fn query(
    text: &[u8],
    separator: u8,
    mut argument: impl FnMut(&[u8], &[u8]) -> Flow,
) -> Escapes {
    let mut escapes = Escapes::Valid;
    let mut scratch = Scratch::default();
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr(separator, rest).unwrap_or(rest.len());
        let pair = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        if pair.is_empty() {
            continue;
        }
        let (name, value) = halves(pair);
        let name = decode_into(name, &mut scratch.name, &mut escapes);
        let value = decode_into(value, &mut scratch.value, &mut escapes);
        if argument(name, value) == Flow::Stop {
            break;
        }
    }
    escapes
}

/// Decodes one name or value: `+` to a space, `%` and two hex digits to a byte.
pub fn decode(text: &[u8]) -> (Cow<'_, [u8]>, Escapes) {
    let mut escapes = Escapes::Valid;
    let mut scratch = Vec::new();
    let decoded = match first_to_decode(text) {
        None => Cow::Borrowed(text),
        Some(_) => {
            decode_into(text, &mut scratch, &mut escapes);
            Cow::Owned(scratch)
        }
    };
    (decoded, escapes)
}

fn halves(pair: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'=', pair) {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, &[]),
    }
}

fn first_to_decode(text: &[u8]) -> Option<usize> {
    memchr2(b'%', b'+', text)
}

/// Decodes into `scratch` unless there is nothing to decode.
fn decode_into<'a>(text: &'a [u8], scratch: &'a mut Vec<u8>, escapes: &mut Escapes) -> &'a [u8] {
    let Some(mut at) = first_to_decode(text) else { return text };
    scratch.clear();
    scratch.reserve(text.len());
    let mut rest = text;
    loop {
        scratch.extend_from_slice(&rest[..at]);
        let escape = rest[at];
        rest = &rest[at + 1..];
        if escape == b'+' {
            scratch.push(b' ');
        } else if let Some(byte) = hex_pair(rest) {
            scratch.push(byte);
            rest = &rest[2..];
        } else {
            scratch.push(b'%');
            *escapes = Escapes::Invalid;
        }
        // Escapes come in swarms: the next one is usually at hand, and a search costs more.
        at = match rest.first() {
            Some(b'%' | b'+') => 0,
            _ => match first_to_decode(rest) {
                Some(at) => at,
                None => break,
            },
        };
    }
    scratch.extend_from_slice(rest);
    scratch
}

/// The byte that the first two characters write in hex.
fn hex_pair(text: &[u8]) -> Option<u8> {
    let &[high, low, ..] = text else { return None };
    Some(hex_digit(high)? << 4 | hex_digit(low)?)
}

/// The value of a hex digit, 0 to 15.
pub(super) fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
