//! Sets of bytes, the alphabet's half of everything here: what a class matches, what a content has.

use std::{fmt, ops};

/// A set of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const NONE: Self = Self([0; 4]);
    /// Every byte.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// The bytes that occur in a content.
    pub const fn of(content: &[u8]) -> Self {
        let mut set = Self::NONE;
        let mut at = 0;
        while at < content.len() {
            set = set.with(content[at]);
            at += 1;
        }
        set
    }

    /// The bytes from `low` to `high`, both included; none when `low` is above `high`.
    pub const fn range(low: u8, high: u8) -> Self {
        let mut set = Self::NONE;
        let mut byte = low as u16;
        while byte <= high as u16 {
            set = set.with((byte & 0xff) as u8);
            byte += 1;
        }
        set
    }

    /// This set and one byte more.
    #[must_use]
    pub const fn with(mut self, byte: u8) -> Self {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
        self
    }

    /// This set and another.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        let (this, that) = (self.0, other.0);
        Self([this[0] | that[0], this[1] | that[1], this[2] | that[2], this[3] | that[3]])
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        let (this, that) = (self.0, other.0);
        Self([this[0] & that[0], this[1] & that[1], this[2] & that[2], this[3] & that[3]])
    }

    /// Every byte that is not in it.
    #[must_use]
    pub const fn complement(self) -> Self {
        let [a, b, c, d] = self.0;
        Self([!a, !b, !c, !d])
    }

    /// With each ASCII letter also the same letter in the other case.
    #[must_use]
    pub const fn folded(self) -> Self {
        // Both alphabets lie in the second word, 32 bits apart: 'A' is bit 1, 'a' is bit 33.
        const UPPER: u64 = 0x07ff_fffe;
        let [a, letters, c, d] = self.0;
        let either = (letters | letters >> 32) & UPPER;
        Self([a, letters | either | either << 32, c, d])
    }

    /// Puts a byte in.
    pub const fn insert(&mut self, byte: u8) {
        *self = self.with(byte);
    }

    /// Whether this byte is in it.
    #[inline]
    pub const fn contains(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    /// Whether it has no byte.
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, [0, 0, 0, 0])
    }

    /// How many bytes are in it, 0 to 256.
    pub const fn len(&self) -> u32 {
        let [a, b, c, d] = self.0;
        a.count_ones() + b.count_ones() + c.count_ones() + d.count_ones()
    }

    /// Whether the two have a byte in common.
    pub const fn meets(&self, other: &Self) -> bool {
        !self.and(*other).is_empty()
    }

    /// Whether all its bytes are in the other too.
    pub const fn is_within(&self, other: &Self) -> bool {
        self.and(other.complement()).is_empty()
    }

    /// Its bytes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        let words = [0u8, 64, 128, 192].into_iter().zip(self.0);
        words.flat_map(|(first, mut word)| {
            std::iter::from_fn(move || {
                if word == 0 {
                    return None;
                }
                #[expect(clippy::cast_possible_truncation, reason = "at most 63")]
                let bit = word.trailing_zeros() as u8;
                word &= word - 1;
                Some(first + bit)
            })
        })
    }

    /// Its bytes as ranges `(first, last)` in ascending order, none touching the next.
    pub fn ranges(&self) -> Vec<(u8, u8)> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for byte in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == byte => *last = byte,
                _ => ranges.push((byte, byte)),
            }
        }
        ranges
    }
}

impl ops::BitOrAssign for ByteSet {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.or(other);
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        bytes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for ByteSet {
    /// As a class: `[a-z\x00]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (low, high) in self.ranges() {
            write!(f, "{}", low.escape_ascii())?;
            if high > low {
                write!(f, "-{}", high.escape_ascii())?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_bytes_say_the_same() {
        let set = ByteSet::range(b'a', b'c').with(0).with(255).with(254);
        assert_eq!(set.ranges(), [(0, 0), (b'a', b'c'), (254, 255)]);
        assert_eq!(set.iter().collect::<ByteSet>(), set);
        assert_eq!(set.len(), 6);
        assert_eq!(ByteSet::range(0, 255), ByteSet::ALL);
        assert!(ByteSet::range(2, 1).is_empty());
        assert_eq!(format!("{set:?}"), r"[\x00a-c\xfe-\xff]");
    }

    #[test]
    fn only_ascii_letters_fold() {
        for byte in 0..=255u8 {
            let expected = ByteSet::of(&[byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]);
            assert_eq!(ByteSet::of(&[byte]).folded(), expected, "{byte}");
        }
    }

    #[test]
    fn sets_compare() {
        let (low, all) = (ByteSet::range(0, 127), ByteSet::ALL);
        assert!(low.is_within(&all) && !all.is_within(&low) && low.meets(&all));
        assert!(!low.meets(&low.complement()) && low.or(low.complement()) == all);
        assert!(ByteSet::NONE.is_within(&low) && !ByteSet::NONE.meets(&all));
    }
}
