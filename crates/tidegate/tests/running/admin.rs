//! The admin API and its commands.

use std::net::TcpStream;

use crate::client::{Load, get};
use crate::eventually;
use crate::gate::{Gate, ask, free_address, text, tidegate};
use crate::origin::Origin;

fn group(origins: &[&Origin]) -> String {
    let servers: Vec<_> = origins.iter().map(|origin| format!("\"{}\"", origin.address)).collect();
    format!(
        "[group.app]\nservers = [{}]\n[[site]]\nhost = \"*\"\ngroup = \"app\"\n",
        servers.join(", ")
    )
}

#[test]
fn servers_are_drained_added_and_removed_under_load() {
    let origins = [Origin::start("one"), Origin::start("two"), Origin::start("three")];
    let [one, two, three] = &origins;
    let name = |origin: &Origin| origin.address.to_string();
    let gate = Gate::start(&group(&[one, two]));
    let load = Load::start(gate.address, "/", 6);
    load.go_on();

    gate.order(&["server", "drain", "app", &name(one)]);
    load.go_on();
    let drained = one.served();
    load.go_on();
    assert_eq!(one.served(), drained);
    assert_eq!(gate.server(&name(one))["state"], "draining");
    let status = gate.order(&["status"]);
    assert!(status.contains(&format!("app: draining: {}", name(one))), "{status}");

    gate.order(&["server", "add", "app", &name(three), "--weight", "2"]);
    eventually("the added server is asked", || three.served() > 0);
    assert_eq!(gate.server(&name(three))["weight"], 2);

    gate.order(&["server", "remove", "app", &name(two)]);
    load.go_on();
    let removed = two.served();
    load.go_on();
    assert_eq!(two.served(), removed);

    gate.order(&["server", "undrain", "app", &name(one)]);
    eventually("the server is asked again", || one.served() > drained);
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_done_to_a_server_is_said() {
    let origin = Origin::start("one");
    let gate = Gate::start(&group(&[&origin]));
    let here = origin.address.to_string();
    let check = |arguments: &[&str], expected: &str| {
        let said = gate.refused_order(arguments);
        assert!(said.contains(expected), "{expected}: {said}");
    };
    check(&["server", "drain", "nobody", &here], "there is no group `nobody`; there are: app");
    check(&["server", "drain", "app", "192.0.2.1:1"], &format!("the group has {here}"));
    check(&["server", "add", "app", &here], "in the group already");
    check(&["server", "add", "app", "example.org:80"], "is not a server");
    check(&["server", "add", "app", "192.0.2.1:1", "--weight", "0"], "`weight` is 1 to 1000");
    assert_eq!(get(gate.address, "/").body, "one");
}

#[test]
fn pages_are_for_people_and_programs() {
    let origin = Origin::start("one");
    let gate = Gate::start(&group(&[&origin]));
    get(gate.address, "/");
    let check = |path: &str, expected: &[&str]| {
        let (status, body) = gate.ask("GET", path);
        assert_eq!(status, 200, "{path}");
        for part in expected {
            assert!(body.contains(part), "{path}: {part}: {body}");
        }
    };
    check("/", &["POST /reload"]);
    check("/healthz", &["serving"]);
    check("/status", &["tidegate ", "serving", "client connections", "all well"]);
    check("/lb-status", &["app", &origin.address.to_string(), "up"]);
    check("/lb-status?format=json", &["\"state\": \"up\"", "\"in_flight\": 0"]);
    check("/plan", &["plan 1: 1 site, 1 route, 1 group, 1 listener", "-> app"]);
    check("/plan?format=json", &["\"action\": \"-> app\""]);
    check("/metrics", &["# TYPE tidegate_requests_total counter", "class=\"2xx\"} 1"]);
    assert_eq!(gate.ask("GET", "/nothing").0, 404);
    assert_eq!(gate.ask("POST", "/status").0, 405);
    assert_eq!(gate.ask("GET", "/reload").0, 405);
    let json = gate.order(&["status", "--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
}

#[test]
fn a_web_page_cannot_use_the_listener() {
    let admin = free_address();
    let gate = Gate::start(
        "[[site]]\nhost = \"*\"\nredirect = { status = 302, to = \"https://other.example/\" }\n",
    );
    gate.configure(
        "[[site]]\nhost = \"*\"\nredirect = { status = 302, to = \"https://other.example/\" }\n",
    );
    let file = std::fs::read_to_string(gate.file()).unwrap();
    let socket = format!("unix:{}", gate.path("admin.sock").display());
    std::fs::write(gate.file(), file.replace(&socket, &admin.to_string())).unwrap();
    let said = gate.order_at(&socket, &["reload"]);
    assert!(said.contains("the admin listener stays at"), "{said}");
    gate.order_at(&socket, &["upgrade"]);
    let check = |method: &str, path: &str, fields: &str, expected: u16| {
        let stream = TcpStream::connect(admin).unwrap();
        let (status, body) = ask(stream, method, path, fields);
        assert_eq!(status, expected, "{method} {path} {fields}: {body}");
    };
    check("GET", "/status", "Host: localhost:9180\r\n", 200);
    check("GET", "/status", "Host: rebound.example\r\n", 403);
    check("POST", "/reload", "Host: localhost\r\nOrigin: http://evil.example\r\n", 403);
    check("POST", "/reload", "Host: localhost\r\nTidegate-Client: test\r\n", 200);
    let client = "Host: localhost\r\nTidegate-Client: test\r\n";
    check("POST", "/upgrade?binary=%2Fbin%2Ftrue", client, 403);
    check("GET", "/healthz", "Host: rebound.example\r\n", 200);
}

#[test]
fn a_token_is_wanted_where_there_is_one() {
    let site =
        "[[site]]\nhost = \"*\"\nredirect = { status = 302, to = \"https://other.example/\" }\n";
    let token = "a-token-of-some-length";
    let gate = Gate::start(site);
    let file = std::fs::read_to_string(gate.file()).unwrap();
    let with_token = file.replace("[[listen]]", &format!("token = \"{token}\"\n[[listen]]"));
    std::fs::write(gate.file(), with_token).unwrap();
    // The file has the token already, and a gate that wants none does not mind.
    gate.order(&["reload"]);
    assert_eq!(gate.ask("GET", "/status").0, 401);
    assert_eq!(gate.ask("POST", "/reload").0, 401);
    assert_eq!(gate.ask("GET", "/healthz").0, 200);
    gate.order(&["status"]);
    let socket = format!("unix:{}", gate.path("admin.sock").display());
    let without = tidegate(&["status", "--admin", &socket]).output().unwrap();
    assert_eq!(without.status.code(), Some(1), "{}", text(&without));
    let mut with = tidegate(&["status", "--admin", &socket]);
    let with = with.env("TIDEGATE_ADMIN_TOKEN", token).output().unwrap();
    assert!(with.status.success(), "{}", text(&with));
}

#[test]
fn a_gate_that_does_not_run_is_told_from_one_that_refuses() {
    let address = free_address().to_string();
    let output = tidegate(&["reload", "--admin", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output).contains(&format!("no gate answers at {address}")), "{}", text(&output));
}
