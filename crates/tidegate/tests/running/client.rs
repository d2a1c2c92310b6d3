//! A strict client: keep-alive as RFC 9112 has it, and every answer must be whole.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// For one answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// Whether the server closes the connection after it.
    pub(crate) last: bool,
}

/// A connection to the gate.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    pub(crate) fn send(&mut self, path: &str) -> std::io::Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: test.example\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes())
    }

    pub(crate) fn receive(&mut self) -> std::io::Result<Answer> {
        let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let (mut status, mut length, mut last) = (0, 0, false);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(cut());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().map_err(std::io::Error::other)?;
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(std::io::Error::other)?;
            } else if line == "connection: close" {
                last = true;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        let body = String::from_utf8(body).map_err(std::io::Error::other)?;
        Ok(Answer { status, body, last })
    }

    /// Sends no more and still waits for what was asked.
    pub(crate) fn half_close(&mut self) -> std::io::Result<()> {
        self.0.get_mut().shutdown(Shutdown::Write)
    }

    /// Goes away as a program does that was killed with unread bytes: by a reset.
    pub(crate) fn reset(self) -> std::io::Result<()> {
        socket2::SockRef::from(self.0.get_ref()).set_linger(Some(Duration::ZERO))
    }

    pub(crate) fn get(&mut self, path: &str) -> std::io::Result<Answer> {
        self.send(path)?;
        self.receive()
    }
}

/// One request on a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    Connection::open(address).unwrap().get(path).unwrap()
}

/// Clients that ask all the time, each on a connection that it keeps until told that it ends.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Asks for `path` from so many clients.
    pub(crate) fn start(address: SocketAddr, path: &'static str, clients: usize) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let client = |number: usize| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            // Some ask without a pause, some now and then, as people do.
            let pause = Duration::from_millis([0, 1, 20, 150][number % 4]);
            thread::spawn(move || ask_until(address, path, pause, &stop, &answered))
        };
        let clients = (0..clients).map(client).collect();
        Load { stop, answered, clients }
    }

    /// How many requests were answered so far.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits for more requests to be answered.
    pub(crate) fn go_on(&self) {
        let before = self.answered();
        crate::eventually("requests are answered", || self.answered() > before + 50);
    }

    /// Ends it; every failure, and there should be none.
    pub(crate) fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}

fn ask_until(
    address: SocketAddr,
    path: &str,
    pause: Duration,
    stop: &AtomicBool,
    answered: &AtomicUsize,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut kept: Option<Connection> = None;
    while !stop.load(Ordering::Relaxed) {
        let fresh = kept.is_none();
        let mut connection = match kept.take().map_or_else(|| Connection::open(address), Ok) {
            Ok(connection) => connection,
            Err(error) => {
                failures.push(format!("connect: {error}"));
                continue;
            }
        };
        match connection.get(path) {
            Ok(Answer { status: 200, last, .. }) => {
                answered.fetch_add(1, Ordering::Relaxed);
                if !last {
                    kept = Some(connection);
                }
            }
            Ok(other) => failures.push(format!("{other:?}")),
            Err(error) => failures.push(format!("fresh connection: {fresh}: {error}")),
        }
        thread::sleep(pause);
    }
    failures
}
