//! A tree to what the automata are built from (`regex-syntax`'s `Hir`), and whether that is exact.
//!
//! What no automaton can do is approximated from above: a look-around is taken for granted, a
//! back-reference is any text. Every match of the pattern is then a match of the `Hir` from the same
//! start, so the approximation still says what a content needs, and where a search may begin.
//!
//! One difference to PCRE remains where a repeated part can match nothing, as in `(a?|b)*`: PCRE ends
//! the loop with the first repetition that consumes nothing, the automata go on. Whether a content
//! matches is the same; where the match ends, or what the group holds, may not be.
//!
//! Most atomic groups and possessive quantifiers in rules only save a backtracker work and change
//! nothing about what matches. [`Lowering::gives_nothing_back`] proves that for the usual forms, so
//! that they cost no backtracking at all.

use regex_syntax::hir::{self, Class, ClassBytes, ClassBytesRange, Hir, Look};

use super::{
    ByteSet,
    syntax::{Assert, Condition, Greed, Irregular, LINE_ENDINGS, Node, Repeat},
};

/// A tree lowered.
pub(super) struct Lowered {
    /// Exact, or an approximation from above when `irregular` says why.
    pub(super) hir: Hir,
    /// The first thing that no automaton can do, and where it stands.
    pub(super) irregular: Option<(usize, &'static str)>,
}

/// Lowers a whole pattern.
pub(super) fn lower(node: &Node) -> Lowered {
    let mut lowering = Lowering { irregular: None };
    let hir = lowering.node(node, &Follow::End);
    Lowered { hir, irregular: lowering.irregular }
}

/// What comes behind a part of a pattern.
enum Follow<'a> {
    /// The match ends there.
    End,
    /// Perhaps the same part again.
    Unknown,
    /// These, then more.
    Then(&'a [Node], &'a Follow<'a>),
}

struct Lowering {
    irregular: Option<(usize, &'static str)>,
}

impl Lowering {
    fn node(&mut self, node: &Node, follow: &Follow<'_>) -> Hir {
        match node {
            Node::Empty => Hir::empty(),
            Node::Fail => Hir::fail(),
            Node::Byte(set) => byte(*set),
            Node::Assert(assert) => self.assert(*assert, follow),
            Node::Concat(nodes) => {
                let part = |(at, node)| self.node(node, &Follow::Then(&nodes[at + 1..], follow));
                Hir::concat(nodes.iter().enumerate().map(part).collect())
            }
            Node::Alternate(nodes) => {
                Hir::alternation(nodes.iter().map(|node| self.node(node, follow)).collect())
            }
            Node::Repeat(repeat) => self.repeat(repeat, follow),
            Node::Capture(group, node) => Hir::capture(hir::Capture {
                index: *group,
                name: None,
                sub: Box::new(self.node(node, follow)),
            }),
            Node::Irregular(irregular, offset) => self.irregular(irregular, *offset, follow),
        }
    }

    fn repeat(&mut self, repeat: &Repeat, follow: &Follow<'_>) -> Hir {
        let once = repeat.max.is_some_and(|max| max <= 1);
        let sub = self.node(&repeat.node, if once { follow } else { &Follow::Unknown });
        Hir::repetition(hir::Repetition {
            min: repeat.min,
            max: repeat.max,
            greedy: repeat.greed == Greed::Most,
            sub: Box::new(sub),
        })
    }

    fn assert(&mut self, assert: Assert, follow: &Follow<'_>) -> Hir {
        Hir::look(match assert {
            Assert::Start => Look::Start,
            Assert::End => Look::End,
            Assert::LineEnd => Look::EndLF,
            Assert::WordBoundary => Look::WordAscii,
            Assert::NotWordBoundary => Look::WordAsciiNegate,
            Assert::WordStart => Look::WordStartAscii,
            Assert::WordEnd => Look::WordEndAscii,
            Assert::LineStart => {
                // The automaton's also holds behind a line feed that ends the content; that is the
                // same as PCRE's when a byte has to follow.
                if !follow.consumes() {
                    self.note(0, "^ under (?m) with nothing behind it");
                }
                Look::StartLF
            }
            Assert::EndOrLastLineFeed => {
                self.note(0, r"\Z");
                Look::EndLF
            }
            Assert::SearchStart => {
                self.note(0, r"\G");
                return Hir::empty();
            }
        })
    }

    fn irregular(&mut self, irregular: &Irregular, offset: usize, follow: &Follow<'_>) -> Hir {
        let exact = match irregular {
            Irregular::Atomic(node) => Self::gives_nothing_back(node, follow),
            // It differs from an ordinary group only when \r\n is taken apart for what follows.
            Irregular::LineEnding => {
                let (first, nullable) = follow.first();
                matches!(follow, Follow::End) || !nullable && !first.contains(b'\n')
            }
            _ => false,
        };
        if !exact {
            self.note(offset, irregular.name());
        }
        match irregular {
            Irregular::Atomic(node) => self.node(node, follow),
            Irregular::LineEnding => {
                Hir::alternation(vec![Hir::literal(*b"\r\n"), byte(LINE_ENDINGS)])
            }
            Irregular::BackReference { .. } | Irregular::Call(_) => anything(),
            Irregular::Conditional { condition: Condition::Define, .. }
            | Irregular::Around { .. }
            | Irregular::Keep => Hir::empty(),
            Irregular::Conditional { yes, no, .. } => {
                Hir::alternation(vec![self.node(yes, follow), self.node(no, follow)])
            }
        }
    }

    /// Whether an atomic group matches just what the ordinary group does, captures included.
    ///
    /// - When the group can match in one way only at any place, there is nothing to give back.
    /// - `X*+` (any quantifier of a byte set X) followed by R: if R needs a byte and cannot begin
    ///   with one of X, giving back a byte never helps. Nor does it if R can be empty anywhere, as the
    ///   longest run, which the ordinary quantifier tries first, then leads to a match.
    /// - `X*+` without a maximum followed by R, where each text of R that begins with a byte of X is a
    ///   text of R without it too: whatever R takes from the run of X, the run could have taken
    ///   itself, ending at the same place. And the ordinary quantifier tries that longest run first,
    ///   so both find the same match. R has this form when it is repetitions `Y*` and then something
    ///   that cannot begin with a byte of X, or nothing: taking the byte from whichever `Y*` has it
    ///   leaves a text of the same form.
    fn gives_nothing_back(node: &Node, follow: &Follow<'_>) -> bool {
        if only_one_way(node) {
            return true;
        }
        let Node::Repeat(repeat) = node else { return false };
        let Node::Byte(run) = repeat.node else { return false };
        repeat.greed == Greed::Most && follow.takes_nothing_from(run, repeat.max.is_none())
    }

    fn note(&mut self, offset: usize, what: &'static str) {
        self.irregular.get_or_insert((offset, what));
    }
}

impl Follow<'_> {
    /// Whether at least one byte must come.
    fn consumes(&self) -> bool {
        match self {
            Self::End | Self::Unknown => false,
            Self::Then(nodes, rest) => {
                nodes.iter().any(|node| node.length().0 > 0) || rest.consumes()
            }
        }
    }

    /// The bytes it can begin with, and whether it can be empty.
    fn first(&self) -> (ByteSet, bool) {
        match self {
            Self::End => (ByteSet::NONE, true),
            Self::Unknown => (ByteSet::ALL, true),
            Self::Then(nodes, rest) => {
                let mut set = ByteSet::NONE;
                for node in *nodes {
                    let (more, nullable) = node.first();
                    set |= more;
                    if !nullable {
                        return (set, false);
                    }
                }
                let (more, nullable) = rest.first();
                (set.or(more), nullable)
            }
        }
    }

    /// Whether a run of `run` before it loses nothing by keeping all it can. `unbounded` is whether
    /// the run has no maximum.
    fn takes_nothing_from(&self, run: ByteSet, unbounded: bool) -> bool {
        // Once a place was asked for, moving it matters: from then on nothing may begin with the run.
        let mut movable = unbounded;
        let mut empty_anywhere = true;
        let mut follow = self;
        loop {
            let Self::Then(nodes, rest) = follow else {
                return matches!(follow, Self::End) && empty_anywhere;
            };
            for node in *nodes {
                let (first, nullable) = node.first();
                match node {
                    Node::Repeat(repeat)
                        if movable
                            && repeat.min == 0
                            && repeat.max.is_none()
                            && matches!(repeat.node, Node::Byte(_)) => {}
                    _ if first.meets(&run) => return false,
                    _ if !nullable => return true,
                    Node::Repeat(repeat) if repeat.min == 0 => movable = false,
                    _ => (movable, empty_anywhere) = (false, false),
                }
            }
            follow = rest;
        }
    }
}

/// Whether a part can match in at most one way, wherever it is tried.
fn only_one_way(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Fail | Node::Byte(_) | Node::Assert(_) => true,
        Node::Concat(nodes) => nodes.iter().all(only_one_way),
        Node::Capture(_, node) => only_one_way(node),
        Node::Repeat(repeat) => repeat.max == Some(repeat.min) && only_one_way(&repeat.node),
        Node::Alternate(nodes) => {
            let mut seen = ByteSet::NONE;
            nodes.iter().all(|node| {
                let (first, nullable) = node.first();
                let apart = !nullable && !first.meets(&seen);
                seen |= first;
                apart && only_one_way(node)
            })
        }
        Node::Irregular(..) => false,
    }
}

/// One byte of a set.
fn byte(set: ByteSet) -> Hir {
    let ranges = set.ranges();
    match ranges[..] {
        [] => Hir::fail(),
        [(low, high)] if low == high => Hir::literal([low]),
        _ => {
            let ranges = ranges.iter().map(|&(low, high)| ClassBytesRange::new(low, high));
            Hir::class(Class::Bytes(ClassBytes::new(ranges)))
        }
    }
}

/// Any text.
fn anything() -> Hir {
    Hir::repetition(hir::Repetition {
        min: 0,
        max: None,
        greedy: true,
        sub: Box::new(byte(ByteSet::ALL)),
    })
}
