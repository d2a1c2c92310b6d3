//! A worker's connections to servers that wait for their next exchange.
//!
//! The one used last is taken first, so that those not needed grow old and go. A connection is tried
//! before it is used: the event loop knows without a system call whether the server has closed it or
//! has sent what nobody asked for. HTTP/2 connections are shared, and stay here while in use.

use std::cell::RefMut;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use foldhash::fast::RandomState;
use h2::client::SendRequest;
use tidegate_telemetry::metrics::{ConnectionState, Worker as Metrics};

use super::stream::Upstream;
use super::{Group, Seat, ServerId, h1, h2 as streams};
use crate::settings::UpstreamProtocol;
use crate::worker::wheel::{TICK, Wheel};

/// Idle connections of one worker.
pub(crate) struct Pool {
    wheel: Wheel,
    servers: HashMap<Key, Kept, RandomState>,
}

/// Connections are shared only within what makes them alike: the server and how it is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    server: ServerId,
    /// The identity of the TLS settings: others may verify otherwise.
    tls: usize,
    protocol: UpstreamProtocol,
}

#[derive(Default)]
struct Kept {
    idle: Vec<Idle>,
    shared: Vec<SendRequest<Bytes>>,
}

struct Idle {
    connection: Box<h1::Connection>,
    seat: Arc<Seat>,
    /// The wheel's tick until which it is kept.
    until: u64,
}

/// A worker's pool, borrowed for one step, with the metrics that its changes are counted in.
pub(crate) struct PoolRef<'w> {
    pub(crate) pool: RefMut<'w, Pool>,
    pub(crate) metrics: &'w Metrics,
}

impl Pool {
    pub(crate) fn new(wheel: Wheel) -> Self {
        Self { wheel, servers: HashMap::default() }
    }
}

impl PoolRef<'_> {
    /// A connection that can be used at once, if there is one.
    pub(crate) fn take(
        &mut self,
        group: &Group,
        seat: &Arc<Seat>,
        cx: &mut Context<'_>,
    ) -> Option<Upstream> {
        let Pool { wheel, servers } = &mut *self.pool;
        let kept = servers.get_mut(&Key::new(group, seat))?;
        while let Some(mut idle) = kept.idle.pop() {
            kept.tell(seat);
            if idle.until > wheel.now() && idle.connection.is_alive(cx) {
                return Some(Upstream::Http1(idle.connection));
            }
            self.metrics.upstream_closed(seat.server().label(), ConnectionState::Idle);
        }
        while let Some(connection) = kept.shared.last_mut() {
            match connection.poll_ready(cx) {
                Poll::Ready(Ok(())) => {
                    return Some(Upstream::Http2(Box::new(streams::Stream::new(
                        connection.clone(),
                    ))));
                }
                // All of its streams are in use: another connection is opened beside it.
                Poll::Pending => return None,
                Poll::Ready(Err(_)) => drop(kept.shared.pop()),
            }
        }
        None
    }

    /// Keeps a connection whose exchange has ended, if it may be used again.
    pub(crate) fn put(&mut self, group: &Group, seat: &Arc<Seat>, upstream: Upstream) {
        let Upstream::Http1(mut connection) = upstream else { return };
        let settings = &group.settings().keep_alive;
        let label = seat.server().label();
        let worn = connection.requests() >= settings.requests_max;
        let unwanted = worn || seat.server().is_removed() || seat.is_wanted_elsewhere();
        if unwanted || !connection.is_clean() {
            self.metrics.upstream_closed(label, ConnectionState::Busy);
            return;
        }
        let Pool { wheel, servers } = &mut *self.pool;
        let kept = servers.entry(Key::new(group, seat)).or_default();
        if kept.idle.len() >= settings.connections_max {
            self.metrics.upstream_closed(label, ConnectionState::Busy);
            return;
        }
        let ticks = settings.idle.as_nanos() / TICK.as_nanos();
        let until = wheel.now() + u64::try_from(ticks).unwrap_or(u64::MAX >> 1) + 1;
        kept.idle.push(Idle { connection, seat: Arc::clone(seat), until });
        kept.tell(seat);
        self.metrics.upstream_idle(label);
    }

    /// Shares an HTTP/2 connection.
    pub(crate) fn share(&mut self, group: &Group, seat: &Arc<Seat>, send: SendRequest<Bytes>) {
        let kept = self.pool.servers.entry(Key::new(group, seat)).or_default();
        kept.shared.push(send);
        kept.tell(seat);
    }

    /// Closes what has been idle for too long, was closed by its server or belongs to a server that
    /// was removed.
    pub(crate) fn sweep(&mut self, cx: &mut Context<'_>) {
        let now = self.pool.wheel.now();
        let metrics = self.metrics;
        self.pool.servers.retain(|_, kept| {
            let seat = kept.idle.first().map(|idle| Arc::clone(&idle.seat));
            kept.idle.retain_mut(|idle| {
                let server = idle.seat.server();
                let keep = idle.until > now
                    && !server.is_removed()
                    && !idle.seat.is_wanted_elsewhere()
                    && idle.connection.is_alive(cx);
                if !keep {
                    metrics.upstream_closed(server.label(), ConnectionState::Idle);
                }
                keep
            });
            kept.shared.retain_mut(|send| !matches!(send.poll_ready(cx), Poll::Ready(Err(_))));
            if let Some(seat) = seat {
                kept.tell(&seat);
            }
            !kept.idle.is_empty() || !kept.shared.is_empty()
        });
    }
}

impl Kept {
    /// Tells the balance how many requests could be sent without opening a connection.
    fn tell(&self, seat: &Seat) {
        seat.set_idle(self.idle.len() + self.shared.len());
    }
}

impl Key {
    fn new(group: &Group, seat: &Seat) -> Self {
        let settings = group.settings();
        let tls = settings.tls.as_ref().map_or(0, |tls| Arc::as_ptr(tls).addr());
        Self { server: seat.server().id(), tls, protocol: settings.protocol }
    }
}
