//! The old process: starts the new one and hands over.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use tidegate_proxy::settings::Address;
use tidegate_proxy::upstream::standing::{Admin, Health};
use tidegate_proxy::worker::accept::Bound;
use tidegate_waf::context::Context;

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
    context: Option<(Arc<Context>, PathBuf)>,
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
        let kept = &gate.context;
        let directory = kept.settings.directory.clone();
        let context = directory.map(|directory| (Arc::clone(&kept.context), directory));
        messages.extend(context.iter().map(|(_, path)| Handed::Context(path.clone())));
        messages.push(Handed::Done);
        Ok(Estate { sockets, admin, messages, context })
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

    /// Leaves the copy of context to the new process, and says so.
    fn leave_context(&self, channel: &Channel) -> io::Result<()> {
        let Some((context, directory)) = &self.context else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is no context to leave"));
        };
        if let Err(fault) = context.let_go() {
            tracing::error!(%fault, "the new process begins without the last changes of context");
        }
        channel.send(&Handed::Context(directory.clone()).to_bytes(), &[])
    }

    /// Has the copy of context again, if it was left.
    fn take_context_back(&self) {
        if let Some((context, _)) = &self.context
            && let Err(fault) = context.take_back()
        {
            tracing::error!(%fault, "context is not on disk any more; a restart mends that");
        }
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
    let failed = match converse(&channel, estate) {
        Ok(Some((bytes, _))) => match Reply::parse(&bytes) {
            Some(Reply::Ready) => {
                return Ok(Successor { pid: child.id(), binary: binary.to_owned() });
            }
            Some(Reply::Refused(reason)) => Failed::Refused(reason),
            Some(Reply::Context) | None => Failed::Gone(io::ErrorKind::InvalidData.into()),
        },
        Ok(None) => Failed::Gone(io::Error::other(ended(&mut child))),
        Err(error) if is_hang_up(&error) => Failed::Gone(io::Error::other(ended(&mut child))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Failed::Late,
        Err(error) => Failed::Gone(error),
    };
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    estate.take_context_back();
    Err(failed)
}

/// Hands everything over, and waits for the word that ends it; `None` once the other process is gone.
fn converse(channel: &Channel, estate: &Estate) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    estate.send(channel)?;
    loop {
        match channel.receive()? {
            Some((bytes, _)) if Reply::parse(&bytes) == Some(Reply::Context) => {
                estate.leave_context(channel)?;
            }
            last => return Ok(last),
        }
    }
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

#[cfg(test)]
mod tests {
    use tidegate_waf::context::{Collection, Fault, Record, Settings};

    use super::*;

    #[test]
    fn context_is_left_on_demand_and_taken_back_from_a_process_that_failed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let open = |path: &Path| Context::open(path, &Settings::default(), 1_000);
        let context = open(&path).unwrap();
        let record = Record::new(Collection::Ip, b"192.0.2.1");
        context.set(record, b"a", b"1", 1_000).unwrap();
        let (sockets, admin) = (Vec::new(), None);
        let messages = vec![Handed::Context(path.clone()), Handed::Done];
        let kept = Some((Arc::clone(&context), path.clone()));
        let estate = Estate { sockets, admin, messages, context: kept };

        let (ours, theirs) = Channel::pair().unwrap();
        let new = std::thread::spawn(move || {
            let channel = Channel::from(theirs);
            let receive = || Handed::parse(&channel.receive().unwrap().unwrap().0);
            let Some(Handed::Context(path)) = receive() else { panic!("context is announced") };
            assert!(matches!(receive(), Some(Handed::Done)));
            assert!(matches!(open(&path), Err(Fault::Held { .. })));
            channel.send(&Reply::Context.to_bytes(), &[]).unwrap();
            assert!(matches!(receive(), Some(Handed::Context(_))));
            let context = open(&path).unwrap();
            assert!(context.remove(record, b"a", 1_000));
        });
        assert!(converse(&ours, &estate).unwrap().is_none());
        new.join().unwrap();
        context.set(record, b"b", b"1", 1_000).unwrap();
        estate.take_context_back();
        drop((estate, context));
        assert_eq!(open(&path).unwrap().counters().entries, 2);
    }
}
