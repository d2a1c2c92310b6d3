//! Looking for the first byte that matters, a vector at a time.

/// The bytes judged together: one vector of the baseline instruction set.
const BLOCK_BYTES: usize = 16;

/// White space as C's `isspace` has it in the C locale: space, `\t`, `\n`, `\v`, `\f`, `\r`.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') < 5
}

/// The index of the first byte for which `wanted` holds.
///
/// `wanted` should be a handful of comparisons: whole blocks are then judged with vector
/// instructions, and only the block with a hit is looked at byte by byte.
#[inline]
pub(crate) fn first(input: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = input.as_chunks::<BLOCK_BYTES>();
    for (index, block) in blocks.iter().enumerate() {
        if block.iter().fold(false, |hit, &byte| hit | wanted(byte)) {
            let within = block.iter().position(|&byte| wanted(byte))?;
            return Some(index * BLOCK_BYTES + within);
        }
    }
    let within = rest.iter().position(|&byte| wanted(byte))?;
    Some(blocks.len() * BLOCK_BYTES + within)
}

/// The index of the first byte for which `wanted` holds together with the byte after it.
///
/// The last byte has none after it and is never found. As for [`first`], `wanted` should be a
/// handful of comparisons.
#[inline]
pub(crate) fn first_pair(input: &[u8], wanted: impl Fn(u8, u8) -> bool) -> Option<usize> {
    let (_, after) = input.split_first()?;
    let before = &input[..after.len()];
    let (blocks_before, rest_before) = before.as_chunks::<BLOCK_BYTES>();
    let (blocks_after, rest_after) = after.as_chunks::<BLOCK_BYTES>();
    for (index, (block, next)) in blocks_before.iter().zip(blocks_after).enumerate() {
        let mut hit = false;
        for place in 0..BLOCK_BYTES {
            hit |= wanted(block[place], next[place]);
        }
        if hit {
            let within = (0..BLOCK_BYTES).find(|&place| wanted(block[place], next[place]))?;
            return Some(index * BLOCK_BYTES + within);
        }
    }
    let within =
        rest_before.iter().zip(rest_after).position(|(&byte, &next)| wanted(byte, next))?;
    Some(blocks_before.len() * BLOCK_BYTES + within)
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
