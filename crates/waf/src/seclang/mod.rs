//! SecLang as text: lexer, directives, rules, and every mistake with its place.
//!
//! [`parse`] reads a whole rule set into a [`Document`]: directives in their order with includes
//! resolved, chains nested in their starters, names looked up in the tables, macros parsed once.
//! It needs no compiler and does no matching: patterns, address lists and data files stay text here,
//! with the place where they stand, for whoever compiles them.

pub mod action;
mod check;
pub mod control;
mod diagnostic;
pub mod directive;
mod document;
mod files;
mod location;
pub mod operator;
mod read;
mod reference;
mod rule;
pub mod setting;
mod suggestion;
mod support;
#[cfg(test)]
mod tests;
mod text;

pub use action::Action;
pub use control::Control;
pub use diagnostic::{Code, Diagnostic, Note};
pub use document::{Directive, Document, TargetUpdate};
pub use files::{Disk, FileError, Files, Memory};
pub use location::{Located, Location};
pub use operator::OperatorName;
pub use reference::reference;
pub use rule::{Link, OperatorCall, Rule, Selector, Sense, Target, TargetKind, Test};
pub use setting::Setting;
pub use support::Support;
pub use text::{Piece, Text};

use diagnostic::Report;

/// Reads a rule set: the document and what is remarkable in it, or all of its mistakes.
pub fn parse(
    files: &dyn Files,
    entry: Entry<'_>,
) -> Result<(Document, Vec<Note>), Vec<Diagnostic>> {
    let mut report = Report::default();
    let document = read::document(files, entry, &mut report);
    check::check(&document, &mut report);
    let notes = report.finish(&document.files)?;
    Ok((document, notes))
}

/// Where a rule set begins.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A file, by its path.
    File(&'a str),
    /// Text, as if it stood in a file of this path.
    Text {
        /// The path: relative includes and data files are resolved against its directory.
        path: &'a str,
        /// The text.
        text: &'a [u8],
    },
}
