//! `@verifyCC`, `@verifyCPF`, `@verifySSN` and `@verifySVNR`: numbers that a pattern finds and whose
//! digits must then be right.
//!
//! The pattern is the rule's and belongs to the caller; here are the checks, and the walk over the
//! candidates that the pattern finds.

use std::ops::Range;

/// A kind of number with a check of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// `@verifyCC`: payment cards, by Luhn's formula (ISO/IEC 7812-1, annex B).
    PaymentCard,
    /// `@verifyCPF`: Brazilian taxpayers, eleven digits, the last two of which check the others.
    Cpf,
    /// `@verifySSN`: United States social security, nine digits in fields that may not be zero.
    Ssn,
    /// `@verifySVNR`: Austrian social insurance, ten digits, the fourth of which checks the others.
    Svnr,
}

/// How many times the bytes of a value the candidates in it may have together. Only a pattern whose
/// matches overlap heavily gets there; what lies behind is not looked at, so that the time stays
/// linear.
const CANDIDATE_SHARE_MAX: usize = 64;

impl Identity {
    /// The first candidate in `value` whose digits are right.
    ///
    /// `next` finds the pattern's first match at or behind an index. After a candidate that fails the
    /// search goes on at the byte behind its beginning, since a better one may overlap it.
    pub fn find(
        self,
        value: &[u8],
        mut next: impl FnMut(usize) -> Option<Range<usize>>,
    ) -> Option<Range<usize>> {
        let mut share = CANDIDATE_SHARE_MAX * value.len();
        let mut from = 0;
        while from < value.len() {
            let candidate = next(from)?;
            let bytes = value.get(candidate.clone())?;
            if self.check(bytes) {
                return Some(candidate);
            }
            share = share.checked_sub(bytes.len())?;
            from = candidate.start + 1;
        }
        None
    }

    /// Whether the digits among these bytes make a right number of this kind. Other bytes are
    /// skipped.
    pub fn check(self, candidate: &[u8]) -> bool {
        match self {
            Self::PaymentCard => is_payment_card(candidate),
            Self::Cpf => digits::<11>(candidate, Surplus::Ignored).is_some_and(is_cpf),
            Self::Ssn => digits::<9>(candidate, Surplus::Refused).is_some_and(is_ssn),
            Self::Svnr => digits::<10>(candidate, Surplus::Ignored).is_some_and(is_svnr),
        }
    }
}

/// What digits beyond the number mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Surplus {
    Ignored,
    Refused,
}

fn digit_values(candidate: &[u8]) -> impl DoubleEndedIterator<Item = u32> + '_ {
    candidate.iter().filter(|byte| byte.is_ascii_digit()).map(|digit| u32::from(digit - b'0'))
}

/// The first `N` digits.
fn digits<const N: usize>(candidate: &[u8], surplus: Surplus) -> Option<[u32; N]> {
    let mut values = digit_values(candidate);
    let mut digits = [0; N];
    for digit in &mut digits {
        *digit = values.next()?;
    }
    (surplus == Surplus::Ignored || values.next().is_none()).then_some(digits)
}

/// Luhn's formula: from the right, every second digit counts twice, its own digits added up.
fn is_payment_card(candidate: &[u8]) -> bool {
    let mut count = 0_usize;
    let mut sum = 0_u32;
    for digit in digit_values(candidate).rev() {
        let weighted = match (count.is_multiple_of(2), digit) {
            (true, _) => digit,
            (false, 0..5) => 2 * digit,
            (false, _) => 2 * digit - 9,
        };
        sum = (sum + weighted) % 10;
        count += 1;
    }
    count > 0 && sum == 0
}

/// Both check digits are weighted sums modulo 11.
fn is_cpf(digits: [u32; 11]) -> bool {
    let check = |checked: &[u32]| {
        let weights = (2..=11).rev().skip(10 - checked.len());
        let sum: u32 = checked.iter().zip(weights).map(|(digit, weight)| digit * weight).sum();
        match sum % 11 {
            0 | 1 => 0,
            rest => 11 - rest,
        }
    };
    !is_placeholder(&digits)
        && check(&digits[..9]) == digits[9]
        && check(&digits[..10]) == digits[10]
}

/// Area, group and serial number are not zero, and the area is one that is given out.
fn is_ssn(digits: [u32; 9]) -> bool {
    let number = |digits: &[u32]| digits.iter().fold(0, |number, digit| 10 * number + digit);
    let (area, group, serial) = (number(&digits[..3]), number(&digits[3..5]), number(&digits[5..]));
    let is_sequence = digits.windows(2).all(|pair| pair[1] == pair[0] + 1);
    !is_sequence
        && !is_repetition(&digits)
        && (1..740).contains(&area)
        && area != 666
        && group != 0
        && serial != 0
}

/// The fourth digit is a weighted sum of the others modulo 11.
fn is_svnr(digits: [u32; 10]) -> bool {
    const WEIGHTS: [u32; 10] = [3, 7, 9, 0, 5, 8, 4, 2, 1, 6];
    let sum: u32 = digits.iter().zip(WEIGHTS).map(|(digit, weight)| digit * weight).sum();
    !is_placeholder(&digits)
        && digits[..] != [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
        && sum % 11 % 10 == digits[3]
}

/// Whether it is a number that people type where one is asked for: one digit over and over, or all in
/// order from 0.
fn is_placeholder(digits: &[u32]) -> bool {
    is_repetition(digits) || digits.iter().zip((0..10).cycle()).all(|(&digit, next)| digit == next)
}

fn is_repetition(digits: &[u32]) -> bool {
    digits.windows(2).all(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(identity: Identity, right: &[&str], wrong: &[&str]) {
        for candidate in right {
            assert!(identity.check(candidate.as_bytes()), "{identity:?} {candidate:?}");
        }
        for candidate in wrong {
            assert!(!identity.check(candidate.as_bytes()), "not {identity:?} {candidate:?}");
        }
    }

    /// Numbers that card schemes publish for tests.
    #[test]
    fn payment_cards() {
        check(
            Identity::PaymentCard,
            &["4242424242424242", " 4000-0566-5566-5556x", "378282246310005", "0", "18"],
            &["4242424242424241", "4242424242424224", "", "none", "1"],
        );
    }

    #[test]
    fn brazilian_taxpayers() {
        check(
            Identity::Cpf,
            &["111.444.777-35", "52998224725", "CPF 529.982.247-25 and 1"],
            &[
                "111.444.777-36",
                "111.444.777-45",
                "1114447773",
                "111.111.111-11",
                "01234567890",
                "",
            ],
        );
    }

    #[test]
    fn social_security() {
        check(
            Identity::Ssn,
            &["078-05-1120", "739-99-9999", "219 09 9999"],
            &[
                "000-12-3456",
                "666-12-3456",
                "740-12-3456",
                "900-12-3456",
                "123-00-4567",
                "123-45-0000",
                "123-45-6789",
                "222-22-2222",
                "078-05-112",
                "078-05-11200",
                "",
            ],
        );
    }

    #[test]
    fn social_insurance() {
        check(
            Identity::Svnr,
            &["1237 010180", "1237010180"],
            &["1238 010180", "1237 010181", "123701018", "0000000000", "1234567890", "0123456789"],
        );
    }

    /// The first run of digits at or behind `from`.
    fn run(value: &[u8], from: usize) -> Option<Range<usize>> {
        let start = from + value[from..].iter().position(u8::is_ascii_digit)?;
        let digits = value[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        Some(start..start + digits)
    }

    #[test]
    fn the_first_right_candidate_is_found() {
        let find = |value: &[u8]| Identity::PaymentCard.find(value, |from| run(value, from));
        assert_eq!(find(b"1, 2 and 4242424242424242"), Some(9..25));
        assert_eq!(find(b"94242424242424242"), Some(1..17));
        assert_eq!(find(b"no number"), None);
        assert_eq!(find(b""), None);
    }

    #[test]
    fn overlapping_candidates_end_somewhere() {
        let value = vec![b'1'; 1 << 14];
        let mut asked = 0;
        let found = Identity::Cpf.find(&value, |from| {
            asked += 1;
            Some(from..value.len())
        });
        assert_eq!(found, None);
        assert!(asked <= CANDIDATE_SHARE_MAX + 2, "{asked} candidates");
    }
}
