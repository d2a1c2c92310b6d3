//! What the transformations share: finding the first byte that could matter, and copying the runs
//! between the places that change.

use super::Outcome;

/// The bytes judged together: one vector of the baseline instruction set.
const BLOCK_BYTES: usize = 16;

/// White space as C's `isspace` has it in the C locale: space, `\t`, `\n`, `\v`, `\f`, `\r`.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') < 5
}

/// The index of the first byte for which `wanted` holds.
///
/// `wanted` should be a handful of comparisons: whole blocks are then judged with vector
/// instructions, and only the block with a hit is looked at byte by byte.
#[inline]
pub(super) fn first(input: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
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
pub(super) fn first_pair(input: &[u8], wanted: impl Fn(u8, u8) -> bool) -> Option<usize> {
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

/// A value on its way into the output: the ranges that change are replaced, the runs between them
/// are copied, and nothing is copied while nothing has changed.
pub(super) struct Rewrite<'a> {
    input: &'a [u8],
    output: &'a mut Vec<u8>,
    /// How much of the input the output accounts for; 0 until something is replaced.
    done: usize,
}

impl<'a> Rewrite<'a> {
    /// Begins with an empty `output`.
    #[inline]
    pub(super) fn new(input: &'a [u8], output: &'a mut Vec<u8>) -> Self {
        Self { input, output, done: 0 }
    }

    /// Puts `replacement` in the place of `input[start..end]`. The range is not empty, differs from
    /// its replacement and lies behind all ranges replaced so far.
    #[inline]
    pub(super) fn replace(&mut self, start: usize, end: usize, replacement: &[u8]) {
        if self.done == 0 {
            self.output.reserve(self.input.len());
        }
        if self.done < start {
            self.output.extend_from_slice(&self.input[self.done..start]);
        }
        self.output.extend_from_slice(replacement);
        self.done = end;
    }

    /// Copies what is left and says whether anything was replaced.
    #[inline]
    pub(super) fn finish(self) -> Outcome {
        if self.done == 0 {
            return Outcome::Unchanged;
        }
        self.output.extend_from_slice(&self.input[self.done..]);
        Outcome::Written
    }
}

/// Says what has become of a value whose result is in `output` already, which may equal the input.
#[inline]
pub(super) fn compared(input: &[u8], output: &[u8]) -> Outcome {
    if input == output { Outcome::Unchanged } else { Outcome::Written }
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

    #[test]
    fn nothing_is_copied_while_nothing_changes() {
        let mut output = Vec::new();
        let rewrite = Rewrite::new(b"abc", &mut output);
        assert_eq!(rewrite.finish(), Outcome::Unchanged);
        let mut rewrite = Rewrite::new(b"abcdef", &mut output);
        rewrite.replace(0, 1, b"x");
        rewrite.replace(1, 2, b"");
        rewrite.replace(4, 5, b"yz");
        assert_eq!(rewrite.finish(), Outcome::Written);
        assert_eq!(output, b"xcdyzf");
    }
}
