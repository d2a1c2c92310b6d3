//! How long a message's body is, and what becomes of its connection (RFC 9112, sections 6 and 9).
//!
//! Two parsers that disagree about a body's length turn one message into two; that is request
//! smuggling. So a message is refused wherever parsers are known to disagree, including a few places
//! in which the RFC would allow a repair.
//!
//! These functions are for HTTP/1 messages. `Content-Length` and `Transfer-Encoding` are never
//! copied from one side to the other: the caller writes the framing afresh from [`Body`].

use crate::error::{FramingError, RequestError, ResponseError};
use crate::field::{self, Known};
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
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingError::LengthMalformed);
    }
    if value.len() > 1 && value[0] == b'0' {
        return Err(FramingError::LengthMalformed);
    }
    // Nobody's signed counter may wrap where ours does not.
    value
        .iter()
        .try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
        .map(i64::unsigned_abs)
        .ok_or(FramingError::LengthTooLarge)
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
    for option in headers.all(Known::Connection).flat_map(field::tokens) {
        if option.eq_ignore_ascii_case(b"close") {
            return Persist::Close;
        }
        if option.eq_ignore_ascii_case(b"keep-alive") {
            persist = Persist::KeepAlive;
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
/// section 10.1.1). An unknown expectation is refused with 417.
pub fn expects_continue(request: &Request) -> Result<Expectation, RequestError> {
    let headers = &request.headers;
    if !headers.has(Known::Expect) || request.version == Version::Http10 {
        return Ok(Expectation::None);
    }
    let known = headers
        .all(Known::Expect)
        .flat_map(field::tokens)
        .all(|expectation| expectation.eq_ignore_ascii_case(b"100-continue"));
    if !known {
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
/// from us. Nor does a request with a body switch, as its body would end in another protocol.
pub fn upgrade<'a>(request: &'a Request, allowed: &[&[u8]]) -> Option<&'a [u8]> {
    let headers = &request.headers;
    if !headers.has(Known::Upgrade) || request.version != Version::Http11 {
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
