//! What the gate says by itself: fixed answers, redirects and refusals.

use std::borrow::Cow;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use tidegate_http::field::Known;
use tidegate_http::framing::Body;
use tidegate_http::{Method, write};
use tidegate_telemetry::{Outcome, Side, Stamp};

use super::route::Routed;
use super::{Exchange, Place, Refusal, Stop, Surroundings, respond, variables};
use crate::connection::Downstream;
use crate::settings::ListenerTimeouts;

/// An answer of the gate's own.
pub(crate) struct Answer {
    status: u16,
    content_type: Cow<'static, str>,
    body: Cow<'static, [u8]>,
    location: Option<Vec<u8>>,
    allow: Option<String>,
    /// Further fields, whatever the route sets.
    fields: Vec<(&'static str, String)>,
    connection: Connection,
}

/// What becomes of an HTTP/1 connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    /// It goes on, if the request body was read.
    Keep,
    /// It closes: the place of the next message is not known, or the client is not to be trusted.
    Close,
}

const HTML: &str = "text/html; charset=utf-8";

impl Answer {
    /// The answer to a request that is not served.
    pub(super) fn refuse(refusal: &Refusal, exchange: &mut Exchange) -> Self {
        let verdict = refusal.verdict();
        exchange.record.end(verdict.outcome, verdict.side, verdict.reason);
        let allow = match refusal {
            Refusal::MethodNotAllowed(methods) => Some(methods.join(", ")),
            // CONNECT and TRACE are the methods that are refused anywhere.
            Refusal::Trace | Refusal::Malformed(_) if verdict.status == 405 => {
                Some("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH".into())
            }
            _ => None,
        };
        let keeps = matches!(
            refusal,
            Refusal::NoSite
                | Refusal::NoRoute
                | Refusal::MethodNotAllowed(_)
                | Refusal::PurgeForbidden
                | Refusal::NoServer(_)
                | Refusal::Connect
                | Refusal::ConnectLate
                | Refusal::PoolLate
                | Refusal::UpstreamTls(_)
                | Refusal::UpstreamClosed
                | Refusal::UpstreamBroken
                | Refusal::UpstreamInvalid(_)
                | Refusal::UpstreamChunk(_)
                | Refusal::UpstreamInterims
                | Refusal::UpstreamHttp2(_)
                | Refusal::FirstByteLate
                | Refusal::Denied(_)
                | Refusal::InspectionBusy
                | Refusal::InspectionFailed
                | Refusal::ResponseLimit
                | Refusal::OnlyIfCached
                | Refusal::NotValidated
                | Refusal::ServerError(_)
        );
        Self {
            status: verdict.status,
            content_type: HTML.into(),
            body: page(verdict.status, &exchange.record.id.hex()).into(),
            location: None,
            allow,
            fields: Vec::new(),
            connection: if keeps { Connection::Keep } else { Connection::Close },
        }
    }

    /// A fixed answer, as configured.
    pub(super) fn fixed(status: u16, content_type: &str, body: &str) -> Self {
        Self {
            status,
            content_type: content_type.to_owned().into(),
            body: body.as_bytes().to_vec().into(),
            location: None,
            allow: None,
            fields: Vec::new(),
            connection: Connection::Keep,
        }
    }

    /// A redirect, as configured for the route.
    pub(super) fn redirect(
        status: u16,
        around: &Surroundings<'_>,
        exchange: &Exchange,
        routed: &Routed<'_>,
    ) -> Self {
        let place = Place { site: routed.site, route: Some(routed.route) };
        let mut location = Vec::new();
        if let Some(template) = &routed.route.redirect {
            variables::write(template, around, exchange, Some(place), &mut location);
        }
        Self::redirect_to(status, location, exchange)
    }

    /// A redirect of a whole site: the same path and query, elsewhere. 308 keeps method and body
    /// (RFC 9110, section 15.4.9).
    pub(super) fn redirect_site(
        scheme: &[u8],
        host: &[u8],
        port: Option<u16>,
        exchange: &Exchange,
    ) -> Self {
        let mut location = Vec::new();
        location.extend_from_slice(scheme);
        location.extend_from_slice(b"://");
        write::host(&mut location, host, port);
        if exchange.request.path_and_query != b"*" {
            location.extend_from_slice(&exchange.request.path_and_query);
        }
        Self::redirect_to(308, location, exchange)
    }

    /// A redirect to a place that is known.
    pub(super) fn redirect_to(status: u16, location: Vec<u8>, exchange: &Exchange) -> Self {
        Self {
            status,
            content_type: HTML.into(),
            body: page(status, &exchange.record.id.hex()).into(),
            location: Some(location),
            allow: None,
            fields: Vec::new(),
            connection: Connection::Keep,
        }
    }

    /// A challenge: a page of the gate's own, and the fields that go with it.
    pub(super) fn challenge(
        content_type: &'static str,
        body: Vec<u8>,
        fields: Vec<(&'static str, String)>,
    ) -> Self {
        Self {
            status: 403,
            content_type: content_type.into(),
            body: body.into(),
            location: None,
            allow: None,
            fields,
            connection: Connection::Keep,
        }
    }

    /// Sends the answer.
    pub(super) async fn send<'p>(
        self,
        around: &Surroundings<'p>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        place: Option<Place<'p>>,
    ) -> Stop<'p> {
        exchange.record.end(Outcome::Answered, Side::None, "");
        exchange.record.status = self.status;
        // What a client sends after it was told that it need not is never taken for a request.
        if self.connection == Connection::Close || !downstream.body_is_done() {
            downstream.close_after();
        }
        exchange.response.clear();
        exchange.response.status = self.status;
        let headers = &mut exchange.response.headers;
        headers.push_known(Known::Date, &around.worker.date());
        if !self.body.is_empty() {
            headers.push_known(Known::ContentType, self.content_type.as_bytes());
        }
        if let Some(location) = &self.location {
            headers.push_known(Known::Location, location);
        }
        if let Some(allow) = &self.allow {
            headers.push(b"Allow", allow.as_bytes());
        }
        if let Some(place) = place {
            respond::edit(around, exchange, place);
        }
        // What the page cannot do without: a site's own policy would keep its script from running.
        for (name, value) in &self.fields {
            exchange.response.headers.set(name.as_bytes(), value.as_bytes());
        }
        let silent = exchange.request.method == Method::Head || matches!(self.status, 204 | 304);
        let body = if silent {
            exchange.response.headers.set_known(Known::ContentLength, &length(&self.body));
            Body::None
        } else if self.body.is_empty() {
            Body::None
        } else {
            Body::Length(self.body.len() as u64)
        };
        let timeouts = around.listener_timeouts();
        if downstream.respond(&exchange.request, &exchange.response, body).is_err() {
            return Stop::Finish;
        }
        exchange.record.stamps.first_byte_out = Stamp::now();
        let mut left: &[u8] = if silent { &[] } else { &self.body };
        downstream.slot().set(timeouts.write);
        // A client that is gone or does not read gets no answer; the record says why there was one.
        let _ = poll_fn(|cx| {
            if let Poll::Ready(sent) = poll_send(downstream, &mut left, cx) {
                return Poll::Ready(sent);
            }
            downstream.slot().poll_expired(cx).map(|()| Err(()))
        })
        .await;
        Stop::Finish
    }
}

fn poll_send(
    downstream: &mut Downstream<'_>,
    left: &mut &[u8],
    cx: &mut Context<'_>,
) -> Poll<Result<(), ()>> {
    while !left.is_empty() {
        let n = ready!(downstream.poll_write(left, cx)).map_err(|_| ())?;
        *left = &left[n..];
    }
    ready!(downstream.poll_flush(cx)).map_err(|_| ())?;
    Poll::Ready(downstream.finish(None).map_err(|_| ()))
}

impl Surroundings<'_> {
    /// How long this request's client may take.
    pub(crate) fn listener_timeouts(&self) -> ListenerTimeouts {
        self.client.listener.timeouts
    }
}

fn length(body: &[u8]) -> Vec<u8> {
    let mut digits = Vec::new();
    write::decimal(&mut digits, body.len() as u64);
    digits
}

/// A page that says no more than the status, and the id by which the logs tell the rest.
fn page(status: u16, id: &[u8; 16]) -> Vec<u8> {
    let mut page = Vec::with_capacity(256);
    let mut title = Vec::with_capacity(40);
    write::decimal(&mut title, u64::from(status));
    title.push(b' ');
    title.extend_from_slice(write::reason(status).as_bytes());
    for part in [
        b"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>",
        title.as_slice(),
        b"</title><h1>",
        &title,
        b"</h1><p>Request <code>",
        id,
        b"</code></p></html>\n",
    ] {
        page.extend_from_slice(part);
    }
    page
}
