//! An HTTP/2 connection from a client: streams accepted, each served by a task of its own.
//!
//! `h2` frames, multiplexes and bounds what a peer can make it hold; the limits are the listener's.
//! Here the connection is given up when it has been idle for too long, gently (RFC 9113, section
//! 6.8): a GOAWAY, and then only what is under way.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use tidegate_telemetry::metrics::Closed;
use tidegate_telemetry::record::Protocol;
use tidegate_telemetry::{Side, Stamp};
use tokio::io::AsyncWriteExt as _;

use super::drive::begin;
use super::gathered::Gathered;
use super::transport::Transport;
use super::{Client, Downstream, h2, linger};
use crate::request::{self, Refusal, Surroundings};
use crate::worker::Worker;
use crate::worker::buffers::Buffer;
use crate::worker::wheel::{Signal, Slot};

/// Response data of one stream that waits for its client, at most.
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// An HTTP/2 connection from a client.
pub(crate) struct Http2 {
    pub(crate) transport: Transport,
    pub(crate) slot: Slot,
    pub(crate) client: Rc<Client>,
    /// What was received before it was known to be HTTP/2.
    pub(crate) received: Option<Buffer>,
}

impl Http2 {
    /// Accepts streams until the connection ends; each is served by a task of its own.
    pub(crate) async fn run(self, worker: Worker) -> Closed {
        let Self { mut transport, slot, client, received } = self;
        let mut received = received.unwrap_or_else(Buffer::take);
        let settings = client.listener.http2;
        let idle = client.listener.timeouts.idle;
        let timeout = client.listener.timeouts.handshake;
        match slot.within(timeout, preface(&mut transport, &mut received)).await {
            Ok(Preface::Right) => {}
            Ok(Preface::Cut) => return Closed::ByClient,
            Ok(Preface::Wrong) => {
                let code = "h2_preface";
                worker.metrics().protocol_error(Protocol::H2, Side::Downstream, code);
                // A peer that is not HTTP/2 at all may be gone; there is nobody else to tell.
                let _ = transport.write_all(REFUSED_PREFACE).await;
                linger::close(transport, &slot).await;
                return Closed::ProtocolError;
            }
            Err(()) => return Closed::Timeout,
        }
        let gathered = Gathered::new(transport, Some(received));
        let handshake = ::h2::server::Builder::new()
            .max_concurrent_streams(settings.streams_max)
            .initial_window_size(settings.stream_window_bytes)
            .initial_connection_window_size(settings.connection_window_bytes)
            .max_header_list_size(settings.header_bytes_max)
            .max_pending_accept_reset_streams(settings.resets_max)
            .max_local_error_reset_streams(Some(settings.resets_max))
            .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
            .handshake::<_, Bytes>(gathered.clone());
        let mut connection = match slot.within(timeout, handshake).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(_)) => return Closed::ProtocolError,
            Err(()) => return Closed::Timeout,
        };
        let streams = Rc::new(Cell::new(0_usize));
        let mut first = true;
        let mut leaving = None;
        slot.set(idle);
        loop {
            let accepted = poll_fn(|cx| {
                if let Poll::Ready(accepted) = connection.poll_accept(cx) {
                    return Poll::Ready(Event::Accepted(accepted));
                }
                if let Poll::Ready(Err(_)) = gathered.poll_send(cx) {
                    return Poll::Ready(Event::Accepted(None));
                }
                match slot.poll_signal(cx) {
                    Poll::Ready(Signal::Drain) if leaving.is_some() => Poll::Pending,
                    Poll::Ready(signal) => Poll::Ready(Event::Signal(signal)),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            match accepted {
                Event::Accepted(Some(Ok((head, respond)))) => {
                    slot.set(idle);
                    let stream = StreamTask {
                        worker: worker.clone(),
                        client: Rc::clone(&client),
                        streams: Rc::clone(&streams),
                        first: std::mem::take(&mut first),
                    };
                    streams.set(streams.get() + 1);
                    // The runtime moves what it is given several times; a box is small.
                    tokio::task::spawn_local(Box::pin(stream.run(head, respond)));
                }
                Event::Accepted(Some(Err(error))) => {
                    let broken = error.is_library() || error.is_go_away();
                    if broken {
                        let code = "h2_connection_error";
                        worker.metrics().protocol_error(Protocol::H2, Side::Downstream, code);
                        return Closed::ProtocolError;
                    }
                    return Closed::ByClient;
                }
                Event::Accepted(None) => return leaving.unwrap_or(Closed::ByClient),
                // A stream under way keeps the connection; its own deadlines watch it.
                Event::Signal(Signal::Expired) if streams.get() > 0 && leaving.is_none() => {
                    slot.set(idle);
                }
                Event::Signal(Signal::Expired) if leaving.is_some() && streams.get() == 0 => {
                    return leaving.unwrap_or(Closed::IdleTimeout);
                }
                Event::Signal(signal) => {
                    connection.graceful_shutdown();
                    slot.set(idle);
                    leaving.get_or_insert(match signal {
                        Signal::Expired => Closed::IdleTimeout,
                        Signal::GiveWay => Closed::GaveWay,
                        Signal::Drain => Closed::Drained,
                    });
                }
            }
        }
    }
}

/// What a client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// An empty SETTINGS frame and a GOAWAY of `PROTOCOL_ERROR`: what a client gets that sends another.
const REFUSED_PREFACE: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";

enum Preface {
    Right,
    Wrong,
    /// The client closed before it was complete.
    Cut,
}

/// Looks at the preface and leaves it for `h2` to read. `h2` would close on a wrong one without a
/// word.
async fn preface(transport: &mut Transport, received: &mut Buffer) -> Preface {
    loop {
        let known = received.len().min(PREFACE.len());
        if received.filled()[..known] != PREFACE[..known] {
            return Preface::Wrong;
        }
        if known == PREFACE.len() {
            return Preface::Right;
        }
        match poll_fn(|cx| transport.poll_read(cx, received.spare_mut())).await {
            Ok(n) if n > 0 => received.advance(n),
            Ok(_) | Err(_) => return Preface::Cut,
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "never stored: matched where it is made")]
enum Event {
    Accepted(Option<Result<(http::Request<::h2::RecvStream>, Respond), ::h2::Error>>),
    Signal(Signal),
}

type Respond = ::h2::server::SendResponse<Bytes>;

/// One HTTP/2 stream, served by a task.
struct StreamTask {
    worker: Worker,
    client: Rc<Client>,
    streams: Rc<Cell<usize>>,
    first: bool,
}

impl StreamTask {
    async fn run(self, head: http::Request<::h2::RecvStream>, respond: Respond) {
        let worker = &self.worker;
        worker.metrics().stream_opened();
        let mut exchange = worker.exchange();
        exchange.record.stamps.first_byte_in = Stamp::now();
        let refused = h2::request(&head, &mut exchange.request).err().map(Refusal::Http2);
        begin(worker, &self.client, &mut exchange, self.first);
        exchange.record.bytes.head_in = h2::head_in(&exchange.request);
        let mut stream = h2::Stream::new(worker.wheel().slot(), head.into_body(), respond);
        let active = worker.active();
        let around = Surroundings { worker, plan: &active, client: &self.client };
        let mut downstream = Downstream::Http2(&mut stream);
        request::run(&around, &mut downstream, &mut exchange, refused).await;
        worker.metrics().stream_closed(stream.end());
        worker.recycle(exchange);
    }
}

impl Drop for StreamTask {
    fn drop(&mut self) {
        self.streams.set(self.streams.get().saturating_sub(1));
    }
}
