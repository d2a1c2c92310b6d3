//! Typed settings: what the configuration resolves to.
//!
//! Plain values without references to files, environment or spans. `tidegate` is the only one that
//! makes them from a file; tests make them by hand. [`crate::plan::Plan`] turns them into tables
//! made for look-ups. Every duration, size and count here has a bound and a default that stand in the
//! option table of the program (`tidegate config`).

mod cache;
#[cfg(test)]
pub(crate) mod fixture;
mod group;
mod listener;
mod site;
mod waf;

pub use cache::*;
pub use group::*;
pub use listener::*;
pub use site::*;
pub use waf::*;

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use tidegate_telemetry::log::LogSettings;

/// Everything a plan is built from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Limits and sizes of the process.
    pub process: Process,
    /// Where connections are accepted.
    pub listeners: Vec<Listener>,
    /// Host names served together; the first that lists `*` is the default site.
    pub sites: Vec<Site>,
    /// Sets of equivalent servers; sites name them by index.
    pub groups: Vec<Group>,
    /// Peers whose `Forwarded`, `X-Forwarded-*` and `X-Real-IP` are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Access logs; sites name them by index.
    pub logs: Vec<LogSettings>,
    /// The admin listener.
    pub admin: Admin,
    /// What all inspections share.
    pub waf: Waf,
    /// What all sites share of the cache.
    pub cache: Cache,
}

/// Limits and sizes of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Workers, each one thread with its own listeners and upstream connections.
    pub workers: usize,
    /// Downstream connections over all workers; at the limit the oldest idle one gives way.
    pub connections_max: usize,
    /// How long a drained process waits for its last requests.
    pub drain_timeout: Duration,
}

/// The admin listener: status, metrics, run-time changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Where it listens; `None` turns it off.
    pub address: Option<Address>,
    /// The bearer token it wants; required off loopback.
    pub token: Option<String>,
}

/// A place to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP address and port.
    Tcp(std::net::SocketAddr),
    /// A Unix stream socket.
    Unix(PathBuf),
}
