//! An HTTP cache (RFC 9111): what may be stored, for how long, for which requests, and what becomes
//! of it.
//!
//! The modules beside [`mod@time`] are named by the RFC's words. They are pure: requests, responses,
//! settings and the time come as arguments, and decisions leave as values whose variants say why.
//! None of them reads a clock or waits. What a response says is read once, when it is stored; what a
//! request asks of it is then a few comparisons.

#![forbid(unsafe_code)]

pub mod coding;
pub mod conditional;
pub mod directive;
pub mod entity;
pub mod fill;
pub mod freshness;
pub mod hash;
pub mod invalidation;
pub mod key;
pub mod lookup;
pub mod pattern;
pub mod policy;
pub mod range;
pub mod status;
pub mod store;
pub mod stored;
pub mod storing;
pub mod tags;
pub mod targeted;
pub mod time;
pub mod validation;
pub mod vary;
