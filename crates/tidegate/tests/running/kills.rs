//! What rules remember outlives a gate that is killed, but for what changed since the last batch.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::client::Connection;
use crate::eventually;
use crate::gate::Gate;
use crate::origin::Origin;

const ROUNDS: u64 = 20;
const LIST: usize = 200;

const RULES: &str = r#"
SecAction "id:20001,phase:1,pass,nolog,initcol:global=requests,setvar:global.count=+1"
"#;

/// A number of a variable; 0 if there is none.
fn number(gate: &Gate, place: &str) -> u64 {
    let (status, body) = gate.ask("GET", &format!("/context/{place}?format=json"));
    if status == 404 {
        return 0;
    }
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["variables"][0]["value"].as_str().unwrap().parse().unwrap()
}

fn batches(gate: &Gate) -> u64 {
    gate.status()["context"]["batches"].as_u64().unwrap()
}

/// The versions of the list, as a page shows them.
fn versions(gate: &Gate) -> Vec<u64> {
    let (_, body) = gate.ask("GET", "/context/resource?format=json");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let variables = body["variables"].as_array().unwrap();
    variables.iter().map(|it| it["value"].as_str().unwrap().parse().unwrap()).collect()
}

/// What was answered before a batch began that has ended since. The batch that is under way when
/// something is answered may have begun before it; the one after that has it.
fn kept_by_now(gate: &Gate, counted: &AtomicU64) -> u64 {
    let answered = counted.load(Ordering::Acquire);
    let seen = batches(gate);
    eventually("two more batches are on disk", || batches(gate) >= seen + 2);
    answered
}

/// Lets the others end, whether the test goes on or fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn twenty_kills_lose_nothing_but_the_last_batch() {
    let origin = Origin::start("one");
    let site = format!("[[site]]\nhost = \"*\"\nupstream = \"{}\"\n", origin.address);
    let mut gate = Gate::start(&site);
    gate.status();
    gate.signal(Signal::TERM);
    assert!(gate.end().success());
    fs::write(gate.path("own.conf"), RULES).unwrap();
    gate.configure(&format!(
        "[context]\npath = \"$DIR/context\"\nwrite_interval = \"50ms\"\n\
         [waf]\nmode = \"block\"\nbuiltin = false\nrules = \"$DIR/own.conf\"\n{site}"
    ));
    gate.restart();
    let (mut before, mut version) = (0, 0);
    for round in 0..ROUNDS {
        // `asked` is ahead of `counted` by the request that the kill cuts off.
        let (counted, asked) = (AtomicU64::new(before), AtomicU64::new(before));
        let (loaded, done) = (AtomicU64::new(version), AtomicBool::new(false));
        let (kept, kept_version) = std::thread::scope(|scope| {
            let _stop = Stop(&done);
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    asked.fetch_add(1, Ordering::AcqRel);
                    let answer = Connection::open(gate.address).and_then(|mut it| it.get("/"));
                    match answer {
                        Ok(answer) => assert_eq!(answer.status, 200),
                        Err(_) => return,
                    }
                    counted.fetch_add(1, Ordering::AcqRel);
                }
            });
            scope.spawn(|| {
                let file = gate.path("list");
                while !done.load(Ordering::Acquire) {
                    let version = loaded.load(Ordering::Acquire) + 1;
                    let line = |n: usize| format!("resource,r{n},version,{version},forever\n");
                    fs::write(&file, (0..LIST).map(line).collect::<String>()).unwrap();
                    let output = gate.command(&["context", "load", file.to_str().unwrap()]);
                    if !output.status.success() {
                        return;
                    }
                    loaded.store(version, Ordering::Release);
                }
            });
            eventually("something is counted and loaded", || {
                counted.load(Ordering::Acquire) > before && loaded.load(Ordering::Acquire) > version
            });
            let kept_version = loaded.load(Ordering::Acquire);
            let kept = kept_by_now(&gate, &counted);
            // Killed at any moment of a batch or between two.
            std::thread::sleep(Duration::from_micros(round * 7_919 % 60_000));
            gate.signal(Signal::KILL);
            (kept, kept_version)
        });
        gate.end();
        gate.restart();

        let events = gate.events();
        assert!(!events.contains("begins with empty context"), "round {round}: {events}");
        let count = number(&gate, "global/requests/count");
        let most = asked.load(Ordering::Acquire);
        assert!((kept..=most).contains(&count), "round {round}: {count} of {kept} to {most}");
        let versions = versions(&gate);
        assert_eq!(versions.len(), LIST, "round {round}");
        assert!(versions.iter().all(|one| *one == versions[0]), "round {round}: {versions:?}");
        // The load that the kill cut off may have been done.
        let most = loaded.load(Ordering::Acquire) + 1;
        assert!((kept_version..=most).contains(&versions[0]), "round {round}: {versions:?}");
        (before, version) = (count, versions[0]);
    }
}
