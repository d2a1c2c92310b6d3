//! Diagnostics as text for people, or as JSON for machines.
//!
//! The text is the same on every run: no wall clock, no terminal width. Colours are the caller's
//! choice, and only for a terminal.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::options;
use super::source::{Source, Span};

/// More are counted, not shown: nobody reads the hundred-and-first before mending the first.
const SHOWN_MAX: usize = 100;

/// Longer lines are cut around the place that matters.
const COLUMNS_MAX: usize = 160;

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// For terminals.
    On,
    /// For files, pipes and `NO_COLOR`.
    Off,
}

#[derive(Clone, Copy)]
enum Ink {
    Error,
    Warning,
    Frame,
    Strong,
}

impl Colour {
    fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            _ if self == Colour::Off || text.is_empty() => return text.into(),
            Ink::Error => "1;31",
            Ink::Warning => "1;33",
            Ink::Frame => "34",
            Ink::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// All diagnostics for a person.
pub(crate) fn text(diagnostics: &Diagnostics, colour: Colour) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics.list.iter().take(SHOWN_MAX) {
        one(&mut out, diagnostic, diagnostics, colour);
        out.push('\n');
    }
    if let Some(more @ 1..) = diagnostics.list.len().checked_sub(SHOWN_MAX) {
        let _ = writeln!(out, "and {more} more\n");
    }
    out
}

fn one(out: &mut String, diagnostic: &Diagnostic, all: &Diagnostics, colour: Colour) {
    let (ink, word) = match diagnostic.code.severity {
        Severity::Error => (Ink::Error, "error"),
        Severity::Warning => (Ink::Warning, "warning"),
        Severity::Note => (Ink::Strong, "note"),
    };
    let head = format!("{word}[{} {}]", diagnostic.code.number, diagnostic.code.name);
    let message = colour.paint(Ink::Strong, &diagnostic.message);
    let _ = writeln!(out, "{}: {message}", colour.paint(ink, &head));

    let line_of = |span: Span| all.sources.of(span).position(span.start).line;
    let gutter = diagnostic
        .place
        .iter()
        .chain(diagnostic.others.iter().map(|(span, _)| span))
        .map(|span| line_of(*span).to_string().len())
        .max()
        .unwrap_or(1);
    if let Some(place) = diagnostic.place {
        snippet(out, all, place, &diagnostic.label, ("-->", '^', ink), gutter, colour);
    }
    for (place, label) in &diagnostic.others {
        snippet(out, all, *place, label, (":::", '-', Ink::Frame), gutter, colour);
    }
    if let Some(hint) = &diagnostic.hint {
        let bar = colour.paint(Ink::Frame, "=");
        let _ = writeln!(out, "{:gutter$} {bar} {} {hint}", "", colour.paint(Ink::Strong, "help:"));
    }
}

fn snippet(
    out: &mut String,
    all: &Diagnostics,
    span: Span,
    label: &str,
    (arrow, mark, ink): (&str, char, Ink),
    gutter: usize,
    colour: Colour,
) {
    let source = all.sources.of(span);
    let start = source.position(span.start);
    let end = source.position(span.end.max(span.start));
    let text = &conceal(source, span.file, start.line, &all.secrets);
    let columns = text.chars().count();
    let marked = if end.line == start.line {
        end.column.saturating_sub(start.column)
    } else {
        columns.saturating_sub(start.column - 1)
    };
    let (text, column) = cut(text, start.column);
    let bar = colour.paint(Ink::Frame, "|");
    let arrow = colour.paint(Ink::Frame, arrow);
    let place = format!("{}:{}:{}", source.path.display(), start.line, start.column);
    let number = colour.paint(Ink::Frame, &format!("{:>gutter$}", start.line));
    let _ = writeln!(out, "{:gutter$}{arrow} {place}", "");
    let _ = writeln!(out, "{:gutter$} {bar}", "");
    let _ = writeln!(out, "{number} {bar} {text}");
    let marks: String =
        std::iter::repeat_n(mark, marked.clamp(1, COLUMNS_MAX - column.min(COLUMNS_MAX - 1)))
            .collect();
    let beside = if label.is_empty() { marks } else { format!("{marks} {label}") };
    let _ = writeln!(
        out,
        "{:gutter$} {bar} {:width$}{}",
        "",
        "",
        colour.paint(ink, &beside),
        width = column - 1
    );
}

/// A line with its secrets blotted out: those that were read as secrets, and what looks like one
/// where nothing could be read.
fn conceal(source: &Source, file: u32, line: usize, secrets: &[Span]) -> String {
    let text = source.line(line);
    let start = source.start(line);
    let (key, _) = text.split_once('=').unwrap_or((text, ""));
    let is_secret = |key: &str| options::SECRET_KEYS.contains(&key);
    let unread = is_secret(key.trim()) && !text.contains("${") && !text.contains("file:");
    let user = text.find("://").and_then(|scheme| {
        let end = text[scheme..].find('@')?;
        Some(scheme + 3..scheme + end)
    });
    let blot = |(at, c): (usize, char)| {
        let offset = start + at;
        let read = secrets.iter().any(|secret| {
            secret.file == file && (secret.start as usize..secret.end as usize).contains(&offset)
        });
        let hidden = read
            || unread && at > key.len()
            || user.as_ref().is_some_and(|user| user.contains(&at));
        if hidden && !matches!(c, '"' | '\'' | ' ') { '*' } else { c }
    };
    text.char_indices().map(blot).collect()
}

/// The part of a line that is shown, with tabs as single spaces so that marks stand below what they
/// mark, and the column of the place in it.
fn cut(line: &str, column: usize) -> (String, usize) {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let skip = if column > COLUMNS_MAX / 2 && line.chars().count() > COLUMNS_MAX {
        column - COLUMNS_MAX / 4
    } else {
        0
    };
    let shown: String = line.chars().skip(skip).take(COLUMNS_MAX).map(clean).collect();
    match skip {
        0 => (shown.trim_end().to_owned(), column),
        _ => (format!("..{}", shown.trim_end()), column - skip + 2),
    }
}

/// How many there are: `2 errors, 1 warning`.
pub(crate) fn counts(diagnostics: &Diagnostics) -> String {
    let errors = diagnostics.count(Severity::Error);
    let warnings = diagnostics.count(Severity::Warning);
    match (errors, warnings) {
        (0, 0) => "no warnings".into(),
        (0, _) => plural(warnings, "warning"),
        (_, 0) => plural(errors, "error"),
        _ => format!("{}, {}", plural(errors, "error"), plural(warnings, "warning")),
    }
}

/// A number of things: `1 site`, `2 sites`.
pub(crate) fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// All diagnostics for a machine: one object each, in the same order.
pub(crate) fn json(diagnostics: &Diagnostics) -> Value {
    let place = |span: Span, label: &str| {
        let source = diagnostics.sources.of(span);
        let start = source.position(span.start);
        let end = source.position(span.end);
        json!({
            "file": source.path.display().to_string(),
            "line": start.line,
            "column": start.column,
            "end_line": end.line,
            "end_column": end.column,
            "label": label,
        })
    };
    let list = diagnostics.list.iter().map(|diagnostic| {
        json!({
            "severity": match diagnostic.code.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            },
            "code": diagnostic.code.number,
            "name": diagnostic.code.name,
            "message": diagnostic.message,
            "place": diagnostic.place.map(|span| place(span, &diagnostic.label)),
            "others": diagnostic.others.iter().map(|(span, label)| place(*span, label)).collect::<Vec<_>>(),
            "hint": diagnostic.hint,
        })
    });
    Value::Array(list.collect())
}
