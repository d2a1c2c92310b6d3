//! The highest bit: `parityEven7bit`, `parityOdd7bit` and `parityZero7bit`.
//!
//! As in ModSecurity, the parity is that of all eight bits, so a byte that had its highest bit set
//! does not always end with the parity asked for.

use super::Outcome;

/// Sets the highest bit of bytes of odd parity and clears that of the others.
pub(super) fn even(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    mapped(input, output, |byte| byte & 0x7f | if is_odd(byte) { 0x80 } else { 0 })
}

/// Clears the highest bit of bytes of odd parity and sets that of the others.
pub(super) fn odd(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    mapped(input, output, |byte| byte & 0x7f | if is_odd(byte) { 0 } else { 0x80 })
}

/// Clears the highest bit of every byte.
pub(super) fn zero(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    mapped(input, output, |byte| byte & 0x7f)
}

fn is_odd(byte: u8) -> bool {
    !byte.count_ones().is_multiple_of(2)
}

#[inline]
fn mapped(input: &[u8], output: &mut Vec<u8>, map: impl Fn(u8) -> u8) -> Outcome {
    let Some(start) = input.iter().position(|&byte| map(byte) != byte) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(&input[..start]);
    output.extend(input[start..].iter().map(|&byte| map(byte)));
    Outcome::Written
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{ParityEven7bit, ParityOdd7bit, ParityZero7bit};
    use super::super::tests::check;

    #[test]
    fn sets_the_highest_bit_by_parity() {
        check(ParityEven7bit, b"", b"");
        check(ParityEven7bit, b"ABCD", b"AB\xc3D");
        check(ParityOdd7bit, b"ABCD", b"\xc1\xc2C\xc4");
        check(ParityEven7bit, b"AB", b"AB");
        check(ParityOdd7bit, b"C", b"C");
        check(ParityEven7bit, b"\x80\xc1", b"\x80\xc1");
        check(ParityEven7bit, b"\xc3", b"\x43");
        check(ParityOdd7bit, b"\x80\x00", b"\x00\x80");
    }

    #[test]
    fn clears_the_highest_bit() {
        check(ParityZero7bit, b"", b"");
        check(ParityZero7bit, b"plain\0", b"plain\0");
        check(ParityZero7bit, b"\xc1B\xff\x80", b"AB\x7f\0");
    }
}
