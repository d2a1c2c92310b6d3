//! Numbers and tables as a person reads them.

use std::fmt::Write as _;
use std::time::Duration;

/// A duration with two or three digits that matter: `850 µs`, `1.2 ms`, `34 s`, `2 h 5 min`.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration < Duration::from_millis(1) => format!("{} µs", duration.as_micros()),
        0 if duration < Duration::from_millis(10) => {
            format!("{:.1} ms", duration.as_secs_f64() * 1e3)
        }
        0 => format!("{} ms", duration.as_millis()),
        1..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A number in groups of three digits: `92,114`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.char_indices() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many in so long, by the second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "for people; a rate is neither negative nor beyond 53 bits"
)]
pub(super) fn rate(number: u64, within: Duration) -> String {
    let seconds = within.as_secs_f64();
    if number == 0 || seconds <= 0.0 {
        return "0".into();
    }
    match number as f64 / seconds {
        rate if rate < 0.095 => format!("{rate:.3}"),
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate => count(rate.round() as u64),
    }
}

/// A share in percent: `0 %`, `0.02 %`, `3.4 %`, `92 %`.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn share(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    if part == 0 {
        "0 %".into()
    } else if percent < 0.095 {
        format!("{percent:.2} %")
    } else if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Whole percent, rounded down.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

/// Rows in aligned columns: the first to the left, the others to the right.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    /// A table with these headings; the first `left` columns are text.
    pub(super) fn new<const N: usize>(left: usize, headings: [&str; N]) -> Table {
        Table { rows: vec![headings.map(str::to_owned).to_vec()], left }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether there is nothing below the headings.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// Writes the table, and an empty line before it.
    pub(super) fn write(&self, out: &mut String) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        out.push('\n');
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                // Writing to a string cannot fail.
                let _ = match column {
                    0 => write!(line, "{cell:<width$}"),
                    _ if column < self.left => write!(line, "  {cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_digits_that_matter() {
        let check = |micros, expected: &str| {
            assert_eq!(span(Duration::from_micros(micros)), expected);
        };
        check(0, "0 µs");
        check(999, "999 µs");
        check(1_234, "1.2 ms");
        check(34_900, "34 ms");
        check(1_250_000, "1.2 s");
        check(59_000_000, "59 s");
        check(60_000_000, "1 min");
        check(7_500_000_000, "2 h 5 min");
        check(90_000_000_000, "1 d 1 h");
    }

    #[test]
    fn numbers_are_grouped() {
        let check = |number, expected: &str| assert_eq!(count(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(92_114, "92,114");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn rates_and_shares_keep_small_ones_visible() {
        let check = |number, seconds, expected: &str| {
            assert_eq!(rate(number, Duration::from_secs(seconds)), expected);
        };
        check(0, 10, "0");
        check(5, 0, "0");
        check(1, 60, "0.017");
        check(3, 10, "0.3");
        check(99, 10, "9.9");
        check(123_456, 10, "12,346");
        assert_eq!(share(0, 0), "0 %");
        assert_eq!(share(1, 100_000), "0.00 %");
        assert_eq!(share(3, 10_000), "0.03 %");
        assert_eq!(share(34, 1_000), "3.4 %");
        assert_eq!(share(92, 100), "92 %");
        assert_eq!(percent(1, 0), 0);
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(2, ["a", "kind", "used"]);
        table.row(vec!["long name".into(), "x".into(), "7".into()]);
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(out, "\na          kind  used\nlong name  x        7\n");
        assert!(!table.is_empty());
    }
}
