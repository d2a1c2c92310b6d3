//! The lasting parts of context: a record, and a variable's place in it.
//!
//! A slot is made when its variable is first written and dropped when the variable is forgotten;
//! the index, the agenda and the queue of what is to be written to disk share it by reference
//! count. What the variable holds is a [`super::cell::Cell`] beside it in the index.

use std::cmp;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::address::{Collection, Name, Opened, Record};
use super::bytes::Bytes;
use super::cell::Plain;
use super::{About, Lifetime, hash};

/// A record that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) collection: Collection,
    pub(super) key: Bytes,
    /// That of its address.
    pub(super) hash: u64,
    /// Its number on disk; never given twice.
    pub(super) id: u64,
    created_ms: AtomicU64,
    updated_ms: AtomicU64,
    updates: AtomicU64,
    timeout_s: AtomicU32,
    /// How many slots it has; changed only under the lock of its shard. With the last it is dropped
    /// from the index, and never put back.
    pub(super) slots: AtomicU32,
}

impl Kept {
    pub(super) fn new(record: Record<'_>, id: u64, about: About) -> Self {
        Self {
            collection: record.collection,
            key: Bytes::from(record.key),
            hash: hash::of_record(record),
            id,
            created_ms: AtomicU64::new(about.created_ms),
            updated_ms: AtomicU64::new(about.updated_ms),
            updates: AtomicU64::new(about.updates),
            timeout_s: AtomicU32::new(about.timeout_s),
            slots: AtomicU32::new(0),
        }
    }

    pub(super) fn record(&self) -> Record<'_> {
        Record::new(self.collection, &self.key)
    }

    pub(super) fn addressed(&self) -> Addressed<'_> {
        Addressed { record: self.record(), hash: self.hash }
    }

    pub(super) fn about(&self) -> About {
        About {
            created_ms: self.created_ms.load(Ordering::Relaxed),
            updated_ms: self.updated_ms.load(Ordering::Relaxed),
            timeout_s: self.timeout_s.load(Ordering::Relaxed),
            updates: self.updates.load(Ordering::Relaxed),
        }
    }

    /// When the variables that go with the record are forgotten.
    pub(super) fn due_ms(&self) -> u64 {
        let timeout_s = u64::from(self.timeout_s.load(Ordering::Relaxed));
        self.updated_ms.load(Ordering::Relaxed).saturating_add(timeout_s * 1000)
    }

    /// Notes a write. Time does not run backwards for a record, whoever comes late.
    pub(super) fn touch(&self, now_ms: u64) {
        raise(&self.updated_ms, now_ms);
        self.updates.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins anew; only under the lock of the shard, when no variable lives.
    pub(super) fn renew(&self, now_ms: u64, timeout_s: u32) {
        self.created_ms.store(now_ms, Ordering::Relaxed);
        self.updates.store(0, Ordering::Relaxed);
        self.timeout_s.store(timeout_s, Ordering::Relaxed);
    }

    pub(super) fn set_timeout(&self, timeout_s: u32) {
        self.timeout_s.store(timeout_s, Ordering::Relaxed);
    }
}

/// A variable's place.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) kept: Arc<Kept>,
    pub(super) name: Bytes,
    /// That of its place.
    hash: u64,
    /// Its number on disk; never given twice.
    pub(super) id: u64,
    pub(super) written_ms: AtomicU64,
    /// The rank under which the agenda has it, or [`NO_RANK`]; changed only under the lock of the
    /// shard.
    pub(super) rank: AtomicU64,
    /// Whether it waits to be written to disk.
    pub(super) unwritten: AtomicBool,
}

/// Not on the agenda.
pub(super) const NO_RANK: u64 = u64::MAX;

/// Dropped, and never on the agenda again: lower than any rank under which it could be put there.
pub(super) const GONE: u64 = 0;

/// Ranks from here on belong to what is kept for ever: forgotten last, least recently written first.
const FOREVER: u64 = 1 << 63;

impl Slot {
    pub(super) fn new(kept: Arc<Kept>, name: &[u8], id: u64, written_ms: u64) -> Self {
        Self {
            hash: hash::of_place(kept.hash, hash::of_name(name)),
            kept,
            name: Bytes::from(name),
            id,
            written_ms: AtomicU64::new(written_ms),
            rank: AtomicU64::new(NO_RANK),
            unwritten: AtomicBool::new(false),
        }
    }

    /// When what `plain` holds here is forgotten; `u64::MAX` for never.
    pub(super) fn due_ms(&self, plain: &Plain) -> u64 {
        self.end_of(plain.lifetime())
    }

    fn end_of(&self, lifetime: Lifetime) -> u64 {
        match lifetime {
            Lifetime::Record => self.kept.due_ms(),
            Lifetime::Until(due_ms) => due_ms,
            Lifetime::Forever => u64::MAX,
        }
    }

    /// The order in which variables give way: what expires sooner goes before what expires later,
    /// and what was written earlier before what was written later.
    pub(super) fn due_rank(&self, plain: &Plain) -> u64 {
        self.rank_of(plain.lifetime())
    }

    /// The same for what has this lifetime.
    pub(super) fn rank_of(&self, lifetime: Lifetime) -> u64 {
        match self.end_of(lifetime) {
            u64::MAX => FOREVER | self.written_ms.load(Ordering::Relaxed).min(FOREVER - 2),
            due_ms => due_ms.min(FOREVER - 1),
        }
    }

    /// Notes a write.
    pub(super) fn touch(&self, now_ms: u64) {
        raise(&self.written_ms, now_ms);
        self.kept.touch(now_ms);
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { record: self.kept.record(), name: &self.name }
    }

    /// What a slot costs on the heap beyond its fixed part, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        Bytes::heap_bytes(self.name.len())
    }
}

fn raise(time_ms: &AtomicU64, now_ms: u64) {
    // Most writes of a busy record fall into one millisecond: looking first spares the exchange.
    if time_ms.load(Ordering::Relaxed) < now_ms {
        time_ms.fetch_max(now_ms, Ordering::Relaxed);
    }
}

/// Where a variable stands, in the order in which context is walked: collection, key, name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    pub(super) record: Record<'a>,
    pub(super) name: &'a [u8],
}

impl Place<'static> {
    /// The place before all others.
    pub(super) const FIRST: Self = Self { record: Record::new(Collection::ALL[0], b""), name: b"" };
}

impl Hash for Place<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(hash::of_place(hash::of_record(self.record), hash::of_name(self.name)));
    }
}

/// A place with its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    place: Place<'a>,
    hash: u64,
}

impl<'a> Known<'a> {
    pub(super) fn of(opened: &'a Opened, name: &'a Name) -> Self {
        let place = Place { record: opened.record(), name };
        Self { place, hash: hash::of_place(opened.hash, name.hash) }
    }
}

impl Hash for Known<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A slot as the hash table's key: it is its place.
#[derive(Clone, Debug)]
pub(super) struct BySlot(pub(super) Arc<Slot>);

impl Hash for BySlot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialEq for BySlot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.place() == other.0.place()
    }
}

impl Eq for BySlot {}

impl papaya::Equivalent<BySlot> for Place<'_> {
    fn equivalent(&self, slot: &BySlot) -> bool {
        *self == slot.0.place()
    }
}

impl papaya::Equivalent<BySlot> for Known<'_> {
    fn equivalent(&self, slot: &BySlot) -> bool {
        self.hash == slot.0.hash && self.place == slot.0.place()
    }
}

/// The address of a record with its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressed<'a> {
    pub(super) record: Record<'a>,
    pub(super) hash: u64,
}

impl<'a> From<Record<'a>> for Addressed<'a> {
    fn from(record: Record<'a>) -> Self {
        Self { record, hash: hash::of_record(record) }
    }
}

impl Hash for Addressed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A record as the hash table's key.
#[derive(Clone, Debug)]
pub(super) struct ByRecord(pub(super) Arc<Kept>);

impl Hash for ByRecord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialEq for ByRecord {
    fn eq(&self, other: &Self) -> bool {
        self.0.record() == other.0.record()
    }
}

impl Eq for ByRecord {}

impl papaya::Equivalent<ByRecord> for Addressed<'_> {
    fn equivalent(&self, kept: &ByRecord) -> bool {
        self.record == kept.0.record()
    }
}

/// A slot as the ordered index's key. The collection and the beginning of the key stand in the
/// node, so that a search mostly compares without leaving it.
#[derive(Clone, Debug)]
pub(super) struct InOrder {
    beginning: [u8; 16],
    pub(super) slot: Arc<Slot>,
}

impl InOrder {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        let mut beginning = [0; 16];
        beginning[0] = slot.kept.collection as u8;
        for (to, from) in beginning[1..].iter_mut().zip(slot.kept.key.iter()) {
            *to = *from;
        }
        Self { beginning, slot }
    }
}

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        // Zeros after a short key sort as its end does, or tie.
        self.beginning.cmp(&other.beginning).then_with(|| {
            if Arc::ptr_eq(&self.slot.kept, &other.slot.kept) {
                self.slot.name.cmp(&other.slot.name)
            } else {
                self.slot.place().cmp(&other.slot.place())
            }
        })
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for InOrder {}
