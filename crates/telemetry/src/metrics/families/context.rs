//! Metrics of what rules of the WAF remember between requests.

use super::super::control::{ContextSyncTotals, ContextTotals};
use super::super::snapshot::Snapshot;
use super::super::text::{Kind, Samples};
use super::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "tidegate_context_entries",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Variables that rules of the WAF remember, over all collections.",
        samples: |all, out| put(all, out, |context| context.entries),
    },
    Family {
        name: "tidegate_context_records",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Records that hold these variables.",
        samples: |all, out| put(all, out, |context| context.records),
    },
    Family {
        name: "tidegate_context_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Memory that these variables and records are taken to cost.",
        samples: |all, out| put(all, out, |context| context.bytes),
    },
    Family {
        name: "tidegate_context_expired_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Variables forgotten because their time was over.",
        samples: |all, out| put(all, out, |context| context.expired),
    },
    Family {
        name: "tidegate_context_evicted_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Variables that a full store gave up before their time; above 0, the limits are too tight.",
        samples: |all, out| put(all, out, |context| context.evicted),
    },
    Family {
        name: "tidegate_context_refused_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Writes refused because a key, a name or a value was too long, or nothing could give way.",
        samples: |all, out| put(all, out, |context| context.refused),
    },
    Family {
        name: "tidegate_context_changes_lost_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Changes that watchers missed because they did not keep up.",
        samples: |all, out| put(all, out, |context| context.lost),
    },
    Family {
        name: "tidegate_context_unwritten",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Variables that have changed since they were last written to disk; 0 without a path.",
        samples: |all, out| put(all, out, |context| context.unwritten),
    },
    Family {
        name: "tidegate_context_batches_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Batches of changes written to disk.",
        samples: |all, out| put(all, out, |context| context.batches),
    },
    Family {
        name: "tidegate_context_batch_failures_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Batches that could not be written; they are tried again.",
        samples: |all, out| put(all, out, |context| context.batch_failures),
    },
    Family {
        name: "tidegate_context_sync_lag_seconds",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "How far this gate's context and that of the others may be apart; without a connection, since when.",
        samples: |all, out| {
            if let Some(sync) = shared(all) {
                out.put_nanos(&[], sync.lag_millis.saturating_mul(1_000_000));
            }
        },
    },
    Family {
        name: "tidegate_context_sync_connected",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "1 while context is shared with other gates, 0 while the server cannot be reached.",
        samples: |all, out| {
            if let Some(sync) = shared(all) {
                out.put(&[], u64::from(sync.connected));
            }
        },
    },
    Family {
        name: "tidegate_context_sync_sent_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Changes of context sent to other gates.",
        samples: |all, out| {
            if let Some(sync) = shared(all) {
                out.put(&[], sync.sent);
            }
        },
    },
    Family {
        name: "tidegate_context_sync_applied_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Changes of context that others made and this gate has applied.",
        samples: |all, out| {
            if let Some(sync) = shared(all) {
                out.put(&[], sync.applied);
            }
        },
    },
    Family {
        name: "tidegate_context_sync_failures_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Connections for sharing context that failed.",
        samples: |all, out| {
            if let Some(sync) = shared(all) {
                out.put(&[], sync.failures);
            }
        },
    },
];

/// A number of context, once its keeper has told.
fn put(all: &Snapshot, out: &mut Samples<'_>, number: fn(&ContextTotals) -> u64) {
    if let Some(context) = &all.control.context {
        out.put(&[], number(context));
    }
}

fn shared(all: &Snapshot) -> Option<ContextSyncTotals> {
    all.control.context.and_then(|context| context.sync)
}
