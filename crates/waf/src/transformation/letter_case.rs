//! `lowercase` and `uppercase`: ASCII letters only, as in the C locale.

use super::{Outcome, rewrite::first};

/// Makes ASCII letters lower case.
pub(super) fn lowercase(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first(input, |byte| byte.is_ascii_uppercase()) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    output[start..].make_ascii_lowercase();
    Outcome::Written
}

/// Makes ASCII letters upper case.
pub(super) fn uppercase(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first(input, |byte| byte.is_ascii_lowercase()) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    output[start..].make_ascii_uppercase();
    Outcome::Written
}
