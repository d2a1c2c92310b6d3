//! What stands for a whole value: `md5`, `sha1` and `length`.

use md5::Md5;
use sha1::{Digest, Sha1};

use super::{Outcome, rewrite::compared};

/// The MD5 digest, 16 raw bytes.
pub(super) fn md5(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    output.extend_from_slice(&Md5::digest(input));
    compared(input, output)
}

/// The SHA-1 digest, 20 raw bytes.
pub(super) fn sha1(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    output.extend_from_slice(&Sha1::digest(input));
    compared(input, output)
}

/// The number of bytes in decimal.
pub(super) fn length(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut left = input.len();
    loop {
        let [digit, ..] = (left % 10).to_le_bytes();
        output.push(b'0' + digit);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    output.reverse();
    compared(input, output)
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{Length, Md5, Sha1};
    use super::super::tests::check;

    /// From the test suites of RFC 1321 and RFC 3174.
    #[test]
    fn digests() {
        check(Md5, b"abc", &0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128.to_be_bytes());
        check(Md5, b"", &0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e_u128.to_be_bytes());
        check(
            Sha1,
            b"abc",
            b"\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e\x25\x71\x78\x50\xc2\x6c\x9c\xd0\xd8\x9d",
        );
    }

    #[test]
    fn lengths() {
        check(Length, b"", b"0");
        check(Length, b"abc", b"3");
        check(Length, b"1", b"1");
        check(Length, &[b'x'; 10], b"10");
        check(Length, &[b'x'; 4096], b"4096");
    }
}
