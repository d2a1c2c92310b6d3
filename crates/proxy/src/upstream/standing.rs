//! Whether a server may be chosen, and with how much of its weight: pure functions of its state and
//! the time.
//!
//! Four voices speak about a server. The operator drains or removes it, active checks find it up or
//! down, passive ejection leaves it out for a while, and slow start lets it come back by degrees.
//! They are kept apart, so that none can undo another, and are only joined here.

use std::time::Duration;

use tidegate_telemetry::clock::Stamp;

/// What the operator wants of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Admin {
    /// It takes requests.
    Serving = 0,
    /// It takes no requests but those of clients that a sticky cookie binds to it.
    Draining = 1,
    /// It left its group, by hand or because its name no longer has its address. Requests under way
    /// finish; idle connections are to be closed.
    Removed = 2,
}

/// What active checks say about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// Not checked yet, or checked by nobody: it serves, so that a start needs no round of checks.
    Unknown = 0,
    /// Up.
    Up = 1,
    /// Down.
    Down = 2,
}

/// All that decides whether a server may be chosen, read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What the operator wants.
    pub admin: Admin,
    /// What active checks say.
    pub health: Health,
    /// Until when it is ejected; unset if it never was. The past means that it is back.
    pub ejected_until: Stamp,
    /// Since when it is back from being down, or in its group at all; unset if it always was.
    pub back_since: Stamp,
}

/// Whether a server may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// It may.
    Fit,
    /// Not now, unless there is nothing better: it failed requests.
    Ejected,
    /// Not until a check succeeds.
    Down,
    /// Only for clients that a cookie binds to it.
    Draining,
    /// Never again.
    Removed,
}

/// Weights are counted in this many parts, so that a ramp has fine steps even at weight 1.
pub(super) const FULL: u32 = 256;
/// Where a ramp begins: enough requests to warm a server up, few enough not to hurt.
const RAMP_START: u32 = FULL / 10;
/// In how many steps a ramp is climbed; between them the tables of a worker stand.
const RAMP_STEPS: u32 = 32;

impl Standing {
    /// Joins the four voices; the stronger no wins.
    pub fn fitness(&self, now: Stamp) -> Fitness {
        match (self.admin, self.health) {
            (Admin::Removed, _) => Fitness::Removed,
            (_, Health::Down) => Fitness::Down,
            (Admin::Draining, _) => Fitness::Draining,
            (Admin::Serving, Health::Unknown | Health::Up) if self.ejected_until > now => {
                Fitness::Ejected
            }
            (Admin::Serving, Health::Unknown | Health::Up) => Fitness::Fit,
        }
    }

    /// The share of its weight that a fit server has now, of [`FULL`].
    pub(super) fn ramp(&self, slow_start: Duration, now: Stamp) -> u32 {
        let Some(elapsed) = self.climbing(slow_start, now) else { return FULL };
        let share = u64::from(FULL) * nanos(elapsed) / nanos(slow_start).max(1);
        u32::try_from(share).unwrap_or(FULL).clamp(RAMP_START, FULL)
    }

    /// When what this standing says changes by the passing of time alone; unset if never.
    pub(super) fn changes_at(&self, slow_start: Duration, now: Stamp) -> Stamp {
        if self.ejected_until > now {
            self.ejected_until
        } else if self.climbing(slow_start, now).is_some() {
            now + (slow_start / RAMP_STEPS).max(Duration::from_millis(1))
        } else {
            Stamp::UNSET
        }
    }

    /// How long it has been climbing its ramp; `None` if it is on top.
    fn climbing(&self, slow_start: Duration, now: Stamp) -> Option<Duration> {
        // An ejection ends by the clock alone, so its end is a return like any other.
        let back = self.back_since.max(self.ejected_until);
        now.checked_since(back).filter(|elapsed| *elapsed < slow_start)
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Stamp {
        Stamp::from_nanos(seconds * SECOND)
    }

    fn standing() -> Standing {
        Standing {
            admin: Admin::Serving,
            health: Health::Up,
            ejected_until: Stamp::UNSET,
            back_since: Stamp::UNSET,
        }
    }

    #[test]
    fn the_stronger_no_wins() {
        let check = |admin, health, ejected_until, expected| {
            let standing = Standing { admin, health, ejected_until, ..standing() };
            assert_eq!(standing.fitness(at(10)), expected, "{standing:?}");
        };
        check(Admin::Serving, Health::Unknown, Stamp::UNSET, Fitness::Fit);
        check(Admin::Serving, Health::Up, at(10), Fitness::Fit);
        check(Admin::Serving, Health::Up, at(11), Fitness::Ejected);
        check(Admin::Serving, Health::Down, at(11), Fitness::Down);
        check(Admin::Draining, Health::Up, at(11), Fitness::Draining);
        check(Admin::Draining, Health::Down, Stamp::UNSET, Fitness::Down);
        check(Admin::Removed, Health::Up, Stamp::UNSET, Fitness::Removed);
    }

    #[test]
    fn a_ramp_climbs_to_the_full_weight() {
        let slow_start = Duration::from_secs(100);
        let check = |back_since, ejected_until, now, expected| {
            let standing = Standing { ejected_until, back_since, ..standing() };
            assert_eq!(standing.ramp(slow_start, at(now)), expected, "{standing:?} at {now}");
        };
        check(Stamp::UNSET, Stamp::UNSET, 50, FULL);
        check(at(1), Stamp::UNSET, 1, RAMP_START);
        check(at(1), Stamp::UNSET, 51, FULL / 2);
        check(at(1), Stamp::UNSET, 101, FULL);
        check(at(1), at(200), 250, FULL / 2);
        check(at(1), at(200), 300, FULL);
        assert_eq!(Standing { back_since: at(1), ..standing() }.ramp(Duration::ZERO, at(1)), FULL);
    }

    #[test]
    fn time_alone_changes_ejections_and_ramps() {
        let slow_start = Duration::from_secs(32);
        let check = |back_since, ejected_until, expected| {
            let standing = Standing { ejected_until, back_since, ..standing() };
            assert_eq!(standing.changes_at(slow_start, at(100)), expected, "{standing:?}");
        };
        check(Stamp::UNSET, Stamp::UNSET, Stamp::UNSET);
        check(Stamp::UNSET, at(120), at(120));
        check(at(99), Stamp::UNSET, at(101));
        check(at(50), at(60), Stamp::UNSET);
    }
}
