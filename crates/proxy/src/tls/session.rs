//! rustls' unbuffered connections, of both sides, behind one face.
//!
//! A session turns received records into plaintext and plaintext into records, in buffers that are
//! not its own; it does no I/O. Two properties of rustls shape it:
//!
//! - A record that rustls has to send is lost if it is not encoded at once. So the caller keeps room
//!   for it in `out`: [`RECORD_BYTES_MAX`] during a handshake; after one, plaintext leaves
//!   [`RESERVED_BYTES`] free for alerts and key updates.
//! - Plaintext can be encrypted only when nothing received is left to be processed. So what has
//!   arrived meanwhile goes to the sink first.

use std::fmt;
use std::io::IoSlice;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{CommonState, Error};

use crate::worker::buffers::Buffer;

/// Bytes of a record at most: header, plaintext and what TLS 1.2 allows a cipher to add (RFC 5246,
/// section 6.2.3).
pub(super) const RECORD_BYTES_MAX: usize = 5 + PLAINTEXT_BYTES_MAX + 2_048;

/// Plaintext of a record at most (RFC 8446, section 5.1).
const PLAINTEXT_BYTES_MAX: usize = 16_384;

/// What a record adds to its plaintext, with any of our cipher suites: header 5, explicit nonce 8 (TLS
/// 1.2), content type 1 (TLS 1.3), tag 16.
const OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;

/// Room in `out` that plaintext never takes.
const RESERVED_BYTES: usize = 512;

/// A TLS connection without its socket and buffers.
pub(super) struct Session {
    connection: Connection,
    peer_closed: bool,
}

enum Connection {
    Server(Box<UnbufferedServerConnection>),
    Client(Box<UnbufferedClientConnection>),
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Something happened, perhaps in `out`: go on.
    Progress,
    /// Plaintext went to the sink.
    Plaintext,
    /// All that was received is processed.
    NeedsMore,
}

/// Why a session cannot go on.
#[derive(Debug)]
pub(super) enum Failure {
    /// The peer broke the protocol, or a check failed.
    Tls(Error),
    /// A record had no room in `out`.
    NoRoom,
    /// The keys have protected as much as they may, or the session is closed.
    Ended,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Tls(error) => error.fmt(f),
            Failure::NoRoom => f.write_str("too much to send at once"),
            Failure::Ended => f.write_str("the TLS session has ended"),
        }
    }
}

/// Where plaintext goes.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) + 'a;

/// What is to be encrypted.
enum Outbound<'a> {
    Plaintext(&'a [IoSlice<'a>]),
    CloseNotify,
}

impl Session {
    pub(super) fn server(connection: UnbufferedServerConnection) -> Session {
        Session { connection: Connection::Server(Box::new(connection)), peer_closed: false }
    }

    pub(super) fn client(connection: UnbufferedClientConnection) -> Session {
        Session { connection: Connection::Client(Box::new(connection)), peer_closed: false }
    }

    /// What rustls tells of any connection.
    pub(super) fn common(&self) -> &CommonState {
        match &self.connection {
            Connection::Server(connection) => connection,
            Connection::Client(connection) => connection,
        }
    }

    /// Whether this side accepted the connection.
    pub(super) fn is_server(&self) -> bool {
        matches!(self.connection, Connection::Server(_))
    }

    /// Whether the peer said that it sends no more (`close_notify`).
    pub(super) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Takes one step in what was received.
    pub(super) fn process(
        &mut self,
        incoming: Option<&mut Buffer>,
        out: &mut Buffer,
        plain: &mut Sink<'_>,
    ) -> Result<Event, Failure> {
        Ok(match self.step(incoming, out, plain, None)? {
            Step::Event(event) => event,
            Step::Sent(_) => Event::NeedsMore,
        })
    }

    /// Encrypts from the front of `parts` what has room in `out`, and says how much that was.
    pub(super) fn encrypt(
        &mut self,
        parts: &[IoSlice<'_>],
        incoming: Option<&mut Buffer>,
        out: &mut Buffer,
        plain: &mut Sink<'_>,
    ) -> Result<usize, Failure> {
        self.send(&Outbound::Plaintext(parts), incoming, out, plain)
    }

    /// Says to the peer that this side sends no more (`close_notify`).
    pub(super) fn close(
        &mut self,
        incoming: Option<&mut Buffer>,
        out: &mut Buffer,
        plain: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        self.send(&Outbound::CloseNotify, incoming, out, plain).map(drop)
    }

    /// After a failure: puts the alert that tells the peer into `out`. rustls has it ready and says so;
    /// only then may it be asked for, as it would otherwise go on with what made it fail.
    pub(super) fn encode_alert(&mut self, mut incoming: Option<&mut Buffer>, out: &mut Buffer) {
        while self.common().wants_write() {
            if self.process(incoming.as_deref_mut(), out, &mut |_| ()).is_err() {
                return;
            }
        }
    }

    fn send(
        &mut self,
        job: &Outbound<'_>,
        mut incoming: Option<&mut Buffer>,
        out: &mut Buffer,
        plain: &mut Sink<'_>,
    ) -> Result<usize, Failure> {
        loop {
            match self.step(incoming.as_deref_mut(), out, plain, Some(job))? {
                Step::Sent(bytes) => return Ok(bytes),
                Step::Event(Event::Progress | Event::Plaintext) => {}
                Step::Event(Event::NeedsMore) => return Err(Failure::Ended),
            }
        }
    }

    fn step(
        &mut self,
        incoming: Option<&mut Buffer>,
        out: &mut Buffer,
        plain: &mut Sink<'_>,
        job: Option<&Outbound<'_>>,
    ) -> Result<Step, Failure> {
        let Some(incoming) = incoming else {
            let (_, step) = self.settle(&mut [], out, plain, job);
            return step;
        };
        let (discard, step) = self.settle(incoming.filled_mut(), out, plain, job);
        incoming.consume(discard);
        step
    }

    fn settle(
        &mut self,
        incoming: &mut [u8],
        out: &mut Buffer,
        plain: &mut Sink<'_>,
        job: Option<&Outbound<'_>>,
    ) -> (usize, Result<Step, Failure>) {
        let closed = &mut self.peer_closed;
        match &mut self.connection {
            Connection::Server(connection) => {
                settle(connection.process_tls_records(incoming), out, plain, job, closed)
            }
            Connection::Client(connection) => {
                settle(connection.process_tls_records(incoming), out, plain, job, closed)
            }
        }
    }
}

/// What one call into rustls came to.
enum Step {
    Event(Event),
    /// All that was received is processed, and this much plaintext was encrypted.
    Sent(usize),
}

/// Does what rustls wants and takes what it has. Also says how many received bytes are done with.
fn settle<D>(
    status: UnbufferedStatus<'_, '_, D>,
    out: &mut Buffer,
    plain: &mut Sink<'_>,
    job: Option<&Outbound<'_>>,
    peer_closed: &mut bool,
) -> (usize, Result<Step, Failure>) {
    let mut discard = status.discard;
    let state = match status.state {
        Ok(state) => state,
        Err(error) => return (discard, Err(Failure::Tls(error))),
    };
    let event = match state {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        discard += record.discard;
                        plain(record.payload);
                    }
                    Err(error) => return (discard, Err(Failure::Tls(error))),
                }
            }
            Event::Plaintext
        }
        ConnectionState::EncodeTlsData(mut record) => match record.encode(out.spare_mut()) {
            Ok(bytes) => {
                out.advance(bytes);
                Event::Progress
            }
            Err(_) => return (discard, Err(Failure::NoRoom)),
        },
        // What was encoded is in `out` and will be sent in its order; rustls need not wait for that.
        ConnectionState::TransmitTlsData(transmit) => {
            transmit.done();
            Event::Progress
        }
        ConnectionState::PeerClosed => {
            *peer_closed = true;
            Event::Progress
        }
        ConnectionState::WriteTraffic(traffic) => {
            let sent = match job {
                None => Ok(0),
                Some(Outbound::Plaintext(parts)) => encrypt_parts(traffic, parts, out),
                Some(Outbound::CloseNotify) => close(traffic, out),
            };
            return (discard, sent.map(Step::Sent));
        }
        // Early data is never accepted, so it is never there to be read.
        ConnectionState::BlockedHandshake
        | ConnectionState::Closed
        | ConnectionState::ReadEarlyData(_)
        | _ => Event::NeedsMore,
    };
    (discard, Ok(Step::Event(event)))
}

fn close<D>(mut traffic: WriteTraffic<'_, D>, out: &mut Buffer) -> Result<usize, Failure> {
    let bytes = traffic.queue_close_notify(out.spare_mut()).map_err(Failure::from)?;
    out.advance(bytes);
    Ok(0)
}

/// Encrypts as many records as `out` has room for. Records are full, except for the last: one that
/// lies within a part is encrypted from where it lies, one that spans parts is joined first.
fn encrypt_parts<D>(
    mut traffic: WriteTraffic<'_, D>,
    parts: &[IoSlice<'_>],
    out: &mut Buffer,
) -> Result<usize, Failure> {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let mut cursor = Cursor { parts, at: 0 };
    let mut sent = 0;
    while sent < total {
        let room = out.spare_mut().len().saturating_sub(RESERVED_BYTES + OVERHEAD_BYTES);
        let bytes = (total - sent).min(PLAINTEXT_BYTES_MAX);
        if bytes > room {
            break;
        }
        let encrypted = match cursor.contiguous(bytes) {
            Some(slice) => traffic.encrypt(slice, out.spare_mut()),
            None => traffic.encrypt(cursor.joined(bytes).filled(), out.spare_mut()),
        };
        out.advance(encrypted?);
        cursor.advance(bytes);
        sent += bytes;
    }
    Ok(sent)
}

/// A place in a row of parts.
struct Cursor<'a> {
    parts: &'a [IoSlice<'a>],
    /// In the first part.
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next `bytes`, if they lie in one part.
    fn contiguous(&mut self, bytes: usize) -> Option<&'a [u8]> {
        // An empty part in front, or one that is used up, does not count.
        while self.parts.first().is_some_and(|part| part.len() == self.at) {
            self.parts = &self.parts[1..];
            self.at = 0;
        }
        self.parts.first()?.get(self.at..)?.get(..bytes)
    }

    /// The next `bytes` in one piece.
    fn joined(&self, bytes: usize) -> Buffer {
        let mut piece = Buffer::take();
        let mut at = self.at;
        for part in self.parts {
            let wanted = bytes - piece.len();
            let rest = &part[at..];
            piece.append(&rest[..rest.len().min(wanted)]);
            at = 0;
            if piece.len() == bytes {
                break;
            }
        }
        piece
    }

    fn advance(&mut self, mut bytes: usize) {
        while let Some(part) = self.parts.first() {
            let rest = part.len() - self.at;
            if bytes < rest {
                self.at += bytes;
                return;
            }
            bytes -= rest;
            self.parts = &self.parts[1..];
            self.at = 0;
        }
    }
}

impl From<EncryptError> for Failure {
    fn from(error: EncryptError) -> Self {
        match error {
            EncryptError::InsufficientSize(_) => Failure::NoRoom,
            EncryptError::EncryptExhausted => Failure::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_gives_every_byte_once_wherever_the_parts_end() {
        fn check(parts: &[&str], piece: usize) {
            let whole: Vec<u8> = parts.concat().into_bytes();
            let slices: Vec<IoSlice<'_>> =
                parts.iter().map(|part| IoSlice::new(part.as_bytes())).collect();
            let mut cursor = Cursor { parts: &slices, at: 0 };
            let mut read = Vec::new();
            while read.len() < whole.len() {
                let bytes = piece.min(whole.len() - read.len());
                match cursor.contiguous(bytes) {
                    Some(slice) => read.extend_from_slice(slice),
                    None => read.extend_from_slice(cursor.joined(bytes).filled()),
                }
                cursor.advance(bytes);
            }
            assert_eq!(read, whole, "{parts:?} by {piece}");
            assert!(cursor.contiguous(1).is_none());
        }
        for piece in 1..8 {
            check(&["hello world"], piece);
            check(&["a", "bc", "", "def", "ghijkl"], piece);
            check(&["", "", "ab", ""], piece);
            check(&[], piece);
        }
    }
}
