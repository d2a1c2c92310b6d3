//! `multipart/form-data` bodies (RFC 7578, RFC 2046 section 5.1) to arguments and files, streaming.
//!
//! As strict as ModSecurity 2, whose flags and faults this keeps: what some server reads differently
//! is either flagged (and summed up in `MULTIPART_STRICT_ERROR`) or a fault. Stricter in a few places
//! that research has since shown to matter, each said where it is: the content type's parameters
//! ([`boundary`]), spaces around `=` in a disposition ([`disposition`]), a lone CR in a header
//! ([`header`]), a file's name that only other readers find. A part with an empty file name is a file
//! to some servers and a field to others, so it is given as both.
//!
//! Contents are never decoded: a part's charset and transfer encoding are for rules to judge by its
//! header's lines.

mod boundary;
mod delimiter;
pub mod disposition;
mod fault;
mod flags;
mod header;

pub use fault::Fault;
pub use flags::{Flags, Unmatched};

use memchr::memchr;

use delimiter::{Beginning, Delimiter, Last, LineEnd, Lookout, Quoted};
use disposition::Disposition;
use header::Header;

use super::fault::{Fault as BodyFault, Halt};
use super::options::{Limits, Options};
use super::sink::{Contents, File, Sink};

/// The processor for multipart bodies.
///
/// Holds the current part's header, a field's value, and a line that may become a delimiter.
#[derive(Debug)]
pub struct Multipart {
    delimiter: Delimiter,
    lookout: Lookout,
    flags: Flags,
    state: State,
    part: Part,
    /// What the last piece left undecided, from the beginning of a line or a line's end.
    carry: Vec<u8>,
    /// Bytes of `carry` that have no line end.
    searched: usize,
    /// The end of the last line of content: content too, unless a delimiter follows.
    held: LineEnd,
    left: Left,
    fed: Fed,
}

/// Where in the body we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble(At),
    /// In a part's header, at the beginning of a line.
    Header,
    /// In a part's content.
    Content(At),
    /// Behind the final delimiter.
    Epilogue,
}

/// Where in a line we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At the beginning of the first line of a part's content, where no delimiter may be.
    First,
    /// At the beginning of any other.
    Start,
    Within,
}

/// The current part.
#[derive(Debug)]
struct Part {
    header: Header,
    kind: PartKind,
    name: Vec<u8>,
    filename: Vec<u8>,
    /// The content of a field.
    value: Vec<u8>,
    /// Bytes of content.
    bytes: u64,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Field,
    File(Contents),
    /// A file without a name, which some servers take for a field.
    Nameless,
}

/// What limits leave.
#[derive(Debug)]
struct Left {
    arguments: u32,
    parts: u32,
    files: u32,
    fields_bytes: usize,
}

/// Whether there is a body at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fed {
    Nothing,
    Something,
}

/// Bytes of a new piece that are joined to what the last one left undecided, at a time.
const JOINED_BYTES: usize = 256;

impl Multipart {
    /// A processor for one body, and the fault if the content type alone is one.
    pub(super) fn new(content_type: &[u8], options: &Options) -> (Self, Option<BodyFault>) {
        let mut flags = Flags::default();
        let found = boundary::boundary(content_type, &mut flags);
        flags.error = found.is_err();
        let (boundary, fault) = match found {
            Ok(boundary) => (boundary, None),
            Err(fault) => (&[][..], Some(BodyFault::Multipart(fault))),
        };
        let quoted = if flags.boundary_quoted { Quoted::Yes } else { Quoted::No };
        let limits = &options.limits;
        let multipart = Self {
            delimiter: Delimiter::new(boundary, quoted),
            lookout: Lookout::default(),
            flags,
            state: State::Preamble(At::Start),
            part: Part::new(limits),
            carry: Vec::new(),
            searched: 0,
            held: LineEnd::None,
            left: Left {
                arguments: limits.arguments_max,
                parts: limits.parts_max,
                files: limits.files_max,
                fields_bytes: limits.fields_bytes_max,
            },
            fed: Fed::Nothing,
        };
        (multipart, fault)
    }

    /// What was odd so far.
    pub fn flags(&self) -> &Flags {
        &self.flags
    }

    /// The name of the last part that has begun: `MULTIPART_NAME`.
    pub fn name(&self) -> &[u8] {
        &self.part.name
    }

    /// The name of the file that it is, or nothing: `MULTIPART_FILENAME`.
    pub fn filename(&self) -> &[u8] {
        &self.part.filename
    }

    /// Takes the next bytes of the body.
    pub(super) fn feed<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), Halt> {
        if !bytes.is_empty() {
            self.fed = Fed::Something;
        }
        let taken = self.take(bytes, sink);
        self.noted(taken)
    }

    /// Takes the end of the body.
    pub(super) fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.fed == Fed::Nothing || self.state == State::Epilogue {
            return Ok(());
        }
        let ended = match self.state {
            // The final delimiter needs no line end.
            State::Content(at @ (At::First | At::Start)) if self.carries_final() => {
                self.flags.invalid_part |= at == At::First;
                self.flags.lf_line |= self.held == LineEnd::Lf;
                self.state = State::Epilogue;
                self.part_end(sink)
            }
            State::Preamble(_) => Err(Fault::NoBoundary.into()),
            State::Header | State::Content(_) | State::Epilogue => Err(Fault::FinalMissing.into()),
        };
        self.noted(ended)
    }

    /// Gives what has begun as far as it came.
    pub(super) fn truncate<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        let State::Content(at) = self.state else { return Ok(()) };
        let carry = std::mem::take(&mut self.carry);
        let cut_delimiter = at == At::Start && self.delimiter.begins(&carry);
        let given = if cut_delimiter {
            Ok(())
        } else {
            let held = std::mem::take(&mut self.held);
            self.give(held.bytes(), sink).and_then(|()| self.give(&carry, sink))
        };
        let ended = given.and_then(|()| self.part_end(sink));
        self.noted(ended)
    }

    /// Raises the flag of faults.
    fn noted(&mut self, taken: Result<(), Halt>) -> Result<(), Halt> {
        self.flags.error |= matches!(taken, Err(Halt::Fault(_)));
        taken
    }

    fn carries_final(&self) -> bool {
        self.carry.strip_prefix(self.delimiter.dashed()) == Some(b"--")
    }

    fn take<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), Halt> {
        let mut rest = bytes;
        while !self.carry.is_empty() && !rest.is_empty() {
            let mut joined = std::mem::take(&mut self.carry);
            let before = joined.len();
            let more = rest.len().min(JOINED_BYTES);
            joined.extend_from_slice(&rest[..more]);
            let taken = self.steps(&joined, sink)?;
            rest = &rest[taken.checked_sub(before).unwrap_or(more)..];
            if taken >= before {
                joined.clear();
            } else {
                joined.drain(..taken);
            }
            self.carry = joined;
        }
        let taken = self.steps(rest, sink)?;
        self.carry.extend_from_slice(&rest[taken..]);
        Ok(())
    }

    /// Goes on until more bytes are needed; how many were taken.
    fn steps<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<usize, Halt> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let step = match self.state {
                State::Header => self.header_line(rest, sink)?,
                State::Preamble(at) | State::Content(at) => self.content(at, rest, sink)?,
                State::Epilogue => {
                    self.flags.data_after = true;
                    rest.len()
                }
            };
            if step == 0 {
                break;
            }
            taken += step;
        }
        Ok(taken)
    }

    /// Takes a line of a part's header, if it is there as a whole.
    fn header_line<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<usize, Halt> {
        let line_bytes_max = self.part.header.field_bytes_max();
        let Some(end) = memchr(b'\n', &bytes[self.searched..]) else {
            self.searched = bytes.len();
            // A CR may be the beginning of the line's end.
            return if bytes.len() > line_bytes_max + 1 {
                Err(Fault::HeaderLength.into())
            } else {
                Ok(0)
            };
        };
        let end = self.searched + end;
        self.searched = 0;
        let whole = &bytes[..end];
        let line = whole.strip_suffix(b"\r").unwrap_or(whole);
        if line.len() > line_bytes_max {
            return Err(Fault::HeaderLength.into());
        }
        if line.len() < whole.len() {
            self.flags.crlf_line = true;
        } else {
            self.flags.lf_line = true;
        }
        self.spend(end + 1)?;
        if line.is_empty() {
            self.header_end(sink)?;
        } else {
            self.look_for_boundary(line);
            self.part.header.line(line, &mut self.flags)?;
        }
        Ok(end + 1)
    }

    fn look_for_boundary(&mut self, line: &[u8]) {
        self.flags.invalid_part |= line.starts_with(self.delimiter.dashed());
        if self.delimiter.is_in(line) {
            self.flags.unmatched(Unmatched::Boundary);
        } else if line.starts_with(b"--") {
            self.flags.unmatched(Unmatched::Dashes);
        }
    }

    fn header_end<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        let Self { part, flags, left, .. } = self;
        let value = part.header.value(b"Content-Disposition").ok_or(Fault::DispositionMissing)?;
        let read = Disposition::read(value, flags).map_err(Fault::Disposition)?;
        if read.filename.is_none() && names_file(value) {
            return Err(Fault::Filename.into());
        }
        part.name = read.name.ok_or(Fault::NameMissing)?;
        part.filename.clear();
        for field in part.header.fields() {
            sink.part_header(&part.name, field).checked()?;
        }
        part.kind = PartKind::Field;
        if let Some(filename) = read.filename {
            part.filename = filename;
            let (kind, contents) = if part.filename.is_empty() {
                (PartKind::Nameless, Contents::Counted)
            } else if let Some(files) = left.files.checked_sub(1) {
                left.files = files;
                (PartKind::File(Contents::Follow), Contents::Follow)
            } else {
                flags.file_limit_exceeded = true;
                (PartKind::File(Contents::Counted), Contents::Counted)
            };
            part.kind = kind;
            let file = File {
                name: &part.name,
                filename: &part.filename,
                filename_extended: read.filename_extended.as_deref(),
                contents,
            };
            sink.file(file).checked()?;
        }
        self.lookout.clear();
        self.state = State::Content(At::First);
        Ok(())
    }

    /// Takes content up to the next line that may be a delimiter, or a delimiter.
    fn content<S: Sink + ?Sized>(
        &mut self,
        at: At,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<usize, Halt> {
        if at != At::Within {
            match self.delimiter.judge(bytes)? {
                Beginning::Open => return Ok(0),
                Beginning::Plain => {}
                Beginning::Dashes => self.flags.unmatched(Unmatched::Dashes),
                Beginning::Delimiter { .. } if at == At::First => {
                    self.flags.invalid_part = true;
                    self.flags.unmatched(Unmatched::Boundary);
                }
                Beginning::Delimiter { bytes, last, end } => {
                    self.delimited(last, end, sink)?;
                    return Ok(bytes);
                }
            }
            self.flags.data_before |= matches!(self.state, State::Preamble(_));
            let held = std::mem::take(&mut self.held);
            self.give(held.bytes(), sink)?;
            self.go_to(At::Within);
        }
        let line_end = self.delimiter.find_line_with_dashes(bytes).or_else(|| {
            let cut = bytes.strip_suffix(b"-").unwrap_or(bytes);
            cut.ends_with(b"\n").then(|| cut.len() - 1)
        });
        let Some(line_end) = line_end else {
            // A CR may be the beginning of a line's end.
            let content = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            self.give(content, sink)?;
            return Ok(content.len());
        };
        let content = &bytes[..line_end];
        let (content, held) = match content.strip_suffix(b"\r") {
            Some(content) => (content, LineEnd::CrLf),
            None => (content, LineEnd::Lf),
        };
        self.give(content, sink)?;
        self.held = held;
        self.go_to(At::Start);
        Ok(line_end + 1)
    }

    fn go_to(&mut self, at: At) {
        if let State::Preamble(here) | State::Content(here) = &mut self.state {
            *here = at;
        }
    }

    fn delimited<S: Sink + ?Sized>(
        &mut self,
        last: Last,
        end: LineEnd,
        sink: &mut S,
    ) -> Result<(), Halt> {
        self.flags.crlf_line |= end == LineEnd::CrLf;
        self.flags.lf_line |= end == LineEnd::Lf || self.held == LineEnd::Lf;
        self.held = LineEnd::None;
        if matches!(self.state, State::Content(_)) {
            self.part_end(sink)?;
        }
        self.state = match last {
            Last::Yes => State::Epilogue,
            Last::No => {
                self.left.parts = self.left.parts.checked_sub(1).ok_or(Fault::Parts)?;
                self.part.header.clear();
                self.part.value.clear();
                self.part.bytes = 0;
                State::Header
            }
        };
        Ok(())
    }

    /// Takes bytes of content.
    fn give<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), Halt> {
        if bytes.is_empty() || matches!(self.state, State::Preamble(_)) {
            return Ok(());
        }
        // What is behind a limit is not looked at, so that its place alone decides.
        let within = match self.part.kind {
            PartKind::File(_) => bytes,
            PartKind::Field | PartKind::Nameless => {
                &bytes[..bytes.len().min(self.left.fields_bytes)]
            }
        };
        if self.flags.unmatched_boundary < Unmatched::Boundary
            && self.lookout.sees(within, &self.delimiter)
        {
            self.flags.unmatched(Unmatched::Boundary);
        }
        self.part.bytes += bytes.len() as u64;
        match self.part.kind {
            PartKind::Field | PartKind::Nameless => {
                self.spend(bytes.len())?;
                self.part.value.extend_from_slice(bytes);
                Ok(())
            }
            PartKind::File(Contents::Follow) => sink.file_data(bytes).checked(),
            PartKind::File(Contents::Counted) => Ok(()),
        }
    }

    fn part_end<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), Halt> {
        if self.part.kind != PartKind::Field {
            sink.file_end(self.part.bytes).checked()?;
        }
        if matches!(self.part.kind, PartKind::File(_)) {
            return Ok(());
        }
        self.left.arguments = self.left.arguments.checked_sub(1).ok_or(BodyFault::Arguments)?;
        sink.argument(&self.part.name, &self.part.value).checked()
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Halt> {
        self.left.fields_bytes =
            self.left.fields_bytes.checked_sub(bytes).ok_or(BodyFault::Fields)?;
        Ok(())
    }
}

impl Part {
    fn new(limits: &Limits) -> Self {
        Self {
            header: Header::new(limits.part_headers_max, limits.part_header_bytes_max),
            kind: PartKind::Field,
            name: Vec::new(),
            filename: Vec::new(),
            value: Vec::new(),
            bytes: 0,
        }
    }
}

/// Whether a crude reader would find a file's name in a disposition.
fn names_file(disposition: &[u8]) -> bool {
    [&b"filename="[..], b"filename*="]
        .iter()
        .any(|name| disposition.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests;
