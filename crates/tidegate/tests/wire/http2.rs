//! A raw HTTP/2 client (RFC 9113) with prior knowledge: sends any frame, checks nothing it sends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::client::Wire;
use crate::hpack::{self, Fields};
use crate::message::{Framing, Message, Progress};
use crate::script::{ClientStep, End};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Payload bytes of one frame; a larger header block goes on in CONTINUATION frames.
const FRAME_MAX: usize = 16_384;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const PROTOCOL_ERROR: u32 = 1;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// No dynamic table, no push, a window no case fills.
const CLIENT_SETTINGS: &[u8] = b"\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x04\0\x10\0\0";

/// Fields that have no place in HTTP/2 (RFC 9113, section 8.2.2).
const CONNECTION_SPECIFIC: &[&[u8]] =
    &[b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"];

/// A connection and what its streams came to.
pub(crate) struct Session {
    pub wire: Wire,
    pub goaway: Option<u32>,
    pub faults: Vec<String>,
    streams: BTreeMap<u32, Stream>,
    /// Bytes of `wire.received` that are read as frames.
    read: usize,
    /// The header block under way, with its stream and flags.
    block: Option<(u32, u8, Vec<u8>)>,
    stream_max: u32,
}

#[derive(Default)]
struct Stream {
    interims: Vec<u16>,
    response: Option<Fields>,
    trailers: Fields,
    body: Vec<u8>,
    ended: bool,
    reset: Option<u32>,
}

impl Session {
    pub(crate) fn open(address: SocketAddr) -> std::io::Result<Session> {
        let mut wire = Wire::connect(address)?;
        wire.send(PREFACE);
        let mut session = Session {
            wire,
            goaway: None,
            faults: Vec::new(),
            streams: BTreeMap::new(),
            read: 0,
            block: None,
            stream_max: 0,
        };
        session.frame(SETTINGS, 0, 0, CLIENT_SETTINGS);
        Ok(session)
    }

    /// Sends what a script's step says.
    pub(crate) fn send(&mut self, step: &ClientStep) {
        match step {
            ClientStep::Headers { stream, end, fields } => {
                self.headers(*stream, *end, &hpack::encode(fields));
            }
            ClientStep::Data { stream, end, bytes } => {
                let last = bytes.chunks(FRAME_MAX).count().saturating_sub(1);
                for (position, chunk) in bytes.chunks(FRAME_MAX).enumerate() {
                    let flags = if position == last { end_flag(*end) } else { 0 };
                    self.frame(DATA, flags, *stream, chunk);
                }
                if bytes.is_empty() {
                    self.frame(DATA, end_flag(*end), *stream, b"");
                }
            }
            ClientStep::Frame { kind, flags, stream, payload } => {
                self.frame(*kind, *flags, *stream, payload);
            }
            _ => {}
        }
    }

    /// A well-formed request on the next free stream.
    pub(crate) fn request(&mut self, host: &str, target: &str) {
        let fields =
            [(":method", "GET"), (":scheme", "http"), (":authority", host), (":path", target)];
        let fields =
            fields.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let stream = (self.stream_max + 1) | 1;
        self.headers(stream, End::Stream, &hpack::encode(&fields));
    }

    fn headers(&mut self, stream: u32, end: End, block: &[u8]) {
        let (first, mut rest) = block.split_at(block.len().min(FRAME_MAX));
        let ends = |rest: &[u8]| if rest.is_empty() { END_HEADERS } else { 0 };
        self.frame(HEADERS, end_flag(end) | ends(rest), stream, first);
        while !rest.is_empty() {
            let (next, after) = rest.split_at(rest.len().min(FRAME_MAX));
            rest = after;
            self.frame(CONTINUATION, ends(rest), stream, next);
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.stream_max = self.stream_max.max(stream);
        let mut frame = payload.len().to_be_bytes()[size_of::<usize>() - 3..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.wire.send(&frame);
    }

    /// Reads what comes within a time and takes the whole frames in.
    pub(crate) fn read(&mut self, wait: Duration) -> bool {
        let came = self.wire.read(wait);
        while let Some((kind, flags, stream, payload)) = self.next_frame() {
            self.take_in(kind, flags, stream, payload);
        }
        came
    }

    fn next_frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let rest = &self.wire.received[self.read..];
        let head = rest.first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = rest.get(9..9 + length)?.to_vec();
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let (kind, flags) = (head[3], head[4]);
        self.read += 9 + length;
        Some((kind, flags, stream, payload))
    }

    fn take_in(&mut self, kind: u8, flags: u8, stream: u32, payload: Vec<u8>) {
        let code = |bytes: &[u8]| bytes.first_chunk().map_or(0, |code| u32::from_be_bytes(*code));
        match kind {
            SETTINGS if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, b""),
            PING if flags & ACK == 0 => self.frame(PING, ACK, 0, &payload),
            GOAWAY => self.goaway = Some(code(payload.get(4..).unwrap_or_default())),
            RST_STREAM => self.streams.entry(stream).or_default().reset = Some(code(&payload)),
            DATA => {
                let state = self.streams.entry(stream).or_default();
                state.body.extend_from_slice(&payload);
                state.ended |= flags & END_STREAM != 0;
            }
            HEADERS => self.block = Some((stream, flags, payload)),
            CONTINUATION => {
                if let Some((_, first, block)) = &mut self.block {
                    *first |= flags & END_HEADERS;
                    block.extend(payload);
                }
            }
            _ => {}
        }
        if self.block.as_ref().is_some_and(|(_, flags, _)| flags & END_HEADERS != 0)
            && let Some((stream, flags, block)) = self.block.take()
        {
            self.take_in_block(stream, flags, &block);
        }
    }

    fn take_in_block(&mut self, stream: u32, flags: u8, block: &[u8]) {
        let fields = match hpack::decode(block) {
            Ok(fields) => fields,
            Err(error) => return self.faults.push(format!("a header block: {error}")),
        };
        for (name, value) in &fields {
            let bad_name = name.iter().any(u8::is_ascii_uppercase)
                || CONNECTION_SPECIFIC.contains(&name.as_slice());
            if bad_name || value.iter().any(|byte| b"\r\n\0".contains(byte)) {
                let (name, value) = (name.escape_ascii(), value.escape_ascii());
                self.faults.push(format!("an HTTP/2 response holds the field {name}: {value}"));
            }
        }
        let state = self.streams.entry(stream).or_default();
        state.ended |= flags & END_STREAM != 0;
        match status(&fields) {
            Some(interim @ 100..200) => state.interims.push(interim),
            Some(_) if state.response.is_none() => state.response = Some(fields),
            _ => state.trailers = fields,
        }
    }

    /// The streams of the final responses, in the order of [`Session::responses`].
    pub(crate) fn answered(&self) -> Vec<u32> {
        let answered = self.streams.iter().filter(|(_, stream)| stream.is_answered());
        answered.map(|(id, _)| *id).collect()
    }

    /// Final responses in the order of their streams, interim statuses, and nothing left over.
    pub(crate) fn responses(&mut self) -> (Vec<Message>, Vec<u16>, Vec<u8>) {
        let answered = self.streams.values().filter(|stream| stream.is_answered());
        let interims = self.streams.values().flat_map(|stream| stream.interims.clone());
        (answered.map(Stream::message).collect(), interims.collect(), Vec::new())
    }
}

impl Stream {
    /// A response or a reset: either is an answer.
    fn is_answered(&self) -> bool {
        self.response.is_some() || self.reset.is_some()
    }

    /// Whether the data are over and not what Content-Length says; a client raises an error then
    /// (RFC 9113, section 8.1.1). A response without any data may be one to HEAD, or a 304.
    fn contradicts_length(&self) -> bool {
        let fields = self.response.as_deref().unwrap_or_default();
        let length = fields.iter().find(|(name, _)| name == b"content-length");
        let told = length.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        self.ended
            && !self.body.is_empty()
            && told.is_some_and(|told: usize| told != self.body.len())
    }

    fn message(&self) -> Message {
        let fields = self.response.clone().unwrap_or_default();
        let status = status(&fields).unwrap_or(0);
        // NO_ERROR behind a whole response only says that the rest of the request is not wanted.
        let complete = self.ended && self.response.is_some() && !self.contradicts_length();
        Message {
            line: format!("HTTP/2.0 {status:03}").into_bytes(),
            fields: fields.into_iter().chain(self.trailers.clone()).collect(),
            framing: Framing::None,
            body: self.body.clone(),
            progress: if complete { Progress::Complete } else { Progress::Body },
            consumed: 0,
            reset: self.reset.or(self.contradicts_length().then_some(PROTOCOL_ERROR)),
            faults: Vec::new(),
        }
    }
}

fn status(fields: &[(Vec<u8>, Vec<u8>)]) -> Option<u16> {
    let (_, value) = fields.iter().find(|(name, _)| name == b":status")?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn end_flag(end: End) -> u8 {
    match end {
        End::Stream => END_STREAM,
        End::Open => 0,
    }
}
