//! Requests and responses as parsed values.
//!
//! A message owns its text and can be recycled with `clear`; HTTP/1, 2 and 3 all fill the same
//! types, so that the stops of a request's way have one thing to look at.

use crate::headers::Headers;

/// A request method (RFC 9110, section 9). Methods are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `CONNECT`
    Connect,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH` (RFC 5789)
    Patch,
    /// Any other token; its text is with the request.
    Other,
}

/// The protocol version a message came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

/// A request head.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The method's text where it is [`Method::Other`]; empty otherwise.
    pub method_text: Vec<u8>,
    /// The version it came with.
    pub version: Version,
    /// `scheme` of an absolute-form target or of HTTP/2's `:scheme`; empty for origin-form.
    pub scheme: Vec<u8>,
    /// The host it asks for, in lower case, without port; an IPv6 address keeps its brackets.
    /// From the target if that is absolute, else from `Host` (RFC 9112, section 3.2.2). Empty where
    /// an HTTP/1.0 request names none.
    pub host: Vec<u8>,
    /// The port beside the host, if one is written.
    pub port: Option<u16>,
    /// Path and query as received (origin-form; `*` for `OPTIONS *`), without a fragment.
    pub path_and_query: Vec<u8>,
    /// Where in `path_and_query` the `?` stands, or its length.
    pub path_len: usize,
    /// The fields, `Host` included.
    pub headers: Headers,
}

/// A response head.
#[derive(Clone, Debug)]
pub struct Response {
    /// The version it came with.
    pub version: Version,
    /// The status code, 100 to 999.
    pub status: u16,
    /// The reason phrase as received; may be empty.
    pub reason: Vec<u8>,
    /// The fields.
    pub headers: Headers,
}
