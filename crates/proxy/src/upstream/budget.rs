//! The retry budget of a group: retries may be at most a share of the requests of the last ten
//! seconds, and always a few, so that a failing group is not buried under its own retries.
//!
//! The counts are shared by all workers. A worker reports its requests in batches ([`Tally`]), so
//! the budget costs a request nothing but a local count; a retry is rare and goes straight to the
//! shared counts. A second's count is one atomic that also holds which second it is for, so old
//! seconds vanish without anyone sweeping them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tidegate_telemetry::clock::Stamp;

/// How far back requests and retries are counted.
const WINDOW_SECONDS: u32 = 10;
/// Retries that are always allowed in a window: a group with little traffic may retry too.
const FLOOR: u64 = 10;
/// Requests that a worker keeps to itself at most.
const BATCH: u32 = 32;

/// The retry budget of a group.
#[derive(Debug)]
pub struct Budget {
    /// Allowed retries in thousandths of the requests.
    share_permille: u64,
    requests: Window,
    retries: Window,
}

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl Budget {
    /// A budget of this share of the requests (0.2: 20 %).
    pub fn new(share: f32) -> Budget {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1000 before the cast"
        )]
        let share_permille = (share * 1000.0).round() as u64;
        Budget { share_permille, requests: Window::default(), retries: Window::default() }
    }

    /// Counts a request, first attempts only, by way of the worker's tally.
    #[inline]
    pub fn count_request(&self, tally: &mut Tally, now: Stamp) {
        let second = second(now);
        if tally.second != second || tally.requests >= BATCH {
            self.requests.add(tally.second, tally.requests);
            *tally = Tally { second, requests: 0 };
        }
        tally.requests += 1;
    }

    /// Takes one retry. Workers that ask in the same instant may overdraw by one each.
    pub fn withdraw(&self, now: Stamp) -> Result<(), Exhausted> {
        let second = second(now);
        let allowed = FLOOR + self.requests.sum(second) * self.share_permille / 1000;
        if self.retries.sum(second) >= allowed {
            return Err(Exhausted);
        }
        self.retries.add(second, 1);
        Ok(())
    }
}

/// Requests a worker has counted and not yet reported.
#[derive(Debug, Default)]
pub struct Tally {
    second: u32,
    requests: u32,
}

/// Counts of the last ten seconds. Each slot holds its second in the upper half, its count below.
#[derive(Debug, Default)]
struct Window {
    slots: [AtomicU64; WINDOW_SECONDS as usize],
}

impl Window {
    fn add(&self, second: u32, count: u32) {
        let slot = &self.slots[(second % WINDOW_SECONDS) as usize];
        // A failed update means that the slot has gone on to a later second: too late to count.
        let _: Result<u64, u64> = slot.fetch_update(Relaxed, Relaxed, |word| {
            let (held, before) = split(word);
            match held {
                held if held == second => Some(join(second, before.saturating_add(count))),
                held if held < second => Some(join(second, count)),
                _ => None,
            }
        });
    }

    fn sum(&self, second: u32) -> u64 {
        let words = self.slots.iter().map(|slot| split(slot.load(Relaxed)));
        let recent = words
            .filter(|(held, _)| second.checked_sub(*held).is_some_and(|age| age < WINDOW_SECONDS));
        recent.map(|(_, count)| u64::from(count)).sum()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "136 years of seconds fit 32 bits")]
fn second(now: Stamp) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}

fn join(second: u32, count: u32) -> u64 {
    u64::from(second) << 32 | u64::from(count)
}

#[expect(clippy::cast_possible_truncation, reason = "taking a word apart into its halves")]
fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Stamp {
        Stamp::from_nanos(seconds * 1_000_000_000 + 1)
    }

    fn requests(budget: &Budget, tally: &mut Tally, count: u32, now: Stamp) {
        for _ in 0..count {
            budget.count_request(tally, now);
        }
    }

    fn retries(budget: &Budget, now: Stamp) -> usize {
        (0..10_000).take_while(|_| budget.withdraw(now).is_ok()).count()
    }

    #[test]
    fn a_few_retries_are_always_allowed() {
        let budget = Budget::new(0.2);
        assert_eq!(retries(&budget, at(100)), 10);
        assert_eq!(retries(&budget, at(109)), 0);
        assert_eq!(retries(&budget, at(110)), 10);
    }

    #[test]
    fn retries_are_a_share_of_recent_requests() {
        let budget = Budget::new(0.2);
        let mut tally = Tally::default();
        requests(&budget, &mut tally, 1_000, at(100));
        requests(&budget, &mut tally, 1_000, at(105));
        requests(&budget, &mut tally, 1, at(106));
        assert_eq!(retries(&budget, at(106)), 410);
        assert_eq!(retries(&budget, at(106)), 0);
        // The requests of second 100 have left the window; the 410 retries have not.
        assert_eq!(retries(&budget, at(110)), 0);
        assert_eq!(retries(&budget, at(116)), 10);
    }

    #[test]
    fn a_tally_keeps_at_most_a_batch_to_itself() {
        let budget = Budget::new(1.0);
        let mut tally = Tally::default();
        for count in 1..200_u32 {
            requests(&budget, &mut tally, 1, at(50));
            let reported = u32::try_from(budget.requests.sum(50)).unwrap();
            assert!(count - reported <= BATCH, "{reported} of {count} reported");
        }
    }

    #[test]
    fn an_odd_share_is_tamed() {
        let check = |share, expected| assert_eq!(Budget::new(share).share_permille, expected);
        check(0.2, 200);
        check(0.0, 0);
        check(-1.0, 0);
        check(7.0, 1000);
        check(f32::NAN, 0);
    }

    #[test]
    fn workers_lose_no_count() {
        let budget = Budget::new(1.0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut tally = Tally::default();
                    requests(&budget, &mut tally, 10_000, at(7));
                    budget.count_request(&mut tally, at(8));
                });
            }
        });
        assert_eq!(budget.requests.sum(8), 40_000);
    }
}
