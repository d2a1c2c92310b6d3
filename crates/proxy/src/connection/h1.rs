//! One HTTP/1 connection from a client.
//!
//! Between requests it is [`Idle`], which sleeps on readiness alone and holds no buffer. Once bytes come, requests are served one after the other, pipelined ones
//! included, until nothing is left to read.
//!
//! After an error the place of the next message is lost. So every error ends the connection: what was
//! answered is sent, the writing side is closed, and what the client still sends is read and dropped
//! for a while, lest a reset overtake the answer (RFC 9112, section 9.6).

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_http::error::RequestError;
use tidegate_http::field::Known;
use tidegate_http::framing::{Body, Persist};
use tidegate_http::parse::{self, HeadLimits, HeadScan};
use tidegate_http::{Headers, Method, Request, Response, Version, framing, write};
use tidegate_telemetry::Stamp;

use super::body::BodyWriter;
use super::framed::Framed;
use super::linger;
use super::transport::Transport;
use crate::worker::buffers::Buffer;
use crate::worker::wheel::{Signal, Slot};

/// Heads up to this size are kept outside of a buffer while more of them is awaited.
const PARKED_BYTES_MAX: usize = 4096;

/// One empty line before a request line is tolerated (RFC 9112, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptyLine {
    Tolerated,
    Passed,
}

/// A connection from a client.
#[derive(Debug)]
pub(crate) struct Connection {
    framed: Framed,
    slot: Slot,
    /// The beginning of a head whose client is slow, so that it does not hold a whole buffer.
    parked: Vec<u8>,
    scan: HeadScan,
    persist: Persist,
    requests: u32,
    head_in: u64,
    head_out: u64,
}

/// What came while a connection waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Bytes, or the client's end.
    Readable,
    /// The idle time is over, or the connection has to give way.
    Over(Signal),
}

/// What [`Connection::receive`] came to.
#[derive(Debug)]
pub(crate) enum Received {
    /// A request whose body, if any, can be read.
    Request,
    /// The client closed between requests.
    Closed,
    /// The client closed or failed within a head.
    Broken,
    /// The head took too long.
    Late,
    /// The head cannot be accepted.
    Refused(RequestError),
    /// The client speaks HTTP/2 with prior knowledge.
    Http2,
}

/// A connection between requests: the socket, a slot in the wheel, and no more.
#[derive(Debug)]
pub(crate) struct Idle {
    transport: Transport,
    slot: Slot,
    requests: u32,
}

impl Idle {
    pub(crate) fn new(transport: Transport, slot: Slot) -> Self {
        Self { transport, slot, requests: 0 }
    }

    /// Begins to wait for the next request, as the youngest of the idle.
    pub(crate) fn begin_wait(&self, idle: Duration) {
        self.slot.idle();
        self.slot.set(idle);
    }

    /// Waits for the next request, or for a reason to close.
    ///
    /// A drained connection is not closed here: its client may be sending at this very moment, and
    /// that request would be lost. It is answered, with `Connection: close`.
    pub(crate) fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Waited> {
        let waited = if self.transport.poll_read_ready(cx).is_ready() {
            Waited::Readable
        } else {
            match ready!(self.slot.poll_signal(cx)) {
                Signal::Drain => return Poll::Pending,
                signal => Waited::Over(signal),
            }
        };
        self.slot.busy();
        Poll::Ready(waited)
    }

    /// Becomes ready to receive.
    pub(crate) fn wake(self) -> Connection {
        Connection {
            framed: Framed::new(self.transport),
            slot: self.slot,
            parked: Vec::new(),
            scan: HeadScan::default(),
            persist: Persist::KeepAlive,
            requests: self.requests,
            head_in: 0,
            head_out: 0,
        }
    }

    /// Becomes ready to receive, with what has come before the connection was known to be HTTP/1.
    pub(crate) fn wake_with(self, received: Buffer) -> Connection {
        let mut connection = self.wake();
        connection.framed.input = Some(received);
        connection
    }
}

impl Connection {
    /// The connection's place in the wheel.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// The bodies of the message under way.
    pub(crate) fn framed(&self) -> &Framed {
        &self.framed
    }

    /// The same, to be read and written.
    pub(crate) fn framed_mut(&mut self) -> &mut Framed {
        &mut self.framed
    }

    /// Requests received.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Bytes of the last request head.
    pub(crate) fn head_in(&self) -> u64 {
        self.head_in
    }

    /// What came of a head that could not be accepted as it was read; empty where it could.
    pub(crate) fn refused_head(&self) -> &[u8] {
        let input = self.framed.input.as_ref().filter(|_| self.head_in == 0);
        input.map_or(&[], Buffer::filled)
    }

    /// Whether bytes beyond the last request have been received already.
    pub(crate) fn has_input(&self) -> bool {
        self.framed.input.as_ref().is_some_and(|buffer| !buffer.is_empty())
    }

    /// Becomes idle: gives all buffers back. What was received and not used would be lost, see
    /// [`Connection::has_input`].
    pub(crate) fn rest(mut self) -> Idle {
        self.framed.out.release();
        Idle { transport: self.framed.transport, slot: self.slot, requests: self.requests }
    }

    /// Receives a request head into `request`. `first_byte` is stamped when its first byte is there.
    pub(crate) async fn receive(
        &mut self,
        request: &mut Request,
        limits: &HeadLimits,
        timeout: Duration,
        first_byte: &mut Stamp,
    ) -> Received {
        self.scan.reset();
        self.head_in = 0;
        let mut waiting = false;
        let mut empty_line = EmptyLine::Tolerated;
        let found = poll_fn(|cx| {
            match self.poll_head(request, limits, first_byte, &mut empty_line, cx) {
                Poll::Ready(found) => return Poll::Ready(found),
                Poll::Pending if !waiting => {
                    waiting = true;
                    self.slot.set(timeout);
                }
                Poll::Pending => {}
            }
            self.slot.poll_expired(cx).map(|()| Err(Received::Late))
        })
        .await;
        self.requests += 1;
        let end = match found {
            Ok(end) => end,
            Err(Received::Refused(RequestError::Http2Preface)) if self.requests == 1 => {
                return Received::Http2;
            }
            Err(received) => return received,
        };
        let Some(buffer) = &mut self.framed.input else { return Received::Broken };
        buffer.consume(end);
        self.head_in = end as u64;
        match framing::of_request(request) {
            Ok(body) => {
                self.persist = framing::persist_request(request);
                self.framed.begin_reading(body);
                self.framed.begin_writing(Body::None);
                self.head_out = 0;
                Received::Request
            }
            Err(error) => Received::Refused(error),
        }
    }

    fn poll_head(
        &mut self,
        request: &mut Request,
        limits: &HeadLimits,
        first_byte: &mut Stamp,
        empty_line: &mut EmptyLine,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Received>> {
        let Framed { transport, input, .. } = &mut self.framed;
        let buffer = input.get_or_insert_with(Buffer::take);
        if !self.parked.is_empty() {
            buffer.append(&std::mem::take(&mut self.parked));
        }
        loop {
            if !buffer.is_empty() {
                first_byte.set_once();
                if *empty_line == EmptyLine::Tolerated {
                    buffer.consume(parse::skip_empty_line(buffer.filled()));
                }
                match self.scan.read_request(buffer.filled(), limits, request) {
                    Ok(Some(end)) => return Poll::Ready(Ok(end)),
                    Ok(None) => {}
                    Err(error) => return Poll::Ready(Err(Received::Refused(error))),
                }
                if buffer.filled() != b"\r" {
                    *empty_line = EmptyLine::Passed;
                }
                if buffer.spare_mut().is_empty() {
                    buffer.make_room();
                }
            }
            match transport.poll_read(cx, buffer.spare_mut()) {
                Poll::Ready(Ok(n)) if n > 0 => buffer.advance(n),
                Poll::Ready(_) if buffer.is_empty() => {
                    return Poll::Ready(Err(Received::Closed));
                }
                Poll::Ready(_) => return Poll::Ready(Err(Received::Broken)),
                Poll::Pending => {
                    if buffer.len() <= PARKED_BYTES_MAX {
                        self.parked = buffer.filled().to_vec();
                        *input = None;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Ready once the client has reset the connection: nobody is left to answer.
    ///
    /// A client that has only closed its sending side may still wait for its answer, and one that has
    /// pipelined its next request surely does. TCP tells a client that went away with a mere FIN from
    /// those only once something is sent to it.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.framed.body_is_done() {
            // Its body is being read, which finds out more.
            return Poll::Pending;
        }
        let readable = ready!(self.framed.transport.poll_read_ready(cx));
        if readable.is_err() || self.framed.transport.is_broken() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Decides that the connection ends with this response.
    pub(crate) fn close_after(&mut self) {
        self.persist = Persist::Close;
    }

    /// Writes an interim response (RFC 9110, section 15.2). HTTP/1.0 clients know none.
    pub(crate) fn interim(&mut self, version: Version, status: u16, fields: &Headers) {
        if version == Version::Http10 {
            return;
        }
        let out = self.framed.out.bytes_mut();
        write::status_line(out, status);
        write::end_to_end(out, fields, |_| true);
        write::end(out);
    }

    /// Writes a response head. `body` is what the source of the body knows of its length; the framing
    /// towards this client follows from it and from the client's version.
    pub(crate) fn respond(&mut self, request: &Request, response: &Response, body: Body) {
        let framed = match (body, request.version) {
            (Body::Chunked | Body::UntilClose, Version::Http10) => Body::UntilClose,
            (Body::Chunked | Body::UntilClose, _) => Body::Chunked,
            (body, _) => body,
        };
        if framed == Body::UntilClose {
            self.persist = Persist::Close;
        }
        let status = response.status;
        // The length that a response without content has is the origin's to tell.
        let told = body == Body::None && (request.method == Method::Head || status == 304);
        self.framed.out.mark();
        let out = self.framed.out.bytes_mut();
        let begin = out.len();
        write::status_line(out, status);
        write::end_to_end(out, &response.headers, |known| known != Known::ContentLength || told);
        match framed {
            Body::None if told || status == 204 => {}
            Body::None => write::content_length(out, 0),
            Body::Length(length) => write::content_length(out, length),
            Body::Chunked => write::chunked(out),
            Body::UntilClose => {}
        }
        match (self.persist, request.version) {
            (Persist::Close, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (Persist::KeepAlive, Version::Http10) => {
                out.extend_from_slice(b"Connection: keep-alive\r\n");
            }
            (Persist::KeepAlive, _) => {}
        }
        write::end(out);
        self.head_out += (out.len() - begin) as u64;
        self.framed.begin_writing(framed);
    }

    /// Gives up within a response: closes without the end that the framing has promised.
    pub(crate) fn abort(&mut self) {
        self.persist = Persist::Close;
        if matches!(self.framed.writer, BodyWriter::UntilClose) {
            // A closed connection would be the proper end of this body; a reset is not.
            self.framed.transport.reset_on_close();
        }
        self.framed.writer = BodyWriter::Aborted;
    }

    /// Takes the response back, if nothing of it has been sent yet.
    pub(crate) fn retract(&mut self) -> Option<()> {
        self.framed.out.retract()?;
        self.head_out = 0;
        self.framed.begin_writing(Body::None);
        Some(())
    }

    /// Whether the response was given up.
    pub(crate) fn is_aborted(&self) -> bool {
        matches!(self.framed.writer, BodyWriter::Aborted)
    }

    /// Writes the head of a 101, after which the connection is a tunnel.
    pub(crate) fn switch(&mut self, protocol: &[u8], fields: &Headers) {
        let out = self.framed.out.bytes_mut();
        write::status_line(out, 101);
        write::end_to_end(out, fields, |_| true);
        write::field(out, b"Connection", b"upgrade");
        write::field(out, b"Upgrade", protocol);
        write::end(out);
        self.persist = Persist::Close;
    }

    /// Bytes of the response head and body written so far.
    pub(crate) fn bytes_out(&self) -> (u64, u64) {
        (self.head_out, self.framed.body_out)
    }

    /// What becomes of the connection now that its response has been sent.
    pub(crate) fn after(&self) -> Persist {
        if self.framed.body_is_done() { self.persist } else { Persist::Close }
    }

    /// Closes, when the client has had time to read the answer.
    pub(crate) async fn close(mut self) {
        self.framed.out.release();
        self.framed.input = None;
        linger::close(self.framed.transport, &self.slot).await;
    }

    /// The bare transport, what was received beyond the request, and the slot, for a tunnel.
    pub(crate) fn tunnel_parts(&mut self) -> (&mut Transport, Option<Buffer>, &Slot) {
        let input = self.framed.input.take().filter(|buffer| !buffer.is_empty());
        (&mut self.framed.transport, input, &self.slot)
    }

    /// The transport and what was received, for HTTP/2.
    pub(crate) fn into_http2(self) -> (Transport, Slot, Option<Buffer>) {
        (self.framed.transport, self.slot, self.framed.input)
    }
}
