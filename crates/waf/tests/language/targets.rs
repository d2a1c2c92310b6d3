//! Where rules look.

use super::*;

fn looks(targets: &str, request: &Request<'_>, found: bool) {
    let rules = format!("SecRule {targets} \"@contains needle\" \"id:1,phase:2,pass,t:none\"");
    check(&rules, request, if found { &[1] } else { &[] });
}

#[test]
fn a_selector_picks_by_name_in_any_case() {
    looks("ARGS:Foo", &get("/?foo=needle&bar=x"), true);
    looks("ARGS:foo", &get("/?foo=x&bar=needle"), false);
    looks("ARGS_NAMES", &get("/?needle=1"), true);
    looks("REQUEST_HEADERS:x-test", &Request { fields: &[("X-Test", "needle")], ..get("/") }, true);
}

#[test]
fn a_selector_picks_by_pattern() {
    looks("ARGS:/^fo/", &get("/?foo=needle"), true);
    looks("ARGS:/^FO/", &get("/?foo=needle"), true);
    looks("ARGS:/^oo/", &get("/?foo=needle"), false);
}

#[test]
fn exclusions_take_values_out() {
    looks("ARGS|!ARGS:a", &get("/?a=needle&b=x"), false);
    looks("ARGS|!ARGS:a", &get("/?a=x&b=needle"), true);
    looks("ARGS|!ARGS:/^a/", &get("/?abc=needle"), false);
    looks(
        "REQUEST_HEADERS|!REQUEST_HEADERS:Cookie",
        &Request { fields: &[("Cookie", "a=needle")], ..get("/") },
        false,
    );
    looks("REQUEST_URI|ARGS|!ARGS", &get("/needle"), true);
    looks("REQUEST_METHOD|ARGS|!ARGS", &get("/?a=needle"), false);
}

#[test]
fn counts_stand_for_values() {
    let rules = |target: &str, number: u32| {
        format!("SecRule &{target} \"@eq {number}\" \"id:1,phase:2,pass\"")
    };
    check(&rules("ARGS", 3), &get("/?a=1&b=2&a=3"), &[1]);
    check(&rules("ARGS:a", 2), &get("/?a=1&b=2&a=3"), &[1]);
    check(&rules("ARGS:z", 0), &get("/?a=1"), &[1]);
    check(&rules("TX:unset", 0), &get("/"), &[1]);
    check(&rules("REQUEST_HEADERS:Host", 1), &get("/"), &[1]);
}

#[test]
fn the_request_is_seen_in_its_parts() {
    let value = |variable: &str, target: &str, expected: &str| {
        let rules = format!(
            "SecRule {variable} \"@unconditionalMatch\" \"id:1,phase:2,pass,logdata:'[%{{MATCHED_VAR}}]'\""
        );
        check_data(&rules, &get(target), &[&format!("[{expected}]")]);
    };
    value("REQUEST_URI", "/a/b.php?x=1", "/a/b.php?x=1");
    value("REQUEST_URI", "http://example.org/a?x=1", "/a?x=1");
    value("REQUEST_URI_RAW", "http://example.org/a?x=1", "http://example.org/a?x=1");
    value("REQUEST_FILENAME", "/a%2fb%zz/c.php?x=1", "/a/b%zz/c.php");
    value("REQUEST_BASENAME", "/a/b/c.php?x=/1", "c.php");
    value("QUERY_STRING", "/a?x=%31&y", "x=%31&y");
    value("REQUEST_LINE", "/a?b", "GET /a?b HTTP/1.1");
    value("ARGS:x", "/?x=%41+%2b", "A +");
    value("ARGS_COMBINED_SIZE", "/?ab=cde&f=g", "7");
    value("REMOTE_ADDR", "/", "192.0.2.7");
    value("SERVER_PORT", "/", "443");
    value("UNIQUE_ID", "/", "unique");
    value("DURATION", "/", "3");
    value("TIME", "/", "14:13:20");
    value("TIME_WDAY", "/", "1");
}

#[test]
fn repeated_fields_are_one_value() {
    let fields: &[(&str, &str)] =
        &[("X-A", "1"), ("x-a", "2"), ("Cookie", "a=1"), ("Cookie", "b=2")];
    let rules = "SecRule REQUEST_HEADERS:X-A \"@streq 1, 2\" \"id:1,phase:1,pass\"\n\
                 SecRule &REQUEST_COOKIES \"@eq 2\" \"id:2,phase:1,pass\"";
    check(rules, &Request { fields, ..get("/") }, &[1, 2]);
}

#[test]
fn the_response_is_seen_in_its_phases() {
    let rules = "SecRule RESPONSE_STATUS \"@eq 200\" \"id:3,phase:3,pass\"\n\
                 SecRule RESPONSE_HEADERS:Server \"@streq origin\" \"id:4,phase:3,pass\"\n\
                 SecRule RESPONSE_BODY \"@contains secret\" \"id:5,phase:4,deny\"";
    check(rules, &Request { answer: "a secret", ..get("/") }, &[3, 4, 5]);
    check(rules, &Request { answer: "nothing", ..get("/") }, &[3, 4]);
}
