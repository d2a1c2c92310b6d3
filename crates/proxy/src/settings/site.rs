//! Settings of sites and their routes.

use std::time::Duration;

use tidegate_http::Method;

use super::{Caching, Inspect};

/// Host names served together.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Its name in logs and metrics: the first host unless named.
    pub name: String,
    /// The hosts it serves.
    pub hosts: Vec<Host>,
    /// Answer plain-text requests with a redirect to https.
    pub https: HttpsRedirect,
    /// Redirect every other host of the site to this one.
    pub canonical_host: Option<String>,
    /// `Strict-Transport-Security` value to add on TLS, if any.
    pub hsts: Option<String>,
    /// Its routes; the order does not matter, the most specific wins.
    pub routes: Vec<Route>,
    /// Indices of the access logs that its records go to.
    pub logs: Vec<usize>,
}

/// A host a site serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Exactly this name, in lower case.
    Exact(String),
    /// Any name below this one (`*.example.org` holds `example.org`), at any depth.
    Below(String),
    /// Any host: the default site.
    Any,
}

/// Whether plain-text requests are sent to https.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpsRedirect {
    /// Plain text is served.
    Off,
    /// 308 to the same URL with https on this port (443 is not written).
    To(u16),
}

/// A path rule within a site, and what is done there.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its name in logs and metrics: the path unless named.
    pub name: String,
    /// Which paths.
    pub path: PathRule,
    /// Which methods; empty means all.
    pub methods: Vec<MethodName>,
    /// What is done with the request.
    pub action: Action,
    /// What is taken from the front of the path before it goes upstream.
    pub strip_prefix: Option<String>,
    /// What is put in front of the path before it goes upstream.
    pub add_prefix: Option<String>,
    /// `Host` sent upstream.
    pub upstream_host: UpstreamHost,
    /// Changes to the request's fields before it goes upstream.
    pub request_headers: Vec<HeaderEdit>,
    /// Changes to the response's fields before it goes downstream.
    pub response_headers: Vec<HeaderEdit>,
    /// How long the upstream may take.
    pub timeouts: RouteTimeouts,
    /// Bytes of a request body; beyond it 413. `None`: no limit.
    pub body_bytes_max: Option<u64>,
    /// What may be retried.
    pub retry: Retry,
    /// Protocols a client may upgrade to, in lower case (`websocket`).
    pub upgrades: Vec<String>,
    /// Whether TRACE is passed on.
    pub trace: Trace,
    /// How requests are inspected; `None` if they are not.
    pub inspect: Option<Inspect>,
    /// How responses are cached; `None` if they are not.
    pub caching: Option<Caching>,
}

impl Route {
    /// Appends the target that goes upstream for a path in normal form: the prefix taken away and the
    /// other put in front, then the query with its `?`.
    pub fn upstream_target(&self, path: &[u8], query: Option<&[u8]>, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(self.add_prefix.as_deref().unwrap_or_default().as_bytes());
        let stripped = self
            .strip_prefix
            .as_deref()
            .and_then(|prefix| path.strip_prefix(prefix.as_bytes()))
            .unwrap_or(path);
        if !stripped.starts_with(b"/") && stripped != b"*" && out.last() != Some(&b'/') {
            out.push(b'/');
        }
        if out.len() > begin && out.ends_with(b"/") && stripped.starts_with(b"/") {
            out.pop();
        }
        out.extend_from_slice(stripped);
        if let Some(query) = query {
            out.push(b'?');
            out.extend_from_slice(query);
        }
    }
}

/// Which paths a route serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathRule {
    /// Exactly this path.
    Exact(String),
    /// This path and everything below it: `/a` serves `/a` and `/a/b`, not `/ab`; `/a/` serves
    /// `/a/` and `/a/b`.
    Prefix(String),
}

/// A method a route serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// The method.
    pub method: Method,
    /// Its text.
    pub text: String,
}

/// What a route does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Pass the request to a server of this group, by index.
    Group(usize),
    /// Answer at once.
    Answer {
        /// The status code.
        status: u16,
        /// The body.
        body: String,
        /// Its `Content-Type`.
        content_type: String,
    },
    /// Send the client elsewhere. `to` may hold `$host`, `$path`, `$query` (with its `?`) and `$uri`
    /// (path and query).
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Where to.
        to: String,
    },
}

/// `Host` as the upstream sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamHost {
    /// As the client sent it.
    Client,
    /// The server's own name or address.
    Server,
    /// This text.
    Fixed(String),
}

/// A change to header fields. Values may hold `$client_addr`, `$host`, `$scheme`, `$request_id`,
/// `$site`, `$route`, `$tls_client_subject`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit {
    /// Replace all fields of this name by one.
    Set(String, String),
    /// Add one more field.
    Add(String, String),
    /// Remove all fields of this name.
    Remove(String),
}

/// How long an upstream may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteTimeouts {
    /// From the request written to the first byte of the response; beyond it 504.
    pub first_byte: Duration,
    /// Between two reads of the response.
    pub between_bytes: Duration,
    /// From the head received to the response written. `None`: no limit.
    pub whole: Option<Duration>,
    /// Without a byte in either direction of a tunnel.
    pub tunnel_idle: Duration,
}

/// What may be sent to another server after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Which failures.
    pub when: RetryWhen,
    /// Attempts beyond the first.
    pub attempts_max: u8,
}

/// Which failures may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryWhen {
    /// None.
    Never,
    /// Those after which the server cannot have seen the request: no connection, or a reused one that
    /// closed before a byte of the response, for a method that is idempotent (RFC 9110, section 9.2.2).
    Unseen,
    /// Also any failure before a byte of the response, for idempotent methods.
    Idempotent,
}

/// Whether TRACE is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// 405.
    Refuse,
    /// As any other method.
    Pass,
}
