//! Counting, from the worker's side.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::block::{Block, class};
use super::events::{Busy, Closed, ConnectionState, StreamEnd};
use super::labels::Label;
use super::reasons::Reason;
use crate::clock::nanos;
use crate::record::{
    CacheResult, Handshake, Inspection, Outcome, Phase, Protocol, Record, Side, Tls,
    UpstreamConnection, WafMode,
};

/// The one writer of a worker's counters.
///
/// It can be moved to the worker's thread and shared there (`Rc`), but not between threads: `Sync`
/// and `Clone` are withheld because counters are written without locked instructions.
#[derive(Debug)]
pub struct Worker {
    block: Arc<Block>,
    one_thread: PhantomData<Cell<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Pairs with the acquire of whoever takes the block next.
        self.block.taken.store(false, Ordering::Release);
    }
}

/// What an event loop tells of itself; all since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopTotals {
    /// Task polls.
    pub polls: u64,
    /// Sleeps.
    pub parks: u64,
    /// Time not asleep.
    pub busy: Duration,
}

/// Whether a health check passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The server answered as expected.
    Passed,
    /// It did not.
    Failed,
}

impl Worker {
    /// The caller has taken `block`.
    pub(super) fn writing(block: Arc<Block>) -> Worker {
        Worker { block, one_thread: PhantomData }
    }

    /// A request began; it ends with [`Worker::finish`].
    #[inline]
    pub fn request_started(&self) {
        self.block.basics.requests_active.up();
    }

    /// A request ended: counts its record. To be called once for each request, last of all.
    pub fn finish(&self, record: &Record) {
        let basics = &self.block.basics;
        basics.requests_active.down();
        basics.requests[record.protocol.index()][record.tls.index()].add(1);
        basics.outcomes[record.outcome.index()][record.side.index()].add(1);
        basics.status(record.status);

        // Written out, so that each call is compiled for its phase alone.
        let count = |phase: Phase| {
            if let Some(nanos) = record.phase_nanos(phase) {
                basics.phases[phase.index()].record(nanos);
            }
        };
        count(Phase::Accept);
        count(Phase::Tls);
        count(Phase::HeadRead);
        count(Phase::RequestBody);
        count(Phase::Routing);
        count(Phase::Admission);
        count(Phase::Inspection);
        count(Phase::LookUp);
        count(Phase::FillWait);
        count(Phase::PoolWait);
        count(Phase::Connect);
        count(Phase::UpstreamTls);
        count(Phase::FirstByte);
        count(Phase::UpstreamHead);
        count(Phase::Body);
        count(Phase::Write);

        if record.waf.mode != WafMode::Off {
            self.inspected(&record.waf);
        }

        let bytes = &record.bytes;
        let place = self.block.places.row(record.route.or(record.site));
        place.requests[class(record.status)].add(1);
        place.bytes_in.add(bytes.head_in + bytes.body_in);
        place.bytes_out.add(bytes.head_out + bytes.body_out);
        if let Some(nanos) = record.phase_nanos(Phase::Total) {
            place.duration.record(nanos);
        }
        if record.cache.result != CacheResult::None {
            place.cache[record.cache.result.index()].add(1);
            if record.cache.result.is_hit() {
                place.cache_bytes.add(bytes.body_out);
            }
        }

        if !record.cache.result.is_of_a_fill() {
            self.fetched(record);
        }

        if let Some(code) = error_code(record) {
            let reason = Reason::new(record.outcome.as_str(), record.side, code);
            self.block.request_errors.add(reason);
        }
    }

    /// A server was asked, for a request or on behalf of the cache: counts what came of it.
    pub fn fetched(&self, record: &Record) {
        if record.connection != UpstreamConnection::None {
            let target = self.block.targets.row(record.server.or(record.group));
            target.responses[class(record.upstream_status)].add(1);
            target.bytes_in.add(record.bytes.up_in);
            target.bytes_out.add(record.bytes.up_out);
            if let Some(nanos) = record.phase_nanos(Phase::FirstByte) {
                target.first_byte.record(nanos);
            }
        }
    }

    fn inspected(&self, waf: &Inspection) {
        let basics = &self.block.basics;
        basics.inspections[waf.mode.index()][waf.verdict.index()].add(1);
        for (phase, nanos) in basics.waf_phases.iter().zip(waf.phases_nanos) {
            if nanos > 0 {
                phase.record(nanos);
            }
        }
        if waf.queued_nanos > 0 {
            basics.waf_queued.record(waf.queued_nanos);
        }
    }

    /// The inspection pool had no room for a request.
    pub fn waf_busy(&self, busy: Busy) {
        self.block.basics.waf_busy[busy.index()].add(1);
    }

    /// A client's connection was accepted; it is busy until told idle.
    pub fn connection_accepted(&self) {
        self.block.basics.connections_accepted.add(1);
        self.block.basics.connections_open.up();
    }

    /// A busy connection has no request any more.
    #[inline]
    pub fn connection_idle(&self) {
        self.block.basics.connections_idle.up();
    }

    /// An idle connection got a request.
    #[inline]
    pub fn connection_busy(&self) {
        self.block.basics.connections_idle.down();
    }

    /// A client's connection was closed; `state` is what it was last told to be.
    pub fn connection_closed(&self, state: ConnectionState, closed: Closed) {
        let basics = &self.block.basics;
        basics.connections_open.down();
        basics.connections_closed[closed.index()].add(1);
        match state {
            ConnectionState::Idle => basics.connections_idle.down(),
            ConnectionState::Busy => {}
        }
    }

    /// A connection became a tunnel.
    pub fn tunnel_opened(&self) {
        self.block.basics.tunnels.up();
    }

    /// A tunnel ended.
    pub fn tunnel_closed(&self) {
        self.block.basics.tunnels.down();
    }

    /// A TLS handshake with a client was complete.
    pub fn tls_done(&self, version: Tls, handshake: Handshake) {
        self.block.basics.handshakes[version.index()][handshake.index()].add(1);
    }

    /// A TLS handshake with a client failed.
    pub fn tls_failed(&self, side: Side, code: &'static str) {
        self.block.basics.handshakes_failed.add(1);
        self.block.connection_errors.add(Reason::new("TLS", side, code));
    }

    /// A connection broke its protocol outside of any request: an HTTP/2 frame out of place, a
    /// flood, bytes that are no request head at all.
    pub fn protocol_error(&self, protocol: Protocol, side: Side, code: &'static str) {
        self.block.connection_errors.add(Reason::new(protocol.as_str(), side, code));
    }

    /// An HTTP/2 stream was opened.
    #[inline]
    pub fn stream_opened(&self) {
        self.block.basics.streams_opened.add(1);
        self.block.basics.streams_open.up();
    }

    /// An HTTP/2 stream was closed.
    #[inline]
    pub fn stream_closed(&self, end: StreamEnd) {
        self.block.basics.streams_open.down();
        self.block.basics.streams_closed[end.index()].add(1);
    }

    /// A connection to a server was made, in `connect`; it is busy until told idle.
    pub fn upstream_opened(&self, server: Label, connect: Duration) {
        let target = self.block.targets.row(server);
        target.connects.add(1);
        target.open.up();
        target.connect.record(nanos(connect));
    }

    /// A busy connection to a server went back to its pool.
    #[inline]
    pub fn upstream_idle(&self, server: Label) {
        self.block.targets.row(server).idle.up();
    }

    /// An idle connection to a server was taken for a request.
    #[inline]
    pub fn upstream_reused(&self, server: Label) {
        let target = self.block.targets.row(server);
        target.idle.down();
        target.reuses.add(1);
    }

    /// A connection to a server was closed; `state` is what it was last told to be.
    pub fn upstream_closed(&self, server: Label, state: ConnectionState) {
        let target = self.block.targets.row(server);
        target.open.down();
        match state {
            ConnectionState::Idle => target.idle.down(),
            ConnectionState::Busy => {}
        }
    }

    /// An attempt at a server failed, whether or not another attempt follows.
    pub fn upstream_failed(&self, server: Label, outcome: Outcome) {
        self.block.targets.row(server).failures[outcome.index()].add(1);
    }

    /// A request leaves this server for another attempt.
    pub fn upstream_retried(&self, server: Label) {
        self.block.targets.row(server).retries.add(1);
    }

    /// A health check of a server ended.
    pub fn health_checked(&self, server: Label, check: Check) {
        let target = self.block.targets.row(server);
        match check {
            Check::Passed => target.checks_passed.add(1),
            Check::Failed => target.checks_failed.add(1),
        }
    }

    /// Takes over what the event loop tells of itself; from the worker's tick.
    pub fn loop_observed(&self, totals: LoopTotals) {
        let basics = &self.block.basics;
        basics.loop_polls.set(totals.polls);
        basics.loop_parks.set(totals.parks);
        basics.loop_busy_nanos.set(nanos(totals.busy));
    }
}

/// The code to count an ending under, if it went wrong.
#[inline]
fn error_code(record: &Record) -> Option<&'static str> {
    match (record.reason, record.outcome) {
        ("", Outcome::Timeout(phase)) => Some(phase.as_str()),
        ("", _) => None,
        (reason, _) => Some(reason),
    }
}
