//! How long each rule took, in inspections that somebody measures.
//!
//! The clock is read once between two rules, which costs an inspection of the Core Rule Set about ten
//! microseconds: whoever wants to know measures one in many. Work that rules share (values looked up,
//! transformed, searched for candidates) counts for the rule that asks for it first.

use std::time::Duration;

use super::Inspection;
use crate::program::RuleNumber;

/// Nanoseconds on a clock that only goes forward.
pub type MonotonicClock = fn() -> u64;

/// What the rules of one transaction took.
#[derive(Default)]
pub(super) struct RuleTimes {
    pub(super) clock: Option<MonotonicClock>,
    taken: Vec<(RuleNumber, u64)>,
}

impl RuleTimes {
    /// Makes ready for a transaction that nobody measures.
    pub(super) fn clear(&mut self) {
        self.clock = None;
        self.taken.clear();
    }

    pub(super) fn add(&mut self, rule: RuleNumber, nanos: u64) {
        self.taken.push((rule, nanos));
    }
}

/// The time of one rule after another.
pub(super) struct Lap {
    clock: MonotonicClock,
    before: u64,
}

impl Lap {
    pub(super) fn begin(clock: MonotonicClock) -> Self {
        Self { clock, before: clock() }
    }

    /// Nanoseconds since the last one ended.
    #[cold]
    pub(super) fn end(&mut self) -> u64 {
        let now = (self.clock)();
        now.saturating_sub(std::mem::replace(&mut self.before, now))
    }
}

impl Inspection {
    /// Measures each rule from now on.
    pub fn measure_rules(&mut self, clock: MonotonicClock) {
        self.state.times.clock = Some(clock);
    }

    /// The rules that were measured, by id, and how long each took, in the order in which they ran.
    /// Rules without an id are left out.
    pub fn rule_times(&self) -> impl Iterator<Item = (u64, Duration)> {
        let taken = self.state.times.taken.iter();
        let named = taken.map(|(rule, nanos)| (self.program.rules[rule.index()].id, *nanos));
        named.filter(|(id, _)| *id != 0).map(|(id, nanos)| (id, Duration::from_nanos(nanos)))
    }
}
