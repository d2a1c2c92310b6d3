//! `tidegate waf`: requests tried on the rules that a configuration gives them.
//!
//! No gate has to run. [`trial`] finds site, route and rules as the gate does and runs the request;
//! [`exclusion`] finds what lets it pass; the rest reads requests and tells what came of them.

mod exclusion;
mod message;
mod record;
mod replay;
mod subject;
mod test;
mod trial;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tidegate_proxy::tls::TicketKeys;

use super::terminal;
use crate::cli;
use crate::config::{self, Loaded, Outside, environment, render};

/// Exit status of a request that is stopped, and of verdicts that differ.
const STOPPED: u8 = 1;
/// Exit status of what cannot be tried, as clap's for a wrong command line.
const UNUSABLE: u8 = 2;

pub(crate) fn run(arguments: &cli::Waf) -> ExitCode {
    match arguments {
        cli::Waf::Test(arguments) => test::run(arguments),
        cli::Waf::Replay(arguments) => replay::run(arguments),
    }
}

/// A configuration; its mistakes have been told otherwise.
fn load(path: &Path) -> Result<Loaded, ExitCode> {
    let tickets = TicketKeys::new().map_err(|error| refuse(&error.to_string()))?;
    let outside = Outside { environment: &environment::Process, tickets: &Arc::new(tickets) };
    config::load(path, &outside).map_err(|diagnostics| {
        terminal::print_error(&render::text(&diagnostics, terminal::colour_of_stderr()));
        let counts = render::counts(&diagnostics);
        terminal::print_error(&format!("{}: cannot be used: {counts}\n", path.display()));
        ExitCode::from(UNUSABLE)
    })
}

fn refuse(complaint: &str) -> ExitCode {
    terminal::print_error(&format!("error: {complaint}\n"));
    ExitCode::from(UNUSABLE)
}

/// Bytes as text for people and for JSON: what is no UTF-8 is shown as the characters of its bytes'
/// numbers, so that nothing of an attack is lost.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| char::from(*byte)));
    }
    text
}
