//! `tidegate demo`.

use std::process::ExitCode;

use super::terminal;
use crate::demo;

pub(crate) fn run() -> ExitCode {
    let Err(obstacle) = demo::run() else { return ExitCode::SUCCESS };
    terminal::print_error(&obstacle.at_length(terminal::colour_of_stderr()));
    ExitCode::FAILURE
}
