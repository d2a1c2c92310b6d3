//! The byte stream under an HTTP/2 connection: what leaves in one turn of the loop leaves together.
//!
//! `h2` hands over each DATA frame by itself and flushes behind it. Sent as they come, the responses of
//! one turn would be a record and a system call each. So they are gathered here, and the task that
//! drives the connection sends them once `h2` has nothing more to say. Large frames are not gathered,
//! since a copy would cost more than a call.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::transport::Transport;
use crate::worker::buffers::Buffer;

/// Writes of this size and above are sent from where they lie.
const LARGE_BYTES: usize = 8 * 1024;

/// A handle on the stream: one is `h2`'s, the other stays with the task that drives the connection.
#[derive(Clone, Debug)]
pub(crate) struct Gathered(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    transport: Transport,
    /// Received before the connection was known to be HTTP/2.
    received: Option<Buffer>,
    /// Written and not yet sent. Nothing to send means no buffer held.
    out: Option<Buffer>,
}

impl Gathered {
    pub(crate) fn new(transport: Transport, received: Option<Buffer>) -> Self {
        let received = received.filter(|buffer| !buffer.is_empty());
        Self(Rc::new(RefCell::new(Inner { transport, received, out: None })))
    }

    /// Sends what was gathered. To be called whenever the connection has been driven as far as it goes.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_send(cx)
    }
}

impl Inner {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(out) = &mut self.out {
            let n = ready!(self.transport.poll_write_two(cx, out.filled(), &[]))?;
            out.consume(n);
            if out.is_empty() {
                self.out = None;
            }
        }
        self.transport.poll_flush(cx)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted: usize = slices.iter().map(|slice| slice.len()).sum();
        let room = self.out.as_mut().map_or(usize::MAX, |out| out.spare_mut().len());
        if wanted >= LARGE_BYTES || wanted > room {
            ready!(self.poll_send(cx))?;
        }
        if wanted >= LARGE_BYTES {
            return Pin::new(&mut self.transport).poll_write_vectored(cx, slices);
        }
        let out = self.out.get_or_insert_with(Buffer::take);
        Poll::Ready(Ok(slices.iter().map(|slice| out.append(slice)).sum()))
    }
}

impl AsyncRead for Gathered {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let inner = &mut *self.0.borrow_mut();
        let Some(received) = &mut inner.received else {
            return AsyncRead::poll_read(Pin::new(&mut inner.transport), cx, into);
        };
        let n = received.len().min(into.remaining());
        into.put_slice(&received.filled()[..n]);
        received.consume(n);
        if received.is_empty() {
            inner.received = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gathered {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing: `h2` flushes behind every frame. [`Gathered::poll_send`] is what sends.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.0.borrow_mut();
        ready!(inner.poll_send(cx))?;
        inner.transport.poll_shutdown(cx)
    }
}
