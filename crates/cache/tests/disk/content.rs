//! Objects that can be told from any others.

use bytes::Bytes;
use tidegate_cache::hash::Seed;
use tidegate_cache::store::Key;
use tidegate_cache::store::disk::{Content, Put, Settings};
use tidegate_cache::store::purge::Sequence;
use tidegate_cache::time::Time;

pub(crate) const SEED: Seed = Seed::new([8; 16]);
pub(crate) const NOW: Time = Time::from_millis(1_000_000);

pub(crate) fn settings() -> Settings {
    Settings::for_bytes(16 << 20)
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("https://example.org/{number}").into_bytes()
}

pub(crate) fn number_of(key: &[u8]) -> u64 {
    let text = std::str::from_utf8(key).unwrap();
    text.rsplit('/').next().unwrap().parse().unwrap()
}

/// Up to 128 KiB, mostly up to 8, of words that no other version of no other object has.
fn body(number: u64, version: u64) -> Vec<u8> {
    let word = (number << 32 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = match word >> 60 {
        0 => word >> 40 & 0x3fff,
        _ => word >> 40 & 0x3ff,
    };
    word.to_le_bytes().repeat(usize::try_from(words).unwrap())
}

pub(crate) fn put(key: Key<'_>, number: u64, version: u64, sequence: Sequence) -> Put<'_> {
    Put {
        key,
        metadata: format!("{number} {version}").into_bytes().into(),
        content: Content::Whole(vec![Bytes::from(body(number, version))]),
        expires: Time::NEVER,
        sequence,
    }
}

/// Whether key, metadata and body belong together.
pub(crate) fn matches(found_key: &[u8], metadata: &[u8], found: &[u8]) -> bool {
    let text = std::str::from_utf8(metadata).unwrap();
    let (number, version) = text.split_once(' ').unwrap();
    let (number, version) = (number.parse().unwrap(), version.parse().unwrap());
    found_key == key(number) && found == body(number, version)
}
