//! NUL bytes: `removeNulls` and `replaceNulls`.

use super::Outcome;

/// Removes them.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = memchr::memchr(0, input) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    let mut length = start;
    for &byte in &input[start..] {
        output[length] = byte;
        length += usize::from(byte != 0);
    }
    output.truncate(length);
    Outcome::Written
}

/// Makes each a space.
pub(super) fn replace(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = memchr::memchr(0, input) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    for byte in &mut output[start..] {
        *byte = if *byte == 0 { b' ' } else { *byte };
    }
    Outcome::Written
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{RemoveNulls, ReplaceNulls};
    use super::super::tests::check;

    #[test]
    fn nul_bytes_go_or_become_spaces() {
        check(RemoveNulls, b"", b"");
        check(RemoveNulls, b"plain 0", b"plain 0");
        check(RemoveNulls, b"\0a\0\0b\0", b"ab");
        check(ReplaceNulls, b"plain 0", b"plain 0");
        check(ReplaceNulls, b"\0a\0\0b\0", b" a  b ");
    }
}
