//! Which rule comes next, and what ends a phase.

use super::*;

#[test]
fn a_chain_matches_as_a_whole() {
    let rules = "SecRule ARGS:a \"@streq 1\" \"id:1,phase:2,pass,chain\"\n\
                 SecRule ARGS:b \"@streq 2\" \"chain\"\nSecRule ARGS:c \"@streq 3\" \"t:none\"\n\
                 SecAction \"id:2,phase:2,pass\"";
    check(rules, &get("/?a=1&b=2&c=3"), &[1, 2]);
    check(rules, &get("/?a=1&b=2&c=4"), &[2]);
    check(rules, &get("/?b=2&c=3"), &[2]);
}

#[test]
fn what_a_starter_does_does_not_wait_for_its_chain() {
    let rules = "SecRule ARGS:a \"@streq 1\" \"id:1,phase:2,pass,setvar:tx.seen=1,chain\"\n\
                 SecRule ARGS:b \"@streq 2\" \"setvar:tx.both=1\"\n\
                 SecRule TX:seen \"@eq 1\" \"id:2,phase:2,pass\"\nSecRule TX:both \"@eq 1\" \"id:3,phase:2,pass\"";
    check(rules, &get("/?a=1&b=0"), &[2]);
    check(rules, &get("/?a=1&b=2"), &[1, 2, 3]);
}

#[test]
fn rules_are_skipped_to_a_marker_of_their_phase() {
    let rules = "SecRule ARGS:skip \"@streq 1\" \"id:1,phase:2,pass,skipAfter:END\"\n\
                 SecAction \"id:2,phase:2,pass\"\nSecAction \"id:3,phase:1,pass\"\nSecMarker END\n\
                 SecAction \"id:4,phase:2,pass\"";
    check(rules, &get("/?skip=1"), &[3, 1, 4]);
    check(rules, &get("/?skip=0"), &[3, 2, 4]);
}

#[test]
fn skip_counts_rules_of_the_phase() {
    let rules = "SecAction \"id:1,phase:2,pass,skip:2\"\nSecAction \"id:2,phase:2,pass\"\n\
                 SecAction \"id:9,phase:1,pass\"\nSecAction \"id:3,phase:2,pass\"\nSecAction \"id:4,phase:2,pass\"";
    check(rules, &get("/"), &[9, 1, 4]);
}

#[test]
fn a_denial_ends_the_transaction_and_logging_runs_all_the_same() {
    let rules = "SecRule ARGS \"@contains x\" \"id:1,phase:1,deny,status:429\"\nSecAction \"id:2,phase:2,pass\"\n\
                 SecAction \"id:5,phase:5,pass\"";
    check(rules, &get("/?a=x"), &[1, 5]);
    check_verdict(rules, &get("/?a=x"), &Verdict::Deny { status: 429, rule: 1 });
    check_verdict(rules, &get("/?a=y"), &Verdict::Pass);
}

#[test]
fn verdicts_are_what_the_actions_say() {
    let rule = |actions: &str| format!("SecAction \"id:1,phase:1,{actions}\"");
    check_verdict(&rule("deny"), &get("/"), &Verdict::Deny { status: 403, rule: 1 });
    check_verdict(&rule("drop"), &get("/"), &Verdict::Drop { rule: 1 });
    let to = |status| Verdict::Redirect { status, location: b"https://e/x?u=/p".to_vec(), rule: 1 };
    check_verdict(&rule("redirect:'https://e/x?u=%{REQUEST_URI}'"), &get("/p"), &to(302));
    check_verdict(
        &rule("status:307,redirect:'https://e/x?u=%{REQUEST_URI}'"),
        &get("/p"),
        &to(307),
    );
    check_verdict(
        &rule("status:500,redirect:'https://e/x?u=%{REQUEST_URI}'"),
        &get("/p"),
        &to(302),
    );
}

#[test]
fn block_does_what_the_default_says_where_it_stands() {
    let rules = "SecAction \"id:1,phase:1,block\"\nSecDefaultAction \"phase:1,log,deny,status:406\"\n\
                 SecRule ARGS:a \"@streq 1\" \"id:2,phase:1,block\"\nSecAction \"id:3,phase:1,pass\"";
    check_verdict(rules, &get("/?a=1"), &Verdict::Deny { status: 406, rule: 2 });
    check(rules, &get("/?a=2"), &[1, 3]);
}

#[test]
fn allow_reaches_as_far_as_it_says() {
    let rules = |scope: &str| {
        format!(
            "SecAction \"id:1,phase:1,allow{scope}\"\nSecAction \"id:2,phase:1,pass\"\n\
                 SecAction \"id:3,phase:2,pass\"\nSecAction \"id:4,phase:3,pass\"\nSecAction \"id:5,phase:5,pass\""
        )
    };
    check(&rules(":phase"), &get("/"), &[1, 3, 4, 5]);
    check(&rules(":request"), &get("/"), &[1, 4, 5]);
    check(&rules(""), &get("/"), &[1, 5]);
}

#[test]
fn detection_decides_nothing() {
    let rules = "SecAction \"id:1,phase:1,pass,ctl:ruleEngine=DetectionOnly\"\nSecAction \"id:2,phase:1,deny\"\n\
                 SecAction \"id:3,phase:2,pass\"";
    check(rules, &get("/"), &[1, 2, 3]);
    check_verdict(rules, &get("/"), &Verdict::Pass);
}

#[test]
fn phases_come_in_their_order_whatever_the_file_says() {
    let rules = "SecAction \"id:5,phase:5,pass\"\nSecAction \"id:4,phase:4,pass\"\nSecAction \"id:3,phase:3,pass\"\n\
                 SecAction \"id:2,phase:2,pass\"\nSecAction \"id:1,phase:1,pass\"";
    check(rules, &get("/"), &[1, 2, 3, 4, 5]);
}

#[test]
fn rules_are_removed_and_changed_wherever_the_directive_stands() {
    let rules = |directive: &str| {
        format!(
            "{directive}\nSecRule ARGS \"@contains x\" \"id:1,phase:2,pass,tag:'red',msg:'One'\"\n\
                 SecRule ARGS \"@contains x\" \"id:2,phase:2,pass,tag:'blue',msg:'Two'\"\n{directive}\n"
        )
    };
    check(&rules("SecRuleRemoveById 1"), &get("/?a=x"), &[2]);
    check(&rules("SecRuleRemoveById \"2-9\""), &get("/?a=x"), &[1]);
    check(&rules("SecRuleRemoveByTag \"^re\""), &get("/?a=x"), &[2]);
    check(&rules("SecRuleRemoveByMsg Two"), &get("/?a=x"), &[1]);
    check(&rules("SecRuleUpdateTargetById 1 \"!ARGS:a\""), &get("/?a=x"), &[2]);
    check(&rules("SecRuleUpdateTargetByTag blue \"!ARGS:a\""), &get("/?a=x"), &[1]);
    check(&rules("SecRuleUpdateTargetByMsg One \"REQUEST_METHOD\""), &get("/?a=x"), &[1, 2]);
    check_verdict(
        &rules("SecRuleUpdateActionById 2 \"deny,status:418\""),
        &get("/?a=x"),
        &Verdict::Deny { status: 418, rule: 2 },
    );
}
