//! What arrives, put into variables.

use std::borrow::Cow;
use std::net::IpAddr;

use super::state::State;
use super::{Inspection, Mode};
use crate::body::urlencoded::{self, Escapes};
use crate::body::{self, Flow};
use crate::seclang::control::BodyProcessor;
use crate::seclang::setting::{LimitAction, Switch};
use crate::variable::Variable;

/// The two ends of the client's connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The client's address, behind trusted proxies the one that they name.
    pub client: IpAddr,
    /// The client's port.
    pub client_port: u16,
    /// The gate's address.
    pub server: IpAddr,
    /// The gate's port.
    pub server_port: u16,
}

/// A request's head, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target as the client sent it, absolute or not.
    pub target: &'a [u8],
    /// The protocol with its version, such as `HTTP/1.1` or `HTTP/2.0`.
    pub protocol: &'a [u8],
    /// The host without its port.
    pub host: &'a [u8],
    /// What names this transaction in logs: `UNIQUE_ID`.
    pub id: &'a [u8],
}

/// A response's head, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status code.
    pub status: u16,
    /// The protocol with its version.
    pub protocol: &'a [u8],
}

/// Fields of a head in their order, names and values.
pub trait Fields<'a>: Iterator<Item = (&'a [u8], &'a [u8])> {}

impl<'a, T: Iterator<Item = (&'a [u8], &'a [u8])>> Fields<'a> for T {}

impl Inspection {
    /// Takes the connection's ends.
    pub fn connection(&mut self, connection: &Connection) {
        let address = |state: &mut State, variable, address: IpAddr| {
            // An IPv4 client of an IPv6 socket is an IPv4 client to every rule.
            let text = address.to_canonical().to_string();
            let value = state.contents.intern(text.as_bytes());
            state.values.set(variable, value);
        };
        let state = &mut *self.state;
        address(state, Variable::RemoteAddr, connection.client);
        address(state, Variable::RemoteHost, connection.client);
        address(state, Variable::ServerAddr, connection.server);
        state.set_number(Variable::RemotePort, u64::from(connection.client_port));
        state.set_number(Variable::ServerPort, u64::from(connection.server_port));
    }

    /// Takes a request's head; phase 1 can run then.
    pub fn request_head<'a>(&mut self, head: RequestHead<'a>, fields: impl Fields<'a>) {
        let program = std::sync::Arc::clone(&self.program);
        let options = &program.settings.body;
        let limits = &options.limits;
        let state = &mut *self.state;
        state.set(Variable::RequestMethod, head.method);
        state.set(Variable::RequestProtocol, head.protocol);
        state.set(Variable::ServerName, head.host);
        state.set(Variable::UniqueId, head.id);
        state.set(Variable::WebAppId, program.settings.web_app_id.as_bytes());
        state.set(Variable::RequestUriRaw, head.target);
        let mut line = [head.method, b" ", head.target, b" ", head.protocol].concat();
        state.set(Variable::RequestLine, &line);
        let target = without_authority(head.target);
        state.set(Variable::RequestUri, target);
        let question = memchr::memchr(b'?', target);
        let path = &target[..question.unwrap_or(target.len())];
        let query = question.map_or(&b""[..], |at| &target[at + 1..]);
        let path = &*percent_decode(path);
        state.set(Variable::RequestFilename, path);
        let segment = memchr::memrchr2(b'/', b'\\', path).map_or(path, |at| &path[at + 1..]);
        state.set(Variable::RequestBasename, segment);
        state.set(Variable::QueryString, query);
        state.set(Variable::PathInfo, b"");

        line.extend_from_slice(b"\r\n");
        let mut processor = None;
        for (name, value) in fields {
            state.push_field(Variable::RequestHeaders, name, value);
            for part in [name, b": ", value, b"\r\n"] {
                line.extend_from_slice(part);
            }
            if name.eq_ignore_ascii_case(b"cookie") {
                let mut left = limits.arguments_max;
                body::cookies::cookies(value, b';', |name, value| {
                    let name = state.contents.intern(name);
                    let value = state.contents.intern(value);
                    state.values.push(Variable::RequestCookies, name, value);
                    left = left.saturating_sub(1);
                    if left == 0 { Flow::Stop } else { Flow::Continue }
                });
            } else if name.eq_ignore_ascii_case(b"content-type") {
                processor = processor.or(Some(processor_of(value)));
                self.content_type.clear();
                self.content_type.extend_from_slice(value);
            } else if name.eq_ignore_ascii_case(b"content-encoding") {
                self.content_encoding.extend_from_slice(value);
                self.content_encoding.push(b',');
            } else if name.eq_ignore_ascii_case(b"authorization") {
                let scheme = value.split(|&byte| byte == b' ').next().unwrap_or_default();
                state.set(Variable::AuthType, scheme);
            }
        }
        line.extend_from_slice(b"\r\n");
        state.body_processor = processor.flatten();
        state.set_number(Variable::FullRequestLength, line.len() as u64);
        if program.uses(Variable::FullRequest) {
            state.set(Variable::FullRequest, &line);
        }

        let (mut left, mut bytes) = (limits.arguments_max, 0);
        let escapes = urlencoded::query(query, options.argument_separator, |name, value| {
            if left == 0 {
                return Flow::Stop;
            }
            left -= 1;
            bytes += (name.len() + value.len()) as u64;
            let name = state.contents.intern(name);
            let value = state.contents.intern(value);
            state.values.push(Variable::ArgsGet, name, value);
            Flow::Continue
        });
        self.arguments_bytes = bytes;
        state.set_number(Variable::ArgsCombinedSize, bytes);
        state.set_number(Variable::UrlencodedError, u64::from(escapes == Escapes::Invalid));
        for zero in [Variable::InboundDataError, Variable::ReqbodyError] {
            state.set_number(zero, 0);
        }
    }

    /// Whether rules want the request's body, once phase 1 has run.
    pub fn wants_request_body(&self) -> Switch {
        self.state.request_body.access
    }

    /// How many bytes of the request's body are taken (`SecRequestBodyLimit`), and what follows from
    /// more. Where nothing is stopped, a body is not refused for its length either.
    pub fn request_body_limit(&self) -> (u64, LimitAction) {
        let action = match self.state.mode {
            Mode::Block => self.program.settings.request_body_limit_action,
            Mode::Detect | Mode::Off => LimitAction::ProcessPartial,
        };
        (self.state.request_body.bytes_max, action)
    }

    /// Takes a response's head; phase 3 can run then.
    pub fn response_head<'a>(&mut self, head: ResponseHead<'a>, fields: impl Fields<'a>) {
        let mut codings = Vec::new();
        let state = &mut *self.state;
        state.set_number(Variable::ResponseStatus, u64::from(head.status));
        state.set(Variable::ResponseProtocol, head.protocol);
        let mut line = head.protocol.to_vec();
        line.push(b' ');
        line.extend_from_slice(itoa::Buffer::new().format(head.status).as_bytes());
        state.set(Variable::StatusLine, &line);
        for (name, value) in fields {
            state.push_field(Variable::ResponseHeaders, name, value);
            if name.eq_ignore_ascii_case(b"content-type") {
                let media_type = value.split(|&byte| byte == b';').next().unwrap_or_default();
                state.set(Variable::ResponseContentType, media_type.trim_ascii());
            } else if name.eq_ignore_ascii_case(b"content-length") {
                state.set(Variable::ResponseContentLength, value);
            } else if name.eq_ignore_ascii_case(b"content-encoding") {
                codings.extend_from_slice(value);
                codings.push(b',');
            }
        }
        let limits = &self.program.settings.body.limits;
        self.response_body.decode(&codings, limits);
        let state = &mut *self.state;
        state.set_number(Variable::OutboundDataError, 0);
    }
}

/// The processor that a content type calls for, before rules have a say.
fn processor_of(content_type: &[u8]) -> Option<BodyProcessor> {
    let media_type = content_type.split(|&byte| byte == b';').next().unwrap_or_default();
    let is = |name: &str| media_type.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    if is("application/x-www-form-urlencoded") {
        Some(BodyProcessor::UrlEncoded)
    } else if is("multipart/form-data") {
        Some(BodyProcessor::Multipart)
    } else {
        None
    }
}

/// An absolute target without its scheme and authority (RFC 9112 section 3.2.2).
fn without_authority(target: &[u8]) -> &[u8] {
    if target.starts_with(b"/") {
        return target;
    }
    let Some(scheme) = memchr::memmem::find(target, b"://") else { return target };
    let rest = &target[scheme + 3..];
    match memchr::memchr2(b'/', b'?', rest) {
        Some(at) => &rest[at..],
        None => b"/",
    }
}

/// A path with its escapes decoded, as the server behind will read it; what is no escape stays.
fn percent_decode(path: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'%', path) else { return Cow::Borrowed(path) };
    let mut decoded = path[..first].to_vec();
    let mut rest = &path[first..];
    while let [byte, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (byte, digit(0), digit(1)) {
            #[expect(clippy::cast_possible_truncation, reason = "two hexadecimal digits")]
            decoded.push((high * 16 + low) as u8);
            rest = &tail[2..];
        } else {
            decoded.push(*byte);
            rest = tail;
        }
    }
    Cow::Owned(decoded)
}

impl State {
    /// Adds a field. A name that comes again adds to the value, as RFC 9110 section 5.3 allows and
    /// Apache does, for whom the Core Rule Set was written; a cookie field each stays by itself.
    fn push_field(&mut self, of: Variable, name: &[u8], value: &[u8]) {
        let alone = [&b"cookie"[..], b"set-cookie"];
        if !alone.iter().any(|field| name.eq_ignore_ascii_case(field)) {
            let contents = &self.contents;
            let known = self
                .values
                .of(of)
                .iter()
                .position(|named| contents.bytes(named.name).eq_ignore_ascii_case(name));
            if let Some(at) = known {
                let before = self.contents.bytes(self.values.of(of)[at].value);
                let joined = [before, b", ", value].concat();
                let joined = self.contents.intern(&joined);
                self.values.replace(of, at, joined);
                return;
            }
        }
        let name = self.contents.intern(name);
        let value = self.contents.intern(value);
        self.values.push(of, name, value);
    }

    pub(super) fn set(&mut self, variable: Variable, value: &[u8]) {
        let value = self.contents.intern(value);
        self.values.set(variable, value);
    }

    pub(super) fn set_number(&mut self, variable: Variable, number: u64) {
        self.set(variable, itoa::Buffer::new().format(number).as_bytes());
    }
}
