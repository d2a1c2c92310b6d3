//! Opening connections to servers: TCP or Unix, PROXY header, TLS, HTTP/2.

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tidegate_telemetry::Stamp;
use tidegate_telemetry::metrics::Label;
use tidegate_telemetry::record::Stamps;
use tokio::net::{TcpStream, UnixStream};

use super::stream::Upstream;
use super::{Group, OpenConnection, Seat, h1, h2};
use crate::connection::Client;
use crate::connection::gathered::Gathered;
use crate::connection::transport::Transport;
use crate::proxy_protocol;
use crate::settings::{PeerAddress, SendProxyProtocol, UpstreamProtocol};
use crate::socket::Socket;
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
    let socket =
        slot.within(time, connect(address)).await.map_err(late)?.map_err(ConnectError::Io)?;
    stamps.connected = Stamp::now();
    let mut transport = Transport::Plain(socket);
    if settings.proxy_protocol != SendProxyProtocol::Off {
        let header = proxy_header(settings.proxy_protocol, client, client_addr);
        slot.within(time, send(&mut transport, &header))
            .await
            .map_err(late)?
            .map_err(ConnectError::Io)?;
    }
    if let Some(tls) = &settings.tls {
        let Transport::Plain(socket) = transport else { return Err(ConnectError::Late) };
        let handshake = tls::connect(socket, tls, seat.host());
        let stream = slot.within(time, handshake).await.map_err(late)?;
        let stream = stream.map_err(|error| ConnectError::Tls(error.failure.code()))?;
        transport = Transport::Tls(Box::new(stream));
        stamps.upstream_tls_done = Stamp::now();
    }
    match settings.protocol {
        UpstreamProtocol::Http1 => {
            Ok(Upstream::Http1(Box::new(h1::Connection::new(transport, counted))))
        }
        UpstreamProtocol::Http2 => {
            let gathered = Gathered::new(transport, None);
            let handshake = ::h2::client::Builder::new()
                .initial_window_size(1024 * 1024)
                .initial_connection_window_size(4 * 1024 * 1024)
                .enable_push(false)
                .handshake(gathered.clone());
            let opened = slot.within(time, handshake).await.map_err(late)?;
            let (send, connection) = opened.map_err(|_| ConnectError::Http2("h2_handshake"))?;
            let label = seat.server().label();
            tokio::task::spawn_local(drive(connection, gathered, counted, label, worker.clone()));
            worker.pool().share(group, seat, send.clone());
            let send = slot.within(time, send.ready()).await.map_err(late)?;
            let send = send.map_err(|_| ConnectError::Http2("h2_handshake"))?;
            Ok(Upstream::Http2(Box::new(h2::Stream::new(send))))
        }
    }
}

/// Drives a shared HTTP/2 connection until it ends.
async fn drive(
    mut connection: ::h2::client::Connection<Gathered, bytes::Bytes>,
    gathered: Gathered,
    counted: OpenConnection,
    label: Label,
    worker: Worker,
) {
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
            return Poll::Ready(ended.map_err(|error| error.to_string()));
        }
        match gathered.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.to_string())),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    });
    if let Err(error) = ended.await {
        tracing::debug!(server = counted.server().name(), %error, "HTTP/2 connection to a server ended");
    }
    worker.metrics().upstream_closed(label, tidegate_telemetry::metrics::ConnectionState::Busy);
}

/// The time for a step is over.
fn late((): ()) -> ConnectError {
    ConnectError::Late
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
