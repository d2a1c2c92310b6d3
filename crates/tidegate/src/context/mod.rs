//! Context in the running gate: opened before it serves, shared by all workers, kept tidy by the
//! control thread, handed over at an upgrade, written down at the end.
//!
//! The store itself is `tidegate_waf`'s. Its copy on disk belongs to one process at a time. At an
//! upgrade the new process asks for it when all else is ready; the old one writes what is left, lets
//! the file go and says so, and from then on keeps what its last requests write in memory only. If the
//! new one fails after that, the old one takes the file back with all it has in memory.

pub(crate) mod lines;
pub(crate) mod sync;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_telemetry::clock;
use tidegate_telemetry::metrics::{ContextSyncTotals, ContextTotals, Metrics};
use tidegate_waf::context::{self, Context, Counters, Fault};

use crate::config::value::{show_count, show_duration, show_size};
use crate::control::Gate;
use crate::upgrade::Predecessor;

/// How often what has expired is cleared away.
const SWEPT_EVERY: Duration = Duration::from_secs(1);
/// How often a full store is told of while it goes on.
const FULL_TOLD_EVERY: Duration = Duration::from_mins(5);

/// What the configuration says of context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where the copy on disk is; `None` for memory only.
    pub(crate) directory: Option<PathBuf>,
    /// Limits and times.
    pub(crate) limits: context::Settings,
    /// With whom it is shared; `None` for nobody.
    pub(crate) sync: Option<sync::Settings>,
}

/// The store of this process, with what it was opened with.
pub(crate) struct Kept {
    /// The store.
    pub(crate) context: Arc<Context>,
    /// Fixed for the life of the process, but for the default timeout.
    pub(crate) settings: Settings,
    /// How sharing goes, if it is shared.
    pub(crate) sync: Option<Rc<sync::Status>>,
    /// What has changed since it was opened, for who shares it.
    changes: Cell<Option<context::Watch>>,
}

/// Opens the store. One that another process is about to leave to this one is asked for first.
pub(crate) fn open(
    mut settings: Settings,
    predecessor: Option<&Predecessor>,
    left: Option<&std::path::Path>,
) -> Result<Kept, Fault> {
    let sync = settings.sync.as_ref().map(sync::Status::new);
    if sync.is_some() {
        settings.limits.origin = sync::draw_origin();
    }
    let Some(directory) = &settings.directory else {
        let context = Context::in_memory(&settings.limits);
        return Ok(Kept::new(context, settings, sync));
    };
    if let Some(predecessor) = predecessor
        && left == Some(directory.as_path())
        && let Err(error) = predecessor.ask_for_context()
    {
        // The lock tells whether it matters.
        tracing::warn!(%error, "the process before does not say that it has let go of its context");
    }
    let context = Context::open(directory, &settings.limits, clock::unix_millis())?;
    if let Some(fault) = context.set_aside() {
        tracing::error!(
            %fault,
            "the gate begins with empty context; the file that cannot be used is kept as data.mdb.aside"
        );
    }
    let Counters { entries, records, .. } = context.counters();
    tracing::info!(directory = %directory.display(), entries, records, "context is read");
    Ok(Kept::new(context, settings, sync))
}

impl Kept {
    fn new(context: Arc<Context>, settings: Settings, sync: Option<Rc<sync::Status>>) -> Kept {
        let changes = Cell::new(sync.is_some().then(|| sync::watch(&context)));
        Kept { context, settings, sync, changes }
    }

    /// Takes what a new configuration may change while the process runs; returns what it may not,
    /// in words.
    pub(crate) fn adopt(&self, new: &Settings) -> Vec<String> {
        self.context.set_default_timeout(new.limits.timeout_s);
        let (old, was, is) = (&self.settings, &self.settings.limits, &new.limits);
        let path = |settings: &Settings| {
            let path = settings.directory.as_ref().map(|path| path.display().to_string());
            path.unwrap_or_else(|| "off".into())
        };
        let shared = |settings: &Settings| {
            let sync = settings.sync.as_ref();
            sync.map_or_else(|| "off".into(), |it| format!("{} ({})", it.shown, it.prefix))
        };
        let bytes = |bytes: usize| show_size(bytes as u64);
        let entries = |entries: usize| show_count(entries as u64);
        let values = [
            ("path", path(old), path(new)),
            ("write_interval", show_duration(was.batch_interval), show_duration(is.batch_interval)),
            ("entries_max", entries(was.entries_max), entries(is.entries_max)),
            ("memory_max", bytes(was.bytes_max), bytes(is.bytes_max)),
            ("key_max", bytes(was.key_bytes_max), bytes(is.key_bytes_max)),
            ("name_max", bytes(was.name_bytes_max), bytes(is.name_bytes_max)),
            ("value_max", bytes(was.value_bytes_max), bytes(is.value_bytes_max)),
            ("sync", shared(old), shared(new)),
        ];
        let changed = values.into_iter().filter(|(_, was, is)| was != is);
        changed
            .map(|(key, was, is)| {
                format!(
                    "`{key}` of [context] stays at {was}: `tidegate upgrade` or a restart makes it \
                     {is}"
                )
            })
            .collect()
    }

    /// Tells the metrics how things stand.
    pub(crate) fn tell(&self, metrics: &Metrics) {
        let counters = self.context.counters();
        metrics.control().context(ContextTotals {
            entries: counters.entries as u64,
            records: counters.records as u64,
            bytes: counters.bytes as u64,
            expired: counters.expired,
            evicted: counters.evicted,
            refused: counters.refused,
            lost: counters.lost,
            unwritten: counters.unwritten as u64,
            batches: counters.batches,
            batch_failures: counters.batch_failures,
            sync: self.sync.as_ref().map(|sync| ContextSyncTotals {
                connected: sync.is_connected(),
                lag_millis: u64::try_from(sync.lag().as_millis()).unwrap_or(u64::MAX),
                sent: sync.sent.get(),
                applied: sync.applied.get(),
                failures: sync.failures.get(),
            }),
        });
    }

    /// Begins to share it with other gates, if it is to be shared.
    fn share(&self) {
        if let (Some(settings), Some(status), Some(watch)) =
            (&self.settings.sync, &self.sync, self.changes.take())
        {
            let keeps = match self.settings.directory {
                Some(_) => sync::Keeps::OnDisk,
                None => sync::Keeps::Nothing,
            };
            let (context, status) = (Arc::clone(&self.context), Rc::clone(status));
            let settings = settings.clone();
            tokio::task::spawn_local(sync::run(context, settings, status, watch, keeps));
        }
    }

    /// Sends and writes down what is left, and leaves the file. Blocks for as long as the disk takes.
    pub(crate) async fn finish(&self) {
        if let Some(sync) = &self.sync {
            sync.settle().await;
        }
        if let Err(fault) = self.context.let_go() {
            tracing::error!(%fault, "the last changes of context are not on disk");
        }
        // The process ends: taking a million variables apart before would only hold that up.
        std::mem::forget(Arc::clone(&self.context));
    }
}

/// Clears away what has expired, and tells of a store that is full or cannot be written, for as long
/// as the gate runs.
pub(crate) async fn keep(gate: Rc<Gate>) {
    gate.context.share();
    let mut watch = Watch::default();
    let mut every = tokio::time::interval(SWEPT_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let context = Arc::clone(&gate.context.context);
        // A million variables that expire together take a second; signals should not wait for it.
        let swept = tokio::task::spawn_blocking(move || context.sweep(clock::unix_millis()));
        // A panic in it has been told of.
        let _ = swept.await;
        let counters = gate.context.context.counters();
        gate.context.tell(&gate.metrics);
        watch.look(&counters);
    }
}

/// What is told of once, not every second.
#[derive(Debug, Default)]
struct Watch {
    evicted: u64,
    failures: u64,
    full_told: Option<clock::Stamp>,
}

impl Watch {
    fn look(&mut self, counters: &Counters) {
        let evicted = counters.evicted.saturating_sub(self.evicted);
        self.evicted = counters.evicted;
        let told_lately = self.full_told.is_some_and(|told| told.elapsed() < FULL_TOLD_EVERY);
        if evicted > 0 && !told_lately {
            tracing::warn!(
                evicted,
                entries = counters.entries,
                bytes = counters.bytes,
                "context is full: what would expire soonest is forgotten before its time; raise \
                 entries_max or memory_max of [context]"
            );
            self.full_told = Some(clock::Stamp::now());
        }
        let failures = counters.batch_failures.saturating_sub(self.failures);
        if failures > 0 && self.failures == 0 {
            tracing::error!(
                unwritten = counters.unwritten,
                "context cannot be written to disk; it is tried again every write_interval"
            );
        }
        // Told again if it fails again after it has gone well.
        self.failures =
            if failures > 0 || self.failures == 0 { counters.batch_failures } else { 0 };
    }
}
