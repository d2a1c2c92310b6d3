//! One file for each command of the program.

mod admin;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod purge;
mod question;
pub(crate) mod reload;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod status;
pub(crate) mod terminal;
pub(crate) mod upgrade;
pub(crate) mod waf;
