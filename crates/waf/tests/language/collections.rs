//! Collections that outlive a transaction.

use tidegate_waf::context;

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
