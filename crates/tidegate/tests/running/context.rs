//! What rules remember, in the running gate: over requests, workers, reloads, upgrades and restarts.

use std::fs;

use rustix::process::Signal;

use crate::client::get;
use crate::eventually;
use crate::gate::{Gate, free_address, serving};
use crate::origin::Origin;

/// Counts the requests of each path in a record of its own, and denies from the fourth on.
const RULES: &str = r#"
SecAction "id:20001,phase:1,pass,nolog,initcol:resource=%{REQUEST_FILENAME},setvar:resource.hits=+1"
SecRule RESOURCE:hits "@gt 3" "id:20002,phase:1,deny,status:429,nolog"
"#;

fn configuration(origin: &Origin, context: &str) -> String {
    format!(
        "[context]\n{context}\n[waf]\nmode = \"block\"\nbuiltin = false\nrules = \"$DIR/own.conf\"\n\
         [group.app]\nservers = [\"{}\"]\n[[site]]\nhost = \"*\"\ngroup = \"app\"\n",
        origin.address
    )
}

/// A gate whose rules remember.
fn start(origin: &Origin, context: &str) -> Gate {
    let plain =
        format!("[context]\n{context}\n[[site]]\nhost = \"*\"\nanswer = {{ status = 204 }}\n");
    // The directory is there before the process, and so must be the rules.
    let gate = Gate::start(&plain);
    fs::write(gate.path("own.conf"), RULES).unwrap();
    gate.configure(&configuration(origin, context));
    gate.order(&["reload"]);
    gate
}

/// The statuses of so many requests, each on a connection of its own, and so on any worker.
fn statuses(gate: &Gate, path: &str, count: usize) -> Vec<u16> {
    (0..count).map(|_| get(gate.address, path).status).collect()
}

fn number(gate: &Gate, what: &str) -> u64 {
    gate.status()["context"][what].as_u64().unwrap()
}

#[test]
fn what_one_request_leaves_another_finds_on_any_worker() {
    let origin = Origin::start("one");
    let gate = start(&origin, "");
    assert_eq!(statuses(&gate, "/a", 5), [200, 200, 200, 429, 429]);
    assert_eq!(statuses(&gate, "/b", 2), [200, 200]);
    gate.order(&["reload"]);
    assert_eq!(statuses(&gate, "/b", 2), [200, 429]);
    assert_eq!((number(&gate, "entries"), number(&gate, "records")), (2, 2));
    let (_, metrics) = gate.ask("GET", "/metrics");
    for line in ["tidegate_context_entries 2", "tidegate_context_records 2"] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{line}: {metrics}");
    }
    let text = gate.order(&["status"]);
    assert!(text.contains("variables"), "{text}");
}

#[test]
fn what_expires_is_cleared_away_by_the_control_thread() {
    let origin = Origin::start("one");
    let gate = start(&origin, "timeout = \"1s\"");
    assert_eq!(statuses(&gate, "/a", 1), [200]);
    eventually("the record is cleared away", || {
        number(&gate, "entries") == 0 && number(&gate, "expired") == 1
    });
    // The default follows a reload, other options wait.
    gate.configure(&configuration(&origin, "timeout = \"1h\"\nentries_max = 500"));
    let said = gate.order(&["reload"]);
    assert!(said.contains("`entries_max` of [context] stays at 1_000_000"), "{said}");
    assert!(!said.contains("timeout"), "{said}");
    assert_eq!(statuses(&gate, "/a", 4), [200, 200, 200, 429]);
}

#[test]
fn a_full_store_says_so() {
    let origin = Origin::start("one");
    let gate = start(&origin, "entries_max = 16");
    for number in 0..40 {
        assert_eq!(statuses(&gate, &format!("/{number}"), 1), [200]);
    }
    assert_eq!(number(&gate, "entries"), 16);
    assert_eq!(number(&gate, "evicted"), 24);
    let text = gate.order(&["status"]);
    assert!(text.contains("24 variables were forgotten before their time"), "{text}");
    eventually("the event log tells", || gate.events().contains("context is full"));
}

#[test]
fn a_restart_begins_where_the_last_one_ended() {
    let origin = Origin::start("one");
    let durable = "path = \"$DIR/context\"\nwrite_interval = \"1m\"";
    let mut gate = start(&origin, durable);
    assert_eq!(statuses(&gate, "/a", 2), [200, 200]);
    assert_eq!(number(&gate, "unwritten"), 1);
    gate.signal(Signal::TERM);
    assert!(gate.end().success());
    gate.restart();
    assert_eq!(number(&gate, "entries"), 1);
    assert_eq!(statuses(&gate, "/a", 2), [200, 429]);
    // A second gate cannot have the same directory.
    let copy = fs::read_to_string(gate.file()).unwrap().replace("admin.sock", "other.sock");
    let copy = copy.replace(&gate.address.to_string(), &free_address().to_string());
    fs::write(gate.path("other.toml"), copy).unwrap();
    let second = crate::gate::tidegate(&["serve"]).arg(gate.path("other.toml")).output().unwrap();
    let said = crate::gate::text(&second);
    assert!(!second.status.success() && said.contains("needs a directory of its own"), "{said}");

    gate.signal(Signal::TERM);
    assert!(gate.end().success());
    let damaged = b"something else entirely";
    fs::write(gate.path("context/data.mdb"), damaged).unwrap();
    gate.restart();
    assert_eq!(number(&gate, "entries"), 0);
    assert!(gate.events().contains("the gate begins with empty context"), "{}", gate.events());
    assert_eq!(fs::read(gate.path("context/data.mdb.aside")).unwrap(), damaged);
    assert_eq!(statuses(&gate, "/a", 4), [200, 200, 200, 429]);
}

#[test]
fn an_upgrade_takes_context_along() {
    let origin = Origin::start("one");
    let durable = "path = \"$DIR/context\"\nwrite_interval = \"1m\"";
    let gate = start(&origin, durable);
    assert_eq!(statuses(&gate, "/a", 2), [200, 200]);
    assert_eq!(number(&gate, "unwritten"), 1);
    for _ in 0..3 {
        gate.order(&["upgrade", "--binary", env!("CARGO_BIN_EXE_tidegate")]);
        eventually("the old process ends", || serving(&gate.file()).len() == 1);
        assert_eq!(number(&gate, "entries"), 1);
    }
    assert_eq!(statuses(&gate, "/a", 2), [200, 429]);
    assert_eq!(gate.status()["context"]["path"], gate.path("context").display().to_string());
}
