//! The Core Rule Set's own regression tests, offline: rules and tests come from the Go module
//! `github.com/corazawaf/coraza-coreruleset`, requests go straight to the engine.
//!
//! The place of the module is `TIDEGATE_CRS`, or what `go mod download` says. Where neither is to be
//! had, the test says so and passes.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod request;
mod suite;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use tidegate_waf::inspection::{Evaluation, Inspector, Mode};
use tidegate_waf::program::{Program, compile, compile_policy};
use tidegate_waf::seclang::{Disk, Entry, parse};

const MODULE: &str = "github.com/corazawaf/coraza-coreruleset/v4@v4.25.0";

/// What the suite asks of the rule set's configuration: the highest paranoia level, limits low enough
/// to be reached, and a way to mark a test's requests.
const SETUP: &str = r#"
SecAction "id:900005,phase:1,nolog,pass,ctl:ruleEngine=DetectionOnly,ctl:ruleRemoveById=910000,\
    setvar:tx.blocking_paranoia_level=4,setvar:tx.crs_validate_utf8_encoding=1,\
    setvar:tx.arg_name_length=100,setvar:tx.arg_length=400,setvar:tx.total_arg_length=64000,\
    setvar:tx.max_num_args=255,setvar:tx.max_file_size=64100,setvar:tx.combined_file_sizes=65535"
"#;

fn module() -> Option<PathBuf> {
    if let Some(place) = std::env::var_os("TIDEGATE_CRS") {
        return Some(place.into());
    }
    let output = Command::new("go").args(["mod", "download", "-json", MODULE]).output().ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(answer.get("Dir")?.as_str()?.into())
}

fn program(place: &std::path::Path) -> Arc<Program> {
    let rules = place.join("rules");
    let text = format!(
        "Include {rules}/@coraza.conf-recommended\nInclude {rules}/@crs-setup.conf.example\n{SETUP}\n\
         Include {rules}/@owasp_crs/*.conf\n",
        rules = rules.display()
    );
    let files = Disk::default();
    let entry = Entry::Text { path: "tests.conf", text: text.as_bytes() };
    let (document, _) = parse(&files, entry).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let compiled = compile(&document, &files).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    Arc::new(compiled.program)
}

#[test]
fn the_core_rule_set_passes_its_own_tests() {
    let Some(place) = module() else {
        println!("skipped: {MODULE} is not here and `go mod download` cannot bring it");
        return;
    };
    let program = program(&place);
    let policy = Arc::new(compile_policy(&program, Mode::Block, "", "tests").unwrap());
    let mut inspector = Inspector::new();
    let only = std::env::var("CRS_ONLY").ok();
    let (mut passed, mut failed) = (0, BTreeMap::new());
    for case in suite::cases(&place.join("tests")) {
        if only.as_ref().is_some_and(|only| !case.name.starts_with(only.as_str())) {
            continue;
        }
        for evaluation in [Evaluation::Prefiltered, Evaluation::Plain] {
            match case.run(&policy, evaluation, &mut inspector) {
                Ok(()) => passed += 1,
                Err(why) => {
                    failed.insert(format!("{} {evaluation:?}", case.name), why);
                }
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    for (name, why) in &failed {
        println!("{name}: {why}");
    }
    assert!(failed.is_empty(), "{} of the suite's tests fail", failed.len());
    assert!(passed > 0, "the suite is empty");
}
