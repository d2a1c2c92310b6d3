//! The old process: starts the new one and hands over.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use tidegate_proxy::settings::Address;
use tidegate_proxy::upstream::standing::{Admin, Health};
use tidegate_proxy::worker::accept::Bound;

use super::channel::{Channel, DESCRIPTORS_MAX};
use super::message::{Handed, Known, Reply};
use crate::control::Gate;

/// How long the new process may take until it serves.
const START_MAX: Duration = Duration::from_secs(30);

/// The process that has taken over.
#[derive(Debug)]
pub(crate) struct Successor {
    /// Its process id.
    pub(crate) pid: u32,
    /// What was started.
    pub(crate) binary: PathBuf,
}

/// Why there is no new process.
#[derive(Debug)]
pub(crate) enum Failed {
    /// There is one already, or the gate is stopping.
    Leaving,
    /// The program is not where it was, or cannot be started.
    Start { binary: PathBuf, error: io::Error },
    /// The new process has refused, and says why.
    Refused(String),
    /// It ended without a word, or sent nonsense.
    Gone(io::Error),
    /// It did not serve in time.
    Late,
}

impl Failed {
    /// In a line: what the new process said has been said at length by itself.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Failed::Refused(reason) => {
                let last = reason.trim_end().lines().next_back().unwrap_or_default();
                format!("the new process refused: {last}")
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Leaving => formatter.write_str("this process is draining already"),
            Failed::Start { binary, error } => {
                write!(formatter, "{} cannot be started: {error}", binary.display())
            }
            Failed::Refused(reason) => {
                write!(formatter, "the new process refused: {}", reason.trim_end())
            }
            Failed::Gone(error) => {
                write!(formatter, "the new process ended before it served: {error}")
            }
            Failed::Late => write!(
                formatter,
                "the new process did not serve within {} s and was ended",
                START_MAX.as_secs()
            ),
        }
    }
}

/// Where the program is that this process runs: where it was started from, even if another file is
/// there by now; that is what an upgrade is for.
pub(crate) fn installed() -> PathBuf {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let started_as = Path::new(&started_as);
    if started_as.components().count() > 1
        && let Ok(path) = std::path::absolute(started_as)
    {
        return path;
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories).map(|directory| directory.join(started_as));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(running)
}

/// The file that this process runs, without what the kernel adds once it has been replaced.
fn running() -> PathBuf {
    let link = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    match link.to_str().and_then(|link| link.strip_suffix(" (deleted)")) {
        Some(path) => PathBuf::from(path),
        None => link,
    }
}

/// All that is handed over, gathered on the control thread.
pub(crate) struct Estate {
    sockets: Vec<Bound>,
    admin: Option<Bound>,
    messages: Vec<Handed>,
}

impl Estate {
    /// Everything that the new process takes over.
    pub(crate) fn of(gate: &Gate, admin: Option<&Bound>) -> io::Result<Estate> {
        let mut sockets: Vec<Bound> = Vec::new();
        for socket in gate.crew.borrow().sockets() {
            // Workers share the socket of a Unix address; one handle on it is enough.
            let shared = matches!(socket.address(), Address::Unix(_))
                && sockets.iter().any(|other| other.address() == socket.address());
            if !shared {
                sockets.push(socket.try_clone()?);
            }
        }
        let admin = admin.map(Bound::try_clone).transpose()?;
        let mut messages = vec![Handed::TicketKeys(gate.tickets.export())];
        for group in &gate.running.borrow().plan.groups {
            for member in group.members().list() {
                let standing = member.server.standing();
                let known = Known {
                    group: group.name().to_owned(),
                    server: member.server.name().to_owned(),
                    draining: standing.admin == Admin::Draining,
                    down: standing.health == Health::Down,
                };
                if known.draining || known.down {
                    messages.push(Handed::Server(known));
                }
            }
        }
        messages.push(Handed::Done);
        Ok(Estate { sockets, admin, messages })
    }

    fn send(&self, channel: &Channel) -> io::Result<()> {
        for sockets in self.sockets.chunks(DESCRIPTORS_MAX) {
            let addresses = sockets.iter().map(|socket| socket.address().clone()).collect();
            let descriptors: Vec<BorrowedFd<'_>> = sockets.iter().map(|it| it.as_fd()).collect();
            channel.send(&Handed::Sockets(addresses).to_bytes(), &descriptors)?;
        }
        if let Some(admin) = &self.admin {
            let message = Handed::Admin(admin.address().clone());
            channel.send(&message.to_bytes(), &[admin.as_fd()])?;
        }
        self.messages.iter().try_for_each(|message| channel.send(&message.to_bytes(), &[]))
    }
}

/// Starts a process and waits until it serves. Blocks; not for the control thread's loop.
pub(crate) fn start(
    binary: &Path,
    arguments: &[OsString],
    estate: &Estate,
) -> Result<Successor, Failed> {
    let (channel, theirs) = Channel::pair().map_err(Failed::Gone)?;
    channel.set_patience(START_MAX).map_err(Failed::Gone)?;
    let mut child = Command::new(binary)
        .args(arguments)
        .stdin(theirs)
        .spawn()
        .map_err(|error| Failed::Start { binary: binary.to_owned(), error })?;
    let reply = estate.send(&channel).and_then(|()| channel.receive());
    let failed = match reply {
        Ok(Some((bytes, _))) => match Reply::parse(&bytes) {
            Some(Reply::Ready) => {
                return Ok(Successor { pid: child.id(), binary: binary.to_owned() });
            }
            Some(Reply::Refused(reason)) => Failed::Refused(reason),
            None => Failed::Gone(io::ErrorKind::InvalidData.into()),
        },
        Ok(None) => Failed::Gone(io::Error::other(ended(&mut child))),
        Err(error) if is_hang_up(&error) => Failed::Gone(io::Error::other(ended(&mut child))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Failed::Late,
        Err(error) => Failed::Gone(error),
    };
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    Err(failed)
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// How a process ended that has closed its end of the channel.
fn ended(child: &mut Child) -> String {
    for _ in 0..20 {
        match child.try_wait() {
            Ok(Some(status)) => return status.to_string(),
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => return error.to_string(),
        }
    }
    "it closed its standard input; is it a tidegate that can take over?".into()
}
