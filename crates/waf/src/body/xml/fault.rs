//! Why a body is no XML, or too much of it.

use std::fmt;

/// Why a body is no XML, or too much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub reason: Reason,
    /// Where that became clear: bytes from the beginning of the body.
    pub at: u64,
}

/// What can be wrong with an XML body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// More elements are open than [`Limits::xml_depth_max`](crate::body::Limits).
    Depth,
    /// More elements in all than [`Limits::xml_elements_max`](crate::body::Limits).
    Elements,
    /// More attributes on one element than [`Limits::xml_attributes_max`](crate::body::Limits).
    Attributes,
    /// An argument's name is longer than [`Limits::name_bytes_max`](crate::body::Limits).
    NameLength,
    /// A character that cannot stand where it does.
    Character,
    /// A control character.
    Control,
    /// Text that is not in the encoding it should be in.
    Utf8,
    /// An encoding other than UTF-8, US-ASCII and ISO-8859-1.
    Encoding,
    /// An XML declaration that is not the first thing, or too long.
    Declaration,
    /// A document type with declarations of its own, or where none can be.
    DocumentType,
    /// An entity that is not predefined, or a character that does not exist.
    Reference,
    /// An attribute that the element already has.
    AttributeRepeated,
    /// An end tag without its start tag, or the wrong one.
    EndTag,
    /// Text or a second element outside of the root element.
    OutsideRoot,
    /// The body ends before its root element does.
    Unfinished,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            Reason::Depth => "too deep",
            Reason::Elements => "too many elements",
            Reason::Attributes => "too many attributes",
            Reason::NameLength => "a name is too long",
            Reason::Character => "invalid character",
            Reason::Control => "control character",
            Reason::Utf8 => "invalid UTF-8",
            Reason::Encoding => "unsupported encoding",
            Reason::Declaration => "misplaced XML declaration",
            Reason::DocumentType => "document type with declarations, or misplaced",
            Reason::Reference => "unknown entity or character",
            Reason::AttributeRepeated => "repeated attribute",
            Reason::EndTag => "end tag without its start tag",
            Reason::OutsideRoot => "content outside of the root element",
            Reason::Unfinished => "premature end",
        };
        // The words before the colon are ModSecurity's.
        write!(f, "Failed parsing document: {reason}, at byte {}", self.at)
    }
}
