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
fn every_kind_of_mistake_has_a_case() {
    // A limit on 20,000 files needs 20,000 files; the rest needs what a test cannot make everywhere.
    const WITHOUT: [&str; 0] = [];
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
    let missing: Vec<&str> =
        codes.filter(|code| !covered.contains(*code) && !WITHOUT.contains(code)).collect();
    assert!(missing.is_empty(), "no case shows {missing:?}");
}

#[test]
fn generated_documents_are_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut failures = Vec::new();
    for (flag, file) in
        [("--markdown", "configuration.md"), ("--schema", "tidegate.schema.json")]
    {
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

#[test]
fn the_commented_file_is_a_file_of_comments() {
    let output = tidegate(&["config", "--toml"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')));
    assert!(text.contains("# first_byte_timeout = \"60s\""));
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
