//! Guessing what a misspelt name was meant to be.

/// The candidate nearest to `word`, if it is near enough to be worth saying: at most a third of the
/// word differs, compared without regard to case, `-` or `_`.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = fold(word);
    let bound = (plain.len().max(3) / 3).min(4);
    candidates
        .into_iter()
        .map(|candidate| (distance(&plain, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= bound && *candidate != word)
        // The name breaks ties, so that a message does not depend on the order of a table.
        .min_by_key(|(distance, candidate)| (*distance, *candidate))
        .map(|(_, candidate)| candidate)
}

/// `did you mean ..?`, or nothing.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean `{name}`?"))
}

/// A list of names as a sentence shows it: `` `a`, `b` or `c` ``.
pub(crate) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

fn fold(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Damerau-Levenshtein distance over adjacent transpositions (optimal string alignment): swapped
/// letters are the commonest slip and count as one.
fn distance(a: &[char], b: &[char]) -> usize {
    /// Longer words are not compared: nobody misspells one of them into another.
    const LONGEST: usize = 80;
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (above[j + 1] + 1).min(row[j] + 1).min(above[j] + usize::from(x != y));
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let check = |word: &str, expected: Option<&str>| {
            let names = ["upstream", "host", "hosts", "certificates", "body_max", "path"];
            assert_eq!(nearest(word, names), expected, "{word}");
        };
        check("upstrem", Some("upstream"));
        check("usptream", Some("upstream"));
        check("Body-Max", Some("body_max"));
        check("bodymax", Some("body_max"));
        check("certificate", Some("certificates"));
        check("hots", Some("host"));
        check("pth", Some("path"));
        check("color", None);
        check("x", None);
        check("", None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
