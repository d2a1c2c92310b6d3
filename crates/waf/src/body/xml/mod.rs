//! XML bodies (XML 1.0) to text, attributes and arguments, streaming.
//!
//! The text of the root element, elements' tags and comments left out, is the one value of `XML:/*`,
//! as libxml2 gives it to ModSecurity 2 and 3 (Coraza gives each piece of text for itself). Values of
//! attributes are `XML://@*`; namespace declarations are none, as in `XPath`. With
//! `SecParseXmlIntoArgs`, an element without others in it is an argument `xml.root.leaf`, prefixes
//! left out. ModSecurity drops text that stands beside elements from the arguments, so that
//! `OnlyArgs` would hide it; here it is an argument of its element.
//!
//! Documents must be well-formed. Nothing is ever fetched or expanded: a document type may name an
//! external subset, which is ignored, but with declarations of its own it is a fault, and so is every
//! entity but the five predefined ones. UTF-8 and ISO-8859-1 are read, other encodings are a fault.
//! Left out of what a parser for documents does: line ends in text stay as they are, `]]>` in text is
//! let pass, prefixes need not be declared, and of names only the ASCII part is checked.

mod attributes;
mod elements;
mod fault;
mod markup;
mod text;

pub use fault::{Fault, Reason};

use memchr::{memchr, memchr2, memchr3};

use attributes::Attributes;
use elements::{Children, Elements};
use markup::{DocumentType, Instruction, Place};
use text::{Cut, Encoding};

use super::fault::{Fault as BodyFault, Halt};
use super::options::{Options, XmlText};
use super::sink::Sink;

/// The processor for XML bodies.
///
/// Holds the open elements' names, a tag's current token, and an element's own text if it is to be an
/// argument.
#[derive(Debug)]
pub struct Xml {
    state: State,
    place: Place,
    document_type: DocumentType,
    encoding: Encoding,
    elements: Elements,
    attributes: Attributes,
    /// The current name, reference, kind of markup or instruction so far, or a value's bytes since
    /// the last reference in it.
    token: Vec<u8>,
    /// The current attribute's value, decoded so far.
    value: Vec<u8>,
    cut: Cut,
    /// The innermost element's text since its last child.
    own_text: Vec<u8>,
    output: XmlText,
    arguments_left: u32,
    /// Bytes in all pieces before the current one.
    before: u64,
}

/// What the next byte is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The byte order mark or the first character; so many bytes of the mark have come.
    Start {
        mark: usize,
    },
    Text,
    /// Behind `<`.
    Markup,
    /// Behind `<!`, in the word that says what follows.
    Keyword,
    Comment {
        dashes: u8,
    },
    CData {
        brackets: u8,
    },
    Instruction(Instruction),
    DocumentType {
        quote: Option<u8>,
    },
    StartName,
    /// Behind a start tag's name or an attribute's value, where something must separate.
    Separator,
    /// Behind white space in a start tag.
    Tag,
    AttributeName,
    /// Behind an attribute's name.
    Equals,
    /// Behind `=`.
    Quote,
    Value {
        quote: u8,
    },
    /// Behind `/` in a start tag.
    EmptyEnd,
    EndName,
    /// Behind an end tag's name.
    EndSpace,
    /// Behind `&`.
    Reference(Within),
}

/// Where a reference stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Text,
    Value { quote: u8 },
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Xml {
    /// A processor for one body.
    pub(super) fn new(options: &Options) -> Self {
        let limits = &options.limits;
        Self {
            state: State::Start { mark: 0 },
            place: Place::First,
            document_type: DocumentType::None,
            encoding: Encoding::Utf8,
            elements: Elements::new(limits),
            attributes: Attributes::new(limits.xml_attributes_max),
            token: Vec::new(),
            value: Vec::new(),
            cut: Cut::default(),
            own_text: Vec::new(),
            output: options.xml_text,
            arguments_left: limits.arguments_max,
            before: 0,
        }
    }

    /// Takes the next bytes of the body.
    pub(super) fn feed<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), Halt> {
        self.read(bytes, sink)?;
        self.before += bytes.len() as u64;
        Ok(())
    }

    /// Takes the end of the body.
    pub(super) fn finish(&self) -> Result<(), Halt> {
        let is_whole =
            self.state == State::Text && self.elements.were_seen() && !self.elements.are_open();
        if self.before == 0 || is_whole {
            return Ok(());
        }
        Err(self.fault(Reason::Unfinished, 0))
    }

    /// Gives what has begun as far as it came.
    pub(super) fn truncate<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        match self.state {
            State::Value { .. } => {
                // What cannot be decoded is what the cut has left of a character.
                let _ = self.value_part();
                self.give_attribute(sink)?;
            }
            State::Reference(Within::Value { .. }) => self.give_attribute(sink)?,
            _ => {}
        }
        if !self.elements.are_open() {
            return Ok(());
        }
        self.give_own_text(sink)
    }

    fn read<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), Halt> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at = match self.state {
                State::Text => self.text(bytes, at, sink)?,
                State::CData { brackets } => self.cdata(bytes, at, brackets, sink)?,
                State::Value { quote } => self.value(bytes, at, quote, sink)?,
                State::StartName | State::AttributeName | State::EndName => {
                    self.name(bytes, at, sink)?
                }
                State::Comment { dashes } => self.comment(bytes, at, dashes)?,
                State::Instruction(instruction) => self.instruction(bytes, at, instruction)?,
                State::DocumentType { quote } => {
                    self.state = self.in_document_type(byte, at, quote)?;
                    at + 1
                }
                State::Start { mark } => self.start(byte, at, mark)?,
                State::Markup => self.markup(byte, at),
                State::Keyword => {
                    self.state = self.keyword(byte, at)?;
                    at + 1
                }
                State::Reference(within) => {
                    self.reference(byte, at, within, sink)?;
                    at + 1
                }
                State::Separator
                | State::Tag
                | State::Equals
                | State::Quote
                | State::EmptyEnd
                | State::EndSpace => self.in_tag(byte, at, sink)?,
            };
        }
        Ok(())
    }

    fn start(&mut self, byte: u8, at: usize, mark: usize) -> Result<usize, Halt> {
        if BYTE_ORDER_MARK.get(mark) == Some(&byte) {
            self.state = State::Start { mark: mark + 1 };
            return Ok(at + 1);
        }
        if mark != 0 && mark != BYTE_ORDER_MARK.len() {
            return Err(self.fault(Reason::Encoding, at));
        }
        if byte == b'<' {
            self.state = State::Markup;
            return Ok(at + 1);
        }
        self.place = Place::Later;
        self.state = State::Text;
        Ok(at)
    }

    /// Text up to the next tag or reference.
    fn text<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        let end = memchr2(b'<', b'&', &bytes[at..]).map_or(bytes.len(), |len| at + len);
        self.characters(&bytes[at..end], at, sink)?;
        let Some(&byte) = bytes.get(end) else { return Ok(end) };
        self.characters_end()?;
        self.token.clear();
        if byte == b'<' {
            self.state = State::Markup;
        } else if self.elements.are_open() {
            self.state = State::Reference(Within::Text);
        } else {
            return Err(self.fault(Reason::OutsideRoot, end));
        }
        Ok(end + 1)
    }

    /// A run of text, which may end within a character.
    fn characters<S: Sink + ?Sized>(
        &mut self,
        run: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<(), Halt> {
        if !self.elements.are_open() {
            let Some(stray) = run.iter().position(|&byte| !text::is_blank(byte)) else {
                return Ok(());
            };
            let reason = match run[stray] {
                // What UTF-16 and UTF-32 begin with, or have between all letters.
                0 | 0xfe | 0xff => Reason::Encoding,
                _ => Reason::OutsideRoot,
            };
            return Err(self.fault(reason, at + stray));
        }
        let control = text::control(run);
        let run = &run[..control.unwrap_or(run.len())];
        match self.encoding {
            Encoding::Utf8 => {
                let here = self.before + at as u64;
                let (completed, rest) = self.cut.complete(run).map_err(Halt::from)?;
                self.give_text(completed.bytes(), sink)?;
                let (valid, checked) = self.cut.valid(rest, here + (run.len() - rest.len()) as u64);
                self.give_text(valid, sink)?;
                checked.map_err(Halt::from)?;
            }
            Encoding::Latin1 if !run.is_ascii() => {
                let mut decoded = Vec::with_capacity(run.len() * 2);
                self.encoding.append(run, &mut decoded).map_err(|reason| self.fault(reason, at))?;
                self.give_text(&decoded, sink)?;
            }
            Encoding::Latin1 => self.give_text(run, sink)?,
        }
        match control {
            Some(control) => Err(self.fault(Reason::Control, at + control)),
            None => Ok(()),
        }
    }

    /// Makes sure that text does not end within a character.
    fn characters_end(&self) -> Result<(), Halt> {
        match self.cut.since() {
            Some(at) => Err(Fault { reason: Reason::Utf8, at }.into()),
            None => Ok(()),
        }
    }

    fn give_text<S: Sink + ?Sized>(&mut self, text: &[u8], sink: &mut S) -> Result<(), Halt> {
        if text.is_empty() {
            return Ok(());
        }
        if self.output != XmlText::Whole {
            self.own_text.extend_from_slice(text);
        }
        match self.output {
            XmlText::Whole | XmlText::WholeAndArguments => sink.xml_text(text).checked(),
            XmlText::Arguments => Ok(()),
        }
    }

    fn cdata<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        at: usize,
        brackets: u8,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        match (brackets, bytes[at]) {
            (0, _) => {
                let end = memchr(b']', &bytes[at..]).map_or(bytes.len(), |len| at + len);
                self.characters(&bytes[at..end], at, sink)?;
                if end == bytes.len() {
                    return Ok(end);
                }
                self.characters_end()?;
                self.state = State::CData { brackets: 1 };
                Ok(end + 1)
            }
            (1, b']') => {
                self.state = State::CData { brackets: 2 };
                Ok(at + 1)
            }
            (1, _) => {
                self.give_text(b"]", sink)?;
                self.state = State::CData { brackets: 0 };
                Ok(at)
            }
            (_, b'>') => {
                self.state = State::Text;
                Ok(at + 1)
            }
            (_, b']') => {
                self.give_text(b"]", sink)?;
                Ok(at + 1)
            }
            (_, _) => {
                self.give_text(b"]]", sink)?;
                self.state = State::CData { brackets: 0 };
                Ok(at)
            }
        }
    }

    /// A name, whose end is the first byte that is not part of it.
    fn name<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        let rest = &bytes[at..];
        let len = rest.iter().position(|&byte| !is_name(byte)).unwrap_or(rest.len());
        self.token.extend_from_slice(&rest[..len]);
        let end = at + len;
        if end == bytes.len() {
            return Ok(end);
        }
        if !self.token.first().is_some_and(|&byte| is_name_start(byte)) {
            return Err(self.fault(Reason::Character, end));
        }
        self.state = match self.state {
            State::StartName => {
                self.start_element(end, sink)?;
                State::Separator
            }
            State::AttributeName => {
                self.attributes.push(&self.token).map_err(|reason| self.fault(reason, end))?;
                State::Equals
            }
            _ if self.elements.innermost_is(&self.token) => State::EndSpace,
            _ => return Err(self.fault(Reason::EndTag, end)),
        };
        Ok(end)
    }

    /// Punctuation and white space in a tag.
    fn in_tag<S: Sink + ?Sized>(
        &mut self,
        byte: u8,
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        self.state = match (self.state, byte) {
            (State::Separator, byte) if text::is_blank(byte) => State::Tag,
            (State::Tag | State::Equals | State::Quote | State::EndSpace, byte)
                if text::is_blank(byte) =>
            {
                self.state
            }
            (State::Separator | State::Tag, b'>') => {
                self.attributes.check().map_err(|reason| self.fault(reason, at))?;
                State::Text
            }
            (State::Separator | State::Tag, b'/') => State::EmptyEnd,
            (State::Tag, byte) if is_name_start(byte) => {
                self.token.clear();
                self.state = State::AttributeName;
                return Ok(at);
            }
            (State::Equals, b'=') => State::Quote,
            (State::Quote, b'"' | b'\'') => {
                self.token.clear();
                self.value.clear();
                State::Value { quote: byte }
            }
            (State::EmptyEnd, b'>') => {
                self.attributes.check().map_err(|reason| self.fault(reason, at))?;
                self.end_element(sink)?;
                State::Text
            }
            (State::EndSpace, b'>') => {
                self.end_element(sink)?;
                State::Text
            }
            _ => return Err(self.fault(Reason::Character, at)),
        };
        Ok(at + 1)
    }

    /// An attribute's value up to its quote or the next reference.
    fn value<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        at: usize,
        quote: u8,
        sink: &mut S,
    ) -> Result<usize, Halt> {
        let end = memchr3(quote, b'&', b'<', &bytes[at..]).map_or(bytes.len(), |len| at + len);
        self.token.extend_from_slice(&bytes[at..end]);
        let Some(&byte) = bytes.get(end) else { return Ok(end) };
        if byte == b'<' {
            return Err(self.fault(Reason::Character, end));
        }
        self.value_part().map_err(|reason| self.fault(reason, end))?;
        if byte == b'&' {
            self.state = State::Reference(Within::Value { quote });
        } else {
            self.give_attribute(sink)?;
            self.state = State::Separator;
        }
        Ok(end + 1)
    }

    /// Decodes the part of a value that is in `token`. White space becomes spaces (section 3.3.3).
    fn value_part(&mut self) -> Result<(), Reason> {
        let mut part = std::mem::take(&mut self.token);
        if text::control(&part).is_some() {
            return Err(Reason::Control);
        }
        for byte in &mut part {
            if text::is_blank(*byte) {
                *byte = b' ';
            }
        }
        self.encoding.append(&part, &mut self.value)?;
        part.clear();
        self.token = part;
        Ok(())
    }

    fn give_attribute<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.attributes.last_is_namespace() {
            return Ok(());
        }
        sink.xml_attribute(&self.value).checked()
    }

    fn reference<S: Sink + ?Sized>(
        &mut self,
        byte: u8,
        at: usize,
        within: Within,
        sink: &mut S,
    ) -> Result<(), Halt> {
        if byte != b';' {
            if self.token.len() == text::REFERENCE_BYTES_MAX {
                return Err(self.fault(Reason::Reference, at));
            }
            self.token.push(byte);
            return Ok(());
        }
        let char = text::referenced(&self.token).map_err(|reason| self.fault(reason, at))?;
        self.token.clear();
        match within {
            Within::Text => {
                self.state = State::Text;
                self.give_text(char.encode_utf8(&mut [0; 4]).as_bytes(), sink)
            }
            Within::Value { quote } => {
                self.state = State::Value { quote };
                text::push_char(&mut self.value, char);
                Ok(())
            }
        }
    }

    fn start_element<S: Sink + ?Sized>(&mut self, at: usize, sink: &mut S) -> Result<(), Halt> {
        if self.elements.are_open() {
            self.give_own_text(sink)?;
        } else if self.elements.were_seen() {
            return Err(self.fault(Reason::OutsideRoot, at));
        }
        self.attributes.clear();
        self.elements.start(&self.token).map_err(|reason| self.fault(reason, at))
    }

    fn end_element<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.elements.children() == Children::None {
            self.give_argument(sink)?;
        } else {
            self.give_own_text(sink)?;
        }
        self.elements.end();
        Ok(())
    }

    /// Gives the innermost element's text since its last child as an argument, if there is any.
    fn give_own_text<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.own_text.iter().all(|&byte| text::is_blank(byte)) {
            self.own_text.clear();
            return Ok(());
        }
        self.give_argument(sink)
    }

    fn give_argument<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.output == XmlText::Whole {
            return Ok(());
        }
        self.arguments_left = self.arguments_left.checked_sub(1).ok_or(BodyFault::Arguments)?;
        let flow = sink.argument(self.elements.path(), &self.own_text);
        self.own_text.clear();
        flow.checked()
    }

    fn fault(&self, reason: Reason, at: usize) -> Halt {
        Fault { reason, at: self.before + at as u64 }.into()
    }
}

/// The ASCII part of `NameStartChar` (section 2.3), and all of what is beyond.
fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

#[cfg(test)]
mod tests;
