//! The gate under test as a process: Tidegate, or a peer that `conformance/peers/` starts.

use std::fmt::Write as _;
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::origin::Origins;
use crate::script::Case;

/// Time for a gate to start listening.
const START_MAX: Duration = Duration::from_secs(10);

/// A running gate; stopped when dropped.
pub(crate) struct Gate {
    /// Where it speaks HTTP/1.
    pub http1: SocketAddr,
    /// Where it speaks HTTP/2 with prior knowledge.
    pub http2: SocketAddr,
    name: String,
    process: Child,
    directory: PathBuf,
}

impl Gate {
    /// Starts the gate with one site per case, and a default site. `None` if there is no such gate.
    pub(crate) fn start(cases: &[Case], origins: &Origins) -> Option<Gate> {
        let directory = std::env::temp_dir().join(format!("tidegate-wire-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut sites: Vec<(String, SocketAddr)> = vec![("*".into(), origins.default)];
        for (case, (_, origin)) in cases.iter().zip(&origins.addresses) {
            sites.push((case.names.host.clone(), *origin));
        }
        let (http1, second) = free_addresses();
        let peer = std::env::var("TIDEGATE_WIRE_PEER").ok();
        let (name, http2, mut command) = match peer {
            Some(peer) => {
                (peer.clone(), second, peer_command(&peer, &directory, http1, second, &sites)?)
            }
            None => ("tidegate".to_owned(), http1, tidegate_command(&directory, http1, &sites)?),
        };
        let output = File::create(directory.join("output")).unwrap();
        let process = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let gate = Gate { http1, http2, name, process, directory };
        let deadline = crate::now() + START_MAX;
        while TcpStream::connect(gate.http1).is_err() {
            assert!(crate::now() < deadline, "the gate does not listen:\n{}", gate.output());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(gate)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the process itself did wrong: traffic may neither end it nor make it panic.
    pub(crate) fn complaint(&mut self) -> Option<String> {
        if let Ok(Some(status)) = self.process.try_wait() {
            return Some(format!("the gate ended ({status}):\n{}", self.output()));
        }
        self.output().contains("panicked").then(|| format!("the gate panicked:\n{}", self.output()))
    }

    /// The last of what the process wrote.
    fn output(&self) -> String {
        let output = std::fs::read(self.directory.join("output")).unwrap_or_default();
        String::from_utf8_lossy(&output[output.len().saturating_sub(4_000)..]).into_owned()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
        let _gone_already = std::fs::remove_dir_all(&self.directory);
    }
}

/// Two addresses that nobody listens on at the moment.
fn free_addresses() -> (SocketAddr, SocketAddr) {
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, other) = (bind(), bind());
    (one.local_addr().unwrap(), other.local_addr().unwrap())
}

/// One worker, so that a pooled connection to an origin meets the very next request.
fn tidegate_command(
    directory: &Path,
    listen: SocketAddr,
    sites: &[(String, SocketAddr)],
) -> Option<Command> {
    let binary = match std::env::var_os("TIDEGATE_BIN") {
        Some(binary) => PathBuf::from(binary),
        None => PathBuf::from(option_env!("CARGO_BIN_EXE_tidegate")?),
    };
    let mut text = format!(
        "[process]\nworkers = 1\n\n[admin]\nlisten = \"off\"\n\n\
         [defaults]\nfirst_byte_timeout = \"3s\"\nbetween_bytes_timeout = \"3s\"\n\n\
         [[listen]]\naddress = \"{listen}\"\nprotocols = \"both\"\nhead_timeout = \"2s\"\n\n"
    );
    for (host, origin) in sites {
        let _infallible = write!(
            text,
            "[[site]]\nhost = \"{host}\"\nupstream = \"{origin}\"\nbody_max = \"1MB\"\n\n"
        );
    }
    let file = directory.join("tidegate.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(binary);
    command.arg("serve").arg(file);
    Some(command)
}

/// `conformance/peers/NAME.sh DIRECTORY HTTP1-PORT HTTP2-PORT` with `sites` in the directory, a host
/// and an origin's address per line. It ends in `exec`, and with status 0 at once if it cannot run.
fn peer_command(
    name: &str,
    directory: &Path,
    http1: SocketAddr,
    http2: SocketAddr,
    sites: &[(String, SocketAddr)],
) -> Option<Command> {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../conformance/peers/{name}.sh"));
    let lines: Vec<String> =
        sites.iter().map(|(host, origin)| format!("{host} {origin}")).collect();
    std::fs::write(directory.join("sites"), lines.join("\n") + "\n").unwrap();
    if !script.exists() {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg(script).arg(directory);
    command.arg(http1.port().to_string()).arg(http2.port().to_string());
    Some(command)
}
