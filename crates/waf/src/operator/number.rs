//! `@eq`, `@ge`, `@gt`, `@le` and `@lt`: comparisons of whole numbers.

use crate::transformation::scan::is_space;

/// How a value is compared with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `@eq`.
    Equal,
    /// `@ge`.
    AtLeast,
    /// `@gt`.
    Greater,
    /// `@le`.
    AtMost,
    /// `@lt`.
    Less,
}

impl Comparison {
    /// Whether `value` compares so with `argument`.
    pub fn holds(self, value: i64, argument: i64) -> bool {
        match self {
            Self::Equal => value == argument,
            Self::AtLeast => value >= argument,
            Self::Greater => value > argument,
            Self::AtMost => value <= argument,
            Self::Less => value < argument,
        }
    }

    /// As [`Self::holds`], with both still text.
    pub fn holds_for(self, value: &[u8], argument: &[u8]) -> bool {
        self.holds(parse(value), parse(argument))
    }
}

/// The number that text begins with, as C's `atoll` reads it: white space, a sign, digits; 0 if there
/// are none.
///
/// What does not fit in 64 bits is taken for the nearest number that does. In ModSecurity the width
/// depends on the version and the operator (in version 3, `@eq` takes what does not fit in 32 bits
/// for 0); one width for all leaves no number that equals another and is greater than it.
pub fn parse(text: &[u8]) -> i64 {
    let start = text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len());
    let text = &text[start..];
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0_i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let tens = number.saturating_mul(10);
        if negative { tens.saturating_sub(digit) } else { tens.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_number_that_text_begins_with() {
        for (text, expected) in [
            ("", 0),
            ("0", 0),
            ("42", 42),
            ("-42", -42),
            ("+7", 7),
            (" \t\n\x0b\x0c\r12 monkeys", 12),
            ("12.9", 12),
            ("0x10", 0),
            ("007", 7),
            ("--1", 0),
            ("- 1", 0),
            ("one", 0),
            ("9223372036854775807", i64::MAX),
            ("9223372036854775808", i64::MAX),
            ("-9223372036854775809", i64::MIN),
            ("99999999999999999999999", i64::MAX),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn compares() {
        use Comparison::{AtLeast, AtMost, Equal, Greater, Less};
        for (comparison, below, equal, above) in [
            (Equal, false, true, false),
            (AtLeast, false, true, true),
            (Greater, false, false, true),
            (AtMost, true, true, false),
            (Less, true, false, false),
        ] {
            assert_eq!(comparison.holds(4, 5), below, "4 {comparison:?} 5");
            assert_eq!(comparison.holds(5, 5), equal, "5 {comparison:?} 5");
            assert_eq!(comparison.holds(6, 5), above, "6 {comparison:?} 5");
        }
        assert!(Equal.holds_for(b"", b"0"));
        assert!(Greater.holds_for(b"10 ", b"9"));
        assert!(!Equal.holds_for(b"4294967296", b"0"));
    }
}
