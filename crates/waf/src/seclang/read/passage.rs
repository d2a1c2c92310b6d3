//! Text that remembers where each of its bytes stands.
//!
//! Joining continued lines and taking the backslashes out of quoted words moves bytes; a diagnostic
//! must still name the column that an editor shows. So text is kept in passages, which know the place
//! at which each unmoved stretch begins, and is cut into snippets, which know their passage.

use std::ops::Range;
use std::sync::Arc;

use crate::seclang::location::{Located, Location};

/// Bytes put together from stretches of one file.
#[derive(Debug)]
pub(super) struct Passage {
    file: Arc<str>,
    bytes: Vec<u8>,
    /// Where stretches begin, in ascending order of `offset`; the first one at 0.
    stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    offset: usize,
    line: u32,
    column: u32,
}

impl Passage {
    pub(super) fn new(file: &Arc<str>) -> Self {
        Self { file: Arc::clone(file), bytes: Vec::new(), stretches: Vec::new() }
    }

    /// Adds bytes that stand at this line and column of the file.
    pub(super) fn push(&mut self, bytes: &[u8], line: u32, column: u32) {
        self.stretches.push(Stretch { offset: self.bytes.len(), line, column });
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn whole(&self) -> Snippet<'_> {
        Snippet { passage: self, start: 0, end: self.bytes.len() }
    }

    fn location(&self, offset: usize) -> Location {
        let behind = self.stretches.partition_point(|stretch| stretch.offset <= offset);
        let (line, column) = match behind.checked_sub(1).map(|index| self.stretches[index]) {
            Some(Stretch { offset: start, line, column }) => {
                (line, column.saturating_add(u32::try_from(offset - start).unwrap_or(u32::MAX)))
            }
            None => (1, 1),
        };
        Location { file: Arc::clone(&self.file), line, column }
    }
}

/// A part of a passage. Offsets in its methods count from its own beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snippet<'p> {
    passage: &'p Passage,
    start: usize,
    end: usize,
}

impl<'p> Snippet<'p> {
    pub(super) fn bytes(self) -> &'p [u8] {
        &self.passage.bytes[self.start..self.end]
    }

    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Where it begins.
    pub(super) fn location(self) -> Location {
        self.at(0)
    }

    /// Where its byte at `offset` stands, or would stand.
    pub(super) fn at(self, offset: usize) -> Location {
        self.passage.location(self.start + offset)
    }

    pub(super) fn located<T>(self, value: T) -> Located<T> {
        Located { location: self.location(), value }
    }

    /// Whether its byte at `offset` is the first one of a stretch: in a directive, of a line.
    pub(super) fn begins_stretch(self, offset: usize) -> bool {
        let at = self.start + offset;
        self.passage.stretches.binary_search_by_key(&at, |stretch| stretch.offset).is_ok()
    }

    /// The bytes in `range`, cut to what there is.
    pub(super) fn slice(self, range: Range<usize>) -> Self {
        let start = (self.start + range.start).min(self.end);
        Self { start, end: (self.start + range.end).clamp(start, self.end), ..self }
    }

    /// What is before and what is from `offset` on.
    pub(super) fn split_at(self, offset: usize) -> (Self, Self) {
        (self.slice(0..offset), self.from(offset))
    }

    pub(super) fn from(self, offset: usize) -> Self {
        self.slice(offset..self.len())
    }

    /// What is before and behind the first byte that is `separator`.
    pub(super) fn split_once(self, separator: u8) -> Option<(Self, Self)> {
        let at = memchr::memchr(separator, self.bytes())?;
        Some((self.slice(0..at), self.from(at + 1)))
    }

    pub(super) fn trim_start(self) -> Self {
        self.from(self.len() - self.bytes().trim_ascii_start().len())
    }

    pub(super) fn trim(self) -> Self {
        let cut = self.trim_start();
        cut.slice(0..cut.bytes().trim_ascii_end().len())
    }

    /// Without the prefix, if it begins so.
    pub(super) fn strip_prefix(self, prefix: u8) -> Option<Self> {
        (self.bytes().first() == Some(&prefix)).then(|| self.from(1))
    }

    /// The non-empty parts between bytes for which `separates` holds.
    pub(super) fn split(self, separates: fn(u8) -> bool) -> impl Iterator<Item = Self> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let start = rest.bytes().iter().position(|&byte| !separates(byte))?;
            rest = rest.from(start);
            let end = rest.bytes().iter().position(|&byte| separates(byte));
            let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
            rest = behind;
            Some(part)
        })
    }

    /// Where the quoted stretch that begins at this snippet's beginning ends: the offset of the first
    /// `quote` that no backslash escapes. A backslash escapes the byte behind it.
    pub(super) fn closing(self, quote: u8) -> Option<usize> {
        let bytes = self.bytes();
        let mut from = 0;
        while let Some(found) = memchr::memchr2(quote, b'\\', &bytes[from..]) {
            let at = from + found;
            if bytes[at] == quote {
                return Some(at);
            }
            from = (at + 2).min(bytes.len());
        }
        None
    }

    /// A copy without the backslashes that escape `quote`. All other backslashes stay, so that a
    /// pattern arrives as it was written.
    pub(super) fn unescaped(self, quote: u8) -> Passage {
        let mut passage = Passage::new(&self.passage.file);
        let mut start = 0;
        let bytes = self.bytes();
        let mut from = 0;
        while let Some(found) = memchr::memchr(b'\\', &bytes[from..]) {
            let at = from + found;
            if bytes.get(at + 1) == Some(&quote) {
                self.slice(start..at).copy_to(&mut passage);
                start = at + 1;
            }
            from = (at + 2).min(bytes.len());
        }
        self.from(start).copy_to(&mut passage);
        passage
    }

    /// A copy that stands alone.
    pub(super) fn copy(self) -> Passage {
        let mut passage = Passage::new(&self.passage.file);
        self.copy_to(&mut passage);
        passage
    }

    /// Adds a copy to `passage`, with the places of all its stretches.
    fn copy_to(self, passage: &mut Passage) {
        let mut rest = self;
        let stretches = &self.passage.stretches;
        let first = stretches.partition_point(|stretch| stretch.offset <= self.start);
        for next in stretches[first..].iter().take_while(|stretch| stretch.offset < self.end) {
            let (part, behind) = rest.split_at(next.offset - rest.start);
            let Location { line, column, .. } = part.location();
            passage.push(part.bytes(), line, column);
            rest = behind;
        }
        let Location { line, column, .. } = rest.location();
        passage.push(rest.bytes(), line, column);
    }

    /// The number that it is in decimal.
    pub(super) fn number(self) -> Option<u64> {
        let digits = std::str::from_utf8(self.bytes()).ok()?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    /// It in backticks for a message, cut if it is long.
    pub(super) fn shown(self) -> String {
        shown(self.bytes())
    }
}

/// Bytes in backticks for a message, cut if there are many, with what is not text escaped.
pub(in crate::seclang) fn shown(bytes: &[u8]) -> String {
    const CHARS_MAX: usize = 60;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * CHARS_MAX)]);
    let clean = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let mut short: String = text.chars().take(CHARS_MAX).map(clean).collect();
    if short.len() < bytes.len() && text.chars().count() > CHARS_MAX {
        short.push('…');
    }
    format!("`{short}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Passage {
        let mut passage = Passage::new(&Arc::from("a.conf"));
        passage.push(b"ab ", 1, 1);
        passage.push(b"c\\\"d", 2, 5);
        passage
    }

    #[test]
    fn each_byte_knows_its_place() {
        let passage = sample();
        let place = |offset| {
            let Location { line, column, .. } = passage.whole().at(offset);
            (line, column)
        };
        assert_eq!([0, 2, 3, 6, 7].map(place), [(1, 1), (1, 3), (2, 5), (2, 8), (2, 9)]);
    }

    #[test]
    fn a_copy_without_escapes_keeps_the_places() {
        let passage = sample();
        let copy = passage.whole().from(1).unescaped(b'"');
        assert_eq!(copy.whole().bytes(), b"b c\"d");
        let columns: Vec<_> = (0..6).map(|offset| copy.whole().at(offset).column).collect();
        assert_eq!(columns, [2, 3, 5, 7, 8, 9]);
    }

    #[test]
    fn a_quote_behind_an_odd_number_of_backslashes_is_escaped() {
        let check = |text: &[u8], closing: Option<usize>| {
            let mut passage = Passage::new(&Arc::from(""));
            passage.push(text, 1, 1);
            assert_eq!(passage.whole().closing(b'"'), closing, "{}", text.escape_ascii());
        };
        check(b"", None);
        check(b"\"", Some(0));
        check(b"a\\\"", None);
        check(b"a\\\\\"", Some(3));
        check(b"a\\\\\\\"b\" \"", Some(6));
        check(b"a\\", None);
    }

    #[test]
    fn only_the_backslash_before_the_quote_goes() {
        let check = |text: &[u8], expected: &[u8]| {
            let mut passage = Passage::new(&Arc::from(""));
            passage.push(text, 1, 1);
            assert_eq!(passage.whole().unescaped(b'\'').whole().bytes(), expected);
        };
        check(b"", b"");
        check(b"\\s\\\\d", b"\\s\\\\d");
        check(b"it\\'s", b"it's");
        check(b"\\\\\\'", b"\\\\'");
        check(b"\\\"", b"\\\"");
    }

    #[test]
    fn long_words_are_cut_and_controls_hidden() {
        assert_eq!(shown(b"a\x00b\xff"), "`a\u{fffd}b\u{fffd}`");
        assert_eq!(shown(&[b'x'; 60]), format!("`{}`", "x".repeat(60)));
        assert_eq!(shown(&[b'x'; 61]), format!("`{}…`", "x".repeat(60)));
    }
}
