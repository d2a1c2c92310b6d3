//! The program: its command line, its configuration and the wiring of the gate.

#![forbid(unsafe_code)]

mod admin;
mod caching;
mod cli;
mod commands;
mod config;
mod context;
mod control;
mod demo;
mod outside;
mod serve;
mod upgrade;

use std::process::ExitCode;

use clap::Parser as _;

/// Many small allocations of like size on few threads: what mimalloc is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::Arguments::parse().command {
        cli::Command::Check(arguments) => commands::check::run(&arguments),
        cli::Command::Config(arguments) => commands::config::run(&arguments),
        cli::Command::Explain(arguments) => commands::explain::run(&arguments),
        cli::Command::Serve(arguments) => commands::serve::run(&arguments),
        cli::Command::Reload(arguments) => commands::reload::run(&arguments),
        cli::Command::Upgrade(arguments) => commands::upgrade::run(&arguments),
        cli::Command::Status(arguments) => commands::status::run(&arguments),
        cli::Command::Server(arguments) => commands::server::run(&arguments),
        cli::Command::Purge(arguments) => commands::purge::run(&arguments),
        cli::Command::Context(arguments) => commands::context::run(&arguments),
        cli::Command::Waf(arguments) => commands::waf::run(&arguments),
        cli::Command::Demo => commands::demo::run(),
    }
}
