//! How variables are forgotten: when their time is over, or when the limits leave no room.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::agenda::Locked;
use super::cell::{Cell, Plain};
use super::feed::{Event, Forgotten, Source};
use super::index::Cells;
use super::slot::{Kept, Place, Slot};
use super::store::{Store, living};
use super::{Bytes, ENTRY_BYTES, Lifetime, RECORD_BYTES, Refused};

/// How many slots are cleared away under one hold of a lock.
const CLEARED_PER_HOLD: usize = 64;
/// How often a slot that is first on the agenda may turn out to have been put off before it gives
/// way all the same.
const PUT_OFF_MAX: usize = 64;

/// The limits leave no room at this moment.
#[derive(Debug)]
pub(super) struct Shortage;

/// How much of a record to look through for what has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purge {
    /// All of it: its time is over.
    Whole,
    /// Up to the first variable that lives. What is passed is forgotten, so nothing is passed twice.
    UntilLiving,
}

/// What came of clearing.
pub(super) struct Cleared {
    looked_at: usize,
    forgotten: usize,
}

impl Store {
    /// Clears away what has expired; how many variables.
    pub(super) fn sweep(&self, now_ms: u64) -> usize {
        let mut cleared = 0;
        for shard in self.shards.iter() {
            loop {
                let some = self.clear(&mut shard.lock(), now_ms, CLEARED_PER_HOLD);
                cleared += some.forgotten;
                if some.looked_at < CLEARED_PER_HOLD {
                    break;
                }
            }
        }
        cleared
    }

    /// Tries until there is room, giving up one variable after each failure.
    pub(super) fn retry<R>(
        &self,
        now_ms: u64,
        mut attempt: impl FnMut() -> Result<R, Shortage>,
    ) -> Result<R, Refused> {
        loop {
            if let Ok(done) = attempt() {
                return Ok(done);
            }
            if !self.evict(now_ms) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Refused::NoRoom);
            }
        }
    }

    pub(super) fn reserve(&self, entries: usize, bytes: usize) -> Result<(), Shortage> {
        let had = self.entries.fetch_add(entries, Ordering::Relaxed);
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits =
            had + entries <= self.settings.entries_max && held + bytes <= self.settings.bytes_max;
        // Taking nothing more is always possible.
        if fits || (entries == 0 && bytes == 0) {
            return Ok(());
        }
        self.release(entries, bytes);
        Err(Shortage)
    }

    pub(super) fn release(&self, entries: usize, bytes: usize) {
        self.entries.fetch_sub(entries, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Gives up the variable that would expire soonest; whether there was one.
    fn evict(&self, now_ms: u64) -> bool {
        while let Some(shard) = self.shards.first() {
            let mut locked = shard.lock();
            for put_off in 0..=PUT_OFF_MAX {
                let Some(slot) = locked.first(u64::MAX) else { break };
                let cells = self.index.cells();
                let Some(cell) = cells.get(&slot.place()) else {
                    locked.strike(&slot);
                    continue;
                };
                if cell.is_staging() {
                    // Its load is going to put it back.
                    locked.strike(&slot);
                    continue;
                }
                let rank = cell.seen().map_or(0, |plain| slot.due_rank(plain));
                if rank > slot.rank.load(Ordering::Relaxed) && put_off < PUT_OFF_MAX {
                    locked.strike(&slot);
                    locked.enlist(&slot, rank);
                    continue;
                }
                let expired = living(&slot, cell, now_ms).is_none();
                let why = if expired { Forgotten::Expired } else { Forgotten::Evicted };
                self.forget(&mut locked, &cells, &slot, now_ms, Some(why));
                return true;
            }
        }
        false
    }

    /// Looks at up to `count` slots of a shard whose turn has come.
    pub(super) fn clear(&self, locked: &mut Locked<'_>, now_ms: u64, count: usize) -> Cleared {
        let mut cleared = Cleared { looked_at: 0, forgotten: 0 };
        while cleared.looked_at < count {
            let Some(slot) = locked.first(now_ms) else { break };
            cleared.looked_at += 1;
            let cells = self.index.cells();
            let cell = cells.get(&slot.place());
            if let Some(cell) = cell.filter(|cell| !cell.is_staging()) {
                let rank = cell.seen().map_or(0, |plain| slot.due_rank(plain));
                if rank > now_ms {
                    locked.strike(&slot);
                    locked.enlist(&slot, rank);
                } else {
                    self.forget(locked, &cells, &slot, now_ms, Some(Forgotten::Expired));
                    cleared.forgotten += 1;
                }
            } else {
                locked.strike(&slot);
            }
        }
        cleared
    }

    /// Forgets what a record kept until its time was over, so that writing to it now does not bring
    /// that back, and lets it begin anew if nothing of it lives.
    pub(super) fn purge(
        &self,
        locked: &mut Locked<'_>,
        kept: &Arc<Kept>,
        now_ms: u64,
        purge: Purge,
    ) {
        let mut over = Vec::new();
        let mut lives = false;
        let cells = self.index.cells();
        let start = Place { record: kept.record(), name: b"" };
        self.index.walk(start, |slot| {
            if !Arc::ptr_eq(&slot.kept, kept) {
                return ControlFlow::Break(());
            }
            let Some(cell) = cells.get(&slot.place()) else { return ControlFlow::Continue(()) };
            let living = living(slot, cell, now_ms);
            // What a load is about to show lives.
            lives |= cell.is_staging() || living.and_then(Plain::value).is_some();
            match living {
                Some(_) => {}
                None if cell.is_staging() => {
                    // It cannot be dropped under its load, but it can be over.
                    if let Some(plain) = cell.seen() {
                        plain.set_lifetime(Lifetime::Until(now_ms), plain.lifetime_stamp());
                    }
                }
                None => over.push(Arc::clone(slot)),
            }
            if lives && purge == Purge::UntilLiving {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        for slot in over {
            self.forget(locked, &cells, &slot, now_ms, Some(Forgotten::Expired));
        }
        if !lives {
            kept.renew(now_ms, self.timeout_s());
        }
    }

    /// Drops a slot, and its record if that was the last.
    pub(super) fn forget(
        &self,
        locked: &mut Locked<'_>,
        cells: &Cells<'_>,
        slot: &Arc<Slot>,
        now_ms: u64,
        why: Option<Forgotten>,
    ) {
        let Some(cell) = cells.get(&slot.place()) else { return };
        let had_value = cell.seen().is_some_and(|plain| {
            plain.stop();
            plain.value().is_some()
        });
        locked.retire(slot);
        self.index.remove_slot(slot);
        let mut bytes = ENTRY_BYTES + slot.heap_bytes() + cell.heap_bytes();
        if slot.kept.slots.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.index.remove_record(&slot.kept);
            bytes += RECORD_BYTES + Bytes::heap_bytes(slot.kept.key.len());
        }
        self.release(1, bytes);
        self.mark(slot);
        if let Some(why) = why.filter(|_| had_value) {
            let count = match why {
                Forgotten::Expired => &self.expired,
                Forgotten::Evicted => &self.evicted,
            };
            count.fetch_add(1, Ordering::Relaxed);
            self.feed.tell(slot, now_ms, Source::Local, || Event::Forgotten(why));
        }
    }

    /// Takes in a variable that was found on disk. One that has expired, or for which there is no
    /// room, is left out and to be deleted there.
    pub(super) fn restore(&self, slot: &Arc<Slot>, plain: Plain, now_ms: u64) {
        if now_ms >= slot.due_ms(&plain) {
            self.mark(slot);
            return;
        }
        let first = slot.kept.slots.load(Ordering::Relaxed) == 0;
        let mut bytes = ENTRY_BYTES + slot.heap_bytes() + plain.heap_bytes();
        if first {
            bytes += RECORD_BYTES + Bytes::heap_bytes(slot.kept.key.len());
        }
        if self.retry(now_ms, || self.reserve(1, bytes)).is_err() {
            self.mark(slot);
            return;
        }
        let mut locked = self.shards.lock(slot.kept.hash);
        if first {
            self.index.add_record(Arc::clone(&slot.kept));
        }
        slot.kept.slots.fetch_add(1, Ordering::Relaxed);
        locked.enlist(slot, slot.due_rank(&plain));
        self.index.add_slot(slot, Cell::Plain(plain));
    }
}
