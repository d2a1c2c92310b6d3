//! The web application firewall: SecLang rule sets parsed, compiled into a program, and run over
//! requests and responses.
//!
//! A rule set is text ([`seclang`]); it compiles once into an immutable [`program`] that all workers
//! share; each request has an [`inspection`] of its own, which takes borrowed views of what arrives
//! and returns verdicts. Nothing here does network I/O, knows connections, or waits.
#![deny(unsafe_code)]

pub mod body;
pub mod context;
pub mod inspection;
pub mod libinjection;
pub mod operator;
mod outside;
pub mod pattern;
pub mod program;
pub mod seclang;
pub mod secret;
mod sources;
pub mod transformation;
pub mod variable;

pub use outside::Outside;
pub use sources::{Builtin, CoreRuleSet, Sources};
