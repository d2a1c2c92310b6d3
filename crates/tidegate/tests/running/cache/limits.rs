//! What is odd in shape or too large, and a configuration that changes under load.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::wire::{Client, Origin, gate, get, send, settings, write};
use crate::client::Load;
use crate::eventually;

const PUBLIC: &str = "Cache-Control: max-age=1000\r\n";

#[test]
fn bodies_of_every_kind_are_stored() {
    let origin = Origin::start(|asked, out| match asked.target.as_str() {
        "/chunked" => write(
            out,
            &format!(
                "HTTP/1.1 200 OK\r\n{PUBLIC}Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n4\r\n two\r\n0\r\n\r\n"
            ),
        ),
        "/empty" => send(out, 200, PUBLIC, ""),
        "/none" => write(out, &format!("HTTP/1.1 204 No Content\r\n{PUBLIC}\r\n")),
        "/lost" => send(out, 404, PUBLIC, "lost"),
        _ => send(out, 301, &format!("{PUBLIC}Location: /there\r\n"), ""),
    });
    let gate = gate(&origin, "", "");
    for (path, status, body) in [
        ("/chunked", 200, "one two"),
        ("/empty", 200, ""),
        ("/none", 204, ""),
        ("/lost", 404, "lost"),
        ("/moved", 301, ""),
    ] {
        for says in ["fwd=uri-miss; stored", "hit"] {
            let answer = get(&gate, path);
            assert_eq!((answer.status, answer.body.as_str()), (status, body), "{path}");
            assert!(answer.whole, "{path} {}", answer.head);
            assert_eq!(answer.cache(), says, "{path}");
        }
        assert_eq!(origin.count(path), 1);
    }
}

/// Resident memory of a process, in bytes.
fn resident(pid: u32) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn what_is_too_large_passes_by_at_its_reader_s_pace() {
    const PIECE: usize = 64 << 10;
    const PIECES: usize = 3000;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let origin = Origin::start(move |asked, out| {
        let framing = if asked.target == "/length" {
            format!("Content-Length: {}\r\n", PIECE * PIECES)
        } else {
            "Transfer-Encoding: chunked\r\n".to_owned()
        };
        write(out, &format!("HTTP/1.1 200 OK\r\n{PUBLIC}{framing}\r\n"))?;
        let piece = "x".repeat(PIECE);
        let chunk = format!("{PIECE:x}\r\n{piece}\r\n");
        let text = if asked.target == "/length" { &piece } else { &chunk };
        for _ in 0..PIECES {
            out.write_all(text.as_bytes()).ok()?;
            counter.fetch_add(1, Ordering::SeqCst);
        }
        write(out, if asked.target == "/length" { "" } else { "0\r\n\r\n" })
    });
    let gate = gate(&origin, "memory_max = \"16MB\"", "");
    for path in ["/length", "/chunked"] {
        sent.store(0, Ordering::SeqCst);
        let client = Client::ask(&gate, "GET", path, "");
        // The reader reads nothing yet: what the origin can send comes to an end.
        let mut before = usize::MAX;
        eventually("the origin is held back", || {
            let now = sent.load(Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(300));
            let is_still = now > 0 && now == before;
            before = now;
            is_still
        });
        assert!(before < PIECES / 2, "{path}: {before} pieces without a reader");
        let answer = client.answer("GET");
        assert_eq!((answer.whole, answer.body.len()), (true, PIECE * PIECES), "{path}");
        assert!(resident(gate.pid()) < 150 << 20, "{path}: {}", resident(gate.pid()));
        let again = Client::ask(&gate, "GET", path, "");
        drop(again);
    }
}

#[test]
fn reloads_change_the_cache_under_load() {
    let origin = Origin::start(|_, out| send(out, 200, PUBLIC, "one"));
    let gate = gate(&origin, "", "");
    let load = Load::start(gate.address, "/", 6);
    for options in ["memory_max = \"1MB\"", "memory_max = \"1GB\"", "memory_max = \"2MB\""] {
        load.go_on();
        gate.configure(&settings(&origin, options, ""));
        gate.order(&["reload"]);
        load.go_on();
        gate.configure(&settings(&origin, options, "cache = \"off\"\n"));
        gate.order(&["reload"]);
    }
    load.go_on();
    assert_eq!(load.end(), Vec::<String>::new());
    assert_eq!(get(&gate, "/").field("cache-status"), None);
}
