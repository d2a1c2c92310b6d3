//! Where rule sets are read from.

use std::fmt;

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
