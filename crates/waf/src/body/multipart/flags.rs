//! What was odd about a body though it could be read: the `MULTIPART_*` variables.

/// The flags of one body, each under its variable's name.
///
/// They are raised as the body is read and never lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Something could not be read at all; then there is a fault, too.
    pub error: bool,
    /// `MULTIPART_BOUNDARY_QUOTED`: the content type has the boundary in quotes.
    pub boundary_quoted: bool,
    /// `MULTIPART_BOUNDARY_WHITESPACE`: white space stands around the boundary's `=` or value.
    pub boundary_whitespace: bool,
    /// `MULTIPART_DATA_BEFORE`: something precedes the first boundary.
    pub data_before: bool,
    /// `MULTIPART_DATA_AFTER`: something follows the final boundary.
    pub data_after: bool,
    /// `MULTIPART_HEADER_FOLDING`: a field of a part's header is folded.
    pub header_folding: bool,
    /// `MULTIPART_INVALID_HEADER_FOLDING`: folded with something other than spaces and tabs.
    pub invalid_header_folding: bool,
    /// A line of a header or boundary ends in CRLF.
    pub crlf_line: bool,
    /// `MULTIPART_LF_LINE`: a line of a header, a boundary, or the line before one, ends in LF alone.
    pub lf_line: bool,
    /// `MULTIPART_MISSING_SEMICOLON`, also `MULTIPART_SEMICOLON_MISSING`: between the media type and
    /// the boundary.
    pub missing_semicolon: bool,
    /// `MULTIPART_INVALID_QUOTING`: single quotes, or quotes where none belong.
    pub invalid_quoting: bool,
    /// `MULTIPART_INVALID_PART`: a boundary stands where a part's header or the first line of its
    /// content should.
    pub invalid_part: bool,
    /// `MULTIPART_FILE_LIMIT_EXCEEDED`.
    pub file_limit_exceeded: bool,
    /// `MULTIPART_UNMATCHED_BOUNDARY`.
    pub unmatched_boundary: Unmatched,
}

/// Whether something in a part looks like a boundary that another reader might take for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmatched {
    /// Nothing does: 0.
    #[default]
    None,
    /// A line begins with `--`, as in a PEM file or below a mail: 2, as in ModSecurity 3, so that
    /// `@eq 1` lets such files pass and `!@eq 0` does not.
    Dashes,
    /// The boundary itself, with its dashes, is where it is none: 1.
    Boundary,
}

impl Flags {
    /// `MULTIPART_CRLF_LF_LINES`: lines end in both ways.
    pub fn crlf_lf_lines(&self) -> bool {
        self.crlf_line && self.lf_line
    }

    /// `MULTIPART_STRICT_ERROR`: any of the flags that ModSecurity sums up in it, which leaves out
    /// `MULTIPART_UNMATCHED_BOUNDARY`.
    pub fn strict_error(&self) -> bool {
        self.error
            || self.boundary_quoted
            || self.boundary_whitespace
            || self.data_before
            || self.data_after
            || self.header_folding
            || self.lf_line
            || self.missing_semicolon
            || self.invalid_quoting
            || self.invalid_part
            || self.invalid_header_folding
            || self.file_limit_exceeded
    }

    /// The number that `MULTIPART_UNMATCHED_BOUNDARY` shows.
    pub fn unmatched_boundary_number(&self) -> u8 {
        match self.unmatched_boundary {
            Unmatched::None => 0,
            Unmatched::Boundary => 1,
            Unmatched::Dashes => 2,
        }
    }

    pub(super) fn unmatched(&mut self, found: Unmatched) {
        self.unmatched_boundary = self.unmatched_boundary.max(found);
    }
}
