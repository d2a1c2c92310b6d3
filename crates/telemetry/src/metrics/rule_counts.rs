//! How often the rules of the WAF matched, and how long they took: few requests match anything, and few
//! are measured, so these are ordinary atomics, shared by all workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How many rules are counted by their ids in the life of a process; the rest count as rule 0.
const RULES_MAX: usize = 4096;

/// What is known of a rule.
#[derive(Debug, Default)]
struct Cell {
    matches: AtomicU64,
    nanos: AtomicU64,
}

/// How often each rule of a rule set matched, and its time. They outlive reloads.
#[derive(Debug, Default)]
pub struct RuleCounts {
    by_id: HashMap<u64, Arc<Cell>>,
    other: Arc<Cell>,
}

impl RuleCounts {
    fn cell(&self, id: u64) -> &Cell {
        self.by_id.get(&id).unwrap_or(&self.other)
    }

    /// A rule matched.
    pub fn add(&self, id: u64) {
        self.cell(id).matches.fetch_add(1, Ordering::Relaxed);
    }

    /// A rule took this long in an inspection that stands for so many.
    pub fn took(&self, id: u64, time: Duration, stands_for: u32) {
        let nanos = time.saturating_mul(stands_for).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.cell(id).nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// What is known of all rules there have been.
#[derive(Debug, Default)]
pub(super) struct AllRules(RwLock<BTreeMap<u64, Arc<Cell>>>);

impl AllRules {
    /// The counts of the rules with these ids.
    pub(super) fn of(&self, ids: impl Iterator<Item = u64>) -> RuleCounts {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let other = Arc::clone(rules.entry(0).or_default());
        let mut by_id = HashMap::new();
        for id in ids {
            if rules.len() < RULES_MAX || rules.contains_key(&id) {
                by_id.insert(id, Arc::clone(rules.entry(id).or_default()));
            }
        }
        RuleCounts { by_id, other }
    }

    /// Those that matched, by id, and how often.
    pub(super) fn totals(&self) -> Vec<(u64, u64)> {
        self.all(|cell| &cell.matches)
    }

    /// Those that were measured, by id, and their time in nanoseconds, the slowest first.
    pub(super) fn times(&self) -> Vec<(u64, u64)> {
        let mut times = self.all(|cell| &cell.nanos);
        times.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        times
    }

    fn all(&self, of: fn(&Cell) -> &AtomicU64) -> Vec<(u64, u64)> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let counts = rules.iter().map(|(id, cell)| (*id, of(cell).load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_outlive_a_rule_set_and_are_bounded() {
        let all = AllRules::default();
        let first = all.of([1, 2].into_iter());
        first.add(1);
        first.add(3);
        let second = all.of([2, 1].into_iter());
        second.add(1);
        assert_eq!(all.totals(), [(0, 1), (1, 2)]);
        let many = all.of(0..10_000);
        many.add(9_999);
        assert_eq!(all.totals(), [(0, 2), (1, 2)]);
    }

    #[test]
    fn times_stand_for_the_inspections_that_were_not_measured() {
        let all = AllRules::default();
        let rules = all.of([1, 2, 3].into_iter());
        rules.took(1, Duration::from_nanos(5), 100);
        rules.took(2, Duration::from_nanos(7), 100);
        rules.took(1, Duration::from_nanos(5), 10);
        assert_eq!(all.times(), [(2, 700), (1, 550)]);
        assert_eq!(all.totals(), []);
    }
}
