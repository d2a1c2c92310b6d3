//! Requests that were refused before stop 4: rules see them too, for the log's sake.
//!
//! A scanner's requests are often broken on purpose, or for paths and methods that no route has. Whoever
//! reads the log is to see what they were. The answer has been sent by now and stands, whatever rules
//! say. Phases 1 and 2 see the head alone, on the worker's loop and with as much work as a phase may do
//! there; phase 5 follows at stop 8 as for every request.
//!
//! A head that the codec did not accept is read once more here, as far as it goes and without judging:
//! nothing is decided on what this finds, and nothing of it goes on. So what it says of the client's
//! address is not believed either.

use std::borrow::Cow;

use tidegate_http::field::{self, Known};
use tidegate_http::{Request, target};
use tidegate_telemetry::record::WafVerdict;
use tidegate_telemetry::{Outcome, Stamp};
use tidegate_waf::body::End;
use tidegate_waf::inspection::{Moment, Step};
use tidegate_waf::variable::Phase;

use super::phase::{IN_PLACE, nanos};
use super::{Exchange, State, begin, keep};
use crate::connection::Downstream;
use crate::inspection;
use crate::plan::{RouteMatch, Site};
use crate::request::{Place, Surroundings};
use crate::settings::Inspect;

/// Looks at a request that was refused before stop 4, if it was, and gives what it was looked at with.
/// A request that never had a place gets its site as one, so that it is logged.
pub(in crate::request) fn look<'p>(
    around: &Surroundings<'p>,
    downstream: &Downstream<'_>,
    exchange: &mut Exchange,
    place: &mut Option<Place<'p>>,
) -> Option<&'p Inspect> {
    if !was_refused(exchange) {
        return None;
    }
    let mut protocol = Cow::Borrowed(exchange.record.protocol.as_str());
    let head = downstream.refused_head();
    if !head.is_empty() {
        let fields_max = around.client.listener.limits.fields_max;
        protocol = read(head, fields_max, &mut exchange.request)?.into();
        exchange.record.bytes.head_in = head.len() as u64;
    }
    if place.is_none() && !exchange.record.stamps.routed.is_set() {
        let site = around.plan.site_for(&exchange.request.host)?;
        *place = Some(Place { site, route: None });
        exchange.client_addr = around.client.peer.address();
    }
    let place = (*place)?;
    let inspect = match place.route {
        Some(route) => route.settings.inspect.as_ref(),
        None => of_site(place.site),
    }?;
    let mut inspection = begin(around, exchange, inspect, &protocol);
    inspection.detect_only();
    keep(exchange, inspection);
    for phase in [Phase::RequestHeaders, Phase::RequestBody] {
        if run(around, exchange, phase).is_none() {
            break;
        }
    }
    Some(inspect)
}

/// Whether the request was refused, and before it was inspected.
fn was_refused(exchange: &Exchange) -> bool {
    exchange.inspecting.is_none()
        && exchange.record.waf.verdict == WafVerdict::None
        && matches!(
            exchange.record.outcome,
            Outcome::ClientError | Outcome::NoRoute | Outcome::Limit
        )
}

/// How a site looks at what belongs to none of its routes: as at its root.
fn of_site(site: &Site) -> Option<&Inspect> {
    let root = match site.route_table.find(b"/", tidegate_http::Method::Get, b"GET") {
        RouteMatch::Found(index) => site.routes.get(index),
        RouteMatch::MethodNotAllowed | RouteMatch::NotFound => None,
    };
    let inspect = |route: &'_ crate::plan::Route| route.settings.inspect.is_some();
    root.or_else(|| site.routes.iter().find(|route| inspect(route)))?.settings.inspect.as_ref()
}

/// Runs a phase; `None` if it did not come to its end, and no other is to be run.
fn run(around: &Surroundings<'_>, exchange: &mut Exchange, phase: Phase) -> Option<()> {
    let inspecting = exchange.inspecting.as_deref_mut()?;
    let mut inspection = inspecting.inspection.take()?;
    if phase == Phase::RequestBody {
        inspection.request_body_end(End::Complete);
    }
    let elapsed = exchange.record.stamps.head_in.elapsed();
    let moment = Moment {
        epoch_ms: around.worker.unix_millis(),
        elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    let began = Stamp::now();
    let ran = {
        let mut inspector = around.worker.inspector();
        inspection::run(inspection, IN_PLACE, phase, moment, &mut inspector)
    };
    exchange.record.waf.phases_nanos[phase.index()] += nanos(began.elapsed());
    let Ok((inspection, step)) = ran else {
        exchange.record.waf.verdict = WafVerdict::Failed;
        return None;
    };
    inspecting.inspection = Some(inspection);
    if step == Step::Paused {
        inspecting.state = State::Skipped;
        exchange.record.waf.verdict = WafVerdict::Skipped;
        return None;
    }
    Some(())
}

/// Reads a head into `request` as far as it goes, and gives what it says of its protocol; `None` where
/// there is not even a method.
fn read(head: &[u8], fields_max: usize, request: &mut Request) -> Option<String> {
    request.clear();
    let mut lines =
        head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = lines.next()?;
    let space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let method_end = line.iter().position(space).filter(|&end| end > 0)?;
    let (method, rest) = line.split_at(method_end);
    if !field::is_name(method) {
        return None;
    }
    let rest = field::trim(rest);
    // A request of HTTP/0.9 ends with its target.
    let (target, protocol) = match rest.iter().rposition(space) {
        Some(at) if rest[at + 1..].starts_with(b"HTTP/") => {
            (field::trim(&rest[..at]), &rest[at + 1..])
        }
        _ => (rest, &b"HTTP/0.9"[..]),
    };
    request.set_method(method);
    request.set_path_and_query(target);
    for line in lines.take_while(|line| !line.is_empty()).take(fields_max) {
        // What is no field to anyone is not shown to rules as one.
        if let Some(colon) = line.iter().position(|&byte| byte == b':')
            && let (name, value) = (&line[..colon], field::trim(&line[colon + 1..]))
            && field::is_name(name)
            && field::is_value(value)
        {
            request.headers.push(name, value);
        }
    }
    let mut host = Vec::new();
    if let Some(value) = request.headers.first(Known::Host)
        && let Ok(port) = target::host(value, &mut host)
    {
        request.port = port;
        request.host = host;
    }
    Some(String::from_utf8_lossy(protocol).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_far_as_it_goes() {
        let check = |head: &[u8], line: [&str; 3], host: &str, fields: &[(&str, &str)]| {
            let mut request = Request::new();
            let protocol = read(head, 4, &mut request);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let shown = text(head);
            assert_eq!(text(request.method_bytes()), line[0], "{shown}");
            assert_eq!(text(&request.path_and_query), line[1], "{shown}");
            assert_eq!(protocol.as_deref(), Some(line[2]), "{shown}");
            assert_eq!(text(&request.host), host, "{shown}");
            let found: Vec<_> =
                request.headers.iter().map(|field| (text(field.name), text(field.value))).collect();
            let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert_eq!(found, fields, "{shown}");
        };
        check(
            b"GET /a HTTP/4.0\r\nHost: b:81\r\n\r\nrest: 1",
            ["GET", "/a", "HTTP/4.0"],
            "b",
            &[("Host", "b:81")],
        );
        check(b"GET /", ["GET", "/", "HTTP/0.9"], "", &[]);
        check(
            b"GET  /a b\tHTTP/1.1\nx: 1\nno colon\ny : 2\nz: a\rb",
            ["GET", "/a b", "HTTP/1.1"],
            "",
            &[("x", "1")],
        );
        check(
            b"PUT /\xe2\x91\xa0?\x01 HTTP/1.1\r\nHost: a b\r\n:\r\n",
            ["PUT", "/①?\u{1}", "HTTP/1.1"],
            "",
            &[("Host", "a b")],
        );
        check(
            b"A / HTTP/1.1\r\na:1\r\nb:2\r\nc:3\r\nd:4\r\ne:5",
            ["A", "/", "HTTP/1.1"],
            "",
            &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")],
        );
        for nothing in [&b""[..], b"\r\n", b" / HTTP/1.1", b"GET", b"\x16\x03\x01 x", b"\n\n"] {
            assert_eq!(read(nothing, 4, &mut Request::new()), None);
        }
    }
}
