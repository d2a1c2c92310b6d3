//! All that a status tells, in numbers.

use std::sync::Arc;
use std::time::Duration;

use tidegate_proxy::plan::Plan;
use tidegate_telemetry::clock::{self, Stamp};
use tidegate_telemetry::metrics::{
    self, Closed, HistogramTotals, LogTotals, Sample, Snapshot, TICKS_PER_SECOND, WorkerTotals,
};
use tidegate_telemetry::record::{Outcome, Phase, Side, WafMode, WafVerdict};
use tidegate_waf::context::Counters;

use super::cache::CacheView;
use super::troubles::{self, Trouble};
use crate::control::history::Taken;
use crate::control::reload::Contents;
use crate::control::{FailedReload, Gate};

const LATELY: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_mins(1);

/// The gate at one moment.
pub(super) struct Survey {
    pub(super) version: &'static str,
    pub(super) state: crate::control::Phase,
    pub(super) pid: u32,
    pub(super) uptime: Duration,
    pub(super) file: String,
    pub(super) generation: u64,
    pub(super) contents: Contents,
    pub(super) plan_age: Duration,
    pub(super) reloads: u64,
    pub(super) reloads_failed: u64,
    pub(super) failed_reload: Option<FailedReload>,
    pub(super) connections: u64,
    pub(super) connections_idle: u64,
    pub(super) requests_active: u64,
    pub(super) tunnels: u64,
    pub(super) resident_bytes: Option<u64>,
    pub(super) troubles: Vec<Trouble>,
    pub(super) limits: Vec<Limit>,
    /// The last ten seconds, the last minute, and since the start.
    pub(super) windows: [Window; 3],
    /// Over the last minute or, if nothing came, since the start.
    pub(super) phases: Vec<PhaseTimes>,
    pub(super) phases_within: Duration,
    pub(super) workers: Vec<WorkerView>,
    /// Since the start.
    pub(super) statuses: Vec<(u16, u64)>,
    /// Since the start; outcome, whose doing, how many.
    pub(super) outcomes: Vec<(&'static str, Side, u64)>,
    pub(super) errors: Vec<(String, u64)>,
    /// `None` if no route is inspected.
    pub(super) waf: Option<WafView>,
    /// `None` if no request was one for the cache.
    pub(super) cache: Option<CacheView>,
    pub(super) context: ContextView,
    pub(super) logs: Vec<(Box<str>, LogTotals)>,
    pub(super) certificates: Vec<CertificateView>,
}

/// Something that can be used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) what: String,
    pub(super) used: u64,
    pub(super) max: u64,
    /// What happens when it is reached.
    pub(super) then: &'static str,
}

/// What happened in a stretch of time.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) name: &'static str,
    pub(super) length: Duration,
    pub(super) requests: u64,
    /// By status class, 1xx to 5xx.
    pub(super) classes: [u64; 5],
    /// Requests that went wrong, by whose doing it was: client, server, gate.
    pub(super) faults: [(Side, u64); 3],
    pub(super) connections: u64,
    pub(super) handshakes: u64,
    pub(super) gave_way: u64,
    pub(super) turned_away: u64,
    /// CPU time.
    pub(super) cpu: Duration,
}

/// How long a phase takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseTimes {
    pub(super) phase: Phase,
    pub(super) count: u64,
    pub(super) p50: Duration,
    pub(super) p90: Duration,
    pub(super) p99: Duration,
}

/// A worker in the last minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerView {
    pub(super) now: WorkerTotals,
    pub(super) requests: u64,
    pub(super) busy: Duration,
    pub(super) within: Duration,
}

/// What the WAF has done since the start.
#[derive(Clone, Debug)]
pub(super) struct WafView {
    /// By mode and verdict, how many requests.
    pub(super) verdicts: Vec<(WafMode, WafVerdict, u64)>,
    /// Rules by their ids and how often they matched, the most frequent first.
    pub(super) rules: Vec<(u64, u64)>,
    /// Rules by their ids and their time in nanoseconds, the slowest first.
    pub(super) rule_times: Vec<(u64, u64)>,
    pub(super) pool_queued: u64,
    pub(super) pool_running: u64,
    pub(super) pool_done: u64,
    /// How often the pool had no room.
    pub(super) pool_full: u64,
}

/// What rules remember, and what became of it since the start.
#[derive(Clone, Debug)]
pub(super) struct ContextView {
    pub(super) counters: Counters,
    pub(super) entries_max: usize,
    pub(super) bytes_max: usize,
    /// Where the copy on disk is.
    pub(super) path: Option<String>,
    /// `None` if it is not shared.
    pub(super) sync: Option<SyncView>,
}

/// How the sharing of context goes.
#[derive(Clone, Debug)]
pub(super) struct SyncView {
    pub(super) server: String,
    pub(super) connected: bool,
    pub(super) lag: Duration,
    pub(super) sent: u64,
    pub(super) applied: u64,
    pub(super) error: Option<String>,
}

/// Rules that a status lists.
const RULES_SHOWN_MAX: usize = 20;

/// A certificate that is shown to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateView {
    pub(super) listener: String,
    pub(super) names: Vec<String>,
    /// Seconds until its end; negative after it.
    pub(super) left_seconds: i64,
}

impl Survey {
    /// The gate now.
    pub(super) fn of(gate: &Gate) -> Survey {
        let snapshot = gate.metrics.snapshot();
        let taken = Taken::now(&gate.metrics);
        let running = gate.running.borrow();
        let plan = Arc::clone(&running.plan);
        let history = gate.history.borrow();
        let start = Taken { at: gate.started, sample: Sample::default(), cpu_ticks: 0 };
        let lately = history.before(LATELY, taken.at).unwrap_or(&start);
        let minute = history.before(MINUTE, taken.at).unwrap_or(&start);
        let windows = [
            Window::between("last 10 s", lately, &taken),
            Window::between("last minute", minute, &taken),
            Window::between("since start", &start, &taken),
        ];
        let (phases, phases_within) = match phases(minute, &taken) {
            none if none.is_empty() => (phases(&start, &taken), taken.at.since(start.at)),
            phases => (phases, taken.at.since(minute.at)),
        };
        let mut survey = Survey {
            version: env!("CARGO_PKG_VERSION"),
            state: gate.phase.get(),
            pid: std::process::id(),
            uptime: gate.started.elapsed(),
            file: gate.file.display().to_string(),
            generation: plan.generation,
            contents: Contents::of(&plan),
            plan_age: running.since.elapsed(),
            reloads: snapshot.control.reloads,
            reloads_failed: snapshot.control.reloads_failed,
            failed_reload: gate.failed_reload.borrow().clone(),
            connections: gate.crew.borrow().connections() as u64,
            connections_idle: snapshot.basics.connections_idle.max(0).cast_unsigned(),
            requests_active: snapshot.basics.requests_active.max(0).cast_unsigned(),
            tunnels: snapshot.basics.tunnels.max(0).cast_unsigned(),
            resident_bytes: snapshot.process.resident_bytes,
            troubles: Vec::new(),
            limits: limits(gate, &plan, &snapshot),
            windows,
            phases,
            phases_within,
            workers: workers(minute, &taken),
            statuses: statuses(&snapshot),
            outcomes: outcomes(&snapshot),
            errors: errors(&snapshot),
            waf: plan.rule_counts.is_some().then(|| WafView::of(&snapshot)),
            cache: CacheView::of(&snapshot, &gate.cache_history.borrow(), taken.at),
            context: ContextView::of(gate),
            logs: snapshot.control.logs,
            certificates: certificates(&plan),
        };
        survey.troubles = troubles::find(&survey, &plan, Stamp::now());
        survey
    }

    /// The last minute.
    pub(super) fn minute(&self) -> &Window {
        &self.windows[1]
    }
}

impl Window {
    fn between(name: &'static str, from: &Taken, to: &Taken) -> Window {
        let (before, now) = (&from.sample.basics, &to.sample.basics);
        let class = |class: usize| {
            let first = (class - 1) * 100;
            let sum = |statuses: &[u64]| -> u64 { statuses.iter().skip(first).take(100).sum() };
            sum(&now.statuses).saturating_sub(sum(&before.statuses))
        };
        let fault = |side: Side| {
            let sum = |basics: &metrics::BasicTotals| -> u64 {
                basics.outcomes.iter().map(|sides| sides[side.index()]).sum()
            };
            (side, sum(now).saturating_sub(sum(before)))
        };
        let closed = |why: Closed| {
            let index = why.index();
            now.connections_closed[index].saturating_sub(before.connections_closed[index])
        };
        let all = |basics: &metrics::BasicTotals| -> (u64, u64) {
            let requests = basics.requests.as_flattened().iter().sum();
            (requests, basics.handshakes.as_flattened().iter().sum())
        };
        let ((requests, handshakes), (requests_before, handshakes_before)) =
            (all(now), all(before));
        let ticks = to.cpu_ticks.saturating_sub(from.cpu_ticks);
        Window {
            name,
            length: to.at.since(from.at),
            requests: requests.saturating_sub(requests_before),
            classes: [class(1), class(2), class(3), class(4), class(5)],
            faults: [fault(Side::Downstream), fault(Side::Upstream), fault(Side::Gate)],
            connections: now.connections_accepted.saturating_sub(before.connections_accepted),
            handshakes: handshakes.saturating_sub(handshakes_before),
            gave_way: closed(Closed::GaveWay),
            turned_away: closed(Closed::Limit),
            cpu: Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND)),
        }
    }

    /// Requests that this side made go wrong.
    pub(super) fn faults_of(&self, side: Side) -> u64 {
        self.faults.iter().find(|(of, _)| *of == side).map_or(0, |(_, faults)| *faults)
    }
}

fn phases(from: &Taken, to: &Taken) -> Vec<PhaseTimes> {
    let times = |phase: Phase, now: &HistogramTotals, before: &HistogramTotals| {
        let totals = now.since(before);
        let quantile = |quantile| totals.quantile(quantile).unwrap_or_default();
        let (p50, p90, p99) = (quantile(0.5), quantile(0.9), quantile(0.99));
        PhaseTimes { phase, count: totals.count(), p50, p90, p99 }
    };
    let (now, before) = (&to.sample, &from.sample);
    let phases = Phase::ALL.iter().zip(now.basics.phases.iter().zip(&before.basics.phases));
    let phases = phases.map(|(phase, (now, before))| times(*phase, now, before));
    let total = times(Phase::Total, &now.total, &before.total);
    std::iter::once(total).chain(phases).filter(|times| times.count > 0).collect()
}

fn limits(gate: &Gate, plan: &Plan, snapshot: &Snapshot) -> Vec<Limit> {
    let mut limits = vec![Limit {
        what: "client connections".into(),
        used: gate.crew.borrow().connections() as u64,
        max: plan.process.connections_max as u64,
        then: "the longest idle connection gives way to a new one",
    }];
    if let (Some(used), Some(max)) = (snapshot.process.open_fds, snapshot.process.open_fds_max) {
        let then = "idle connections give way, and servers cannot be reached";
        limits.push(Limit { what: "open files".into(), used, max, then });
    }
    for group in &plan.groups {
        for member in group.members().list() {
            if let Some(max) = member.connections_max {
                limits.push(Limit {
                    what: format!("connections to {} of {}", member.server.name(), group.name()),
                    used: member.server.connections().into(),
                    max: max.into(),
                    then: "requests go to other servers, or wait",
                });
            }
        }
    }
    if plan.rule_counts.is_some() {
        limits.push(Limit {
            what: "inspections that wait for the pool".into(),
            used: snapshot.control.pool_queued,
            max: plan.waf.pool_queue_max as u64,
            then: "`busy` says what becomes of further ones",
        });
    }
    let context = ContextView::of(gate);
    for (what, used, max) in [
        ("variables of context", context.counters.entries, context.entries_max),
        ("memory of context, in bytes", context.counters.bytes, context.bytes_max),
    ] {
        let then = "what would expire soonest is forgotten before its time";
        limits.push(Limit { what: what.into(), used: used as u64, max: max as u64, then });
    }
    let bounds = gate.bounds;
    let labels = gate.metrics.labels();
    let label_limit = |what: &str, used: usize, max: usize| Limit {
        what: what.into(),
        used: used as u64,
        max: max as u64,
        then: "new ones are counted together under the name `other`",
    };
    limits.push(label_limit(
        "sites and routes in metrics",
        labels.places().len(),
        bounds.places_max,
    ));
    let targets = labels.targets().len();
    limits.push(label_limit("groups and servers in metrics", targets, bounds.targets_max));
    limits.sort_by_key(|limit| {
        std::cmp::Reverse(super::super::shown::percent(limit.used, limit.max))
    });
    limits
}

fn workers(from: &Taken, to: &Taken) -> Vec<WorkerView> {
    let within = to.at.since(from.at);
    let workers = to.sample.workers.iter();
    // The control thread counts, too, but serves no requests.
    let workers = workers.filter(|worker| worker.worker != metrics::Metrics::CONTROL);
    let view = |now: &WorkerTotals| {
        let before = from.sample.workers.iter().find(|before| before.worker == now.worker);
        let before = before.copied().unwrap_or_default();
        let busy = now.loop_busy_nanos.saturating_sub(before.loop_busy_nanos);
        WorkerView {
            now: *now,
            requests: now.requests.saturating_sub(before.requests),
            busy: Duration::from_nanos(busy),
            within,
        }
    };
    workers.map(view).collect()
}

impl ContextView {
    fn of(gate: &Gate) -> ContextView {
        let settings = &gate.context.settings;
        ContextView {
            counters: gate.context.context.counters(),
            entries_max: settings.limits.entries_max,
            bytes_max: settings.limits.bytes_max,
            path: settings.directory.as_ref().map(|path| path.display().to_string()),
            sync: gate.context.sync.as_ref().map(|sync| SyncView {
                server: sync.server.clone(),
                connected: sync.is_connected(),
                lag: sync.lag(),
                sent: sync.sent.get(),
                applied: sync.applied.get(),
                error: sync.error.borrow().clone(),
            }),
        }
    }
}

impl WafView {
    fn of(snapshot: &Snapshot) -> WafView {
        let mut verdicts = Vec::new();
        for (mode, counts) in WafMode::ALL.iter().zip(&snapshot.basics.inspections) {
            for (verdict, count) in WafVerdict::ALL.iter().zip(counts) {
                if *count > 0 {
                    verdicts.push((*mode, *verdict, *count));
                }
            }
        }
        verdicts.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        let mut rules = snapshot.rules.clone();
        rules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rules.truncate(RULES_SHOWN_MAX);
        WafView {
            verdicts,
            rules,
            rule_times: snapshot.rule_times.iter().copied().take(RULES_SHOWN_MAX).collect(),
            pool_queued: snapshot.control.pool_queued,
            pool_running: snapshot.control.pool_running,
            pool_done: snapshot.control.pool_done,
            pool_full: snapshot.basics.waf_busy.iter().sum(),
        }
    }
}

fn statuses(snapshot: &Snapshot) -> Vec<(u16, u64)> {
    let all = (100..1000).map(|status| (status, snapshot.status(status)));
    all.filter(|(_, count)| *count > 0).collect()
}

fn outcomes(snapshot: &Snapshot) -> Vec<(&'static str, Side, u64)> {
    let mut outcomes = Vec::new();
    for (name, sides) in Outcome::NAMES.iter().zip(&snapshot.basics.outcomes) {
        for (side, count) in Side::ALL.iter().zip(sides) {
            if *count > 0 {
                outcomes.push((*name, *side, *count));
            }
        }
    }
    outcomes.sort_by_key(|(_, side, count)| (*side == Side::None, std::cmp::Reverse(*count)));
    outcomes
}

/// What went wrong, the most frequent first.
fn errors(snapshot: &Snapshot) -> Vec<(String, u64)> {
    let all = snapshot.request_errors.iter().chain(&snapshot.connection_errors);
    let mut errors: Vec<_> = all
        .map(|(reason, count)| {
            (format!("{} ({}, {})", reason.code, reason.subject, reason.side), *count)
        })
        .collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

fn certificates(plan: &Plan) -> Vec<CertificateView> {
    let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
    let mut certificates = Vec::new();
    for listener in &plan.listeners {
        for certificate in listener.tls.iter().flat_map(|tls| tls.certificates()) {
            certificates.push(CertificateView {
                listener: listener.name.clone(),
                names: certificate.names().to_vec(),
                left_seconds: certificate.not_after().saturating_sub(now),
            });
        }
    }
    certificates.sort_by_key(|certificate| certificate.left_seconds);
    certificates
}
