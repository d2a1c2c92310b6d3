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
    /// Take the configuration anew, all of it or nothing.
    Reload(Admin),
    /// Hand over to a new process of the installed program, without losing a request.
    Upgrade(Upgrade),
    /// Tell how the running gate is doing, worst first.
    Status(Status),
    /// Drain, add and remove servers of the running gate.
    Server(Server),
    /// Have the cache forget URLs, tags, prefixes, sites, or everything.
    Purge(Purge),
    /// Read, write, load and watch what rules remember.
    #[command(subcommand)]
    Context(Context),
    /// Try requests on the firewall's rules, and compare rule sets.
    #[command(subcommand)]
    Waf(Waf),
    /// Try the gate in front of servers of its own.
    Demo,
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
    /// Take over from the process whose socket is the standard input; `tidegate upgrade` does this.
    #[arg(long, hide = true)]
    pub(crate) take_over: bool,
}

/// Which running gate is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Admin {
    /// The configuration, which says where the admin listener is.
    #[arg(short, long, default_value = DEFAULT_PATH, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// The admin listener itself: `127.0.0.1:9180` or `unix:/run/tidegate/admin.sock`. Its token is
    /// taken from `TIDEGATE_ADMIN_TOKEN`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
}

/// `tidegate upgrade`.
#[derive(Debug, clap::Args)]
pub(crate) struct Upgrade {
    /// Another program than the one the gate was started from.
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

/// `tidegate status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) admin: Admin,
    /// Groups and servers instead.
    #[arg(long)]
    pub(crate) servers: bool,
    /// Print JSON, for machines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tidegate server`.
#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// What is to be done.
    #[arg(value_enum)]
    pub(crate) change: ServerChange,
    /// The group.
    pub(crate) group: String,
    /// Its servers: `10.0.0.1:80`, `[::1]:80` or `unix:/path`.
    #[arg(required = true, value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// The weight of an added server.
    #[arg(long, value_name = "WEIGHT")]
    pub(crate) weight: Option<u32>,
    /// An added server serves only while no other does.
    #[arg(long)]
    pub(crate) backup: bool,
    /// The most connections to an added server.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) connections_max: Option<u32>,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

/// `tidegate purge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate purge https://example.org/news/7
  tidegate purge --tag news --tag front-page --soft
  tidegate purge --prefix https://example.org/blog/

All that is named is purged in one step, or nothing. A URL is purged under http and https, with all
its variants.")]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)
    .args(["urls", "prefixes", "tags", "sites", "all"])))]
pub(crate) struct Purge {
    /// URLs: `https://example.org/a?b=c`.
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// All that has this tag (`Cache-Tag`, `Surrogate-Key`, `xkey`).
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// All below this URL, on all hosts of its site.
    #[arg(long = "prefix", value_name = "URL")]
    pub(crate) prefixes: Vec<String>,
    /// All of this site; with tags, only what has one of them there.
    #[arg(long = "site", value_name = "NAME")]
    pub(crate) sites: Vec<String>,
    /// Everything.
    #[arg(long)]
    pub(crate) all: bool,
    /// Leave it to be served stale under grace, until it is fetched anew.
    #[arg(long)]
    pub(crate) soft: bool,
    #[command(flatten)]
    pub(crate) admin: Admin,
}

/// `tidegate waf`.
#[derive(Debug, Subcommand)]
pub(crate) enum Waf {
    /// Tell which rules a request matches, on what, and what it comes to.
    Test(WafTest),
    /// Run recorded requests through two configurations and list the verdicts that differ.
    Replay(WafReplay),
}

/// `tidegate waf replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tidegate waf replay /var/log/tidegate/requests.log --old tidegate.toml --new next.toml

Like diff, the exit status is 0 if no verdict differs, 1 if some do, and 2 if there
is trouble.")]
pub(crate) struct WafReplay {
    /// Files with requests as `format = \"requests\"` records them (`-` is the standard input).
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// The configuration with the rules of today.
    #[arg(long, value_name = "FILE")]
    pub(crate) old: PathBuf,
    /// The configuration with the rules of tomorrow.
    #[arg(long, value_name = "FILE")]
    pub(crate) new: PathBuf,
    /// Print one JSON object, for machines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tidegate waf test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate waf test 'https://example.org/find?q=1%27%20or%201=1--'
  tidegate waf test POST https://example.org/login --data 'user=a&pin=b'
  tidegate waf test request.http --response response.http
  tidegate waf test /var/log/tidegate/requests.log --id 0003a1f2c4d5e6f7

The exit status is 0 if the request passes, 1 if it is stopped, or would be in
mode `block`, and 2 if it cannot be tried.")]
pub(crate) struct WafTest {
    /// A file with a request as HTTP/1.1 has it or as `format = "requests"` records it (`-` is the
    /// standard input), or a URL, or a method with the URL behind it.
    #[arg(value_name = "FILE|URL|METHOD")]
    pub(crate) what: String,
    /// The URL, if the method stands before it.
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The configuration.
    #[arg(short, long, default_value = DEFAULT_PATH, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A field of the request: `'Cookie: a=b'`.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// The request's body, or `@FILE`; a form if no `Content-Type` says otherwise.
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) data: Option<String>,
    /// The client's address.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: Option<std::net::IpAddr>,
    /// A file with the response, for phases 3 and 4.
    #[arg(long, value_name = "FILE")]
    pub(crate) response: Option<PathBuf>,
    /// The id of the recorded request that is meant; the first one if not given.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Tell of rules too that log nothing.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object, for machines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tidegate context`.
#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// Show variables: of a collection, of a record, or one.
    Get {
        /// `global`, `ip`, `resource`, `session` or `user`.
        collection: String,
        /// The record, such as `203.0.113.7`; without it, all of the collection.
        key: Option<String>,
        /// The variable.
        name: Option<String>,
        /// Only records whose keys begin so; with a KEY, variables whose names do.
        #[arg(long, conflicts_with = "name")]
        prefix: Option<String>,
        /// How many at most, up to 100,000.
        #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "name")]
        limit: u32,
        /// Begin behind this record, which a listing that was cut names.
        #[arg(long, value_name = "KEY", conflicts_with = "key")]
        after: Option<String>,
        /// Begin behind this variable.
        #[arg(long, value_name = "NAME", conflicts_with = "name")]
        after_name: Option<String>,
        /// Print JSON, for machines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: Admin,
    },
    /// Write a variable.
    Put {
        /// `global`, `ip`, `resource`, `session` or `user`.
        collection: String,
        /// The record, such as `203.0.113.7`.
        key: String,
        /// The variable.
        name: String,
        /// What it is to hold.
        value: String,
        /// How long it is kept, in seconds, or `forever`; else as before, or as its record.
        #[arg(long, value_name = "SECONDS")]
        ttl: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
    /// Remove a record, or one variable of it.
    Del {
        /// `global`, `ip`, `resource`, `session` or `user`.
        collection: String,
        /// The record, such as `203.0.113.7`.
        key: String,
        /// The variable.
        name: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
    /// Print changes as they are made, a JSON object on each line.
    Watch {
        /// Only those of this collection.
        collection: Option<String>,
        /// Only those of records whose keys begin so.
        prefix: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
    /// Load variables from a file, all of them at once or none. A line is
    /// `collection,key,name,value,ttl` or a JSON object with these names.
    Load {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Remove what else there is in this collection, in the same step.
        #[arg(long, value_name = "COLLECTION")]
        replace: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
}

/// What is done with a server of the running gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServerChange {
    /// Give it no new requests.
    Drain,
    /// Give it requests again.
    Undrain,
    /// Add it until the next reload.
    Add,
    /// Remove it until the next reload; requests under way finish.
    Remove,
}
