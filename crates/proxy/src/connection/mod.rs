//! Connections from clients: bytes in and out, one request after or beside the other.
//!
//! [`h1`] and [`h2`] drive the same stops; [`Downstream`] is what a request sees of the connection
//! it came on.

pub(crate) mod body;
pub(crate) mod drive;
pub(crate) mod framed;
pub(crate) mod gathered;
pub(crate) mod h1;
pub(crate) mod h2;
pub(crate) mod linger;
pub(crate) mod multiplex;
pub mod transport;
pub(crate) mod tunnel;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use tidegate_http::framing::{Body, Persist};
use tidegate_http::target::Scheme;
use tidegate_http::{Headers, Request, Response};
use tidegate_telemetry::Stamp;
use tidegate_telemetry::record::{Handshake, Tls};

use self::body::{BodyError, More};
use crate::caching::Filling;
use crate::forwarded::Peer;
use crate::settings::Listener;
use crate::tls::{self, ClientCertificate};
use crate::worker::wheel::Slot;

/// Who is at the other end of a connection, and how it came.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The peer, or what its PROXY header says.
    pub(crate) peer: Peer,
    /// The port beside that address.
    pub(crate) port: u16,
    /// The address the client connected to, where it is known.
    pub(crate) local: Option<SocketAddr>,
    /// The listener it came by, as of when it came.
    pub(crate) listener: Arc<Listener>,
    /// When the connection was accepted.
    pub(crate) accepted: Stamp,
    /// When its TLS handshake was complete.
    pub(crate) tls_done: Stamp,
    /// What the TLS handshake came to, if there was one.
    pub(crate) tls: Option<Box<TlsFacts>>,
}

/// What a TLS handshake with a client came to, as far as requests look at it.
#[derive(Clone, Debug)]
pub(crate) struct TlsFacts {
    pub(crate) version: Tls,
    pub(crate) handshake: Handshake,
    pub(crate) cipher: &'static str,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) client: Option<Box<ClientCertificate>>,
}

impl Client {
    /// The scheme of the connection itself.
    pub(crate) fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }
}

impl TlsFacts {
    fn of(info: &tls::Info<'_>) -> Self {
        Self {
            version: if info.version == Tls::V12.as_str() { Tls::V12 } else { Tls::V13 },
            handshake: match info.resumption {
                tls::Resumption::Full => Handshake::Full,
                tls::Resumption::Resumed => Handshake::Resumed,
            },
            cipher: info.cipher,
            server_name: info.server_name.map(Into::into),
            client: info.client.cloned().map(Box::new),
        }
    }
}

/// The connection, or the stream of one, that a request came on.
#[derive(Debug)]
pub(crate) enum Downstream<'c> {
    /// HTTP/1.
    Http1(&'c mut h1::Connection),
    /// HTTP/2.
    Http2(&'c mut h2::Stream),
    /// No client: a fill of the cache, which others read.
    Fill(&'c mut Filling),
}

impl Downstream<'_> {
    /// The place in the wheel where the request's deadlines are kept.
    pub(crate) fn slot(&self) -> &Slot {
        match self {
            Self::Http1(connection) => connection.slot(),
            Self::Http2(stream) => stream.slot(),
            Self::Fill(filling) => filling.slot(),
        }
    }

    /// Whether the whole request body has been taken.
    pub(crate) fn body_is_done(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.framed().body_is_done(),
            Self::Http2(stream) => stream.body_is_done(),
            Self::Fill(_) => true,
        }
    }

    /// Sees to it that there is request data or its end is known.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, BodyError>> {
        match self {
            Self::Http1(connection) => connection.framed_mut().poll_body(cx),
            Self::Http2(stream) => stream.poll_body(cx),
            Self::Fill(_) => Poll::Ready(Ok(More::End)),
        }
    }

    /// The request data that can be taken now.
    pub(crate) fn data(&self) -> &[u8] {
        match self {
            Self::Http1(connection) => connection.framed().data(),
            Self::Http2(stream) => stream.data(),
            Self::Fill(_) => &[],
        }
    }

    /// Bytes of request data that are known to come: those at hand at least.
    pub(crate) fn announced(&self) -> u64 {
        match self {
            Self::Http1(connection) => connection.framed().announced(),
            Self::Http2(stream) => stream.data().len() as u64,
            Self::Fill(_) => 0,
        }
    }

    /// Takes request data.
    pub(crate) fn consume(&mut self, n: usize) {
        match self {
            Self::Http1(connection) => connection.framed_mut().consume(n),
            Self::Http2(stream) => stream.consume(n),
            Self::Fill(_) => {}
        }
    }

    /// The trailers of the request, once its body has ended.
    pub(crate) fn trailers(&self) -> Option<&Headers> {
        match self {
            Self::Http1(connection) => connection.framed().trailers(),
            Self::Http2(stream) => stream.trailers(),
            Self::Fill(_) => None,
        }
    }

    /// Ready once the client has given the request up.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(connection) => connection.poll_gone(cx),
            Self::Http2(stream) => stream.poll_gone(cx),
            Self::Fill(filling) => filling.poll_unwanted(cx),
        }
    }

    /// Decides that an HTTP/1 connection ends with this response. HTTP/2 streams always do.
    pub(crate) fn close_after(&mut self) {
        match self {
            Self::Http1(connection) => connection.close_after(),
            Self::Http2(_) | Self::Fill(_) => {}
        }
    }

    /// Sends an interim response.
    pub(crate) fn interim(&mut self, request: &Request, response: &Response) {
        match self {
            Self::Http1(connection) => {
                connection.interim(request.version, response.status, &response.headers);
            }
            Self::Http2(stream) => stream.interim(response),
            Self::Fill(filling) => filling.interim(response),
        }
    }

    /// Begins the final response. `body` is what its source knows of its length; framing is written
    /// afresh for this client.
    pub(crate) fn respond(
        &mut self,
        request: &Request,
        response: &Response,
        body: Body,
    ) -> io::Result<()> {
        match self {
            Self::Http1(connection) => {
                connection.respond(request, response, body);
                Ok(())
            }
            Self::Http2(stream) => stream.respond(request, response, body),
            Self::Fill(filling) => {
                filling.respond(request, response, body);
                Ok(())
            }
        }
    }

    /// Takes response data, all or some of it.
    pub(crate) fn poll_write(
        &mut self,
        data: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Http1(connection) => connection.framed_mut().poll_write(data, cx),
            Self::Http2(stream) => stream.poll_write(data, cx),
            Self::Fill(filling) => filling.poll_write(data, cx).map(Ok),
        }
    }

    /// Ends the response body.
    pub(crate) fn finish(&mut self, trailers: Option<&Headers>) -> io::Result<()> {
        match self {
            Self::Http1(connection) => {
                connection.framed_mut().finish(trailers);
                Ok(())
            }
            Self::Http2(stream) => stream.finish(trailers),
            Self::Fill(filling) => {
                filling.finish();
                Ok(())
            }
        }
    }

    /// Sends what was written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Http1(connection) => connection.framed_mut().poll_flush(cx),
            Self::Http2(_) => Poll::Ready(Ok(())),
            Self::Fill(filling) => {
                filling.publish();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Takes the response back, if nothing of it has been sent yet: another can be given.
    pub(crate) fn retract(&mut self) -> Option<()> {
        match self {
            Self::Http1(connection) => connection.retract(),
            Self::Http2(_) | Self::Fill(_) => None,
        }
    }

    /// Gives up within a response: the client must be able to tell that it is cut.
    pub(crate) fn abort(&mut self) {
        match self {
            Self::Http1(connection) => connection.abort(),
            Self::Http2(stream) => stream.abort(),
            Self::Fill(filling) => filling.abort(),
        }
    }

    /// Bytes of the response head and body given to the client so far.
    pub(crate) fn bytes_out(&self) -> (u64, u64) {
        match self {
            Self::Http1(connection) => connection.bytes_out(),
            Self::Http2(stream) => stream.bytes_out(),
            Self::Fill(filling) => (0, filling.written()),
        }
    }

    /// What came of an HTTP/1 head that could not be accepted as it was read.
    pub(crate) fn refused_head(&self) -> &[u8] {
        match self {
            Self::Http1(connection) => connection.refused_head(),
            Self::Http2(_) | Self::Fill(_) => &[],
        }
    }

    /// What becomes of an HTTP/1 connection now that its response has been sent.
    pub(crate) fn after(&self) -> Persist {
        match self {
            Self::Http1(connection) => connection.after(),
            Self::Http2(_) | Self::Fill(_) => Persist::Close,
        }
    }
}
