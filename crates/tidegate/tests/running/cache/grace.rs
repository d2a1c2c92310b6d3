//! Stale responses: who gets them, and who fetches anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use super::wire::{Origin, Signal, ask, gate, get, send, write};
use crate::eventually;

/// A page that is stale as soon as it comes, by what is said of staleness besides.
fn stale(more: &str) -> String {
    format!("Cache-Control: max-age=100{more}\r\nAge: 110\r\nETag: \"v1\"\r\n")
}

#[test]
fn an_origin_that_fails_is_stood_in_for() {
    let status = Arc::new(AtomicU16::new(200));
    let now = Arc::clone(&status);
    let origin = Origin::start(move |asked, out| {
        let more = match asked.target.as_str() {
            "/strict" => ", must-revalidate",
            "/own" => ", s-maxage=100, stale-if-error=1000",
            "/shared" => ", s-maxage=100",
            _ => "",
        };
        match now.load(Ordering::SeqCst) {
            200 => send(out, 200, &stale(more), "page"),
            // It hangs up in the middle of its work.
            0 => None,
            status => send(out, status, "", "sorry"),
        }
    });
    let gate = gate(&origin, "grace = \"1h\"", "");
    let check = |path: &str, at: u16, expected: u16, cache: &str| {
        status.store(at, Ordering::SeqCst);
        let answer = get(&gate, path);
        assert_eq!((answer.status, answer.cache().as_str()), (expected, cache), "{path} {at}");
        if expected == 200 {
            assert_eq!(answer.body, "page");
        }
        if cache.starts_with("hit") {
            let age: u64 = answer.field("age").expect("an Age").parse().unwrap();
            assert!(age >= 100, "{}", answer.head);
        }
    };
    for path in ["/page", "/strict", "/own", "/shared"] {
        check(path, 200, 200, "fwd=uri-miss; stored");
    }
    for path in ["/page", "/own"] {
        check(path, 503, 200, "hit; detail=server_error");
    }
    check("/strict", 503, 503, "fwd=stale; detail=no-lifetime");
    check("/shared", 503, 503, "fwd=stale; detail=no-lifetime");
    status.store(0, Ordering::SeqCst);
    for path in ["/page", "/own"] {
        let answer = get(&gate, path);
        assert_eq!((answer.status, answer.body.as_str()), (200, "page"), "{}", answer.head);
        assert!(answer.cache().starts_with("hit; detail="), "{}", answer.head);
    }
    for path in ["/strict", "/shared"] {
        assert_eq!(get(&gate, path).status, 504, "{path}");
    }
}

#[test]
fn nothing_stands_in_without_grace() {
    let origin = Origin::start(|asked, out| match asked.number {
        1 => send(out, 200, &stale(""), "page"),
        _ => send(out, 503, "", "sorry"),
    });
    let gate = gate(&origin, "grace = \"0s\"", "");
    assert_eq!(get(&gate, "/").status, 200);
    let answer = get(&gate, "/");
    assert_eq!((answer.status, answer.body.as_str()), (503, "sorry"));
}

#[test]
fn what_is_stale_is_served_while_one_fetches() {
    let go = Signal::default();
    let wait = go.clone();
    let origin = Origin::start(move |asked, out| {
        if asked.number == 1 {
            return send(out, 200, &stale(", stale-while-revalidate=1000"), "old");
        }
        wait.wait();
        match asked.target.as_str() {
            "/same" => write(out, "HTTP/1.1 304 X\r\nCache-Control: max-age=1000\r\n\r\n"),
            _ => send(out, 200, "Cache-Control: max-age=1000\r\n", "new"),
        }
    });
    let gate = gate(&origin, "", "");
    for path in ["/same", "/changed"] {
        assert_eq!(get(&gate, path).body, "old");
        for _ in 0..10 {
            let answer = get(&gate, path);
            assert_eq!((answer.body.as_str(), answer.cache().as_str()), ("old", "hit"));
        }
        origin.is_asked(path, 2);
    }
    go.give();
    let is_fresh = |path: &str| !get(&gate, path).field("cache-status").unwrap().contains("ttl=-");
    eventually("both are fresh", || is_fresh("/same") && is_fresh("/changed"));
    assert_eq!(
        (get(&gate, "/same").body.as_str(), get(&gate, "/changed").body.as_str()),
        ("old", "new")
    );
    assert_eq!((origin.count("/same"), origin.count("/changed")), (2, 2));
}

#[test]
fn clients_are_obeyed() {
    let origin = Origin::start(|asked, out| {
        let fields = "Cache-Control: max-age=1000\r\nAge: 100\r\n";
        send(out, 200, fields, &format!("{}", asked.number))
    });
    let gate = gate(&origin, "", "");
    let check = |control: &str, status: u16, cache: &str| {
        let answer = ask(&gate, "GET", "/", &format!("Cache-Control: {control}\r\n"));
        assert_eq!((answer.status, answer.cache().as_str()), (status, cache), "{control}");
    };
    check("only-if-cached", 504, "");
    check("max-age=10000", 200, "fwd=uri-miss; stored");
    check("only-if-cached", 200, "hit");
    check("max-age=10000", 200, "hit");
    check("max-age=10", 200, "fwd=request; stored");
    check("min-fresh=10000", 200, "fwd=request; stored");
    check("no-cache", 200, "fwd=request; stored");
    check("no-store", 200, "fwd=bypass; detail=no-store");
    assert_eq!(origin.count("/"), 5);
}
