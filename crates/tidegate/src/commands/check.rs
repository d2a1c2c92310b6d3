//! `tidegate check`: all mistakes of a configuration, and whether it can be used.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tidegate_proxy::settings::Settings;
use tidegate_proxy::tls::TicketKeys;

use super::terminal;
use crate::cli;
use crate::config::diagnostic::{Diagnostics, Severity};
use crate::config::{self, Outside, environment, render};

/// Exit status of a configuration that cannot be used; 2 is clap's, for a wrong command line.
const UNUSABLE: u8 = 1;

pub(crate) fn run(arguments: &cli::Check) -> ExitCode {
    let tickets = match TicketKeys::new() {
        Ok(tickets) => Arc::new(tickets),
        Err(error) => {
            terminal::print_error(&format!("{error}\n"));
            return ExitCode::from(UNUSABLE);
        }
    };
    let outside = Outside { environment: &environment::Process, tickets: &tickets };
    let (diagnostics, settings) = match config::load(&arguments.file, &outside) {
        Ok(loaded) => (loaded.warnings, Some(loaded.settings)),
        Err(diagnostics) => (diagnostics, None),
    };
    let usable = settings.is_some();
    let strict = arguments.strict && diagnostics.count(Severity::Warning) > 0;
    let good = usable && !strict;
    if arguments.json {
        let report = json!({
            "file": arguments.file.display().to_string(),
            "ok": good,
            "errors": diagnostics.count(Severity::Error),
            "warnings": diagnostics.count(Severity::Warning),
            "diagnostics": render::json(&diagnostics),
            "summary": settings.as_ref().map(|settings| json!({
                "sites": settings.sites.len(),
                "routes": routes(settings),
                "groups": settings.groups.len(),
                "listeners": settings.listeners.len(),
            })),
        });
        terminal::print(&format!("{report:#}\n"));
    } else {
        terminal::print_error(&render::text(&diagnostics, terminal::colour_of_stderr()));
        terminal::print(&summary(arguments, &diagnostics, settings.as_ref()));
    }
    if good { ExitCode::SUCCESS } else { ExitCode::from(UNUSABLE) }
}

fn summary(
    arguments: &cli::Check,
    diagnostics: &Diagnostics,
    settings: Option<&Settings>,
) -> String {
    let file = arguments.file.display();
    let counts = render::counts(diagnostics);
    match settings {
        None => format!("{file}: cannot be used: {counts}\n"),
        Some(settings) => format!(
            "{file}: {}: {}, {}, {}, {}; {counts}\n",
            if arguments.strict && !diagnostics.list.is_empty() {
                "refused by --strict"
            } else {
                "ok"
            },
            render::plural(settings.sites.len(), "site"),
            render::plural(routes(settings), "route"),
            render::plural(settings.groups.len(), "group"),
            render::plural(settings.listeners.len(), "listener"),
        ),
    }
}

fn routes(settings: &Settings) -> usize {
    settings.sites.iter().map(|site| site.routes.len()).sum()
}
