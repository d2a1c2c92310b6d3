//! Operators other than patterns: each a pure question about one value.
//!
//! An operator is made once from a rule's argument, which may be refused with a [`Fault`], and is
//! then asked about values. It answers with the range of bytes that matched, or with a reason, and
//! never formats: what the audit log says is written from the answer's `Display` when a rule has
//! matched. Macros in arguments are expanded by the caller, which is why [`text`] and [`number`]
//! take their parameter with each question. Negation (`!@pm`) is the caller's too.
//!
//! The semantics are ModSecurity's: version 3's where versions 2 and 3 agree; where they differ, the
//! item's documentation says which was taken and why. `@rx` is in [`crate::pattern`], `@detectSQLi`
//! and `@detectXSS` are in [`crate::libinjection`]. There is no `@fuzzyHash`: the kept
//! implementations of ssdeep have licences that this program cannot take in.

use std::fmt;

pub mod address;
pub mod byte_range;
mod country_code;
pub mod dns_list;
pub mod encoding;
pub mod geo;
pub mod identity;
pub mod inspect_file;
pub mod number;
pub mod phrases;
pub mod text;
pub mod unconditional;

/// Why an argument, or a data file, is none for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong: a sentence without its full stop.
    pub message: String,
    /// What would help, if something does.
    pub hint: Option<&'static str>,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// The argument as text, which all operators but `@pm` take.
fn readable(argument: &[u8]) -> Result<&str, Fault> {
    str::from_utf8(argument)
        .map_err(|_| Fault::new(format!("`{}` is not UTF-8", argument.escape_ascii())))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Fault {}
