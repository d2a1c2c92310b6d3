//! Context: what rules remember between requests, shared by all workers.
//!
//! `SecLang`'s persistent collections ([`Collection`]) hold records under keys, and records hold
//! variables under names. Time is always an argument, in milliseconds since the Unix epoch; nothing
//! here reads a clock.
//!
//! - Readers take no lock and never wait, whatever is written meanwhile. Nor do increments of a
//!   number that is there, and none of them is lost.
//! - A look-up costs the same however much is kept; one by prefix costs what it finds.
//! - A record is forgotten a timeout after its last write (`SecCollectionTimeout`, per record by
//!   [`Context::set_timeout`]); a variable with a [`Lifetime`] of its own keeps to that instead.
//! - What has expired is never seen again, whether or not it has been cleared away yet.
//! - Limits are [`Settings`]; a full store forgets what would expire soonest, and counts it.
//! - [`Context::open`] keeps a copy on disk, written behind in batches by one thread, and starts
//!   from it. [`Context::let_go`] leaves it to another process, [`Context::take_back`] takes it back.
//!
//! What travels between gates, and how, is the program's business; this offers a feed of changes
//! ([`Context::watch`]), a snapshot and a way to apply what others changed ([`Context::apply`]).

mod address;
mod agenda;
mod bytes;
mod cell;
mod clearing;
mod durable;
mod feed;
mod hash;
mod index;
mod load;
mod replica;
mod settings;
mod slot;
mod stamp;
mod store;
mod value;
mod writing;

pub use address::{Collection, Name, Opened, Record};
pub use durable::Fault;
pub use feed::{Change, Forgotten, Source, Watch};
pub use load::{Entry, LoadRefused, Loaded, Scope};
pub use replica::{Applied, Update};
pub use settings::{Damaged, Settings};
pub use stamp::Stamp;
pub use value::{Digits, NUMBER_MAX, Value};

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use durable::Writer;
use slot::{Known, Place};
use store::Store;

/// What a variable is taken to cost, in bytes of memory, beyond those of a name or value that is
/// longer than 22 bytes. Worked out from the sizes of its parts: slot, cell, places in the table,
/// the list and the agenda.
pub const ENTRY_BYTES: usize = 272;

/// What a record is taken to cost, likewise.
pub const RECORD_BYTES: usize = 128;

/// The store: shared by reference count, used by any number of threads.
#[derive(Debug)]
pub struct Context {
    store: Arc<Store>,
    writer: Option<Writer>,
    set_aside: Option<Fault>,
}

/// How long a variable is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as its record: until the record's timeout after the record's last write.
    Record,
    /// Until this time (milliseconds since the epoch), whatever happens to its record's other
    /// variables.
    Until(u64),
    /// Until it is removed, or the store is full of such.
    Forever,
}

/// What a record knows of itself; `SecLang` shows it as `CREATE_TIME`, `LAST_UPDATE_TIME`,
/// `TIMEOUT`, `UPDATE_COUNTER` and `UPDATE_RATE`. `IS_NEW` is that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// When it was first written, in milliseconds since the epoch.
    pub created_ms: u64,
    /// When it was last written, in milliseconds since the epoch.
    pub updated_ms: u64,
    /// How long it is kept after its last write, in seconds.
    pub timeout_s: u32,
    /// How often it has been written.
    pub updates: u64,
}

/// Why a write was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key of the record is longer than `key_bytes_max`.
    KeyTooLong,
    /// The name is longer than `name_bytes_max`.
    NameTooLong,
    /// The value is longer than `value_bytes_max`.
    ValueTooLong,
    /// The store is full, and nothing in it could be forgotten in favour of this.
    NoRoom,
}

/// What a store has done and holds, for metrics. Counts run since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Variables that are kept, expired ones that have not been cleared away included.
    pub entries: usize,
    /// Records that are kept.
    pub records: usize,
    /// Bytes of memory that they are taken to cost.
    pub bytes: usize,
    /// Variables cleared away because their time was over.
    pub expired: u64,
    /// Variables that a full store gave up before their time. Above 0, the limits are too tight.
    pub evicted: u64,
    /// Writes that were refused for a limit.
    pub refused: u64,
    /// Changes that were lost to watchers that did not keep up.
    pub lost: u64,
    /// Variables that have changed since they were last written to disk.
    pub unwritten: usize,
    /// Batches that were written to disk.
    pub batches: u64,
    /// Batches that could not be written; they are tried again.
    pub batch_failures: u64,
}

impl Context {
    /// A store that lives as long as the process.
    pub fn in_memory(settings: &Settings) -> Arc<Self> {
        let store = Arc::new(Store::new(settings.clone(), None));
        Arc::new(Self { store, writer: None, set_aside: None })
    }

    /// A store that is kept on disk in `directory`, which is made if it is not there, and begins
    /// with what is found in it. Expired variables are left behind.
    pub fn open(directory: &Path, settings: &Settings, now_ms: u64) -> Result<Arc<Self>, Fault> {
        let durable::Opened { store, writer, set_aside } =
            durable::open(directory, settings, now_ms)?;
        Ok(Arc::new(Self { store, writer: Some(writer), set_aside }))
    }

    /// What was wrong with the file that [`Damaged::SetAside`] has renamed, if one was.
    pub fn set_aside(&self) -> Option<&Fault> {
        self.set_aside.as_ref()
    }

    /// Visits the value of a variable. `visit` has to be short: memory that others free is held
    /// back while it runs.
    pub fn get<R>(
        &self,
        record: Record<'_>,
        name: &[u8],
        now_ms: u64,
        visit: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        self.store.get(Place { record, name }, now_ms, visit)
    }

    /// Visits the value of a variable as [`Self::get`] does, where both parts of its address are
    /// used more than once.
    pub fn look_up<R>(
        &self,
        opened: &Opened,
        name: &Name,
        now_ms: u64,
        visit: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        self.store.look_up(&Known::of(opened, name), now_ms, visit)
    }

    /// Visits the variables of a record in the order of their names, until `visit` breaks.
    pub fn each(
        &self,
        record: Record<'_>,
        now_ms: u64,
        visit: impl FnMut(&[u8], Value<'_>) -> ControlFlow<()>,
    ) {
        self.each_named(record, b"", now_ms, visit);
    }

    /// Visits the variables of a record whose names begin with `prefix`, in the order of their
    /// names, until `visit` breaks. Costs what it visits, not what the store holds.
    pub fn each_named(
        &self,
        record: Record<'_>,
        prefix: &[u8],
        now_ms: u64,
        mut visit: impl FnMut(&[u8], Value<'_>) -> ControlFlow<()>,
    ) {
        self.store.walk(Place { record, name: prefix }, now_ms, |slot, plain| {
            if slot.kept.record() != record || !slot.name.starts_with(prefix) {
                return ControlFlow::Break(());
            }
            match plain.and_then(cell::Plain::value) {
                Some(value) => visit(&slot.name, value),
                None => ControlFlow::Continue(()),
            }
        });
    }

    /// Visits variables from a place on, that of `name` in `record`, in the order of collections,
    /// keys and names, until `visit` breaks. Each comes with the time when it is forgotten
    /// (milliseconds since the epoch) unless it is written before; `None` for never.
    pub fn each_from(
        &self,
        record: Record<'_>,
        name: &[u8],
        now_ms: u64,
        mut visit: impl FnMut(Record<'_>, &[u8], Value<'_>, Option<u64>) -> ControlFlow<()>,
    ) {
        self.store.walk(Place { record, name }, now_ms, |slot, plain| {
            match plain.and_then(|plain| Some((plain.value()?, slot.due_ms(plain)))) {
                Some((value, due_ms)) => {
                    let until_ms = Some(due_ms).filter(|due_ms| *due_ms != u64::MAX);
                    visit(slot.kept.record(), &slot.name, value, until_ms)
                }
                None => ControlFlow::Continue(()),
            }
        });
    }

    /// Visits the variables of all records of `collection` whose keys begin with `prefix`, in the
    /// order of keys and names, until `visit` breaks. Costs what it visits.
    pub fn each_keyed(
        &self,
        collection: Collection,
        prefix: &[u8],
        now_ms: u64,
        mut visit: impl FnMut(Record<'_>, &[u8], Value<'_>) -> ControlFlow<()>,
    ) {
        let start = Place { record: Record::new(collection, prefix), name: b"" };
        self.store.walk(start, now_ms, |slot, plain| {
            let record = slot.kept.record();
            if record.collection != collection || !record.key.starts_with(prefix) {
                return ControlFlow::Break(());
            }
            match plain.and_then(cell::Plain::value) {
                Some(value) => visit(record, &slot.name, value),
                None => ControlFlow::Continue(()),
            }
        });
    }

    /// What a record knows of itself; `None` if there is none (`IS_NEW`).
    pub fn about(&self, record: Record<'_>, now_ms: u64) -> Option<About> {
        let kept = self.store.index.kept(record)?;
        self.store.lives(record, now_ms).then(|| kept.about())
    }

    /// Gives a variable a value (`setvar:ip.x=y`). A variable that exists keeps its lifetime.
    pub fn set(
        &self,
        record: Record<'_>,
        name: &[u8],
        value: &[u8],
        now_ms: u64,
    ) -> Result<(), Refused> {
        self.store.set(Place { record, name }, value, now_ms)
    }

    /// Adds to a variable (`setvar:ip.x=+1`, `=-1`) and returns the sum. What is not there counts
    /// as 0, a text as [`Value::number`] says.
    pub fn add(
        &self,
        record: Record<'_>,
        name: &[u8],
        delta: i64,
        now_ms: u64,
    ) -> Result<i64, Refused> {
        self.store.add(Place { record, name }, delta, now_ms)
    }

    /// Removes a variable (`setvar:!ip.x`); whether there was one.
    pub fn remove(&self, record: Record<'_>, name: &[u8], now_ms: u64) -> bool {
        self.store.remove(Place { record, name }, now_ms)
    }

    /// Gives a variable a lifetime of its own (`expirevar:ip.x=60`); whether there is one.
    pub fn expire(&self, record: Record<'_>, name: &[u8], lifetime: Lifetime, now_ms: u64) -> bool {
        self.store.expire(Place { record, name }, lifetime, now_ms)
    }

    /// Takes `amount` off a variable for each whole `period_s` that has passed since it was made or
    /// last lowered (`deprecatevar:session.score=60/300`), but never below zero, and returns what
    /// it is now; a text stays as it is. Unlike `ModSecurity`, which counts from the collection's last write, a client
    /// that keeps sending does not keep its score from falling.
    pub fn deprecate(
        &self,
        record: Record<'_>,
        name: &[u8],
        amount: u32,
        period_s: u32,
        now_ms: u64,
    ) -> Option<i64> {
        self.store.deprecate(Place { record, name }, amount, period_s, now_ms)
    }

    /// Sets how long a record is kept after its last write (`setvar:ip.timeout=60`); whether there
    /// is one.
    pub fn set_timeout(&self, record: Record<'_>, timeout_s: u32, now_ms: u64) -> bool {
        self.store.set_timeout(Place { record, name: b"" }, timeout_s, now_ms)
    }

    /// Sets how long records that begin from now on are kept after their last write, in seconds.
    pub fn set_default_timeout(&self, timeout_s: u32) {
        self.store.timeout_s.store(timeout_s, Ordering::Relaxed);
    }

    /// Writes all `entries`: whoever reads sees none of them or all. They need room beside what
    /// they replace. A place named twice gets its later entry. One load runs at a time; another
    /// waits for it, readers and other writers do not.
    pub fn load<'a>(
        &self,
        entries: impl IntoIterator<Item = Entry<'a>, IntoIter: Clone>,
        now_ms: u64,
    ) -> Result<Loaded, LoadRefused> {
        self.store.load(None, entries.into_iter(), now_ms)
    }

    /// Writes all `entries`, and removes what else there is in `scope`, in one step as
    /// [`Self::load`] does.
    pub fn replace<'a>(
        &self,
        scope: Scope<'_>,
        entries: impl IntoIterator<Item = Entry<'a>, IntoIter: Clone>,
        now_ms: u64,
    ) -> Result<Loaded, LoadRefused> {
        self.store.load(Some(scope), entries.into_iter(), now_ms)
    }

    /// Visits everything that is kept, in the order of collections, keys and names, until `visit`
    /// breaks: what a gate has to [`Self::apply`] that knows nothing yet. Writers go on meanwhile;
    /// who watches since before has heard of what the snapshot missed. An increment that was made
    /// meanwhile may be in both, and so be counted twice by who applies both.
    pub fn snapshot(
        &self,
        now_ms: u64,
        visit: impl FnMut(Record<'_>, &[u8], Update<'_>) -> ControlFlow<()>,
    ) {
        self.store.snapshot(now_ms, visit);
    }

    /// Watches what changes from now on, with room for `changes_max` changes that have not been
    /// taken yet.
    pub fn watch(&self, changes_max: usize) -> Watch {
        self.store.feed.watch(changes_max)
    }

    /// Applies what another gate changed. Watchers hear of it as [`Source::Remote`].
    pub fn apply(
        &self,
        record: Record<'_>,
        name: &[u8],
        update: &Update<'_>,
        now_ms: u64,
    ) -> Result<Applied, Refused> {
        self.store.apply(Place { record, name }, update, now_ms)
    }

    /// Clears away what has expired; how many variables. Writes do it on the side, so this is for
    /// what is no longer written: about once a second.
    pub fn sweep(&self, now_ms: u64) -> usize {
        self.store.sweep(now_ms)
    }

    /// Waits until all that was written before this call is on disk.
    pub fn flush(&self) -> Result<(), Fault> {
        self.writer.as_ref().map_or(Ok(()), Writer::flush)
    }

    /// Writes what is left, closes the file and gives its lock up, so that another process can open
    /// the store. Reads and writes go on in memory only, until [`Self::take_back`]. If the last
    /// batch cannot be written, that is returned, and the store is let go all the same.
    pub fn let_go(&self) -> Result<(), Fault> {
        self.writer.as_ref().map_or(Ok(()), Writer::let_go)
    }

    /// Opens the file that was let go again, and writes down in one transaction what is kept by now,
    /// in place of whatever another process has left in it. Does nothing if it was not let go.
    pub fn take_back(&self) -> Result<(), Fault> {
        self.writer.as_ref().map_or(Ok(()), Writer::take_back)
    }

    /// What the store has done and holds.
    pub fn counters(&self) -> Counters {
        let store = &self.store;
        let mut counters = Counters {
            entries: store.entries.load(Ordering::Relaxed),
            records: store.index.records(),
            bytes: store.bytes.load(Ordering::Relaxed),
            expired: store.expired.load(Ordering::Relaxed),
            evicted: store.evicted.load(Ordering::Relaxed),
            refused: store.refused.load(Ordering::Relaxed),
            lost: store.feed.lost(),
            ..Counters::default()
        };
        if let Some(unwritten) = &store.unwritten {
            counters.unwritten = unwritten.len();
            (counters.batches, counters.batch_failures) = unwritten.batches();
        }
        counters
    }
}

impl Lifetime {
    const FOREVER_MS: u64 = u64::MAX;

    /// As one number: 0 for the record's.
    fn pack(self) -> u64 {
        match self {
            Self::Record => 0,
            Self::Until(due_ms) => due_ms.clamp(1, Self::FOREVER_MS - 1),
            Self::Forever => Self::FOREVER_MS,
        }
    }

    fn unpack(packed: u64) -> Self {
        match packed {
            0 => Self::Record,
            Self::FOREVER_MS => Self::Forever,
            due_ms => Self::Until(due_ms),
        }
    }
}
