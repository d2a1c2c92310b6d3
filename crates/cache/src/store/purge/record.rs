//! A purge as it is written: in the journal, and applied to the table.
//!
//! All numbers are little-endian. A record is 40 bytes, the path of a prefix, and a checksum over
//! both (XXH3, 64 bits). The 40 bytes, which say how long the path is, hold 16 bits that check them
//! alone: a wrong length must not pass for a record whose end is missing.

use xxhash_rust::xxh3::xxh3_64;

use super::{Force, PREFIX_BYTES_MAX, Purge, Scope};
use crate::tags::Tag;
use crate::time::Time;

/// The format that this version reads and writes.
pub(super) const FORMAT: u32 = 1;

/// Bytes of a record without path and checksum.
const FIXED: usize = 40;
const CHECKSUM: usize = 8;
/// Where the bits are that check them.
const CHECK_AT: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) force: Force,
    pub(super) sequence: u64,
    pub(super) at: Time,
}

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Everything,
    Site(u64),
    Url(u64),
    Prefix {
        site: u64,
        path: Box<[u8]>,
    },
    Tag(u64),
    SiteTag {
        site: u64,
        tag: u64,
    },
    /// Everything that was stored up to the record's number, as the table was full.
    Horizon,
    /// Nothing is purged: a process began to number from here on.
    Opened,
}

/// What the beginning of some bytes is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A record of so many bytes.
    Record(Record, usize),
    /// The beginning of one; the rest is missing.
    Torn,
    /// No record.
    Damaged,
}

impl Record {
    pub(super) fn of(purge: &Purge<'_>, sequence: u64, at: Time) -> Record {
        let kind = match purge.scope {
            Scope::Everything => Kind::Everything,
            Scope::Site(site) => Kind::Site(site),
            Scope::Url(url) => Kind::Url(url),
            Scope::Prefix { site, path } => Kind::Prefix { site, path: path.into() },
            Scope::Tag(tag) => Kind::Tag(tag.hash()),
            Scope::SiteTag { site, tag } => Kind::SiteTag { site, tag: tag.hash() },
        };
        Record { kind, force: purge.force, sequence, at }
    }

    pub(super) fn opened(sequence: u64) -> Record {
        Record { kind: Kind::Opened, force: Force::Soft, sequence, at: Time::default() }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let none: &[u8] = &[];
        let (kind, one, two, path) = match &self.kind {
            Kind::Everything => (0_u8, 0, 0, none),
            Kind::Site(site) => (1, *site, 0, none),
            Kind::Url(url) => (2, *url, 0, none),
            Kind::Prefix { site, path } => (3, *site, 0, &**path),
            Kind::Tag(tag) => (4, *tag, 0, none),
            Kind::SiteTag { site, tag } => (5, *site, *tag, none),
            Kind::Horizon => (6, 0, 0, none),
            Kind::Opened => (7, 0, 0, none),
        };
        let force = match self.force {
            Force::Hard => 0,
            Force::Soft => 1,
        };
        let start = out.len();
        // Paths are bounded far below.
        let path_bytes = u32::try_from(path.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&path_bytes.to_le_bytes());
        out.extend_from_slice(&[kind, force, 0, 0]);
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.at.millis().to_le_bytes());
        out.extend_from_slice(&one.to_le_bytes());
        out.extend_from_slice(&two.to_le_bytes());
        let check = fixed_check(&out[start..]);
        out[start + CHECK_AT..start + CHECK_AT + 2].copy_from_slice(&check);
        out.extend_from_slice(path);
        let checksum = xxh3_64(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads what is at the beginning of `bytes`, which are not empty.
    pub(super) fn read(bytes: &[u8]) -> Read {
        let Some(fixed) = bytes.first_chunk::<FIXED>() else { return Read::Torn };
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&fixed[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let path_bytes = u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]) as usize;
        let mut unchecked = *fixed;
        unchecked[CHECK_AT..CHECK_AT + 2].fill(0);
        let checked = fixed[CHECK_AT..CHECK_AT + 2] == fixed_check(&unchecked);
        if !checked || path_bytes > PREFIX_BYTES_MAX {
            return Read::Damaged;
        }
        let whole = FIXED + path_bytes;
        let Some(checksum) = bytes.get(whole..whole + CHECKSUM) else { return Read::Torn };
        if xxh3_64(&bytes[..whole]).to_le_bytes() != checksum {
            return Read::Damaged;
        }
        let (one, two) = (number(24), number(32));
        let kind = match fixed[4] {
            0 => Kind::Everything,
            1 => Kind::Site(one),
            2 => Kind::Url(one),
            3 => Kind::Prefix { site: one, path: bytes[FIXED..whole].into() },
            4 => Kind::Tag(one),
            5 => Kind::SiteTag { site: one, tag: two },
            6 => Kind::Horizon,
            7 => Kind::Opened,
            _ => return Read::Damaged,
        };
        let force = match fixed[5] {
            0 => Force::Hard,
            1 => Force::Soft,
            _ => return Read::Damaged,
        };
        let at = Time::from_millis(number(16).cast_signed());
        Read::Record(Record { kind, force, sequence: number(8), at }, whole + CHECKSUM)
    }
}

/// The 16 bits that check the first 40 bytes, where these two are still zero.
fn fixed_check(fixed: &[u8]) -> [u8; 2] {
    let bytes = xxh3_64(fixed).to_le_bytes();
    [bytes[0], bytes[1]]
}

impl Kind {
    /// Under which number it is in the table; prefixes, the horizon and beginnings are not there.
    pub(super) fn entry(&self) -> Option<u64> {
        match *self {
            Kind::Everything => Some(everything()),
            Kind::Site(site) => Some(site_entry(site)),
            Kind::Url(url) => Some(url_entry(url)),
            Kind::Tag(tag) => Some(tag_entry(Tag::from_hash(tag))),
            Kind::SiteTag { site, tag } => Some(site_tag_entry(site, Tag::from_hash(tag))),
            Kind::Prefix { .. } | Kind::Horizon | Kind::Opened => None,
        }
    }
}

// Hashes of different kinds are kept apart by rotating them: equal texts are rarely of one kind, and
// if two numbers meet nevertheless, something is purged that need not be.

pub(super) fn everything() -> u64 {
    0x6576_6572_7974_6869
}

pub(super) fn site_entry(site: u64) -> u64 {
    site.rotate_left(7)
}

pub(super) fn url_entry(url: u64) -> u64 {
    url.rotate_left(19)
}

pub(super) fn tag_entry(tag: Tag) -> u64 {
    tag.hash()
}

pub(super) fn site_tag_entry(site: u64, tag: Tag) -> u64 {
    (tag.hash() ^ site.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let kinds = [
            Kind::Everything,
            Kind::Site(1),
            Kind::Url(2),
            Kind::Prefix { site: 3, path: b"/a/b".as_slice().into() },
            Kind::Prefix { site: 3, path: vec![b'x'; PREFIX_BYTES_MAX].into() },
            Kind::Tag(u64::MAX),
            Kind::SiteTag { site: 5, tag: 6 },
            Kind::Horizon,
            Kind::Opened,
        ];
        let record = |(kind, sequence)| Record {
            kind,
            force: if sequence % 2 == 0 { Force::Hard } else { Force::Soft },
            sequence,
            at: Time::from_millis(-7),
        };
        kinds.into_iter().zip(1..).map(record).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for record in records() {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            let whole = bytes.len();
            assert_eq!(Record::read(&bytes), Read::Record(record.clone(), whole));
            bytes.push(77);
            assert_eq!(Record::read(&bytes), Read::Record(record, whole));
        }
    }

    #[test]
    fn a_part_is_torn_and_a_changed_bit_is_damage() {
        for record in records().into_iter().take(4) {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            for end in 1..bytes.len() {
                assert_eq!(Record::read(&bytes[..end]), Read::Torn, "{record:?} {end}");
            }
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    bytes[at] ^= 1 << bit;
                    assert_eq!(Record::read(&bytes), Read::Damaged, "{record:?} {at} {bit}");
                    bytes[at] ^= 1 << bit;
                }
            }
        }
    }
}
