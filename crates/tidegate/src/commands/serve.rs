//! `tidegate serve`: the gate itself.

use std::process::ExitCode;

use super::terminal;
use crate::cli;
use crate::config::render;
use crate::serve::{self, Obstacle};

pub(crate) fn run(arguments: &cli::Serve) -> ExitCode {
    let Err(obstacle) = serve::run(&arguments.file) else { return ExitCode::SUCCESS };
    if let Obstacle::Configuration { diagnostics, .. } = &obstacle {
        terminal::print_error(&render::text(diagnostics, terminal::colour_of_stderr()));
    }
    terminal::print_error(&format!("tidegate: {obstacle}\n"));
    ExitCode::FAILURE
}
