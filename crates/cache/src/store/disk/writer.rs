//! The one thread that writes: appends records, seals segments, and makes room.
//!
//! Room is made by removing the oldest segment whole. What was looked up there since it was written
//! is written again, as far as three eighths of a segment go, those first that were looked up most. Together
//! the files never pass the bound: the segment being written and what is written again are reserved.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::format::{
    self, ALIGNMENT, FOOTER_ENTRY_BYTES, FooterEntry, HEADER_BYTES, Head, Header, Part,
    TRAILER_BYTES, Trailer,
};
use super::index::{Checked, Entry, Place};
use super::load;
use super::ownership::Ownership;
use super::queue::{Object, Order, Taken};
use super::read::Location;
use super::segment::{self, Segment};
use super::settings::{Reason, Settings};
use super::tier::{Tier, count};
use crate::time::Time;

/// Bodies up to this size are written together with their front.
const GATHERED_BYTES: usize = 256 << 10;

/// Removals that are owed to the disk while it takes nothing.
const OWED_MAX: usize = 1 << 16;

/// Names that are tried for a new segment.
const NAMES_TRIED: u32 = 1000;

pub(super) struct Writer {
    tier: Arc<Tier>,
    ownership: Ownership,
    open: Option<Open>,
    /// Removals that could not be written.
    owed: Vec<Head>,
    /// Evicted segments that somebody still reads. The last to close a removed file waits until the
    /// file system has freed it, and that should be this thread.
    retired: Vec<Arc<Segment>>,
    /// Used again and again for what is to be written.
    buffer: Vec<u8>,
    now: Time,
}

/// The segment that is being written.
struct Open {
    segment: Arc<Segment>,
    listed: Vec<FooterEntry>,
    /// Where the next record goes.
    end: u64,
}

impl Open {
    /// Bytes for records that are left in a segment of so many bytes, if there is one more of them.
    fn room(&self, segment_bytes: u64) -> u64 {
        let footer = (self.listed.len() + 1) * FOOTER_ENTRY_BYTES + TRAILER_BYTES;
        segment_bytes.saturating_sub(self.end + footer as u64)
    }
}

impl Writer {
    pub(super) fn new(tier: Arc<Tier>, ownership: Ownership, now: Time) -> Self {
        let (open, owed, retired, buffer) = (None, Vec::new(), Vec::new(), Vec::new());
        Writer { tier, ownership, open, owed, retired, buffer, now }
    }

    /// Does what is in the queue until it is closed and empty. Gives the right to write back.
    pub(super) fn run(mut self) -> Ownership {
        while let Some(taken) = self.tier.queue.take() {
            let tier = Arc::clone(&self.tier);
            let entered = self.order(&taken);
            tier.queue.done(&taken, || match (&taken.order, entered) {
                (Order::Write(object), Some(entry)) => tier.index.insert(object.head.hash, entry),
                (Order::Remove { hash, .. }, _) => {
                    tier.index.remove(*hash);
                }
                (Order::Write(_), None) | (Order::Trim, _) => {}
            });
        }
        let ended = self.pay().and_then(|()| self.seal());
        self.settle(ended);
        self.ownership
    }

    /// Does what is ordered. What was written is not found before the order is done.
    fn order(&mut self, taken: &Taken) -> Option<Entry> {
        match &taken.order {
            Order::Write(object) => {
                self.now = object.now;
                if self.tier.queue.counts(taken) { self.store(object) } else { None }
            }
            Order::Remove { hash, at } => {
                self.now = *at;
                self.owed.truncate(OWED_MAX - 1);
                self.owed.push(Head::removal(*hash, *at));
                if self.tier.is_storing(self.now) {
                    let paid = self.pay();
                    self.settle(paid);
                }
                None
            }
            Order::Trim => {
                let trimmed = self.make_room();
                self.settle(trimmed);
                None
            }
        }
    }

    fn store(&mut self, object: &Object) -> Option<Entry> {
        if !self.tier.is_storing(self.now) {
            count(&self.tier.counters.refused_state);
            return None;
        }
        let written = self
            .pay()
            .and_then(|()| self.append(&object.head, &object.key, &object.metadata, &object.body));
        if let Some(entry) = self.settle(written) {
            count(&self.tier.counters.stored);
            self.tier.counters.stored_bytes.fetch_add(entry.length, Ordering::Relaxed);
            self.tier.resume();
            Some(entry)
        } else {
            count(&self.tier.counters.failed);
            None
        }
    }

    /// Stops storing for a while after a failure.
    fn settle<T>(&mut self, outcome: io::Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.tier.pause(Reason::of(&error), self.now);
                None
            }
        }
    }

    /// Writes the removals that are owed.
    fn pay(&mut self) -> io::Result<()> {
        while let Some(&head) = self.owed.last() {
            self.append(&head, &[], &[], &[])?;
            self.owed.pop();
        }
        Ok(())
    }

    /// Writes a record.
    fn append(
        &mut self,
        head: &Head,
        key: &[u8],
        metadata: &[u8],
        body: &[Bytes],
    ) -> io::Result<Entry> {
        self.room_for(head.record_bytes())?;
        let Some(open) = &mut self.open else { return Err(io::ErrorKind::NotFound.into()) };
        self.buffer.clear();
        head.write_front(key, metadata, body, &mut self.buffer);
        if let Err(error) = open.write(&mut self.buffer, body) {
            // What was written of it must not stand behind a shorter record. A segment that cannot
            // be cut is not written to any more.
            if open.segment.file.set_len(open.end).is_err() {
                self.open = None;
            }
            return Err(error);
        }
        Ok(open.list(head))
    }

    /// Makes sure that a record of so many bytes has room in the open segment.
    fn room_for(&mut self, bytes: u64) -> io::Result<()> {
        if self.tier.index.entries() >= self.tier.settings.entries_max && !self.evict_oldest()? {
            // All of them are in the open segment.
            self.seal()?;
            self.create()?;
            self.evict_oldest()?;
        }
        let segment_bytes = self.tier.settings.segment_bytes;
        if self.open.as_ref().is_some_and(|open| open.room(segment_bytes) >= bytes) {
            return Ok(());
        }
        self.seal()?;
        self.create()?;
        self.make_room()?;
        // What was written again took three eighths of it, and a record takes less than half.
        match &self.open {
            Some(open) if open.room(segment_bytes) >= bytes => Ok(()),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn create(&mut self) -> io::Result<()> {
        let newest = self.tier.segments.all().last().map_or(0, |segment| segment.id);
        let (id, path, file) = self.create_file(newest)?;
        let header = Header { id, seed_check: self.tier.seed_check(), created: self.now };
        if let Err(error) = file.write_all_at(&header.write(), 0) {
            // An empty file that is no segment: the next start would remove it as well.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        let end = HEADER_BYTES as u64;
        let segment = self.tier.segments.add(id, file, end).ok_or(io::ErrorKind::FileTooLarge)?;
        self.open = Some(Open { segment, listed: Vec::new(), end });
        Ok(())
    }

    /// Creates the file of a segment that is newer than another. What is there under its name and
    /// is no segment is left alone.
    fn create_file(&self, newest: u32) -> io::Result<(u32, PathBuf, File)> {
        for id in newest.saturating_add(1)..=newest.saturating_add(NAMES_TRIED) {
            let path = self.tier.directory.join(segment::file_name(id));
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((id, path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Ends the open segment with its footer.
    fn seal(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.listed.is_empty() {
            load::forget(&self.tier, &open.segment);
            return fs::remove_file(open.segment.path(&self.tier.directory));
        }
        let footer = Trailer::write(&open.listed, open.end);
        let file = &open.segment.file;
        // What a failed write left behind must not stand behind the footer. Without a footer, the
        // next start reads the segment record by record.
        file.set_len(open.end)?;
        file.write_all_at(&footer, open.end)?;
        open.segment.set_bytes(open.end + footer.len() as u64);
        Ok(())
    }

    /// Removes the oldest segments until the files keep to their bound.
    fn make_room(&mut self) -> io::Result<()> {
        loop {
            let (_, bytes) = self.tier.segments.sizes();
            let written = self.open.as_ref().map_or(0, |open| open.segment.bytes());
            let reserved = 2 * self.tier.settings.segment_bytes;
            let bytes_max = self.tier.bytes_max.load(Ordering::Relaxed);
            if bytes - written.min(bytes) + reserved <= bytes_max || !self.evict_oldest()? {
                return Ok(());
            }
        }
    }

    /// Removes the oldest segment; says whether there was one.
    fn evict_oldest(&mut self) -> io::Result<bool> {
        let Some(oldest) = self.tier.segments.oldest() else { return Ok(false) };
        if self.open.as_ref().is_some_and(|open| open.segment.id == oldest.id) {
            return Ok(false);
        }
        let before = self.tier.index.entries();
        // A footer that cannot be read says nothing of what was in use; all of it goes.
        let listed = oldest.footer().ok().flatten().unwrap_or_default();
        let mut in_use = self.in_use(&oldest, &listed);
        in_use.sort_by_key(|entry| std::cmp::Reverse(entry.1.uses));
        let mut kept = kept_bytes(&self.tier.settings);
        for (hash, entry) in in_use {
            if entry.length <= kept {
                kept -= entry.length;
                match self.write_again(hash, &entry) {
                    Ok(()) => {}
                    // Nothing more is kept, but room is still made.
                    Err(error) => {
                        self.settle::<()>(Err(error));
                        break;
                    }
                }
            }
        }
        for entry in &listed {
            self.tier.index.remove_at(entry.hash, Place::new(oldest.slot, entry));
        }
        if listed.is_empty() {
            self.tier.index.remove_segment(oldest.slot);
        }
        self.tier.segments.remove(oldest.slot);
        let gone = before.saturating_sub(self.tier.index.entries());
        self.tier.counters.evicted.fetch_add(gone as u64, Ordering::Relaxed);
        let removed = fs::remove_file(oldest.path(&self.tier.directory));
        self.retired.push(oldest);
        self.retired.retain(Segment::is_read);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        }
    }

    /// What was looked up in a segment and is of use yet.
    fn in_use(&self, segment: &Segment, listed: &[FooterEntry]) -> Vec<(u64, Entry)> {
        let now_s = format::expiry_s(self.now);
        let current = |listed: &FooterEntry| {
            let entry = self.tier.index.find(listed.hash)?;
            let current = listed.part != Part::Removal
                && entry.place == Place::new(segment.slot, listed)
                && entry.uses > 0
                && entry.expires_s >= now_s;
            current.then_some((listed.hash, entry))
        };
        listed.iter().filter_map(current).collect()
    }

    /// Copies a record into the open segment, if it matches its checksums and there is room.
    fn write_again(&mut self, hash: u64, entry: &Entry) -> io::Result<()> {
        let kept_bytes = kept_bytes(&self.tier.settings);
        let Some(open) = &mut self.open else { return Ok(()) };
        let at = Location { hash, place: entry.place, bytes: entry.length };
        // Whatever is wrong with it has been counted; it goes with its segment.
        let Ok(mut stored) = self.tier.read(&at, entry.checked) else { return Ok(()) };
        let head = *stored.head();
        if open.end + head.record_bytes() > kept_bytes {
            return Ok(());
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(stored.front());
        let whole = 0..head.body_bytes;
        let copied = self
            .tier
            .check(&mut stored)
            .and_then(|()| self.tier.read_body(&stored, whole, &mut self.buffer));
        if copied.is_err() {
            return Ok(());
        }
        pad(&mut self.buffer);
        open.segment.file.write_all_at(&self.buffer, open.end)?;
        let again = Entry { uses: entry.uses - 1, ..open.list(&head) };
        if self.tier.index.move_to(hash, entry.place, again) {
            count(&self.tier.counters.kept);
        }
        Ok(())
    }
}

impl Open {
    /// Writes a record whose front is in `buffer` at the end.
    fn write(&self, buffer: &mut Vec<u8>, body: &[Bytes]) -> io::Result<()> {
        let file = &self.segment.file;
        let body_bytes: usize = body.iter().map(Bytes::len).sum();
        if body_bytes <= GATHERED_BYTES {
            for piece in body {
                buffer.extend_from_slice(piece);
            }
            pad(buffer);
            return file.write_all_at(buffer, self.end);
        }
        file.write_all_at(buffer, self.end)?;
        let mut at = self.end + buffer.len() as u64;
        for piece in body {
            file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        buffer.clear();
        buffer.resize(format::in_memory(at.next_multiple_of(ALIGNMENT) - at), 0);
        file.write_all_at(buffer, at)
    }

    /// Lists a record that was written at the end.
    fn list(&mut self, head: &Head) -> Entry {
        let listed = FooterEntry::of(head, self.end);
        self.end += head.record_bytes();
        self.segment.set_bytes(self.end);
        self.listed.push(listed);
        Entry::new(self.segment.slot, &listed, Checked::Yes)
    }
}

/// Bytes that are written again when a segment goes, at most, and that a new segment may begin with:
/// less than half, so that evicting makes room.
fn kept_bytes(settings: &Settings) -> u64 {
    settings.segment_bytes / 8 * 3
}

fn pad(record: &mut Vec<u8>) {
    record.resize(record.len().next_multiple_of(format::in_memory(ALIGNMENT)), 0);
}
