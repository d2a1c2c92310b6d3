//! The search for a byte of some kind, sixteen bytes at a time.
//!
//! Whether a block holds such a byte is asked without a branch per byte, which compilers turn into
//! vector instructions; where, by arithmetic on words. Unlike `memchr` the search is compiled into
//! its caller: field names and values are so short that a call would cost as much as the search.

const BLOCK: usize = 16;

/// A kind of byte that is searched for.
pub(crate) trait Kind {
    /// Whether a byte is of this kind.
    fn has(byte: u8) -> bool;

    /// The highest bit of each byte of a word that is of this kind.
    fn marks(word: u64) -> u64;
}

/// The one byte `BYTE`.
pub(crate) struct Byte<const BYTE: u8>;

/// A control byte, HTAB and DEL among them.
pub(crate) struct Control;

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

impl<const BYTE: u8> Kind for Byte<BYTE> {
    #[inline]
    fn has(byte: u8) -> bool {
        byte == BYTE
    }

    #[inline]
    fn marks(word: u64) -> u64 {
        // Zero where the byte is, and only there adding to it does not set the highest bit.
        let differs = word ^ (ONES * u64::from(BYTE));
        !(((differs & !HIGH) + !HIGH) | differs) & HIGH
    }
}

impl Kind for Control {
    #[inline]
    fn has(byte: u8) -> bool {
        byte < b' ' || byte == 0x7f
    }

    #[inline]
    fn marks(word: u64) -> u64 {
        let low = word & !HIGH;
        // The highest bit of each byte that is at least a space, and of each that is DEL.
        let from_space = low + ONES * 0x60;
        let is_del = low + ONES;
        (!from_space | is_del) & !word & HIGH
    }
}

/// The place of the first byte of a kind at or behind `from`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call costs as much as most searches")]
pub(crate) fn find<K: Kind>(text: &[u8], from: usize) -> Option<usize> {
    let mut rest = text.get(from..)?;
    while let Some((block, behind)) = rest.split_first_chunk() {
        if holds::<K>(block) {
            return Some(text.len() - rest.len() + first::<K>(block));
        }
        rest = behind;
    }
    find_in_rest::<K>(text, text.len() - rest.len())
}

/// The end of a search, where less than a block is left.
#[inline(never)]
fn find_in_rest<K: Kind>(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let Some(end) = text.last_chunk() else {
        return rest.iter().position(|&byte| K::has(byte)).map(|offset| at + offset);
    };
    // The last block overlaps the one before it; what was looked at already is shifted out.
    let (low, high) = words(end);
    let marks = u128::from(K::marks(high)) << 64 | u128::from(K::marks(low));
    let seen = u32::try_from(BLOCK - rest.len()).ok()?;
    let unseen = marks.unbounded_shr(8 * seen);
    (unseen != 0).then(|| at + unseen.trailing_zeros() as usize / 8)
}

#[inline]
fn holds<K: Kind>(block: &[u8; BLOCK]) -> bool {
    block.iter().fold(false, |any, &byte| any | K::has(byte))
}

/// The place in a block that holds a byte of this kind.
#[inline]
fn first<K: Kind>(block: &[u8; BLOCK]) -> usize {
    let (low, high) = words(block);
    match K::marks(low) {
        0 => 8 + K::marks(high).trailing_zeros() as usize / 8,
        marks => marks.trailing_zeros() as usize / 8,
    }
}

#[inline]
fn words(block: &[u8; BLOCK]) -> (u64, u64) {
    let (words, _) = block.as_chunks();
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
}

/// Whether no byte is a bad one. Comparisons become vectors, `matches!` does not.
#[inline]
pub(crate) fn none(bytes: &[u8], is_bad: impl Fn(u8) -> bool) -> bool {
    let any = |block: &[u8; BLOCK]| block.iter().fold(false, |any, &byte| any | is_bad(byte));
    // Where the pieces are not whole, the last overlaps the one before it.
    if let Some(end) = bytes.last_chunk() {
        let (blocks, _) = bytes.as_chunks();
        return !any(end) && !blocks.iter().any(any);
    }
    let mut block = [0; BLOCK];
    if let (Some(start), Some(end)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let (halves, _) = block.as_chunks_mut::<8>();
        (halves[0], halves[1]) = (*start, *end);
    } else if let (Some(start), Some(end)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (quarters, _) = block.as_chunks_mut::<4>();
        (quarters[0], quarters[1], quarters[2], quarters[3]) = (*start, *end, *start, *end);
    } else {
        return !bytes.iter().any(|&byte| is_bad(byte));
    }
    !any(&block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Kind>(text: &[u8], from: usize) {
        let expected = (from..text.len()).find(|&at| K::has(text[at]));
        assert_eq!(find::<K>(text, from), expected, "{text:?} from {from}");
    }

    #[test]
    fn the_first_is_found_wherever_it_stands() {
        for len in 0..70 {
            for from in 0..len + 2 {
                for at in 0..=len {
                    let mut text = vec![b'a'; len];
                    // One before the start, which does not count, and two from `at` on.
                    for place in [from.wrapping_sub(1), at, at + 5] {
                        if let Some(byte) = text.get_mut(place) {
                            *byte = b':';
                        }
                    }
                    check::<Byte<b':'>>(&text, from);
                }
            }
        }
    }

    #[test]
    fn each_byte_is_of_its_kind_beside_any_other() {
        for byte in 0..=255 {
            for beside in [0, b'\n', b'\n' ^ 1, b':', b':' ^ 1, b' ', 0x7f, 0x80, 0x8a, 0xff] {
                for at in 0..17 {
                    let mut text = [beside; 17];
                    text[at] = byte;
                    for from in [0, 1, at] {
                        check::<Byte<b'\n'>>(&text, from);
                        check::<Byte<b':'>>(&text, from);
                        check::<Control>(&text, from);
                    }
                }
            }
        }
    }

    #[test]
    fn a_bad_byte_is_seen_wherever_it_stands() {
        for len in 0..70 {
            let mut text = vec![b'a'; len];
            assert!(none(&text, |byte| byte == b'x'));
            for at in 0..len {
                text[at] = b'x';
                assert!(!none(&text, |byte| byte == b'x'), "{at} of {len}");
                text[at] = b'a';
            }
        }
    }
}
