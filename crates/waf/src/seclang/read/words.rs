//! A directive cut into words, as Apache's configuration cuts it.
//!
//! White space parts words. A word in double or single quotes holds what is between them, white
//! space too; `\"` (or `\'`) stands for the quote itself and every other backslash for itself.
//! A quote that begins a continued line begins a word, as the indentation before it parted them.

use super::passage::{Passage, Snippet};
use crate::seclang::diagnostic::{Code, Diagnostic};

/// A word of a directive, without its quotes.
#[derive(Debug)]
pub(super) struct Word {
    passage: Passage,
}

impl Word {
    pub(super) fn text(&self) -> Snippet<'_> {
        self.passage.whole()
    }
}

/// The words of a directive.
pub(super) struct Words<'p> {
    rest: Snippet<'p>,
}

impl<'p> Words<'p> {
    pub(super) fn new(directive: Snippet<'p>) -> Self {
        Self { rest: directive }
    }

    /// What has not been read yet, without the white space before it.
    pub(super) fn rest(&self) -> Snippet<'p> {
        self.rest.trim_start()
    }

    /// The next word; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Word>, Diagnostic> {
        self.rest = self.rest.trim_start();
        match self.rest.bytes() {
            [] => Ok(None),
            [quote @ (b'"' | b'\''), ..] => self.quoted(*quote).map(Some),
            _ => {
                let end = plain_end(self.rest);
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                Ok(Some(Word { passage: word.copy() }))
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Word, Diagnostic> {
        let inside = self.rest.from(1);
        let Some(end) = inside.closing(quote) else {
            let kind = if quote == b'"' { "double" } else { "single" };
            let message = format!("the {kind} quote that opens here is never closed");
            return Err(Diagnostic::new(self.rest.location(), Code::Syntax, message)
                .hint("a directive goes on in the next line only behind a backslash"));
        };
        let (word, rest) = (inside.slice(0..end), inside.from(end + 1));
        let parted = match rest.bytes() {
            [] => true,
            [b'"' | b'\'', ..] => rest.begins_stretch(0),
            [byte, ..] => byte.is_ascii_whitespace(),
        };
        if !parted {
            let message =
                format!("expected white space behind the closing quote, found {}", rest.shown());
            return Err(Diagnostic::new(rest.location(), Code::Syntax, message)
                .hint("inside of double quotes, a double quote is written `\\\"`"));
        }
        self.rest = rest;
        Ok(Word { passage: word.unescaped(quote) })
    }
}

/// Where a word without quotes ends. A selector or value in single quotes (`ARGS:'a b'`) belongs to
/// it, if it is closed.
fn plain_end(text: Snippet<'_>) -> usize {
    let bytes = text.bytes();
    let mut at = 0;
    while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
        if matches!(bytes[at], b'"' | b'\'') && at > 0 && text.begins_stretch(at) {
            break;
        }
        if bytes[at..].starts_with(b":'")
            && let Some(end) = memchr::memchr(b'\'', &bytes[at + 2..])
        {
            at += 2 + end;
        }
        at += 1;
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let mut passage = Passage::new(&Arc::from("f"));
        passage.push(text.as_bytes(), 1, 1);
        let mut words = Words::new(passage.whole());
        let mut found = Vec::new();
        let result = loop {
            match words.next() {
                Ok(Some(word)) => found.push(String::from_utf8_lossy(word.text().bytes()).into()),
                Ok(None) => break Ok(found),
                Err(diagnostic) => break Err(diagnostic.to_string()),
            }
        };
        let expected = expected
            .map(|words| words.iter().map(ToString::to_string).collect::<Vec<String>>())
            .map_err(ToString::to_string);
        assert_eq!(result, expected, "{text}");
    }

    #[test]
    fn words_are_cut_at_white_space_and_quotes() {
        check("", Ok(&[]));
        check("  a \t b ", Ok(&["a", "b"]));
        check(r#"a "b c" 'd "e' f"#, Ok(&["a", "b c", "d \"e", "f"]));
        check(r#""@rx \"\s\\" x"#, Ok(&[r#"@rx "\s\\"#, "x"]));
        check(r"'it\'s'", Ok(&["it's"]));
        check(r#""" ''"#, Ok(&["", ""]));
        check("ARGS:'/a b/'|ARGS:c 'x'", Ok(&["ARGS:'/a b/'|ARGS:c", "x"]));
        check("a:'b c", Ok(&["a:'b", "c"]));
        check(r#"a"b c"d"#, Ok(&["a\"b", "c\"d"]));
    }

    #[test]
    fn open_quotes_are_found() {
        let hint = "; a directive goes on in the next line only behind a backslash";
        check(
            "a \"b",
            Err(&format!("f:1:3: [syntax] the double quote that opens here is never closed{hint}")),
        );
        check(
            "'",
            Err(&format!("f:1:1: [syntax] the single quote that opens here is never closed{hint}")),
        );
        check(
            r#""a"b"#,
            Err("f:1:4: [syntax] expected white space behind the closing quote, found `b`; \
                 inside of double quotes, a double quote is written `\\\"`"),
        );
    }
}
