//! The admin listener: status, metrics, and changes while the gate runs.
//!
//! HTTP/1 by `hyper` on the control thread, one request to a connection: nobody here is in a hurry,
//! and nothing here is near the way of a request. Who may ask is [`guard`]'s, what is answered
//! [`routes`]'s. Every request sees one state of the gate; changes go through the same lock as
//! reloads.

mod answer;
mod balance;
pub(crate) mod body;
pub(crate) mod client;
mod context;
mod guard;
mod plan;
mod purge;
mod query;
mod routes;
pub(crate) mod servers;
mod shown;
mod status;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fs::Mode;
use rustix::process::umask;
use tidegate_proxy::settings::Address;
use tidegate_proxy::worker::accept::Bound;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use guard::Way;

use crate::control::Gate;
use crate::serve::sockets::refuse_if_served;

/// Connections at once: a few people, a scraper or two, and room for what hangs.
const CONNECTIONS_MAX: usize = 64;
/// For a request head.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// For a whole exchange; an upgrade takes longest of those that are not given more.
const EXCHANGE_MAX: Duration = Duration::from_secs(90);
/// How long a process that ends waits for its last answers to be written.
const FINISH_MAX: Duration = Duration::from_secs(2);
/// After a failure to accept, which is a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const BACKLOG: u32 = 64;

/// The admin listener, bound.
pub(crate) enum Door {
    /// On a TCP address.
    Tcp(TcpListener),
    /// On a Unix socket.
    Unix(UnixListener),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
    /// Binds the address. A Unix socket is for this user (and root) only.
    pub(crate) fn bind(address: &Address) -> io::Result<Bound> {
        match address {
            Address::Tcp(tcp) => {
                refuse_if_served(*tcp)?;
                Bound::bind(address, BACKLOG)
            }
            Address::Unix(_) => {
                // Set for the moment of binding; nothing else makes files at that time.
                let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
                let bound = Bound::bind(address, BACKLOG);
                umask(before);
                bound
            }
        }
    }

    /// Opens it. Called within the control thread's runtime.
    pub(crate) fn open(socket: &Bound) -> io::Result<Door> {
        let handle: OwnedFd = socket.as_fd().try_clone_to_owned()?;
        Ok(match socket.address() {
            Address::Tcp(_) => Door::Tcp(TcpListener::from_std(handle.into())?),
            Address::Unix(_) => Door::Unix(UnixListener::from_std(handle.into())?),
        })
    }

    async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Door::Tcp(listener) => Stream::Tcp(listener.accept().await?.0),
            Door::Unix(listener) => Stream::Unix(listener.accept().await?.0),
        })
    }
}

/// Serves requests until `close` is told, then finishes those under way.
pub(crate) async fn serve(gate: Rc<Gate>, door: Door, close: Rc<Notify>) {
    let mut exchanges = JoinSet::new();
    loop {
        tokio::select! {
            () = close.notified() => break,
            _ = exchanges.join_next(), if !exchanges.is_empty() => {}
            accepted = door.accept(), if exchanges.len() < CONNECTIONS_MAX => match accepted {
                Ok(Stream::Tcp(stream)) => {
                    let stream = TokioIo::new(stream);
                    exchanges.spawn_local(exchange(Rc::clone(&gate), stream, Way::Network));
                }
                Ok(Stream::Unix(stream)) => {
                    let stream = TokioIo::new(stream);
                    exchanges.spawn_local(exchange(Rc::clone(&gate), stream, Way::UnixSocket));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an admin connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(door);
    let finish = async { while exchanges.join_next().await.is_some() {} };
    // Whoever has not read an answer by then will not read it from a process that is gone.
    let _ = tokio::time::timeout(FINISH_MAX, finish).await;
}

async fn exchange<S>(gate: Rc<Gate>, stream: S, way: Way)
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let patience = Rc::new(Cell::new(Some(EXCHANGE_MAX)));
    let granted = Rc::clone(&patience);
    let service = service_fn(move |request: Request<Incoming>| {
        let gate = Rc::clone(&gate);
        granted.set(routes::patience(&request));
        async move { Ok::<_, std::convert::Infallible>(routes::answer(&gate, request, way).await) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .serve_connection(stream, service);
    // A client that breaks off, or takes too long, is its own affair.
    tokio::pin!(connection);
    let mut waited = Duration::ZERO;
    loop {
        // What it may take is known once its head is there.
        let Some(max) = patience.get() else {
            let _ = connection.await;
            return;
        };
        let left = max.saturating_sub(waited);
        if left.is_zero() || tokio::time::timeout(left, connection.as_mut()).await.is_ok() {
            return;
        }
        waited = max;
    }
}
