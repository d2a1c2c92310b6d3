//! The status for programs. Times are in seconds, and everything is named after what it is.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::cache::CacheView;
use super::survey::{ContextView, Survey, Window};
use crate::control::Phase;

pub(super) fn json(survey: &Survey) -> Value {
    json!({
        "version": survey.version,
        "state": match survey.state {
            Phase::Serving => "serving",
            Phase::Draining => "draining",
        },
        "pid": survey.pid,
        "uptime_seconds": survey.uptime.as_secs(),
        "configuration": survey.file,
        "plan": {
            "generation": survey.generation,
            "age_seconds": survey.plan_age.as_secs(),
            "sites": survey.contents.sites,
            "routes": survey.contents.routes,
            "groups": survey.contents.groups,
            "listeners": survey.contents.listeners,
        },
        "reloads": {
            "done": survey.reloads,
            "refused": survey.reloads_failed,
            "last_refusal": survey.failed_reload.as_ref().map(|failed| json!({
                "seconds_ago": failed.at.elapsed().as_secs(),
                "reason": failed.reason,
            })),
        },
        "troubles": survey.troubles.iter().map(|trouble| json!({
            "gravity": trouble.gravity.as_str(),
            "what": trouble.what,
        })).collect::<Vec<_>>(),
        "connections": {
            "open": survey.connections,
            "idle": survey.connections_idle,
            "tunnels": survey.tunnels,
        },
        "requests_active": survey.requests_active,
        "resident_bytes": survey.resident_bytes,
        "limits": survey.limits.iter().map(|limit| json!({
            "what": limit.what,
            "used": limit.used,
            "max": limit.max,
            "then": limit.then,
        })).collect::<Vec<_>>(),
        "traffic": {
            "last_10_seconds": window(&survey.windows[0]),
            "last_minute": window(&survey.windows[1]),
            "since_start": window(&survey.windows[2]),
        },
        "phases": {
            "within_seconds": seconds(survey.phases_within),
            "times": survey.phases.iter().map(|times| {
                (times.phase.as_str().to_owned(), json!({
                    "requests": times.count,
                    "p50": seconds(times.p50),
                    "p90": seconds(times.p90),
                    "p99": seconds(times.p99),
                }))
            }).collect::<Map<_, _>>(),
        },
        "statuses": survey.statuses.iter().map(|(status, count)| {
            (status.to_string(), json!(count))
        }).collect::<Map<_, _>>(),
        "outcomes": survey.outcomes.iter().map(|(outcome, side, count)| json!({
            "outcome": outcome,
            "side": side.as_str(),
            "requests": count,
        })).collect::<Vec<_>>(),
        "errors": survey.errors.iter().map(|(reason, count)| json!({
            "reason": reason,
            "count": count,
        })).collect::<Vec<_>>(),
        "workers": survey.workers.iter().map(|worker| json!({
            "worker": worker.now.worker,
            "requests": worker.now.requests,
            "requests_last_minute": worker.requests,
            "requests_active": worker.now.requests_active,
            "connections_open": worker.now.connections_open,
            "busy_seconds_last_minute": seconds(worker.busy),
        })).collect::<Vec<_>>(),
        "waf": survey.waf.as_ref().map(|waf| json!({
            "inspections": waf.verdicts.iter().map(|(mode, verdict, requests)| json!({
                "mode": mode.as_str(),
                "verdict": verdict.as_str(),
                "requests": requests,
            })).collect::<Vec<_>>(),
            "rules": waf.rules.iter().map(|(rule, matches)| json!({
                "rule": rule,
                "matches": matches,
            })).collect::<Vec<_>>(),
            "slowest_rules": waf.rule_times.iter().map(|(rule, nanos)| json!({
                "rule": rule,
                "seconds": seconds(Duration::from_nanos(*nanos)),
            })).collect::<Vec<_>>(),
            "pool": {
                "queued": waf.pool_queued,
                "running": waf.pool_running,
                "done": waf.pool_done,
                "full": waf.pool_full,
            },
        })),
        "cache": survey.cache.as_ref().map(CacheView::json),
        "context": context(&survey.context),
        "logs": survey.logs.iter().map(|(name, log)| {
            (name.to_string(), json!({
                "written": log.written,
                "dropped": log.dropped,
                "failed": log.failed,
                "bytes": log.bytes,
            }))
        }).collect::<Map<_, _>>(),
        "certificates": survey.certificates.iter().map(|certificate| json!({
            "listener": certificate.listener,
            "names": certificate.names,
            "seconds_left": certificate.left_seconds,
        })).collect::<Vec<_>>(),
    })
}

fn context(context: &ContextView) -> Value {
    let counters = &context.counters;
    json!({
        "entries": counters.entries,
        "entries_max": context.entries_max,
        "records": counters.records,
        "bytes": counters.bytes,
        "bytes_max": context.bytes_max,
        "expired": counters.expired,
        "evicted": counters.evicted,
        "refused": counters.refused,
        "changes_lost": counters.lost,
        "path": context.path,
        "unwritten": counters.unwritten,
        "batches": counters.batches,
        "batch_failures": counters.batch_failures,
        "sync": context.sync.as_ref().map(|sync| json!({
            "server": sync.server,
            "connected": sync.connected,
            "lag_seconds": seconds(sync.lag),
            "sent": sync.sent,
            "applied": sync.applied,
            "error": sync.error,
        })),
    })
}

fn window(window: &Window) -> Value {
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(window.classes);
    json!({
        "seconds": seconds(window.length),
        "requests": window.requests,
        "responses": classes
            .map(|(class, count)| ((*class).to_owned(), json!(count)))
            .collect::<Map<_, _>>(),
        "failed_by": window.faults.iter()
            .map(|(side, count)| (side.as_str().to_owned(), json!(count)))
            .collect::<Map<_, _>>(),
        "connections": window.connections,
        "tls_handshakes": window.handshakes,
        "gave_way": window.gave_way,
        "turned_away": window.turned_away,
        "cpu_seconds": seconds(window.cpu),
    })
}

fn seconds(duration: Duration) -> f64 {
    // Microseconds are as exact as the histograms are, and more digits are noise.
    (duration.as_secs_f64() * 1e6).round() / 1e6
}
