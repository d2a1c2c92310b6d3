//! Names and paths as operators write them: text in which `*` stands for any run of bytes.

/// A text to compare with, whose `*`s match anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Box<[u8]>,
    case: Case,
}

/// Whether capitals count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// They do: `a` is not `A`.
    Sensitive,
    /// They do not; only ASCII letters have them.
    Blind,
}

impl Pattern {
    /// A pattern; without a `*` it matches itself alone.
    pub fn new(text: &[u8], case: Case) -> Pattern {
        Pattern { text: text.into(), case }
    }

    /// Its text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the whole of `subject` matches. Takes time in proportion to the product of the
    /// lengths at worst, and to their sum in practice.
    pub fn matches(&self, subject: &[u8]) -> bool {
        let (mut pattern, mut rest) = (&*self.text, subject);
        // Where the last star stood, and what it has not taken yet: it takes one byte more each time
        // what follows it does not match. Earlier stars need no second try.
        let mut star: Option<(&[u8], &[u8])> = None;
        loop {
            match (pattern, rest) {
                ([], []) => return true,
                ([b'*', behind @ ..], _) => {
                    star = Some((behind, rest));
                    pattern = behind;
                    continue;
                }
                ([one, behind @ ..], [other, left @ ..]) if self.same(*one, *other) => {
                    (pattern, rest) = (behind, left);
                    continue;
                }
                _ => {}
            }
            match star {
                Some((behind, [_, left @ ..])) => {
                    star = Some((behind, left));
                    (pattern, rest) = (behind, left);
                }
                Some((_, [])) | None => return false,
            }
        }
    }

    fn same(&self, one: u8, other: u8) -> bool {
        match self.case {
            Case::Sensitive => one == other,
            Case::Blind => one.eq_ignore_ascii_case(&other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_anything() {
        let check = |pattern: &str, subject: &str, expected: bool| {
            let pattern = Pattern::new(pattern.as_bytes(), Case::Sensitive);
            assert_eq!(pattern.matches(subject.as_bytes()), expected, "{pattern:?} {subject}");
        };
        check("", "", true);
        check("", "a", false);
        check("*", "", true);
        check("*", "abc", true);
        check("abc", "abc", true);
        check("abc", "ABC", false);
        check("a*", "abc", true);
        check("a*", "ba", false);
        check("*c", "abc", true);
        check("*c", "abcd", false);
        check("a*c", "ac", true);
        check("a*c", "abcbc", true);
        check("a*b*c", "a1b2b3c", true);
        check("a*b*c", "a1c2b", false);
        check("**a**", "bab", true);
        check("/admin/*", "/admin/", true);
        check("/admin/*", "/admin", false);
        check(&"a*".repeat(20), &"a".repeat(40), true);
        check(&format!("{}b", "a*".repeat(20)), &"a".repeat(2000), false);
    }

    #[test]
    fn case_counts_where_it_does() {
        let pattern = Pattern::new(b"X-Debug*", Case::Blind);
        assert!(pattern.matches(b"x-debug-one"));
        assert!(!pattern.matches(b"x-debu"));
    }
}
