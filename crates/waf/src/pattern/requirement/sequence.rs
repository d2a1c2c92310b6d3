//! Bytes in a row, each of a set: what a clause can ask for.

use std::fmt;

use super::{ByteSet, WORD};

/// What may stand at one place of a content, or just beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// A byte of this set,
    pub bytes: ByteSet,
    /// or nothing, if the place may be just beyond the content.
    pub edge: Edge,
}

/// Whether a place may be just beyond the content, on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// A byte has to be there.
    Excluded,
    /// It may.
    Allowed,
}

/// Places in a row, by their numbers in [`Requirement::places`](super::Requirement::places). Only the
/// first and the last may be beyond the content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub Box<[u16]>);

impl Place {
    /// Anything or nothing.
    pub const ANY: Self = Self { bytes: ByteSet::ALL, edge: Edge::Allowed };
    /// Neither a byte nor nothing.
    pub(super) const NONE: Self = Self { bytes: ByteSet::NONE, edge: Edge::Excluded };
    /// Beyond the content.
    pub(super) const BEYOND: Self = Self { bytes: ByteSet::NONE, edge: Edge::Allowed };
    /// No byte of a word.
    pub(super) const NO_WORD: Self = Self { bytes: WORD.complement(), edge: Edge::Allowed };
    /// A byte of a word.
    pub(super) const WORD: Self = Self::byte(WORD);

    /// A byte of a set.
    pub const fn byte(bytes: ByteSet) -> Self {
        Self { bytes, edge: Edge::Excluded }
    }

    /// Whether a byte, or nothing, may be there.
    #[inline]
    pub fn allows(&self, byte: Option<u8>) -> bool {
        byte.map_or(self.edge == Edge::Allowed, |byte| self.bytes.contains(byte))
    }

    /// Whether nothing at all may be there.
    pub(super) fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Whether all that this allows, the other does too.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.and(*other) == *self
    }

    /// What either allows.
    pub(super) fn or(self, other: Self) -> Self {
        Self { bytes: self.bytes.or(other.bytes), edge: self.edge.max(other.edge) }
    }

    /// What both allow.
    pub(super) fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes.and(other.bytes), edge: self.edge.min(other.edge) }
    }
}

impl Sequence {
    /// Whether a content has it somewhere, by the definition.
    pub fn is_in(&self, places: &[Place], content: &[u8]) -> bool {
        // One more than the place, so that 0 is the place before the content.
        (0..content.len() + 2).any(|start| {
            self.0.iter().enumerate().all(|(at, &number)| {
                let byte = (start + at).checked_sub(1).and_then(|at| content.get(at)).copied();
                start + at <= content.len() + 1 && places[usize::from(number)].allows(byte)
            })
        })
    }
}

/// A place as a pattern: `a`, `[0-9]`, `([^a]|\A|\z)`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.bytes.ranges().as_slice(), self.edge) {
            (&[(low, high)], Edge::Excluded) if low == high => write!(f, "{}", low.escape_ascii()),
            (_, Edge::Excluded) => write!(f, "{:?}", self.bytes),
            (_, Edge::Allowed) if self.bytes.is_empty() => f.write_str(r"(\A|\z)"),
            (_, Edge::Allowed) => write!(f, r"({:?}|\A|\z)", self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sequence: &[Place], content: &[u8], expected: bool) {
        let numbers = (0..u16::try_from(sequence.len()).expect("short")).collect();
        assert_eq!(Sequence(numbers).is_in(sequence, content), expected, "{content:?}");
    }

    #[test]
    fn places_may_lie_beyond_the_content() {
        let byte = |byte| Place::byte(ByteSet::of(&[byte]));
        check(&[byte(b'a'), byte(b'b')], b"xabx", true);
        check(&[byte(b'a'), byte(b'b')], b"xaxb", false);
        check(&[Place::BEYOND, byte(b'a')], b"ab", true);
        check(&[Place::BEYOND, byte(b'b')], b"ab", false);
        check(&[byte(b'b'), Place::BEYOND], b"ab", true);
        check(&[byte(b'a'), Place::BEYOND], b"ab", false);
        check(&[Place::NO_WORD, byte(b'a'), Place::NO_WORD], b"-a", true);
        check(&[Place::NO_WORD, byte(b'a'), Place::NO_WORD], b"ba", false);
        check(&[Place::BEYOND, Place::BEYOND], b"", true);
        check(&[Place::BEYOND, Place::BEYOND], b"a", false);
    }
}
