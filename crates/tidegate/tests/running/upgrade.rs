//! Upgrades: another process serves, and no client notices.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use crate::client::{Connection, Load, get};
use crate::eventually;
use crate::gate::{Gate, ask, serving};
use crate::origin::Origin;

fn site(origin: &Origin) -> String {
    format!(
        "[group.app]\nservers = [\"{}\"]\n[[site]]\nhost = \"*\"\ngroup = \"app\"\n",
        origin.address
    )
}

#[test]
fn upgrades_under_load_fail_no_request() {
    let origin = Origin::start("one");
    let gate = Gate::start(&(site(&origin) + "[[listen]]\naddress = \"unix:$DIR/gate.sock\"\n"));
    let load = Load::start(gate.address, "/", 8);
    let mut before = u64::from(gate.pid());
    // More workers than sockets, fewer, and as many.
    for workers in [3, 1, 2] {
        load.go_on();
        gate.configure_with(
            &format!("workers = {workers}\ndrain_timeout = \"10s\""),
            &(site(&origin) + "[[listen]]\naddress = \"unix:$DIR/gate.sock\"\n"),
        );
        gate.order(&["upgrade"]);
        // The old process may still answer one who asks it in its last moment.
        let mut pid = before;
        eventually("the new process answers", || {
            let status = gate.status();
            pid = status["pid"].as_u64().unwrap();
            pid != before && status["workers"].as_array().unwrap().len() == workers
        });
        before = pid;
    }
    load.go_on();
    let stream = UnixStream::connect(gate.path("gate.sock")).unwrap();
    let fields = "Host: test.example\r\nConnection: close\r\n";
    assert_eq!(ask(stream, "GET", "/", fields), (200, "one".to_owned()));
    eventually("the old processes end", || serving(&gate.file()).len() == 1);
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn a_request_under_way_ends_in_the_old_process() {
    let origin = Origin::start("one");
    let mut gate = Gate::start(&site(&origin));
    let mut slow = Connection::open(gate.address).unwrap();
    let mut idle = Connection::open(gate.address).unwrap();
    assert!(!idle.get("/").unwrap().last);
    slow.send("/wait/600").unwrap();
    eventually("the origin has the request", || origin.served() == 2);
    gate.order(&["upgrade"]);
    assert_eq!(serving(&gate.file()).len(), 2);
    let answer = slow.receive().unwrap();
    assert_eq!((answer.status, answer.last), (200, true));
    // The connection that was idle gets one more answer, which tells it to go.
    let answer = idle.get("/").unwrap();
    assert_eq!((answer.status, answer.last), (200, true));
    assert!(gate.end().success());
    assert_eq!(get(gate.address, "/").body, "one");
}

#[test]
fn a_new_process_that_fails_changes_nothing() {
    let origin = Origin::start("one");
    let gate = Gate::start(&site(&origin));
    let load = Load::start(gate.address, "/", 4);
    let check = |arguments: &[&str], expected: &[&str]| {
        let said = gate.refused_order(arguments);
        for part in expected {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(gate.status()["pid"], gate.pid());
        assert_eq!(gate.status()["state"], "serving");
        load.go_on();
    };
    gate.configure(&site(&origin).replace("group =", "gruop ="));
    check(&["upgrade"], &["did you mean `group`?", "not upgraded: this process goes on"]);
    gate.configure(&site(&origin));
    check(&["upgrade", "--binary", "/nonexistent"], &["/nonexistent cannot be started"]);
    check(&["upgrade", "--binary", "/bin/true"], &["ended before it served"]);
    let script = gate.path("script");
    fs::write(&script, "#!/bin/sh\nexec sleep 60 < /dev/null\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    check(&["upgrade", "--binary", script.to_str().unwrap()], &["ended before it served"]);
    assert_eq!(load.end(), Vec::<String>::new());
    gate.order(&["upgrade", "--binary", env!("CARGO_BIN_EXE_tidegate")]);
    assert_ne!(gate.status()["pid"], gate.pid());
}

#[test]
fn a_drained_server_stays_drained() {
    let (one, two) = (Origin::start("one"), Origin::start("two"));
    let servers = format!("servers = [\"{}\", \"{}\"]", one.address, two.address);
    let gate =
        Gate::start(&format!("[group.app]\n{servers}\n[[site]]\nhost = \"*\"\ngroup = \"app\"\n"));
    let drained = one.address.to_string();
    gate.order(&["server", "drain", "app", &drained]);
    gate.order(&["upgrade"]);
    assert_eq!(gate.server(&drained)["state"], "draining");
    for _ in 0..10 {
        assert_eq!(get(gate.address, "/").body, "two");
    }
}
