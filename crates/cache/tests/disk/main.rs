//! The disk tier in processes of its own: killed while it writes, on a full disk, and handed over.
//!
//! A child is this test program, running one of the ignored tests, which do nothing without the
//! directory that their parent gives them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod child;
mod content;
mod full;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidegate_cache::store::Key;
use tidegate_cache::store::disk::{Cursor, Disk, Missing, State};
use tidegate_cache::store::purge::{
    Found, Mark, Names, Purges, Sequence, Settings as PurgeSettings, Standing,
};

use content::{NOW, SEED, matches, number_of, settings};

/// A child that runs one of the ignored tests.
fn start(test: &str, directory: &Path) -> Child {
    command(test).env("DIRECTORY", directory).stdout(Stdio::piped()).spawn().unwrap()
}

fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

fn open_purges(journal: &Path) -> (Purges, Found) {
    Purges::open(journal, &SEED, PurgeSettings::default()).unwrap()
}

/// What a child said it had done before it was killed.
struct Said {
    /// By number, the last purge that was acknowledged.
    purged: HashMap<u64, u64>,
    written: usize,
}

/// Lets a child write until it has said enough, kills it in the middle, and returns all it said.
fn kill_after(mut child: Child, lines: usize, delay: Duration) -> Said {
    let mut said = Said { purged: HashMap::new(), written: 0 };
    let mut killed = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            // The last line may be torn; a purge counts when all of it was said.
            (Some("purged"), Some(number), Some(sequence))
                if words.next() == Some("acknowledged") =>
            {
                said.purged.insert(number.parse().unwrap(), sequence.parse().unwrap());
            }
            (Some("written"), ..) => said.written += 1,
            _ => {}
        }
        if said.written >= lines && !killed {
            std::thread::sleep(delay);
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    assert!(killed, "the child ended by itself");
    said
}

/// Reads everything in the index; all of it is what was put there, and nothing of it was purged.
fn check_all(disk: &Disk, purges: &Purges, said: &Said) -> usize {
    let mut locations = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = disk.visit(from, 1000, |listed| locations.push(listed.location));
    }
    let mut whole = 0;
    for location in &locations {
        let mut stored = match disk.read_at(location) {
            Ok(stored) => stored,
            // A removal may have been in the queue.
            Err(Missing::Gone) => continue,
            Err(other) => panic!("{other:?}"),
        };
        disk.check(&mut stored).unwrap();
        let mut body = Vec::new();
        disk.read_body(&stored, 0..u64::MAX, &mut body).unwrap();
        assert!(matches(stored.key(), stored.metadata(), &body));
        let number = number_of(stored.key());
        let names = Names { site: 1, url: number, path: b"/", tags: &[] };
        let standing = purges.standing(&names, &Mark::new(stored.sequence()));
        if let Some(&sequence) = said.purged.get(&number)
            && stored.sequence() < Sequence::from_number(sequence)
        {
            assert_eq!(standing, Standing::Gone, "{number} was purged and is there again");
        }
        whole += 1;
    }
    assert_eq!(disk.stats().corrupt, 0);
    whole
}

#[test]
fn killed_fifty_times_nothing_is_corrupt_and_nothing_purged_rises_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut state = 0x7177_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let (mut read, mut purged, mut torn) = (0, 0, 0);
    for round in 0..50 {
        let child = start("child::writes_until_it_is_killed", directory.path());
        let lines = usize::try_from(1 + random(6)).unwrap();
        let said = kill_after(child, lines, Duration::from_micros(random(20_000)));
        let journal = directory.path().join("purges");
        let (purges, found) = open_purges(&journal);
        assert_eq!(found, Found::Whole, "round {round}");
        let (disk, loaded) = Disk::open(directory.path(), &SEED, settings(), NOW).unwrap();
        read += check_all(&disk, &purges, &said);
        purged += said.purged.len();
        torn += u64::from(loaded.cut_bytes > 0);
    }
    assert!(read > 5000 && purged > 50, "{read} objects read, {purged} purged");
    println!("{read} objects read, {purged} purged, {torn} torn tails");
}

#[test]
fn a_new_process_reads_beside_the_old_one_and_writes_when_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start("child::writes_until_it_is_killed", directory.path());
    // Whatever it says has to go somewhere.
    let mut said = child.stdout.take().unwrap();
    let listening = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    // The child makes the directory; until then nobody knows whose it is.
    while !directory.path().join("identity").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (disk, _) = Disk::open(directory.path(), &SEED, settings(), NOW).unwrap();
    assert_eq!(disk.stats().state, State::ReadOnly);
    while disk.stats().entries < 500 {
        assert_eq!(disk.take_over(NOW).unwrap(), None);
        disk.refresh(NOW).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    listening.join().unwrap().unwrap();
    let loaded = disk.take_over(NOW).unwrap().expect("the lock is free");
    assert!(loaded.scanned <= 1, "{loaded:?}");
    let journal = directory.path().join("purges");
    let (purges, _) = open_purges(&journal);
    let said = Said { purged: HashMap::new(), written: 0 };
    assert!(check_all(&disk, &purges, &said) > 100);
    let bytes = content::key(1);
    disk.put(content::put(Key::new(&bytes, disk.seed()), 1, 9, purges.sequence()), NOW).unwrap();
    disk.flush();
    assert_eq!(disk.stats().stored, 1);
}
