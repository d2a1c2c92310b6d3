//! What a request leaves behind: clocks, records, metrics and access logs.
//!
//! - [`clock`] is the only place in the house that reads a clock.
//! - [`record`] is the plain struct that the eight stops fill, one per request.
//! - [`metrics`] counts records and connections, per worker and without locks, and sums on reading.
//! - [`log`] formats records into access log lines and writes them from a thread of its own.
//!
//! The crate depends on no other of ours: it takes ids, numbers and borrowed text. Nothing here
//! decides anything about a request, and nothing here can hold one up: a full log queue drops
//! lines and counts them, a full label table counts under `other`.

#![forbid(unsafe_code)]

pub mod clock;
mod labelled;
pub mod log;
pub mod metrics;
pub mod record;
#[cfg(test)]
mod reference;

pub use clock::Stamp;
pub use metrics::Label;
pub use record::{Outcome, Phase, Record, Side};
