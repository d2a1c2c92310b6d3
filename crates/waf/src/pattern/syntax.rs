//! What a pattern says, as a tree: PCRE's constructs with all spelling gone.
//!
//! Flags have been applied: a letter under `(?i)` is a set of two bytes, `.` is a set, `^` and `$`
//! are the assertions they mean. What an automaton may be unable to do is kept apart as
//! [`Irregular`], with its place in the source, so that [`lower`](super::lower) can decide and say.

use super::ByteSet;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Matches the empty string.
    Empty,
    /// Never matches: `(*FAIL)`.
    Fail,
    /// One byte of a set.
    Byte(ByteSet),
    /// A place.
    Assert(Assert),
    /// One after the other.
    Concat(Vec<Node>),
    /// The first that leads to a match.
    Alternate(Vec<Node>),
    /// The same several times.
    Repeat(Box<Repeat>),
    /// A numbered group, from 1.
    Capture(u32, Box<Node>),
    /// What needs more than an automaton, or may.
    Irregular(Box<Irregular>, usize),
}

/// A quantified part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Repeat {
    pub(super) node: Node,
    pub(super) min: u32,
    /// None: without end.
    pub(super) max: Option<u32>,
    pub(super) greed: Greed,
}

/// Which number of repetitions is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    Most,
    Fewest,
}

/// A place between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assert {
    /// `\A`, `^`
    Start,
    /// `\z`, `$`
    End,
    /// `\Z`: the end, or before a line feed that ends the content.
    EndOrLastLineFeed,
    /// `^` under `(?m)`: the start, or after a line feed that does not end the content.
    LineStart,
    /// `$` under `(?m)`: the end, or before a line feed.
    LineEnd,
    /// `\b`
    WordBoundary,
    /// `\B`
    NotWordBoundary,
    /// `[[:<:]]`
    WordStart,
    /// `[[:>:]]`
    WordEnd,
    /// `\G`: where the search began.
    SearchStart,
}

/// What needs more than an automaton, or may.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Irregular {
    /// `(?>...)` and possessive quantifiers: what it matched first it never gives back.
    Atomic(Node),
    /// `\R`: any line ending, `\r\n` as one.
    LineEnding,
    /// `(?=...)`, `(?!...)`, `(?<=...)`, `(?<!...)`
    Around { direction: Direction, expects: Expects, node: Node },
    /// The text of the first of these groups that is set.
    BackReference { groups: Vec<u32>, case_insensitive: bool },
    /// `(?(condition)yes|no)`
    Conditional { condition: Condition, yes: Node, no: Node },
    /// `(?1)`: the group's pattern once more; 0 is the whole pattern.
    Call(u32),
    /// `\K`: the match begins here.
    Keep,
}

/// Which way a look-around looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Ahead,
    Behind,
}

/// Whether what a look-around describes must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    Presence,
    Absence,
}

/// What a conditional asks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// Whether one of these groups is set.
    Group(Vec<u32>),
    /// A look-around.
    Around { direction: Direction, expects: Expects, node: Node },
    /// Never: its groups are there to be called.
    Define,
}

impl Irregular {
    /// What a note calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Atomic(_) => "an atomic group or a possessive quantifier",
            Self::LineEnding => r"\R",
            Self::Around { direction: Direction::Ahead, .. } => "look-ahead",
            Self::Around { direction: Direction::Behind, .. } => "look-behind",
            Self::BackReference { .. } => "a back-reference",
            Self::Conditional { .. } => "a conditional group",
            Self::Call(_) => "a subroutine call",
            Self::Keep => r"\K",
        }
    }
}

/// Bytes of a word: `\w`.
pub(super) const WORD: ByteSet = ByteSet::range(b'a', b'z')
    .or(ByteSet::range(b'A', b'Z'))
    .or(ByteSet::range(b'0', b'9'))
    .with(b'_');

impl Node {
    /// The fewest and the most bytes it can match; `None` where there is no most, or it is not known.
    pub(super) fn length(&self) -> (usize, Option<usize>) {
        match self {
            Self::Empty | Self::Fail | Self::Assert(_) => (0, Some(0)),
            Self::Byte(_) => (1, Some(1)),
            Self::Capture(_, node) => node.length(),
            Self::Concat(nodes) => nodes.iter().fold((0, Some(0)), |(min, max), node| {
                let (low, high) = node.length();
                (low.saturating_add(min), max.zip(high).map(|(a, b)| a.saturating_add(b)))
            }),
            Self::Alternate(nodes) => widest(nodes.iter().map(Self::length)),
            Self::Repeat(repeat) => {
                let (min, max) = repeat.node.length();
                let times = match (repeat.max, max) {
                    (_, Some(0)) => Some(0),
                    (Some(times), Some(max)) => Some(max.saturating_mul(times as usize)),
                    _ => None,
                };
                (min.saturating_mul(repeat.min as usize), times)
            }
            Self::Irregular(irregular, _) => match &**irregular {
                Irregular::Atomic(node) => node.length(),
                Irregular::LineEnding => (1, Some(2)),
                Irregular::Around { .. }
                | Irregular::Keep
                | Irregular::Conditional { condition: Condition::Define, .. } => (0, Some(0)),
                Irregular::BackReference { .. } | Irregular::Call(_) => (0, None),
                Irregular::Conditional { yes, no, .. } => {
                    widest([yes.length(), no.length()].into_iter())
                }
            },
        }
    }

    /// The bytes it can begin with, and whether it can match nothing. Never too few bytes.
    pub(super) fn first(&self) -> (ByteSet, bool) {
        match self {
            Self::Empty | Self::Assert(_) => (ByteSet::NONE, true),
            Self::Fail => (ByteSet::NONE, false),
            Self::Byte(set) => (*set, false),
            Self::Capture(_, node) => node.first(),
            Self::Concat(nodes) => {
                let mut set = ByteSet::NONE;
                for node in nodes {
                    let (more, nullable) = node.first();
                    set |= more;
                    if !nullable {
                        return (set, false);
                    }
                }
                (set, true)
            }
            Self::Alternate(nodes) => nodes
                .iter()
                .map(Self::first)
                .fold((ByteSet::NONE, false), |a, b| (a.0.or(b.0), a.1 || b.1)),
            Self::Repeat(repeat) => {
                let (set, nullable) = repeat.node.first();
                (set, nullable || repeat.min == 0)
            }
            Self::Irregular(irregular, _) => match &**irregular {
                Irregular::Atomic(node) => node.first(),
                Irregular::LineEnding => (LINE_ENDINGS, false),
                Irregular::Around { .. } | Irregular::Keep => (ByteSet::NONE, true),
                Irregular::BackReference { .. } | Irregular::Call(_) => (ByteSet::ALL, true),
                Irregular::Conditional { condition: Condition::Define, .. } => {
                    (ByteSet::NONE, true)
                }
                Irregular::Conditional { yes, no, .. } => {
                    let (a, b) = (yes.first(), no.first());
                    (a.0.or(b.0), a.1 || b.1)
                }
            },
        }
    }
}

/// What `\R` and `\v` match as one byte.
pub(super) const LINE_ENDINGS: ByteSet = ByteSet::of(b"\n\x0b\x0c\r\x85");

fn widest(lengths: impl Iterator<Item = (usize, Option<usize>)>) -> (usize, Option<usize>) {
    lengths
        .reduce(|a, b| (a.0.min(b.0), a.1.zip(b.1).map(|(x, y)| x.max(y))))
        .unwrap_or((0, Some(0)))
}
