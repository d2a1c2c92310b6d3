//! What is at hand of a body that the cache serves.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use tidegate_cache::range::ByteSpan;

/// Pieces of a body, in order; none is empty. A single one, as most bodies are, costs no allocation.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Empty only if there is nothing.
    front: Bytes,
    rest: VecDeque<Bytes>,
}

impl Pieces {
    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    /// The first piece; empty if there is none.
    pub(super) fn data(&self) -> &[u8] {
        &self.front
    }

    /// Takes bytes of the first piece away.
    pub(super) fn consume(&mut self, n: usize) {
        self.front.advance(n);
        if self.front.is_empty() {
            self.front = self.rest.pop_front().unwrap_or_default();
        }
    }

    /// Adds a piece behind the others.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.front.is_empty() {
            self.front = piece;
        } else if !piece.is_empty() {
            self.rest.push_back(piece);
        }
    }

    /// Adds a piece in front of the others.
    pub(super) fn push_front(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        let second = std::mem::replace(&mut self.front, piece);
        if !second.is_empty() {
            self.rest.push_front(second);
        }
    }

    /// Adds a span of a body that lies in pieces.
    pub(super) fn push_span(&mut self, body: &[Bytes], span: ByteSpan) {
        let mut at = 0;
        for piece in body {
            let len = piece.len() as u64;
            let (first, end) = (span.first.max(at), span.end.min(at + len));
            if first < end {
                // Both lie within the piece, whose length is a `usize`.
                let within = |place: u64| usize::try_from(place - at).unwrap_or(piece.len());
                self.push(piece.slice(within(first)..within(end)));
            }
            at += len;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.front.clear();
        self.rest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mut pieces: Pieces) -> Vec<u8> {
        let mut all = Vec::new();
        while !pieces.is_empty() {
            // In bytes of one or two, so that ends of pieces are met in every way.
            let n = pieces.data().len().min(2);
            all.extend_from_slice(&pieces.data()[..n]);
            pieces.consume(n);
        }
        assert!(pieces.data().is_empty() && pieces.rest.is_empty());
        all
    }

    #[test]
    fn pieces_come_in_order_and_empty_ones_not_at_all() {
        let mut pieces = Pieces::default();
        for piece in [&b""[..], b"abc", b"", b"de", b"f"] {
            pieces.push(Bytes::from_static(piece));
        }
        pieces.push_front(Bytes::new());
        pieces.push_front(Bytes::from_static(b"-"));
        assert_eq!(taken(pieces), b"-abcdef");
        let mut pieces = Pieces::default();
        pieces.push_front(Bytes::from_static(b"a"));
        pieces.push(Bytes::from_static(b"b"));
        assert_eq!(taken(pieces), b"ab");
        assert!(taken(Pieces::default()).is_empty());
    }

    #[test]
    fn spans_are_cut_out_of_pieces() {
        let body = [&b"abc"[..], b"", b"de", b"fgh"].map(Bytes::from_static);
        let whole = b"abcdefgh";
        for first in 0..8 {
            for end in first..9 {
                let mut pieces = Pieces::default();
                pieces.push_span(&body, ByteSpan { first: first as u64, end: end as u64 });
                let expected = &whole[first..end.min(whole.len())];
                assert_eq!(taken(pieces), expected, "{first} to {end}");
            }
        }
    }
}
