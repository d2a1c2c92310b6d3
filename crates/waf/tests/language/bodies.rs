//! Bodies, and what rules see of them.

use super::*;

fn post<'a>(fields: &'a [(&'a str, &'a str)], body: &'a str) -> Request<'a> {
    Request { method: "POST", fields, body, ..Request::default() }
}

const FORM: &[(&str, &str)] = &[("Content-Type", "application/x-www-form-urlencoded")];
const MULTIPART: &[(&str, &str)] = &[("Content-Type", "multipart/form-data; boundary=b")];
const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
const XML: &[(&str, &str)] = &[("Content-Type", "text/xml")];

#[test]
fn a_form_gives_arguments_and_itself() {
    let rules = "SecRule ARGS_POST:a \"@streq x y\" \"id:1,phase:2,pass\"\nSecRule ARGS:a \"@streq x y\" \"id:2,phase:2,pass\"\n\
                 SecRule ARGS_GET \"@contains x\" \"id:3,phase:2,pass\"\nSecRule REQUEST_BODY \"@streq a=x+y\" \"id:4,phase:2,pass\"\n\
                 SecRule REQBODY_PROCESSOR \"@streq URLENCODED\" \"id:5,phase:2,pass\"";
    check(rules, &post(FORM, "a=x+y"), &[1, 2, 4, 5]);
}

#[test]
fn json_is_read_where_a_rule_says_so() {
    let rules = "SecRule REQUEST_HEADERS:Content-Type \"^application/json\" \"id:1,phase:1,pass,ctl:requestBodyProcessor=JSON\"\n\
                 SecRule ARGS:json.a.b \"@streq x\" \"id:2,phase:2,pass\"\nSecRule REQBODY_ERROR \"!@eq 0\" \"id:3,phase:2,pass,logdata:'%{REQBODY_PROCESSOR}'\"\n\
                 SecRule &REQUEST_BODY \"@eq 0\" \"id:4,phase:2,pass\"";
    check(rules, &post(JSON, "{\"a\":{\"b\":\"x\"}}"), &[1, 2, 4]);
    check(rules, &post(JSON, "{\"a\":"), &[1, 3, 4]);
}

#[test]
fn the_raw_body_can_be_asked_for() {
    let rules = "SecAction \"id:1,phase:1,pass,ctl:requestBodyProcessor=JSON,ctl:forceRequestBodyVariable=On\"\n\
                 SecRule REQUEST_BODY \"@contains {\" \"id:2,phase:2,pass\"";
    check(rules, &post(JSON, "{\"a\":1}"), &[1, 2]);
}

#[test]
fn multipart_gives_fields_and_files() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nHoliday\r\n--b\r\n\
                Content-Disposition: form-data; name=\"photo\"; filename=\"x.php\"\r\nContent-Type: text/plain\r\n\r\n12345\r\n--b--\r\n";
    let rules = "SecRule ARGS:title \"@streq Holiday\" \"id:1,phase:2,pass\"\nSecRule FILES:photo \"@endsWith .php\" \"id:2,phase:2,pass\"\n\
                 SecRule FILES_SIZES \"@eq 5\" \"id:3,phase:2,pass\"\nSecRule FILES_COMBINED_SIZE \"@eq 5\" \"id:4,phase:2,pass\"\n\
                 SecRule FILES_NAMES \"@streq photo\" \"id:5,phase:2,pass\"\nSecRule MULTIPART_STRICT_ERROR \"!@eq 0\" \"id:6,phase:2,pass\"\n\
                 SecRule MULTIPART_PART_HEADERS:photo \"@contains text/plain\" \"id:7,phase:2,pass\"";
    check(rules, &post(MULTIPART, body), &[1, 2, 3, 4, 5, 7]);
    check(
        rules,
        &post(MULTIPART, "--b\nContent-Disposition: form-data; name=\"a\"\n\nx\n--b--\n"),
        &[6],
    );
}

#[test]
fn xml_gives_its_text_and_its_attributes() {
    let rules = "SecAction \"id:1,phase:1,pass,ctl:requestBodyProcessor=XML\"\nSecRule XML:/* \"@contains needle\" \"id:2,phase:2,pass\"\n\
                 SecRule XML://@* \"@streq pin\" \"id:3,phase:2,pass\"";
    check(rules, &post(XML, "<a b=\"pin\"><c>needle</c></a>"), &[1, 2, 3]);
    check(rules, &post(XML, "<a b=\"needle\"><c>pin</c></a>"), &[1]);
}

#[test]
fn bodies_are_left_alone_where_a_rule_says_so() {
    let rules = "SecAction \"id:1,phase:1,pass,ctl:requestBodyAccess=Off\"\nSecRule ARGS \"@contains x\" \"id:2,phase:2,pass\"";
    check(rules, &post(FORM, "a=x"), &[1]);
}
