//! Notices that certificate files were renewed.
//!
//! A renewal replaces a file (or what a symbolic link leads to), so inode, size and time of change
//! tell it without reading. The state is taken *before* the file is read: what changes while it is
//! read is seen as a change afterwards.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files something was built from, as they were then.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<(PathBuf, State)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl State {
    fn of(path: &Path) -> Option<State> {
        let meta = fs::metadata(path).ok()?;
        Some(State {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

impl Files {
    /// Remembers `path` as it is now. One that is not there is not remembered: reading it fails next.
    pub(super) fn add(&mut self, path: &Path) {
        if let Some(state) = State::of(path) {
            self.0.push((path.to_owned(), state));
        }
    }

    /// Whether a file is another than it was. A file that is missing is not: a renewal may be halfway
    /// through, and a build from nothing could only fail.
    pub(super) fn changed(&self) -> bool {
        self.0.iter().any(|(path, then)| State::of(path).is_some_and(|now| now != *then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_seen_and_a_missing_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("chain.pem");
        fs::write(&path, "one").unwrap();
        let mut files = Files::default();
        files.add(&path);
        assert!(!files.changed());

        fs::remove_file(&path).unwrap();
        assert!(!files.changed());

        let renewed = dir.path().join("renewed.pem");
        fs::write(&renewed, "two").unwrap();
        fs::rename(&renewed, &path).unwrap();
        assert!(files.changed());
    }
}
