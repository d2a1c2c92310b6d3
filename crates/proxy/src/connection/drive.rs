//! A connection's life: PROXY header, TLS, then requests until it ends.
//!
//! The future of a connection is small, because ten thousand of them may be idle: what only lasts for
//! a handshake or for a request is boxed for as long.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tidegate_http::framing::Persist;
use tidegate_http::parse::HeadLimits;
use tidegate_telemetry::metrics::{Closed, ConnectionState};
use tidegate_telemetry::record::Protocol;
use tidegate_telemetry::{Side, Stamp};
use tokio::io::AsyncWriteExt as _;

use super::h1::{self, Received, Waited};
use super::socket::Socket;
use super::transport::Transport;
use super::{Client, Downstream, TlsFacts, h2};
use crate::forwarded::Peer;
use crate::proxy_protocol::{self, Header};
use crate::request::finish::protocol;
use crate::request::{self, Exchange, Refusal, Surroundings};
use crate::settings::{Listener, ListenerLimits, Protocols, ProxyProtocol};
use crate::tls::{self, Alpn, HandshakeFailure};
use crate::worker::Worker;
use crate::worker::buffers::Buffer;
use crate::worker::wheel::{Signal, Slot};

/// Response data of one HTTP/2 stream that waits for its client, at most.
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Serves an accepted connection until it ends.
pub(crate) async fn run(
    worker: Worker,
    socket: Socket,
    peer: Option<SocketAddr>,
    listener: Arc<Listener>,
) {
    let _counted = worker.count_connection();
    worker.metrics().connection_accepted();
    let (state, closed) = serve(&worker, socket, peer, listener).await;
    worker.metrics().connection_closed(state, closed);
}

async fn serve(
    worker: &Worker,
    socket: Socket,
    peer: Option<SocketAddr>,
    listener: Arc<Listener>,
) -> (ConnectionState, Closed) {
    let opened = Box::pin(open(worker, socket, peer, listener)).await;
    match opened {
        Ok(Opened::Http1(connection, client)) => http1(worker, connection, client).await,
        Ok(Opened::Http2(connection)) => {
            (ConnectionState::Busy, Box::pin(connection.run(worker)).await)
        }
        Err(closed) => (ConnectionState::Busy, closed),
    }
}

enum Opened {
    Http1(h1::Connection, Rc<Client>),
    Http2(Http2),
}

/// Everything before the first request: PROXY header and TLS.
async fn open(
    worker: &Worker,
    mut socket: Socket,
    peer: Option<SocketAddr>,
    listener: Arc<Listener>,
) -> Result<Opened, Closed> {
    let slot = worker.wheel().slot();
    let local = match &socket {
        Socket::Tcp(stream) => stream.local_addr().ok(),
        Socket::Unix(_) => None,
    };
    let mut client = Client {
        peer: peer.map_or_else(Peer::unix, |peer| Peer::new(peer.ip())),
        port: peer.map_or(0, |peer| peer.port()),
        local,
        accepted: Stamp::now(),
        tls_done: Stamp::UNSET,
        tls: None,
        listener,
    };
    let timeout = client.listener.timeouts.handshake;
    let mut received = None;
    if client.listener.proxy_protocol == ProxyProtocol::Required {
        let header = within(&slot, timeout, proxy_header(&mut socket)).await;
        let (header, rest) = header.map_err(|()| Closed::Timeout)?.map_err(|code| {
            worker.metrics().protocol_error(Protocol::Http11, Side::Downstream, code);
            Closed::ProtocolError
        })?;
        received = Some(rest).filter(|rest| !rest.is_empty());
        if let Header::Tcp { source, destination } = header {
            client.peer = Peer::new(source.ip());
            client.port = source.port();
            client.local = Some(destination);
        }
    }
    let Some(server) = client.listener.tls.clone() else {
        if client.listener.protocols == Protocols::Http2 {
            let connection = Http2 {
                transport: Transport::Plain(socket),
                slot,
                client: Rc::new(client),
                received,
            };
            return Ok(Opened::Http2(connection));
        }
        let connection = h1::Connection::new(Transport::Plain(socket), slot, received);
        return Ok(Opened::Http1(connection, Rc::new(client)));
    };
    let received = received.as_ref().map_or(&[][..], Buffer::filled);
    let handshake = tls::accept_after(socket, &server, received);
    let stream = match within(&slot, timeout, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            worker.metrics().tls_failed(Side::Downstream, error.failure.code());
            if let HandshakeFailure::PlainHttp(_) = error.failure {
                // Nothing was sent yet, so the client can be told in its own tongue.
                answer_plain(error.io).await;
            }
            return Err(Closed::TlsFailed);
        }
        Err(()) => {
            worker.metrics().tls_failed(Side::Downstream, "tls_late");
            return Err(Closed::Timeout);
        }
    };
    client.tls_done = Stamp::now();
    let tls = TlsFacts::of(&stream.info());
    worker.metrics().tls_done(tls.version, tls.handshake);
    client.tls = Some(tls);
    let speaks_http2 = stream.alpn() == Alpn::Http2;
    let transport = Transport::Tls(Box::new(stream));
    let client = Rc::new(client);
    if speaks_http2 || client.listener.protocols == Protocols::Http2 {
        Ok(Opened::Http2(Http2 { transport, slot, client, received: None }))
    } else {
        Ok(Opened::Http1(h1::Connection::new(transport, slot, None), client))
    }
}

/// Reads a PROXY header, and gives what has come behind it.
async fn proxy_header(socket: &mut Socket) -> Result<(Header, Buffer), &'static str> {
    let mut buffer = Buffer::take();
    loop {
        match poll_fn(|cx| socket.poll_read(cx, buffer.spare_mut())).await {
            Ok(n) if n > 0 => buffer.advance(n),
            Ok(_) | Err(_) => return Err("proxy_cut"),
        }
        let parsed = proxy_protocol::parse(buffer.filled()).map_err(proxy_protocol::Error::code)?;
        if let Some((header, len)) = parsed {
            buffer.consume(len);
            return Ok((header, buffer));
        }
    }
}

/// What a client gets that speaks plain HTTP where TLS is spoken.
async fn answer_plain(mut io: tls::Transport) {
    const ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
        Content-Type: text/plain\r\nContent-Length: 47\r\n\r\n\
        Plain HTTP was sent to a port that speaks TLS.\n";
    // The client may be gone; there is nobody else to tell.
    let _ = io.write_all(ANSWER).await;
    let _ = io.shutdown().await;
}

async fn within<T>(slot: &Slot, time: Duration, future: impl Future<Output = T>) -> Result<T, ()> {
    let mut future = pin!(future);
    slot.set(time);
    poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(value));
        }
        slot.poll_expired(cx).map(Err)
    })
    .await
}

/// Waits and serves in turn.
async fn http1(
    worker: &Worker,
    mut connection: h1::Connection,
    client: Rc<Client>,
) -> (ConnectionState, Closed) {
    loop {
        worker.metrics().connection_idle();
        let waited = connection.wait(client.listener.timeouts.idle).await;
        match waited {
            Waited::Readable => worker.metrics().connection_busy(),
            Waited::Over(Signal::Expired) => return (ConnectionState::Idle, Closed::IdleTimeout),
            Waited::Over(Signal::GiveWay) => return (ConnectionState::Idle, Closed::GaveWay),
            Waited::Over(Signal::Drain) => return (ConnectionState::Idle, Closed::Drained),
        }
        match Box::pin(requests(worker, &mut connection, &client)).await {
            Next::Wait => connection.release(),
            Next::Gone(closed) => return (ConnectionState::Busy, closed),
            Next::Close(closed) => {
                Box::pin(connection.close()).await;
                return (ConnectionState::Busy, closed);
            }
            Next::Http2 => {
                let (transport, slot, received) = connection.into_http2();
                let connection = Http2 { transport, slot, client, received };
                return (ConnectionState::Busy, Box::pin(connection.run(worker)).await);
            }
        }
    }
}

/// What follows after all requests that have been received are answered.
enum Next {
    /// Another request may come.
    Wait,
    /// The client has closed.
    Gone(Closed),
    /// The connection ends, with an answer that the client is to get.
    Close(Closed),
    /// The client speaks HTTP/2 with prior knowledge.
    Http2,
}

/// Serves what has been received: a request, and those pipelined behind it.
async fn requests(worker: &Worker, connection: &mut h1::Connection, client: &Rc<Client>) -> Next {
    loop {
        let mut exchange = worker.exchange();
        let next = one_request(worker, connection, client, &mut exchange).await;
        worker.recycle(exchange);
        match next {
            Some(next) => return next,
            None if connection.has_input() => {}
            None => return Next::Wait,
        }
    }
}

async fn one_request(
    worker: &Worker,
    connection: &mut h1::Connection,
    client: &Rc<Client>,
    exchange: &mut Exchange,
) -> Option<Next> {
    let listener = &client.listener;
    let limits = head_limits(&listener.limits);
    let stamps = &mut exchange.record.stamps;
    let first = connection.requests() == 0;
    let received = connection
        .receive(&mut exchange.request, &limits, listener.timeouts.head, &mut stamps.first_byte_in)
        .await;
    let refused = match received {
        Received::Request => None,
        Received::Closed => return Some(Next::Gone(Closed::ByClient)),
        Received::Http2 if listener.protocols == Protocols::Both => return Some(Next::Http2),
        Received::Http2 => {
            Some(Refusal::Malformed(tidegate_http::error::RequestError::Http2Preface))
        }
        Received::Broken => Some(Refusal::HeadBroken),
        Received::Late => Some(Refusal::HeadLate),
        Received::Refused(error) => Some(Refusal::Malformed(error)),
    };
    begin(worker, client, exchange, first);
    exchange.record.bytes.head_in = connection.head_in();
    if connection.requests() >= listener.limits.requests_per_connection_max {
        connection.close_after();
    }
    let failed = refused.is_some();
    let active = worker.active();
    let around = Surroundings { worker, plan: &active, client };
    let mut downstream = Downstream::Http1(connection);
    request::run(&around, &mut downstream, exchange, refused).await;
    match downstream.after() {
        Persist::KeepAlive => None,
        Persist::Close if failed => Some(Next::Close(Closed::ProtocolError)),
        Persist::Close if connection.is_aborted() => Some(Next::Gone(Closed::Aborted)),
        Persist::Close => Some(Next::Close(Closed::LastMessage)),
    }
}

/// Fills in what a record knows of a request from the start.
fn begin(worker: &Worker, client: &Client, exchange: &mut Exchange, first: bool) {
    let record = &mut exchange.record;
    record.id = worker.next_id();
    record.stamps.head_in = Stamp::now();
    record.protocol = protocol(exchange.request.version);
    if let Some(tls) = &client.tls {
        record.tls = tls.version;
        record.handshake = tls.handshake;
    }
    if first {
        record.stamps.accepted = client.accepted;
        record.stamps.tls_done = client.tls_done;
    }
}

fn head_limits(limits: &ListenerLimits) -> HeadLimits {
    HeadLimits {
        head_bytes_max: limits.head_bytes_max,
        target_bytes_max: limits.target_bytes_max,
        fields_max: limits.fields_max,
    }
}

/// An HTTP/2 connection from a client.
struct Http2 {
    transport: Transport,
    slot: Slot,
    client: Rc<Client>,
    /// What was received before it was known to be HTTP/2.
    received: Option<Buffer>,
}

impl Http2 {
    /// Accepts streams until the connection ends; each is served by a task of its own.
    async fn run(self, worker: &Worker) -> Closed {
        let Self { transport, slot, client, received } = self;
        let settings = client.listener.http2;
        let idle = client.listener.timeouts.idle;
        let transport = h2::Prefixed::new(transport, received);
        let handshake = ::h2::server::Builder::new()
            .max_concurrent_streams(settings.streams_max)
            .initial_window_size(settings.stream_window_bytes)
            .initial_connection_window_size(settings.connection_window_bytes)
            .max_header_list_size(settings.header_bytes_max)
            .max_pending_accept_reset_streams(settings.resets_max)
            .max_local_error_reset_streams(Some(settings.resets_max))
            .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
            .handshake::<_, Bytes>(transport);
        let timeout = client.listener.timeouts.handshake;
        let mut connection = match within(&slot, timeout, handshake).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(_)) => return Closed::ProtocolError,
            Err(()) => return Closed::Timeout,
        };
        let streams = Rc::new(std::cell::Cell::new(0_usize));
        let mut first = true;
        let mut leaving = None;
        slot.set(idle);
        loop {
            let accepted = poll_fn(|cx| {
                if let Poll::Ready(accepted) = connection.poll_accept(cx) {
                    return Poll::Ready(Event::Accepted(accepted));
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
                    tokio::task::spawn_local(stream.run(head, respond));
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
    streams: Rc<std::cell::Cell<usize>>,
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
