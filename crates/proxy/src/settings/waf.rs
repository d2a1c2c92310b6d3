//! Settings of the WAF.

use std::sync::Arc;

pub use tidegate_telemetry::metrics::Busy;
use tidegate_waf::program::Policy;
use tidegate_waf::variable::Phase;

/// What all inspections of a process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waf {
    /// Threads of the inspection pool, at least one.
    pub pool_threads: usize,
    /// Inspections that may wait for them, at least one.
    pub pool_queue_max: usize,
    /// Bytes of head and body from which a phase goes to the pool at once.
    pub pool_from_bytes: u64,
    /// Bytes of a held request body that stay in memory (`SecRequestBodyInMemoryLimit`).
    pub body_memory_bytes_max: usize,
    /// One in so many inspections is measured rule by rule; none if it is zero.
    pub rule_times: u32,
}

/// How the requests of a route are inspected.
#[derive(Clone, Debug)]
pub struct Inspect {
    /// The rules, and what is done about matches.
    pub policy: Arc<Policy>,
    /// What is done when the inspection pool has no room.
    pub busy: Busy,
    /// Which phases have rules that ask beyond the request and may wait for an answer.
    waits: [bool; Phase::ALL.len()],
}

impl Inspect {
    /// Inspection under a policy.
    pub fn new(policy: Arc<Policy>, busy: Busy) -> Self {
        let waits = Phase::ALL.map(|phase| policy.program().waits(phase));
        Self { policy, busy, waits }
    }

    /// Whether rules of this phase may wait for an answer from beyond the request.
    pub(crate) fn waits(&self, phase: Phase) -> bool {
        self.waits[phase.index()]
    }
}

/// Policies are compared by identity: those of equal text are one.
impl PartialEq for Inspect {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.policy, &other.policy) && self.busy == other.busy
    }
}
