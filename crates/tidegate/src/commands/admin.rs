//! Talking to a running gate: where it is, and what it says.

use std::process::ExitCode;

use tidegate_proxy::settings::{Address, Admin};

use super::terminal;
use crate::admin::client::{self, Ask, Reply, Unreachable};
use crate::cli;
use crate::config::{self, environment, render};

/// The variable that holds the token where the configuration is not read.
const TOKEN_VARIABLE: &str = "TIDEGATE_ADMIN_TOKEN";

/// Exit status of a gate that said no; 2 is clap's, for a wrong command line.
const REFUSED: u8 = 1;
/// Exit status of a gate that did not answer.
const UNREACHABLE: u8 = 3;

/// The admin listener of the gate that is meant.
pub(super) fn find(arguments: &cli::Admin) -> Result<Admin, ExitCode> {
    if let Some(address) = &arguments.admin {
        let Some(address) = parse(address) else {
            terminal::print_error(&format!(
                "tidegate: `{address}` is not an admin listener: write `127.0.0.1:9180` or \
                 `unix:/run/tidegate/admin.sock`\n"
            ));
            return Err(ExitCode::from(REFUSED));
        };
        let token = std::env::var(TOKEN_VARIABLE).ok();
        return Ok(Admin { address: Some(address), token });
    }
    config::load_admin(&arguments.config, &environment::Process).map_err(|diagnostics| {
        terminal::print_error(&render::text(&diagnostics, terminal::colour_of_stderr()));
        terminal::print_error("tidegate: where the admin listener is can be said by `--admin`\n");
        ExitCode::from(REFUSED)
    })
}

fn parse(address: &str) -> Option<Address> {
    match address.strip_prefix("unix:") {
        Some(path) => Some(Address::Unix(path.into())),
        None => address.parse().ok().map(Address::Tcp),
    }
}

/// Asks, and shows what is answered.
pub(super) fn ask(admin: &Admin, method: &str, path: &str, accept: &str) -> ExitCode {
    told(client::ask(admin, Ask::new(method, path, accept)))
}

/// Shows what is answered.
pub(super) fn told(answer: Result<Reply, Unreachable>) -> ExitCode {
    match answer {
        Ok(Reply { status, text }) if status.is_success() => {
            terminal::print(&text);
            ExitCode::SUCCESS
        }
        Ok(Reply { text, .. }) => {
            terminal::print_error(&text);
            ExitCode::from(REFUSED)
        }
        Err(unreachable) => {
            terminal::print_error(&format!("tidegate: {unreachable}\n"));
            ExitCode::from(UNREACHABLE)
        }
    }
}
