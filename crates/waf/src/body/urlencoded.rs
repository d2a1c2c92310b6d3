//! Pairs of names and values: query strings and `application/x-www-form-urlencoded` bodies.
//!
//! Reads as ModSecurity does: pairs are cut before anything is decoded, a name ends at its first
//! `=`, `+` is a space, and a `%` that two hex digits do not follow stays as it is and raises
//! `URLENCODED_ERROR`. An empty pair (`a=1&&b=2`) is nothing, as in Coraza; ModSecurity 2 makes a
//! nameless, empty argument of it, which no rule can tell from none but by counting.

use std::borrow::Cow;

use memchr::memchr;

use super::fault::{Fault, Halt};
use super::options::Options;
use super::sink::{Flow, Sink};
use super::swar;

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
    arguments_left: u32,
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
    pub(super) fn new(options: &Options) -> Self {
        Self {
            separator: options.argument_separator,
            arguments_left: options.limits.arguments_max,
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
    ) -> Result<(), Halt> {
        let mut rest = bytes;
        while let Some(end) = memchr(self.separator, rest) {
            let (pair, behind) = (&rest[..end], &rest[end + 1..]);
            if self.begun.is_empty() {
                self.pair(pair, sink)?;
            } else {
                self.begun.extend_from_slice(pair);
                self.begun_pair(sink)?;
            }
            rest = behind;
        }
        self.begun.extend_from_slice(rest);
        Ok(())
    }

    /// Takes the end of the body, which ends the last pair.
    pub(super) fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        self.begun_pair(sink)
    }

    /// Whether all escapes were valid so far.
    pub fn escapes(&self) -> Escapes {
        self.escapes
    }

    fn begun_pair<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        let mut pair = std::mem::take(&mut self.begun);
        let flow = self.pair(&pair, sink);
        pair.clear();
        self.begun = pair;
        flow
    }

    fn pair<S: Sink + ?Sized>(&mut self, pair: &[u8], sink: &mut S) -> Result<(), Halt> {
        if pair.is_empty() {
            return Ok(());
        }
        self.arguments_left = self.arguments_left.checked_sub(1).ok_or(Fault::Arguments)?;
        let (name, value) = halves(pair);
        let name = decode_into(name, &mut self.scratch.name, &mut self.escapes);
        let value = decode_into(value, &mut self.scratch.value, &mut self.escapes);
        sink.argument(name, value).checked()
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
    if first_to_decode(text).is_none() {
        return (Cow::Borrowed(text), Escapes::Valid);
    }
    let mut escapes = Escapes::Valid;
    let mut decoded = Vec::new();
    let bytes = decode_into(text, &mut decoded, &mut escapes).len();
    decoded.truncate(bytes);
    (Cow::Owned(decoded), escapes)
}

fn halves(pair: &[u8]) -> (&[u8], &[u8]) {
    match swar::position(pair, [b'='; 2]) {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, &[]),
    }
}

fn first_to_decode(text: &[u8]) -> Option<usize> {
    swar::position(text, [b'%', b'+'])
}

/// Decodes into `scratch` unless there is nothing to decode.
fn decode_into<'a>(text: &'a [u8], scratch: &'a mut Vec<u8>, escapes: &mut Escapes) -> &'a [u8] {
    let Some(plain) = first_to_decode(text) else { return text };
    // Room for all of the text makes every write below one of a known place.
    if scratch.len() < text.len() {
        scratch.resize(text.len(), 0);
    }
    scratch[..plain].copy_from_slice(&text[..plain]);
    let (mut from, mut to) = (plain, plain);
    while let Some(&byte) = text.get(from) {
        let (decoded, taken) = match byte {
            b'+' => (b' ', 1),
            b'%' => {
                if let Some(decoded) = hex_pair(&text[from + 1..]) {
                    (decoded, 3)
                } else {
                    *escapes = Escapes::Invalid;
                    (b'%', 1)
                }
            }
            // Escapes come in swarms, so that looking for the next one costs more than going there.
            _ => (byte, 1),
        };
        scratch[to] = decoded;
        from += taken;
        to += 1;
    }
    &scratch[..to]
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

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::super::{End, Kind, Limits};
    use super::*;

    /// Checks the body and, since both read the same, the query.
    #[track_caller]
    fn check(text: &str, expected: &[&str], escapes: Escapes) {
        let options = Options::default();
        let read = testing::read(Kind::Urlencoded, "", &options, text.as_bytes());
        assert_eq!(read.fault, None, "{text}");
        assert_eq!(read.told, expected, "{text}");
        assert_eq!(read.processor.escapes(), escapes, "{text}");

        let mut told = Vec::new();
        let found = query(text.as_bytes(), b'&', |name, value| {
            told.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
            Flow::Continue
        });
        assert_eq!(
            (told.iter().map(String::as_str).collect::<Vec<_>>(), found),
            (expected.to_vec(), escapes)
        );
    }

    #[test]
    fn pairs() {
        check("", &[], Escapes::Valid);
        check("a=1&b=2", &["a=1", "b=2"], Escapes::Valid);
        check("a=1&a=2", &["a=1", "a=2"], Escapes::Valid);
        check("a", &["a="], Escapes::Valid);
        check("a&b=", &["a=", "b="], Escapes::Valid);
        check("a=b=c", &["a=b=c"], Escapes::Valid);
        check("=", &["="], Escapes::Valid);
        check("=x", &["=x"], Escapes::Valid);
        check("a;b=1;c", &["a;b=1;c"], Escapes::Valid);
    }

    #[test]
    fn empty_pairs_are_nothing() {
        check("&&a=1&&b=2&", &["a=1", "b=2"], Escapes::Valid);
        check("&", &[], Escapes::Valid);
    }

    #[test]
    fn escapes_are_decoded_after_pairs_are_cut() {
        check("a+b=c+d", &["a b=c d"], Escapes::Valid);
        check("%61=%3C%3e", &["a=<>"], Escapes::Valid);
        check("a=%26b%3D1&c%3dd=1", &["a=&b=1", "c=d=1"], Escapes::Valid);
        check("a=%2541%2b", &["a=%41+"], Escapes::Valid);
        check("a=%00%ff", &["a=\\x00\\xff"], Escapes::Valid);
        check("%41%42x%43=%44+%45", &["ABxC=D E"], Escapes::Valid);
    }

    #[test]
    fn invalid_escapes_stay() {
        for text in ["%", "a%", "%4", "%zz", "%4g", "%g4", "%%41x", "%u0041"] {
            let decoded = text.replace("%41", "A");
            check(&format!("a={text}"), &[&format!("a={decoded}")], Escapes::Invalid);
            check(text, &[&format!("{decoded}=")], Escapes::Invalid);
        }
        // A pair's end is no part of an escape.
        check("a=%4&1=2", &["a=%4", "1=2"], Escapes::Invalid);
        check("a%3=1", &["a%3=1"], Escapes::Invalid);
    }

    #[test]
    fn the_separator_can_be_chosen() {
        let options = Options { argument_separator: b';', ..Options::default() };
        let read = testing::read(Kind::Urlencoded, "", &options, b"a=1;b=2&c=3");
        assert_eq!(read.told, ["a=1", "b=2&c=3"]);
    }

    #[test]
    fn limits_are_faults() {
        let limits = Limits { arguments_max: 2, ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        let read = testing::read(Kind::Urlencoded, "", &options, b"a&&b&c");
        assert_eq!(read.fault, Some(Fault::Arguments));
        assert_eq!(read.told, ["a=", "b="]);

        let limits = Limits { fields_bytes_max: 4, ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        let read = testing::read(Kind::Urlencoded, "", &options, b"a=1&b=2");
        assert_eq!(read.fault, Some(Fault::Fields));
        assert_eq!(read.told, ["a=1"]);
    }

    #[test]
    fn truncated_bodies_give_what_came() {
        let options = Options::default();
        let read = testing::read_to(End::Truncated, Kind::Urlencoded, "", &options, b"a=1&b=2%4");
        assert_eq!(read.fault, None);
        assert_eq!(read.told, ["a=1", "b=2%4"]);
    }

    #[test]
    fn a_sink_that_has_enough_is_left_alone() {
        let mut given = 0;
        let _ = query(b"a&b&c", b'&', |_, _| {
            given += 1;
            if given == 2 { Flow::Stop } else { Flow::Continue }
        });
        assert_eq!(given, 2);
    }

    #[test]
    fn decoding_borrows_what_it_can() {
        assert!(matches!(decode(b"plain"), (Cow::Borrowed(b"plain"), Escapes::Valid)));
        assert!(matches!(decode(b"%41+%"), (Cow::Owned(text), Escapes::Invalid) if text == b"A %"));
    }
}
