//! Rows of tallies by label, which grow without moving and without a lock.
//!
//! A row is made by the worker that first needs it, so ten thousand sites that nobody visits cost a
//! pointer each. Rows hang in chunks, chunks in a fixed array; neither moves or goes away while
//! readers look, and both appear by one release store ([`OnceLock`]).

use std::sync::OnceLock;

use super::cell::Tally;
use super::labels::Label;

const CHUNK: usize = 256;
const CHUNKS: usize = 256;

/// The most labels that rows can be kept for.
pub(super) const ROWS_MAX: usize = CHUNK * CHUNKS;

type Slots<T> = Box<[OnceLock<Box<T>>]>;

/// One worker's rows.
#[derive(Debug)]
pub(super) struct Rows<T> {
    chunks: Box<[OnceLock<Slots<T>>]>,
}

impl<T: Tally> Rows<T> {
    pub(super) fn new() -> Rows<T> {
        Rows { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect() }
    }

    /// The row of `label`, made on first use. Label sets are no larger than [`ROWS_MAX`].
    #[inline]
    pub(super) fn row(&self, label: Label) -> &T {
        let index = label.index() % ROWS_MAX;
        let chunk = self.chunks[index / CHUNK].get_or_init(make_slots);
        chunk[index % CHUNK].get_or_init(|| Box::new(T::new()))
    }

    /// Calls `visit` with every row that was used.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, &T)) {
        for (base, chunk) in self.chunks.iter().enumerate() {
            for (offset, slot) in chunk.get().into_iter().flatten().enumerate() {
                if let Some(row) = slot.get() {
                    visit(base * CHUNK + offset, row);
                }
            }
        }
    }
}

#[cold]
fn make_slots<T>() -> Slots<T> {
    (0..CHUNK).map(|_| OnceLock::new()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cell::Counter;
    use super::super::labels::Labels;
    use super::*;

    #[test]
    fn rows_appear_on_use_and_stay() {
        let labels = Labels::new(ROWS_MAX, 2);
        let sites: Vec<Label> = (0..600).map(|n| labels.site(&format!("s{n}"))).collect();
        let rows = Rows::<Counter>::new();
        rows.row(sites[0]).add(1);
        rows.row(sites[599]).add(2);
        rows.row(sites[0]).add(4);
        let mut seen = Vec::new();
        rows.each(|index, row| seen.push((index, row.value())));
        assert_eq!(seen, [(sites[0].index(), 5), (sites[599].index(), 2)]);
    }
}
