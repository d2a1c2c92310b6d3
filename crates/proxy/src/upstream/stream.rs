//! One exchange with a server, over HTTP/1 or HTTP/2, as a request sees it.

use std::io;
use std::task::{Context, Poll};

use tidegate_http::error::ResponseError;
use tidegate_http::framing::Body;
use tidegate_http::parse::HeadLimits;
use tidegate_http::{Headers, Method, Response};

use super::{h1, h2};
use crate::connection::body::{BodyError, More};

/// An exchange with a server.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// On an HTTP/1 connection of its own.
    Http1(Box<h1::Connection>),
    /// On a stream of a shared HTTP/2 connection.
    Http2(Box<h2::Stream>),
}

/// Why no response head came.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// The server closed or reset the connection before the first byte.
    Closed,
    /// The server closed or reset the connection within the head.
    Broken,
    /// The head cannot be accepted.
    Invalid(ResponseError),
    /// The server says that it has not looked at the request (RFC 9113, section 8.7).
    NotProcessed,
    /// The server sent interim responses without end.
    Interims,
    /// The server reset the stream, or broke HTTP/2.
    Http2(&'static str),
}

impl Upstream {
    /// Bytes received and sent in this exchange.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        match self {
            Self::Http1(connection) => connection.bytes(),
            Self::Http2(stream) => stream.bytes(),
        }
    }

    /// Whether anything of the request may have reached the server.
    pub(crate) fn was_written(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.was_written(),
            Self::Http2(_) => true,
        }
    }

    /// Takes request data, all or some of it.
    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Http1(connection) => connection.framed_mut().poll_write(data, cx),
            Self::Http2(stream) => stream.poll_write(data, cx),
        }
    }

    /// Ends the request body.
    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) -> io::Result<()> {
        match self {
            Self::Http1(connection) => {
                connection.framed_mut().finish(trailers);
                Ok(())
            }
            Self::Http2(stream) => stream.finish(trailers),
        }
    }

    /// Sends what was written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Http1(connection) => connection.framed_mut().poll_flush(cx),
            Self::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    /// Reads the next response head, interim or final. After the final one the body can be read.
    pub(crate) fn poll_head(
        &mut self,
        method: Method,
        limits: &HeadLimits,
        response: &mut Response,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Body, HeadError>> {
        match self {
            Self::Http1(connection) => connection.poll_head(method, limits, response, cx),
            Self::Http2(stream) => stream.poll_head(method, response, cx),
        }
    }

    /// Sees to it that there is response data or its end is known.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, BodyError>> {
        match self {
            Self::Http1(connection) => connection.framed_mut().poll_body(cx),
            Self::Http2(stream) => stream.poll_body(cx),
        }
    }

    /// The response data that can be taken now.
    pub(crate) fn data(&self) -> &[u8] {
        match self {
            Self::Http1(connection) => connection.framed().data(),
            Self::Http2(stream) => stream.data(),
        }
    }

    /// Takes response data.
    pub(crate) fn consume(&mut self, n: usize) {
        match self {
            Self::Http1(connection) => connection.framed_mut().consume(n),
            Self::Http2(stream) => stream.consume(n),
        }
    }

    /// The trailers of the response, once its body has ended.
    pub(crate) fn trailers(&self) -> Option<&Headers> {
        match self {
            Self::Http1(connection) => connection.framed().trailers(),
            Self::Http2(stream) => stream.trailers(),
        }
    }
}
