//! The cache in the running gate: what is stored, what is served, and what is said of it.
//!
//! No test waits for time to pass: what is to be old arrives old (`Age`), and origins answer when a
//! test tells them to.

mod coalescing;
mod grace;
mod limits;
mod wire;

use std::fs;

use crate::eventually;
use crate::gate::Gate;
use wire::{Client, Origin, Signal, ask, gate, get, send, settings, write};

const PAGE: &str = "Cache-Control: max-age=1000\r\nAge: 50\r\nETag: \"v1\"\r\n\
                    Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n";

#[test]
fn what_is_stored_answers_as_the_origin_would() {
    let origin = Origin::start(|_, out| send(out, 200, PAGE, "0123456789"));
    let gate = gate(&origin, "", "");
    let first = get(&gate, "/page");
    assert_eq!((first.status, first.body.as_str()), (200, "0123456789"));
    assert_eq!(first.cache(), "fwd=uri-miss; stored", "{}", first.head);
    let check = |method: &str, fields: &str, status: u16, body: &str, says: &str| {
        let answer = ask(&gate, method, "/page", fields);
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{method} {fields}");
        assert!(answer.whole && answer.head.contains(says), "{fields}{}", answer.head);
        assert_eq!(answer.cache(), "hit", "{method} {fields}");
        let age: u64 = answer.field("age").unwrap().parse().unwrap();
        assert!((50..1000).contains(&age), "{}", answer.head);
        answer
    };
    check("GET", "", 200, "0123456789", "ETag: \"v1\"");
    check("HEAD", "", 200, "", "Content-Length: 10\r\n");
    for known in ["If-None-Match: \"v1\"", "If-None-Match: \"v0\", W/\"v1\"", "If-None-Match: *"] {
        let answer = check("GET", &format!("{known}\r\n"), 304, "", "ETag: \"v1\"");
        assert_eq!(answer.field("content-type"), None);
    }
    check("GET", "If-None-Match: \"v2\"\r\n", 200, "0123456789", "");
    check("GET", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304, "", "");
    check("GET", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", 200, "0123456789", "");
    check("GET", "Range: bytes=2-4\r\n", 206, "234", "Content-Range: bytes 2-4/10\r\n");
    check("GET", "Range: bytes=-3\r\n", 206, "789", "Content-Range: bytes 7-9/10\r\n");
    check("GET", "Range: bytes=8-\r\n", 206, "89", "Content-Range: bytes 8-9/10\r\n");
    check("GET", "Range: bytes=10-\r\n", 416, "", "Content-Range: bytes */10\r\n");
    check("GET", "Range: bytes=4-2\r\n", 200, "0123456789", "");
    check("GET", "Range: bytes=2-4\r\nIf-Range: \"v1\"\r\n", 206, "234", "");
    check("GET", "Range: bytes=2-4\r\nIf-Range: \"v2\"\r\n", 200, "0123456789", "");
    let several = ask(&gate, "GET", "/page", "Range: bytes=0-1,6-8\r\n");
    assert_eq!(several.status, 206);
    let kind = several.field("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let parts: Vec<_> = several.body.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 4, "{}", several.body);
    for (part, span, body) in [(parts[1], "bytes 0-1/10", "01"), (parts[2], "bytes 6-8/10", "678")]
    {
        assert!(part.contains(span) && part.ends_with(&format!("\r\n\r\n{body}\r\n")), "{part}");
    }
    assert!(several.whole && parts[3].starts_with("--"));
    assert_eq!(origin.count("/page"), 1);
}

#[test]
fn what_is_stale_is_asked_about() {
    let origin = Origin::start(|asked, out| {
        let old = "Cache-Control: max-age=100\r\nAge: 110\r\nETag: \"v1\"\r\n";
        let fresh = "Cache-Control: max-age=100\r\n";
        let is_asked_about = asked.field("if-none-match") == Some("\"v1\"");
        match (asked.target.as_str(), asked.number, is_asked_about) {
            (_, 1, false) => send(out, 200, old, "one"),
            ("/same", 2, true) => {
                write(out, &format!("HTTP/1.1 304 X\r\n{fresh}X-New: yes\r\n\r\n"))
            }
            ("/changed", 2, true) | ("/other", 3, false) => {
                send(out, 200, &format!("{fresh}ETag: \"v2\"\r\n"), "two")
            }
            ("/other", 2, true) => write(out, "HTTP/1.1 304 X\r\nETag: \"v7\"\r\n\r\n"),
            _ => send(out, 500, "", "not what was expected"),
        }
    });
    let gate = gate(&origin, "", "");
    let check = |path: &str, body: &str, says: &str, asked: usize| {
        assert_eq!(get(&gate, path).body, "one");
        let second = get(&gate, path);
        assert_eq!(
            (second.status, second.body.as_str(), second.cache().as_str()),
            (200, body, says)
        );
        let third = get(&gate, path);
        assert_eq!((third.body.as_str(), third.cache().as_str()), (body, "hit"), "{path}");
        assert_eq!(origin.count(path), asked, "{path}");
        third
    };
    let same = check("/same", "one", "fwd=stale; fwd-status=304; stored", 2);
    assert_eq!((same.field("x-new"), same.field("etag")), (Some("yes"), Some("\"v1\"")));
    check("/changed", "two", "fwd=stale; stored", 2);
    check("/other", "two", "fwd=stale; stored", 3);
}

#[test]
fn nothing_personal_is_shared() {
    let origin = Origin::start(|asked, out| {
        let path = asked.target.as_str();
        let fields = match path {
            "/cookie" => "Cache-Control: max-age=1000\r\nSet-Cookie: a=1\r\n",
            "/private" => "Cache-Control: private, max-age=1000\r\n",
            "/no-store" => "Cache-Control: no-store, max-age=1000\r\n",
            "/vary" => "Cache-Control: max-age=1000\r\nVary: *\r\n",
            "/public" => "Cache-Control: public, max-age=1000\r\n",
            "/heuristic" => "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            _ => "Cache-Control: max-age=1000\r\n",
        };
        send(out, 200, fields, &format!("{path} {}", asked.number))
    });
    let gate = gate(&origin, "session_cookies = [\"session\"]", "");
    let check = |path: &str, fields: &str, reason: Option<&str>| {
        let (first, second) = (ask(&gate, "GET", path, fields), ask(&gate, "GET", path, fields));
        let is_shared = reason.is_none();
        assert_eq!(first.body == second.body, is_shared, "{path} {fields}{}", second.head);
        let Some(reason) = reason else { return };
        assert!(first.cache().contains(reason), "{path} {fields}{}", first.head);
    };
    check("/cookie", "", Some("set-cookie"));
    check("/private", "", Some("private"));
    check("/no-store", "", Some("no-store"));
    check("/vary", "", Some("vary-any"));
    check("/authorization", "Authorization: Basic eA==\r\n", Some("authorization"));
    check("/public", "Authorization: Basic eA==\r\n", None);
    check("/session", "Cookie: a=b; session=1\r\n", Some("fwd=bypass; detail=session-cookie"));
    check("/heuristic", "Cookie: a=b\r\n", Some("request-cookies"));
    check("/explicit", "Cookie: a=b\r\n", None);
    // What one with a right to it has fetched is not for those without.
    let mine = ask(&gate, "GET", "/mine", "Authorization: Basic eA==\r\n").body;
    assert_ne!(get(&gate, "/mine").body, mine);
}

#[test]
fn a_dropped_cookie_goes_to_the_first_alone() {
    let fields = "Cache-Control: max-age=1000\r\nSet-Cookie: a=1\r\nX-Kept: yes\r\n";
    let origin = Origin::start(move |_, out| send(out, 200, fields, "page"));
    let gate = gate(&origin, "set_cookie = \"drop\"", "");
    assert_eq!(get(&gate, "/").field("set-cookie"), Some("a=1"));
    let second = get(&gate, "/");
    assert_eq!((second.field("set-cookie"), second.field("x-kept")), (None, Some("yes")));
    assert_eq!(second.cache(), "hit");
}

#[test]
fn variants_are_told_apart_and_changed_together() {
    let origin = Origin::start(|asked, out| {
        let language = asked.field("accept-language").unwrap_or("none").to_owned();
        let fields = "Cache-Control: max-age=1000\r\nVary: Accept-Language\r\n";
        send(out, 200, fields, &format!("{language} {}", asked.number))
    });
    let gate = gate(&origin, "", "");
    let body =
        |language: &str| ask(&gate, "GET", "/", &format!("Accept-Language: {language}\r\n")).body;
    assert_eq!((body("de"), body("fr")), ("de 1".into(), "fr 2".into()));
    assert_eq!((body("de"), body("fr")), ("de 1".into(), "fr 2".into()));
    ask(&gate, "POST", "/", "Content-Length: 0\r\n");
    assert_eq!(body("de"), "de 4");
    assert_eq!(body("fr"), "fr 5", "a variant from before the change");
}

#[test]
fn fields_that_the_gate_writes_are_no_variants() {
    let origin = Origin::start(|asked, out| {
        let vary = asked.target.trim_start_matches('/');
        let fields = format!("Cache-Control: max-age=1000\r\nVary: {vary}\r\n");
        send(out, 200, &fields, &format!("{}", asked.number))
    });
    // Clients cannot say which country they are taken to be from.
    let edits = "request_headers = { set = { X-Country = \"$client_addr\" } }\n";
    let gate = gate(&origin, "", edits);
    for (path, is_shared) in [
        ("/X-Country", false),
        ("/X-Forwarded-For", false),
        ("/X-Forwarded-Proto", true),
        ("/X-Other", true),
    ] {
        let bodies = (get(&gate, path).body, get(&gate, path).body);
        assert_eq!(bodies.0 == bodies.1, is_shared, "{path}");
    }
}

#[test]
fn a_change_while_it_is_fetched_counts() {
    let go = Signal::default();
    let wait = go.clone();
    let origin = Origin::start(move |asked, out| {
        if asked.number == 1 {
            wait.wait();
        }
        let is_get = asked.head.starts_with("GET");
        let fields = if is_get { "Cache-Control: max-age=1000\r\n" } else { "" };
        send(out, 200, fields, &format!("{}", asked.number))
    });
    let gate = gate(&origin, "wait_max = \"60s\"", "");
    let early = Client::ask(&gate, "GET", "/", "");
    origin.is_asked("/", 1);
    ask(&gate, "POST", "/", "Content-Length: 0\r\n");
    // Who asks afterwards does not wait for what was asked before.
    assert_eq!(get(&gate, "/").body, "3");
    go.give();
    assert_eq!(early.answer("GET").body, "1");
    let after = get(&gate, "/");
    assert_eq!((after.body.as_str(), after.cache().as_str()), ("3", "hit"));
}

#[test]
fn a_change_invalidates_what_it_names() {
    let origin = Origin::start(|asked, out| {
        let fields = match asked.head.split(' ').next() {
            Some("GET") => "Cache-Control: max-age=1000\r\n",
            _ if asked.target == "/fails" => return send(out, 500, "", "no"),
            _ => "Location: /list\r\nContent-Location: http://b.example/elsewhere\r\n",
        };
        send(out, 200, fields, &format!("{}", asked.number))
    });
    let gate = gate(&origin, "", "");
    for path in ["/item", "/list", "/elsewhere", "/fails"] {
        assert_eq!((get(&gate, path).cache(), get(&gate, path).cache().as_str()).1, "hit");
    }
    for path in ["/item", "/fails"] {
        let changed = ask(&gate, "PUT", path, "Content-Length: 0\r\n");
        assert_eq!(changed.cache(), "fwd=method; detail=method");
    }
    let says = |path: &str| get(&gate, path).cache();
    assert_eq!(says("/item"), "fwd=uri-miss; stored");
    assert_eq!(says("/list"), "fwd=uri-miss; stored");
    assert_eq!(says("/elsewhere"), "hit", "another host's");
    assert_eq!(says("/fails"), "hit");
}

#[test]
fn keys_are_made_as_configured() {
    let origin =
        Origin::start(|asked, out| send(out, 200, "Cache-Control: max-age=1000\r\n", &asked.head));
    let shared = format!(
        "cache = {{ key_host = false, query_drop = [\"utm_*\"] }}\n[[site]]\nname = \"other\"\n\
         hosts = [\"c.example\", \"d.example\"]\nupstream = \"{}\"\ncache = {{ key_host = false }}\n",
        origin.address
    );
    let gate = gate(&origin, "", &shared);
    let says =
        |target: &str, host: &str| ask(&gate, "GET", target, &format!("Host: {host}\r\n")).cache();
    let (miss, hit) = ("fwd=uri-miss; stored", "hit");
    assert_eq!(says("/x?a=1&utm_source=y", "a.example"), miss);
    assert_eq!(says("/x?utm_campaign=z&a=1", "b.example"), hit);
    assert_eq!(says("/x?a=2", "a.example"), miss);
    assert_eq!(says("/x?a=1", "c.example"), miss, "another site's");
    assert_eq!(says("/x?a=1", "d.example"), hit);
    assert_eq!(says("/x?a=1&utm_source=y", "c.example"), miss);
    assert_eq!(says("/%78?a=1", "d.example"), hit, "another spelling of the same path");
}

#[test]
fn rules_look_at_what_is_stored() {
    let origin = Origin::start(|asked, out| {
        let body = if asked.target == "/leak" { "it is hush-hush" } else { "fine" };
        let fields = "Cache-Control: max-age=1000\r\nContent-Type: text/plain\r\n";
        send(out, 200, fields, body)
    });
    let gate = gate(&origin, "", "");
    let rules = "SecRule RESPONSE_BODY \"@contains hush-hush\" \"id:10005,phase:4,deny,status:502,log\"\n\
                 SecRule ARGS:do \"@streq deny\" \"id:10006,phase:1,deny,status:418,log\"\n";
    let leak = get(&gate, "/leak");
    assert_eq!((leak.status, leak.body.as_str()), (200, "it is hush-hush"));
    fs::write(gate.path("own.conf"), rules).unwrap();
    gate.configure(&settings(&origin, "[waf]\nrules = \"$DIR/own.conf\"\nmode = \"block\"\n", ""));
    gate.order(&["reload"]);
    for path in ["/leak", "/leak", "/fine", "/fine"] {
        let answer = get(&gate, path);
        let status = if path == "/leak" { 502 } else { 200 };
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.body.contains("hush"), "{}", answer.body);
    }
    assert_eq!((origin.count("/leak"), origin.count("/fine")), (1, 1));
    let denied = get(&gate, "/fine?do=deny");
    assert_eq!((denied.status, denied.field("cache-status")), (418, None));
    assert_eq!(origin.count("/fine?do=deny"), 0);
}

#[test]
fn logs_and_metrics_say_what_the_cache_did() {
    let origin = Origin::start(|asked, out| {
        let is_private = asked.target == "/private";
        let fields =
            if is_private { "Cache-Control: private\r\n" } else { "Cache-Control: max-age=9\r\n" };
        send(out, 200, fields, "page")
    });
    let log = "logs = [\"access\"]\n[[log]]\nname = \"access\"\npath = \"$DIR/access.log\"\n\
               format = \"json\"\nfields = [\"path\", \"cache\", \"cache_reason\"]\n";
    let gate = gate(&origin, "session_cookies = [\"session\"]", log);
    get(&gate, "/page");
    get(&gate, "/page");
    get(&gate, "/private");
    get(&gate, "/private");
    ask(&gate, "GET", "/page", "Cookie: session=1\r\n");
    let lines = || fs::read_to_string(gate.path("access.log")).unwrap_or_default();
    eventually("the log has five lines", || lines().lines().count() == 5);
    for (result, reason) in [
        ("miss", ""),
        ("hit", ""),
        ("bypass", "session-cookie"),
        ("miss", "private"),
        ("bypass", "not-stored-before"),
    ] {
        let is_so = |line: &str| {
            line.contains(&format!("\"cache\":\"{result}\""))
                && (reason.is_empty() || line.contains(&format!("\"cache_reason\":\"{reason}\"")))
        };
        assert!(lines().lines().any(is_so), "{result} {reason}: {}", lines());
    }
    let (_, metrics) = gate.ask("GET", "/metrics");
    for (result, count) in [("miss", 2), ("hit", 1), ("bypass", 2)] {
        let of = |line: &&str| {
            line.starts_with("tidegate_cache_requests_total{")
                && line.contains(&format!("result=\"{result}\""))
                && line.ends_with(&format!(" {count}"))
        };
        assert!(metrics.lines().any(|line| of(&line)), "{result}: {metrics}");
    }
}

#[test]
fn http2_clients_are_served_from_memory() {
    let origin = Origin::start(|_, out| send(out, 200, PAGE, "0123456789"));
    let gate = gate(&origin, "", "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for says in ["fwd=uri-miss", "hit"] {
            let (status, cache, body) = http2(&gate, "/page").await;
            assert_eq!((status, body.as_str()), (200, "0123456789"));
            assert!(cache.contains(says), "{cache}");
        }
    });
    assert_eq!(origin.count("/page"), 1);
}

/// A request over HTTP/2: status, what the cache says, and the body.
async fn http2(gate: &Gate, path: &str) -> (u16, String, String) {
    let stream = tokio::net::TcpStream::connect(gate.address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move {
        let _ended = connection.await;
    });
    let mut client = client.ready().await.unwrap();
    let uri = format!("http://h2.example{path}");
    let request = http::Request::builder().uri(uri).body(()).unwrap();
    let response = client.send_request(request, true).unwrap().0.await.unwrap();
    let cache = response.headers()["cache-status"].to_str().unwrap().to_owned();
    let (status, mut stream) = (response.status().as_u16(), response.into_body());
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        body.extend_from_slice(&data.unwrap());
    }
    (status, cache, String::from_utf8(body).unwrap())
}
