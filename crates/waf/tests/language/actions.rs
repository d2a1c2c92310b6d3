//! What matches do: variables, and control of the rest of the transaction.

use super::*;

#[test]
fn variables_are_set_added_to_and_removed() {
    let rules = |sets: &str| format!("SecAction \"id:1,phase:1,pass,{sets},logdata:'%{{tx.a}}'\"");
    check_data(&rules("setvar:tx.a=x"), &get("/"), &["x"]);
    check_data(&rules("setvar:tx.a=5,setvar:tx.a=+3,setvar:tx.a=-1"), &get("/"), &["7"]);
    check_data(&rules("setvar:TX.A=5,setvar:tx.a=+%{tx.A}"), &get("/"), &["10"]);
    check_data(&rules("setvar:tx.a=5,setvar:!tx.a"), &get("/"), &[]);
    check_data(&rules("setvar:'tx.a=%{REQUEST_METHOD} %{UNIQUE_ID}'"), &get("/"), &["GET unique"]);
    check_data(&rules("setvar:tx.a"), &get("/"), &["1"]);
    check_data(&rules("setvar:tx.a=007"), &get("/"), &["007"]);
}

#[test]
fn names_may_come_from_the_request() {
    let rules = "SecRule ARGS_NAMES \"@rx .\" \"id:1,phase:1,pass,setvar:'tx.count_%{MATCHED_VAR}=+1'\"\n\
                 SecRule TX:/^count_/ \"@gt 1\" \"id:2,phase:1,pass,logdata:'%{MATCHED_VAR_NAME}'\"";
    check_data(rules, &get("/?a=1&b=1&A=1"), &["TX:count_a"]);
    check(rules, &get("/?a=1&b=1"), &[1]);
}

#[test]
fn rules_can_be_taken_out_of_a_transaction() {
    let rules = |ctl: &str| {
        format!(
            "SecRule ARGS:off \"@streq 1\" \"id:1,phase:1,pass,ctl:{ctl}\"\n\
                 SecRule ARGS:a \"@contains x\" \"id:2,phase:2,pass,tag:'t/red',msg:'Red'\""
        )
    };
    for ctl in [
        "ruleRemoveById=2",
        "ruleRemoveById=2-3",
        "ruleRemoveByTag=t/red",
        "ruleRemoveByMsg=Red",
        "ruleRemoveTargetById=2;ARGS:a",
        "ruleRemoveTargetById=2;ARGS",
        "ruleRemoveTargetByTag=t/red;ARGS:a",
        "ruleRemoveTargetByMsg=Red;ARGS:A",
    ] {
        check(&rules(ctl), &get("/?off=1&a=x"), &[1]);
        check(&rules(ctl), &get("/?off=0&a=x"), &[2]);
    }
    check(&rules("ruleRemoveTargetById=2;ARGS:other"), &get("/?off=1&a=x"), &[1, 2]);
    check(&rules("ruleEngine=Off"), &get("/?off=1&a=x"), &[1]);
}

#[test]
fn severities_are_remembered() {
    let rules = "SecAction \"id:1,phase:1,pass,severity:WARNING\"\nSecAction \"id:2,phase:1,pass,severity:2\"\n\
                 SecRule HIGHEST_SEVERITY \"@eq 2\" \"id:3,phase:1,pass\"";
    check(rules, &get("/"), &[1, 2, 3]);
    check("SecRule HIGHEST_SEVERITY \"@eq 255\" \"id:3,phase:1,pass\"", &get("/"), &[3]);
}

#[test]
fn the_environment_is_the_transactions_own() {
    let rules = "SecAction \"id:1,phase:1,pass,setenv:COLOUR=red\"\nSecRule ENV:colour \"@streq red\" \"id:2,phase:1,pass\"\n\
                 SecAction \"id:3,phase:1,pass,setenv:!COLOUR\"\nSecRule &ENV:COLOUR \"@eq 0\" \"id:4,phase:1,pass\"\n\
                 SecRule &ENV:PATH \"@eq 0\" \"id:5,phase:1,pass\"";
    check(rules, &get("/"), &[1, 2, 3, 4, 5]);
}

#[test]
fn a_rule_knows_itself() {
    let rules = "SecAction \"id:77,phase:1,pass,rev:3,severity:2,msg:'Hello',logdata:'%{RULE.id} %{rule.rev} %{rule.severity} %{rule.msg}'\"";
    check_data(rules, &get("/"), &["77 3 2 Hello"]);
}
