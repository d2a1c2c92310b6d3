//! Settings of a listener: where it accepts, what it speaks, what it bears.

use std::sync::Arc;
use std::time::Duration;

use super::Address;
use crate::tls::ServerTls;

/// One listening address, shared by all sites.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its name in logs: its address as configured.
    pub name: String,
    /// Where it listens.
    pub address: Address,
    /// TLS, already built from its certificates; `None` speaks plain text.
    pub tls: Option<Arc<ServerTls>>,
    /// Which HTTP versions are spoken.
    pub protocols: Protocols,
    /// Whether each connection begins with a PROXY protocol header.
    pub proxy_protocol: ProxyProtocol,
    /// `listen(2)` backlog.
    pub backlog: u32,
    /// Limits on what a client may send before it is routed.
    pub limits: ListenerLimits,
    /// How long a client may take.
    pub timeouts: ListenerTimeouts,
    /// HTTP/2 limits.
    pub http2: Http2,
}

/// Which HTTP versions a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// Both: by ALPN over TLS; by the connection preface in plain text (RFC 9113, section 3.3).
    Both,
}

/// Whether connections begin with a PROXY protocol header (v1 or v2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// None is expected; one is a bad request.
    Off,
    /// One is required; a connection without is closed.
    Required,
}

/// Limits on a request head and its trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Bytes of a whole request head; beyond it 431.
    pub head_bytes_max: usize,
    /// Bytes of the request target; beyond it 414.
    pub target_bytes_max: usize,
    /// Header fields in a request; beyond it 431.
    pub fields_max: usize,
    /// Requests on one connection before it is closed.
    pub requests_per_connection_max: u32,
}

/// How long a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerTimeouts {
    /// For the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a head to its end; beyond it 408.
    pub head: Duration,
    /// Between requests.
    pub idle: Duration,
    /// Between two reads of a request body; beyond it 408.
    pub body_read: Duration,
    /// Between two writes of a response.
    pub write: Duration,
}

/// HTTP/2 limits (RFC 9113, sections 6.5.2 and 10.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Concurrent streams of one connection.
    pub streams_max: u32,
    /// Initial flow-control window of a stream, in bytes.
    pub stream_window_bytes: u32,
    /// Flow-control window of a connection, in bytes.
    pub connection_window_bytes: u32,
    /// Streams that a client may reset early before it is told to go (CVE-2023-44487).
    pub resets_max: usize,
    /// Bytes of decoded header fields of one request.
    pub header_bytes_max: u32,
}
