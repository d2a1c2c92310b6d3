//! What is kept of a match for a person who wants to know why.

use tidegate_waf::inspection::{Change, Hit, Traced};

use crate::{get, policy, traced};

#[test]
fn a_match_tells_its_values_and_what_it_wrote() {
    let policy = policy(
        "SecAction \"id:1,phase:1,pass,nolog,setvar:tx.score=1\"\n\
         SecRule ARGS \"@contains union select\" \"id:2,phase:2,pass,t:none,t:lowercase,chain\"\n\
         SecRule REQUEST_METHOD \"@streq GET\" \"setvar:tx.score=+5,setvar:'tx.who=%{MATCHED_VAR}'\"\n\
         SecRule ARGS:b \"@streq never\" \"id:3,phase:2,pass\"\n\
         SecRule TX:score \"@ge 6\" \"id:4,phase:2,pass,setvar:!tx.score\"",
    );
    let found = traced(&policy, &get("/?a=UNION%20Select&b=union%20select"));
    let ids: Vec<u64> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [1, 2, 4]);
    let hit = |link, variable: &str, value: &str, transformed: &str, steps: &[&'static str]| Hit {
        link,
        variable: variable.into(),
        value: value.into(),
        transformed: transformed.into(),
        transformations: steps.to_vec(),
    };
    let change = |name: &str, before: Option<&str>, after: Option<&str>| Change {
        name: name.into(),
        before: before.map(Into::into),
        after: after.map(Into::into),
    };
    let expected = Traced {
        hits: vec![
            hit(0, "ARGS:a", "UNION Select", "union select", &["lowercase"]),
            hit(0, "ARGS:b", "union select", "union select", &["lowercase"]),
            hit(1, "REQUEST_METHOD", "GET", "GET", &[]),
        ],
        changes: vec![change("score", Some("1"), Some("6")), change("who", None, Some("GET"))],
    };
    assert_eq!(found[1].1, expected);
    assert_eq!(found[2].1.hits, [hit(0, "TX:score", "6", "6", &[])]);
    assert_eq!(found[2].1.changes, [change("score", Some("6"), None)]);
}

#[test]
fn a_policy_takes_members_by_pattern_from_a_rule() {
    let rules = "SecRule ARGS \"@contains x\" \"id:2,phase:2,deny\"";
    let check = |exclusion: &str, target: &str, expected: usize| {
        let policy = crate::policy_with(rules, &format!("ctl:ruleRemoveTargetById=2;{exclusion}"));
        assert_eq!(traced(&policy, &get(target)).len(), expected, "{exclusion} {target}");
    };
    check("ARGS:/^A[0-9]+$/", "/?a12=x", 0);
    check("ARGS:/^A[0-9]+$/", "/?ab=x", 1);
    check("ARGS:/^A[0-9]+$/", "/?a1=x&ab=x", 1);
}
