//! What keeps a configuration from going into service, said so that somebody can act on it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tidegate_proxy::settings::Address;
use tidegate_proxy::tls::TlsError;
use tidegate_waf::context::Fault;

use super::sockets::Shown;
use crate::config::diagnostic::Diagnostics;
use crate::config::render::{self, Colour};

/// Why the gate does not start, or why a new plan does not go into service.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The configuration has mistakes.
    Configuration { file: PathBuf, diagnostics: Diagnostics },
    /// An access log cannot be opened.
    Log { name: String, error: io::Error },
    /// An address cannot be listened on.
    Listen { address: Address, error: io::Error },
    /// No randomness for the keys of session tickets.
    Tickets(TlsError),
    /// The kernel refuses a thread, a timer or an event queue.
    Thread(io::Error),
    /// What rules remember cannot be read.
    Context(Fault),
    /// A worker has not taken its last commands; it would miss the new plan.
    WorkerBusy(usize),
    /// Workers fail again and again.
    WorkersFail,
    /// The demo's files or servers cannot be made.
    Demo(io::Error),
    /// Another process has taken over; what is asked for is its affair.
    Leaving,
    /// The process that this one was to follow has gone or sent something else than its sockets.
    Predecessor(io::Error),
}

impl Obstacle {
    /// All that can be said about it: every mistake of a configuration with its place.
    pub(crate) fn at_length(&self, colour: Colour) -> String {
        match self {
            Obstacle::Configuration { diagnostics, .. } => {
                format!("{}{self}\n", render::text(diagnostics, colour))
            }
            _ => format!("{self}\n"),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Configuration { file, diagnostics } => {
                let (file, counts) = (file.display(), render::counts(diagnostics));
                write!(formatter, "{file} cannot be used: {counts}")
            }
            Obstacle::Log { name, error } => {
                write!(formatter, "the access log `{name}` cannot be opened: {error}")
            }
            Obstacle::Listen { address, error } => {
                write!(formatter, "cannot listen on {}: {}", Shown(address), reason(error))?;
                advice(address, error).map_or(Ok(()), |advice| write!(formatter, "; {advice}"))
            }
            Obstacle::Tickets(error) => write!(formatter, "no keys for session tickets: {error}"),
            Obstacle::Thread(error) => {
                write!(formatter, "the system refuses a thread or an event queue: {error}")
            }
            Obstacle::Context(fault @ Fault::Held { .. }) => write!(
                formatter,
                "{fault}; every gate needs a directory of its own: `path` of [context]"
            ),
            Obstacle::Context(fault) => write!(formatter, "{fault}"),
            Obstacle::WorkerBusy(worker) => {
                write!(formatter, "worker {worker} has not taken its last commands yet; try again")
            }
            Obstacle::WorkersFail => {
                formatter.write_str("workers fail again and again; the reasons are above")
            }
            Obstacle::Demo(error) => write!(formatter, "the demo cannot be prepared: {error}"),
            Obstacle::Leaving => formatter.write_str("this process is draining"),
            Obstacle::Predecessor(error) => {
                write!(formatter, "the process to take over from hands nothing over: {error}")
            }
        }
    }
}

/// The mistake without the kernel's number, where there is a plain word for it.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process listens there".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        io::ErrorKind::PermissionDenied => "not permitted".into(),
        io::ErrorKind::NotFound => "its directory does not exist".into(),
        _ => error.to_string(),
    }
}

fn advice(address: &Address, error: &io::Error) -> Option<String> {
    match (address, error.kind()) {
        (Address::Tcp(address), io::ErrorKind::AddrInUse) => {
            Some(format!("`ss -ltnp 'sport = :{}'` tells which", address.port()))
        }
        (Address::Tcp(address), io::ErrorKind::PermissionDenied) if address.port() < 1024 => Some(
            "ports below 1024 need CAP_NET_BIND_SERVICE, which packaging/tidegate.service gives"
                .into(),
        ),
        _ => None,
    }
}
