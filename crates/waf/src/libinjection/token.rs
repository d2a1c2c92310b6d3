//! What SQL is made of: kinds, and tokens that borrow their text.

use super::words::Word;

/// Bytes of a token's text that are kept; what is longer is told apart by nothing behind them.
pub(super) const TEXT_BYTES_MAX: usize = 31;

/// What a token is, named in a fingerprint by one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Keyword = b'k',
    Union = b'U',
    /// `GROUP BY`, `LIMIT`, `HAVING` and the like.
    Group = b'B',
    /// `SELECT`, `INSERT`, `CASE` and the like: an expression follows.
    Expression = b'E',
    SqlType = b't',
    Function = b'f',
    Bareword = b'n',
    Number = b'1',
    Variable = b'v',
    Text = b's',
    Operator = b'o',
    Logic = b'&',
    Comment = b'c',
    Collate = b'A',
    OpenParenthesis = b'(',
    CloseParenthesis = b')',
    OpenBrace = b'{',
    CloseBrace = b'}',
    Dot = b'.',
    Comma = b',',
    Colon = b':',
    Semicolon = b';',
    /// What begins a statement of Transact-SQL.
    Statement = b'T',
    Unknown = b'?',
    /// What databases read in contrary ways, and only attackers write.
    Evil = b'X',
    Backslash = b'\\',
}

impl Kind {
    /// The kind that a fingerprint names by `byte`.
    pub(super) const fn named(byte: u8) -> Option<Self> {
        Some(match byte {
            b'k' => Self::Keyword,
            b'U' => Self::Union,
            b'B' => Self::Group,
            b'E' => Self::Expression,
            b't' => Self::SqlType,
            b'f' => Self::Function,
            b'n' => Self::Bareword,
            b'1' => Self::Number,
            b'v' => Self::Variable,
            b'o' => Self::Operator,
            b'&' => Self::Logic,
            b'A' => Self::Collate,
            b'T' => Self::Statement,
            _ => return None,
        })
    }
}

/// What stands at an end of a text or a name, as far as the verdict asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: the text began before the value, or goes on behind it.
    None,
    /// A quote, or a tick.
    Quote(u8),
    /// More than a quote: Oracle's `q'[`, `U&'`, PostgreSQL's `$tag$`. No quote is like it.
    Other,
}

/// A piece of SQL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// At most [`TEXT_BYTES_MAX`] bytes, without the marks around it.
    pub(super) text: &'a [u8],
    /// What the list of words says of the text, if it is there.
    pub(super) word: Option<&'static Word>,
    pub(super) open: Mark,
    pub(super) close: Mark,
}

impl<'a> Token<'a> {
    /// A token without marks, which is no word.
    pub(super) fn new(kind: Kind, text: &'a [u8]) -> Self {
        let text = &text[..text.len().min(TEXT_BYTES_MAX)];
        Self { kind, text, word: None, open: Mark::None, close: Mark::None }
    }

    /// Whether the text is `upper`, which is in capitals, in any case.
    pub(super) fn is(&self, upper: &[u8]) -> bool {
        self.text.eq_ignore_ascii_case(upper)
    }

    /// An operator that may stand before a value, and changes nothing there.
    pub(super) fn is_sign(&self) -> bool {
        self.kind == Kind::Operator
            && match *self.text {
                [byte] => matches!(byte, b'+' | b'-' | b'!' | b'~'),
                [b'!', b'!'] => true,
                [_, _, _] => self.is(b"NOT"),
                _ => false,
            }
    }

    /// An operator of arithmetic.
    pub(super) fn is_arithmetic(&self) -> bool {
        self.kind == Kind::Operator && matches!(*self.text, [b'*' | b'/' | b'-' | b'+' | b'%'])
    }

    /// A text, number, variable or name: what stands for one value.
    pub(super) fn is_value(&self) -> bool {
        matches!(self.kind, Kind::Bareword | Kind::Number | Kind::Text | Kind::Variable)
    }
}
