//! Dates and times of log lines, in UTC.
//!
//! A date is computed once a second and kept; lines of the same second copy it. Requests that end
//! together began in at most a few different seconds, so two seconds are kept, by parity.

use super::number::{decimal, pair, thousandths};

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Formats times, and remembers the last seconds.
#[derive(Clone, Debug)]
pub(super) struct Times {
    kept: [Second; 2],
}

/// A second in both forms.
#[derive(Clone, Debug)]
struct Second {
    unix: u64,
    /// `10/Oct/2000:13:55:36 +0000`
    clf: [u8; 26],
    /// `2000-10-10T13:55:36`
    iso: [u8; 19],
}

impl Times {
    pub(super) fn new() -> Times {
        Times { kept: [Second::at(0), Second::at(1)] }
    }

    /// Apache's form, without its brackets.
    #[inline]
    pub(super) fn clf(&mut self, out: &mut Vec<u8>, unix_millis: u64) {
        out.extend_from_slice(&self.second(unix_millis / 1000).clf);
    }

    /// RFC 3339 with milliseconds.
    #[inline]
    pub(super) fn iso(&mut self, out: &mut Vec<u8>, unix_millis: u64) {
        out.extend_from_slice(&self.second(unix_millis / 1000).iso);
        let [_, hundreds] = pair(unix_millis / 100 % 10);
        let [tens, ones] = pair(unix_millis);
        out.extend_from_slice(&[b'.', hundreds, tens, ones, b'Z']);
    }

    #[inline]
    fn second(&mut self, unix: u64) -> &Second {
        let kept = &mut self.kept[usize::from(unix % 2 == 1)];
        if kept.unix != unix {
            *kept = Second::at(unix);
        }
        kept
    }
}

/// Seconds since 1970 with milliseconds.
pub(super) fn unix(out: &mut Vec<u8>, unix_millis: u64) {
    thousandths(out, unix_millis);
}

impl Second {
    #[cold]
    fn at(unix: u64) -> Second {
        // The last second of year 9999: the forms have four digits for the year.
        let bounded = unix.min(253_402_300_799);
        let (year, month, day) = date(bounded / 86_400);
        let of_day = bounded % 86_400;
        let clock = [pair(of_day / 3600), pair(of_day / 60 % 60), pair(of_day % 60)];
        let [hour, minute, second] = clock;
        let mut year_digits = Vec::with_capacity(4);
        decimal(&mut year_digits, year);

        let mut clf = *b"00/Jan/0000:00:00:00 +0000";
        clf[..2].copy_from_slice(&pair(day));
        clf[3..6].copy_from_slice(MONTHS[usize::try_from(month - 1).unwrap_or(0)]);
        clf[7..11].copy_from_slice(&year_digits);
        clf[12..14].copy_from_slice(&hour);
        clf[15..17].copy_from_slice(&minute);
        clf[18..20].copy_from_slice(&second);

        let mut iso = *b"0000-00-00T00:00:00";
        iso[..4].copy_from_slice(&year_digits);
        iso[5..7].copy_from_slice(&pair(month));
        iso[8..10].copy_from_slice(&pair(day));
        iso[11..13].copy_from_slice(&hour);
        iso[14..16].copy_from_slice(&minute);
        iso[17..19].copy_from_slice(&second);
        Second { unix, clf, iso }
    }
}

/// The Gregorian date of a day counted from 1970-01-01.
///
/// Counted from 0000-03-01, leap days come last in their year, and a year's months follow a fixed
/// pattern of lengths: 153 days in every five months.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let cycle = days / DAYS_IN_400_YEARS;
    let day = days % DAYS_IN_400_YEARS;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 400 * cycle + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(unix_millis: u64) -> (String, String) {
        let mut times = Times::new();
        let (mut clf, mut iso) = (Vec::new(), Vec::new());
        times.clf(&mut clf, unix_millis);
        times.iso(&mut iso, unix_millis);
        let text = |bytes| String::from_utf8(bytes).expect("ASCII");
        (text(clf), text(iso))
    }

    #[test]
    fn known_moments() {
        let check = |unix_millis: u64, clf: &str, iso: &str| {
            assert_eq!(both(unix_millis), (clf.to_owned(), iso.to_owned()));
        };
        check(0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z");
        check(971_186_136_007, "10/Oct/2000:13:55:36 +0000", "2000-10-10T13:55:36.007Z");
        check(951_782_400_999, "29/Feb/2000:00:00:00 +0000", "2000-02-29T00:00:00.999Z");
        check(1_709_251_199_000, "29/Feb/2024:23:59:59 +0000", "2024-02-29T23:59:59.000Z");
        check(4_107_542_399_000, "28/Feb/2100:23:59:59 +0000", "2100-02-28T23:59:59.000Z");
        check(4_107_542_400_000, "01/Mar/2100:00:00:00 +0000", "2100-03-01T00:00:00.000Z");
        assert_eq!(both(u64::MAX).0, "31/Dec/9999:23:59:59 +0000");
    }

    #[test]
    fn days_follow_one_another() {
        let is_leap = |year: u64| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        let length = |year: u64, month: u64| match month {
            2 if is_leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut expected = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(date(days), expected);
            let (year, month, day) = expected;
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == length(year, month) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }

    #[test]
    fn kept_seconds_do_not_mix() {
        let mut times = Times::new();
        for unix_millis in [5_000, 4_999, 5_001, 7_000, 5_000, 0, 1_000] {
            let mut out = Vec::new();
            times.iso(&mut out, unix_millis);
            assert_eq!(String::from_utf8(out).expect("ASCII"), both(unix_millis).1);
        }
    }
}
