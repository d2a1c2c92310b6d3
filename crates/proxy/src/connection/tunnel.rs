//! A tunnel: bytes both ways until both directions have ended (RFC 9110, section 7.8).

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::h1;
use super::transport::Transport;
use crate::upstream::h1 as upstream;
use crate::worker::buffers::Buffer;

/// What went through a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TunnelEnd {
    /// From the client to the server.
    pub(crate) bytes_up: u64,
    /// From the server to the client.
    pub(crate) bytes_down: u64,
}

/// Carries bytes both ways until both have ended, one has failed, or nothing has moved for `idle`.
pub(crate) async fn run(
    client: &mut h1::Connection,
    server: Box<upstream::Connection>,
    idle: Duration,
) -> TunnelEnd {
    // The head of the 101 is still to be sent; what either side has sent early follows it.
    if poll_fn(|cx| client.framed_mut().poll_flush(cx)).await.is_err() {
        return TunnelEnd::default();
    }
    let (mut server, from_server) = server.into_tunnel();
    let (client, from_client, slot) = client.tunnel_parts();
    let mut up = Direction::new(from_client);
    let mut down = Direction::new(from_server);
    slot.set(idle);
    poll_fn(|cx| {
        let before = up.moved + down.moved;
        let ended = (up.poll(client, &mut server, cx), down.poll(&mut server, client, cx));
        if matches!(
            ended,
            (Poll::Ready(Ok(())), Poll::Ready(Ok(())))
                | (Poll::Ready(Err(_)), _)
                | (_, Poll::Ready(Err(_)))
        ) {
            return Poll::Ready(());
        }
        if up.moved + down.moved > before {
            slot.set(idle);
        }
        slot.poll_expired(cx)
    })
    .await;
    TunnelEnd { bytes_up: up.moved, bytes_down: down.moved }
}

/// One direction of a tunnel. Holds a buffer only while bytes are in it.
struct Direction {
    buffer: Option<Buffer>,
    state: State,
    moved: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ending,
    Ended,
}

impl Direction {
    fn new(buffer: Option<Buffer>) -> Self {
        Self { buffer, state: State::Open, moved: 0 }
    }

    fn poll(
        &mut self,
        from: &mut Transport,
        to: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(buffer) = &mut self.buffer {
                while !buffer.is_empty() {
                    let n = ready!(to.poll_write_two(cx, buffer.filled(), &[]))?;
                    buffer.consume(n);
                    self.moved += n as u64;
                }
                ready!(to.poll_flush(cx))?;
            }
            match self.state {
                State::Open => {}
                State::Ending => {
                    ready!(to.poll_shutdown(cx))?;
                    self.state = State::Ended;
                }
                State::Ended => return Poll::Ready(Ok(())),
            }
            if self.state == State::Open {
                if self.buffer.is_none() {
                    ready!(from.poll_read_ready(cx))?;
                }
                let buffer = self.buffer.get_or_insert_with(Buffer::take);
                match from.poll_read(cx, buffer.spare_mut()) {
                    Poll::Ready(Ok(0)) => {
                        self.buffer = None;
                        self.state = State::Ending;
                    }
                    Poll::Ready(Ok(n)) => buffer.advance(n),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        self.buffer = None;
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}
