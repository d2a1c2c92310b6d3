//! What the transformations share: finding the first byte that could matter, and copying the runs
//! between the places that change.

use super::Outcome;

/// The bytes looked at together: one vector of the baseline instruction set.
const BLOCK_BYTES: usize = 16;

/// The index of the first byte for which `wanted` holds.
///
/// `wanted` should be a handful of comparisons: whole blocks are then judged with vector
/// instructions, and only the block with a hit is looked at byte by byte.
#[inline]
pub(super) fn first(input: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = input.as_chunks::<BLOCK_BYTES>();
    for (index, block) in blocks.iter().enumerate() {
        let hit = block.iter().fold(false, |hit, &byte| hit | wanted(byte));
        if hit {
            let within = block.iter().position(|&byte| wanted(byte))?;
            return Some(index * BLOCK_BYTES + within);
        }
    }
    let within = rest.iter().position(|&byte| wanted(byte))?;
    Some(blocks.len() * BLOCK_BYTES + within)
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
