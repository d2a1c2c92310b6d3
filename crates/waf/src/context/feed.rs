//! The change feed: what is written, told to those who watch.
//!
//! Each watcher has a bounded queue of its own. A writer never waits for a watcher: what finds a
//! queue full is lost to that watcher, which learns how many were lost and can take a snapshot.
//! Changes of one variable are told so that who applies them in order arrives at the same value
//! (see [`super::replica`]). While nobody watches, telling costs one load.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::address::Record;
use super::bytes::Bytes;
use super::replica::Update;
use super::slot::Slot;
use super::value::Value;
use super::{Lifetime, Stamp};

/// One change of one variable.
#[derive(Clone, Debug)]
pub struct Change {
    /// Counts all changes that were told, from 1; a gap is what was lost to this watcher.
    pub sequence: u64,
    /// The time that the writer gave, in milliseconds since the epoch.
    pub at_ms: u64,
    /// Who made it.
    pub source: Source,
    slot: Arc<Slot>,
    event: Event,
}

/// Who made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This gate: its rules, its admin API, its loads. Others want to hear of it.
    Local,
    /// Another gate, by [`super::Context::apply`]. Telling others would be an echo.
    Remote,
}

/// Why a variable was forgotten without being removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// Its time had come.
    Expired,
    /// The store was full.
    Evicted,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Number { value: i64, stamp: Stamp, lifetime: Lifetime, lifetime_stamp: Stamp },
    Text { value: Bytes, stamp: Stamp, lifetime: Lifetime, lifetime_stamp: Stamp },
    Added { delta: i64, sum: i64, onto: Stamp },
    Kept { lifetime: Lifetime, of: Stamp, stamp: Stamp },
    Removed { stamp: Stamp },
    Forgotten(Forgotten),
}

impl Change {
    /// The variable's record.
    pub fn record(&self) -> Record<'_> {
        self.slot.kept.record()
    }

    /// The variable's name.
    pub fn name(&self) -> &[u8] {
        &self.slot.name
    }

    /// What another gate has to apply; `None` if the variable was only [`Forgotten`].
    pub fn update(&self) -> Option<Update<'_>> {
        Some(match self.event {
            Event::Number { value, stamp, lifetime, lifetime_stamp } => {
                Update::Set { value: Value::Number(value), stamp, lifetime, lifetime_stamp }
            }
            Event::Text { ref value, stamp, lifetime, lifetime_stamp } => {
                Update::Set { value: Value::Text(value), stamp, lifetime, lifetime_stamp }
            }
            Event::Added { delta, sum, onto } => Update::Add { delta, sum, onto },
            Event::Kept { lifetime, of, stamp } => Update::Keep { lifetime, of, stamp },
            Event::Removed { stamp } => Update::Remove { stamp },
            Event::Forgotten(_) => return None,
        })
    }

    /// Why the variable was forgotten, if that is the change.
    pub fn forgotten(&self) -> Option<Forgotten> {
        match self.event {
            Event::Forgotten(why) => Some(why),
            _ => None,
        }
    }
}

/// A watcher's end of the feed; dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    feed: Arc<Feed>,
    id: u64,
    changes: Receiver<Change>,
    lost: Arc<AtomicU64>,
}

impl Watch {
    /// The next change, if one has come or comes within `timeout`.
    pub fn next(&self, timeout: Duration) -> Option<Change> {
        self.changes.recv_timeout(timeout).ok()
    }

    /// The next change, if one has come.
    pub fn try_next(&self) -> Option<Change> {
        self.changes.try_recv().ok()
    }

    /// How many changes did not fit since this was last asked. After a loss, only a snapshot tells
    /// how things stand.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.feed.watchers.pin().remove(&self.id).is_some() {
            self.feed.watched.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The writers' end.
#[derive(Default)]
pub(super) struct Feed {
    watched: AtomicUsize,
    /// A table, because it is read by every writer and hardly ever changes.
    watchers: papaya::HashMap<u64, Watcher>,
    sequence: AtomicU64,
    next_id: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Watcher {
    changes: SyncSender<Change>,
    lost: Arc<AtomicU64>,
}

impl Feed {
    pub(super) fn watch(self: &Arc<Self>, changes_max: usize) -> Watch {
        let (sender, receiver) = sync_channel(changes_max.max(1));
        let lost = Arc::new(AtomicU64::new(0));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.watchers.pin().insert(id, Watcher { changes: sender, lost: Arc::clone(&lost) });
        self.watched.fetch_add(1, Ordering::SeqCst);
        Watch { feed: Arc::clone(self), id, changes: receiver, lost }
    }

    pub(super) fn tell(
        &self,
        slot: &Arc<Slot>,
        at_ms: u64,
        source: Source,
        event: impl FnOnce() -> Event,
    ) {
        if self.watched.load(Ordering::Relaxed) == 0 {
            return;
        }
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let change = Change { sequence, at_ms, source, slot: Arc::clone(slot), event: event() };
        for (_, watcher) in &self.watchers.pin() {
            if watcher.changes.try_send(change.clone()).is_err() {
                watcher.lost.fetch_add(1, Ordering::Relaxed);
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn watchers(&self) -> usize {
        self.watched.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("watched", &self.watched).finish_non_exhaustive()
    }
}
