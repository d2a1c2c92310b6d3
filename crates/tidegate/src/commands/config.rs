//! `tidegate config`: the reference of the configuration, from the option table.

use std::process::ExitCode;

use super::terminal;
use crate::cli;
use crate::config::{reference, schema};

pub(crate) fn run(arguments: &cli::Config) -> ExitCode {
    let text = match &arguments.name {
        Some(name) => match reference::entry(name) {
            Ok(text) => text,
            Err(complaint) => {
                terminal::print_error(&complaint);
                return ExitCode::FAILURE;
            }
        },
        None if arguments.toml => reference::toml(),
        None if arguments.markdown => reference::markdown(),
        None if arguments.schema => schema::text(),
        None => reference::terminal(),
    };
    terminal::print(&text);
    ExitCode::SUCCESS
}
