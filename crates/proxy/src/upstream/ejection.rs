//! Passive ejection: a server that fails several requests in a row is left out for a while. Pure.
//!
//! Each further ejection lasts twice as long, up to ten times the first; a server that has served
//! for that longest time without another begins anew. At most a share of the group is ejected at
//! once, but always one may be: otherwise small groups would have no ejection at all.

use std::time::Duration;

use tidegate_telemetry::clock::Stamp;

use crate::settings::Ejection;

/// The longest ejection, as a multiple of the first.
const LONGEST: u32 = 10;

/// What is known of a server that failed once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Failures in a row, this one included.
    pub failures: u32,
    /// How often in a row it was ejected.
    pub ejections: u32,
    /// When its last ejection ended or will end; unset if there was none.
    pub ejected_until: Stamp,
}

/// How many of a group are ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Servers ejected now.
    pub ejected: usize,
    /// All servers of the group.
    pub servers: usize,
}

/// What a failure leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The server stays.
    Keep,
    /// It would be ejected if not too many were already.
    ShareReached,
    /// It is ejected.
    Eject {
        /// Until when.
        until: Stamp,
        /// How often in a row, this time included.
        ejections: u32,
    },
}

/// Judges a server that failed once more.
pub fn judge(history: History, share: Share, settings: &Ejection, now: Stamp) -> Verdict {
    // What was under way when a server was ejected comes back failed, and says nothing new.
    if history.failures < settings.failures || history.ejected_until > now {
        return Verdict::Keep;
    }
    if share.ejected >= ejected_max(share.servers, settings.share_max_percent) {
        return Verdict::ShareReached;
    }
    let longest = settings.time.saturating_mul(LONGEST);
    let served_well = now.since(history.ejected_until) >= longest;
    let before = if served_well { 0 } else { history.ejections };
    Verdict::Eject {
        until: now + lasts(before, settings.time),
        ejections: before.saturating_add(1),
    }
}

/// How long an ejection lasts after so many in a row.
fn lasts(before: u32, time: Duration) -> Duration {
    let factor = 2_u32.checked_pow(before).unwrap_or(LONGEST).min(LONGEST);
    time.saturating_mul(factor)
}

/// How many of so many servers may be ejected at once.
fn ejected_max(servers: usize, share_max_percent: u8) -> usize {
    match share_max_percent {
        0 => 0,
        percent => (servers.saturating_mul(usize::from(percent.min(100))) / 100).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Ejection =
        Ejection { failures: 3, time: Duration::from_secs(10), share_max_percent: 50 };
    const NOW: Stamp = at(1_000);

    const fn at(seconds: u64) -> Stamp {
        Stamp::from_nanos(seconds * 1_000_000_000)
    }

    fn verdict(failures: u32, ejections: u32, ejected_until: Stamp) -> Verdict {
        let history = History { failures, ejections, ejected_until };
        judge(history, Share { ejected: 0, servers: 4 }, &SETTINGS, NOW)
    }

    #[test]
    fn a_row_of_failures_ejects() {
        assert_eq!(verdict(2, 0, Stamp::UNSET), Verdict::Keep);
        assert_eq!(verdict(3, 0, Stamp::UNSET), Verdict::Eject { until: at(1_010), ejections: 1 });
        assert_eq!(verdict(9, 0, at(1_001)), Verdict::Keep, "it is ejected already");
    }

    #[test]
    fn each_ejection_lasts_twice_as_long_up_to_ten_times() {
        let check = |ejections, expected_seconds: u64| {
            let expected =
                Verdict::Eject { until: at(1_000 + expected_seconds), ejections: ejections + 1 };
            assert_eq!(verdict(3, ejections, at(990)), expected);
        };
        check(1, 20);
        check(2, 40);
        check(3, 80);
        check(4, 100);
        check(40, 100);
    }

    #[test]
    fn serving_well_is_remembered() {
        let first = Verdict::Eject { until: at(1_010), ejections: 1 };
        assert_eq!(verdict(3, 5, at(900)), first);
        assert_ne!(verdict(3, 5, at(901)), first);
    }

    #[test]
    fn a_share_of_the_group_stays() {
        let check = |ejected, servers, share_max_percent, expected| {
            let settings = Ejection { share_max_percent, ..SETTINGS };
            let history = History { failures: 3, ejections: 0, ejected_until: Stamp::UNSET };
            let got = judge(history, Share { ejected, servers }, &settings, NOW);
            let got = if got == Verdict::ShareReached { "stays" } else { "goes" };
            assert_eq!(got, expected, "{ejected} of {servers} at {share_max_percent} %");
        };
        check(0, 4, 50, "goes");
        check(1, 4, 50, "goes");
        check(2, 4, 50, "stays");
        check(0, 1, 10, "goes");
        check(1, 3, 10, "stays");
        check(0, 3, 0, "stays");
        check(2, 3, 100, "goes");
        check(3, 3, 255, "stays");
    }
}
