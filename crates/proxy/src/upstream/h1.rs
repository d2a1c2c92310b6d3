//! One HTTP/1.1 connection to a server.
//!
//! Carries one exchange at a time. After each, [`Connection::is_clean`] says whether the next may use
//! it: only if both messages ended where their framing said, nothing more arrived and the server
//! lets it persist. Anything else, and the connection is dropped: what an origin sends beyond its
//! response must never reach another client.

use std::task::{Context, Poll, ready};

use tidegate_http::framing::{self, Body, Persist};
use tidegate_http::parse::{HeadLimits, HeadScan};
use tidegate_http::{Method, Response};

use super::OpenConnection;
use super::stream::HeadError;
use crate::connection::framed::Framed;
use crate::connection::transport::Transport;
use crate::worker::buffers::Buffer;

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    framed: Framed,
    scan: HeadScan,
    persist: Persist,
    thinking: Thinking,
    /// Exchanges begun on it.
    requests: u32,
    /// Keeps the connection counted on its server.
    _counted: OpenConnection,
    /// Bytes of response heads, and of what came with them.
    bytes_in: u64,
    /// Bytes of the request head.
    head_out: u64,
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
            framed: Framed::new(transport),
            scan: HeadScan::default(),
            persist: Persist::KeepAlive,
            thinking: Thinking::Begun,
            requests: 0,
            _counted: counted,
            bytes_in: 0,
            head_out: 0,
        }
    }

    /// Begins an exchange: `head` writes the request head, `body` is what follows it.
    pub(crate) fn begin(&mut self, body: Body, head: impl FnOnce(&mut Vec<u8>)) {
        self.requests += 1;
        self.thinking = Thinking::Begun;
        self.scan.reset();
        self.framed.begin_reading(Body::None);
        self.framed.begin_writing(body);
        head(self.framed.out.bytes_mut());
        self.bytes_in = 0;
        self.head_out = self.framed.out.len() as u64;
    }

    /// The bodies of the exchange under way.
    pub(crate) fn framed(&self) -> &Framed {
        &self.framed
    }

    /// The same, to be read and written.
    pub(crate) fn framed_mut(&mut self) -> &mut Framed {
        &mut self.framed
    }

    /// Exchanges begun on this connection.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Bytes received and sent in this exchange.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in + self.framed.reader.received(), self.head_out + self.framed.body_out)
    }

    /// Whether anything of this exchange's request has been handed to the transport.
    pub(crate) fn was_written(&self) -> bool {
        self.framed.out.len() as u64 != self.head_out + self.framed.body_out
    }

    /// Reads the next response head, interim or final. After the final one the body can be read.
    pub(crate) fn poll_head(
        &mut self,
        method: Method,
        limits: &HeadLimits,
        response: &mut Response,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Body, HeadError>> {
        if self.framed.input.is_none() && self.thinking == Thinking::Begun {
            // No buffer is taken while the server is still thinking. Once something has woken us, it
            // is most likely the response.
            self.thinking = Thinking::Since;
            match ready!(self.framed.transport.poll_read_ready(cx)) {
                Ok(()) => {}
                Err(_) => return Poll::Ready(Err(HeadError::Closed)),
            }
        }
        let Framed { transport, input, .. } = &mut self.framed;
        let buffer = input.get_or_insert_with(Buffer::take);
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
            match transport.poll_read(cx, buffer.spare_mut()) {
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
                        *input = None;
                    }
                    return Poll::Pending;
                }
            }
        }
        let body = framing::of_response(response, method).map_err(HeadError::Invalid)?;
        framing::drop_void_length(response);
        if response.status >= 200 {
            self.persist = framing::persist_response(response, body);
            self.framed.begin_reading(body);
        }
        Poll::Ready(Ok(body))
    }

    /// Whether another exchange may use this connection. Gives its buffers back.
    pub(crate) fn is_clean(&mut self) -> bool {
        let drained = self.framed.input.take().is_none_or(|buffer| buffer.is_empty());
        let flushed = self.framed.out.is_empty();
        self.framed.out.release();
        drained
            && flushed
            && self.persist == Persist::KeepAlive
            && self.framed.body_is_done()
            && self.framed.writer.is_done()
    }

    /// Whether an idle connection can still be used: nothing has arrived and it was not closed.
    /// Costs no system call, as the event loop has been told of either.
    pub(crate) fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.framed.transport.poll_read_ready(cx).is_pending()
    }

    /// The bare transport and what was received beyond the response head, for a tunnel.
    pub(crate) fn into_tunnel(self) -> (Transport, Option<Buffer>) {
        (self.framed.transport, self.framed.input.filter(|buffer| !buffer.is_empty()))
    }
}
