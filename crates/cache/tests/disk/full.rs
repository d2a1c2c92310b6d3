//! A disk that takes no more: a small file system of its own, and a limit on files.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tidegate_cache::store::Key;
use tidegate_cache::store::disk::{Disk, Reason, Refused, State};
use tidegate_cache::store::purge::Sequence;
use tidegate_cache::time::{Span, Time};

use crate::content::{self, NOW, SEED, matches, settings};

/// Puts objects from `first` on until one is refused for the disk's sake, and says which.
fn fill(disk: &Disk, first: u64, now: Time) -> u64 {
    for number in first..first + 100_000 {
        let bytes = content::key(number);
        let key = Key::new(&bytes, disk.seed());
        match disk.put(content::put(key, number, 1, Sequence::default()), now) {
            Ok(()) => disk.flush(),
            Err(Refused::Paused) => return number,
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the disk took all of it");
}

/// How many of the objects below `end` are there; all of them are whole.
fn readable(disk: &Disk, end: u64) -> usize {
    let there = |number: &u64| {
        let bytes = content::key(*number);
        let key = Key::new(&bytes, disk.seed());
        let Some(location) = disk.look_up(&key, NOW) else { return false };
        let stored = disk.read(&key, &location).unwrap();
        let mut body = Vec::new();
        disk.read_body(&stored, 0..u64::MAX, &mut body).unwrap();
        assert!(matches(stored.key(), stored.metadata(), &body));
        true
    };
    (0..end).filter(there).count()
}

#[test]
#[ignore = "a child of another test, on a file system of 6 MiB"]
fn child_of_a_full_disk() {
    let Some(directory) = std::env::var_os("DIRECTORY").map(PathBuf::from) else { return };
    let filler = directory.join("filler");
    fs::write(&filler, vec![0; 2 << 20]).unwrap();
    let tier = directory.join("cache");
    let (disk, _) = Disk::open(&tier, &SEED, settings(), NOW).unwrap();
    let end = fill(&disk, 0, NOW);
    let State::Paused { reason, since, until } = disk.stats().state else {
        panic!("{:?}", disk.stats())
    };
    assert_eq!((&reason, since, until), (&Reason::Full, NOW, NOW + settings().pause));
    assert_eq!(reason.to_string(), "the disk is full");
    let before = readable(&disk, end);
    assert!(before > 100, "{before}");
    // Still full when it is tried again.
    let later = until;
    assert_eq!(fill(&disk, end, later), end + 1);
    // With room, it goes on.
    fs::remove_file(&filler).unwrap();
    let later = later + settings().pause;
    let again = fill(&disk, end + 1, later);
    assert!(again > end + 100, "{end} {again}");
    let stats = disk.stats();
    assert_eq!((stats.corrupt, stats.unreadable), (0, 0));
    let whole = readable(&disk, again);
    drop(disk);
    let (disk, _) = Disk::open(&tier, &SEED, settings(), NOW).unwrap();
    assert_eq!(readable(&disk, again), whole, "what was stored before a failure is there");
    println!("done");
}

#[test]
fn a_full_disk_is_said_and_reading_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=6m tmpfs \"$DIRECTORY\" || exit 77; exec \"$@\"";
    let mut child = Command::new("unshare");
    child.args(["-rm", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "full::child_of_a_full_disk", "--ignored", "--nocapture"]);
    let ended = child.env("DIRECTORY", directory.path()).stderr(Stdio::inherit()).output();
    match ended {
        Ok(ended) if ended.status.code() == Some(77) || ended.status.code() == Some(1) => {
            eprintln!("skipped: no file system can be mounted here without being root");
        }
        Err(error) => eprintln!("skipped: {error}"),
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(ended.status.success() && said.contains("done"), "{said}");
        }
    }
}

#[test]
#[ignore = "a child of another test, whose files may have 512 KiB"]
fn child_with_a_limit_on_files() {
    let Some(directory) = std::env::var_os("DIRECTORY").map(PathBuf::from) else { return };
    let (disk, _) = Disk::open(&directory, &SEED, settings(), NOW).unwrap();
    let end = fill(&disk, 0, NOW);
    let State::Paused { reason: Reason::Failed(said), .. } = disk.stats().state else {
        panic!("{:?}", disk.stats())
    };
    assert!(said.contains("File too large"), "{said}");
    assert!(readable(&disk, end) > 10);
    let stats = disk.stats();
    assert_eq!((stats.failed, stats.corrupt), (1, 0));
    assert!(disk.take_over(NOW + Span::from_seconds(100)).unwrap().is_some());
    println!("done");
}

#[test]
fn a_failing_disk_is_said_and_reading_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh");
    // In units of 512 bytes, or of 1024 where `sh` is bash; the signal for it is ignored.
    child.args(["-c", "trap '' XFSZ; ulimit -f 512 || exit 1; exec \"$@\"", "sh"]);
    child.arg(std::env::current_exe().unwrap());
    child.args(["--exact", "full::child_with_a_limit_on_files", "--ignored", "--nocapture"]);
    let ended = child.env("DIRECTORY", directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success() && said.contains("done"), "{said}");
}
