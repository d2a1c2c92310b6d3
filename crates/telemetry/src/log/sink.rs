//! Where lines go: files, the standard streams, syslog.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::time::Times;
use crate::clock;
use crate::labelled::labelled;

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file, which is created if need be (mode 0640) and appended to.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A syslog daemon, over a Unix datagram socket.
    Syslog {
        /// The socket; usually `/dev/log`.
        socket: PathBuf,
        /// The facility of the messages.
        facility: Facility,
    },
}

labelled! {
    /// A syslog facility (RFC 5424, section 6.2.1).
    #[derive(Default)]
    pub enum Facility {
        /// System daemons.
        Daemon = "daemon",
        /// Local use 0.
        #[default]
        Local0 = "local0",
        /// Local use 1.
        Local1 = "local1",
        /// Local use 2.
        Local2 = "local2",
        /// Local use 3.
        Local3 = "local3",
        /// Local use 4.
        Local4 = "local4",
        /// Local use 5.
        Local5 = "local5",
        /// Local use 6.
        Local6 = "local6",
        /// Local use 7.
        Local7 = "local7",
    }
}

impl Facility {
    const fn code(self) -> u8 {
        match self {
            Facility::Daemon => 3,
            Facility::Local0 => 16,
            Facility::Local1 => 17,
            Facility::Local2 => 18,
            Facility::Local3 => 19,
            Facility::Local4 => 20,
            Facility::Local5 => 21,
            Facility::Local6 => 22,
            Facility::Local7 => 23,
        }
    }
}

/// An open target.
#[derive(Debug)]
pub(super) enum Sink {
    File { file: File, path: PathBuf },
    Stream(File),
    Syslog(Syslog),
}

/// How far a write came.
#[derive(Debug)]
pub(super) struct Progress {
    /// How many bytes are done with.
    pub(super) bytes: usize,
    /// Why it went no further, if it did not.
    pub(super) result: io::Result<()>,
}

impl Sink {
    pub(super) fn open(target: &Target) -> io::Result<Sink> {
        match target {
            Target::File(path) => Ok(Sink::File { file: append_to(path)?, path: path.clone() }),
            // A handle of our own, past the standard library's line buffering and locks.
            Target::Stdout => Ok(Sink::Stream(io::stdout().as_fd().try_clone_to_owned()?.into())),
            Target::Stderr => Ok(Sink::Stream(io::stderr().as_fd().try_clone_to_owned()?.into())),
            Target::Syslog { socket, facility } => {
                Syslog::open(socket, *facility).map(Sink::Syslog)
            }
        }
    }

    /// Opens the path again, after a rotation has moved the file away. On an error the present file
    /// stays.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        match self {
            Sink::File { file, path } => *file = append_to(path)?,
            Sink::Stream(_) => {}
            Sink::Syslog(syslog) => syslog.socket = connect(&syslog.path)?,
        }
        Ok(())
    }

    /// Writes whole lines; after an error, the next call goes on where this one stopped.
    pub(super) fn write(&mut self, lines: &[u8]) -> Progress {
        match self {
            Sink::File { file, .. } | Sink::Stream(file) => write_stream(file, lines),
            Sink::Syslog(syslog) => syslog.write(lines),
        }
    }
}

/// With `O_APPEND`, two processes of an upgrade can write one file without tearing lines: each write
/// goes to the end as a whole.
fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

fn write_stream(file: &mut File, lines: &[u8]) -> Progress {
    let mut bytes = 0;
    while bytes < lines.len() {
        match file.write(&lines[bytes..]) {
            Ok(0) => return Progress { bytes, result: Err(io::ErrorKind::WriteZero.into()) },
            Ok(written) => bytes += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Progress { bytes, result: Err(error) },
        }
    }
    Progress { bytes, result: Ok(()) }
}

/// A syslog daemon that takes RFC 5424 messages, one in a datagram.
#[derive(Debug)]
pub(super) struct Syslog {
    socket: UnixDatagram,
    path: PathBuf,
    /// `<priority>1 `
    priority: Vec<u8>,
    /// What stands between the time and the line: host, program, process id, kind.
    origin: Vec<u8>,
    message: Vec<u8>,
    times: Times,
}

/// How long a daemon that does not read can hold up the writer.
const SEND_TIMEOUT: Duration = Duration::from_millis(100);
/// Longer messages are cut: a datagram must fit the socket's send buffer.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// `informational` (RFC 5424, section 6.2.1)
const SEVERITY: u8 = 6;

impl Syslog {
    fn open(path: &Path, facility: Facility) -> io::Result<Syslog> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host: String = host.chars().filter(char::is_ascii_graphic).take(255).collect();
        let host = if host.is_empty() { "-" } else { &host };
        let process = std::process::id();
        Ok(Syslog {
            socket: connect(path)?,
            path: path.to_owned(),
            priority: format!("<{}>1 ", u16::from(facility.code()) * 8 + u16::from(SEVERITY))
                .into(),
            origin: format!(" {host} tidegate {process} access - ").into(),
            message: Vec::new(),
            times: Times::new(),
        })
    }

    fn write(&mut self, lines: &[u8]) -> Progress {
        let mut bytes = 0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.compose(line.trim_ascii_end());
            if let Err(error) = self.send() {
                return Progress { bytes, result: Err(error) };
            }
            bytes += line.len();
        }
        Progress { bytes, result: Ok(()) }
    }

    fn compose(&mut self, line: &[u8]) {
        self.message.clear();
        self.message.extend_from_slice(&self.priority);
        self.times.iso(&mut self.message, clock::unix_millis());
        self.message.extend_from_slice(&self.origin);
        self.message.extend_from_slice(line);
        self.message.truncate(MESSAGE_BYTES_MAX);
    }

    /// A daemon that was restarted has a new socket at the same path.
    fn send(&mut self) -> io::Result<()> {
        match self.socket.send(&self.message) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Err(_) => {
                self.socket = connect(&self.path)?;
                self.socket.send(&self.message).map(drop)
            }
        }
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok(socket)
}
