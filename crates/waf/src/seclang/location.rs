//! Where something stands in a rule set.

use std::fmt;
use std::sync::Arc;

/// A place in a file: the first byte of what is spoken of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The file's path, as it was opened.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
}

impl Location {
    /// The directory of the file: data files are named relative to it. Empty for a bare file name.
    pub fn directory(&self) -> &str {
        self.file.rfind('/').map_or("", |slash| &self.file[..slash.max(1)])
    }

    /// The path of a file that is named here: relative names begin at the directory of this file.
    pub fn resolve(&self, path: &str) -> String {
        match self.directory() {
            _ if path.starts_with('/') => path.to_owned(),
            "" => path.to_owned(),
            "/" => format!("/{path}"),
            directory => format!("{directory}/{path}"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Something with the place where it is written.
#[derive(Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// Where its first byte stands.
    pub location: Location,
    /// What is written there.
    pub value: T,
}

impl<T> std::ops::Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} @ {}", self.value, self.location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_at_the_directory_of_their_file() {
        let check = |file: &str, path: &str, expected: &str| {
            let location = Location { file: Arc::from(file), line: 1, column: 1 };
            assert_eq!(location.resolve(path), expected, "{file} {path}");
        };
        check("/etc/waf/a.conf", "b.data", "/etc/waf/b.data");
        check("/etc/waf/a.conf", "/b.data", "/b.data");
        check("/a.conf", "b.data", "/b.data");
        check("rules/a.conf", "../b.data", "rules/../b.data");
        check("a.conf", "b.data", "b.data");
    }
}
