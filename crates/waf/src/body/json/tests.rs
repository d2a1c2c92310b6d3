//! Bodies and what becomes of them.

use super::super::testing::{self, Read};
use super::super::{End, Fault as BodyFault, Kind, Limits, Options};
use super::{Fault, Reason};

fn read(body: &[u8], limits: Limits) -> Read {
    testing::read(Kind::Json, "application/json", &Options { limits, ..Options::default() }, body)
}

#[track_caller]
fn check(body: &str, expected: &[&str]) {
    let read = read(body.as_bytes(), Limits::default());
    assert_eq!(read.fault, None, "{body}");
    assert_eq!(read.told, expected, "{body}");
}

#[track_caller]
fn check_fault(body: &[u8], reason: Reason, at: u64, told: &[&str]) {
    let read = read(body, Limits::default());
    assert_eq!(read.fault, Some(BodyFault::Json(Fault { reason, at })), "{}", body.escape_ascii());
    assert_eq!(read.told, told, "{}", body.escape_ascii());
}

#[test]
fn values_that_stand_alone() {
    check("", &[]);
    check("1", &["json=1"]);
    check(" -1.5e3 ", &["json=-1.5e3"]);
    check("\"a\"", &["json=a"]);
    check("true", &["json=true"]);
    check("null", &["json="]);
    check("{}", &[]);
    check("[ ]", &[]);
}

#[test]
fn names() {
    check(r#"{"a":1,"b":"x"}"#, &["json.a=1", "json.b=x"]);
    check(r#"{"a":{"b":{"c":1},"d":2}}"#, &["json.a.b.c=1", "json.a.d=2"]);
    check(
        r#"{"a":[1,2,"x"],"b":3}"#,
        &["json.a.array_0=1", "json.a.array_1=2", "json.a.array_2=x", "json.b=3"],
    );
    check(
        r#"[1,[2,3],{"a":4},5]"#,
        &[
            "json.array_0=1",
            "json.array_1.array_0=2",
            "json.array_1.array_1=3",
            "json.array_2.a=4",
            "json.array_3=5",
        ],
    );
    check(r#"{"":1,"a":{"":2}}"#, &["json.empty-key=1", "json.a.empty-key=2"]);
    check(r#"{"a.b":{"c":1}}"#, &["json.a.b.c=1"]);
    check(r#"{"a\u002eb\n":1}"#, &["json.a.b\\n=1"]);
}

#[test]
fn members_of_the_same_name_are_all_given() {
    check(r#"{"a":1,"a":2,"\u0061":3}"#, &["json.a=1", "json.a=2", "json.a=3"]);
}

#[test]
fn empty_containers_do_not_hide_their_names() {
    check(
        r#"{"a":{},"b":[],"c":[[],{}]}"#,
        &["json.a=", "json.b=", "json.c.array_0=", "json.c.array_1="],
    );
}

#[test]
fn words_and_numbers_as_written() {
    check(
        "[true,false,null,-0,1E+2,0.10]",
        &[
            "json.array_0=true",
            "json.array_1=false",
            "json.array_2=",
            "json.array_3=-0",
            "json.array_4=1E+2",
            "json.array_5=0.10",
        ],
    );
}

#[test]
fn strings() {
    check(r#""\"\\\/\b\f\n\r\t""#, &["json=\\\"\\\\/\\x08\\x0c\\n\\r\\t"]);
    check(r#""a\u0041\u00e9\u20AC""#, &["json=aA\\xc3\\xa9\\xe2\\x82\\xac"]);
    check(r#""\ud83d\ude00""#, &["json=\\xf0\\x9f\\x98\\x80"]);
    check("\"ünï\"", &["json=\\xc3\\xbcn\\xc3\\xaf"]);
    check(r#""\u0000""#, &["json=\\x00"]);
    check("\"\x7f\"", &["json=\\x7f"]);
    check(r#""$\u007bjndi:x}""#, &["json=${jndi:x}"]);
}

#[test]
fn half_surrogate_pairs_are_replaced() {
    check(r#""\ud83d""#, &["json=\\xef\\xbf\\xbd"]);
    check(r#""\ud83dx""#, &["json=\\xef\\xbf\\xbdx"]);
    check(r#""\ud83d\n""#, &["json=\\xef\\xbf\\xbd\\n"]);
    check(r#""\ude00""#, &["json=\\xef\\xbf\\xbd"]);
    check(r#""\ud83d\ud83d\ude00""#, &["json=\\xef\\xbf\\xbd\\xf0\\x9f\\x98\\x80"]);
    check(r#""\ud83d\u0041""#, &["json=\\xef\\xbf\\xbdA"]);
}

#[test]
fn what_servers_disagree_about_is_refused() {
    check_fault(b"{\"a\":1,}", Reason::Character, 7, &["json.a=1"]);
    check_fault(b"[1,]", Reason::Character, 3, &["json.array_0=1"]);
    check_fault(b"[,1]", Reason::Character, 1, &[]);
    check_fault(b"{a:1}", Reason::Character, 1, &[]);
    check_fault(b"{'a':1}", Reason::Character, 1, &[]);
    check_fault(b"[1 2]", Reason::Character, 3, &["json.array_0=1"]);
    check_fault(b"{\"a\" 1}", Reason::Character, 5, &[]);
    check_fault(b"{\"a\":1]", Reason::Character, 6, &["json.a=1"]);
    check_fault(b"[1}", Reason::Character, 2, &["json.array_0=1"]);
    check_fault(b"{1:2}", Reason::Character, 1, &[]);
    check_fault(b"/**/1", Reason::Character, 0, &[]);
    check_fault(b"\xef\xbb\xbf{}", Reason::Character, 0, &[]);
    check_fault(b"\x0b1", Reason::Character, 0, &[]);
    check_fault(b"NaN", Reason::Scalar, 3, &[]);
    check_fault(b"[01]", Reason::Scalar, 3, &[]);
    check_fault(b"[TRUE]", Reason::Scalar, 5, &[]);
    check_fault(b"1 2", Reason::Trailing, 2, &["json=1"]);
    check_fault(b"{}{}", Reason::Trailing, 2, &[]);
    check_fault(b"[]\0", Reason::Trailing, 2, &[]);
    check_fault(b"\"a\nb\"", Reason::Control, 2, &[]);
    check_fault(br#""\x41""#, Reason::Escape, 2, &[]);
    check_fault(br#""\u00g0""#, Reason::Escape, 5, &[]);
    check_fault(br#""\'""#, Reason::Escape, 2, &[]);
}

#[test]
fn strings_are_utf8() {
    for bad in [&b"\xff"[..], b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"] {
        let body = [b"[\"", bad, b"\"]"].concat();
        check_fault(&body, Reason::Utf8, 2 + bad.len() as u64, &[]);
        let body = [b"[\"\\n", bad, b"\"]"].concat();
        check_fault(&body, Reason::Utf8, 4 + bad.len() as u64, &[]);
        let body = [b"[\"", bad, b"\\n\"]"].concat();
        check_fault(&body, Reason::Utf8, 4 + bad.len() as u64, &[]);
        let body = [b"{\"", bad, b"\":1}"].concat();
        check_fault(&body, Reason::Utf8, 2 + bad.len() as u64, &[]);
    }
}

#[test]
fn bodies_that_end_early() {
    for (body, told) in [
        (" ", &[][..]),
        ("{", &[]),
        ("{\"a\"", &[]),
        ("{\"a\":", &[]),
        ("{\"a\":1", &["json.a=1"]),
        ("[1,", &["json.array_0=1"]),
        ("\"abc", &[]),
        ("\"ab\\", &[]),
        ("[[]", &["json.array_0="]),
    ] {
        check_fault(body.as_bytes(), Reason::Unfinished, body.len() as u64, told);
    }
}

#[test]
fn truncated_bodies_give_what_came() {
    for (body, expected) in [
        ("", &[][..]),
        ("{\"a\":1", &["json.a=1"]),
        ("{\"a\":12", &["json.a=12"]),
        ("{\"a\":\"x\\u00e9y", &["json.a=x\\xc3\\xa9y"]),
        ("{\"a\":\"x\\u00", &["json.a=x"]),
        ("{\"evil", &["json.evil="]),
        ("{\"evil\"", &["json.evil="]),
        ("{\"evil\":", &["json.evil="]),
        ("[1,", &["json.array_0=1"]),
        ("[1,tr", &["json.array_0=1", "json.array_1=tr"]),
    ] {
        let options = Options::default();
        let read = testing::read_to(End::Truncated, Kind::Json, "", &options, body.as_bytes());
        assert_eq!(read.fault, None, "{body}");
        assert_eq!(read.told, expected, "{body}");
    }
}

#[test]
fn depth_has_a_limit() {
    let limits = Limits { json_depth_max: 3, ..Limits::default() };
    assert_eq!(read(b"[[[1]]]", limits.clone()).fault, None);
    let fault = read(b"[[{\"a\":[1]}]]", limits).fault;
    let expected = Fault { reason: Reason::Depth, at: 7 };
    assert_eq!(fault, Some(BodyFault::Json(expected)));
    assert_eq!(
        BodyFault::Json(expected).to_string(),
        "JSON parsing error: JSON depth limit exceeded, at byte 7"
    );
}

#[test]
fn deep_nesting_needs_no_stack() {
    let limits = Limits { json_depth_max: 1 << 20, name_bytes_max: 1 << 30, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let body = vec![b'['; 1 << 16];
    let mut told = testing::Told::default();
    let mut processor = super::super::Processor::new(Kind::Json, b"", &options);
    let _ = processor.feed(&body, &mut told);
    assert!(processor.finish(End::Complete, &mut told).is_some());
}

#[test]
fn arguments_and_names_have_limits() {
    let limits = Limits { arguments_max: 2, ..Limits::default() };
    assert_eq!(read(b"[1,2]", limits.clone()).fault, None);
    let over = read(b"[1,2,3]", limits);
    assert_eq!(over.fault, Some(BodyFault::Arguments));
    assert_eq!(over.told.len(), 2);

    let limits = Limits { name_bytes_max: 8, ..Limits::default() };
    assert_eq!(read(b"{\"abc\":1}", limits.clone()).fault, None);
    let fault = read(b"{\"abcd\":1}", limits).fault;
    assert_eq!(fault, Some(BodyFault::Json(Fault { reason: Reason::NameLength, at: 7 })));

    let limits = Limits { fields_bytes_max: 6, ..Limits::default() };
    assert_eq!(read(b"[1,23]", limits.clone()).fault, None);
    let over = read(b"[1,23 ]", limits);
    assert_eq!(over.fault, Some(BodyFault::Fields));
    assert_eq!(over.told, ["json.array_0=1", "json.array_1=23"]);
}
