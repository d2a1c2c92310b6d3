//! Opening connections to servers: TCP or Unix, PROXY header, TLS, HTTP/2.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tidegate_telemetry::Stamp;
use tidegate_telemetry::metrics::Label;
use tidegate_telemetry::record::Stamps;
use tokio::net::{TcpStream, UnixStream};

use super::stream::Upstream;
use super::{Group, OpenConnection, Seat, h1, h2};
use crate::connection::Client;
use crate::connection::socket::Socket;
use crate::connection::transport::Transport;
use crate::proxy_protocol;
use crate::settings::{PeerAddress, SendProxyProtocol, UpstreamProtocol};
use crate::tls;
use crate::worker::Worker;
use crate::worker::wheel::Slot;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The server has as many connections as it may.
    AtLimit,
    /// The transport could not be opened.
    Io(io::Error),
    /// It was not open in time.
    Late,
    /// TLS could not be established, for a reason.
    Tls(&'static str),
    /// HTTP/2 could not be established, for a reason.
    Http2(&'static str),
}

/// Opens a connection to a server for one request. `stamps` gets the moments of its steps.
pub(crate) async fn open(
    worker: &Worker,
    group: &Arc<Group>,
    seat: &Arc<Seat>,
    client: &Client,
    client_addr: Option<IpAddr>,
    slot: &Slot,
    stamps: &mut Stamps,
) -> Result<Upstream, ConnectError> {
    let counted = seat.open_connection().map_err(|_| ConnectError::AtLimit)?;
    let settings = group.settings();
    let time = settings.connect_timeout;
    let address = seat.server().address();
    let socket = within(slot, time, connect(address)).await?.map_err(ConnectError::Io)?;
    stamps.connected = Stamp::now();
    let mut transport = Transport::Plain(socket);
    if settings.proxy_protocol != SendProxyProtocol::Off {
        let header = proxy_header(settings.proxy_protocol, client, client_addr);
        within(slot, time, send(&mut transport, &header)).await?.map_err(ConnectError::Io)?;
    }
    if let Some(tls) = &settings.tls {
        let Transport::Plain(socket) = transport else { return Err(ConnectError::Late) };
        let handshake = tls::connect(socket, tls, seat.host());
        let stream = within(slot, time, handshake).await?;
        let stream = stream.map_err(|error| ConnectError::Tls(error.failure.code()))?;
        transport = Transport::Tls(Box::new(stream));
        stamps.upstream_tls_done = Stamp::now();
    }
    match settings.protocol {
        UpstreamProtocol::Http1 => {
            Ok(Upstream::Http1(Box::new(h1::Connection::new(transport, counted))))
        }
        UpstreamProtocol::Http2 => {
            let handshake = ::h2::client::Builder::new()
                .initial_window_size(1024 * 1024)
                .initial_connection_window_size(4 * 1024 * 1024)
                .enable_push(false)
                .handshake(transport);
            let opened = within(slot, time, handshake).await?;
            let (send, connection) = opened.map_err(|_| ConnectError::Http2("h2_handshake"))?;
            let label = seat.server().label();
            tokio::task::spawn_local(drive(connection, counted, label, worker.clone()));
            worker.pool().share(group, seat, send.clone());
            let send = within(slot, time, send.ready()).await?;
            let send = send.map_err(|_| ConnectError::Http2("h2_handshake"))?;
            Ok(Upstream::Http2(Box::new(h2::Stream::new(send))))
        }
    }
}

/// Drives a shared HTTP/2 connection until it ends.
async fn drive(
    connection: ::h2::client::Connection<Transport, bytes::Bytes>,
    counted: OpenConnection,
    label: Label,
    worker: Worker,
) {
    if let Err(error) = connection.await {
        tracing::debug!(server = counted.server().name(), %error, "HTTP/2 connection to a server ended");
    }
    worker.metrics().upstream_closed(label, tidegate_telemetry::metrics::ConnectionState::Busy);
}

/// Opens the bare socket.
pub(crate) async fn connect(address: &PeerAddress) -> io::Result<Socket> {
    match address {
        PeerAddress::Tcp(ip, port) => {
            let stream = TcpStream::connect(SocketAddr::new(*ip, *port)).await?;
            // Heads and small bodies are written whole; there is nothing to wait for.
            stream.set_nodelay(true)?;
            Ok(Socket::Tcp(stream))
        }
        PeerAddress::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path).await?)),
    }
}

async fn send(transport: &mut Transport, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = poll_fn(|cx| transport.poll_write_two(cx, bytes, &[])).await?;
        bytes = &bytes[n..];
    }
    Ok(())
}

/// What a future comes to within a time.
async fn within<T>(
    slot: &Slot,
    time: Duration,
    future: impl Future<Output = T>,
) -> Result<T, ConnectError> {
    let mut future = pin!(future);
    slot.set(time);
    poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(value));
        }
        slot.poll_expired(cx).map(|()| Err(ConnectError::Late))
    })
    .await
}

fn proxy_header(
    version: SendProxyProtocol,
    client: &Client,
    client_addr: Option<IpAddr>,
) -> Vec<u8> {
    let source = client_addr.map(|addr| SocketAddr::new(addr, client.port));
    let addresses = source.zip(client.local);
    let mut header = Vec::new();
    match version {
        SendProxyProtocol::Off => {}
        SendProxyProtocol::V1 => proxy_protocol::write_v1(&mut header, addresses),
        SendProxyProtocol::V2 => proxy_protocol::write_v2(&mut header, addresses),
    }
    header
}
