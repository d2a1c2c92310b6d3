//! Metrics as a whole: what workers count is what a scraper reads.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::clock::Stamp;
use crate::record::{Outcome, Phase, Protocol, Record, Side, Tls, UpstreamConnection};

/// A line of an exposition.
type Sample = (String, BTreeMap<String, String>);

/// Reads an exposition back, and checks on the way what a scraper relies on: each sample follows
/// the type of its family, no sample comes twice, buckets are cumulative and end in the count.
fn parse(text: &str) -> BTreeMap<Sample, f64> {
    let mut samples = BTreeMap::new();
    let mut family = (String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            family = (name.to_owned(), kind.to_owned());
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a series and a value");
            let sample = parse_series(series);
            let base = sample.0.strip_prefix(&family.0).expect("samples follow their type");
            let suffixes: &[&str] = match &*family.1 {
                "counter" => &["", "_total"],
                "gauge" => &[""],
                "histogram" => &["_bucket", "_sum", "_count"],
                other => panic!("unknown type {other}"),
            };
            assert!(suffixes.contains(&base), "{line}");
            let value = value.parse().expect("a number");
            assert_eq!(samples.insert(sample, value), None, "twice: {line}");
        }
    }
    for ((name, labels), value) in &samples {
        if labels.get("le").is_some_and(|le| le == "+Inf") {
            let mut labels = labels.clone();
            labels.remove("le");
            let count = (name.replace("_bucket", "_count"), labels);
            assert_eq!(samples.get(&count), Some(value), "{name}");
        }
    }
    samples
}

fn parse_series(series: &str) -> Sample {
    let Some((name, rest)) = series.split_once('{') else {
        return (series.to_owned(), BTreeMap::new());
    };
    let mut rest = rest.strip_suffix('}').expect("labels end");
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a quoted value");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("the quote ends") {
                (_, '\\') => match chars.next().expect("something is escaped").1 {
                    'n' => value.push('\n'),
                    char => value.push(char),
                },
                (at, '"') => break at,
                (_, char) => value.push(char),
            }
        };
        labels.insert(label.to_owned(), value);
        rest = after[end + 1..].trim_start_matches(',');
    }
    (name.to_owned(), labels)
}

fn value(samples: &BTreeMap<Sample, f64>, series: &str) -> Option<f64> {
    samples.get(&parse_series(series)).copied()
}

fn metrics() -> Metrics {
    Metrics::new(Settings::default(), 1_700_000_000)
}

/// A request that was served after `millis`, half of them waiting for the server.
fn served(metrics: &Metrics, millis: u64) -> Record {
    let at = |millis: u64| Stamp::from_nanos(1 + millis * 1_000_000);
    let labels = metrics.labels();
    let mut record = Record {
        site: labels.site("shop"),
        route: labels.route("shop", "/\"api\"\\"),
        group: labels.group("app"),
        server: labels.server("app", "10.0.0.1:80"),
        status: 200,
        upstream_status: 200,
        protocol: Protocol::H2,
        tls: Tls::V13,
        connection: UpstreamConnection::Reused,
        ..Record::default()
    };
    record.stamps.first_byte_in = at(0);
    record.stamps.head_in = at(1);
    record.stamps.request_out = at(1);
    record.stamps.first_byte_up = at(1 + millis / 2);
    record.stamps.finished = at(millis);
    record.bytes.body_in = 10;
    record.bytes.head_out = 200;
    record.bytes.body_out = 1_000;
    record.end(Outcome::Served, Side::None, "");
    record
}

#[test]
fn what_workers_count_is_what_a_scraper_reads() {
    let metrics = metrics();
    let (first, second) = (metrics.worker(0), metrics.worker(1));
    for (worker, millis) in [(&first, 4), (&first, 40), (&second, 400)] {
        worker.request_started();
        worker.finish(&served(&metrics, millis));
    }
    second.request_started();
    let mut failed = served(&metrics, 10);
    failed.outcome = Outcome::Timeout(Phase::FirstByte);
    failed.side = Side::Upstream;
    failed.status = 504;
    failed.upstream_status = 0;
    first.finish(&failed);
    first.request_started();
    first.request_started();

    for format in [TextFormat::Prometheus, TextFormat::OpenMetrics] {
        let text = metrics.exposition(format);
        let samples = parse(&text);
        let check = |series: &str, expected: f64| {
            assert_eq!(value(&samples, series), Some(expected), "{series}\n{text}");
        };
        let place = r#"site="shop",route="/\"api\"\\""#;
        check(&format!("tidegate_requests_total{{{place},class=\"2xx\"}}"), 3.0);
        check(&format!("tidegate_requests_total{{{place},class=\"5xx\"}}"), 1.0);
        check(&format!("tidegate_request_bytes_total{{{place}}}"), 40.0);
        check(&format!("tidegate_response_bytes_total{{{place}}}"), 4_800.0);
        let duration = "tidegate_request_duration_seconds";
        check(&format!("{duration}_bucket{{{place},le=\"0.005\"}}"), 1.0);
        check(&format!("{duration}_bucket{{{place},le=\"0.01\"}}"), 2.0);
        check(&format!("{duration}_bucket{{{place},le=\"0.05\"}}"), 3.0);
        check(&format!("{duration}_bucket{{{place},le=\"+Inf\"}}"), 4.0);
        check(&format!("{duration}_sum{{{place}}}"), 0.454);
        check("tidegate_responses_total{status=\"200\"}", 3.0);
        check("tidegate_responses_total{status=\"504\"}", 1.0);
        check("tidegate_requests_by_protocol_total{protocol=\"HTTP/2.0\",tls=\"TLSv1.3\"}", 4.0);
        check("tidegate_outcomes_total{outcome=\"served\",side=\"none\"}", 3.0);
        check("tidegate_outcomes_total{outcome=\"timeout\",side=\"upstream\"}", 1.0);
        check(
            "tidegate_request_errors_total{outcome=\"timeout\",side=\"upstream\",code=\"first_byte\"}",
            1.0,
        );
        let target = "group=\"app\",server=\"10.0.0.1:80\"";
        check(&format!("tidegate_upstream_responses_total{{{target},class=\"2xx\"}}"), 3.0);
        check(&format!("tidegate_upstream_responses_total{{{target},class=\"none\"}}"), 1.0);
        check(&format!("tidegate_upstream_first_byte_duration_seconds_count{{{target}}}"), 4.0);
        check("tidegate_phase_duration_seconds_count{phase=\"head_read\"}", 4.0);
        check("tidegate_requests_active", 2.0);
        check("tidegate_worker_requests_total{worker=\"0\"}", 3.0);
        check("tidegate_worker_requests_total{worker=\"1\"}", 1.0);
        check("process_start_time_seconds", 1_700_000_000.0);
        assert_eq!(value(&samples, "tidegate_responses_total{status=\"404\"}"), None);
        assert_eq!(text.ends_with("# EOF\n"), format == TextFormat::OpenMetrics);
    }
}

#[test]
fn requests_that_got_nowhere_are_counted_too() {
    let metrics = metrics();
    let worker = metrics.worker(0);
    let mut record = Record::default();
    record.end(Outcome::ClientError, Side::Downstream, "bare_cr");
    record.status = 400;
    worker.finish(&record);
    record.site = metrics.labels().site("shop");
    worker.finish(&record);
    record.status = 7;
    worker.finish(&record);
    let samples = parse(&metrics.exposition(TextFormat::Prometheus));
    let check = |series: &str, expected: f64| {
        assert_eq!(value(&samples, series), Some(expected), "{series}");
    };
    check("tidegate_requests_total{site=\"\",route=\"\",class=\"4xx\"}", 1.0);
    check("tidegate_requests_total{site=\"shop\",route=\"\",class=\"4xx\"}", 1.0);
    check("tidegate_requests_total{site=\"shop\",route=\"\",class=\"other\"}", 1.0);
    check(
        "tidegate_request_errors_total{outcome=\"client_error\",side=\"downstream\",code=\"bare_cr\"}",
        3.0,
    );
    assert!(!samples.keys().any(|(name, _)| name.starts_with("tidegate_upstream")));
}

#[test]
fn connections_and_servers_balance() {
    let metrics = metrics();
    let worker = metrics.worker(0);
    let server = metrics.labels().server("app", "a");
    for _ in 0..3 {
        worker.connection_accepted();
    }
    worker.connection_idle();
    worker.connection_idle();
    worker.connection_busy();
    worker.connection_closed(ConnectionState::Idle, Closed::GaveWay);
    worker.connection_closed(ConnectionState::Busy, Closed::Aborted);
    worker.tls_done(Tls::V13, crate::record::Handshake::Resumed);
    worker.tls_failed(Side::Downstream, "no_shared_cipher");
    worker.protocol_error(Protocol::H2, Side::Downstream, "rapid_reset");
    worker.stream_opened();
    worker.stream_opened();
    worker.stream_closed(StreamEnd::ResetByClient);
    worker.tunnel_opened();
    worker.tunnel_opened();
    worker.tunnel_closed();
    worker.upstream_opened(server, Duration::from_millis(3));
    worker.upstream_opened(server, Duration::from_millis(3));
    worker.upstream_idle(server);
    worker.upstream_reused(server);
    worker.upstream_idle(server);
    worker.upstream_closed(server, ConnectionState::Idle);
    worker.upstream_failed(server, Outcome::UpstreamReset);
    worker.upstream_retried(server);
    worker.health_checked(server, Check::Failed);
    worker.loop_observed(LoopTotals { polls: 5, parks: 2, busy: Duration::from_millis(1_500) });
    metrics.control().server_state(server, ServerState::Ejected);
    metrics.control().log("main").written.fetch_add(9, Ordering::Relaxed);

    let samples = parse(&metrics.exposition(TextFormat::Prometheus));
    let check = |series: &str, expected: f64| {
        assert_eq!(value(&samples, series), Some(expected), "{series}");
    };
    check("tidegate_connections_accepted_total", 3.0);
    check("tidegate_connections_open", 1.0);
    check("tidegate_connections_idle", 0.0);
    check("tidegate_connections_closed_total{reason=\"gave_way\"}", 1.0);
    check("tidegate_connections_closed_total{reason=\"limit\"}", 0.0);
    check("tidegate_tls_handshakes_total{version=\"TLSv1.3\",kind=\"resumed\"}", 1.0);
    check("tidegate_tls_handshakes_failed_total", 1.0);
    let error = "tidegate_connection_errors_total";
    check(
        &format!("{error}{{protocol=\"TLS\",side=\"downstream\",code=\"no_shared_cipher\"}}"),
        1.0,
    );
    check(
        &format!("{error}{{protocol=\"HTTP/2.0\",side=\"downstream\",code=\"rapid_reset\"}}"),
        1.0,
    );
    check("tidegate_h2_streams_open", 1.0);
    check("tidegate_h2_streams_closed_total{end=\"reset_by_client\"}", 1.0);
    check("tidegate_tunnels_open", 1.0);
    let target = "group=\"app\",server=\"a\"";
    check(&format!("tidegate_upstream_connects_total{{{target}}}"), 2.0);
    check(&format!("tidegate_upstream_reuses_total{{{target}}}"), 1.0);
    check(&format!("tidegate_upstream_connections_open{{{target}}}"), 1.0);
    check(&format!("tidegate_upstream_connections_idle{{{target}}}"), 0.0);
    check(&format!("tidegate_upstream_retries_total{{{target}}}"), 1.0);
    check(&format!("tidegate_upstream_failures_total{{{target},outcome=\"upstream_reset\"}}"), 1.0);
    check(&format!("tidegate_upstream_connect_duration_seconds_sum{{{target}}}"), 0.006);
    check(&format!("tidegate_health_checks_total{{{target},result=\"failed\"}}"), 1.0);
    check(&format!("tidegate_server_state{{{target},state=\"ejected\"}}"), 1.0);
    check(&format!("tidegate_server_state{{{target},state=\"up\"}}"), 0.0);
    check("tidegate_worker_busy_seconds_total{worker=\"0\"}", 1.5);
    check("tidegate_log_lines_written_total{log=\"main\"}", 9.0);
}

#[test]
fn a_worker_that_follows_another_goes_on_counting() {
    let metrics = metrics();
    let worker = metrics.worker(0);
    worker.connection_accepted();
    let beside = metrics.worker(0);
    beside.connection_accepted();
    drop(worker);
    let next = metrics.worker(0);
    next.connection_accepted();
    assert_eq!(metrics.snapshot().basics.connections_accepted, 3);
    assert_eq!(metrics.blocks.read().expect("not poisoned").len(), 2, "one block was passed on");
    assert_eq!(metrics.snapshot().workers.len(), 1);
}

#[test]
fn readers_see_whole_rows_while_workers_grow_them() {
    let metrics = metrics();
    let labels: Vec<Label> = (0..2_000).map(|n| metrics.labels().site(&format!("s{n}"))).collect();
    std::thread::scope(|scope| {
        let worker = metrics.worker(0);
        scope.spawn(move || {
            for site in labels {
                let record = Record { site, status: 200, ..Record::default() };
                worker.finish(&record);
            }
        });
        let mut seen = 0;
        while seen < 2_000 {
            let snapshot = metrics.snapshot();
            let counted: u64 = snapshot.places.iter().map(|place| place.totals.requests[2]).sum();
            assert!(counted >= seen && counted <= 2_000);
            seen = counted;
        }
    });
}

#[test]
fn every_phase_is_counted() {
    let at = |nanos: u64| Stamp::from_nanos(nanos);
    let mut record = Record::default();
    record.stamps = crate::record::Stamps {
        accepted: at(1),
        tls_done: at(2),
        first_byte_in: at(3),
        head_in: at(4),
        routed: at(5),
        admitted: at(6),
        inspected: at(7),
        looked_up: at(8),
        fill_wait: crate::record::Wait { start: at(8), end: at(9) },
        pool_wait: crate::record::Wait { start: at(9), end: at(10) },
        connect_start: at(11),
        connected: at(12),
        upstream_tls_done: at(13),
        request_out: at(14),
        body_in_done: at(15),
        first_byte_up: at(16),
        head_up: at(17),
        body_up_done: at(18),
        first_byte_out: at(19),
        finished: at(20),
    };
    let metrics = metrics();
    metrics.worker(0).finish(&record);
    metrics.worker(0).finish(&Record::default());
    let snapshot = metrics.snapshot();
    for phase in Phase::ALL {
        assert_eq!(snapshot.phase(phase).count(), 1, "{phase:?}");
    }
}

#[test]
fn the_control_thread_counts_for_itself() {
    let metrics = metrics();
    let server = metrics.labels().server("app", "a");
    metrics.worker(Metrics::CONTROL).health_checked(server, Check::Passed);
    let samples = parse(&metrics.exposition(TextFormat::Prometheus));
    let check = |series: &str, expected| assert_eq!(value(&samples, series), Some(expected));
    check("tidegate_health_checks_total{group=\"app\",server=\"a\",result=\"passed\"}", 1.0);
    check("tidegate_worker_requests_total{worker=\"control\"}", 0.0);
}

#[test]
fn status_pages_read_totals() {
    let metrics = metrics();
    let worker = metrics.worker(0);
    worker.finish(&served(&metrics, 20));
    let mut refused = Record { status: 429, ..Record::default() };
    refused.end(Outcome::Limit, Side::Downstream, "rate");
    worker.finish(&refused);
    worker.connection_accepted();
    worker.connection_closed(ConnectionState::Busy, Closed::Limit);
    let snapshot = metrics.snapshot();
    assert_eq!(snapshot.requests(), 2);
    assert_eq!(snapshot.outcome(Outcome::Served), 1);
    assert_eq!(snapshot.side(Side::Downstream), 1);
    assert_eq!(snapshot.status(429), 1);
    assert_eq!((snapshot.status(99), snapshot.status(600)), (0, 0));
    assert_eq!(snapshot.closed(Closed::Limit), 1);
    assert_eq!(snapshot.phase(Phase::HeadRead).count(), 1);
    let total = snapshot.phase(Phase::Total).quantile(0.5).expect("one request").as_secs_f64();
    assert!((total - 0.02).abs() < 0.02 / 16.0);
}

#[test]
fn a_sample_agrees_with_the_snapshot() {
    let metrics = metrics();
    let (one, two) = (metrics.worker(0), metrics.worker(1));
    for worker in [&one, &two, &two] {
        worker.connection_accepted();
        worker.request_started();
        worker.finish(&served(&metrics, 5));
    }
    two.request_started();
    let (sample, snapshot) = (metrics.sample(), metrics.snapshot());
    assert_eq!(sample.total.count(), 3);
    assert_eq!(sample.total.count(), snapshot.phase(Phase::Total).count());
    assert_eq!(sample.basics.connections_open, snapshot.basics.connections_open);
    assert_eq!(sample.workers, snapshot.workers);
    let second = sample.workers[1];
    assert_eq!((second.worker, second.requests, second.requests_active), (1, 2, 1));
    assert_eq!(second.connections_open, 2);
}

#[test]
fn the_reference_is_current() {
    crate::reference::check("metrics.md", &reference());
}
