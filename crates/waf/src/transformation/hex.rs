//! Hexadecimal: `hexDecode`, `hexEncode`, `sqlHexDecode`, and the digits the other decoders read.

use super::{Outcome, rewrite::Rewrite, scan};

/// The value of each byte as a hexadecimal digit; [`NOT_A_DIGIT`] for the others.
const DIGIT_VALUE: [u8; 256] = {
    let mut values = [NOT_A_DIGIT; 256];
    let mut value = 0_u8;
    while value < 16 {
        let digit = LOWER_DIGITS[value as usize];
        values[digit as usize] = value;
        values[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};
const NOT_A_DIGIT: u8 = 0xff;
/// The digits in order.
pub(super) const LOWER_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The value of one hexadecimal digit in either case, 0 to 15.
#[inline]
pub(crate) fn digit(byte: u8) -> Option<u8> {
    match DIGIT_VALUE[usize::from(byte)] {
        NOT_A_DIGIT => None,
        value => Some(value),
    }
}

/// The byte that the two hexadecimal digits at `at` stand for; none if there are not two.
#[inline]
pub(super) fn pair(input: &[u8], at: usize) -> Option<u8> {
    let &[high, low] = input.get(at..)?.first_chunk()?;
    Some(digit(high)? << 4 | digit(low)?)
}

/// The two lower-case digits of a byte.
#[inline]
pub(super) fn digits(byte: u8) -> [u8; 2] {
    [LOWER_DIGITS[usize::from(byte >> 4)], LOWER_DIGITS[usize::from(byte & 15)]]
}

/// Encodes each byte as two lower-case digits.
pub(super) fn encode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    if input.is_empty() {
        return Outcome::Unchanged;
    }
    output.reserve(2 * input.len());
    output.extend(input.iter().flat_map(|&byte| digits(byte)));
    Outcome::Written
}

/// Decodes pairs of digits. As in ModSecurity, bytes that are no digits are taken for some, and an
/// odd one at the end is dropped.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    if input.is_empty() {
        return Outcome::Unchanged;
    }
    let (pairs, _odd) = input.as_chunks::<2>();
    output.extend(pairs.iter().map(|&[high, low]| (lenient(high) << 4).wrapping_add(lenient(low))));
    Outcome::Written
}

/// The value of a digit, and what ModSecurity's arithmetic makes of any other byte.
fn lenient(byte: u8) -> u8 {
    if byte >= b'A' { (byte & 0xdf).wrapping_sub(b'A' - 10) } else { byte.wrapping_sub(b'0') }
}

/// Decodes SQL's hexadecimal strings: `0x` and at least one pair of digits, as many as follow.
pub(super) fn sql_decode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some(mark) = scan::next_of(input, at, b'x', b'X') {
        // The zero may have been the last digit of the string before, and is then used up.
        let zero = mark.checked_sub(1).filter(|&zero| zero >= at && input[zero] == b'0');
        at = mark + 1;
        let (Some(zero), Some(byte)) = (zero, pair(input, mark + 1)) else {
            continue;
        };
        rewrite.replace(zero, mark + 3, &[byte]);
        at = mark + 3;
        while let Some(byte) = pair(input, at) {
            rewrite.replace(at, at + 2, &[byte]);
            at += 2;
        }
    }
    rewrite.finish()
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{HexDecode, HexEncode, SqlHexDecode};
    use super::super::tests::check;

    #[test]
    fn encodes_every_byte() {
        check(HexEncode, b"", b"");
        check(HexEncode, b"\0\x7f\xffA", b"007fff41");
    }

    #[test]
    fn decodes_pairs_and_drops_the_odd_one() {
        check(HexDecode, b"", b"");
        check(HexDecode, b"41", b"A");
        check(HexDecode, b"4a4B4", b"JK");
        check(HexDecode, b"4", b"");
    }

    #[test]
    fn takes_other_bytes_for_digits_as_modsecurity_does() {
        // 'z' is 35 past 'A' minus ten in its arithmetic; the sum wraps.
        check(HexDecode, b"1z", &[0x10 + 35]);
        check(HexDecode, b"z1", &[(35_u8 << 4).wrapping_add(1)]);
        check(HexDecode, b" /", b"\xff");
    }

    #[test]
    fn decodes_sql_strings() {
        check(SqlHexDecode, b"select 0x414243 from", b"select ABC from");
        check(SqlHexDecode, b"0X4a", b"J");
        check(SqlHexDecode, b"0x4", b"0x4");
        check(SqlHexDecode, b"0xg1", b"0xg1");
        check(SqlHexDecode, b"x41", b"x41");
        check(SqlHexDecode, b"0x414", b"A4");
        check(SqlHexDecode, b"0x410x42", b"AB");
        check(SqlHexDecode, b"00x41", b"0A");
        check(SqlHexDecode, b"0x0x41", b"0xA");
        check(SqlHexDecode, b"0x100x4142", b"\x10AB");
        check(SqlHexDecode, b"0x1100x41", b"\x11\0x41");
    }
}
