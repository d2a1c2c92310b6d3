//! Where records are: a hash table of 24 bytes an entry, in memory.
//!
//! Keys are not here, only their hashes: two keys with one hash (a chance of one in 2^64, and nobody
//! outside knows hashes) displace each other, and what is read says whose it is. The table is open
//! addressed and grows by three tenths, so between 62 and 80 % of it are in use: 30 to 39 bytes an
//! object, never the double that powers of two would come to. Look-ups share a lock of one in 64
//! shards; a shard grows within a fraction of a millisecond at a million objects.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::format::{ALIGNMENT, FRONT_UNIT, FooterEntry, Part};

const SHARDS: usize = 64;

/// Uses beyond which counting has no effect.
const USES_MAX: u32 = 3;

// The parts of `Bucket::place`.
const FRONT_BITS: u32 = 12;
const OFFSET_BITS: u32 = 28;

// The parts of `Bucket::word`.
const LENGTH_BITS: u32 = 28;
const USES_SHIFT: u32 = LENGTH_BITS;
const VERIFIED: u32 = 1 << 30;
const SLICE: u32 = 1 << 31;

/// The table.
#[derive(Debug)]
pub(super) struct Index {
    shards: Box<[RwLock<Table>]>,
    entries: AtomicUsize,
}

#[derive(Debug)]
struct Table {
    buckets: Box<[Bucket]>,
    used: usize,
}

/// An entry as it lies in memory: 24 bytes.
#[derive(Debug, Default)]
struct Bucket {
    hash: u64,
    /// Slot of the segment, offset in the segment, length of the front; 0 if there is no entry.
    place: u64,
    expires_s: u32,
    /// Length of the record, uses, and what is known of it.
    word: AtomicU32,
}

/// Where a record is. Numbers are never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    /// Bytes of the record.
    pub(super) length: u64,
    pub(super) expires_s: u32,
    /// How often it was looked up, up to 3, since it was written.
    pub(super) uses: u32,
    pub(super) checked: Checked,
    pub(super) slice: bool,
}

/// Whether a record's body is known to match its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// Not yet, in this process.
    No,
    /// It was written or read by this process.
    Yes,
}

impl Place {
    /// `slot` is not 0 and has 24 bits.
    pub(super) fn new(slot: u32, entry: &FooterEntry) -> Place {
        let offset = entry.offset / ALIGNMENT;
        let front = u64::from(entry.front_units);
        Place(u64::from(slot) << (OFFSET_BITS + FRONT_BITS) | offset << FRONT_BITS | front)
    }

    pub(super) fn slot(self) -> u32 {
        // 24 bits are left.
        (self.0 >> (OFFSET_BITS + FRONT_BITS)) as u32
    }

    pub(super) fn offset(self) -> u64 {
        (self.0 >> FRONT_BITS & ((1 << OFFSET_BITS) - 1)) * ALIGNMENT
    }

    /// Bytes of the front, rounded up.
    pub(super) fn front_bytes(self) -> usize {
        (self.0 & ((1 << FRONT_BITS) - 1)) as usize * FRONT_UNIT
    }
}

impl Entry {
    /// The entry for what a footer lists.
    pub(super) fn new(slot: u32, entry: &FooterEntry, checked: Checked) -> Entry {
        Entry {
            place: Place::new(slot, entry),
            length: entry.length,
            expires_s: entry.expires_s,
            uses: 0,
            checked,
            slice: entry.part == Part::Slice,
        }
    }
}

impl Index {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| RwLock::new(Table::with_buckets(16)));
        Index { shards: shards.collect(), entries: AtomicUsize::new(0) }
    }

    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Bytes of memory that the table takes.
    pub(super) fn bytes(&self) -> u64 {
        let buckets = |shard: &RwLock<Table>| read(shard).buckets.len();
        let buckets: usize = self.shards.iter().map(buckets).sum();
        (buckets * size_of::<Bucket>()) as u64
    }

    /// The entry with a hash.
    pub(super) fn find(&self, hash: u64) -> Option<Entry> {
        let table = read(self.shard(hash));
        Some(table.bucket(hash)?.entry())
    }

    /// The entry with a hash, which counts as used.
    pub(super) fn look_up(&self, hash: u64) -> Option<Entry> {
        let table = read(self.shard(hash));
        let bucket = table.bucket(hash)?;
        let word = bucket.word.load(Ordering::Relaxed);
        if word >> USES_SHIFT & USES_MAX < USES_MAX {
            // Of two at once, one may not count; what else is in the word stays as it is.
            let (used, relaxed) = (word + (1 << USES_SHIFT), Ordering::Relaxed);
            let _ = bucket.word.compare_exchange(word, used, relaxed, relaxed);
        }
        Some(bucket.entry())
    }

    /// Enters what has a hash, in place of what had it before.
    pub(super) fn insert(&self, hash: u64, entry: Entry) {
        if write(self.shard(hash)).insert(Bucket::new(hash, entry)) {
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Enters a record's new place, if its old one still counts.
    pub(super) fn move_to(&self, hash: u64, from: Place, entry: Entry) -> bool {
        let mut table = write(self.shard(hash));
        let current = table.bucket(hash).is_some_and(|bucket| bucket.place == from.0);
        if current {
            table.insert(Bucket::new(hash, entry));
        }
        current
    }

    /// Remembers that a record was checked.
    pub(super) fn mark_checked(&self, hash: u64, place: Place) {
        let table = read(self.shard(hash));
        if let Some(bucket) = table.bucket(hash)
            && bucket.place == place.0
        {
            bucket.word.fetch_or(VERIFIED, Ordering::Relaxed);
        }
    }

    /// Removes what has a hash.
    pub(super) fn remove(&self, hash: u64) -> bool {
        self.remove_where(hash, |_| true)
    }

    /// Removes what has a hash, if it is at this place.
    pub(super) fn remove_at(&self, hash: u64, place: Place) -> bool {
        self.remove_where(hash, |bucket| bucket.place == place.0)
    }

    /// Removes what is in a segment, without being told what that is: looks at every entry, a shard
    /// at a time.
    pub(super) fn remove_segment(&self, slot: u32) -> u64 {
        let mut removed = 0;
        for shard in &self.shards {
            let hashes: Vec<u64> = read(shard)
                .buckets
                .iter()
                .filter(|bucket| bucket.place != 0 && Place(bucket.place).slot() == slot)
                .map(|bucket| bucket.hash)
                .collect();
            for hash in hashes {
                let there = |bucket: &Bucket| Place(bucket.place).slot() == slot;
                removed += u64::from(self.remove_where(hash, there));
            }
        }
        removed
    }

    /// Visits up to `steps` places of the table from `from` on; says where to go on.
    pub(super) fn visit(
        &self,
        from: (usize, usize),
        steps: usize,
        mut visit: impl FnMut(u64, Entry),
    ) -> Option<(usize, usize)> {
        let (shard, start) = from;
        let table = read(self.shards.get(shard)?);
        let end = start.saturating_add(steps).min(table.buckets.len());
        for bucket in table.buckets.get(start..end).unwrap_or(&[]) {
            if bucket.place != 0 {
                visit(bucket.hash, bucket.entry());
            }
        }
        if end < table.buckets.len() {
            Some((shard, end))
        } else {
            (shard + 1 < SHARDS).then_some((shard + 1, 0))
        }
    }

    fn remove_where(&self, hash: u64, is_it: impl FnOnce(&Bucket) -> bool) -> bool {
        let removed = write(self.shard(hash)).remove_where(hash, is_it);
        if removed {
            self.entries.fetch_sub(1, Ordering::Relaxed);
        }
        removed
    }

    fn shard(&self, hash: u64) -> &RwLock<Table> {
        // The lowest bits; the highest ones choose the place within the shard.
        &self.shards[usize::from(hash.to_le_bytes()[0]) % SHARDS]
    }
}

impl Table {
    fn with_buckets(buckets: usize) -> Table {
        let buckets = std::iter::repeat_with(Bucket::default).take(buckets).collect();
        Table { buckets, used: 0 }
    }

    fn bucket(&self, hash: u64) -> Option<&Bucket> {
        self.position(hash).map(|at| &self.buckets[at])
    }

    /// Where the entry with a hash is. There is always an empty bucket to end at.
    fn position(&self, hash: u64) -> Option<usize> {
        let mut at = self.ideal(hash);
        while self.buckets[at].place != 0 {
            if self.buckets[at].hash == hash {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    /// Puts an entry in, and says whether there was none with its hash.
    fn insert(&mut self, bucket: Bucket) -> bool {
        if let Some(at) = self.position(bucket.hash) {
            self.buckets[at] = bucket;
            return false;
        }
        if (self.used + 1) * 5 > self.buckets.len() * 4 {
            self.grow();
        }
        self.put(bucket);
        self.used += 1;
        true
    }

    fn grow(&mut self) {
        let larger = Table::with_buckets(self.buckets.len() * 13 / 10 + 8);
        let smaller = std::mem::replace(&mut self.buckets, larger.buckets);
        for bucket in smaller.into_iter().filter(|bucket| bucket.place != 0) {
            self.put(bucket);
        }
    }

    fn put(&mut self, bucket: Bucket) {
        let mut at = self.ideal(bucket.hash);
        while self.buckets[at].place != 0 {
            at = self.next(at);
        }
        self.buckets[at] = bucket;
    }

    fn remove_where(&mut self, hash: u64, is_it: impl FnOnce(&Bucket) -> bool) -> bool {
        let Some(mut hole) = self.position(hash) else { return false };
        if !is_it(&self.buckets[hole]) {
            return false;
        }
        // Whoever stands further from its place than the hole moves into it, so that no search ends
        // too early.
        let length = self.buckets.len();
        let distance = |from: usize, to: usize| (to + length - from) % length;
        let mut at = self.next(hole);
        while self.buckets[at].place != 0 {
            if distance(self.ideal(self.buckets[at].hash), at) >= distance(hole, at) {
                self.buckets.swap(hole, at);
                hole = at;
            }
            at = self.next(at);
        }
        self.buckets[hole] = Bucket::default();
        self.used -= 1;
        true
    }

    /// Where an entry stands if nobody else does.
    fn ideal(&self, hash: u64) -> usize {
        // The part of the table that the hash is of all hashes; below the length.
        let part = (u128::from(hash) * self.buckets.len() as u128) >> 64;
        usize::try_from(part).unwrap_or(0)
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() { 0 } else { at + 1 }
    }
}

impl Bucket {
    fn new(hash: u64, entry: Entry) -> Bucket {
        let length = u32::try_from(entry.length / ALIGNMENT).unwrap_or((1 << LENGTH_BITS) - 1);
        let mut word = length & ((1 << LENGTH_BITS) - 1) | entry.uses.min(USES_MAX) << USES_SHIFT;
        if entry.checked == Checked::Yes {
            word |= VERIFIED;
        }
        if entry.slice {
            word |= SLICE;
        }
        let word = AtomicU32::new(word);
        Bucket { hash, place: entry.place.0, expires_s: entry.expires_s, word }
    }

    fn entry(&self) -> Entry {
        let word = self.word.load(Ordering::Relaxed);
        Entry {
            place: Place(self.place),
            length: u64::from(word & ((1 << LENGTH_BITS) - 1)) * ALIGNMENT,
            expires_s: self.expires_s,
            uses: word >> USES_SHIFT & USES_MAX,
            checked: if word & VERIFIED == 0 { Checked::No } else { Checked::Yes },
            slice: word & SLICE != 0,
        }
    }
}

// Nothing under these locks can panic half-way.

fn read(shard: &RwLock<Table>) -> RwLockReadGuard<'_, Table> {
    shard.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(shard: &RwLock<Table>) -> RwLockWriteGuard<'_, Table> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn entry(slot: u32, offset: u64) -> Entry {
        let entry = FooterEntry {
            hash: 0,
            offset,
            length: offset + 8,
            expires_s: slot,
            front_units: 4095,
            part: if slot.is_multiple_of(2) { Part::Object } else { Part::Slice },
        };
        Entry::new(slot, &entry, if slot.is_multiple_of(3) { Checked::Yes } else { Checked::No })
    }

    #[test]
    fn an_entry_is_packed_and_unpacked() {
        assert_eq!(size_of::<Bucket>(), 24);
        let largest = (ALIGNMENT << OFFSET_BITS) - 16;
        for (slot, offset) in [(1, 0), (6, 64), ((1 << 24) - 1, largest)] {
            let mut entry = entry(slot, offset);
            for uses in 0..=USES_MAX {
                entry.uses = uses;
                assert_eq!(Bucket::new(7, entry).entry(), entry);
            }
            assert_eq!((entry.place.slot(), entry.place.offset()), (slot, offset));
            assert_eq!(entry.place.front_bytes(), 4095 * FRONT_UNIT);
        }
    }

    /// Hashes that crowd a few places of a shard, and wrap around its end.
    fn hash(number: u64) -> u64 {
        let high = match number % 3 {
            0 => u64::MAX << 8,
            1 => 0,
            _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        high ^ number << 6 & 0xffff
    }

    #[test]
    fn operations_in_any_order_are_those_of_a_map() {
        let index = Index::new();
        let mut model: HashMap<u64, Entry> = HashMap::new();
        let mut state = 1_u64;
        for turn in 0..100_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let hash = hash(state >> 33 & 511);
            let fresh = entry(turn % 1000 + 1, u64::from(turn) * 8);
            match state >> 60 {
                0..=5 => {
                    index.insert(hash, fresh);
                    model.insert(hash, fresh);
                }
                6..=9 => assert_eq!(index.remove(hash), model.remove(&hash).is_some()),
                10 => {
                    let place = model.get(&hash).map_or(fresh.place, |entry| entry.place);
                    let moved = index.move_to(hash, place, fresh);
                    assert_eq!(moved, model.contains_key(&hash));
                    model.entry(hash).and_modify(|entry| *entry = fresh);
                }
                11 => assert!(!index.remove_at(hash, fresh.place)),
                _ => {
                    let found = index.look_up(hash);
                    let expected = model.get_mut(&hash).map(|entry| {
                        entry.uses = (entry.uses + 1).min(USES_MAX);
                        *entry
                    });
                    assert_eq!(found, expected);
                }
            }
            assert_eq!(index.entries(), model.len());
        }
        let mut seen = HashMap::new();
        let mut cursor = Some((0, 0));
        while let Some(from) = cursor {
            cursor = index.visit(from, 5, |hash, entry| {
                assert!(seen.insert(hash, entry).is_none());
            });
        }
        assert_eq!(seen, model);
    }

    #[test]
    fn an_entry_takes_39_bytes_at_most() {
        let index = Index::new();
        for number in 0..200_000_u64 {
            index.insert(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(9), entry(1, 8));
            if number > 20_000 && number % 1000 == 0 {
                let each = index.bytes() / (number + 1);
                assert!((30..=39).contains(&each), "{each} at {number}");
            }
        }
    }

    #[test]
    fn a_segment_that_goes_takes_its_entries_with_it() {
        let index = Index::new();
        for number in 0..3000 {
            index.insert(number << 20 | number, entry(u32::try_from(number % 3).unwrap() + 1, 8));
        }
        assert_eq!(index.remove_segment(2), 1000);
        assert_eq!((index.entries(), index.remove_segment(2)), (2000, 0));
    }
}
