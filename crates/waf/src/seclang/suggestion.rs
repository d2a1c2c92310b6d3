//! "Did you mean": the known name that was probably meant.

/// The candidate nearest to `word`, if one is so near that a slip of the fingers explains it: one
/// letter in three may be missing, added, wrong or swapped.
pub(super) fn nearest<'c>(
    word: &[u8],
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    /// No name is longer; what is longer was not meant to be one, and comparing it costs time.
    const BYTES_MAX: usize = 64;
    if word.len() > BYTES_MAX {
        return None;
    }
    let word = String::from_utf8_lossy(word).to_ascii_lowercase();
    let distance_max = word.len() / 3;
    let (distance, candidate) = candidates
        .into_iter()
        // The distance is at least the difference of lengths, which costs nothing to know.
        .filter(|it| distance_max > 0 && it.len().abs_diff(word.len()) <= distance_max)
        .map(|it| (strsim::osa_distance(&word, &it.to_ascii_lowercase()), it))
        .min_by_key(|&(distance, _)| distance)?;
    (distance <= distance_max).then_some(candidate)
}

/// The hint that names it.
pub(super) fn did_you_mean<'c>(
    word: &[u8],
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let check = |word: &str, expected: Option<&str>| {
            let names = ["ARGS", "ARGS_NAMES", "REQUEST_URI", "TX"];
            assert_eq!(nearest(word.as_bytes(), names), expected, "{word}");
        };
        check("args", Some("ARGS"));
        check("ARG", Some("ARGS"));
        check("AGRS", Some("ARGS"));
        check("ARGS_NAME", Some("ARGS_NAMES"));
        check("REQUESTURL", Some("REQUEST_URI"));
        check("TY", None);
        check("RESPONSE", None);
        check("", None);
        check(&"X".repeat(1_000), None);
    }
}
