//! What went on inside a rule that matched, for a person who wants to know why.
//!
//! Nothing here is kept unless somebody asks for it ([`Trace::All`]): a gate that serves does not.

use super::contents::ContentId;
use super::evaluate::Run;
use super::state::State;
use super::values::{Found, TxValue};
use super::verdict::VALUE_BYTES_MAX;
use crate::program::Rule;
use crate::transformation::Transformation;

/// Which matches are remembered, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Trace {
    /// Those of rules that log or decide.
    #[default]
    Logged,
    /// All, `nolog` or not, with what led to each ([`Traced`]).
    All,
}

/// What led to a match, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Traced {
    /// The values that matched, in the order of their matching.
    pub hits: Vec<Hit>,
    /// What the rule wrote to `TX`, in the order of writing; captured groups are left out.
    pub changes: Vec<Change>,
}

/// A value that a rule, or a link of its chain, matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The link of the chain; the starter is 0.
    pub link: usize,
    /// The variable with its selector: `ARGS:q`.
    pub variable: Vec<u8>,
    /// The value as the variable holds it, at most [`VALUE_BYTES_MAX`] bytes of it.
    pub value: Vec<u8>,
    /// What the transformations made of it, at most as many bytes.
    pub transformed: Vec<u8>,
    /// The transformations in their order, those that changed nothing among them.
    pub transformations: Vec<&'static str>,
}

/// A variable of `TX` that a rule wrote to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name in lower case, without `tx.`.
    pub name: Vec<u8>,
    /// What it held; nothing if it was not set.
    pub before: Option<Vec<u8>>,
    /// What it holds now; nothing if it was removed.
    pub after: Option<Vec<u8>>,
}

/// A trace while a rule runs.
#[derive(Default)]
pub(super) struct Tracing {
    /// Values after their transformations, and what they were before.
    origins: Vec<(Found, ContentId)>,
    traced: Traced,
}

impl Tracing {
    /// Forgets what belongs to the rule before.
    pub(super) fn clear(&mut self) {
        self.origins.clear();
        self.traced.hits.clear();
        self.traced.changes.clear();
    }

    /// Remembers what a value was before it was transformed.
    pub(super) fn origin(&mut self, transformed: Found, origin: ContentId) {
        self.origins.push((transformed, origin));
    }

    /// The trace of a rule that has run.
    pub(super) fn take(&mut self) -> Traced {
        std::mem::take(&mut self.traced)
    }
}

impl State {
    /// What is written of the trace, if there is one.
    pub(super) fn tracing(&mut self) -> Option<&mut Tracing> {
        (self.trace == Trace::All).then_some(&mut self.tracing)
    }
}

impl Run<'_> {
    /// Takes note of a match.
    pub(super) fn trace_hit(&mut self, rule: &Rule, found: Found) {
        let same = |other: &Found| {
            (other.variable, other.name, other.value) == (found.variable, found.name, found.value)
        };
        let origins = &self.state.tracing.origins;
        let origin = origins.iter().rev().find(|(transformed, _)| same(transformed));
        let origin = origin.map_or(found.value, |(_, origin)| *origin);
        let start = |content: ContentId| {
            let bytes = self.state.contents.bytes(content);
            bytes[..bytes.len().min(VALUE_BYTES_MAX)].to_vec()
        };
        let mut variable = Vec::new();
        self.write_full_name(found, &mut variable);
        let chain = self.program.chain(rule.chain);
        let hit = Hit {
            link: self.link_of(rule),
            variable,
            value: start(origin),
            transformed: start(found.value),
            transformations: chain.iter().map(|step: &Transformation| step.name()).collect(),
        };
        self.state.tracing.traced.hits.push(hit);
    }

    /// Which link of its chain a rule is.
    fn link_of(&self, rule: &Rule) -> usize {
        let rules = self.program.phase(self.phase).iter();
        let links = rules.filter(|starter| starter.number == rule.number);
        let mut links = links.flat_map(|starter| &starter.links);
        links.position(|link| std::ptr::eq(link, rule)).map_or(0, |at| at + 1)
    }

    /// Takes note of what was written to a variable of `TX`.
    pub(super) fn trace_change(&mut self, name: Vec<u8>, before: TxValue, after: TxValue) {
        let text = |value: TxValue| {
            let mut text = Vec::new();
            self.state.tx.write(value, &mut text);
            (value != TxValue::Absent).then_some(text)
        };
        let change = Change { name, before: text(before), after: text(after) };
        self.state.tracing.traced.changes.push(change);
    }
}
