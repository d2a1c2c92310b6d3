//! Starting, serving, stopping.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::client::{Connection, get};
use crate::eventually;
use crate::gate::{Gate, text, tidegate};
use crate::origin::Origin;

fn proxy(origin: &Origin) -> String {
    format!("[[site]]\nhost = \"*\"\nupstream = \"{}\"\n", origin.address)
}

const HELLO: &str = "[[site]]\nhost = \"*\"\n[[site.route]]\npath = \"/\"\nanswer = { status = 200, body = \"hello\" }\n";

#[test]
fn requests_are_served_counted_and_logged() {
    let origin = Origin::start("one");
    let log = "[[log]]\nname = \"access\"\npath = \"$DIR/access.log\"\n";
    let site = proxy(&origin) + "logs = [\"access\"]\n";
    let gate = Gate::start(&format!("{log}{site}"));
    for _ in 0..3 {
        let answer = get(gate.address, "/path");
        assert_eq!((answer.status, answer.body.as_str()), (200, "one"));
    }
    let lines = || fs::read_to_string(gate.path("access.log")).unwrap_or_default();
    eventually("the log has three lines", || lines().lines().count() == 3);
    assert!(lines().contains("\"GET /path HTTP/1.1\" 200"), "{}", lines());
    let status = gate.status();
    assert_eq!(status["traffic"]["since_start"]["requests"], 3);
    assert_eq!(status["state"], "serving");
    assert_eq!(status["troubles"].as_array().unwrap().len(), 0, "{}", status["troubles"]);
}

#[test]
fn a_unix_socket_is_served_and_its_file_removed_at_the_end() {
    let mut gate = Gate::start(&format!("[[listen]]\naddress = \"unix:$DIR/gate.sock\"\n{HELLO}"));
    let socket = gate.path("gate.sock");
    let stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let fields = "Host: test.example\r\nConnection: close\r\n";
    assert_eq!(crate::gate::ask(stream, "GET", "/", fields), (200, "hello".to_owned()));
    let mode = fs::metadata(gate.path("admin.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    gate.signal(Signal::TERM);
    assert!(gate.end().success());
    assert!(!socket.exists() && !gate.path("admin.sock").exists());
}

#[test]
fn a_client_that_resets_is_given_up_and_one_that_half_closes_is_answered() {
    let origin = Origin::start("one");
    let log = "[[log]]\nname = \"access\"\npath = \"$DIR/access.log\"\n";
    let site = proxy(&origin) + "logs = [\"access\"]\n";
    let gate = Gate::start(&format!("{log}{site}"));
    let mut half = Connection::open(gate.address).unwrap();
    half.send("/wait/2000").unwrap();
    half.half_close().unwrap();
    let mut gone = Connection::open(gate.address).unwrap();
    gone.send("/wait/600000").unwrap();
    eventually("the origin has both requests", || origin.served() == 2);
    gone.reset().unwrap();
    let log = || fs::read_to_string(gate.path("access.log")).unwrap_or_default();
    eventually("the reset is recorded", || log().contains("\"GET /wait/600000 HTTP/1.1\" 499"));
    assert_eq!(half.receive().unwrap().body, "one");
}

/// Requests that have begun since the start, by the gate's own count.
fn begun(gate: &Gate) -> u64 {
    let (_, metrics) = gate.ask("GET", "/metrics");
    let counts = |line: &&str| {
        line.starts_with("tidegate_requests_active ")
            || line.starts_with("tidegate_requests_by_protocol_total{")
    };
    let number = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
    metrics.lines().filter(counts).filter_map(number).sum()
}

#[test]
fn requests_beyond_a_server_s_limit_wait_their_turn() {
    let origin = Origin::start("one");
    let site = "[[site]]\nhost = \"*\"\n[[site.route]]\npath = \"/\"\ngroup = \"app\"\n";
    let server = format!("{{ address = \"{}\", connections_max = 1 }}", origin.address);
    let gate = Gate::start(&format!("[group.app]\nservers = [{server}]\n{site}"));
    let (answered, order) = std::sync::mpsc::sync_channel(6);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let mut client = Connection::open(gate.address).unwrap();
            client.send("/wait/200").unwrap();
            eventually("the gate has it", || begun(&gate) == number + 1);
            // From there to its place in the line it is a matter of microseconds.
            std::thread::sleep(std::time::Duration::from_millis(30));
            let answered = answered.clone();
            scope.spawn(move || {
                assert_eq!(client.receive().unwrap().status, 200);
                answered.send(number).unwrap();
            });
        }
    });
    drop(answered);
    assert_eq!(order.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_stop_finishes_what_is_under_way_and_accepts_no_more() {
    let origin = Origin::start("one");
    let mut gate = Gate::start(&proxy(&origin));
    let mut slow = Connection::open(gate.address).unwrap();
    slow.send("/wait/800").unwrap();
    eventually("the origin has the request", || origin.served() == 1);
    gate.signal(Signal::TERM);
    eventually("nobody listens", || TcpStream::connect(gate.address).is_err());
    let (status, body) = gate.ask("GET", "/healthz");
    assert_eq!((status, body.as_str()), (503, "draining\n"));
    let answer = slow.receive().unwrap();
    assert_eq!((answer.status, answer.body.as_str(), answer.last), (200, "one", true));
    assert!(gate.end().success());
}

#[test]
fn a_stop_does_not_wait_for_a_client_that_asks_nothing() {
    let mut gate = Gate::start_with("workers = 2\ndrain_timeout = \"1h\"", HELLO);
    let mut idle = Connection::open(gate.address).unwrap();
    assert_eq!(idle.get("/").unwrap().body, "hello");
    gate.signal(Signal::INT);
    assert!(gate.end().success());
}

#[test]
fn a_second_signal_ends_at_once() {
    let origin = Origin::start("one");
    let mut gate = Gate::start_with("workers = 2\ndrain_timeout = \"1h\"", &proxy(&origin));
    let mut slow = Connection::open(gate.address).unwrap();
    slow.send("/wait/60000").unwrap();
    eventually("the origin has the request", || origin.served() == 1);
    gate.signal(Signal::TERM);
    eventually("the gate drains", || gate.events().contains("stopping: "));
    gate.signal(Signal::TERM);
    assert!(gate.end().success());
    assert!(slow.receive().is_err());
    assert!(gate.events().contains("connections are cut"), "{}", gate.events());
}

#[test]
fn logs_are_opened_again_when_told() {
    let log = "[[log]]\nname = \"access\"\npath = \"$DIR/access.log\"\nformat = \"$path\"\n";
    let gate =
        Gate::start(&HELLO.replace("[[site]]", &format!("{log}[[site]]\nlogs = [\"access\"]")));
    let read = |name: &str| fs::read_to_string(gate.path(name)).unwrap_or_default();
    get(gate.address, "/before");
    eventually("the first line is written", || read("access.log") == "/before\n");
    fs::rename(gate.path("access.log"), gate.path("rotated.log")).unwrap();
    gate.signal(Signal::USR1);
    eventually("the signal has come", || gate.events().contains("opened again"));
    get(gate.address, "/after");
    eventually("the new file has the line", || read("access.log") == "/after\n");
    assert_eq!(read("rotated.log"), "/before\n");
}

#[test]
fn what_keeps_it_from_starting_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let keeper = Gate::start(HELLO);
    let check = |rest: &str, expected: &[&str]| {
        let file = directory.path().join("tidegate.toml");
        fs::write(&file, format!("[admin]\nlisten = \"off\"\n{rest}{HELLO}")).unwrap();
        let output = tidegate(&["serve", file.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        for part in expected {
            assert!(text(&output).contains(part), "{part}: {}", text(&output));
        }
    };
    // Another gate's port, which SO_REUSEPORT alone would share.
    let address = keeper.address;
    check(
        &format!("[[listen]]\naddress = \"{address}\"\n"),
        &[&format!("cannot listen on {address}"), "another process listens there", "ss -ltnp"],
    );
    check(
        "[[listen]]\naddress = \"192.0.2.1:80\"\n",
        &["192.0.2.1:80", "does not have that address"],
    );
    check(
        "[[listen]]\naddress = \"unix:/nonexistent/socket\"\n",
        &["unix:/nonexistent/socket", "directory does not exist"],
    );
    check(
        &format!(
            "[[log]]\nname = \"a\"\npath = \"/nonexistent/log\"\n[[listen]]\naddress = \"{taken}\"\n"
        ),
        &["access log `a`", "No such file"],
    );
    check(
        &format!("[[listen]]\naddress = \"{taken}\"\nbacklogg = 1\n"),
        &["did you mean `backlog`?", "1 error"],
    );
    assert_eq!(get(keeper.address, "/").body, "hello");
}
