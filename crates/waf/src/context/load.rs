//! Bulk loads: many variables at once, all of them seen or none.
//!
//! A load first *stages*: each variable's cell gets a second side that nobody sees yet, while the
//! first goes on being read, written and incremented. Then one store to the load's state shows all
//! the second sides, and a last pass *settles* the cells into plain ones. What comes to an empty place
//! has one side only, and its cell may stay as it is. Nobody ever waits for a load but another load,
//! and readers only pay one more comparison.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::address::{Collection, Record};
use super::cell::{Cell, Holds, Load, LoadState, Plain, Staged};
use super::clearing::Shortage;
use super::feed::{Event, Source};
use super::slot::{BySlot, Kept, Place, Slot};
use super::store::{Store, living};
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
    /// How many variables it wrote; one that was named twice counts once.
    pub written: usize,
    /// How many it removed, because they were in the scope but not in the load.
    pub removed: usize,
}

/// Why a load was refused. Nothing has changed then, but that a load may have pushed others out of
/// a full store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRefused {
    /// The entry that is at fault, counted from 0: the first that is too long, or one for which
    /// there was no room.
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

/// A place in which a load has staged something.
#[derive(Debug)]
struct StagedSlot {
    slot: Arc<Slot>,
    /// The stamp with which watchers are told of the change.
    told: Stamp,
    /// The lifetime that it was given, if the place was empty before.
    fresh: Option<Lifetime>,
}

impl Cell {
    /// The change that its load makes here; `stamp` is that of a removal.
    fn loads(&self, stamp: Stamp) -> Option<Event> {
        let after = match self {
            Self::Plain(_) => return None,
            Self::Loaded(_, plain) => Some(plain),
            Self::Staged(staged) => staged.after.as_ref(),
        };
        Some(after.map_or(Event::Removed { stamp }, Plain::event))
    }

    /// The stamp that the change must have, if it was told with `told` when it was staged.
    fn loaded_stamp(&self, told: Stamp) -> Stamp {
        match self {
            Self::Plain(plain) | Self::Loaded(_, plain) => plain.stamp,
            Self::Staged(staged) => match (&staged.after, &staged.before) {
                (Some(after), _) => after.stamp,
                (None, Some(before)) if before.stamp > told => before.stamp.next(),
                (None, _) => told,
            },
        }
    }
}

/// The entries in the order of their places, each with its number. So each is put beside the one
/// before, in the ordered index and in memory, which is most of what makes a large load fast. Of
/// those that name one place, the last counts.
fn in_order<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<(usize, Entry<'a>)> {
    let place = |entry: &Entry<'a>| Place { record: entry.record, name: entry.name };
    let mut entries: Vec<_> = entries.enumerate().collect();
    entries.sort_unstable_by(|(number, entry), (other_number, other)| {
        place(entry).cmp(&place(other)).then(other_number.cmp(number))
    });
    entries.dedup_by(|(_, later), (_, first)| place(later) == place(first));
    entries
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
        let entries = in_order(entries);
        let _loading = self.loading.lock();
        self.make_way(&entries);
        let load = Arc::new(Load::default());
        let mut staged: Vec<StagedSlot> = Vec::with_capacity(entries.len());
        for (number, entry) in &entries {
            let place = Place { record: entry.record, name: entry.name };
            // What is staged lives, and so does its record.
            let kept = staged.last().map(|last| &last.slot.kept);
            let kept = kept.filter(|kept| kept.record() == entry.record).cloned();
            let stage = || self.stage(&load, place, kept.clone(), Some(entry), now_ms);
            match self.retry(now_ms, stage) {
                Ok(one) => staged.push(one),
                Err(why) => {
                    load.end(LoadState::GivenUp);
                    self.settle(&load, &staged, now_ms);
                    return Err(LoadRefused { entry: *number, why });
                }
            }
        }
        let written = staged.len();
        for slot in self.others(scope, &load, now_ms) {
            // Staging a removal takes no room.
            staged.extend(self.stage(&load, slot.place(), None, None, now_ms));
        }
        let removed = staged.len() - written;
        self.announce(&staged, now_ms);
        match &self.unwritten {
            // The disk gets all of a load in one transaction.
            Some(unwritten) => unwritten.together(|| {
                load.end(LoadState::Shown);
                for one in &staged {
                    unwritten.mark(&one.slot);
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

    /// Makes room in the tables for what a load may bring beyond what is there. A load mostly
    /// replaces what an earlier one brought, so what is there counts as replaced.
    fn make_way(&self, entries: &[(usize, Entry<'_>)]) {
        let records = entries.chunk_by(|(_, one), (_, next)| one.record == next.record).count();
        let here = self.entries.load(Ordering::Relaxed);
        self.index.reserve(
            entries.len().saturating_sub(here),
            records.saturating_sub(self.index.records()),
        );
    }

    /// Gives a place a side that will be seen with the load: what `entry` says, or nothing. `kept`
    /// is its record, where that is known to live.
    fn stage(
        &self,
        load: &Arc<Load>,
        place: Place<'_>,
        kept: Option<Arc<Kept>>,
        entry: Option<&Entry<'_>>,
        now_ms: u64,
    ) -> Result<StagedSlot, Shortage> {
        let writing = match kept {
            Some(kept) => Writing::go_on(self, kept, place, now_ms),
            None => Writing::begin(self, place, now_ms),
        };
        let cells = self.index.cells();
        let found = cells.get_key_value(&place);
        let living = found.and_then(|(slot, cell)| living(&slot.0, cell, now_ms));
        let base = living.map_or(Stamp::NONE, |plain| plain.stamp);
        let told = Stamp::after(base, now_ms, self.settings.origin);
        let after = entry.map(|entry| {
            Plain::new(told, entry.lifetime, Holds::of(Value::of(entry.value), now_ms))
        });
        let heap_bytes = after.as_ref().map_or(0, Plain::heap_bytes);
        let Some((slot, old)) = found else {
            let slot = writing.make_slot(heap_bytes)?;
            let cell = if let Some(after) = after {
                Cell::Loaded(Arc::clone(load), after)
            } else {
                let load = Arc::clone(load);
                Cell::Staged(Box::new(Staged { load, before: None, after: None }))
            };
            self.index.add_slot(&slot, cell);
            return Ok(StagedSlot { slot, told, fresh: entry.map(|entry| entry.lifetime) });
        };
        let slot = Arc::clone(&slot.0);
        self.reserve(0, heap_bytes)?;
        let before = old.seen().map(Plain::freeze);
        if after.is_some() {
            slot.touch(now_ms);
        }
        let staged = Staged { load: Arc::clone(load), before, after };
        cells.insert(BySlot(Arc::clone(&slot)), Cell::Staged(Box::new(staged)));
        Ok(StagedSlot { slot, told, fresh: None })
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
                && living(slot, cell, now_ms).and_then(Plain::value).is_some()
            {
                others.push(Arc::clone(slot));
            }
            ControlFlow::Continue(())
        });
        others
    }

    /// Tells watchers what the load is about to show.
    fn announce(&self, staged: &[StagedSlot], now_ms: u64) {
        if self.feed.watchers() == 0 {
            return;
        }
        let cells = self.index.cells();
        for StagedSlot { slot, told, .. } in staged {
            if let Some(event) = cells.get(&slot.place()).and_then(|cell| cell.loads(*told)) {
                self.feed.tell(slot, now_ms, Source::Local, || event);
            }
        }
    }

    /// Ends a load that is shown or given up: cells with two sides become plain ones, and what is
    /// kept comes on the agenda.
    fn settle(&self, load: &Arc<Load>, staged: &[StagedSlot], now_ms: u64) {
        let shown = load.state() == LoadState::Shown;
        for StagedSlot { slot, told, fresh } in staged {
            let mut locked = self.shards.lock(slot.kept.hash);
            if let Some(lifetime) = fresh
                && shown
                && !load.is_crossed()
            {
                // It may stay as it is, and whoever changed or forgot it since knew of no load.
                locked.enlist(slot, slot.rank_of(*lifetime));
                continue;
            }
            let cells = self.index.cells();
            let Some(cell) = cells.get(&slot.place()).filter(|cell| cell.belongs_to(load)) else {
                continue;
            };
            if let Cell::Loaded(_, plain) = cell
                && shown
            {
                locked.enlist(slot, slot.due_rank(plain));
                continue;
            }
            let stamp = cell.loaded_stamp(*told);
            if shown && stamp != *told {
                // Somebody wrote between staging and showing: that must not win elsewhere.
                if let Some(event) = cell.loads(stamp) {
                    self.feed.tell(slot, now_ms, Source::Local, || event);
                }
            }
            let seen = cell.seen();
            let plain = match seen {
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
            if seen.is_none() {
                // What is seen was put in the queue when it was shown, or had been written before.
                self.mark(slot);
            }
        }
    }

    /// The mark that a value was removed, if such marks are kept.
    pub(super) fn removal_mark(&self, stamp: Stamp, now_ms: u64) -> Option<Plain> {
        let kept_ms = u64::from(self.settings.removed_kept_s) * 1000;
        let until = Lifetime::Until(now_ms.saturating_add(kept_ms));
        (kept_ms > 0).then(|| Plain::new(stamp, until, Holds::Nothing))
    }
}
