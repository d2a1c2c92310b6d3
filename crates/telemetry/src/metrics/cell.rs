//! Numbers that one thread writes and any thread reads.
//!
//! A worker adds with a relaxed load and a relaxed store: on x86 two plain moves, no `lock` prefix
//! and no cache line that another core writes. That is sound for any number of writers and loses
//! counts with more than one, so the handle that writes ([`super::Worker`]) is neither `Sync` nor
//! `Clone`.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{Histogram, HistogramTotals};

/// A number that only grows.
#[derive(Debug)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`.
    #[inline]
    pub(super) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// Replaces the number, for those that are counted elsewhere.
    #[inline]
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number now.
    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug)]
pub(super) struct Gauge(Counter);

impl Gauge {
    /// One more.
    #[inline]
    pub(super) fn up(&self) {
        self.0.add(1);
    }

    /// One less.
    #[inline]
    pub(super) fn down(&self) {
        self.0.add(u64::MAX);
    }
}

/// What can be summed over workers.
pub(super) trait Tally {
    /// The sum's type.
    type Total;

    /// Nothing counted yet.
    fn new() -> Self;
    /// The sum over no workers.
    fn zero() -> Self::Total;
    /// Adds what this one counted.
    fn add_to(&self, total: &mut Self::Total);
}

impl Tally for Counter {
    type Total = u64;

    fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    fn zero() -> u64 {
        0
    }

    fn add_to(&self, total: &mut u64) {
        *total = total.wrapping_add(self.value());
    }
}

/// A sum of gauges may be read between one worker's step up and another's step down, and is
/// therefore signed.
impl Tally for Gauge {
    type Total = i64;

    fn new() -> Gauge {
        Gauge(Counter::new())
    }

    fn zero() -> i64 {
        0
    }

    fn add_to(&self, total: &mut i64) {
        *total = total.wrapping_add(self.0.value().cast_signed());
    }
}

impl Tally for Histogram {
    type Total = HistogramTotals;

    fn new() -> Histogram {
        Histogram::empty()
    }

    fn zero() -> HistogramTotals {
        HistogramTotals::default()
    }

    fn add_to(&self, total: &mut HistogramTotals) {
        total.add(self);
    }
}

impl<T: Tally, const N: usize> Tally for [T; N] {
    type Total = [T::Total; N];

    fn new() -> [T; N] {
        std::array::from_fn(|_| T::new())
    }

    fn zero() -> [T::Total; N] {
        std::array::from_fn(|_| T::zero())
    }

    fn add_to(&self, total: &mut [T::Total; N]) {
        for (part, sum) in self.iter().zip(total) {
            part.add_to(sum);
        }
    }
}

/// Declares a struct of tallies that a worker writes, and beside it the struct of their totals.
macro_rules! tallies {
    ($(#[$meta:meta])* $rows:ident => $totals:ident {
        $($(#[doc = $doc:literal])+ $field:ident: $kind:ty => $total:ty,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[repr(align(128))] // Two lines: the neighbour line is prefetched with its twin.
        pub(super) struct $rows {
            $($(#[doc = $doc])+ pub(super) $field: $kind,)+
        }

        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $totals {
            $($(#[doc = $doc])+ pub $field: $total,)+
        }

        impl $crate::metrics::cell::Tally for $rows {
            type Total = $totals;

            fn new() -> $rows {
                $rows { $($field: $crate::metrics::cell::Tally::new(),)+ }
            }

            fn zero() -> $totals {
                $totals { $($field: <$kind as $crate::metrics::cell::Tally>::zero(),)+ }
            }

            fn add_to(&self, total: &mut $totals) {
                $($crate::metrics::cell::Tally::add_to(&self.$field, &mut total.$field);)+
            }
        }

        impl Default for $totals {
            fn default() -> $totals {
                <$rows as $crate::metrics::cell::Tally>::zero()
            }
        }
    };
}

pub(super) use tallies;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_sum_over_writers() {
        let workers: [[Counter; 2]; 3] = Tally::new();
        for (amount, worker) in (1..).zip(&workers) {
            worker[0].add(amount);
            worker[1].add(10 * amount);
        }
        let mut total = <[Counter; 2]>::zero();
        for worker in &workers {
            worker.add_to(&mut total);
        }
        assert_eq!(total, [6, 60]);
    }

    #[test]
    fn gauges_balance_across_writers() {
        let (first, second) = (Gauge::new(), Gauge::new());
        first.up();
        first.up();
        second.down();
        let mut total = Gauge::zero();
        first.add_to(&mut total);
        second.add_to(&mut total);
        assert_eq!(total, 1);
    }
}
