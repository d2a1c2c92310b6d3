//! Why a request is not served, and what its client is told: one enum, one exhaustive mapping.

use tidegate_http::error::{ChunkError, RequestError, ResponseError, TargetError};
use tidegate_telemetry::{Outcome, Phase, Side};

use crate::upstream::NoServer;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The head cannot be accepted.
    Malformed(RequestError),
    /// The client closed within the head.
    HeadBroken,
    /// The head took too long.
    HeadLate,
    /// The path cannot be brought into normal form.
    Path(TargetError),
    /// A field name that CGI would read as another field.
    LookAlike,
    /// An HTTP/2 message that HTTP/1 cannot say (RFC 9113, section 8.2 and 8.3).
    Http2(&'static str),
    /// No site serves the host.
    NoSite,
    /// No route covers the path.
    NoRoute,
    /// Routes cover the path, but not with this method; these would be.
    MethodNotAllowed(Vec<String>),
    /// TRACE, where it is not passed on.
    Trace,
    /// PURGE, from an address that may not purge.
    PurgeForbidden,
    /// The body is larger than the route allows.
    BodyTooLarge,
    /// A rule of the WAF denies it, with this status.
    Denied(u16),
    /// The body is larger than the WAF looks at, and such are refused.
    InspectionLimit,
    /// The inspection pool is full.
    InspectionBusy,
    /// The inspection has failed: a bug of ours.
    InspectionFailed,
    /// A body that is held back could not be written to disk, or read from there.
    Spool,
    /// The response is larger than the WAF looks at, and such are refused.
    ResponseLimit,
    /// The body's chunked coding is broken.
    BodyMalformed(ChunkError),
    /// The body did not come in time.
    BodyLate,
    /// The client closed or reset within the body.
    BodyBroken,
    /// The client went away while the server was at work.
    ClientClosed,
    /// The client did not take the response in time.
    WriteLate,
    /// The group has no server to ask.
    NoServer(NoServer),
    /// No connection to the server could be opened.
    Connect,
    /// The connection to the server was not open in time.
    ConnectLate,
    /// The connection to the server waited too long for a place within the server's limit.
    PoolLate,
    /// TLS with the server failed, for a reason.
    UpstreamTls(&'static str),
    /// The server closed before a byte of the response.
    UpstreamClosed,
    /// The server closed within the response.
    UpstreamBroken,
    /// The server sent what cannot be accepted.
    UpstreamInvalid(ResponseError),
    /// The server's chunked coding is broken.
    UpstreamChunk(ChunkError),
    /// The server sent interim responses without end.
    UpstreamInterims,
    /// The server reset the stream or broke HTTP/2.
    UpstreamHttp2(&'static str),
    /// The server did not take the request in time.
    UpstreamWriteLate,
    /// No byte of the response came in time.
    FirstByteLate,
    /// The response stood still for too long.
    BetweenBytesLate,
    /// The whole request took too long.
    WholeLate,
    /// The client wants nothing but what is stored, and that is not there (RFC 9111, section 5.2.1.7).
    OnlyIfCached,
    /// What is stored may not be served without being validated, and the server cannot be asked (RFC
    /// 9111, section 5.2.2.2).
    NotValidated,
    /// The server answered with this status, and what is stored is better.
    ServerError(u16),
}

/// What follows from a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The status the client gets, if it can still get one.
    pub(crate) status: u16,
    /// How the request ended.
    pub(crate) outcome: Outcome,
    /// Who is at fault.
    pub(crate) side: Side,
    /// One word for logs and metrics.
    pub(crate) reason: &'static str,
}

impl Refusal {
    /// What the client is told and the record holds.
    pub(crate) fn verdict(&self) -> Verdict {
        use Outcome as O;
        use Side::{Downstream, Gate, Upstream};
        let (status, outcome, side, reason) = match self {
            Self::Malformed(error) => (error.status(), O::ClientError, Downstream, error.code()),
            Self::HeadBroken => (400, O::ClientClosed, Downstream, "head_broken"),
            Self::HeadLate => (408, O::Timeout(Phase::HeadRead), Downstream, "head_late"),
            Self::Path(error) => (400, O::ClientError, Downstream, error.code()),
            Self::LookAlike => (400, O::ClientError, Downstream, "field_look_alike"),
            Self::Http2(reason) => (400, O::ClientError, Downstream, *reason),
            Self::NoSite => (421, O::NoRoute, Downstream, "no_site"),
            Self::NoRoute => (404, O::NoRoute, Downstream, "no_route"),
            Self::MethodNotAllowed(_) => (405, O::NoRoute, Downstream, "method_not_allowed"),
            Self::Trace => (405, O::ClientError, Downstream, "trace_refused"),
            Self::PurgeForbidden => (403, O::Denied, Downstream, "purge_refused"),
            Self::BodyTooLarge => (413, O::Limit, Downstream, "body_too_large"),
            Self::Denied(status) => (*status, O::Denied, Downstream, "waf_deny"),
            Self::InspectionLimit => (413, O::Limit, Downstream, "waf_body_too_large"),
            Self::InspectionBusy => (503, O::Limit, Gate, "waf_busy"),
            Self::InspectionFailed => (500, O::Internal, Gate, "waf_failed"),
            Self::Spool => (500, O::Internal, Gate, "waf_spool"),
            Self::ResponseLimit => (500, O::Denied, Upstream, "waf_response_too_large"),
            Self::BodyMalformed(error) => (400, O::ClientError, Downstream, error.code()),
            Self::BodyLate => (408, O::Timeout(Phase::RequestBody), Downstream, "body_late"),
            Self::BodyBroken => (400, O::ClientClosed, Downstream, "body_broken"),
            Self::ClientClosed => (499, O::ClientClosed, Downstream, "client_closed"),
            Self::WriteLate => (499, O::Timeout(Phase::Write), Downstream, "write_late"),
            Self::NoServer(why) => (503, O::NoServer, Upstream, why.code()),
            Self::Connect => (502, O::UpstreamRefused, Upstream, "connect_refused"),
            Self::ConnectLate => (504, O::Timeout(Phase::Connect), Upstream, "connect_late"),
            Self::PoolLate => (503, O::Limit, Gate, "pool_late"),
            Self::UpstreamTls(reason) => (502, O::UpstreamTls, Upstream, *reason),
            Self::UpstreamClosed => (502, O::UpstreamReset, Upstream, "upstream_closed"),
            Self::UpstreamBroken => (502, O::UpstreamReset, Upstream, "upstream_broken"),
            Self::UpstreamInvalid(error) => (502, O::UpstreamInvalid, Upstream, error.code()),
            Self::UpstreamChunk(error) => (502, O::UpstreamInvalid, Upstream, error.code()),
            Self::UpstreamInterims => (502, O::UpstreamInvalid, Upstream, "upstream_interims"),
            Self::UpstreamHttp2(reason) => (502, O::UpstreamReset, Upstream, *reason),
            Self::UpstreamWriteLate => {
                (504, O::Timeout(Phase::RequestBody), Upstream, "upstream_write_late")
            }
            Self::FirstByteLate => (504, O::Timeout(Phase::FirstByte), Upstream, "first_byte_late"),
            Self::BetweenBytesLate => {
                (504, O::Timeout(Phase::Body), Upstream, "between_bytes_late")
            }
            Self::OnlyIfCached => (504, O::Answered, Downstream, "only_if_cached"),
            Self::NotValidated => (504, O::UpstreamRefused, Upstream, "not_validated"),
            Self::ServerError(status) => (*status, O::UpstreamInvalid, Upstream, "server_error"),
            Self::WholeLate => (504, O::Timeout(Phase::Total), Upstream, "whole_late"),
        };
        Verdict { status, outcome, side, reason }
    }
}
