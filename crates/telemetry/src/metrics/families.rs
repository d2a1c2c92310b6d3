//! The table of metrics: each declared once, with its name, kind, labels, meaning and source.
//!
//! The exposition walks the table over a [`Snapshot`]; `docs/metrics.md` is its [`reference`].

mod cache;
mod context;

use std::fmt::Write as _;

use super::Metrics;
use super::block::{CLASSES, PHASES, PlaceTotals, STATUS_MIN, TargetTotals};
use super::events::{Busy, Closed, ServerState, StreamEnd};
use super::process::TICKS_PER_SECOND;
use super::snapshot::Snapshot;
use super::text::{Kind, Samples, TextFormat};
use crate::record::{
    Handshake, Outcome, Phase, Protocol, Side, Tls, WAF_PHASES, WafMode, WafVerdict,
};

/// A metric.
struct Family {
    /// Ends in the unit, where there is one, and in `_total` for counters.
    name: &'static str,
    kind: Kind,
    /// `seconds` or `bytes`; empty for plain counts.
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    /// Puts the samples, with label values in the order of `labels`.
    samples: fn(&Snapshot, &mut Samples<'_>),
}

const PLACE: &[&str] = &["site", "route"];
const TARGET: &[&str] = &["group", "server"];

const FAMILIES: &[Family] = &[
    // Requests.
    Family {
        name: "tidegate_requests_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["site", "route", "class"],
        help: "Requests that ended, by status class (`none` where no response was sent).",
        samples: |all, out| {
            for ([site, route], row) in places(all) {
                for (class, count) in CLASSES.iter().zip(row.requests) {
                    out.put_nonzero(&[site, route, class], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_request_duration_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: PLACE,
        help: "From the first byte of a request to its end.",
        samples: |all, out| {
            for (names, row) in places(all) {
                out.put_histogram(&names, &row.duration);
            }
        },
    },
    Family {
        name: "tidegate_request_bytes_total",
        kind: Kind::Counter,
        unit: "bytes",
        labels: PLACE,
        help: "Bytes from clients, heads and bodies, without TLS.",
        samples: |all, out| {
            for (names, row) in places(all) {
                out.put(&names, row.bytes_in);
            }
        },
    },
    Family {
        name: "tidegate_response_bytes_total",
        kind: Kind::Counter,
        unit: "bytes",
        labels: PLACE,
        help: "Bytes to clients, heads and bodies, without TLS.",
        samples: |all, out| {
            for (names, row) in places(all) {
                out.put(&names, row.bytes_out);
            }
        },
    },
    Family {
        name: "tidegate_requests_active",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Requests that began and have not ended.",
        samples: |all, out| out.put_gauge(&[], all.basics.requests_active),
    },
    Family {
        name: "tidegate_requests_by_protocol_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["protocol", "tls"],
        help: "Requests that ended, by protocol and TLS version (empty without TLS).",
        samples: |all, out| {
            for (protocol, by_tls) in Protocol::ALL.iter().zip(all.basics.requests) {
                for (tls, count) in Tls::ALL.iter().zip(by_tls) {
                    out.put_nonzero(&[protocol.as_str(), tls.as_str()], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_responses_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["status"],
        help: "Responses to clients, by status.",
        samples: |all, out| {
            for (status, count) in (STATUS_MIN..).zip(all.basics.statuses) {
                out.put_nonzero(&[&status.to_string()], count);
            }
        },
    },
    Family {
        name: "tidegate_outcomes_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["outcome", "side"],
        help: "Requests that ended, by outcome and by whose doing it was.",
        samples: |all, out| {
            for (outcome, by_side) in Outcome::NAMES.iter().zip(all.basics.outcomes) {
                for (side, count) in Side::ALL.iter().zip(by_side) {
                    out.put_nonzero(&[outcome, side.as_str()], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_request_errors_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["outcome", "side", "code"],
        help: "Requests that went wrong, by the code of what went wrong.",
        samples: |all, out| {
            for (reason, count) in &all.request_errors {
                out.put(&[reason.subject, reason.side, reason.code], *count);
            }
        },
    },
    Family {
        name: "tidegate_phase_duration_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: &["phase"],
        help: "Where the time of requests goes; a phase that a request did not have is not counted.",
        samples: |all, out| {
            for (phase, totals) in Phase::ALL[..PHASES].iter().zip(&all.basics.phases) {
                out.put_histogram(&[phase.as_str()], totals);
            }
        },
    },
    // Connections with clients.
    Family {
        name: "tidegate_connections_accepted_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Client connections accepted.",
        samples: |all, out| out.put(&[], all.basics.connections_accepted),
    },
    Family {
        name: "tidegate_connections_open",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Client connections open, idle ones included.",
        samples: |all, out| out.put_gauge(&[], all.basics.connections_open),
    },
    Family {
        name: "tidegate_connections_idle",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Client connections open and without a request.",
        samples: |all, out| out.put_gauge(&[], all.basics.connections_idle),
    },
    Family {
        name: "tidegate_connections_closed_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["reason"],
        help: "Client connections closed.",
        samples: |all, out| {
            for (closed, count) in Closed::ALL.iter().zip(all.basics.connections_closed) {
                out.put(&[closed.as_str()], count);
            }
        },
    },
    Family {
        name: "tidegate_connection_errors_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["protocol", "side", "code"],
        help: "Connections that broke their protocol outside of any request.",
        samples: |all, out| {
            for (reason, count) in &all.connection_errors {
                out.put(&[reason.subject, reason.side, reason.code], *count);
            }
        },
    },
    Family {
        name: "tidegate_tunnels_open",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Connections that have become tunnels.",
        samples: |all, out| out.put_gauge(&[], all.basics.tunnels),
    },
    Family {
        name: "tidegate_tls_handshakes_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["version", "kind"],
        help: "TLS handshakes with clients that were completed, full or resumed.",
        samples: |all, out| {
            for (tls, by_kind) in Tls::ALL.iter().zip(all.basics.handshakes).skip(1) {
                for (kind, count) in Handshake::ALL.iter().zip(by_kind) {
                    out.put(&[tls.as_str(), kind.as_str()], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_tls_handshakes_failed_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "TLS handshakes with clients that failed.",
        samples: |all, out| out.put(&[], all.basics.handshakes_failed),
    },
    Family {
        name: "tidegate_h2_streams_opened_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "HTTP/2 streams opened by clients.",
        samples: |all, out| out.put(&[], all.basics.streams_opened),
    },
    Family {
        name: "tidegate_h2_streams_open",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "HTTP/2 streams open.",
        samples: |all, out| out.put_gauge(&[], all.basics.streams_open),
    },
    Family {
        name: "tidegate_h2_streams_closed_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["end"],
        help: "HTTP/2 streams closed, by the way they ended.",
        samples: |all, out| {
            for (end, count) in StreamEnd::ALL.iter().zip(all.basics.streams_closed) {
                out.put(&[end.as_str()], count);
            }
        },
    },
    // Servers.
    Family {
        name: "tidegate_upstream_responses_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["group", "server", "class"],
        help: "Requests that reached a server, by status class (`none` where no response came).",
        samples: |all, out| {
            for ([group, server], row) in targets(all) {
                for (class, count) in CLASSES.iter().zip(row.responses) {
                    out.put_nonzero(&[group, server, class], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_upstream_failures_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["group", "server", "outcome"],
        help: "Attempts at a server that failed, whether or not another followed.",
        samples: |all, out| {
            for ([group, server], row) in targets(all) {
                for (outcome, count) in Outcome::NAMES.iter().zip(row.failures) {
                    out.put_nonzero(&[group, server, outcome], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_upstream_retries_total",
        kind: Kind::Counter,
        unit: "",
        labels: TARGET,
        help: "Requests that left a server for another attempt.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put(&names, row.retries);
            }
        },
    },
    Family {
        name: "tidegate_upstream_connects_total",
        kind: Kind::Counter,
        unit: "",
        labels: TARGET,
        help: "Connections made to a server.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put(&names, row.connects);
            }
        },
    },
    Family {
        name: "tidegate_upstream_reuses_total",
        kind: Kind::Counter,
        unit: "",
        labels: TARGET,
        help: "Requests sent on a connection kept from before.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put(&names, row.reuses);
            }
        },
    },
    Family {
        name: "tidegate_upstream_connections_open",
        kind: Kind::Gauge,
        unit: "",
        labels: TARGET,
        help: "Connections open to a server, idle ones included.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put_gauge(&names, row.open);
            }
        },
    },
    Family {
        name: "tidegate_upstream_connections_idle",
        kind: Kind::Gauge,
        unit: "",
        labels: TARGET,
        help: "Connections open to a server and without a request.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put_gauge(&names, row.idle);
            }
        },
    },
    Family {
        name: "tidegate_upstream_received_bytes_total",
        kind: Kind::Counter,
        unit: "bytes",
        labels: TARGET,
        help: "Bytes from a server, without TLS.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put(&names, row.bytes_in);
            }
        },
    },
    Family {
        name: "tidegate_upstream_sent_bytes_total",
        kind: Kind::Counter,
        unit: "bytes",
        labels: TARGET,
        help: "Bytes to a server, without TLS.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put(&names, row.bytes_out);
            }
        },
    },
    Family {
        name: "tidegate_upstream_connect_duration_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: TARGET,
        help: "Time to connect to a server, without TLS.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put_histogram(&names, &row.connect);
            }
        },
    },
    Family {
        name: "tidegate_upstream_first_byte_duration_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: TARGET,
        help: "From a request head written to a server to the first byte of its response.",
        samples: |all, out| {
            for (names, row) in targets(all) {
                out.put_histogram(&names, &row.first_byte);
            }
        },
    },
    Family {
        name: "tidegate_health_checks_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["group", "server", "result"],
        help: "Active health checks.",
        samples: |all, out| {
            for ([group, server], row) in targets(all) {
                out.put_nonzero(&[group, server, "passed"], row.checks_passed);
                out.put_nonzero(&[group, server, "failed"], row.checks_failed);
            }
        },
    },
    Family {
        name: "tidegate_server_state",
        kind: Kind::Gauge,
        unit: "",
        labels: &["group", "server", "state"],
        help: "1 for the state a server is in, 0 for the others.",
        samples: |all, out| {
            for target in &all.targets {
                for state in target.state.iter().flat_map(|_| ServerState::ALL) {
                    let names = [&*target.names.whole, &*target.names.part, state.as_str()];
                    out.put(&names, u64::from(target.state == Some(state)));
                }
            }
        },
    },
    // The WAF.
    Family {
        name: "tidegate_waf_inspections_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["mode", "verdict"],
        help: "Requests that the WAF inspected, by mode and by what came of it.",
        samples: |all, out| {
            for (mode, by_verdict) in WafMode::ALL.iter().zip(all.basics.inspections).skip(1) {
                for (verdict, count) in WafVerdict::ALL.iter().zip(by_verdict).skip(1) {
                    out.put_nonzero(&[mode.as_str(), verdict.as_str()], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_waf_rule_matches_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["rule"],
        help: "Matches of WAF rules that log, by rule id; `0` counts rules beyond the first 4,096.",
        samples: |all, out| {
            for (rule, count) in &all.rules {
                out.put(&[&rule.to_string()], *count);
            }
        },
    },
    Family {
        name: "tidegate_waf_rule_seconds_total",
        kind: Kind::Counter,
        unit: "seconds",
        labels: &["rule"],
        help: "Time spent on WAF rules, by rule id, estimated from the inspections that are measured \
            (`rule_times`); the 50 slowest.",
        samples: |all, out| {
            for (rule, nanos) in all.rule_times.iter().take(RULES_TIMED_MAX) {
                out.put_nanos(&[&rule.to_string()], *nanos);
            }
        },
    },
    Family {
        name: "tidegate_waf_phase_duration_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: &["phase"],
        help: "Time spent on each phase of inspections, without waiting for anything.",
        samples: |all, out| {
            for (phase, totals) in WAF_PHASE_NAMES.iter().zip(&all.basics.waf_phases) {
                out.put_histogram(&[phase], totals);
            }
        },
    },
    Family {
        name: "tidegate_waf_pool_wait_duration_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: &[],
        help: "How long inspections waited for a thread of the inspection pool.",
        samples: |all, out| out.put_histogram(&[], &all.basics.waf_queued),
    },
    Family {
        name: "tidegate_waf_pool_queued",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Inspections that wait for a thread of the inspection pool.",
        samples: |all, out| out.put(&[], all.control.pool_queued),
    },
    Family {
        name: "tidegate_waf_pool_running",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Inspections that a thread of the inspection pool works on.",
        samples: |all, out| out.put(&[], all.control.pool_running),
    },
    Family {
        name: "tidegate_waf_pool_inspections_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Phases of inspections that the inspection pool did.",
        samples: |all, out| out.put(&[], all.control.pool_done),
    },
    Family {
        name: "tidegate_waf_pool_full_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["choice"],
        help: "Inspections that the inspection pool had no room for, by what the route does then.",
        samples: |all, out| {
            for (busy, count) in Busy::ALL.iter().zip(all.basics.waf_busy) {
                out.put_nonzero(&[busy.as_str()], count);
            }
        },
    },
    // The gate itself.
    Family {
        name: "tidegate_log_lines_written_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["log"],
        help: "Access log lines written.",
        samples: |all, out| {
            for (name, totals) in &all.control.logs {
                out.put(&[name], totals.written);
            }
        },
    },
    Family {
        name: "tidegate_log_lines_dropped_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["log"],
        help: "Access log lines dropped because they could not be written in time.",
        samples: |all, out| {
            for (name, totals) in &all.control.logs {
                out.put(&[name], totals.dropped);
            }
        },
    },
    Family {
        name: "tidegate_log_write_failures_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["log"],
        help: "Writes to an access log that failed.",
        samples: |all, out| {
            for (name, totals) in &all.control.logs {
                out.put(&[name], totals.failed);
            }
        },
    },
    Family {
        name: "tidegate_log_written_bytes_total",
        kind: Kind::Counter,
        unit: "bytes",
        labels: &["log"],
        help: "Bytes written to access logs.",
        samples: |all, out| {
            for (name, totals) in &all.control.logs {
                out.put(&[name], totals.bytes);
            }
        },
    },
    Family {
        name: "tidegate_worker_requests_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["worker"],
        help: "Requests that ended, by worker.",
        samples: |all, out| {
            for worker in &all.workers {
                out.put(&[&worker_label(worker.worker)], worker.requests);
            }
        },
    },
    Family {
        name: "tidegate_worker_polls_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["worker"],
        help: "How often a worker's loop polled a task.",
        samples: |all, out| {
            for worker in &all.workers {
                out.put(&[&worker_label(worker.worker)], worker.loop_polls);
            }
        },
    },
    Family {
        name: "tidegate_worker_parks_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["worker"],
        help: "How often a worker's loop slept.",
        samples: |all, out| {
            for worker in &all.workers {
                out.put(&[&worker_label(worker.worker)], worker.loop_parks);
            }
        },
    },
    Family {
        name: "tidegate_worker_busy_seconds_total",
        kind: Kind::Counter,
        unit: "seconds",
        labels: &["worker"],
        help: "How long a worker's loop was not asleep.",
        samples: |all, out| {
            for worker in &all.workers {
                out.put_nanos(&[&worker_label(worker.worker)], worker.loop_busy_nanos);
            }
        },
    },
    Family {
        name: "tidegate_plan_generation",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Which plan is in service.",
        samples: |all, out| out.put(&[], all.control.plan_generation),
    },
    Family {
        name: "tidegate_plan_loaded_timestamp_seconds",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "Since when the plan is in service, in seconds since 1970.",
        samples: |all, out| out.put(&[], all.control.plan_loaded_unix),
    },
    Family {
        name: "tidegate_reloads_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["result"],
        help: "Reloads of the configuration; a refused one leaves the running plan untouched.",
        samples: |all, out| {
            out.put(&["done"], all.control.reloads);
            out.put(&["refused"], all.control.reloads_failed);
        },
    },
    Family {
        name: "tidegate_build_info",
        kind: Kind::Gauge,
        unit: "",
        labels: &["version"],
        help: "Always 1; the program's version is in the label.",
        samples: |all, out| out.put(&[all.version], 1),
    },
    Family {
        name: "process_start_time_seconds",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "When the process began, in seconds since 1970.",
        samples: |all, out| out.put(&[], all.started_unix),
    },
    Family {
        name: "process_cpu_seconds_total",
        kind: Kind::Counter,
        unit: "seconds",
        labels: &[],
        help: "CPU time of the process, user and system.",
        samples: |all, out| {
            if let Some(ticks) = all.process.cpu_ticks {
                out.put_nanos(&[], ticks.saturating_mul(1_000_000_000 / TICKS_PER_SECOND));
            }
        },
    },
    Family {
        name: "process_resident_memory_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Resident memory.",
        samples: |all, out| {
            if let Some(bytes) = all.process.resident_bytes {
                out.put(&[], bytes);
            }
        },
    },
    Family {
        name: "process_open_fds",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Open file descriptors.",
        samples: |all, out| {
            if let Some(fds) = all.process.open_fds {
                out.put(&[], fds);
            }
        },
    },
    Family {
        name: "process_max_fds",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "The limit on open file descriptors.",
        samples: |all, out| {
            if let Some(fds) = all.process.open_fds_max {
                out.put(&[], fds);
            }
        },
    },
];

/// All of them, in the order in which they are told.
fn families() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().chain(cache::FAMILIES).chain(context::FAMILIES)
}

/// How many rules are told of by their time.
const RULES_TIMED_MAX: usize = 50;

/// The phases of inspections, as rules number them.
const WAF_PHASE_NAMES: [&str; WAF_PHASES] = ["1", "2", "3", "4", "5"];

fn worker_label(worker: u16) -> String {
    if worker == Metrics::CONTROL { "control".to_owned() } else { worker.to_string() }
}

fn places(all: &Snapshot) -> impl Iterator<Item = ([&str; 2], &PlaceTotals)> {
    all.places.iter().map(|place| ([&*place.names.whole, &*place.names.part], &place.totals))
}

fn targets(all: &Snapshot) -> impl Iterator<Item = ([&str; 2], &TargetTotals)> {
    all.targets.iter().map(|target| ([&*target.names.whole, &*target.names.part], &target.totals))
}

/// The text of all families that have samples.
pub(super) fn exposition(snapshot: &Snapshot, format: TextFormat) -> String {
    let mut out = String::with_capacity(16 * 1024);
    for family in families() {
        let header = out.len();
        let name = match format {
            TextFormat::Prometheus => family.name,
            TextFormat::OpenMetrics => family.name.trim_end_matches("_total"),
        };
        // Formatting into a String cannot fail.
        let _ = writeln!(out, "# HELP {name} {}", family.help);
        let _ = writeln!(out, "# TYPE {name} {}", family.kind.as_str());
        if format == TextFormat::OpenMetrics && !family.unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {}", family.unit);
        }
        let samples = out.len();
        let mut writer = Samples { out: &mut out, name: family.name, labels: family.labels };
        (family.samples)(snapshot, &mut writer);
        if out.len() == samples {
            out.truncate(header);
        }
    }
    if format == TextFormat::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

/// The reference of all metrics, as Markdown: `docs/metrics.md`.
pub fn reference() -> String {
    let mut out = String::from(
        "# Metrics\n\n\
        <!-- Generated from crates/telemetry/src/metrics/families.rs; \
        UPDATE=1 cargo test -p tidegate-telemetry writes it. -->\n\n\
        The admin listener serves these at `/metrics`, as Prometheus text or, for a scraper that \
        accepts it, OpenMetrics. Counts are exact: each worker counts for itself and a scrape sums \
        over workers. Histograms keep finer buckets inside than they export, so the quantiles on \
        the status page are within 6.25 % for durations from 16 µs to 137 s; the exported buckets \
        are exact.\n\n\
        Labels come from the configuration, never from clients. Names keep their counters over \
        reloads. Beyond a bound (16,384 sites and routes, 4,096 groups and servers in the life of \
        a process) new names are counted as `other`; a request that found no site, route or server \
        has the empty label. Metrics and label combinations without a count may be absent.\n",
    );
    for family in families() {
        let _ = write!(out, "\n## `{}`\n\n{}", family.name, family.kind.as_str());
        if !family.unit.is_empty() {
            let _ = write!(out, ", in {}", family.unit);
        }
        for (index, label) in family.labels.iter().enumerate() {
            let _ = write!(out, "{} `{label}`", if index == 0 { ", by" } else { "," });
        }
        let _ = write!(out, "\n\n{}\n", family.help);
    }

    let mut values = |title: &str, rows: &[(&str, &str)]| {
        let _ = write!(out, "\n## {title}\n\n| value | meaning |\n|---|---|\n");
        for (text, doc) in rows {
            let _ = writeln!(out, "| `{text}` | {doc} |");
        }
    };
    values("Values of `phase`", &Phase::ALL.map(|phase| (phase.as_str(), phase.doc())));
    values("Values of `outcome`", &Outcome::REFERENCE);
    values("Values of `side`", &Side::ALL.map(|side| (side.as_str(), side.doc())));
    values(
        "Values of `reason` (closed connections)",
        &Closed::ALL.map(|closed| (closed.as_str(), closed.doc())),
    );
    values("Values of `end`", &StreamEnd::ALL.map(|end| (end.as_str(), end.doc())));
    values(
        "Values of `verdict`",
        &WafVerdict::ALL.map(|verdict| (verdict.as_str(), verdict.doc()))[1..],
    );
    values("Values of `choice`", &Busy::ALL.map(|busy| (busy.as_str(), busy.doc())));
    values("Values of `state`", &ServerState::ALL.map(|state| (state.as_str(), state.doc())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for (index, family) in families().enumerate() {
            let name = family.name;
            let same = families().position(|other| other.name == name);
            assert_eq!(same, Some(index), "{name} is declared twice");
            assert_eq!(family.kind == Kind::Counter, name.ends_with("_total"), "{name}");
            let base = name.trim_end_matches("_total");
            for unit in ["seconds", "bytes"] {
                assert_eq!(family.unit == unit, base.ends_with(unit), "{name}");
            }
            assert!(family.help.ends_with('.') && !family.help.contains(['\\', '\n']), "{name}");
        }
    }
}
