//! `tidegate reload`.

use std::process::ExitCode;

use super::admin;
use crate::cli;

pub(crate) fn run(arguments: &cli::Admin) -> ExitCode {
    match admin::find(arguments) {
        Ok(listener) => admin::ask(&listener, "POST", "/reload", "text/plain"),
        Err(code) => code,
    }
}
