//! What is said about a pattern's source: faults that refuse it, notes that do not.

use std::fmt;

/// Why a source is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the source, in bytes from its beginning.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, when that is known.
    pub hint: Option<&'static str>,
}

impl Fault {
    /// A fault without a hint.
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), hint: None }
    }

    /// The same with a hint.
    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.offset)
    }
}

impl std::error::Error for Fault {}

/// Something worth saying about a pattern that compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where in the source, in bytes from its beginning.
    pub offset: usize,
    /// What is said.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.offset)
    }
}
