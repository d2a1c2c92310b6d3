//! The suite's files, and one test of it run.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tidegate_waf::inspection::{Evaluation, Inspector, MatchedRule};
use tidegate_waf::program::Policy;

use crate::request::{self, Answer};

/// A test of the suite.
pub(crate) struct Case {
    /// Rule and number, such as `942100-1`.
    pub(crate) name: String,
    stages: Vec<Stage>,
}

#[derive(Deserialize)]
struct File {
    rule_id: u64,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    test_id: u64,
    stages: Vec<Stage>,
}

#[derive(Deserialize)]
struct Stage {
    input: request::Input,
    output: Output,
}

#[derive(Deserialize)]
struct Output {
    status: Option<Value>,
    log: Option<Log>,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    expect_ids: Vec<u64>,
    #[serde(default)]
    no_expect_ids: Vec<u64>,
    match_regex: Option<String>,
    no_match_regex: Option<String>,
}

/// All tests, in the order of their files.
pub(crate) fn cases(place: &Path) -> Vec<Case> {
    let mut files: Vec<_> = fs::read_dir(place)
        .unwrap()
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).into_iter().flatten())
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read(&path).unwrap();
        let Some(file) = serde_norway::from_slice::<Option<File>>(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        else {
            continue;
        };
        for test in file.tests {
            let name = format!("{}-{}", file.rule_id, test.test_id);
            cases.push(Case { name, stages: test.stages });
        }
    }
    cases
}

impl Case {
    /// Runs all stages; what differs from the expectation is the error.
    pub(crate) fn run(
        &self,
        policy: &Arc<Policy>,
        evaluation: Evaluation,
        inspector: &mut Inspector,
    ) -> Result<(), String> {
        for stage in &self.stages {
            let answer = request::send(&stage.input, policy, evaluation, inspector);
            stage.output.judge(&answer)?;
        }
        Ok(())
    }
}

impl Output {
    fn judge(&self, answer: &Answer) -> Result<(), String> {
        if let Some(status) = &self.status {
            // What a server refuses before any rule sees it is the codec's to test.
            if answer.refused {
                return Ok(());
            }
            let _ = status;
        }
        let Some(log) = &self.log else { return Ok(()) };
        let ids: Vec<u64> = answer.matched.iter().map(|matched| matched.rule.id).collect();
        if let Some(missing) = log.expect_ids.iter().find(|id| !ids.contains(id)) {
            return Err(format!("{missing} did not match; {ids:?} did"));
        }
        if let Some(extra) = log.no_expect_ids.iter().find(|id| ids.contains(id)) {
            let about = answer.matched.iter().find(|matched| matched.rule.id == *extra);
            return Err(format!("{extra} matched: {}", about.map(shown).unwrap_or_default()));
        }
        let text: String = answer.matched.iter().map(|matched| shown(matched) + "\n").collect();
        let matches = |source: &str| regex::Regex::new(source).unwrap().is_match(&text);
        if log.match_regex.as_deref().is_some_and(|source| !matches(source)) {
            return Err(format!("no match of {:?} in {text}", log.match_regex));
        }
        if log.no_match_regex.as_deref().is_some_and(matches) {
            return Err(format!("a match of {:?} in {text}", log.no_match_regex));
        }
        Ok(())
    }
}

/// A matched rule as ModSecurity's log words it, which the suite's patterns are written for.
fn shown(matched: &MatchedRule) -> String {
    format!(
        "[id \"{}\"] [msg \"{}\"] [data \"{}\"] {}: {}",
        matched.rule.id,
        line(&matched.message),
        line(&matched.data),
        line(&matched.variable),
        line(&matched.value),
    )
}

fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\r', "\\r").replace('\n', "\\n")
}
