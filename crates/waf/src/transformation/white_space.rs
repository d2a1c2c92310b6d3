//! White space: `compressWhitespace`, `removeWhitespace`, `trim`, `trimLeft` and `trimRight`.
//!
//! White space is what C's `isspace` says in the C locale; where text is compressed or cleaned, the
//! no-break space of Latin-1 (byte 0xA0) counts too.
#![expect(clippy::needless_bitwise_bool, reason = "comparisons without branches become vectors")]

use super::{
    Outcome,
    scan::{first, first_pair, is_space},
};

const NO_BREAK_SPACE: u8 = 0xa0;

#[inline]
fn is_wide_space(byte: u8) -> bool {
    is_space(byte) | (byte == NO_BREAK_SPACE)
}

/// Makes each run of white space one space.
///
/// The no-break space counts, as in version 2 of ModSecurity; in version 3 it does not.
pub(super) fn compress(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first_to_compress(input) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    // Compacted in place and without branches, so that no mixture of bytes is slow.
    let mut length = start;
    let mut after_space = start > 0 && is_wide_space(input[start - 1]);
    for at in start..output.len() {
        let byte = output[at];
        let space = is_wide_space(byte);
        output[length] = if space { b' ' } else { byte };
        length += usize::from(!(space && after_space));
        after_space = space;
    }
    output.truncate(length);
    Outcome::Written
}

/// The first white space that is none or not alone.
fn first_to_compress(input: &[u8]) -> Option<usize> {
    let wanted = |byte, next| is_wide_space(byte) & ((byte != b' ') | is_wide_space(next));
    first_pair(input, wanted).or_else(|| {
        let (&last, before) = input.split_last()?;
        (last != b' ' && is_wide_space(last)).then_some(before.len())
    })
}

/// Removes white space.
///
/// Both versions of ModSecurity remove the byte 0xA0. Version 3 also removes every byte 0xC2,
/// which with 0xA0 is the no-break space of UTF-8, but begins other characters too; here 0xC2 goes
/// only where 0xA0 follows.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first(input, is_wide_space) else {
        return Outcome::Unchanged;
    };
    let goes_before = |byte, next| (byte == 0xc2) & (next == NO_BREAK_SPACE);
    let (before, rest) = input.split_at(start);
    output.extend_from_slice(input);
    let mut length = start - usize::from(before.ends_with(b"\xc2") && rest[0] == NO_BREAK_SPACE);
    // Compacted without branches, so that no mixture of bytes is slow.
    let mut keep = |byte, next| {
        output[length] = byte;
        length += usize::from(!is_wide_space(byte) & !goes_before(byte, next));
    };
    for pair in rest.windows(2) {
        keep(pair[0], pair[1]);
    }
    keep(rest[rest.len() - 1], 0);
    output.truncate(length);
    Outcome::Written
}

/// Removes white space at both ends.
pub(super) fn trim(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    copied(input, trimmed_left(trimmed_right(input)), output)
}

/// Removes white space at the beginning.
pub(super) fn trim_left(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    copied(input, trimmed_left(input), output)
}

/// Removes white space at the end.
pub(super) fn trim_right(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    copied(input, trimmed_right(input), output)
}

fn trimmed_left(input: &[u8]) -> &[u8] {
    let start = input.iter().position(|&byte| !is_space(byte));
    &input[start.unwrap_or(input.len())..]
}

fn trimmed_right(input: &[u8]) -> &[u8] {
    let end = input.iter().rposition(|&byte| !is_space(byte));
    &input[..end.map_or(0, |last| last + 1)]
}

fn copied(input: &[u8], part: &[u8], output: &mut Vec<u8>) -> Outcome {
    if part.len() == input.len() {
        return Outcome::Unchanged;
    }
    output.extend_from_slice(part);
    Outcome::Written
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{
        CompressWhitespace, RemoveWhitespace, Trim, TrimLeft, TrimRight,
    };
    use super::super::tests::check;

    #[test]
    fn compresses_runs_to_one_space() {
        check(CompressWhitespace, b"", b"");
        check(CompressWhitespace, b" one two ", b" one two ");
        check(CompressWhitespace, b"one  two", b"one two");
        check(CompressWhitespace, b"one\ttwo\n", b"one two ");
        check(CompressWhitespace, b"\t \n\x0b\x0c\r \xa0", b" ");
        check(CompressWhitespace, b"select\xa0x\0 y", b"select x\0 y");
        check(
            CompressWhitespace,
            b"a longer text with single spaces, then  two",
            b"a longer text with single spaces, then two",
        );
    }

    #[test]
    fn removes_white_space_and_the_no_break_space() {
        check(RemoveWhitespace, b"", b"");
        check(RemoveWhitespace, b"plain\0", b"plain\0");
        check(RemoveWhitespace, b" a\tb\nc\x0bd\x0ce\rf\xa0g ", b"abcdefg");
        check(RemoveWhitespace, "a\u{a0}b".as_bytes(), b"ab");
        check(RemoveWhitespace, "\u{a0}".as_bytes(), b"");
        check(RemoveWhitespace, "a £ b".as_bytes(), "a£b".replace(' ', "").as_bytes());
        check(RemoveWhitespace, b"\xc2 \xa0", b"\xc2");
        check(RemoveWhitespace, b"\xc2\xc2\xa0", b"\xc2");
    }

    #[test]
    fn trims() {
        let input = b" \t\n\x0b\x0c\ra b\0 \r\n";
        check(Trim, input, b"a b\0");
        check(TrimLeft, input, b"a b\0 \r\n");
        check(TrimRight, input, b" \t\n\x0b\x0c\ra b\0");
        for trim in [Trim, TrimLeft, TrimRight] {
            check(trim, b"", b"");
            check(trim, b" \n ", b"");
            check(trim, b"a b", b"a b");
            check(trim, b"\xa0a\xa0", b"\xa0a\xa0");
        }
    }
}
