//! In which order variables give way, and the lock under which a record is written.
//!
//! Records are spread over shards by a hash. A shard's lock is held by whoever writes one of its
//! records, for about a microsecond, and by nobody who only reads or increments. Under it stands the
//! shard's agenda: its slots by rank (see [`super::slot::Slot::due_rank`]). A rank on the agenda may be
//! lower than what it would be by now, because writes put their variable off: that is found out
//! when its turn comes. So a write to a known variable mostly leaves the agenda alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::slot::{GONE, NO_RANK, Slot};

const SHARDS: usize = 64;

/// A lock for writers among themselves, held briefly; readers and increments never take one.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "orders writers; it is not on the readers' way")]
pub(super) struct Lock<T>(std::sync::Mutex<T>);

impl<T> Lock<T> {
    /// Takes the lock. Who panicked under it left its data whole, or short of a slot's turn at
    /// worst, which is better than serving nobody from then on.
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Shards(Box<[Shard]>);

#[derive(Debug, Default)]
pub(super) struct Shard {
    agenda: Lock<Agenda>,
    /// The lowest rank on the agenda, for who looks for something to give up.
    first_rank: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Agenda {
    slots: BTreeMap<(u64, u64), Arc<Slot>>,
}

/// A shard while its lock is held.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    agenda: MutexGuard<'a, Agenda>,
    shard: &'a Shard,
}

impl Shards {
    pub(super) fn new() -> Self {
        let shard = || Shard { first_rank: AtomicU64::new(NO_RANK), ..Shard::default() };
        Self(std::iter::repeat_with(shard).take(SHARDS).collect())
    }

    /// Takes the lock under which a record is written, by the hash of its address.
    pub(super) fn lock(&self, record: u64) -> Locked<'_> {
        // The tables use the lowest bits and the highest.
        let [_, _, _, shard, ..] = record.to_le_bytes();
        self.0[usize::from(shard) % SHARDS].lock()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.0.iter()
    }

    /// The shard with the lowest rank, unless all are empty.
    pub(super) fn first(&self) -> Option<&Shard> {
        let rank = |shard: &Shard| shard.first_rank.load(Ordering::Relaxed);
        let first = self.0.iter().min_by_key(|shard| rank(shard))?;
        (rank(first) != NO_RANK).then_some(first)
    }
}

impl Shard {
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { agenda: self.agenda.lock(), shard: self }
    }
}

impl Locked<'_> {
    /// Puts a slot on the agenda under `rank`, unless it stands there under a lower one.
    pub(super) fn enlist(&mut self, slot: &Arc<Slot>, rank: u64) {
        let old = slot.rank.load(Ordering::Relaxed);
        if old <= rank {
            return;
        }
        if old != NO_RANK {
            self.agenda.slots.remove(&(old, slot.id));
        }
        slot.rank.store(rank, Ordering::Relaxed);
        self.agenda.slots.insert((rank, slot.id), Arc::clone(slot));
        self.publish();
    }

    /// Takes a slot off the agenda.
    pub(super) fn strike(&mut self, slot: &Slot) {
        let old = slot.rank.swap(NO_RANK, Ordering::Relaxed);
        if old != NO_RANK {
            self.agenda.slots.remove(&(old, slot.id));
            self.publish();
        }
    }

    /// Takes a slot off the agenda for good: it is dropped, and who still holds it cannot put it back.
    pub(super) fn retire(&mut self, slot: &Slot) {
        self.strike(slot);
        slot.rank.store(GONE, Ordering::Relaxed);
    }

    /// The slot with the lowest rank, if that is at most `rank_max`.
    pub(super) fn first(&self, rank_max: u64) -> Option<Arc<Slot>> {
        let ((rank, _), slot) = self.agenda.slots.first_key_value()?;
        (*rank <= rank_max).then(|| Arc::clone(slot))
    }

    fn publish(&self) {
        let first = self.agenda.slots.first_key_value().map_or(NO_RANK, |((rank, _), _)| *rank);
        self.shard.first_rank.store(first, Ordering::Relaxed);
    }
}
