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

    /// Bytes of the current chunk that are still to come: its size line has announced them.
    pub fn announced(&self) -> u64 {
        match self.state {
            State::Data { left } => left,
            _ => 0,
        }
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

    /// One byte of a size line, before any extension.
    fn size(&mut self, byte: u8, digits: u8, size: u64) -> Result<State, ChunkError> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(ChunkError::Size),
            b'\r' => return Ok(State::SizeLineFeed { size }),
            b';' => return self.extension(byte, 0, size),
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

    /// One byte of an extension; `bytes` of it were there before.
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
        all.iter().try_for_each(|field| push_trailer(&mut self.trailers, field.name, field.value))
    }
}

/// Adds a trailer field, if it may be one; also for HTTP/2, where trailers come in frames of their own.
///
/// Name and value are checked, because `h2` lets names pass that HTTP/1 does not know.
pub fn push_trailer(trailers: &mut Headers, name: &[u8], value: &[u8]) -> Result<(), ChunkError> {
    if !field::is_name(name) {
        return Err(FieldError::Name.into());
    }
    if !field::is_value(value) {
        return Err(FieldError::Value.into());
    }
    match fate(FieldRef { known: Known::of(name), name, value }) {
        Fate::Passes => trailers.push(name, value),
        Fate::IsDropped => {}
        Fate::Refuses => return Err(ChunkError::TrailerForbidden),
    }
    Ok(())
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
        Known::Other if starts(b"Content-") || starts(b"X-Forwarded-") => Fate::IsDropped,
        Known::Other | Known::Etag => Fate::Passes,
        _ => Fate::IsDropped,
    }
}

/// Ends the body where there are no trailers: the last chunk and the empty line.
pub const LAST: &[u8] = b"0\r\n\r\n";

/// The size line of a chunk, for as many bytes as `len`. CRLF has to follow the data.
///
/// A chunk of no bytes would end the body, so `len` is not 0.
pub fn size_line(len: usize, out: &mut [u8; 18]) -> &[u8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    debug_assert!(len > 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a whole body comes to: its data, its trailers, and how much of the input it took.
    type Read = Result<Option<(Vec<u8>, Vec<String>, usize)>, ChunkError>;

    fn feed(pieces: &[&[u8]], limits: ChunkLimits) -> Read {
        let mut decoder = Decoder::new(limits);
        let mut data = Vec::new();
        let mut consumed = 0;
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let step = decoder.step(rest)?;
                assert!(step.consumed > 0, "a step without progress");
                assert!(step.data.end <= step.consumed);
                data.extend_from_slice(&rest[step.data]);
                consumed += step.consumed;
                rest = &rest[step.consumed..];
                assert_eq!(step.ended, decoder.ended());
                if step.ended {
                    let trailers = decoder.trailers().iter().map(|field| {
                        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                        format!("{}: {}", text(field.name), text(field.value))
                    });
                    return Ok(Some((data, trailers.collect(), consumed)));
                }
            }
        }
        Ok(None)
    }

    /// Reads whole, byte by byte, and in two pieces at each place: all have to agree.
    #[track_caller]
    fn read(input: &[u8]) -> Read {
        let limits = ChunkLimits::default();
        let whole = feed(&[input], limits);
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        let text = String::from_utf8_lossy(input);
        assert_eq!(feed(&bytes, limits), whole, "byte by byte: {text:?}");
        for at in 0..=input.len() {
            let (start, end) = input.split_at(at);
            assert_eq!(feed(&[start, end], limits), whole, "split at {at}: {text:?}");
        }
        whole
    }

    #[track_caller]
    fn accepted(input: &[u8], data: &[u8], trailers: &[&str]) {
        let trailers = trailers.iter().map(ToString::to_string).collect();
        assert_eq!(read(input), Ok(Some((data.to_vec(), trailers, input.len()))));
        // What follows is left alone.
        let with_more = [input, b"GET / HTTP/1.1\r\n"].concat();
        assert_eq!(read(&with_more).unwrap().unwrap().2, input.len());
    }

    #[track_caller]
    fn refused(input: &[u8], reason: impl Into<ChunkError>) {
        assert_eq!(read(input), Err(reason.into()), "{:?}", String::from_utf8_lossy(input));
    }

    #[test]
    fn bodies_are_read_in_any_split() {
        accepted(b"0\r\n\r\n", b"", &[]);
        accepted(b"5\r\nhello\r\n0\r\n\r\n", b"hello", &[]);
        accepted(b"5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", b"hello world", &[]);
        accepted(b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789", &[]);
        accepted(b"A\r\n0123456789\r\n000\r\n\r\n", b"0123456789", &[]);
        accepted(b"0000000000000001\r\nx\r\n0\r\n\r\n", b"x", &[]);
        accepted(b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", &[]);
        accepted(b"7\r\n0\r\n\r\nab\r\n0\r\n\r\n", b"0\r\n\r\nab", &[]);
    }

    #[test]
    fn extensions_are_read_over() {
        accepted(b"1;a\r\nx\r\n0;b=\"c d\"\r\n\r\n", b"x", &[]);
        accepted(b"1;\r\nx\r\n0\r\n\r\n", b"x", &[]);
        accepted(b"1; a = b ;c\t\r\nx\r\n0\r\n\r\n", b"x", &[]);
    }

    #[test]
    fn trailers_are_kept() {
        accepted(b"0\r\nA: b\r\nGrpc-Status: 0\r\n\r\n", b"", &["A: b", "Grpc-Status: 0"]);
        accepted(b"1\r\nx\r\n0\r\nETag:\t\"a\" \r\n\r\n", b"x", &["ETag: \"a\""]);
    }

    #[test]
    fn sizes_are_plain_hex() {
        for input in [
            &b"\r\n"[..],
            b"x\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b" 1\r\n",
            b"1 \r\nx\r\n",
            b"1\t\r\nx\r\n",
            b"1 ;a\r\nx\r\n",
            b"0x1\r\nx\r\n",
            b"1h\r\n",
            b"1_0\r\n",
            b"1.0\r\n",
            b"g\r\n",
            b";a\r\n",
            b"\n",
            b"\0",
            b"1\0\r\n",
            b"\xef\xbc\x91\r\n",
            b"00000000000000001\r\nx\r\n",
            b"10000000000000000\r\n",
        ] {
            refused(input, ChunkError::Size);
        }
        for input in
            [&b"8000000000000000\r\n"[..], b"ffffffffffffffff\r\n", b"FFFFFFFFFFFFFFF0\r\n"]
        {
            refused(input, ChunkError::SizeTooLarge);
        }
        assert_eq!(read(b"7fffffffffffffff\r\nx"), Ok(None));
    }

    #[test]
    fn size_lines_end_in_crlf() {
        refused(b"1\nx\r\n", ChunkError::LineEnd);
        refused(b"1\rx\r\n", ChunkError::LineEnd);
        refused(b"1\r\r\nx", ChunkError::LineEnd);
        refused(b"1;a\nx\r\n", ChunkError::LineEnd);
        refused(b"1;a\rb\r\nx\r\n", ChunkError::LineEnd);
        refused(b"0\n\r\n", ChunkError::LineEnd);
        refused(b"0\r\r\n", ChunkError::LineEnd);
    }

    #[test]
    fn extensions_hold_visible_text() {
        for byte in [0, 0x0b, 0x1f, 0x7f, 0x80, 0xff] {
            refused(&[b'1', b';', b'a', byte, b'\r', b'\n'], ChunkError::Extension);
        }
    }

    #[test]
    fn data_ends_in_crlf() {
        for input in [
            &b"1\r\nxy\r\n"[..],
            b"1\r\nx\n0\r\n",
            b"1\r\nx\r0\r\n",
            b"1\r\nx0\r\n\r\n",
            b"2\r\nx\r\n0\r\n\r\n",
            b"1\r\nx\r\r\n",
        ] {
            refused(input, ChunkError::DataEnd);
        }
    }

    #[test]
    fn a_cut_body_does_not_end() {
        let whole = b"5;a\r\nhello\r\n0\r\nA: b\r\n\r\n";
        for len in 0..whole.len() {
            assert_eq!(feed(&[&whole[..len]], ChunkLimits::default()), Ok(None), "{len}");
        }
    }

    #[test]
    fn trailer_lines_are_judged_as_field_lines() {
        refused(b"0\r\nA: b\n\r\n", FieldError::BareLf);
        refused(b"0\r\n\n", FieldError::BareLf);
        refused(b"0\r\nA : b\r\n\r\n", FieldError::SpaceBeforeColon);
        refused(b"0\r\nA: b\r\n c\r\n\r\n", FieldError::Fold);
        refused(b"0\r\n A: b\r\n\r\n", FieldError::LeadingSpace);
        refused(b"0\r\nno colon\r\n\r\n", FieldError::NoColon);
        refused(b"0\r\nA: b\rc\r\n\r\n", FieldError::BareCr);
        refused(b"0\r\nA: b\0\r\n\r\n", FieldError::Value);
        refused(b"0\r\n: b\r\n\r\n", FieldError::NameEmpty);
    }

    #[test]
    fn trailers_neither_frame_nor_route() {
        for name in
            ["Content-Length", "TRANSFER-ENCODING", "host", "Content_Length", "transfer_encoding"]
        {
            let input = format!("0\r\n{name}: 1\r\n\r\n");
            refused(input.as_bytes(), ChunkError::TrailerForbidden);
        }
        for name in [
            "Connection",
            "TE",
            "Trailer",
            "Authorization",
            "Cookie",
            "Set-Cookie",
            "Content-Type",
            "Content-Disposition",
            "X-Forwarded-For",
            "x-forwarded-whatever",
            "X_Real_IP",
            "Expect",
            "Cache-Control",
            "Range",
            "Location",
            "Upgrade",
            "Proxy-Authorization",
        ] {
            let input = format!("0\r\n{name}: 1\r\nA: b\r\n\r\n");
            accepted(input.as_bytes(), b"", &["A: b"]);
        }
    }

    #[test]
    fn limits_hold() {
        let limits = ChunkLimits {
            extension_bytes_max: 8,
            extension_bytes_total_max: 20,
            trailer_bytes_max: 16,
            trailer_fields_max: 2,
        };
        let check = |input: &[u8], expected: Result<(), ChunkError>| {
            let text = String::from_utf8_lossy(input);
            assert_eq!(feed(&[input], limits).map(drop), expected, "{text:?}");
            let bytes: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(feed(&bytes, limits).map(drop), expected, "byte by byte: {text:?}");
        };
        check(b"0;1234567\r\n\r\n", Ok(()));
        check(b"0;12345678\r\n\r\n", Err(ChunkError::ExtensionTooLong));
        check(&b"1;1234\r\nx\r\n".repeat(4), Ok(()));
        check(&b"1;1234\r\nx\r\n".repeat(5), Err(ChunkError::ExtensionsTooLong));
        check(&b"1;\r\nx\r\n".repeat(21), Err(ChunkError::ExtensionsTooLong));
        check(b"0\r\nA: bb\r\nC: dd\r\n\r\n", Ok(()));
        check(b"0\r\nA: bb\r\nC: ddd\r\n\r\n", Err(FieldError::TooLarge.into()));
        check(b"0\r\nA:b\r\nC:d\r\n\r\n", Ok(()));
        check(b"0\r\nA:\r\nB:\r\nC:\r\n\r\n", Err(FieldError::TooMany.into()));
        check(b"0\r\nA: bbbbbbbbbbbbbb", Err(FieldError::TooLarge.into()));
    }

    #[test]
    fn a_decoder_serves_again_after_reset() {
        let mut decoder = Decoder::new(ChunkLimits::default());
        for trailer in ["A", "B"] {
            let input = format!("0;x\r\n{trailer}: 1\r\n\r\n");
            let step = decoder.step(input.as_bytes()).unwrap();
            assert!(step.ended);
            assert_eq!(decoder.trailers().len(), 1);
            assert!(decoder.trailers().named(trailer.as_bytes()).next().is_some());
            let after_end = decoder.step(b"GET").unwrap();
            assert_eq!(after_end, Step { consumed: 0, data: 0..0, ended: true });
            decoder.reset();
            assert!(!decoder.ended() && decoder.trailers().is_empty());
        }
    }

    #[test]
    fn a_step_says_where_data_is() {
        let mut decoder = Decoder::new(ChunkLimits::default());
        let step = decoder.step(b"5\r\nhello\r\n0\r\n\r\n").unwrap();
        assert_eq!(step, Step { consumed: 10, data: 3..8, ended: false });
        let step = decoder.step(b"0\r\n\r\n").unwrap();
        assert_eq!(step, Step { consumed: 5, data: 5..5, ended: true });
    }

    #[test]
    fn what_is_written_is_read_again() {
        for len in [1, 9, 10, 15, 16, 255, 256, 65_535, usize::MAX] {
            let mut line = [0; 18];
            assert_eq!(size_line(len, &mut line), format!("{len:x}\r\n").as_bytes());
        }
        let data = [b'd'; 300];
        let mut body = size_line(data.len(), &mut [0; 18]).to_vec();
        body.extend_from_slice(&data);
        body.extend_from_slice(b"\r\n");
        let bare = [body.as_slice(), LAST].concat();
        accepted(&bare, &data, &[]);
        let mut trailers = Headers::new();
        trailers.push(b"A", b"b");
        end(&mut body, &trailers);
        accepted(&body, &data, &["A: b"]);
    }
}
