//! Why a body is no `multipart/form-data`, or too much of it.

use std::fmt;

use super::disposition;

/// What is wrong, in ModSecurity's words where it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no `Content-Type`.
    ContentTypeMissing,
    /// Another media type than `multipart/form-data`.
    MediaType,
    /// The content type, or the boundary in it, is too long.
    BoundaryLength,
    /// The parameters of the content type cannot be read.
    BoundaryMalformed,
    /// A parameter other than `boundary` and `charset`, or a charset that is no token.
    BoundaryParameter,
    /// `boundary` more than once.
    BoundaryRepeated,
    /// `boundary` in another case: allowed, but servers differ.
    BoundaryCase,
    /// No `boundary` at all.
    BoundaryMissing,
    /// A boundary of no characters.
    BoundaryEmpty,
    /// A quote that is not closed, or a backslash in quotes.
    BoundaryQuote,
    /// A boundary that looks like a parameter itself.
    BoundaryContent,
    /// Characters that no boundary may have.
    BoundaryCharacters,
    /// Something other than a line's end follows the boundary in the body.
    Delimiter,
    /// The boundary stands in quotes in the body.
    DelimiterQuotes,
    /// White space stands before the boundary in the body.
    DelimiterWhitespace,
    /// A NUL in a part's header.
    HeaderNul,
    /// A line of a part's header without a colon.
    HeaderColon,
    /// A field of a part's header without a name.
    HeaderName,
    /// A character that a field's name may not have, or a lone CR anywhere in a line.
    HeaderCharacter,
    /// A part's header begins with a folded line.
    HeaderFolding,
    /// A line or folded field that is too long.
    HeaderLength,
    /// A field that a part's header already has.
    HeaderRepeated,
    /// Too many fields in a part's header.
    HeaderCount,
    /// A part without `Content-Disposition`.
    DispositionMissing,
    /// A `Content-Disposition` that cannot be read.
    Disposition(disposition::Fault),
    /// A part without a name.
    NameMissing,
    /// A file's name that other readers would not find, or find where we do not.
    Filename,
    /// Too many parts.
    Parts,
    /// The body ends without the final boundary.
    FinalMissing,
    /// The body has no boundary at all.
    NoBoundary,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContentTypeMissing => "Content-Type header not available.",
            Self::MediaType => "Invalid MIME type.",
            Self::BoundaryLength => "Invalid boundary in C-T (length).",
            Self::BoundaryMalformed => "Invalid boundary in C-T (malformed).",
            Self::BoundaryParameter => "Invalid boundary in C-T (parameter name).",
            Self::BoundaryRepeated => "Multiple boundary parameters in C-T.",
            Self::BoundaryCase => "Invalid boundary in C-T (case sensitivity).",
            Self::BoundaryMissing => "Boundary not found in C-T.",
            Self::BoundaryEmpty => "Invalid boundary in C-T (empty).",
            Self::BoundaryQuote => "Invalid boundary in C-T (quote).",
            Self::BoundaryContent => "Invalid boundary in C-T (content).",
            Self::BoundaryCharacters => "Invalid boundary in C-T (characters).",
            Self::Delimiter => "Invalid boundary.",
            Self::DelimiterQuotes => "Invalid boundary (quotes).",
            Self::DelimiterWhitespace => "Invalid boundary (whitespace).",
            Self::HeaderNul => "Nul byte in part headers.",
            Self::HeaderColon => "Invalid part header (colon missing).",
            Self::HeaderName => "Invalid part header (header name missing).",
            Self::HeaderCharacter => "Invalid part header (contains invalid character).",
            Self::HeaderFolding => "Invalid part header (folding error).",
            Self::HeaderLength => "Part header too long.",
            Self::HeaderRepeated => "Duplicate part header.",
            Self::HeaderCount => "Too many part headers.",
            Self::DispositionMissing => "Part missing Content-Disposition header.",
            Self::Disposition(fault) => {
                return write!(f, "Invalid Content-Disposition header ({fault}).");
            }
            Self::NameMissing => "Content-Disposition header missing name field.",
            Self::Filename => "Invalid Content-Disposition header (filename).",
            Self::Parts => "Too many parts.",
            Self::FinalMissing => "Final boundary missing.",
            Self::NoBoundary => "No boundaries found in payload.",
        })
    }
}
