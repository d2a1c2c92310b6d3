//! `lowercase` and `uppercase`: ASCII letters only, as in the C locale.

use super::{Outcome, scan::first};

/// Makes ASCII letters lower case.
pub(super) fn lower(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first(input, |byte| byte.is_ascii_uppercase()) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    output[start..].make_ascii_lowercase();
    Outcome::Written
}

/// Makes ASCII letters upper case.
pub(super) fn upper(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first(input, |byte| byte.is_ascii_lowercase()) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    output[start..].make_ascii_uppercase();
    Outcome::Written
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{Lowercase, Uppercase};
    use super::super::tests::check;

    #[test]
    fn folds_ascii_letters_and_nothing_else() {
        check(Lowercase, b"", b"");
        check(Lowercase, b"plain @[`{ text", b"plain @[`{ text");
        check(Lowercase, b"@AZ[ \xc3\x84\0", b"@az[ \xc3\x84\0");
        check(Uppercase, b"`az{ \xc3\xa4\0", b"`AZ{ \xc3\xa4\0");
        check(Uppercase, b"PLAIN", b"PLAIN");
        check(
            Lowercase,
            b"a value longer than one block, with its capital at the enD",
            b"a value longer than one block, with its capital at the end",
        );
    }
}
