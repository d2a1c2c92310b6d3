//! Bodies of the admin API in both directions: whole, or in pieces as they come.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// What is sent.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it; `None` once it is sent.
    Whole(Option<Bytes>),
    /// Piece by piece, until the other end of the channel is dropped; an error breaks it off, so that
    /// nobody takes the beginning for the whole.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

impl Body {
    /// A body that is at hand.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        Body::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(Ok)),
            Body::Pieces(pieces) => pieces.poll_recv(cx),
        };
        next.map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Pieces(_) => SizeHint::default(),
        }
    }
}
