//! Bracketed classes, with PCRE's leniencies: `[]a]`, `[\w-.]`, `[[:alpha:]]`, `[\Q...\E]`.

use super::{
    super::{
        ByteSet, Fault,
        syntax::{Assert, Node, WORD},
    },
    Atom, Parser,
    escape::class_escape,
};

/// One thing in a class.
enum Item {
    /// May begin or end a range.
    Byte(u8),
    /// Cannot; a hyphen beside it is a hyphen.
    Set(ByteSet),
}

impl Parser<'_> {
    /// Behind the `[` at `start`.
    pub(super) fn bracket(&mut self, start: usize) -> Result<Atom, Fault> {
        if self.eat(b"[:<:]]") {
            return Ok(Atom::NotRepeatable(Node::Assert(Assert::WordStart)));
        }
        if self.eat(b"[:>:]]") {
            return Ok(Atom::NotRepeatable(Node::Assert(Assert::WordEnd)));
        }
        if let Some(close) = self.posix_end() {
            let text = String::from_utf8_lossy(&self.source[start..=close]).into_owned();
            return Err(Fault::new(start, format!("{text} outside a class"))
                .hint("write it within brackets: [[:alpha:]]"));
        }
        let negated = self.eat(b"^");
        let mut set = ByteSet::NONE;
        let mut quoted = false;
        let mut first = true;
        loop {
            let at = self.at;
            if self.at >= self.source.len() {
                return Err(Fault::new(start, "a class without its closing bracket")
                    .hint(r"write \[ for the byte"));
            }
            if !quoted && !first && self.eat(b"]") {
                break;
            }
            let Some(item) = self.class_item(&mut quoted)? else { continue };
            first = false;
            let Item::Byte(low) = item else {
                if let Item::Set(more) = item {
                    set |= more;
                }
                continue;
            };
            match self.range_end(&mut quoted)? {
                Some(high) if high < low => {
                    return Err(Fault::new(at, "a range whose ends are in the wrong order"));
                }
                Some(high) => set |= ByteSet::range(low, high),
                None => set.insert(low),
            }
        }
        // Fold before negating: (?i)[^k] matches neither k nor K.
        if self.flags.case_insensitive {
            set = set.folded();
        }
        Ok(Atom::Repeatable(Node::Byte(if negated { set.complement() } else { set })))
    }

    /// The next thing in a class; nothing for a switch of quoting or a skipped blank.
    fn class_item(&mut self, quoted: &mut bool) -> Result<Option<Item>, Fault> {
        let start = self.at;
        if *quoted {
            if self.eat(br"\E") {
                *quoted = false;
                return Ok(None);
            }
            return Ok(self.next().map(Item::Byte));
        }
        if self.eat(br"\Q") {
            *quoted = true;
            return Ok(None);
        }
        if self.eat(br"\E") {
            return Ok(None);
        }
        match self.next() {
            Some(b' ' | b'\t') if self.flags.extended_in_classes => Ok(None),
            Some(b'[') => match self.posix_end() {
                Some(close) => self.posix(start, close).map(|set| Some(Item::Set(set))),
                None => Ok(Some(Item::Byte(b'['))),
            },
            Some(b'\\') => self.class_escape(start).map(Some),
            other => Ok(other.map(Item::Byte)),
        }
    }

    fn class_escape(&mut self, start: usize) -> Result<Item, Fault> {
        let Some(byte) = self.peek() else { return self.byte_escape(start).map(Item::Byte) };
        if let Some(set) = class_escape(byte) {
            self.at += 1;
            return Ok(Item::Set(set));
        }
        match byte {
            b'b' => {
                self.at += 1;
                Ok(Item::Byte(0x08))
            }
            // No back-references in a class: digits are octal.
            b'1'..=b'7' => self.octal(start, 3).map(Item::Byte),
            b'B' | b'R' => {
                let letter = char::from(byte);
                Err(Fault::new(start, format!(r"\{letter} means nothing in a class")))
            }
            _ => self.byte_escape(start).map(Item::Byte),
        }
    }

    /// What a range ends with, when a hyphen and a byte follow. A hyphen before the closing bracket
    /// or before a set stands for itself and stays unread.
    fn range_end(&mut self, quoted: &mut bool) -> Result<Option<u8>, Fault> {
        let (start, was_quoted) = (self.at, *quoted);
        if *quoted && self.eat(br"\E") {
            *quoted = false;
        }
        if !*quoted && self.eat(b"-") {
            while self.peek().is_some_and(|byte| byte != b']') {
                match self.class_item(quoted)? {
                    None => {}
                    Some(Item::Byte(high)) => return Ok(Some(high)),
                    Some(Item::Set(_)) => break,
                }
            }
        }
        (self.at, *quoted) = (start, was_quoted);
        Ok(None)
    }

    /// Where `:]` stands, when what comes behind a `[` is a POSIX class: letters, perhaps after `^`.
    fn posix_end(&self) -> Option<usize> {
        let rest = self.source.get(self.at..)?;
        let name = rest.strip_prefix(b":")?;
        let letters = name.strip_prefix(b"^").unwrap_or(name);
        let count = letters.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let before = name.len() - letters.len() + 1 + count;
        rest[before..].starts_with(b":]").then_some(self.at + before + 1)
    }

    /// The POSIX class whose `]` is at `close`.
    fn posix(&mut self, start: usize, close: usize) -> Result<ByteSet, Fault> {
        let name = &self.source[self.at + 1..close - 1];
        self.at = close + 1;
        let (negated, name) = match name {
            [b'^', name @ ..] => (true, name),
            name => (false, name),
        };
        let test: fn(&u8) -> bool = match name {
            b"alpha" => u8::is_ascii_alphabetic,
            b"lower" => u8::is_ascii_lowercase,
            b"upper" => u8::is_ascii_uppercase,
            b"alnum" => u8::is_ascii_alphanumeric,
            b"ascii" => u8::is_ascii,
            b"blank" => |byte| matches!(byte, b' ' | b'\t'),
            b"cntrl" => u8::is_ascii_control,
            b"digit" => u8::is_ascii_digit,
            b"graph" => u8::is_ascii_graphic,
            b"print" => |byte| matches!(byte, b' '..=b'~'),
            b"punct" => u8::is_ascii_punctuation,
            b"space" => |&byte| super::is_space(byte),
            b"word" => |&byte| WORD.contains(byte),
            b"xdigit" => u8::is_ascii_hexdigit,
            _ => return Err(Fault::new(start, "a POSIX class that does not exist")),
        };
        let set: ByteSet = (0..=u8::MAX).filter(test).collect();
        Ok(if negated { set.complement() } else { set })
    }
}
