//! The house's clocks: monotonic stamps for durations, wall time for what people read.
//!
//! This is the only module that reads a clock (clippy.toml bans it elsewhere). Code that must be
//! driven by tests takes a [`Clock`] as a type parameter: [`SystemClock`] has no size and compiles to
//! the bare clock read, [`VirtualClock`] moves only when told to.
//!
//! Both reads go through the vDSO on Linux: no system call, about 20 ns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// A moment on the system's monotonic clock, in nanoseconds since it was started.
///
/// Zero means "not set": a record starts with all stamps unset and keeps those unset that its
/// request never reached. A stamp that was taken is never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u64);

impl Stamp {
    /// The moment that has not come.
    pub const UNSET: Stamp = Stamp(0);

    /// Reads the monotonic clock.
    #[inline]
    pub fn now() -> Stamp {
        let time = clock_gettime(ClockId::Monotonic);
        // Neither part is ever negative, and 584 years fit. Plain arithmetic, because this is read
        // several times in every request.
        Stamp(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
    }

    /// The stamp of a standard instant.
    pub fn at(instant: Instant) -> Stamp {
        let (now, stamp) = (read_instant(), Stamp::now());
        match instant.checked_duration_since(now) {
            Some(ahead) => stamp + ahead,
            None => Stamp(stamp.0.saturating_sub(nanos(now.duration_since(instant))).max(1)),
        }
    }

    /// A stamp from its nanoseconds; zero is [`Stamp::UNSET`].
    pub const fn from_nanos(nanos: u64) -> Stamp {
        Stamp(nanos)
    }

    /// Its nanoseconds; zero if not set.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether the moment came.
    #[inline]
    pub const fn is_set(self) -> bool {
        self.0 != 0
    }

    /// The stamp, or `None` if not set.
    #[inline]
    pub const fn get(self) -> Option<Stamp> {
        if self.is_set() { Some(self) } else { None }
    }

    /// This stamp, or `other` if this one is not set.
    #[inline]
    #[must_use]
    pub const fn or(self, other: Stamp) -> Stamp {
        if self.is_set() { self } else { other }
    }

    /// Takes the time now if not set yet: the first time counts.
    #[inline]
    pub fn set_once(&mut self) {
        if !self.is_set() {
            *self = Stamp::now();
        }
    }

    /// The time from `earlier` to this stamp; zero if either is unset or the order is the reverse.
    #[inline]
    pub fn since(self, earlier: Stamp) -> Duration {
        self.checked_since(earlier).unwrap_or_default()
    }

    /// The time from `earlier` to this stamp, where both are set; zero if the order is the reverse.
    #[inline]
    pub fn checked_since(self, earlier: Stamp) -> Option<Duration> {
        if self.is_set() && earlier.is_set() {
            Some(Duration::from_nanos(self.0.saturating_sub(earlier.0)))
        } else {
            None
        }
    }

    /// The time from this stamp until now; zero if not set.
    #[inline]
    pub fn elapsed(self) -> Duration {
        if self.is_set() { Stamp::now().since(self) } else { Duration::ZERO }
    }
}

/// A stamp `duration` later; an unset stamp stays unset.
impl std::ops::Add<Duration> for Stamp {
    type Output = Stamp;

    fn add(self, duration: Duration) -> Stamp {
        if self.is_set() { Stamp(self.0.saturating_add(nanos(duration))) } else { self }
    }
}

/// Milliseconds since 1970-01-01 00:00:00 UTC.
pub fn unix_millis() -> u64 {
    u64::try_from(read_unix().as_millis()).unwrap_or(u64::MAX)
}

/// Seconds since 1970-01-01 00:00:00 UTC.
pub fn unix_seconds() -> u64 {
    read_unix().as_secs()
}

/// Where time comes from, for code that tests drive.
pub trait Clock: Clone {
    /// The monotonic time.
    fn now(&self) -> Stamp;
    /// The wall time in milliseconds since 1970.
    fn unix_millis(&self) -> u64;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Stamp {
        Stamp::now()
    }

    #[inline]
    fn unix_millis(&self) -> u64 {
        unix_millis()
    }
}

/// A clock that stands still until it is moved; clones share their time.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    shared: std::sync::Arc<VirtualTime>,
}

#[derive(Debug)]
struct VirtualTime {
    nanos: AtomicU64,
    unix_millis_at_start: u64,
}

impl VirtualClock {
    /// A clock whose monotonic time is its first stamp and whose wall time is `unix_millis`.
    pub fn starting_at(unix_millis: u64) -> VirtualClock {
        let time = VirtualTime { nanos: AtomicU64::new(1), unix_millis_at_start: unix_millis };
        VirtualClock { shared: std::sync::Arc::new(time) }
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        self.shared.nanos.fetch_add(nanos(by), Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Stamp {
        Stamp(self.shared.nanos.load(Ordering::Relaxed))
    }

    fn unix_millis(&self) -> u64 {
        let elapsed = self.shared.nanos.load(Ordering::Relaxed) - 1;
        self.shared.unix_millis_at_start + elapsed / 1_000_000
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
fn read_instant() -> Instant {
    Instant::now()
}

/// A wall clock set before 1970 reads as 1970: dates are for people, durations never come from it.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn read_unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Whole nanoseconds; more than 584 years saturate.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_taken_is_set_and_time_does_not_run_backwards() {
        let first = Stamp::now();
        let second = Stamp::now();
        assert!(first.is_set());
        assert!(second >= first);
        let ahead = Stamp::at(read_instant() + Duration::from_mins(1)).since(second);
        assert!(ahead >= Duration::from_mins(1) && ahead < Duration::from_mins(2));
    }

    #[test]
    fn differences_saturate_and_need_both_ends() {
        let check = |later: u64, earlier: u64, expected: Option<u64>| {
            let got = Stamp(later).checked_since(Stamp(earlier));
            assert_eq!(got, expected.map(Duration::from_nanos), "{later} since {earlier}");
            assert_eq!(Stamp(later).since(Stamp(earlier)), got.unwrap_or_default());
        };
        check(5, 2, Some(3));
        check(2, 5, Some(0));
        check(0, 5, None);
        check(5, 0, None);
        check(u64::MAX, 1, Some(u64::MAX - 1));
    }

    #[test]
    fn the_first_time_counts() {
        let mut stamp = Stamp::from_nanos(7);
        stamp.set_once();
        assert_eq!(stamp, Stamp(7));
        let mut stamp = Stamp::UNSET;
        stamp.set_once();
        assert!(stamp.is_set());
        assert_eq!(Stamp::UNSET.or(Stamp(3)), Stamp(3));
        assert_eq!(Stamp(2).or(Stamp(3)), Stamp(2));
        assert_eq!(Stamp::UNSET + Duration::from_secs(1), Stamp::UNSET);
        assert_eq!(Stamp(1) + Duration::from_nanos(4), Stamp(5));
    }

    #[test]
    fn a_virtual_clock_moves_when_told() {
        let clock = VirtualClock::starting_at(1_000);
        let other = clock.clone();
        assert_eq!(clock.now(), Stamp(1));
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(other.now().since(Stamp(1)), Duration::from_millis(1_500));
        assert_eq!(other.unix_millis(), 2_500);
    }

    #[test]
    fn wall_time_is_of_this_century() {
        assert!(unix_seconds() > 1_700_000_000);
        assert!(unix_millis() / 1_000 >= 1_700_000_000);
    }
}
