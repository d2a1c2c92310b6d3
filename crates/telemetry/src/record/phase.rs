//! The phases of a request: the stretches between its stamps.

use crate::labelled::labelled;

labelled! {
    /// A stretch of a request's way.
    pub enum Phase {
    /// From the connection's acceptance to the first byte of its first request.
    Accept = "accept",
    /// The TLS handshake with the client; for a connection's first request only.
    Tls = "tls",
    /// From the first byte of the request head to its end.
    HeadRead = "head_read",
    /// From the request head to the end of its body.
    RequestBody = "request_body",
    /// Finding site and route.
    Routing = "routing",
    /// Waiting for limits and queue.
    Admission = "admission",
    /// The WAF's look at the request.
    Inspection = "inspection",
    /// The cache's look-up.
    LookUp = "look_up",
    /// Waiting for a fill of the cache: until its response's head is there.
    FillWait = "fill_wait",
    /// Waiting for an upstream connection.
    PoolWait = "pool_wait",
    /// Connecting to the server.
    Connect = "connect",
    /// The TLS handshake with the server.
    UpstreamTls = "upstream_tls",
    /// From the request head written to the first byte of the response.
    FirstByte = "first_byte",
    /// From the first byte of the response head to its end.
    UpstreamHead = "upstream_head",
    /// From the response head to the end of its body, at the server's side.
    Body = "body",
    /// From the first byte written to the client to the last.
    Write = "write",
    /// From the first byte of the request to its end.
    Total = "total",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_follow_the_order() {
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase.index(), index);
            assert!(phase.doc().ends_with('.'), "{phase:?}");
        }
    }
}
