//! What bytes a content has, in one word: read once, and asked by prefilters and transformations.

use super::alphabet::{self, LETTERS, Signature};

/// The kinds of bytes that a content has: each symbol of the [alphabet](super::alphabet) with all
/// letters as one, and in the bits that letters leave free what transformations look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Makeup(u64);

impl Makeup {
    /// A letter, of either case.
    const LETTER: u64 = 1 << 1;
    /// An ASCII letter in upper case.
    pub const UPPER: Self = Self(1 << 2);
    /// An ASCII letter in lower case.
    pub const LOWER: Self = Self(1 << 3);
    /// A NUL byte.
    pub const NUL: Self = Self(1 << 4);
    /// Two spaces in a row.
    pub const SPACES: Self = Self(1 << 5);
    /// A dot as the last byte.
    pub const LAST_DOT: Self = Self(1 << 6);
    /// No byte.
    pub const EMPTY: Self = Self(1 << 7);
    /// Bytes beyond ASCII.
    pub const BEYOND_ASCII: Self = Self(MARKS[0x80]);
    /// Every kind: what any content has something of.
    pub const ANYTHING: Self = Self(u64::MAX);
    /// No kind, which no content has.
    pub(crate) const NOTHING: Self = Self(0);

    /// The kinds of these bytes; those that share a kind with others stand for all of it.
    pub const fn of_each(bytes: &[u8]) -> Self {
        let (mut kinds, mut at) = (0, 0);
        while at < bytes.len() {
            kinds |= MARKS[bytes[at] as usize];
            at += 1;
        }
        Self(kinds)
    }

    /// What a content has.
    pub fn of(content: &[u8]) -> Self {
        let Some(&last) = content.last() else { return Self::EMPTY };
        let marks = |bytes: &[u8]| bytes.iter().fold(0, |kinds, &b| kinds | MARKS[usize::from(b)]);
        let (blocks, rest) = content.as_chunks::<8>();
        let kinds = blocks.iter().fold(marks(rest), |kinds, block| kinds | marks(block));
        let mut makeup = Self(kinds);
        if makeup.meets(Self::of_each(b" ")) && has_spaces(content) {
            makeup = makeup.or(Self::SPACES);
        }
        if last == b'.' { makeup.or(Self::LAST_DOT) } else { makeup }
    }

    /// The kinds of both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the two have a kind in common.
    #[inline]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The symbols among the kinds, with letters as one.
    #[inline]
    pub(super) fn signature(self) -> Signature {
        self.0 & (!LETTERS | Self::LETTER)
    }
}

/// What each byte adds.
const MARKS: [u64; 256] = {
    let mut marks = [0; 256];
    let mut byte = 0u8;
    loop {
        marks[byte as usize] = match byte {
            0 => 1 << alphabet::BEYOND | Makeup::NUL.0,
            b'a'..=b'z' => Makeup::LETTER | Makeup::LOWER.0,
            b'A'..=b'Z' => Makeup::LETTER | Makeup::UPPER.0,
            _ => 1 << alphabet::SYMBOL_OF[byte as usize],
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    marks
};

/// Whether two spaces stand in a row.
fn has_spaces(content: &[u8]) -> bool {
    let (before, after) = (&content[..content.len() - 1], &content[1..]);
    // Without branches, so that it is done a vector at a time.
    let mut pairs = before.chunks(256).zip(after.chunks(256));
    pairs.any(|(before, after)| {
        let pairs = before.iter().zip(after);
        pairs.fold(0xff, |least, (&a, &b)| least.min((a ^ b' ') | (b ^ b' '))) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makeup_has_the_symbols_of_each_byte() {
        for byte in 0..=255u8 {
            let symbol = match alphabet::symbol(byte) {
                1..=26 => Makeup::LETTER,
                other => 1 << other,
            };
            assert_eq!(Makeup::of(&[byte]).signature(), symbol);
            assert_eq!(
                Makeup::of(&[b"plain text "[..].to_vec(), vec![byte]].concat()).0 & symbol,
                symbol
            );
        }
        assert_eq!(Makeup::of(b""), Makeup::EMPTY);
        assert_eq!(Makeup::of(b"").signature(), 0);
    }

    #[test]
    fn what_transformations_look_for_is_found_wherever_it_stands() {
        for length in 1..600 {
            let mut content = vec![b'x'; length];
            content[length - 1] = b' ';
            assert!(!Makeup::of(&content).meets(Makeup::SPACES));
            if length > 1 {
                content[length - 2] = b' ';
                assert!(Makeup::of(&content).meets(Makeup::SPACES), "{length}");
            }
        }
        assert!(Makeup::of(b"a.").meets(Makeup::LAST_DOT));
        assert!(!Makeup::of(b".a").meets(Makeup::LAST_DOT));
        assert!(Makeup::of(b"aB").meets(Makeup::UPPER) && Makeup::of(b"aB").meets(Makeup::LOWER));
        assert!(!Makeup::of(b"a\x01").meets(Makeup::NUL) && Makeup::of(b"a\0").meets(Makeup::NUL));
    }
}
