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

/// A gate without rules, for what comes from outside.
fn plain(context: &str) -> Gate {
    let site = "[[site]]\nhost = \"*\"\nanswer = { status = 204 }\n";
    Gate::start(&format!("[context]\n{context}\n{site}"))
}

#[test]
fn an_operator_writes_what_rules_read() {
    let origin = Origin::start("one");
    let gate = start(&origin, "");
    assert_eq!(statuses(&gate, "/a", 1), [200]);
    let shown = gate.order(&["context", "get", "resource", "/a"]);
    assert!(shown.starts_with("hits = 1  (for "), "{shown}");
    gate.order(&["context", "put", "resource", "/a", "Hits", "3", "--ttl", "100"]);
    assert_eq!(statuses(&gate, "/a", 1), [429]);
    let json = gate.order(&["context", "get", "RESOURCE", "/a", "HITS", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["variables"][0]["value"], "4");
    let left = json["variables"][0]["seconds_left"].as_u64().unwrap();
    assert!((1..=100).contains(&left), "{json}");
    gate.order(&["context", "put", "resource", "/a", "why", "\"so\" & 100%"]);
    let (status, list) = gate.ask("GET", "/context/resource?prefix=%2F&format=json");
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((status, &list["variables"][1]["value"]), (200, &"\"so\" & 100%".into()));
    gate.order(&["context", "del", "resource", "/a", "hits"]);
    assert_eq!(statuses(&gate, "/a", 1), [200]);
    assert!(gate.order(&["context", "del", "resource", "/a"]).contains("2 removed"));

    let check = |arguments: &[&str], expected: &str| {
        let said = gate.refused_order(&[&["context"], arguments].concat());
        assert!(said.contains(expected), "{said}");
    };
    check(&["get", "resource", "/a"], "resource has no record `/a`");
    check(&["del", "resource", "/a", "b"], "resource /a has no variable `b`");
    check(&["get", "tx", "a"], "`tx` is not a collection: there are global, ip");
    check(&["put", "ip", "a", "b", "c", "--ttl", "soon"], "a number of seconds");
    let long = "x".repeat(20_000);
    check(&["put", "ip", "a", "b", &long], "`value_max` of [context] allows 16,384 bytes");
    check(&["put", "ip", &long[..2000], "b", "c"], "`key_max` of [context]");
    assert_eq!(gate.ask("POST", "/context/ip/a/b").0, 400);
    let (status, said) = gate.ask("PUT", "/context/ip/a/b?tll=5");
    assert_eq!((status, said.contains("did you mean `ttl`?")), (400, true), "{said}");
    assert_eq!(gate.ask("GET", "/context/ip/a/b").0, 404, "a write that is refused writes nothing");
    let stream = std::os::unix::net::UnixStream::connect(gate.path("admin.sock")).unwrap();
    let (status, _) = crate::gate::ask(stream, "PUT", "/context/ip/a/b", "Host: localhost\r\n");
    assert_eq!(status, 403, "what changes something must say that it is no web page");
}

/// The example of docs/context.md.
const MARKETPLACE: &str = r#"
SecRule REQUEST_COOKIES:customer "@rx ^[a-z0-9-]{1,40}$" \
    "id:2001,phase:1,pass,nolog,setuid:%{MATCHED_VAR}"
SecRule USER:blocked "@unconditionalMatch" \
    "id:2002,phase:1,deny,status:403,msg:'Customer is blocked: %{MATCHED_VAR}'"
SecRule ARGS:item "@rx ^[a-z0-9-]{1,40}$" \
    "id:2003,phase:2,pass,nolog,initcol:resource=%{MATCHED_VAR}"
SecRule ARGS:offer "@lt %{RESOURCE.price}" \
    "id:2004,phase:2,deny,status:409,msg:'Offer below the price'"
SecRule &USER:limit "@eq 1" "id:2005,phase:2,deny,status:403,chain,msg:'Above the limit'"
    SecRule ARGS:offer "@gt %{USER.limit}"
"#;

#[test]
fn a_feed_tells_rules_of_prices_limits_and_blocked_customers() {
    let origin = Origin::start("one");
    let gate = start(&origin, "");
    fs::write(gate.path("own.conf"), MARKETPLACE).unwrap();
    gate.order(&["reload"]);
    let feed = gate.path("feed.csv");
    let tell = |lines: &str| {
        fs::write(&feed, lines).unwrap();
        gate.order(&["context", "load", feed.to_str().unwrap()]);
    };
    tell(
        "resource,item-1,price,1990,600\nuser,c-1,blocked,chargeback,forever\nuser,c-2,limit,5000,60\n",
    );
    let check = |customer: &str, query: &str, expected: u16| {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(gate.address).unwrap();
        write!(
            stream,
            "GET /buy?{query} HTTP/1.1\r\nHost: a\r\nCookie: customer={customer}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected} ")),
            "{customer} {query}: {answer}"
        );
    };
    check("c-1", "item=item-1&offer=2000", 403);
    check("c-2", "item=item-1&offer=1989", 409);
    check("c-2", "item=item-1&offer=1990", 200);
    check("c-2", "item=item-1&offer=5001", 403);
    check("c-3", "item=item-1&offer=5001", 200);
    check("c-3", "item=item-2&offer=1", 200);
    tell("resource,item-1,price,2990,600\nresource,item-2,price,2,600\nuser,c-3,blocked,fraud\n");
    check("c-2", "item=item-1&offer=1990", 409);
    check("c-2", "item=item-2&offer=1", 409);
    check("c-3", "item=item-1&offer=5001", 403);
    gate.order(&["context", "del", "user", "c-3", "blocked"]);
    check("c-3", "item=item-1&offer=5001", 200);
}

#[test]
fn what_is_much_is_shown_in_pages() {
    let gate = plain("");
    let file = gate.path("list");
    // Keys that begin as others do, and one record with more than a page holds.
    let line =
        |number: usize| format!("ip,a{},one,1,forever\nip,a/b,n{number:02},2,60\n", number % 10);
    fs::write(&file, (0..30).map(line).collect::<String>() + "ip,b,one,1\nuser,a,one,1\n").unwrap();
    gate.order(&["context", "load", file.to_str().unwrap()]);
    let read_all = |path: &str| {
        let (mut next, mut seen) = (Some(format!("{path}&format=json")), Vec::new());
        while let Some(path) = next {
            let (status, page) = gate.ask("GET", &path);
            assert_eq!(status, 200, "{path}: {page}");
            let page: serde_json::Value = serde_json::from_str(&page).unwrap();
            let variables = page["variables"].as_array().unwrap();
            assert!((1..=7).contains(&variables.len()), "{path}: {page}");
            seen.extend(variables.iter().map(|variable| {
                let part = |name: &str| variable[name].as_str().unwrap_or_default().to_owned();
                (part("key"), part("name"))
            }));
            next = page["next"].as_str().map(|next| format!("{next}&format=json"));
        }
        seen
    };
    let names = (0..30).map(|number| format!("n{number:02}"));
    let in_record = names.clone().map(|name| (String::new(), name));
    assert_eq!(read_all("/context/ip/a%2Fb?limit=7"), in_record.clone().collect::<Vec<_>>());
    let tens = in_record.filter(|(_, name)| name.starts_with("n1")).collect::<Vec<_>>();
    assert_eq!(read_all("/context/ip/a%2Fb?limit=3&prefix=N1"), tens);
    let keyed = names.map(|name| ("a/b".to_owned(), name));
    let numbered = (0..10).map(|number| (format!("a{number}"), "one".to_owned()));
    let all: Vec<_> = keyed.chain(numbered).collect();
    assert_eq!(read_all("/context/ip?limit=7&prefix=a"), all);
    assert_eq!(read_all("/context/ip?limit=1"), [all, vec![("b".into(), "one".into())]].concat());

    let said = gate.order(&["context", "get", "ip", "--prefix", "a", "--limit", "31"]);
    assert!(said.ends_with("and more, after `a0` `one`\n"), "{said}");
    let said = gate.order(&["context", "get", "ip", "--after", "a8"]);
    assert_eq!(said, "a9  one = 1  (for ever)\nb  one = 1  (for 59 min)\n");
    let said = gate.order(&["context", "get", "ip", "a/b", "--after-name", "n28"]);
    assert!(said.starts_with("n29 = 2  (for ") && said.lines().count() == 1, "{said}");
    let check = |arguments: &[&str], expected: &str| {
        let said = gate.refused_order(&[&["context", "get"], arguments].concat());
        assert!(said.contains(expected), "{said}");
    };
    check(&["ip", "--limit", "100001"], "`limit` must be a number from 1 to 100000");
    check(&["ip", "--after-name", "n"], "`after_name` wants `after`");
    check(&["ip", "a/b", "--prefix", "x"], "ip has no record `a/b`");
}

#[test]
fn a_file_is_loaded_as_a_whole_or_not_at_all() {
    let gate = plain("entries_max = 100_000");
    let file = gate.path("list");
    let path = file.to_str().unwrap();
    let line =
        |number: usize| format!("ip,192.0.{}.{},blocked,1,forever\n", number / 256, number % 256);
    fs::write(&file, (0..50_000).map(line).collect::<String>()).unwrap();
    let said = gate.order(&["context", "load", path]);
    assert!(said.contains("50,000 variables are written, 0 removed"), "{said}");

    let mistakes = "ip,a,b,c\nips,a,b,c\n{\"collection\": \"ip\", \"key\": 1}\n";
    fs::write(&file, mistakes).unwrap();
    let said = gate.refused_order(&["context", "load", path]);
    for expected in [
        format!("{path}:2:1: `ips` is not a collection"),
        format!("{path}:3:1: `name` is missing"),
        "nothing is loaded".into(),
    ] {
        assert!(said.contains(&expected), "{expected}: {said}");
    }
    assert_eq!(number(&gate, "entries"), 50_000);

    fs::write(&file, "ip,a,b,c\nip,192.0.0.7,blocked,2,60\nuser,u,n,1").unwrap();
    let said = gate.order(&["context", "load", path, "--replace", "ip"]);
    assert!(said.contains("3 variables are written, 49,999 removed"), "{said}");
    assert_eq!(number(&gate, "entries"), 3);
    let said = gate.refused_order(&["context", "load", path, "--replace", "tx"]);
    assert!(said.contains("`tx` is not a collection"), "{said}");
    let missing = gate.command(&["context", "load", "/nonexistent"]);
    assert!(!missing.status.success());
    // A file that cannot be read to its end loads nothing.
    let broken = gate.command(&["context", "load", "/proc/self/mem", "--replace", "ip"]);
    assert!(!broken.status.success());
    assert_eq!(number(&gate, "entries"), 3);
}

#[test]
fn changes_are_told_as_they_are_made() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let gate = plain("");
    let mut watcher = crate::gate::tidegate(&["context", "watch", "ip", "192.0.2.", "--config"])
        .arg(gate.file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    // It is not known when it has begun to watch: something is written until it hears of it.
    let stop = std::sync::atomic::AtomicBool::new(false);
    let first = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                gate.order(&["context", "put", "ip", "192.0.2.0", "begin", "x"]);
            }
        });
        let first = lines.next().unwrap().unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        first
    });
    assert!(first.contains("\"begin\""), "{first}");
    gate.order(&["context", "put", "ip", "198.51.100.1", "a", "1"]);
    gate.order(&["context", "put", "user", "192.0.2.1", "a", "1"]);
    gate.order(&["context", "put", "ip", "192.0.2.1", "a", "1"]);
    gate.order(&["context", "del", "ip", "192.0.2.1", "a"]);
    let mut next = || -> serde_json::Value {
        let mut others = lines.by_ref().map(Result::unwrap).filter(|line| !line.contains("begin"));
        serde_json::from_str(&others.next().unwrap()).unwrap()
    };
    let set = next();
    assert_eq!((&set["change"], &set["value"]), (&"set".into(), &"1".into()));
    assert_eq!((&set["key"], &set["by"]), (&"192.0.2.1".into(), &"this".into()));
    assert_eq!(next()["change"], "remove");
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}
