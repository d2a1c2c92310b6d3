//! What rules ask beyond their transaction: block lists and programs that judge files.

use std::net::Ipv4Addr;
use std::path::Path;

use crate::operator::inspect_file::{self, Opinion};

/// Answers questions that may take long. It is asked only in phases of which
/// [`Program::waits`](crate::program::Program::waits) says so; those are to run where waiting holds
/// nobody up.
pub trait Outside: Send + Sync {
    /// The addresses of a name; none if it has none, or none could be learned in time.
    fn addresses(&self, name: &str) -> Vec<Ipv4Addr>;

    /// What the program says of the file; [`Opinion::Silent`] if it cannot be run or is late.
    fn judge(&self, inspector: &inspect_file::Inspector, file: &Path) -> Opinion;
}
