//! The texts a configuration is read from, and places in them.
//!
//! A [`Span`] is four small numbers, so that every value of a large configuration can carry one.
//! Lines and columns are only counted when a place is shown to somebody.

use std::path::{Path, PathBuf};

/// A stretch of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Span {
    /// Which file, as numbered by [`Sources`].
    pub(crate) file: u32,
    /// The first byte.
    pub(crate) start: u32,
    /// The byte after the last.
    pub(crate) end: u32,
}

impl Span {
    /// A span of the given bytes. Files are bounded far below 4 GB ([`Sources::BYTES_MAX`]).
    pub(crate) fn new(file: u32, range: &std::ops::Range<usize>) -> Span {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { file, start: narrow(range.start), end: narrow(range.end) }
    }
}

/// One text, with the name it is shown under.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path as it was given or found, relative names staying relative.
    pub(crate) path: PathBuf,
    /// What it holds.
    pub(crate) text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Source {
    /// Where a byte stands.
    pub(crate) fn position(&self, offset: u32) -> Position {
        let offset = (offset as usize).min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines[line - 1];
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        Position { line, column }
    }

    /// The first byte of a line (counted from 1).
    pub(crate) fn start(&self, line: usize) -> usize {
        self.lines.get(line - 1).copied().unwrap_or(self.text.len())
    }

    /// The text of a line (counted from 1), without its end.
    pub(crate) fn line(&self, line: usize) -> &str {
        let start = self.start(line);
        let end = self.lines.get(line).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }
}

/// All texts of one configuration, numbered in the order of reading.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    list: Vec<Source>,
}

impl Sources {
    /// The largest file that is read. 10,000 sites take about 2 MB.
    pub(crate) const BYTES_MAX: u64 = 64 << 20;

    /// Adds a text; its number is what [`Span::file`] holds.
    pub(crate) fn add(&mut self, path: &Path, text: String) -> u32 {
        let lines = std::iter::once(0)
            .chain(
                text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1),
            )
            .collect();
        self.list.push(Source { path: path.to_owned(), text, lines });
        u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
    }

    /// The text a span points into.
    pub(crate) fn of(&self, span: Span) -> &Source {
        &self.list[span.file as usize]
    }

    /// The bytes a span covers.
    pub(crate) fn text(&self, span: Span) -> &str {
        self.of(span).text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// `file:line` of a span, for those who ask where a setting comes from.
    pub(crate) fn file_line(&self, span: Span) -> String {
        let source = self.of(span);
        format!("{}:{}", source.path.display(), source.position(span.start).line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("a.toml"), "one\ntwö three\r\n\nend".into());
        let check = |offset: u32, line, column| {
            let position = sources.list[file as usize].position(offset);
            assert_eq!(position, Position { line, column }, "offset {offset}");
        };
        check(0, 1, 1);
        check(3, 1, 4);
        check(4, 2, 1);
        check(9, 2, 5);
        check(16, 3, 1);
        check(17, 4, 1);
        check(9999, 4, 4);
        assert_eq!(sources.list[0].line(2), "twö three");
        assert_eq!(sources.list[0].line(3), "");
        assert_eq!(sources.list[0].line(4), "end");
    }
}
