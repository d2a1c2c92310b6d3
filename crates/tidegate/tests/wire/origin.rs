//! The origin behind the gate: raw sockets that record what came and answer as the case says.
//!
//! It reads requests leniently on purpose (`message`): a request hidden in another one is answered
//! and recorded like any other. Each case has its own listener; requests that come by the gate's
//! default site find their case by the marker in the target (`/$id`).
#![expect(clippy::disallowed_types, reason = "a test records behind a lock; nothing here is hot")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::bytes::show;
use crate::message::{Message, Progress, Side};
use crate::script::{Answer, Applies, Case, OriginStep};

/// The target of requests that the runner adds to a case.
pub(crate) const PROBE: &str = "/probe";
/// How long a connection may be silent; longer than any case runs.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// All origins of a run.
pub(crate) struct Origins {
    /// Where the case of each index has its origin.
    pub addresses: Vec<(usize, SocketAddr)>,
    /// The origin of the gate's default site.
    pub default: SocketAddr,
    logs: Arc<Vec<(usize, Arc<Log>)>>,
    strays: Arc<Mutex<Vec<String>>>,
}

/// What one case's origin saw.
pub(crate) struct Log {
    answers: Vec<Answer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: Vec<Connection>,
    exchanges: Vec<Exchange>,
}

#[derive(Default)]
struct Connection {
    received: Vec<u8>,
    sent: Vec<u8>,
    ended: bool,
}

/// One request as the origin read it.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub connection: usize,
    pub message: Message,
    /// The connection ended.
    pub ended: bool,
}

impl Exchange {
    /// Whether the runner added the request to the case.
    fn is_probe(&self) -> bool {
        self.message.target().starts_with(PROBE.as_bytes())
    }
}

impl Origins {
    /// Binds a listener per case and starts to serve them; the threads end with the process.
    pub(crate) fn bind(cases: &[Case]) -> std::io::Result<Origins> {
        let logs = cases.iter().map(|case| {
            let log = Log { answers: case.origin.clone(), state: Mutex::default() };
            (case.index, Arc::new(log))
        });
        let logs = Arc::new(logs.collect::<Vec<_>>());
        let strays = Arc::new(Mutex::new(Vec::new()));
        let listen = |home: Option<Arc<Log>>| -> std::io::Result<SocketAddr> {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            let (logs, strays) = (Arc::clone(&logs), Arc::clone(&strays));
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let server = Server {
                        home: home.clone(),
                        logs: Arc::clone(&logs),
                        strays: Arc::clone(&strays),
                    };
                    std::thread::spawn(move || server.serve(stream));
                }
            });
            Ok(address)
        };
        let mut addresses = Vec::new();
        for (index, log) in logs.iter() {
            addresses.push((*index, listen(Some(Arc::clone(log)))?));
        }
        let default = listen(None)?;
        Ok(Origins { addresses, default, logs, strays })
    }

    pub(crate) fn log(&self, case: &Case) -> &Log {
        let found = self.logs.iter().find(|(index, _)| *index == case.index);
        &found.unwrap().1
    }

    /// What came by the default site without a case's marker.
    pub(crate) fn strays(&self) -> Vec<String> {
        self.strays.lock().unwrap().clone()
    }
}

impl Log {
    /// The requests of the case itself.
    pub(crate) fn requests(&self) -> Vec<Exchange> {
        let state = self.state.lock().unwrap();
        state.exchanges.iter().filter(|exchange| !exchange.is_probe()).cloned().collect()
    }

    /// What each connection received, without what the runner's own probes brought.
    pub(crate) fn received(&self) -> Vec<Vec<u8>> {
        let state = self.state.lock().unwrap();
        state.connections.iter().map(|connection| connection.received.clone()).collect()
    }

    pub(crate) fn transcript(&self) -> String {
        let state = self.state.lock().unwrap();
        let connections = state.connections.iter().enumerate().map(|(number, connection)| {
            let (received, sent) = (show(&connection.received), show(&connection.sent));
            let end = if connection.ended { "ended" } else { "still open" };
            let number = number + 1;
            format!(
                "  origin's connection {number} ({end}) received:\n{received}  and sent:\n{sent}"
            )
        });
        let text = connections.collect::<Vec<_>>().concat();
        if text.is_empty() { "  the origin saw no connection\n".into() } else { text }
    }

    fn open(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        state.connections.push(Connection::default());
        state.connections.len() - 1
    }

    /// Records a request and says which steps answer it.
    fn begin(&self, connection: usize, message: &Message) -> (usize, Vec<OriginStep>) {
        let mut state = self.state.lock().unwrap();
        let exchange = Exchange { connection, message: message.clone(), ended: false };
        let before = state.exchanges.iter().filter(|exchange| !exchange.is_probe()).count();
        let probe = exchange.is_probe();
        state.exchanges.push(exchange);
        let answer = match self.answers.get(before) {
            Some(answer) => Some(answer),
            None => self.answers.last().filter(|answer| answer.applies == Applies::Always),
        };
        let steps = match answer {
            Some(answer) if !probe => answer.steps.clone(),
            _ => vec![OriginStep::Send(default_answer(message))],
        };
        (state.exchanges.len() - 1, steps)
    }
}

/// 200 with a body that names the request's target, so that mixed-up responses show.
fn default_answer(message: &Message) -> Vec<u8> {
    let body = [b"answer to ", message.target()].concat();
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    if !message.line.starts_with(b"HEAD ") {
        answer.extend(body);
    }
    answer
}

/// What a connection's thread knows.
struct Server {
    /// The case whose listener accepted; none for the default site.
    home: Option<Arc<Log>>,
    logs: Arc<Vec<(usize, Arc<Log>)>>,
    strays: Arc<Mutex<Vec<String>>>,
}

/// A connection to the gate, with what is read but not yet a whole request.
struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
    log: Option<(Arc<Log>, usize)>,
}

impl Server {
    fn serve(&self, stream: TcpStream) {
        let log = self.home.as_ref().map(|log| (Arc::clone(log), log.open()));
        let mut peer = Peer { stream, buffer: Vec::new(), log };
        if peer.stream.set_read_timeout(Some(SILENCE_MAX)).is_err() {
            return;
        }
        while self.serve_request(&mut peer).is_some() {}
        if let Some((log, connection)) = &peer.log {
            let mut state = log.state.lock().unwrap();
            state.connections[*connection].ended = true;
            let of_connection = |exchange: &&mut Exchange| exchange.connection == *connection;
            state.exchanges.iter_mut().filter(of_connection).for_each(|each| each.ended = true);
        }
    }

    /// Serves one request; `None` once the connection is over.
    fn serve_request(&self, peer: &mut Peer) -> Option<()> {
        let message = loop {
            let message = Message::read(Side::Request, &peer.buffer);
            if message.progress > Progress::Head {
                break message;
            }
            if !peer.read() {
                self.stray(peer);
                return None;
            }
        };
        if self.home.is_none() {
            let Some(log) = self.log_of(message.target()) else {
                self.stray(peer);
                return None;
            };
            let connection = log.open();
            log.state.lock().unwrap().connections[connection].received.clone_from(&peer.buffer);
            peer.log = Some((Arc::clone(log), connection));
        }
        let (log, connection) = peer.log.clone()?;
        let (exchange, steps) = log.begin(connection, &message);
        if !matches!(steps.first(), Some(OriginStep::ReadHead)) {
            peer.read_all(&log, exchange)?;
        }
        for step in steps {
            match step {
                OriginStep::ReadHead => {}
                OriginStep::ReadAll => peer.read_all(&log, exchange)?,
                OriginStep::Send(bytes) => peer.send(&bytes)?,
                OriginStep::Pause(time) => std::thread::sleep(time),
                OriginStep::Close => return peer.close(),
                OriginStep::Reset => {
                    socket2::SockRef::from(&peer.stream).set_linger(Some(Duration::ZERO)).ok()?;
                    return None;
                }
                OriginStep::Echo => return peer.echo(),
            }
        }
        let consumed = peer
            .read_all(&log, exchange)
            .map(|()| log.state.lock().unwrap().exchanges[exchange].message.consumed)?;
        peer.buffer.drain(..consumed);
        Some(())
    }

    /// The case whose marker a target begins with.
    fn log_of(&self, target: &[u8]) -> Option<&Arc<Log>> {
        let target = String::from_utf8_lossy(target);
        let marker = target.split('/').find_map(|segment| {
            segment.strip_prefix('c').and_then(|digits| digits.parse::<usize>().ok())
        })?;
        self.logs.iter().find(|(index, _)| *index == marker).map(|(_, log)| log)
    }

    fn stray(&self, peer: &Peer) {
        if self.home.is_none() && !peer.buffer.is_empty() {
            self.strays.lock().unwrap().push(show(&peer.buffer));
        }
    }
}

impl Peer {
    fn read(&mut self) -> bool {
        let mut chunk = [0; 16 * 1024];
        let Ok(length @ 1..) = self.stream.read(&mut chunk) else { return false };
        self.buffer.extend_from_slice(&chunk[..length]);
        if let Some((log, connection)) = &self.log {
            let mut state = log.state.lock().unwrap();
            state.connections[*connection].received.extend_from_slice(&chunk[..length]);
        }
        true
    }

    /// Reads to the end of the request; sends the 100 that it waits for.
    fn read_all(&mut self, log: &Log, exchange: usize) -> Option<()> {
        let mut continued = false;
        loop {
            let message = Message::read(Side::Request, &self.buffer);
            let progress = message.progress;
            let expects = message.values("expect").next().is_some();
            log.state.lock().unwrap().exchanges[exchange].message = message;
            if progress == Progress::Complete {
                return Some(());
            }
            if expects && !std::mem::replace(&mut continued, true) {
                self.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            if !self.read() {
                return None;
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        if let Some((log, connection)) = &self.log {
            log.state.lock().unwrap().connections[*connection].sent.extend_from_slice(bytes);
        }
        self.stream.write_all(bytes).ok()
    }

    /// FIN; what still comes is read, or the kernel would send RST instead.
    fn close(&mut self) -> Option<()> {
        self.stream.shutdown(Shutdown::Write).ok()?;
        while self.read() {}
        None
    }

    fn echo(&mut self) -> Option<()> {
        let request = Message::read(Side::Request, &self.buffer).consumed;
        self.buffer.drain(..request);
        loop {
            let upper = self.buffer.to_ascii_uppercase();
            self.buffer.clear();
            self.send(&upper)?;
            if !self.read() {
                return None;
            }
        }
    }
}
