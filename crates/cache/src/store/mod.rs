//! Where stored responses lie: in memory, on disk, and what was purged of both.
//!
//! - [`memory`] holds values by reference count, bounded in bytes, for hits that cost a look-up.
//! - [`disk`] holds objects in files, bounded in bytes, and has them again after a restart.
//! - [`purge`] says of anything stored whether it was purged since, without looking for it.
//!
//! The tiers know nothing of HTTP: they find values under a [`Key`], and give back what they were
//! given or nothing. Whether it is fresh, which variant is meant and who fills is decided by others.
//! Nothing here reads a clock or writes a log: times come as arguments, outcomes leave as values.

pub mod disk;
mod key;
pub mod memory;
pub mod purge;

pub use key::{Key, Slice};
