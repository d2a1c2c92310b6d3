//! Listening sockets: one per worker on each TCP address, one for all workers on each Unix socket.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tidegate_proxy::settings::{Address, Listener};
use tidegate_proxy::worker::accept::Bound;

use super::Obstacle;

/// Sockets that listen already, from the process before this one.
#[derive(Debug, Default)]
pub(crate) struct Inherited(pub(crate) HashMap<Address, Vec<Bound>>);

/// Binds what each worker needs for these listeners; the outer list is by worker.
///
/// Inherited sockets are dealt out first. Each has a queue of connections of its own, so all of them
/// go to somebody: with fewer workers than before, one worker takes several.
pub(crate) fn bind(
    listeners: &[Listener],
    workers: usize,
    inherited: &mut Inherited,
) -> Result<Vec<Vec<Bound>>, Obstacle> {
    let mut by_worker: Vec<Vec<Bound>> = (0..workers).map(|_| Vec::new()).collect();
    for listener in listeners {
        let address = &listener.address;
        let sockets = inherited.0.remove(address).unwrap_or_default();
        let sockets = complete(sockets, listener, workers)
            .map_err(|error| Obstacle::Listen { address: address.clone(), error })?;
        for (position, socket) in sockets.into_iter().enumerate() {
            by_worker[position % workers].push(socket);
        }
    }
    Ok(by_worker)
}

/// Adds to the inherited sockets of a listener those that are missing.
fn complete(
    mut sockets: Vec<Bound>,
    listener: &Listener,
    workers: usize,
) -> io::Result<Vec<Bound>> {
    match (&listener.address, sockets.first()) {
        (Address::Tcp(address), None) => refuse_if_served(*address)?,
        (Address::Unix(_), None) => sockets.push(Bound::bind(&listener.address, listener.backlog)?),
        (Address::Tcp(_) | Address::Unix(_), Some(_)) => {}
    }
    while sockets.len() < workers {
        sockets.push(match &listener.address {
            Address::Tcp(_) => Bound::bind(&listener.address, listener.backlog)?,
            Address::Unix(_) => sockets[0].try_clone()?,
        });
    }
    Ok(sockets)
}

/// `SO_REUSEPORT` would let a second gate share the port with the first, and each would get half of
/// the connections. A socket without it is refused where somebody listens.
pub(crate) fn refuse_if_served(address: SocketAddr) -> io::Result<()> {
    let probe = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        probe.set_only_v6(true)?;
    }
    // Connections that linger in TIME_WAIT are no reason to refuse.
    probe.set_reuse_address(true)?;
    probe.bind(&address.into())
}

/// Removes a Unix socket's file after the last process that served it.
pub(crate) fn remove_file(address: &Address) {
    if let Address::Unix(path) = address {
        // It may be gone, or on a file system that has become read-only: the next start copes.
        let _ = std::fs::remove_file(path);
    }
}

/// An address as the configuration writes it.
pub(crate) struct Shown<'a>(pub(crate) &'a Address);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Address::Tcp(address) => address.fmt(formatter),
            Address::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
