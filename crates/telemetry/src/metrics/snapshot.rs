//! The sums over all workers at one moment, for expositions and status pages.

use super::block::{BasicTotals, Block, PlaceTotals, STATUS_MIN, TargetTotals};
use super::cell::Tally;
use super::control::ControlTotals;
use super::events::{Closed, ServerState};
use super::histogram::HistogramTotals;
use super::labels::Names;
use super::process::Process;
use super::reasons::Reason;
use crate::record::{Outcome, Phase, Side};

/// All metrics, summed.
///
/// Workers go on counting while they are read, so numbers that belong together may differ by the
/// requests of that moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// What needs no label of the configuration.
    pub basics: BasicTotals,
    /// Sites and routes that were asked for, in order of their labels.
    pub places: Vec<Place>,
    /// Groups and servers that were used or have a state, in order of their labels.
    pub targets: Vec<Target>,
    /// Requests that went wrong, sorted by reason.
    pub request_errors: Vec<(Reason, u64)>,
    /// Connections that went wrong outside of any request, sorted by reason.
    pub connection_errors: Vec<(Reason, u64)>,
    /// WAF rules that matched, by id, and how often.
    pub rules: Vec<(u64, u64)>,
    /// WAF rules that were measured, by id, and their time in nanoseconds, the slowest first.
    pub rule_times: Vec<(u64, u64)>,
    /// What each worker's loop tells.
    pub workers: Vec<WorkerTotals>,
    /// What the control thread tells.
    pub control: ControlTotals,
    /// What the kernel tells.
    pub process: Process,
    /// When the process began, in seconds since 1970.
    pub started_unix: u64,
    /// The program's version.
    pub version: &'static str,
}

/// A site and a route.
#[derive(Clone, Debug)]
pub struct Place {
    /// Their names.
    pub names: Names,
    /// Their counts.
    pub totals: PlaceTotals,
}

/// A group and a server.
#[derive(Clone, Debug)]
pub struct Target {
    /// Their names.
    pub names: Names,
    /// The server's state; `None` for a group and for a server that has left the plan.
    pub state: Option<ServerState>,
    /// Their counts.
    pub totals: TargetTotals,
}

/// One worker's loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerTotals {
    /// Which worker.
    pub worker: u16,
    /// Requests that ended.
    pub requests: u64,
    /// Requests that began and have not ended.
    pub requests_active: i64,
    /// Client connections open.
    pub connections_open: i64,
    /// Task polls.
    pub loop_polls: u64,
    /// Sleeps.
    pub loop_parks: u64,
    /// Time not asleep, in nanoseconds.
    pub loop_busy_nanos: u64,
}

impl Snapshot {
    /// Adds what one worker counted. `places` and `targets` collect rows by label index.
    pub(super) fn add(&mut self, block: &Block, rows: &mut RowTotals) {
        block.basics.add_to(&mut self.basics);
        block.places.each(|index, row| row.add_to(slot(&mut rows.places, index)));
        block.targets.each(|index, row| row.add_to(slot(&mut rows.targets, index)));
        block.request_errors.add_to(&mut self.request_errors);
        block.connection_errors.add_to(&mut self.connection_errors);

        add_worker(&mut self.workers, block);
    }

    /// Ended requests with this outcome.
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.basics.outcomes[outcome.index()].iter().sum()
    }

    /// Ended requests that were this side's fault.
    pub fn side(&self, side: Side) -> u64 {
        self.basics.outcomes.iter().map(|sides| sides[side.index()]).sum()
    }

    /// Responses with this status.
    pub fn status(&self, status: u16) -> u64 {
        let index = usize::from(status.wrapping_sub(STATUS_MIN));
        self.basics.statuses.get(index).copied().unwrap_or(0)
    }

    /// Ended requests.
    pub fn requests(&self) -> u64 {
        self.basics.requests.as_flattened().iter().sum()
    }

    /// Client connections closed for this reason.
    pub fn closed(&self, closed: Closed) -> u64 {
        self.basics.connections_closed[closed.index()]
    }

    /// Durations of a phase over all requests.
    pub fn phase(&self, phase: Phase) -> HistogramTotals {
        self.basics.phases.get(phase.index()).cloned().unwrap_or_else(|| {
            let mut total = HistogramTotals::default();
            self.places.iter().for_each(|place| total.merge(&place.totals.duration));
            total
        })
    }
}

/// The sums that need no name of the configuration: small and quick to take, so that a history of
/// them can be kept.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// What needs no label of the configuration.
    pub basics: BasicTotals,
    /// From first byte to end, over all requests.
    pub total: HistogramTotals,
    /// What each worker's loop tells.
    pub workers: Vec<WorkerTotals>,
}

impl Sample {
    /// Adds what one worker counted.
    pub(super) fn add(&mut self, block: &Block) {
        block.basics.add_to(&mut self.basics);
        block.places.each(|_, row| self.total.add(&row.duration));
        add_worker(&mut self.workers, block);
    }
}

/// Adds a block to the sums of its worker; workers are in order of their numbers.
fn add_worker(workers: &mut Vec<WorkerTotals>, block: &Block) {
    let mut own = super::block::Basics::zero();
    block.basics.add_to(&mut own);
    let at = workers.partition_point(|worker| worker.worker < block.worker);
    if workers.get(at).is_none_or(|worker| worker.worker != block.worker) {
        workers.insert(at, WorkerTotals { worker: block.worker, ..Default::default() });
    }
    let worker = &mut workers[at];
    worker.requests += own.requests.as_flattened().iter().sum::<u64>();
    worker.connections_open += own.connections_open;
    worker.requests_active += own.requests_active;
    worker.loop_polls += own.loop_polls;
    worker.loop_parks += own.loop_parks;
    worker.loop_busy_nanos += own.loop_busy_nanos;
}

/// Rows by label index, while they are summed.
#[derive(Debug, Default)]
pub(super) struct RowTotals {
    pub(super) places: Vec<Option<PlaceTotals>>,
    pub(super) targets: Vec<Option<TargetTotals>>,
}

fn slot<T: Default>(rows: &mut Vec<Option<T>>, index: usize) -> &mut T {
    if rows.len() <= index {
        rows.resize_with(index + 1, || None);
    }
    rows[index].get_or_insert_default()
}
