//! The last minute: samples of all counters, so that a status can say what happens now and not only
//! what happened since the start.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Metrics, Process, Sample};

use super::Gate;

const EVERY: Duration = Duration::from_secs(5);
/// A minute, and one more to measure it from.
const SAMPLES_MAX: usize = 13;

/// Samples of the last minute, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<Taken>);

/// All counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// When.
    pub(crate) at: Stamp,
    /// What was counted by then.
    pub(crate) sample: Sample,
    /// CPU time used by then, in clock ticks.
    pub(crate) cpu_ticks: u64,
}

impl Taken {
    /// Takes one now.
    pub(crate) fn now(metrics: &Metrics) -> Taken {
        let cpu_ticks = Process::read().cpu_ticks.unwrap_or_default();
        Taken { at: Stamp::now(), sample: metrics.sample(), cpu_ticks }
    }
}

impl History {
    fn push(&mut self, taken: Taken) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(taken);
    }

    /// The youngest sample that is at least so old, or else the oldest there is.
    pub(crate) fn before(&self, age: Duration, now: Stamp) -> Option<&Taken> {
        let old_enough = self.0.iter().rev().find(|taken| now.since(taken.at) >= age);
        old_enough.or_else(|| self.0.front())
    }
}

/// Keeps the history for as long as the gate runs.
pub(super) async fn keep(gate: Rc<Gate>) {
    loop {
        let taken = Taken::now(&gate.metrics);
        gate.history.borrow_mut().push(taken);
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_that_is_old_enough_is_found() {
        let at = |seconds: u64| Stamp::from_nanos(seconds * 1_000_000_000);
        let mut history = History::default();
        assert!(history.before(Duration::ZERO, at(1)).is_none());
        for second in 1..=20 {
            let taken = Taken { at: at(second), sample: Sample::default(), cpu_ticks: 0 };
            history.push(taken);
        }
        let check = |age, expected| {
            let found = history.before(Duration::from_secs(age), at(20)).unwrap();
            assert_eq!(found.at, at(expected), "{age}");
        };
        check(0, 20);
        check(5, 15);
        check(12, 8);
        check(60, 8);
    }
}
