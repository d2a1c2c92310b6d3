//! What is wrong with a rule set, or remarkable in it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

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

impl Diagnostic {
    /// A mistake without a hint.
    pub fn new(location: Location, code: Code, message: impl Into<String>) -> Self {
        Self { location, code, message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
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

/// What a reading found, as it goes.
#[derive(Debug, Default)]
pub(super) struct Report {
    diagnostics: Vec<Diagnostic>,
    notes: Vec<Note>,
}

impl Report {
    /// How many mistakes, and how many remarks, are listed before the rest is left out: a rule set
    /// included twice has a thousand.
    pub(super) const LISTED_MAX: usize = 1_000;

    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < Self::LISTED_MAX {
            self.diagnostics.push(diagnostic);
        } else if self.diagnostics.len() == Self::LISTED_MAX {
            let message = format!("there are more than {} mistakes", Self::LISTED_MAX);
            let hint = "mend these, and the others will be listed";
            self.diagnostics
                .push(Diagnostic::new(diagnostic.location, Code::Limit, message).hint(hint));
        }
    }

    pub(super) fn note(&mut self, location: Location, message: impl Into<String>) {
        if self.notes.len() < Self::LISTED_MAX {
            self.notes.push(Note { location, message: message.into() });
        } else if self.notes.len() == Self::LISTED_MAX {
            let message = format!("there are more than {} remarks", Self::LISTED_MAX);
            self.notes.push(Note { location, message });
        }
    }

    /// Whether further mistakes will not be listed: looking for them is of no use any more.
    pub(super) fn is_full(&self) -> bool {
        self.diagnostics.len() > Self::LISTED_MAX
    }

    /// How many mistakes there are so far: a reader compares, to know whether something was read
    /// without one.
    pub(super) fn errors(&self) -> usize {
        self.diagnostics.len()
    }

    /// All remarks, or all mistakes if there is one, in the order of their places; `files` are in
    /// the order of reading.
    pub(super) fn finish(mut self, files: &[Arc<str>]) -> Result<Vec<Note>, Vec<Diagnostic>> {
        let mut order = HashMap::new();
        for (at, file) in files.iter().enumerate() {
            order.entry(&**file).or_insert(at);
        }
        let place = |location: &Location| {
            (order.get(&*location.file).copied(), location.line, location.column)
        };
        self.diagnostics.sort_by_key(|diagnostic| place(&diagnostic.location));
        self.notes.sort_by_key(|note| place(&note.location));
        if self.diagnostics.is_empty() { Ok(self.notes) } else { Err(self.diagnostics) }
    }
}
