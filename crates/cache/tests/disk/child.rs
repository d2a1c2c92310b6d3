//! What the parent starts and kills.

use std::io::Write as _;
use std::path::PathBuf;

use tidegate_cache::store::Key;
use tidegate_cache::store::disk::Disk;
use tidegate_cache::store::purge::{Force, Purge, Scope};

use crate::content::{self, NOW, SEED, settings};
use crate::open_purges;

#[test]
#[ignore = "a child of other tests: it writes until it is killed"]
fn writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os("DIRECTORY").map(PathBuf::from) else { return };
    let (disk, _) = Disk::open(&directory, &SEED, settings(), NOW).unwrap();
    let journal = directory.join("purges");
    let (purges, _) = open_purges(&journal);
    let mut state = u64::from(std::process::id());
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut out = std::io::stdout();
    for version in 1.. {
        let number = random(3000);
        let bytes = content::key(number);
        let key = Key::new(&bytes, disk.seed());
        match random(100) {
            0 => {
                let scope = Scope::Url(number);
                let done = purges.purge(&[Purge { scope, force: Force::Hard }], NOW).unwrap();
                writeln!(out, "purged {number} {} acknowledged", done.number()).unwrap();
            }
            1..5 => {
                disk.remove(&key, NOW);
            }
            5..20 => {
                // What is in use is written again when its segment goes.
                let found = disk.look_up(&key, NOW);
                drop(found.map(|location| disk.read(&key, &location)));
            }
            _ => {
                let put = content::put(key, number, version, purges.sequence());
                // A full queue is as it should be under such a load.
                let _ = disk.put(put, NOW);
            }
        }
        if version % 200 == 0 {
            writeln!(out, "written").unwrap();
        }
    }
}
