//! How records and variables are written: fixed fields, little-endian, then bytes; each with a
//! checksum over its number and all of it, since LMDB has none.

use super::super::address::{Collection, Record};
use super::super::cell::{Holds, Number, Plain};
use super::super::slot::{Kept, Slot};
use super::super::{About, Bytes, Lifetime, Stamp};

use std::sync::atomic::Ordering;

/// The format that is written, and the newest that is read.
pub(super) const FORMAT: u32 = 1;

/// A record as it is read.
#[derive(Debug)]
pub(super) struct ReadRecord<'a> {
    pub(super) record: Record<'a>,
    pub(super) about: About,
}

/// A variable as it is read.
#[derive(Debug)]
pub(super) struct ReadVariable<'a> {
    /// The number of its record.
    pub(super) record: u64,
    pub(super) written_ms: u64,
    pub(super) name: &'a [u8],
    pub(super) plain: Plain,
}

const NOTHING: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;

/// Writes a record.
pub(super) fn write_record(kept: &Kept, out: &mut Vec<u8>) {
    let about = kept.about();
    begin(out);
    out.push(kept.collection as u8);
    out.extend(about.created_ms.to_le_bytes());
    out.extend(about.updated_ms.to_le_bytes());
    out.extend(about.timeout_s.to_le_bytes());
    out.extend(about.updates.to_le_bytes());
    out.extend_from_slice(&kept.key);
    seal(kept.id, out);
}

/// Reads a record; `None` if it is damaged.
pub(super) fn read_record(id: u64, bytes: &[u8]) -> Option<ReadRecord<'_>> {
    let mut rest = unseal(id, bytes)?;
    let [collection] = take(&mut rest)?;
    let about = About {
        created_ms: u64::from_le_bytes(take(&mut rest)?),
        updated_ms: u64::from_le_bytes(take(&mut rest)?),
        timeout_s: u32::from_le_bytes(take(&mut rest)?),
        updates: u64::from_le_bytes(take(&mut rest)?),
    };
    let collection = Collection::ALL.into_iter().find(|known| *known as u8 == collection)?;
    Some(ReadRecord { record: Record::new(collection, rest), about })
}

/// Writes a variable.
pub(super) fn write_variable(slot: &Slot, plain: &Plain, out: &mut Vec<u8>) {
    begin(out);
    out.extend(slot.kept.id.to_le_bytes());
    out.extend(slot.written_ms.load(Ordering::Relaxed).to_le_bytes());
    out.extend(plain.stamp.to_bits().to_le_bytes());
    out.extend(plain.lifetime().pack().to_le_bytes());
    out.extend(plain.lifetime_stamp().to_bits().to_le_bytes());
    // Names are limited to far less than 64 KB by the settings; a longer one reads as damage.
    out.extend(u16::try_from(slot.name.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(&slot.name);
    match &plain.holds {
        Holds::Nothing => out.push(NOTHING),
        Holds::Number(number) => {
            out.push(NUMBER);
            out.extend(number.read().to_le_bytes());
            out.extend(number.lowered_ms.load(Ordering::Relaxed).to_le_bytes());
        }
        Holds::Text(text) => {
            out.push(TEXT);
            out.extend_from_slice(text);
        }
    }
    seal(slot.id, out);
}

/// Reads a variable; `None` if it is damaged.
pub(super) fn read_variable(id: u64, bytes: &[u8]) -> Option<ReadVariable<'_>> {
    let mut rest = unseal(id, bytes)?;
    let record = u64::from_le_bytes(take(&mut rest)?);
    let written_ms = u64::from_le_bytes(take(&mut rest)?);
    let stamp = Stamp::from_bits(u64::from_le_bytes(take(&mut rest)?));
    let lifetime = Lifetime::unpack(u64::from_le_bytes(take(&mut rest)?));
    let lifetime_stamp = Stamp::from_bits(u64::from_le_bytes(take(&mut rest)?));
    let name_bytes = u16::from_le_bytes(take(&mut rest)?);
    let (name, mut rest) = rest.split_at_checked(usize::from(name_bytes))?;
    let [kind] = take(&mut rest)?;
    let holds = match kind {
        NOTHING => Holds::Nothing,
        NUMBER => {
            let number = i64::from_le_bytes(take(&mut rest)?);
            Holds::Number(Number::new(number, u64::from_le_bytes(take(&mut rest)?)))
        }
        TEXT => Holds::Text(Bytes::from(rest)),
        _ => return None,
    };
    let plain = Plain::new(stamp, lifetime, holds);
    plain.set_lifetime(lifetime, lifetime_stamp);
    Some(ReadVariable { record, written_ms, name, plain })
}

fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.extend([0; 4]);
}

fn seal(id: u64, out: &mut [u8]) {
    if let Some((place, bytes)) = out.split_first_chunk_mut() {
        *place = checksum(id, bytes).to_le_bytes();
    }
}

fn unseal(id: u64, bytes: &[u8]) -> Option<&[u8]> {
    let (sum, bytes) = bytes.split_first_chunk()?;
    (u32::from_le_bytes(*sum) == checksum(id, bytes)).then_some(bytes)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

/// FNV-1a, folded to 32 bits: against decay, not against forgers.
#[expect(clippy::cast_possible_truncation, reason = "folding is to cut")]
fn checksum(id: u64, bytes: &[u8]) -> u32 {
    let hash =
        id.to_le_bytes().iter().chain(bytes).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::super::super::value::Value;
    use super::*;
    use std::sync::Arc;

    fn kept() -> Arc<Kept> {
        let about = About { created_ms: 1, updated_ms: 2, timeout_s: 3, updates: 4 };
        Arc::new(Kept::new(Record::new(Collection::Session, b"a key"), 9, about))
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut out = Vec::new();
        let kept = kept();
        write_record(&kept, &mut out);
        let read = read_record(9, &out).unwrap();
        assert_eq!((read.record, read.about), (kept.record(), kept.about()));

        let check = |value: Option<&[u8]>, lifetime| {
            let mut out = Vec::new();
            let slot = Slot::new(Arc::clone(&kept), b"name", 77, 5);
            let holds = value.map_or(Holds::Nothing, |value| Holds::of(Value::of(value), 6));
            let plain = Plain::new(Stamp::from_bits(11), lifetime, holds);
            plain.set_lifetime(lifetime, Stamp::from_bits(12));
            write_variable(&slot, &plain, &mut out);
            let read = read_variable(77, &out).unwrap();
            assert_eq!((read.record, read.written_ms, read.name), (9, 5, &b"name"[..]));
            assert_eq!(read.plain.value(), value.map(Value::of));
            assert_eq!(format!("{:?}", read.plain), format!("{plain:?}"));
        };
        check(None, Lifetime::Until(99));
        check(Some(b"-42"), Lifetime::Record);
        check(Some(b""), Lifetime::Forever);
        check(Some(b"text that is longer than what fits in place"), Lifetime::Until(1));
    }

    #[test]
    fn any_changed_bit_is_damage() {
        let mut out = Vec::new();
        let slot = Slot::new(kept(), b"name", 77, 5);
        let plain = Plain::new(Stamp::NONE, Lifetime::Record, Holds::of(Value::Number(3), 6));
        write_variable(&slot, &plain, &mut out);
        assert!(read_variable(78, &out).is_none(), "another number");
        for at in 0..out.len() {
            assert!(read_variable(77, &out[..at]).is_none(), "cut at {at}");
            for bit in 0..8 {
                out[at] ^= 1 << bit;
                assert!(read_variable(77, &out).is_none(), "bit {bit} of byte {at}");
                out[at] ^= 1 << bit;
            }
        }
    }
}
