//! What is kept of a match for a person who wants to know why.

use tidegate_waf::inspection::{
    Change, Hit, Inspection, Inspector, Moment, MonotonicClock, Traced, Verdict,
};
use tidegate_waf::variable::Phase;

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

#[test]
fn each_rule_is_measured_where_somebody_wants_to_know() {
    thread_local! {
        static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    fn clock() -> u64 {
        NOW.set(NOW.get() + 7);
        NOW.get()
    }
    let policy = policy(
        "SecRule ARGS \"@contains x\" \"id:2,phase:2,pass,skipAfter:END\"\n\
         SecRule ARGS \"@contains y\" \"id:3,phase:2,pass\"\n\
         SecMarker END\n\
         SecRule ARGS \"@contains z\" \"id:4,phase:2,deny\"",
    );
    let mut inspector = Inspector::new();
    let mut times = |clock: Option<MonotonicClock>| {
        let mut inspection = Inspection::begin(&policy, None, &mut inspector);
        if let Some(clock) = clock {
            inspection.measure_rules(clock);
        }
        inspection.request_head(crate::head(&get("/?a=xyz")), std::iter::empty());
        let verdict = inspection.run(Phase::RequestBody, Moment::default(), &mut inspector);
        assert_eq!(verdict, Verdict::Deny { status: 403, rule: 4 });
        let times = inspection.rule_times().map(|(id, time)| (id, time.as_nanos()));
        let times: Vec<(u64, u128)> = times.collect();
        inspection.end(&mut inspector);
        times
    };
    assert_eq!(times(None), []);
    assert_eq!(times(Some(clock)), [(2, 7), (4, 7)]);
    assert_eq!(times(None), [], "the next transaction is not measured");
}
