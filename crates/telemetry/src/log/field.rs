//! The table of fields: each declared once, with its name, unit, meaning, example and source.
//!
//! Templates and JSON formats name fields from here; `docs/logs.md` lists them. A log's privacy is
//! applied by [`Line`], which is the only way to a request's text.

use super::entry::Entry;
use super::privacy::{AddressPrivacy, Keep, Privacy};
use super::value::Value;
use super::view::{LogView, RuleView};
use super::writer::Recording;
use crate::record::{Handshake, Phase, Record, Side, Tls, UpstreamConnection};

/// What a line is made of, as far as its log may tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    record: &'a Record,
    view: &'a LogView<'a>,
    privacy: &'a Privacy,
    recording: &'a Recording,
}

/// A field of log lines.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// `ms`, `s` or `bytes`; empty where there is none.
    pub(super) unit: &'static str,
    pub(super) example: &'static str,
    pub(super) doc: &'static str,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Of(for<'a> fn(&Line<'a>) -> Value<'a>),
    Phase(Phase),
    /// Nanoseconds; zero is absent.
    Nanos(for<'a> fn(&Line<'a>) -> u64),
}

impl Field {
    /// The field called `name`.
    pub(super) fn named(name: &str) -> Option<&'static Field> {
        FIELDS.iter().find(|field| field.name == name)
    }

    /// The field's value in a line.
    #[inline]
    pub(super) fn value<'a>(&self, line: &Line<'a>) -> Value<'a> {
        match self.source {
            Source::Of(value) => value(line),
            Source::Phase(phase) => line.phase(phase),
            Source::Nanos(nanos) => match nanos(line) {
                0 => Value::Absent,
                nanos => Value::Millis(nanos),
            },
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn new(
        record: &'a Record,
        view: &'a LogView<'a>,
        privacy: &'a Privacy,
        recording: &'a Recording,
    ) -> Line<'a> {
        Line { record, view, privacy, recording }
    }

    /// The rules that matched.
    pub(super) fn rules(&self) -> &'a [RuleView<'a>] {
        self.view.rules
    }

    /// The request's entry in the audit log.
    pub(super) fn audit(&self) -> Option<&'a dyn Entry> {
        self.view.audit
    }

    /// What is recorded of the request.
    pub(super) fn recorded(&self) -> Option<&'a dyn Entry> {
        self.view.recorded
    }

    pub(super) fn privacy(&self) -> &'a Privacy {
        self.privacy
    }

    pub(super) fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// What a rule found in the request, where the log keeps such.
    pub(super) fn matched(&self, text: &'a [u8]) -> &'a [u8] {
        match self.privacy.query {
            Keep::Yes => text,
            Keep::No => b"",
        }
    }

    pub(super) fn client(&self) -> Value<'a> {
        self.address(self.view.client_addr)
    }

    pub(super) fn host(&self) -> &'a [u8] {
        self.view.host
    }

    /// Path and query, as far as the log keeps them.
    pub(super) fn uri(&self) -> Vec<u8> {
        match self.query() {
            b"" => self.view.path.to_vec(),
            query => [self.view.path, b"?", query].concat(),
        }
    }

    pub(super) fn status(&self) -> u16 {
        self.record.status
    }

    pub(super) fn id(&self) -> [u8; 16] {
        self.record.id.hex()
    }

    /// The wall time of the request's first byte.
    pub(super) fn began_millis(&self) -> u64 {
        self.record.began_millis()
    }

    #[inline]
    fn phase(&self, phase: Phase) -> Value<'a> {
        self.record.phase_nanos(phase).map_or(Value::Absent, Value::Millis)
    }

    fn address(&self, address: Option<std::net::IpAddr>) -> Value<'a> {
        Value::Address(self.privacy.address.show(address))
    }

    fn query(&self) -> &'a [u8] {
        match self.privacy.query {
            Keep::Yes => self.view.query,
            Keep::No => b"",
        }
    }

    /// A URI from a header, without its query where the log does not keep queries.
    fn reference(&self, uri: &'a [u8]) -> &'a [u8] {
        match self.privacy.query {
            Keep::Yes => uri,
            // The fragment goes too: what follows `#` is no path either.
            Keep::No => uri.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or(b""),
        }
    }

    fn referer(&self) -> &'a [u8] {
        match self.privacy.referer {
            Keep::Yes => self.reference(self.view.referer),
            Keep::No => b"",
        }
    }

    fn user_agent(&self) -> &'a [u8] {
        match self.privacy.user_agent {
            Keep::Yes => self.view.user_agent,
            Keep::No => b"",
        }
    }

    /// Text that names a person as an address does.
    fn personal(&self, text: &'a [u8]) -> &'a [u8] {
        match self.privacy.address {
            AddressPrivacy::Keep => text,
            AddressPrivacy::Drop | AddressPrivacy::Truncate | AddressPrivacy::Hash(_) => b"",
        }
    }
}

fn some(number: u64) -> Value<'static> {
    if number == 0 { Value::Absent } else { Value::Number(number) }
}

const fn field(
    name: &'static str,
    unit: &'static str,
    example: &'static str,
    doc: &'static str,
    value: for<'a> fn(&Line<'a>) -> Value<'a>,
) -> Field {
    Field { name, unit, example, doc, source: Source::Of(value) }
}

const fn phase(name: &'static str, phase: Phase, example: &'static str) -> Field {
    Field { name, unit: "ms", example, doc: phase.doc(), source: Source::Phase(phase) }
}

const fn waf_phase(
    name: &'static str,
    example: &'static str,
    doc: &'static str,
    nanos: for<'a> fn(&Line<'a>) -> u64,
) -> Field {
    Field { name, unit: "ms", example, doc, source: Source::Nanos(nanos) }
}

/// All fields.
pub(super) static FIELDS: &[Field] = &[
    // When and which.
    field(
        "time",
        "",
        "2026-03-01T12:00:00.123Z",
        "When the request's first byte came, in UTC (RFC 3339).",
        |line| Value::TimeIso(line.began_millis()),
    ),
    field(
        "time_end",
        "",
        "2026-03-01T12:00:00.140Z",
        "When the request ended, in UTC (RFC 3339).",
        |line| Value::TimeIso(line.record.unix_millis),
    ),
    field(
        "time_clf",
        "",
        "01/Mar/2026:12:00:00 +0000",
        "When the request's first byte came, in the form of the common log format.",
        |line| Value::TimeClf(line.began_millis()),
    ),
    field(
        "time_unix",
        "s",
        "1772366400.123",
        "When the request's first byte came, in seconds since 1970.",
        |line| Value::TimeUnix(line.began_millis()),
    ),
    field(
        "request_id",
        "",
        "0001065f2c9a8b01",
        "The request's id, unique over workers and restarts.",
        |line| Value::Id(line.record.id),
    ),
    field("forwarded_id", "", "7f3d2c", "The request id that a trusted proxy sent.", |line| {
        Value::Text(line.view.forwarded_id)
    }),
    field("worker", "", "1", "The worker that served it.", |line| {
        Value::Number(line.record.id.worker().into())
    }),
    // Who.
    field(
        "client_addr",
        "",
        "192.0.2.7",
        "The client's address, or what the log's privacy leaves of it.",
        |line| line.address(line.view.client_addr),
    ),
    field(
        "client_port",
        "",
        "52110",
        "The client's port; only where addresses are kept.",
        |line| match line.privacy.address {
            AddressPrivacy::Keep => some(line.view.client_port.into()),
            _ => Value::Absent,
        },
    ),
    field(
        "peer_addr",
        "",
        "10.0.0.2",
        "The address that connected, which may be a trusted proxy; treated like `client_addr`.",
        |line| line.address(line.view.peer_addr),
    ),
    field("listener", "", "[::]:443", "The listener that accepted the connection.", |line| {
        Value::Text(line.view.listener.as_bytes())
    }),
    field("referer", "", "https://example.org/", "The `Referer` header.", |line| {
        Value::Text(line.referer())
    }),
    field("user_agent", "", "curl/8.5.0", "The `User-Agent` header.", |line| {
        Value::Text(line.user_agent())
    }),
    // What was asked.
    field("scheme", "", "https", "`http` or `https`.", |line| {
        Value::Text(line.view.scheme.as_bytes())
    }),
    field("protocol", "", "HTTP/1.1", "The protocol towards the client.", |line| {
        Value::Token(line.record.protocol.as_str())
    }),
    field("method", "", "GET", "The method.", |line| Value::Text(line.view.method)),
    field("host", "", "shop.example", "The host asked for, without port.", |line| {
        Value::Text(line.view.host)
    }),
    field("path", "", "/cart", "The path as received, without query.", |line| {
        Value::Text(line.view.path)
    }),
    field("query", "", "id=7", "The query, without its question mark.", |line| {
        Value::Text(line.query())
    }),
    field("uri", "", "/cart?id=7", "Path and query.", |line| {
        Value::Uri(line.view.path, line.query())
    }),
    field(
        "request_line",
        "",
        "GET /cart?id=7 HTTP/1.1",
        "Method, path, query and protocol.",
        |line| Value::RequestLine(line.view, line.query(), line.record.protocol),
    ),
    // What came of it.
    field("status", "", "200", "The status sent to the client; absent if none was.", |line| {
        some(line.record.status.into())
    }),
    field("upstream_status", "", "200", "The status that came from the server.", |line| {
        some(line.record.upstream_status.into())
    }),
    field("outcome", "", "served", "How it ended; see the table below.", |line| {
        Value::Token(line.record.outcome.as_str())
    }),
    field("timed_out", "", "connect", "The phase that took too long, if one did.", |line| {
        line.record.outcome.timed_out().map_or(Value::Absent, |phase| Value::Token(phase.as_str()))
    }),
    field(
        "side",
        "",
        "upstream",
        "Whose doing it was, if it went wrong: `downstream`, `upstream` or `gate`.",
        |line| match line.record.side {
            Side::None => Value::Absent,
            side => Value::Token(side.as_str()),
        },
    ),
    field("reason", "", "head_too_large", "The code of what went wrong.", |line| {
        Value::Text(line.record.reason.as_bytes())
    }),
    field("content_type", "", "text/html", "The response's `Content-Type`.", |line| {
        Value::Text(line.view.content_type)
    }),
    field(
        "location",
        "",
        "https://shop.example/",
        "The response's `Location`; without its query where queries are not kept.",
        |line| Value::Text(line.reference(line.view.location)),
    ),
    // Where.
    field("site", "", "shop", "The site's name.", |line| Value::Text(line.view.site.as_bytes())),
    field("route", "", "/cart", "The route's name.", |line| {
        Value::Text(line.view.route.as_bytes())
    }),
    field("group", "", "app", "The upstream group's name.", |line| {
        Value::Text(line.view.group.as_bytes())
    }),
    field("server", "", "app-1:8080", "The server of the last attempt, as configured.", |line| {
        Value::Text(line.view.server.as_bytes())
    }),
    field("upstream_addr", "", "10.0.1.7:8080", "The address connected to.", |line| {
        Value::Text(line.view.upstream_addr.as_bytes())
    }),
    field(
        "upstream_connection",
        "",
        "reused",
        "`fresh` or `reused`; absent if no server was reached.",
        |line| Value::Token(line.record.connection.as_str()),
    ),
    field("retries", "", "0", "Attempts after the first, where a server was asked.", |line| {
        let record = line.record;
        if record.connection == UpstreamConnection::None && record.retries == 0 {
            Value::Absent
        } else {
            Value::Number(record.retries.into())
        }
    }),
    // How much.
    field("bytes_in", "bytes", "412", "From the client: head and body.", |line| {
        Value::Number(line.record.bytes.head_in + line.record.bytes.body_in)
    }),
    field("bytes_out", "bytes", "5310", "To the client: head and body.", |line| {
        Value::Number(line.record.bytes.head_out + line.record.bytes.body_out)
    }),
    field("body_bytes_in", "bytes", "0", "The request's body.", |line| {
        Value::Number(line.record.bytes.body_in)
    }),
    field("body_bytes_out", "bytes", "5120", "The response's body.", |line| {
        Value::Number(line.record.bytes.body_out)
    }),
    field(
        "body_bytes_clf",
        "bytes",
        "5120",
        "The response's body; absent if empty, as in the common log format.",
        |line| some(line.record.bytes.body_out),
    ),
    field("upstream_bytes_in", "bytes", "5301", "From the server.", |line| {
        Value::Number(line.record.bytes.up_in)
    }),
    field("upstream_bytes_out", "bytes", "498", "To the server.", |line| {
        Value::Number(line.record.bytes.up_out)
    }),
    // How long.
    phase("duration_ms", Phase::Total, "17.204"),
    field(
        "request_time",
        "s",
        "0.017",
        "From the first byte of the request to its end, in seconds as nginx writes it.",
        |line| line.record.phase_nanos(Phase::Total).map_or(Value::Absent, Value::Seconds),
    ),
    phase("accept_ms", Phase::Accept, "0.301"),
    phase("tls_ms", Phase::Tls, "1.922"),
    phase("head_read_ms", Phase::HeadRead, "0.004"),
    phase("request_body_ms", Phase::RequestBody, "2.310"),
    phase("routing_ms", Phase::Routing, "0.002"),
    phase("admission_ms", Phase::Admission, "0.000"),
    phase("inspection_ms", Phase::Inspection, "0.081"),
    phase("look_up_ms", Phase::LookUp, "0.001"),
    phase("fill_wait_ms", Phase::FillWait, "31.040"),
    phase("pool_wait_ms", Phase::PoolWait, "0.000"),
    phase("connect_ms", Phase::Connect, "0.412"),
    phase("upstream_tls_ms", Phase::UpstreamTls, "2.204"),
    phase("first_byte_ms", Phase::FirstByte, "14.820"),
    phase("upstream_head_ms", Phase::UpstreamHead, "0.003"),
    phase("body_ms", Phase::Body, "1.107"),
    phase("write_ms", Phase::Write, "1.120"),
    // The cache.
    field(
        "cache",
        "",
        "hit",
        "What the cache made of the request; see the table below. Absent if it was not asked.",
        |line| Value::Token(line.record.cache.result.as_str()),
    ),
    field(
        "cache_reason",
        "",
        "set-cookie",
        "Why the cache could not do better, or why the response was not stored.",
        |line| Value::Token(line.record.cache.reason),
    ),
    // The WAF.
    field(
        "waf_mode",
        "",
        "block",
        "What the WAF does about matches; absent if it did not look.",
        |line| Value::Token(line.record.waf.mode.as_str()),
    ),
    field("waf_verdict", "", "deny", "What came of the inspection; see the table below.", |line| {
        Value::Token(line.record.waf.verdict.as_str())
    }),
    field("waf_rule", "", "949110", "The id of the rule that decided, or would have.", |line| {
        some(line.record.waf.rule)
    }),
    field("waf_score", "", "15", "The inbound anomaly score of the Core Rule Set.", |line| {
        some(line.record.waf.score.into())
    }),
    field(
        "waf_rules",
        "",
        "942100,949110",
        "The ids of the rules that matched and log, at most 32 of them.",
        |line| Value::Rules(line.view.rules),
    ),
    field("waf_matches", "", "2", "How many rules matched and log.", |line| {
        some(line.record.waf.matches.into())
    }),
    waf_phase(
        "waf_ms",
        "0.081",
        "The time that the inspection took, all phases together, without waiting.",
        |line| line.record.waf.nanos(),
    ),
    waf_phase("waf_1_ms", "0.012", "Phase 1 of the inspection: the request's head.", |line| {
        line.record.waf.phases_nanos[0]
    }),
    waf_phase("waf_2_ms", "0.064", "Phase 2 of the inspection: the request's body.", |line| {
        line.record.waf.phases_nanos[1]
    }),
    waf_phase("waf_3_ms", "0.002", "Phase 3 of the inspection: the response's head.", |line| {
        line.record.waf.phases_nanos[2]
    }),
    waf_phase("waf_4_ms", "0.002", "Phase 4 of the inspection: the response's body.", |line| {
        line.record.waf.phases_nanos[3]
    }),
    waf_phase("waf_5_ms", "0.001", "Phase 5 of the inspection, after the response.", |line| {
        line.record.waf.phases_nanos[4]
    }),
    field(
        "waf_slowest_rule",
        "",
        "942130",
        "The id of the rule that took longest, in the few requests that are measured rule by rule \
            (`rule_times`).",
        |line| some(line.record.waf.slowest_rule),
    ),
    waf_phase("waf_slowest_ms", "0.031", "The time of that rule.", |line| {
        line.record.waf.slowest_nanos
    }),
    waf_phase("waf_queued_ms", "1.204", "The wait for the inspection pool.", |line| {
        line.record.waf.queued_nanos
    }),
    // TLS.
    field("tls_version", "", "TLSv1.3", "The TLS version; absent without TLS.", |line| {
        Value::Token(line.record.tls.as_str())
    }),
    field("tls_cipher", "", "TLS13_AES_128_GCM_SHA256", "The cipher suite.", |line| {
        Value::Text(line.view.tls_cipher.as_bytes())
    }),
    field("tls_session", "", "resumed", "`full` or `resumed`; absent without TLS.", |line| match (
        line.record.tls,
        line.record.handshake,
    ) {
        (Tls::None, _) => Value::Absent,
        (_, handshake @ (Handshake::Full | Handshake::Resumed)) => Value::Token(handshake.as_str()),
    }),
    field("sni", "", "shop.example", "The server name in the TLS handshake.", |line| {
        Value::Text(line.view.sni.as_bytes())
    }),
    field(
        "tls_client_subject",
        "",
        "CN=till-7",
        "The subject of the client's certificate; only where addresses are kept.",
        |line| Value::Text(line.personal(line.view.tls_client_subject.as_bytes())),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_their_unit() {
        for (index, field) in FIELDS.iter().enumerate() {
            let same = FIELDS.iter().position(|other| other.name == field.name);
            assert_eq!(same, Some(index), "{}", field.name);
            assert_eq!(field.unit == "ms", field.name.ends_with("_ms"), "{}", field.name);
            assert!(!field.example.is_empty() && field.doc.ends_with('.'), "{}", field.name);
        }
        for phase in Phase::ALL {
            let of_phase =
                |field: &&Field| matches!(field.source, Source::Phase(other) if other == phase);
            assert_eq!(FIELDS.iter().filter(of_phase).count(), 1, "{phase:?}");
        }
    }
}
