//! The cache as the control thread sees it: it tells what it holds, and remembers what it made of
//! requests in the last hour.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_cache::time::Time;
use tidegate_telemetry::clock::{self, Stamp};
use tidegate_telemetry::metrics::{Metrics, Place};
use tidegate_telemetry::record::CacheResult;

use crate::control::Gate;

/// How often it is told what the cache holds.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How often what it made of requests is remembered for a minute, and how often for an hour.
const FINE_EVERY: Duration = Duration::from_secs(10);
const COARSE_EVERY: Duration = Duration::from_mins(1);
/// A minute or an hour, and one more to measure it from.
const FINE_MAX: usize = 7;
const COARSE_MAX: usize = 61;

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
        gate.cache_history.borrow_mut().tick(&gate.metrics, Stamp::now());
    }
}

/// Writes what waits to be written to disk, and leaves the directory to the next process.
pub(crate) async fn let_go(gate: &Gate) {
    let cache = Arc::clone(gate.crew.borrow().cache());
    // A panic in it has been told of.
    let _ = tokio::task::spawn_blocking(move || cache.let_go()).await;
}

/// What the cache made of requests by moments of the last hour, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    fine: VecDeque<Taken>,
    coarse: VecDeque<Taken>,
}

/// All counts at one moment.
#[derive(Clone, Debug)]
struct Taken {
    at: Stamp,
    /// By the hash of site and route, in ascending order; the cache was asked on all of these.
    counts: Vec<(u64, Counts)>,
}

/// How often the cache was asked, and how often that spared a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests that were looked up; those that went past the cache are none of them.
    pub(crate) asked: u64,
    /// Those among them that were answered without a fetch of their own.
    pub(crate) hits: u64,
}

impl Counts {
    /// What a site and a route have come to.
    pub(crate) fn of(place: &Place) -> Counts {
        let mut counts = Counts::default();
        for (result, requests) in CacheResult::ALL.iter().zip(place.totals.cache) {
            if !matches!(result, CacheResult::None | CacheResult::Bypass) {
                counts.asked += requests;
                counts.hits += if result.is_hit() { requests } else { 0 };
            }
        }
        counts
    }

    fn since(self, before: Counts) -> Counts {
        Counts {
            asked: self.asked.saturating_sub(before.asked),
            hits: self.hits.saturating_sub(before.hits),
        }
    }
}

impl History {
    fn tick(&mut self, metrics: &Metrics, now: Stamp) {
        let is_due = |taken: &VecDeque<Taken>, every| {
            taken.back().is_none_or(|last| now.since(last.at) >= every)
        };
        if !is_due(&self.fine, FINE_EVERY) {
            return;
        }
        let snapshot = metrics.snapshot();
        let counts = snapshot.places.iter().map(|place| (hash(place), Counts::of(place)));
        let mut counts: Vec<_> = counts.filter(|(_, counts)| counts.asked > 0).collect();
        counts.sort_unstable_by_key(|(place, _)| *place);
        let taken = Taken { at: now, counts };
        if is_due(&self.coarse, COARSE_EVERY) {
            push(&mut self.coarse, taken.clone(), COARSE_MAX);
        }
        push(&mut self.fine, taken, FINE_MAX);
    }

    /// What has come to a site and a route within this time, an hour at most.
    pub(crate) fn within(&self, place: &Place, time: Duration, now: Stamp) -> Counts {
        let youngest_first = self.fine.iter().rev().chain(self.coarse.iter().rev());
        let mut old_enough = youngest_first.filter(|taken| now.since(taken.at) >= time);
        // If none is, the start is not so long ago, and there was nothing then.
        let before = old_enough.next().map_or(Counts::default(), |taken| {
            let hash = hash(place);
            let found = taken.counts.binary_search_by_key(&hash, |(place, _)| *place);
            found.map_or(Counts::default(), |at| taken.counts[at].1)
        });
        Counts::of(place).since(before)
    }
}

fn push(history: &mut VecDeque<Taken>, taken: Taken, max: usize) {
    if history.len() == max {
        history.pop_front();
    }
    history.push_back(taken);
}

fn hash(place: &Place) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&place.names.whole, &place.names.part).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use tidegate_telemetry::metrics::{Names, PlaceTotals};

    use super::*;

    #[test]
    fn ratios_are_those_of_their_time() {
        let at = |seconds: u64| Stamp::from_nanos(seconds * 1_000_000_000);
        let names = Names { whole: "a".into(), part: "/".into() };
        let mut place = Place { names, totals: PlaceTotals::default() };
        let mut history = History::default();
        // A hit each second from the thousandth on, and misses before.
        for second in (0..=2000_u64).step_by(10) {
            let counts = Counts { asked: second, hits: second.saturating_sub(1000) };
            let taken = Taken { at: at(second), counts: vec![(hash(&place), counts)] };
            if second % 60 == 0 {
                push(&mut history.coarse, taken.clone(), COARSE_MAX);
            }
            push(&mut history.fine, taken, FINE_MAX);
        }
        place.totals.cache[CacheResult::Hit.index()] = 1000;
        place.totals.cache[CacheResult::Miss.index()] = 1000;
        place.totals.cache[CacheResult::Bypass.index()] = 77;
        let check = |seconds, asked, hits| {
            let found = history.within(&place, Duration::from_secs(seconds), at(2000));
            assert_eq!(found, Counts { asked, hits }, "{seconds}");
        };
        check(60, 60, 60);
        // The youngest sample that is old enough is of second 1380.
        check(600, 620, 620);
        check(3600, 2000, 1000);
    }
}
