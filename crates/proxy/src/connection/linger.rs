//! Closing without losing what was said last.
//!
//! A socket that is closed with unread bytes in it is reset, and the reset may overtake the answer
//! (RFC 9112, section 9.6). So the writing side is closed first, and what the peer still sends is
//! read and dropped, for a while.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::transport::Transport;
use crate::worker::buffers::Buffer;
use crate::worker::wheel::Slot;

/// How long, and for how many bytes, a closing connection reads on.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Closes a connection on which everything has been said.
pub(crate) async fn close(mut transport: Transport, slot: &Slot) {
    slot.set(LINGER);
    let mut left = LINGER_BYTES_MAX;
    let mut ended = false;
    poll_fn(|cx| {
        if !ended {
            match transport.poll_shutdown(cx) {
                Poll::Ready(Ok(())) => ended = true,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        // Nothing is kept while nothing comes.
        while transport.poll_read_ready(cx).is_ready() {
            let mut buffer = Buffer::take();
            match transport.poll_read(cx, buffer.spare_mut()) {
                Poll::Ready(Ok(n)) if n > 0 && n <= left => left -= n,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        slot.poll_expired(cx)
    })
    .await;
}
