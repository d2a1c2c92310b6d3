//! What counts as a match, and what a match leaves behind.

use super::*;

#[test]
fn negation_turns_each_value_round() {
    let rules =
        "SecRule ARGS \"!@rx ^[0-9]+$\" \"id:1,phase:2,pass,logdata:'%{MATCHED_VAR_NAME}'\"";
    check(rules, &get("/?a=1&b=2"), &[]);
    check_data(rules, &get("/?a=1&b=x"), &["ARGS:b"]);
    check(rules, &get("/"), &[]);
}

#[test]
fn transformations_come_in_order_and_none_begins_anew() {
    let rule = |chain: &str| format!("SecRule ARGS:a \"@streq abc\" \"id:1,phase:2,pass,{chain}\"");
    check(&rule("t:none,t:lowercase,t:removeWhitespace"), &get("/?a=A+B+C"), &[1]);
    check(&rule("t:lowercase,t:none,t:removeWhitespace"), &get("/?a=A+B+C"), &[]);
    check(&rule("t:none,t:base64Decode,t:lowercase"), &get("/?a=QUJD"), &[1]);
}

#[test]
fn default_transformations_are_inherited() {
    let rules = "SecDefaultAction \"phase:2,pass,t:lowercase\"\nSecRule ARGS \"@streq abc\" \"id:1,phase:2,pass\"\n\
                 SecRule ARGS \"@streq ABC\" \"id:2,phase:2,pass,t:none\"";
    check(rules, &get("/?a=ABC"), &[1, 2]);
}

#[test]
fn multi_match_asks_at_every_step() {
    let rule = |multi: &str| {
        format!(
            "SecRule ARGS \"@contains A\" \"id:1,phase:2,pass,t:none,t:lowercase,t:uppercase{multi},setvar:tx.n=+1\"\nSecRule TX:n \"@eq 2\" \"id:2,phase:2,pass\""
        )
    };
    // As it came, and after the second transformation.
    check(&rule(",multiMatch"), &get("/?x=Ab"), &[1, 2]);
    check(&rule(""), &get("/?x=Ab"), &[1]);
}

#[test]
fn captures_fill_the_first_ten() {
    let rules = "SecRule ARGS \"@rx ^(\\w+)-(\\w+)(-z)?$\" \"id:1,phase:2,pass,capture,logdata:'%{TX.0}|%{TX.1}|%{TX.2}|%{TX.3}'\"\n\
                 SecRule ARGS \"@pm needle pin\" \"id:2,phase:2,pass,capture,logdata:'%{TX.0}|%{TX.1}'\"";
    check_data(rules, &get("/?a=left-right"), &["left-right|left|right|"]);
    check_data(rules, &get("/?a=a-NEEDLE-z&b=x"), &["a-NEEDLE-z|a|NEEDLE|-z", "NEEDLE|"]);
}

#[test]
fn every_match_is_captured_where_asked() {
    let rules = "SecRule ARGS \"@rxGlobal [0-9]+\" \"id:1,phase:2,pass,capture,logdata:'%{TX.0},%{TX.1},%{TX.2}'\"";
    check_data(rules, &get("/?a=x1y22z333"), &["1,22,333"]);
}

#[test]
fn matched_variables_are_those_of_the_chain() {
    let rules = "SecRule ARGS \"@contains x\" \"id:1,phase:2,pass,chain,logdata:'%{MATCHED_VAR_NAME}'\"\n\
                 SecRule MATCHED_VARS \"@contains y\" \"t:none\"";
    check(rules, &get("/?a=x&b=xy"), &[1]);
    check(rules, &get("/?a=x&b=y"), &[]);
    let names = "SecRule ARGS \"@contains x\" \"id:1,phase:2,pass,chain\"\nSecRule MATCHED_VARS_NAMES \"@streq ARGS:b\" \"t:none\"";
    check(names, &get("/?a=1&b=x"), &[1]);
    check(names, &get("/?a=x&b=1"), &[]);
}

#[test]
fn actions_are_done_for_each_value_that_matches() {
    let rules = "SecRule ARGS \"@contains x\" \"id:1,phase:2,pass,setvar:tx.n=+1\"\nSecRule TX:n \"@eq 3\" \"id:2,phase:2,pass\"";
    check(rules, &get("/?a=x&b=x&c=x&d=y"), &[1, 2]);
}

#[test]
fn operators_answer() {
    let asks = |operator: &str, value: &str, yes: bool| {
        let rules = format!("SecRule ARGS:v \"{operator}\" \"id:1,phase:2,pass,t:none\"");
        check(&rules, &get(&format!("/?v={value}")), if yes { &[1] } else { &[] });
    };
    asks("@beginsWith ab", "abc", true);
    asks("@endsWith bc", "abc", true);
    asks("@containsWord cat", "a%20cat%20b", true);
    asks("@containsWord cat", "concat", false);
    asks("@within GET,POST", "POST", true);
    asks("@within GET,POST", "PUT", false);
    asks("@ge 10", "10", true);
    asks("@lt 10", "10", false);
    asks("@ipMatch 10.0.0.0/8,2001:db8::/32", "10.9.8.7", true);
    asks("@ipMatch 10.0.0.0/8", "11.0.0.1", false);
    asks("@validateByteRange 32-126", "a%07", true);
    asks("@validateUrlEncoding", "%2541", false);
    asks("@validateUrlEncoding", "%25zz", true);
    asks("@validateUtf8Encoding", "%ff", true);
    asks("@verifyCC ^\\d{16}$", "4111111111111111", true);
    asks("@verifyCC ^\\d{16}$", "4111111111111112", false);
    asks("@detectSQLi", "1%27%20or%20%271%27=%271", true);
    asks("@detectXSS", "%3Cscript%3Ealert(1)%3C/script%3E", true);
    asks("@unconditionalMatch", "", true);
    asks("@noMatch", "x", false);
    asks("^ab?c$", "ac", true);
}

#[test]
fn macros_in_arguments_are_expanded() {
    let rules = |operator: &str| {
        format!(
            "SecAction \"id:9,phase:1,pass,nolog,setvar:tx.want=ab\"\nSecRule ARGS:v \"{operator}\" \"id:1,phase:2,pass\""
        )
    };
    check(&rules("@streq %{tx.want}"), &get("/?v=ab"), &[9, 1]);
    check(&rules("@rx ^%{tx.want}+$"), &get("/?v=abbb"), &[9, 1]);
    check(&rules("@within x%{tx.want}y"), &get("/?v=b"), &[9, 1]);
    check(&rules("@eq %{tx.unset}"), &get("/?v=0"), &[9, 1]);
}
