//! The time of a phase, as rules see it.

/// When a phase runs. The inspection never reads a clock itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub epoch_ms: u64,
    /// Microseconds since the transaction began: `DURATION`.
    pub elapsed_us: u64,
}

impl Moment {
    pub(super) fn clock(self) -> Clock {
        Clock { epoch_s: i64::try_from(self.epoch_ms / 1000).unwrap_or(i64::MAX) }
    }
}

/// The parts of a time in UTC: a gate's machines may stand anywhere, and its rules mean one hour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch_s: i64,
}

const DAY_S: i64 = 86_400;

impl Clock {
    pub(super) fn epoch_s(self) -> i64 {
        self.epoch_s
    }

    pub(super) fn second(self) -> i64 {
        self.epoch_s % 60
    }

    pub(super) fn minute(self) -> i64 {
        self.epoch_s / 60 % 60
    }

    pub(super) fn hour(self) -> i64 {
        self.epoch_s / 3600 % 24
    }

    /// 0 is Sunday; the epoch was a Thursday.
    pub(super) fn weekday(self) -> i64 {
        (self.epoch_s / DAY_S + 4) % 7
    }

    pub(super) fn year(self) -> i64 {
        self.date().0
    }

    /// 1 to 12.
    pub(super) fn month(self) -> i64 {
        self.date().1
    }

    /// 1 to 31.
    pub(super) fn day(self) -> i64 {
        self.date().2
    }

    /// `hour:minute:second`, two digits each.
    pub(super) fn time_of_day(self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour(), self.minute(), self.second())
    }

    /// The proleptic Gregorian date, counted in years that begin in March so that the leap day is
    /// the last of its year (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    fn date(self) -> (i64, i64, i64) {
        let days = self.epoch_s / DAY_S + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        (year_of_era + era * 400 + i64::from(month <= 2), month, day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_its_parts() {
        let check = |epoch_s: u64, date: (i64, i64, i64), weekday: i64, time: &str| {
            let clock = Moment { epoch_ms: epoch_s * 1000, elapsed_us: 0 }.clock();
            assert_eq!((clock.year(), clock.month(), clock.day()), date, "{epoch_s}");
            assert_eq!((clock.weekday(), clock.time_of_day().as_str()), (weekday, time));
        };
        check(0, (1970, 1, 1), 4, "00:00:00");
        check(951_782_399, (2000, 2, 28), 1, "23:59:59");
        check(951_782_400, (2000, 2, 29), 2, "00:00:00");
        check(1_795_305_599, (2026, 11, 21), 6, "23:59:59");
        check(4_102_444_800, (2100, 1, 1), 5, "00:00:00");
    }
}
