//! The disk tier of the cache: whatever a segment file holds, nothing is handed out that its own
//! checksums do not vouch for.
//!
//! The first byte says where the file comes from. Either it is what follows, or what follows are
//! changes to a segment that the tier has written itself; and either it stays as it is, or the
//! checksums that it has are put right, so that what they protect is read.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tidegate_cache::hash::Seed;
use tidegate_cache::store::disk::{Content, Cursor, Disk, Put, Settings, Slicing};
use tidegate_cache::store::purge::Sequence;
use tidegate_cache::store::{Key, Slice};
use tidegate_cache::time::Time;
use xxhash_rust::xxh3::xxh3_64;

const SEED: Seed = Seed::new([1; 16]);
const NOW: Time = Time::from_millis(1_000);
const BLOCK_BYTES: usize = 64 << 10;
const HEAD_BYTES: usize = 96;

/// A directory of this process with one segment in it, and what the tier wrote there.
static WRITTEN: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("cache-segment-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let (disk, _) = open(&directory).expect("a new directory");
    for number in 0..4_u64 {
        let name = format!("key {number}");
        let mut key = Key::new(name.as_bytes(), &SEED).variant(number);
        let body = Bytes::from(vec![b'b'; if number == 3 { 70_000 } else { 30 }]);
        let mut content = Content::Whole(vec![body]);
        match number {
            1 => key = key.slice(Slice { object: 9, number: 5 }),
            2 => content = Content::Sliced(Slicing::new(9, 1000, 10).expect("a slicing")),
            _ => {}
        }
        let metadata = Box::from(&b"about"[..]);
        let (expires, sequence) = (Time::NEVER, Sequence::default());
        disk.put(Put { key, metadata, content, expires, sequence }, NOW).expect("room");
    }
    disk.flush();
    disk.remove(&Key::new(b"key 0", &SEED), NOW);
    drop(disk);
    let file = fs::read(directory.join("00000001.segment")).expect("a segment");
    (directory, file)
});

fn open(directory: &std::path::Path) -> Option<(Disk, ())> {
    let opened = Disk::open(directory, &SEED, Settings::for_bytes(16 << 20), NOW);
    opened.ok().map(|(disk, _)| (disk, ()))
}

fuzz_target!(|input: &[u8]| {
    let (directory, written) = &*WRITTEN;
    let Some((&mode, input)) = input.split_first() else { return };
    let mut file = if mode & 1 == 0 {
        // A good header, as a file without one is not looked at.
        [&written[..64], input].concat()
    } else {
        changed(written, input)
    };
    if mode & 2 == 0 {
        put_right(&mut file);
    }
    for found in fs::read_dir(directory).expect("the directory").flatten() {
        if found.path().extension().is_some_and(|extension| extension == "segment") {
            let _ = fs::remove_file(found.path());
        }
    }
    fs::write(directory.join("00000001.segment"), &file).expect("room");
    let Some((disk, ())) = open(directory) else { return };
    let mut locations = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = disk.visit(from, 100, |listed| locations.push(listed.location));
    }
    for at in locations {
        let Ok(mut stored) = disk.read_at(&at) else { continue };
        if let Some(slicing) = stored.slicing() {
            assert!(slicing.covering(5..1 << 40).take(10).all(|piece| !piece.range.is_empty()));
        }
        let mut body = Vec::new();
        if disk.read_body(&stored, 0..u64::MAX, &mut body).is_ok() {
            assert_eq!(body.len() as u64, stored.body_bytes());
            assert!(vouched(&file, stored.key(), stored.metadata(), &body));
            let mut part = Vec::new();
            disk.read_body(&stored, 1..3, &mut part).expect("it was read before");
            assert_eq!(part, body.get(1..3.min(body.len())).unwrap_or_default());
        }
        if disk.check(&mut stored).is_ok() {
            assert!(stored.body().is_some_and(|body| body.bytes == stored.body_bytes()));
        }
    }
});

/// A file with changes: pairs of a place and a byte, and where it ends.
fn changed(written: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut file = written.to_vec();
    let (changes, end) = changes.as_chunks::<4>();
    for change in changes {
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        let place = place % file.len();
        file[place] = change[3];
    }
    if let [low, high, ..] = *end {
        file.truncate(usize::from(low) << 9 | usize::from(high));
    }
    file
}

/// Where the front of a record would end that began at a place, and its body.
fn parts(file: &[u8], at: usize) -> Option<(usize, usize)> {
    let length = |from: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(file.get(at + from..at + from + bytes)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    let body = length(24, 8)?;
    let sums = body.div_ceil(BLOCK_BYTES).checked_mul(8)?;
    let front = HEAD_BYTES.checked_add(length(16, 4)?)?.checked_add(length(20, 4)?)?;
    let front = at.checked_add(front)?.checked_add(sums)?;
    let body = front.checked_add(body)?;
    (body <= file.len()).then_some((front, body))
}

/// Puts the checksums of all records right that the file has in a row, and of its footer.
fn put_right(file: &mut [u8]) {
    let mut at = 64;
    while let Some((front, body)) = parts(file, at) {
        let sums = front - (body - front).div_ceil(BLOCK_BYTES) * 8;
        for (number, from) in (front..body).step_by(BLOCK_BYTES).enumerate() {
            let sum = xxh3_64(&file[from..body.min(from + BLOCK_BYTES)]);
            file[sums + number * 8..][..8].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = xxh3_64(&file[at + 8..front]);
        file[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        at = body.next_multiple_of(8);
    }
    if let Some(trailer) = file.len().checked_sub(40).filter(|&trailer| trailer >= 64) {
        let mut entries_at = [0; 8];
        entries_at.copy_from_slice(&file[trailer + 16..trailer + 24]);
        let entries_at = usize::try_from(u64::from_le_bytes(entries_at)).unwrap_or(usize::MAX);
        if entries_at <= trailer {
            let sum = xxh3_64(&file[entries_at..trailer]);
            file[trailer + 32..].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = xxh3_64(&file[trailer + 8..]);
        file[trailer..trailer + 8].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Whether the file has a record of these parts all of whose checksums match.
fn vouched(file: &[u8], key: &[u8], metadata: &[u8], body: &[u8]) -> bool {
    (64..file.len()).step_by(8).any(|at| {
        let Some((front, end)) = parts(file, at) else { return false };
        let names = [key, metadata].concat();
        let sums: Vec<u8> =
            body.chunks(BLOCK_BYTES).flat_map(|block| xxh3_64(block).to_le_bytes()).collect();
        file[front..end] == *body
            && file[at + HEAD_BYTES..front] == [names, sums].concat()
            && file[at..at + 8] == xxh3_64(&file[at + 8..front]).to_le_bytes()
    })
}
