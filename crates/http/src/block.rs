//! The search for a byte of some kind, sixteen bytes at a time.
//!
//! A block is judged without a branch per byte, which compilers turn into vector instructions, and
//! only then is the place found. Unlike `memchr` the search is compiled into its caller: field names
//! and values are so short that a call would cost as much as the search.

const BLOCK: usize = 16;

/// The place of the first byte at or behind `from` that is sought.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the predicate has to be known where it runs")]
pub(crate) fn find(text: &[u8], from: usize, is_sought: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = from;
    while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
        if let Some(offset) = first(block, &is_sought) {
            return Some(at + offset);
        }
        at += BLOCK;
    }
    let rest = text.get(at..)?;
    let Some(end) = text.last_chunk::<BLOCK>() else {
        return rest.iter().position(|&byte| is_sought(byte)).map(|offset| at + offset);
    };
    // The last block overlaps the one before it; what was looked at already is shifted out.
    let seen = BLOCK - rest.len();
    let marks = u128::from_le_bytes(marks(end, &is_sought)).checked_shr(8 * u32_of(seen))?;
    (marks != 0).then(|| at + marks.trailing_zeros() as usize / 8)
}

fn first(block: &[u8; BLOCK], is_sought: impl Fn(u8) -> bool) -> Option<usize> {
    let marks = marks(block, is_sought);
    let (words, _) = marks.as_chunks::<8>();
    let (low, high) = (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
    if low != 0 {
        Some(low.trailing_zeros() as usize / 8)
    } else if high != 0 {
        Some(8 + high.trailing_zeros() as usize / 8)
    } else {
        None
    }
}

fn marks(block: &[u8; BLOCK], is_sought: impl Fn(u8) -> bool) -> [u8; BLOCK] {
    block.map(|byte| if is_sought(byte) { 0xff } else { 0 })
}

#[expect(clippy::cast_possible_truncation, reason = "at most the length of a block")]
const fn u32_of(seen: usize) -> u32 {
    seen as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_wherever_it_stands() {
        for len in 0..70 {
            for from in 0..len + 2 {
                for at in 0..=len {
                    let mut text = vec![b'a'; len];
                    // One before the start, which does not count, and two from `at` on.
                    for place in [from.wrapping_sub(1), at, at + 5] {
                        if let Some(byte) = text.get_mut(place) {
                            *byte = b'x';
                        }
                    }
                    let expected = (from..len).find(|&place| text[place] == b'x');
                    let found = find(&text, from, |byte| byte == b'x');
                    assert_eq!(found, expected, "{at} of {len} from {from}");
                }
            }
        }
    }
}
