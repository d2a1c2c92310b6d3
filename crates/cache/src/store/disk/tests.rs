use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::store::Slice;

const SEED: Seed = Seed::new([4; 16]);
const NOW: Time = Time::from_millis(1_000_000);

fn settings() -> Settings {
    Settings { queue_objects_max: 1 << 20, ..Settings::for_bytes(16 << 20) }
}

fn open(directory: &Path) -> (Disk, Loaded) {
    Disk::open(directory, &SEED, settings(), NOW).unwrap()
}

fn name(number: u64) -> Vec<u8> {
    format!("https://example.org/{number}").into_bytes()
}

/// Bytes that nothing else has.
fn body(number: u64, bytes: usize) -> Bytes {
    let mut state = number + 1;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(byte).collect()
}

fn put_of(key: Key<'_>, number: u64, bytes: usize) -> Put<'_> {
    Put {
        key,
        metadata: format!("about {number}").into_bytes().into(),
        content: Content::Whole(vec![body(number, bytes)]),
        expires: Time::NEVER,
        sequence: Sequence::from_number(number),
    }
}

fn put(disk: &Disk, number: u64, bytes: usize) -> Result<(), Refused> {
    disk.put(put_of(Key::new(&name(number), disk.seed()), number, bytes), NOW)
}

fn remove(disk: &Disk, number: u64) -> Removal {
    disk.remove(&Key::new(&name(number), disk.seed()), NOW)
}

fn find(disk: &Disk, number: u64) -> Option<Stored> {
    let bytes = name(number);
    let key = Key::new(&bytes, disk.seed());
    disk.read(&key, &disk.look_up(&key, NOW)?).ok()
}

/// The body under a number, which is what was put there: anything else ends the test.
fn read(disk: &Disk, number: u64) -> Option<usize> {
    let stored = find(disk, number)?;
    assert_eq!(stored.metadata(), format!("about {number}").as_bytes());
    assert_eq!(stored.sequence(), Sequence::from_number(number));
    let mut found = Vec::new();
    disk.read_body(&stored, 0..u64::MAX, &mut found).ok()?;
    assert_eq!(found, body(number, found.len()));
    assert_eq!(found.len() as u64, stored.body_bytes());
    Some(found.len())
}

/// The directory as a kill would leave it now.
fn killed(disk: &Disk) -> TempDir {
    disk.flush();
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(&disk.tier.directory).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

fn segment_files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let name = |path: &PathBuf| segment::id_of(Path::new(path.file_name().unwrap())).is_some();
    let mut files: Vec<_> = files.filter(name).collect();
    files.sort();
    files
}

#[test]
fn what_is_put_is_found_when_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, loaded) = open(directory.path());
    assert_eq!(loaded, Loaded::default());
    for (number, bytes) in [(0, 0), (1, 1), (2, 65_536), (3, 65_537), (4, 250_000)] {
        assert_eq!(put(&disk, number, bytes), Ok(()));
        disk.flush();
        assert_eq!(read(&disk, number), Some(bytes));
    }
    assert_eq!(read(&disk, 5), None);
    let stored = find(&disk, 4).unwrap();
    assert_eq!((stored.key(), stored.stored()), (&*name(4), NOW));
    let sent = stored.body().unwrap();
    let mut bytes = vec![0; 250_000];
    sent.file.read_exact_at(&mut bytes, sent.offset).unwrap();
    assert_eq!((Bytes::from(bytes), sent.bytes), (body(4, 250_000), 250_000));
    let mut part = Vec::new();
    disk.read_body(&stored, 65_000..131_073, &mut part).unwrap();
    assert_eq!(part, body(4, 250_000)[65_000..131_073]);
    let stats = disk.stats();
    assert_eq!((stats.entries, stats.stored, stats.state), (5, 5, State::Storing));
}

#[test]
fn it_is_there_after_a_restart_and_is_checked_once() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    for number in 0..100 {
        put(&disk, number, 70_000).unwrap();
    }
    let copy = killed(&disk);
    drop(disk);
    for (directory, scanned, cut) in [(directory.path(), 0, 0), (copy.path(), 1, 0)] {
        let (disk, loaded) = open(directory);
        assert_eq!((loaded.entries, loaded.scanned, loaded.cut_bytes), (100, scanned, cut));
        let mut stored = find(&disk, 7).unwrap();
        assert!(stored.body().is_none(), "not before it was checked");
        disk.check(&mut stored).unwrap();
        assert!(stored.body().is_some() && find(&disk, 7).unwrap().body().is_some());
        for number in 0..100 {
            assert_eq!(read(&disk, number), Some(70_000));
        }
    }
    let (_, loaded) = open(copy.path());
    assert_eq!((loaded.entries, loaded.scanned), (100, 0), "what was scanned has a footer");
}

#[test]
fn what_was_replaced_or_removed_does_not_rise_again() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    for number in 0..30 {
        put(&disk, number, 100).unwrap();
    }
    for number in 10..20 {
        let name = name(number);
        let older = put_of(Key::new(&name, disk.seed()), 1000, 200);
        disk.put(older, NOW).unwrap();
        put(&disk, number, 300).unwrap();
    }
    disk.flush();
    for number in 20..30 {
        assert_eq!(remove(&disk, number), Removal::Removed);
        assert_eq!(read(&disk, number), None, "at once");
        disk.flush();
        assert_eq!(remove(&disk, number), Removal::Absent);
    }
    let check = |disk: &Disk| {
        for number in 0..30 {
            let expected = [Some(100), Some(300), None][usize::try_from(number / 10).unwrap()];
            assert_eq!(read(disk, number), expected, "{number}");
        }
    };
    check(&disk);
    let copy = killed(&disk);
    check(&open(copy.path()).0);
    drop(disk);
    check(&open(directory.path()).0);
}

#[test]
fn the_last_word_about_a_key_counts_whatever_is_still_in_the_queue() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    for round in 0..200 {
        put(&disk, 1, 100_000).unwrap();
        assert_eq!(read(&disk, 2), None);
        assert_eq!(remove(&disk, 1), Removal::Removed);
        assert_eq!(read(&disk, 1), None, "{round}");
        disk.flush();
        assert_eq!(read(&disk, 1), None, "{round}");
    }
}

#[test]
fn a_torn_tail_is_cut_wherever_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    for number in 0..3 {
        put(&disk, number, 150).unwrap();
    }
    let before = fs::metadata(&segment_files(killed(&disk).path())[0]).unwrap().len();
    put(&disk, 3, 150).unwrap();
    let copy = killed(&disk);
    let file = &segment_files(copy.path())[0];
    let whole = fs::read(file).unwrap();
    for end in usize::try_from(before).unwrap()..whole.len() {
        fs::write(file, &whole[..end]).unwrap();
        let (disk, loaded) = open(copy.path());
        assert_eq!((loaded.entries, loaded.cut_bytes), (3, end as u64 - before), "{end}");
        for number in 0..3 {
            assert_eq!(read(&disk, number), Some(150), "{end}");
        }
        assert_eq!(read(&disk, 3), None);
    }
}

#[test]
fn no_flipped_byte_is_handed_out() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    for number in 0..4 {
        put(&disk, number, 400).unwrap();
    }
    drop(disk);
    let file = &segment_files(directory.path())[0];
    let whole = fs::read(file).unwrap();
    let mut corrupt = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(file, &flipped).unwrap();
        match Disk::open(directory.path(), &SEED, settings(), NOW) {
            Ok((disk, _)) => {
                let found = (0..4).filter(|&number| read(&disk, number) == Some(400)).count();
                let stats = disk.stats();
                assert_eq!(stats.entries, found as u64, "{at}");
                corrupt += stats.corrupt;
            }
            Err(fault) => panic!("{at}: {fault}"),
        }
        let _ = fs::remove_file(file);
    }
    assert!(corrupt > 1600, "each byte of a body at least: {corrupt}");
}

#[test]
fn files_keep_to_their_bound_and_what_is_in_use_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    let files = || segment_files(directory.path());
    let bytes = || files().iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>();
    for number in 0..2000 {
        put(&disk, number, 20_000).unwrap();
        if number % 10 == 0 {
            disk.flush();
            // A few that are asked for again and again, and everything that came lately.
            for used in 0..15 {
                assert_eq!(read(&disk, used.min(number)), Some(20_000), "{used} at {number}");
            }
            assert!(bytes() <= 16 << 20, "{}", bytes());
        }
    }
    disk.flush();
    let stats = disk.stats();
    assert!(stats.kept > 20 && stats.evicted > 1000, "{stats:?}");
    assert_eq!(stats.bytes, bytes());
    assert!(stats.bytes > 12 << 20, "no more goes than must: {stats:?}");
    assert_eq!(read(&disk, 100), None);
    drop(disk);
    let (disk, _) = open(directory.path());
    for used in 0..15 {
        assert_eq!(read(&disk, used), Some(20_000));
    }
    disk.resize(8 << 20).unwrap();
    disk.flush();
    assert!(bytes() <= 8 << 20);
    assert!(disk.resize(1 << 20).is_err());
}

#[test]
fn an_evicted_object_is_read_to_its_end_by_who_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    put(&disk, 0, 200_000).unwrap();
    disk.flush();
    let bytes = name(0);
    let key = Key::new(&bytes, disk.seed());
    let location = disk.look_up(&key, NOW).unwrap();
    let stored = disk.read(&key, &location).unwrap();
    // Once for its use, and once more for being too old.
    for number in 1..400 {
        put(&disk, number, 100_000).unwrap();
        disk.flush();
    }
    assert!(matches!(disk.read(&key, &location), Err(Missing::Gone)));
    let mut found = Vec::new();
    disk.read_body(&stored, 0..200_000, &mut found).unwrap();
    assert_eq!(found, body(0, 200_000));
    assert_eq!(disk.stats().corrupt, 0);
}

#[test]
fn entries_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { entries_max: 5000, ..settings() };
    let (disk, _) = Disk::open(directory.path(), &SEED, settings, NOW).unwrap();
    for number in 0..20_000 {
        put(&disk, number, 10).unwrap();
    }
    disk.flush();
    let stats = disk.stats();
    assert!(stats.entries <= 5000, "{stats:?}");
    assert_eq!(read(&disk, 19_999), Some(10));
    drop(disk);
    let settings = Settings { entries_max: 10, ..settings };
    let (disk, _) = Disk::open(directory.path(), &SEED, settings, NOW).unwrap();
    assert!(disk.stats().entries <= 10);
}

#[test]
fn what_finds_no_room_in_the_queue_is_not_stored_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { queue_bytes_max: 300_000, ..settings() };
    let (disk, _) = Disk::open(directory.path(), &SEED, settings, NOW).unwrap();
    put(&disk, 0, 100_000).unwrap();
    disk.flush();
    let mut refused = 0;
    for _ in 0..300 {
        match put(&disk, 0, 200_000) {
            Ok(()) => {}
            Err(Refused::QueueFull) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(refused > 0, "nobody writes as fast as memory is copied");
    disk.flush();
    let stats = disk.stats();
    assert_eq!(stats.refused_queue, refused);
    assert_ne!(read(&disk, 0), Some(100_000), "what was to be replaced is not found");
}

#[test]
fn what_is_too_large_is_not_stored_and_takes_the_older_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    let bytes = name(1);
    let key = Key::new(&bytes, disk.seed());
    let small = put_of(key, 1, 10);
    let large = put_of(key, 1, usize::try_from(settings().body_bytes_max).unwrap() + 1);
    let wordy =
        Put { metadata: vec![0; settings().metadata_bytes_max + 1].into(), ..small.clone() };
    let long_key = vec![b'x'; settings().key_bytes_max + 1];
    let long = Put { key: Key::new(&long_key, disk.seed()), ..small.clone() };
    for (put, refused) in [
        (large, Refused::BodyTooLong),
        (wordy, Refused::MetadataTooLong),
        (long.clone(), Refused::KeyTooLong),
    ] {
        disk.put(small.clone(), NOW).unwrap();
        disk.flush();
        assert_eq!(read(&disk, 1), Some(10));
        assert_eq!(disk.put(put.clone(), NOW), Err(refused));
        let gone = put.key == key;
        assert_eq!(read(&disk, 1), if gone { None } else { Some(10) }, "{refused:?}");
    }
    assert_eq!(disk.stats().refused_size, 3);
}

#[test]
fn what_expired_is_not_found() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    let bytes = name(1);
    let key = Key::new(&bytes, disk.seed());
    let expires = Time::from_millis(1_000_500);
    disk.put(Put { expires, ..put_of(key, 1, 10) }, NOW).unwrap();
    disk.flush();
    assert!(disk.look_up(&key, Time::from_millis(1_001_000)).is_some());
    assert!(disk.look_up(&key, Time::from_millis(1_001_001)).is_none());
    drop(disk);
    let (disk, _) =
        Disk::open(directory.path(), &SEED, settings(), Time::from_millis(2_000_000)).unwrap();
    assert_eq!(disk.stats().entries, 0);
}

#[test]
fn a_large_body_lies_in_slices() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    let bytes = name(1);
    let key = Key::new(&bytes, disk.seed()).variant(77);
    let whole = body(1, 1_050_000);
    let slicing = Slicing::new(5, whole.len() as u64, 100_000).unwrap();
    let head = Put { content: Content::Sliced(slicing), ..put_of(key, 1, 0) };
    disk.put(head, NOW).unwrap();
    for piece in slicing.covering(0..u64::MAX) {
        let range = slicing.range(piece.slice);
        let content = whole.slice(format::in_memory(range.start)..format::in_memory(range.end));
        let content = Content::Whole(vec![content]);
        let put = Put { key: key.slice(piece.slice), content, ..put_of(key, 1, 0) };
        disk.put(put, NOW).unwrap();
    }
    drop(disk);
    let (disk, loaded) = open(directory.path());
    assert_eq!(loaded.entries, 12);
    let stored = disk.read(&key, &disk.look_up(&key, NOW).unwrap()).unwrap();
    assert_eq!((stored.slicing(), stored.variant(), stored.slice()), (Some(slicing), 77, None));
    let mut found = Vec::new();
    for piece in stored.slicing().unwrap().covering(199_999..400_001) {
        let key = key.slice(piece.slice);
        let stored = disk.read(&key, &disk.look_up(&key, NOW).unwrap()).unwrap();
        assert_eq!(stored.slice(), Some(piece.slice));
        disk.read_body(&stored, piece.range, &mut found).unwrap();
    }
    assert_eq!(found, whole[199_999..400_001]);
    let other = key.slice(Slice { object: 6, number: 0 });
    assert_eq!(disk.look_up(&other, NOW), None, "a slice of another response");
}

#[test]
fn a_visit_in_steps_lists_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    for number in 0..1000 {
        put(&disk, number, 10).unwrap();
    }
    disk.flush();
    let mut keys = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        let mut step = Vec::new();
        cursor = disk.visit(from, 7, |listed| step.push(listed));
        assert!(step.len() <= 7);
        for listed in step {
            assert!(!listed.is_slice && listed.location.bytes > 10);
            keys.push(disk.read_at(&listed.location).unwrap().key().to_vec());
        }
    }
    keys.sort();
    let mut expected: Vec<_> = (0..1000).map(name).collect();
    expected.sort();
    assert_eq!(keys, expected);
}

#[test]
fn one_writes_and_the_other_learns_and_takes_over() {
    let directory = tempfile::tempdir().unwrap();
    let (old, _) = open(directory.path());
    for number in 0..400 {
        put(&old, number, 10_000).unwrap();
    }
    old.flush();
    let (new, loaded) = open(directory.path());
    assert_eq!(new.stats().state, State::ReadOnly);
    assert_eq!((new.seed(), loaded.scanned), (old.seed(), 0));
    assert!(loaded.entries > 200 && loaded.entries < 400, "what is sealed: {loaded:?}");
    assert_eq!(read(&new, 0), Some(10_000));
    assert_eq!(put(&new, 1, 10), Err(Refused::ReadOnly));
    assert_eq!(new.take_over(NOW).unwrap(), None);
    assert_eq!(remove(&new, 0), Removal::Forgotten);
    // More than there is room for, so that the first segments go.
    for number in 400..1700 {
        put(&old, number, 10_000).unwrap();
    }
    old.flush();
    let learnt = new.refresh(NOW).unwrap();
    assert!(learnt.segments > 10, "{learnt:?}");
    assert_eq!((read(&old, 5), read(&new, 5)), (None, None));
    assert_eq!(read(&new, 1000), Some(10_000));
    old.let_go();
    assert_eq!(old.stats().state, State::ReadOnly);
    assert_eq!(put(&old, 1, 10), Err(Refused::ReadOnly));
    let taken = new.take_over(NOW).unwrap().unwrap();
    assert_eq!((taken.scanned, taken.foreign), (0, 0), "the old one has sealed what it wrote");
    assert_eq!(new.take_over(NOW).unwrap(), Some(Loaded::default()));
    assert_eq!(read(&new, 1699), Some(10_000));
    put(&new, 5000, 10_000).unwrap();
    new.flush();
    assert_eq!((read(&new, 5000), read(&old, 1699)), (Some(10_000), Some(10_000)));
    drop(new);
    assert!(old.take_over(NOW).unwrap().is_some());
    assert_eq!(read(&old, 5000), Some(10_000));
    assert_eq!(old.stats().corrupt, 0);
}

#[test]
fn an_unknown_format_is_refused_and_what_is_not_ours_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = open(directory.path());
    put(&disk, 1, 10).unwrap();
    drop(disk);
    let path = |name: &str| directory.path().join(name);
    for name in ["notes", "00000001.segment.bak", "xyz.segment"] {
        fs::write(path(name), "mine").unwrap();
    }
    fs::create_dir(path("00000002.segment")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("00000003.segment")).unwrap();
    fs::write(path("00000004.segment"), "no header").unwrap();
    let (disk, loaded) = open(directory.path());
    assert_eq!((loaded.entries, loaded.foreign), (1, 1));
    for number in 2..300 {
        put(&disk, number, 10_000).unwrap();
    }
    disk.flush();
    assert_eq!((read(&disk, 1), read(&disk, 299)), (Some(10), Some(10_000)));
    drop(disk);
    assert!(path("notes").exists() && path("00000002.segment").is_dir());
    let newer = path("0000ffff.segment");
    let mut bytes = format::Header { id: 0xffff, seed_check: 0, created: NOW }.write();
    bytes[16] = 2;
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[8..]);
    bytes[..8].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&newer, bytes).unwrap();
    match Disk::open(directory.path(), &SEED, settings(), NOW) {
        Err(Fault::Newer { path, format: 2 }) => assert_eq!(path, newer),
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_that_cannot_be_met_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let good = settings();
    for wrong in [
        Settings { segment_bytes: 1000, ..good },
        Settings { bytes_max: good.segment_bytes * 4 - 1, ..good },
        Settings { body_bytes_max: good.segment_bytes / 4 + 1, ..good },
        Settings { metadata_bytes_max: 1 << 20, ..good },
        Settings { key_bytes_max: usize::MAX, ..good },
        Settings { metadata_bytes_max: 220 << 10, ..good },
    ] {
        let opened = Disk::open(directory.path(), &SEED, wrong, NOW);
        assert!(matches!(opened, Err(Fault::Settings { .. })), "{wrong:?}");
    }
    for bytes_max in [4 << 20, 100 << 20, 1 << 30, 10 << 30, 1 << 40, 100 << 40] {
        Settings::for_bytes(bytes_max).check().unwrap();
    }
}
