//! How often the rules of the WAF matched: few requests match anything, so these are ordinary
//! atomics, shared by all workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// How many rules are counted by their ids in the life of a process; the rest count as rule 0.
const RULES_MAX: usize = 4096;

/// How often each rule of a rule set matched. A count outlives reloads.
#[derive(Debug, Default)]
pub struct RuleCounts {
    by_id: HashMap<u64, Arc<AtomicU64>>,
    other: Arc<AtomicU64>,
}

impl RuleCounts {
    /// A rule matched.
    pub fn add(&self, id: u64) {
        self.by_id.get(&id).unwrap_or(&self.other).fetch_add(1, Ordering::Relaxed);
    }
}

/// The counts of all rules there have been.
#[derive(Debug, Default)]
pub(super) struct AllRules(RwLock<BTreeMap<u64, Arc<AtomicU64>>>);

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

    /// Those that matched, by id.
    pub(super) fn totals(&self) -> Vec<(u64, u64)> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let counts = rules.iter().map(|(id, count)| (*id, count.load(Ordering::Relaxed)));
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
}
