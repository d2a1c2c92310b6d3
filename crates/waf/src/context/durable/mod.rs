//! Context on disk: an LMDB file that is read once, when the store is opened, and then only written.
//!
//! LMDB's readers are cheap, but they read another process's memory map under its rules; nobody
//! here reads it while the gate runs. One thread writes what has changed, in transactions, so the
//! file is whole at every moment, whatever kills the process: a crash costs what changed since the
//! last batch. One process owns a store (a lock file says so); a second is refused.

mod check;
mod file;
mod format;
mod sys;
mod writer;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use writer::{Unwritten, Writer};

use super::settings::{Damaged, Settings};
use super::store::Store;
use file::StoreFile;

/// Why a store cannot be opened or written.
#[derive(Debug)]
pub enum Fault {
    /// The operating system refused the directory or a file in it.
    Refused {
        /// What was asked for.
        path: PathBuf,
        /// What it said.
        cause: io::Error,
    },
    /// Another process has the store open.
    Held {
        /// The directory.
        directory: PathBuf,
    },
    /// The file is not what was once written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file was written by a newer version of the program.
    Newer {
        /// The file.
        path: PathBuf,
        /// The number of its format.
        format: u32,
    },
    /// LMDB failed, such as on a full disk.
    Disk {
        /// The directory.
        directory: PathBuf,
        /// What it said.
        what: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Held { directory } => {
                write!(f, "{}: another process has this context store open", directory.display())
            }
            Self::Damaged { path, what } => {
                write!(f, "{}: the context store is damaged: {what}", path.display())
            }
            Self::Newer { path, format } => write!(
                f,
                "{}: the context store has format {format}, and this version knows up to {}",
                path.display(),
                format::FORMAT
            ),
            Self::Disk { directory, what } => {
                write!(f, "{}: the context store cannot be written: {what}", directory.display())
            }
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// A store with what writes it down.
pub(super) struct Opened {
    pub(super) store: Arc<Store>,
    pub(super) writer: Writer,
    /// What was wrong with the file that was set aside, if one was.
    pub(super) set_aside: Option<Fault>,
}

/// Opens the store in `directory` and starts the thread that writes to it.
pub(super) fn open(directory: &Path, settings: &Settings, now_ms: u64) -> Result<Opened, Fault> {
    let refused = |path: &Path, cause| Fault::Refused { path: path.to_owned(), cause };
    fs::create_dir_all(directory).map_err(|cause| refused(directory, cause))?;
    let owner = own(directory)?;
    let path = directory.join("data.mdb");
    let mut set_aside = None;
    let (store, file) = match read(directory, &path, settings, now_ms) {
        Err(fault @ (Fault::Damaged { .. } | Fault::Newer { .. }))
            if settings.damaged == Damaged::SetAside =>
        {
            put_aside(directory, &path)?;
            set_aside = Some(fault);
            read(directory, &path, settings, now_ms)?
        }
        result => result?,
    };
    let store = Arc::new(store);
    let held = Held { file, owner };
    let writer = Writer::start(Arc::clone(&store), directory.to_owned(), held)
        .map_err(|cause| refused(directory, cause))?;
    Ok(Opened { store, writer, set_aside })
}

/// Renames a file that cannot be used. One is kept, the latest: a gate that finds damage at every
/// start fills no disk.
fn put_aside(directory: &Path, path: &Path) -> Result<(), Fault> {
    fs::rename(path, directory.join("data.mdb.aside"))
        .map_err(|cause| Fault::Refused { path: path.to_owned(), cause })
}

/// The file with its lock.
struct Held {
    file: StoreFile,
    owner: fs::File,
}

impl Held {
    /// Takes the lock and opens the file, for a store that is in memory: what the file holds counts
    /// for nothing, and neither does damage in it.
    fn again(directory: &Path, settings: &Settings) -> Result<Self, Fault> {
        let owner = own(directory)?;
        let path = directory.join("data.mdb");
        let open =
            || check::check(&path).and_then(|()| StoreFile::open(directory, &path, settings));
        let mut file = match open() {
            Err(Fault::Damaged { .. } | Fault::Newer { .. }) => {
                put_aside(directory, &path)?;
                open()?
            }
            result => result?,
        };
        file.begin_anew();
        Ok(Self { file, owner })
    }

    /// Closes the file. The lock goes last: whoever opens the store next finds it whole.
    fn close(self) {
        self.file.close();
        drop(self.owner);
    }
}

/// Takes the lock of the store, which ends with the process at the latest.
fn own(directory: &Path) -> Result<fs::File, Fault> {
    let path = directory.join("owner");
    let refused = |cause| Fault::Refused { path: path.clone(), cause };
    let owner = fs::File::create(&path).map_err(refused)?;
    // A process that is being forked off holds every lock of its parent until it becomes another
    // program (flock(2): locks belong to open file descriptions), so a lock just given back may seem
    // held for a moment.
    for _ in 0..OWN_TRIES {
        match owner.try_lock() {
            Ok(()) => return Ok(owner),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(OWN_PAUSE),
            Err(fs::TryLockError::Error(cause)) => return Err(refused(cause)),
        }
    }
    Err(Fault::Held { directory: directory.to_owned() })
}

/// How often the store's lock is tried, and the pause after each try: a second in all.
const OWN_TRIES: u32 = 50;
const OWN_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// Reads the file into a new store.
fn read(
    directory: &Path,
    path: &Path,
    settings: &Settings,
    now_ms: u64,
) -> Result<(Store, StoreFile), Fault> {
    check::check(path)?;
    let mut file = StoreFile::open(directory, path, settings)?;
    let store = Store::new(settings.clone(), Some(Unwritten::default()));
    match file.read_into(&store, now_ms) {
        Ok(()) => Ok((store, file)),
        Err(fault) => {
            file.close();
            Err(fault)
        }
    }
}
