//! Where everything is found: a hash table for exact look-ups, an ordered list for prefixes.
//!
//! Readers of both take no lock and wait for nobody; writers hold the lock of their record's shard,
//! so that no two change the same place at once. The table is `papaya`, made for reading: a look-up
//! is a probe and a comparison, growing moves entries bit by bit, and what is replaced is freed when
//! no reader can hold it any more. The list is `crossbeam-skiplist`'s plain one, walked under an
//! epoch guard (its reference-counted ranges leak, crossbeam issue 1178). Hashes are taken once and kept
//! (see [`super::hash`]).

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crossbeam_skiplist::base::SkipList;

use super::cell::Cell;
use super::hash::Taken;
use super::slot::{Addressed, ByRecord, BySlot, InOrder, Kept, Place, Slot};

/// The hash table of variables, entered for a few look-ups.
pub(super) type Cells<'a> = papaya::HashMapRef<'a, BySlot, Cell, Taken, papaya::LocalGuard<'a>>;

pub(super) struct Index {
    cells: papaya::HashMap<BySlot, Cell, Taken>,
    records: papaya::HashSet<ByRecord, Taken>,
    order: SkipList<InOrder, ()>,
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            cells: papaya::HashMap::default(),
            records: papaya::HashSet::default(),
            order: SkipList::new(crossbeam_epoch::default_collector().clone()),
        }
    }

    /// Enters the table. What is found stays valid until the entrance is dropped; to be kept short,
    /// as it holds back what others free.
    pub(super) fn cells(&self) -> Cells<'_> {
        self.cells.pin()
    }

    /// Makes room for so many more, at once instead of in steps.
    pub(super) fn reserve(&self, slots: usize, records: usize) {
        self.cells.pin().reserve(slots);
        self.records.pin().reserve(records);
    }

    pub(super) fn kept<'a>(&self, record: impl Into<Addressed<'a>>) -> Option<Arc<Kept>> {
        let record = record.into();
        self.records.pin().get(&record).map(|kept| Arc::clone(&kept.0))
    }

    pub(super) fn records(&self) -> usize {
        self.records.len()
    }

    pub(super) fn add_record(&self, kept: Arc<Kept>) {
        self.records.pin().insert(ByRecord(kept));
    }

    pub(super) fn remove_record(&self, kept: &Kept) {
        self.records.pin().remove(&kept.addressed());
    }

    /// Adds a slot that was not there.
    pub(super) fn add_slot(&self, slot: &Arc<Slot>, cell: Cell) {
        self.cells.pin().insert(BySlot(Arc::clone(slot)), cell);
        let guard = crossbeam_epoch::pin();
        self.order.insert(InOrder::new(Arc::clone(slot)), (), &guard).release(&guard);
    }

    /// Removes a slot that is there.
    pub(super) fn remove_slot(&self, slot: &Arc<Slot>) {
        let guard = crossbeam_epoch::pin();
        if let Some(entry) = self.order.remove(&InOrder::new(Arc::clone(slot)), &guard) {
            entry.release(&guard);
        }
        self.cells.pin().remove(&BySlot(Arc::clone(slot)));
    }

    /// Visits slots in order from `start` on, until `visit` breaks.
    pub(super) fn walk(
        &self,
        start: Place<'_>,
        mut visit: impl FnMut(&Arc<Slot>) -> ControlFlow<()>,
    ) {
        let guard = crossbeam_epoch::pin();
        let range = (Bound::Included(&start as &dyn Placed), Bound::Unbounded);
        for entry in self.order.range::<dyn Placed, _>(range, &guard) {
            if visit(&entry.key().slot).is_break() {
                break;
            }
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("cells", &self.cells.len()).finish_non_exhaustive()
    }
}

/// What has a place: a slot in the list, or the place at which a walk begins.
trait Placed {
    fn placed(&self) -> Place<'_>;
}

impl Placed for Place<'_> {
    fn placed(&self) -> Place<'_> {
        *self
    }
}

impl Placed for InOrder {
    fn placed(&self) -> Place<'_> {
        self.slot.place()
    }
}

impl<'a> Borrow<dyn Placed + 'a> for InOrder {
    fn borrow(&self) -> &(dyn Placed + 'a) {
        self
    }
}

impl Ord for dyn Placed + '_ {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.placed().cmp(&other.placed())
    }
}

impl PartialOrd for dyn Placed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Placed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Placed + '_ {}
