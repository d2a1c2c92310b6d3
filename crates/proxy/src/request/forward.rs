//! The request as the server gets it: written afresh from what was parsed.
//!
//! Framing, host, forwarding fields and target are ours; all other fields that are meant for the
//! server go along as they came, after the route's edits.

use tidegate_http::field::{Known, end_to_end};
use tidegate_http::framing::{self, Body};
use tidegate_http::{Headers, Method, Request, write};

use super::route::Routed;
use super::{Exchange, Place, Surroundings, variables};
use crate::connection::h2;
use crate::forwarded::{self, Origin};
use crate::plan::Edit;
use crate::settings::UpstreamHost;
use crate::upstream::Pick;
use crate::upstream::stream::Upstream;

/// Fields that are never copied: they are written afresh, or no client has a reason to send them.
/// `Proxy` would become `HTTP_PROXY` in a CGI's environment (CVE-2016-5385).
const fn is_ours(known: Known) -> bool {
    matches!(known, Known::Host | Known::ContentLength | Known::Proxy)
        || forwarded::is_forwarding(known)
}

/// The protocol a request may switch to, if its route allows it.
pub(super) fn upgrade(request: &Request, allowed: &[String]) -> Option<Vec<u8>> {
    if !request.headers.has(Known::Upgrade) {
        return None;
    }
    let allowed: Vec<&[u8]> = allowed.iter().map(String::as_bytes).collect();
    framing::upgrade(request, &allowed).map(<[u8]>::to_vec)
}

/// Writes the request's head for a server.
pub(super) fn begin(
    upstream: &mut Upstream,
    around: &Surroundings<'_>,
    exchange: &mut Exchange,
    routed: &Routed<'_>,
    pick: &Pick,
    body: Body,
    upgrade: Option<&[u8]>,
) -> Result<(), &'static str> {
    let edited = edited(around, exchange, routed);
    let fields = edited.as_ref().unwrap_or(&exchange.request.headers);
    let outgoing = Outgoing { around, exchange, routed, pick, fields };
    match upstream {
        Upstream::Http1(connection) => {
            connection.begin(body, |out| outgoing.write(out, body, upgrade));
            Ok(())
        }
        Upstream::Http2(stream) => {
            let request = outgoing.http2(body).ok_or("h2_upstream_head")?;
            stream.begin(request, body).map_err(|_| "h2_upstream_closed")
        }
    }
}

/// The fields after the route's edits; `None` where it has none.
fn edited(around: &Surroundings<'_>, exchange: &Exchange, routed: &Routed<'_>) -> Option<Headers> {
    if routed.route.request_edits.is_empty() {
        return None;
    }
    let place = Place { site: routed.site, route: Some(routed.route) };
    let mut fields = exchange.request.headers.clone();
    let mut value = Vec::new();
    for edit in &routed.route.request_edits {
        value.clear();
        if let Edit::Set(_, template) | Edit::Add(_, template) = edit {
            variables::write(template, around, exchange, Some(place), &mut value);
        }
        edit.apply(&mut fields, &value);
    }
    Some(fields)
}

/// What a head is written from.
struct Outgoing<'o, 'p> {
    around: &'o Surroundings<'p>,
    exchange: &'o Exchange,
    routed: &'o Routed<'p>,
    pick: &'o Pick,
    fields: &'o Headers,
}

impl Outgoing<'_, '_> {
    fn write(&self, out: &mut Vec<u8>, body: Body, upgrade: Option<&[u8]>) {
        let request = &self.exchange.request;
        self.request_line(out);
        out.extend_from_slice(b"Host: ");
        self.host(out);
        out.extend_from_slice(b"\r\n");
        write::end_to_end(out, self.fields, |known| !is_ours(known));
        self.origin().write_lines(out);
        match body {
            Body::Length(length) => write::content_length(out, length),
            Body::Chunked => write::chunked(out),
            Body::None if expects_length(request) => write::content_length(out, 0),
            Body::None | Body::UntilClose => {}
        }
        if let Some(protocol) = upgrade {
            write::field(out, b"Connection", b"upgrade");
            write::field(out, b"Upgrade", protocol);
        }
        write::end(out);
    }

    fn http2(&self, body: Body) -> Option<http::Request<()>> {
        let request = &self.exchange.request;
        let mut target = Vec::new();
        self.target(&mut target);
        let mut host = Vec::new();
        self.host(&mut host);
        let scheme = self.around.client.scheme().name();
        let uri = http::Uri::builder()
            .scheme(scheme)
            .authority(host.as_slice())
            .path_and_query(target.as_slice())
            .build()
            .ok()?;
        let mut head = http::Request::new(());
        *head.method_mut() = http::Method::from_bytes(request.method_bytes()).ok()?;
        *head.uri_mut() = uri;
        *head.version_mut() = http::Version::HTTP_2;
        let mut fields = Headers::new();
        for field in end_to_end(self.fields).filter(|field| !is_ours(field.known)) {
            fields.push(field.name, field.value);
        }
        self.origin().push_fields(&mut fields, &mut Vec::new());
        if let Body::Length(length) = body {
            let mut digits = Vec::new();
            write::decimal(&mut digits, length);
            fields.push_known(Known::ContentLength, &digits);
        }
        *head.headers_mut() = h2::fields(&fields);
        // The one hop-by-hop field that HTTP/2 has (RFC 9113, section 8.2.2); gRPC insists on it.
        let wants_trailers = |value: &[u8]| value.eq_ignore_ascii_case(b"trailers");
        if request.headers.all(Known::Te).any(wants_trailers) {
            let value = http::HeaderValue::from_static("trailers");
            head.headers_mut().insert(http::header::TE, value);
        }
        Some(head)
    }

    fn request_line(&self, out: &mut Vec<u8>) {
        let request = &self.exchange.request;
        out.extend_from_slice(request.method_bytes());
        out.push(b' ');
        self.target(out);
        out.extend_from_slice(b" HTTP/1.1\r\n");
    }

    /// The target: the path in normal form, with the route's prefixes taken away and put in front.
    fn target(&self, out: &mut Vec<u8>) {
        let query = self.exchange.request.query();
        self.routed.route.settings.upstream_target(self.exchange.path(), query, out);
    }

    fn host(&self, out: &mut Vec<u8>) {
        let request = &self.exchange.request;
        match &self.routed.route.settings.upstream_host {
            UpstreamHost::Client => write::host(out, &request.host, request.port),
            UpstreamHost::Server => {
                out.extend_from_slice(self.pick.in_flight.seat().authority().as_bytes());
            }
            UpstreamHost::Fixed(host) => out.extend_from_slice(host.as_bytes()),
        }
    }

    /// What the server is told of the client (RFC 7239, and the older fields).
    fn origin(&self) -> Origin<'_> {
        origin(self.around, self.exchange)
    }
}

/// Where a request comes from, as far as its peers are believed.
pub(crate) fn origin<'a>(around: &'a Surroundings<'_>, exchange: &'a Exchange) -> Origin<'a> {
    let client = around.client;
    Origin::of(&client.peer, client.scheme(), &exchange.request, &around.plan.trusted_proxies)
}

/// Whether a request without a body says so: methods that usually have one (RFC 9110, section 8.6).
fn expects_length(request: &Request) -> bool {
    matches!(request.method, Method::Post | Method::Put | Method::Patch)
        || request.headers.has(Known::ContentLength)
}
