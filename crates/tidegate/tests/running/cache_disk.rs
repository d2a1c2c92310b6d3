//! The cache's disk tier in the running gate: what was stored is there after a kill, after a restart,
//! and in the process of an upgrade.

use std::fs;

use rustix::process::Signal;

use crate::client::get;
use crate::eventually;
use crate::gate::Gate;
use crate::origin::Origin;

const PATHS: usize = 20;

fn start(origin: &Origin) -> Gate {
    Gate::start(&format!(
        "[cache]\npath = \"$DIR/cache\"\ndisk_max = \"64MB\"\nlifetime = \"200 1h\"\n\
         [[site]]\nhost = \"*\"\nupstream = \"{}\"\ncache = \"on\"\n",
        origin.address
    ))
}

fn ask_for_all(gate: &Gate) {
    for path in 0..PATHS {
        let answer = get(gate.address, &format!("/page/{path}"));
        assert_eq!((answer.status, &*answer.body), (200, "origin"));
    }
}

/// Whether all of it is in the files.
fn is_written(gate: &Gate) -> bool {
    let files = fs::read_dir(gate.path("cache")).unwrap().flatten();
    let bytes: Vec<u8> = files.flat_map(|file| fs::read(file.path()).unwrap_or_default()).collect();
    let holds = |path: usize| {
        let key = format!("/page/{path}");
        bytes.windows(key.len()).any(|window| window == key.as_bytes())
    };
    (0..PATHS).all(holds)
}

#[test]
fn what_was_stored_outlives_kills_and_restarts() {
    let origin = Origin::start("origin");
    let mut gate = start(&origin);
    ask_for_all(&gate);
    assert_eq!(origin.served(), PATHS);
    eventually("everything is on disk", || is_written(&gate));
    gate.signal(Signal::KILL);
    gate.end();
    gate.restart();
    ask_for_all(&gate);
    gate.signal(Signal::TERM);
    gate.end();
    gate.restart();
    ask_for_all(&gate);
    assert_eq!(origin.served(), PATHS, "nothing was fetched twice");
}

#[test]
fn an_upgrade_hands_it_over() {
    let origin = Origin::start("origin");
    let gate = start(&origin);
    ask_for_all(&gate);
    eventually("everything is on disk", || is_written(&gate));
    gate.order(&["upgrade"]);
    eventually("the new process has taken the directory over", || {
        gate.events().contains("the cache on disk is this process' own")
    });
    ask_for_all(&gate);
    assert_eq!(origin.served(), PATHS, "the new process serves what the old one has stored");
}
