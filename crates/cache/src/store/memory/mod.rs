//! The memory tier: values by key, bounded in bytes, for any number of threads.
//!
//! - A hit is a look-up under a shared lock: it changes counters of the entry and no order, so
//!   readers do not wait for each other. The exclusive lock is held for a table operation and a
//!   bounded number of evictions, never for I/O, copying, or dropping a value.
//! - Who stays is decided by S3-FIFO (see `shard`), over bytes: what is asked for once, however much
//!   of it, does not drive out what is asked for again.
//! - The bound holds for weights, keys and what entries cost ([`ENTRY_BYTES`]), and is passed for
//!   the time of an insertion at most.
//!
//! A value is anything cheap to clone: a reference count to the stored object. What an object weighs
//! is the caller's to say; that a value outlives its entry as long as somebody holds it, too.

mod ghost;
mod shard;
mod slab;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::key::{Key, Slice};
use shard::{Shard, Trimmed, charged};

pub use shard::ENTRY_BYTES;

/// Evictions under one hold of the lock.
const STEPS: usize = 32;

/// Bytes that are worth a shard: fewer would make large objects crowd each other out of small ones.
const SHARD_BYTES: u64 = 64 << 20;

/// Most shards; more than this many threads look up at once nowhere.
const SHARDS_MAX: u64 = 64;

/// The part of a shard's bytes that one value may take: one in so many.
const VALUE_PART: u64 = 8;

/// The tier.
#[derive(Debug)]
pub struct Memory<V> {
    shards: Box<[Lock<V>]>,
    /// Of each shard.
    budget: AtomicU64,
    evicted: AtomicU64,
}

/// A shard on cache lines of its own, so that one's lock does not slow another's.
#[repr(align(128))]
struct Lock<V>(RwLock<Shard<V>>);

/// What an insertion came to. Values that went are handed back, to be dropped where that takes as
/// long as it likes.
#[derive(Debug)]
#[must_use]
pub struct Inserted<V> {
    /// What became of the value.
    pub outcome: Outcome,
    /// What was there before, what was evicted to make room, and the value if it was refused.
    pub gone: Vec<V>,
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored under a key that held nothing.
    Added,
    /// It is stored in the place of another.
    Replaced,
    /// It is larger than [`Memory::value_bytes_max`]. Nothing is stored under its key any more.
    TooLarge,
}

/// An entry as seen by [`Memory::visit`].
#[derive(Debug)]
pub struct Entry<'a, V> {
    /// The key's bytes.
    pub key: &'a [u8],
    /// The hash of the variant, 0 where there is none.
    pub variant: u64,
    /// The slice, if it is not a whole response.
    pub slice: Option<Slice>,
    /// The value.
    pub value: &'a V,
    /// What it is taken to cost: weight, key and [`ENTRY_BYTES`].
    pub bytes: u64,
    /// How often it was found. Hits at the same instant may count as one.
    pub hits: u32,
}

/// How far a visit has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    shard: usize,
    slot: u32,
}

/// Sums over all shards, each read on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries held.
    pub entries: u64,
    /// Bytes they are taken to cost.
    pub bytes: u64,
    /// Most bytes they may cost.
    pub bytes_max: u64,
    /// Entries that went to make room, since the start.
    pub evicted: u64,
}

impl<V: Clone> Memory<V> {
    /// A tier of at most `bytes_max` bytes. The number of shards follows from it, and does not
    /// change with [`Memory::resize`].
    pub fn new(bytes_max: u64) -> Self {
        let shards = (bytes_max / SHARD_BYTES).clamp(1, SHARDS_MAX);
        // Rounded down to a power of two, so that bits of the hash choose.
        let shards = 1 << shards.ilog2();
        Self {
            shards: (0..shards).map(|_| Lock(RwLock::new(Shard::new()))).collect(),
            budget: AtomicU64::new(bytes_max / shards),
            evicted: AtomicU64::new(0),
        }
    }

    /// Most bytes that a value may cost: a larger one would drive out too much for one key.
    pub fn value_bytes_max(&self) -> u64 {
        self.budget.load(Ordering::Relaxed) / VALUE_PART
    }

    /// The value under a key; counts as a use of it.
    pub fn get(&self, key: &Key<'_>) -> Option<V> {
        self.shard(key).read().look_up(key).cloned()
    }

    /// The value under a key, for those who only look.
    pub fn peek(&self, key: &Key<'_>) -> Option<V> {
        self.shard(key).read().peek(key).cloned()
    }

    /// Stores a value of so many bytes, in place of what the key held.
    pub fn insert(&self, key: &Key<'_>, value: V, weight: u64) -> Inserted<V> {
        if charged(key, weight) > self.value_bytes_max() {
            let mut gone = vec![value];
            gone.extend(self.remove(key));
            return Inserted { outcome: Outcome::TooLarge, gone };
        }
        let key_bytes = key.bytes().into();
        let mut gone = Vec::new();
        let shard = self.shard(key);
        let mut guard = shard.write();
        let outcome = match guard.replace(key, value, weight) {
            Ok(before) => {
                gone.push(before);
                Outcome::Replaced
            }
            Err(value) => {
                guard.add(key, key_bytes, value, weight);
                Outcome::Added
            }
        };
        self.trim(shard, guard, |values| gone.append(values));
        Inserted { outcome, gone }
    }

    /// Puts another value in place of the one under a key, if `is_it` says that it is the one which
    /// is meant (the value that was revalidated, say, and not a newer one). Gives back the value
    /// that is not stored: the one before, or else the one that was to be.
    ///
    /// `is_it` runs under the lock; it compares, no more.
    pub fn replace(
        &self,
        key: &Key<'_>,
        value: V,
        weight: u64,
        is_it: impl FnOnce(&V) -> bool,
    ) -> Result<V, V> {
        if charged(key, weight) > self.value_bytes_max() {
            return Err(value);
        }
        let shard = self.shard(key);
        let mut guard = shard.write();
        if !guard.peek(key).is_some_and(is_it) {
            return Err(value);
        }
        let before = guard.replace(key, value, weight);
        self.trim(shard, guard, Vec::clear);
        before
    }

    /// Removes what is under a key.
    pub fn remove(&self, key: &Key<'_>) -> Option<V> {
        self.shard(key).write().remove(key)
    }

    /// Removes what is under a key if `is_it` says that it is what is meant; `is_it` runs under the
    /// lock.
    pub fn remove_if(&self, key: &Key<'_>, is_it: impl FnOnce(&V) -> bool) -> Option<V> {
        let mut guard = self.shard(key).write();
        if guard.peek(key).is_some_and(is_it) { guard.remove(key) } else { None }
    }

    /// Changes the bound, and evicts what is beyond the new one, a few entries at a time. Takes as
    /// long as dropping them does: not for a worker's loop.
    pub fn resize(&self, bytes_max: u64) {
        self.budget.store(bytes_max / self.shards.len() as u64, Ordering::Relaxed);
        for shard in &self.shards {
            self.trim(shard, shard.write(), Vec::clear);
        }
    }

    /// Visits up to `steps` places from `from` on, and says where to go on. The lock of a shard is
    /// held while `visit` runs. Entries that come, go or are replaced between two steps may be
    /// missed or seen twice; others are seen once.
    pub fn visit(
        &self,
        from: Cursor,
        steps: u32,
        mut visit: impl FnMut(Entry<'_, V>),
    ) -> Option<Cursor> {
        let lock = self.shards.get(from.shard)?;
        let shard = lock.read();
        let end = from.slot.saturating_add(steps).min(shard.slots());
        for slot in from.slot..end {
            if let Some(entry) = shard.entry(slot) {
                visit(Entry {
                    key: &entry.key,
                    variant: entry.variant,
                    slice: entry.slice,
                    value: &entry.value,
                    bytes: entry.bytes,
                    hits: entry.hits.load(Ordering::Relaxed),
                });
            }
        }
        if end < shard.slots() {
            Some(Cursor { shard: from.shard, slot: end })
        } else {
            let next = Cursor { shard: from.shard + 1, slot: 0 };
            (next.shard < self.shards.len()).then_some(next)
        }
    }

    /// What is held.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            bytes_max: self.budget.load(Ordering::Relaxed) * self.shards.len() as u64,
            evicted: self.evicted.load(Ordering::Relaxed),
            ..Stats::default()
        };
        for shard in &self.shards {
            let shard = shard.read();
            stats.entries += shard.entries() as u64;
            stats.bytes += shard.bytes();
        }
        stats
    }

    /// Brings a locked shard within its budget, and lets go of the lock between a few entries and
    /// the next, where `take` gets what went meanwhile.
    fn trim<'a>(
        &self,
        shard: &'a Lock<V>,
        mut guard: RwLockWriteGuard<'a, Shard<V>>,
        mut take: impl FnMut(&mut Vec<V>),
    ) {
        let budget = self.budget.load(Ordering::Relaxed);
        let mut gone = Vec::new();
        loop {
            let trimmed = guard.trim(budget, STEPS, &mut gone);
            drop(guard);
            if !gone.is_empty() {
                self.evicted.fetch_add(gone.len() as u64, Ordering::Relaxed);
                take(&mut gone);
            }
            match trimmed {
                Trimmed::Within => break,
                Trimmed::Over => guard = shard.write(),
            }
        }
    }

    fn shard(&self, key: &Key<'_>) -> &Lock<V> {
        // Tables within shards use the lowest and the highest bits.
        let bits = (key.hash() >> 40) as usize;
        &self.shards[bits & (self.shards.len() - 1)]
    }
}

impl<V> Lock<V> {
    // A panic under the lock can only be one of `V::clone` or of a caller's closure, neither of
    // which leaves a shard half changed.
    fn read(&self) -> RwLockReadGuard<'_, Shard<V>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shard<V>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> std::fmt::Debug for Lock<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
