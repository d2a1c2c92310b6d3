//! The running gate as its operator knows it: a process, its signals, its commands, its clients.
//!
//! Real processes, sockets and files. Clients are strict: whatever is not a whole and right answer
//! counts as a failed request.

#![expect(clippy::unwrap_used, reason = "in a test a failure of its own may end the run")]
#![expect(clippy::print_stdout, reason = "what the gate said belongs to a failure")]

mod admin;
mod cache;
mod cache_disk;
mod client;
mod context;
mod gate;
mod kills;
mod origin;
mod purge;
mod reload;
mod serve;
mod sync;
mod upgrade;
mod waf;

use std::time::{Duration, Instant};

/// For whatever should happen soon; a loaded machine takes its time.
const PATIENCE: Duration = Duration::from_secs(15);

#[expect(clippy::disallowed_methods, reason = "tests are outside the gate and its clock")]
fn now() -> Instant {
    Instant::now()
}

/// Waits until something is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = now() + PATIENCE;
    while !is_so() {
        assert!(now() < end, "this never came true: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
