//! PCRE's spelling, read into a tree: sequences, quantifiers and flags. Groups, classes and escapes
//! have files of their own.
//!
//! What is read is PCRE as ModSecurity compiles it, without `PCRE_UTF8`: a source is bytes, and a
//! byte above 0x7f is itself. Where PCRE is lenient this is too (bare braces, needless escapes,
//! `[\w-.]`), since rule sets rely on it. What cannot be kept (`\X`, `\p`, callouts, control verbs
//! other than `(*FAIL)`) is refused, never skipped.
//!
//! `.` matches every byte and `$` only the very end (`PCRE_DOTALL`, `PCRE_DOLLAR_ENDONLY`), which is
//! how `mod_security2` compiles patterns and what the Core Rule Set expects; `(?-s)` and `(?m)` work.

mod class;
mod escape;
mod group;

use super::{
    ByteSet, Fault, Note,
    syntax::{Assert, Greed, Irregular, Node, Repeat},
};

/// Deepest nesting of groups, PCRE's own default.
const DEPTH_MAX: u32 = 250;
/// Longest source, in bytes. The longest in the Core Rule Set has about 9,000.
const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Largest number in `{n,m}`, as in PCRE.
const REPEAT_MAX: u32 = 65_535;
/// Most groups.
const GROUPS_MAX: u32 = 10_000;

/// What reading a source gives.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) node: Node,
    /// The highest group number.
    pub(super) groups: u32,
    pub(super) notes: Vec<Note>,
}

/// Reads a source. `case_insensitive` is as if it began with `(?i)`.
pub(super) fn parse(source: &[u8], case_insensitive: bool) -> Result<Parsed, Fault> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(Fault::new(0, format!("a pattern of more than {SOURCE_BYTES_MAX} bytes")));
    }
    let flags = Flags { case_insensitive, dot_all: true, ..Flags::default() };
    let mut first = Parser::new(source, flags, Vec::new());
    let node = first.whole()?;
    let Some(_) = first.unknown_name else { return first.finish(node) };
    // A name was used before its group: read again, knowing all names.
    let mut second = Parser::new(source, flags, first.names);
    let node = second.whole()?;
    if let Some(fault) = second.unknown_name {
        return Err(fault);
    }
    second.finish(node)
}

/// What `(?...)` switches on and off.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    /// `i`
    case_insensitive: bool,
    /// `m`
    multi_line: bool,
    /// `s`
    dot_all: bool,
    /// `x`: white space and comments are for the reader.
    extended: bool,
    /// `xx`: blanks in classes too.
    extended_in_classes: bool,
    /// `U`: a quantifier takes the fewest, with `?` the most.
    ungreedy: bool,
    /// `n`: bare parentheses do not capture.
    no_auto_capture: bool,
}

/// What can stand before a quantifier.
enum Atom {
    Repeatable(Node),
    NotRepeatable(Node),
}

struct Parser<'s> {
    source: &'s [u8],
    at: usize,
    flags: Flags,
    /// Whether `\Q` is on.
    quoted: bool,
    depth: u32,
    /// Groups opened so far.
    groups: u32,
    names: Vec<(&'s [u8], u32)>,
    /// The first name that stood for no known group.
    unknown_name: Option<Fault>,
    /// The highest group referred to, and where.
    reference_max: (u32, usize),
    notes: Vec<Note>,
}

impl<'s> Parser<'s> {
    fn new(source: &'s [u8], flags: Flags, names: Vec<(&'s [u8], u32)>) -> Self {
        Self {
            source,
            at: 0,
            flags,
            quoted: false,
            depth: 0,
            groups: 0,
            names,
            unknown_name: None,
            reference_max: (0, 0),
            notes: Vec::new(),
        }
    }

    fn whole(&mut self) -> Result<Node, Fault> {
        self.leading_verbs()?;
        let node = self.alternatives(group::Numbering::Onward)?;
        match self.peek() {
            None => Ok(node),
            Some(_) => Err(Fault::new(self.at, "a closing parenthesis without an opening one")
                .hint(r"write \) for the byte")),
        }
    }

    fn finish(self, node: Node) -> Result<Parsed, Fault> {
        let (group, offset) = self.reference_max;
        if group > self.groups {
            return Err(Fault::new(offset, format!("there is no group {group}")));
        }
        Ok(Parsed { node, groups: self.groups, notes: self.notes })
    }

    /// Items up to `|`, `)` or the end.
    fn sequence(&mut self) -> Result<Node, Fault> {
        let mut nodes = Vec::new();
        loop {
            self.skip_unread()?;
            let start = self.at;
            let Some(atom) = self.atom()? else { break };
            self.skip_unread()?;
            let (node, repeatable) = match atom {
                Atom::Repeatable(node) => (node, true),
                Atom::NotRepeatable(node) => (node, false),
            };
            match self.quantifier()? {
                None => nodes.push(node),
                Some(_) if !repeatable => {
                    return Err(Fault::new(start, "a quantifier after what cannot be repeated"));
                }
                Some(quantifier) => nodes.push(quantifier.apply(node, start)),
            }
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            1 => nodes.remove(0),
            _ => Node::Concat(nodes),
        })
    }

    /// One item, or nothing before `|`, `)` or the end.
    fn atom(&mut self) -> Result<Option<Atom>, Fault> {
        let start = self.at;
        let Some(byte) = self.next() else { return Ok(None) };
        if self.quoted {
            let atom = Atom::Repeatable(self.literal(byte));
            if self.eat(br"\E") {
                self.quoted = false;
            }
            return Ok(Some(atom));
        }
        let atom = match byte {
            b'|' | b')' => {
                self.at = start;
                return Ok(None);
            }
            b'(' => self.group(start)?,
            b'[' => self.bracket(start)?,
            b'\\' => self.escape(start)?,
            b'.' if self.flags.dot_all => Atom::Repeatable(Node::Byte(ByteSet::ALL)),
            b'.' => Atom::Repeatable(Node::Byte(ByteSet::of(b"\n").complement())),
            b'^' if self.flags.multi_line => Atom::NotRepeatable(Node::Assert(Assert::LineStart)),
            b'^' => Atom::NotRepeatable(Node::Assert(Assert::Start)),
            b'$' if self.flags.multi_line => Atom::NotRepeatable(Node::Assert(Assert::LineEnd)),
            b'$' => Atom::NotRepeatable(Node::Assert(Assert::End)),
            b'*' | b'+' | b'?' => {
                return Err(Fault::new(start, "a quantifier with nothing to repeat"));
            }
            b'{' if self.braces(start).is_some() => {
                return Err(Fault::new(start, "a quantifier with nothing to repeat")
                    .hint(r"write \{ for the byte"));
            }
            other => Atom::Repeatable(self.literal(other)),
        };
        Ok(Some(atom))
    }

    /// A byte that stands for itself.
    fn literal(&self, byte: u8) -> Node {
        let set = ByteSet::of(&[byte]);
        Node::Byte(if self.flags.case_insensitive { set.folded() } else { set })
    }

    fn quantifier(&mut self) -> Result<Option<Quantifier>, Fault> {
        if self.quoted {
            return Ok(None);
        }
        let start = self.at;
        let (min, max) = match self.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => match self.braces(start) {
                None => return Ok(None),
                Some((min, max, after)) => {
                    self.at = after - 1;
                    (min, max)
                }
            },
            _ => return Ok(None),
        };
        self.at += 1;
        if min > REPEAT_MAX || max.is_some_and(|max| max > REPEAT_MAX) {
            return Err(Fault::new(start, format!("more than {REPEAT_MAX} repetitions")));
        }
        if max.is_some_and(|max| max < min) {
            return Err(Fault::new(start, "a quantifier whose numbers are in the wrong order"));
        }
        let possessive = self.eat(b"+");
        let other = !possessive && self.eat(b"?");
        let greed = if other == self.flags.ungreedy { Greed::Most } else { Greed::Fewest };
        let greed = if possessive { Greed::Most } else { greed };
        Ok(Some(Quantifier { min, max, greed, possessive }))
    }

    /// `{n}`, `{n,}` or `{n,m}` at `start`, with what comes after. Everything else that begins with
    /// a brace is a brace, `{,m}` included (as in PCRE before 10.43).
    fn braces(&self, start: usize) -> Option<(u32, Option<u32>, usize)> {
        let mut at = start + 1;
        let number = |at: &mut usize| {
            let digits = self.source[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = self.source[*at..*at + digits].iter().fold(0u32, |value, digit| {
                value.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
            });
            *at += digits;
            (digits > 0).then_some(value)
        };
        let min = number(&mut at)?;
        let max = match self.source.get(at)? {
            b'}' => Some(min),
            b',' => {
                at += 1;
                number(&mut at)
            }
            _ => return None,
        };
        (self.source.get(at) == Some(&b'}')).then_some((min, max, at + 1))
    }

    /// Passes what only the reader sees: `(?#...)`, under `(?x)` white space and `# ...`, and the
    /// switches of quoting.
    fn skip_unread(&mut self) -> Result<(), Fault> {
        loop {
            let start = self.at;
            if self.quoted {
                if self.eat(br"\E") {
                    self.quoted = false;
                    continue;
                }
                return Ok(());
            }
            if self.eat(br"\Q") {
                self.quoted = true;
            } else if self.eat(br"\E") {
                // Without \Q before it, it says nothing.
            } else if self.eat(b"(?#") {
                let Some(length) = self.source[self.at..].iter().position(|&byte| byte == b')')
                else {
                    return Err(Fault::new(start, "a comment without its closing parenthesis"));
                };
                self.at += length + 1;
            } else if self.flags.extended && self.eat(b"#") {
                let rest = &self.source[self.at..];
                let line = rest.iter().position(|&byte| byte == b'\n');
                self.at += line.map_or(rest.len(), |length| length + 1);
            } else if self.flags.extended && self.peek().is_some_and(is_space) {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.source[self.at..].starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn note(&mut self, offset: usize, message: impl Into<String>) {
        self.notes.push(Note { offset, message: message.into() });
    }
}

struct Quantifier {
    min: u32,
    max: Option<u32>,
    greed: Greed,
    possessive: bool,
}

impl Quantifier {
    fn apply(self, node: Node, offset: usize) -> Node {
        let Self { min, max, greed, possessive } = self;
        let repeat = Node::Repeat(Box::new(Repeat { node, min, max, greed }));
        if possessive {
            Node::Irregular(Box::new(Irregular::Atomic(repeat)), offset)
        } else {
            repeat
        }
    }
}

/// White space as PCRE's "C" locale has it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}
