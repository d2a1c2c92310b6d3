//! One HTTP/1.1 connection to a server.
//!
//! Carries one exchange at a time. After each, [`Connection::is_clean`] says whether the next may use
//! it: only if both messages ended where their framing said, nothing more arrived and the server
//! lets it persist. Anything else, and the connection is dropped: what an origin sends beyond its
//! response must never reach another client.

use std::io;
use std::task::{Context, Poll, ready};

use tidegate_http::chunked::ChunkLimits;
use tidegate_http::framing::{self, Body, Persist};
use tidegate_http::parse::{HeadLimits, HeadScan};
use tidegate_http::{Headers, Method, Response};

use super::OpenConnection;
use super::stream::HeadError;
use crate::connection::body::{BodyError, BodyReader, BodyWriter, More, Outbox};
use crate::connection::transport::Transport;
use crate::worker::buffers::Buffer;

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    input: Option<Buffer>,
    out: Outbox,
    scan: HeadScan,
    reader: BodyReader,
    writer: BodyWriter,
    persist: Persist,
    thinking: Thinking,
    /// Exchanges begun on it.
    requests: u32,
    /// Keeps the connection counted on its server.
    _counted: OpenConnection,
    bytes_in: u64,
    bytes_out: u64,
}

/// Whether the server's answer has been waited for yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    Begun,
    Since,
}

impl Connection {
    pub(crate) fn new(transport: Transport, counted: OpenConnection) -> Self {
        Self {
            transport,
            input: None,
            out: Outbox::default(),
            scan: HeadScan::default(),
            reader: BodyReader::new(Body::None, ChunkLimits::default()),
            writer: BodyWriter::None,
            persist: Persist::KeepAlive,
            thinking: Thinking::Begun,
            requests: 0,
            _counted: counted,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Begins an exchange: `head` writes the request head, `body` is what follows it.
    pub(crate) fn begin(&mut self, body: Body, head: impl FnOnce(&mut Vec<u8>)) {
        self.requests += 1;
        self.thinking = Thinking::Begun;
        self.scan.reset();
        self.reader = BodyReader::new(Body::None, ChunkLimits::default());
        self.writer = BodyWriter::new(body);
        head(self.out.bytes_mut());
        self.bytes_in = 0;
        self.bytes_out = self.out.len() as u64;
    }

    /// Exchanges begun on this connection.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Bytes received and sent in this exchange.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in + self.reader.received(), self.bytes_out)
    }

    /// Whether anything of this exchange's request has been handed to the transport.
    pub(crate) fn was_written(&self) -> bool {
        self.out.len() as u64 != self.bytes_out
    }

    /// Takes request data, all or some of it.
    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let n = ready!(self.writer.poll_write(&mut self.transport, &mut self.out, data, cx))?;
        self.bytes_out += n as u64;
        Poll::Ready(Ok(n))
    }

    /// Ends the request body.
    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) {
        self.writer.finish(&mut self.out, trailers);
    }

    /// Sends what was written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.poll_flush(&mut self.transport, cx)
    }

    /// Reads the next response head, interim or final. After the final one the body can be read.
    pub(crate) fn poll_head(
        &mut self,
        method: Method,
        limits: &HeadLimits,
        response: &mut Response,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Body, HeadError>> {
        if self.input.is_none() && self.thinking == Thinking::Begun {
            // No buffer is taken while the server is still thinking. Once something has woken us, it
            // is most likely the response.
            self.thinking = Thinking::Since;
            match ready!(self.transport.poll_read_ready(cx)) {
                Ok(()) => {}
                Err(_) => return Poll::Ready(Err(HeadError::Closed)),
            }
        }
        let buffer = self.input.get_or_insert_with(Buffer::take);
        loop {
            let read = self.scan.read_response(buffer.filled(), limits, response);
            match read.map_err(HeadError::Invalid)? {
                Some(end) => {
                    buffer.consume(end);
                    self.scan.reset();
                    break;
                }
                None if buffer.spare_mut().is_empty() => buffer.make_room(),
                None => {}
            }
            match self.transport.poll_read(cx, buffer.spare_mut()) {
                Poll::Ready(Ok(n)) if n > 0 => {
                    buffer.advance(n);
                    self.bytes_in += n as u64;
                }
                Poll::Ready(_) if self.bytes_in == 0 => {
                    return Poll::Ready(Err(HeadError::Closed));
                }
                Poll::Ready(_) => return Poll::Ready(Err(HeadError::Broken)),
                Poll::Pending => {
                    if buffer.is_empty() {
                        self.input = None;
                    }
                    return Poll::Pending;
                }
            }
        }
        let body = framing::of_response(response, method).map_err(HeadError::Invalid)?;
        framing::drop_void_length(response);
        if response.status >= 200 {
            self.persist = framing::persist_response(response, body);
            self.reader = BodyReader::new(body, ChunkLimits::default());
        }
        Poll::Ready(Ok(body))
    }

    /// Sees to it that there is response data or its end is known.
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

    /// The response data that can be taken now.
    pub(crate) fn data(&self) -> &[u8] {
        self.input.as_ref().map_or(&[], |buffer| self.reader.data(buffer))
    }

    /// Takes response data.
    pub(crate) fn consume(&mut self, n: usize) {
        if let Some(buffer) = &mut self.input {
            self.reader.consume(buffer, n);
        }
    }

    /// The trailers of the response, once its body has ended.
    pub(crate) fn trailers(&self) -> Option<&Headers> {
        self.reader.trailers()
    }

    /// Whether another exchange may use this connection. Gives its buffers back.
    pub(crate) fn is_clean(&mut self) -> bool {
        let drained = self.input.take().is_none_or(|buffer| buffer.is_empty());
        let flushed = self.out.is_empty();
        self.out.release();
        drained
            && flushed
            && self.persist == Persist::KeepAlive
            && self.reader.is_done()
            && self.writer.is_done()
    }

    /// Whether an idle connection can still be used: nothing has arrived and it was not closed.
    /// Costs no system call, as the event loop has been told of either.
    pub(crate) fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.transport.poll_read_ready(cx).is_pending()
    }

    /// The bare transport and what was received beyond the response head, for a tunnel.
    pub(crate) fn into_tunnel(self) -> (Transport, Option<Buffer>) {
        (self.transport, self.input.filter(|buffer| !buffer.is_empty()))
    }
}
