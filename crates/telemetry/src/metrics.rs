//! Metrics: counted per worker without locks, summed when read.
//!
//! Each worker owns a [`Worker`], the only writer of its counters, and records what happens with
//! plain loads and stores. Readers ([`Metrics::snapshot`], [`Metrics::exposition`]) sum over workers.
//! Names of the configuration become small numbers ([`Label`]) when a plan is made, so nothing is
//! looked up by text while requests run, and every label set has a bound.
//!
//! Each metric is declared once, in `families`; the exposition and `docs/metrics.md` come from
//! there.

mod block;
mod cell;
mod control;
mod events;
mod families;
mod histogram;
mod labels;
mod process;
mod reasons;
mod rows;
mod rule_counts;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;
mod worker;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

pub use block::{BasicTotals, PlaceTotals, TargetTotals};
pub use control::{
    CacheTotals, ContextSyncTotals, ContextTotals, Control, ControlTotals, LogCounts, LogTotals,
    PoolGauge,
};
pub use events::{Busy, Closed, ConnectionState, ServerState, StreamEnd};
pub use families::reference;
pub use histogram::HistogramTotals;
pub use labels::{Label, Labels, Names};
pub use process::{Process, TICKS_PER_SECOND};
pub use reasons::Reason;
pub use rule_counts::RuleCounts;
pub use snapshot::{Place, Sample, Snapshot, Target, WorkerTotals};
pub use text::TextFormat;
pub use worker::{Check, LoopTotals, Worker};

use block::Block;
use snapshot::RowTotals;

/// Bounds and constants of a process's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most sites and routes that are counted by name, at most 65,536.
    pub places_max: usize,
    /// The most groups and servers that are counted by name, at most 65,536.
    pub targets_max: usize,
    /// The program's version.
    pub version: &'static str,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { places_max: 16_384, targets_max: 4_096, version: env!("CARGO_PKG_VERSION") }
    }
}

/// All metrics of a process.
#[derive(Debug)]
pub struct Metrics {
    labels: Arc<Labels>,
    control: Control,
    blocks: RwLock<Vec<Arc<Block>>>,
    started_unix: u64,
    version: &'static str,
}

impl Metrics {
    /// Metrics of a process that began at `started_unix` (seconds since 1970).
    pub fn new(settings: Settings, started_unix: u64) -> Metrics {
        let bounded = |len_max: usize| len_max.min(rows::ROWS_MAX);
        Metrics {
            labels: Arc::new(Labels::new(
                bounded(settings.places_max),
                bounded(settings.targets_max),
            )),
            control: Control::default(),
            blocks: RwLock::default(),
            started_unix,
            version: settings.version,
        }
    }

    /// The label sets, for resolving a plan's names.
    pub fn labels(&self) -> &Arc<Labels> {
        &self.labels
    }

    /// The control thread's numbers.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The number that the control thread counts under, where it takes a writer of its own.
    pub const CONTROL: u16 = u16::MAX;

    /// The writer for worker number `worker`.
    ///
    /// A worker that follows another of the same number goes on with its counters.
    pub fn worker(&self, worker: u16) -> Worker {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let free = blocks.iter().find(|block| {
            block.worker == worker
                && block
                    .taken
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        });
        let block = free.cloned().unwrap_or_else(|| {
            let block = Arc::new(Block::new(worker));
            blocks.push(Arc::clone(&block));
            block
        });
        Worker::writing(block)
    }

    /// The sums now.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            control: self.control.totals(),
            process: Process::read(),
            started_unix: self.started_unix,
            version: self.version,
            rules: self.labels.rule_totals(),
            rule_times: self.labels.rule_times(),
            ..Snapshot::default()
        };
        let mut rows = RowTotals::default();
        for block in self.blocks.read().unwrap_or_else(PoisonError::into_inner).iter() {
            snapshot.add(block, &mut rows);
        }

        // Names are read after the rows: every row in sight has its name by now.
        let names = self.labels.places();
        snapshot.places = names
            .into_iter()
            .zip(rows.places)
            .filter_map(|(names, totals)| totals.map(|totals| Place { names, totals }))
            .collect();

        let names = self.labels.targets();
        rows.targets.resize_with(names.len(), || None);
        let states = &snapshot.control.servers;
        snapshot.targets = names
            .into_iter()
            .zip(rows.targets)
            .enumerate()
            .filter_map(|(index, (names, totals))| {
                let state = states.get(&Label::at(index)).copied();
                let seen = state.is_some() || totals.is_some();
                seen.then(|| Target { names, state, totals: totals.unwrap_or_default() })
            })
            .collect();
        snapshot
    }

    /// The sums now, as far as they need no name of the configuration.
    pub fn sample(&self) -> Sample {
        let mut sample = Sample::default();
        for block in self.blocks.read().unwrap_or_else(PoisonError::into_inner).iter() {
            sample.add(block);
        }
        sample
    }

    /// The text that Prometheus scrapes.
    pub fn exposition(&self, format: TextFormat) -> String {
        families::exposition(&self.snapshot(), format)
    }
}
