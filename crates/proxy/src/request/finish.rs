//! Stop 8, finish: exactly one record, counted and logged.

use tidegate_http::field::Known;
use tidegate_telemetry::Stamp;
use tidegate_telemetry::log::{Content, Entry, LogView};
use tidegate_telemetry::record::{Outcome, Protocol, Side};

use super::{Exchange, Place, Surroundings, inspect};
use crate::connection::Downstream;

/// Completes the record of a request and hands it on.
pub(super) async fn finish<'p>(
    around: &Surroundings<'p>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    mut place: Option<Place<'p>>,
) {
    let refused = inspect::refused::look(around, downstream, exchange, &mut place);
    let inspect = refused.or(place.and_then(|place| place.route?.settings.inspect.as_ref()));
    if let (Some(settings), true) = (inspect, exchange.inspecting.is_some()) {
        Box::pin(inspect::finish(around, downstream, exchange, settings)).await;
    }
    let record = &mut exchange.record;
    // A way that ended without a word is a fault of ours.
    record.end(Outcome::Internal, Side::Gate, "no_outcome");
    record.stamps.finished = Stamp::now();
    record.unix_millis = around.worker.unix_millis();
    if record.outcome != Outcome::Tunnel {
        (record.bytes.head_out, record.bytes.body_out) = downstream.bytes_out();
    }
    around.worker.metrics().finish(record);
    if let Some(place) = place {
        log(around, exchange, place);
    }
    if exchange.inspecting.is_some() {
        inspect::end(around, exchange);
    }
}

fn log(around: &Surroundings<'_>, exchange: &Exchange, place: Place<'_>) {
    if place.site.settings.logs.is_empty() {
        return;
    }
    let request = &exchange.request;
    let route = place.route;
    let client = around.client;
    let group = route.and_then(|route| around.plan.group_of(route));
    let header = |known: Known| request.headers.first(known).unwrap_or_default();
    let response = |known: Known| exchange.response.headers.first(known).unwrap_or_default();
    let tls = client.tls.as_deref();
    let server = exchange.server.as_deref();
    let rules = inspect::rules(exchange.inspecting.as_deref());
    let logs = || place.site.settings.logs.iter().map(|index| &around.plan.logs[*index]);
    let wants = |content: Content| logs().any(|log| log.settings().format.content() == content);
    let recorded =
        if wants(Content::Recorded) { inspect::Recorded::of(exchange, client) } else { None };
    let audit = if wants(Content::Audit) { inspect::Audit::of(exchange) } else { None };
    let view = LogView {
        client_addr: exchange.client_addr,
        client_port: client.port,
        peer_addr: client.peer.address(),
        listener: &client.listener.name,
        scheme: exchange.scheme.name(),
        host: &request.host,
        method: request.method_bytes(),
        path: request.path(),
        query: request.query().unwrap_or_default(),
        referer: header(Known::Referer),
        user_agent: header(Known::UserAgent),
        content_type: response(Known::ContentType),
        location: response(Known::Location),
        site: &place.site.settings.name,
        route: route.map_or("", |route| &route.settings.name),
        group: group.map_or("", |group| group.name()),
        server: server.map_or("", |server| server.name()),
        upstream_addr: server.map_or("", |server| server.name()),
        tls_cipher: tls.map_or("", |tls| tls.cipher),
        sni: tls.and_then(|tls| tls.server_name.as_deref()).unwrap_or_default(),
        tls_client_subject: tls
            .and_then(|tls| tls.client.as_ref())
            .map_or("", |client| &client.subject),
        forwarded_id: &[],
        rules: &rules,
        recorded: recorded.as_ref().map(|recorded| recorded as &dyn Entry),
        audit: audit.as_ref().map(|audit| audit as &dyn Entry),
    };
    for log in logs() {
        around.worker.log(log, &exchange.record, &view);
    }
}

/// The protocol of a request, as records name it.
pub(crate) fn protocol(version: tidegate_http::Version) -> Protocol {
    match version {
        tidegate_http::Version::Http10 => Protocol::Http10,
        tidegate_http::Version::Http11 => Protocol::Http11,
        tidegate_http::Version::Http2 => Protocol::H2,
        tidegate_http::Version::Http3 => Protocol::H3,
    }
}
