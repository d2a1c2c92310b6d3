//! `tidegate explain`: which site, route and group would serve a request, under which policies, and
//! why.
//!
//! Sites and routes are found by the look-ups that the gate itself uses, so an explanation cannot
//! differ from what happens.

mod report;
mod story;

use std::process::ExitCode;
use std::sync::Arc;

use tidegate_proxy::tls::TicketKeys;

use super::question::Question;
use super::terminal;
use crate::cli;
use crate::config::{self, Outside, environment, render};

/// Exit status for a method, URL or field that no request can have, as clap's for a wrong command line.
const NO_REQUEST: u8 = 2;

pub(crate) fn run(arguments: &cli::Explain) -> ExitCode {
    let cli::Explain { method, url, headers, from, .. } = arguments;
    let question = match Question::of(method, url, headers, *from) {
        Ok(question) => question,
        Err(complaint) => {
            terminal::print_error(&format!("error: {complaint}\n"));
            return ExitCode::from(NO_REQUEST);
        }
    };
    let tickets = match TicketKeys::new() {
        Ok(tickets) => Arc::new(tickets),
        Err(error) => {
            terminal::print_error(&format!("error: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    let outside = Outside { environment: &environment::Process, tickets: &tickets };
    match config::load(&arguments.config, &outside) {
        Ok(loaded) => {
            terminal::print(&story::tell(&question, &loaded));
            ExitCode::SUCCESS
        }
        Err(diagnostics) => {
            terminal::print_error(&render::text(&diagnostics, terminal::colour_of_stderr()));
            terminal::print_error(&format!(
                "{}: cannot be used: {}\n",
                arguments.config.display(),
                render::counts(&diagnostics)
            ));
            ExitCode::FAILURE
        }
    }
}
