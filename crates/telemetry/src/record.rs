//! The record: what one request leaves behind, exactly one per request.
//!
//! A record is a plain struct of stamps, numbers and static text; it owns nothing and is filled in
//! place as its request goes from stop to stop. What the log needs beyond it (host, path, agent) is
//! lent at the end as a [`LogView`](crate::log::LogView).
//!
//! Invariants: stamps that are set only ever grow along the request's way; an attempt that is
//! retried overwrites the upstream stamps, so they describe the last attempt; a phase has a duration
//! only where both its ends came to pass.
//!
//! A worker's stalls will be taken out of the phases they overlap: a phase's duration is
//! computed in one place, next to [`Record::phase`], and that is the place to subtract them.

mod caching;
mod inspection;
mod outcome;
mod phase;

use std::fmt;
use std::time::Duration;

pub use caching::{CacheResult, Caching};
pub use inspection::{Inspection, WAF_PHASES, WafMode, WafVerdict};
pub use outcome::{Outcome, Side};
pub use phase::Phase;

use crate::clock::Stamp;
use crate::labelled::labelled;
use crate::metrics::Label;

/// The moments of a request, in the order in which they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The connection was accepted; set for its first request only.
    pub accepted: Stamp,
    /// The TLS handshake was complete; set for the connection's first request only.
    pub tls_done: Stamp,
    /// The first byte of the request head came in.
    pub first_byte_in: Stamp,
    /// The request head was complete.
    pub head_in: Stamp,
    /// Site and route were known.
    pub routed: Stamp,
    /// Limits and queue let the request in.
    pub admitted: Stamp,
    /// The WAF had seen the request.
    pub inspected: Stamp,
    /// The cache had answered.
    pub looked_up: Stamp,
    /// Waiting for what another request's fetch would bring, or for one of its own in the background.
    pub fill_wait: Wait,
    /// Waiting for a free upstream connection or a server's connection limit.
    pub pool_wait: Wait,
    /// The connect to the server began; unset on a reused connection.
    pub connect_start: Stamp,
    /// The connection to the server stood.
    pub connected: Stamp,
    /// The TLS handshake with the server was complete.
    pub upstream_tls_done: Stamp,
    /// The request head was written to the server.
    pub request_out: Stamp,
    /// The request body had come in whole.
    pub body_in_done: Stamp,
    /// The first byte of the response came from the server.
    pub first_byte_up: Stamp,
    /// The response head was complete.
    pub head_up: Stamp,
    /// The response body had come from the server whole.
    pub body_up_done: Stamp,
    /// The first byte of the response was written to the client.
    pub first_byte_out: Stamp,
    /// The request ended, well or not.
    pub finished: Stamp,
}

/// A wait with two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The wait began.
    pub start: Stamp,
    /// The wait was over.
    pub end: Stamp,
}

impl Wait {
    /// Begins the wait, if it has not begun.
    pub fn begin(&mut self) {
        self.start.set_once();
    }

    /// Ends the wait; a wait that never began stays unset.
    pub fn finish(&mut self) {
        if self.start.is_set() {
            self.end = Stamp::now();
        }
    }
}

/// A request's id: the worker in the upper 16 bits, a counter below. Shown as 16 hex digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    /// The worker that served the request.
    pub const fn worker(self) -> u16 {
        (self.0 >> COUNTER_BITS) as u16
    }

    /// The 16 hex digits, without allocation.
    pub fn hex(self) -> [u8; 16] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 16];
        let mut rest = self.0;
        for digit in hex.iter_mut().rev() {
            *digit = DIGITS[(rest & 0xf) as usize];
            rest >>= 4;
        }
        hex
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

const COUNTER_BITS: u32 = 48;
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;

/// Gives out one worker's request ids.
///
/// The counter starts from the wall clock, at 128 per millisecond, so that ids do not repeat after a
/// restart or between the two processes of an upgrade: a worker would have to serve 128,000 requests
/// a second for all its life to run ahead of the clock.
#[derive(Debug)]
pub struct RequestIds {
    worker: u64,
    counter: u64,
}

impl RequestIds {
    /// The ids of `worker`, which starts at `unix_millis`.
    pub fn new(worker: u16, unix_millis: u64) -> RequestIds {
        RequestIds {
            worker: u64::from(worker) << COUNTER_BITS,
            counter: unix_millis.wrapping_mul(128) & COUNTER_MASK,
        }
    }

    /// The next id.
    #[inline]
    pub fn next_id(&mut self) -> RequestId {
        self.counter = (self.counter + 1) & COUNTER_MASK;
        RequestId(self.worker | self.counter)
    }
}

labelled! {
    /// The protocol towards the client.
    #[derive(Default)]
    pub enum Protocol {
        /// HTTP/1.0
        Http10 = "HTTP/1.0",
        /// HTTP/1.1
        #[default]
        Http11 = "HTTP/1.1",
        /// HTTP/2
        H2 = "HTTP/2.0",
        /// HTTP/3
        H3 = "HTTP/3.0",
    }
}

labelled! {
    /// The TLS version towards the client.
    #[derive(Default)]
    pub enum Tls {
        /// No TLS.
        #[default]
        None = "",
        /// TLS 1.2
        V12 = "TLSv1.2",
        /// TLS 1.3
        V13 = "TLSv1.3",
    }
}

labelled! {
    /// Whether a TLS handshake was abbreviated by an earlier session.
    #[derive(Default)]
    pub enum Handshake {
        /// A full handshake, or no TLS at all.
        #[default]
        Full = "full",
        /// A resumed session.
        Resumed = "resumed",
    }
}

labelled! {
    /// How the request reached its server.
    #[derive(Default)]
    pub enum UpstreamConnection {
        /// No server was reached.
        #[default]
        None = "",
        /// On a connection made for it.
        Fresh = "fresh",
        /// On a connection kept from before.
        Reused = "reused",
    }
}

/// A request's bytes, as on the wire without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// The request head, from the client.
    pub head_in: u64,
    /// The request body, from the client.
    pub body_in: u64,
    /// The response head, to the client.
    pub head_out: u64,
    /// The response body, to the client.
    pub body_out: u64,
    /// All that came from the server.
    pub up_in: u64,
    /// All that went to the server.
    pub up_out: u64,
}

/// What one request leaves behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// Which request.
    pub id: RequestId,
    /// When what happened.
    pub stamps: Stamps,
    /// Wall time at the end, in milliseconds since 1970; for people, never for durations.
    pub unix_millis: u64,
    /// The site, as the registry of metrics knows it.
    pub site: Label,
    /// The route.
    pub route: Label,
    /// The upstream group.
    pub group: Label,
    /// The server of the last attempt.
    pub server: Label,
    /// The status sent to the client; zero if none was.
    pub status: u16,
    /// The status that came from the server; zero if none did.
    pub upstream_status: u16,
    /// The protocol towards the client.
    pub protocol: Protocol,
    /// TLS towards the client.
    pub tls: Tls,
    /// Whether that TLS session was resumed.
    pub handshake: Handshake,
    /// How the server was reached, in the last attempt.
    pub connection: UpstreamConnection,
    /// How it ended.
    pub outcome: Outcome,
    /// Who is at fault.
    pub side: Side,
    /// The fine-grained code of what went wrong, such as `head_too_large`; empty if nothing did.
    /// Static text only: codes become metric labels.
    pub reason: &'static str,
    /// What was transferred.
    pub bytes: Bytes,
    /// Attempts after the first.
    pub retries: u8,
    /// What the WAF made of it.
    pub waf: Inspection,
    /// What the cache made of it.
    pub cache: Caching,
}

impl Record {
    /// A record of `id`, all else unset.
    pub fn new(id: RequestId) -> Record {
        Record { id, ..Record::default() }
    }

    /// Says how the request ended. The first call counts: what follows a failure is its consequence.
    pub fn end(&mut self, outcome: Outcome, side: Side, reason: &'static str) {
        if self.outcome == Outcome::Unfinished {
            self.outcome = outcome;
            self.side = side;
            self.reason = reason;
        }
    }

    /// How long a phase took, where both its ends came to pass.
    #[inline]
    pub fn phase(&self, phase: Phase) -> Option<Duration> {
        let (start, end) = self.ends(phase);
        end.checked_since(start)
    }

    /// The wall time of the request's first byte, in milliseconds since 1970; of a record that is
    /// complete.
    pub fn began_millis(&self) -> u64 {
        let took = self.phase_nanos(Phase::Total).unwrap_or(0) / 1_000_000;
        self.unix_millis.saturating_sub(took)
    }

    /// The same in nanoseconds, without the detour over `Duration`, which divides.
    #[inline]
    pub(crate) fn phase_nanos(&self, phase: Phase) -> Option<u64> {
        let (start, end) = self.ends(phase);
        let both = start.is_set() && end.is_set();
        both.then(|| end.as_nanos().saturating_sub(start.as_nanos()))
    }

    /// The start and the end of a phase.
    #[inline]
    fn ends(&self, phase: Phase) -> (Stamp, Stamp) {
        let s = &self.stamps;
        match phase {
            Phase::Accept => (s.accepted, s.first_byte_in),
            Phase::Tls => (s.accepted, s.tls_done),
            Phase::HeadRead => (s.first_byte_in, s.head_in),
            Phase::RequestBody => (s.head_in, s.body_in_done),
            Phase::Routing => (s.head_in, s.routed),
            Phase::Admission => (s.routed, s.admitted),
            Phase::Inspection => (s.admitted.or(s.routed), s.inspected),
            Phase::LookUp => (s.inspected.or(s.admitted).or(s.routed), s.looked_up),
            Phase::FillWait => (s.fill_wait.start, s.fill_wait.end),
            Phase::PoolWait => (s.pool_wait.start, s.pool_wait.end),
            Phase::Connect => (s.connect_start, s.connected),
            Phase::UpstreamTls => (s.connected, s.upstream_tls_done),
            Phase::FirstByte => (s.request_out, s.first_byte_up),
            Phase::UpstreamHead => (s.first_byte_up, s.head_up),
            Phase::Body => (s.head_up, s.body_up_done),
            Phase::Write => (s.first_byte_out, s.finished),
            Phase::Total => (s.first_byte_in.or(s.accepted), s.finished),
        }
    }

    /// From the connection's acceptance to the first byte of its first request.
    pub fn accept(&self) -> Option<Duration> {
        self.phase(Phase::Accept)
    }

    /// The TLS handshake with the client.
    pub fn tls(&self) -> Option<Duration> {
        self.phase(Phase::Tls)
    }

    /// From the first byte of the head to its end.
    pub fn head_read(&self) -> Option<Duration> {
        self.phase(Phase::HeadRead)
    }

    /// Finding site and route.
    pub fn routing(&self) -> Option<Duration> {
        self.phase(Phase::Routing)
    }

    /// Waiting for an upstream connection.
    pub fn pool_wait(&self) -> Option<Duration> {
        self.phase(Phase::PoolWait)
    }

    /// Connecting to the server.
    pub fn connect(&self) -> Option<Duration> {
        self.phase(Phase::Connect)
    }

    /// From the request written to the first byte of the response.
    pub fn first_byte(&self) -> Option<Duration> {
        self.phase(Phase::FirstByte)
    }

    /// From the response's head to the end of its body, at the server's side.
    pub fn body(&self) -> Option<Duration> {
        self.phase(Phase::Body)
    }

    /// From the first byte to the last, at the client's side.
    pub fn write(&self) -> Option<Duration> {
        self.phase(Phase::Write)
    }

    /// From the first byte of the request (or the acceptance, if none came) to its end.
    pub fn total(&self) -> Option<Duration> {
        self.phase(Phase::Total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Stamp {
        Stamp::from_nanos(nanos)
    }

    #[test]
    fn phases_need_both_ends() {
        let mut record = Record::default();
        for phase in Phase::ALL {
            assert_eq!(record.phase(phase), None, "{phase:?} of an empty record");
        }
        record.stamps = Stamps {
            accepted: at(1),
            tls_done: at(2),
            first_byte_in: at(4),
            head_in: at(8),
            routed: at(16),
            admitted: at(32),
            inspected: at(64),
            looked_up: at(128),
            fill_wait: Wait { start: at(140), end: at(200) },
            pool_wait: Wait { start: at(256), end: at(512) },
            connect_start: at(1 << 10),
            connected: at(1 << 11),
            upstream_tls_done: at(1 << 12),
            request_out: at(1 << 13),
            body_in_done: at(1 << 14),
            first_byte_up: at(1 << 15),
            head_up: at(1 << 16),
            body_up_done: at(1 << 17),
            first_byte_out: at(1 << 18),
            finished: at(1 << 19),
        };
        let expected = [
            (Phase::Accept, 3),
            (Phase::Tls, 1),
            (Phase::HeadRead, 4),
            (Phase::RequestBody, (1 << 14) - 8),
            (Phase::Routing, 8),
            (Phase::Admission, 16),
            (Phase::Inspection, 32),
            (Phase::LookUp, 64),
            (Phase::FillWait, 60),
            (Phase::PoolWait, 256),
            (Phase::Connect, 1 << 10),
            (Phase::UpstreamTls, 1 << 11),
            (Phase::FirstByte, (1 << 15) - (1 << 13)),
            (Phase::UpstreamHead, 1 << 15),
            (Phase::Body, 1 << 16),
            (Phase::Write, 1 << 18),
            (Phase::Total, (1 << 19) - 4),
        ];
        assert_eq!(expected.len(), Phase::ALL.len());
        for (phase, nanos) in expected {
            assert_eq!(record.phase(phase), Some(Duration::from_nanos(nanos)), "{phase:?}");
        }
    }

    #[test]
    fn stops_that_were_passed_by_do_not_hide_the_next() {
        let mut record = Record::default();
        record.stamps.routed = at(10);
        record.stamps.looked_up = at(15);
        assert_eq!(record.phase(Phase::LookUp), Some(Duration::from_nanos(5)));
        assert_eq!(record.phase(Phase::Inspection), None);
        record.stamps.accepted = at(3);
        record.stamps.finished = at(23);
        assert_eq!(record.total(), Some(Duration::from_nanos(20)), "no byte ever came");
    }

    #[test]
    fn the_first_ending_counts() {
        let mut record = Record::default();
        record.end(Outcome::UpstreamReset, Side::Upstream, "reset");
        record.end(Outcome::ClientClosed, Side::Downstream, "closed");
        assert_eq!(record.outcome, Outcome::UpstreamReset);
        assert_eq!((record.side, record.reason), (Side::Upstream, "reset"));
    }

    #[test]
    fn request_ids_name_their_worker_and_do_not_repeat_after_a_restart() {
        let mut ids = RequestIds::new(3, 1_700_000_000_000);
        let (first, second) = (ids.next_id(), ids.next_id());
        assert_eq!(first.worker(), 3);
        assert_eq!(second.0, first.0 + 1);
        assert_eq!(first.to_string().as_bytes(), first.hex());
        assert_eq!(first.to_string().len(), 16);
        let later = RequestIds::new(3, 1_700_000_000_001).next_id();
        assert!(later.0 >= first.0 + 128);
        let mut last = RequestIds { worker: 0, counter: COUNTER_MASK };
        assert_eq!(last.next_id(), RequestId(0), "the counter never reaches the worker's bits");
    }

    #[test]
    fn a_wait_that_never_began_has_no_end() {
        let mut wait = Wait::default();
        wait.finish();
        assert_eq!(wait, Wait::default());
        wait.begin();
        wait.finish();
        assert!(wait.end >= wait.start && wait.start.is_set());
    }
}
