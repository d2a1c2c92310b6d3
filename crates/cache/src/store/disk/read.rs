//! Reading records: fronts, which are believed if their checksum matches, and bodies, block by block
//! until all of them are known to match.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::format::{self, BLOCK_BYTES, HEAD_BYTES, Head, Kind};
use super::index::{Checked, Place};
use super::segment::{Segment, read_some, read_whole};
use super::slices::Slicing;
use super::tier::{Tier, count};
use crate::store::key::{Key, Slice};
use crate::store::purge::Sequence;
use crate::time::Time;

/// Where something is, as the index knows it. Says nothing of what it is: the hash of its key is
/// what was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub(super) hash: u64,
    pub(super) place: Place,
    /// Bytes of the record: key, metadata, body and some more.
    pub bytes: u64,
}

/// An object of the disk tier: all but its body, which stays in its file. It can be read for as long
/// as this is held, whatever is evicted.
#[derive(Debug)]
pub struct Stored {
    hash: u64,
    place: Place,
    head: Head,
    front: Box<[u8]>,
    segment: Arc<Segment>,
    checked: Checked,
}

/// A body where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The file.
    pub file: &'a Arc<File>,
    /// Where the body begins in it.
    pub offset: u64,
    /// Bytes of the body.
    pub bytes: u64,
}

/// Why something that was found is not there after all.
#[derive(Debug)]
pub enum Missing {
    /// It was evicted, replaced or removed meanwhile.
    Gone,
    /// Another key has the same hash.
    OtherKey,
    /// It did not match its checksums, and is removed now.
    Corrupt,
    /// The disk would not give it back; it is removed now.
    Unreadable(io::Error),
}

impl Stored {
    /// The key's bytes.
    pub fn key(&self) -> &[u8] {
        &self.front[HEAD_BYTES..HEAD_BYTES + self.head.key_bytes]
    }

    /// The hash of the variant, 0 where there is none.
    pub fn variant(&self) -> u64 {
        self.head.variant
    }

    /// The slice, if it is not a whole response.
    pub fn slice(&self) -> Option<Slice> {
        match self.head.kind {
            Kind::Slice(slice) => Some(slice),
            Kind::Whole | Kind::Sliced(_) | Kind::Removal => None,
        }
    }

    /// How the body is cut, if its slices are stored on their own.
    pub fn slicing(&self) -> Option<Slicing> {
        match self.head.kind {
            Kind::Sliced(slicing) => Some(slicing),
            Kind::Whole | Kind::Slice(_) | Kind::Removal => None,
        }
    }

    /// What was stored with it.
    pub fn metadata(&self) -> &[u8] {
        &self.front[HEAD_BYTES + self.head.key_bytes..self.head.sums_at()]
    }

    /// Bytes of the body that are with it.
    pub fn body_bytes(&self) -> u64 {
        self.head.body_bytes
    }

    /// When it was stored.
    pub fn stored(&self) -> Time {
        self.head.stored
    }

    /// When it is of no use any more.
    pub fn expires(&self) -> Time {
        self.head.expires
    }

    /// How far purges had come when its fetch began.
    pub fn sequence(&self) -> Sequence {
        Sequence::from_number(self.head.sequence)
    }

    /// The body, to be sent straight from its file, once it was checked: by this process writing it,
    /// or by [`super::Disk::check`].
    pub fn body(&self) -> Option<Body<'_>> {
        let body =
            Body { file: &self.segment.file, offset: self.body_at(), bytes: self.head.body_bytes };
        match self.checked {
            Checked::Yes => Some(body),
            Checked::No => None,
        }
    }

    /// The front as it is on disk.
    pub(super) fn front(&self) -> &[u8] {
        &self.front
    }

    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    fn body_at(&self) -> u64 {
        self.place.offset() + self.front.len() as u64
    }

    fn is(&self, key: &Key<'_>) -> bool {
        self.key() == key.bytes()
            && self.head.variant == key.variant_hash()
            && self.slice() == key.slice_of()
    }
}

impl Tier {
    /// Reads the front of what is at a location.
    pub(super) fn read(&self, at: &Location, checked: Checked) -> Result<Stored, Missing> {
        let Location { hash, place, .. } = *at;
        let Some(segment) = self.segments.find(place.slot()) else { return Err(Missing::Gone) };
        let mut front = vec![0; place.front_bytes()];
        let read = read_some(&segment.file, &mut front, place.offset());
        front.truncate(read.map_err(|error| self.unreadable(at, error))?);
        let head = front.first_chunk::<HEAD_BYTES>().and_then(Head::read);
        let head = head.filter(|head| {
            let front_bytes = head.front_bytes();
            front_bytes <= front.len()
                && format::is_sealed(&front[..front_bytes])
                && head.hash == hash
                && head.kind != Kind::Removal
        });
        let Some(head) = head else { return Err(self.corrupt(at)) };
        front.truncate(head.front_bytes());
        Ok(Stored { hash, place, head, front: front.into_boxed_slice(), segment, checked })
    }

    /// Reads the front of what is at a location, if it is what has this key.
    pub(super) fn read_key(
        &self,
        key: &Key<'_>,
        at: &Location,
        checked: Checked,
    ) -> Result<Stored, Missing> {
        let stored = self.read(at, checked)?;
        if stored.is(key) { Ok(stored) } else { Err(Missing::OtherKey) }
    }

    /// Compares a body with its checksums, if that was not done yet.
    pub(super) fn check(&self, stored: &mut Stored) -> Result<(), Missing> {
        if stored.checked == Checked::No {
            let mut block = Vec::new();
            for number in 0..format::blocks(stored.head.body_bytes) {
                self.read_block(stored, number, &mut block)?;
            }
            stored.checked = Checked::Yes;
            self.index.mark_checked(stored.hash, stored.place);
        }
        Ok(())
    }

    /// Appends bytes of a body to `out`; those beyond its end are left out. Blocks that were not
    /// checked are.
    pub(super) fn read_body(
        &self,
        stored: &Stored,
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), Missing> {
        let range = range.start..range.end.min(stored.head.body_bytes);
        if range.is_empty() {
            return Ok(());
        }
        if stored.checked == Checked::Yes {
            let start = out.len();
            out.resize(start + format::in_memory(range.end - range.start), 0);
            let offset = stored.body_at() + range.start;
            return self.fill(stored, &mut out[start..], offset);
        }
        let block_bytes = BLOCK_BYTES as u64;
        let mut block = Vec::new();
        for number in range.start / block_bytes..range.end.div_ceil(block_bytes) {
            let from = number * block_bytes;
            self.read_block(stored, format::in_memory(number), &mut block)?;
            let wanted = range.start.max(from) - from..range.end.min(from + block_bytes) - from;
            let wanted = format::in_memory(wanted.start)..format::in_memory(wanted.end);
            out.extend_from_slice(&block[wanted]);
        }
        Ok(())
    }

    /// Reads a block of a body, which matches its checksum then.
    fn read_block(
        &self,
        stored: &Stored,
        number: usize,
        block: &mut Vec<u8>,
    ) -> Result<(), Missing> {
        let from = number as u64 * BLOCK_BYTES as u64;
        let bytes = stored.head.body_bytes.saturating_sub(from).min(BLOCK_BYTES as u64);
        block.resize(format::in_memory(bytes), 0);
        self.fill(stored, block, stored.body_at() + from)?;
        if format::sum_at(&stored.front, &stored.head, number) == Some(format::sum(block)) {
            Ok(())
        } else {
            Err(self.corrupt(&stored.location()))
        }
    }

    fn fill(&self, stored: &Stored, bytes: &mut [u8], offset: u64) -> Result<(), Missing> {
        match read_whole(&stored.segment.file, bytes, offset) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.corrupt(&stored.location())),
            Err(error) => Err(self.unreadable(&stored.location(), error)),
        }
    }

    /// Removes what does not match its checksums; if it is not what is found at its place any more,
    /// it only went meanwhile.
    fn corrupt(&self, at: &Location) -> Missing {
        if self.index.remove_at(at.hash, at.place) {
            count(&self.counters.corrupt);
            Missing::Corrupt
        } else {
            Missing::Gone
        }
    }

    fn unreadable(&self, at: &Location, error: io::Error) -> Missing {
        if self.index.remove_at(at.hash, at.place) {
            count(&self.counters.unreadable);
        }
        Missing::Unreadable(error)
    }
}

impl Stored {
    fn location(&self) -> Location {
        Location { hash: self.hash, place: self.place, bytes: self.head.record_bytes() }
    }
}
