//! What is wrong with a rule set, or remarkable in it.

use std::fmt;

use super::location::Location;

/// A mistake: the rule set cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The place, down to the word.
    pub location: Location,
    /// The kind of mistake.
    pub code: Code,
    /// What is wrong: a sentence without its full stop.
    pub message: String,
    /// What would help, if something does.
    pub hint: Option<String>,
}

/// A remark: the rule set loads, and somebody should know this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place, down to the word.
    pub location: Location,
    /// What to know: a sentence without its full stop.
    pub message: String,
}

/// The kinds of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A file cannot be read, or an include leads too deep.
    File,
    /// Quotes, words or lists that are not well formed.
    Syntax,
    /// A name that the language does not have.
    Unknown,
    /// Something that the language has and this engine does not.
    Unsupported,
    /// A value that is missing or not of its kind.
    Value,
    /// Things that are right alone and wrong together.
    Conflict,
    /// A limit is exceeded.
    Limit,
}

impl Code {
    /// The word that is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Syntax => "syntax",
            Self::Unknown => "unknown",
            Self::Unsupported => "unsupported",
            Self::Value => "value",
            Self::Conflict => "conflict",
            Self::Limit => "limit",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}", self.location, self.code.name(), self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}
