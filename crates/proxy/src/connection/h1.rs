//! One HTTP/1 connection from a client.
//!
//! Between requests it is [`Idle`], which sleeps on readiness alone and holds no buffer. Once bytes come, requests are served one after the other, pipelined ones
//! included, until nothing is left to read.
//!
//! After an error the place of the next message is lost. So every error ends the connection: what was
//! answered is sent, the writing side is closed, and what the client still sends is read and dropped
//! for a while, lest a reset overtake the answer (RFC 9112, section 9.6).

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_http::chunked::ChunkLimits;
use tidegate_http::error::RequestError;
use tidegate_http::field::Known;
use tidegate_http::framing::{Body, Persist};
use tidegate_http::parse::{self, HeadLimits, HeadScan};
use tidegate_http::{Headers, Method, Request, Response, Version, framing, write};
use tidegate_telemetry::Stamp;

use super::body::{BodyError, BodyReader, BodyWriter, More, Outbox};
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
    transport: Transport,
    slot: Slot,
    input: Option<Buffer>,
    /// The beginning of a head whose client is slow, so that it does not hold a whole buffer.
    parked: Vec<u8>,
    out: Outbox,
    scan: HeadScan,
    reader: BodyReader,
    writer: BodyWriter,
    persist: Persist,
    requests: u32,
    head_in: u64,
    head_out: u64,
    body_out: u64,
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
            transport: self.transport,
            slot: self.slot,
            input: None,
            parked: Vec::new(),
            out: Outbox::default(),
            scan: HeadScan::default(),
            reader: BodyReader::new(Body::None, ChunkLimits::default()),
            writer: BodyWriter::None,
            persist: Persist::KeepAlive,
            requests: self.requests,
            head_in: 0,
            head_out: 0,
            body_out: 0,
        }
    }

    /// Becomes ready to receive, with what has come before the connection was known to be HTTP/1.
    pub(crate) fn wake_with(self, received: Buffer) -> Connection {
        Connection { input: Some(received), ..self.wake() }
    }
}

impl Connection {
    /// The connection's place in the wheel.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Requests received.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Bytes of the last request head.
    pub(crate) fn head_in(&self) -> u64 {
        self.head_in
    }

    /// Whether bytes beyond the last request have been received already.
    pub(crate) fn has_input(&self) -> bool {
        self.input.as_ref().is_some_and(|buffer| !buffer.is_empty())
    }

    /// Becomes idle: gives all buffers back. What was received and not used would be lost, see
    /// [`Connection::has_input`].
    pub(crate) fn rest(mut self) -> Idle {
        self.out.release();
        Idle { transport: self.transport, slot: self.slot, requests: self.requests }
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
        let Some(buffer) = &mut self.input else { return Received::Broken };
        buffer.consume(end);
        self.head_in = end as u64;
        match framing::of_request(request) {
            Ok(body) => {
                self.persist = framing::persist_request(request);
                self.reader = BodyReader::new(body, ChunkLimits::default());
                self.writer = BodyWriter::None;
                self.head_out = 0;
                self.body_out = 0;
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
        let buffer = self.input.get_or_insert_with(Buffer::take);
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
            match self.transport.poll_read(cx, buffer.spare_mut()) {
                Poll::Ready(Ok(n)) if n > 0 => buffer.advance(n),
                Poll::Ready(_) if buffer.is_empty() => {
                    return Poll::Ready(Err(Received::Closed));
                }
                Poll::Ready(_) => return Poll::Ready(Err(Received::Broken)),
                Poll::Pending => {
                    if buffer.len() <= PARKED_BYTES_MAX {
                        self.parked = buffer.filled().to_vec();
                        self.input = None;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Whether the whole request body has been taken.
    pub(crate) fn body_is_done(&self) -> bool {
        self.reader.is_done()
    }

    /// Sees to it that there is request data or its end is known.
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

    /// The request data that can be taken now.
    pub(crate) fn data(&self) -> &[u8] {
        self.input.as_ref().map_or(&[], |buffer| self.reader.data(buffer))
    }

    /// Bytes of request data that are known to come: those at hand, and what is left of their chunk.
    pub(crate) fn announced(&self) -> u64 {
        self.reader.announced()
    }

    /// Takes request data.
    pub(crate) fn consume(&mut self, n: usize) {
        if let Some(buffer) = &mut self.input {
            self.reader.consume(buffer, n);
        }
    }

    /// The trailers of the request, once its body has ended.
    pub(crate) fn trailers(&self) -> Option<&Headers> {
        self.reader.trailers()
    }

    /// Ready once the client has reset the connection: nobody is left to answer.
    ///
    /// A client that has only closed its sending side may still wait for its answer, and one that has
    /// pipelined its next request surely does. TCP tells a client that went away with a mere FIN from
    /// those only once something is sent to it.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.reader.is_done() {
            // Its body is being read, which finds out more.
            return Poll::Pending;
        }
        let readable = ready!(self.transport.poll_read_ready(cx));
        if readable.is_err() || self.transport.is_broken() {
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
        let out = self.out.bytes_mut();
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
        self.out.mark();
        let out = self.out.bytes_mut();
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
        self.writer = BodyWriter::new(framed);
    }

    /// Gives up within a response: closes without the end that the framing has promised.
    pub(crate) fn abort(&mut self) {
        self.persist = Persist::Close;
        if matches!(self.writer, BodyWriter::UntilClose) {
            // A closed connection would be the proper end of this body; a reset is not.
            self.transport.reset_on_close();
        }
        self.writer = BodyWriter::Aborted;
    }

    /// Takes the response back, if nothing of it has been sent yet.
    pub(crate) fn retract(&mut self) -> Option<()> {
        self.out.retract()?;
        (self.head_out, self.body_out) = (0, 0);
        self.writer = BodyWriter::None;
        Some(())
    }

    /// Whether the response was given up.
    pub(crate) fn is_aborted(&self) -> bool {
        matches!(self.writer, BodyWriter::Aborted)
    }

    /// Writes the head of a 101, after which the connection is a tunnel.
    pub(crate) fn switch(&mut self, protocol: &[u8], fields: &Headers) {
        let out = self.out.bytes_mut();
        write::status_line(out, 101);
        write::end_to_end(out, fields, |_| true);
        write::field(out, b"Connection", b"upgrade");
        write::field(out, b"Upgrade", protocol);
        write::end(out);
        self.persist = Persist::Close;
    }

    /// Takes response data, all or some of it.
    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let n = ready!(self.writer.poll_write(&mut self.transport, &mut self.out, data, cx))?;
        self.body_out += n as u64;
        Poll::Ready(Ok(n))
    }

    /// Ends the response body.
    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) {
        self.writer.finish(&mut self.out, trailers);
    }

    /// Sends what was written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.poll_flush(&mut self.transport, cx)
    }

    /// Bytes of the response head and body written so far.
    pub(crate) fn bytes_out(&self) -> (u64, u64) {
        (self.head_out, self.body_out)
    }

    /// What becomes of the connection now that its response has been sent.
    pub(crate) fn after(&self) -> Persist {
        if self.reader.is_done() { self.persist } else { Persist::Close }
    }

    /// Closes, when the client has had time to read the answer.
    pub(crate) async fn close(mut self) {
        self.out.release();
        self.input = None;
        linger::close(self.transport, &self.slot).await;
    }

    /// The bare transport, what was received beyond the request, and the slot, for a tunnel.
    pub(crate) fn tunnel_parts(&mut self) -> (&mut Transport, Option<Buffer>, &Slot) {
        let input = self.input.take().filter(|buffer| !buffer.is_empty());
        (&mut self.transport, input, &self.slot)
    }

    /// The transport and what was received, for HTTP/2.
    pub(crate) fn into_http2(self) -> (Transport, Slot, Option<Buffer>) {
        (self.transport, self.slot, self.input)
    }
}
