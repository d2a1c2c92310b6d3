//! Directives as lines: comments gone, continued lines joined.
//!
//! A line that ends in a backslash goes on in the next one, whose indentation is layout and not
//! text. A comment may stand between continued lines; one that itself ends in a backslash takes the
//! next line with it, as ModSecurity has it. Line ends are LF or CRLF; a UTF-8 byte order mark is
//! skipped; no other encoding is looked at.

use std::sync::Arc;

use super::passage::Passage;
use crate::seclang::diagnostic::Report;
use crate::seclang::location::Location;

/// The lines of a file.
pub(super) struct Lines<'t> {
    file: Arc<str>,
    rest: &'t [u8],
    /// The number of the line at the beginning of `rest`.
    line: u32,
}

/// One line of the file, without its end.
struct Line<'t> {
    number: u32,
    text: &'t [u8],
    /// Whether a backslash continued it; the backslash is gone.
    continued: bool,
}

impl Line<'_> {
    fn indentation(&self) -> usize {
        self.text.len() - self.text.trim_ascii_start().len()
    }

    fn is_comment(&self) -> bool {
        self.text.get(self.indentation()) == Some(&b'#')
    }

    fn looks_like_a_directive(&self) -> bool {
        let text = self.text.trim_ascii_start();
        let begins = |word: &str| {
            text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
        };
        begins("Sec") || begins("Include")
    }

    fn push_to(&self, passage: &mut Passage) {
        let indentation = self.indentation();
        let column = u32::try_from(indentation + 1).unwrap_or(u32::MAX);
        passage.push(&self.text[indentation..], self.number, column);
    }
}

impl<'t> Lines<'t> {
    pub(super) fn new(file: Arc<str>, text: &'t [u8]) -> Self {
        let rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        Self { file, rest, line: 1 }
    }

    /// The next directive, which is never empty and begins and ends with something else than white
    /// space.
    pub(super) fn next(&mut self, report: &mut Report) -> Option<Passage> {
        loop {
            let line = self.line()?;
            if line.is_comment() {
                self.skip_comment(&line, report);
                continue;
            }
            let mut passage = Passage::new(&self.file);
            line.push_to(&mut passage);
            let mut continued = line.continued;
            while continued {
                let Some(next) = self.line() else { break };
                // A comment between continued lines does not end them, whatever its own end.
                if next.is_comment() {
                    continue;
                }
                next.push_to(&mut passage);
                continued = next.continued;
            }
            if passage.whole().bytes().ends_with(b"`") {
                self.skip_block(&passage);
            }
            if !passage.whole().trim().is_empty() {
                return Some(passage);
            }
        }
    }

    fn skip_comment(&mut self, comment: &Line<'_>, report: &mut Report) {
        let mut continued = comment.continued;
        while continued {
            let Some(line) = self.line() else { break };
            if line.looks_like_a_directive() {
                let column = u32::try_from(line.indentation() + 1).unwrap_or(u32::MAX);
                let location = Location { file: Arc::clone(&self.file), line: line.number, column };
                let message =
                    "this directive belongs to the comment above, which ends in a backslash";
                report.note(location, message);
            }
            continued = line.continued;
        }
    }

    /// Coraza's data sets are written between backticks, over several lines. The directive itself is
    /// refused; its data must not be taken for directives.
    fn skip_block(&mut self, directive: &Passage) {
        let bytes = directive.whole().bytes();
        if bytes.get(..10).is_some_and(|it| it.eq_ignore_ascii_case(b"SecDataset")) {
            while self.line().is_some_and(|line| !line.text.trim_ascii().starts_with(b"`")) {}
        }
    }

    fn line(&mut self) -> Option<Line<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        let (text, behind) = self.rest.split_at(end);
        self.rest = behind.get(1..).unwrap_or_default();
        let number = self.line;
        self.line = self.line.saturating_add(1);
        // White space behind the backslash is invisible, so it does not undo it; nor does the CR of
        // a CRLF. Two backslashes are an escaped one.
        let bare = text.trim_ascii_end();
        let backslashes = bare.iter().rev().take_while(|&&byte| byte == b'\\').count();
        let continued = backslashes % 2 == 1;
        let text = if continued { &bare[..bare.len() - 1] } else { bare };
        Some(Line { number, text, continued })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: &[(u32, &[u8])]) -> Vec<String> {
        let mut report = Report::default();
        let mut lines = Lines::new(Arc::from("f"), text);
        let mut found = Vec::new();
        while let Some(passage) = lines.next(&mut report) {
            found.push((passage.whole().location().line, passage.whole().bytes().to_vec()));
        }
        let expected: Vec<_> = expected.iter().map(|&(line, text)| (line, text.to_vec())).collect();
        assert_eq!(found, expected, "{}", text.escape_ascii());
        report.finish(&[]).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_are_joined_and_comments_go() {
        let none = Vec::<String>::new();
        assert_eq!(check(b"", &[]), none);
        assert_eq!(check(b"\n \n\t\n", &[]), none);
        assert_eq!(check(b"a\nb", &[(1, b"a"), (2, b"b")]), none);
        assert_eq!(check(b"a \\\n   b\\\nc\nd", &[(1, b"a bc"), (4, b"d")]), none);
        assert_eq!(check(b"# x\n  # y\na # z\n", &[(3, b"a # z")]), none);
        assert_eq!(check(b"a \\\n# no\n#no \\\n b", &[(1, b"a b")]), none);
        assert_eq!(check(b"a \\", &[(1, b"a ")]), none);
        assert_eq!(check(b"\\\n\\\na", &[(3, b"a")]), none);
        assert_eq!(check(b"\\\n\nb", &[(3, b"b")]), none);
    }

    #[test]
    fn line_ends_and_marks_of_other_systems_do_no_harm() {
        assert!(check(b"\xef\xbb\xbfa \\\r\n b\r\nc\r\n", &[(1, b"a b"), (3, b"c")]).is_empty());
        assert!(check(b"a \\  \n b", &[(1, b"a b")]).is_empty());
        assert!(check(b"a\\\\\nb", &[(1, b"a\\\\"), (2, b"b")]).is_empty());
        assert!(check(b"\xff\xfea", &[(1, b"\xff\xfea")]).is_empty());
    }

    #[test]
    fn a_comment_that_is_continued_takes_a_line_with_it() {
        assert!(check(b"#SecAction \\\n  \"id:1\"\nb", &[(3, b"b")]).is_empty());
        assert_eq!(
            check(b"# note \\\n  SecRuleEngine On\nb", &[(3, b"b")]),
            ["f:2:3: this directive belongs to the comment above, which ends in a backslash"]
        );
    }

    #[test]
    fn a_data_set_is_one_directive() {
        assert!(
            check(b"SecDataset x `\na\n# b\n`\nc", &[(1, b"SecDataset x `"), (5, b"c")]).is_empty()
        );
        assert!(check(b"secdataset x `\na", &[(1, b"secdataset x `")]).is_empty());
    }
}
