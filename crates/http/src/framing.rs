//! How long a message's body is, and what becomes of its connection (RFC 9112, sections 6 and 9).
//!
//! Two parsers that disagree about a body's length turn one message into two; that is request
//! smuggling. So a message is refused wherever parsers are known to disagree, including a few places
//! in which the RFC would allow a repair.
//!
//! These functions are for HTTP/1 messages. `Content-Length` and `Transfer-Encoding` are never
//! copied from one side to the other: the caller writes the framing afresh from [`Body`].

use crate::error::{FramingError, RequestError, ResponseError};
use crate::field::{self, Known, SoleOption};
use crate::headers::Headers;
use crate::message::{Method, Request, Response, Version};

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing; the next byte belongs to the next message.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks, for [`crate::chunked::Decoder`].
    Chunked,
    /// All bytes until the connection closes. Only responses can have this.
    UntilClose,
}

/// What becomes of a connection when a message on it has ended (RFC 9112, section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persist {
    /// It may carry another message.
    KeepAlive,
    /// It closes.
    Close,
}

/// What a request wants to hear before it sends its body (RFC 9110, section 10.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing: the body follows at once, or there is none.
    None,
    /// A 100, or a final status that spares the sender the body.
    Continue,
}

/// The body of a request (RFC 9112, section 6.3).
pub fn of_request(request: &Request) -> Result<Body, RequestError> {
    Ok(match declared(request.version, &request.headers)? {
        Declared::Nothing | Declared::Length(0) => Body::None,
        Declared::Length(length) => Body::Length(length),
        Declared::Chunked => Body::Chunked,
    })
}

/// The body of a response to a request with this method (RFC 9112, section 6.3).
///
/// A response without content has none whatever it says, but what it says is judged all the same. A
/// 204 with `Content-Length: 0` is wrong and common, and does no harm once the field is gone:
/// [`drop_void_length`] is for that. For a 101, what follows is the caller's matter.
pub fn of_response(response: &Response, request_method: Method) -> Result<Body, ResponseError> {
    let declared = declared(response.version, &response.headers)?;
    let has_no_content = match response.status {
        100..=199 | 204 => {
            return match declared {
                Declared::Nothing | Declared::Length(0) => Ok(Body::None),
                Declared::Length(_) | Declared::Chunked => Err(ResponseError::ContentForbidden),
            };
        }
        304 => true,
        _ => request_method == Method::Head,
    };
    Ok(match declared {
        _ if has_no_content => Body::None,
        Declared::Nothing => Body::UntilClose,
        Declared::Length(0) => Body::None,
        Declared::Length(length) => Body::Length(length),
        Declared::Chunked => Body::Chunked,
    })
}

/// Removes the `Content-Length` that a 1xx or 204 may not have (RFC 9110, section 8.6).
pub fn drop_void_length(response: &mut Response) {
    if matches!(response.status, 100..=199 | 204) {
        response.headers.remove(Known::ContentLength);
    }
}

/// What `Content-Length` says. Also for HTTP/2 and 3, where frames carry the body and this has to
/// agree with them (RFC 9113, section 8.1.1).
pub fn content_length(headers: &Headers) -> Result<Option<u64>, FramingError> {
    let mut values = headers.all(Known::ContentLength);
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => length(value).map(Some),
        // RFC 9110, section 8.6 lets equal ones pass; not all who read them look beyond the first.
        (Some(_), Some(_)) => Err(FramingError::LengthSeveral),
    }
}

enum Declared {
    Nothing,
    Length(u64),
    Chunked,
}

fn declared(version: Version, headers: &Headers) -> Result<Declared, FramingError> {
    if !headers.has(Known::TransferEncoding) {
        return Ok(match content_length(headers)? {
            Some(length) => Declared::Length(length),
            None => Declared::Nothing,
        });
    }
    if headers.has(Known::ContentLength) {
        return Err(FramingError::Both);
    }
    if version == Version::Http10 {
        return Err(FramingError::CodingInHttp10);
    }
    let mut values = headers.all(Known::TransferEncoding);
    match (values.next(), values.next()) {
        (Some(value), None) if value.eq_ignore_ascii_case(b"chunked") => Ok(Declared::Chunked),
        _ => Err(FramingError::Coding),
    }
}

/// A number in its shortest form: no sign, no padding, no list.
fn length(value: &[u8]) -> Result<u64, FramingError> {
    if value.is_empty() || (value.len() > 1 && value[0] == b'0') {
        return Err(FramingError::LengthMalformed);
    }
    let mut number = 0_u64;
    for &byte in value {
        if !byte.is_ascii_digit() {
            return Err(FramingError::LengthMalformed);
        }
        // Digits may still be followed by something that is none, which is told first.
        number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    }
    // Nobody's signed counter may wrap where ours does not.
    if number > i64::MAX.unsigned_abs() { Err(FramingError::LengthTooLarge) } else { Ok(number) }
}

/// Whether the sender of these fields lets its connection persist.
///
/// For a response whose body is [`Body::UntilClose`] it does not, whatever the fields say;
/// [`persist_response`] knows.
pub fn persist(version: Version, headers: &Headers) -> Persist {
    let default = if version == Version::Http10 { Persist::Close } else { Persist::KeepAlive };
    if !headers.has(Known::Connection) {
        return default;
    }
    let mut persist = default;
    for value in headers.all(Known::Connection) {
        match field::sole_option(value) {
            SoleOption::Close => return Persist::Close,
            SoleOption::KeepAlive => {
                persist = Persist::KeepAlive;
                continue;
            }
            SoleOption::Other => {}
        }
        for option in field::tokens(value) {
            if option.eq_ignore_ascii_case(b"close") {
                return Persist::Close;
            }
            if option.eq_ignore_ascii_case(b"keep-alive") {
                persist = Persist::KeepAlive;
            }
        }
    }
    persist
}

/// Whether the client lets its connection persist.
pub fn persist_request(request: &Request) -> Persist {
    persist(request.version, &request.headers)
}

/// Whether the origin lets its connection persist.
pub fn persist_response(response: &Response, body: Body) -> Persist {
    match body {
        Body::UntilClose => Persist::Close,
        _ => persist(response.version, &response.headers),
    }
}

/// Whether the client waits for a 100 before it sends its body.
///
/// HTTP/1.0 has no expectations, and a request without a body has nothing to wait for (RFC 9110,
/// section 10.1.1). An unknown expectation is refused with 417. Over HTTP/2, a request need not
/// declare its body; there the answer holds for those that do.
pub fn expects_continue(request: &Request) -> Result<Expectation, RequestError> {
    let headers = &request.headers;
    if !headers.has(Known::Expect) || request.version == Version::Http10 {
        return Ok(Expectation::None);
    }
    let mut expectations = headers.all(Known::Expect).flat_map(field::tokens).peekable();
    if expectations.peek().is_none()
        || !expectations.all(|expected| expected.eq_ignore_ascii_case(b"100-continue"))
    {
        return Err(FramingError::Expectation.into());
    }
    match of_request(request)? {
        Body::None => Ok(Expectation::None),
        Body::Length(_) | Body::Chunked | Body::UntilClose => Ok(Expectation::Continue),
    }
}

/// The protocol that a request wants to switch to, if it is one of `allowed` (RFC 9110, section
/// 7.8).
///
/// Only what is allowed is ever passed on, and alone. `h2c` never is: it would hide what follows
/// from us. Nor does anything but a `GET` without a body switch: that is all WebSocket knows (RFC
/// 6455, section 4.1), and a body would end in another protocol.
pub fn upgrade<'a>(request: &'a Request, allowed: &[&[u8]]) -> Option<&'a [u8]> {
    let headers = &request.headers;
    if !headers.has(Known::Upgrade)
        || request.version != Version::Http11
        || request.method != Method::Get
    {
        return None;
    }
    if headers.has(Known::TransferEncoding)
        || !matches!(content_length(headers), Ok(None | Some(0)))
        || !has_option(headers, b"upgrade")
    {
        return None;
    }
    headers.all(Known::Upgrade).flat_map(field::tokens).find(|protocol| {
        !protocol.eq_ignore_ascii_case(b"h2c")
            && allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(protocol))
    })
}

/// Judges a 101: it has to switch to what was asked for, and to nothing else.
pub fn switched(response: &Response, asked: Option<&[u8]>) -> Result<(), ResponseError> {
    let asked = asked.ok_or(ResponseError::SwitchUnasked)?;
    let mut protocols = response.headers.all(Known::Upgrade).flat_map(field::tokens);
    let one = protocols.next().filter(|_| protocols.next().is_none());
    match one {
        Some(protocol)
            if protocol.eq_ignore_ascii_case(asked)
                && has_option(&response.headers, b"upgrade") =>
        {
            Ok(())
        }
        _ => Err(ResponseError::SwitchUnasked),
    }
}

fn has_option(headers: &Headers, option: &[u8]) -> bool {
    headers
        .all(Known::Connection)
        .flat_map(field::tokens)
        .any(|token| token.eq_ignore_ascii_case(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    fn request(fields: &[(&str, &str)]) -> Request {
        Request { headers: headers(fields), ..Request::new() }
    }

    fn response(status: u16, fields: &[(&str, &str)]) -> Response {
        Response { status, headers: headers(fields), ..Response::new() }
    }

    const LENGTH: &str = "Content-Length";
    const CODING: &str = "Transfer-Encoding";

    #[test]
    fn a_length_is_one_plain_number() {
        let check = |value: &str, expected: Result<Body, FramingError>| {
            let found = of_request(&request(&[(LENGTH, value)]));
            assert_eq!(found, expected.map_err(RequestError::from), "{value:?}");
            let found = of_response(&response(200, &[(LENGTH, value)]), Method::Get);
            assert_eq!(found, expected.map_err(ResponseError::from), "{value:?}");
        };
        check("0", Ok(Body::None));
        check("1", Ok(Body::Length(1)));
        check("9223372036854775807", Ok(Body::Length(i64::MAX.unsigned_abs())));
        for huge in ["9223372036854775808", "18446744073709551616", &"9".repeat(400)] {
            check(huge, Err(FramingError::LengthTooLarge));
        }
        for malformed in [
            "",
            "+1",
            "-1",
            "-0",
            "01",
            "00",
            "0000000005",
            "1,1",
            "1, 1",
            "5, 6",
            "1 1",
            "1;",
            "0x1",
            "1e3",
            "1.0",
            "1_000",
            "five",
            "5\t",
            " 5",
            "5\u{a0}",
            "\u{665}",
            "\"5\"",
            "5,",
            ",5",
        ] {
            check(malformed, Err(FramingError::LengthMalformed));
        }
    }

    #[test]
    fn there_is_one_length() {
        for second in ["5", "6", "", "x"] {
            let fields = [(LENGTH, "5"), (LENGTH, second)];
            let reason = FramingError::LengthSeveral;
            assert_eq!(of_request(&request(&fields)), Err(reason.into()));
            assert_eq!(of_response(&response(200, &fields), Method::Get), Err(reason.into()));
            assert_eq!(content_length(&headers(&fields)), Err(reason));
        }
    }

    #[test]
    fn the_only_coding_is_chunked() {
        let check = |values: &[&str], expected: Result<Body, FramingError>| {
            let fields: Vec<_> = values.iter().map(|value| (CODING, *value)).collect();
            let found = of_request(&request(&fields));
            assert_eq!(found, expected.map_err(RequestError::from), "{values:?}");
            let found = of_response(&response(200, &fields), Method::Get);
            assert_eq!(found, expected.map_err(ResponseError::from), "{values:?}");
        };
        check(&["chunked"], Ok(Body::Chunked));
        check(&["Chunked"], Ok(Body::Chunked));
        check(&["CHUNKED"], Ok(Body::Chunked));
        for value in [
            "",
            "identity",
            "gzip",
            "gzip, chunked",
            "chunked, gzip",
            "chunked, chunked",
            "chunked,",
            ",chunked",
            "chunked;",
            "chunked;a=b",
            "chunked, identity",
            "identity, chunked",
            "xchunked",
            "chunkedx",
            "chunke",
            "\"chunked\"",
            "\x0bchunked",
            "chunked\x0b",
            "chun ked",
            "chunked\tx",
            "\u{a0}chunked",
            "c\u{212a}hunked",
        ] {
            check(&[value], Err(FramingError::Coding));
        }
        check(&["chunked", "chunked"], Err(FramingError::Coding));
        check(&["chunked", ""], Err(FramingError::Coding));
        check(&["gzip", "chunked"], Err(FramingError::Coding));
        check(&["", "chunked"], Err(FramingError::Coding));
    }

    #[test]
    fn both_framings_are_refused() {
        for (length, coding) in
            [("5", "chunked"), ("0", "chunked"), ("x", "chunked"), ("5", "gzip")]
        {
            for fields in
                [[(LENGTH, length), (CODING, coding)], [(CODING, coding), (LENGTH, length)]]
            {
                let reason = FramingError::Both;
                assert_eq!(of_request(&request(&fields)), Err(reason.into()));
                for method in [Method::Get, Method::Head] {
                    for status in [200, 204, 304] {
                        let found = of_response(&response(status, &fields), method);
                        assert_eq!(found, Err(reason.into()));
                    }
                }
            }
        }
    }

    #[test]
    fn http10_has_no_codings() {
        let request = Request { version: Version::Http10, ..request(&[(CODING, "chunked")]) };
        let reason = FramingError::CodingInHttp10;
        assert_eq!(of_request(&request), Err(reason.into()));
        let response =
            Response { version: Version::Http10, ..response(200, &[(CODING, "chunked")]) };
        assert_eq!(of_response(&response, Method::Get), Err(reason.into()));
    }

    #[test]
    fn a_message_that_declares_nothing() {
        assert_eq!(of_request(&request(&[])), Ok(Body::None));
        assert_eq!(of_response(&response(200, &[]), Method::Get), Ok(Body::UntilClose));
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        let check = |status, method, fields: &[(&str, &str)], expected| {
            let found = of_response(&response(status, fields), method);
            assert_eq!(found, expected, "{status} {method:?} {fields:?}");
        };
        for fields in [&[][..], &[(LENGTH, "5")], &[(CODING, "chunked")]] {
            check(200, Method::Head, fields, Ok(Body::None));
            check(404, Method::Head, fields, Ok(Body::None));
            check(304, Method::Get, fields, Ok(Body::None));
        }
        for status in [100, 101, 103, 199, 204] {
            check(status, Method::Get, &[], Ok(Body::None));
            check(status, Method::Get, &[(LENGTH, "0")], Ok(Body::None));
            let forbidden = Err(ResponseError::ContentForbidden);
            check(status, Method::Get, &[(LENGTH, "5")], forbidden);
            check(status, Method::Get, &[(CODING, "chunked")], forbidden);
            check(status, Method::Head, &[(LENGTH, "5")], forbidden);
        }
        check(205, Method::Get, &[(LENGTH, "5")], Ok(Body::Length(5)));
        let malformed = Err(FramingError::LengthMalformed.into());
        check(304, Method::Get, &[(LENGTH, "x")], malformed);
        check(200, Method::Head, &[(LENGTH, "x")], malformed);
        check(204, Method::Get, &[(LENGTH, "x")], malformed);
    }

    #[test]
    fn a_void_length_is_dropped_where_it_is_void() {
        for (status, stays) in [(204, false), (103, false), (200, true), (304, true), (205, true)] {
            let mut response = response(status, &[(LENGTH, "0")]);
            drop_void_length(&mut response);
            assert_eq!(response.headers.has(Known::ContentLength), stays, "{status}");
        }
    }

    #[test]
    fn persistence_is_asked_for_or_declined() {
        let check = |version, values: &[&str], expected| {
            let fields: Vec<_> = values.iter().map(|value| ("Connection", *value)).collect();
            assert_eq!(persist(version, &headers(&fields)), expected, "{version:?} {values:?}");
            let request = Request { version, ..request(&fields) };
            assert_eq!(persist_request(&request), expected);
        };
        check(Version::Http11, &[], Persist::KeepAlive);
        check(Version::Http11, &["keep-alive"], Persist::KeepAlive);
        check(Version::Http11, &["close"], Persist::Close);
        check(Version::Http11, &["Close"], Persist::Close);
        check(Version::Http11, &["x, CLOSE ,y"], Persist::Close);
        check(Version::Http11, &["keep-alive, close"], Persist::Close);
        check(Version::Http11, &["close, keep-alive"], Persist::Close);
        check(Version::Http11, &["keep-alive", "close"], Persist::Close);
        check(Version::Http11, &["closed"], Persist::KeepAlive);
        check(Version::Http10, &[], Persist::Close);
        check(Version::Http10, &["Keep-Alive"], Persist::KeepAlive);
        check(Version::Http10, &["keep-alive, close"], Persist::Close);
        check(Version::Http10, &["x"], Persist::Close);
    }

    #[test]
    fn a_body_until_close_ends_its_connection() {
        let response = response(200, &[("Connection", "keep-alive")]);
        assert_eq!(persist_response(&response, Body::UntilClose), Persist::Close);
        assert_eq!(persist_response(&response, Body::Length(1)), Persist::KeepAlive);
    }

    #[test]
    fn the_only_expectation_is_100_continue() {
        let check = |value: &str, expected: Result<Expectation, FramingError>| {
            let request = request(&[("Expect", value), (LENGTH, "5")]);
            assert_eq!(expects_continue(&request), expected.map_err(RequestError::from), "{value}");
        };
        check("100-continue", Ok(Expectation::Continue));
        check("100-Continue", Ok(Expectation::Continue));
        check("100-continue, 100-continue", Ok(Expectation::Continue));
        for unknown in ["", "100-continued", "200-ok", "100-continue, x", "100-continue;a=b", "100"]
        {
            check(unknown, Err(FramingError::Expectation));
        }
        assert_eq!(FramingError::Expectation.status(), 417);
    }

    #[test]
    fn nobody_waits_without_a_body_or_in_http10() {
        let bodiless = request(&[("Expect", "100-continue")]);
        assert_eq!(expects_continue(&bodiless), Ok(Expectation::None));
        let empty = request(&[("Expect", "100-continue"), (LENGTH, "0")]);
        assert_eq!(expects_continue(&empty), Ok(Expectation::None));
        let chunked = request(&[("Expect", "100-continue"), (CODING, "chunked")]);
        assert_eq!(expects_continue(&chunked), Ok(Expectation::Continue));
        let old = Request {
            version: Version::Http10,
            ..request(&[("Expect", "whatever"), (LENGTH, "5")])
        };
        assert_eq!(expects_continue(&old), Ok(Expectation::None));
    }

    #[test]
    fn only_allowed_protocols_are_switched_to() {
        let check = |fields: &[(&str, &str)], expected: Option<&[u8]>| {
            let request = request(fields);
            let found = upgrade(&request, &[b"websocket", b"h2c"]);
            assert_eq!(found, expected, "{fields:?}");
        };
        let connection = ("Connection", "keep-alive, Upgrade");
        check(&[connection, ("Upgrade", "websocket")], Some(b"websocket"));
        check(&[connection, ("Upgrade", "WebSocket")], Some(b"WebSocket"));
        check(&[connection, ("Upgrade", "h2c, websocket")], Some(b"websocket"));
        check(&[connection, ("Upgrade", "websocket"), (LENGTH, "0")], Some(b"websocket"));
        check(&[connection, ("Upgrade", "h2c")], None);
        check(&[connection, ("Upgrade", "H2C")], None);
        check(&[connection, ("Upgrade", "TLS/1.3")], None);
        check(&[connection, ("Upgrade", "websocket/13")], None);
        check(&[connection], None);
        check(&[("Upgrade", "websocket")], None);
        check(&[("Connection", "close"), ("Upgrade", "websocket")], None);
        check(&[connection, ("Upgrade", "websocket"), (LENGTH, "5")], None);
        check(&[connection, ("Upgrade", "websocket"), (LENGTH, "x")], None);
        check(&[connection, ("Upgrade", "websocket"), (CODING, "chunked")], None);
        let old = Request {
            version: Version::Http10,
            ..request(&[connection, ("Upgrade", "websocket")])
        };
        assert_eq!(upgrade(&old, &[b"websocket"]), None);
        let post =
            Request { method: Method::Post, ..request(&[connection, ("Upgrade", "websocket")]) };
        assert_eq!(upgrade(&post, &[b"websocket"]), None);
    }

    #[test]
    fn a_switch_is_to_what_was_asked_for() {
        let check = |fields: &[(&str, &str)], asked: Option<&[u8]>, expected| {
            assert_eq!(switched(&response(101, fields), asked), expected, "{fields:?} {asked:?}");
        };
        let unasked = Err(ResponseError::SwitchUnasked);
        let connection = ("Connection", "upgrade");
        let good = [connection, ("Upgrade", "websocket")];
        check(&good, Some(b"websocket"), Ok(()));
        check(&good, Some(b"WebSocket"), Ok(()));
        check(&good, None, unasked);
        check(&good, Some(b"other"), unasked);
        check(&[connection], Some(b"websocket"), unasked);
        check(&[("Upgrade", "websocket")], Some(b"websocket"), unasked);
        check(&[connection, ("Upgrade", "websocket, h2c")], Some(b"websocket"), unasked);
        check(&[connection, ("Upgrade", "h2c"), good[1]], Some(b"websocket"), unasked);
    }
}
