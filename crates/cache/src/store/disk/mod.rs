//! The disk tier: objects in segment files of one directory, bounded in bytes, found by an index in
//! memory, there again after a restart.
//!
//! - **Writing** is one thread's work, from a bounded queue. Who stores never waits: what finds no
//!   room in the queue is not stored, and counted. After a full disk or another failure nothing is
//!   stored for a while, and [`Disk::stats`] says why and until when; reading goes on.
//! - **Reading** is two steps: [`Disk::look_up`] asks the index and does no I/O; [`Disk::read`],
//!   [`Disk::check`] and [`Disk::read_body`] do, and are for threads that may wait.
//! - **Nothing is handed out that does not match its checksums.** Fronts (key, metadata, sums) are
//!   compared whenever they are read, bodies when they are first read in a process that did not
//!   write them; from then on they can be sent straight from the file ([`Stored::body`]). What does
//!   not match is removed and counted.
//! - **A restart** reads the footers of segments: a million objects in well under a second. What
//!   was in the queue when a process was killed was never stored.
//! - **Eviction** is by segment, oldest first, by removing one file; what is in use is written
//!   again. Whoever holds a [`Stored`] goes on reading it.
//! - **Two processes** may have the directory open during an upgrade. One writes; the other reads,
//!   learns what was written ([`Disk::refresh`]), and takes over when the first lets go or ends.
//!
//! What was purged is not asked here: an object says by [`Stored::sequence`] how old it is. A
//! removal ([`Disk::remove`]) holds at once and is written behind; a purge is what survives a kill.

mod format;
mod index;
mod load;
mod ownership;
mod queue;
mod read;
mod segment;
mod settings;
mod slices;
mod tier;
mod writer;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
#[expect(
    clippy::disallowed_types,
    reason = "between those who start and stop the writing thread"
)]
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;

use super::key::Key;
use super::purge::Sequence;
use crate::hash::Seed;
use crate::time::Time;
use format::{Head, Kind};
use index::Checked;
use ownership::Ownership;
use queue::{Full, Object, Order};
use tier::{Tier, count};
use writer::Writer;

pub use read::{Body, Location, Missing, Stored};
pub use settings::{Fault, Loaded, Reason, Settings, State, Stats};
pub use slices::{Piece, Slicing};

/// The tier, shared by any number of threads.
#[derive(Debug)]
pub struct Disk {
    tier: Arc<Tier>,
    #[expect(clippy::disallowed_types, reason = "held to start and stop the writing thread")]
    writer: Mutex<Option<JoinHandle<Ownership>>>,
}

/// An object to be stored.
#[derive(Clone, Debug)]
pub struct Put<'a> {
    /// Under what; for a slice, the slice's key.
    pub key: Key<'a>,
    /// Anything that is to come back with it.
    pub metadata: Box<[u8]>,
    /// The body.
    pub content: Content,
    /// When it is of no use any more: beyond freshness and every grace. [`Time::NEVER`] is allowed.
    pub expires: Time,
    /// How far purges had come when its fetch began.
    pub sequence: Sequence,
}

/// The body of an object.
#[derive(Clone, Debug)]
pub enum Content {
    /// All of it, in pieces of any size.
    Whole(Vec<Bytes>),
    /// It lies in slices, each stored on its own under [`Key::slice`].
    Sliced(Slicing),
}

/// Why something is not stored. What was under its key before is not found any more, either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too much waits to be written.
    QueueFull,
    /// The disk was full or failed not long ago.
    Paused,
    /// Another process writes.
    ReadOnly,
    /// Its key is longer than [`Settings::key_bytes_max`].
    KeyTooLong,
    /// Its metadata are longer than [`Settings::metadata_bytes_max`].
    MetadataTooLong,
    /// Its body is longer than [`Settings::body_bytes_max`].
    BodyTooLong,
}

/// What a removal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// There was nothing.
    Absent,
    /// It is not found any more; that it stays so after a restart is written soon.
    Removed,
    /// It is not found any more by this process; after a restart it may be.
    Forgotten,
}

/// An entry of the index as seen by [`Disk::visit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Where it is; [`Disk::read_at`] tells what it is.
    pub location: Location,
    /// How often it was looked up since it was written, 3 at most.
    pub uses: u32,
    /// When it is of no use any more, in seconds since 1970.
    pub expires_s: u32,
    /// Whether it is a slice.
    pub is_slice: bool,
}

/// How far a visit has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor((usize, usize));

impl Disk {
    /// Opens the tier in a directory, which is made if it is not there, and reads what is in it.
    /// Writes if no other process does; otherwise [`State::ReadOnly`]. A new directory gets the seed
    /// `fresh`, sixteen random bytes; [`Disk::seed`] is the one to make keys with.
    pub fn open(
        directory: &Path,
        fresh: &Seed,
        settings: Settings,
        now: Time,
    ) -> Result<(Self, Loaded), Fault> {
        settings.check()?;
        fs::create_dir_all(directory).map_err(|error| Fault::disk(directory, error))?;
        let ownership = Ownership::try_take(directory)?;
        let seed = ownership::identify(directory, ownership.as_ref(), fresh)?;
        let tier = Tier::new(directory.to_owned(), seed, settings);
        let loaded = load::load(&tier, ownership.as_ref(), now)?;
        #[expect(clippy::disallowed_types, reason = "held to start and stop the writing thread")]
        let disk = Disk { tier: Arc::new(tier), writer: Mutex::new(None) };
        if let Some(ownership) = ownership {
            disk.start(ownership, now)?;
        }
        Ok((disk, loaded))
    }

    /// The seed that keys of this directory are hashed with.
    pub fn seed(&self) -> &Seed {
        &self.tier.seed
    }

    /// Whether something may be there; no I/O. Counts as a use of it.
    pub fn look_up(&self, key: &Key<'_>, now: Time) -> Option<Location> {
        let entry = self.tier.index.look_up(key.hash())?;
        let location = Location { hash: key.hash(), place: entry.place, bytes: entry.length };
        (entry.expires_s >= format::expiry_s(now)).then_some(location)
    }

    /// Reads what was looked up, but for its body.
    pub fn read(&self, key: &Key<'_>, at: &Location) -> Result<Stored, Missing> {
        self.tier.read_key(key, at, self.checked(at))
    }

    /// Reads what a visit has listed, but for its body.
    pub fn read_at(&self, at: &Location) -> Result<Stored, Missing> {
        self.tier.read(at, self.checked(at))
    }

    /// Makes sure that the body matches its checksums. Reads it the first time, and never again in
    /// this process.
    pub fn check(&self, stored: &mut Stored) -> Result<(), Missing> {
        self.tier.check(stored)
    }

    /// Appends bytes of a body to `out`, checked; those beyond its end are left out.
    pub fn read_body(
        &self,
        stored: &Stored,
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), Missing> {
        self.tier.read_body(stored, range, out)
    }

    /// Has an object written. What was under its key is not found from now on, and it is found when
    /// it is written.
    pub fn put(&self, put: Put<'_>, now: Time) -> Result<(), Refused> {
        let key = put.key;
        let stored = self.try_put(put, now);
        if let Err(refused) = stored {
            self.remove(&key, now);
            let counters = &self.tier.counters;
            count(match refused {
                Refused::QueueFull => &counters.refused_queue,
                Refused::Paused | Refused::ReadOnly => &counters.refused_state,
                Refused::KeyTooLong | Refused::MetadataTooLong | Refused::BodyTooLong => {
                    &counters.refused_size
                }
            });
        }
        stored
    }

    fn try_put(&self, put: Put<'_>, now: Time) -> Result<(), Refused> {
        let Put { key, metadata, content, expires, sequence } = put;
        let settings = &self.tier.settings;
        let (kind, body) = match (content, key.slice_of()) {
            (Content::Sliced(slicing), _) => (Kind::Sliced(slicing), Vec::new()),
            (Content::Whole(body), Some(slice)) => (Kind::Slice(slice), body),
            (Content::Whole(body), None) => (Kind::Whole, body),
        };
        let body_bytes = body.iter().map(|piece| piece.len() as u64).sum();
        if key.bytes().len() > settings.key_bytes_max {
            return Err(Refused::KeyTooLong);
        }
        if metadata.len() > settings.metadata_bytes_max {
            return Err(Refused::MetadataTooLong);
        }
        if body_bytes > settings.body_bytes_max {
            return Err(Refused::BodyTooLong);
        }
        if !self.tier.is_storing(now) {
            return Err(match self.tier.state() {
                State::ReadOnly => Refused::ReadOnly,
                State::Storing | State::Paused { .. } => Refused::Paused,
            });
        }
        let head = Head {
            kind,
            key_bytes: key.bytes().len(),
            metadata_bytes: metadata.len(),
            body_bytes,
            hash: key.hash(),
            variant: key.variant_hash(),
            stored: now,
            expires,
            sequence: sequence.number(),
        };
        let object = Object { head, key: key.bytes().into(), metadata, body, now };
        let older_goes = || {
            self.tier.index.remove(key.hash());
        };
        self.tier.queue.push(Order::Write(Box::new(object)), older_goes).map_err(
            |full| match full {
                Full::Queue => Refused::QueueFull,
                Full::Closed => Refused::ReadOnly,
            },
        )
    }

    /// Removes what is under a key.
    pub fn remove(&self, key: &Key<'_>, now: Time) -> Removal {
        let Tier { index, queue, .. } = &*self.tier;
        let hash = key.hash();
        if index.find(hash).is_none() && !queue.is_about(hash) {
            return Removal::Absent;
        }
        let at_once = || {
            index.remove(hash);
        };
        match queue.push(Order::Remove { hash, at: now }, at_once) {
            Ok(()) => Removal::Removed,
            Err(Full::Queue | Full::Closed) => {
                index.remove(hash);
                Removal::Forgotten
            }
        }
    }

    /// Visits up to `steps` places of the index from `from` on, and says where to go on. Entries
    /// that move between two steps may be missed or seen twice.
    pub fn visit(
        &self,
        from: Cursor,
        steps: usize,
        mut visit: impl FnMut(Listed),
    ) -> Option<Cursor> {
        let next = self.tier.index.visit(from.0, steps, |hash, entry| {
            visit(Listed {
                location: Location { hash, place: entry.place, bytes: entry.length },
                uses: entry.uses,
                expires_s: entry.expires_s,
                is_slice: entry.slice,
            });
        });
        next.map(Cursor)
    }

    /// Changes the bound of all files together. Room is made by the writing thread.
    pub fn resize(&self, bytes_max: u64) -> Result<(), Fault> {
        Settings { bytes_max, ..self.tier.settings }.check()?;
        self.tier.bytes_max.store(bytes_max, Ordering::Relaxed);
        // A full queue is seen to with the next segment; a closed one by whoever writes.
        let _ = self.tier.queue.push(Order::Trim, || {});
        Ok(())
    }

    /// Learns what another process has written and removed since. Does nothing in the process that
    /// writes.
    pub fn refresh(&self, now: Time) -> Result<Loaded, Fault> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_some() {
            return Ok(Loaded::default());
        }
        load::load(&self.tier, None, now)
    }

    /// Writes from now on, if no other process does. `None` if one does.
    pub fn take_over(&self, now: Time) -> Result<Option<Loaded>, Fault> {
        let running = self.writer.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if running {
            return Ok(Some(Loaded::default()));
        }
        let Some(ownership) = Ownership::try_take(&self.tier.directory)? else { return Ok(None) };
        let loaded = load::load(&self.tier, Some(&ownership), now)?;
        self.start(ownership, now)?;
        Ok(Some(loaded))
    }

    /// Writes what is in the queue, seals the open segment, and leaves writing to another process.
    pub fn let_go(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.take() {
            self.tier.queue.close();
            // The right to write ends here; a thread that panicked has let go of it already.
            drop(writer.join());
            self.tier.set_state(State::ReadOnly);
        }
    }

    /// Waits until what is in the queue is written.
    pub fn flush(&self) {
        self.tier.queue.wait();
    }

    /// What is held, and what became of the rest.
    pub fn stats(&self) -> Stats {
        self.tier.stats()
    }

    fn start(&self, ownership: Ownership, now: Time) -> Result<(), Fault> {
        self.tier.queue.open();
        self.tier.set_state(State::Storing);
        // Files may be more than is allowed now.
        let _ = self.tier.queue.push(Order::Trim, || {});
        let writer = Writer::new(Arc::clone(&self.tier), ownership, now);
        let thread = std::thread::Builder::new().name("cache writer".to_owned());
        match thread.spawn(move || writer.run()) {
            Ok(running) => {
                *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
                Ok(())
            }
            Err(error) => {
                self.tier.queue.close();
                self.tier.set_state(State::ReadOnly);
                Err(self.tier.fault(error))
            }
        }
    }

    fn checked(&self, at: &Location) -> Checked {
        match self.tier.index.find(at.hash) {
            Some(entry) if entry.place == at.place => entry.checked,
            _ => Checked::No,
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests;
