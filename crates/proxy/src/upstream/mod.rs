//! Upstream groups: which server takes a request, and what is known about each.
//!
//! - [`group`] is what the rest of the proxy talks to: choose a server, report how it went.
//! - [`balance`] is the choice as one worker makes it, out of [`members`], by `schedule` or
//!   `ring` or [`sticky`] cookie.
//! - [`server`] is the shared state of one server, [`standing`] and [`ejection`] what follows from it.
//! - [`queue`] is where requests wait while all servers are at their limits.
//! - [`roster`] changes who is in a group while it runs.
//! - [`watch`] keeps it all up to date from the control thread: [`dns`], and `health` checks by
//!   `probe`s.
//! - [`retry`] decides on further attempts, within a [`budget`].
//! - `connect`, `pool`, `stream`, `h1` and `h2` are a worker's connections to servers.
//!
//! Decisions are pure and take the time as an argument; the I/O of requests is in the modules named
//! last, that of the control thread in [`dns`] and `probe`.

pub mod balance;
pub mod budget;
pub(crate) mod connect;
pub mod dns;
pub mod ejection;
#[cfg(test)]
mod fixture;
pub mod group;
pub(crate) mod h1;
pub(crate) mod h2;
mod health;
pub mod members;
pub(crate) mod pool;
mod probe;
pub mod queue;
pub mod retry;
mod ring;
pub mod roster;
mod schedule;
pub mod server;
pub mod standing;
pub mod sticky;
pub(crate) mod stream;
pub mod watch;

pub use balance::{Choice, HashInput, NoServer, Pick, Tier, Way, WorkerBalance};
pub use budget::Budget;
pub use dns::Resolver;
pub use group::{Group, Outcome};
pub use members::{Member, Members};
pub use queue::{Place, Queue};
pub use retry::Failure;
pub use server::{AtLimit, InFlight, OpenConnection, Seat, Server, ServerId};
pub use watch::Watch;
