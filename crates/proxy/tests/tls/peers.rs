//! Independent peers as processes.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// What a client says, both of its output streams in one.
pub(crate) struct Said(pub(crate) String);

impl Said {
    #[track_caller]
    pub(crate) fn has(&self, expected: &str) -> &Said {
        assert!(self.0.contains(expected), "no `{expected}` in:\n{}", self.0);
        self
    }

    #[track_caller]
    pub(crate) fn lacks(&self, unexpected: &str) -> &Said {
        assert!(!self.0.contains(unexpected), "`{unexpected}` in:\n{}", self.0);
        self
    }
}

/// `openssl s_client`, which sends one request and reads to the end.
pub(crate) fn s_client<I, S>(address: SocketAddr, arguments: I) -> Said
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new("openssl");
    command.args(["s_client", "-ign_eof", "-connect", &address.to_string()]).args(arguments);
    said(command, b"GET / HTTP/1.0\r\n\r\n")
}

/// `curl` on `https://name:port/`, led to `address`.
pub(crate) fn curl(address: SocketAddr, name: &str, authority: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "10", "--noproxy", "*", "--cacert"]);
    command.arg(authority).args(arguments);
    command.arg("--connect-to").arg(format!("{name}:443:{address}"));
    command.arg(format!("https://{name}/"));
    said(command, b"")
}

fn said(mut command: Command, input: &[u8]) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a client to run");
    // A client that was refused at once has closed this already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let all = [output.stdout, output.stderr].concat();
    Said(String::from_utf8_lossy(&all).into_owned())
}

/// `openssl s_server`, ended when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Server {
    /// Answers any request with a page about the connection (`-www`), or as `arguments` say.
    pub(crate) fn start<I, S>(arguments: I) -> Server
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let address = free_address();
        let child = Command::new("openssl")
            .args(["s_server", "-accept", &address.to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Server { address, child };
        // A TCP connection that says nothing tells that it listens, and is answered by nothing.
        for _ in 0..200 {
            if TcpStream::connect(address).is_ok() {
                return server;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let mut reason = String::new();
        server.child.kill().unwrap();
        server.child.stderr.take().unwrap().read_to_string(&mut reason).unwrap();
        panic!("s_server does not listen: {reason}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address nobody listens on; the kernel does not give the same port again for a while.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
