//! The gate as a process.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::eventually;

/// A running gate with its directory. Dropping it ends every process that serves its configuration.
pub(crate) struct Gate {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    process: Child,
    directory: tempfile::TempDir,
}

impl Gate {
    /// Starts a gate with an admin socket, a listener, two workers, and `rest` of a configuration.
    /// `$DIR` in it is the gate's directory.
    pub(crate) fn start(rest: &str) -> Gate {
        Gate::start_with("workers = 2\ndrain_timeout = \"10s\"", rest)
    }

    /// The same with another `[process]`.
    pub(crate) fn start_with(process: &str, rest: &str) -> Gate {
        let directory = tempfile::tempdir().unwrap();
        let address = free_address();
        let file = directory.path().join("tidegate.toml");
        configure(&file, address, process, rest);
        let mut gate = Gate { address, process: serve(&file), directory };
        gate.await_service();
        gate
    }

    /// Starts it again after its end.
    pub(crate) fn restart(&mut self) {
        self.process = serve(&self.file());
        self.await_service();
    }

    fn await_service(&mut self) {
        eventually("the gate serves", || {
            assert!(self.process.try_wait().unwrap().is_none(), "{}", self.events());
            TcpStream::connect(self.address).is_ok()
                && UnixStream::connect(self.admin_socket()).is_ok()
        });
    }

    /// Writes the configuration anew; the running gate does not know of it yet.
    pub(crate) fn configure(&self, rest: &str) {
        self.configure_with("workers = 2\ndrain_timeout = \"10s\"", rest);
    }

    /// The same with another `[process]`.
    pub(crate) fn configure_with(&self, process: &str, rest: &str) {
        configure(&self.file(), self.address, process, rest);
    }

    /// A path in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path("tidegate.toml")
    }

    fn admin_socket(&self) -> PathBuf {
        self.path("admin.sock")
    }

    /// What it has written to standard error.
    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.path("events")).unwrap_or_default()
    }

    /// Runs a command of the program against this gate.
    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let mut command = tidegate(arguments);
        command.arg("--config").arg(self.file()).output().unwrap()
    }

    /// Runs a command that must succeed.
    pub(crate) fn order(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output), self.events());
        text(&output)
    }

    /// Runs a command that must succeed, against another admin listener than the configuration's.
    pub(crate) fn order_at(&self, admin: &str, arguments: &[&str]) -> String {
        let output = tidegate(arguments).arg("--admin").arg(admin).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output), self.events());
        text(&output)
    }

    /// Runs a command that must be refused.
    pub(crate) fn refused_order(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    /// Asks the admin socket; the status code and the body.
    pub(crate) fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let stream = UnixStream::connect(self.admin_socket()).unwrap();
        ask(stream, method, path, "Host: localhost\r\nTidegate-Client: test\r\n")
    }

    /// The status.
    pub(crate) fn status(&self) -> Value {
        let (status, body) = self.ask("GET", "/status?format=json");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// A server of the status of all servers.
    pub(crate) fn server(&self, name: &str) -> Value {
        let (_, body) = self.ask("GET", "/lb-status?format=json");
        let all: Value = serde_json::from_str(&body).unwrap();
        let servers = all["groups"].as_array().unwrap().iter();
        let mut servers = servers.flat_map(|group| group["servers"].as_array().unwrap());
        servers.find(|server| server["server"] == name).cloned().unwrap_or_default()
    }

    /// The process that was started first.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the first process to end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the process ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
        for pid in serving(&self.file()) {
            let _ended_already = kill_process(pid, Signal::KILL);
        }
        if std::thread::panicking() {
            println!("{}", self.events());
        }
    }
}

/// Starts a process that serves a configuration; its events are beside it.
fn serve(file: &Path) -> Child {
    let events = File::options().create(true).append(true).open(file.with_file_name("events"));
    tidegate(&["serve"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(events.unwrap())
        .spawn()
        .unwrap()
}

/// Every process that serves a configuration.
pub(crate) fn serving(file: &Path) -> Vec<Pid> {
    let file = file.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut arguments = line.split(|byte| *byte == 0);
        if arguments.nth(1) == Some(b"serve") && arguments.any(|argument| argument == file) {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

fn configure(file: &Path, address: SocketAddr, process: &str, rest: &str) {
    let directory = file.parent().unwrap().display().to_string();
    let rest = rest.replace("$DIR", &directory);
    let text = format!(
        "[process]\n{process}\n[admin]\nlisten = \"unix:{directory}/admin.sock\"\n\
         [[listen]]\naddress = \"{address}\"\n{rest}"
    );
    fs::write(file, text).unwrap();
}

/// A command of the program.
pub(crate) fn tidegate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

/// All that a command has written.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// One request on a connection of its own; the status code and the body.
pub(crate) fn ask(
    mut stream: impl std::io::Read + std::io::Write,
    method: &str,
    path: &str,
    fields: &str,
) -> (u16, String) {
    write!(stream, "{method} {path} HTTP/1.1\r\n{fields}Content-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// An address that nobody listens on at the moment.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
