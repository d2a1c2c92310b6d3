//! `tidegate serve`: the gate itself.

use std::process::ExitCode;

use super::terminal;
use crate::cli;
use crate::serve::{self, Start};

pub(crate) fn run(arguments: &cli::Serve) -> ExitCode {
    let start = if arguments.take_over { Start::TakeOver } else { Start::Fresh };
    let Err(obstacle) = serve::run(&arguments.file, start) else { return ExitCode::SUCCESS };
    terminal::print_error(&obstacle.at_length(terminal::colour_of_stderr()));
    ExitCode::FAILURE
}
