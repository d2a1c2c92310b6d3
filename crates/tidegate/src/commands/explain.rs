//! `tidegate explain`.

use std::process::ExitCode;

use crate::cli;

pub(crate) fn run(_arguments: &cli::Explain) -> ExitCode {
    ExitCode::SUCCESS
}
