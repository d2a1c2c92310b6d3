//! What `tidegate waf test` and `tidegate waf replay` say, word for word.
//!
//! Each case's output stands in `tests/trying/NAME.txt`; `UPDATE=1 cargo test -p tidegate --test
//! trying` writes these files anew.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trying")
}

fn tidegate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).current_dir(folder()).env_clear().output().unwrap()
}

/// Standard error, standard output and exit status, as a terminal would show them.
fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let status = output.status.code().unwrap();
    format!("{}{}exit status {status}\n", text(&output.stderr), text(&output.stdout))
}

#[test]
fn requests_are_tried_on_the_rules_of_their_route() {
    let test = |arguments: &[&str]| {
        shown(&tidegate(&[&["waf", "test", "--config=gate.toml"], arguments].concat()))
    };
    let cases: &[(&str, &[&str])] = &[
        ("passes", &["http://shop.example/find?q=blue+shoes"]),
        ("scores", &["https://shop.example/find?q=1%27%20OR%201%3d1--%20&x=%3CScript"]),
        ("form", &["http://shop.example/", "--data", "a=<script>&b=<script>&a=union select --"]),
        ("json", &["json.http"]),
        ("multipart", &["multipart.http"]),
        ("chain", &["POST", "http://shop.example/", "--data", "hour=23"]),
        ("detect", &["http://detect.example/?teapot=yes", "-H", "Cookie: a=b"]),
        ("challenge", &["http://odd.example/?q=a--"]),
        ("drop", &["http://shop.example/?gone=yes"]),
        ("response", &["get.http", "--response", "passwd.http"]),
        ("all", &["http://shop.example/?q=a%1b%0a", "--all"]),
        ("off", &["http://off.example/?teapot=yes"]),
        ("method", &["DELETE", "http://secure.example/"]),
        ("no-site", &["http://other.example/"]),
        ("as-json", &["http://shop.example/?q=%3CSCRIPT%ff", "--json"]),
        ("no-file", &["missing.http"]),
        ("no-request", &["gate.toml"]),
        ("field-with-file", &["json.http", "-H", "A: b"]),
    ];
    compare(cases.iter().map(|(name, arguments)| (*name, test(arguments))));
}

#[test]
fn recorded_requests_tell_what_other_rules_make_of_them() {
    let replay = |arguments: &[&str]| {
        shown(&tidegate(&[&["waf", "replay", "--old=gate.toml"], arguments].concat()))
    };
    let cases: &[(&str, &[&str])] = &[
        ("replay", &["requests.log", "--new=next.toml"]),
        ("replay-as-json", &["requests.log", "--new=next.toml", "--json"]),
        ("replay-same", &["requests.log", "--new=gate.toml"]),
        ("replay-no-file", &["missing.log", "--new=next.toml"]),
        ("replay-no-config", &["requests.log", "--new=missing.toml"]),
    ];
    compare(cases.iter().map(|(name, arguments)| (*name, replay(arguments))));
    let test = |id: &str| {
        shown(&tidegate(&["waf", "test", "--config=next.toml", "requests.log", "--id", id]))
    };
    compare([("recorded", test("0000000000000003")), ("recorded-elsewhere", test("no-such-id"))]);
}

/// Compares what was said with what is on file.
fn compare(cases: impl IntoIterator<Item = (&'static str, String)>) {
    let mut failures = Vec::new();
    for (name, found) in cases {
        // JSON, and diagnostics of a configuration, know no width.
        let is_ours = |line: &&str| !line.contains('{') && !line.starts_with("error[");
        let long = found.lines().filter(is_ours).find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{name} is wider than a terminal");
        let path = folder().join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &found).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != found {
            failures
                .push(format!("{} is not current; UPDATE=1 writes it\n{found}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
