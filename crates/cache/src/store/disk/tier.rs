//! What those who read and the one who writes share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::format::{self, FooterEntry, Part};
use super::index::{Checked, Entry, Index};
use super::queue::Queue;
use super::segment::{Segment, Segments};
use super::settings::{Fault, Reason, Settings, State, Stats};
use crate::hash::Seed;
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Tier {
    pub(super) directory: PathBuf,
    pub(super) seed: Seed,
    pub(super) settings: Settings,
    pub(super) bytes_max: AtomicU64,
    pub(super) index: Index,
    pub(super) segments: Segments,
    pub(super) queue: Queue,
    pub(super) counters: Counters,
    state: RwLock<State>,
}

/// See [`Stats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) stored: AtomicU64,
    pub(super) stored_bytes: AtomicU64,
    pub(super) refused_queue: AtomicU64,
    pub(super) refused_state: AtomicU64,
    pub(super) refused_size: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) kept: AtomicU64,
    pub(super) corrupt: AtomicU64,
    pub(super) unreadable: AtomicU64,
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Tier {
    pub(super) fn new(directory: PathBuf, seed: Seed, settings: Settings) -> Self {
        Tier {
            directory,
            seed,
            settings,
            bytes_max: AtomicU64::new(settings.bytes_max),
            index: Index::new(),
            segments: Segments::default(),
            queue: Queue::new(settings.queue_bytes_max, settings.queue_objects_max),
            counters: Counters::default(),
            state: RwLock::new(State::ReadOnly),
        }
    }

    /// What segments of this directory say of its seed.
    pub(super) fn seed_check(&self) -> u64 {
        self.seed.hash(b"a segment of the disk tier")
    }

    pub(super) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_state(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Whether something that comes now is stored.
    pub(super) fn is_storing(&self, now: Time) -> bool {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Storing => true,
            State::Paused { until, .. } => now >= *until,
            State::ReadOnly => false,
        }
    }

    /// Stores nothing for a while.
    pub(super) fn pause(&self, reason: Reason, now: Time) {
        let until = now + self.settings.pause;
        self.set_state(State::Paused { reason, since: now, until });
    }

    /// Storing has worked.
    pub(super) fn resume(&self) {
        if !matches!(*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Storing) {
            self.set_state(State::Storing);
        }
    }

    /// Enters what a segment lists, which is newer than all that is in the index. Returns how many
    /// objects and slices that were.
    pub(super) fn enter(&self, segment: &Segment, listed: &[FooterEntry], now: Time) -> u64 {
        let now_s = format::expiry_s(now);
        let mut objects = 0;
        for entry in listed {
            objects += u64::from(entry.part != Part::Removal);
            let useless = entry.part == Part::Removal || entry.expires_s < now_s;
            if useless || self.index.entries() >= self.settings.entries_max {
                self.index.remove(entry.hash);
            } else {
                self.index.insert(entry.hash, Entry::new(segment.slot, entry, Checked::No));
            }
        }
        objects
    }

    pub(super) fn stats(&self) -> Stats {
        let Counters {
            stored,
            stored_bytes,
            refused_queue,
            refused_state,
            refused_size,
            failed,
            evicted,
            kept,
            corrupt,
            unreadable,
        } = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (segments, bytes) = self.segments.sizes();
        Stats {
            state: self.state(),
            entries: self.index.entries() as u64,
            index_bytes: self.index.bytes(),
            bytes,
            bytes_max: read(&self.bytes_max),
            segments,
            queued: self.queue.objects() as u64,
            stored: read(stored),
            stored_bytes: read(stored_bytes),
            refused_queue: read(refused_queue),
            refused_state: read(refused_state),
            refused_size: read(refused_size),
            failed: read(failed),
            evicted: read(evicted),
            kept: read(kept),
            corrupt: read(corrupt),
            unreadable: read(unreadable),
        }
    }

    pub(super) fn fault(&self, error: std::io::Error) -> Fault {
        Fault::disk(&self.directory, error)
    }
}
