//! Chunked bodies (RFC 9112, section 7.1), read and written.
//!
//! The decoder copies no data: it says which part of its input is some. It takes any split of the
//! body and comes to the same result. Chunk extensions are read over and forgotten, within limits,
//! and the chunks' sizes do not outlive it either: what is sent on is chunked afresh.

use crate::error::{ChunkError, FieldError};
use crate::field::{self, Known};
use crate::headers::{FieldRef, Headers};
use crate::{parse, write};
use std::ops::Range;

/// Limits on what a chunked body holds beside data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Extension bytes in one size line.
    pub extension_bytes_max: usize,
    /// Extension bytes in the whole body, so that small chunks cannot be mostly extensions.
    pub extension_bytes_total_max: usize,
    /// The trailer section, with its final empty line.
    pub trailer_bytes_max: usize,
    /// The number of trailer fields.
    pub trailer_fields_max: usize,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        ChunkLimits {
            extension_bytes_max: 256,
            extension_bytes_total_max: 16 * 1024,
            trailer_bytes_max: 8 * 1024,
            trailer_fields_max: 32,
        }
    }
}

/// What one step found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How much of the input is done with, data included.
    pub consumed: usize,
    /// Which part of the input is data; may be empty.
    pub data: Range<usize>,
    /// Whether the body has ended. What follows in the input is not part of it.
    pub ended: bool,
}

/// Reads one chunked body.
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: ChunkLimits,
    state: State,
    extension_bytes_total: usize,
    trailer_text: Vec<u8>,
    trailers: Headers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { digits: u8, size: u64 },
    Extension { bytes: usize, size: u64 },
    SizeLineFeed { size: u64 },
    Data { left: u64 },
    DataReturn,
    DataLineFeed,
    Trailer { line_start: usize },
    Ended,
}

const START: State = State::Size { digits: 0, size: 0 };

impl Decoder {
    /// A decoder at the start of a body; allocates nothing.
    pub fn new(limits: ChunkLimits) -> Self {
        Decoder {
            limits,
            state: START,
            extension_bytes_total: 0,
            trailer_text: Vec::new(),
            trailers: Headers::new(),
        }
    }

    /// Makes ready for the next body and keeps the memory.
    pub fn reset(&mut self) {
        self.state = START;
        self.extension_bytes_total = 0;
        self.trailer_text.clear();
        self.trailers.clear();
    }

    /// Whether the body has ended.
    pub fn ended(&self) -> bool {
        self.state == State::Ended
    }

    /// The trailer fields, once the body has ended.
    pub fn trailers(&self) -> &Headers {
        &self.trailers
    }

    /// Reads on, up to the next data and its end in this input.
    ///
    /// Call it again with what is left of the input until all is consumed or the body has ended.
    /// After an error the body is lost, and so is the place of whatever follows it.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, ChunkError> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            self.state = match self.state {
                State::Size { digits, size } => self.size(byte, digits, size)?,
                State::Extension { bytes, size } => self.extension(byte, bytes, size)?,
                State::SizeLineFeed { size } => match byte {
                    b'\n' if size == 0 => State::Trailer { line_start: 0 },
                    b'\n' => State::Data { left: size },
                    _ => return Err(ChunkError::LineEnd),
                },
                State::Data { left } => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - at);
                    let data = at..at + here;
                    let left = left - here as u64;
                    self.state = if left == 0 { State::DataReturn } else { State::Data { left } };
                    let consumed = self.data_end(input, data.end)?;
                    return Ok(Step { consumed, data, ended: false });
                }
                State::DataReturn if byte == b'\r' => State::DataLineFeed,
                State::DataLineFeed if byte == b'\n' => START,
                State::DataReturn | State::DataLineFeed => return Err(ChunkError::DataEnd),
                State::Trailer { line_start } => {
                    at += self.trailer(&input[at..], line_start)?;
                    continue;
                }
                State::Ended => break,
            };
            at += 1;
        }
        Ok(Step { consumed: at, data: at..at, ended: self.ended() })
    }

    /// Reads over the CRLF behind data as far as it is there, so that the next step is at a size.
    fn data_end(&mut self, input: &[u8], at: usize) -> Result<usize, ChunkError> {
        if self.state != State::DataReturn {
            return Ok(at);
        }
        match &input[at..] {
            [] => Ok(at),
            [b'\r'] => {
                self.state = State::DataLineFeed;
                Ok(at + 1)
            }
            [b'\r', b'\n', ..] => {
                self.state = START;
                Ok(at + 2)
            }
            _ => Err(ChunkError::DataEnd),
        }
    }

    fn size(&self, byte: u8, digits: u8, size: u64) -> Result<State, ChunkError> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(ChunkError::Size),
            b'\r' => return Ok(State::SizeLineFeed { size }),
            b';' => return Ok(State::Extension { bytes: 1, size }),
            b'\n' => return Err(ChunkError::LineEnd),
            _ => return Err(ChunkError::Size),
        };
        if digits == 16 {
            return Err(ChunkError::Size);
        }
        // Nobody's signed counter may wrap where ours does not.
        let size = size << 4 | u64::from(digit);
        if digits == 15 && i64::try_from(size).is_err() {
            return Err(ChunkError::SizeTooLarge);
        }
        Ok(State::Size { digits: digits + 1, size })
    }

    fn extension(&mut self, byte: u8, bytes: usize, size: u64) -> Result<State, ChunkError> {
        match byte {
            b'\r' => Ok(State::SizeLineFeed { size }),
            b'\n' => Err(ChunkError::LineEnd),
            b'\t' | b' '..=b'~' => {
                self.extension_bytes_total += 1;
                if bytes >= self.limits.extension_bytes_max {
                    return Err(ChunkError::ExtensionTooLong);
                }
                if self.extension_bytes_total > self.limits.extension_bytes_total_max {
                    return Err(ChunkError::ExtensionsTooLong);
                }
                Ok(State::Extension { bytes: bytes + 1, size })
            }
            _ => Err(ChunkError::Extension),
        }
    }

    /// Takes up to one line of the trailer section; how much of the input that was.
    fn trailer(&mut self, input: &[u8], line_start: usize) -> Result<usize, ChunkError> {
        let line_feed = memchr::memchr(b'\n', input);
        let taken = line_feed.map_or(input.len(), |at| at + 1);
        if self.trailer_text.len() + taken > self.limits.trailer_bytes_max {
            return Err(FieldError::TooLarge.into());
        }
        self.trailer_text.extend_from_slice(&input[..taken]);
        if line_feed.is_some() {
            let line = &self.trailer_text[line_start..];
            if !line.ends_with(b"\r\n") {
                return Err(FieldError::BareLf.into());
            }
            if line.len() == 2 {
                self.read_trailers()?;
                self.state = State::Ended;
            } else {
                self.state = State::Trailer { line_start: self.trailer_text.len() };
            }
        }
        Ok(taken)
    }

    fn read_trailers(&mut self) -> Result<(), ChunkError> {
        if self.trailer_text.len() == 2 {
            return Ok(());
        }
        let mut all = Headers::new();
        parse::fields(&self.trailer_text, self.limits.trailer_fields_max, &mut all)?;
        for field in all.iter() {
            match fate(field) {
                Fate::Passes => self.trailers.push(field.name, field.value),
                Fate::IsDropped => {}
                Fate::Refuses => return Err(ChunkError::TrailerForbidden),
            }
        }
        Ok(())
    }
}

enum Fate {
    Passes,
    IsDropped,
    Refuses,
}

/// What becomes of a trailer field (RFC 9110, section 6.5.1).
///
/// One that frames or routes is an attack and refuses the body. Others that are read before a body
/// must not come behind it, lest somebody merges them into the head: of the names we know only
/// `ETag` may, and of those we do not, none about the content or the way it took.
fn fate(field: FieldRef<'_>) -> Fate {
    let starts = |with: &[u8]| {
        field.name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let known = field::look_alike(field.name).unwrap_or(field.known);
    match known {
        Known::ContentLength | Known::TransferEncoding | Known::Host => Fate::Refuses,
        Known::Etag => Fate::Passes,
        Known::Other if starts(b"Content-") || starts(b"X-Forwarded-") => Fate::IsDropped,
        Known::Other => Fate::Passes,
        _ => Fate::IsDropped,
    }
}

/// Ends the body where there are no trailers: the last chunk and the empty line.
pub const LAST: &[u8] = b"0\r\n\r\n";

/// The size line of a chunk, for as many bytes as `len`. CRLF has to follow the data.
///
/// A chunk of no bytes would end the body, so `len` is not 0.
pub fn size_line(len: usize, out: &mut [u8; 18]) -> &[u8] {
    debug_assert!(len > 0);
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut at = 16;
    out[16..].copy_from_slice(b"\r\n");
    let mut rest = len;
    loop {
        at -= 1;
        out[at] = DIGITS[rest % 16];
        rest /= 16;
        if rest == 0 {
            return &out[at..];
        }
    }
}

/// Writes the last chunk, the trailer fields and the empty line.
pub fn end(out: &mut Vec<u8>, trailers: &Headers) {
    out.extend_from_slice(b"0\r\n");
    for field in trailers.iter() {
        write::field(out, field.name, field.value);
    }
    out.extend_from_slice(b"\r\n");
}
