//! A write to one place: what is there, and what is put there instead.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::agenda::Locked;
use super::cell::{Cell, Holds, Number, Plain, Staged};
use super::clearing::{Purge, Shortage};
use super::feed::{Event, Source};
use super::index::Cells;
use super::slot::{Addressed, BySlot, Kept, Place, Slot};
use super::store::{Store, living};
use super::{About, Bytes, ENTRY_BYTES, Lifetime, RECORD_BYTES, Stamp};

/// How many expired slots a write clears away on its shard, beside its own business.
const CLEARED_PER_WRITE: usize = 2;

/// A write to one place, under the lock of its shard.
pub(super) struct Writing<'a> {
    pub(super) store: &'a Store,
    locked: Locked<'a>,
    cells: Cells<'a>,
    place: Place<'a>,
    /// The record, if there was one; perhaps it has been dropped meanwhile.
    kept: Option<Arc<Kept>>,
    pub(super) now_ms: u64,
}

impl<'a> Writing<'a> {
    pub(super) fn begin(store: &'a Store, place: Place<'a>, now_ms: u64) -> Self {
        let addressed = Addressed::from(place.record);
        let mut locked = store.shards.lock(addressed.hash);
        store.clear(&mut locked, now_ms, CLEARED_PER_WRITE);
        let kept = store.index.kept(addressed);
        if let Some(kept) = &kept
            && now_ms >= kept.due_ms()
        {
            store.purge(&mut locked, kept, now_ms, Purge::Whole);
        }
        let cells = store.index.cells();
        let mut writing = Self { store, locked, cells, place, kept, now_ms };
        if let Some(kept) = &writing.kept
            && writing.seen().is_none()
        {
            store.purge(&mut writing.locked, kept, now_ms, Purge::UntilLiving);
        }
        writing
    }

    /// The same within a record that is known to live.
    pub(super) fn go_on(store: &'a Store, kept: Arc<Kept>, place: Place<'a>, now_ms: u64) -> Self {
        let mut locked = store.shards.lock(kept.hash);
        store.clear(&mut locked, now_ms, CLEARED_PER_WRITE);
        if now_ms >= kept.due_ms() {
            store.purge(&mut locked, &kept, now_ms, Purge::Whole);
        }
        let cells = store.index.cells();
        Self { store, locked, cells, place, kept: Some(kept), now_ms }
    }

    /// What is there, be it a value or the mark of a removed one.
    pub(super) fn living(&self) -> Option<&Plain> {
        let (slot, cell) = self.cells.get_key_value(&self.place)?;
        living(&slot.0, cell, self.now_ms)
    }

    /// What readers see.
    pub(super) fn seen(&self) -> Option<&Plain> {
        self.living().filter(|plain| plain.value().is_some())
    }

    /// The number that is there, if it is one.
    pub(super) fn number(&self) -> Option<&Number> {
        match &self.living()?.holds {
            Holds::Number(number) => Some(number),
            Holds::Nothing | Holds::Text(_) => None,
        }
    }

    /// When what is there was given, be it a value or the mark of a removed one.
    pub(super) fn base(&self) -> Stamp {
        self.living().map_or(Stamp::NONE, |plain| plain.stamp)
    }

    pub(super) fn slot(&self) -> Option<Arc<Slot>> {
        self.cells.get_key_value(&self.place).map(|(slot, _)| Arc::clone(&slot.0))
    }

    /// Notes that what is there was changed in place.
    pub(super) fn touched(&mut self, source: Source, event: Event) {
        let Some((slot, cell)) = self.cells.get_key_value(&self.place) else { return };
        slot.0.touch(self.now_ms);
        if let Some(plain) = cell.seen() {
            self.locked.enlist(&slot.0, slot.0.due_rank(plain));
        }
        self.store.wrote(&slot.0, self.now_ms, source, || event);
    }

    /// Puts `plain` in the place. It is told before it can be seen, so that nobody is told of an
    /// increment before what it was made on.
    pub(super) fn put(
        &mut self,
        plain: Plain,
        source: Source,
        event: Event,
    ) -> Result<(), Shortage> {
        let Some((slot, old)) = self.cells.get_key_value(&self.place) else {
            let slot = self.make_slot(plain.heap_bytes())?;
            self.locked.enlist(&slot, slot.due_rank(&plain));
            self.store.feed.tell(&slot, self.now_ms, source, || event);
            self.store.index.add_slot(&slot, Cell::Plain(plain));
            self.store.mark(&slot);
            return Ok(());
        };
        let slot = Arc::clone(&slot.0);
        // Asked once: a load may end meanwhile, which is to be after this.
        let staging = old.staging();
        let held = staging.map_or_else(
            || old.heap_bytes(),
            |staging| {
                staging.load.cross();
                staging.before.map_or(0, Plain::heap_bytes)
            },
        );
        self.store.reserve(0, plain.heap_bytes().saturating_sub(held))?;
        self.store.release(0, held.saturating_sub(plain.heap_bytes()));
        if let Some(seen) = old.seen() {
            seen.stop();
        }
        slot.touch(self.now_ms);
        self.locked.enlist(&slot, slot.due_rank(&plain));
        self.store.feed.tell(&slot, self.now_ms, source, || event);
        let cell = match staging {
            Some(staging) => Cell::Staged(Box::new(Staged {
                load: Arc::clone(staging.load),
                after: staging.after.map(|after| after.outdoing(&plain)),
                before: Some(plain),
            })),
            None => Cell::Plain(plain),
        };
        self.cells.insert(BySlot(Arc::clone(&slot)), cell);
        self.store.mark(&slot);
        Ok(())
    }

    /// Makes the slot of a place that has none, counted and with its record, but not yet found.
    pub(super) fn make_slot(&self, value_heap_bytes: usize) -> Result<Arc<Slot>, Shortage> {
        let store = self.store;
        let record = self.place.record;
        // One without slots has been dropped.
        let kept = self.kept.as_ref().filter(|kept| kept.slots.load(Ordering::Relaxed) > 0);
        let mut bytes = ENTRY_BYTES + Bytes::heap_bytes(self.place.name.len()) + value_heap_bytes;
        if kept.is_none() {
            bytes += RECORD_BYTES + Bytes::heap_bytes(record.key.len());
        }
        store.reserve(1, bytes)?;
        let kept = kept.cloned().unwrap_or_else(|| {
            let about = About {
                created_ms: self.now_ms,
                updated_ms: self.now_ms,
                timeout_s: store.timeout_s(),
                updates: 0,
            };
            let kept = Arc::new(Kept::new(record, store.id(), about));
            store.index.add_record(Arc::clone(&kept));
            kept
        });
        kept.slots.fetch_add(1, Ordering::Relaxed);
        kept.touch(self.now_ms);
        Ok(Arc::new(Slot::new(kept, self.place.name, store.id(), self.now_ms)))
    }

    /// Removes what is there; leaves a mark if other gates may not have heard yet.
    pub(super) fn remove(&mut self, stamp: Stamp, source: Source) {
        let Some(slot) = self.slot() else { return };
        let mark = match self.store.removal_mark(stamp, self.now_ms) {
            // What a load has staged has to stay, if only as its second side.
            None if self.cells.get(&self.place).is_some_and(Cell::is_staging) => {
                Some(Plain::new(stamp, Lifetime::Until(self.now_ms), Holds::Nothing))
            }
            mark => mark,
        };
        if let Some(mark) = mark
            && self.put(mark, source, Event::Removed { stamp }).is_ok()
        {
            return;
        }
        self.store.feed.tell(&slot, self.now_ms, source, || Event::Removed { stamp });
        slot.kept.touch(self.now_ms);
        self.store.forget(&mut self.locked, &self.cells, &slot, self.now_ms, None);
    }
}

impl Plain {
    /// A copy that was given after `other`.
    pub(super) fn outdoing(&self, other: &Self) -> Self {
        let mut copy = self.freeze();
        if copy.stamp <= other.stamp {
            copy.stamp = other.stamp.next();
        }
        copy
    }
}
