//! Markup that is neither tag nor text: comments, instructions, document types.

use memchr::memchr;

use super::fault::Reason;
use super::text::{self, Encoding};
use super::{State, Xml};
use crate::body::fault::Halt;

/// A processing instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) place: Place,
    pub(super) last: LastByte,
}

/// Whether the last byte may begin the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastByte {
    QuestionMark,
    Other,
}

/// Whether we are at the very beginning, where an XML declaration may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Later,
}

/// Whether there was a document type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentType {
    None,
    Seen,
}

/// Bytes of an instruction that are kept, to see whether it is the XML declaration.
const DECLARATION_BYTES_MAX: usize = 256;

impl Xml {
    /// The byte behind `<`, which says what kind of markup follows.
    pub(super) fn markup(&mut self, byte: u8, at: usize) -> usize {
        let place = std::mem::replace(&mut self.place, Place::Later);
        self.token.clear();
        let (state, behind) = match byte {
            b'/' => (State::EndName, at + 1),
            b'!' => (State::Keyword, at + 1),
            b'?' => (State::Instruction(Instruction { place, last: LastByte::Other }), at + 1),
            _ => (State::StartName, at),
        };
        self.state = state;
        behind
    }

    pub(super) fn keyword(&mut self, byte: u8, at: usize) -> Result<State, Halt> {
        self.token.push(byte);
        match &self.token[..] {
            b"--" => Ok(State::Comment { dashes: 0 }),
            b"[CDATA[" if self.elements.are_open() => Ok(State::CData { brackets: 0 }),
            b"[CDATA[" => Err(self.fault(Reason::OutsideRoot, at)),
            b"DOCTYPE" => {
                let seen = std::mem::replace(&mut self.document_type, DocumentType::Seen);
                if seen == DocumentType::Seen || self.elements.were_seen() {
                    return Err(self.fault(Reason::DocumentType, at));
                }
                Ok(State::DocumentType { quote: None })
            }
            begun
                if [&b"--"[..], b"[CDATA[", b"DOCTYPE"]
                    .iter()
                    .any(|word| word.starts_with(begun)) =>
            {
                Ok(State::Keyword)
            }
            _ => Err(self.fault(Reason::Character, at)),
        }
    }

    pub(super) fn comment(&mut self, bytes: &[u8], at: usize, dashes: u8) -> Result<usize, Halt> {
        let (state, behind) = match (dashes, bytes[at]) {
            (0, _) => match memchr(b'-', &bytes[at..]) {
                Some(len) => (State::Comment { dashes: 1 }, at + len + 1),
                None => return Ok(bytes.len()),
            },
            (1, b'-') => (State::Comment { dashes: 2 }, at + 1),
            (1, _) => (State::Comment { dashes: 0 }, at + 1),
            (_, b'>') => (State::Text, at + 1),
            // Two dashes end no comment for us, but do for some.
            _ => return Err(self.fault(Reason::Character, at)),
        };
        self.state = state;
        Ok(behind)
    }

    pub(super) fn instruction(
        &mut self,
        bytes: &[u8],
        at: usize,
        instruction: Instruction,
    ) -> Result<usize, Halt> {
        match (instruction.last, bytes[at]) {
            (LastByte::QuestionMark, b'>') => {
                self.instruction_end(instruction.place, at)?;
                self.state = State::Text;
                Ok(at + 1)
            }
            (LastByte::QuestionMark, _) => {
                self.keep(b"?");
                self.state =
                    State::Instruction(Instruction { last: LastByte::Other, ..instruction });
                Ok(at)
            }
            (LastByte::Other, _) => {
                let end = memchr(b'?', &bytes[at..]).map_or(bytes.len(), |len| at + len);
                self.keep(&bytes[at..end]);
                if end == bytes.len() {
                    return Ok(end);
                }
                self.state =
                    State::Instruction(Instruction { last: LastByte::QuestionMark, ..instruction });
                Ok(end + 1)
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = DECLARATION_BYTES_MAX - self.token.len();
        self.token.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn instruction_end(&mut self, place: Place, at: usize) -> Result<(), Halt> {
        let target = self.token.iter().position(|&byte| text::is_blank(byte));
        let (target, content) = self.token.split_at(target.unwrap_or(self.token.len()));
        if !target.eq_ignore_ascii_case(b"xml") {
            return Ok(());
        }
        let is_declaration = target == b"xml" && place == Place::First;
        if !is_declaration || self.token.len() == DECLARATION_BYTES_MAX {
            return Err(self.fault(Reason::Declaration, at));
        }
        self.encoding = Encoding::declared(content).map_err(|reason| self.fault(reason, at))?;
        Ok(())
    }

    pub(super) fn in_document_type(
        &self,
        byte: u8,
        at: usize,
        quote: Option<u8>,
    ) -> Result<State, Halt> {
        match (quote, byte) {
            (Some(quote), byte) if quote == byte => Ok(State::DocumentType { quote: None }),
            (None, b'"' | b'\'') => Ok(State::DocumentType { quote: Some(byte) }),
            (None, b'>') => Ok(State::Text),
            // Declarations could name entities and give attributes that no rule has seen.
            (None, b'[' | b'<') => Err(self.fault(Reason::DocumentType, at)),
            (Some(_) | None, _) => Ok(self.state),
        }
    }
}
