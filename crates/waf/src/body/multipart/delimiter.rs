//! Delimiters (RFC 2046 section 5.1.1): which lines end a part, and what only looks like one.

use memchr::memmem;

use super::fault::Fault;

/// `--` and the boundary, with what is needed to find it.
#[derive(Debug)]
pub(super) struct Delimiter {
    /// `--` and the boundary.
    dashed: Vec<u8>,
    quoted: Quoted,
    anywhere: memmem::Finder<'static>,
    line_with_dashes: memmem::Finder<'static>,
}

/// Whether the content type has the boundary in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Yes,
}

/// What a line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// More bytes are needed to tell.
    Open,
    /// Nothing remarkable.
    Plain,
    /// `--` and something else.
    Dashes,
    /// A delimiter, of so many bytes with its line's end.
    Delimiter { bytes: usize, last: Last, end: LineEnd },
}

/// Whether a delimiter is the final one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    No,
    Yes,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// It does not, or there is no line.
    #[default]
    None,
    Lf,
    CrLf,
}

impl LineEnd {
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }
}

/// White space before a boundary that is looked through; what has more is no near miss.
const WHITESPACE_BYTES_MAX: usize = 64;

impl Delimiter {
    pub(super) fn new(boundary: &[u8], quoted: Quoted) -> Self {
        let dashed = [b"--", boundary].concat();
        let anywhere = memmem::Finder::new(&dashed).into_owned();
        Self { dashed, quoted, anywhere, line_with_dashes: memmem::Finder::new(b"\n--") }
    }

    /// `--` and the boundary.
    pub(super) fn dashed(&self) -> &[u8] {
        &self.dashed
    }

    /// The place of the first line end that a line beginning with `--` follows.
    pub(super) fn find_line_with_dashes(&self, bytes: &[u8]) -> Option<usize> {
        self.line_with_dashes.find(bytes)
    }

    /// Whether the boundary with its dashes is anywhere in the bytes.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        self.anywhere.find(bytes).is_some()
    }

    /// Whether the bytes are the beginning of a delimiter.
    pub(super) fn begins(&self, bytes: &[u8]) -> bool {
        let common = bytes.len().min(self.dashed.len());
        let (boundary, end) = bytes.split_at(common);
        boundary == &self.dashed[..common]
            && [&b"--\r"[..], b"\r"].iter().any(|whole| whole.starts_with(end))
    }

    /// Judges the beginning of a line.
    pub(super) fn judge(&self, line: &[u8]) -> Result<Beginning, Fault> {
        let Some(boundary) = line.strip_prefix(b"--") else {
            return Ok(if b"--".starts_with(line) { Beginning::Open } else { Beginning::Plain });
        };
        let expected = &self.dashed[2..];
        match Prefix::of(boundary, expected) {
            Prefix::Whole => return self.judge_end(&line[self.dashed.len()..]),
            Prefix::Begun => return Ok(Beginning::Open),
            Prefix::Other => {}
        }
        if let (Quoted::Yes, Some(b'"')) = (self.quoted, boundary.first()) {
            return near_miss(Prefix::of(&boundary[1..], expected), Fault::DelimiterQuotes);
        }
        let is_space = |byte: &u8| byte.is_ascii_whitespace() && *byte != b'\n' || *byte == 0x0b;
        let spaces = boundary.iter().take(WHITESPACE_BYTES_MAX).take_while(|byte| is_space(byte));
        match spaces.count() {
            0 => Ok(Beginning::Dashes),
            spaces => {
                near_miss(Prefix::of(&boundary[spaces..], expected), Fault::DelimiterWhitespace)
            }
        }
    }

    /// Judges what follows the boundary: a line's end, or two dashes and a line's end.
    fn judge_end(&self, rest: &[u8]) -> Result<Beginning, Fault> {
        let (last, behind) = match rest.strip_prefix(b"--") {
            Some(behind) => (Last::Yes, behind),
            None if rest == b"-" => return Ok(Beginning::Open),
            None => (Last::No, rest),
        };
        let end = match behind {
            [] | [b'\r'] => return Ok(Beginning::Open),
            [b'\n', ..] => LineEnd::Lf,
            [b'\r', b'\n', ..] => LineEnd::CrLf,
            _ => return Err(Fault::Delimiter),
        };
        let bytes = self.dashed.len() + (rest.len() - behind.len()) + end.bytes().len();
        Ok(Beginning::Delimiter { bytes, last, end })
    }
}

fn near_miss(prefix: Prefix, fault: Fault) -> Result<Beginning, Fault> {
    match prefix {
        Prefix::Whole => Err(fault),
        Prefix::Begun => Ok(Beginning::Open),
        Prefix::Other => Ok(Beginning::Dashes),
    }
}

/// How a text compares to the beginning that it may have.
#[derive(Clone, Copy)]
enum Prefix {
    Whole,
    Begun,
    Other,
}

impl Prefix {
    fn of(text: &[u8], expected: &[u8]) -> Self {
        if text.starts_with(expected) {
            Self::Whole
        } else if expected.starts_with(text) {
            Self::Begun
        } else {
            Self::Other
        }
    }
}

/// Looks for the boundary in text that comes in runs.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    /// The last bytes, one too few to be the boundary.
    tail: Vec<u8>,
}

impl Lookout {
    pub(super) fn clear(&mut self) {
        self.tail.clear();
    }

    /// Whether the boundary is in this run or in it and those before.
    pub(super) fn sees(&mut self, run: &[u8], delimiter: &Delimiter) -> bool {
        let keep = delimiter.dashed().len() - 1;
        let overlap = &run[..run.len().min(keep)];
        self.tail.extend_from_slice(overlap);
        let found = delimiter.is_in(&self.tail) || delimiter.is_in(run);
        if run.len() > keep {
            self.tail.clear();
            self.tail.extend_from_slice(&run[run.len() - keep..]);
        } else if self.tail.len() > keep {
            self.tail.drain(..self.tail.len() - keep);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Beginning, Fault>) {
        let delimiter = Delimiter::new(b"ab", Quoted::Yes);
        assert_eq!(delimiter.judge(line.as_bytes()), expected, "{line:?}");
    }

    #[test]
    fn beginnings() {
        for line in [
            "", "-", "--", "--a", "--ab", "--ab-", "--ab--", "--ab\r", "--ab--\r", "--\"a", "--  ",
            "-- a",
        ] {
            check(line, Ok(Beginning::Open));
        }
        for line in ["x", "-x", "\r\n", "\n"] {
            check(line, Ok(Beginning::Plain));
        }
        for line in ["--x", "---ab", "--ax", "--\n", "--\"x", "-- x", "-- \n"] {
            check(line, Ok(Beginning::Dashes));
        }
        let delimiter = |bytes, last, end| Ok(Beginning::Delimiter { bytes, last, end });
        check("--ab\r\nx", delimiter(6, Last::No, LineEnd::CrLf));
        check("--ab\nx", delimiter(5, Last::No, LineEnd::Lf));
        check("--ab--\r\nx", delimiter(8, Last::Yes, LineEnd::CrLf));
        check("--ab--\n", delimiter(7, Last::Yes, LineEnd::Lf));
    }

    #[test]
    fn near_misses() {
        for line in ["--abc", "--ab ", "--ab-x", "--ab--x", "--ab\rx", "--ab--\rx"] {
            check(line, Err(Fault::Delimiter));
        }
        check("--\"ab", Err(Fault::DelimiterQuotes));
        for line in ["-- ab", "--\t ab", "--\x0bab", "--\rab"] {
            check(line, Err(Fault::DelimiterWhitespace));
        }
        let unquoted = Delimiter::new(b"ab", Quoted::No);
        assert_eq!(unquoted.judge(b"--\"ab"), Ok(Beginning::Dashes));
    }

    #[test]
    fn the_lookout_sees_across_runs() {
        let delimiter = Delimiter::new(b"abc", Quoted::No);
        let text = b"x--ab--a--abcx--";
        for (size, found) in (1..=text.len()).flat_map(|size| [(size, true)]) {
            let mut lookout = Lookout::default();
            let seen = text.chunks(size).any(|run| lookout.sees(run, &delimiter));
            assert_eq!(seen, found, "in runs of {size}");
            lookout.clear();
            assert!(!lookout.sees(b"bc--ab", &delimiter));
        }
    }
}
