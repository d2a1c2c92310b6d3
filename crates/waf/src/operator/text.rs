//! `@streq`, `@contains`, `@containsWord`, `@within`, `@beginsWith`, `@endsWith` and `@strmatch`:
//! comparisons of text, byte by byte.

use std::ops::Range;

use memchr::memmem;

/// How a value relates to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `@streq`: it equals it.
    Equal,
    /// `@contains` and `@strmatch`, which mean the same: the parameter occurs in it.
    Containing,
    /// `@containsWord`: the parameter occurs in it with no letter, digit or underscore beside it.
    ///
    /// So it is in version 2 of ModSecurity; in version 3 only letters count.
    ContainingWord,
    /// `@within`: it occurs in the parameter.
    Within,
    /// `@beginsWith`: the parameter is its beginning.
    Beginning,
    /// `@endsWith`: the parameter is its end.
    Ending,
}

impl Relation {
    /// The part of `value` that matches, if it relates so to `parameter`.
    ///
    /// Empty text occurs everywhere: an empty parameter is in every value, and an empty value is
    /// within every parameter. The time is linear in the value; for [`Self::ContainingWord`], in the
    /// value times the parameter, which comes from a rule.
    pub fn find(self, value: &[u8], parameter: &[u8]) -> Option<Range<usize>> {
        let start = match self {
            Self::Equal => (value == parameter).then_some(0),
            Self::Containing => memmem::find(value, parameter),
            Self::ContainingWord => word(value, parameter),
            Self::Within => return memmem::find(parameter, value).map(|_| 0..value.len()),
            Self::Beginning => value.starts_with(parameter).then_some(0),
            Self::Ending => value.ends_with(parameter).then(|| value.len() - parameter.len()),
        }?;
        Some(start..start + parameter.len())
    }
}

/// Where `word` stands alone in `value`.
fn word(value: &[u8], word: &[u8]) -> Option<usize> {
    if word.is_empty() {
        return Some(0);
    }
    let is_beside_word =
        |byte: Option<&u8>| byte.is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let finder = memmem::Finder::new(word);
    let mut from = 0;
    loop {
        let start = from + finder.find(value.get(from..)?)?;
        let before = start.checked_sub(1).and_then(|before| value.get(before));
        if !is_beside_word(before) && !is_beside_word(value.get(start + word.len())) {
            return Some(start);
        }
        from = start + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Relation, Relation::*};

    fn check(relation: Relation, value: &str, parameter: &str, expected: Option<&str>) {
        let found = relation.find(value.as_bytes(), parameter.as_bytes());
        let found = found.map(|range| &value[range]);
        assert_eq!(found, expected, "{value:?} {relation:?} {parameter:?}");
    }

    #[test]
    fn whole_text_and_its_ends() {
        check(Equal, "post", "post", Some("post"));
        check(Equal, "post", "POST", None);
        check(Equal, "", "", Some(""));
        check(Beginning, "/admin/x", "/admin", Some("/admin"));
        check(Beginning, "x/admin", "/admin", None);
        check(Beginning, "x", "", Some(""));
        check(Ending, "shell.php", ".php", Some(".php"));
        check(Ending, ".php5", ".php", None);
        check(Ending, "p", ".php", None);
    }

    #[test]
    fn parts_of_text() {
        check(Containing, "a<script>b", "<script>", Some("<script>"));
        check(Containing, "a<scrip", "<script>", None);
        check(Containing, "", "", Some(""));
        check(Within, "GET", "HEAD GET POST", Some("GET"));
        check(Within, "PUT", "HEAD GET POST", None);
        check(Within, "", "GET", Some(""));
        check(Within, "GET", "", None);
    }

    #[test]
    fn words_stand_alone() {
        check(ContainingWord, "drop table", "drop", Some("drop"));
        check(ContainingWord, "a drop of", "drop", Some("drop"));
        check(ContainingWord, "(drop)", "drop", Some("drop"));
        check(ContainingWord, "raindrop drops drop_ drop1", "drop", None);
        check(ContainingWord, "dropdrop drop", "drop", Some("drop"));
        check(ContainingWord, "xa a a", "a a", Some("a a"));
        check(ContainingWord, "drop", "", Some(""));
        check(ContainingWord, "", "drop", None);
    }
}
