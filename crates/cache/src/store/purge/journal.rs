//! The journal of purges: a file that grows by a record for each, and is written anew when most of
//! it is outlived.
//!
//! Several processes may have it open. Who writes or reads holds the file's lock, and looks first
//! whether the name still leads to the file that it has: writing anew puts another in its place.
//! A record is on disk before it counts. A torn last record was never acknowledged, and is cut off;
//! a damaged one hides what follows, and then everything stored so far has to go.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::record::{FORMAT, Read, Record};
use super::{Fault, Force, Found, record};
use crate::hash::Seed;
use crate::time::Time;

const MAGIC: [u8; 8] = *b"TidePurg";

/// Magic, format, four zero bytes, what the seed makes of a fixed text, checksum.
const HEADER_BYTES: usize = 32;

/// Numbers that a process leaves free when it begins: more than it can have given to purges that
/// never got to the disk.
const NUMBERS_LEFT_FREE: u64 = 1 << 20;

/// How long another process may hold the lock: far longer than writing takes.
const LOCK_WAITS: u32 = 1000;
const LOCK_WAIT: Duration = Duration::from_millis(2);

/// Bytes that the journal may have before it is compared with what it is worth.
const REWRITE_BYTES: u64 = 256 << 10;
/// Bytes that an entry of the table is worth, roughly: two records.
const ENTRY_BYTES: u64 = 96;

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    seed_check: u64,
    /// Up to where records were read or written.
    end: u64,
    /// The highest number among them.
    sequence: u64,
}

/// What is done with records that are read.
pub(super) type Apply<'a> = &'a mut dyn FnMut(Record);

impl Journal {
    /// Opens or creates the file, and applies what is in it.
    pub(super) fn open(path: &Path, seed: &Seed, apply: Apply<'_>) -> Result<(Self, Found), Fault> {
        let disk = |error| Fault::Disk { path: path.to_owned(), error };
        let mut journal = Journal {
            path: path.to_owned(),
            file: open_file(path).map_err(disk)?,
            seed_check: seed.hash(b"the journal of purges"),
            end: 0,
            sequence: 0,
        };
        journal.lock()?;
        let found = journal.read(apply);
        let opened = found.and_then(|found| {
            // Numbers that an earlier process gave without being able to write them are lower.
            let record = Record::opened(journal.sequence + NUMBERS_LEFT_FREE);
            apply(record.clone());
            journal.append(&[record]).map(|()| found)
        });
        journal.leave();
        opened.map(|found| (journal, found))
    }

    /// Whether there is something to read, as far as can be told without the lock.
    pub(super) fn has_grown(&self) -> Result<bool, Fault> {
        let at_path = fs::metadata(&self.path);
        let own = self.file.metadata().map_err(|error| self.disk(error))?;
        Ok(own.len() != self.end || !at_path.is_ok_and(|at_path| at_path.ino() == own.ino()))
    }

    /// Takes the lock, and applies what others have written since. To be followed by
    /// [`Journal::leave`], whatever comes of it.
    pub(super) fn enter(&mut self, apply: Apply<'_>) -> Result<(), Fault> {
        self.lock()?;
        self.read(apply).map(|_| ())
    }

    /// Lets go of the lock.
    pub(super) fn leave(&mut self) {
        // A lock that cannot be let go of ends with the process.
        let _ = self.file.unlock();
    }

    /// Writes records behind what was read, and waits until they are on disk. Only between
    /// [`Journal::enter`] and [`Journal::leave`].
    pub(super) fn append(&mut self, records: &[Record]) -> Result<(), Fault> {
        let mut bytes = Vec::new();
        for record in records {
            record.write(&mut bytes);
        }
        let written = self.write_at_end(&bytes).map_err(|error| self.disk(error));
        if written.is_ok() {
            self.end += bytes.len() as u64;
            let last = records.iter().map(|record| record.sequence).max();
            self.sequence = self.sequence.max(last.unwrap_or(0));
        }
        written
    }

    /// Whether the journal is much longer than what it says.
    pub(super) fn is_long(&self, entries: usize) -> bool {
        self.end > REWRITE_BYTES.max(4 * ENTRY_BYTES * entries as u64)
    }

    /// Puts a journal of these records in the place of the file. Only between [`Journal::enter`]
    /// and [`Journal::leave`].
    pub(super) fn rewrite(&mut self, records: &[Record]) -> Result<(), Fault> {
        let mut bytes = self.header().to_vec();
        for record in records {
            record.write(&mut bytes);
        }
        let new = self.path.with_extension("new");
        let file = write_whole(&new, &bytes).map_err(|error| self.disk(error))?;
        // Locked before anybody else can find it, so that the lock is held throughout.
        let replaced = file.try_lock().map_err(io::Error::from).and_then(|()| {
            fs::rename(&new, &self.path)?;
            sync_directory(&self.path)
        });
        replaced.map_err(|error| self.disk(error))?;
        self.file = file;
        self.end = bytes.len() as u64;
        Ok(())
    }

    fn lock(&mut self) -> Result<(), Fault> {
        for _ in 0..LOCK_WAITS {
            match self.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(LOCK_WAIT);
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(self.disk(error)),
            }
            let own = self.file.metadata().map_err(|error| self.disk(error))?.ino();
            if fs::metadata(&self.path).is_ok_and(|at_path| at_path.ino() == own) {
                return Ok(());
            }
            // It was written anew, or is gone. What it says is applied twice, which changes nothing.
            self.file = open_file(&self.path).map_err(|error| self.disk(error))?;
            self.end = 0;
        }
        Err(Fault::Busy { path: self.path.clone() })
    }

    /// Applies what is behind `end`. What cannot be read is cut off.
    fn read(&mut self, apply: Apply<'_>) -> Result<Found, Fault> {
        let bytes = self.bytes_behind_end().map_err(|error| self.disk(error))?;
        let mut rest = &*bytes;
        if self.end == 0 {
            if rest.len() < HEADER_BYTES {
                return self.begin().map(|()| Found::Whole);
            }
            rest = self.check_header(rest)?;
        }
        let start = self.end;
        let mut found = Found::Whole;
        while !rest.is_empty() {
            match Record::read(rest) {
                Read::Record(record, length) => {
                    self.sequence = self.sequence.max(record.sequence);
                    apply(record);
                    self.end += length as u64;
                    rest = &rest[length..];
                }
                Read::Torn => break,
                Read::Damaged => {
                    found = Found::Damaged;
                    break;
                }
            }
        }
        if !rest.is_empty() {
            self.file.set_len(self.end).map_err(|error| self.disk(error))?;
        }
        if found == Found::Damaged {
            // Lost records have at least as many bytes as numbers.
            let sequence = self.sequence + rest.len() as u64 + NUMBERS_LEFT_FREE;
            let at = Time::default();
            let everything =
                Record { kind: record::Kind::Horizon, force: Force::Hard, sequence, at };
            apply(everything.clone());
            self.append(&[everything])?;
        }
        debug_assert!(self.end >= start, "reading goes forward");
        Ok(found)
    }

    fn bytes_behind_end(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn check_header<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let (header, rest) = bytes.split_at(HEADER_BYTES);
        let format = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if header[..8] == MAGIC && format > FORMAT {
            return Err(Fault::Newer { path: self.path.clone(), format });
        }
        if header != self.header() {
            return Err(Fault::Foreign { path: self.path.clone() });
        }
        self.end = HEADER_BYTES as u64;
        Ok(rest)
    }

    /// Begins an empty journal, in a file that is new or whose beginning was never finished.
    fn begin(&mut self) -> Result<(), Fault> {
        self.end = 0;
        let header = self.header();
        let path = self.path.clone();
        self.write_at_end(&header)
            .and_then(|()| sync_directory(&path))
            .map_err(|error| self.disk(error))?;
        self.end = HEADER_BYTES as u64;
        Ok(())
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[16..24].copy_from_slice(&self.seed_check.to_le_bytes());
        let checksum = xxh3_64(&header[..24]);
        header[24..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    fn write_at_end(&mut self, bytes: &[u8]) -> io::Result<()> {
        // What a failed attempt left behind goes first.
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    fn disk(&self, error: io::Error) -> Fault {
        Fault::Disk { path: self.path.clone(), error }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

/// Makes sure that a new name is found after a loss of power.
fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => File::open(directory)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}
