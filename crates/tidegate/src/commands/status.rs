//! `tidegate status`.

use std::process::ExitCode;

use super::admin;
use crate::cli;

pub(crate) fn run(arguments: &cli::Status) -> ExitCode {
    let path = if arguments.servers { "/lb-status" } else { "/status" };
    let accept = if arguments.json { "application/json" } else { "text/plain" };
    match admin::find(&arguments.admin) {
        Ok(listener) => admin::ask(&listener, "GET", path, accept),
        Err(code) => code,
    }
}
