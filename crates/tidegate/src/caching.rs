//! The cache as the control thread sees it: it tells what it holds.

use std::rc::Rc;
use std::time::Duration;

use crate::control::Gate;

/// How often it is told what the cache holds.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Tells what the cache holds, for as long as the gate runs.
pub(crate) async fn keep(gate: Rc<Gate>) {
    let mut every = tokio::time::interval(TOLD_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let totals = gate.crew.borrow().cache().totals();
        gate.metrics.control().cache(totals);
    }
}
