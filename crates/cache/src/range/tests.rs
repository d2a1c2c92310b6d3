use super::*;
use crate::freshness;
use crate::policy::Lifetimes;
use crate::stored::Arrival;
use crate::targeted::Control;
use crate::time::Time;
use tidegate_http::Response;

const NOW: Time = Time::from_millis(1_790_000_000_000);

fn headers(fields: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in fields {
        headers.push(name.as_bytes(), value.as_bytes());
    }
    headers
}

fn stored(status: u16, fields: &[(&str, &str)]) -> Stored {
    let response = Response { status, headers: headers(fields), ..Response::new() };
    let control = Control::of(&response.headers);
    let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), NOW);
    Stored::new(&response, &control, lifetime, Arrival { asked: NOW, received: NOW })
}

#[test]
fn ranges_are_read_as_the_grammar_says() {
    // RFC 9110, section 14.1.2
    let check = |value: &str, expected: Option<&[Spec]>| {
        let ranges = Ranges::read(value.as_bytes());
        assert_eq!(ranges.as_ref().map(Ranges::specs), expected, "{value}");
    };
    let from = |first, last| Spec::From { first, last };
    check("bytes=0-499", Some(&[from(0, 499)]));
    check("Bytes=0-0", Some(&[from(0, 0)]));
    check("bytes=500-", Some(&[from(500, u64::MAX)]));
    check("bytes=-5", Some(&[Spec::Last(5)]));
    check("bytes=-0", Some(&[Spec::Last(0)]));
    check("bytes= 0-1 ,, 4-5 , -2", Some(&[from(0, 1), from(4, 5), Spec::Last(2)]));
    check("bytes=0-99999999999999999999", Some(&[from(0, u64::MAX)]));
    for value in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=a-b",
        "bytes=1",
        "bytes=2-1",
        "bytes=0-1,x",
        "bytes=0-1-2",
        "bytes=--1",
        "bytes=+1-2",
        "bytes=0 - 1",
        "bytes 0-1",
        "lines=0-1",
        "bytes=0-1;x",
    ] {
        check(value, None);
    }
    assert!(Ranges::read(format!("bytes={}", "0-1,".repeat(RANGES_MAX)).as_bytes()).is_some());
    assert!(Ranges::read(format!("bytes={}", "0-1,".repeat(RANGES_MAX + 1)).as_bytes()).is_none());
}

#[test]
fn ranges_are_selected_from_a_length() {
    let check = |value: &str, length: u64, expected: Option<&[(u64, u64)]>| {
        let selection = Ranges::read(value.as_bytes()).unwrap().select(length);
        let pair = |span: &ByteSpan| (span.first, span.end);
        let seen: Option<Vec<_>> = match selection {
            Selection::Part(span) => Some(vec![pair(&span)]),
            Selection::Parts(spans) => Some(spans.iter().map(pair).collect()),
            Selection::Unsatisfiable => None,
            Selection::Whole => Some(Vec::new()),
        };
        assert_eq!(seen.as_deref(), expected, "{value} of {length}");
    };
    check("bytes=0-1", 11, Some(&[(0, 2)]));
    check("bytes=1-", 11, Some(&[(1, 11)]));
    check("bytes=-1", 11, Some(&[(10, 11)]));
    check("bytes=-99", 11, Some(&[(0, 11)]));
    check("bytes=5-99", 11, Some(&[(5, 11)]));
    check("bytes=0-99999999999999999999", 11, Some(&[(0, 11)]));
    check("bytes=11-", 11, None);
    check("bytes=11-12, -0", 11, None);
    check("bytes=-0", 11, None);
    check("bytes=11-12, 0-0", 11, Some(&[(0, 1)]));
    // Order is kept where nothing overlaps.
    check("bytes=7-, 0-1", 11, Some(&[(7, 11), (0, 2)]));
    check("bytes=5-6, 0-1, 1-2", 11, Some(&[(0, 3), (5, 7)]));
    check("bytes=0-1, 2-3", 11, Some(&[(0, 4)]));
    check("bytes=0-, 0-, 0-", 11, Some(&[(0, 11)]));
    check("bytes=0-0", 0, None);
    check("bytes=-1", 0, Some(&[]));
}

#[test]
fn only_one_range_field_of_a_get_counts() {
    let one = headers(&[("Range", "bytes=0-1")]);
    assert!(Ranges::of(Method::Get, &one).is_some());
    assert!(Ranges::of(Method::Head, &one).is_none());
    assert!(Ranges::of(Method::Get, &headers(&[])).is_none());
    let two = headers(&[("Range", "bytes=0-1"), ("Range", "bytes=0-1")]);
    assert!(Ranges::of(Method::Get, &two).is_none());
}

const DATE: (&str, &str) = ("Date", "Mon, 21 Sep 2026 14:13:20 GMT");
const EARLIER: (&str, &str) = ("Last-Modified", "Mon, 21 Sep 2026 14:13:10 GMT");

#[test]
fn if_range_wants_the_very_same() {
    // RFC 9110, section 13.1.5
    let check = |fields: &[(&str, &str)], value: &str, expected| {
        let request = headers(&[("If-Range", value)]);
        let holds = if_range(&request, &stored(200, fields), NOW.seconds());
        assert_eq!(holds, expected, "{fields:?} {value}");
    };
    let strong = [("ETag", "\"a\"")];
    check(&strong, "\"a\"", IfRange::Holds);
    check(&strong, "\"b\"", IfRange::Fails);
    check(&strong, "W/\"a\"", IfRange::Fails);
    check(&strong, "", IfRange::Fails);
    check(&[("ETag", "W/\"a\"")], "W/\"a\"", IfRange::Fails);
    check(&[], "\"a\"", IfRange::Fails);
    check(&[DATE, EARLIER], EARLIER.1, IfRange::Holds);
    check(&[DATE, EARLIER], DATE.1, IfRange::Fails);
    check(&[DATE, ("Last-Modified", DATE.1)], DATE.1, IfRange::Fails);
    check(&[EARLIER], EARLIER.1, IfRange::Fails);
    assert_eq!(if_range(&headers(&[]), &stored(200, &[]), 0), IfRange::Holds);
}

#[test]
fn what_is_selected_hangs_on_method_status_and_if_range() {
    let check = |method, status, fields: &[(&str, &str)], whole: bool| {
        let stored = stored(status, &[("ETag", "\"a\"")]);
        let selection = select(method, &headers(fields), &stored, 10, NOW.seconds());
        assert_eq!(selection == Selection::Whole, whole, "{method:?} {status} {fields:?}");
    };
    let range = ("Range", "bytes=0-1");
    check(Method::Get, 200, &[range], false);
    check(Method::Get, 206, &[range], false);
    check(Method::Get, 404, &[range], true);
    check(Method::Head, 200, &[range], true);
    check(Method::Get, 200, &[], true);
    check(Method::Get, 200, &[range, ("If-Range", "\"a\"")], false);
    check(Method::Get, 200, &[range, ("If-Range", "\"b\"")], true);
    check(Method::Get, 200, &[("Range", "bytes=x")], true);
}

#[test]
fn content_ranges_are_read_strictly() {
    // RFC 9110, section 14.4
    let check = |value: &str, expected: Option<(u64, u64, Option<u64>)>| {
        let range = ContentRange::read(value.as_bytes());
        assert_eq!(range.map(|it| (it.first, it.last, it.complete)), expected, "{value}");
    };
    check("bytes 4-9/10", Some((4, 9, Some(10))));
    check("Bytes 0-0/*", Some((0, 0, None)));
    for value in [
        "",
        "bytes",
        "bytes */10",
        "bytes 4-9",
        "bytes 9-4/10",
        "bytes 4-10/10",
        "bytes 4-9/",
        "bytes=4-9/10",
        "lines 4-9/10",
        "bytes 4-9/x",
        "bytes -9/10",
        "bytes 4 - 9/10",
        "bytes 0-18446744073709551615/*",
        "bytes 0-99999999999999999999/*",
    ] {
        check(value, None);
    }
    let twice = headers(&[("Content-Range", "bytes 0-1/2"), ("Content-Range", "bytes 0-1/2")]);
    assert_eq!(content_range(&twice), None);
}

#[test]
fn only_bytes_that_came_are_stored() {
    let range = ContentRange::read(b"bytes 4-9/10").unwrap();
    assert_eq!(range.span(), ByteSpan { first: 4, end: 10 });
    assert_eq!(range.span_of(6), ByteSpan { first: 4, end: 10 });
    assert_eq!(range.span_of(5), ByteSpan { first: 4, end: 9 });
    assert_eq!(range.span_of(7), ByteSpan { first: 4, end: 10 });
}

#[test]
fn parts_are_put_together_under_one_strong_validator() {
    // RFC 9111, section 3.4
    let check = |one: &[(&str, &str)], other: &[(&str, &str)], expected| {
        assert_eq!(
            may_combine(&stored(206, one), &stored(206, other)),
            expected,
            "{one:?} {other:?}"
        );
    };
    let strong = [("ETag", "\"a\"")];
    check(&strong, &strong, true);
    check(&strong, &[("ETag", "\"b\"")], false);
    check(&strong, &[], false);
    check(&[], &[], false);
    check(&[("ETag", "W/\"a\"")], &[("ETag", "W/\"a\"")], false);
    check(&[DATE, EARLIER], &[DATE, EARLIER], true);
    check(&[EARLIER], &[EARLIER], false);
    check(&[DATE, EARLIER, strong[0]], &[DATE, EARLIER], false);
}

#[test]
fn ranges_and_content_ranges_are_written() {
    let check = |first, end, complete, expected: &str| {
        let mut out = Vec::new();
        write_range(ByteSpan { first, end }, complete, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    };
    check(5, 10, Some(10), "bytes=5-");
    check(5, 9, Some(10), "bytes=5-8");
    check(5, 9, None, "bytes=5-8");
    let mut out = Vec::new();
    ByteSpan { first: 0, end: 2 }.write_content_range(11, &mut out);
    out.push(b' ');
    write_unsatisfied(11, &mut out);
    assert_eq!(out, b"bytes 0-1/11 bytes */11");
}
