//! Texts with a meaning in the field: addresses, hosts, paths, fields, methods.
//!
//! Each function takes a text and gives its meaning or a [`Fault`](super::options::kind::Fault) that
//! points into it. They are strict where the gate is strict with traffic: what is accepted here can be
//! matched or sent.

pub(crate) mod address;
pub(crate) mod field;
pub(crate) mod host;
pub(crate) mod path;
