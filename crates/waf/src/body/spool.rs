//! Files of a body, kept to be looked at: in memory up to a limit, then in a temporary file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Where and how much a [`Spool`] keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spooling {
    /// The directory of temporary files (`SecTmpDir`, `SecUploadDir`).
    pub directory: PathBuf,
    /// Bytes that are kept in memory before there is a file.
    pub memory_bytes_max: usize,
    /// Bytes that are kept at all.
    pub bytes_max: u64,
}

/// The content of one file of a body.
///
/// The temporary file has the mode 0600 and a name that cannot be guessed, and is removed on drop.
/// Writing to it goes through the page cache and can block; the caller chooses the thread.
#[derive(Debug)]
pub struct Spool {
    spooling: Spooling,
    /// What is kept while there is no file.
    memory: Vec<u8>,
    file: Option<NamedTempFile>,
    bytes: u64,
}

/// Whether all of what was written is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It is.
    Whole,
    /// Only the beginning, as long as [`Spooling::bytes_max`].
    Beginning,
}

impl Spool {
    /// An empty spool.
    pub fn new(spooling: &Spooling) -> Self {
        Self { spooling: spooling.clone(), memory: Vec::new(), file: None, bytes: 0 }
    }

    /// Keeps as many of the bytes as it may.
    ///
    /// An error is one of the file system, and our side's; of the bytes, a beginning may be kept.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let left = self.spooling.bytes_max - self.bytes;
        let count = usize::try_from(left).map_or(bytes.len(), |left| bytes.len().min(left));
        let within = &bytes[..count];
        let fits = self.memory.len() + count <= self.spooling.memory_bytes_max;
        if self.file.is_none() && fits {
            self.memory.extend_from_slice(within);
        } else {
            self.file()?.as_file_mut().write_all(within)?;
        }
        self.bytes += count as u64;
        Ok(if count == bytes.len() { Extent::Whole } else { Extent::Beginning })
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The path of a file with what is kept, which is made if there is none yet: `FILES_TMPNAMES`,
    /// and what `inspectFile` is told.
    pub fn path(&mut self) -> io::Result<&Path> {
        Ok(self.file()?.path())
    }

    /// The first bytes of what is kept: `FILES_TMP_CONTENT`.
    pub fn beginning(&self, bytes_max: usize) -> io::Result<Cow<'_, [u8]>> {
        let Some(file) = &self.file else {
            return Ok(Cow::Borrowed(&self.memory[..self.memory.len().min(bytes_max)]));
        };
        // A handle of its own leaves the writer's position alone.
        let mut content = Vec::new();
        File::open(file.path())?.take(bytes_max as u64).read_to_end(&mut content)?;
        Ok(Cow::Owned(content))
    }

    /// Leaves what is kept at `path` for good, which must be on the same file system and free
    /// (`SecUploadKeepFiles`).
    pub fn keep(mut self, path: &Path) -> io::Result<()> {
        self.file()?;
        match self.file.map(|file| file.persist_noclobber(path)) {
            Some(Err(error)) => Err(error.error),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// The file, with what was in memory in it.
    fn file(&mut self) -> io::Result<&mut NamedTempFile> {
        match &mut self.file {
            Some(file) => Ok(file),
            slot @ None => {
                let mut file = tempfile::Builder::new()
                    .prefix("tidegate-")
                    .tempfile_in(&self.spooling.directory)?;
                file.as_file_mut().write_all(&self.memory)?;
                self.memory = Vec::new();
                Ok(slot.insert(file))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn spool(directory: &Path) -> Spool {
        let directory = directory.to_owned();
        Spool::new(&Spooling { directory, memory_bytes_max: 4, bytes_max: 10 })
    }

    fn files(directory: &Path) -> usize {
        std::fs::read_dir(directory).expect("a directory").count()
    }

    #[test]
    fn little_stays_in_memory() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut spool = spool(directory.path());
        assert_eq!(spool.write(b"ab").expect("keeps"), Extent::Whole);
        assert_eq!(spool.write(b"cd").expect("keeps"), Extent::Whole);
        assert_eq!((spool.bytes(), files(directory.path())), (4, 0));
        assert_eq!(*spool.beginning(3).expect("reads"), *b"abc");
        assert_eq!(*spool.beginning(9).expect("reads"), *b"abcd");
    }

    #[test]
    fn more_goes_to_a_file_that_is_private_and_goes() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut spool = spool(directory.path());
        for piece in [&b"ab"[..], b"cde", b"f"] {
            assert_eq!(spool.write(piece).expect("keeps"), Extent::Whole);
        }
        assert_eq!(*spool.beginning(9).expect("reads"), *b"abcdef");
        assert_eq!(spool.write(b"ghijkl").expect("keeps"), Extent::Beginning);
        assert_eq!(spool.write(b"m").expect("keeps"), Extent::Beginning);
        assert_eq!(spool.bytes(), 10);
        let path = spool.path().expect("has a file").to_owned();
        assert_eq!(std::fs::read(&path).expect("reads"), b"abcdefghij");
        let mode = std::fs::metadata(&path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(spool);
        assert_eq!(files(directory.path()), 0);
    }

    #[test]
    fn a_path_can_be_had_for_little() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut spool = spool(directory.path());
        let _ = spool.write(b"ab").expect("keeps");
        let path = spool.path().expect("has a file").to_owned();
        assert_eq!(std::fs::read(&path).expect("reads"), b"ab");
        let kept = directory.path().join("kept");
        spool.keep(&kept).expect("keeps");
        assert_eq!((std::fs::read(&kept).expect("reads"), path.exists()), (b"ab".to_vec(), false));
    }

    #[test]
    fn a_directory_that_is_none_is_an_error() {
        let mut spool = spool(Path::new("/nonexistent"));
        assert_eq!(spool.write(b"ab").expect("keeps"), Extent::Whole);
        assert!(spool.write(b"cde").is_err());
        assert_eq!(*spool.beginning(9).expect("reads"), *b"ab");
    }
}
