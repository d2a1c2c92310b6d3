//! NUL bytes: `removeNulls` and `replaceNulls`.

use super::{Outcome, rewrite::Rewrite};

/// Removes them.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    rewritten(input, output, b"")
}

/// Makes each a space.
pub(super) fn replace(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    rewritten(input, output, b" ")
}

#[inline]
fn rewritten(input: &[u8], output: &mut Vec<u8>, replacement: &[u8]) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    for at in memchr::memchr_iter(0, input) {
        rewrite.replace(at, at + 1, replacement);
    }
    rewrite.finish()
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
