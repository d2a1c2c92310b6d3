//! Collections that outlive a transaction.

use tidegate_waf::context::{self, Collection, Record};

use super::*;

fn after(rules: &str, requests: &[(&str, u64)]) -> Vec<Vec<u64>> {
    let policy = policy(rules);
    let context = Context::in_memory(&context::Settings::default());
    let way = Way { evaluation: Evaluation::Prefiltered, work: Work::UNBOUNDED };
    requests
        .iter()
        .map(|(target, seconds)| {
            send(&policy, &get(target), Some(&context), MORNING_MS + seconds * 1000, &way).ids
        })
        .collect()
}

#[test]
fn an_address_is_counted_and_forgotten() {
    let rules = "SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{REMOTE_ADDR}\"\n\
                 SecAction \"id:2,phase:1,pass,nolog,setvar:ip.hits=+1,expirevar:ip.hits=60\"\n\
                 SecRule IP:hits \"@ge 3\" \"id:3,phase:1,pass\"";
    let ids = after(rules, &[("/", 0), ("/", 1), ("/", 2), ("/", 100)]);
    assert_eq!(ids, [vec![1, 2], vec![1, 2], vec![1, 2, 3], vec![1, 2]]);
}

#[test]
fn a_session_is_opened_by_its_key() {
    let rules = "SecRule ARGS:sid \"@rx .\" \"id:1,phase:1,pass,setsid:%{MATCHED_VAR}\"\n\
                 SecRule ARGS:mark \"@streq 1\" \"id:2,phase:1,pass,setvar:session.mark=yes\"\n\
                 SecRule SESSION:mark \"@streq yes\" \"id:3,phase:1,pass,logdata:'%{SESSION.mark} %{SESSIONID}'\"";
    let ids = after(rules, &[("/?sid=a&mark=1", 0), ("/?sid=a", 1), ("/?sid=b", 2), ("/", 3)]);
    assert_eq!(ids, [vec![1, 2, 3], vec![1, 3], vec![1], vec![]]);
}

#[test]
fn without_a_key_nothing_is_kept() {
    let rules = "SecAction \"id:1,phase:1,pass,setvar:ip.x=1\"\nSecRule &IP \"@eq 0\" \"id:2,phase:1,pass\"";
    assert_eq!(after(rules, &[("/", 0)]), [vec![1, 2]]);
}

#[test]
fn values_are_removed_and_fall_with_time() {
    let rules = "SecAction \"id:1,phase:1,pass,nolog,initcol:global=global\"\n\
                 SecRule ARGS:set \"@rx .\" \"id:2,phase:1,pass,setvar:global.score=10\"\n\
                 SecRule ARGS:del \"@rx .\" \"id:3,phase:1,pass,setvar:!global.score\"\n\
                 SecAction \"id:4,phase:1,pass,nolog,deprecatevar:global.score=2/10\"\n\
                 SecRule GLOBAL:score \"@ge 7\" \"id:5,phase:1,pass\"";
    let ids =
        after(rules, &[("/?set=1", 0), ("/", 12), ("/", 25), ("/?set=1", 30), ("/?del=1", 31)]);
    assert_eq!(ids, [vec![1, 2, 4, 5], vec![1, 4, 5], vec![1, 4], vec![1, 2, 4, 5], vec![1, 3, 4]]);
}

#[test]
fn a_glance_says_what_a_look_says() {
    // A second target that is not there makes a rule look at a list of values; else the value is
    // looked at where it is kept. Both must agree, whatever is kept and asked.
    let values = ["", "0", "7", "-7", "007", "abc", "Abc", &"x".repeat(300), "9223372036854775807"];
    let operators = [
        "@streq 7",
        "@streq abc",
        "@streq %{ARGS.a}",
        "@contains b",
        "@within abc 7",
        "@beginsWith a",
        "@endsWith 7",
        "@eq 7",
        "@ge 1",
        "@lt 0",
        "@gt %{ARGS.a}",
        "@rx ^[0-9]+$",
        "@pm abc x",
        "@unconditionalMatch",
        "@noMatch",
        "@ipMatch 10.0.0.0/8",
    ];
    let targets = [
        ("user:V", "USER:absent", ""),
        ("&USER:v", "ARGS:absent", ""),
        ("USER:v", "USER:absent", ",t:lowercase"),
        ("USER:v", "USER:absent", ",multiMatch,t:trim"),
    ];
    let mut rules: Vec<String> = Vec::new();
    for operator in operators {
        for not in ["", "!"] {
            for (target, absent, actions) in targets {
                for target in [target.to_owned(), format!("{target}|{absent}")] {
                    let id = 100 + rules.len();
                    rules.push(format!(
                        "SecRule {target} \"{not}{operator}\" \"id:{id},phase:1,pass,nolog{actions}\""
                    ));
                }
            }
        }
    }
    let policy = policy(&format!(
        "SecRule ARGS:key \"@rx .\" \"id:1,phase:1,pass,nolog,setuid:%{{MATCHED_VAR}}\"\n{}",
        rules.join("\n")
    ));
    let context = Context::in_memory(&context::Settings::default());
    for value in values {
        let record = Record::new(Collection::User, value.as_bytes());
        context.set(record, b"v", value.as_bytes(), MORNING_MS).unwrap();
    }
    let mut matched = 0;
    for evaluation in [Evaluation::Prefiltered, Evaluation::Plain] {
        let way = Way { evaluation, work: Work::UNBOUNDED };
        for key in values.iter().copied().chain(["nobody"]) {
            let target = format!("/?a=7&key={key}");
            let ids = send(&policy, &get(&target), Some(&context), MORNING_MS, &way).ids;
            for (pair, id) in rules.chunks(2).zip((100..).step_by(2)) {
                let (glance, look) = (ids.contains(&id), ids.contains(&(id + 1)));
                assert_eq!(glance, look, "{key:?}: {}", pair[0]);
                matched += usize::from(glance);
            }
        }
    }
    assert!(matched > 400, "{matched} matches");
}
