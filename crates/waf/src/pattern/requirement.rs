//! What a content must have so that a pattern can match it.

mod facts;
pub(super) mod frequency;
pub(super) mod hash;
mod needs;
mod sequence;
mod text;

use std::collections::BTreeMap;

use regex_syntax::hir::{Hir, HirKind, Look};

pub use sequence::{Edge, Place, Sequence};

use super::{ByteSet, syntax::WORD};

/// What every content that matches has: all of it together.
///
/// It is read from the pattern's structure by rules that only ever drop knowledge, so that a content
/// that matches always meets it; the reverse does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Fewest bytes.
    pub length_min: usize,
    /// Most bytes, for a pattern that must reach from the content's beginning to its end.
    pub length_max: Option<usize>,
    /// What the first byte is one of, for a pattern that must begin where the content does.
    pub first: ByteSet,
    /// What the last byte is one of, for a pattern that must end where the content does.
    pub last: ByteSet,
    /// What each byte is one of, for a pattern that must cover the content.
    pub every: ByteSet,
    /// What the clauses' sequences number.
    pub places: Vec<Place>,
    /// Ways to match, of which one is needed: all the clauses of one. Without any nothing matches.
    /// A way's most selective clauses come first, and there are few of each kind.
    pub ways: Vec<Vec<Clause>>,
}

/// Ways of which one is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Bytes of this set somewhere.
    pub class: ByteSet,
    /// How many of them; 1 when there are sequences.
    pub times: usize,
    /// Or one of these sequences. When there are none and the class is empty, nothing fulfils the
    /// clause.
    pub sequences: Vec<Sequence>,
}

impl Default for Clause {
    /// What nothing fulfils.
    fn default() -> Self {
        Self { class: ByteSet::NONE, times: 1, sequences: Vec::new() }
    }
}

impl Requirement {
    /// What every content meets.
    pub fn none() -> Self {
        Self {
            length_min: 0,
            length_max: None,
            first: ByteSet::ALL,
            last: ByteSet::ALL,
            every: ByteSet::ALL,
            places: Vec::new(),
            ways: vec![Vec::new()],
        }
    }

    /// One of these phrases somewhere, in any case: `@pm`, `@pmFromFile`, and `@contains` with one.
    /// An empty phrase is in every content.
    pub fn phrases<'a>(phrases: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut requirement = Self::none();
        let mut clause = Clause::default();
        let mut length_min = None;
        let mut numbers: BTreeMap<u8, u16> = BTreeMap::new();
        for phrase in phrases {
            length_min = Some(length_min.map_or(phrase.len(), |min: usize| min.min(phrase.len())));
            match phrase {
                [] => return Self::none(),
                [byte] => clause.class |= ByteSet::of(&[*byte]).folded(),
                _ => {
                    let number = |byte: &u8| {
                        *numbers.entry(byte.to_ascii_lowercase()).or_insert_with(|| {
                            requirement.places.push(Place::byte(ByteSet::of(&[*byte]).folded()));
                            u16::try_from(requirement.places.len() - 1).unwrap_or(u16::MAX)
                        })
                    };
                    clause.sequences.push(Sequence(phrase.iter().map(number).collect()));
                }
            }
        }
        clause.sequences.sort_unstable();
        clause.sequences.dedup();
        requirement.length_min = length_min.unwrap_or(0);
        requirement.ways = vec![vec![clause]];
        requirement
    }

    /// What a lowered pattern needs.
    pub(super) fn of(hir: &Hir) -> Self {
        let properties = hir.properties();
        let Some(length_min) = properties.minimum_len() else {
            // It matches nothing at all.
            return Self { ways: Vec::new(), ..Self::none() };
        };
        let (places, ways) = facts::ways(hir);
        let mut requirement = Self { length_min, places, ways, ..Self::none() };
        let from_start = properties.look_set_prefix().contains(Look::Start);
        let to_end = properties.look_set_suffix().contains(Look::End);
        if from_start && length_min > 0 {
            requirement.first = edge(hir, Side::Left).0;
        }
        if to_end && length_min > 0 {
            requirement.last = edge(hir, Side::Right).0;
        }
        if from_start && to_end {
            requirement.length_max = properties.maximum_len();
            requirement.every = alphabet(hir);
        }
        requirement
    }

    /// Whether a content meets it, the slow way: what [`Prefilter`](super::Prefilter) has to agree
    /// with from above.
    pub fn is_met_by(&self, content: &[u8]) -> bool {
        let bytes = ByteSet::of(content);
        content.len() >= self.length_min
            && self.length_max.is_none_or(|max| content.len() <= max)
            && content.first().is_none_or(|&first| self.first.contains(first))
            && content.last().is_none_or(|&last| self.last.contains(last))
            && bytes.is_within(&self.every)
            && self.ways.iter().any(|clauses| {
                clauses.iter().all(|clause| clause.is_fulfilled_by(&self.places, content))
            })
    }
}

impl Clause {
    /// Whether a content fulfils it.
    pub fn is_fulfilled_by(&self, places: &[Place], content: &[u8]) -> bool {
        let count = content.iter().filter(|&&byte| self.class.contains(byte)).count();
        count >= self.times || self.sequences.iter().any(|sequence| sequence.is_in(places, content))
    }
}

/// Which end of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The bytes a match can begin or end with, and whether it can be empty. Never too few.
fn edge(hir: &Hir, side: Side) -> (ByteSet, bool) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (ByteSet::NONE, true),
        HirKind::Literal(literal) => {
            let byte = if side == Side::Left { literal.0.first() } else { literal.0.last() };
            (byte.iter().map(|&&byte| byte).collect(), byte.is_none())
        }
        HirKind::Class(_) => (class(hir), false),
        HirKind::Capture(capture) => edge(&capture.sub, side),
        HirKind::Repetition(repetition) => {
            let (set, nullable) = edge(&repetition.sub, side);
            (set, nullable || repetition.min == 0)
        }
        HirKind::Alternation(parts) => parts
            .iter()
            .map(|part| edge(part, side))
            .fold((ByteSet::NONE, false), |a, b| (a.0.or(b.0), a.1 || b.1)),
        HirKind::Concat(parts) => {
            let mut set = ByteSet::NONE;
            for at in 0..parts.len() {
                let at = if side == Side::Left { at } else { parts.len() - 1 - at };
                let (more, nullable) = edge(&parts[at], side);
                set |= more;
                if !nullable {
                    return (set, false);
                }
            }
            (set, true)
        }
    }
}

/// Every byte a match can have.
fn alphabet(hir: &Hir) -> ByteSet {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => ByteSet::NONE,
        HirKind::Literal(literal) => ByteSet::of(&literal.0),
        HirKind::Class(_) => class(hir),
        HirKind::Capture(capture) => alphabet(&capture.sub),
        HirKind::Repetition(repetition) => alphabet(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(alphabet).fold(ByteSet::NONE, ByteSet::or)
        }
    }
}

/// The bytes of a class. Classes of characters do not come from [`lower`](super::lower); of one that
/// did, anything may be.
fn class(hir: &Hir) -> ByteSet {
    match hir.kind() {
        HirKind::Class(regex_syntax::hir::Class::Bytes(class)) => class
            .ranges()
            .iter()
            .fold(ByteSet::NONE, |set, range| set.or(ByteSet::range(range.start(), range.end()))),
        _ => ByteSet::ALL,
    }
}
