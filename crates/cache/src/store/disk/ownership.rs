//! Whose directory it is: the lock of the one that writes, and the file that says what is in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::format::FORMAT;
use super::settings::Fault;
use crate::hash::Seed;

const MAGIC: [u8; 8] = *b"TideDisk";
/// Magic, format, four zero bytes, seed, checksum.
const IDENTITY_BYTES: usize = 40;

/// How long another process may take to set a directory up.
const SETTING_UP_WAITS: u32 = 500;
const SETTING_UP_WAIT: Duration = Duration::from_millis(2);

/// The right to write; ends with the value, or with the process.
#[derive(Debug)]
pub(super) struct Ownership {
    _lock: File,
}

impl Ownership {
    /// Takes the right to write, if nobody has it.
    pub(super) fn try_take(directory: &Path) -> Result<Option<Ownership>, Fault> {
        let path = directory.join("lock");
        let mut options = OpenOptions::new();
        let lock = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| Fault::disk(&path, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Ownership { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Fault::disk(&path, error)),
        }
    }
}

/// The seed of a directory. A new directory gets `fresh` from its owner; others wait for that.
pub(super) fn identify(
    directory: &Path,
    owner: Option<&Ownership>,
    fresh: &Seed,
) -> Result<Seed, Fault> {
    let path = directory.join("identity");
    for _ in 0..SETTING_UP_WAITS {
        match fs::read(&path) {
            Ok(bytes) => return read_identity(&path, &bytes),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Fault::disk(&path, error));
            }
            Err(_) if owner.is_some() => {
                return write_identity(directory, fresh)
                    .map(|()| *fresh)
                    .map_err(|error| Fault::disk(&path, error));
            }
            Err(_) => std::thread::sleep(SETTING_UP_WAIT),
        }
    }
    Err(Fault::Busy { path: directory.to_owned() })
}

fn read_identity(path: &Path, bytes: &[u8]) -> Result<Seed, Fault> {
    let foreign = || Fault::Foreign { path: path.to_owned() };
    let bytes: &[u8; IDENTITY_BYTES] = bytes.try_into().map_err(|_| foreign())?;
    let (said, checksum) = bytes.split_at(IDENTITY_BYTES - 8);
    if said[..8] != MAGIC || xxh3_64(said).to_le_bytes() != checksum {
        return Err(foreign());
    }
    let format = u32::from_le_bytes([said[8], said[9], said[10], said[11]]);
    if format != FORMAT {
        return Err(Fault::Newer { path: path.to_owned(), format });
    }
    let mut seed = [0; 16];
    seed.copy_from_slice(&said[16..32]);
    Ok(Seed::new(seed))
}

/// What the identity file of a directory with this seed holds.
fn identity(seed: &Seed) -> [u8; IDENTITY_BYTES] {
    let mut bytes = [0; IDENTITY_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..32].copy_from_slice(seed.bytes());
    let checksum = xxh3_64(&bytes[..32]);
    bytes[32..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Writes it under another name first, so that nobody sees half of it.
fn write_identity(directory: &Path, seed: &Seed) -> io::Result<()> {
    let new = directory.join("identity.new");
    let mut file = File::create(&new)?;
    file.write_all(&identity(seed))?;
    file.sync_all()?;
    fs::rename(&new, directory.join("identity"))?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_the_seed_that_its_first_owner_gave_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let owner = Ownership::try_take(path).unwrap();
        assert!(owner.is_some());
        assert!(Ownership::try_take(path).unwrap().is_none());
        let (first, second) = (Seed::new([1; 16]), Seed::new([2; 16]));
        assert_eq!(identify(path, owner.as_ref(), &first).unwrap(), first);
        assert_eq!(identify(path, owner.as_ref(), &second).unwrap(), first);
        assert_eq!(identify(path, None, &second).unwrap(), first);
        drop(owner);
        assert!(Ownership::try_take(path).unwrap().is_some());
    }

    #[test]
    fn what_is_not_ours_or_newer_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("identity");
        let read = || identify(directory.path(), None, &Seed::new([1; 16]));
        for bytes in [&b""[..], b"something else", &[0; IDENTITY_BYTES]] {
            fs::write(&path, bytes).unwrap();
            assert!(matches!(read(), Err(Fault::Foreign { .. })));
        }
        let mut bytes = identity(&Seed::new([1; 16]));
        bytes[8] = 7;
        let checksum = xxh3_64(&bytes[..32]);
        bytes[32..].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        assert!(matches!(read(), Err(Fault::Newer { format: 7, .. })));
    }
}
