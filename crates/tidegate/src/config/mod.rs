//! The configuration: files to settings.
//!
//! A file is parsed into a tree that knows where each value stands ([`node`]), joined with what it
//! includes ([`include`]), held against the table of options ([`options`], [`names`]) and resolved
//! into the typed settings of the proxy ([`resolve`]). All mistakes are reported at once
//! ([`diagnostic`], [`render`]). The reference and the JSON schema come from the same table
//! ([`reference`], [`schema`]).

pub(crate) mod diagnostic;
pub(crate) mod environment;
mod include;
mod names;
mod node;
pub(crate) mod options;
mod parse;
pub(crate) mod reader;
pub(crate) mod reference;
pub(crate) mod render;
pub(crate) mod resolve;
mod rules;
pub(crate) mod schema;
pub(crate) mod source;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use std::path::Path;

use tidegate_proxy::settings::{Admin, Settings};

use diagnostic::{Diagnostic, Diagnostics, Severity};
use environment::Environment;
use reader::{Origins, Reading};
pub(crate) use resolve::Outside;
use resolve::Resolved;

/// Where the configuration is if nobody says otherwise.
pub(crate) const DEFAULT_PATH: &str = "/etc/tidegate/tidegate.toml";

/// A configuration that can be used.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What it says.
    pub(crate) settings: Settings,
    /// What it says of what rules remember.
    pub(crate) context: crate::context::Settings,
    /// What it says of whom rules ask beyond their request.
    pub(crate) beyond: crate::outside::Settings,
    /// What somebody may regret; no errors. It holds the texts that origins point into.
    pub(crate) warnings: Diagnostics,
    /// Where each value came from.
    pub(crate) origins: Origins,
}

/// Reads a file with all it includes, or says all that is wrong.
pub(crate) fn load(path: &Path, outside: &Outside<'_>) -> Result<Loaded, Diagnostics> {
    let mut reading = Reading::new(Diagnostics::default(), outside.environment);
    let table = include::read(path, &mut reading);
    let unparsed = |reading: &Reading<'_>| {
        let errors = reading.diagnostics.list.iter();
        errors.clone().any(|found| {
            let code = &found.code.number;
            *code == diagnostic::code::SYNTAX.number
                || *code == diagnostic::code::UNREADABLE_FILE.number
        })
    };
    // What a parser has skipped would be reported as missing: names and values only.
    if unparsed(&reading) {
        names::check(&options::root::SECTION, &table, None, names::Depth::Values, &mut reading);
        let mut diagnostics = reading.diagnostics;
        diagnostics.sort();
        diagnostics.drop_what_follows_from_syntax();
        return Err(diagnostics);
    }
    names::check(&options::root::SECTION, &table, None, names::Depth::Names, &mut reading);
    let Resolved { settings, context, beyond } = resolve::settings(table, outside, &mut reading);
    let origins = std::mem::take(&mut reading.origins);
    let diagnostics = finish(reading.diagnostics);
    if diagnostics.count(Severity::Error) > 0 {
        return Err(diagnostics);
    }
    Ok(Loaded { settings, context, beyond, warnings: diagnostics, origins })
}

/// Reads only where the admin listener is, for commands that talk to a running gate: the rest of the
/// file may have mistakes, which that gate will tell of.
pub(crate) fn load_admin(path: &Path, environment: &dyn Environment) -> Result<Admin, Diagnostics> {
    let mut reading = Reading::new(Diagnostics::default(), environment);
    let table = include::read(path, &mut reading);
    let unreadable = |found: &Diagnostic| found.code == &diagnostic::code::UNREADABLE_FILE;
    if reading.diagnostics.list.iter().any(unreadable) {
        return Err(finish(reading.diagnostics));
    }
    reading.diagnostics.list.clear();
    let admin = resolve::admin(table, &mut reading);
    let diagnostics = finish(reading.diagnostics);
    if diagnostics.count(Severity::Error) > 0 { Err(diagnostics) } else { Ok(admin) }
}

fn finish(mut diagnostics: Diagnostics) -> Diagnostics {
    diagnostics.sort();
    diagnostics
}
