//! `@validateByteRange`: which bytes a value may have.

use std::str::FromStr;

use super::Fault;
use crate::{pattern::ByteSet, transformation::scan};

/// The most ranges that are compared with instead of looked up: so many comparisons of a vector of
/// bytes cost less than as many look-ups as it has bytes.
const COMPARED_RANGES_MAX: usize = 4;

/// The bytes that a value may have.
#[derive(Clone, Debug)]
pub struct ByteRange {
    allowed: ByteSet,
    test: Test,
}

/// How a value is tested.
#[derive(Clone, Debug)]
enum Test {
    /// All are allowed but this one.
    AllBut(u8),
    /// By comparisons with the first byte of each range and its last as a distance from the first;
    /// ranges may stand there twice.
    Ranges([(u8, u8); COMPARED_RANGES_MAX]),
    /// By a look-up of each byte: whether it is refused.
    Table(Box<[bool; 256]>),
}

impl ByteRange {
    /// Reads `9,10,13,32-126`: bytes and ranges of them in decimal, 0 to 255, parted by commas.
    pub fn parse(argument: &[u8]) -> Result<Self, Fault> {
        let mut allowed = ByteSet::NONE;
        for item in super::readable(argument)?.split(',') {
            let (first, last) = match item.split_once('-') {
                Some((first, last)) => (byte(first)?, byte(last)?),
                None => (byte(item)?, byte(item)?),
            };
            if first > last {
                return Err(Fault::new(format!("the range {} ends before it begins", item.trim())));
            }
            allowed = allowed.or(ByteSet::range(first, last));
        }
        Ok(Self { allowed, test: Test::of(&allowed) })
    }

    /// The place of the first byte that is not allowed.
    pub fn find(&self, value: &[u8]) -> Option<usize> {
        match &self.test {
            Test::AllBut(refused) => memchr::memchr(*refused, value),
            Test::Ranges(ranges) => scan::first(value, |byte| {
                ranges.iter().fold(true, |refused, &(first, distance)| {
                    refused & (byte.wrapping_sub(first) > distance)
                })
            }),
            Test::Table(refused) => value.iter().position(|&byte| refused[usize::from(byte)]),
        }
    }

    /// The bytes that are allowed.
    pub fn allowed(&self) -> ByteSet {
        self.allowed
    }
}

impl Test {
    fn of(allowed: &ByteSet) -> Self {
        if let ([(refused, _)], 255) = (allowed.complement().ranges().as_slice(), allowed.len()) {
            return Self::AllBut(*refused);
        }
        let ranges = allowed.ranges();
        let Some(&(first, last)) = ranges.first().filter(|_| ranges.len() <= COMPARED_RANGES_MAX)
        else {
            let mut refused = [true; 256];
            for byte in allowed.iter() {
                refused[usize::from(byte)] = false;
            }
            return Self::Table(Box::new(refused));
        };
        let mut compared = [(first, last - first); COMPARED_RANGES_MAX];
        for (place, &(first, last)) in compared.iter_mut().zip(&ranges) {
            *place = (first, last - first);
        }
        Self::Ranges(compared)
    }
}

fn byte(text: &str) -> Result<u8, Fault> {
    u8::from_str(text.trim()).map_err(|_| {
        Fault::new(format!("`{}` is no byte", text.trim()))
            .hint("bytes are written in decimal, 0 to 255, ranges of them as 32-126")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, before and behind allowed ones, must be judged as the set says.
    fn check(argument: &str, expected: &[u8]) {
        let range = ByteRange::parse(argument.as_bytes()).expect("a byte range");
        let allowed: Vec<u8> = (0..=255).filter(|byte| expected.contains(byte)).collect();
        assert_eq!(range.allowed().iter().collect::<Vec<_>>(), allowed, "{argument}");
        let mut value = vec![expected[0]; 40];
        for byte in 0..=255 {
            for place in [0, 15, 16, 37, 39] {
                value[place] = byte;
                let found = (!expected.contains(&byte)).then_some(place);
                assert_eq!(range.find(&value), found, "{argument}: byte {byte} at {place}");
                value[place] = expected[0];
            }
        }
    }

    #[test]
    fn allows_what_is_listed() {
        check("32", b" ");
        check(" 65 , 48 - 50", b"A012");
        check("97-99,98-101", b"abcde");
        check("65,67,69,71", b"ACEG");
        check("65,67,69,71,73", b"ACEGI");
        check("0-9,11-255", &(0..=255).filter(|&byte| byte != 10).collect::<Vec<_>>());
        check("1-255", &(1..=255).collect::<Vec<_>>());
        check("0-255", &(0..=255).collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_value_has_nothing_refused() {
        assert_eq!(ByteRange::parse(b"65").map(|range| range.find(b"")), Ok(None));
    }

    #[test]
    fn refuses_what_is_no_range() {
        for (argument, message) in [
            ("", "`` is no byte"),
            ("1,", "`` is no byte"),
            ("256", "`256` is no byte"),
            ("-1", "`` is no byte"),
            ("0x41", "`0x41` is no byte"),
            ("a-z", "`a` is no byte"),
            ("9-1", "the range 9-1 ends before it begins"),
        ] {
            let fault = ByteRange::parse(argument.as_bytes()).expect_err(argument);
            assert_eq!(fault.message, message, "{argument:?}");
        }
    }
}
