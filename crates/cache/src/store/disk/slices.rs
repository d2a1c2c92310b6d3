//! Bodies in slices: each is an object of its own, so that a part of a large body can be stored,
//! found and sent without the rest.

use std::ops::Range;

use crate::store::key::Slice;

/// How a body is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// What the response calls itself, see [`Slice::object`].
    pub(super) object: u64,
    /// Bytes of the whole body.
    pub(super) body_bytes: u64,
    /// Bytes of each slice but the last.
    pub(super) slice_bytes: u32,
}

/// A slice and what is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which slice.
    pub slice: Slice,
    /// Which of its bytes.
    pub range: Range<u64>,
}

impl Slicing {
    /// Cuts a body of so many bytes. `None` if slices had no bytes, or there were more of them than
    /// numbers.
    pub fn new(object: u64, body_bytes: u64, slice_bytes: u32) -> Option<Slicing> {
        let slices = body_bytes.checked_div(u64::from(slice_bytes))?;
        u32::try_from(slices).ok()?;
        Some(Slicing { object, body_bytes, slice_bytes })
    }

    /// What the response calls itself.
    pub fn object(&self) -> u64 {
        self.object
    }

    /// Bytes of the whole body.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes of each slice but the last.
    pub fn slice_bytes(&self) -> u32 {
        self.slice_bytes
    }

    /// Bytes of the body from which to which a slice goes; empty beyond the last.
    pub fn range(&self, slice: Slice) -> Range<u64> {
        let start = u64::from(slice.number) * u64::from(self.slice_bytes);
        let end = start + u64::from(self.slice_bytes);
        start.min(self.body_bytes)..end.min(self.body_bytes)
    }

    /// The slices that hold a range of the body's bytes, in order, and what is wanted of each.
    pub fn covering(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + use<> {
        let slicing = *self;
        let slice_bytes = u64::from(self.slice_bytes);
        let end = range.end.min(self.body_bytes);
        let numbers = if range.start < end {
            range.start / slice_bytes..end.div_ceil(slice_bytes)
        } else {
            0..0
        };
        numbers.filter_map(move |number| {
            let slice = Slice { object: slicing.object, number: u32::try_from(number).ok()? };
            let whole = slicing.range(slice);
            let wanted = whole.start.max(range.start)..whole.end.min(end);
            Some(Piece { slice, range: wanted.start - whole.start..wanted.end - whole.start })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body_bytes: u64, range: Range<u64>, expected: &[(u32, Range<u64>)]) {
        let slicing = Slicing::new(9, body_bytes, 10).unwrap();
        let found: Vec<_> = slicing
            .covering(range.clone())
            .map(|piece| (piece.slice.number, piece.range))
            .collect();
        assert_eq!(found, expected, "{range:?} of {body_bytes}");
    }

    #[test]
    fn a_range_needs_the_slices_that_it_touches() {
        check(35, 0..35, &[(0, 0..10), (1, 0..10), (2, 0..10), (3, 0..5)]);
        check(35, 12..13, &[(1, 2..3)]);
        check(35, 9..21, &[(0, 9..10), (1, 0..10), (2, 0..1)]);
        check(35, 30..100, &[(3, 0..5)]);
        check(35, 35..40, &[]);
        check(35, 5..5, &[]);
        check(0, 0..1, &[]);
        check(u64::from(u32::MAX) * 10, 0..1, &[(0, 0..1)]);
    }

    #[test]
    fn what_cannot_be_cut_is_not() {
        assert_eq!(Slicing::new(1, 100, 0), None);
        assert_eq!(Slicing::new(1, u64::MAX, 10), None);
        let slicing = Slicing::new(1, 25, 10).unwrap();
        assert_eq!(slicing.range(Slice { object: 1, number: 2 }), 20..25);
        assert_eq!(slicing.range(Slice { object: 1, number: u32::MAX }), 25..25);
    }
}
