//! The firewall in the running gate: verdicts, bodies that are held back, reloads, logs.

mod challenge;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use crate::client::Load;
use crate::eventually;
use crate::gate::Gate;

const RULES: &str = r#"
SecRule ARGS:do "@streq deny" "id:10001,phase:2,deny,status:418,log,msg:'No %{ARGS.do}',logdata:'%{MATCHED_VAR}',severity:CRITICAL,tag:'own'"
SecRule ARGS:do "@streq drop" "id:10002,phase:1,drop,log,msg:'Gone'"
SecRule ARGS:do "@streq elsewhere" "id:10003,phase:1,redirect:'https://other.example/?from=%{REQUEST_FILENAME}',log"
SecRule RESPONSE_HEADERS:X-Leak "@streq head" "id:10004,phase:3,deny,status:502,log,msg:'Leak'"
SecRule RESPONSE_BODY "@contains hush-hush" "id:10005,phase:4,deny,status:502,log,msg:'Leak'"
"#;

/// What the server behind the gate was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    head: String,
    body: Vec<u8>,
    trailers: String,
}

/// A server that remembers what it was sent, bytes and framing, and says what the path asks for.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    seen: Arc<RwLock<Vec<Seen>>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let seen = Arc::clone(&server.seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(&stream, &seen));
            }
        });
        server
    }

    fn last(&self) -> Seen {
        self.seen.read().unwrap().last().cloned().unwrap_or_default()
    }

    fn count(&self) -> usize {
        self.seen.read().unwrap().len()
    }
}

fn serve(stream: &TcpStream, seen: &RwLock<Vec<Seen>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let request = receive(&mut reader)?;
        let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let interim = request.head.contains("expect");
        seen.write().unwrap().push(request);
        assert!(!interim, "the gate has answered this");
        let (fields, body) = match path.as_str() {
            "/leak/head" => ("X-Leak: head\r\n", "ordinary".to_owned()),
            "/leak/body" => ("Content-Type: text/plain\r\n", "it is hush-hush, really".to_owned()),
            "/large" => ("Content-Type: text/plain\r\n", "0123456789abcdef".repeat(100_000)),
            _ => ("Content-Type: text/plain\r\n", "fine".to_owned()),
        };
        let mut stream = stream;
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
    }
}

/// A request with its body, however that is framed.
fn receive(reader: &mut BufReader<&TcpStream>) -> Option<Seen> {
    let mut seen = Seen { head: lines(reader)?, ..Seen::default() };
    let head = seen.head.to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            if size == 0 {
                seen.trailers = lines(reader)?;
                break;
            }
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            seen.body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(length) = head.split("content-length: ").nth(1) {
        seen.body = vec![0; length.lines().next()?.parse().ok()?];
        reader.read_exact(&mut seen.body).ok()?;
    }
    Some(seen)
}

/// Lines up to an empty one.
fn lines(reader: &mut impl std::io::BufRead) -> Option<String> {
    let mut text = String::new();
    loop {
        let before = text.len();
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
        if &text[before..] == "\r\n" {
            text.truncate(before);
            return Some(text);
        }
    }
}

/// A gate with rules of its own in front of a server.
fn start(server: &Server, waf: &str, rest: &str) -> Gate {
    // The directory is there before the process, and so must be the rules.
    let gate = Gate::start(&plain(server));
    fs::write(gate.path("own.conf"), RULES).unwrap();
    gate.configure(&guarded(server, waf, rest));
    gate.order(&["reload"]);
    gate
}

fn plain(server: &Server) -> String {
    format!("[[site]]\nhost = \"*\"\nupstream = \"{}\"\n", server.address)
}

fn guarded(server: &Server, waf: &str, rest: &str) -> String {
    format!(
        "[waf]\nrules = \"$DIR/own.conf\"\nmode = \"block\"\n{waf}\n{rest}\n\
         [[site]]\nhost = \"detect.example\"\nwaf = \"detect\"\nupstream = \"{0}\"\n\
         [[site]]\nhost = \"off.example\"\nwaf = \"off\"\nupstream = \"{0}\"\n\
         [[site]]\nhost = \"except.example\"\nwaf = {{ exclude = [\"10001 ARGS:do\"] }}\nupstream = \"{0}\"\n\
         {1}",
        server.address,
        plain(server)
    )
}

/// Sends bytes on a connection of its own and reads all that comes back until it ends.
fn exchange(address: SocketAddr, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for piece in pieces {
        // A gate that has refused already may have closed.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn get(gate: &Gate, host: &str, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    String::from_utf8(exchange(gate.address, &[request.as_bytes()])).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn each_verdict_does_what_it_says() {
    let server = Server::start();
    let gate = start(&server, "", "");
    let check = |host: &str, target: &str, expected: &str| {
        let answer = get(&gate, host, target);
        assert_eq!(status(&answer), expected, "{host}{target}: {answer}");
        for secret in ["10001", "10005", "No deny", "hush"] {
            assert!(!answer.contains(secret), "{host}{target} tells {secret}: {answer}");
        }
        answer
    };
    check("block.example", "/?do=nothing", "200");
    check("block.example", "/?do=deny", "418");
    check("block.example", "/?do=drop", "none");
    let redirect = check("block.example", "/a?do=elsewhere", "302");
    assert!(redirect.contains("\r\nLocation: https://other.example/?from=/a\r\n"), "{redirect}");
    check("block.example", "/leak/head", "502");
    check("block.example", "/leak/body", "502");
    let large = get(&gate, "block.example", "/large");
    assert!(large.ends_with(&"0123456789abcdef".repeat(100_000)), "{} bytes", large.len());
    check("except.example", "/?do=deny", "200");
    for target in ["/?do=deny", "/?do=drop", "/?do=elsewhere"] {
        check("off.example", target, "200");
        check("detect.example", target, "200");
    }
    let served = server.count();
    check("block.example", "/?do=deny", "418");
    assert_eq!(server.count(), served, "what is denied never reaches the server");
}

#[test]
fn built_in_rules_work_before_any_are_installed() {
    let server = Server::start();
    let gate = Gate::start(&(plain(&server) + "waf = \"block\"\n"));
    assert_eq!(status(&get(&gate, "a", "/?q=blue%20shoes")), "200");
    assert_eq!(status(&get(&gate, "a", "/?q=1'%20or%201=1--%20-")), "403");
    assert_eq!(status(&get(&gate, "a", "/.git/config")), "403");
}

/// Bytes that compress badly and repeat nowhere.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(step).take(length).collect()
}

#[test]
fn held_bodies_go_on_as_they_came() {
    let server = Server::start();
    let gate = start(&server, "body_memory_max = \"16KB\"\npool_from = \"64KB\"", "");
    for length in [1, 100, 16_384, 16_385, 100_000, 1_500_000] {
        let body = noise(length);
        let head = format!(
            "POST /{length} HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let answer = exchange(gate.address, &[head.as_bytes(), &body]);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{length}");
        let seen = server.last();
        assert!(seen.head.contains(&format!("Content-Length: {length}\r\n")), "{}", seen.head);
        assert!(seen.body == body, "{length} bytes became {}", seen.body.len());

        let head = "POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
             Content-Type: application/octet-stream\r\nConnection: close\r\n\r\n";
        let mut chunked = Vec::new();
        for chunk in body.chunks(9_001) {
            chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            chunked.extend_from_slice(chunk);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\nX-Checksum: 7\r\n\r\n");
        let answer = exchange(gate.address, &[head.as_bytes(), &chunked]);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{length}");
        let seen = server.last();
        assert!(seen.head.contains("Transfer-Encoding: chunked\r\n"), "{}", seen.head);
        assert!(seen.body == body, "{length} bytes became {}", seen.body.len());
        assert_eq!(seen.trailers, "X-Checksum: 7\r\n");
    }
}

#[test]
fn http2_is_looked_at_alike() {
    let server = Server::start();
    let gate = start(&server, "body_memory_max = \"16KB\"", "");
    let address = gate.address;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let body = noise(300_000);
        assert_eq!(http2(address, "/?do=nothing", &[]).await, Some(200));
        assert_eq!(http2(address, "/?do=deny", &[]).await, Some(418));
        assert_eq!(http2(address, "/?do=drop", &[]).await, None);
        assert_eq!(http2(address, "/?do=elsewhere", &[]).await, Some(302));
        assert_eq!(http2(address, "/leak/body", &[]).await, Some(502));
        assert_eq!(http2(address, "/up", &body).await, Some(200));
        assert!(server.last().body == body);
    });
}

/// A request over HTTP/2; the status, or `None` if the stream was reset.
async fn http2(address: SocketAddr, path: &str, body: &[u8]) -> Option<u16> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move {
        let _ended = connection.await;
    });
    let mut client = client.ready().await.unwrap();
    let request = http::Request::builder()
        .method(if body.is_empty() { "GET" } else { "POST" })
        .uri(format!("http://h2.example{path}"))
        .body(())
        .unwrap();
    let (response, mut send) = client.send_request(request, body.is_empty()).unwrap();
    if !body.is_empty() {
        let mut left = bytes::Bytes::copy_from_slice(body);
        while !left.is_empty() {
            send.reserve_capacity(left.len());
            let granted = std::future::poll_fn(|cx| send.poll_capacity(cx)).await;
            let granted = granted.unwrap().unwrap();
            let piece = left.split_to(granted.min(left.len()));
            send.send_data(piece, left.is_empty()).unwrap();
        }
    }
    response.await.ok().map(|response| response.status().as_u16())
}

#[test]
fn a_client_that_asks_first_is_answered_by_the_gate() {
    let server = Server::start();
    let gate = start(&server, "", "");
    let ask = |target: &str| {
        let mut stream = TcpStream::connect(gate.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\
             Content-Type: text/plain\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let first = lines(&mut reader).unwrap_or_default();
        (stream, reader, first)
    };
    let (mut stream, mut reader, first) = ask("/");
    assert_eq!(first, "HTTP/1.1 100 Continue\r\n");
    stream.write_all(b"hello").unwrap();
    assert!(lines(&mut reader).unwrap().starts_with("HTTP/1.1 200"));
    let seen = server.last();
    assert_eq!(seen.body, b"hello");
    assert!(!seen.head.contains("Expect"), "{}", seen.head);
    let (_stream, _reader, first) = ask("/?do=drop");
    assert_eq!(first, "");
    let (_stream, _reader, first) = ask("/a?do=elsewhere");
    assert!(first.starts_with("HTTP/1.1 302"), "{first}");
}

#[test]
fn bodies_are_looked_at_within_limits_and_without_their_codings() {
    let server = Server::start();
    let gate = start(&server, "request_body_max = \"10KB\"", "");
    let post = |host: &str, fields: &str, body: &[u8]| {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nConnection: close\r\n{fields}\r\n",
            body.len()
        );
        let answer = exchange(gate.address, &[head.as_bytes(), body]);
        let answer = String::from_utf8(answer).unwrap();
        (status(&answer).to_owned(), server.last().body == body)
    };
    let long = [b"do=deny&rest=".as_slice(), &b"x".repeat(20_000)].concat();
    assert_eq!(post("a", "", b"do=deny").0, "418");
    assert_eq!(post("a", "", b"do=it"), ("200".to_owned(), true));
    assert_eq!(post("a", "", &long).0, "413");
    assert_eq!(post("detect.example", "", &long), ("200".to_owned(), true));
    let packed = gzip(b"do=deny");
    assert_eq!(post("a", "Content-Encoding: gzip\r\n", &packed).0, "418");
    assert_eq!(
        post("off.example", "Content-Encoding: gzip\r\n", &packed),
        ("200".to_owned(), true)
    );
    assert_eq!(post("a", "Content-Encoding: gzip\r\n", b"do=it").0, "400", "it is not gzip");
}

/// A gzip stream of one stored block (RFC 1951, section 3.2.4; RFC 1952).
fn gzip(text: &[u8]) -> Vec<u8> {
    let mut crc = u32::MAX;
    for byte in text {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let length = u16::try_from(text.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(&(!length).to_le_bytes());
    packed.extend_from_slice(text);
    packed.extend_from_slice(&(!crc).to_le_bytes());
    packed.extend_from_slice(&u32::from(length).to_le_bytes());
    packed
}

#[test]
fn a_reload_under_load_changes_the_rules_and_loses_nothing() {
    let server = Server::start();
    let gate = start(&server, "", "");
    let load = Load::start(gate.address, "/?do=nothing", 8);
    for round in 0..5 {
        load.go_on();
        let rule = format!("SecRule ARGS:round \"@eq {round}\" \"id:1,phase:1,deny,status:410\"\n");
        fs::write(gate.path("own.conf"), format!("{RULES}{rule}")).unwrap();
        gate.order(&["reload"]);
        eventually("the new rules hold", || {
            status(&get(&gate, "a", &format!("/?round={round}"))) == "410"
        });
    }
    fs::write(gate.path("own.conf"), "SecRool ARGS\n").unwrap();
    let said = gate.refused_order(&["reload"]);
    for part in ["there is no directive `SecRool`", "own.conf:1:1", "stays in service"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(status(&get(&gate, "a", "/?round=4")), "410");
    load.go_on();
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn what_matched_is_told() {
    let server = Server::start();
    let logs = "[[log]]\nname = \"waf\"\npath = \"$DIR/waf.log\"\nformat = \"waf\"\n\
        [[log]]\nname = \"access\"\npath = \"$DIR/access.log\"\nformat = \"json\"\n";
    let gate = start(&server, "rule_times = 1", logs);
    get(&gate, "shop.example", "/?do=deny");
    get(&gate, "detect.example", "/?do=deny");
    get(&gate, "shop.example", "/?do=nothing");
    let read = |name: &str| fs::read_to_string(gate.path(name)).unwrap_or_default();
    // Each worker hands over its own lines: those of different connections come in any order.
    let complete =
        || read("access.log").lines().count() == 3 && read("waf.log").lines().count() >= 2;
    eventually("the logs are written", complete);
    let text = read("waf.log");
    assert_eq!(text.lines().count(), 2, "{text}");
    let line = |host: &str| {
        let host = format!("[hostname \"{host}\"]");
        text.lines().find(|line| line.contains(&host)).unwrap_or_else(|| panic!("{host}: {text}"))
    };
    for part in [
        "Stopped with status 418 in phase 2.",
        "[id \"10001\"] [msg \"No deny\"] [data \"deny\"] [severity \"CRITICAL\"] [tag \"own\"]",
        "[uri \"/?do=deny\"]",
    ] {
        let line = line("shop.example");
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(line("detect.example").contains("Would have been stopped."), "{text}");
    let access: Vec<serde_json::Value> =
        read("access.log").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |host: &str, query: &str| {
        let found = access.iter().find(|line| line["host"] == host && line["query"] == query);
        found.unwrap_or_else(|| panic!("{host} {query}: {access:?}"))
    };
    let denied = told("shop.example", "do=deny");
    assert_eq!((&denied["waf_verdict"], &denied["waf_rule"]), (&"deny".into(), &10_001.into()));
    assert_eq!(denied["outcome"], "denied");
    let seen = told("detect.example", "do=deny");
    assert_eq!((&seen["waf_verdict"], &seen["waf_rule"]), (&"would_deny".into(), &10_001.into()));
    assert_eq!(told("shop.example", "do=nothing")["waf_verdict"], "pass");
    let (_, metrics) = gate.ask("GET", "/metrics");
    for part in [
        "tidegate_waf_inspections_total{mode=\"block\",verdict=\"deny\"} 1",
        "tidegate_waf_inspections_total{mode=\"detect\",verdict=\"would_deny\"} 1",
        "tidegate_waf_rule_matches_total{rule=\"10001\"} 2",
        "tidegate_waf_phase_duration_seconds_count{phase=\"1\"} 3",
        "tidegate_waf_rule_seconds_total{rule=\"10001\"} 0.000",
    ] {
        assert!(metrics.contains(part), "{part}: {metrics}");
    }
    let status = gate.status();
    let denied = serde_json::json!({ "mode": "block", "verdict": "deny", "requests": 1 });
    assert!(status["waf"]["inspections"].as_array().unwrap().contains(&denied), "{status}");
    assert_eq!(status["waf"]["rules"][0]["rule"], 10_001, "{status}");
    let shown = gate.order(&["status"]);
    assert!(shown.contains("rule 10001"), "{shown}");
    let slowest = status["waf"]["slowest_rules"].as_array().unwrap();
    assert!(slowest.iter().any(|rule| rule["rule"] == 10_001), "{status}");
    assert!(shown.contains("WAF, slowest rules"), "{shown}");
}

#[test]
fn the_audit_log_holds_what_its_rules_and_its_privacy_say() {
    let server = Server::start();
    let logs = "[[log]]\nname = \"audit\"\npath = \"$DIR/audit.log\"\nformat = \"audit\"\n\
        [[log]]\nname = \"private\"\npath = \"$DIR/private.log\"\nformat = \"audit\"\n\
        client_address = \"drop\"\nquery = \"drop\"\nuser_agent = \"drop\"\n\
        [[log]]\nname = \"access\"\npath = \"$DIR/access.log\"\n";
    let gate = start(&server, "", logs);
    let read = |name: &str| fs::read_to_string(gate.path(name)).unwrap_or_default();
    let ask = |host: &str, body: &str| {
        let request = format!(
            "POST /pay?a=b HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Agent/7\r\n\
             Cookie: session=topsecret\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        exchange(gate.address, &[request.as_bytes()]);
    };
    ask("shop.example", "do=nothing");
    ask("off.example", "do=deny");
    ask("shop.example", "do=deny&password=hunter22");
    ask("detect.example", "do=deny");
    eventually("all requests are logged", || read("access.log").lines().count() == 4);
    eventually("two are audited", || read("audit.log").lines().count() == 2);
    let entries = |name: &str| {
        let text = read(name);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<serde_json::Value>>()
    };
    let find = |name: &str, host: &str| {
        let found = entries(name).into_iter().map(|entry| entry["transaction"].clone());
        let mut found = found.filter(|entry| entry["request"]["headers"]["Host"] == host);
        found.next().unwrap_or_else(|| panic!("{host} in {}", read(name)))
    };
    let denied = find("audit.log", "shop.example");
    assert_eq!(denied["client_ip"], "127.0.0.1");
    assert_eq!(denied["is_interrupted"], true);
    assert_eq!(denied["response"]["http_code"], 418);
    assert_eq!(denied["request"]["uri"], "/pay?a=b");
    assert_eq!(denied["request"]["headers"]["Cookie"], "*".repeat("session=topsecret".len()));
    assert_eq!(denied["request"]["body"], "do=deny&password=********");
    assert_eq!(denied["messages"][0]["details"]["ruleId"], "10001");
    assert_eq!(find("audit.log", "detect.example")["is_interrupted"], false);
    eventually("two are audited privately", || read("private.log").lines().count() == 2);
    let denied = find("private.log", "shop.example");
    assert_eq!(denied["request"]["uri"], "/pay");
    assert_eq!(denied["messages"][0]["details"]["ruleId"], "10001");
    for secret in ["127.0.0.1\",\"time", "Agent/7", "hunter22", "topsecret", "a=b", "do="] {
        assert!(!read("private.log").contains(secret), "{secret} in {}", read("private.log"));
    }

    // The rule set chooses format and parts; a rule may choose for its request.
    let rules = "SecAuditLogFormat Native\nSecAuditLogParts ABHZ\nSecAuditEngine On\n\
        SecRule ARGS:do \"@streq quiet\" \"id:7,phase:2,pass,nolog,ctl:auditEngine=Off\"\n";
    fs::write(gate.path("own.conf"), format!("{RULES}{rules}")).unwrap();
    gate.order(&["reload"]);
    fs::rename(gate.path("audit.log"), gate.path("rotated.log")).unwrap();
    gate.signal(rustix::process::Signal::USR1);
    eventually("the signal has come", || gate.events().contains("opened again"));
    ask("shop.example", "do=quiet");
    ask("shop.example", "do=nothing");
    eventually("all requests are logged", || read("access.log").lines().count() == 6);
    eventually("one is audited", || read("audit.log").ends_with("-Z--\n\n"));
    let text = read("audit.log");
    let letters: String = text
        .lines()
        .filter_map(|line| line.strip_prefix("--")?.strip_suffix("--")?.split('-').nth(1))
        .collect();
    assert_eq!(letters, "ABHZ", "{text}");
    assert!(text.contains("POST /pay?a=b HTTP/1.1\n"), "{text}");
    assert!(!text.contains("quiet") && !text.contains("do=nothing"), "{text}");
    assert_eq!(read("rotated.log").lines().count(), 2);
}

/// What a scanner of uploads is told and says: it rejects what holds a mark, and notes what it saw.
const SCANNER: &str = "#!/bin/sh\n\
    wc -c < \"$1\" >> \"$(dirname \"$0\")/seen\"\n\
    if grep -q EICAR \"$1\"; then echo 0 found something; else echo 1; fi\n";

const UPLOAD_RULES: &str = "\
SecRule FILES_TMPNAMES \"@inspectFile $DIR/scanner\" \
    \"id:10010,phase:2,deny,status:422,log,msg:'Infected'\"\n\
SecRule FILES_TMP_CONTENT \"@contains forbidden words\" \"id:10011,phase:2,deny,status:406,log\"\n\
SecRule REQUEST_URI \"@rbl list.invalid\" \"id:10012,phase:2,deny,status:500,log\"\n";

#[test]
fn uploads_are_shown_to_programs_and_then_removed() {
    use std::os::unix::fs::PermissionsExt as _;

    let server = Server::start();
    let gate = Gate::start(&plain(&server));
    let directory = gate.path("").display().to_string();
    let temporary = gate.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let scanner = gate.path("scanner");
    fs::write(&scanner, SCANNER).unwrap();
    fs::set_permissions(&scanner, fs::Permissions::from_mode(0o755)).unwrap();
    let directory = directory.trim_end_matches('/');
    let rules = format!("SecTmpDir {}\n{UPLOAD_RULES}", temporary.display());
    fs::write(gate.path("own.conf"), rules.replace("$DIR", directory)).unwrap();
    gate.configure(&guarded(&server, "lookup_timeout = \"1s\"", ""));
    gate.order(&["reload"]);

    let upload = |content: &[u8]| {
        let mut body = Vec::new();
        for (name, content) in [("a", b"harmless".as_slice()), ("b", content)] {
            let head = format!(
                "--boundary\r\nContent-Disposition: form-data; name=\"{name}\"; \
                 filename=\"x.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n"
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--boundary--\r\n");
        let head = format!(
            "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\nConnection: close\r\n\
             Content-Type: multipart/form-data; boundary=boundary\r\n\r\n",
            body.len()
        );
        let answer = exchange(gate.address, &[head.as_bytes(), &body]);
        status(&String::from_utf8_lossy(&answer)).to_owned()
    };
    assert_eq!(upload(b"quite harmless"), "200");
    assert_eq!(upload(&noise(1_000_000)), "200");
    assert_eq!(upload(b"..EICAR.."), "422");
    assert_eq!(upload(&[&noise(700_000), b"EICAR".as_slice()].concat()), "422");
    assert_eq!(upload(b"these are forbidden words"), "406");
    let seen = fs::read_to_string(gate.path("seen")).unwrap();
    let seen: Vec<&str> = seen.split_whitespace().collect();
    assert_eq!(seen, ["8", "14", "8", "1000000", "8", "9", "8", "700005", "8", "25"]);
    eventually("nothing is left of them", || fs::read_dir(&temporary).unwrap().count() == 0);
}

#[test]
fn what_the_gate_refuses_itself_is_told_by_rules_and_stays_refused() {
    let server = Server::start();
    let log =
        "[[log]]\nname = \"waf\"\npath = \"$DIR/waf.log\"\nformat = \"waf\"\nflush = \"request\"";
    let gate = start(&server, "", log);
    let told = |target: &str| {
        let text = fs::read_to_string(gate.path("waf.log")).unwrap_or_default();
        text.lines().any(|line| {
            line.contains(&format!("[uri \"{target}\"]"))
                && line.contains("Would have been stopped.")
                && line.contains("[id \"10002\"]")
        })
    };
    for (line, target, expected) in [
        ("GET /1%0A?do=drop HTTP/1.1", "/1%0A?do=drop", "400"),
        ("GET /2?do=drop HTTP/4.0", "/2?do=drop", "505"),
        ("GET /3?do=drop", "/3?do=drop", "400"),
        ("GET  /4?do=drop HTTP/1.1", "/4?do=drop", "400"),
        ("TRACE /5?do=drop HTTP/1.1", "/5?do=drop", "405"),
        (
            "POST /6?do=drop HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "/6?do=drop",
            "400",
        ),
        ("GET /7?do=drop HTTP/1.1\r\nHost: another", "/7?do=drop", "400"),
    ] {
        let answer = exchange(gate.address, &[line.as_bytes(), b"\r\nHost: a\r\n\r\n"]);
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(status(&answer), expected, "{line}: {answer}");
        eventually(target, || told(target));
    }
    let off = exchange(gate.address, &[b"GET /8%0A?do=drop HTTP/1.1\r\nHost: off.example\r\n\r\n"]);
    assert!(off.starts_with(b"HTTP/1.1 400"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let http2 = runtime.block_on(http2(gate.address, "/9%0A?do=drop", &[]));
    assert_eq!(http2, Some(400));
    eventually("HTTP/2 alike", || told("/9%0A?do=drop"));
    assert_eq!(server.count(), 0, "nothing of it goes on");
    assert!(!told("/8%0A?do=drop"));
}

#[test]
fn recorded_requests_get_their_verdict_again_and_tell_no_secret() {
    let server = Server::start();
    let log = "[[log]]\nname = \"requests\"\npath = \"$DIR/requests.log\"\nformat = \"requests\"\n\
        mask = [\"X-Session\", \"iban\"]\nbody_max = \"1KB\"\n";
    let gate = start(&server, "", log);
    let ask = |method: &str, target: &str, fields: &str, body: &[u8]| {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\
             Authorization: Bearer Hush123\r\nCookie: id=Topsecret9\r\nX-Session: quiet77\r\n\
             Content-Length: {}\r\n{fields}\r\n",
            body.len()
        );
        exchange(gate.address, &[head.as_bytes(), body]);
    };
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    ask("GET", "/?do=deny&token=Hush123", "", b"");
    ask("POST", "/pay", form, b"do=deny&iban=DE4711&new_password=Topsecret9");
    ask("POST", "/pay", "Content-Type: application/json\r\n", br#"{"do":"it","iban":"DE4711"}"#);
    ask("POST", "/pay", "Content-Type: text/plain\r\n", b"Hush123");
    ask("POST", "/pay", form, &[b"do=it&x=".as_slice(), &b"y".repeat(5_000)].concat());
    get(&gate, "off.example", "/?do=deny");
    let read = || fs::read_to_string(gate.path("requests.log")).unwrap_or_default();
    eventually("five requests are recorded", || read().lines().count() == 5);
    let text = read();
    for secret in ["Hush123", "Topsecret9", "quiet77", "DE4711", "127.0.0.1"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |what: &dyn Fn(&serde_json::Value) -> bool| {
        records.iter().find(|record| what(record)).unwrap_or_else(|| panic!("{text}"))
    };
    let first = find(&|record| record["method"] == "GET");
    assert_eq!(first["target"], "/?do=deny&token=Xxxx999");
    assert_eq!(first["client"], "127.0.0.0");
    assert_eq!((&first["verdict"], &first["rule"]), (&"deny".into(), &10_001.into()));
    let fields = first["headers"].to_string();
    for field in ["[\"Authorization\",\"Bearer Xxxx999\"]", "\"id=Xxxxxxxxx9\"", "\"xxxxx99\""] {
        assert!(fields.contains(field), "{field} in {fields}");
    }
    find(&|record| record["body"] == "do=deny&iban=XX9999&new_password=Xxxxxxxxx9");
    find(&|record| record["body"] == r#"{"do":"it","iban":"XX9999"}"#);
    find(&|record| record["body_bytes"] == 7 && record["body"].is_null());
    let cut = find(&|record| record["body_bytes"] == 5_008);
    assert_eq!(cut["body"].as_str().unwrap().len(), 1_024);

    // Run again, nothing differs; without the rule, its verdicts do.
    let file = gate.path("requests.log").display().to_string();
    let config = gate.file().display().to_string();
    let next = gate.path("next.toml");
    let rules = fs::read_to_string(gate.file()).unwrap();
    fs::write(&next, rules.replace("[waf]\n", "[waf]\nexclude = [\"10001\"]\n")).unwrap();
    let replay = |new: &str| {
        let output =
            crate::gate::tidegate(&["waf", "replay", &file, "--old", &config, "--new", new])
                .output()
                .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(replay(&config), (Some(0), "5 requests: no verdict differs\n".to_owned()));
    let (status, said) = replay(&next.display().to_string());
    assert_eq!(status, Some(1), "{said}");
    for part in ["5 requests: 2 verdicts differ", "deny 418 -> pass", "10001 No deny"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
