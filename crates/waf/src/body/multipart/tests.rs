//! Bodies and what becomes of them.

use super::super::testing::{self, Read};
use super::super::{End, Fault as BodyFault, Kind, Limits, Options};
use super::disposition::Fault as DispositionFault;
use super::{Fault, Flags, Unmatched};

const CONTENT_TYPE: &str = "multipart/form-data; boundary=b";

fn read(body: &str, limits: Limits) -> Read {
    let options = Options { limits, ..Options::default() };
    testing::read(Kind::Multipart, CONTENT_TYPE, &options, body.as_bytes())
}

/// Lines with the ends that they should have.
fn lines(body: &str) -> String {
    body.replace('\n', "\r\n")
}

fn flags(read: &Read) -> Flags {
    read.processor.multipart().map(|multipart| multipart.flags().clone()).expect("is multipart")
}

/// Checks a body whose line ends are as they should be.
#[track_caller]
fn check(body: &str, expected: &[&str]) -> Flags {
    check_raw(&lines(body), expected)
}

#[track_caller]
fn check_raw(body: &str, expected: &[&str]) -> Flags {
    let read = read(body, Limits::default());
    assert_eq!(read.fault, None, "{body}");
    assert_eq!(read.told, expected, "{body}");
    flags(&read)
}

#[track_caller]
fn check_fault(body: &str, fault: Fault, told: &[&str]) -> Flags {
    let read = read(body, Limits::default());
    assert_eq!(read.fault, Some(BodyFault::Multipart(fault)), "{body}");
    assert_eq!(read.told, told, "{body}");
    let flags = flags(&read);
    assert!(flags.strict_error());
    flags
}

const A: &str = "header a: Content-Disposition: form-data; name=\\\"a\\\"";

/// A body with one field `a`, whose content is `content`.
fn field(content: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{content}\r\n--b--\r\n")
}

#[test]
fn fields_and_files() {
    let flags = check(
        "--b\nContent-Disposition: form-data; name=\"a\"\n\n1\n\
         --b\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\nContent-Type: text/plain\n\n\
         line 1\nline 2\n\n--b--\n",
        &[
            A,
            "a=1",
            "header f: Content-Disposition: form-data; name=\\\"f\\\"; filename=\\\"x.txt\\\"",
            "header f: Content-Type: text/plain",
            "file f x.txt",
            "data line 1\\r\\nline 2\\r\\n",
            "end 16",
        ],
    );
    assert_eq!(flags, Flags { crlf_line: true, ..Flags::default() });
    assert!(!flags.strict_error());
}

#[test]
fn contents_are_taken_as_they_are() {
    for content in
        ["", "x", "\r\n", "x\r\n", "\r\n\r\nx", "\r", "\n", "x\r", "\r\r", "-", "\r\n-", "%41+"]
    {
        let value = format!("a={}", content.as_bytes().escape_ascii());
        let flags = check_raw(&field(content), &[A, &value]);
        assert_eq!(flags.unmatched_boundary, Unmatched::None, "{content:?}");
    }
    check_raw(&field("a\0\u{e9}"), &[A, "a=a\\x00\\xc3\\xa9"]);
}

#[test]
fn the_last_line_end_is_optional() {
    let body = field("1");
    assert_eq!(
        check_raw(body.trim_end(), &[A, "a=1"]),
        Flags { crlf_line: true, ..Flags::default() }
    );
}

#[test]
fn an_empty_body_is_none() {
    assert_eq!(check("", &[]), Flags::default());
}

#[test]
fn a_nameless_file_is_a_field_too() {
    let body = "--b\nContent-Disposition: form-data; name=\"a\"; filename=\"\"\n\nx\n--b--\n";
    check(
        body,
        &[
            "header a: Content-Disposition: form-data; name=\\\"a\\\"; filename=\\\"\\\"",
            "file a  counted",
            "end 1",
            "a=x",
        ],
    );
}

#[test]
fn both_names_of_a_file_are_given() {
    let body = "--b\nContent-Disposition: form-data; name=a; filename=\"x\"; filename*=UTF-8''%79\n\n\n--b--\n";
    let read = read(&lines(body), Limits::default());
    assert_eq!(read.told[1..], ["file a x (y)", "end 0"]);
    let multipart = read.processor.multipart().expect("is multipart");
    assert_eq!((multipart.name(), multipart.filename()), (&b"a"[..], &b"x"[..]));
}

#[test]
fn header_lines_come_under_their_parts_name() {
    let body = "--b\nContent-Type: text/plain\n charset=utf-7\ncontent-disposition:form-data; name=\"_charset_\"\n\n\
                utf-7\n--b--\n";
    let flags = check(
        body,
        &[
            "header _charset_: Content-Type: text/plain charset=utf-7",
            "header _charset_: content-disposition:form-data; name=\\\"_charset_\\\"",
            "_charset_=utf-7",
        ],
    );
    assert!(flags.header_folding && !flags.invalid_header_folding && flags.strict_error());
}

#[test]
fn line_ends_are_flagged() {
    let lf = field("1").replace("\r\n", "\n");
    let flags = check_raw(&lf, &[A, "a=1"]);
    assert!(flags.lf_line && !flags.crlf_lf_lines() && flags.strict_error());
    for mixed in [
        "--b\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n",
        "--b\r\nContent-Disposition: form-data; name=\"a\"\n\r\n1\r\n--b--\r\n",
        "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\n1\r\n--b--\r\n",
        "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\n--b--\r\n",
        "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\n",
    ] {
        assert!(check_raw(mixed, &[A, "a=1"]).crlf_lf_lines(), "{mixed:?}");
    }
    // Those of contents are their own affair.
    assert!(!check_raw(&field("1\n2"), &[A, "a=1\\n2"]).lf_line);
}

#[test]
fn data_around_the_parts_is_flagged() {
    for before in ["x", "\r\n", "x\r\n\r\n", "--c\r\n"] {
        let body = format!("{before}{}{}", if before == "x" { "\r\n" } else { "" }, field("1"));
        let flags = check_raw(&body, &[A, "a=1"]);
        assert!(flags.data_before && flags.strict_error(), "{before:?}");
    }
    for after in ["x", "\r\n", "--b\r\n"] {
        let flags = check_raw(&(field("1") + after), &[A, "a=1"]);
        assert!(flags.data_after && flags.strict_error(), "{after:?}");
    }
}

#[test]
fn what_looks_like_a_boundary_is_flagged() {
    for (content, unmatched, number) in [
        ("-- \r\nme", Unmatched::Dashes, 2),
        ("-----BEGIN CERTIFICATE-----", Unmatched::Dashes, 2),
        ("x\r\n--c", Unmatched::Dashes, 2),
        ("x\r\n\r\n--", Unmatched::Dashes, 2),
        ("x --c", Unmatched::None, 0),
        ("x--b", Unmatched::Boundary, 1),
        ("x ---b--", Unmatched::Boundary, 1),
        ("\r--b\r", Unmatched::Boundary, 1),
    ] {
        let value = format!("a={}", content.as_bytes().escape_ascii());
        let flags = check_raw(&field(content), &[A, &value]);
        assert_eq!(flags.unmatched_boundary, unmatched, "{content:?}");
        assert_eq!(flags.unmatched_boundary_number(), number, "{content:?}");
        assert!(!flags.strict_error(), "{content:?}");
    }
}

#[test]
fn a_boundary_where_content_begins_is_content() {
    let body = "--b\nContent-Disposition: form-data; name=\"a\"\n\n--b\nx\n--b--\n";
    let flags = check(body, &[A, "a=--b\\r\\nx"]);
    assert!(flags.invalid_part && flags.strict_error());
    let body = "--b\nContent-Disposition: form-data; name=\"a\"\n\n--b--";
    assert!(check(body, &[A, "a="]).invalid_part);
    let body = "--b\nContent-Disposition: form-data; name=\"a\"\n--b\nx";
    let flags = check_fault(&lines(body), Fault::HeaderColon, &[]);
    assert!(flags.invalid_part);
}

#[test]
fn bodies_that_are_none() {
    for body in ["x", "\r\n", "--c\r\n", "--b", "--b--", "--b\r"] {
        check_fault(body, Fault::NoBoundary, &[]);
    }
    for body in ["--b\r\n", "--b\r\nA: b\r\n", "--b\r\nA"] {
        check_fault(body, Fault::FinalMissing, &[]);
    }
    for content in ["1", "1\r\n", "1\r\n--b", "1\r\n--b-", "1\r\n--b--\r"] {
        let body = format!("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{content}");
        check_fault(&body, Fault::FinalMissing, &[A]);
    }
    for (line, fault) in [
        ("--bc", Fault::Delimiter),
        ("--b ", Fault::Delimiter),
        ("--b-x", Fault::Delimiter),
        ("--b--x", Fault::Delimiter),
        ("-- b", Fault::DelimiterWhitespace),
    ] {
        check_fault(&field(&format!("1\r\n{line}\r\n2")), fault, &[A]);
    }
}

#[test]
fn parts_that_are_none() {
    let part = |header: &str| format!("--b\r\n{header}\r\n\r\n1\r\n--b--\r\n");
    for (header, fault) in [
        ("test", Fault::HeaderColon),
        ("Content-Type: text/plain", Fault::DispositionMissing),
        ("Content-Disposition: form-data", Fault::NameMissing),
        ("Content-Disposition: form-data; filename=x", Fault::NameMissing),
        ("Content-Disposition: attachment; name=a", Fault::Disposition(DispositionFault::Type)),
        (
            "Content-Disposition: form-data; name=a; name=b",
            Fault::Disposition(DispositionFault::NameRepeated),
        ),
        ("Content-Disposition: form-data; name=\"a; filename=x\"", Fault::Filename),
        ("Content-Disposition: form-data; name=\"a\\\"; FileName=\\\"x\"", Fault::Filename),
        ("Content-Disposition: form-data; name=a\r\nContent-Disposition: x", Fault::HeaderRepeated),
        ("Content-Disposition: form-data; name=a\0", Fault::HeaderNul),
        ("\x0eContent-Disposition: form-data; name=a", Fault::HeaderCharacter),
    ] {
        check_fault(&part(header), fault, &[]);
    }
    assert_eq!(
        BodyFault::Multipart(Fault::HeaderCharacter).to_string(),
        "Multipart parsing error: Multipart: Invalid part header (contains invalid character)."
    );
}

#[test]
fn the_content_type_alone_can_be_a_fault() {
    let options = Options::default();
    let read = testing::read(Kind::Multipart, "multipart/mixed; boundary=b", &options, b"--b\r\n");
    assert_eq!(read.fault, Some(BodyFault::Multipart(Fault::MediaType)));
    assert!(flags(&read).strict_error());
}

#[test]
fn a_quoted_boundary_is_quoted_nowhere_else() {
    let content_type = "multipart/form-data; boundary=\"b\"";
    let read = |body: &str| {
        testing::read(Kind::Multipart, content_type, &Options::default(), body.as_bytes())
    };
    let plain = read(&field("1"));
    assert_eq!(plain.told, [A, "a=1"]);
    assert!(flags(&plain).boundary_quoted && flags(&plain).strict_error());
    let fault = read(&field("1\r\n--\"b\"\r\n")).fault;
    assert_eq!(fault, Some(BodyFault::Multipart(Fault::DelimiterQuotes)));
}

#[test]
fn limits() {
    let two = field("1").replace("--b--\r\n", "") + &field("2");
    let file = two.replace("name=\"a\"", "name=\"a\"; filename=\"x\"");

    let over = read(&two, Limits { arguments_max: 1, ..Limits::default() });
    assert_eq!(over.fault, Some(BodyFault::Arguments));
    assert_eq!(over.told, [A, "a=1", A]);

    let over = read(&two, Limits { parts_max: 1, ..Limits::default() });
    assert_eq!(over.fault, Some(BodyFault::Multipart(Fault::Parts)));

    let over = read(&file, Limits { files_max: 1, ..Limits::default() });
    assert_eq!(over.fault, None);
    assert_eq!(over.told[1..4], ["file a x", "data 1", "end 1"]);
    assert_eq!(over.told[5..], ["file a x counted", "end 1"]);
    assert!(flags(&over).file_limit_exceeded && flags(&over).strict_error());

    let bytes = "Content-Disposition: form-data; name=\"a\"\r\n\r\n".len() + 3;
    let limits = Limits { fields_bytes_max: bytes, ..Limits::default() };
    assert_eq!(read(&field("123"), limits.clone()).fault, None);
    assert_eq!(read(&field("12--b"), limits.clone()).fault, Some(BodyFault::Fields));
    let limits = Limits { fields_bytes_max: 60, ..limits };
    let big = file.replace("\r\n\r\n1", &format!("\r\n\r\n{}", "x".repeat(1000)));
    let over = read(&big, limits);
    assert_eq!(over.told[2..4], [format!("data {}", "x".repeat(1000)), "end 1000".to_owned()]);
    assert_eq!(over.fault, Some(BodyFault::Fields));

    let limits = Limits { part_header_bytes_max: 45, ..Limits::default() };
    let long = |len| {
        format!(
            "--b\r\nA: {}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--b--",
            "x".repeat(len)
        )
    };
    assert_eq!(read(&long(42), limits.clone()).fault, None);
    let fault = read(&long(43), limits.clone()).fault;
    assert_eq!(fault, Some(BodyFault::Multipart(Fault::HeaderLength)));
    let fault = read(&long(600), limits).fault;
    assert_eq!(fault, Some(BodyFault::Multipart(Fault::HeaderLength)));
}

#[test]
fn truncated_bodies_give_what_came() {
    let header = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    for (content, value) in [
        ("", ""),
        ("1", "1"),
        ("1\r", "1\\r"),
        ("1\r\n", "1"),
        ("1\r\n-", "1"),
        ("1\r\n--b-", "1"),
        ("1\r\n--b--\r", "1"),
        ("1\r\n--c", "1\\r\\n--c"),
        ("1\r\n-- ", "1\\r\\n-- "),
        ("--b", "--b"),
    ] {
        let body = format!("{header}{content}");
        let options = Options::default();
        let read = testing::read_to(
            End::Truncated,
            Kind::Multipart,
            CONTENT_TYPE,
            &options,
            body.as_bytes(),
        );
        assert_eq!(read.fault, None, "{content:?}");
        assert_eq!(read.told, [A, &format!("a={value}")], "{content:?}");
    }
}
