//! Texts that stand for durations, sizes and shares, and how these are written back.
//!
//! A number without a unit is refused where a duration is wanted: too many incidents began with
//! seconds read as milliseconds.

use std::fmt::Write as _;
use std::time::Duration;

/// Units of durations, the largest first.
const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Units of sizes, the largest first. `KB` is 1024 bytes, as everywhere in servers' configurations;
/// `KiB` says the same.
const SIZE_UNITS: [(&str, u64); 8] = [
    ("TB", 1 << 40),
    ("TIB", 1 << 40),
    ("GB", 1 << 30),
    ("GIB", 1 << 30),
    ("MB", 1 << 20),
    ("MIB", 1 << 20),
    ("KB", 1 << 10),
    ("KIB", 1 << 10),
];

/// Why a text is not a quantity. The words finish the sentence "expected ..".
pub(crate) type Complaint = String;

/// Reads `500ms`, `5s`, `2m`, `1h`, `1d`, and sums such as `1m30s`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, Complaint> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("it is empty".into());
    }
    let mut milliseconds: u64 = 0;
    let mut largest_left = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(format!("`{text}` does not begin with a number"));
        }
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let (unit, after) = after.split_at(letters);
        let Some((_, factor)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(match unit {
                "" if after.starts_with('.') => "fractions are written in a smaller unit".into(),
                "" => format!("`{text}` has no unit"),
                _ => format!("`{unit}` is not a unit of time"),
            });
        };
        if *factor >= largest_left {
            return Err("units go from large to small, each once".into());
        }
        largest_left = *factor;
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
        match part.and_then(|part| milliseconds.checked_add(part)) {
            Some(sum) => milliseconds = sum,
            None => return Err(format!("`{text}` is too large")),
        }
        rest = after;
    }
    Ok(Duration::from_millis(milliseconds))
}

/// Writes a duration in its largest whole units: `90s` is `1m30s`.
pub(crate) fn show_duration(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // Seconds up to a minute and a half read better whole: `75s`, not `1m15s`.
    if (1_000..=90_000).contains(&left) && left % 1_000 == 0 && left != 60_000 {
        return format!("{}s", left / 1_000);
    }
    let mut text = String::new();
    for (unit, factor) in DURATION_UNITS {
        if left >= factor {
            let _ = write!(text, "{}{unit}", left / factor);
            left %= factor;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// Reads `512`, `512B`, `16KB`, `10MB`, `1GB`, in any case, with an optional space.
pub(crate) fn parse_size(text: &str) -> Result<u64, Complaint> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim_start().to_ascii_uppercase();
    if number.is_empty() {
        return Err(format!("`{text}` does not begin with a number"));
    }
    let factor = match unit.as_str() {
        "" | "B" => 1,
        "K" | "M" | "G" | "T" => {
            SIZE_UNITS.iter().find(|(name, _)| name[..1] == unit).map_or(1, |(_, factor)| *factor)
        }
        _ => match SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => *factor,
            None if unit.starts_with('.') => {
                return Err("fractions are written in a smaller unit".into());
            }
            None => return Err(format!("`{}` is not a unit of size", &trimmed[digits..].trim())),
        },
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// Writes a size in its largest whole unit.
pub(crate) fn show_size(bytes: u64) -> String {
    SIZE_UNITS
        .iter()
        .filter(|(name, _)| name.len() == 2)
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .map_or_else(|| format!("{bytes}B"), |(unit, factor)| format!("{}{unit}", bytes / factor))
}

/// Reads `20%`.
pub(crate) fn parse_percent(text: &str) -> Result<u8, Complaint> {
    let Some(number) = text.trim().strip_suffix('%') else {
        return Err(format!("`{text}` has no `%`"));
    };
    match number.trim_end().parse::<u8>() {
        Ok(percent) => Ok(percent),
        Err(_) => Err(format!("`{text}` is not a whole number of percent")),
    }
}

/// Writes a number with thousands set apart, as the messages show limits.
pub(crate) fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let found = parse_duration(text).map(|duration| duration.as_millis());
            match expected {
                Ok(milliseconds) => assert_eq!(found, Ok(u128::from(milliseconds)), "{text}"),
                Err(part) => {
                    let complaint = found.expect_err(text);
                    assert!(complaint.contains(part), "{text}: {complaint}");
                }
            }
        };
        check("5s", Ok(5_000));
        check("500ms", Ok(500));
        check("2m", Ok(120_000));
        check("1h", Ok(3_600_000));
        check("1m30s", Ok(90_000));
        check(" 7d ", Ok(604_800_000));
        check("0s", Ok(0));
        check("5", Err("no unit"));
        check("s", Err("begin with a number"));
        check("", Err("empty"));
        check("1.5s", Err("smaller unit"));
        check("5 s", Err("no unit"));
        check("5sec", Err("`sec` is not a unit"));
        check("5S", Err("`S` is not a unit"));
        check("30s1m", Err("large to small"));
        check("1s1s", Err("each once"));
        check("99999999999999999999s", Err("too large"));
        check("-5s", Err("begin with a number"));
    }

    #[test]
    fn sizes() {
        let check = |text: &str, expected: Result<u64, &str>| match expected {
            Ok(bytes) => assert_eq!(parse_size(text), Ok(bytes), "{text}"),
            Err(part) => {
                let complaint = parse_size(text).expect_err(text);
                assert!(complaint.contains(part), "{text}: {complaint}");
            }
        };
        check("512", Ok(512));
        check("16KB", Ok(16_384));
        check("16 kb", Ok(16_384));
        check("16KiB", Ok(16_384));
        check("16k", Ok(16_384));
        check("10MB", Ok(10 << 20));
        check("2G", Ok(2 << 30));
        check("1TB", Ok(1 << 40));
        check("KB", Err("begin with a number"));
        check("1.5MB", Err("smaller unit"));
        check("10XB", Err("`XB` is not a unit"));
        check("99999999999TB", Err("too large"));
    }

    #[test]
    fn percents() {
        assert_eq!(parse_percent("20%"), Ok(20));
        assert_eq!(parse_percent("100 %"), Ok(100));
        assert_eq!(parse_percent("101%"), Ok(101));
        assert!(parse_percent("300%").is_err());
        assert!(parse_percent("20").is_err());
        assert!(parse_percent("1.5%").is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        for milliseconds in
            [0, 1, 500, 5_000, 60_000, 75_000, 90_000, 91_000, 3_600_000, 90_061_001]
        {
            let duration = Duration::from_millis(milliseconds);
            let text = show_duration(duration);
            assert_eq!(parse_duration(&text), Ok(duration), "{text}");
        }
        for bytes in [0, 1, 1023, 1024, 16_384, 1_500, 10 << 20, 1 << 40] {
            let text = show_size(bytes);
            assert_eq!(parse_size(&text), Ok(bytes), "{text}");
        }
        assert_eq!(show_duration(Duration::from_secs(75)), "75s");
        assert_eq!(show_duration(Duration::from_mins(1)), "1m");
        assert_eq!(show_duration(Duration::from_secs(100)), "1m40s");
        assert_eq!(show_size(16_384), "16KB");
        assert_eq!(show_count(1_000_000), "1_000_000");
        assert_eq!(show_count(9_999), "9999");
    }
}
