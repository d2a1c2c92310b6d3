//! What one worker counts.

use std::sync::atomic::AtomicBool;

use super::cell::{Counter, Gauge, Tally, tallies};
use super::events::{Busy, Closed, StreamEnd};
use super::histogram::{Histogram, HistogramTotals};
use super::reasons::Reasons;
use super::rows::Rows;
use crate::record::{
    CacheResult, Handshake, Outcome, Phase, Protocol, Side, Tls, WAF_PHASES, WafMode, WafVerdict,
};

/// Status classes: none sent, 1xx to 5xx, anything else.
pub(super) const CLASSES: [&str; 7] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// The position in [`CLASSES`].
#[inline]
pub(super) const fn class(status: u16) -> usize {
    match status {
        0 => 0,
        100..=599 => (status / 100) as usize,
        _ => CLASSES.len() - 1,
    }
}

/// The lowest status that is counted by itself.
pub(super) const STATUS_MIN: u16 = 100;
const STATUSES: usize = 500;

/// The phases with a histogram of their own; the total is counted by place.
pub(super) const PHASES: usize = Phase::ALL.len() - 1;
const _: () = assert!(Phase::Total.index() == PHASES, "the total comes last");

tallies! {
    /// Numbers that need no label of the configuration.
    Basics => BasicTotals {
        /// Requests that began and have not ended.
        requests_active: Gauge => i64,
        /// Requests by protocol and TLS version.
        requests: [[Counter; Tls::ALL.len()]; Protocol::ALL.len()] => [[u64; Tls::ALL.len()]; Protocol::ALL.len()],
        /// Ended requests by outcome and side.
        outcomes: [[Counter; Side::ALL.len()]; Outcome::COUNT] => [[u64; Side::ALL.len()]; Outcome::COUNT],
        /// Responses by status, from 100.
        statuses: [Counter; STATUSES] => [u64; STATUSES],
        /// Durations of phases, but for the total.
        phases: [Histogram; PHASES] => [HistogramTotals; PHASES],
        /// Client connections accepted.
        connections_accepted: Counter => u64,
        /// Client connections open.
        connections_open: Gauge => i64,
        /// Client connections open and without a request.
        connections_idle: Gauge => i64,
        /// Client connections closed, by reason.
        connections_closed: [Counter; Closed::ALL.len()] => [u64; Closed::ALL.len()],
        /// Open tunnels.
        tunnels: Gauge => i64,
        /// TLS handshakes with clients by version and kind.
        handshakes: [[Counter; Handshake::ALL.len()]; Tls::ALL.len()] => [[u64; Handshake::ALL.len()]; Tls::ALL.len()],
        /// TLS handshakes with clients that failed.
        handshakes_failed: Counter => u64,
        /// HTTP/2 streams opened by clients.
        streams_opened: Counter => u64,
        /// HTTP/2 streams open.
        streams_open: Gauge => i64,
        /// HTTP/2 streams closed, by the way they ended.
        streams_closed: [Counter; StreamEnd::ALL.len()] => [u64; StreamEnd::ALL.len()],
        /// Inspections by mode and verdict.
        inspections: [[Counter; WafVerdict::ALL.len()]; WafMode::ALL.len()] => [[u64; WafVerdict::ALL.len()]; WafMode::ALL.len()],
        /// Durations of the phases of inspections.
        waf_phases: [Histogram; WAF_PHASES] => [HistogramTotals; WAF_PHASES],
        /// Waits for the inspection pool.
        waf_queued: Histogram => HistogramTotals,
        /// What was done when the inspection pool was full.
        waf_busy: [Counter; Busy::ALL.len()] => [u64; Busy::ALL.len()],
        /// How often the loop polled a task.
        loop_polls: Counter => u64,
        /// How often the loop slept.
        loop_parks: Counter => u64,
        /// How long the loop was busy, in nanoseconds.
        loop_busy_nanos: Counter => u64,
    }
}

tallies! {
    /// Requests by where they arrived: a site and a route.
    PlaceRow => PlaceTotals {
        /// By status class: none, 1xx to 5xx, other.
        requests: [Counter; CLASSES.len()] => [u64; CLASSES.len()],
        /// Bytes from clients, heads and bodies.
        bytes_in: Counter => u64,
        /// Bytes to clients, heads and bodies.
        bytes_out: Counter => u64,
        /// By what the cache made of them.
        cache: [Counter; CacheResult::ALL.len()] => [u64; CacheResult::ALL.len()],
        /// Bytes of bodies that came from the cache.
        cache_bytes: Counter => u64,
        /// From first byte to end.
        duration: Histogram => HistogramTotals,
    }
}

tallies! {
    /// Requests by where they went: a group and a server.
    TargetRow => TargetTotals {
        /// Responses by status class: none, 1xx to 5xx, other.
        responses: [Counter; CLASSES.len()] => [u64; CLASSES.len()],
        /// Attempts that failed, by outcome.
        failures: [Counter; Outcome::COUNT] => [u64; Outcome::COUNT],
        /// Requests that went on to another attempt.
        retries: Counter => u64,
        /// Connections made.
        connects: Counter => u64,
        /// Requests on connections kept from before.
        reuses: Counter => u64,
        /// Connections open.
        open: Gauge => i64,
        /// Connections open and without a request.
        idle: Gauge => i64,
        /// Bytes from the server.
        bytes_in: Counter => u64,
        /// Bytes to the server.
        bytes_out: Counter => u64,
        /// Health checks that passed.
        checks_passed: Counter => u64,
        /// Health checks that failed.
        checks_failed: Counter => u64,
        /// Time to connect, without TLS.
        connect: Histogram => HistogramTotals,
        /// From the request written to the first byte of the response.
        first_byte: Histogram => HistogramTotals,
    }
}

/// All that one worker counts. Each part stands on cache lines of its own, away from other
/// workers' parts.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) worker: u16,
    /// Whether a [`super::Worker`] writes here; a block is passed on when its worker ends, so that
    /// counters do not fall.
    pub(super) taken: AtomicBool,
    pub(super) basics: Basics,
    pub(super) places: Rows<PlaceRow>,
    pub(super) targets: Rows<TargetRow>,
    /// Requests that went wrong.
    pub(super) request_errors: Reasons,
    /// Connections that went wrong outside of any request.
    pub(super) connection_errors: Reasons,
}

impl Block {
    pub(super) fn new(worker: u16) -> Block {
        Block {
            worker,
            taken: AtomicBool::new(true),
            basics: Tally::new(),
            places: Rows::new(),
            targets: Rows::new(),
            request_errors: Reasons::new(),
            connection_errors: Reasons::new(),
        }
    }
}

impl Basics {
    /// Counts a status.
    #[inline]
    pub(super) fn status(&self, status: u16) {
        if let Some(counter) = self.statuses.get(usize::from(status.wrapping_sub(STATUS_MIN))) {
            counter.add(1);
        }
    }
}
