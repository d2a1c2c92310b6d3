//! Many ask at once: one fetch, and everybody at their own pace.

use std::thread;

use super::wire::{Client, Origin, Signal, ask, gate, get, send, write};
use crate::eventually;

/// Bytes of the larger bodies here: many times what sockets hold.
const LARGE: usize = 6 << 20;

fn head(fields: &str, length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n")
}

const PUBLIC: &str = "Cache-Control: max-age=1000\r\n";

/// How many requests the gate is serving.
fn active(gate: &crate::gate::Gate) -> u64 {
    let (_, metrics) = gate.ask("GET", "/metrics");
    let value = |line: &str| line.strip_prefix("tidegate_requests_active ")?.parse().ok();
    metrics.lines().find_map(value).unwrap_or_else(|| panic!("{metrics}"))
}

#[test]
fn one_request_feeds_all_clients() {
    let go = Signal::default();
    let wait = go.clone();
    let body = "0123456789abcdef".repeat(20_000);
    let sent = body.clone();
    let origin = Origin::start(move |_, out| {
        wait.wait();
        write(out, &head(PUBLIC, sent.len()))?;
        sent.as_bytes()
            .chunks(50_000)
            .try_for_each(|piece| std::io::Write::write_all(out, piece).ok())
    });
    let gate = gate(&origin, "wait_max = \"60s\"", "");
    let clients: Vec<_> = (0..200).map(|_| Client::ask(&gate, "GET", "/", "")).collect();
    eventually("all have asked", || active(&gate) == 200);
    go.give();
    let mut collapsed = 0;
    thread::scope(|scope| {
        let readers = clients.into_iter().map(|client| scope.spawn(|| client.answer("GET")));
        for reader in readers.collect::<Vec<_>>() {
            let answer = reader.join().unwrap();
            assert!(answer.whole && answer.body == body, "{}", answer.head);
            collapsed += usize::from(answer.cache().contains("collapsed"));
        }
    });
    assert_eq!((origin.count("/"), collapsed), (1, 199));
    assert_eq!(get(&gate, "/").cache(), "hit");
}

#[test]
fn a_fetch_outlives_its_client_and_does_not_wait_for_slow_ones() {
    let rest = Signal::default();
    let wait = rest.clone();
    let origin = Origin::start(move |_, out| {
        write(out, &head(PUBLIC, LARGE))?;
        write(out, &"x".repeat(LARGE / 2))?;
        wait.wait();
        write(out, &"y".repeat(LARGE / 2))
    });
    let gate = gate(&origin, "wait_max = \"60s\"", "");
    let mut first = Client::ask(&gate, "GET", "/", "");
    first.read(1000);
    // It reads no more for a while, and nobody waits for it.
    let slow = Client::ask(&gate, "GET", "/", "");
    let fast = Client::ask(&gate, "GET", "/", "");
    eventually("all have asked", || active(&gate) == 3);
    drop(first);
    eventually("the first is gone", || active(&gate) == 2);
    rest.give();
    let expected = "x".repeat(LARGE / 2) + &"y".repeat(LARGE / 2);
    let check = |client: Client| {
        let answer = client.answer("GET");
        assert!(answer.whole && answer.body == expected, "{}", answer.head);
    };
    check(fast);
    check(slow);
    assert_eq!(get(&gate, "/").cache(), "hit");
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn nobody_waits_twice_for_what_is_private() {
    let go = Signal::default();
    let wait = go.clone();
    let origin = Origin::start(move |asked, out| {
        if asked.number == 1 {
            wait.wait();
        }
        send(out, 200, "Cache-Control: private\r\n", &format!("for {}", asked.number))
    });
    let gate = gate(&origin, "wait_max = \"60s\"", "");
    let clients: Vec<_> = (0..5).map(|_| Client::ask(&gate, "GET", "/", "")).collect();
    eventually("all have asked", || active(&gate) == 5);
    origin.is_asked("/", 1);
    go.give();
    let mut bodies: Vec<_> = clients.into_iter().map(|client| client.answer("GET").body).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 5, "{bodies:?}");
    let again = get(&gate, "/");
    assert_eq!(again.cache(), "fwd=uri-miss; detail=not-stored-before");
}

#[test]
fn who_wants_another_variant_fetches_it() {
    let go = Signal::default();
    let wait = go.clone();
    let origin = Origin::start(move |asked, out| {
        if asked.number == 1 {
            wait.wait();
        }
        let fields = "Cache-Control: max-age=1000\r\nVary: X-Kind\r\n";
        send(out, 200, fields, &format!("for {}", asked.field("x-kind").unwrap_or("none")))
    });
    let gate = gate(&origin, "wait_max = \"60s\"", "");
    let kinds = ["a", "b", "a", "c", "b"];
    let asking = |kind: &&str| Client::ask(&gate, "GET", "/", &format!("X-Kind: {kind}\r\n"));
    let clients: Vec<_> = kinds.iter().map(asking).collect();
    eventually("all have asked", || active(&gate) == 5);
    go.give();
    for (kind, client) in kinds.iter().zip(clients) {
        assert_eq!(client.answer("GET").body, format!("for {kind}"));
    }
}

#[test]
fn a_broken_response_is_cut_and_not_stored() {
    let (joined, wait) = (Signal::default(), Signal::default());
    let (signal, begun) = (joined.clone(), wait.clone());
    let origin = Origin::start(move |asked, out| {
        if asked.number > 1 {
            return send(out, 200, PUBLIC, "whole");
        }
        if asked.target == "/chunked" {
            write(
                out,
                &format!(
                    "HTTP/1.1 200 OK\r\n{PUBLIC}Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n"
                ),
            )?;
        } else {
            write(out, &(head(PUBLIC, 100) + "begin"))?;
        }
        begun.give();
        signal.wait();
        None
    });
    let gate = gate(&origin, "wait_max = \"60s\"", "");
    for path in ["/length", "/chunked"] {
        let clients: Vec<_> = (0..3).map(|_| Client::ask(&gate, "GET", path, "")).collect();
        if path == "/length" {
            eventually("all have asked", || active(&gate) == 3);
            origin.is_asked(path, 1);
            assert!(!joined.is_given());
            joined.give();
        }
        for client in clients {
            let answer = client.answer("GET");
            let is_late = origin.count(path) > 1 && answer.body == "whole";
            assert!(!answer.whole || answer.status == 502 || is_late, "{path} {}", answer.head);
        }
        let after = get(&gate, path);
        assert_eq!((after.body.as_str(), after.whole), ("whole", true), "{path}");
    }
    assert!(wait.is_given());
}

#[test]
fn interim_responses_reach_the_first() {
    let origin = Origin::start(|_, out| {
        write(out, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")?;
        send(out, 200, PUBLIC, "page")
    });
    let gate = gate(&origin, "", "");
    let first = get(&gate, "/");
    assert!(first.interim.contains("</style.css>; rel=preload"), "{}", first.interim);
    assert_eq!(first.body, "page");
    let second = ask(&gate, "GET", "/", "");
    assert_eq!((second.interim.as_str(), second.cache().as_str()), ("", "hit"));
}
