//! What is in a segment file: a header, records, and, once it is sealed, a footer.
//!
//! All numbers are little-endian; records begin at multiples of eight. Each part begins with a
//! checksum (XXH3, 64 bits) of the rest of it; the footer's entries have theirs in the trailer.
//!
//! - header, 64 bytes: checksum, magic, format, number of the segment, check of the seed, creation
//! - record: a *front* and a body. The front is a [`Head`] of 96 bytes, the key, the metadata, and a
//!   checksum for each block of the body, all under one checksum, so that a record can be believed
//!   before its body is read.
//! - footer: an entry of 24 bytes for each record, and a trailer of 40 bytes at the end of the file.
//!   Reading footers is all that a restart needs.
//!
//! A file may hold anything: whatever is read is bounded before it is used.

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::slices::Slicing;
use crate::store::key::Slice;
use crate::time::Time;

/// The format that this version reads and writes.
pub(super) const FORMAT: u32 = 1;

pub(super) const HEADER_BYTES: usize = 64;
pub(super) const HEAD_BYTES: usize = 96;
pub(super) const FOOTER_ENTRY_BYTES: usize = 24;
pub(super) const TRAILER_BYTES: usize = 40;

/// Bytes of a body under one checksum.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// Records begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 8;

/// In what the length of a front is kept, and the longest front.
pub(super) const FRONT_UNIT: usize = 64;
pub(super) const FRONT_BYTES_MAX: usize = 4095 * FRONT_UNIT;

/// Longest segment: offsets are kept in 28 bits, in units of eight bytes.
pub(super) const SEGMENT_BYTES_MAX: u64 = ALIGNMENT << 28;

const SEGMENT_MAGIC: [u8; 8] = *b"TideSegm";
const TRAILER_MAGIC: [u8; 8] = *b"TideFoot";
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"TRec");

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: u32,
    pub(super) seed_check: u64,
    pub(super) created: Time,
}

/// Why a header cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// It is in a format that this version does not know.
    Newer(u32),
    /// It is none, or damaged.
    Damaged,
}

impl Header {
    pub(super) fn write(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[8..16].copy_from_slice(&SEGMENT_MAGIC);
        bytes[16..20].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.seed_check.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.created.millis().to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Header, HeaderError> {
        if !is_sealed(bytes) || bytes[8..16] != SEGMENT_MAGIC {
            return Err(HeaderError::Damaged);
        }
        match u32_at(bytes, 16) {
            FORMAT => Ok(Header {
                id: u32_at(bytes, 20),
                seed_check: u64_at(bytes, 24),
                created: time_at(bytes, 32),
            }),
            format => Err(HeaderError::Newer(format)),
        }
    }
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) key_bytes: usize,
    pub(super) metadata_bytes: usize,
    pub(super) body_bytes: u64,
    pub(super) hash: u64,
    pub(super) variant: u64,
    pub(super) stored: Time,
    pub(super) expires: Time,
    pub(super) sequence: u64,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object with its whole body.
    Whole,
    /// An object whose body is in slices.
    Sliced(Slicing),
    /// A slice of a body.
    Slice(Slice),
    /// What has this hash and came before is removed.
    Removal,
}

impl Head {
    /// The head of a record that says only that something is removed.
    pub(super) fn removal(hash: u64, at: Time) -> Head {
        Head {
            kind: Kind::Removal,
            key_bytes: 0,
            metadata_bytes: 0,
            body_bytes: 0,
            hash,
            variant: 0,
            stored: at,
            expires: Time::NEVER,
            sequence: 0,
        }
    }

    pub(super) fn front_bytes(&self) -> usize {
        let sums = blocks(self.body_bytes) * 8;
        HEAD_BYTES + self.key_bytes + self.metadata_bytes + sums
    }

    /// Bytes of the whole record, with what fills it up to the next.
    pub(super) fn record_bytes(&self) -> u64 {
        (self.front_bytes() as u64 + self.body_bytes).next_multiple_of(ALIGNMENT)
    }

    /// Where the checksums of blocks begin in the front.
    pub(super) fn sums_at(&self) -> usize {
        HEAD_BYTES + self.key_bytes + self.metadata_bytes
    }

    /// Appends the front of a record to `out`.
    pub(super) fn write_front(
        &self,
        key: &[u8],
        metadata: &[u8],
        body: &[Bytes],
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let (kind, object, number, total) = match self.kind {
            Kind::Whole => (0_u8, 0, 0, 0),
            Kind::Sliced(slicing) => (1, slicing.object, slicing.slice_bytes, slicing.body_bytes),
            Kind::Slice(slice) => (2, slice.object, slice.number, 0),
            Kind::Removal => (3, 0, 0, 0),
        };
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
        out.extend_from_slice(&[kind, 0, 0, 0]);
        // Both are bounded by the longest front.
        for length in [self.key_bytes, self.metadata_bytes] {
            out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        }
        for field in [self.body_bytes, self.hash, self.variant, object] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&total.to_le_bytes());
        for time in [self.stored, self.expires] {
            out.extend_from_slice(&time.millis().to_le_bytes());
        }
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(metadata);
        write_sums(body, out);
        seal(&mut out[start..]);
    }

    /// Reads a head, without believing it: the front it belongs to is to be asked
    /// ([`is_sealed`]).
    pub(super) fn read(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        if u32_at(bytes, 8) != RECORD_MAGIC {
            return None;
        }
        let (object, number, total) = (u64_at(bytes, 48), u32_at(bytes, 56), u64_at(bytes, 64));
        let kind = match bytes[12] {
            0 => Kind::Whole,
            1 => Kind::Sliced(Slicing::new(object, total, number)?),
            2 => Kind::Slice(Slice { object, number }),
            3 => Kind::Removal,
            _ => return None,
        };
        let head = Head {
            kind,
            key_bytes: u32_at(bytes, 16) as usize,
            metadata_bytes: u32_at(bytes, 20) as usize,
            body_bytes: u64_at(bytes, 24),
            hash: u64_at(bytes, 32),
            variant: u64_at(bytes, 40),
            stored: time_at(bytes, 72),
            expires: time_at(bytes, 80),
            sequence: u64_at(bytes, 88),
        };
        let bounded = head.key_bytes <= FRONT_BYTES_MAX
            && head.metadata_bytes <= FRONT_BYTES_MAX
            && head.body_bytes <= SEGMENT_BYTES_MAX
            && head.front_bytes() <= FRONT_BYTES_MAX;
        bounded.then_some(head)
    }
}

/// How many blocks a body has.
pub(super) fn blocks(body_bytes: u64) -> usize {
    in_memory(body_bytes.div_ceil(BLOCK_BYTES as u64))
}

/// A length within a segment as one in memory: segments are shorter than what can be addressed.
pub(super) fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The checksum of a block.
pub(super) fn sum(block: &[u8]) -> u64 {
    xxh3_64(block)
}

/// The checksum of a block from a front.
pub(super) fn sum_at(front: &[u8], head: &Head, block: usize) -> Option<u64> {
    let at = head.sums_at() + block * 8;
    let bytes = front.get(at..at + 8)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Appends the checksums of all blocks of a body that comes in pieces of any size.
fn write_sums(body: &[Bytes], out: &mut Vec<u8>) {
    if let [whole] = body {
        for block in whole.chunks(BLOCK_BYTES) {
            out.extend_from_slice(&sum(block).to_le_bytes());
        }
        return;
    }
    let mut block = Xxh3Default::new();
    let mut filled = 0;
    for piece in body {
        let mut rest = &**piece;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - filled));
            block.update(now);
            filled += now.len();
            rest = later;
            if filled == BLOCK_BYTES {
                out.extend_from_slice(&block.digest().to_le_bytes());
                block.reset();
                filled = 0;
            }
        }
    }
    if filled > 0 {
        out.extend_from_slice(&block.digest().to_le_bytes());
    }
}

/// What a footer says of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FooterEntry {
    pub(super) hash: u64,
    /// Where the record begins, in bytes.
    pub(super) offset: u64,
    /// How long it is, in bytes.
    pub(super) length: u64,
    /// When it is of no use any more, in seconds since 1970.
    pub(super) expires_s: u32,
    /// How long its front is, in units of [`FRONT_UNIT`], rounded up.
    pub(super) front_units: u16,
    pub(super) part: Part,
}

/// What a record is, as far as the index is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// An object, or its head.
    Object,
    /// A slice.
    Slice,
    /// A removal.
    Removal,
}

impl FooterEntry {
    /// The entry of a record at an offset.
    pub(super) fn of(head: &Head, offset: u64) -> FooterEntry {
        let units = head.front_bytes().div_ceil(FRONT_UNIT);
        FooterEntry {
            hash: head.hash,
            offset,
            length: head.record_bytes(),
            expires_s: expiry_s(head.expires),
            front_units: u16::try_from(units).unwrap_or(u16::MAX),
            part: match head.kind {
                Kind::Whole | Kind::Sliced(_) => Part::Object,
                Kind::Slice(_) => Part::Slice,
                Kind::Removal => Part::Removal,
            },
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let units = |bytes: u64| u32::try_from(bytes / ALIGNMENT).unwrap_or(u32::MAX);
        let part: u16 = match self.part {
            Part::Object => 0,
            Part::Slice => 1,
            Part::Removal => 2,
        };
        out.extend_from_slice(&self.hash.to_le_bytes());
        out.extend_from_slice(&units(self.offset).to_le_bytes());
        out.extend_from_slice(&units(self.length).to_le_bytes());
        out.extend_from_slice(&self.expires_s.to_le_bytes());
        out.extend_from_slice(&self.front_units.to_le_bytes());
        out.extend_from_slice(&part.to_le_bytes());
    }

    /// Reads an entry of a segment whose records end at `end`.
    pub(super) fn read(bytes: &[u8; FOOTER_ENTRY_BYTES], end: u64) -> Option<FooterEntry> {
        let entry = FooterEntry {
            hash: u64_at(bytes, 0),
            offset: u64::from(u32_at(bytes, 8)) * ALIGNMENT,
            length: u64::from(u32_at(bytes, 12)) * ALIGNMENT,
            expires_s: u32_at(bytes, 16),
            front_units: u16::from_le_bytes([bytes[20], bytes[21]]),
            part: match u16::from_le_bytes([bytes[22], bytes[23]]) {
                0 => Part::Object,
                1 => Part::Slice,
                2 => Part::Removal,
                _ => return None,
            },
        };
        let within = entry.offset >= HEADER_BYTES as u64
            && entry.length >= HEAD_BYTES as u64
            && entry.offset + entry.length <= end
            && usize::from(entry.front_units) * FRONT_UNIT <= FRONT_BYTES_MAX;
        within.then_some(entry)
    }
}

/// The end of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Where records end and the footer's entries begin.
    pub(super) entries_at: u64,
    pub(super) entries: u32,
    sum: u64,
}

impl Trailer {
    /// A footer for these entries, whose records end at `entries_at`.
    pub(super) fn write(entries: &[FooterEntry], entries_at: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(entries.len() * FOOTER_ENTRY_BYTES + TRAILER_BYTES);
        for entry in entries {
            entry.write(&mut out);
        }
        let sum = sum(&out);
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&TRAILER_MAGIC);
        out.extend_from_slice(&entries_at.to_le_bytes());
        // A segment has fewer records than bytes, and these fit.
        out.extend_from_slice(&u32::try_from(entries.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&sum.to_le_bytes());
        seal(&mut out[start..]);
        out
    }

    /// Reads the trailer of a file of so many bytes.
    pub(super) fn read(bytes: &[u8; TRAILER_BYTES], file_bytes: u64) -> Option<Trailer> {
        let sealed =
            is_sealed(bytes) && bytes[8..16] == TRAILER_MAGIC && u32_at(bytes, 28) == FORMAT;
        let trailer = Trailer {
            entries_at: u64_at(bytes, 16),
            entries: u32_at(bytes, 24),
            sum: u64_at(bytes, 32),
        };
        let footer = u64::from(trailer.entries) * FOOTER_ENTRY_BYTES as u64 + TRAILER_BYTES as u64;
        let fits = trailer.entries_at >= HEADER_BYTES as u64
            && trailer.entries_at.checked_add(footer) == Some(file_bytes);
        (sealed && fits).then_some(trailer)
    }

    /// Whether these are the entries.
    pub(super) fn matches(&self, entries: &[u8]) -> bool {
        sum(entries) == self.sum
    }
}

/// When something expires, in whole seconds, rounded up.
pub(super) fn expiry_s(expires: Time) -> u32 {
    let seconds = expires.millis().max(0).unsigned_abs().div_ceil(1000);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Writes the checksum of a part whose first eight bytes are for it.
fn seal(part: &mut [u8]) {
    let checksum = xxh3_64(&part[8..]);
    part[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Whether a part, of eight bytes at least, matches its checksum.
pub(super) fn is_sealed(part: &[u8]) -> bool {
    part.len() >= 8 && xxh3_64(&part[8..]) == u64_at(part, 0)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn time_at(bytes: &[u8], at: usize) -> Time {
    Time::from_millis(u64_at(bytes, at).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: Kind, body_bytes: u64) -> Head {
        Head {
            kind,
            key_bytes: 3,
            metadata_bytes: 5,
            body_bytes,
            hash: 7,
            variant: 8,
            stored: Time::from_millis(-9),
            expires: Time::from_millis(10),
            sequence: 11,
        }
    }

    #[test]
    fn a_front_is_read_as_it_was_written() {
        let slicing = Slicing::new(1, 5 << 30, 1 << 20).unwrap();
        let slice = Slice { object: 1, number: 77 };
        for kind in [Kind::Whole, Kind::Sliced(slicing), Kind::Slice(slice), Kind::Removal] {
            let head = head(kind, 150_000);
            let body = Bytes::from(vec![1; 150_000]);
            let mut front = Vec::new();
            head.write_front(b"key", b"about", std::slice::from_ref(&body), &mut front);
            assert_eq!(front.len(), head.front_bytes());
            assert_eq!(Head::read(front.first_chunk().unwrap()), Some(head));
            assert!(is_sealed(&front));
            assert_eq!(sum_at(&front, &head, 2), Some(sum(&body[2 * BLOCK_BYTES..])));
            assert_eq!(sum_at(&front, &head, 3), None);
            // In pieces, it is the same.
            let mut in_pieces = Vec::new();
            let pieces = [body.slice(..1), body.slice(1..70_000), body.slice(70_000..)];
            head.write_front(b"key", b"about", &pieces, &mut in_pieces);
            assert_eq!(in_pieces, front);
        }
    }

    #[test]
    fn a_head_whose_lengths_cannot_be_is_none() {
        let mut front = Vec::new();
        head(Kind::Whole, 0).write_front(b"key", b"about", &[], &mut front);
        for at in [16, 20, 24] {
            let mut bytes = *front.first_chunk::<HEAD_BYTES>().unwrap();
            bytes[at..at + 4].fill(0xff);
            assert_eq!(Head::read(&bytes), None, "{at}");
        }
    }

    #[test]
    fn a_footer_is_read_as_it_was_written() {
        let of = |offset| FooterEntry::of(&head(Kind::Whole, 100), offset);
        let entries = [of(64), of(64 + of(64).length)];
        let end = entries[1].offset + entries[1].length;
        let footer = Trailer::write(&entries, end);
        let (listed, trailer) = footer.split_at(footer.len() - TRAILER_BYTES);
        let file_bytes = end + footer.len() as u64;
        let trailer = Trailer::read(trailer.first_chunk().unwrap(), file_bytes).unwrap();
        assert!(trailer.matches(listed) && trailer.entries == 2);
        let read: Vec<_> = listed
            .chunks(FOOTER_ENTRY_BYTES)
            .map(|bytes| FooterEntry::read(bytes.first_chunk().unwrap(), end).unwrap())
            .collect();
        assert_eq!(read, entries);
        let last = listed[FOOTER_ENTRY_BYTES..].first_chunk().unwrap();
        assert_eq!(FooterEntry::read(last, end - 1), None);
    }

    #[test]
    fn every_bit_of_a_header_counts() {
        let header = Header { id: 5, seed_check: 6, created: Time::from_millis(7) };
        let mut bytes = header.write();
        assert_eq!(Header::read(&bytes), Ok(header));
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(Header::read(&bytes), Err(HeaderError::Damaged), "{at}");
            bytes[at] ^= 1;
        }
        bytes[16] = 9;
        seal(&mut bytes);
        assert_eq!(Header::read(&bytes), Err(HeaderError::Newer(9)));
    }
}
