//! `@pm` and `@pmFromFile`: whether one of many phrases occurs in a value, in any mixture of cases.

use std::{fmt, ops::Range};

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::Fault;
use crate::transformation::hex;

/// The phrases of one rule, found in one pass whatever their number.
#[derive(Clone)]
pub struct Phrases {
    automaton: AhoCorasick,
    list: Vec<Vec<u8>>,
}

/// A phrase that occurs in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which of [`Phrases::phrases`].
    pub phrase: usize,
    /// Where in the value, which may be in other cases there.
    pub range: Range<usize>,
}

impl Phrases {
    /// The most bytes that all phrases of a rule may have together. The automaton needs some tens of
    /// bytes for each.
    pub const BYTES_MAX: usize = 16 << 20;

    /// Reads the argument of `@pm`: phrases parted by white space.
    ///
    /// The whole may stand in double quotes, which go. A backslash takes `:`, `;`, `"` or a backslash
    /// for itself, and `|41 42|` writes bytes in hexadecimal; white space written so parts phrases
    /// too. Where an escape or a digit is none of these, ModSecurity takes the whole argument as it
    /// stands, and so it is here.
    pub fn parse(argument: &[u8]) -> Result<Self, Fault> {
        let trimmed = argument.trim_ascii_start();
        let content = match trimmed {
            [b'"', content @ .., b'"'] => content,
            _ => trimmed,
        };
        let unescaped = unescape(content);
        let text = unescaped.as_deref().unwrap_or(argument);
        let phrases = text.split(u8::is_ascii_whitespace).filter(|phrase| !phrase.is_empty());
        Self::new(phrases.map(<[u8]>::to_vec).collect())
    }

    /// Reads the contents of the files that `@pmFromFile` names: a phrase a line, which means itself
    /// byte by byte. White space around it goes; empty lines and those that begin with `#` say
    /// nothing.
    ///
    /// Version 3 of ModSecurity keeps the white space; version 2 removes it, but reads quotes and
    /// escapes as in `@pm`, with which a phrase such as `\0` could not be written.
    pub fn read<'a>(contents: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, Fault> {
        let lines = contents.into_iter().flat_map(|content| content.split(|&byte| byte == b'\n'));
        let phrases = lines
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        Self::new(phrases.map(<[u8]>::to_vec).collect())
    }

    fn new(list: Vec<Vec<u8>>) -> Result<Self, Fault> {
        if list.is_empty() {
            return Err(Fault::new("there is no phrase to look for"));
        }
        if list.iter().map(Vec::len).sum::<usize>() > Self::BYTES_MAX {
            let megabytes = Self::BYTES_MAX >> 20;
            return Err(Fault::new(format!("the phrases are longer than {megabytes} MB together"))
                .hint("spread them over several rules"));
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&list)
            .map_err(|error| Fault::new(format!("the phrases cannot be compiled: {error}")))?;
        Ok(Self { automaton, list })
    }

    /// The phrase whose end comes first in `value`, as ModSecurity reports it.
    pub fn find(&self, value: &[u8]) -> Option<Found> {
        let found = self.automaton.find(Input::new(value))?;
        Some(Found { phrase: found.pattern().as_usize(), range: found.range() })
    }

    /// The phrases as written, each not empty, for those who look for the phrases of many rules at
    /// once.
    pub fn phrases(&self) -> &[Vec<u8>] {
        &self.list
    }

    /// How many bytes of memory the automaton takes.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.memory_usage()
    }
}

/// The content of a `@pm` argument with its escapes resolved; none if they are not well-formed.
fn unescape(content: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(content.len());
    let mut parts = content.iter().copied();
    while let Some(byte) = parts.next() {
        match byte {
            b'\\' => match parts.next()? {
                byte @ (b':' | b';' | b'"' | b'\\') => text.push(byte),
                _ => return None,
            },
            b'|' => {
                let digits = parts.by_ref().take_while(|&byte| byte != b'|');
                let digits: Vec<u8> = digits.filter(|&byte| byte != b' ').collect();
                for pair in digits.chunks(2) {
                    let &[high, low] = pair else { return None };
                    text.push(hex::digit(high)? << 4 | hex::digit(low)?);
                }
            }
            _ => text.push(byte),
        }
    }
    Some(text)
}

impl fmt::Debug for Phrases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phrases = self.list.iter().map(|phrase| phrase.escape_ascii().to_string());
        f.debug_list().entries(phrases).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_argument(argument: &str, expected: &[&str]) {
        let phrases = Phrases::parse(argument.as_bytes()).expect("phrases");
        let expected: Vec<_> = expected.iter().map(|phrase| phrase.as_bytes().to_vec()).collect();
        assert_eq!(phrases.phrases(), expected, "{argument:?}");
    }

    #[test]
    fn arguments_are_parted_by_white_space() {
        check_argument("one", &["one"]);
        check_argument("  one \t two\nthree ", &["one", "two", "three"]);
        check_argument("?> ( ) a|41|b", &["?>", "(", ")", "aAb"]);
    }

    #[test]
    fn arguments_may_be_quoted_and_escaped() {
        check_argument("\"one two\"", &["one", "two"]);
        check_argument("\"one\" two", &["\"one\"", "two"]);
        check_argument(r#"a\:b\;c\"d\\e"#, &[r#"a:b;c"d\e"#]);
        check_argument("|41 42|c |6162|", &["ABc", "ab"]);
        check_argument("a|20|b", &["a", "b"]);
    }

    #[test]
    fn arguments_with_faulty_escapes_mean_themselves() {
        check_argument(r"C:\Windows x", &[r"C:\Windows", "x"]);
        check_argument("a||b |4g| |123|", &["a||b", "|4g|", "|123|"]);
        check_argument("end\\", &["end\\"]);
    }

    #[test]
    fn files_have_a_phrase_a_line() {
        let first = b"# shells\n\nbash\r\n  two words  \n   # not this\n";
        let second = br"C:\|41|";
        let phrases = Phrases::read([&first[..], &second[..]]).expect("phrases");
        assert_eq!(phrases.phrases(), [&b"bash"[..], b"two words", br"C:\|41|"]);
    }

    #[test]
    fn nothing_to_look_for_is_a_fault() {
        assert!(Phrases::parse(b"  ").is_err());
        assert!(Phrases::parse(b"\"\"").is_err());
        assert!(Phrases::read([&b"# only this\n"[..]]).is_err());
        assert!(Phrases::read([]).is_err());
    }

    #[test]
    fn the_first_phrase_to_end_is_found_in_any_case() {
        let phrases = Phrases::parse("union select sel Ärger".as_bytes()).expect("phrases");
        let check = |value: &str, expected: Option<(usize, Range<usize>)>| {
            let found = phrases.find(value.as_bytes());
            assert_eq!(found, expected.map(|(phrase, range)| Found { phrase, range }), "{value:?}");
        };
        check("", None);
        check("unio n", None);
        check("a UNION b", Some((0, 2..7)));
        check("Select union", Some((2, 0..3)));
        check("ÄRGER", Some((3, 0..6)));
        check("ärger", None);
    }
}
