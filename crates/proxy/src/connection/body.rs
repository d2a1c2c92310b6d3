//! Bodies with HTTP/1 framing: reading one out of a transport, writing one into it.
//!
//! Reader and writer hold the framing only; transport and buffers stay with the connection that owns
//! them and are lent for each call. Data is never copied in the reader: it is lent from the buffer it
//! was received into. The writer joins small pieces with what is still unsent, so that a head and a
//! small body leave in one system call, and hands large pieces to the kernel where they lie.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll, ready};

use tidegate_http::chunked::{self, ChunkLimits, Decoder};
use tidegate_http::error::ChunkError;
use tidegate_http::framing::Body;
use tidegate_http::{Headers, write};

use super::transport::Transport;
use crate::worker::buffers::Buffer;

/// Pieces up to this size are joined with what is unsent instead of being sent from their place.
const JOIN_BYTES_MAX: usize = 4096;

/// A body on its way in.
#[derive(Debug)]
pub(crate) struct BodyReader {
    framing: Reading,
    /// Data at the front of the buffer that belongs to the body and was not consumed yet.
    available: usize,
    /// Framing right behind that data, done with as soon as the data is.
    behind: usize,
    /// Bytes received from the transport for this body.
    received: u64,
}

#[derive(Debug)]
enum Reading {
    Length(u64),
    Chunked(Box<Decoder>),
    UntilClose,
    Done,
}

/// What is the matter with a body on its way in.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The peer closed before the body was complete.
    Short,
    /// The chunked coding is broken.
    Chunk(ChunkError),
    /// The transport failed.
    Io,
}

/// What [`BodyReader::poll_more`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum More {
    /// There is data to take.
    Data,
    /// The body is complete.
    End,
}

impl BodyReader {
    pub(crate) fn new(body: Body, limits: ChunkLimits) -> Self {
        let framing = match body {
            Body::None | Body::Length(0) => Reading::Done,
            Body::Length(length) => Reading::Length(length),
            Body::Chunked => Reading::Chunked(Box::new(Decoder::new(limits))),
            Body::UntilClose => Reading::UntilClose,
        };
        Self { framing, available: 0, behind: 0, received: 0 }
    }

    /// Whether the whole body has been taken.
    pub(crate) fn is_done(&self) -> bool {
        self.available == 0 && self.is_complete()
    }

    fn is_complete(&self) -> bool {
        match &self.framing {
            Reading::Done => true,
            Reading::Chunked(decoder) => decoder.ended(),
            Reading::Length(_) | Reading::UntilClose => false,
        }
    }

    /// The data that can be taken now.
    pub(crate) fn data<'b>(&self, buffer: &'b Buffer) -> &'b [u8] {
        &buffer.filled()[..self.available]
    }

    /// Takes `n` bytes of the data.
    pub(crate) fn consume(&mut self, buffer: &mut Buffer, n: usize) {
        let n = n.min(self.available);
        self.available -= n;
        buffer.consume(n);
        if self.available == 0 {
            buffer.consume(std::mem::take(&mut self.behind));
        }
    }

    /// Bytes received from the transport for this body, framing included. What came along with the
    /// head is not among them.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that are known to come before anything else can: the data at hand, and what is left of
    /// its chunk.
    pub(crate) fn announced(&self) -> u64 {
        let left = match &self.framing {
            Reading::Chunked(decoder) => decoder.announced(),
            Reading::Length(_) | Reading::UntilClose | Reading::Done => 0,
        };
        left.saturating_add(self.available as u64)
    }

    /// The trailer fields, once the body is complete.
    pub(crate) fn trailers(&self) -> Option<&Headers> {
        match &self.framing {
            Reading::Chunked(decoder) if decoder.ended() => {
                Some(decoder.trailers()).filter(|trailers| !trailers.is_empty())
            }
            _ => None,
        }
    }

    /// Sees to it that there is data or the end is known.
    pub(crate) fn poll_more(
        &mut self,
        transport: &mut Transport,
        buffer: &mut Buffer,
        cx: &mut Context<'_>,
    ) -> Poll<Result<More, BodyError>> {
        loop {
            if self.available > 0 {
                return Poll::Ready(Ok(More::Data));
            }
            if !buffer.is_empty() {
                self.take_framing(buffer)?;
                if self.available > 0 {
                    continue;
                }
            }
            if self.is_complete() {
                return Poll::Ready(Ok(More::End));
            }
            if buffer.spare_mut().is_empty() {
                buffer.make_room();
            }
            let n =
                ready!(transport.poll_read(cx, buffer.spare_mut())).map_err(|_| BodyError::Io)?;
            buffer.advance(n);
            self.received += n as u64;
            if n == 0 {
                if !matches!(self.framing, Reading::UntilClose) {
                    return Poll::Ready(Err(BodyError::Short));
                }
                self.framing = Reading::Done;
            }
        }
    }

    /// Looks at what the buffer holds and finds out how much of it is data.
    fn take_framing(&mut self, buffer: &mut Buffer) -> Result<(), BodyError> {
        match &mut self.framing {
            Reading::Length(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                self.available = n;
                *left -= n as u64;
                if *left == 0 {
                    self.framing = Reading::Done;
                }
            }
            Reading::Chunked(decoder) => {
                let step = decoder.step(buffer.filled()).map_err(BodyError::Chunk)?;
                buffer.consume(step.data.start);
                self.available = step.data.len();
                self.behind = step.consumed - step.data.end;
                if self.available == 0 {
                    buffer.consume(std::mem::take(&mut self.behind));
                }
            }
            Reading::UntilClose => self.available = buffer.len(),
            Reading::Done => {}
        }
        Ok(())
    }
}

thread_local! {
    static OUTBOXES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Memory of outboxes that a thread keeps for reuse, and how large one may be to be kept.
const OUTBOXES_KEPT_MAX: usize = 256;
const OUTBOX_KEPT_BYTES_MAX: usize = 64 * 1024;

/// Bytes that were written by us and not yet taken by the transport. Like a buffer, it holds memory
/// only while it is in use; see [`Outbox::release`].
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    /// Whether anything has been handed to the transport since [`Outbox::mark`].
    handed: bool,
}

/// Frees half of this thread's spare outboxes; see [`crate::worker::buffers::trim`].
pub(crate) fn trim_outboxes() {
    OUTBOXES.with_borrow_mut(|kept| kept.truncate(kept.len() / 2));
}

impl Outbox {
    /// Where more is appended.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = OUTBOXES.with_borrow_mut(Vec::pop).unwrap_or_default();
        }
        &mut self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Marks the present state, in which nothing may wait to be sent.
    pub(crate) fn mark(&mut self) {
        self.handed = !self.is_empty();
    }

    /// Takes back what was written since the mark, if nothing of it has been sent yet.
    pub(crate) fn retract(&mut self) -> Option<()> {
        (!self.handed).then(|| self.clear())
    }

    /// Forgets everything, sent or not, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    /// Forgets everything and gives the memory back to the thread.
    pub(crate) fn release(&mut self) {
        self.clear();
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() == 0 || bytes.capacity() > OUTBOX_KEPT_BYTES_MAX {
            return;
        }
        OUTBOXES.with_borrow_mut(|kept| {
            if kept.len() < OUTBOXES_KEPT_MAX {
                kept.push(bytes);
            }
        });
    }

    /// Sends all of it.
    pub(crate) fn poll_flush(
        &mut self,
        transport: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            ready!(self.poll_send(transport, &[], cx))?;
        }
        transport.poll_flush(cx)
    }

    /// Sends something of itself and of `behind`, and says how much of `behind` was taken.
    fn poll_send(
        &mut self,
        transport: &mut Transport,
        behind: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let own = &self.bytes[self.sent..];
        let written = ready!(transport.poll_write_two(cx, own, behind))?;
        self.handed = true;
        let taken = written.saturating_sub(own.len());
        self.sent += written - taken;
        if self.is_empty() {
            self.clear();
        }
        Poll::Ready(Ok(taken))
    }
}

/// A body on its way out.
#[derive(Debug)]
pub(crate) enum BodyWriter {
    /// The message has none; what is written is dropped (a response to HEAD).
    None,
    /// So many bytes are still owed.
    Length(u64),
    /// Chunked; so many bytes are still owed to the chunk that was begun.
    Chunked(usize),
    /// Whatever comes, until the connection closes.
    UntilClose,
    /// The last chunk has been written.
    Ended,
    /// Given up before its end.
    Aborted,
}

impl BodyWriter {
    pub(crate) fn new(body: Body) -> Self {
        match body {
            Body::None => Self::None,
            Body::Length(length) => Self::Length(length),
            Body::Chunked => Self::Chunked(0),
            Body::UntilClose => Self::UntilClose,
        }
    }

    /// Whether everything that was promised has been written.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::None | Self::Length(0) | Self::Ended)
    }

    /// Takes data, all or some of it; what was taken may wait in `out` for [`Outbox::poll_flush`].
    pub(crate) fn poll_write(
        &mut self,
        transport: &mut Transport,
        out: &mut Outbox,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if matches!(self, Self::None | Self::Ended | Self::Aborted) || data.is_empty() {
            return Poll::Ready(Ok(data.len()));
        }
        if let Self::Chunked(left @ 0) = self {
            out.bytes_mut().extend_from_slice(chunked::size_line(data.len(), &mut [0; 18]));
            *left = data.len();
        }
        let data = match self {
            Self::Chunked(left) => &data[..data.len().min(*left)],
            _ => data,
        };
        let taken = if data.len() <= JOIN_BYTES_MAX && out.len() <= JOIN_BYTES_MAX {
            out.bytes_mut().extend_from_slice(data);
            data.len()
        } else {
            loop {
                let taken = ready!(out.poll_send(transport, data, cx))?;
                if taken > 0 {
                    break taken;
                }
            }
        };
        match self {
            Self::Length(left) => *left = left.saturating_sub(taken as u64),
            Self::Chunked(left) => {
                *left -= taken;
                if *left == 0 {
                    out.bytes_mut().extend_from_slice(b"\r\n");
                }
            }
            Self::UntilClose | Self::None | Self::Ended | Self::Aborted => {}
        }
        Poll::Ready(Ok(taken))
    }

    /// Writes what ends the body. The caller flushes.
    pub(crate) fn finish(&mut self, out: &mut Outbox, trailers: Option<&Headers>) {
        if let Self::Chunked(_) = self {
            let bytes = out.bytes_mut();
            bytes.extend_from_slice(b"0\r\n");
            if let Some(trailers) = trailers {
                write::end_to_end(bytes, trailers, |_| true);
            }
            bytes.extend_from_slice(b"\r\n");
            *self = Self::Ended;
        }
    }
}
