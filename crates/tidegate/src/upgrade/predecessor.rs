//! The new process: takes over what it needs, and says when it serves.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::stdio::dup2_stdin;
use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::Address;
use tidegate_proxy::tls::TicketKeys;
use tidegate_proxy::worker::accept::Bound;
use tidegate_telemetry::clock::Stamp;
use zeroize::Zeroizing;

use super::channel::Channel;
use super::message::{Handed, Known, Reply};
use crate::serve::sockets::Inherited;

/// How long the old process may take to hand everything over.
const HAND_OVER_MAX: Duration = Duration::from_secs(10);

/// The process that this one follows.
#[derive(Debug)]
pub(crate) struct Predecessor(Channel);

/// What a process begins with that follows another; nothing for one that does not.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    /// Listening sockets.
    pub(crate) sockets: Inherited,
    /// The admin listener's socket.
    pub(crate) admin: Option<Bound>,
    /// Where the process before has its copy of context, which it leaves on demand.
    pub(crate) context: Option<PathBuf>,
    ticket_keys: Option<Zeroizing<Vec<u8>>>,
    servers: Vec<Known>,
}

impl Predecessor {
    /// Takes everything from the process whose socket is this one's standard input.
    pub(crate) fn meet() -> io::Result<(Predecessor, Inheritance)> {
        let end = io::stdin().as_fd().try_clone_to_owned()?;
        // Nothing else reads from it, and what this process starts should not hold it open.
        dup2_stdin(File::open("/dev/null")?)?;
        let channel = Channel::from(end);
        channel.set_patience(HAND_OVER_MAX)?;
        let mut inheritance = Inheritance::default();
        loop {
            let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "it is gone");
            let (bytes, descriptors) = channel.receive()?.ok_or_else(gone)?;
            let bytes = Zeroizing::new(bytes);
            let broken = || io::Error::new(io::ErrorKind::InvalidData, "a message is broken");
            match Handed::parse(&bytes).ok_or_else(broken)? {
                Handed::Sockets(addresses) => inheritance.take(addresses, descriptors)?,
                Handed::Admin(address) => {
                    let socket = descriptors.into_iter().next().ok_or_else(broken)?;
                    inheritance.admin = Some(Bound::inherit(address, socket)?);
                }
                Handed::TicketKeys(keys) => inheritance.ticket_keys = Some(keys),
                Handed::Server(known) => inheritance.servers.push(known),
                Handed::Context(directory) => inheritance.context = Some(directory),
                Handed::Unknown => {}
                Handed::Done => return Ok((Predecessor(channel), inheritance)),
            }
        }
    }

    /// Asks for the copy of context, and waits until the other process has let go of it.
    pub(crate) fn ask_for_context(&self) -> io::Result<()> {
        self.0.send(&Reply::Context.to_bytes(), &[])?;
        let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "it is gone");
        let (bytes, _) = self.0.receive()?.ok_or_else(gone)?;
        match Handed::parse(&bytes) {
            Some(Handed::Context(_)) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a message is broken")),
        }
    }

    /// Says that this process serves; from now on the other one accepts no more.
    pub(crate) fn tell_ready(&self) -> io::Result<()> {
        self.0.send(&Reply::Ready.to_bytes(), &[])
    }

    /// Says why this process does not serve; the other one goes on.
    pub(crate) fn tell_refusal(&self, reason: &str) {
        // If it is gone, there is nobody left to tell.
        let _ = self.0.send(&Reply::Refused(reason.to_owned()).to_bytes(), &[]);
    }
}

impl Inheritance {
    fn take(&mut self, addresses: Vec<Address>, sockets: Vec<OwnedFd>) -> io::Result<()> {
        if addresses.len() != sockets.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a socket is missing"));
        }
        for (address, socket) in addresses.into_iter().zip(sockets) {
            let socket = Bound::inherit(address.clone(), socket)?;
            self.sockets.0.entry(address).or_default().push(socket);
        }
        Ok(())
    }

    /// Takes over the keys of session tickets, so that clients resume.
    pub(crate) fn give_ticket_keys(&mut self, tickets: &TicketKeys) {
        let Some(keys) = self.ticket_keys.take() else { return };
        if let Err(error) = tickets.import(&keys) {
            tracing::warn!(%error, "session tickets of the process before are not understood");
        }
    }

    /// Takes over what is known of servers. Those that the configuration no longer has are of no
    /// interest.
    pub(crate) fn give_knowledge_of_servers(&mut self, plan: &Plan) {
        for known in self.servers.drain(..) {
            let Some(group) = plan.group_named(&known.group) else { continue };
            if known.draining {
                let _ = group.drain(&known.server);
            }
            if known.down {
                let _ = group.presume_down(&known.server, Stamp::now());
            }
        }
    }
}
