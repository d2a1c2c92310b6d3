//! One HTTP/2 stream from a client: a request and its response (RFC 9113).
//!
//! `h2` has framed it and checked what frames can tell. Here the message is brought into the form
//! that all versions share: pseudo-fields become target and host, and what HTTP/1 could not say
//! without ambiguity is refused (RFC 9113, sections 8.2, 8.3 and 10.3).

use std::io;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use ::h2::server::SendResponse;
use ::h2::{Reason, RecvStream, SendStream};
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_http::chunked;
use tidegate_http::error::HostError;
use tidegate_http::field::{self, Known};
use tidegate_http::framing::Body;
use tidegate_http::{Headers, Method, Request, Response, Version, target};
use tidegate_telemetry::metrics::StreamEnd;

use super::body::{BodyError, More};
use crate::worker::wheel::Slot;

/// Data handed to `h2` in one frame at the most; its default frame size.
const FRAME_BYTES_MAX: usize = 16 * 1024;

/// A stream from a client.
pub(crate) struct Stream {
    slot: Slot,
    recv: RecvStream,
    /// Data received and not yet consumed.
    chunk: Bytes,
    body: Reading,
    trailers: Headers,
    send: Sending,
    /// Bytes the response still owes, where its length is known.
    owed: Option<u64>,
    end: StreamEnd,
    head_out: u64,
    body_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Data,
    Trailers,
    Done,
}

enum Sending {
    Head(SendResponse<Bytes>),
    Body(SendStream<Bytes>),
    Ended,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(slot: Slot, recv: RecvStream, send: SendResponse<Bytes>) -> Self {
        let body = if recv.is_end_stream() { Reading::Done } else { Reading::Data };
        Self {
            slot,
            recv,
            chunk: Bytes::new(),
            body,
            trailers: Headers::new(),
            send: Sending::Head(send),
            owed: None,
            end: StreamEnd::Done,
            head_out: 0,
            body_out: 0,
        }
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(crate) fn body_is_done(&self) -> bool {
        self.chunk.is_empty() && self.body == Reading::Done
    }

    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, BodyError>> {
        loop {
            if !self.chunk.is_empty() {
                return Poll::Ready(Ok(More::Data));
            }
            match self.body {
                Reading::Data => match ready!(self.recv.poll_data(cx)) {
                    Some(Ok(data)) => self.chunk = data,
                    Some(Err(_)) => return Poll::Ready(Err(BodyError::Short)),
                    None => self.body = Reading::Trailers,
                },
                Reading::Trailers => {
                    let trailers = ready!(self.recv.poll_trailers(cx));
                    self.body = Reading::Done;
                    match trailers {
                        Ok(Some(fields)) => self.take_trailers(&fields)?,
                        Ok(None) => {}
                        Err(_) => return Poll::Ready(Err(BodyError::Short)),
                    }
                }
                Reading::Done => return Poll::Ready(Ok(More::End)),
            }
        }
    }

    fn take_trailers(&mut self, fields: &HeaderMap) -> Result<(), BodyError> {
        for (name, value) in fields {
            let name = name.as_str().as_bytes();
            chunked::push_trailer(&mut self.trailers, name, value.as_bytes())
                .map_err(BodyError::Chunk)?;
        }
        Ok(())
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.chunk
    }

    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.chunk.len());
        self.chunk.advance(n);
        // An error means that the stream is gone, which the next read tells.
        let _ = self.recv.flow_control().release_capacity(n);
    }

    pub(crate) fn trailers(&self) -> Option<&Headers> {
        Some(&self.trailers).filter(|trailers| !trailers.is_empty())
    }

    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(match &mut self.send {
            Sending::Head(send) => send.poll_reset(cx).map(|_| ()),
            Sending::Body(send) => send.poll_reset(cx).map(|_| ()),
            Sending::Ended => Poll::Pending,
        });
        self.end = StreamEnd::ResetByClient;
        Poll::Ready(())
    }

    pub(crate) fn interim(&mut self, response: &Response) {
        if let (Sending::Head(send), Some(head)) = (&mut self.send, head(response, None)) {
            // A client that is gone is found out by what follows.
            let _ = send.send_informational(head);
        }
    }

    pub(crate) fn respond(
        &mut self,
        request: &Request,
        response: &Response,
        body: Body,
    ) -> io::Result<()> {
        let Sending::Head(mut send) = std::mem::replace(&mut self.send, Sending::Ended) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let length = match body {
            Body::None
                if request.method == Method::Head || matches!(response.status, 204 | 304) =>
            {
                None
            }
            Body::None => Some(0),
            Body::Length(length) => Some(length),
            Body::Chunked | Body::UntilClose => None,
        };
        let head = head(response, length).ok_or(io::ErrorKind::InvalidData)?;
        self.head_out = head_bytes(&head);
        let ends = body == Body::None;
        let stream = send.send_response(head, ends).map_err(io::Error::other)?;
        if !ends {
            self.owed = length;
            self.send = Sending::Body(stream);
        }
        Ok(())
    }

    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Sending::Body(send) = &mut self.send else {
            return Poll::Ready(Ok(data.len()));
        };
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let wanted = data.len().min(FRAME_BYTES_MAX);
        send.reserve_capacity(wanted);
        let granted = loop {
            if send.capacity() > 0 {
                break send.capacity().min(wanted);
            }
            match ready!(send.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        };
        let left = self.owed.map(|owed| owed.saturating_sub(granted as u64));
        let ends = left == Some(0);
        send.send_data(Bytes::copy_from_slice(&data[..granted]), ends).map_err(io::Error::other)?;
        self.owed = left;
        self.body_out += granted as u64;
        if ends {
            self.send = Sending::Ended;
        }
        Poll::Ready(Ok(granted))
    }

    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) -> io::Result<()> {
        let Sending::Body(mut send) = std::mem::replace(&mut self.send, Sending::Ended) else {
            return Ok(());
        };
        match trailers {
            Some(trailers) => send.send_trailers(fields(trailers)),
            None => send.send_data(Bytes::new(), true),
        }
        .map_err(io::Error::other)
    }

    pub(crate) fn abort(&mut self) {
        self.end = StreamEnd::ResetByGate;
        match std::mem::replace(&mut self.send, Sending::Ended) {
            Sending::Head(mut send) => send.send_reset(Reason::INTERNAL_ERROR),
            Sending::Body(mut send) => send.send_reset(Reason::INTERNAL_ERROR),
            Sending::Ended => {}
        }
    }

    pub(crate) fn bytes_out(&self) -> (u64, u64) {
        (self.head_out, self.body_out)
    }

    /// How the stream ended, once its request has.
    pub(crate) fn end(&self) -> StreamEnd {
        self.end
    }
}

/// What a request head would be in HTTP/1, for the record.
pub(crate) fn head_in(request: &Request) -> u64 {
    let fields = request.headers.iter().map(|field| field.name.len() + field.value.len() + 4);
    (fields.sum::<usize>() + request.path_and_query.len()) as u64
}

/// Why an HTTP/2 request cannot be accepted, in a word.
pub(crate) type Malformed = &'static str;

/// Brings an HTTP/2 request head into the form all versions share.
pub(crate) fn request(
    head: &http::Request<RecvStream>,
    out: &mut Request,
) -> Result<(), Malformed> {
    out.clear();
    out.version = Version::Http2;
    let method = head.method().as_str().as_bytes();
    if !field::is_name(method) {
        return Err("h2_method");
    }
    out.set_method(method);
    if out.method == Method::Connect {
        return Err("request_connect");
    }
    let scheme = head.uri().scheme_str().ok_or("h2_scheme_missing")?;
    if !matches!(scheme, "http" | "https") {
        return Err("h2_scheme");
    }
    out.scheme.extend_from_slice(scheme.as_bytes());
    for (name, value) in head.headers() {
        let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
        // `h2` lets names pass that HTTP/1 does not know, and values with space around them, which
        // are malformed here (RFC 9113, section 8.2.1).
        if !field::is_name(name) {
            return Err("h2_field_name");
        }
        if !field::is_value(value) || field::trim(value).len() != value.len() {
            return Err("h2_field_value");
        }
        push(&mut out.headers, name, value);
    }
    path(head, out)?;
    authority(head, out)
}

/// A client may split its cookies over many fields; HTTP/1 knows one (RFC 9113, section 8.2.3).
fn push(headers: &mut Headers, name: &[u8], value: &[u8]) {
    if name == b"cookie"
        && let Some(first) = headers.first(Known::Cookie)
    {
        let joined = [first, b"; ", value].concat();
        headers.set_known(Known::Cookie, &joined);
    } else {
        headers.push(name, value);
    }
}

fn path(head: &http::Request<RecvStream>, out: &mut Request) -> Result<(), Malformed> {
    let path_and_query = head.uri().path_and_query().ok_or("h2_path_missing")?.as_str();
    let text = match path_and_query.as_bytes() {
        b"*" | b"/*" if out.method == Method::Options && head.uri().path() == "*" => b"*",
        text => text,
    };
    match target::form(text) {
        Ok(target::Form::Origin) => {}
        Ok(target::Form::Asterisk) if out.method == Method::Options => {}
        _ => return Err("h2_path"),
    }
    out.set_path_and_query(text);
    Ok(())
}

/// `:authority`, or `Host` where it is missing; if both are there, they agree (RFC 9113, section
/// 8.3.1).
fn authority(head: &http::Request<RecvStream>, out: &mut Request) -> Result<(), Malformed> {
    let mut hosts = out.headers.all(Known::Host);
    let (host, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return Err("host_several");
    }
    let mut from_field = Vec::new();
    let field_port = match host {
        Some(host) => Some(target::host(host, &mut from_field).map_err(HostError::code)?),
        None => None,
    };
    if let Some(authority) = head.uri().authority() {
        let authority = authority.as_str().as_bytes();
        out.port = target::host(authority, &mut out.host).map_err(HostError::code)?;
        if field_port.is_some_and(|port| port != out.port || from_field != out.host) {
            return Err("host_disagrees");
        }
    } else {
        out.port = field_port.ok_or("host_missing")?;
        out.host = from_field;
    }
    Ok(())
}

/// A response head for `h2`. `None` where a field is not valid, which parsed ones always are.
fn head(response: &Response, length: Option<u64>) -> Option<http::Response<()>> {
    let mut head = http::Response::new(());
    *head.status_mut() = http::StatusCode::from_u16(response.status).ok()?;
    *head.headers_mut() = fields(&response.headers);
    if let Some(length) = length {
        head.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Some(head)
}

/// Fields for `h2`, without those for one connection only (RFC 9113, section 8.2.2).
pub(crate) fn fields(headers: &Headers) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(headers.len());
    for field in field::end_to_end(headers) {
        let name = name_of(field.known)
            .map_or_else(|| HeaderName::from_bytes(field.name).ok(), |name| Some(name.clone()));
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            map.append(name, value);
        }
    }
    map
}

/// The name as `h2` has it, made once: to make one costs more than all else about a field.
fn name_of(known: Known) -> Option<&'static HeaderName> {
    static NAMES: LazyLock<Vec<HeaderName>> = LazyLock::new(|| {
        let names = Known::ALL.iter().map(|known| known.name().to_ascii_lowercase());
        names.filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok()).collect()
    });
    NAMES.get(known as usize)
}

/// What the head would be in HTTP/1, for the record; its size on the wire is the connection's matter.
fn head_bytes(head: &http::Response<()>) -> u64 {
    let fields = head.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    fields.sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_at_its_place() {
        for known in Known::ALL {
            let name = name_of(*known).map(HeaderName::as_str);
            assert_eq!(name, Some(known.name().to_ascii_lowercase().as_str()));
        }
        assert_eq!(name_of(Known::Other), None);
    }
}
