//! Reloads: all of a configuration or nothing of it.

use std::fs;
use std::net::TcpStream;

use rustix::process::Signal;

use crate::client::{Connection, Load, get};
use crate::eventually;
use crate::gate::{Gate, free_address};
use crate::origin::Origin;

fn answer(body: &str) -> String {
    format!(
        "[[site]]\nhost = \"*\"\n[[site.route]]\npath = \"/\"\n\
         answer = {{ status = 200, body = \"{body}\" }}\n"
    )
}

#[test]
fn a_reload_serves_the_new_plan_on_old_connections_too() {
    let gate = Gate::start(&answer("one"));
    let mut kept = Connection::open(gate.address).unwrap();
    assert_eq!(kept.get("/").unwrap().body, "one");
    gate.configure(&answer("two"));
    let said = gate.order(&["reload"]);
    assert!(said.contains("plan 2 is in service: 1 site, 1 route"), "{said}");
    eventually("the kept connection sees the new plan", || kept.get("/").unwrap().body == "two");
    assert_eq!(get(gate.address, "/").body, "two");
    gate.configure(&answer("three"));
    gate.signal(Signal::HUP);
    eventually("SIGHUP reloads", || get(gate.address, "/").body == "three");
    assert_eq!(gate.status()["plan"]["generation"], 3);
}

#[test]
fn a_broken_file_changes_nothing_and_is_told_of() {
    let gate = Gate::start(&answer("one"));
    gate.configure(&answer("two").replace("answer", "anwser"));
    let said = gate.refused_order(&["reload"]);
    for part in ["anwser", "did you mean `answer`?", "not reloaded: plan 1 stays in service"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(get(gate.address, "/").body, "one");
    let status = gate.status();
    assert_eq!(status["reloads"]["refused"], 1);
    let troubles = status["troubles"].to_string();
    assert!(troubles.contains("the last reload, "), "{troubles}");
    let (_, metrics) = gate.ask("GET", "/metrics");
    assert!(metrics.contains("tidegate_reloads_total{result=\"refused\"} 1"), "{metrics}");
    assert!(gate.events().contains("anwser"), "{}", gate.events());
    gate.configure(&answer("three"));
    gate.order(&["reload"]);
    assert_eq!(gate.status()["troubles"].as_array().unwrap().len(), 0);
}

#[test]
fn requests_under_way_end_under_their_plan() {
    let (old, new) = (Origin::start("old"), Origin::start("new"));
    let site =
        |origin: &Origin| format!("[[site]]\nhost = \"*\"\nupstream = \"{}\"\n", origin.address);
    let gate = Gate::start(&site(&old));
    let mut slow = Connection::open(gate.address).unwrap();
    slow.send("/wait/600").unwrap();
    eventually("the old origin has the request", || old.served() == 1);
    gate.configure(&site(&new));
    gate.order(&["reload"]);
    assert_eq!(get(gate.address, "/").body, "new");
    assert_eq!(slow.receive().unwrap().body, "old");
    assert_eq!(slow.get("/").unwrap().body, "new");
}

#[test]
fn listeners_come_and_go_and_one_that_cannot_changes_nothing() {
    let (first, taken) = (free_address(), Gate::start(&answer("other")));
    let listen = |address| format!("[[listen]]\naddress = \"{address}\"\n");
    let gate = Gate::start(&answer("one"));
    gate.configure(&(listen(first) + &answer("two")));
    gate.order(&["reload"]);
    assert_eq!(get(first, "/").body, "two");
    gate.configure(&(listen(taken.address) + &answer("three")));
    let said = gate.refused_order(&["reload"]);
    assert!(said.contains(&format!("cannot listen on {}", taken.address)), "{said}");
    assert_eq!(get(first, "/").body, "two");
    assert_eq!(get(taken.address, "/").body, "other");
    gate.configure(&answer("four"));
    gate.order(&["reload"]);
    eventually("the listener is gone", || TcpStream::connect(first).is_err());
    assert_eq!(get(gate.address, "/").body, "four");
}

#[test]
fn what_a_reload_cannot_change_is_said() {
    let gate = Gate::start(&answer("one"));
    gate.configure_with("workers = 3", &answer("two"));
    let said = gate.order(&["reload"]);
    assert!(said.contains("`workers` stays at 2"), "{said}");
    assert_eq!(get(gate.address, "/").body, "two");
    assert_eq!(gate.status()["workers"].as_array().unwrap().len(), 2);
}

#[test]
fn reloads_under_load_fail_no_request() {
    let origin = Origin::start("one");
    let site = |number: usize| {
        format!(
            "[[site]]\nhost = \"*\"\nname = \"site-{}\"\nupstream = \"{}\"\n",
            number % 2,
            origin.address
        )
    };
    let gate = Gate::start(&site(0));
    let load = Load::start(gate.address, "/", 6);
    for number in 1..=10 {
        load.go_on();
        gate.configure(&site(number));
        gate.order(&["reload"]);
    }
    load.go_on();
    assert_eq!(load.end(), Vec::<String>::new());
}

#[test]
fn renewed_certificates_are_taken_without_a_reload() {
    let tls = "[[listen]]\naddress = \"$TLS\"\n[listen.tls]\n\
               certificates = [{ chain = \"$DIR/chain.pem\", key = \"$DIR/key.pem\" }]\n";
    let gate = Gate::start(&answer("one"));
    let write = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        fs::write(gate.path("chain.pem"), made.cert.pem()).unwrap();
        fs::write(gate.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    };
    write("old.example");
    gate.configure(&(tls.replace("$TLS", &free_address().to_string()) + &answer("two")));
    gate.order(&["reload"]);
    let names = || gate.status()["certificates"][0]["names"][0].clone();
    assert_eq!(names(), "old.example");
    // What is being edited is not taken along.
    gate.configure(&answer("half an edit"));
    write("new.example");
    eventually("the new certificate is in service", || names() == "new.example");
    assert_eq!(get(gate.address, "/").body, "two");
}
