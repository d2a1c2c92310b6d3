//! One file for each command of the program.

pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod explain;
pub(crate) mod serve;
pub(crate) mod terminal;
