//! HTTP dates (RFC 9110, section 5.6.7), to and from seconds since 1970.

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const DAY_SECONDS: u64 = 86_400;
/// The last second that has a year of four digits.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Writes `Sun, 06 Nov 1994 08:49:37 GMT`. A time beyond the year 9999 is written as its end.
pub fn imf_fixdate(unix_seconds: u64) -> [u8; 29] {
    let seconds = unix_seconds.min(SECONDS_MAX);
    let days = seconds / DAY_SECONDS;
    let of_day = seconds % DAY_SECONDS;
    let (year, month, day) = civil(days);
    let mut out = *b"Sun, 00 Jan 0000 00:00:00 GMT";
    out[..3].copy_from_slice(day_name(days));
    two_digits(&mut out[5..7], day);
    out[8..11].copy_from_slice(month_name(month));
    two_digits(&mut out[12..14], year / 100);
    two_digits(&mut out[14..16], year % 100);
    two_digits(&mut out[17..19], of_day / 3600);
    two_digits(&mut out[20..22], of_day / 60 % 60);
    two_digits(&mut out[23..25], of_day % 60);
    out
}

fn day_name(days_since_1970: u64) -> &'static [u8; 3] {
    // 1 January 1970 was a Thursday.
    DAYS[((days_since_1970 + 4) % 7) as usize]
}

#[expect(clippy::cast_possible_truncation, reason = "months are 1 to 12")]
fn month_name(month: u64) -> &'static [u8; 3] {
    MONTHS[(month - 1) as usize]
}

fn two_digits(out: &mut [u8], number: u64) {
    out[0] = b'0' + (number / 10 % 10) as u8;
    out[1] = b'0' + (number % 10) as u8;
}

/// Reads any of the three forms: IMF-fixdate, RFC 850's and asctime's, in any case (RFC 9111,
/// section 4.2). `None` for anything else, for dates that do not exist and for those before 1970.
///
/// `now` settles the two-digit year of RFC 850: one that looks more than 50 years ahead is past.
/// The name of the day is not checked against the date; it adds nothing.
pub fn parse(value: &[u8], now: u64) -> Option<u64> {
    let (day_name, rest) = value.split_first_chunk::<3>()?;
    match rest {
        [b',', b' ', rest @ ..] => {
            is_day(*day_name).then_some(())?;
            imf(rest)
        }
        [b' ', rest @ ..] => {
            is_day(*day_name).then_some(())?;
            asctime(rest)
        }
        _ => rfc850(value, now),
    }
}

fn is_day(name: [u8; 3]) -> bool {
    DAYS.iter().any(|day| day.eq_ignore_ascii_case(&name))
}

/// The time before the zone, which is always the same.
fn before_gmt(time: &[u8]) -> Option<&[u8]> {
    let (time, zone) = time.split_last_chunk::<4>()?;
    zone.eq_ignore_ascii_case(b" GMT").then_some(time)
}

/// `06 Nov 1994 08:49:37 GMT`
fn imf(rest: &[u8]) -> Option<u64> {
    let [d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ', time @ ..] = rest else {
        return None;
    };
    let time = before_gmt(time)?;
    let year = number(&[*y1, *y2, *y3, *y4])?;
    unix(year, month([*m1, *m2, *m3])?, number(&[*d1, *d2])?, time)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(value: &[u8], now: u64) -> Option<u64> {
    const LONG: [&[u8]; 7] =
        [b"Sunday", b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday"];
    let comma = memchr::memchr(b',', value)?;
    LONG.iter().any(|day| day.eq_ignore_ascii_case(&value[..comma])).then_some(())?;
    let [b',', b' ', d1, d2, b'-', m1, m2, m3, b'-', y1, y2, b' ', time @ ..] = &value[comma..]
    else {
        return None;
    };
    let time = before_gmt(time)?;
    let (this_year, ..) = civil(now.min(SECONDS_MAX) / DAY_SECONDS);
    let mut year = this_year / 100 * 100 + number(&[*y1, *y2])?;
    if year > this_year + 50 {
        year -= 100;
    }
    unix(year, month([*m1, *m2, *m3])?, number(&[*d1, *d2])?, time)
}

/// `Nov  6 08:49:37 1994`
fn asctime(rest: &[u8]) -> Option<u64> {
    let [m1, m2, m3, b' ', d1, d2, b' ', time @ .., b' ', y1, y2, y3, y4] = rest else {
        return None;
    };
    let day = if *d1 == b' ' { number(&[*d2])? } else { number(&[*d1, *d2])? };
    unix(number(&[*y1, *y2, *y3, *y4])?, month([*m1, *m2, *m3])?, day, time)
}

fn month(name: [u8; 3]) -> Option<u64> {
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(&name)).map(|index| index as u64 + 1)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .all(u8::is_ascii_digit)
        .then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn unix(year: u64, month: u64, day: u64, time: &[u8]) -> Option<u64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = time else { return None };
    let (hour, minute) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
    let second = number(&[*s1, *s2])?;
    // The grammar has a leap second; it is the last one of its minute to us.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    if year < 1970 || day == 0 || day > days_in(year, month) {
        return None;
    }
    let days = days_since_1970(year, month, day);
    Some(days * DAY_SECONDS + hour * 3600 + minute * 60 + second.min(59))
}

fn days_in(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days in the 400 years after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;

/// The civil date of a day. Years begin in March here, so that the leap day is their last.
fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + EPOCH_DAYS;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// The day of a civil date; the reverse of [`civil`].
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * ERA_DAYS + of_era - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000;

    #[test]
    fn the_example_of_the_rfc_in_its_three_forms() {
        let seconds = 784_111_777;
        assert_eq!(&imf_fixdate(seconds), b"Sun, 06 Nov 1994 08:49:37 GMT");
        for form in [
            &b"Sun, 06 Nov 1994 08:49:37 GMT"[..],
            b"Sunday, 06-Nov-94 08:49:37 GMT",
            b"Sun Nov  6 08:49:37 1994",
            b"SUN, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 06 nOV 1994 08:49:37 gmt",
            b"sundaY, 06-NOV-94 08:49:37 GMT",
            b"sun nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(form, NOW), Some(seconds), "{}", String::from_utf8_lossy(form));
        }
    }

    #[test]
    fn each_day_until_2400_comes_back() {
        let mut weekday = 4;
        for day in 0..157_060 {
            let seconds = day * DAY_SECONDS + day % DAY_SECONDS;
            let text = imf_fixdate(seconds);
            assert_eq!(parse(&text, NOW), Some(seconds), "{}", String::from_utf8_lossy(&text));
            assert_eq!(&text[..3], DAYS[weekday]);
            weekday = (weekday + 1) % 7;
        }
    }

    #[test]
    fn the_ends_of_time() {
        assert_eq!(&imf_fixdate(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(&imf_fixdate(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(&imf_fixdate(SECONDS_MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(imf_fixdate(u64::MAX), imf_fixdate(SECONDS_MAX));
    }

    #[test]
    fn two_digit_years_are_never_far_ahead() {
        let check = |text: &[u8], year: &[u8]| {
            let seconds = parse(text, NOW).unwrap();
            assert_eq!(&imf_fixdate(seconds)[12..16], year);
        };
        check(b"Friday, 01-Jan-76 00:00:00 GMT", b"2076");
        check(b"Saturday, 01-Jan-77 00:00:00 GMT", b"1977");
        check(b"Saturday, 01-Jan-00 00:00:00 GMT", b"2000");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            &b""[..],
            b"0",
            b"Sun",
            b"Sun, 06 Nov 1994 08:49:37",
            b"Sun, 06 Nov 1994 08:49:37 UTC",
            b"Sun, 6 Nov 1994 08:49:37 GMT",
            b"Sux, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 31 Nov 1994 08:49:37 GMT",
            b"Sun, 00 Nov 1994 08:49:37 GMT",
            b"Sun, 29 Feb 1900 08:49:37 GMT",
            b"Tue, 29 Feb 2023 08:49:37 GMT",
            b"Sun, 06 Nov 1969 08:49:37 GMT",
            b"Sun, 06 Nov 1994 24:00:00 GMT",
            b"Sun, 06 Nov 1994 23:60:00 GMT",
            b"Sun, 06 Nov 1994 23:59:61 GMT",
            b"Sun, 06 Nov +994 08:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:37 GMT ",
            b"Sunday, 06-Nov-1994 08:49:37 GMT",
            b"Sunday 06-Nov-94 08:49:37 GMT",
            b"Sun Nov  6 08:49:37 1994 GMT",
            b"Sun Nov 6 08:49:37 1994",
        ] {
            assert_eq!(parse(text, NOW), None, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_leap_second_is_read_as_the_one_before_it() {
        assert_eq!(
            parse(b"Sat, 31 Dec 2016 23:59:60 GMT", NOW),
            parse(b"Sat, 31 Dec 2016 23:59:59 GMT", NOW)
        );
    }
}
