//! Segments: files that are written once, from front to end, and removed whole.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::format::{FOOTER_ENTRY_BYTES, FooterEntry, TRAILER_BYTES, Trailer};

/// Slots are numbers of 24 bits; 0 is none.
const SLOTS: u32 = 1 << 24;

/// An open segment file. It can be read as long as anybody holds it, removed or not.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: u32,
    pub(super) slot: u32,
    pub(super) file: Arc<File>,
    /// Bytes written so far, the footer included once there is one.
    bytes: AtomicU64,
}

/// All segments, by the slot that the index knows them by.
#[derive(Debug, Default)]
pub(super) struct Segments {
    by_slot: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    segments: HashMap<u32, Arc<Segment>>,
    last_slot: u32,
}

/// The name of a segment's file.
pub(super) fn file_name(id: u32) -> String {
    format!("{id:08x}.segment")
}

/// The number of the segment whose file has this name.
pub(super) fn id_of(name: &Path) -> Option<u32> {
    let digits = name.to_str()?.strip_suffix(".segment")?;
    let plain = digits.len() == 8 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u32::from_str_radix(digits, 16).ok() } else { None }
}

impl Segment {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn path(&self, directory: &Path) -> PathBuf {
        directory.join(file_name(self.id))
    }

    /// Whether anybody else has a hold of a segment that is not among [`Segments`] any more.
    pub(super) fn is_read(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || Arc::strong_count(&self.file) > 1
    }

    /// What the footer lists, in the order in which it was written. `None` if there is no good one.
    pub(super) fn footer(&self) -> io::Result<Option<Vec<FooterEntry>>> {
        footer(&self.file)
    }
}

/// What the footer of a file lists.
pub(super) fn footer(file: &File) -> io::Result<Option<Vec<FooterEntry>>> {
    let length = file.metadata()?.len();
    let Some(trailer_at) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER_BYTES];
    if !read_whole(file, &mut trailer, trailer_at)? {
        return Ok(None);
    }
    let Some(trailer) = Trailer::read(&trailer, length) else { return Ok(None) };
    // Within the file, as the trailer was asked, so no more is allocated than there is to read.
    let mut bytes = vec![0; trailer.entries as usize * FOOTER_ENTRY_BYTES];
    if !read_whole(file, &mut bytes, trailer.entries_at)? || !trailer.matches(&bytes) {
        return Ok(None);
    }
    let (entries, _) = bytes.as_chunks::<FOOTER_ENTRY_BYTES>();
    Ok(entries.iter().map(|entry| FooterEntry::read(entry, trailer.entries_at)).collect())
}

/// Fills `bytes` from an offset; says whether the file reaches that far.
pub(super) fn read_whole(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<bool> {
    match file.read_exact_at(bytes, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads up to `bytes.len()` bytes from an offset, fewer only at the file's end.
pub(super) fn read_some(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl Segments {
    /// Adds a segment of so many bytes. `None` when there are as many as slots.
    pub(super) fn add(&self, id: u32, file: File, bytes: u64) -> Option<Arc<Segment>> {
        let mut known = self.write();
        // Slots go round, so that a place looked up long ago does not mean another segment soon.
        let mut slot = known.last_slot;
        for _ in 0..SLOTS {
            slot = if slot + 1 == SLOTS { 1 } else { slot + 1 };
            if !known.segments.contains_key(&slot) {
                known.last_slot = slot;
                let bytes = AtomicU64::new(bytes);
                let segment = Arc::new(Segment { id, slot, file: Arc::new(file), bytes });
                known.segments.insert(slot, Arc::clone(&segment));
                return Some(segment);
            }
        }
        None
    }

    pub(super) fn find(&self, slot: u32) -> Option<Arc<Segment>> {
        self.read().segments.get(&slot).cloned()
    }

    pub(super) fn remove(&self, slot: u32) {
        self.write().segments.remove(&slot);
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Segment>> {
        let mut all: Vec<_> = self.read().segments.values().cloned().collect();
        all.sort_by_key(|segment| segment.id);
        all
    }

    pub(super) fn oldest(&self) -> Option<Arc<Segment>> {
        self.read().segments.values().min_by_key(|segment| segment.id).cloned()
    }

    /// How many there are, and their bytes together.
    pub(super) fn sizes(&self) -> (u64, u64) {
        let known = self.read();
        let bytes = known.segments.values().map(|segment| segment.bytes()).sum();
        (known.segments.len() as u64, bytes)
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.by_slot.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.by_slot.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        for id in [0, 1, 0xdead_beef, u32::MAX] {
            assert_eq!(id_of(Path::new(&file_name(id))), Some(id));
        }
        for name in ["", ".segment", "1.segment", "0000000G.segment", "0000000A.segment", "lock"] {
            assert_eq!(id_of(Path::new(name)), None, "{name}");
        }
        assert_eq!(id_of(Path::new("+0000001.segment")), None);
    }
}
