//! Where a processor puts what it finds.

use super::fault::Halt;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// More is welcome.
    Continue,
    /// Nothing more is wanted: the sink has met a limit of its own, or the processor has ended.
    Stop,
}

impl Flow {
    /// Ends what is being done if it is to stop.
    pub(super) fn checked(self) -> Result<(), Halt> {
        match self {
            Self::Continue => Ok(()),
            Self::Stop => Err(Halt::Stop),
        }
    }
}

/// A file as its part's header announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// The name of the form's field: `FILES_NAMES`, and the key of the other collections.
    pub name: &'a [u8],
    /// The name that the client gives the file: `FILES`.
    pub filename: &'a [u8],
    /// The name that `filename*` gives it beside (RFC 8187), decoded: `FILES`, too, since some
    /// servers prefer it.
    pub filename_extended: Option<&'a [u8]>,
    /// Whether [`Sink::file_data`] follows.
    pub contents: Contents,
}

/// Whether a file's contents are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// They follow, in pieces.
    Follow,
    /// They are only counted, as the limit of files has been reached, or as they are an argument,
    /// too, because the file has no name.
    Counted,
}

/// Receives what a processor finds, as it finds it, in the order of the body.
///
/// All bytes are decoded and borrowed for the call. What comes whole (arguments, header lines,
/// attributes) is the same however the body was cut into pieces; of what comes in runs (file
/// contents, text) only the joined runs are.
pub trait Sink {
    /// An argument: `ARGS_POST` and its names.
    fn argument(&mut self, name: &[u8], value: &[u8]) -> Flow;

    /// A line of a part's header without its line end, folded lines joined by a space:
    /// `MULTIPART_PART_HEADERS`, under the part's name. A part's lines come together, before its
    /// argument or file.
    fn part_header(&mut self, part: &[u8], line: &[u8]) -> Flow;

    /// A file begins. Its contents and its end follow before anything else does; both are missing
    /// when a fault cuts the body.
    fn file(&mut self, file: File<'_>) -> Flow;

    /// A run of the current file's contents.
    fn file_data(&mut self, bytes: &[u8]) -> Flow;

    /// The current file ends after this many bytes: `FILES_SIZES`.
    fn file_end(&mut self, bytes: u64) -> Flow;

    /// A run of the text of the document's root element; all runs joined are the one value of
    /// `XML:/*`.
    fn xml_text(&mut self, text: &[u8]) -> Flow;

    /// The value of an attribute: one of `XML://@*`.
    fn xml_attribute(&mut self, value: &[u8]) -> Flow;
}
