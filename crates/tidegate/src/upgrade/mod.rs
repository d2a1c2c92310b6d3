//! `tidegate upgrade`: a new process takes over, and no client notices.
//!
//! The running process starts the installed program with one end of a socket pair as its standard
//! input, and hands over through it what must not be lost: the listening sockets with the
//! connections waiting in them, the keys of session tickets, and what is known of servers. The new
//! process reads its configuration, starts its workers on these sockets and says so; only then does
//! the old one accept no more, finish what it has, and end. If the new process fails, or takes too
//! long, it is ended and nothing has changed.
//!
//! [`channel`] is the way of the messages, [`successor`] the side of the old process,
//! [`predecessor`] that of the new one.

mod channel;
mod message;
pub(crate) mod predecessor;
pub(crate) mod successor;

pub(crate) use predecessor::{Inheritance, Predecessor};
pub(crate) use successor::{Failed, Successor};
