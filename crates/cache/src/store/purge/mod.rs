//! What was purged, and when: asked of an object that was found, never a search for objects.
//!
//! Purges are numbered in the order in which they happen. An object remembers how far they had come
//! when its fetch began ([`Purges::sequence`], taken before the request is sent: what the origin
//! said before it knew of the change must not survive it), and is purged if anything that names it
//! (everything, its site, its URL, a prefix of its path, one of its tags) was purged by a later
//! number. So purging costs the same whatever is stored, and so does asking.
//!
//! - Nobody who asks waits: the table is read without locks, and what passed once is not asked again
//!   until the next purge ([`Mark`]).
//! - A purge is acknowledged when it is in the journal on disk, and holds for objects of the disk
//!   tier after a restart, a kill, or a loss of power. Two processes may share the journal during an
//!   upgrade; each learns what the other purged ([`Purges::refresh`]).
//! - The table is bounded. Beyond the bound the oldest purges are folded into one line: everything
//!   older than the newest of them counts as purged. That forgets too much rather than too little.

mod journal;
mod record;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
#[expect(clippy::disallowed_types, reason = "between those who purge; who asks takes no lock")]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use crate::hash::Seed;
use crate::tags::Tag;
use crate::time::Time;
use journal::Journal;
use record::{Kind, Record};
use table::Table;

/// All purges that count.
#[derive(Debug)]
pub struct Purges {
    table: Table,
    /// The number of the last purge that is in the table.
    sequence: AtomicU64,
    #[expect(clippy::disallowed_types, reason = "between those who purge; who asks takes no lock")]
    writing: Mutex<Writing>,
}

/// What only those need who purge.
#[derive(Debug)]
struct Writing {
    order: table::Order,
    journal: Option<Journal>,
    /// Records in the table that could not be written.
    unwritten: Vec<Record>,
}

/// How far purges had come: the number of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

/// Up to which purge an object is known not to be purged. Belongs to the object.
#[derive(Debug, Default)]
pub struct Mark(AtomicU64);

/// What is purged. Hashes are made with the seed that the stored objects' were made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All there is.
    Everything,
    /// All of the site whose name has this hash.
    Site(u64),
    /// The URL with this hash: all its variants and slices.
    Url(u64),
    /// What lies below a path of a site; compared byte for byte.
    Prefix {
        /// The hash of the site's name.
        site: u64,
        /// What paths begin with, of [`PREFIX_BYTES_MAX`] bytes at most.
        path: &'a [u8],
    },
    /// What has a tag, on all sites.
    Tag(Tag),
    /// What has a tag, on one site.
    SiteTag {
        /// The hash of the site's name.
        site: u64,
        /// The tag.
        tag: Tag,
    },
}

/// How thoroughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is gone.
    Hard,
    /// It is stale from now on, and may be served under the rules for stale responses.
    Soft,
}

/// A purge to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge<'a> {
    /// Of what.
    pub scope: Scope<'a>,
    /// How thoroughly.
    pub force: Force,
}

/// What names an object, for purges to meet it.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The hash of its site's name.
    pub site: u64,
    /// The hash of its URL.
    pub url: u64,
    /// Its path.
    pub path: &'a [u8],
    /// Its tags.
    pub tags: &'a [Tag],
}

/// What purges make of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Current,
    /// It was purged softly.
    Stale {
        /// When: it was fresh no longer from then on.
        since: Time,
    },
    /// It was purged, and is not there any more.
    Gone,
}

/// Longest prefix, in bytes.
pub const PREFIX_BYTES_MAX: usize = 4096;

/// Bounds of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Different tags, URLs and sites that are remembered as purged; about 100 bytes each.
    pub entries_max: usize,
    /// Different prefixes that are remembered as purged; asking may look at each.
    pub prefixes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { entries_max: 200_000, prefixes_max: 500 }
    }
}

/// What is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The number of the last purge.
    pub sequence: Sequence,
    /// Tags, URLs and sites in the table.
    pub entries: usize,
    /// Prefixes in the table.
    pub prefixes: usize,
    /// What was stored up to here counts as purged, because the table was full.
    pub horizon: Sequence,
}

/// What opening a journal has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A journal, new or whole, but for a last record that was never acknowledged.
    Whole,
    /// A journal with a damaged record: which purges were lost cannot be known, so everything that
    /// was stored before counts as purged.
    Damaged,
}

/// Why a journal cannot be opened, or a purge not be acknowledged.
#[derive(Debug)]
pub enum Fault {
    /// The file was written by a newer version.
    Newer {
        /// The file.
        path: PathBuf,
        /// The format it is in.
        format: u32,
    },
    /// The file is not a journal of purges, or was written under another seed.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another process has held the journal's lock for too long.
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk did not do its part. A purge holds in this process all the same, and is written
    /// with the next one, or by [`Purges::refresh`].
    Disk {
        /// The file.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// The prefix is longer than [`PREFIX_BYTES_MAX`]; nothing was purged.
    TooLong,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Newer { path, format } => write!(
                f,
                "{} was written by a newer version: its format is {format}, and this version reads {}",
                path.display(),
                record::FORMAT
            ),
            Fault::Foreign { path } => {
                write!(f, "{} is not the journal of purges of this cache", path.display())
            }
            Fault::Busy { path } => {
                write!(f, "another process does not let go of {}", path.display())
            }
            Fault::Disk { path, error } => write!(f, "{}: {error}", path.display()),
            Fault::TooLong => write!(f, "a prefix may have {PREFIX_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for Fault {}

impl Purges {
    /// Purges that are forgotten with the process, for a cache that is, too.
    pub fn new(settings: Settings) -> Self {
        Self {
            table: Table::new(settings),
            sequence: AtomicU64::new(0),
            #[expect(clippy::disallowed_types, reason = "between those who purge")]
            writing: Mutex::new(Writing {
                order: table::Order::default(),
                journal: None,
                unwritten: Vec::new(),
            }),
        }
    }

    /// Opens the journal at `path`, or begins one there, and reads what is in it. `seed` is the one
    /// that scopes and names are hashed with.
    pub fn open(path: &Path, seed: &Seed, settings: Settings) -> Result<(Self, Found), Fault> {
        let purges = Self::new(settings);
        let (journal, found) = Journal::open(path, seed, &mut |record| {
            purges.apply(&mut purges.writing().order, record);
        })?;
        purges.writing().journal = Some(journal);
        Ok((purges, found))
    }

    /// How far purges have come: for an object whose fetch is about to begin.
    pub fn sequence(&self) -> Sequence {
        Sequence(self.sequence.load(Ordering::Acquire))
    }

    /// What purges make of an object. The first time after a purge this is a few look-ups; until
    /// the next purge, a comparison.
    pub fn standing(&self, names: &Names<'_>, mark: &Mark) -> Standing {
        let sequence = self.sequence.load(Ordering::Acquire);
        let marked = mark.0.load(Ordering::Relaxed);
        if marked >= sequence {
            return Standing::Current;
        }
        let standing = self.table.standing(names, marked);
        if standing == Standing::Current {
            mark.0.fetch_max(sequence, Ordering::Relaxed);
        }
        standing
    }

    /// Purges, and returns when that is on disk. Takes as long as the disk does: not for a worker's
    /// loop. After a [`Fault::Disk`] or [`Fault::Busy`] the purges hold in this process, but perhaps
    /// not after a restart.
    pub fn purge(&self, purges: &[Purge<'_>], now: Time) -> Result<Sequence, Fault> {
        let too_long = |purge: &Purge<'_>| match purge.scope {
            Scope::Prefix { path, .. } => path.len() > PREFIX_BYTES_MAX,
            _ => false,
        };
        if purges.iter().any(too_long) {
            return Err(Fault::TooLong);
        }
        let mut writing = self.writing();
        let Writing { order, journal, unwritten } = &mut *writing;
        let mut outcome = Ok(());
        if let Some(journal) = journal {
            // What another process purged comes first, so that numbers go on from its last.
            outcome = journal.enter(&mut |record| self.apply(order, record));
        }
        let first = self.sequence.load(Ordering::Relaxed) + 1;
        let records: Vec<_> = (first..)
            .zip(purges)
            .map(|(sequence, purge)| Record::of(purge, sequence, now))
            .collect();
        if let Some(journal) = journal {
            unwritten.extend(records.iter().cloned());
            if outcome.is_ok() {
                outcome = journal.append(unwritten);
            }
            if outcome.is_ok() {
                unwritten.clear();
            }
            table::shorten(unwritten, self.table.bound());
        }
        for record in records {
            self.apply(order, record);
        }
        if let Some(journal) = journal {
            if outcome.is_ok() && journal.is_long(self.table.len()) {
                // The long journal says the same as the short one, so it is no fault of the purge
                // if that cannot be written; the next one tries again.
                let _ = journal.rewrite(&self.table.snapshot(order, self.sequence().0));
            }
            journal.leave();
        }
        outcome.map(|()| self.sequence())
    }

    /// Learns what another process has purged since, and writes what could not be written. Returns
    /// how many purges were learnt.
    pub fn refresh(&self) -> Result<usize, Fault> {
        let mut writing = self.writing();
        let Writing { order, journal, unwritten } = &mut *writing;
        let Some(journal) = journal else { return Ok(0) };
        if unwritten.is_empty() && !journal.has_grown()? {
            return Ok(0);
        }
        let mut learnt = 0;
        let mut outcome = journal.enter(&mut |record| {
            learnt += usize::from(record.kind != Kind::Opened);
            self.apply(order, record);
        });
        if outcome.is_ok() && !unwritten.is_empty() {
            outcome = journal.append(unwritten);
            if outcome.is_ok() {
                unwritten.clear();
            }
        }
        journal.leave();
        outcome.map(|()| learnt)
    }

    /// What is remembered.
    pub fn stats(&self) -> Stats {
        let (entries, prefixes, horizon) = self.table.sizes();
        Stats { sequence: self.sequence(), entries, prefixes, horizon: Sequence(horizon) }
    }

    /// Puts a record into the table, and only then lets it be known: an object whose fetch begins
    /// from here on was not there to be purged.
    fn apply(&self, order: &mut table::Order, record: Record) {
        let sequence = record.sequence;
        self.table.apply(order, record);
        self.sequence.fetch_max(sequence, Ordering::Release);
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sequence {
    /// A sequence that was kept with an object.
    pub const fn from_number(number: u64) -> Sequence {
        Sequence(number)
    }

    /// Its number, to be kept with an object.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl Mark {
    /// The mark of an object whose fetch began at this point.
    pub const fn new(sequence: Sequence) -> Mark {
        Mark(AtomicU64::new(sequence.0))
    }

    /// Up to where it has come.
    pub fn sequence(&self) -> Sequence {
        Sequence(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
