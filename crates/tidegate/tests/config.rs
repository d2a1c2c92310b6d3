//! What `tidegate check` and `tidegate config` say, word for word.
//!
//! Each `tests/config/NAME.toml` is checked by the program itself, and what it prints stands in
//! `NAME.txt` beside it. `UPDATE=1 cargo test -p tidegate --test config` writes these files and the
//! generated documents anew; what changed is then read as any other change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The value of `TEST_TOKEN`; it must never be printed.
const SECRET: &str = "not-to-be-shown-0123456789";
/// The value of `TEST_KEY`, a key for hashed addresses.
const KEY: &str = "00112233445566778899aabbccddeeff";

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config")
}

fn tidegate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .current_dir(cases())
        .env_clear()
        .env("TEST_TOKEN", SECRET)
        .env("TEST_KEY", KEY)
        .env("TEST_NUMBER", "lots")
        .output()
        .expect("the program runs")
}

/// Standard error, standard output and exit status, as a terminal would show them.
fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let status = output.status.code().expect("it ends by itself");
    format!("{}{}exit status {status}\n", text(&output.stderr), text(&output.stdout))
}

fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Compares with a file, or writes it.
fn compare(path: &Path, found: &str) -> Result<(), String> {
    if is_update() {
        std::fs::write(path, found).expect("the file is written");
        return Ok(());
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    Err(format!(
        "{} is not current; UPDATE=1 writes it\n--- expected\n{expected}--- found\n{found}",
        path.display()
    ))
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(cases())
        .expect("the cases are there")
        .filter_map(|entry| {
            let name = entry.expect("it can be listed").file_name().into_string().expect("ASCII");
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

#[test]
fn mistakes_are_told_as_they_should_be() {
    use std::os::unix::fs::PermissionsExt as _;
    // What git does not keep, and a warning depends on.
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(cases().join("secret-in-file.toml"), readable).expect("own file");
    let names = names();
    assert!(names.len() >= 60, "only {} cases", names.len());
    let mut failures = Vec::new();
    for name in &names {
        let found = shown(&tidegate(&["check", &format!("{name}.toml")]));
        assert!(!found.contains(SECRET) && !found.contains(KEY), "{name} shows a secret:\n{found}");
        if let Err(failure) = compare(&cases().join(format!("{name}.txt")), &found) {
            failures.push(failure);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn explanations_are_told_as_they_should_be() {
    let cases: [(&str, &[&str]); 11] = [
        (
            "group",
            &[
                "GET",
                "https://www.example.org/api/users?page=2",
                "--from=10.1.2.3",
                "-HX-Forwarded-For: 203.0.113.9",
                "-HCookie: session=1",
                "-HUpgrade: h2c",
            ],
        ),
        ("short-upstream", &["GET", "https://shop.example.org/"]),
        ("https-redirect", &["GET", "http://example.org/x", "--from=192.0.2.1"]),
        ("canonical-host", &["GET", "https://example.org/"]),
        ("answer", &["GET", "https://www.example.org/robots.txt"]),
        ("redirect", &["POST", "https://www.example.org/old/a/../b?x"]),
        ("no-listener-no-site", &["GET", "http://nowhere.org:81/"]),
        ("method-falls-through", &["DELETE", "https://www.example.org/form"]),
        ("method-not-allowed", &["PUT", "https://secret.example.org/"]),
        ("secret-in-field", &["POST", "https://secret.example.org/"]),
        ("climbing-path", &["GET", "https://www.example.org/../etc/passwd"]),
    ];
    let mut failures = Vec::new();
    for (name, request) in cases {
        let found = shown(&tidegate(&[&["explain", "--config=good.toml"], request].concat()));
        assert!(!found.contains(SECRET), "{name} shows a secret:\n{found}");
        let path = cases_of_explain().join(format!("{name}.txt"));
        failures.extend(compare(&path, &found).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    let status = |arguments: &[&str]| tidegate(arguments).status.code();
    assert_eq!(status(&["explain", "get", "http://example.org/", "-cgood.toml"]), Some(2));
    assert_eq!(status(&["explain", "GET", "http://example.org/", "-csyntax.toml"]), Some(1));
}

fn cases_of_explain() -> PathBuf {
    cases().join("explain")
}

#[test]
fn every_kind_of_mistake_has_a_case() {
    let mut covered = BTreeSet::new();
    for name in names() {
        let text = std::fs::read_to_string(cases().join(format!("{name}.txt"))).unwrap_or_default();
        for line in text.lines() {
            let code = line.strip_prefix("error[").or(line.strip_prefix("warning["));
            covered.extend(code.and_then(|rest| rest.split(' ').next()).map(str::to_owned));
        }
    }
    let reference = shown(&tidegate(&["config", "--markdown"]));
    let codes = reference.lines().filter_map(|line| {
        let code = line.strip_prefix("| ")?.split(' ').next()?;
        let is_code = code.len() == 4 && code.starts_with(['E', 'W']);
        is_code.then_some(code)
    });
    let missing: Vec<&str> = codes.filter(|code| !covered.contains(*code)).collect();
    assert!(missing.is_empty(), "no case shows {missing:?}");
}

#[test]
fn generated_documents_are_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut failures = Vec::new();
    for (flag, file) in [("--markdown", "configuration.md"), ("--schema", "tidegate.schema.json")] {
        let output = tidegate(&["config", flag]);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let path = docs.join(file);
        if is_update() {
            std::fs::write(&path, text).expect("the document is written");
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            failures.push(file);
        }
    }
    assert!(failures.is_empty(), "UPDATE=1 writes {failures:?} anew");
}

/// Kinds of mistakes that a text which shows something must not have. It may name files, groups and
/// variables that are not there.
const SHOWS_WRONG: [&str; 9] =
    ["E001", "E011", "E012", "E013", "E014", "E016", "E017", "E050", "E064"];

fn assert_shows_nothing_wrong(text: &str) {
    use std::io::Write as _;
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("it is written");
    let path = file.path().to_str().expect("UTF-8");
    let found = shown(&tidegate(&["check", path]));
    for code in SHOWS_WRONG {
        assert!(!found.contains(&format!("error[{code}")), "{text}\n{found}");
    }
}

#[test]
fn the_commented_file_holds_every_option() {
    let output = tidegate(&["config", "--toml"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')));
    assert!(text.contains("# first_byte_timeout = \"60s\""));
    let is_toml = |line: &&str| {
        let key = line.split(" = ").next().unwrap_or_default();
        line.starts_with('[') && line.ends_with(']')
            || line.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
    let uncommented = lines.filter(is_toml).collect::<Vec<_>>().join("\n");
    assert!(uncommented.contains("[[site.route]]\npath = "), "{uncommented}");
    assert_shows_nothing_wrong(&uncommented);
}

#[test]
fn documents_show_what_can_be_written() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for name in ["guide-configuration.md", "upstreams.md"] {
        let text = std::fs::read_to_string(docs.join(name)).expect("the document is there");
        let blocks: Vec<&str> = text.split("```toml\n").skip(1).collect();
        assert!(!blocks.is_empty(), "{name} shows nothing");
        for block in blocks {
            assert_shows_nothing_wrong(block.split("```").next().unwrap_or_default());
        }
    }
}

#[test]
fn one_entry_can_be_asked_for() {
    let check = |name: &str, status: i32, expected: &str| {
        let output = tidegate(&["config", name]);
        let found = shown(&output);
        assert_eq!(output.status.code(), Some(status), "{name}: {found}");
        assert!(found.contains(expected), "{name}: {found}");
    };
    check("idle_timeout", 0, "Between two requests");
    check("[[site.route]]", 0, "strip_prefix");
    check("site.route.path", 0, "everything below it");
    check("E062", 0, "route-conflict");
    check("idle_timout", 1, "did you mean `idle_timeout`?");
}

#[test]
fn warnings_fail_only_where_that_is_wanted() {
    let status = |arguments: &[&str]| tidegate(arguments).status.code();
    assert_eq!(status(&["check", "verify-off.toml"]), Some(0));
    assert_eq!(status(&["check", "--strict", "verify-off.toml"]), Some(1));
    assert_eq!(status(&["check", "--strict", "good.toml"]), Some(0));
    assert_eq!(status(&["check", "--no-such-flag"]), Some(2));
}

#[test]
fn machines_get_json() {
    let output = tidegate(&["check", "--json", "unknown-option.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["ok"], false);
    let first = &report["diagnostics"][0];
    assert_eq!(first["code"], "E011");
    assert_eq!(first["place"]["file"], "unknown-option.toml");
    assert_eq!(first["place"]["line"], 3);
    assert_eq!(first["place"]["column"], 1);
}
