//! Requests and responses as parsed values.
//!
//! A message owns its text and can be recycled with `clear`; HTTP/1, 2 and 3 all fill the same
//! types, so that the stops of a request's way have one thing to look at.

use crate::block::{self, Byte};
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

impl Method {
    /// The method with this text; [`Method::Other`] for any that is not named here.
    pub fn of(text: &[u8]) -> Method {
        match text {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"CONNECT" => Method::Connect,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            _ => Method::Other,
        }
    }

    /// The method's text; empty for [`Method::Other`].
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
            Method::Other => "",
        }
    }

    /// Whether a request with it only asks (RFC 9110, section 9.2.1).
    pub const fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Whether doing it twice is as good as doing it once (RFC 9110, section 9.2.2).
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
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

impl Version {
    /// The version as messages and logs write it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
            Version::Http3 => "HTTP/3",
        }
    }
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
    /// The host it asks for, in its one spelling (see [`crate::target::host`]), without port; an
    /// IPv6 address keeps its brackets.
    /// From the target if that is absolute, else from `Host` (RFC 9112, section 3.2.2). Empty where
    /// an HTTP/1.0 request names none.
    pub host: Vec<u8>,
    /// The port beside the host, if one is written.
    pub port: Option<u16>,
    /// Path and query as received (origin-form; `*` for `OPTIONS *`), without a fragment.
    pub path_and_query: Vec<u8>,
    /// Where in `path_and_query` the `?` stands, or its length.
    pub path_len: usize,
    /// Whether the path is the client's, or was put where an absolute target had none.
    pub path_source: PathSource,
    /// The fields, `Host` included.
    pub headers: Headers,
}

/// Where a request's path comes from (RFC 9112, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PathSource {
    /// The target has it.
    #[default]
    Target,
    /// The target is absolute and ends with its authority, or has only a query behind it: `/`, or `*`
    /// for `OPTIONS`, was supplied.
    Supplied,
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

impl Request {
    /// An empty request; allocates nothing.
    pub fn new() -> Self {
        Request {
            method: Method::Get,
            method_text: Vec::new(),
            version: Version::Http11,
            scheme: Vec::new(),
            host: Vec::new(),
            port: None,
            path_and_query: Vec::new(),
            path_len: 0,
            path_source: PathSource::Target,
            headers: Headers::new(),
        }
    }

    /// Forgets all content and keeps the memory.
    pub fn clear(&mut self) {
        self.method = Method::Get;
        self.method_text.clear();
        self.version = Version::Http11;
        self.scheme.clear();
        self.host.clear();
        self.port = None;
        self.path_and_query.clear();
        self.path_len = 0;
        self.path_source = PathSource::Target;
        self.headers.clear();
    }

    /// The method's text, whether it is a known one or not.
    pub fn method_bytes(&self) -> &[u8] {
        match self.method {
            Method::Other => &self.method_text,
            known => known.name().as_bytes(),
        }
    }

    /// Takes a method from its text.
    pub fn set_method(&mut self, text: &[u8]) {
        self.method = Method::of(text);
        self.method_text.clear();
        if self.method == Method::Other {
            self.method_text.extend_from_slice(text);
        }
    }

    /// Takes path and query and finds the `?` between them.
    pub fn set_path_and_query(&mut self, text: &[u8]) {
        self.path_and_query.clear();
        self.path_and_query.extend_from_slice(text);
        self.path_len = block::find::<Byte<b'?'>>(text, 0).unwrap_or(text.len());
    }

    /// The path as received.
    pub fn path(&self) -> &[u8] {
        self.path_and_query.get(..self.path_len).unwrap_or(&self.path_and_query)
    }

    /// Path and query as the target has them: without what was supplied.
    pub fn sent_path_and_query(&self) -> &[u8] {
        match self.path_source {
            PathSource::Target => &self.path_and_query,
            PathSource::Supplied => self.path_and_query.get(1..).unwrap_or_default(),
        }
    }

    /// The query as received, without its `?`; `None` if there is no `?`.
    pub fn query(&self) -> Option<&[u8]> {
        self.path_and_query.get(self.path_len + 1..)
    }
}

impl Default for Request {
    fn default() -> Self {
        Self::new()
    }
}

impl Response {
    /// An empty 200; allocates nothing.
    pub fn new() -> Self {
        Response {
            version: Version::Http11,
            status: 200,
            reason: Vec::new(),
            headers: Headers::new(),
        }
    }

    /// Forgets all content and keeps the memory.
    pub fn clear(&mut self) {
        self.version = Version::Http11;
        self.status = 200;
        self.reason.clear();
        self.headers.clear();
    }
}

impl Default for Response {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_known_in_upper_case_only() {
        for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
        {
            let method = Method::of(name.as_bytes());
            assert_eq!(method.name(), name);
            assert_eq!(Method::of(name.to_lowercase().as_bytes()), Method::Other);
        }
    }

    #[test]
    fn path_and_query_part_at_the_first_question_mark() {
        let check = |text: &[u8], path: &[u8], query: Option<&[u8]>| {
            let mut request = Request::new();
            request.set_path_and_query(text);
            assert_eq!((request.path(), request.query()), (path, query), "{text:?}");
        };
        check(b"/a", b"/a", None);
        check(b"/a?", b"/a", Some(b""));
        check(b"/a?b?c", b"/a", Some(b"b?c"));
        check(b"", b"", None);
    }

    #[test]
    fn clear_leaves_nothing_of_the_message_before() {
        let mut request = Request::new();
        request.set_method(b"PURGE");
        request.version = Version::Http10;
        request.scheme.extend_from_slice(b"http");
        request.host.extend_from_slice(b"a");
        request.port = Some(1);
        request.set_path_and_query(b"/a?b");
        request.headers.push(b"A", b"b");
        assert_eq!(request.method_bytes(), b"PURGE");
        request.clear();
        assert_eq!(format!("{request:?}"), format!("{:?}", Request::new()));
    }
}
