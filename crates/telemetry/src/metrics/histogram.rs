//! Durations in log-linear buckets.
//!
//! Each power of two from 16.384 µs (2^14 ns) to 137 s (2^37 ns) is split in eight, so a bucket is at
//! most 12.5 % wide and a quantile, told as a bucket's middle, is off by at most 6.25 %. What is
//! shorter falls in one bucket below, what is longer in one above.
//!
//! Powers of two make poor `le` bounds for people. A bucket that contains one of the exported
//! [`BOUNDS`] is therefore cut in two there, which costs one compare and makes the exported counts
//! exact instead of interpolated.

use std::time::Duration;

use super::cell::{Counter, Tally};
use crate::clock::nanos;

/// The exported upper bounds (`le`, inclusive): nanoseconds and the text in seconds.
pub(super) const BOUNDS: [(u64, &str); 18] = [
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (30_000_000_000, "30"),
    (60_000_000_000, "60"),
];

const SHORTEST_BITS: u32 = 14;
const LONGEST_BITS: u32 = 37;
const SPLIT_BITS: u32 = 3;
const PER_OCTAVE: usize = 1 << SPLIT_BITS;
/// The log-linear cells, with the one below and the one above.
const CELLS: usize = (LONGEST_BITS - SHORTEST_BITS) as usize * PER_OCTAVE + 2;
/// The buckets: the cells, some cut in two by a bound.
const BUCKETS: usize = CELLS + BOUNDS.len();

/// Where a cell's durations go.
#[derive(Clone, Copy)]
struct Cell {
    /// Durations longer than this go to the bucket after `bucket`.
    cut: u64,
    bucket: usize,
}

static CELL: [Cell; CELLS] = lay_cells();
/// The longest duration of each bucket; it belongs to the bucket.
static LONGEST: [u64; BUCKETS] = lay_buckets();

/// The shortest duration of a cell; of the one after the last cell, the longest there is.
const fn cell_start(cell: usize) -> u64 {
    if cell == 0 {
        return 0;
    }
    if cell >= CELLS {
        return u64::MAX;
    }
    let octave = (cell - 1) / PER_OCTAVE;
    let part = ((cell - 1) % PER_OCTAVE) as u64;
    (PER_OCTAVE as u64 + part) << (SHORTEST_BITS as usize - SPLIT_BITS as usize + octave)
}

const fn lay_cells() -> [Cell; CELLS] {
    let mut cells = [Cell { cut: u64::MAX, bucket: 0 }; CELLS];
    let (mut cell, mut bound) = (0, 0);
    while cell < CELLS {
        cells[cell].bucket = cell + bound;
        if bound < BOUNDS.len() && BOUNDS[bound].0 < cell_start(cell + 1) {
            assert!(BOUNDS[bound].0 >= cell_start(cell), "one bound at most in a cell");
            cells[cell].cut = BOUNDS[bound].0;
            bound += 1;
        }
        cell += 1;
    }
    assert!(bound == BOUNDS.len(), "every bound lies in the range");
    cells
}

const fn lay_buckets() -> [u64; BUCKETS] {
    let cells = lay_cells();
    let mut longest = [0; BUCKETS];
    let mut cell = 0;
    while cell < CELLS {
        let bucket = cells[cell].bucket;
        let end = cell_start(cell + 1);
        let last = if end == u64::MAX { end } else { end - 1 };
        longest[bucket] = last;
        if cells[cell].cut != u64::MAX {
            longest[bucket] = cells[cell].cut;
            longest[bucket + 1] = last;
        }
        cell += 1;
    }
    longest
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only the lowest three bits are kept")]
fn bucket_of(nanos: u64) -> usize {
    let bits = u64::BITS - 1 - (nanos | 1).leading_zeros();
    let cell = if bits < SHORTEST_BITS {
        0
    } else if bits >= LONGEST_BITS {
        CELLS - 1
    } else {
        let octave = (bits - SHORTEST_BITS) as usize;
        let part = (nanos >> (bits - SPLIT_BITS)) & (PER_OCTAVE as u64 - 1);
        1 + octave * PER_OCTAVE + part as usize
    };
    let Cell { cut, bucket } = CELL[cell];
    bucket + usize::from(nanos > cut)
}

/// One worker's counts of durations.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: [Counter; BUCKETS],
    sum_nanos: Counter,
}

impl Histogram {
    pub(super) fn empty() -> Histogram {
        Histogram { buckets: Tally::new(), sum_nanos: Tally::new() }
    }

    /// Counts a duration in nanoseconds.
    #[inline]
    pub(super) fn record(&self, nanos: u64) {
        self.buckets[bucket_of(nanos)].add(1);
        self.sum_nanos.add(nanos);
    }
}

/// Counts of durations, summed over workers.
#[derive(Clone, Debug)]
pub struct HistogramTotals {
    buckets: Box<[u64; BUCKETS]>,
    sum_nanos: u64,
}

impl Default for HistogramTotals {
    fn default() -> HistogramTotals {
        HistogramTotals { buckets: Box::new([0; BUCKETS]), sum_nanos: 0 }
    }
}

impl HistogramTotals {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        for (sum, part) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum = sum.wrapping_add(part.value());
        }
        self.sum_nanos = self.sum_nanos.wrapping_add(histogram.sum_nanos.value());
    }

    /// Adds other totals, to sum over routes or servers.
    pub fn merge(&mut self, other: &HistogramTotals) {
        for (sum, part) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *sum = sum.wrapping_add(*part);
        }
        self.sum_nanos = self.sum_nanos.wrapping_add(other.sum_nanos);
    }

    /// What was counted after `earlier` was taken.
    #[must_use]
    pub fn since(&self, earlier: &HistogramTotals) -> HistogramTotals {
        let mut difference = self.clone();
        for (now, then) in difference.buckets.iter_mut().zip(earlier.buckets.iter()) {
            *now = now.saturating_sub(*then);
        }
        difference.sum_nanos = self.sum_nanos.saturating_sub(earlier.sum_nanos);
        difference
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<Duration> {
        self.sum_nanos.checked_div(self.count()).map(Duration::from_nanos)
    }

    /// The duration that a share of `quantile` (0 to 1) of all do not exceed, within 6.25 %; `None`
    /// if there are none.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let count = self.count();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the rank is clamped into 1..=count, and 53 bits of counts are plenty"
        )]
        let rank = ((count as f64 * quantile.clamp(0.0, 1.0)).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|in_bucket| {
            seen += in_bucket;
            seen >= rank
        })?;
        Some(Duration::from_nanos(middle(bucket)))
    }

    /// How many do not exceed `duration`, exact at the exported bounds.
    pub fn count_within(&self, duration: Duration) -> u64 {
        let last = bucket_of(nanos(duration));
        self.buckets[..=last].iter().sum()
    }

    /// The cumulative counts at [`BOUNDS`].
    pub(super) fn cumulative(&self) -> [u64; BOUNDS.len()] {
        let mut counts = [0; BOUNDS.len()];
        let (mut bound, mut sum) = (0, 0);
        for (longest, in_bucket) in LONGEST.iter().zip(self.buckets.iter()) {
            sum += in_bucket;
            if bound < BOUNDS.len() && *longest == BOUNDS[bound].0 {
                counts[bound] = sum;
                bound += 1;
            }
        }
        counts
    }
}

/// The middle of a bucket; of the last one, which has no end, its start.
fn middle(bucket: usize) -> u64 {
    let start = if bucket == 0 { 0 } else { LONGEST[bucket - 1].saturating_add(1) };
    if bucket == BUCKETS - 1 { start } else { start + (LONGEST[bucket] - start) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(durations: impl IntoIterator<Item = u64>) -> HistogramTotals {
        let histogram = Histogram::empty();
        durations.into_iter().for_each(|nanos| histogram.record(nanos));
        let mut totals = HistogramTotals::default();
        totals.add(&histogram);
        totals
    }

    #[test]
    fn buckets_cover_all_durations_without_gap_or_overlap() {
        assert_eq!(LONGEST[BUCKETS - 1], u64::MAX);
        for (bucket, longest) in LONGEST.into_iter().enumerate() {
            assert_eq!(bucket_of(longest), bucket, "the end of bucket {bucket}");
            if bucket + 1 < BUCKETS {
                assert_eq!(bucket_of(longest + 1), bucket + 1, "the start after bucket {bucket}");
            }
        }
        assert_eq!(bucket_of(0), 0);
    }

    #[test]
    fn a_quantile_is_off_by_a_sixteenth_at_most() {
        let mut nanos: u64 = 1 << SHORTEST_BITS;
        while nanos < 1 << LONGEST_BITS {
            let told = totals([nanos]).quantile(0.5).expect("one was counted").as_nanos();
            let error = told.abs_diff(u128::from(nanos));
            assert!(error * 16 <= u128::from(nanos), "{nanos} told as {told}");
            nanos += nanos / 37 + 1;
        }
    }

    #[test]
    fn quantiles_rank_as_expected() {
        let totals = totals((1..=1000).map(|millis| millis * 1_000_000));
        let check = |quantile: f64, millis: f64| {
            let told = totals.quantile(quantile).expect("not empty").as_secs_f64() * 1e3;
            assert!((told - millis).abs() <= millis / 16.0, "p{quantile}: {told}");
        };
        check(0.0, 1.0);
        check(0.5, 500.0);
        check(0.99, 990.0);
        check(1.0, 1000.0);
        assert_eq!(totals.count(), 1000);
        assert_eq!(totals.sum(), Duration::from_millis(500_500));
        assert_eq!(totals.mean(), Some(Duration::from_micros(500_500)));
        assert_eq!(HistogramTotals::default().quantile(0.5), None);
        assert_eq!(HistogramTotals::default().mean(), None);
    }

    #[test]
    fn counts_at_the_bounds_are_exact() {
        for (index, (bound, text)) in BOUNDS.into_iter().enumerate() {
            let seconds: f64 = text.parse().expect("bounds are numbers");
            assert_eq!(Duration::from_secs_f64(seconds), Duration::from_nanos(bound), "{text}");
            let counts = totals([bound - 1, bound, bound + 1]).cumulative();
            assert_eq!(counts[index], 2, "a bound belongs to its bucket: {text}");
            assert!(counts[..index].iter().all(|count| *count == 0), "{text}");
            assert!(counts[index + 1..].iter().all(|count| *count == 3), "{text}");
            let within = totals([bound, bound + 1]).count_within(Duration::from_nanos(bound));
            assert_eq!(within, 1, "{text}");
        }
    }

    #[test]
    fn what_came_after() {
        let earlier = totals([1_000_000]);
        let mut now = totals([1_000_000, 5_000_000]);
        let since = now.since(&earlier);
        assert_eq!((since.count(), since.sum()), (1, Duration::from_millis(5)));
        now.merge(&earlier);
        assert_eq!(now.count(), 3);
    }
}
