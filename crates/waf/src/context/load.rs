//! Bulk loads: many variables at once, all of them seen or none.
//!
//! A load first *stages*: each variable's cell gets a second side that nobody sees yet, while the
//! first goes on being read, written and incremented. Then one store to the load's state shows all
//! the second sides, and a last pass *settles* the cells into plain ones. Nobody ever waits for a
//! load but another load, and readers only pay one more comparison while it lasts.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::address::{Collection, Record};
use super::cell::{Cell, Holds, Load, LoadState, Plain, Staged};
use super::clearing::Shortage;
use super::feed::{Event, Source};
use super::slot::{BySlot, Place, Slot};
use super::store::Store;
use super::value::Value;
use super::writing::Writing;
use super::{Lifetime, Refused, Stamp};

/// A variable to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its record.
    pub record: Record<'a>,
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// How long it is kept.
    pub lifetime: Lifetime,
}

/// What a load replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All records of a collection.
    Collection(Collection),
    /// The records of a collection whose keys begin with this.
    Keys(Collection, &'a [u8]),
    /// One record.
    Record(Record<'a>),
}

/// What a load did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// How many variables it wrote.
    pub written: usize,
    /// How many it removed, because they were in the scope but not in the load.
    pub removed: usize,
}

/// Why a load was refused. Nothing has changed then, but that a load may have pushed others out of
/// a full store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRefused {
    /// The first entry that is at fault, counted from 0.
    pub entry: usize,
    /// What is wrong with it.
    pub why: Refused,
}

impl Scope<'_> {
    fn start(&self) -> Place<'_> {
        let record = match *self {
            Self::Collection(collection) => Record::new(collection, b""),
            Self::Keys(collection, prefix) => Record::new(collection, prefix),
            Self::Record(record) => record,
        };
        Place { record, name: b"" }
    }

    fn contains(&self, record: Record<'_>) -> bool {
        match *self {
            Self::Collection(collection) => record.collection == collection,
            Self::Keys(collection, prefix) => {
                record.collection == collection && record.key.starts_with(prefix)
            }
            Self::Record(only) => record == only,
        }
    }
}

impl Staged {
    /// The change that the load makes here; `stamp` is that of a removal.
    fn event(&self, stamp: Stamp) -> Event {
        self.after.as_ref().map_or(Event::Removed { stamp }, Plain::event)
    }

    /// The stamp that the change must have, if it was told with `told` when it was staged.
    fn stamp(&self, told: Stamp) -> Stamp {
        match (&self.after, &self.before) {
            (Some(after), _) => after.stamp,
            (None, Some(before)) if before.stamp > told => before.stamp.next(),
            (None, _) => told,
        }
    }
}

impl Store {
    /// Loads `entries`, and removes what else is in `scope`.
    pub(super) fn load<'a>(
        &self,
        scope: Option<Scope<'_>>,
        entries: impl Iterator<Item = Entry<'a>> + Clone,
        now_ms: u64,
    ) -> Result<Loaded, LoadRefused> {
        self.check_load(entries.clone())?;
        let _loading = self.loading.lock();
        let load = Arc::new(Load::default());
        let mut staged: Vec<(Arc<Slot>, Stamp)> = Vec::new();
        for (number, entry) in entries.enumerate() {
            let place = Place { record: entry.record, name: entry.name };
            match self.retry(now_ms, || self.stage(&load, place, Some(&entry), now_ms)) {
                Ok(one) => staged.push(one),
                Err(why) => {
                    load.end(LoadState::GivenUp);
                    self.settle(&load, &staged, now_ms);
                    return Err(LoadRefused { entry: number, why });
                }
            }
        }
        let written = staged.len();
        for slot in self.others(scope, &load, now_ms) {
            // Staging a removal takes no room.
            staged.extend(self.stage(&load, slot.place(), None, now_ms));
        }
        let removed = staged.len() - written;
        self.announce(&staged, now_ms);
        match &self.unwritten {
            // The disk gets all of a load in one transaction.
            Some(unwritten) => unwritten.together(|| {
                load.end(LoadState::Shown);
                for (slot, _) in &staged {
                    unwritten.mark(slot);
                }
            }),
            None => load.end(LoadState::Shown),
        }
        self.settle(&load, &staged, now_ms);
        Ok(Loaded { written, removed })
    }

    /// Finds what is wrong with a load before it touches anything.
    fn check_load<'a>(&self, entries: impl Iterator<Item = Entry<'a>>) -> Result<(), LoadRefused> {
        let mut bytes = 0_usize;
        for (number, entry) in entries.enumerate() {
            let place = Place { record: entry.record, name: entry.name };
            let refused = |why| LoadRefused { entry: number, why };
            self.check(place, entry.value.len()).map_err(refused)?;
            bytes = bytes.saturating_add(Self::cost(place, entry.value.len()));
            if number >= self.settings.entries_max || bytes > self.settings.bytes_max {
                return Err(refused(Refused::NoRoom));
            }
        }
        Ok(())
    }

    /// Gives a place a side that will be seen with the load: what `entry` says, or nothing.
    fn stage(
        &self,
        load: &Arc<Load>,
        place: Place<'_>,
        entry: Option<&Entry<'_>>,
        now_ms: u64,
    ) -> Result<(Arc<Slot>, Stamp), Shortage> {
        let writing = Writing::begin(self, place, now_ms);
        let stamp = Stamp::after(writing.base(), now_ms, self.settings.origin);
        let after = entry.map(|entry| {
            Plain::new(stamp, entry.lifetime, Holds::of(Value::of(entry.value), now_ms))
        });
        let heap_bytes = after.as_ref().map_or(0, Plain::heap_bytes);
        let cells = self.index.cells();
        let Some((slot, old)) = cells.get_key_value(&place) else {
            let slot = writing.make_slot(heap_bytes)?;
            let staged = Staged { load: Arc::clone(load), before: None, after };
            self.index.add_slot(&slot, Cell::Staged(Box::new(staged)));
            return Ok((slot, stamp));
        };
        let slot = Arc::clone(&slot.0);
        // A place named twice: the later entry counts.
        let earlier = match old {
            Cell::Staged(staged) => staged.after.as_ref().map_or(0, Plain::heap_bytes),
            Cell::Plain(_) => 0,
        };
        self.reserve(0, heap_bytes.saturating_sub(earlier))?;
        self.release(0, earlier.saturating_sub(heap_bytes));
        let before = old.seen().map(Plain::freeze);
        if after.is_some() {
            slot.touch(now_ms);
        }
        let staged = Staged { load: Arc::clone(load), before, after };
        cells.insert(BySlot(Arc::clone(&slot)), Cell::Staged(Box::new(staged)));
        Ok((slot, stamp))
    }

    /// What is seen in `scope` and not staged.
    fn others(&self, scope: Option<Scope<'_>>, load: &Arc<Load>, now_ms: u64) -> Vec<Arc<Slot>> {
        let mut others = Vec::new();
        let Some(scope) = scope else { return others };
        let cells = self.index.cells();
        self.index.walk(scope.start(), |slot| {
            if !scope.contains(slot.kept.record()) {
                return ControlFlow::Break(());
            }
            if let Some(cell) = cells.get(&slot.place())
                && !cell.belongs_to(load)
                && super::store::living(slot, cell, now_ms).and_then(Plain::value).is_some()
            {
                others.push(Arc::clone(slot));
            }
            ControlFlow::Continue(())
        });
        others
    }

    /// Tells watchers what the load is about to show.
    fn announce(&self, staged: &[(Arc<Slot>, Stamp)], now_ms: u64) {
        if self.feed.watchers() == 0 {
            return;
        }
        let cells = self.index.cells();
        for (slot, stamp) in staged {
            if let Some(Cell::Staged(staged)) = cells.get(&slot.place()) {
                self.feed.tell(slot, now_ms, Source::Local, || staged.event(*stamp));
            }
        }
    }

    /// Makes plain cells of a load that has ended.
    fn settle(&self, load: &Arc<Load>, staged: &[(Arc<Slot>, Stamp)], now_ms: u64) {
        for (slot, told) in staged {
            let cells = self.index.cells();
            let mut locked = self.shards.lock(slot.kept.record());
            let Some(cell) = cells.get(&slot.place()).filter(|cell| cell.belongs_to(load)) else {
                continue;
            };
            let Cell::Staged(both) = cell else { continue };
            let shown = load.state() == LoadState::Shown;
            let stamp = both.stamp(*told);
            if shown && stamp != *told {
                // Somebody wrote between staging and showing: that must not win elsewhere.
                self.feed.tell(slot, now_ms, Source::Local, || both.event(stamp));
            }
            let plain = match cell.seen() {
                Some(seen) => Some(seen.freeze()),
                None if shown => self.removal_mark(stamp, now_ms),
                None => None,
            };
            let Some(plain) = plain else {
                self.forget(&mut locked, &cells, slot, now_ms, None);
                continue;
            };
            self.release(0, cell.heap_bytes() - plain.heap_bytes());
            locked.enlist(slot, slot.due_rank(&plain));
            cells.insert(BySlot(Arc::clone(slot)), Cell::Plain(plain));
            self.mark(slot);
        }
    }

    /// The mark that a value was removed, if such marks are kept.
    pub(super) fn removal_mark(&self, stamp: Stamp, now_ms: u64) -> Option<Plain> {
        let kept_ms = u64::from(self.settings.removed_kept_s) * 1000;
        let until = Lifetime::Until(now_ms.saturating_add(kept_ms));
        (kept_ms > 0).then(|| Plain::new(stamp, until, Holds::Nothing))
    }
}
