//! The parts of a representation that are stored.

use super::ByteSpan;

/// How many separate spans are kept of one representation.
pub const SPANS_MAX: usize = 256;

/// Spans in ascending order, none empty, and with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanSet(Vec<ByteSpan>);

/// Why a span is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpansError {
    /// There would be more than [`SPANS_MAX`] that do not touch.
    TooMany,
}

impl SpanSet {
    /// A set of nothing.
    pub const fn new() -> SpanSet {
        SpanSet(Vec::new())
    }

    /// Adds a span; those it touches become one with it.
    pub fn insert(&mut self, span: ByteSpan) -> Result<(), SpansError> {
        if span.is_empty() {
            return Ok(());
        }
        let from = self.0.partition_point(|one| one.end < span.first);
        let to = self.0.partition_point(|one| one.first <= span.end);
        let merged = self.0[from..to].iter().fold(span, |sum, one| ByteSpan {
            first: sum.first.min(one.first),
            end: sum.end.max(one.end),
        });
        if from == to && self.0.len() == SPANS_MAX {
            return Err(SpansError::TooMany);
        }
        self.0.splice(from..to, [merged]);
        Ok(())
    }

    /// The spans.
    pub fn spans(&self) -> &[ByteSpan] {
        &self.0
    }

    /// Whether all bytes of a span are there.
    pub fn holds(&self, span: ByteSpan) -> bool {
        span.is_empty() || self.0.iter().any(|one| one.holds(span))
    }

    /// The bytes of a span that are not there, in order.
    pub fn missing(&self, span: ByteSpan) -> impl Iterator<Item = ByteSpan> {
        let mut from = span.first;
        let ends = self.0.iter().map(|one| (one.first, one.end));
        ends.chain([(u64::MAX, u64::MAX)]).filter_map(move |(first, end)| {
            let gap = ByteSpan { first: from, end: first.min(span.end) };
            from = from.max(end);
            (!gap.is_empty()).then_some(gap)
        })
    }

    /// The number of bytes that are there.
    pub fn bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, span| sum.saturating_add(span.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(spans: &[(u64, u64)]) -> SpanSet {
        let mut set = SpanSet::new();
        for &(first, end) in spans {
            set.insert(ByteSpan { first, end }).unwrap();
        }
        set
    }

    fn pairs(spans: impl IntoIterator<Item = ByteSpan>) -> Vec<(u64, u64)> {
        spans.into_iter().map(|span| (span.first, span.end)).collect()
    }

    #[test]
    fn spans_become_one_where_they_touch() {
        let check = |spans: &[(u64, u64)], expected: &[(u64, u64)]| {
            assert_eq!(pairs(set(spans).0), expected, "{spans:?}");
        };
        check(&[], &[]);
        check(&[(3, 3)], &[]);
        check(&[(5, 9), (0, 2)], &[(0, 2), (5, 9)]);
        check(&[(0, 2), (2, 4)], &[(0, 4)]);
        check(&[(2, 4), (0, 2)], &[(0, 4)]);
        check(&[(0, 2), (4, 6), (8, 9), (1, 8)], &[(0, 9)]);
        check(&[(0, 9), (3, 4)], &[(0, 9)]);
        check(&[(0, 2), (4, 6), (3, 3)], &[(0, 2), (4, 6)]);
    }

    #[test]
    fn gaps_are_what_is_missing() {
        let spans = set(&[(2, 4), (6, 8)]);
        let check = |first, end, expected: &[(u64, u64)]| {
            let span = ByteSpan { first, end };
            assert_eq!(pairs(spans.missing(span)), expected, "{span:?}");
            assert_eq!(spans.holds(span), expected.is_empty(), "{span:?}");
        };
        check(0, 10, &[(0, 2), (4, 6), (8, 10)]);
        check(2, 4, &[]);
        check(3, 4, &[]);
        check(3, 7, &[(4, 6)]);
        check(4, 5, &[(4, 5)]);
        check(9, 10, &[(9, 10)]);
        check(5, 5, &[]);
        assert_eq!(spans.bytes(), 4);
        assert_eq!(pairs(SpanSet::new().missing(ByteSpan { first: 0, end: 5 })), [(0, 5)]);
    }

    #[test]
    fn there_is_a_limit() {
        let mut spans = SpanSet::new();
        for at in 0..SPANS_MAX as u64 {
            spans.insert(ByteSpan { first: at * 2, end: at * 2 + 1 }).unwrap();
        }
        let behind = ByteSpan { first: 10_000, end: 10_001 };
        assert_eq!(spans.insert(behind), Err(SpansError::TooMany));
        spans.insert(ByteSpan { first: 1, end: 2 }).unwrap();
        spans.insert(behind).unwrap();
    }
}
