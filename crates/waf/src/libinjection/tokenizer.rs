//! SQL cut into tokens, in the manner of many databases at once.
//!
//! There is no error: whatever cannot be read is a token of its own. Where databases disagree (what
//! ends a text, what is a comment) the choices are those of libinjection, with MySQL's own in a
//! second [`Dialect`].

use memchr::{memchr, memmem};

use super::token::{Kind, Mark, TEXT_BYTES_MAX, Token};
use super::words;

/// Whose comments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `--` always begins a comment, `#` is an operator.
    Ansi,
    /// `--` begins a comment only before white space, `#` always does.
    MySql,
}

/// A value on its way into tokens.
pub(super) struct Tokenizer<'a> {
    input: &'a [u8],
    at: usize,
    dialect: Dialect,
    /// The quote that is taken to stand before the value, until its text has been read.
    before: Option<u8>,
    /// Tokens read, skipped and folded ones included.
    count: usize,
    contested: bool,
    run: Run,
}

/// Bytes without anything that ends a word. A word with dots may be cut at one of them, again and
/// again; the run it stands in is measured once.
#[derive(Clone, Copy)]
struct Run {
    end: usize,
    /// Whether there is a dot or a tick in it.
    parted: bool,
}

impl<'a> Tokenizer<'a> {
    /// Reads `input` as what follows the quote `before`, or as it stands.
    pub(super) fn new(input: &'a [u8], before: Option<u8>, dialect: Dialect) -> Self {
        let run = Run { end: 0, parted: false };
        Self { input, at: 0, dialect, before, count: 0, contested: false, run }
    }

    /// Tokens read so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether MySQL may see a comment where others see none, or the other way round.
    pub(super) fn is_contested(&self) -> bool {
        self.contested
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let token = match self.before.take() {
            Some(quote) if !self.input.is_empty() => Some(self.text_from(0, quote, Mark::None)),
            _ => self.read(),
        };
        self.count += usize::from(token.is_some());
        token
    }

    fn read(&mut self) -> Option<Token<'a>> {
        loop {
            let first = *self.input.get(self.at)?;
            return Some(match STARTS[usize::from(first)] {
                Start::White => {
                    self.at += 1;
                    continue;
                }
                Start::Number => match self.number() {
                    Some(number) => number,
                    None => continue,
                },
                Start::Word => self.word(),
                Start::Operator => self.take(Kind::Operator, 1),
                Start::Pair => self.operator(first),
                Start::Itself(kind) => self.take(kind, 1),
                Start::Hash => self.hash(),
                Start::Dash => self.dash(),
                Start::Slash => self.slash(),
                Start::Backslash => self.backslash(),
                Start::Quote => self.text_from(self.at + 1, first, Mark::Quote(first)),
                Start::Tick => self.tick(),
                Start::Variable => self.variable(),
                Start::Dollar => self.dollar(),
                Start::Bracket => self.bracket(),
                Start::Bits => self.figures(BIT),
                Start::Hex => self.figures(HEX),
                Start::Escaped => self.escaped(),
                Start::Oracle => self.oracle(self.at),
                Start::National => match self.peek(1) {
                    Some(b'\'') if self.peek(2).is_some() => self.escaped(),
                    _ => self.oracle(self.at + 1),
                },
                Start::Unicode => self.unicode(),
            });
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.input.get(self.at + ahead).copied()
    }

    /// The next `len` bytes as a token.
    fn take(&mut self, kind: Kind, len: usize) -> Token<'a> {
        let from = self.at;
        self.at += len;
        Token::new(kind, &self.input[from..self.at])
    }

    /// The rest of the value as a token.
    fn take_rest(&mut self, kind: Kind) -> Token<'a> {
        self.take(kind, self.input.len() - self.at)
    }

    /// How many bytes from `from` on have one of the marks `class`.
    fn span(&self, from: usize, class: u16) -> usize {
        let rest = &self.input[from..];
        rest.iter().position(|&byte| CLASSES[usize::from(byte)] & class == 0).unwrap_or(rest.len())
    }

    /// Where the two bytes `pair` stand next, from `from` on.
    fn find(&self, pair: [u8; 2], from: usize) -> Option<usize> {
        find_pair(&self.input[from..], pair).map(|ahead| from + ahead)
    }

    /// Whether the byte `ahead` has one of the marks `class`.
    fn is_at(&self, ahead: usize, class: u16) -> bool {
        self.peek(ahead).is_some_and(|byte| CLASSES[usize::from(byte)] & class != 0)
    }

    fn operator(&mut self, first: u8) -> Token<'a> {
        let (kind, len) = match (first, self.peek(1), self.peek(2)) {
            (b'<', Some(b'='), Some(b'>')) => (Kind::Operator, 3),
            (b'&', Some(b'&'), _) | (b'|', Some(b'|'), _) => (Kind::Logic, 2),
            (b'!', Some(b'!' | b'<' | b'=' | b'>'), _)
            | (b'&' | b'*', Some(b'='), _)
            | (b':', Some(b':' | b'='), _)
            | (b'<', Some(b'<' | b'=' | b'>' | b'@'), _)
            | (b'>', Some(b'=' | b'>'), _)
            | (b'|', Some(b'/' | b'='), _) => (Kind::Operator, 2),
            (b':', Some(_), _) => (Kind::Colon, 1),
            _ => (Kind::Operator, 1),
        };
        self.take(kind, len)
    }

    fn hash(&mut self) -> Token<'a> {
        self.contested = true;
        match self.dialect {
            Dialect::Ansi => self.take(Kind::Operator, 1),
            Dialect::MySql => self.line_comment(),
        }
    }

    fn dash(&mut self) -> Token<'a> {
        if self.peek(1) != Some(b'-') {
            return self.take(Kind::Operator, 1);
        }
        if self.peek(2).is_none() || self.is_at(2, SPACE) {
            return self.line_comment();
        }
        match self.dialect {
            Dialect::Ansi => {
                self.contested = true;
                self.line_comment()
            }
            Dialect::MySql => self.take(Kind::Operator, 1),
        }
    }

    fn line_comment(&mut self) -> Token<'a> {
        let Some(len) = memchr(b'\n', &self.input[self.at..]) else {
            return self.take_rest(Kind::Comment);
        };
        let comment = self.take(Kind::Comment, len);
        self.at += 1;
        comment
    }

    /// `/* ... */`. PostgreSQL nests comments and others do not, and MySQL runs what is in `/*! ... */`:
    /// both are evil.
    fn slash(&mut self) -> Token<'a> {
        if self.peek(1) != Some(b'*') {
            return self.take(Kind::Operator, 1);
        }
        let inside = self.at + 2;
        let runs = self.peek(2) == Some(b'!');
        let Some(end) = self.find(*b"*/", inside) else {
            return self.take_rest(if runs { Kind::Evil } else { Kind::Comment });
        };
        // The star that ends the comment may be one that would open another.
        let nests = find_pair(&self.input[inside..=end], *b"/*").is_some();
        self.take(if runs || nests { Kind::Evil } else { Kind::Comment }, end + 2 - self.at)
    }

    fn backslash(&mut self) -> Token<'a> {
        match self.peek(1) {
            // MySQL's other name of NULL.
            Some(b'N') => self.take(Kind::Number, 2),
            _ => self.take(Kind::Backslash, 1),
        }
    }

    /// A text that begins at `from` and ends with `quote`, where that is neither escaped by a backslash
    /// nor doubled.
    fn text_from(&mut self, from: usize, quote: u8, open: Mark) -> Token<'a> {
        let mut search = from;
        let end = loop {
            let Some(ahead) = memchr(quote, &self.input[search..]) else { break None };
            let at = search + ahead;
            let slashes =
                self.input[from..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
            if slashes % 2 == 1 {
                search = at + 1;
            } else if self.input.get(at + 1) == Some(&quote) {
                search = at + 2;
            } else {
                break Some(at);
            }
        };
        self.marked(from, end, 1, open, Mark::Quote(quote))
    }

    /// A text from `from` to `end` with `len` bytes of closing mark behind it, or to the end of the
    /// value, which closes nothing.
    fn marked(
        &mut self,
        from: usize,
        end: Option<usize>,
        len: usize,
        open: Mark,
        close: Mark,
    ) -> Token<'a> {
        let (text, next, close) = match end {
            Some(end) => (from..end, end + len, close),
            None => (from..self.input.len(), self.input.len(), Mark::None),
        };
        self.at = next;
        Token { open, close, ..Token::new(Kind::Text, &self.input[text]) }
    }

    /// A name between MySQL's ticks, which is a function if it is called like one.
    fn tick(&mut self) -> Token<'a> {
        let mut name = self.text_from(self.at + 1, b'`', Mark::Quote(b'`'));
        name.word = words::find(name.text);
        name.kind = match name.word {
            Some(word) if word.kind == Some(Kind::Function) => Kind::Function,
            _ => Kind::Bareword,
        };
        name
    }

    /// `E'...'`, or a word.
    fn escaped(&mut self) -> Token<'a> {
        match (self.peek(1), self.peek(2)) {
            (Some(b'\''), Some(_)) => self.text_from(self.at + 2, b'\'', Mark::Quote(b'\'')),
            _ => self.word(),
        }
    }

    /// `U&'...'`, or a word.
    fn unicode(&mut self) -> Token<'a> {
        if (self.peek(1), self.peek(2)) != (Some(b'&'), Some(b'\'')) {
            return self.word();
        }
        self.text_from(self.at + 3, b'\'', Mark::Other)
    }

    /// `q'[...]'` with its `q` at `q`, or a word.
    fn oracle(&mut self, q: usize) -> Token<'a> {
        let end = match self.input.get(q..q + 3) {
            Some(&[b'q' | b'Q', b'\'', open @ b'!'..=0x7f]) => match open {
                b'(' => b')',
                b'[' => b']',
                b'{' => b'}',
                b'<' => b'>',
                other => other,
            },
            _ => return self.word(),
        };
        let from = q + 3;
        let end = self.find([end, b'\''], from);
        self.marked(from, end, 2, Mark::Other, Mark::Other)
    }

    /// `b'01'` or `x'1f'`, or a word.
    fn figures(&mut self, class: u16) -> Token<'a> {
        if self.peek(1) == Some(b'\'') && self.peek(2).is_some() {
            let len = 2 + self.span(self.at + 2, class);
            if self.peek(len) == Some(b'\'') {
                return self.take(Kind::Number, len + 1);
            }
        }
        self.word()
    }

    /// `[name]`, as in Transact-SQL.
    fn bracket(&mut self) -> Token<'a> {
        match memchr(b']', &self.input[self.at..]) {
            Some(len) => self.take(Kind::Bareword, len + 1),
            None => self.take_rest(Kind::Bareword),
        }
    }

    fn word(&mut self) -> Token<'a> {
        let from = self.at;
        if from >= self.run.end {
            let mut run = Run { end: from, parted: false };
            while let Some(&byte) = self.input.get(run.end) {
                let class = CLASSES[usize::from(byte)];
                if class & ENDS_WORD != 0 {
                    break;
                }
                run.parted |= class & PARTS_WORD != 0;
                run.end += 1;
            }
            self.run = run;
        }
        let len = self.run.end - from;
        let text = &self.input[from..self.run.end];
        if self.run.parted {
            for part in 0..len.min(TEXT_BYTES_MAX) {
                if CLASSES[usize::from(text[part])] & PARTS_WORD == 0 {
                    continue;
                }
                // SELECT.1 and SELECT`name` are the word and what follows it.
                if let Some(word) = words::find(&text[..part])
                    && let Some(kind) = word.kind
                    && kind != Kind::Bareword
                {
                    return Token { word: Some(word), ..self.take(kind, part) };
                }
            }
        }
        let word = words::find(text);
        let kind = word.and_then(|word| word.kind).unwrap_or(Kind::Bareword);
        Token { word, ..self.take(kind, len) }
    }

    /// `@name`, `@@name`, and either with a quoted name.
    fn variable(&mut self) -> Token<'a> {
        self.at += if self.peek(1) == Some(b'@') { 2 } else { 1 };
        let mut name = match self.peek(0) {
            Some(b'`') => self.tick(),
            Some(quote @ (b'\'' | b'"')) => self.text_from(self.at + 1, quote, Mark::Quote(quote)),
            _ => {
                let len = self.input[self.at..]
                    .iter()
                    .position(|&byte| CLASSES[usize::from(byte)] & ENDS_VARIABLE != 0)
                    .unwrap_or(self.input.len() - self.at);
                self.take(Kind::Variable, len)
            }
        };
        name.kind = Kind::Variable;
        name
    }

    /// An amount `$1,000.00`, a text `$$...$$` or `$tag$...$tag$`, or a lone `$`.
    fn dollar(&mut self) -> Token<'a> {
        let Some(next) = self.peek(1) else { return self.take(Kind::Bareword, 1) };
        let figures = self.span(self.at + 1, AMOUNT);
        if figures == 1 && next == b'.' {
            return self.word();
        }
        if figures > 0 {
            return self.take(Kind::Number, 1 + figures);
        }
        if next == b'$' {
            let from = self.at + 2;
            let end = self.find(*b"$$", from);
            return self.marked(from, end, 2, Mark::Other, Mark::Other);
        }
        let letters = self.span(self.at + 1, LETTER);
        if self.peek(letters + 1) != Some(b'$') {
            return self.take(Kind::Bareword, 1);
        }
        let from = self.at + letters + 2;
        let tag = &self.input[self.at..from];
        let end = memmem::find(&self.input[from..], tag).map(|ahead| from + ahead);
        self.marked(from, end, tag.len(), Mark::Other, Mark::Other)
    }

    /// A number, a dot without figures, or `None` for a number like `1.e`, which MySQL overlooks.
    fn number(&mut self) -> Option<Token<'a>> {
        let digits = |from| self.span(from, DIGIT);
        if self.peek(0) == Some(b'0')
            && let Some(class) = match self.peek(1) {
                Some(b'x' | b'X') => Some(HEX),
                Some(b'b' | b'B') => Some(BIT),
                _ => None,
            }
        {
            let figures = self.span(self.at + 2, class);
            let kind = if figures == 0 { Kind::Bareword } else { Kind::Number };
            return Some(self.take(kind, 2 + figures));
        }
        let mut end = self.at + digits(self.at);
        if self.input.get(end) == Some(&b'.') {
            end += 1;
            end += digits(end);
            if end == self.at + 1 {
                return Some(self.take(Kind::Dot, 1));
            }
        }
        let mut is_number = true;
        if matches!(self.input.get(end), Some(b'e' | b'E')) {
            end += 1;
            if matches!(self.input.get(end), Some(b'+' | b'-')) {
                end += 1;
            }
            let exponent = digits(end);
            end += exponent;
            is_number = exponent > 0;
        }
        // Oracle's suffixes of floating point numbers, unless they begin the next word; 1fUNION is
        // read as MySQL would not, but as an attacker would have it.
        if matches!(self.input.get(end), Some(b'd' | b'D' | b'f' | b'F')) {
            end += match self.input.get(end + 1) {
                None | Some(b';' | b'u' | b'U') => 1,
                Some(&byte) => usize::from(CLASSES[usize::from(byte)] & SPACE != 0),
            };
        }
        let number = self.take(Kind::Number, end - self.at);
        is_number.then_some(number)
    }
}

/// What a byte begins.
#[derive(Clone, Copy)]
enum Start {
    White,
    Word,
    Number,
    Operator,
    /// An operator that may have a second byte.
    Pair,
    /// A token of this kind and one byte.
    Itself(Kind),
    Hash,
    Dash,
    Slash,
    Backslash,
    Quote,
    Tick,
    Variable,
    Dollar,
    Bracket,
    Bits,
    Hex,
    Escaped,
    Oracle,
    National,
    Unicode,
}

static STARTS: [Start; 256] = {
    let mut starts = [Start::Word; 256];
    let mut byte = 0;
    loop {
        starts[byte as usize] = match byte {
            0..=b' ' | 0x7f | 0xa0 => Start::White,
            b'!' | b'&' | b'*' | b':' | b'<' | b'=' | b'>' | b'|' => Start::Pair,
            b'%' | b'+' | b'^' | b'~' => Start::Operator,
            b'"' | b'\'' => Start::Quote,
            b'#' => Start::Hash,
            b'$' => Start::Dollar,
            b'(' => Start::Itself(Kind::OpenParenthesis),
            b')' => Start::Itself(Kind::CloseParenthesis),
            b',' => Start::Itself(Kind::Comma),
            b';' => Start::Itself(Kind::Semicolon),
            b'{' => Start::Itself(Kind::OpenBrace),
            b'}' => Start::Itself(Kind::CloseBrace),
            b'?' | b']' => Start::Itself(Kind::Unknown),
            b'-' => Start::Dash,
            b'/' => Start::Slash,
            b'.' | b'0'..=b'9' => Start::Number,
            b'@' => Start::Variable,
            b'[' => Start::Bracket,
            b'\\' => Start::Backslash,
            b'`' => Start::Tick,
            b'b' | b'B' => Start::Bits,
            b'e' | b'E' => Start::Escaped,
            b'n' | b'N' => Start::National,
            b'q' | b'Q' => Start::Oracle,
            b'u' | b'U' => Start::Unicode,
            b'x' | b'X' => Start::Hex,
            _ => Start::Word,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    starts
};

// Marks of bytes. Wherever libinjection looks a byte up in a C string, it finds NUL there as well,
// which is why NUL is a figure, a letter and white space.
const ENDS_WORD: u16 = 1;
/// A word may end before it, if what stands before it is a keyword.
const PARTS_WORD: u16 = 1 << 1;
const ENDS_VARIABLE: u16 = 1 << 2;
const DIGIT: u16 = 1 << 3;
const BIT: u16 = 1 << 4;
const HEX: u16 = 1 << 5;
const AMOUNT: u16 = 1 << 6;
const LETTER: u16 = 1 << 7;
/// White space to MySQL: less than what stands between tokens.
const SPACE: u16 = 1 << 8;

static CLASSES: [u16; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    loop {
        classes[byte as usize] = match byte {
            0 => ENDS_WORD | ENDS_VARIABLE | BIT | HEX | AMOUNT | LETTER | SPACE,
            b'\t'..=b'\r' | b' ' => ENDS_WORD | ENDS_VARIABLE | SPACE,
            0xa0 => ENDS_WORD | SPACE,
            b'[' | b']' | b'{' | b'}' => ENDS_WORD,
            b',' => ENDS_WORD | ENDS_VARIABLE | AMOUNT,
            b'<' | b'>' | b':' | b'\\' | b'?' | b'=' | b'@' | b'!' | b'#' | b'~' | b'+' | b'-'
            | b'*' | b'/' | b'&' | b'|' | b'^' | b'%' | b'(' | b')' | b'\'' | b';' | b'"' => {
                ENDS_WORD | ENDS_VARIABLE
            }
            b'`' => PARTS_WORD | ENDS_VARIABLE,
            b'.' => PARTS_WORD | AMOUNT,
            b'0' | b'1' => DIGIT | BIT | HEX | AMOUNT,
            b'2'..=b'9' => DIGIT | HEX | AMOUNT,
            b'a'..=b'f' | b'A'..=b'F' => HEX | LETTER,
            b'g'..=b'z' | b'G'..=b'Z' => LETTER,
            _ => 0,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    classes
};

/// Where the two bytes `pair` stand together in `text`.
fn find_pair(text: &[u8], pair: [u8; 2]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(pair[0], &text[at..])?;
        if *text.get(at + 1)? == pair[1] {
            return Some(at);
        }
        at += 1;
    }
}
