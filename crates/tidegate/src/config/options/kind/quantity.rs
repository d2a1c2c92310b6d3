//! Numbers with units and bounds.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::super::super::diagnostic::{Diagnostic, code};
use super::super::super::node::{Node, Value};
use super::super::super::reader::{Reading, Text};
use super::super::super::source::Span;
use super::super::super::value;
use super::Kind;

/// A length of time within bounds.
pub(crate) struct Time {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

/// A duration from `min` to `max` milliseconds.
pub(crate) const fn time(min: Duration, max: Duration) -> Time {
    Time { min, max }
}

/// The units that bounds are written in.
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

impl Kind for Time {
    type Value = Duration;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Duration> {
        if let Value::Integer(Some(number)) = node.value {
            let message = format!("expected {}, found a number without a unit", self.describe());
            reading.report(Diagnostic::new(&code::WRONG_TYPE, node.span, message).hint(format!(
                "write `\"{number}s\"` for seconds, `\"{number}ms\"` for milliseconds"
            )));
            return None;
        }
        let text = quantity(node, &self.describe(), reading)?;
        let duration = parsed(
            value::parse_duration(&text.value),
            &text,
            &self.describe(),
            "write it like `500ms`, `5s`, `2m`, `1h` or `1m30s`",
            reading,
        )?;
        if duration.is_zero() && !self.min.is_zero() {
            let least = value::show_duration(self.min);
            reading.report(
                Diagnostic::new(
                    &code::OUT_OF_RANGE,
                    text.span,
                    "a time of zero would end everything at once",
                )
                .hint(format!("the least is `{least}`; no option means \"for ever\" by zero")),
            );
            return None;
        }
        within(
            duration,
            [self.min, self.max],
            value::show_duration,
            &self.describe(),
            text.span,
            reading,
        )
    }

    fn describe(&self) -> String {
        format!(
            "a duration from {} to {}",
            value::show_duration(self.min),
            value::show_duration(self.max)
        )
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^([0-9]+(d|h|m|s|ms))+$|\\$\\{[A-Z_][A-Z0-9_]*\\}" })
    }
}

/// A number of bytes within bounds.
pub(crate) struct Size {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A size from `min` to `max` bytes.
pub(crate) const fn size(min: u64, max: u64) -> Size {
    Size { min, max }
}

/// The units that bounds are written in.
pub(crate) const KB: u64 = 1 << 10;
pub(crate) const MB: u64 = 1 << 20;
pub(crate) const GB: u64 = 1 << 30;
pub(crate) const TB: u64 = 1 << 40;

impl Kind for Size {
    type Value = u64;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let bytes = match &node.value {
            Value::Integer(Some(number)) if *number >= 0 => number.unsigned_abs(),
            _ => {
                let text = quantity(node, &self.describe(), reading)?;
                parsed(
                    value::parse_size(&text.value),
                    &text,
                    &self.describe(),
                    "write it like `16KB`, `10MB` or `1GB`, where 1KB is 1024 bytes",
                    reading,
                )?
            }
        };
        within(bytes, [self.min, self.max], value::show_size, &self.describe(), node.span, reading)
    }

    fn describe(&self) -> String {
        format!("a size from {} to {}", value::show_size(self.min), value::show_size(self.max))
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [
            { "type": "integer", "minimum": self.min, "maximum": self.max },
            { "type": "string", "pattern": "^[0-9]+ ?([KMGTkmgt](i?[Bb])?|B)?$|\\$\\{[A-Z_][A-Z0-9_]*\\}" },
        ] })
    }
}

/// A whole number within bounds.
pub(crate) struct Count<N> {
    pub(crate) min: N,
    pub(crate) max: N,
}

/// A number from `min` to `max`.
pub(crate) const fn count<N>(min: N, max: N) -> Count<N> {
    Count { min, max }
}

impl<N> Kind for Count<N>
where
    N: Copy + Sync + PartialOrd + TryFrom<i64> + TryInto<u64> + Display,
{
    type Value = N;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<N> {
        let number = match &node.value {
            Value::Integer(number) => *number,
            // A number may come from the environment, which only has texts.
            Value::Text(raw) if raw.contains("${") => {
                let text = reading.text(node)?;
                if let Ok(number) = text.value.trim().parse::<i64>() {
                    Some(number)
                } else {
                    let message = format!("expected {}, found {}", self.describe(), text.shown());
                    reading.report(Diagnostic::new(&code::WRONG_TYPE, node.span, message));
                    return None;
                }
            }
            _ => {
                reading.wrong_type(node, &self.describe());
                return None;
            }
        };
        let show = |number: N| value::show_count(number.try_into().unwrap_or(u64::MAX));
        if let Some(number) = number.and_then(|number| N::try_from(number).ok()) {
            within(number, [self.min, self.max], show, &self.describe(), node.span, reading)
        } else {
            let found = reading.diagnostics.sources.text(node.span);
            let message = format!("expected {}, found {found}", self.describe());
            reading.report(Diagnostic::new(&code::OUT_OF_RANGE, node.span, message));
            None
        }
    }

    fn describe(&self) -> String {
        let show = |number: N| value::show_count(number.try_into().unwrap_or(u64::MAX));
        format!("a whole number from {} to {}", show(self.min), show(self.max))
    }

    fn schema(&self) -> Json {
        let number = |number: N| number.try_into().unwrap_or(u64::MAX);
        json!({ "anyOf": [
            { "type": "integer", "minimum": number(self.min), "maximum": number(self.max) },
            { "type": "string", "pattern": "\\$\\{[A-Z_][A-Z0-9_]*\\}" },
        ] })
    }
}

/// A share within bounds, in percent.
pub(crate) struct Percent {
    pub(crate) min: u8,
    pub(crate) max: u8,
}

/// A share from `min` to `max` percent.
pub(crate) const fn percent(min: u8, max: u8) -> Percent {
    Percent { min, max }
}

impl Kind for Percent {
    type Value = u8;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u8> {
        if let Value::Integer(Some(number)) = node.value {
            reading.report(
                Diagnostic::new(
                    &code::WRONG_TYPE,
                    node.span,
                    format!("expected {}, found a number", self.describe()),
                )
                .hint(format!("write `\"{number}%\"`")),
            );
            return None;
        }
        let text = quantity(node, &self.describe(), reading)?;
        let percent = parsed(
            value::parse_percent(&text.value),
            &text,
            &self.describe(),
            "write it like `20%`",
            reading,
        )?;
        within(
            percent,
            [self.min, self.max],
            |percent| format!("{percent}%"),
            &self.describe(),
            text.span,
            reading,
        )
    }

    fn describe(&self) -> String {
        format!("a share from {}% to {}%", self.min, self.max)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^[0-9]{1,3} ?%$" })
    }
}

fn quantity(node: &Node, wanted: &str, reading: &mut Reading<'_>) -> Option<Text> {
    if matches!(node.value, Value::Text(_)) {
        return reading.text(node);
    }
    reading.wrong_type(node, wanted);
    None
}

fn parsed<T>(
    result: Result<T, value::Complaint>,
    text: &Text,
    wanted: &str,
    hint: &str,
    reading: &mut Reading<'_>,
) -> Option<T> {
    result
        .map_err(|complaint| {
            let message = if text.is_from_outside() {
                format!("expected {wanted}, found {}", text.shown())
            } else {
                format!("expected {wanted}: {complaint}")
            };
            let diagnostic = Diagnostic::new(&code::INVALID_VALUE, text.span, message);
            reading.report(diagnostic.hint(hint));
        })
        .ok()
}

/// Reports a value out of its range.
fn within<V: Copy + PartialOrd>(
    value: V,
    range: [V; 2],
    show: impl Fn(V) -> String,
    wanted: &str,
    span: Span,
    reading: &mut Reading<'_>,
) -> Option<V> {
    let [min, max] = range;
    if (min..=max).contains(&value) {
        return Some(value);
    }
    let message = format!("expected {wanted}, found {}", show(value));
    reading.report(Diagnostic::new(&code::OUT_OF_RANGE, span, message));
    None
}
