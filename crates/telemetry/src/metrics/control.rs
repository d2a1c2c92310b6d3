//! Numbers of the control thread: reloads, plan, states of servers. Written rarely and from
//! anywhere, hence with ordinary atomics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::events::ServerState;
use super::labels::Label;

/// What the control thread tells.
#[derive(Debug, Default)]
pub struct Control {
    reloads: AtomicU64,
    reloads_failed: AtomicU64,
    plan_generation: AtomicU64,
    plan_loaded_unix: AtomicU64,
    servers: RwLock<BTreeMap<Label, ServerState>>,
    logs: RwLock<BTreeMap<Box<str>, Arc<LogCounts>>>,
    pool: Arc<PoolGauge>,
    context: RwLock<Option<ContextTotals>>,
    cache: RwLock<Option<CacheTotals>>,
}

/// What the inspection pool is doing.
#[derive(Debug, Default)]
pub struct PoolGauge {
    /// Inspections that wait for a thread.
    pub queued: AtomicU64,
    /// Inspections that a thread works on.
    pub running: AtomicU64,
    /// Inspections that were done there.
    pub done: AtomicU64,
}

/// What the cache holds and has done, as its keeper tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTotals {
    /// Keys in memory.
    pub entries: u64,
    /// Memory that stored responses take.
    pub bytes: u64,
    /// Most memory that they may take.
    pub bytes_max: u64,
    /// Fills under way.
    pub fills: u64,
    /// Responses stored.
    pub stored: u64,
    /// Keys that gave way to others.
    pub evicted: u64,
    /// Purges.
    pub purges: u64,
}

/// What the WAF's context holds and has done, as its keeper tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextTotals {
    /// Variables kept.
    pub entries: u64,
    /// Records kept.
    pub records: u64,
    /// Bytes of memory they are taken to cost.
    pub bytes: u64,
    /// Variables forgotten because their time was over.
    pub expired: u64,
    /// Variables that a full store gave up before their time.
    pub evicted: u64,
    /// Writes refused for a limit.
    pub refused: u64,
    /// Changes that watchers missed.
    pub lost: u64,
    /// Variables that have changed since they were last written to disk.
    pub unwritten: u64,
    /// Batches written to disk.
    pub batches: u64,
    /// Batches that could not be written.
    pub batch_failures: u64,
    /// How sharing goes; `None` if it is not shared.
    pub sync: Option<ContextSyncTotals>,
}

/// How the sharing of context between gates goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSyncTotals {
    /// Whether there is a connection to the server.
    pub connected: bool,
    /// How far this gate and the others may be apart, in milliseconds.
    pub lag_millis: u64,
    /// Changes sent.
    pub sent: u64,
    /// Changes of others applied.
    pub applied: u64,
    /// Connections that failed.
    pub failures: u64,
}

/// The counts of one access log; they outlive reloads.
#[derive(Debug, Default)]
pub struct LogCounts {
    pub(crate) written: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// What was counted of one access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTotals {
    /// Lines written.
    pub written: u64,
    /// Lines dropped because the writer did not keep up, or could not write for too long.
    pub dropped: u64,
    /// Writes that failed.
    pub failed: u64,
    /// Bytes written.
    pub bytes: u64,
}

impl LogCounts {
    /// The counts now.
    pub fn totals(&self) -> LogTotals {
        LogTotals {
            written: self.written.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// The control thread's numbers, as read.
#[derive(Clone, Debug, Default)]
pub struct ControlTotals {
    /// Plans that were taken into service after the first.
    pub reloads: u64,
    /// Plans that were refused.
    pub reloads_failed: u64,
    /// Which plan is in service.
    pub plan_generation: u64,
    /// Since when, in seconds since 1970.
    pub plan_loaded_unix: u64,
    /// The states of the servers in the plan.
    pub servers: BTreeMap<Label, ServerState>,
    /// The access logs, by name.
    pub logs: Vec<(Box<str>, LogTotals)>,
    /// Inspections that wait for a thread of the pool.
    pub pool_queued: u64,
    /// Inspections that a thread of the pool works on.
    pub pool_running: u64,
    /// Inspections that were done in the pool.
    pub pool_done: u64,
    /// What rules remember; `None` before its keeper has told.
    pub context: Option<ContextTotals>,
    /// What the cache holds; `None` before its keeper has told.
    pub cache: Option<CacheTotals>,
}

impl Control {
    /// A plan went into service. The first is no reload.
    pub fn plan_loaded(&self, generation: u64, unix_seconds: u64) {
        if self.plan_loaded_unix.swap(unix_seconds, Ordering::Relaxed) != 0 {
            self.reloads.fetch_add(1, Ordering::Relaxed);
        }
        self.plan_generation.store(generation, Ordering::Relaxed);
    }

    /// A new plan was refused; the running one stays.
    pub fn reload_failed(&self) {
        self.reloads_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// A server is in this state now.
    pub fn server_state(&self, server: Label, state: ServerState) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(server, state);
    }

    /// A server is not in the plan any more.
    pub fn server_gone(&self, server: Label) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).remove(&server);
    }

    /// The counts of the access log `name`, the same over reloads.
    pub fn log(&self, name: &str) -> Arc<LogCounts> {
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(logs.entry(name.into()).or_default())
    }

    /// Where the inspection pool tells what it is doing.
    pub fn pool(&self) -> &Arc<PoolGauge> {
        &self.pool
    }

    /// Context stands like this now.
    pub fn context(&self, totals: ContextTotals) {
        *self.context.write().unwrap_or_else(PoisonError::into_inner) = Some(totals);
    }

    /// The cache stands like this now.
    pub fn cache(&self, totals: CacheTotals) {
        *self.cache.write().unwrap_or_else(PoisonError::into_inner) = Some(totals);
    }

    pub(super) fn totals(&self) -> ControlTotals {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        ControlTotals {
            reloads: self.reloads.load(Ordering::Relaxed),
            reloads_failed: self.reloads_failed.load(Ordering::Relaxed),
            plan_generation: self.plan_generation.load(Ordering::Relaxed),
            plan_loaded_unix: self.plan_loaded_unix.load(Ordering::Relaxed),
            servers: servers.clone(),
            logs: logs.iter().map(|(name, counts)| (name.clone(), counts.totals())).collect(),
            pool_queued: self.pool.queued.load(Ordering::Relaxed),
            pool_running: self.pool.running.load(Ordering::Relaxed),
            pool_done: self.pool.done.load(Ordering::Relaxed),
            context: *self.context.read().unwrap_or_else(PoisonError::into_inner),
            cache: *self.cache.read().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_plan_is_no_reload() {
        let control = Control::default();
        control.plan_loaded(1, 1_000);
        control.plan_loaded(2, 2_000);
        control.reload_failed();
        let totals = control.totals();
        assert_eq!((totals.reloads, totals.reloads_failed), (1, 1));
        assert_eq!((totals.plan_generation, totals.plan_loaded_unix), (2, 2_000));
    }

    #[test]
    fn a_log_keeps_its_counts_and_a_gone_server_has_no_state() {
        let control = Control::default();
        control.log("main").written.fetch_add(3, Ordering::Relaxed);
        assert_eq!(control.log("main").totals().written, 3);
        control.server_state(Label::OTHER, ServerState::Down);
        control.server_state(Label::OTHER, ServerState::Up);
        assert_eq!(control.totals().servers.get(&Label::OTHER), Some(&ServerState::Up));
        control.server_gone(Label::OTHER);
        assert!(control.totals().servers.is_empty());
    }
}
