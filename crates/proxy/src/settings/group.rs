//! Settings of upstream groups.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::tls::ClientTls;

/// A set of equivalent servers.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name in logs, metrics and the admin API.
    pub name: String,
    /// Its servers.
    pub servers: Vec<Server>,
    /// How a server is chosen.
    pub balance: Balance,
    /// A cookie that keeps a client on its server.
    pub sticky: Option<Sticky>,
    /// What is spoken to the servers.
    pub protocol: UpstreamProtocol,
    /// TLS towards the servers, with verification unless turned off.
    pub tls: Option<Arc<ClientTls>>,
    /// Whether a PROXY protocol header opens each upstream connection (which is then not shared).
    pub proxy_protocol: SendProxyProtocol,
    /// For a TCP connection and, on its own, a TLS handshake.
    pub connect_timeout: Duration,
    /// Keep-alive connections.
    pub keep_alive: KeepAlive,
    /// Active checks.
    pub health: Option<HealthCheck>,
    /// Passive ejection after failures.
    pub ejection: Option<Ejection>,
    /// How long a server that comes back takes to reach its full weight.
    pub slow_start: Duration,
    /// Retries may be at most this share of the requests of the last ten seconds (0.2: 20 %), and
    /// always a few.
    pub retry_budget: f32,
    /// Bytes of a response head.
    pub head_bytes_max: usize,
}

/// One server of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Its share beside the others, 1 to 1000.
    pub weight: u32,
    /// Whether it serves only while no other does.
    pub role: Role,
    /// Connections to it over all workers. `None`: no limit.
    pub connections_max: Option<u32>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// An address and a port.
    Address(SocketAddr),
    /// A DNS name and a port; each address it has is a server of its own.
    Name(String, u16),
    /// A Unix stream socket.
    Unix(PathBuf),
}

/// Whether a server serves always or only in need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Always.
    Primary,
    /// While no primary is fit.
    Backup,
}

/// How a server is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Balance {
    /// In turn, by weight.
    RoundRobin,
    /// The less busy of two drawn by weight (power of two choices).
    LeastRequests,
    /// By a consistent hash of something.
    Hash(HashKey),
}

/// What a consistent hash is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address.
    ClientAddress,
    /// A request field; requests without go round robin.
    Header(String),
    /// A cookie; requests without go round robin.
    Cookie(String),
    /// Path and query.
    Uri,
}

/// A cookie that keeps a client on its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// The cookie's name.
    pub cookie: String,
    /// `Max-Age`; `None` ends with the browser's session.
    pub max_age: Option<Duration>,
    /// The key behind the cookie's value; several gates in front of one group need the same. `None`
    /// derives it from the group's name, which hides addresses only from those who do not guess.
    pub secret: Option<String>,
}

/// What is spoken to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2: by ALPN over TLS, with prior knowledge in plain text (gRPC).
    Http2,
}

/// Whether a PROXY protocol header is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProxyProtocol {
    /// None.
    Off,
    /// Version 1, text.
    V1,
    /// Version 2, binary.
    V2,
}

/// Keep-alive connections to one server, per worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle connections kept.
    pub connections_max: usize,
    /// How long an idle one is kept.
    pub idle: Duration,
    /// Requests on one connection before it is closed.
    pub requests_max: u32,
}

/// Active checks of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// What is done.
    pub probe: Probe,
    /// Between two checks.
    pub interval: Duration,
    /// For one check.
    pub timeout: Duration,
    /// Failures in a row that take a server out.
    pub fall: u32,
    /// Successes in a row that bring it back.
    pub rise: u32,
}

/// What a health check does.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// Opens a connection.
    Tcp,
    /// Sends `GET path` and wants one of these statuses.
    Http {
        /// The path, beginning with `/`.
        path: String,
        /// `Host` of the request; the server's own if `None`.
        host: Option<String>,
        /// Lowest good status.
        status_min: u16,
        /// Highest good status.
        status_max: u16,
    },
}

/// Passive ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Failures in a row (no connection, reset, time-out, invalid response).
    pub failures: u32,
    /// How long the server is left out at first; doubled each time up to ten times this.
    pub time: Duration,
    /// At most this share of the group is ejected at once, in percent.
    pub share_max_percent: u8,
}

/// The address a connection is opened to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// TCP.
    Tcp(IpAddr, u16),
    /// A Unix stream socket.
    Unix(PathBuf),
}

/// `10.0.0.1:80`, `[::1]:80`, `unix:/path`: a server's name in logs, metrics and the admin API.
impl fmt::Display for PeerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddress::Tcp(ip, port) => SocketAddr::new(*ip, *port).fmt(formatter),
            PeerAddress::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
