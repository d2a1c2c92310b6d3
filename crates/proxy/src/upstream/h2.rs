//! HTTP/2 towards servers: shared connections, one stream per request (RFC 9113).

use std::io;
use std::task::{Context, Poll, ready};

use ::h2::client::{ResponseFuture, SendRequest};
use ::h2::{Reason, RecvStream, SendStream};
use bytes::{Buf, Bytes};
use http::HeaderMap;
use tidegate_http::chunked;
use tidegate_http::error::{FieldError, ResponseError};
use tidegate_http::framing::{self, Body};
use tidegate_http::{Headers, Method, Response, Version, field};

use super::stream::HeadError;
use crate::connection::body::{BodyError, More};
use crate::connection::h2 as downstream;

/// Data handed to `h2` in one frame at the most; its default frame size.
const FRAME_BYTES_MAX: usize = 16 * 1024;

/// A stream to a server.
pub(crate) struct Stream {
    /// `None` until the request has begun.
    open: Option<Open>,
    connection: SendRequest<Bytes>,
    chunk: Bytes,
    trailers: Headers,
    bytes_in: u64,
    bytes_out: u64,
}

struct Open {
    send: Option<SendStream<Bytes>>,
    response: Option<ResponseFuture>,
    recv: Option<RecvStream>,
    trailers_due: bool,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("bytes_in", &self.bytes_in).finish_non_exhaustive()
    }
}

impl Stream {
    /// A stream yet to be opened on a connection that is ready for one.
    pub(crate) fn new(connection: SendRequest<Bytes>) -> Self {
        Self {
            open: None,
            connection,
            chunk: Bytes::new(),
            trailers: Headers::new(),
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Begins the request.
    pub(crate) fn begin(&mut self, request: http::Request<()>, body: Body) -> io::Result<()> {
        let ends = body == Body::None;
        self.bytes_out = request.headers().len() as u64;
        let (response, send) =
            self.connection.send_request(request, ends).map_err(io::Error::other)?;
        let send = (!ends).then_some(send);
        self.open = Some(Open { send, response: Some(response), recv: None, trailers_due: true });
        Ok(())
    }

    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in, self.bytes_out)
    }

    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Some(send) = self.open.as_mut().and_then(|open| open.send.as_mut()) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let wanted = data.len().min(FRAME_BYTES_MAX);
        send.reserve_capacity(wanted);
        while send.capacity() == 0 {
            match ready!(send.poll_capacity(cx)) {
                Some(granted) => granted.map_err(io::Error::other)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
        }
        let n = send.capacity().min(wanted);
        send.send_data(Bytes::copy_from_slice(&data[..n]), false).map_err(io::Error::other)?;
        self.bytes_out += n as u64;
        Poll::Ready(Ok(n))
    }

    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) -> io::Result<()> {
        let Some(mut send) = self.open.as_mut().and_then(|open| open.send.take()) else {
            return Ok(());
        };
        match trailers {
            Some(trailers) => send.send_trailers(downstream::fields(trailers)),
            None => send.send_data(Bytes::new(), true),
        }
        .map_err(io::Error::other)
    }

    pub(crate) fn poll_head(
        &mut self,
        method: Method,
        response: &mut Response,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Body, HeadError>> {
        let Some(open) = &mut self.open else { return Poll::Ready(Err(HeadError::Closed)) };
        let Some(future) = &mut open.response else { return Poll::Ready(Err(HeadError::Closed)) };
        if let Poll::Ready(Some(interim)) = future.poll_informational(cx) {
            let interim = interim.map_err(|error| failed(&error))?;
            take_head(interim.status(), interim.headers(), response).map_err(HeadError::Invalid)?;
            return Poll::Ready(Ok(Body::None));
        }
        let head = ready!(std::pin::Pin::new(future).poll(cx)).map_err(|error| failed(&error))?;
        open.response = None;
        let (parts, recv) = head.into_parts();
        take_head(parts.status, &parts.headers, response).map_err(HeadError::Invalid)?;
        let body = if recv.is_end_stream() || method == Method::Head {
            Body::None
        } else {
            match framing::content_length(&response.headers) {
                Ok(Some(length)) => Body::Length(length),
                Ok(None) => Body::Chunked,
                Err(error) => return Poll::Ready(Err(HeadError::Invalid(error.into()))),
            }
        };
        open.recv = Some(recv);
        Poll::Ready(Ok(body))
    }

    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, BodyError>> {
        if !self.chunk.is_empty() {
            return Poll::Ready(Ok(More::Data));
        }
        let Some(open) = &mut self.open else { return Poll::Ready(Ok(More::End)) };
        let Some(recv) = &mut open.recv else { return Poll::Ready(Ok(More::End)) };
        loop {
            match ready!(recv.poll_data(cx)) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.bytes_in += data.len() as u64;
                    self.chunk = data;
                    return Poll::Ready(Ok(More::Data));
                }
                Some(Err(_)) => return Poll::Ready(Err(BodyError::Short)),
                None => break,
            }
        }
        if open.trailers_due {
            let trailers = ready!(recv.poll_trailers(cx)).map_err(|_| BodyError::Short)?;
            open.trailers_due = false;
            for (name, value) in trailers.iter().flat_map(HeaderMap::iter) {
                let name = name.as_str().as_bytes();
                chunked::push_trailer(&mut self.trailers, name, value.as_bytes())
                    .map_err(BodyError::Chunk)?;
            }
        }
        Poll::Ready(Ok(More::End))
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.chunk
    }

    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.chunk.len());
        self.chunk.advance(n);
        if let Some(recv) = self.open.as_mut().and_then(|open| open.recv.as_mut()) {
            // An error means that the stream is gone, which the next read tells.
            let _ = recv.flow_control().release_capacity(n);
        }
    }

    pub(crate) fn trailers(&self) -> Option<&Headers> {
        Some(&self.trailers).filter(|trailers| !trailers.is_empty())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A request that is given up within its body must not look complete to the server.
        if let Some(mut send) = self.open.as_mut().and_then(|open| open.send.take()) {
            send.send_reset(Reason::CANCEL);
        }
    }
}

fn take_head(
    status: http::StatusCode,
    fields: &HeaderMap,
    response: &mut Response,
) -> Result<(), ResponseError> {
    response.clear();
    response.version = Version::Http2;
    response.status = status.as_u16();
    for (name, value) in fields {
        let (name, value) = (name.as_str().as_bytes(), field::trim(value.as_bytes()));
        if !field::is_name(name) {
            return Err(FieldError::Name.into());
        }
        if !field::is_value(value) {
            return Err(FieldError::Value.into());
        }
        response.headers.push(name, value);
    }
    Ok(())
}

fn failed(error: &::h2::Error) -> HeadError {
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => HeadError::NotProcessed,
        Some(Reason::NO_ERROR) if error.is_go_away() => HeadError::NotProcessed,
        Some(_) => HeadError::Http2("upstream_h2_reset"),
        None => HeadError::Closed,
    }
}
