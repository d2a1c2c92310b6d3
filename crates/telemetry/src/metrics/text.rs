//! The text formats of Prometheus (0.0.4) and `OpenMetrics` (1.0).
//!
//! Both are lines of `name{label="value"} number`; `OpenMetrics` also names units, drops `_total` from
//! a counter's family name and ends with `# EOF`.

use std::fmt::Write as _;

use super::histogram::{BOUNDS, HistogramTotals};

/// Which text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl TextFormat {
    /// The format that a scraper's `Accept` asks for.
    pub fn accepted(accept: &[u8]) -> TextFormat {
        const OPEN_METRICS: &[u8] = b"application/openmetrics-text";
        if accept.windows(OPEN_METRICS.len()).any(|part| part.eq_ignore_ascii_case(OPEN_METRICS)) {
            TextFormat::OpenMetrics
        } else {
            TextFormat::Prometheus
        }
    }

    /// The format's `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            TextFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What kind of numbers a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// Writes the samples of one family.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    pub(super) out: &'a mut String,
    pub(super) name: &'static str,
    pub(super) labels: &'static [&'static str],
}

impl Samples<'_> {
    /// A sample; `values` follow the family's labels.
    pub(super) fn put(&mut self, values: &[&str], number: u64) {
        self.head("", values, None);
        // Formatting into a String cannot fail.
        let _ = writeln!(self.out, " {number}");
    }

    /// A sample that is left out at zero, for label combinations that mostly do not occur.
    pub(super) fn put_nonzero(&mut self, values: &[&str], number: u64) {
        if number != 0 {
            self.put(values, number);
        }
    }

    /// A gauge; a sum that was read in the middle of a step counts as zero.
    pub(super) fn put_gauge(&mut self, values: &[&str], number: i64) {
        self.put(values, u64::try_from(number).unwrap_or(0));
    }

    /// A sample in seconds.
    pub(super) fn put_nanos(&mut self, values: &[&str], nanos: u64) {
        self.head("", values, None);
        self.seconds(nanos);
    }

    /// A histogram of durations; left out while nothing was counted.
    pub(super) fn put_histogram(&mut self, values: &[&str], totals: &HistogramTotals) {
        let count = totals.count();
        if count == 0 {
            return;
        }
        let cumulative = totals.cumulative();
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        for (bound, count) in bounds.zip(cumulative.into_iter().chain([count])) {
            self.head("_bucket", values, Some(bound));
            let _ = writeln!(self.out, " {count}");
        }
        self.head("_sum", values, None);
        self.seconds(u64::try_from(totals.sum().as_nanos()).unwrap_or(u64::MAX));
        self.head("_count", values, None);
        let _ = writeln!(self.out, " {count}");
    }

    fn seconds(&mut self, nanos: u64) {
        let _ = writeln!(self.out, " {}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    }

    fn head(&mut self, suffix: &str, values: &[&str], le: Option<&str>) {
        debug_assert_eq!(values.len(), self.labels.len(), "labels of {}", self.name);
        self.out.push_str(self.name);
        self.out.push_str(suffix);
        let labels = self.labels.iter().copied().zip(values.iter().copied());
        let mut before = '{';
        for (label, value) in labels.chain(le.map(|le| ("le", le))) {
            self.out.push(before);
            self.out.push_str(label);
            self.out.push_str("=\"");
            escape(self.out, value);
            self.out.push('"');
            before = ',';
        }
        if before == ',' {
            self.out.push('}');
        }
    }
}

/// Label values escape the backslash, the quote and the line feed; all else is UTF-8 as it is.
fn escape(out: &mut String, value: &str) {
    for char in value.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            _ => out.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let check = |value: &str, expected: &str| {
            let mut out = String::new();
            let mut samples = Samples { out: &mut out, name: "n", labels: &["l"] };
            samples.put(&[value], 1);
            assert_eq!(out, expected);
        };
        check("plain", "n{l=\"plain\"} 1\n");
        check("a\"b\\c\nd", "n{l=\"a\\\"b\\\\c\\nd\"} 1\n");
        check("é} 2\r", "n{l=\"é} 2\r\"} 1\n");
    }

    #[test]
    fn numbers_take_their_form() {
        let mut out = String::new();
        let mut samples = Samples { out: &mut out, name: "n", labels: &[] };
        samples.put_nanos(&[], 1_000_000_001);
        samples.put_gauge(&[], -1);
        samples.put_nonzero(&[], 0);
        assert_eq!(out, "n 1.000000001\nn 0\n");
    }

    #[test]
    fn scrapers_get_what_they_ask_for() {
        let check = |accept: &str, expected| {
            assert_eq!(TextFormat::accepted(accept.as_bytes()), expected, "{accept}");
        };
        check("", TextFormat::Prometheus);
        check("text/plain;version=0.0.4", TextFormat::Prometheus);
        check(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3",
            TextFormat::OpenMetrics,
        );
    }
}
