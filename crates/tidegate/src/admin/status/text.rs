//! The status for a person at three in the morning.

use std::fmt::Write as _;
use std::time::Duration;

use tidegate_telemetry::record::Side;

use super::super::shown::{Table, count, percent, rate, share, span};
use super::survey::{Survey, Window};
use super::troubles::Gravity;
use crate::control::Phase;

/// Limits that nobody needs to see.
const LIMITS_SHOWN_MAX: usize = 6;
const LIMITS_SHOWN_FROM_PERCENT: u64 = 10;
const ERRORS_SHOWN_MAX: usize = 8;
const RULES_SHOWN_MAX: usize = 8;
/// Rules shown for their time.
const SLOW_RULES_SHOWN_MAX: usize = 5;

pub(super) fn text(survey: &Survey) -> String {
    let mut out = String::new();
    head(survey, &mut out);
    troubles(survey, &mut out);
    limits(survey, &mut out);
    traffic(survey, &mut out);
    phases(survey, &mut out);
    failures(survey, &mut out);
    waf(survey, &mut out);
    if let Some(cache) = &survey.cache {
        cache.text(&mut out);
    }
    context(survey, &mut out);
    workers(survey, &mut out);
    out
}

fn head(survey: &Survey, out: &mut String) {
    let state = match survey.state {
        Phase::Serving => "serving",
        Phase::Draining => "draining",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "tidegate {}  {state}  up {}  pid {}  plan {} for {}",
        survey.version,
        span(survey.uptime),
        survey.pid,
        survey.generation,
        span(survey.plan_age)
    );
    let _ = writeln!(out, "{}: {}", survey.file, survey.contents);
    let _ = write!(
        out,
        "{} connections ({} idle), {} requests under way, {} tunnels",
        count(survey.connections),
        count(survey.connections_idle),
        count(survey.requests_active),
        count(survey.tunnels)
    );
    match survey.resident_bytes {
        Some(bytes) => drop(writeln!(out, ", {} MB", count(bytes / 1_000_000))),
        None => out.push('\n'),
    }
}

fn troubles(survey: &Survey, out: &mut String) {
    out.push('\n');
    if survey.troubles.is_empty() {
        out.push_str("all well: every server is up, no limit is near\n");
    }
    for trouble in &survey.troubles {
        let mark = match trouble.gravity {
            Gravity::Failing => "!!",
            Gravity::Near => " !",
            Gravity::Note => "  ",
        };
        let _ = writeln!(out, "{mark} {}", trouble.what);
    }
}

fn limits(survey: &Survey, out: &mut String) {
    let mut table = Table::new(1, ["limit", "used", "max", ""]);
    for (position, limit) in survey.limits.iter().take(LIMITS_SHOWN_MAX).enumerate() {
        let used = percent(limit.used, limit.max);
        // The nearest is always shown: it tells that limits are watched, and how far it is.
        if position < 2 || used >= LIMITS_SHOWN_FROM_PERCENT {
            let cells = [count(limit.used), count(limit.max), format!("{used} %")];
            table.row(std::iter::once(limit.what.clone()).chain(cells).collect());
        }
    }
    table.write(out);
}

fn traffic(survey: &Survey, out: &mut String) {
    let names = survey.windows.each_ref().map(|window| window.name);
    let mut table = Table::new(1, ["traffic", names[0], names[1], names[2]]);
    let mut row = |name: &str, cell: &dyn Fn(&Window) -> String| {
        let cells = survey.windows.iter().map(cell);
        table.row(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    row("requests/s", &|window| rate(window.requests, window.length));
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    for (position, class) in classes.iter().enumerate() {
        if survey.windows[2].classes[position] > 0 {
            let answered = |window: &Window| window.classes.iter().sum();
            row(&format!("  {class}"), &|window| share(window.classes[position], answered(window)));
        }
    }
    let sides =
        [(Side::Upstream, "servers"), (Side::Gate, "the gate"), (Side::Downstream, "clients")];
    for (side, whose) in sides {
        if survey.windows[2].faults_of(side) > 0 {
            let name = format!("  failed by {whose}");
            row(&name, &|window| share(window.faults_of(side), window.requests));
        }
    }
    row("connections/s", &|window| rate(window.connections, window.length));
    if survey.windows[2].handshakes > 0 {
        row("TLS handshakes/s", &|window| rate(window.handshakes, window.length));
    }
    if survey.windows[2].gave_way > 0 {
        row("gave way/s", &|window| rate(window.gave_way, window.length));
    }
    row("CPU", &|window| busy(window.cpu, window.length));
    table.write(out);
}

fn busy(busy: Duration, length: Duration) -> String {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    share(micros(busy), micros(length))
}

fn phases(survey: &Survey, out: &mut String) {
    let heading = format!("time, last {}", span(survey.phases_within));
    let mut table = Table::new(1, [heading.as_str(), "p50", "p90", "p99", "requests"]);
    for times in &survey.phases {
        table.row(vec![
            times.phase.as_str().replace('_', " "),
            quantile(times.p50),
            quantile(times.p90),
            quantile(times.p99),
            count(times.count),
        ]);
    }
    if !table.is_empty() {
        table.write(out);
    }
}

/// Below this, histograms do not tell durations apart.
const MEASURED_FROM: Duration = Duration::from_micros(16);

fn quantile(duration: Duration) -> String {
    if duration < MEASURED_FROM { "<16 µs".into() } else { span(duration) }
}

fn failures(survey: &Survey, out: &mut String) {
    let mut table = Table::new(1, ["went wrong, since start", "requests"]);
    for (outcome, side, requests) in &survey.outcomes {
        if *side != Side::None {
            let name = format!("{} ({})", outcome.replace('_', " "), side.as_str());
            table.row(vec![name, count(*requests)]);
        }
    }
    if !table.is_empty() {
        table.write(out);
    }
    let mut table = Table::new(1, ["reason, since start", "times"]);
    for (reason, times) in survey.errors.iter().take(ERRORS_SHOWN_MAX) {
        table.row(vec![reason.clone(), count(*times)]);
    }
    if !table.is_empty() {
        table.write(out);
    }
}

fn waf(survey: &Survey, out: &mut String) {
    let Some(waf) = &survey.waf else { return };
    let mut table = Table::new(1, ["WAF, since start", "requests"]);
    for (mode, verdict, requests) in &waf.verdicts {
        let name = format!("{} ({})", verdict.as_str().replace('_', " "), mode.as_str());
        table.row(vec![name, count(*requests)]);
    }
    if waf.pool_full > 0 {
        table.row(vec!["found the pool full".into(), count(waf.pool_full)]);
    }
    if !table.is_empty() {
        table.write(out);
    }
    let mut table = Table::new(1, ["WAF, since start", "matches"]);
    for (rule, matches) in waf.rules.iter().take(RULES_SHOWN_MAX) {
        table.row(vec![format!("rule {rule}"), count(*matches)]);
    }
    if !table.is_empty() {
        table.write(out);
    }
    let mut table = Table::new(1, ["WAF, slowest rules", "seconds"]);
    for (rule, nanos) in waf.rule_times.iter().take(SLOW_RULES_SHOWN_MAX) {
        let seconds = Duration::from_nanos(*nanos).as_secs_f64();
        table.row(vec![format!("rule {rule}"), format!("{seconds:.3}")]);
    }
    if !table.is_empty() {
        table.write(out);
    }
}

fn context(survey: &Survey, out: &mut String) {
    let counters = &survey.context.counters;
    // A gate whose rules remember nothing need not hear of it.
    if counters.entries == 0
        && counters.expired == 0
        && survey.context.path.is_none()
        && survey.context.sync.is_none()
    {
        return;
    }
    let mut table = Table::new(1, ["context", "now"]);
    let mut row = |name: &str, number: u64| table.row(vec![name.into(), count(number)]);
    row("variables", counters.entries as u64);
    row("records", counters.records as u64);
    row("kilobytes", (counters.bytes / 1000) as u64);
    row("expired since the start", counters.expired);
    for (name, number) in [
        ("evicted since the start", counters.evicted),
        ("refused since the start", counters.refused),
    ] {
        if number > 0 {
            row(name, number);
        }
    }
    if let Some(sync) = &survey.context.sync {
        row("sent to other gates", sync.sent);
        row("applied from other gates", sync.applied);
        row(
            "milliseconds apart from them",
            u64::try_from(sync.lag.as_millis()).unwrap_or(u64::MAX),
        );
    }
    if survey.context.path.is_some() {
        row("not on disk yet", counters.unwritten as u64);
    }
    table.write(out);
}

fn workers(survey: &Survey, out: &mut String) {
    let measured = survey.workers.iter().any(|worker| worker.busy > Duration::ZERO);
    let mut table = Table::new(
        1,
        ["worker", "requests/s", "under way", "connections", if measured { "busy" } else { "" }],
    );
    for worker in &survey.workers {
        table.row(vec![
            worker.now.worker.to_string(),
            rate(worker.requests, worker.within),
            count(worker.now.requests_active.max(0).cast_unsigned()),
            count(worker.now.connections_open.max(0).cast_unsigned()),
            if measured { busy(worker.busy, worker.within) } else { String::new() },
        ]);
    }
    table.write(out);
}
