//! One HTTP/1 connection's bodies, both ways and towards either side.
//!
//! What a client's connection and a server's have in common: the transport, what was received and not
//! yet used, what was written and not yet sent, and the framing of the message under way in each
//! direction. Heads, and what becomes of the connection, are left to the connections themselves.

use std::io;
use std::task::{Context, Poll, ready};

use tidegate_http::Headers;
use tidegate_http::chunked::ChunkLimits;
use tidegate_http::framing::Body;

use super::body::{BodyError, BodyReader, BodyWriter, More, Outbox};
use super::transport::Transport;
use crate::worker::buffers::Buffer;

/// A transport with the bodies that go over it. Holds buffers only while bytes are in them.
#[derive(Debug)]
pub(crate) struct Framed {
    pub(crate) transport: Transport,
    pub(crate) input: Option<Buffer>,
    pub(crate) out: Outbox,
    pub(crate) reader: BodyReader,
    pub(crate) writer: BodyWriter,
    /// Bytes of the outgoing body taken so far.
    pub(crate) body_out: u64,
}

impl Framed {
    /// Without a message in either direction.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            input: None,
            out: Outbox::default(),
            reader: BodyReader::new(Body::None, ChunkLimits::default()),
            writer: BodyWriter::None,
            body_out: 0,
        }
    }

    /// Begins to read a body behind the head that was consumed.
    pub(crate) fn begin_reading(&mut self, body: Body) {
        self.reader = BodyReader::new(body, ChunkLimits::default());
    }

    /// Begins to write a body behind the head that was written.
    pub(crate) fn begin_writing(&mut self, body: Body) {
        self.writer = BodyWriter::new(body);
        self.body_out = 0;
    }

    /// Whether the whole incoming body has been taken.
    pub(crate) fn body_is_done(&self) -> bool {
        self.reader.is_done()
    }

    /// Sees to it that there is data or its end is known.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, BodyError>> {
        if self.reader.is_done() {
            return Poll::Ready(Ok(More::End));
        }
        let buffer = self.input.get_or_insert_with(Buffer::take);
        let more = self.reader.poll_more(&mut self.transport, buffer, cx);
        if more.is_pending() && buffer.is_empty() {
            self.input = None;
        }
        more
    }

    /// The data that can be taken now.
    pub(crate) fn data(&self) -> &[u8] {
        self.input.as_ref().map_or(&[], |buffer| self.reader.data(buffer))
    }

    /// Bytes of data that are known to come: those at hand, and what is left of their chunk.
    pub(crate) fn announced(&self) -> u64 {
        self.reader.announced()
    }

    /// Takes data.
    pub(crate) fn consume(&mut self, n: usize) {
        if let Some(buffer) = &mut self.input {
            self.reader.consume(buffer, n);
        }
    }

    /// The incoming trailers, once the body has ended.
    pub(crate) fn trailers(&self) -> Option<&Headers> {
        self.reader.trailers()
    }

    /// Takes outgoing data, all or some of it.
    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let n = ready!(self.writer.poll_write(&mut self.transport, &mut self.out, data, cx))?;
        self.body_out += n as u64;
        Poll::Ready(Ok(n))
    }

    /// Ends the outgoing body.
    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) {
        self.writer.finish(&mut self.out, trailers);
    }

    /// Sends what was written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.poll_flush(&mut self.transport, cx)
    }
}
