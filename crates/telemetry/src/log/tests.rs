//! Lines as a whole: what each format and each privacy writes of a request.

use std::net::IpAddr;

use super::field::{FIELDS, Line};
use super::time::Times;
use super::*;
use crate::clock::Stamp;
use crate::record::{
    CacheResult, Handshake, Inspection, Outcome, Phase, Protocol, Record, RequestId, Side, Tls,
    UpstreamConnection, WafMode, WafVerdict,
};

/// 2000-10-10 13:55:36 UTC, the moment in Apache's own example.
const BEGAN_MILLIS: u64 = 971_186_136_000;

fn record() -> Record {
    let at = |micros: u64| Stamp::from_nanos(1 + micros * 1_000);
    let mut record = Record::new(RequestId(0x0001_0000_0000_002a));
    record.stamps.first_byte_in = at(0);
    record.stamps.head_in = at(4);
    record.stamps.routed = at(6);
    record.stamps.pool_wait.start = at(6);
    record.stamps.pool_wait.end = at(7);
    record.stamps.request_out = at(100);
    record.stamps.first_byte_up = at(14_100);
    record.stamps.head_up = at(14_103);
    record.stamps.first_byte_out = at(14_200);
    record.stamps.body_up_done = at(15_000);
    record.stamps.finished = at(17_204);
    record.unix_millis = BEGAN_MILLIS + 17;
    record.status = 200;
    record.upstream_status = 200;
    record.tls = Tls::V13;
    record.handshake = Handshake::Resumed;
    record.connection = UpstreamConnection::Reused;
    record.bytes.head_in = 412;
    record.bytes.head_out = 190;
    record.bytes.body_out = 2_326;
    record.waf = Inspection {
        mode: WafMode::Detect,
        verdict: WafVerdict::WouldDeny,
        rule: 949_110,
        score: 5,
        matches: 1,
        phases_nanos: [12_000, 64_000, 2_000, 2_000, 1_000],
        slowest_rule: 942_130,
        slowest_nanos: 31_000,
        queued_nanos: 1_204_000,
    };
    record.end(Outcome::Served, Side::None, "");
    record
}

fn view() -> LogView<'static> {
    LogView {
        client_addr: Some(IpAddr::from([192, 0, 2, 7])),
        client_port: 52_110,
        scheme: "https",
        method: b"GET",
        host: b"shop.example",
        path: b"/cart",
        query: b"id=7&name=Eve",
        referer: b"https://example.org/start?user=Eve#top",
        user_agent: b"Mozilla/5.0 \"quoted\"",
        location: b"/next?token=secret",
        rules: &[RuleView {
            id: 949_110,
            file: "",
            line: 0,
            phase: 2,
            message: b"",
            data: b"",
            severity: "",
            tags: &[],
            version: "",
            variable: b"",
            value: b"",
            operator: "",
            effect: RuleEffect::WouldStop,
        }],
        site: "shop",
        route: "/cart",
        group: "app",
        server: "app-1:8080",
        upstream_addr: "10.0.1.7:8080",
        tls_cipher: "TLS13_AES_128_GCM_SHA256",
        sni: "shop.example",
        tls_client_subject: "CN=Eve",
        ..LogView::default()
    }
}

fn line(format: &Format, privacy: &Privacy, record: &Record, view: &LogView<'_>) -> String {
    let mut out = Vec::new();
    let recording = Recording::default();
    let line = Line::new(record, view, privacy, &recording);
    format.write(&line, &mut Times::new(), &mut out);
    let line = String::from_utf8(out).expect("UTF-8");
    let line = line.strip_suffix('\n').expect("a line ends");
    assert!(!line.contains(char::is_control), "one line: {line:?}");
    line.to_owned()
}

#[test]
fn combined_is_apaches() {
    let open = Privacy::default();
    let check = |record: &Record, view: &LogView<'_>, expected: &str| {
        assert_eq!(line(&Format::combined(), &open, record, view), expected);
    };
    check(
        &record(),
        &view(),
        "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /cart?id=7&name=Eve HTTP/1.1\" 200 2326 \
         \"https://example.org/start?user=Eve#top\" \"Mozilla/5.0 \\\"quoted\\\"\"",
    );
    let mut empty = Record { unix_millis: BEGAN_MILLIS, ..Record::default() };
    empty.status = 408;
    check(
        &empty,
        &LogView::default(),
        "- - - [10/Oct/2000:13:55:36 +0000] \"-\" 408 - \"-\" \"-\"",
    );
    let mut h2 = record();
    h2.protocol = Protocol::H2;
    let forged = LogView {
        path: b"/\" 200 1\n10.0.0.1 - - forged",
        query: b"",
        user_agent: b"\x1b[2J\xff",
        ..view()
    };
    check(
        &h2,
        &forged,
        "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \
         \"GET /\\\" 200 1\\n10.0.0.1 - - forged HTTP/2.0\" 200 2326 \
         \"https://example.org/start?user=Eve#top\" \"\\x1b[2J\\xff\"",
    );
}

#[test]
fn json_has_what_the_request_had() {
    let open = Privacy::default();
    let line = |record: &Record, view: &LogView<'_>| line(&Format::json(), &open, record, view);
    assert_eq!(
        line(&record(), &view()),
        "{\"time\":\"2000-10-10T13:55:36.000Z\",\"request_id\":\"000100000000002a\",\
         \"client_addr\":\"192.0.2.7\",\"client_port\":52110,\"protocol\":\"HTTP/1.1\",\
         \"tls_version\":\"TLSv1.3\",\"method\":\"GET\",\"host\":\"shop.example\",\
         \"path\":\"/cart\",\"query\":\"id=7&name=Eve\",\"status\":200,\"outcome\":\"served\",\
         \"bytes_in\":412,\"bytes_out\":2516,\"duration_ms\":17.204,\"site\":\"shop\",\
         \"route\":\"/cart\",\"group\":\"app\",\"server\":\"app-1:8080\",\
         \"upstream_connection\":\"reused\",\"upstream_status\":200,\"retries\":0,\
         \"pool_wait_ms\":0.001,\"first_byte_ms\":14.000,\"body_ms\":0.897,\"write_ms\":3.004,\
         \"waf_verdict\":\"would_deny\",\"waf_rule\":949110,\"waf_score\":5,\
         \"waf_rules\":\"949110\",\"waf_ms\":0.081,\
         \"referer\":\"https://example.org/start?user=Eve#top\",\
         \"user_agent\":\"Mozilla/5.0 \\\"quoted\\\"\"}"
    );
    let mut failed = Record { unix_millis: BEGAN_MILLIS, ..Record::default() };
    failed.status = 504;
    failed.end(Outcome::Timeout(Phase::Connect), Side::Upstream, "connect_timeout");
    assert_eq!(
        line(&failed, &LogView::default()),
        "{\"time\":\"2000-10-10T13:55:36.000Z\",\"request_id\":\"0000000000000000\",\
         \"protocol\":\"HTTP/1.1\",\"status\":504,\"outcome\":\"timeout\",\
         \"timed_out\":\"connect\",\"side\":\"upstream\",\"reason\":\"connect_timeout\",\
         \"bytes_in\":0,\"bytes_out\":0}"
    );
}

#[test]
fn json_of_chosen_fields_stays_an_object() {
    let format = Format::json_of(&["referer", "status"]).expect("fields");
    let of = |record: &Record, view: &LogView<'_>| line(&format, &Privacy::default(), record, view);
    assert_eq!(of(&record(), &LogView::default()), "{\"status\":200}");
    assert_eq!(of(&Record::default(), &LogView::default()), "{}");
    let hostile = LogView { referer: b"\",\"status\":500,\"x\":\"", ..LogView::default() };
    assert_eq!(
        of(&record(), &hostile),
        "{\"referer\":\"\\\",\\\"status\\\":500,\\\"x\\\":\\\"\",\"status\":200}"
    );
}

#[test]
fn the_privacy_format_tells_nothing_of_a_person() {
    let expected = "2000-10-10T13:55:36.000Z 000100000000002a shop.example \
        \"GET /cart HTTP/1.1\" 200 412 2516 0.017 served app-1:8080";
    assert_eq!(line(&Format::privacy(), &Privacy::default(), &record(), &view()), expected);
}

#[test]
fn strict_privacy_holds_for_every_field() {
    let all: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    let format = Format::json_of(&all).expect("all fields");
    let view = LogView { peer_addr: Some(IpAddr::from([192, 0, 2, 8])), ..view() };
    let open = line(&format, &Privacy::default(), &record(), &view);
    let strict = line(&format, &Privacy::STRICT, &record(), &view);
    for secret in ["192.0.2", "52110", "Eve", "Mozilla", "example.org", "secret"] {
        assert!(open.contains(secret), "{secret} in {open}");
        assert!(!strict.contains(secret), "{secret} in {strict}");
    }
    assert!(strict.contains("\"uri\":\"/cart\""), "{strict}");
    assert!(strict.contains("\"location\":\"/next\""), "{strict}");
}

#[test]
fn each_privacy_does_its_part() {
    let format = Format::template("$client_addr:$client_port $uri <$referer> <$user_agent>");
    let format = format.expect("a template");
    let check = |privacy: &Privacy, expected: &str| {
        assert_eq!(line(&format, privacy, &record(), &view()), expected);
    };
    let agent = "Mozilla/5.0 \\\"quoted\\\"";
    let referer = "https://example.org/start";
    let base = Privacy::default();
    check(
        &Privacy { address: AddressPrivacy::Truncate, ..base.clone() },
        &format!("192.0.2.0:- /cart?id=7&name=Eve <{referer}?user=Eve#top> <{agent}>"),
    );
    check(
        &Privacy { address: AddressPrivacy::Drop, query: Keep::No, ..base.clone() },
        &format!("-:- /cart <{referer}> <{agent}>"),
    );
    check(
        &Privacy { user_agent: Keep::No, referer: Keep::No, ..base.clone() },
        "192.0.2.7:52110 /cart?id=7&name=Eve <-> <->",
    );
    let key = HashKey::new([7; 16]);
    let hashed = Privacy { address: AddressPrivacy::Hash(key), ..base };
    let shown = line(&format, &hashed, &record(), &view());
    let (hash, rest) = shown.split_at(32);
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{shown}");
    assert!(rest.starts_with(":- /cart"), "{shown}");
}

#[test]
fn templates_are_read_as_written() {
    let check = |template: &str, expected: &str| {
        let format = Format::template(template).expect("a template");
        assert_eq!(line(&format, &Privacy::default(), &record(), &view()), expected);
    };
    check("$client_addr - $status $request_time", "192.0.2.7 - 200 0.017");
    check("${status}s", "200s");
    check("$status$host", "200shop.example");
    check("cost $$$status, é", "cost $200, é");
    check("$connect_ms|$duration_ms|$time_unix", "-|17.204|971186136.000");
    check("$tls_version/$tls_session/$retries", "TLSv1.3/resumed/0");
}

#[test]
fn mistakes_in_templates_have_a_place_and_a_hint() {
    let check = |template: &str, at: usize, expected: &str| {
        let error = Format::template(template).expect_err(template);
        assert_eq!((error.at, &*error.to_string()), (at, expected), "{template}");
    };
    check("$client_addr $statsu", 13, "no log field is called `statsu`; did you mean `status`?");
    check("é $client_adr", 3, "no log field is called `client_adr`; did you mean `client_addr`?");
    check("$zebra_crossing", 0, "no log field is called `zebra_crossing`");
    check("$status ${host", 8, "`${` is not closed by `}`");
    check("$status $", 8, "`$` is followed by no field name; write `$$` for a dollar");
    check("$status ${}", 8, "`$` is followed by no field name; write `$$` for a dollar");
    check("$status\n$host", 7, "a log line cannot hold a control character");
    check("", 0, "a log line needs at least one field");
    check("$$status", 0, "a log line needs at least one field");

    let check = |names: &[&str], at: usize, expected: &str| {
        let error = Format::json_of(names).expect_err("a mistake");
        assert_eq!((error.at, &*error.to_string()), (at, expected), "{names:?}");
    };
    check(&["time", "Status"], 1, "no log field is called `Status`; did you mean `status`?");
    check(&["time", "time"], 1, "`time` is listed twice");
    check(&[], 0, "a log line needs at least one field");
}

#[test]
fn formats_are_known_by_name_and_compared_by_what_they_write() {
    for name in ["combined", "json", "privacy"] {
        let format = Format::named(name).expect(name);
        assert_eq!(format.name(), name);
        assert_eq!(Format::named(name), Some(format));
    }
    assert_eq!(Format::named("common"), None);
    assert_ne!(Format::combined(), Format::privacy());
    let template = |text| Format::template(text).expect("a template");
    assert_eq!(template("$status"), template("${status}"));
    assert_ne!(template("$status"), template("$status "));
}

/// Examples in the reference are what the fields write, in form if not in value.
#[test]
fn every_field_writes_itself_in_both_shapes() {
    let mut full = record();
    let at = |micros: u64| Stamp::from_nanos(1 + micros * 1_000);
    full.stamps = crate::record::Stamps {
        accepted: at(0),
        tls_done: at(1),
        first_byte_in: at(2),
        head_in: at(3),
        routed: at(4),
        admitted: at(5),
        inspected: at(6),
        looked_up: at(7),
        fill_wait: crate::record::Wait { start: at(7), end: at(8) },
        connect_start: at(8),
        connected: at(9),
        upstream_tls_done: at(10),
        body_in_done: at(11),
        ..full.stamps
    };
    full.end(Outcome::Served, Side::None, "");
    full.outcome = Outcome::Timeout(Phase::Body);
    full.side = Side::Upstream;
    full.reason = "slow";
    full.cache = crate::record::Caching { result: CacheResult::Miss, reason: "private" };
    let view = LogView {
        peer_addr: Some(IpAddr::from([10, 0, 0, 2])),
        listener: "[::]:443",
        content_type: b"text/html",
        forwarded_id: b"7f3d2c",
        user_agent: b"curl/8.5.0",
        ..view()
    };
    for field in FIELDS {
        let text = Format::template(&format!("${}", field.name)).expect(field.name);
        let text = line(&text, &Privacy::default(), &full, &view);
        let json = Format::json_of(&[field.name]).expect(field.name);
        let json = line(&json, &Privacy::default(), &full, &view);
        assert_ne!(text, "-", "{}", field.name);
        let value = json
            .strip_prefix(&format!("{{\"{}\":", field.name))
            .and_then(|rest| rest.strip_suffix('}'))
            .expect("one key");
        assert_eq!(value.trim_matches('"'), text);
        let numeric = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
        if !value.starts_with('"') {
            assert!(numeric(value) && numeric(field.example), "{}: {value}", field.name);
        }
    }
}
