//! The cache as the control thread sees it: it tells what it holds.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_cache::time::Time;
use tidegate_telemetry::clock;

use crate::control::Gate;

/// How often it is told what the cache holds.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Tells what the cache holds, for as long as the gate runs.
pub(crate) async fn keep(gate: Rc<Gate>) {
    let mut every = tokio::time::interval(TOLD_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let cache = Arc::clone(gate.crew.borrow().cache());
        let now = Time::from_millis(i64::try_from(clock::unix_millis()).unwrap_or(i64::MAX));
        let (tended, tending) = (Arc::clone(&cache), now);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || tended.tend(tending)).await;
        gate.metrics.control().cache(cache.totals());
    }
}

/// Writes what waits to be written to disk, and leaves the directory to the next process.
pub(crate) async fn let_go(gate: &Gate) {
    let cache = Arc::clone(gate.crew.borrow().cache());
    // A panic in it has been told of.
    let _ = tokio::task::spawn_blocking(move || cache.let_go()).await;
}
