use super::*;
use crate::error::FramingError;
use crate::framing;
use crate::target::Scheme;

const LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 16 * 1024, target_bytes_max: 2000, fields_max: 64 };

fn read_request(head: impl AsRef<[u8]>) -> Result<Request, RequestError> {
    let mut out = Request::new();
    request(head.as_ref(), &LIMITS, &mut out).map(|()| out)
}

fn read_response(head: impl AsRef<[u8]>) -> Result<Response, ResponseError> {
    let mut out = Response::new();
    response(head.as_ref(), &LIMITS, &mut out).map(|()| out)
}

#[track_caller]
fn refused(head: impl AsRef<[u8]>, reason: impl Into<RequestError>) {
    let head = head.as_ref();
    let text = String::from_utf8_lossy(head).into_owned();
    assert_eq!(read_request(head).err(), Some(reason.into()), "{text:?}");
}

#[track_caller]
fn response_refused(head: impl AsRef<[u8]>, reason: impl Into<ResponseError>) {
    let head = head.as_ref();
    let text = String::from_utf8_lossy(head).into_owned();
    assert_eq!(read_response(head).err(), Some(reason.into()), "{text:?}");
}

/// A request with this first line and a good `Host`.
fn with_line(line: &[u8]) -> Vec<u8> {
    [line, b"\r\nHost: a\r\n\r\n"].concat()
}

/// A request with these field lines behind a good `Host`.
fn with_fields(lines: &[u8]) -> Vec<u8> {
    [b"GET / HTTP/1.1\r\nHost: a\r\n", lines, b"\r\n"].concat()
}

#[test]
fn a_request_is_read_as_it_stands() {
    let request = read_request(
        b"PROPFIND /a/%7eb?c=d&e HTTP/1.1\r\nHost: Example.COM:8080\r\nAccept:*/*\r\n\
          X-Empty:\r\nX-Spaces: \t a \xe4 b\t \r\nx-last: :\r\n\r\n",
    )
    .unwrap();
    assert_eq!(request.method, Method::Other);
    assert_eq!(request.method_bytes(), b"PROPFIND");
    assert_eq!(request.version, Version::Http11);
    assert_eq!((request.host.as_slice(), request.port), (&b"example.com"[..], Some(8080)));
    assert_eq!((request.path(), request.query()), (&b"/a/%7eb"[..], Some(&b"c=d&e"[..])));
    assert!(request.scheme.is_empty());
    let fields: Vec<_> = request.headers.iter().map(|field| (field.name, field.value)).collect();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"Host", b"Example.COM:8080"),
        (b"Accept", b"*/*"),
        (b"X-Empty", b""),
        (b"X-Spaces", b"a \xe4 b"),
        (b"x-last", b":"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_recycled_request_keeps_nothing() {
    let mut out = Request::new();
    request(&with_fields(b"X-One: 1\r\nConnection: close\r\n"), &LIMITS, &mut out).unwrap();
    request(b"OPTIONS * HTTP/1.0\r\n\r\n", &LIMITS, &mut out).unwrap();
    let fresh = read_request(b"OPTIONS * HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(format!("{out:?}"), format!("{fresh:?}"));
    assert!(out.host.is_empty() && out.headers.is_empty());
}

#[test]
fn a_request_line_has_two_spaces_and_nothing_else() {
    for line in [
        &b"GET  / HTTP/1.1"[..],
        b"GET /  HTTP/1.1",
        b" GET / HTTP/1.1",
        b"GET / HTTP/1.1 ",
        b"GET / HTTP/1.1\t",
        b"GET\t/ HTTP/1.1",
        b"GET /\tHTTP/1.1",
        b"GET /a b HTTP/1.1",
        b"GET / HTTP/1.1 HTTP/1.1",
        b"\tGET / HTTP/1.1",
        b"GET  HTTP/1.1",
        b"GET / ",
    ] {
        let reason = match line {
            b"GET / " => RequestError::VersionMalformed,
            _ => RequestError::Whitespace,
        };
        refused(with_line(line), reason);
    }
    refused(with_line(b"GET /a\x0b HTTP/1.1"), TargetError::Control);
    refused(with_line(b"GET /a\tb HTTP/1.1"), TargetError::Control);
    refused(with_line(b"GET /\xa0 HTTP/1.1"), TargetError::NotAscii);
    refused(with_line(b"GET\x0b/ HTTP/1.1"), RequestError::Method);
    refused(with_line(b"GET\xa0/ HTTP/1.1"), RequestError::Method);
    refused(with_line(b"GET /\x0cHTTP/1.1"), RequestError::VersionMissing);
}

#[test]
fn a_method_is_a_token() {
    for method in [&b"get"[..], b"M-SEARCH", b"G!#$%&'*+-.^_`|~9", &[b'M'; METHOD_BYTES_MAX]] {
        let line = [method, b" / HTTP/1.1"].concat();
        assert_eq!(read_request(with_line(&line)).unwrap().method_bytes(), method);
    }
    for line in [
        &b"GE:T / HTTP/1.1"[..],
        b"GE\0T / HTTP/1.1",
        b"GE\rT / HTTP/1.1",
        b"G(T / HTTP/1.1",
        b"\"GET\" / HTTP/1.1",
        b"G\xc9T / HTTP/1.1",
        b"\x7fGET / HTTP/1.1",
        b"{\"json\": 1}",
    ] {
        refused(with_line(line), RequestError::Method);
    }
    refused(
        with_line(&[&[b'M'; METHOD_BYTES_MAX + 1][..], b" / HTTP/1.1"].concat()),
        RequestError::MethodTooLong,
    );
}

#[test]
fn connect_is_refused_and_trace_is_the_callers_matter() {
    refused(with_line(b"CONNECT a:443 HTTP/1.1"), RequestError::Connect);
    for target in ["/", "a", "a:", "a:port", ":443", "http://a:443"] {
        let line = format!("CONNECT {target} HTTP/1.1");
        refused(with_line(line.as_bytes()), TargetError::Form);
    }
    assert_eq!(RequestError::Connect.status(), 405);
    assert_eq!(read_request(with_line(b"TRACE / HTTP/1.1")).unwrap().method, Method::Trace);
    refused(with_line(b"connect a:443 HTTP/1.1"), TargetError::Form);
}

#[test]
fn only_two_versions_are_spoken() {
    assert_eq!(read_request(with_line(b"GET / HTTP/1.0")).unwrap().version, Version::Http10);
    for version in ["0.8", "0.9"] {
        let line = format!("GET / HTTP/{version}");
        refused(with_line(line.as_bytes()), RequestError::VersionMalformed);
    }
    for version in ["1.2", "1.9", "2.0", "3.0", "9.9"] {
        let line = format!("GET / HTTP/{version}");
        refused(with_line(line.as_bytes()), RequestError::VersionUnsupported);
    }
    assert_eq!(RequestError::VersionUnsupported.status(), 505);
    for version in [
        "http/1.1",
        "Http/1.1",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/.1",
        "HTTP/11",
        "HTTP/1.10",
        "HTTP/01.1",
        "HTTP/1.01",
        "HTTP/1,1",
        "HTTP/1.1.",
        "HTTP 1.1",
        "HTTP/+1.1",
        "HTTP/1.x",
        "HTTPS/1.1",
        "XTTP/1.1",
        "HTTP//1.1",
        "1.1",
        "HTTP/1.1\r",
        "HTTP/1.1\0",
        "HTTP/\u{661}.1",
    ] {
        let line = format!("GET / {version}");
        let reason = match version {
            "HTTP 1.1" => RequestError::Whitespace,
            _ => RequestError::VersionMalformed,
        };
        refused(with_line(line.as_bytes()), reason);
    }
    refused(with_line(b"GET /"), RequestError::VersionMissing);
    refused(with_line(b"GET"), RequestError::VersionMissing);
    refused(b"GET /\r\n\r\n", RequestError::VersionMissing);
}

#[test]
fn an_empty_line_is_tolerated_only_where_the_caller_skips_it() {
    assert_eq!(skip_empty_line(b"\r\nGET"), 2);
    for input in [&b""[..], b"\r", b"\n", b"\n\r\n", b"G\r\n", b"\r\r\n"] {
        assert_eq!(skip_empty_line(input), 0, "{input:?}");
    }
    refused(with_line(b""), RequestError::EmptyLine);
    refused(b"\r\n", RequestError::EmptyLine);
    refused(b"\n\n", FieldError::BareLf);
    refused(b"", FieldError::Incomplete);
    refused([b"\n", with_line(b"GET / HTTP/1.1").as_slice()].concat(), FieldError::BareLf);
}

#[test]
fn other_protocols_are_named() {
    refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", RequestError::Tls);
    refused(HTTP2_PREFACE_HEAD, RequestError::Http2Preface);
    assert_eq!(RequestError::Http2Preface.status(), 505);
    // The preface is these bytes and no others.
    refused(b"PRI * HTTP/2.0\r\nHost: a\r\n\r\n", RequestError::Http2Preface);
    refused(b"PRI * HTTP/1.1\r\nHost: a\r\n\r\n", TargetError::Asterisk);
    refused(b"PRI / HTTP/2.0\r\n\r\n", RequestError::VersionUnsupported);
}

#[test]
fn lines_end_in_crlf() {
    let good = "GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-Two:\r\nX-Three: 3 \r\n\r\n";
    assert!(read_request(good).is_ok());
    for (at, _) in good.match_indices("\r\n") {
        let mut bare_lf = good.as_bytes().to_vec();
        bare_lf.remove(at);
        let error = read_request(&bare_lf).unwrap_err();
        assert_eq!(error, FieldError::BareLf.into(), "without CR at {at}");
        let mut doubled = good.as_bytes().to_vec();
        doubled.insert(at, b'\r');
        assert!(read_request(&doubled).is_err(), "two CRs at {at}");
        let mut bare_cr = good.as_bytes().to_vec();
        bare_cr.remove(at + 1);
        assert!(read_request(&bare_cr).is_err(), "without LF at {at}");
        let mut swapped = good.as_bytes().to_vec();
        swapped.swap(at, at + 1);
        assert!(read_request(&swapped).is_err(), "LF CR at {at}");
    }
    refused("GET / HTTP/1.1\nHost: a\n\n", FieldError::BareLf);
    refused("GET / HTTP/1.1\r\nHost: a\n\r\n", FieldError::BareLf);
    refused("GET / HTTP/1.1\r\nHost: a\r\n\n", FieldError::BareLf);
    refused("GET / HTTP/1.0\r\n\n", FieldError::BareLf);
    refused(with_fields(b"A: b\rc\r\n"), FieldError::BareCr);
    refused(with_fields(b"A: b\r\r\n"), FieldError::BareCr);
    refused(with_fields(b"A: \rb: c\r\n"), FieldError::BareCr);
    refused(with_fields(b"A\r: b\r\n"), FieldError::BareCr);
}

#[test]
fn a_head_is_complete_and_nothing_follows() {
    let good = with_fields(b"A: b\r\n");
    for len in 0..good.len() {
        assert!(read_request(&good[..len]).is_err(), "the first {len} bytes");
    }
    refused([&good, &b"x"[..]].concat(), FieldError::Incomplete);
    refused([&good, &b"\r\n"[..]].concat(), FieldError::Incomplete);
    refused([&good, &good[..]].concat(), FieldError::Incomplete);
}

#[test]
fn fields_are_not_folded() {
    refused(with_fields(b"A: b\r\n c\r\n"), FieldError::Fold);
    refused(with_fields(b"A: b\r\n\tc\r\n"), FieldError::Fold);
    refused(with_fields(b"A:\r\n b\r\n"), FieldError::Fold);
    refused(with_fields(b"A: b\r\n \r\n"), FieldError::Fold);
    refused("GET / HTTP/1.1\r\n Host: a\r\n\r\n", FieldError::LeadingSpace);
    refused("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", FieldError::LeadingSpace);
    refused("GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n", FieldError::LeadingSpace);
}

#[test]
fn nothing_stands_between_name_and_colon() {
    refused(with_fields(b"A : b\r\n"), FieldError::SpaceBeforeColon);
    refused(with_fields(b"A\t: b\r\n"), FieldError::SpaceBeforeColon);
    refused(with_fields(b"Transfer-Encoding : chunked\r\n"), FieldError::SpaceBeforeColon);
    refused(with_fields(b"Content-Length\x0b: 1\r\n"), FieldError::Name);
    refused(with_fields(b": b\r\n"), FieldError::NameEmpty);
    refused(with_fields(b":\r\n"), FieldError::NameEmpty);
    refused(with_fields(b"A\r\n"), FieldError::NoColon);
    refused(with_fields(b"A b\r\n"), FieldError::NoColon);
}

#[test]
fn each_byte_of_a_name_is_a_tokens() {
    for byte in 0..=255_u8 {
        for at in [0, 1, 7, 8, 20, 39] {
            let mut line = [b"x".repeat(40).as_slice(), b": b\r\n"].concat();
            line[at] = byte;
            let accepted = read_request(with_fields(&line)).is_ok();
            let name_ends = byte == b':' && at > 0;
            assert_eq!(accepted, field::is_name_byte(byte) || name_ends, "{byte:#x} at {at}");
        }
    }
}

#[test]
fn each_byte_of_a_value_is_visible_or_space() {
    // Around the widths in which parsers look at many bytes at once.
    for byte in 0..=255_u8 {
        for at in [0, 1, 7, 8, 15, 16, 30, 31, 32, 33, 63, 64, 69] {
            let mut value = b"v".repeat(70);
            value[at] = byte;
            let line = [b"A: ", value.as_slice(), b"\r\n"].concat();
            let accepted = read_request(with_fields(&line)).is_ok();
            assert_eq!(accepted, field::is_value(&[byte]), "{byte:#x} at {at}");
        }
    }
    refused(with_fields(b"A: b\0c\r\n"), FieldError::Value);
    refused(with_fields(b"A: \x0bchunked\r\n"), FieldError::Value);
    refused(with_fields(b"A: \x7f\r\n"), FieldError::Value);
}

#[test]
fn only_space_and_tab_are_white_space() {
    let request = read_request(with_fields(b"A: \t b \xa0\t \r\n")).unwrap();
    assert_eq!(request.headers.named(b"a").next(), Some(&b"b \xa0"[..]));
    let request = read_request(with_fields(b"A: \xc2\xa0chunked\r\n")).unwrap();
    assert_eq!(request.headers.named(b"a").next(), Some(&b"\xc2\xa0chunked"[..]));
}

#[test]
fn limits_hold() {
    let line = |target: usize| [b"GET /", "a".repeat(target - 1).as_bytes(), b" HTTP/1.1"].concat();
    assert!(read_request(with_line(&line(LIMITS.target_bytes_max))).is_ok());
    refused(with_line(&line(LIMITS.target_bytes_max + 1)), RequestError::TargetTooLong);
    refused(with_line(&line(3000)[..2500]), RequestError::TargetTooLong);
    assert_eq!(RequestError::TargetTooLong.status(), 414);

    assert!(read_request(with_fields("A: b\r\n".repeat(63).as_bytes())).is_ok());
    refused(with_fields("A: b\r\n".repeat(64).as_bytes()), FieldError::TooMany);
    refused(with_fields("A: b\r\n".repeat(1000).as_bytes()), FieldError::TooMany);
    assert_eq!(FieldError::TooMany.status(), 431);

    let fixed = with_fields(b"A: \r\n").len();
    let fill = |len: usize| with_fields(format!("A: {}\r\n", "b".repeat(len - fixed)).as_bytes());
    assert!(read_request(fill(LIMITS.head_bytes_max)).is_ok());
    refused(fill(LIMITS.head_bytes_max + 1), FieldError::TooLarge);
    assert_eq!(FieldError::TooLarge.status(), 431);

    let name = |len: usize| with_fields(format!("{}: b\r\n", "n".repeat(len)).as_bytes());
    assert!(read_request(name(NAME_BYTES_MAX)).is_ok());
    refused(name(NAME_BYTES_MAX + 1), FieldError::NameTooLong);
}

#[test]
fn a_small_limit_of_fields_is_a_limit_too() {
    let limits = HeadLimits { fields_max: 2, ..LIMITS };
    let mut out = Request::new();
    assert!(request(&with_fields(b"A: b\r\n"), &limits, &mut out).is_ok());
    let error = request(&with_fields(b"A: b\r\nB: c\r\n"), &limits, &mut out).unwrap_err();
    assert_eq!(error, FieldError::TooMany.into());
}

#[test]
fn thousands_of_fields_are_read_where_they_are_allowed() {
    let limits = HeadLimits { head_bytes_max: 256 * 1024, fields_max: 5001, ..LIMITS };
    let lines = "Cookie: a\r\n".repeat(5000);
    let mut out = Request::new();
    request(&with_fields(lines.as_bytes()), &limits, &mut out).unwrap();
    assert_eq!(out.headers.all(Known::Cookie).count(), 5000);
    let error = request(&with_fields((lines + "A: b\r\n").as_bytes()), &limits, &mut out);
    assert_eq!(error, Err(FieldError::TooMany.into()));
}

#[test]
fn fields_beyond_the_stack_are_read_in_order() {
    let lines: Vec<String> = (0..60).map(|index| format!("X-{index}: {index}\r\n")).collect();
    let request = read_request(with_fields(lines.concat().as_bytes())).unwrap();
    let seen: Vec<String> = request
        .headers
        .iter()
        .skip(1)
        .map(|field| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            format!("{}: {}\r\n", text(field.name), text(field.value))
        })
        .collect();
    assert_eq!(seen, lines);
}

#[test]
fn connection_options_are_few() {
    let with_options = |count: usize| {
        let options = vec!["x"; count].join(",");
        with_fields(format!("Connection: {options}\r\n").as_bytes())
    };
    assert!(read_request(with_options(field::CONNECTION_OPTIONS_MAX)).is_ok());
    refused(with_options(field::CONNECTION_OPTIONS_MAX + 1), FieldError::ConnectionOptions);
    let spread = "Connection: a\r\n".repeat(field::CONNECTION_OPTIONS_MAX + 1);
    refused(with_fields(spread.as_bytes()), FieldError::ConnectionOptions);
    let one_long = format!("Connection: {}\r\n", "a".repeat(200));
    assert!(read_request(with_fields(one_long.as_bytes())).is_ok());
}

#[test]
fn there_is_one_host() {
    refused("GET / HTTP/1.1\r\n\r\n", HostError::Missing);
    refused("GET / HTTP/1.1\r\nX-Host: a\r\n\r\n", HostError::Missing);
    refused("GET / HTTP/1.1\r\nHost:\r\n\r\n", HostError::Empty);
    refused("GET / HTTP/1.1\r\nHost: \t\r\n\r\n", HostError::Empty);
    refused(with_fields(b"Host: a\r\n"), HostError::Several);
    refused(with_fields(b"hOST: b\r\n"), HostError::Several);
    refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", HostError::Several);
    refused("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", HostError::Malformed);
    refused("GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", HostError::Port);
    refused("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", HostError::Malformed);
    refused("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", HostError::Malformed);
    refused("GET / HTTP/1.0\r\nHost:\r\n\r\n", HostError::Empty);
    refused("OPTIONS * HTTP/1.1\r\n\r\n", HostError::Missing);
    let request = read_request("GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((request.host.as_slice(), request.port), (&b""[..], None));
}

#[test]
fn what_an_absolute_target_lacks_is_supplied_and_told_apart() {
    let check = |line: &[u8], path_and_query: &[u8], sent: &[u8]| {
        let request = read_request([line, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat()).unwrap();
        assert_eq!(request.path_and_query, path_and_query);
        assert_eq!(request.sent_path_and_query(), sent);
    };
    check(b"GET /x?y", b"/x?y", b"/x?y");
    check(b"GET http://a/", b"/", b"/");
    check(b"GET http://a", b"/", b"");
    check(b"GET http://a?x", b"/?x", b"?x");
    check(b"OPTIONS http://a", b"*", b"");
    check(b"OPTIONS *", b"*", b"*");
}

#[test]
fn an_absolute_target_agrees_with_host() {
    let check = |target: &str, host: &str, expected: (&str, Option<u16>, &str)| {
        let request =
            read_request(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(
            (text(&request.host).as_str(), request.port, text(&request.path_and_query).as_str()),
            expected,
            "{target}"
        );
    };
    check("http://a/b?c", "a", ("a", None, "/b?c"));
    check("http://a", "a", ("a", None, "/"));
    check("http://a?b", "a", ("a", None, "/?b"));
    check("http://a/?b/c", "a", ("a", None, "/?b/c"));
    check("HTTP://A.B/", "a.b", ("a.b", None, "/"));
    check("http://a:80/", "a", ("a", Some(80), "/"));
    check("http://a/", "a:80", ("a", None, "/"));
    check("https://a/", "a:443", ("a", None, "/"));
    check("http://a:81/", "a:81", ("a", Some(81), "/"));
    check("http://[::1]/", "[0:0::1]", ("[::1]", None, "/"));
    check("http://a./", "a", ("a", None, "/"));

    let conflict = |target: &str, host: &str, reason: HostError| {
        refused(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"), reason);
    };
    conflict("http://a/", "b", HostError::Conflict);
    conflict("http://a/", "a.b", HostError::Conflict);
    conflict("http://a/", "a:81", HostError::Conflict);
    conflict("http://a:81/", "a", HostError::Conflict);
    conflict("https://a/", "a:80", HostError::Conflict);
    conflict("http:///b", "a", HostError::Empty);
    conflict("http://a:/", "a", HostError::Port);
    refused("GET http://a/ HTTP/1.1\r\n\r\n", HostError::Missing);

    let old = read_request("GET http://A/b HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((old.host.as_slice(), old.path()), (&b"a"[..], &b"/b"[..]));
    assert_eq!(old.scheme, Scheme::Http.name().as_bytes());
    let options = read_request("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(options.path_and_query, b"*");
}

#[test]
fn only_options_asks_for_the_server() {
    assert_eq!(read_request(with_line(b"OPTIONS * HTTP/1.1")).unwrap().path_and_query, b"*");
    refused(with_line(b"GET * HTTP/1.1"), TargetError::Asterisk);
    refused(with_line(b"OPTIONS ** HTTP/1.1"), TargetError::Form);
    refused(with_line(b"OPTIONS *?a HTTP/1.1"), TargetError::Form);
}

#[test]
fn a_response_is_read_as_it_stands() {
    let check = |head: &[u8], expected: (Version, u16, &[u8], usize)| {
        let response = read_response(head).unwrap();
        assert_eq!(
            (response.version, response.status, &response.reason[..], response.headers.len()),
            expected,
            "{}",
            String::from_utf8_lossy(head)
        );
    };
    check(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", (Version::Http11, 200, b"OK", 1));
    check(b"HTTP/1.0 404 Not \xc4 Found\r\n\r\n", (Version::Http10, 404, b"Not \xc4 Found", 0));
    check(b"HTTP/1.1 200 \r\n\r\n", (Version::Http11, 200, b"", 0));
    check(b"HTTP/1.1 200\r\n\r\n", (Version::Http11, 200, b"", 0));
    check(b"HTTP/1.1 100 Continue\r\n\r\n", (Version::Http11, 100, b"Continue", 0));
    check(b"HTTP/1.1 999 x\ty\r\n\r\n", (Version::Http11, 999, b"x\ty", 0));
}

#[test]
fn odd_status_lines_are_refused() {
    for line in [
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 +20 OK",
        "HTTP/1.1 2x0 OK",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 ",
        "HTTP/1.1 -200",
    ] {
        response_refused(format!("{line}\r\n\r\n"), ResponseError::Status);
    }
    for line in ["HTTP/1.2 200 OK", "HTTP/2.0 200 OK", "HTTP/0.9 200 OK", "HTTP/3.0 200 OK"] {
        response_refused(format!("{line}\r\n\r\n"), ResponseError::Version);
    }
    for line in [
        "http/1.1 200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1",
        "HTTP/11 200 OK",
        "HTTP/1.10 200 OK",
        "HTTP/2 200 OK",
        "ICY 200 OK",
        " HTTP/1.1 200 OK",
        "<html>",
        "200 OK",
        "",
    ] {
        response_refused(format!("{line}\r\n\r\n"), ResponseError::StatusLine);
    }
    response_refused("HTTP/1.1 200 O\0K\r\n\r\n", ResponseError::Reason);
    response_refused("HTTP/1.1 200 O\rK\r\n\r\n", ResponseError::Reason);
    response_refused("HTTP/1.1 200 O\x7fK\r\n\r\n", ResponseError::Reason);
    response_refused("<html><body>hi</body></html>", FieldError::Incomplete);
}

#[test]
fn response_fields_are_judged_as_strictly() {
    let check = |lines: &str, reason: FieldError| {
        response_refused(format!("HTTP/1.1 200 OK\r\n{lines}\r\n"), reason);
    };
    check("A: b\r\n c\r\n", FieldError::Fold);
    check(" A: b\r\n", FieldError::LeadingSpace);
    check("A : b\r\n", FieldError::SpaceBeforeColon);
    check("A: b\n", FieldError::BareLf);
    check("A: b\rc\r\n", FieldError::BareCr);
    check("A: b\0\r\n", FieldError::Value);
    check("A(): b\r\n", FieldError::Name);
    check("no colon\r\n", FieldError::NoColon);
    check(&"A: b\r\n".repeat(65), FieldError::TooMany);
    response_refused("HTTP/1.1 200 OK\n\n", FieldError::BareLf);
}

/// Feeds `input` in every possible single step size and expects the same end each time.
#[track_caller]
fn scan(input: &[u8], expected: Result<Option<usize>, RequestError>) {
    for step in [1, 2, 3, 7, input.len().max(1)] {
        let mut scan = HeadScan::default();
        let mut found = Ok(None);
        let mut len = 0;
        while len < input.len() && found == Ok(None) {
            len = (len + step).min(input.len());
            found = scan.find_request(&input[..len], &LIMITS);
        }
        assert_eq!(found, expected, "{:?} by {step}", String::from_utf8_lossy(input));
    }
}

#[test]
fn the_scan_finds_the_end_in_any_split() {
    let head = with_fields(b"A: b\r\n");
    scan(&head, Ok(Some(head.len())));
    scan(&head[..head.len() - 1], Ok(None));
    scan(b"", Ok(None));
    scan(b"GET / HTTP/1.0\r\n\r\n", Ok(Some(18)));
}

#[test]
fn the_preface_of_http2_is_seen_in_any_split() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for step in 1..preface.len() {
        let mut scan = HeadScan::default();
        let mut out = Request::new();
        let found = (1..).find_map(|steps| {
            let input = &preface[..(steps * step).min(preface.len())];
            match scan.find_request(input, &LIMITS) {
                Ok(Some(end)) => Some(request(&input[..end], &LIMITS, &mut out)),
                Ok(None) => None,
                Err(reason) => Some(Err(reason)),
            }
        });
        assert_eq!(found, Some(Err(RequestError::Http2Preface)), "by {step}");
    }
}

#[test]
fn the_scan_never_looks_back() {
    let head = with_fields(b"A: b\r\n");
    let mut scan = HeadScan::default();
    for len in 0..head.len() {
        assert_eq!(scan.find_request(&head[..len], &LIMITS), Ok(None));
        assert_eq!(scan.scanned, len);
    }
}

#[test]
fn the_scan_waits_where_all_may_still_be_well() {
    // Half of the empty line that a caller may skip.
    scan(b"\r", Ok(None));
    scan(b"GET\r", Ok(None));
    let longest = [b"GET /", "a".repeat(LIMITS.target_bytes_max - 1).as_bytes()].concat();
    scan(&[&longest, &b" HTTP/1.1\r"[..]].concat(), Ok(None));
    scan(&[&longest, &b" HTTP/1.1\r\n"[..]].concat(), Ok(None));
}

#[test]
fn the_scan_stops_at_the_first_head() {
    let pipelined = [with_fields(b"A: b\r\n"), with_fields(b"B: c\r\n")].concat();
    let mut scan = HeadScan::default();
    let first = scan.find_request(&pipelined, &LIMITS).unwrap().unwrap();
    assert_eq!(first, pipelined.len() / 2);
    // Asked again, it says the same.
    assert_eq!(scan.find_request(&pipelined, &LIMITS), Ok(Some(first)));
    scan.reset();
    assert_eq!(scan.find_request(&pipelined[first..], &LIMITS), Ok(Some(first)));
}

#[test]
fn the_scan_refuses_early() {
    let early = |input: &[u8], reason: RequestError| {
        assert!(!input.ends_with(b"\r\n\r\n"));
        scan(input, Err(reason));
    };
    early(b"\x16\x03\x01\x02\x00\x01\n", RequestError::Tls);
    early(b"{\"a\": 1}", RequestError::Method);
    early(b" GET", RequestError::Whitespace);
    early(b"GET\t", RequestError::Whitespace);
    early(&[b'A'; METHOD_BYTES_MAX + 1], RequestError::MethodTooLong);
    early(b"GET / HTTP/1.1\n", FieldError::BareLf.into());
    early(b"GET / HTTP/1.1\r\nHost: a\n", FieldError::BareLf.into());
    early(b"GET / HTTP/2.0\r\n", RequestError::VersionUnsupported);
    early(b"GET  / HTTP/1.1\r\n", RequestError::Whitespace);
    early(b"GET /\r\n", RequestError::VersionMissing);
    early(b"CONNECT a:1 HTTP/1.1\r\n", RequestError::Connect);
    let target = [b"GET /".as_slice(), &[b'a'; 2100]].concat();
    early(&target, RequestError::TargetTooLong);
    let fields = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &vec![b'a'; 17_000]].concat();
    early(&fields, FieldError::TooLarge.into());
}

#[test]
fn the_scan_names_the_target_when_all_came_at_once() {
    let head = with_line(&[b"GET /".as_slice(), &vec![b'a'; 20_000], b" HTTP/1.1"].concat());
    scan(&head, Err(RequestError::TargetTooLong));
}

#[test]
fn the_scan_of_a_response_refuses_early() {
    let check = |input: &[u8], expected: Result<Option<usize>, ResponseError>| {
        assert_eq!(HeadScan::default().find_response(input, &LIMITS), expected, "{input:?}");
    };
    check(b"HTTP/1.1 200 OK\r\n\r\nbody", Ok(Some(19)));
    check(b"HTT", Ok(None));
    check(b"HTTP/1.1 200 OK\r\nA", Ok(None));
    check(b"<ht", Err(ResponseError::StatusLine));
    check(b"\r\n", Ok(Some(2)));
    response_refused("\r\n", ResponseError::StatusLine);
    check(b"HTTP/1.1 2000 OK\r\n", Err(ResponseError::Status));
    check(b"HTTP/1.1 200 OK\n", Err(FieldError::BareLf.into()));
    let long = [b"HTTP/1.1 200 ".as_slice(), &vec![b'a'; 17_000]].concat();
    check(&long, Err(FieldError::TooLarge.into()));
}

#[test]
fn framing_is_judged_from_what_was_read() {
    let check = |lines: &str, expected: Result<framing::Body, FramingError>| {
        let request = read_request(format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).unwrap();
        assert_eq!(framing::of_request(&request), expected.map_err(RequestError::from), "{lines}");
    };
    check("content-LENGTH: \t5 \r\n", Ok(framing::Body::Length(5)));
    check("Content-Length: 5\r\nContent-Length: 5\r\n", Err(FramingError::LengthSeveral));
    check("Transfer-Encoding:\tCHUNKED\t\r\n", Ok(framing::Body::Chunked));
    check("Transfer-Encoding:\r\n", Err(FramingError::Coding));
    check("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Err(FramingError::Both));
    check("Content_Length: 5\r\n", Ok(framing::Body::None));
}
