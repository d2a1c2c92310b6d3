//! One shard: a table of entries, and the S3-FIFO policy that decides who stays.
//!
//! S3-FIFO (Yang, Qiu, Zhang, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP
//! 2023): new entries wait in a small queue, a tenth of the bytes. Who is used there twice moves to
//! the main queue when its turn comes; who is not leaves, and its hash is remembered. Who comes back
//! while remembered goes to the main queue at once. There, who was used since its last turn goes
//! round again. A scan passes through the small queue and touches nothing else, and a hit changes a
//! counter of its entry and no queue, so it needs no exclusive lock. Queues are measured in bytes.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use hashbrown::HashTable;

use super::ghost::Ghost;
use super::slab::{Queue, Slab};
use crate::store::key::{Key, Slice};

/// Uses beyond which counting has no effect: rounds that an entry stays in the main queue unused.
const USES_MAX: u8 = 3;

/// Uses while in the small queue that lead to the main queue.
const USES_TO_STAY: u8 = 2;

/// The small queue's part of the bytes: one in so many.
const SMALL_PART: u64 = 10;

/// What is taken for an entry beyond its weight and its key's bytes: slot, places in the table and
/// among those remembered after they left.
pub const ENTRY_BYTES: u64 = 192;

pub(super) struct Shard<V> {
    table: HashTable<Place>,
    slots: Slab<Entry<V>>,
    small: Queue,
    main: Queue,
    ghost: Ghost,
}

/// Where an entry is. The hash is here, too, so that the table grows without visiting the slots.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    slot: u32,
}

pub(super) struct Entry<V> {
    pub(super) key: Box<[u8]>,
    pub(super) variant: u64,
    pub(super) slice: Option<Slice>,
    pub(super) value: V,
    /// Weight, key and [`ENTRY_BYTES`].
    pub(super) bytes: u64,
    pub(super) hits: AtomicU32,
    hash: u64,
    uses: AtomicU8,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Small,
    Main,
}

/// What a limited number of steps towards a budget has come to.
pub(super) enum Trimmed {
    /// The shard is within its budget.
    Within,
    /// It is not yet.
    Over,
}

impl<V> Entry<V> {
    fn is(&self, key: &Key<'_>) -> bool {
        self.hash == key.hash()
            && self.variant == key.variant_hash()
            && self.slice == key.slice_of()
            && *self.key == *key.bytes()
    }

    /// Counts a use. Two at once may count as one, which spares a locked instruction and changes
    /// nothing that matters.
    fn used(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < USES_MAX {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
        let hits = self.hits.load(Ordering::Relaxed);
        self.hits.store(hits.saturating_add(1), Ordering::Relaxed);
    }
}

impl<V> Shard<V> {
    pub(super) const fn new() -> Self {
        Shard {
            table: HashTable::new(),
            slots: Slab::new(),
            small: Queue::new(),
            main: Queue::new(),
            ghost: Ghost::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.small.bytes + self.main.bytes
    }

    pub(super) fn entries(&self) -> usize {
        self.table.len()
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots.slots()
    }

    pub(super) fn entry(&self, slot: u32) -> Option<&Entry<V>> {
        self.slots.entry(slot)
    }

    /// The value under a key, without counting it as a use.
    pub(super) fn peek(&self, key: &Key<'_>) -> Option<&V> {
        Some(&self.slots.entry(self.find(key)?)?.value)
    }

    /// The value under a key.
    pub(super) fn look_up(&self, key: &Key<'_>) -> Option<&V> {
        let entry = self.slots.entry(self.find(key)?)?;
        entry.used();
        Some(&entry.value)
    }

    /// Puts another value in the place of one that is there; it keeps its turn. Gives it back when
    /// there is none.
    pub(super) fn replace(&mut self, key: &Key<'_>, value: V, weight: u64) -> Result<V, V> {
        let Some(entry) = self.find(key).and_then(|slot| self.slots.entry_mut(slot)) else {
            return Err(value);
        };
        let bytes = charged(key, weight);
        let queue = match entry.stage {
            Stage::Small => &mut self.small,
            Stage::Main => &mut self.main,
        };
        queue.bytes = queue.bytes - entry.bytes + bytes;
        entry.bytes = bytes;
        Ok(std::mem::replace(&mut entry.value, value))
    }

    /// Adds a value whose key is not there. `key_bytes` are the key's, copied before the lock was
    /// taken.
    pub(super) fn add(&mut self, key: &Key<'_>, key_bytes: Box<[u8]>, value: V, weight: u64) {
        let hash = key.hash();
        let stage = if self.ghost.came_back(hash) { Stage::Main } else { Stage::Small };
        let bytes = charged(key, weight);
        let entry = Entry {
            key: key_bytes,
            variant: key.variant_hash(),
            slice: key.slice_of(),
            value,
            bytes,
            hits: AtomicU32::new(0),
            hash,
            uses: AtomicU8::new(0),
            stage,
        };
        if let Some(slot) = self.slots.insert(entry) {
            self.table.insert_unique(hash, Place { hash, slot }, |place| place.hash);
            self.enqueue(slot, stage, bytes);
        }
    }

    pub(super) fn remove(&mut self, key: &Key<'_>) -> Option<V> {
        let slot = self.find(key)?;
        let entry = self.slots.entry(slot)?;
        let (stage, bytes) = (entry.stage, entry.bytes);
        self.dequeue(slot, stage, bytes);
        self.take(slot, key.hash()).map(|entry| entry.value)
    }

    /// Lets entries go until `budget` bytes are left, in at most `steps` steps. What went is in
    /// `gone`, to be dropped outside the lock.
    pub(super) fn trim(&mut self, budget: u64, steps: usize, gone: &mut Vec<V>) -> Trimmed {
        for _ in 0..steps {
            if self.bytes() <= budget {
                return Trimmed::Within;
            }
            let from_small = self.small.bytes > budget / SMALL_PART;
            let (first, second) = if from_small {
                (self.small.oldest(), self.main.oldest())
            } else {
                (self.main.oldest(), self.small.oldest())
            };
            let Some(slot) = first.or(second) else { return Trimmed::Within };
            gone.extend(self.turn(slot, budget));
        }
        if self.bytes() <= budget { Trimmed::Within } else { Trimmed::Over }
    }

    /// The turn of the oldest entry of a queue: it goes round, goes on, or goes.
    fn turn(&mut self, slot: u32, budget: u64) -> Option<V> {
        let entry = self.slots.entry_mut(slot)?;
        let (stage, bytes, hash) = (entry.stage, entry.bytes, entry.hash);
        let uses = entry.uses.get_mut();
        let stays = match stage {
            Stage::Small => *uses >= USES_TO_STAY,
            Stage::Main => *uses > 0,
        };
        if stays {
            *uses = if stage == Stage::Main { *uses - 1 } else { 0 };
            entry.stage = Stage::Main;
            self.dequeue(slot, stage, bytes);
            self.enqueue(slot, Stage::Main, bytes);
            return None;
        }
        self.dequeue(slot, stage, bytes);
        if stage == Stage::Small {
            self.ghost.remember(hash, bytes, budget - budget / SMALL_PART);
        }
        self.take(slot, hash).map(|entry| entry.value)
    }

    fn find(&self, key: &Key<'_>) -> Option<u32> {
        let same = |place: &Place| {
            place.hash == key.hash()
                && self.slots.entry(place.slot).is_some_and(|entry| entry.is(key))
        };
        self.table.find(key.hash(), same).map(|place| place.slot)
    }

    fn take(&mut self, slot: u32, hash: u64) -> Option<Entry<V>> {
        if let Ok(entry) = self.table.find_entry(hash, |place| place.slot == slot) {
            entry.remove();
        }
        self.slots.remove(slot)
    }

    fn enqueue(&mut self, slot: u32, stage: Stage, bytes: u64) {
        match stage {
            Stage::Small => self.small.push(&mut self.slots, slot, bytes),
            Stage::Main => self.main.push(&mut self.slots, slot, bytes),
        }
    }

    fn dequeue(&mut self, slot: u32, stage: Stage, bytes: u64) {
        match stage {
            Stage::Small => self.small.unlink(&mut self.slots, slot, bytes),
            Stage::Main => self.main.unlink(&mut self.slots, slot, bytes),
        }
    }
}

/// What an entry is taken to cost, in bytes.
pub(super) fn charged(key: &Key<'_>, weight: u64) -> u64 {
    weight.saturating_add(key.bytes().len() as u64).saturating_add(ENTRY_BYTES)
}
