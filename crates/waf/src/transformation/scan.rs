//! Looking for the first byte that matters, a vector at a time.

/// The bytes judged together: one vector of the baseline instruction set.
const BLOCK_BYTES: usize = 16;
/// What is judged together where there are fewer.
const HALF_BYTES: usize = BLOCK_BYTES / 2;

/// White space as C's `isspace` has it in the C locale: space, `\t`, `\n`, `\v`, `\f`, `\r`.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
}

/// The index of the next such byte from `at` on. They often come in rows, so the byte at `at` is
/// tried first.
#[inline]
pub(crate) fn next(input: &[u8], at: usize, wanted: u8) -> Option<usize> {
    let rest = input.get(at..)?;
    if rest.first() == Some(&wanted) {
        return Some(at);
    }
    memchr::memchr(wanted, rest).map(|found| at + found)
}

/// The index of the next of these two bytes from `at` on. They often come in rows, so the byte at
/// `at` is tried first.
#[inline]
pub(crate) fn next_of(input: &[u8], at: usize, one: u8, other: u8) -> Option<usize> {
    let rest = input.get(at..)?;
    if rest.first().is_some_and(|&byte| byte == one || byte == other) {
        return Some(at);
    }
    memchr::memchr2(one, other, rest).map(|found| at + found)
}

/// The index of the first byte for which `wanted` holds.
///
/// `wanted` should be a handful of comparisons without branches: whole blocks are then judged with
/// vector instructions, and only a block with a hit is looked at byte by byte.
#[inline]
pub(crate) fn first(input: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    first_of(input, input, |byte, _| wanted(byte))
}

/// The index of the first byte for which `wanted` holds together with the byte after it.
///
/// The last byte has none after it and is never found. As for [`first`], `wanted` should be a
/// handful of comparisons without branches.
#[inline]
pub(crate) fn first_pair(input: &[u8], wanted: impl Fn(u8, u8) -> bool) -> Option<usize> {
    let (_, after) = input.split_first()?;
    first_of(&input[..after.len()], after, wanted)
}

/// The index of the first of two equally long runs of bytes for whose bytes `wanted` holds.
#[inline]
fn first_of(these: &[u8], those: &[u8], wanted: impl Fn(u8, u8) -> bool) -> Option<usize> {
    let (blocks, rest) = these.as_chunks::<BLOCK_BYTES>();
    let (other_blocks, other_rest) = those.as_chunks::<BLOCK_BYTES>();
    for (index, (block, other)) in blocks.iter().zip(other_blocks).enumerate() {
        if any(block, other, &wanted) {
            return Some(index * BLOCK_BYTES + position(block, other, &wanted)?);
        }
    }
    // The rest is judged in blocks too, which may overlap what was judged already.
    let may_be_in_rest = match (these.last_chunk(), those.last_chunk()) {
        (Some(last), Some(other)) => any::<BLOCK_BYTES>(last, other, &wanted),
        _ => match (these.first_chunk(), those.first_chunk()) {
            (Some(first), Some(other)) if these.len() <= BLOCK_BYTES => {
                any::<HALF_BYTES>(first, other, &wanted)
                    || match (these.last_chunk(), those.last_chunk()) {
                        (Some(last), Some(other)) => any::<HALF_BYTES>(last, other, &wanted),
                        _ => true,
                    }
            }
            _ => true,
        },
    };
    if !may_be_in_rest {
        return None;
    }
    Some(blocks.len() * BLOCK_BYTES + position(rest, other_rest, wanted)?)
}

#[inline]
fn any<const N: usize>(these: &[u8; N], those: &[u8; N], wanted: impl Fn(u8, u8) -> bool) -> bool {
    let mut hit = false;
    for place in 0..N {
        hit |= wanted(these[place], those[place]);
    }
    hit
}

#[inline]
fn position(these: &[u8], those: &[u8], wanted: impl Fn(u8, u8) -> bool) -> Option<usize> {
    these.iter().zip(those).position(|(&this, &that)| wanted(this, that))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_found_at_every_place() {
        for length in 0..50 {
            let mut input = vec![b'a'; length];
            assert_eq!(first(&input, |byte| byte == b'b'), None);
            for place in (0..length).rev() {
                input[place] = b'b';
                assert_eq!(first(&input, |byte| byte == b'b'), Some(place));
            }
        }
    }

    #[test]
    fn a_pair_is_found_at_every_place_but_the_last() {
        for length in 0..50 {
            for place in 0..length {
                let mut input = vec![b'a'; length];
                input[place] = b'b';
                let expected = (place + 1 < length).then_some(place);
                let found = first_pair(&input, |byte, next| byte == b'b' && next == b'a');
                assert_eq!(found, expected, "{length} bytes, hit at {place}");
            }
        }
    }
}
