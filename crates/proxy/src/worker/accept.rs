//! Listening and accepting.
//!
//! Every worker has its own socket on each address (`SO_REUSEPORT`), so the kernel spreads
//! connections and no worker waits for another to accept. When the process is at its limit of
//! connections, or out of file descriptors, the connection that has been idle longest gives way.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::net::{TcpListener, UnixListener};

use super::Worker;
use super::wheel::TICK;
use crate::connection::drive;
use crate::settings::{Address, Listener};
use crate::socket::Socket;

/// A bound and listening socket, not yet served.
#[derive(Debug)]
pub struct Bound {
    address: Address,
    socket: std::os::fd::OwnedFd,
}

impl Bound {
    /// Binds a socket of its own for one worker.
    pub fn bind(address: &Address, backlog: u32) -> io::Result<Self> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let socket = match address {
            Address::Tcp(tcp) => bind_tcp(*tcp)?,
            Address::Unix(path) => {
                let socket = RawSocket::new(Domain::UNIX, Type::STREAM, None)?;
                remove_stale(path)?;
                socket.bind(&socket2::SockAddr::unix(path)?)?;
                socket
            }
        };
        socket.set_nonblocking(true)?;
        socket.listen(backlog)?;
        Ok(Self { address: address.clone(), socket: socket.into() })
    }

    /// Takes over a socket that already listens, from a process before this one.
    pub fn inherit(address: Address, socket: std::os::fd::OwnedFd) -> io::Result<Self> {
        let raw = RawSocket::from(socket);
        raw.set_nonblocking(true)?;
        Ok(Self { address, socket: raw.into() })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A second handle on the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { address: self.address.clone(), socket: self.socket.try_clone()? })
    }

    fn listen(self) -> io::Result<Acceptor> {
        Ok(match self.address {
            Address::Tcp(_) => Acceptor::Tcp(TcpListener::from_std(self.socket.into())?),
            Address::Unix(_) => Acceptor::Unix(UnixListener::from_std(self.socket.into())?),
        })
    }
}

impl AsFd for Bound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<RawSocket> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` are two addresses, and each means what it says.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Removes what a process that was killed has left; a socket that somebody serves is left alone.
fn remove_stale(path: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}

enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Responses are written whole; there is nothing to wait for.
                stream.set_nodelay(true)?;
                Ok((Socket::Tcp(stream), Some(peer)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }
}

/// Accepts until the task is aborted.
pub(super) async fn run(worker: Worker, bound: Bound) {
    let address = bound.address.clone();
    let acceptor = match bound.listen() {
        Ok(acceptor) => acceptor,
        Err(error) => {
            tracing::error!(?address, %error, "cannot serve a listening socket");
            return;
        }
    };
    loop {
        make_room(&worker).await;
        match acceptor.accept().await {
            Ok((socket, peer)) => {
                if let Some(listener) = listener(&worker, &address) {
                    drive::start(&worker, socket, peer, listener);
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Out of descriptors or memory: somebody has to go before anybody can come.
                tracing::warn!(?address, %error, "cannot accept a connection");
                let _ = worker.wheel().give_way();
                tokio::time::sleep(TICK).await;
            }
        }
    }
}

/// Waits until the process is below its limit of connections, with idle ones giving way.
async fn make_room(worker: &Worker) {
    while worker.connections_open() >= worker.active().process.connections_max {
        if worker.wheel().give_way().is_none() {
            tokio::time::sleep(TICK).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

fn listener(worker: &Worker, address: &Address) -> Option<Arc<Listener>> {
    let active = worker.active();
    active.listeners.iter().find(|listener| listener.address == *address).cloned()
}

/// Whether an error of accept(2) concerns the connection it would have returned.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotConnected
    )
}
