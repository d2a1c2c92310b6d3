//! What the operator decides about the disk tier, what it says of itself, and why it does not start.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::format;
use crate::time::{Span, Time};

/// Bounds of the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most bytes that files of the tier take together. At least four segments.
    pub bytes_max: u64,
    /// Bytes of a segment: what is evicted at once, and written before a restart finds it by footer.
    /// Each segment is an open file. 1 MiB to 1 GiB.
    pub segment_bytes: u64,
    /// Most objects and slices, whose index is in memory (up to 39 bytes each).
    pub entries_max: usize,
    /// Longest key, in bytes.
    pub key_bytes_max: usize,
    /// Most bytes of metadata with an object.
    pub metadata_bytes_max: usize,
    /// Most bytes of a body or slice. At most a quarter of a segment.
    pub body_bytes_max: u64,
    /// Most bytes that wait to be written; what comes then is not stored.
    pub queue_bytes_max: u64,
    /// Most objects that wait to be written.
    pub queue_objects_max: usize,
    /// How long nothing is stored after the disk was full or failed.
    pub pause: Span,
}

impl Settings {
    /// Bounds for a tier of so many bytes: segments are larger where there are many of them, so that
    /// a large tier does not need a thousand open files, and smaller where there are few.
    pub fn for_bytes(bytes_max: u64) -> Settings {
        let segment_bytes = (bytes_max / 512).clamp(64 << 20, 1 << 30);
        let segment_bytes = segment_bytes.min(bytes_max / 16).max(1 << 20) & !0xfff;
        Settings {
            bytes_max,
            segment_bytes,
            entries_max: 20_000_000,
            key_bytes_max: 16 << 10,
            metadata_bytes_max: 128 << 10,
            body_bytes_max: segment_bytes / 4,
            queue_bytes_max: 32 << 20,
            queue_objects_max: 16 << 10,
            pause: Span::from_seconds(10),
        }
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        let wrong = |what| Err(Fault::Settings { what });
        if !(1 << 20..=1 << 30).contains(&self.segment_bytes) {
            return wrong("a segment has 1 MiB to 1 GiB");
        }
        if self.bytes_max < 4 * self.segment_bytes {
            return wrong("the tier has room for four segments at least");
        }
        if self.body_bytes_max > self.segment_bytes / 4 {
            return wrong("a body takes a quarter of a segment at most");
        }
        // The largest body there can be has checksums, too.
        let sums = format::blocks(self.body_bytes_max) * 8;
        let front = self.key_bytes_max.checked_add(self.metadata_bytes_max);
        match front.and_then(|front| front.checked_add(format::HEAD_BYTES + sums)) {
            Some(front) if front > format::FRONT_BYTES_MAX => {
                wrong("key and metadata have 250 KiB at most")
            }
            // Not half of it, as what is kept of an evicted segment takes its place, too.
            Some(front) if front as u64 + self.body_bytes_max <= self.segment_bytes / 16 * 7 => {
                Ok(())
            }
            _ => wrong("an object with key and metadata takes 7/16 of a segment at most"),
        }
    }
}

/// What the tier is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Storing and serving.
    Storing,
    /// Serving; not storing for a while.
    Paused {
        /// Why.
        reason: Reason,
        /// Since when.
        since: Time,
        /// When storing is tried again.
        until: Time,
    },
    /// Serving; another process stores, or did until now ([`super::Disk::take_over`]).
    ReadOnly,
}

/// Why nothing is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file system has no room, or the quota is used up.
    Full,
    /// Writing failed otherwise; what the system said.
    Failed(String),
}

impl Reason {
    pub(super) fn of(error: &io::Error) -> Reason {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::Full,
            _ => Reason::Failed(error.to_string()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Full => f.write_str("the disk is full"),
            Reason::Failed(what) => f.write_str(what),
        }
    }
}

/// Why the tier cannot be opened or taken over.
#[derive(Debug)]
pub enum Fault {
    /// A file was written by a newer version.
    Newer {
        /// The file.
        path: PathBuf,
        /// The format it is in.
        format: u32,
    },
    /// The directory holds something else under the names that the tier uses.
    Foreign {
        /// The file that is not ours.
        path: PathBuf,
    },
    /// Another process is setting the directory up and does not come to an end.
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The disk did not do its part.
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The settings cannot be met.
    Settings {
        /// What they would have to be.
        what: &'static str,
    },
}

impl Fault {
    pub(super) fn disk(path: &Path, error: io::Error) -> Fault {
        Fault::Disk { path: path.to_owned(), error }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Newer { path, format } => write!(
                f,
                "{} was written by a newer version: its format is {format}, and this version reads {}",
                path.display(),
                format::FORMAT
            ),
            Fault::Foreign { path } => {
                write!(f, "{} does not belong to a cache", path.display())
            }
            Fault::Busy { path } => {
                write!(f, "another process does not finish setting up {}", path.display())
            }
            Fault::Disk { path, error } => write!(f, "{}: {error}", path.display()),
            Fault::Settings { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

/// What opening, taking over or looking again has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Segments that were read by their footers.
    pub segments: u64,
    /// Segments without a good footer, read record by record.
    pub scanned: u64,
    /// Objects and slices that came with them, those included that others displaced.
    pub entries: u64,
    /// Bytes behind the last whole record of a segment, cut off.
    pub cut_bytes: u64,
    /// Files that are no segments of this tier, and were removed.
    pub foreign: u64,
}

/// Counts since the tier was opened, and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// What the tier is doing.
    pub state: State,
    /// Objects and slices in the index.
    pub entries: u64,
    /// Bytes of memory that the index takes.
    pub index_bytes: u64,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Most bytes that they may have.
    pub bytes_max: u64,
    /// Segments, each an open file.
    pub segments: u64,
    /// Objects and slices that wait to be written.
    pub queued: u64,
    /// Objects and slices written.
    pub stored: u64,
    /// Bytes written with them, keys and metadata included.
    pub stored_bytes: u64,
    /// Not stored because too much waited to be written.
    pub refused_queue: u64,
    /// Not stored because of [`State::Paused`] or [`State::ReadOnly`].
    pub refused_state: u64,
    /// Not stored because a bound of its size was passed.
    pub refused_size: u64,
    /// Not stored because writing failed.
    pub failed: u64,
    /// Gone with their segment, to make room.
    pub evicted: u64,
    /// Written again when their segment went, as they were in use.
    pub kept: u64,
    /// Found not to match their checksums, and removed.
    pub corrupt: u64,
    /// Could not be read, and removed.
    pub unreadable: u64,
}
