//! HTML cut into those tokens that can run script: names of tags, attributes and their values,
//! comments and document types.
//!
//! The states are those of the HTML standard (section 13.2.5, tokenization) with what old browsers
//! make of NUL, ticks and `<%`. Text, closing tags and the ends of tags are passed over.

use memchr::{memchr, memmem};

/// Where a value stands in a page before its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Between tags.
    Text,
    /// In a tag, where an attribute may begin.
    Tag,
    /// In an attribute's value between these quotes.
    Quotes(u8),
}

/// A piece of HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The name of a tag, of a closing one too if anything but `>` follows.
    Tag(&'a [u8]),
    /// The name of an attribute.
    Attribute(&'a [u8]),
    /// The value of the attribute whose name came just before, or what the input begins with in quotes.
    Value(&'a [u8]),
    Comment(&'a [u8]),
    Doctype,
}

/// A value on its way into pieces.
pub(super) struct Html<'a> {
    input: &'a [u8],
    at: usize,
    state: State,
    /// Whether a closing tag has been opened. It stays so until a tag ends, whichever that is.
    closes: bool,
}

/// What became of a `<`.
enum Markup<'a> {
    Piece(Piece<'a>),
    /// Text, or what ends without a piece.
    Passed,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Text,
    BeforeAttribute,
    AfterAttribute,
    BeforeValue,
    /// In the value between these quotes that the input begins with.
    InValue(u8),
    AfterValue,
    /// Behind a `/` in a tag.
    SelfClosing,
    /// At the `>` of a tag.
    EndOfTag,
    Done,
}

impl<'a> Html<'a> {
    pub(super) fn new(input: &'a [u8], place: Place) -> Self {
        let state = match place {
            Place::Text => State::Text,
            Place::Tag => State::BeforeAttribute,
            Place::Quotes(quote) => State::InValue(quote),
        };
        Self { input, at: 0, state, closes: false }
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            match self.state {
                State::Text => {
                    self.at += memchr(b'<', self.rest())? + 1;
                    if let Markup::Piece(piece) = self.markup()? {
                        return Some(piece);
                    }
                }
                State::BeforeAttribute => match self.skip_white()? {
                    b'/' => {
                        self.at += 1;
                        self.state = State::SelfClosing;
                    }
                    b'>' => self.text_behind(1),
                    _ => return Some(self.attribute()),
                },
                State::AfterAttribute => match self.skip_white()? {
                    b'/' => {
                        self.at += 1;
                        self.state = State::SelfClosing;
                    }
                    b'=' => {
                        self.at += 1;
                        self.state = State::BeforeValue;
                    }
                    b'>' => self.state = State::EndOfTag,
                    _ => return Some(self.attribute()),
                },
                State::BeforeValue => {
                    return Some(match self.skip_white()? {
                        quote @ (b'"' | b'\'' | b'`') => {
                            self.at += 1;
                            self.quoted(quote)
                        }
                        _ => self.unquoted(),
                    });
                }
                State::InValue(quote) => return Some(self.quoted(quote)),
                State::AfterValue => match self.peek()? {
                    b'/' => {
                        self.at += 1;
                        self.state = State::SelfClosing;
                    }
                    b'>' => self.text_behind(1),
                    _ => self.state = State::BeforeAttribute,
                },
                State::SelfClosing => match self.peek()? {
                    b'>' => self.text_behind(1),
                    _ => self.state = State::BeforeAttribute,
                },
                State::EndOfTag => {
                    self.closes = false;
                    self.text_behind(1);
                }
                State::Done => return None,
            }
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.input[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// Goes on `ahead` bytes from here, with text.
    fn text_behind(&mut self, ahead: usize) {
        self.at += ahead;
        self.state = State::Text;
    }

    /// Passes over white space. The byte behind it; libinjection takes 0xff for the end, and so does
    /// this.
    fn skip_white(&mut self) -> Option<u8> {
        while self.peek().is_some_and(is_white) {
            self.at += 1;
        }
        self.peek().filter(|&byte| byte != 0xff)
    }

    /// What a `<` opens, read from behind it. `None` at the end.
    fn markup(&mut self) -> Option<Markup<'a>> {
        Some(match self.peek()? {
            b'!' => {
                self.at += 1;
                self.declaration()
            }
            b'/' => {
                self.at += 1;
                self.closes = true;
                match self.peek()? {
                    b'>' => Markup::Passed,
                    byte if byte.is_ascii_alphabetic() => self.tag(),
                    _ => {
                        self.closes = false;
                        self.bogus_comment()
                    }
                }
            }
            b'?' => {
                self.at += 1;
                self.bogus_comment()
            }
            b'%' => {
                self.at += 1;
                let rest = self.rest();
                self.end_comment(rest, memmem::find(rest, b"%>").map(|len| (len, 2)))
            }
            byte if byte.is_ascii_alphabetic() || byte == 0 => self.tag(),
            _ => Markup::Passed,
        })
    }

    fn tag(&mut self) -> Markup<'a> {
        let from = self.at;
        let ends = |byte| byte == b'/' || byte == b'>' || is_white(byte) && byte != 0;
        let Some(len) = self.rest().iter().position(|&byte| ends(byte)) else {
            self.state = State::Done;
            return Markup::Piece(Piece::Tag(self.rest()));
        };
        let name = &self.input[from..from + len];
        self.at += len;
        match self.input[self.at] {
            b'>' if self.closes => {
                self.closes = false;
                self.text_behind(1);
                return Markup::Passed;
            }
            b'>' => self.state = State::EndOfTag,
            b'/' => {
                self.at += 1;
                self.state = State::SelfClosing;
            }
            _ => {
                self.at += 1;
                self.state = State::BeforeAttribute;
            }
        }
        Markup::Piece(Piece::Tag(name))
    }

    fn attribute(&mut self) -> Piece<'a> {
        let from = self.at;
        // The first byte belongs to the name, whatever it is.
        let ends = |byte| matches!(byte, b'/' | b'=' | b'>') || is_white(byte);
        let len = 1 + self.input[from + 1..]
            .iter()
            .position(|&byte| ends(byte))
            .unwrap_or(self.input.len() - from - 1);
        self.at += len;
        let (skipped, state) = match self.peek() {
            None => (0, State::Done),
            Some(b'/') => (1, State::SelfClosing),
            Some(b'=') => (1, State::BeforeValue),
            Some(b'>') => (0, State::EndOfTag),
            Some(_) => (1, State::AfterAttribute),
        };
        self.at += skipped;
        self.state = state;
        Piece::Attribute(&self.input[from..from + len])
    }

    fn quoted(&mut self, quote: u8) -> Piece<'a> {
        let rest = self.rest();
        let Some(len) = memchr(quote, rest) else {
            self.state = State::Done;
            return Piece::Value(rest);
        };
        self.at += len + 1;
        self.state = State::AfterValue;
        Piece::Value(&rest[..len])
    }

    fn unquoted(&mut self) -> Piece<'a> {
        let rest = self.rest();
        let Some(len) = rest.iter().position(|&byte| byte == b'>' || is_white(byte)) else {
            self.state = State::Done;
            return Piece::Value(rest);
        };
        self.at += len;
        self.state = State::EndOfTag;
        if rest[len] != b'>' {
            self.at += 1;
            self.state = State::BeforeAttribute;
        }
        Piece::Value(&rest[..len])
    }

    /// What follows `<!`.
    fn declaration(&mut self) -> Markup<'a> {
        let rest = self.rest();
        if rest.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"DOCTYPE")) {
            self.state = State::Done;
            return Markup::Piece(Piece::Doctype);
        }
        if rest.starts_with(b"[CDATA[") {
            self.at += 7;
            match memmem::find(self.rest(), b"]]>") {
                Some(len) => self.text_behind(len + 3),
                None => self.state = State::Done,
            }
            return Markup::Passed;
        }
        if rest.starts_with(b"--") {
            self.at += 2;
            return self.comment();
        }
        self.bogus_comment()
    }

    /// A comment by mistake, which ends in `>`.
    fn bogus_comment(&mut self) -> Markup<'a> {
        let rest = self.rest();
        self.end_comment(rest, memchr(b'>', rest).map(|len| (len, 1)))
    }

    /// A comment that ends in `-->` or `-!>`, with any number of NULs behind its first dash.
    fn comment(&mut self) -> Markup<'a> {
        let rest = self.rest();
        let mut from = 0;
        let end = loop {
            let Some(ahead) = memchr(b'-', &rest[from..]) else { break None };
            let dash = from + ahead;
            let nulls = rest[dash + 1..].iter().take_while(|&&byte| byte == 0).count();
            match rest[dash + 1 + nulls..] {
                [b'-' | b'!', b'>', ..] => break Some((dash, nulls + 3)),
                [] | [_] => break None,
                _ => from = dash + 1,
            }
        };
        self.end_comment(rest, end)
    }

    /// A comment of the first bytes of `rest`, and how many end it behind them.
    fn end_comment(&mut self, rest: &'a [u8], end: Option<(usize, usize)>) -> Markup<'a> {
        let text = if let Some((len, mark)) = end {
            self.text_behind(len + mark);
            &rest[..len]
        } else {
            self.state = State::Done;
            rest
        };
        Markup::Piece(Piece::Comment(text))
    }
}

/// White space within a tag. Browsers of the past passed over NUL.
fn is_white(byte: u8) -> bool {
    matches!(byte, 0 | b'\t'..=b'\r' | b' ')
}
