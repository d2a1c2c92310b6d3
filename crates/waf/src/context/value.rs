//! What a variable holds: a whole number or bytes.
//!
//! `SecLang` knows only text; `setvar:ip.score=+5` makes arithmetic of it. A text that is the usual
//! spelling of a number is kept as the number, so that increments are one atomic step, and reads
//! back as the same bytes.

/// The largest number that is counted with; the smallest is its negative. Sums stop there. A bit of
/// the word is spent on the mark that a counter has been replaced.
pub const NUMBER_MAX: i64 = (1 << 62) - 1;

/// Room for the longest number as text.
pub type Digits = [u8; 20];

/// A value as a reader meets it, borrowed for the time of the visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number within ±[`NUMBER_MAX`].
    Number(i64),
    /// Bytes that are not the usual spelling of such a number.
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The value that these bytes mean.
    pub fn of(bytes: &'a [u8]) -> Self {
        spelled_number(bytes).map_or(Self::Text(bytes), Self::Number)
    }

    /// The value as text; a number is written into `digits`.
    pub fn bytes<'b>(&self, digits: &'b mut Digits) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Self::Number(number) => spell(number, digits),
            Self::Text(text) => text,
        }
    }

    /// Appends the value as text.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let mut digits = Digits::default();
        out.extend_from_slice(self.bytes(&mut digits));
    }

    /// The value in arithmetic: a text counts as the number it begins with, or else as 0, as `atoi`
    /// does for `ModSecurity`; beyond ±[`NUMBER_MAX`] it counts as that.
    pub fn number(&self) -> i64 {
        match *self {
            Self::Number(number) => number,
            Self::Text(text) => leading_number(text),
        }
    }
}

/// The number that `bytes` is the one usual spelling of: no plus sign, no leading zeros, no `-0`.
fn spelled_number(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let usual = match digits {
        [b'0'] => !negative,
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !usual {
        return None;
    }
    let size = digits
        .iter()
        .try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))?;
    (size <= NUMBER_MAX).then_some(if negative { -size } else { size })
}

fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let size = digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0_i64, |sum, digit| {
        sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(NUMBER_MAX)
    });
    if negative { -size } else { size }
}

fn spell(number: i64, digits: &mut Digits) -> &[u8] {
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_spelling_is_kept_as_a_number() {
        let check = |text: &str, expected: Option<i64>| {
            let value = Value::of(text.as_bytes());
            let wanted = expected.map_or(Value::Text(text.as_bytes()), Value::Number);
            assert_eq!(value, wanted, "{text}");
            let mut out = Vec::new();
            value.append_to(&mut out);
            assert_eq!(out, text.as_bytes(), "a value reads back as it was written");
        };
        check("0", Some(0));
        check("7", Some(7));
        check("-12", Some(-12));
        check("4611686018427387903", Some(NUMBER_MAX));
        check("-4611686018427387903", Some(-NUMBER_MAX));
        check("4611686018427387904", None);
        check("99999999999999999999", None);
        for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "1a", "0x1", "1.0", "--1"] {
            check(text, None);
        }
    }

    #[test]
    fn texts_count_as_the_number_they_begin_with() {
        let check = |text: &str, expected: i64| {
            assert_eq!(Value::of(text.as_bytes()).number(), expected, "{text}");
        };
        check("5", 5);
        check("+5", 5);
        check(" \t-7 apples", -7);
        check("007", 7);
        check("apples", 0);
        check("", 0);
        check("-", 0);
        check("99999999999999999999999", NUMBER_MAX);
        check("-99999999999999999999999", -NUMBER_MAX);
    }
}
