//! A byte stream with or without TLS, the same towards both sides.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::Socket;
use crate::tls;

/// What a connection reads from and writes to.
#[derive(Debug)]
pub enum Transport {
    /// Plain text.
    Plain(Socket),
    /// TLS. Boxed, so that a plain connection does not pay for its size.
    Tls(Box<tls::Stream>),
}

impl Transport {
    /// Ready once a read would not block: there are bytes, or the peer has closed.
    pub fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => socket.poll_read_ready(cx),
            Self::Tls(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Reads what is there; zero is the end of the stream.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => socket.poll_read(cx, buffer),
            Self::Tls(stream) => stream.poll_read(cx, buffer),
        }
    }

    /// Writes as much of two slices as is taken at once.
    pub fn poll_write_two(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        let slices = [IoSlice::new(first), IoSlice::new(second)];
        let written = ready!(match self {
            Self::Plain(socket) if second.is_empty() => Pin::new(socket).poll_write(cx, first),
            Self::Plain(socket) if first.is_empty() => Pin::new(socket).poll_write(cx, second),
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, &slices),
            Self::Tls(stream) => stream.poll_write_vectored(cx, &slices),
        })?;
        if written == 0 {
            Poll::Ready(Err(io::ErrorKind::WriteZero.into()))
        } else {
            Poll::Ready(Ok(written))
        }
    }

    /// Sends what is held back, if anything.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => stream.poll_flush(cx),
        }
    }

    /// Ends the writing direction, over TLS with a `close_notify`.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(stream) => stream.poll_shutdown(cx),
        }
    }

    /// Whether the socket has failed: the peer has reset the connection, or is gone.
    pub fn is_broken(&self) -> bool {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.transport(),
        };
        !matches!(SockRef::from(socket).take_error(), Ok(None))
    }

    /// Makes the end of this connection a reset. Over TLS a missing `close_notify` says as much.
    pub fn reset_on_close(&self) {
        if let Self::Plain(socket) = self {
            // A socket that has failed already needs no reset.
            let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
    }
}

/// For `h2`, which drives any tokio stream.
impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(stream) => AsyncRead::poll_read(Pin::new(stream), cx, buffer),
        }
    }
}

/// For `h2`, which drives any tokio stream.
impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => stream.poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Tls(stream) => stream.poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Transport::poll_flush(self.get_mut(), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Transport::poll_shutdown(self.get_mut(), cx)
    }
}
