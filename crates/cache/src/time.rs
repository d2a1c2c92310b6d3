//! Moments and spans of the wall clock, which the caller reads.
//!
//! HTTP counts in seconds; here it is milliseconds, so that a response stored late in a second with
//! `max-age=1` lives a second and not the rest of this one.

use std::ops::{Add, Sub};

/// A moment, in milliseconds since 1970-01-01 00:00:00 UTC. May lie before: a response that came
/// with a large `Age` was born long ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// How long, in milliseconds; below zero where a difference was taken the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Time {
    /// The moment that never comes.
    pub const NEVER: Time = Time(i64::MAX);
    /// The moment before all others.
    pub const ALWAYS: Time = Time(i64::MIN);

    /// The moment so many milliseconds after 1970.
    pub const fn from_millis(millis: i64) -> Time {
        Time(millis)
    }

    /// The moment so many seconds after 1970.
    pub fn from_seconds(seconds: u64) -> Time {
        Time(Span::from_seconds(seconds).0)
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970; zero before.
    pub fn seconds(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0) / 1000
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than anything.
    pub const FOREVER: Span = Span(i64::MAX);

    /// A span of so many milliseconds.
    pub const fn from_millis(millis: i64) -> Span {
        Span(millis)
    }

    /// A span of so many seconds; the longest there is, where they are too many.
    pub fn from_seconds(seconds: u64) -> Span {
        Span(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
    }

    /// Its milliseconds.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Its whole seconds, towards the past where it is below zero.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

impl Add<Span> for Time {
    type Output = Time;

    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;

    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Sub for Time {
    type Output = Span;

    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        assert_eq!(Time::NEVER + Span::FOREVER, Time::NEVER);
        assert_eq!(Time::ALWAYS - Span::FOREVER, Time::ALWAYS);
        assert_eq!(Time::NEVER - Time::ALWAYS, Span::FOREVER);
        assert_eq!(Span::from_seconds(u64::MAX), Span::FOREVER);
    }

    #[test]
    fn seconds_are_whole_ones() {
        assert_eq!(Time::from_millis(1999).seconds(), 1);
        assert_eq!(Time::from_millis(-1).seconds(), 0);
        assert_eq!(Span::from_millis(-1).seconds(), -1);
        assert_eq!(Span::from_millis(999).seconds(), 0);
    }
}
