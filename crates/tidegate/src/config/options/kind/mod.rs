//! The types an option can have: how a value is read, what is said about it, its JSON schema.
//!
//! Here are those made of others and of names; [`quantity`] has numbers with units and bounds, [`text`]
//! texts with a meaning of their own, secrets among them.

mod quantity;
mod text;

use std::path::Path;

use serde_json::{Value as Json, json};

pub(crate) use quantity::{
    Count, DAY, GB, HOUR, KB, MB, MILLISECOND, MINUTE, Percent, SECOND, Size, TB, Time, count,
    percent, size, time,
};
pub(crate) use text::{
    Fault, FoundSecret, Parsed, SecretText, Written, parsed_text, reason, template,
};

use super::super::diagnostic::{Diagnostic, Diagnostics, code};
use super::super::environment::{Environment, Missing};
use super::super::node::{self, Node, Value};
use super::super::reader::{Located, Reading};
use super::super::suggest;

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
        let mut reading = Reading::new(Diagnostics::default(), &Empty);
        // Values of the table point into a text of their own.
        reading.diagnostics.sources.add(Path::new("default"), toml.into());
        let value = node::parse_value(0, toml).ok();
        let value = value.and_then(|node| self.read(&node, &mut reading));
        value.expect("defaults are read by a test of the option table")
    }
}

/// No variables: the option table depends on nothing outside.
struct Empty;

impl Environment for Empty {
    fn variable(&self, _name: &str) -> Result<String, Missing> {
        Err(Missing::NotSet)
    }
}
/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<bool> {
        if let Value::Boolean(boolean) = node.value {
            Some(boolean)
        } else {
            reading.wrong_type(node, "a boolean");
            None
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
