//! What differs between two rule sets, in groups small enough to read.

use std::collections::{BTreeMap, BTreeSet};

use super::super::exclusion::{Line, contributors, message};
use super::super::subject::Subject;
use super::super::trial::{Decision, Outcome, Place};

/// Groups that are told apart; the rest is one of its own.
const GROUPS_MAX: usize = 10_000;
/// Examples of a group, and of lines that cannot be read.
const EXAMPLES_MAX: usize = 3;

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Requests that were run.
    pub(super) requests: u64,
    /// Those of them that no rule of either side looks at.
    pub(super) unseen: u64,
    /// Lines that cannot be read, and the first of them with what is wrong.
    pub(super) unreadable: u64,
    pub(super) complaints: Vec<(String, String)>,
    pub(super) groups: BTreeMap<Kind, Group>,
    /// Exclusions by the place they are for.
    pub(super) exclusions: BTreeMap<Place, BTreeSet<Line>>,
}

/// A verdict that differs.
pub(super) struct Change<'a> {
    pub(super) before: Decision,
    pub(super) after: Decision,
    pub(super) subject: &'a Subject,
    /// What the rules say that stop the request, or did.
    pub(super) traced: Option<&'a Outcome>,
}

/// What the requests of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) before: String,
    pub(super) after: String,
    /// The rules behind it; none for what a limit stops, or for the rest.
    pub(super) rules: BTreeSet<u64>,
}

/// Requests whose verdicts differ in the same way.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) count: u64,
    /// What the rules say, by id.
    pub(super) messages: BTreeMap<u64, String>,
    /// Some of the requests: id, method and URL.
    pub(super) examples: BTreeSet<(String, String)>,
}

impl Changes {
    /// Whether any verdict differs.
    pub(super) fn differs(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Requests whose verdicts differ.
    pub(super) fn total(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum()
    }

    pub(super) fn count(&mut self, is_seen: bool) {
        self.requests += 1;
        self.unseen += u64::from(!is_seen);
    }

    pub(super) fn unreadable(&mut self, place: String, complaint: String) {
        self.unreadable += 1;
        self.complaints.push((place, complaint));
        self.complaints.sort();
        self.complaints.truncate(EXAMPLES_MAX);
    }

    pub(super) fn add(&mut self, change: &Change<'_>) {
        let rules = change.traced.map_or(Vec::new(), contributors);
        let messages: BTreeMap<u64, String> =
            rules.iter().map(|rule| (rule.rule.id, message(rule))).collect();
        let kind = Kind {
            before: change.before.words(),
            after: change.after.words(),
            rules: messages.keys().copied().collect(),
        };
        let example = (change.subject.id.clone(), change.subject.title());
        let examples = BTreeSet::from([example]);
        self.group(kind, Group { count: 1, messages, examples });
    }

    fn group(&mut self, mut kind: Kind, group: Group) {
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&kind) {
            kind.rules.clear();
        }
        let known = self.groups.entry(kind).or_default();
        known.count += group.count;
        known.messages.extend(group.messages);
        known.examples.extend(group.examples);
        while known.examples.len() > EXAMPLES_MAX {
            known.examples.pop_last();
        }
    }

    /// Exclusions have let a request of a place pass.
    pub(super) fn mended(&mut self, place: Place, lines: &[Line]) {
        self.exclusions.entry(place).or_default().extend(lines.iter().cloned());
    }

    /// Takes over what another thread has found.
    pub(super) fn join(&mut self, other: Changes) {
        self.requests += other.requests;
        self.unseen += other.unseen;
        self.unreadable += other.unreadable;
        self.complaints.extend(other.complaints);
        self.complaints.sort();
        self.complaints.truncate(EXAMPLES_MAX);
        for (kind, group) in other.groups {
            self.group(kind, group);
        }
        for (place, lines) in other.exclusions {
            self.exclusions.entry(place).or_default().extend(lines);
        }
    }
}
