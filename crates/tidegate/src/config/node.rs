//! The tree of a configuration file: values that know where they stand.
//!
//! It is TOML with spans and nothing else. What the keys mean is the option table's business; that
//! texts may name environment variables is the reader's.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Diagnostics, code};
use super::source::Span;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where.
    pub(crate) span: Span,
    /// What.
    pub(crate) value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A string, as written but for TOML's escapes.
    Text(String),
    /// A whole number; `None` if it does not fit 64 bits.
    Integer(Option<i64>),
    /// A number with a fraction or exponent; no option wants one.
    Float,
    /// `true` or `false`.
    Boolean(bool),
    /// A date or time; no option wants one.
    Datetime,
    /// A list.
    Array(Vec<Node>),
    /// A table, whether written under a header or in braces.
    Table(Table),
}

impl Value {
    /// What it is, with its article.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "a number",
            Value::Float => "a number with a fraction",
            Value::Boolean(_) => "a boolean",
            Value::Datetime => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Keys and values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The entries; keys are unique.
    pub(crate) entries: Vec<Entry>,
}

/// One key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) key_span: Span,
    /// The value.
    pub(crate) node: Node,
}

impl Table {
    /// The entry of a key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// Parses one file, reporting every syntax error and keeping what could be understood.
pub(crate) fn parse(file: u32, text: &str, diagnostics: &mut Diagnostics) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(SYNTAX_ERRORS_MAX) {
        let range = error.span().unwrap_or(0..0);
        let (message, hint) = polish(error.message(), text, &range);
        diagnostics
            .list
            .push(Diagnostic::new(&code::SYNTAX, Span::new(file, &range), message).hint_if(hint));
    }
    convert_table(file, table.get_ref())
}

/// Parses a single value, for the defaults and examples of the option table.
pub(crate) fn parse_value(file: u32, text: &str) -> Result<Node, String> {
    DeValue::parse(text).map(|value| convert(file, &value)).map_err(|error| error.message().into())
}

/// One slip can make a parser stumble over the rest of the file.
const SYNTAX_ERRORS_MAX: usize = 10;

/// The parser's message in this program's words, and what to do about the commonest slips.
fn polish(message: &str, text: &str, range: &Range<usize>) -> (String, Option<String>) {
    let found = text.get(range.clone()).unwrap_or_default();
    let before = text.get(..range.start).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let rest = text.get(range.start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let say = |message: &str, hint: &str| (message.to_owned(), Some(hint.to_owned()));
    if message.contains("duplicate key") {
        say(
            &format!("`{found}` is set twice in this section"),
            "each key is set once; a further list entry needs a `[[..]]` header of its own",
        )
    } else if message.starts_with("invalid basic string, expected `\"`") {
        say("this string is not closed on its line", "close it with `\"`")
    } else if message.contains("escape") {
        say(message.trim(), "write `\\\\` for a backslash, or put the string in single quotes")
    } else if rest.starts_with(':') && !line.contains('=') {
        say("expected `=` between key and value", "TOML writes `key = \"value\"`")
    } else if message.contains("string values must be quoted") || message.contains("missing value")
    {
        say(message.trim(), "strings stand in quotes: `host = \"example.org\"`")
    } else {
        (message.trim().into(), None)
    }
}

fn convert_table(file: u32, table: &DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: Span::new(file, &key.span()),
            node: convert(file, value),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span);
    Table { entries }
}

fn convert(file: u32, value: &Spanned<DeValue<'_>>) -> Node {
    let converted = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Float(_) => Value::Float,
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(list) => Value::Array(list.iter().map(|item| convert(file, item)).collect()),
        DeValue::Table(table) => Value::Table(convert_table(file, table)),
    };
    Node { span: Span::new(file, &value.span()), value: converted }
}
