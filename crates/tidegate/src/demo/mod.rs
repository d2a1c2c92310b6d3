//! `tidegate demo`: the gate in front of origins of its own, to look at and to play with.
//!
//! The demo writes a configuration as anybody would, into a directory of its own, and serves it as
//! `tidegate serve` does: what is shown is the product, and the commands for a running gate work on
//! it. The directory is gone when the demo ends.

mod origin;
mod pages;

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::commands::terminal;
use crate::serve::{self, Obstacle, Start};

/// Ports that are taken if they are free.
const HTTP: u16 = 8080;
const HTTPS: u16 = 8443;
const ADMIN: u16 = 9180;

/// Where everything is.
struct Places {
    directory: PathBuf,
    http: SocketAddr,
    https: SocketAddr,
    admin: SocketAddr,
    origins: [SocketAddr; 2],
}

/// Serves the demo until it is told to stop.
pub(crate) fn run() -> Result<(), Obstacle> {
    let places = Places::prepare().map_err(Obstacle::Demo)?;
    terminal::print(&places.introduction());
    let result = serve::run(&places.configuration(), Start::Fresh);
    // What is left lies in the system's directory for what may be left.
    let _ = std::fs::remove_dir_all(&places.directory);
    result
}

impl Places {
    fn prepare() -> io::Result<Places> {
        let directory = std::env::temp_dir().join(format!("tidegate-demo-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let places = Places {
            http: free(HTTP)?,
            https: free(HTTPS)?,
            admin: free(ADMIN)?,
            origins: [origin::start("one")?, origin::start("two")?],
            directory,
        };
        certificate(&places.directory)?;
        std::fs::write(places.configuration(), places.toml())?;
        Ok(places)
    }

    fn configuration(&self) -> PathBuf {
        self.directory.join("tidegate.toml")
    }

    fn toml(&self) -> String {
        let Places { directory, http, https, admin, origins: [one, two] } = self;
        let directory = directory.display();
        format!(
            r#"# The demo's configuration. Change it, and run: tidegate reload --config THIS-FILE

[process]
workers = 2
connections_max = 10_000
drain_timeout = "2s"

[admin]
listen = "{admin}"

[[log]]
name = "access"
path = "{directory}/access.log"
format = "json"

[[listen]]
address = "{http}"

[[listen]]
address = "{https}"
  [listen.tls]
  certificates = [{{ chain = "{directory}/certificate.pem", key = "{directory}/key.pem" }}]

[group.harbour]
servers = ["{one}", "{two}"]
balance = "least_requests"
health = {{ path = "/health" }}

[[site]]
host = "*"
logs = ["access"]
  [[site.route]]
  path = "/"
  group = "harbour"
  response_headers = {{ set = {{ "X-Request-Id" = "$request_id" }} }}
  cache = {{ lifetime = "200 5s" }}

  [[site.route]]
  exact = "/hello"
  answer = {{ status = 200, body = "The gate says hello by itself.\n" }}

  [[site.route]]
  exact = "/home"
  redirect = {{ status = 302, to = "/" }}
"#
        )
    }

    fn introduction(&self) -> String {
        let Places { directory, http, https, admin, origins } = self;
        let mut text = String::from("Tidegate demo: a gate in front of two servers.\n\n");
        let expected = [(http, HTTP, "HTTP"), (https, HTTPS, "HTTPS"), (admin, ADMIN, "admin")];
        for (address, port, what) in expected {
            if address.port() != port {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "port {port} is taken: {what} is on {}", address.port());
            }
        }
        let configuration = self.configuration();
        let _ = write!(
            text,
            "  open   http://{http}/          a page of 60 KB with style, picture and data
         https://{https}/        the same over TLS and HTTP/2 (its certificate is its own)
         http://{admin}/status    how the gate is doing, worst first
         http://{admin}/lb-status the servers

  try    curl -i http://{http}/api/tides            (twice: Cache-Status says a miss, then a hit)
         curl -s 'http://{http}/slow?seconds=2'
         tidegate status --config {configuration}
         tidegate server drain harbour {first} --config {configuration}
         tidegate reload --config {configuration}

  read   {directory}/tidegate.toml, {directory}/access.log
  end    Ctrl-C

",
            configuration = configuration.display(),
            directory = directory.display(),
            first = origins[0],
        );
        text
    }
}

/// The address with this port, or another that is free.
fn free(port: u16) -> io::Result<SocketAddr> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    bind(port).or_else(|_| bind(0))?.local_addr()
}

/// A certificate for this machine, by nobody but itself.
fn certificate(directory: &Path) -> io::Result<()> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    std::fs::write(directory.join("certificate.pem"), made.cert.pem())?;
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem())
}
