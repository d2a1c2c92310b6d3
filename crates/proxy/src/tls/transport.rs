//! The socket under a stream.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected stream socket.
#[derive(Debug)]
pub enum Transport {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
}

impl From<TcpStream> for Transport {
    fn from(stream: TcpStream) -> Self {
        Transport::Tcp(stream)
    }
}

impl From<UnixStream> for Transport {
    fn from(stream: UnixStream) -> Self {
        Transport::Unix(stream)
    }
}

impl Transport {
    /// Waits until there is something to read: bytes, the end, or an error.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tcp(stream) => stream.poll_read_ready(cx),
            Transport::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Writes what the socket takes without waiting.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.try_write(bytes),
            Transport::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Reads what has arrived without waiting.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.try_read(into),
            Transport::Unix(stream) => stream.try_read(into),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Transport::Unix(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Transport::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// A socket has nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
