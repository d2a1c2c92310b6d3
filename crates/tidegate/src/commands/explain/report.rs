//! The form of an explanation: a topic, what is said of it, and where that stands in the files.

use std::fmt::Write as _;

use crate::config::reader::{Origins, Owner};
use crate::config::source::{Sources, Span};

/// Columns of topics.
const TOPIC: usize = 10;
/// Columns of what is said, where a place stands behind it.
const SAID: usize = 54;

/// An explanation while it is written.
pub(super) struct Report<'a> {
    out: String,
    sources: &'a Sources,
    origins: &'a Origins,
}

impl<'a> Report<'a> {
    pub(super) fn new(sources: &'a Sources, origins: &'a Origins) -> Self {
        Report { out: String::new(), sources, origins }
    }

    /// A first line, without topic.
    pub(super) fn title(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}\n");
    }

    /// What is said first of a topic, and where its owner stands.
    pub(super) fn topic(&mut self, topic: &str, said: &str, owner: Option<Owner>) {
        let place = owner.map(|owner| match self.origins.owner(owner) {
            Some(span) => self.sources.file_line(span),
            None => "not written, but there".into(),
        });
        self.line(topic, said, place.as_deref());
    }

    /// A further line.
    pub(super) fn more(&mut self, said: &str) {
        self.line("", said, None);
    }

    /// A further line about something that stands somewhere.
    pub(super) fn more_at(&mut self, said: &str, span: Option<Span>) {
        let place = span.map(|span| self.sources.file_line(span));
        self.line("", said, place.as_deref());
    }

    /// A setting, and whether it was written or is the default.
    pub(super) fn setting(&mut self, owner: Owner, key: &str, value: &str) {
        let place = match self.origins.of(owner, key) {
            Some(span) => self.sources.file_line(span),
            None => "default".into(),
        };
        self.line("", &format!("{key:<28}{value}"), Some(&place));
    }

    /// Where a value of somebody's stands.
    pub(super) fn place_of(&self, owner: Owner, keys: &[&str]) -> Option<Span> {
        keys.iter().find_map(|key| self.origins.of(owner, key))
    }

    /// A value as it may be shown: not if the files do not hold it, because a variable brought it in.
    pub(super) fn shown<'v>(&self, owner: Owner, keys: &[&'static str], value: &'v str) -> &'v str {
        let mut spans = keys.iter().flat_map(|key| self.origins.all(owner, key));
        if spans.any(|span| self.sources.text(span).contains(value)) {
            value
        } else {
            "(not shown)"
        }
    }

    /// Parts topics.
    pub(super) fn gap(&mut self) {
        self.out.push('\n');
    }

    /// The whole of it.
    pub(super) fn finish(self) -> String {
        self.out
    }

    fn line(&mut self, topic: &str, said: &str, place: Option<&str>) {
        let line = match place {
            Some(place) => format!("{topic:<TOPIC$}{said:<SAID$}  {place}"),
            None => format!("{topic:<TOPIC$}{said}"),
        };
        let _ = writeln!(self.out, "{}", line.trim_end());
    }
}
