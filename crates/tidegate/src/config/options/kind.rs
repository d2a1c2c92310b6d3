//! The types an option can have: how a value is read, what is said about it, its JSON schema.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::super::diagnostic::{Code, Diagnostic, code};
use super::super::environment::{self, Missing, Placeholders, Secret};
use super::super::node::{self, Node, Value};
use super::super::reader::{Located, Reading, Text};
use super::super::source::Span;
use super::super::suggest;
use super::super::value;

/// A type of values.
pub(crate) trait Kind: Sync {
    /// What reading gives.
    type Value;

    /// Reads a value; reports what is wrong with it.
    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value>;

    /// The type in words, with its range.
    fn describe(&self) -> String;

    /// The values it knows, if they are few, and what they mean.
    fn choices(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Its JSON schema.
    fn schema(&self) -> Json;

    /// Reads a default of the option table.
    fn read_default(&self, toml: &str) -> Self::Value {
        let mut reading = Reading::new(super::super::diagnostic::Diagnostics::default(), &Empty);
        // Values of the table point into a text of their own.
        reading.diagnostics.sources.add(std::path::Path::new("default"), toml.into());
        let value = node::parse_value(0, toml).ok();
        let value = value.and_then(|node| self.read(&node, &mut reading));
        value.expect("defaults are read by a test of the option table")
    }
}

/// No variables: the option table depends on nothing outside.
struct Empty;

impl environment::Environment for Empty {
    fn variable(&self, _name: &str) -> Result<String, Missing> {
        Err(Missing::NotSet)
    }
}

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
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

impl Kind for Time {
    type Value = Duration;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Duration> {
        if let Value::Integer(Some(number)) = node.value {
            let message = format!("expected {}, found a number without a unit", self.describe());
            reading.report(
                Diagnostic::new(&code::WRONG_TYPE, node.span, message)
                    .hint(format!("write `\"{number}s\"` for seconds, `\"{number}ms\"` for milliseconds")),
            );
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
                Diagnostic::new(&code::OUT_OF_RANGE, text.span, "a time of zero would end everything at once")
                    .hint(format!("the least is `{least}`; no option means \"for ever\" by zero")),
            );
            return None;
        }
        within(duration, [self.min, self.max], value::show_duration, &self.describe(), text.span, reading)
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
                match text.value.trim().parse::<i64>() {
                    Ok(number) => Some(number),
                    Err(_) => {
                        let message =
                            format!("expected {}, found {}", self.describe(), text.shown());
                        reading.report(Diagnostic::new(&code::WRONG_TYPE, node.span, message));
                        return None;
                    }
                }
            }
            _ => {
                reading.wrong_type(node, &self.describe());
                return None;
            }
        };
        let show = |number: N| value::show_count(number.try_into().unwrap_or(u64::MAX));
        match number.and_then(|number| N::try_from(number).ok()) {
            Some(number) => within(number, [self.min, self.max], show, &self.describe(), node.span, reading),
            None => {
                let found = reading.diagnostics.sources.text(node.span);
                let message = format!("expected {}, found {found}", self.describe());
                reading.report(Diagnostic::new(&code::OUT_OF_RANGE, node.span, message));
                None
            }
        }
    }

    fn describe(&self) -> String {
        let show = |number: N| value::show_count(number.try_into().unwrap_or(u64::MAX));
        format!("a whole number from {} to {}", show(self.min), show(self.max))
    }

    fn schema(&self) -> Json {
        let number = |number: N| number.try_into().unwrap_or(u64::MAX);
        json!({ "type": "integer", "minimum": number(self.min), "maximum": number(self.max) })
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
        within(percent, [self.min, self.max], |percent| format!("{percent}%"), &self.describe(), text.span, reading)
    }

    fn describe(&self) -> String {
        format!("a share from {}% to {}%", self.min, self.max)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^[0-9]{1,3} ?%$" })
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<bool> {
        match node.value {
            Value::Boolean(boolean) => Some(boolean),
            _ => {
                reading.wrong_type(node, "a boolean");
                None
            }
        }
    }

    fn describe(&self) -> String {
        "`true` or `false`".into()
    }

    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }
}

/// One of a few names.
pub(crate) struct Choice<T: 'static>(pub(crate) &'static [(&'static str, T, &'static str)]);

impl<T: Clone + Sync> Kind for Choice<T> {
    type Value = T;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<T> {
        let Value::Text(_) = &node.value else {
            reading.wrong_type(node, &self.describe());
            return None;
        };
        let text = reading.text(node)?;
        let names = || self.0.iter().map(|(name, ..)| *name);
        let found = self.0.iter().find(|(name, ..)| *name == text.value);
        if found.is_none() {
            let message = format!("expected {}, found {}", self.describe(), text.shown());
            let guess = if text.is_from_outside() {
                None
            } else {
                suggest::did_you_mean(&text.value, names())
            };
            let diagnostic = Diagnostic::new(&code::UNKNOWN_CHOICE, text.span, message);
            reading.report(diagnostic.label(guess.unwrap_or_default()));
        }
        found.map(|(_, value, _)| value.clone())
    }

    fn describe(&self) -> String {
        suggest::one_of(self.0.iter().map(|(name, ..)| *name))
    }

    fn choices(&self) -> Vec<(&'static str, &'static str)> {
        self.0.iter().map(|(name, _, doc)| (*name, *doc)).collect()
    }

    fn schema(&self) -> Json {
        json!({ "enum": self.0.iter().map(|(name, ..)| *name).collect::<Vec<_>>() })
    }
}

/// A value of another type, or a word that turns it off.
pub(crate) struct Or<K> {
    /// The word.
    pub(crate) word: &'static str,
    /// What the word means.
    pub(crate) meaning: &'static str,
    /// The other type.
    pub(crate) kind: K,
}

/// A limit, or `none`.
pub(crate) const fn or_none<K>(meaning: &'static str, kind: K) -> Or<K> {
    Or { word: "none", meaning, kind }
}

/// Something, or `off`.
pub(crate) const fn or_off<K>(meaning: &'static str, kind: K) -> Or<K> {
    Or { word: "off", meaning, kind }
}

impl<K: Kind> Kind for Or<K> {
    type Value = Option<K::Value>;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Option<K::Value>> {
        let other = match &node.value {
            Value::Text(text) if text == self.word => return Some(None),
            Value::Text(text) => {
                matches!(text.as_str(), "none" | "off" | "never" | "unlimited" | "infinite" | "")
            }
            Value::Boolean(false) | Value::Integer(Some(0 | -1)) => true,
            _ => false,
        };
        if other {
            let message = format!("expected {}", self.describe());
            reading.report(
                Diagnostic::new(&code::WRONG_TYPE, node.span, message)
                    .hint(format!("to turn it off, write `\"{}\"`", self.word)),
            );
            return None;
        }
        self.kind.read(node, reading).map(Some)
    }

    fn describe(&self) -> String {
        format!("{}, or `{}`", self.kind.describe(), self.word)
    }

    fn choices(&self) -> Vec<(&'static str, &'static str)> {
        let mut choices = self.kind.choices();
        choices.push((self.word, self.meaning));
        choices
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "const": self.word }, self.kind.schema()] })
    }
}

/// What is wrong with a text, where in it, and what to do.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: &'static Code,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) hint: Option<String>,
    pub(crate) part: Option<std::ops::Range<usize>>,
}

impl Fault {
    /// A fault of the whole text.
    pub(crate) fn new(code: &'static Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), label: String::new(), hint: None, part: None }
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// Says something beside the place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Fault {
        self.label = label.into();
        self
    }

    /// Points at a part of the text.
    pub(crate) fn at(mut self, part: std::ops::Range<usize>) -> Fault {
        self.part = Some(part);
        self
    }

    /// As a diagnostic about this text. What came from outside may be a secret in the wrong place, so
    /// nothing that was said about its content is repeated.
    pub(crate) fn about(self, text: &Text) -> Diagnostic {
        if text.is_from_outside() {
            let doc = self.code.doc.trim().trim_end_matches('.');
            let message = format!("{} cannot be used: {}", text.shown(), uncapitalised(doc));
            return Diagnostic::new(self.code, text.span, message);
        }
        let place = self.part.map_or(text.span, |part| text.part(&part));
        Diagnostic::new(self.code, place, self.message).label(self.label).hint_if(self.hint)
    }
}

fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// A text with a meaning of its own, read by a function.
pub(crate) struct Parsed<T: 'static> {
    /// What it is, in words.
    pub(crate) what: &'static str,
    /// Whether it has placeholders.
    pub(crate) placeholders: Placeholders,
    /// Reads it.
    pub(crate) parse: fn(&Text) -> Result<T, Fault>,
}

/// A text read by a function.
pub(crate) const fn parsed_text<T>(
    what: &'static str,
    parse: fn(&Text) -> Result<T, Fault>,
) -> Parsed<T> {
    Parsed { what, placeholders: Placeholders::None, parse }
}

/// A text with placeholders, read by a function.
pub(crate) const fn template<T>(
    what: &'static str,
    parse: fn(&Text) -> Result<T, Fault>,
) -> Parsed<T> {
    Parsed { what, placeholders: Placeholders::Later, parse }
}

impl<T> Kind for Parsed<T> {
    type Value = T;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<T> {
        if !matches!(node.value, Value::Text(_)) {
            reading.wrong_type(node, self.what);
            return None;
        }
        let text = reading.text_with(node, self.placeholders)?;
        match (self.parse)(&text) {
            Ok(value) => Some(value),
            Err(fault) => {
                reading.report(fault.about(&text));
                None
            }
        }
    }

    fn describe(&self) -> String {
        self.what.into()
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}

/// A list of values; a single value stands for a list of one.
pub(crate) struct List<K> {
    /// What they are together.
    pub(crate) what: &'static str,
    /// What each is.
    pub(crate) kind: K,
    /// How many there may be.
    pub(crate) max: usize,
}

/// A list of at most 1000 values.
pub(crate) const fn list<K>(what: &'static str, kind: K) -> List<K> {
    List { what, kind, max: 1000 }
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<Located<K::Value>>;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value> {
        let items = match &node.value {
            Value::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if items.len() > self.max {
            let message = format!("at most {} values may be listed here", self.max);
            reading.report(Diagnostic::new(&code::OUT_OF_RANGE, node.span, message));
            return None;
        }
        // What is good among them is kept, so that later checks have something to look at.
        let values = items.iter().filter_map(|item| {
            let value = self.kind.read(item, reading)?;
            Some(Located { value, span: Some(item.span) })
        });
        Some(values.collect())
    }

    fn describe(&self) -> String {
        self.what.into()
    }

    fn choices(&self) -> Vec<(&'static str, &'static str)> {
        self.kind.choices()
    }

    fn schema(&self) -> Json {
        let item = self.kind.schema();
        json!({ "anyOf": [item, { "type": "array", "items": item, "maxItems": self.max }] })
    }
}

/// A secret: a text, a variable, or `file:` and a path.
pub(crate) struct SecretText {
    /// The least length in bytes.
    pub(crate) bytes_min: usize,
}

/// A secret and whether the file itself holds it.
#[derive(Clone, Debug)]
pub(crate) struct FoundSecret {
    pub(crate) secret: Secret,
    pub(crate) written: Written,
}

/// Where a secret stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// In the configuration file.
    Here,
    /// In the environment or a file of its own.
    Elsewhere,
}

impl Kind for SecretText {
    type Value = FoundSecret;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<FoundSecret> {
        /// No secret is longer; a longer file is the wrong one.
        const BYTES_MAX: usize = 4096;
        let text = reading.text(node)?;
        let from_file = text.value.strip_prefix("file:");
        if from_file.is_none() && !text.is_from_outside() {
            reading.diagnostics.secrets.push(text.span);
        }
        let secret = match from_file {
            None => text.value.clone(),
            Some(path) => match std::fs::read_to_string(path) {
                Ok(content) => content.trim_end_matches(['\n', '\r']).to_owned(),
                Err(error) => {
                    let message = format!("the secret's file cannot be read: {}", reason(&error));
                    reading.report(Diagnostic::new(&code::SECRET_FILE, text.span, message));
                    return None;
                }
            },
        };
        let complaint = if secret.is_empty() {
            Some("the secret is empty".to_owned())
        } else if secret.len() < self.bytes_min {
            Some(format!("the secret is shorter than {} bytes", self.bytes_min))
        } else if secret.len() > BYTES_MAX {
            Some(format!("the secret is longer than {BYTES_MAX} bytes"))
        } else if secret.bytes().any(|byte| !(0x21..=0x7e).contains(&byte)) {
            Some("the secret holds spaces, controls or characters beyond ASCII".to_owned())
        } else {
            None
        };
        if let Some(message) = complaint {
            reading.report(
                Diagnostic::new(&code::INVALID_VALUE, text.span, message)
                    .hint("make one with `openssl rand -hex 32`"),
            );
            return None;
        }
        let elsewhere = from_file.is_some() || text.is_from_outside();
        let written = if elsewhere { Written::Elsewhere } else { Written::Here };
        Some(FoundSecret { secret: Secret::new(secret), written })
    }

    fn describe(&self) -> String {
        format!(
            "a secret of at least {} characters: `${{NAME}}` or `file:/path`",
            self.bytes_min
        )
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}

/// An error of the system without the number that nobody looks up.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        std::io::ErrorKind::IsADirectory => "it is a directory".into(),
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        _ => error.to_string(),
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
