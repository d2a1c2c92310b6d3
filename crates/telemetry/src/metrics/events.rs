//! What can happen to connections, streams and servers: the label values of their metrics.

use crate::labelled::labelled;

labelled! {
    /// Why a client connection was closed.
    pub enum Closed {
        /// The client closed it, between requests.
        ByClient = "client",
        /// The client closed it within a request.
        Aborted = "aborted",
        /// It was idle for as long as it may be.
        IdleTimeout = "idle_timeout",
        /// It was the oldest idle one and gave way to a new one.
        GaveWay = "gave_way",
        /// A limit on connections turned it away.
        Limit = "limit",
        /// A phase of a request took longer than it may.
        Timeout = "timeout",
        /// The client broke the protocol.
        ProtocolError = "protocol_error",
        /// The TLS handshake failed.
        TlsFailed = "tls_failed",
        /// The last message said `Connection: close`, or ended with the connection.
        LastMessage = "last_message",
        /// It had served as many requests as it may.
        RequestsMax = "requests_max",
        /// A tunnel ended.
        TunnelEnded = "tunnel_ended",
        /// The gate drained it for a reload, an upgrade or a shutdown.
        Drained = "drained",
        /// The gate itself failed.
        Internal = "internal",
    }
}

labelled! {
    /// How an HTTP/2 stream ended.
    pub enum StreamEnd {
        /// Both sides were done.
        Done = "done",
        /// The client reset it.
        ResetByClient = "reset_by_client",
        /// The gate reset it.
        ResetByGate = "reset_by_gate",
    }
}

labelled! {
    /// What a connection was doing when it was closed.
    pub enum ConnectionState {
        /// It had a request.
        Busy = "busy",
        /// It waited for one.
        Idle = "idle",
    }
}

labelled! {
    /// Whether a server is asked.
    pub enum ServerState {
        /// It is asked.
        Up = "up",
        /// Active checks found it down.
        Down = "down",
        /// Failures of requests have put it aside for a while.
        Ejected = "ejected",
        /// It finishes what it has and gets nothing new.
        Draining = "draining",
    }
}

labelled! {
    /// What is done with a request that the inspection pool has no room for.
    pub enum Busy {
        /// It waits until there is room.
        Wait = "wait",
        /// It passes, and is marked as not inspected.
        Pass = "pass",
        /// It is refused with 503.
        Refuse = "refuse",
    }
}
