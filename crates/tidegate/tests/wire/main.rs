//! Wire cases: what a client sends, byte for byte, what the origin may see of it, and what comes back.
//!
//! Every case under `conformance/wire/` runs against one gate process, many at a time, each with its
//! own site and its own raw-socket origin; `docs/conformance.md` describes the format. Beyond what a
//! case says, these hold for all of them: what reaches the origin has one reading only; a target
//! with `HIDDEN` in it never reaches it; bytes with `HIDDEN` in them never reach the client; the
//! connection, if it stays open, answers the next request and nothing else; and so does a fresh
//! connection, whatever was pooled behind it.
//!
//! `TIDEGATE_WIRE_ONLY=text` runs the cases whose file or name holds the text.
//! `TIDEGATE_WIRE_PEER=nginx` puts another gate in Tidegate's place (`conformance/peers/`).

#![expect(clippy::unwrap_used, reason = "in a test runner a failure of its own may end the run")]

mod bytes;
mod client;
mod gate;
mod hpack;
mod http2;
mod judge;
mod message;
mod origin;
mod parser;
mod script;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gate::Gate;
use origin::Origins;
use script::Case;

/// Cases under way at once. Most of their time is waiting, little of it is work.
const CASES_AT_ONCE: usize = 24;

#[expect(clippy::disallowed_methods, reason = "the runner is outside the gate and its clock")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn every_case_holds() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/wire");
    let only = std::env::var("TIDEGATE_WIRE_ONLY").unwrap_or_default();
    let mut cases = parser::load(&directory).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let all = cases.len();
    cases.retain(|case| format!("{}:{}", case.place, case.name).contains(&only));
    assert!(!cases.is_empty(), "no case matches {only:?}");

    let started = now();
    let origins = Origins::bind(&cases).unwrap();
    let Some(mut gate) = Gate::start(&cases, &origins) else {
        println!(
            "skipped: TIDEGATE_WIRE_PEER or TIDEGATE_BIN names a gate that cannot be run here"
        );
        return;
    };
    let mut failures = run_all(&cases, &gate, &origins);
    failures.sort();
    for stray in origins.strays() {
        failures.push(format!("bytes that belong to no case reached the default site:\n{stray}"));
    }
    if let Some(complaint) = gate.complaint() {
        failures.push(complaint);
    }

    for failure in &failures {
        println!("{failure}\n");
    }
    println!(
        "{}: {} cases of {all} ran in {:.1} s, {} failed",
        gate.name(),
        cases.len(),
        started.elapsed().as_secs_f64(),
        failures.len()
    );
    assert!(failures.is_empty(), "{} wire cases failed", failures.len());
}

/// Runs the cases on a few threads and returns the failures, each with place and transcripts.
fn run_all(cases: &[Case], gate: &Gate, origins: &Origins) -> Vec<String> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CASES_AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut failures = Vec::new();
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        failures.extend(run_one(case, gate, origins));
                    }
                    failures
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn run_one(case: &Case, gate: &Gate, origins: &Origins) -> Option<String> {
    let log = origins.log(case);
    let outcome = client::run(case, gate, log);
    let faults = judge::judge(case, &outcome, log);
    if faults.is_empty() {
        return None;
    }
    let faults = faults.join("\n  * ");
    let (client, origin) = (outcome.transcript(), log.transcript());
    Some(format!("{}: {}\n  * {faults}\n{client}{origin}", case.place, case.name))
}
