//! A connection's life: PROXY header, TLS, then requests until it ends.
//!
//! The future of a connection is small, because ten thousand of them may be idle: what only lasts for
//! a handshake or for a request is boxed for as long.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tidegate_http::framing::Persist;
use tidegate_http::parse::HeadLimits;
use tidegate_telemetry::metrics::{Closed, ConnectionState};
use tidegate_telemetry::record::Protocol;
use tidegate_telemetry::{Side, Stamp};
use tokio::io::AsyncWriteExt as _;

use super::h1::{self, Received, Waited};
use super::multiplex::Http2;
use super::transport::Transport;
use super::{Client, Downstream, TlsFacts};
use crate::forwarded::Peer;
use crate::proxy_protocol::{self, Header};
use crate::request::finish::protocol;
use crate::request::{self, Exchange, Refusal, Surroundings};
use crate::settings::{Listener, ListenerLimits, Protocols, ProxyProtocol};
use crate::socket::Socket;
use crate::tls::{self, Alpn, HandshakeFailure};
use crate::worker::buffers::Buffer;
use crate::worker::wheel::Signal;
use crate::worker::{Counted, Worker};

/// Serves an accepted connection, in a task of its own.
pub(crate) fn start(
    worker: &Worker,
    socket: Socket,
    peer: Option<SocketAddr>,
    listener: Arc<Listener>,
) {
    worker.metrics().connection_accepted();
    let opening = Box::pin(open(worker.clone(), socket, peer, listener));
    tokio::task::spawn_local(Life {
        counted: worker.count_connection(),
        client: None,
        phase: Phase::Opening(opening),
    });
}

/// The whole life of a connection. It is written as a future by hand because its size counts: what is
/// held while idle is the largest phase, and nothing of the others.
struct Life {
    counted: Counted,
    client: Option<Rc<Client>>,
    phase: Phase,
}

enum Phase {
    /// Before the first request.
    Opening(Boxed<Result<Opened, Closed>>),
    /// Between requests.
    Idle(h1::Idle),
    /// Serving requests.
    Busy(Boxed<Result<h1::Idle, Closed>>),
    /// Serving HTTP/2, to the end.
    Http2(Boxed<Closed>),
    /// On the way from one phase to the next.
    Between,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

enum Opened {
    Http1(h1::Idle, Rc<Client>),
    /// HTTP/1, of which something was received behind a PROXY header.
    Http1Begun(h1::Connection, Rc<Client>),
    Http2(Http2),
}

impl Future for Life {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let life = self.get_mut();
        let (state, closed) = loop {
            let next = match &mut life.phase {
                Phase::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok(Opened::Http1(idle, client)) => life.rest(idle, client),
                    Ok(Opened::Http1Begun(connection, client)) => life.serve(connection, client),
                    Ok(Opened::Http2(connection)) => {
                        Phase::Http2(Box::pin(connection.run(life.counted.worker().clone())))
                    }
                    Err(closed) => break (ConnectionState::Busy, closed),
                },
                Phase::Idle(idle) => match ready!(idle.poll_wait(cx)) {
                    Waited::Readable => life.wake(),
                    Waited::Over(Signal::Expired) => {
                        break (ConnectionState::Idle, Closed::IdleTimeout);
                    }
                    Waited::Over(Signal::GiveWay) => {
                        break (ConnectionState::Idle, Closed::GaveWay);
                    }
                    Waited::Over(Signal::Drain) => break (ConnectionState::Idle, Closed::Drained),
                },
                Phase::Busy(requests) => match (ready!(requests.as_mut().poll(cx)), &life.client) {
                    (Ok(idle), Some(client)) => life.rest(idle, Rc::clone(client)),
                    (Ok(_), None) => break (ConnectionState::Busy, Closed::Internal),
                    (Err(closed), _) => break (ConnectionState::Busy, closed),
                },
                Phase::Between => break (ConnectionState::Busy, Closed::Internal),
                Phase::Http2(connection) => {
                    break (ConnectionState::Busy, ready!(connection.as_mut().poll(cx)));
                }
            };
            life.phase = next;
        };
        life.counted.worker().metrics().connection_closed(state, closed);
        Poll::Ready(())
    }
}

impl Life {
    fn rest(&mut self, idle: h1::Idle, client: Rc<Client>) -> Phase {
        self.counted.worker().metrics().connection_idle();
        idle.begin_wait(client.listener.timeouts.idle);
        self.client = Some(client);
        Phase::Idle(idle)
    }

    /// From idle to busy.
    fn wake(&mut self) -> Phase {
        self.counted.worker().metrics().connection_busy();
        match (std::mem::replace(&mut self.phase, Phase::Between), self.client.clone()) {
            (Phase::Idle(idle), Some(client)) => self.serve(idle.wake(), client),
            (other, _) => other,
        }
    }

    fn serve(&mut self, connection: h1::Connection, client: Rc<Client>) -> Phase {
        self.client = Some(Rc::clone(&client));
        Phase::Busy(Box::pin(requests(self.counted.worker().clone(), connection, client)))
    }
}

/// Everything before the first request: PROXY header and TLS.
async fn open(
    worker: Worker,
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
        let header = slot.within(timeout, proxy_header(&mut socket)).await;
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
            let (transport, client) = (Transport::Plain(socket), Rc::new(client));
            return Ok(Opened::Http2(Http2 { transport, slot, client, received }));
        }
        let idle = h1::Idle::new(Transport::Plain(socket), slot);
        let client = Rc::new(client);
        return Ok(match received {
            Some(received) => Opened::Http1Begun(idle.wake_with(received), client),
            None => Opened::Http1(idle, client),
        });
    };
    let received = received.as_ref().map_or(&[][..], Buffer::filled);
    let handshake = tls::accept_after(socket, &server, received);
    let stream = match slot.within(timeout, handshake).await {
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
    client.tls = Some(Box::new(tls));
    let speaks_http2 = stream.alpn() == Alpn::Http2;
    let transport = Transport::Tls(Box::new(stream));
    let client = Rc::new(client);
    if speaks_http2 || client.listener.protocols == Protocols::Http2 {
        Ok(Opened::Http2(Http2 { transport, slot, client, received: None }))
    } else {
        Ok(Opened::Http1(h1::Idle::new(transport, slot), client))
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
async fn answer_plain(mut io: Socket) {
    const ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
        Content-Type: text/plain\r\nContent-Length: 47\r\n\r\n\
        Plain HTTP was sent to a port that speaks TLS.\n";
    // The client may be gone; there is nobody else to tell.
    let _ = io.write_all(ANSWER).await;
    let _ = io.shutdown().await;
}

/// Serves what has been received: a request, and those pipelined behind it. Then the connection is
/// idle again, or it has ended.
async fn requests(
    worker: Worker,
    mut connection: h1::Connection,
    client: Rc<Client>,
) -> Result<h1::Idle, Closed> {
    loop {
        let mut exchange = worker.exchange();
        let next = one_request(&worker, &mut connection, &client, &mut exchange).await;
        worker.recycle(exchange);
        match next {
            Next::Request if connection.has_input() => {}
            Next::Request => return Ok(connection.rest()),
            Next::Gone(closed) => return Err(closed),
            Next::Close(closed) => {
                Box::pin(connection.close()).await;
                return Err(closed);
            }
            Next::Http2 => {
                let (transport, slot, received) = connection.into_http2();
                let connection = Http2 { transport, slot, client, received };
                return Err(Box::pin(connection.run(worker)).await);
            }
        }
    }
}

/// What follows after a request.
enum Next {
    /// Another request may come.
    Request,
    /// The client has closed.
    Gone(Closed),
    /// The connection ends, with an answer that the client is to get.
    Close(Closed),
    /// The client speaks HTTP/2 with prior knowledge.
    Http2,
}

async fn one_request(
    worker: &Worker,
    connection: &mut h1::Connection,
    client: &Rc<Client>,
    exchange: &mut Exchange,
) -> Next {
    let listener = &client.listener;
    let limits = head_limits(&listener.limits);
    let stamps = &mut exchange.record.stamps;
    let first = connection.requests() == 0;
    let received = connection
        .receive(&mut exchange.request, &limits, listener.timeouts.head, &mut stamps.first_byte_in)
        .await;
    let refused = match received {
        Received::Request => None,
        Received::Closed => return Next::Gone(Closed::ByClient),
        Received::Http2 if listener.protocols == Protocols::Both => return Next::Http2,
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
        Persist::KeepAlive => Next::Request,
        Persist::Close if failed => Next::Close(Closed::ProtocolError),
        Persist::Close if connection.is_aborted() => Next::Gone(Closed::Aborted),
        Persist::Close => Next::Close(Closed::LastMessage),
    }
}

/// Fills in what a record knows of a request from the start.
pub(super) fn begin(worker: &Worker, client: &Client, exchange: &mut Exchange, first: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand of these may be idle; with the task's own fields one fills 256 bytes.
    #[test]
    fn a_connection_that_is_idle_is_small() {
        assert!(size_of::<Life>() <= 112, "{}", size_of::<Life>());
        assert!(size_of::<Client>() <= 144, "{}", size_of::<Client>());
    }
}
