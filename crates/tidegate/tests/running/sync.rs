//! What rules remember, shared by several gates through a real Valkey or Redis server.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::client::get;
use crate::eventually;
use crate::gate::Gate;
use crate::origin::Origin;

/// A server on a Unix socket, which keeps nothing over its end.
struct Server {
    program: &'static str,
    directory: tempfile::TempDir,
    process: Child,
}

impl Server {
    /// `None`, said loudly, if none is installed.
    fn start() -> Option<Server> {
        let found = ["valkey-server", "redis-server"].into_iter().find(|program| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok()
        });
        let Some(program) = found else {
            println!("SKIPPED: neither valkey-server nor redis-server is installed");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let process = Server::spawn(program, &directory);
        let server = Server { program, directory, process };
        server.await_service();
        Some(server)
    }

    fn spawn(program: &str, directory: &tempfile::TempDir) -> Child {
        Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--requirepass", "a-password", "--unixsocket"])
            .arg(directory.path().join("socket"))
            .arg("--dir")
            .arg(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn await_service(&self) {
        eventually("the server answers", || UnixStream::connect(self.socket()).is_ok());
    }

    fn end(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Begins anew, with nothing of what it knew.
    fn start_again(&mut self) {
        let _gone_already = fs::remove_file(self.socket());
        self.process = Server::spawn(self.program, &self.directory);
        self.await_service();
    }

    /// Gives it a command, as a feed would.
    fn order(&self, command: &str) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        write!(stream, "AUTH a-password\r\n{command}\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "+OK");
        let answer = lines.next().unwrap();
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }

    fn options(&self) -> String {
        format!(
            "[context.sync]\nserver = \"unix://{}\"\npassword = \"file:$DIR/password\"\n",
            self.socket().display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}

const RULES: &str = r#"
SecAction "id:20001,phase:1,pass,nolog,initcol:resource=%{REQUEST_FILENAME},setvar:resource.hits=+1"
"#;

/// A gate that counts requests by path and shares what it counts.
fn start(server: &Server, origin: &Origin, context: &str) -> Gate {
    let site = format!("[[site]]\nhost = \"*\"\nupstream = \"{}\"\n", origin.address);
    let mut gate = Gate::start(&site);
    // Signals count from when it answers.
    gate.status();
    gate.signal(Signal::TERM);
    assert!(gate.end().success());
    fs::write(gate.path("password"), "a-password\n").unwrap();
    fs::write(gate.path("own.conf"), RULES).unwrap();
    gate.configure(&format!(
        "[context]\n{context}\n{}[waf]\nmode = \"block\"\nbuiltin = false\nrules = \"$DIR/own.conf\"\n{site}",
        server.options()
    ));
    gate.restart();
    eventually("the gate shares", || sync(&gate)["connected"] == true);
    gate
}

fn sync(gate: &Gate) -> Value {
    gate.status()["context"]["sync"].clone()
}

/// The value of a variable, if there is one.
fn value(gate: &Gate, place: &str) -> Option<String> {
    let (status, body) = gate.ask("GET", &format!("/context/{place}?format=json"));
    let body: Value = serde_json::from_str(&body).unwrap();
    (status == 200).then(|| body["variables"][0]["value"].as_str().unwrap().to_owned())
}

fn becomes(gate: &Gate, place: &str, expected: Option<&str>) {
    let mut last = None;
    eventually(&format!("{place} becomes {expected:?}"), || {
        last = value(gate, place);
        last.as_deref() == expected
    });
}

#[test]
fn gates_share_what_they_write_and_count() {
    let Some(server) = Server::start() else { return };
    let origin = Origin::start("one");
    let (one, two) = (start(&server, &origin, ""), start(&server, &origin, ""));
    one.order(&["context", "put", "ip", "192.0.2.1", "why", "a b\"c", "--ttl", "1000"]);
    becomes(&two, "ip/192.0.2.1/why", Some("a b\"c"));
    let shown = two.order(&["context", "get", "ip", "192.0.2.1"]);
    assert!(shown.contains("16 min"), "its lifetime comes along: {shown}");
    two.order(&["context", "put", "ip", "192.0.2.1", "why", "later"]);
    becomes(&one, "ip/192.0.2.1/why", Some("later"));
    one.order(&["context", "del", "ip", "192.0.2.1", "why"]);
    becomes(&two, "ip/192.0.2.1/why", None);

    for _ in 0..20 {
        assert_eq!(get(one.address, "/a").status, 200);
        assert_eq!(get(two.address, "/a").status, 200);
    }
    becomes(&one, "resource/%2Fa/hits", Some("40"));
    becomes(&two, "resource/%2Fa/hits", Some("40"));
    // What is applied is not sent again: 2 writes and 20 increments; 1 write and 20 increments.
    eventually("all is sent", || sync(&one)["sent"] == 22 && sync(&two)["sent"] == 21);
    assert_eq!((&sync(&one)["applied"], &sync(&two)["applied"]), (&21.into(), &22.into()));
    let (_, metrics) = one.ask("GET", "/metrics");
    assert!(metrics.contains("\ntidegate_context_sync_connected 1\n"), "{metrics}");
    assert!(metrics.contains("\ntidegate_context_sync_lag_seconds "), "{metrics}");

    // Who comes later takes the state, and goes on from there.
    let three = start(&server, &origin, "");
    assert_eq!(value(&three, "resource/%2Fa/hits").as_deref(), Some("40"));
    assert_eq!(get(three.address, "/a").status, 200);
    for gate in [&one, &two, &three] {
        becomes(gate, "resource/%2Fa/hits", Some("41"));
    }

    // A feed writes into the stream itself.
    server.order("XADD tidegate:changes * collection ip key 192.0.2.9 name Blocked change set value 1 ttl 600");
    server.order("XADD tidegate:changes * nonsense here");
    for gate in [&one, &two, &three] {
        becomes(gate, "ip/192.0.2.9/blocked", Some("1"));
    }
    // What is loaded in one gate, all gates have, and what the load replaces is gone everywhere.
    let file = one.path("list");
    let list = |range: std::ops::Range<u32>| {
        let lines = range.map(|number| format!("user,u{number},limit,{number},forever"));
        lines.collect::<Vec<_>>().join("\n")
    };
    fs::write(&file, list(0..500)).unwrap();
    one.order(&["context", "load", file.to_str().unwrap()]);
    becomes(&two, "user/u499/limit", Some("499"));
    assert_eq!(value(&two, "user/u0/limit").as_deref(), Some("0"), "changes come in their order");
    fs::write(&file, list(1..500)).unwrap();
    two.order(&["context", "load", file.to_str().unwrap(), "--replace", "user"]);
    for gate in [&one, &three] {
        becomes(gate, "user/u0/limit", None);
        becomes(gate, "user/u1/limit", Some("1"));
    }
    let four = start(&server, &origin, "");
    assert_eq!(value(&four, "ip/192.0.2.9/blocked").as_deref(), Some("1"));
    server.order("XADD tidegate:changes * collection ip key 192.0.2.9 name blocked change del");
    becomes(&four, "ip/192.0.2.9/blocked", None);
}

#[test]
fn what_happens_without_the_server_is_made_up_for() {
    let Some(mut server) = Server::start() else { return };
    let origin = Origin::start("one");
    let durable = "path = \"$DIR/context\"\nwrite_interval = \"10ms\"";
    let (mut one, two) = (start(&server, &origin, durable), start(&server, &origin, ""));
    one.order(&["context", "put", "user", "before", "n", "1"]);
    becomes(&two, "user/before/n", Some("1"));

    server.end();
    eventually("it is told", || {
        sync(&one)["connected"] == false && sync(&two)["connected"] == false
    });
    let told = one.order(&["status"]);
    assert!(told.contains("not shared with other gates"), "{told}");
    one.order(&["context", "put", "user", "during", "n", "1"]);
    two.order(&["context", "put", "user", "before", "n", "2"]);
    assert_eq!(get(one.address, "/b").status, 200);
    assert_eq!(get(two.address, "/b").status, 200);
    server.start_again();
    becomes(&two, "user/during/n", Some("1"));
    becomes(&one, "user/before/n", Some("2"));
    becomes(&one, "resource/%2Fb/hits", Some("2"));
    becomes(&two, "resource/%2Fb/hits", Some("2"));

    // A gate that was away goes on where it was.
    one.signal(Signal::TERM);
    assert!(one.end().success());
    two.order(&["context", "put", "user", "away", "n", "1"]);
    assert_eq!(get(two.address, "/b").status, 200);
    one.restart();
    becomes(&one, "user/away/n", Some("1"));
    becomes(&one, "resource/%2Fb/hits", Some("3"));

    // One that was away for longer than the stream takes the state.
    one.signal(Signal::TERM);
    assert!(one.end().success());
    two.order(&["context", "put", "user", "away", "n", "2"]);
    eventually("it is sent", || {
        server.order("XLEN tidegate:changes") != ":0" && sync(&two)["lag_seconds"] == 0.0
    });
    server.order("XTRIM tidegate:changes MAXLEN 0");
    one.restart();
    becomes(&one, "user/away/n", Some("2"));
    assert!(one.events().contains("the state is taken anew"), "{}", one.events());
}
