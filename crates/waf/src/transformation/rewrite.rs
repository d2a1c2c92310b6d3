//! What the transformations write with: copying the runs between the places that change.

use super::Outcome;

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
