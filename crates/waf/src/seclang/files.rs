//! Where rule sets are read from.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read};

/// Read access to files, so that a rule set can come from a disk, an archive or a test.
pub trait Files {
    /// The content of the file at this path.
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError>;

    /// The paths that match this pattern (`*`, `?` and `[...]`, none of which crosses a `/`), sorted
    /// by bytes. A pattern without wildcards yields itself if the file is there.
    fn glob(&self, pattern: &str) -> Result<Vec<String>, FileError>;
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// There is no such file.
    Missing,
    /// It holds more bytes than may be read; the limit.
    TooLarge(u64),
    /// The system's own words.
    Other(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::TooLarge(limit) => write!(f, "it is larger than {limit} bytes"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Files are found as the rules of the shell have it, but a pattern never leaves its directory.
const MATCHING: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// The largest file that is read, in bytes.
    pub bytes_max: u64,
}

impl Default for Disk {
    /// 16 MiB, several times the largest list of addresses or phrases in use.
    fn default() -> Self {
        Self { bytes_max: 16 << 20 }
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let file = std::fs::File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(FileError::Other("it is not a file".into()));
        }
        let mut bytes = Vec::new();
        // The limit is asked of what is read: a file can grow behind its metadata.
        let read = file.take(self.bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        if read as u64 > self.bytes_max {
            Err(FileError::TooLarge(self.bytes_max))
        } else {
            Ok(bytes)
        }
    }

    fn glob(&self, pattern: &str) -> Result<Vec<String>, FileError> {
        let paths = glob::glob_with(pattern, MATCHING)
            .map_err(|error| FileError::Other(error.to_string()))?;
        let mut found = Vec::new();
        for path in paths {
            let path = path.map_err(std::io::Error::from)?;
            let path = path.into_os_string().into_string();
            found.push(path.map_err(|_| FileError::Other("a file's name is not UTF-8".into()))?);
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Files held in memory, by their paths.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for Memory {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        Self { files: files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect() }
    }
}

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.files.get(path).cloned().ok_or(FileError::Missing)
    }

    fn glob(&self, pattern: &str) -> Result<Vec<String>, FileError> {
        let pattern =
            glob::Pattern::new(pattern).map_err(|error| FileError::Other(error.to_string()))?;
        let matches = |path: &&String| pattern.matches_with(path, MATCHING);
        Ok(self.files.keys().filter(matches).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_disk_agree() {
        let directory = std::env::temp_dir().join(format!("tidegate-files-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("sub")).unwrap();
        let path = |name: &str| format!("{}/{name}", directory.display());
        let names = ["b.conf", "a.conf", "c.data", "sub/d.conf", ".e.conf"];
        for name in names {
            std::fs::write(path(name), name).unwrap();
        }
        let memory: Memory = names.iter().map(|name| (path(name), *name)).collect();
        let disk = Disk { bytes_max: 6 };
        for files in [&memory as &dyn Files, &disk] {
            assert_eq!(files.glob(&path("*.conf")), Ok(vec![path("a.conf"), path("b.conf")]));
            assert_eq!(files.glob(&path("[b-c].*")), Ok(vec![path("b.conf"), path("c.data")]));
            assert_eq!(files.glob(&path("x*")), Ok(vec![]));
            assert!(matches!(files.glob("a[b"), Err(FileError::Other(_))));
            assert_eq!(files.read(&path("a.conf")), Ok(b"a.conf".to_vec()));
            assert_eq!(files.read(&path("x")), Err(FileError::Missing));
        }
        assert_eq!(disk.read(&path("sub/d.conf")), Err(FileError::TooLarge(6)));
        let not_a_file = FileError::Other("it is not a file".into());
        assert_eq!(disk.read(&path("sub")), Err(not_a_file));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
