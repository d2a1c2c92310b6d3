//! The client: sends a case's bytes, gathers what comes back, and tries the connections afterwards.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::bytes::show;
use crate::gate::Gate;
use crate::http2::Session;
use crate::message::{Message, Progress, responses};
use crate::now;
use crate::origin::{Log, PROBE};
use crate::script::{Afterwards, Case, ClientStep, Expectation, Version};

/// How long a connection must stay silent after the last response to count as silent.
const QUIET: Duration = Duration::from_millis(150);
/// How long the gate may take to close a connection that it will not use again.
const CLOSING_MAX: Duration = Duration::from_secs(3);
/// How long a probe may take.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Fin,
    Reset,
}

/// A client's socket with everything that went over it.
pub(crate) struct Wire {
    stream: TcpStream,
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    pub ended: Option<Ended>,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> std::io::Result<Wire> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(Duration::from_secs(2)))?;
        Ok(Wire { stream, sent: Vec::new(), received: Vec::new(), ended: None })
    }

    /// Sends; a gate that has closed already shows when reading, so errors are left to that.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        let _closed_already = self.stream.write_all(bytes);
    }

    /// Reads what comes within a time; true if bytes came.
    pub(crate) fn read(&mut self, wait: Duration) -> bool {
        if self.ended.is_some() {
            return false;
        }
        let mut chunk = [0; 16 * 1024];
        let wait = wait.max(Duration::from_millis(1));
        let result =
            self.stream.set_read_timeout(Some(wait)).and_then(|()| self.stream.read(&mut chunk));
        match result {
            Ok(0) => self.ended = Some(Ended::Fin),
            Ok(length) => {
                self.received.extend_from_slice(&chunk[..length]);
                return true;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.ended = Some(Ended::Reset),
        }
        false
    }

    fn reset(&mut self) {
        let _closed_already = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        self.ended = Some(Ended::Reset);
    }
}

/// What a run of a case came to.
pub(crate) struct Outcome {
    pub finals: Vec<Message>,
    /// The stream of each final response; empty for HTTP/1.
    pub streams: Vec<u32>,
    pub interims: Vec<u16>,
    /// Bytes that are no response; the tunnel's behind a 101.
    pub leftover: Vec<u8>,
    pub ended: Option<Ended>,
    /// GOAWAY came with this error code.
    pub goaway: Option<u32>,
    /// What is wrong whatever the case expects.
    pub faults: Vec<String>,
    pub received: Vec<u8>,
    sent: Vec<u8>,
}

impl Outcome {
    pub(crate) fn transcript(&self) -> String {
        let end = match (self.ended, self.goaway) {
            (Some(Ended::Fin), _) => "  the gate closed\n".to_owned(),
            (Some(Ended::Reset), _) => "  the connection was reset\n".to_owned(),
            (None, Some(code)) => format!("  GOAWAY {code}, connection still open\n"),
            (None, None) => "  the connection stayed open\n".to_owned(),
        };
        let (sent, received) = (show(&self.sent), show(&self.received));
        format!("  the client sent:\n{sent}  and received:\n{received}{end}")
    }
}

/// One client connection of either version.
enum Connection<'a> {
    Http1 { wire: Wire, methods: &'a [String] },
    Http2(Box<Session>),
}

impl Connection<'_> {
    fn wire(&mut self) -> &mut Wire {
        match self {
            Connection::Http1 { wire, .. } => wire,
            Connection::Http2(session) => &mut session.wire,
        }
    }

    fn read(&mut self, wait: Duration) -> bool {
        match self {
            Connection::Http1 { wire, .. } => wire.read(wait),
            Connection::Http2(session) => session.read(wait),
        }
    }

    /// Final responses, interim statuses and leftover bytes so far.
    fn responses(&mut self) -> (Vec<Message>, Vec<u16>, Vec<u8>) {
        match self {
            Connection::Http1 { wire, methods } => {
                let closed = wire.ended == Some(Ended::Fin);
                let (all, leftover) = responses(&wire.received, methods, closed);
                let (interims, finals) =
                    all.into_iter().partition::<Vec<_>, _>(Message::is_interim);
                (finals, interims.iter().map(Message::status).collect(), leftover)
            }
            Connection::Http2(session) => session.responses(),
        }
    }

    fn completed(&mut self) -> usize {
        let (finals, ..) = self.responses();
        let over =
            |message: &&Message| message.progress == Progress::Complete || message.reset.is_some();
        finals.iter().filter(over).count()
    }

    /// Reads until a condition holds, the connection ends or patience does; true if it holds.
    fn read_until(&mut self, patience: Duration, mut holds: impl FnMut(&mut Self) -> bool) -> bool {
        let deadline = now() + patience;
        loop {
            if holds(self) {
                return true;
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() || self.wire().ended.is_some() {
                return false;
            }
            self.read(left.min(Duration::from_millis(20)));
        }
    }
}

/// Runs a case's client and probes the connections behind it.
pub(crate) fn run(case: &Case, gate: &Gate, log: &Log) -> Outcome {
    let mut faults = Vec::new();
    let mut connection = match case.speaks {
        Version::Http1 => {
            let wire = Wire::connect(gate.http1).unwrap();
            Connection::Http1 { wire, methods: &case.methods }
        }
        Version::Http2 => Connection::Http2(Box::new(Session::open(gate.http2).unwrap())),
    };
    take_steps(case, &mut connection, log);
    settle(case, &mut connection);
    let (finals, interims, leftover) = connection.responses();
    let received = connection.wire().received.clone();
    let sent = connection.wire().sent.clone();
    let ended = connection.wire().ended;
    let (streams, goaway) = match &mut connection {
        Connection::Http1 { .. } => (Vec::new(), None),
        Connection::Http2(session) => {
            faults.append(&mut session.faults);
            (session.answered(), session.goaway)
        }
    };
    let usable = ended.is_none() && goaway.is_none();
    if usable && case.afterwards == Afterwards::Probe {
        faults.extend(probe_same(case, &mut connection));
    }
    faults.extend(probe_fresh(case, gate));
    Outcome { finals, streams, interims, leftover, ended, goaway, faults, received, sent }
}

fn take_steps(case: &Case, connection: &mut Connection<'_>, log: &Log) {
    let (mut awaited, mut origin_awaited) = (0, 0);
    for step in &case.client {
        match step {
            ClientStep::Send(bytes) => connection.wire().send(bytes),
            ClientStep::Trickle(bytes) => {
                for byte in bytes {
                    connection.wire().send(&[*byte]);
                    std::thread::sleep(Duration::from_micros(500));
                }
            }
            ClientStep::Pause(time) => {
                connection.read_until(*time, |_| false);
            }
            ClientStep::AwaitResponse => {
                awaited += 1;
                connection
                    .read_until(case.patience, |connection| connection.completed() >= awaited);
            }
            ClientStep::AwaitInterim(status) => {
                connection.read_until(case.patience, |connection| {
                    let (finals, interims, _) = connection.responses();
                    interims.contains(status) || !finals.is_empty()
                });
            }
            ClientStep::AwaitOrigin => {
                origin_awaited += 1;
                connection.read_until(case.patience, |connection| {
                    log.requests().len() >= origin_awaited || connection.completed() > 0
                });
            }
            ClientStep::AwaitClose => {
                connection.read_until(case.patience, |_| false);
            }
            ClientStep::HalfClose => {
                let _closed_already = connection.wire().stream.shutdown(Shutdown::Write);
            }
            ClientStep::Reset => connection.wire().reset(),
            ClientStep::Headers { .. } | ClientStep::Data { .. } | ClientStep::Frame { .. } => {
                if let Connection::Http2(session) = connection {
                    session.send(step);
                }
            }
        }
    }
}

/// Waits for the responses the case speaks of, then for a close or for silence.
fn settle(case: &Case, connection: &mut Connection<'_>) {
    let awaited = case.responses_awaited();
    let none = case.expectations().any(|e| matches!(e, Expectation::NoResponse));
    let patience = if none { case.patience.min(Duration::from_secs(1)) } else { case.patience };
    let refusal = case.expectations().any(|e| matches!(e, Expectation::Refused));
    let wanted = if refusal { awaited.max(1) } else { awaited };
    connection.read_until(patience, |connection| {
        wanted > 0 && (connection.completed() >= wanted || is_over(connection))
    });
    let close = case.expectations().any(|e| match e {
        Expectation::Close => true,
        Expectation::Refused => case.speaks == Version::Http1,
        _ => false,
    });
    let wait = if close { CLOSING_MAX } else { QUIET };
    if connection.completed() > 0 || close {
        connection.read_until(wait, |_| false);
    }
}

fn is_over(connection: &mut Connection<'_>) -> bool {
    match connection {
        Connection::Http1 { .. } => false,
        Connection::Http2(session) => session.goaway.is_some(),
    }
}

/// One more request on the case's connection: its answer must be that request's, and the only one.
fn probe_same(case: &Case, connection: &mut Connection<'_>) -> Option<String> {
    let before = connection.responses().0.len();
    let target = format!("{PROBE}/same");
    match connection {
        Connection::Http1 { wire, .. } => wire.send(&probe_request(case, &target, "keep-alive")),
        Connection::Http2(session) => session.request(&case.names.host, &target),
    }
    connection.read_until(PROBE_MAX, |connection| connection.completed() > before);
    connection.read_until(Duration::from_millis(50), |_| false);
    let (finals, _, leftover) = connection.responses();
    let probed = finals.get(before..).unwrap_or_default();
    judge_probe("the next request on the same connection", &target, probed, &leftover)
}

/// Two requests on a fresh connection: nothing pooled may answer for another.
fn probe_fresh(case: &Case, gate: &Gate) -> Option<String> {
    let Ok(mut wire) = Wire::connect(gate.http1) else {
        return Some("a fresh connection is refused".into());
    };
    for (target, option) in [("/probe/fresh", "keep-alive"), ("/probe/again", "close")] {
        wire.received.clear();
        wire.send(&probe_request(case, target, option));
        let mut connection = Connection::Http1 { wire, methods: &[] };
        connection.read_until(PROBE_MAX, |connection| connection.completed() > 0);
        let (finals, _, leftover) = connection.responses();
        let fault = judge_probe("a request on a fresh connection", target, &finals, &leftover);
        let Connection::Http1 { wire: same, .. } = connection else { return None };
        wire = same;
        if fault.is_some() {
            return fault;
        }
    }
    None
}

fn probe_request(case: &Case, target: &str, option: &str) -> Vec<u8> {
    let host = &case.names.host;
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: {option}\r\n\r\n").into_bytes()
}

fn judge_probe(what: &str, target: &str, finals: &[Message], leftover: &[u8]) -> Option<String> {
    match finals {
        [only]
            if only.status() == 200
                && only.body == format!("answer to {target}").as_bytes()
                && leftover.is_empty() =>
        {
            None
        }
        [] => Some(format!("{what} was not answered")),
        [first, ..] => Some(format!(
            "{what} was answered by {:?} with body {:?}, {} responses, {} bytes left over",
            first.line.escape_ascii().to_string(),
            first.body.escape_ascii().to_string(),
            finals.len(),
            leftover.len()
        )),
    }
}
