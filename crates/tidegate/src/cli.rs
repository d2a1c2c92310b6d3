//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::DEFAULT_PATH;

/// The gate in front of your servers that never becomes the hidden bottleneck.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration and report all mistakes in it.
    Check(Check),
    /// Print the reference of the configuration.
    Config(Config),
    /// Tell which site, route and group would serve a request, and why.
    Explain(Explain),
    /// Serve until told to stop.
    Serve(Serve),
}

/// `tidegate check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The configuration.
    #[arg(default_value = DEFAULT_PATH)]
    pub(crate) file: PathBuf,
    /// Fail on warnings too.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON object, for machines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tidegate config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Config {
    /// Only this option, section or kind of mistake: `idle_timeout`, `site.route`, `E062`.
    #[arg(value_name = "NAME", conflicts_with_all = ["toml", "markdown", "schema"])]
    pub(crate) name: Option<String>,
    /// Print a file with every option at its default, commented out.
    #[arg(long)]
    pub(crate) toml: bool,
    /// Print the reference as Markdown.
    #[arg(long, conflicts_with = "toml")]
    pub(crate) markdown: bool,
    /// Print the JSON schema for editors.
    #[arg(long, conflicts_with_all = ["toml", "markdown"])]
    pub(crate) schema: bool,
}

/// `tidegate explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The method: `GET`.
    pub(crate) method: String,
    /// The URL: `https://example.org/api/users?page=2`.
    pub(crate) url: String,
    /// The configuration.
    #[arg(short, long, default_value = DEFAULT_PATH, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A field of the request: `'Host: example.org'`.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// The client's address.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: Option<std::net::IpAddr>,
}

/// `tidegate serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The configuration.
    #[arg(default_value = DEFAULT_PATH)]
    pub(crate) file: PathBuf,
}
