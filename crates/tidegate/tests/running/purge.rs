//! Purges: by the command, the admin API and the method PURGE.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::eventually;
use crate::gate::{Gate, ask};

/// A server whose every answer is another number, and may be kept for an hour. `/tagged/a,b` has these
/// tags, and `/held` is answered once it is let.
struct Origin {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    served: AtomicUsize,
    let_go: AtomicBool,
}

impl Origin {
    fn start() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let own = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&own);
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Origin { address, state }
    }

    fn served(&self) -> usize {
        self.state.served.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: &TcpStream, state: &State) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut path = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if path.is_empty() {
                line.split(' ').nth(1).unwrap_or_default().clone_into(&mut path);
            }
            if line == "\r\n" {
                break;
            }
        }
        let body = state.served.fetch_add(1, Ordering::SeqCst).to_string();
        while path == "/held" && !state.let_go.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        let tags = path.strip_prefix("/tagged/").unwrap_or("none");
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nCache-Tag: {tags}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

fn gate(origin: &Origin) -> Gate {
    let address = origin.address;
    Gate::start(&format!(
        "[[site]]\nhost = \"one.example\"\nupstream = \"{address}\"\n\
         cache = {{ query_drop = [\"utm_*\"], key_headers = [\"X-Country\"], \
         purge_from = [\"127.0.0.1\"] }}\n\
         [[site]]\nhost = \"two.example\"\nupstream = \"{address}\"\n\
         cache = {{ key_host = false, grace_updating = \"1h\", purge_from = [\"192.0.2.0/24\"] }}\n\
         [[site]]\nhost = \"three.example\"\nupstream = \"{address}\"\ncache = \"on\"\n\
         [[site]]\nhost = \"plain.example\"\nupstream = \"{address}\"\n"
    ))
}

/// Asks for `host/path`, on a connection of its own; with `: de` behind it, from that country.
fn request(gate: &Gate, method: &str, what: &str, fields: &str) -> (u16, String) {
    let (url, country) = what.split_once(": ").unwrap_or((what, "none"));
    let (host, path) = url.split_once('/').unwrap();
    let fields = format!("Host: {host}\r\nConnection: close\r\nX-Country: {country}\r\n{fields}");
    ask(TcpStream::connect(gate.address).unwrap(), method, &format!("/{path}"), &fields)
}

fn get(gate: &Gate, what: &str) -> String {
    let (status, body) = request(gate, "GET", what, "");
    assert_eq!(status, 200, "{what}: {body}");
    body
}

/// What is stored in each case.
const STORED: [&str; 9] = [
    "one.example/",
    "one.example/: de",
    "one.example/a/b?page=1",
    "one.example/a/c",
    "one.example/tagged/x,y",
    "one.example/tagged/y",
    "two.example/",
    "two.example/tagged/x",
    "three.example/a/b",
];

/// Stores them, purges, and holds what is fetched anew against what should be.
fn check(gate: &Gate, purge: impl FnOnce(), expected: &[&str]) {
    let stored = STORED.map(|what| get(gate, what));
    assert_eq!(STORED.map(|what| get(gate, what)), stored, "all is found again");
    purge();
    let mut purged = Vec::new();
    for (what, before) in STORED.into_iter().zip(stored) {
        // Connections fall to either worker.
        let after: Vec<String> = (0..4).map(|_| get(gate, what)).collect();
        assert!(after.iter().all(|body| *body == after[0]), "{what}: {after:?}");
        if after[0] != before {
            purged.push(what);
        }
    }
    assert_eq!(purged, expected);
}

#[test]
fn the_command_purges_what_it_names_and_nothing_else() {
    let origin = Origin::start();
    let gate = gate(&origin);
    let check = |arguments: &[&str], expected: &[&str]| {
        let purge = || {
            let said = gate.order(&[&["purge"], arguments].concat());
            assert!(said.contains("purged: "), "{said}");
        };
        check(&gate, purge, expected);
    };
    check(&["https://one.example/"], &["one.example/", "one.example/: de"]);
    check(&["one.example/a/b?utm_source=x&page=1"], &["one.example/a/b?page=1"]);
    check(&["http://one.example/a/b?page=2"], &[]);
    check(&["http://two.example/"], &["two.example/"]);
    check(
        &["http://two.example/", "http://three.example/a/./b"],
        &["two.example/", "three.example/a/b"],
    );
    check(&["--prefix", "https://one.example/a/"], &["one.example/a/b?page=1", "one.example/a/c"]);
    check(&["--tag", "x"], &["one.example/tagged/x,y", "two.example/tagged/x"]);
    check(&["--tag", "x", "--site", "two.example"], &["two.example/tagged/x"]);
    check(
        &["--tag", "x", "--tag", "y", "--site", "one.example"],
        &["one.example/tagged/x,y", "one.example/tagged/y"],
    );
    check(&["--site", "two.example"], &["two.example/", "two.example/tagged/x"]);
    check(&["--all"], &STORED);
}

#[test]
fn what_cannot_be_purged_is_said_and_nothing_purged() {
    let origin = Origin::start();
    let gate = gate(&origin);
    let before = get(&gate, "one.example/");
    let check = |arguments: &[&str], expected: &str| {
        let said = gate.refused_order(&[&["purge", "one.example/"], arguments].concat());
        assert!(said.contains(expected) && said.contains("nothing was purged"), "{said}");
    };
    check(&["https://nobody.example/"], "no site serves the host `nobody.example`; there are: one");
    check(&["https://plain.example/"], "no route with a cache covers its path");
    check(&["/path"], "write `https://example.org/path`");
    check(&["--prefix", "one.example/a?b"], "a prefix ends before the query");
    check(&["--site", "nobody"], "there is no site `nobody`");
    check(&["--tag", "a b"], "no white space");
    let nothing = gate.command(&["purge", "--soft"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert_eq!(gate.ask("POST", "/cache/purge").0, 400);
    assert_eq!(gate.ask("POST", "/cache/purge?urll=one.example").0, 400);
    assert_eq!(gate.ask("GET", "/cache/purge?all=true").0, 405);
    assert_eq!(get(&gate, "one.example/"), before);
}

#[test]
fn the_api_purges_by_parameters() {
    let origin = Origin::start();
    let gate = gate(&origin);
    let order = |path: &str| {
        let (status, body) = gate.ask("POST", path);
        assert_eq!(status, 200, "{body}");
        assert!(body.contains("\"purged\": 1"), "{body}");
    };
    let url = || order("/cache/purge?url=http%3A%2F%2Fthree.example%2Fa%2Fb&format=json");
    check(&gate, url, &["three.example/a/b"]);
    let tag = || order("/cache/purge?tag=x&site=one.example&format=json");
    check(&gate, tag, &["one.example/tagged/x,y"]);
}

#[test]
fn the_method_purges_for_those_who_may() {
    let origin = Origin::start();
    let gate = gate(&origin);
    let purge = |what: &str, fields: &str| request(&gate, "PURGE", what, fields);
    let done = |what: &str, fields: &str| {
        assert_eq!(purge(what, fields), (200, "purged\n".into()), "{what} {fields}");
    };
    check(&gate, || done("one.example/", ""), &["one.example/", "one.example/: de"]);
    check(&gate, || done("one.example/a/c?utm_x=1", ""), &["one.example/a/c"]);
    check(&gate, || done("one.example/", "Surrogate-Key: x\r\n"), &["one.example/tagged/x,y"]);
    let forbidden = || assert_eq!(purge("two.example/", "").0, 403);
    check(&gate, forbidden, &[]);
    // Without `purge_from` the method is the server's.
    let served = origin.served();
    assert_eq!(purge("three.example/a/b", "").0, 200);
    assert_eq!(origin.served(), served + 1);
}

#[test]
fn a_soft_purge_leaves_what_is_stale_to_be_served_meanwhile() {
    let origin = Origin::start();
    let gate = gate(&origin);
    let before = get(&gate, "two.example/");
    let said = gate.order(&["purge", "--soft", "two.example/"]);
    assert!(said.contains("stale from now on: 1"), "{said}");
    assert_eq!(get(&gate, "two.example/"), before);
    eventually("it is fetched anew", || get(&gate, "two.example/") != before);
    // Where nothing allows a stale response, there is none.
    let before = get(&gate, "one.example/");
    assert_eq!(
        request(&gate, "PURGE", "one.example/", "Soft-Purge: 1\r\n"),
        (200, "stale\n".into())
    );
    assert_ne!(get(&gate, "one.example/"), before);
}

#[test]
fn what_is_being_fetched_does_not_survive_a_purge() {
    let origin = Origin::start();
    let gate = gate(&origin);
    thread::scope(|scope| {
        let first = scope.spawn(|| get(&gate, "three.example/held"));
        eventually("the server is asked", || origin.served() == 1);
        gate.order(&["purge", "three.example/held"]);
        // Whether these join the fetch or come after it, they get nothing of it.
        let later: Vec<_> =
            (0..4).map(|_| scope.spawn(|| get(&gate, "three.example/held"))).collect();
        origin.state.let_go.store(true, Ordering::SeqCst);
        let first = first.join().unwrap();
        for later in later {
            assert_ne!(later.join().unwrap(), first);
        }
        assert_ne!(get(&gate, "three.example/held"), first);
    });
    let kept = get(&gate, "three.example/held");
    assert_eq!(get(&gate, "three.example/held"), kept, "what was fetched since is stored");
}

#[test]
fn the_status_tells_what_the_cache_made_of_requests() {
    let origin = Origin::start();
    let gate = gate(&origin);
    assert_eq!(gate.status()["cache"], serde_json::Value::Null);
    for _ in 0..4 {
        get(&gate, "three.example/");
    }
    request(&gate, "POST", "three.example/", "");
    gate.order(&["purge", "--tag", "nothing"]);
    let row = || gate.status()["cache"]["routes"][0].clone();
    // Records are written once the answer is sent.
    eventually("all are counted", || {
        let requests = &row()["requests"];
        requests["hit"] == 3 && requests["miss"] == 1 && requests["bypass"] == 1
    });
    let row = row();
    assert_eq!(row["site"], "three.example", "{row}");
    assert_eq!(row["hits"]["last_minute"]["looked_up"], 4, "{row}");
    assert_eq!(row["hits"]["last_hour"]["hits"], 3, "{row}");
    assert_eq!(row["bytes_saved"], 3, "{row}");
    eventually("the purge is counted", || gate.status()["cache"]["purges"] == 1);
    let said = gate.order(&["status"]);
    assert!(said.contains("hits, of what was looked up") && said.contains("75 %"), "{said}");
}
