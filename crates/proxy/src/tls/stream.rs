//! An encrypted connection.
//!
//! Between requests a stream is its socket, rustls' state (some 3 KB: keys, no buffers) and three empty
//! options. Received records are decrypted where they lie, sent ones are encrypted where they are sent
//! from; both buffers go back to the worker's pool as soon as they are empty.
//!
//! - `incoming`: received, not yet processed. Empty unless a record is cut or the reader is slow.
//! - `plain`: decrypted, not yet read. Empty unless the reader's buffer was smaller than a record.
//! - `out`: encrypted, not yet sent. Empty unless the socket is full, or what is there (tickets at the
//!   end of a handshake) waits for the first response to go with it. It is sent before any wait.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::identity::ClientCertificate;
use super::session::{Event, Failure, RECORD_BYTES_MAX, Session};
use crate::socket::Socket;
use crate::worker::buffers::Buffer;

/// Bytes waiting in `out` that more may join; beyond them what waits is sent first.
const JOINED_BYTES_MAX: usize = 4096;

/// A TLS connection after its handshake.
pub struct Stream {
    io: Socket,
    session: Session,
    incoming: Option<Buffer>,
    plain: Option<Buffer>,
    out: Option<Buffer>,
    /// Whether all of `incoming` is processed, as far as it goes.
    settled: bool,
    reading: Reading,
    writing: Writing,
    /// What broke the session.
    failure: Option<Box<Failure>>,
    facts: Option<Box<Facts>>,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Open,
    /// The connection ended without `close_notify`: what was read may be cut short.
    Truncated,
    /// The session is broken.
    Failed,
}

/// How far writing has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Open,
    /// `close_notify`, or a fatal alert, is sent or in `out`.
    Closed,
}

/// What a handshake learned and rustls does not keep.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) server_name: Option<Box<str>>,
    pub(super) client: Option<ClientCertificate>,
}

/// What was agreed in the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: &'static str,
    /// The cipher suite's IANA name.
    pub cipher: &'static str,
    /// The key exchange group's IANA name; `None` if the handshake had none (resumed TLS 1.2).
    pub group: Option<&'static str>,
    /// The protocol agreed on.
    pub alpn: Alpn,
    /// Whether a session was resumed.
    pub resumption: Resumption,
    /// The name the client asked for, in lower case.
    pub server_name: Option<&'a str>,
    /// The client's certificate, verified now or when the session began.
    pub client: Option<&'a ClientCertificate>,
}

/// The protocol agreed on by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// None: a client that does not know ALPN, and HTTP/1 then.
    None,
    /// `http/1.1`, or `http/1.0`.
    Http1,
    /// `h2`.
    Http2,
}

/// Whether a session was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// A full handshake.
    Full,
    /// A resumed session: no certificates, no signature.
    Resumed,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("io", &self.io)
            .field("reading", &self.reading)
            .field("writing", &self.writing)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// A stream whose handshake is still to be done, with what was received before.
    pub(super) fn new(io: Socket, session: Session, incoming: Option<Buffer>) -> Stream {
        Stream {
            io,
            session,
            incoming,
            plain: None,
            out: None,
            settled: false,
            reading: Reading::Open,
            writing: Writing::Open,
            failure: None,
            facts: None,
        }
    }

    /// One step of the handshake; data that comes behind it is kept for reading. The caller keeps room
    /// for a record by [`Stream::has_room_for_record`].
    pub(super) fn handshake_step(&mut self) -> Result<Event, Failure> {
        let plain = &mut self.plain;
        let event = self.session.process(
            self.incoming.as_mut(),
            self.out.get_or_insert_with(Buffer::take),
            &mut |bytes| set_aside(plain, bytes),
        )?;
        self.settled = event == Event::NeedsMore;
        self.release_incoming();
        self.release_out();
        Ok(event)
    }

    /// Whether `out` has room for any record.
    pub(super) fn has_room_for_record(&mut self) -> bool {
        self.out.as_mut().is_none_or(|out| out.spare_mut().len() >= RECORD_BYTES_MAX)
    }

    /// What was received and not yet processed.
    pub(super) fn received(&self) -> &[u8] {
        self.incoming.as_ref().map_or(&[], Buffer::filled)
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn set_facts(&mut self, facts: Facts) {
        self.facts = Some(Box::new(facts));
    }

    /// What was agreed in the handshake.
    pub fn info(&self) -> Info<'_> {
        let common = self.session.common();
        let facts = self.facts.as_deref();
        Info {
            version: match common.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                _ => "TLSv1.3",
            },
            cipher: common.negotiated_cipher_suite().map_or("", |suite| iana_name(suite.suite())),
            group: common.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
            alpn: self.alpn(),
            resumption: match common.handshake_kind() {
                Some(HandshakeKind::Resumed) => Resumption::Resumed,
                _ => Resumption::Full,
            },
            server_name: facts.and_then(|facts| facts.server_name.as_deref()),
            client: facts.and_then(|facts| facts.client.as_ref()),
        }
    }

    /// The protocol agreed on.
    pub fn alpn(&self) -> Alpn {
        match self.session.common().alpn_protocol() {
            None => Alpn::None,
            Some(b"h2") => Alpn::Http2,
            Some(_) => Alpn::Http1,
        }
    }

    /// The socket underneath, for its addresses and options.
    pub fn transport(&self) -> &Socket {
        &self.io
    }

    /// The socket underneath, once TLS is over: what was not read or sent is lost.
    pub fn into_transport(self) -> Socket {
        self.io
    }

    /// Waits until something may be read: data, the end, or an error. Sends what waits to be sent
    /// first. It can be wrong (a record that is no data, a part of one): [`Stream::poll_read`] then
    /// waits on.
    pub fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.plain.is_some() || !self.settled || !self.can_receive() {
            return Poll::Ready(Ok(()));
        }
        match self.io.poll_read_ready(cx) {
            Poll::Pending => self.poll_drain_then_wait(cx),
            ready @ Poll::Ready(_) => ready,
        }
    }

    /// Waits until a connection that should be idle no longer is: the peer sent data, ended it or broke
    /// it. Session tickets and key updates, which may come at any time, are taken in. A pooled upstream
    /// connection is good for another request while this waits.
    pub fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.plain.is_some() || !self.can_receive() {
            return Poll::Ready(());
        }
        self.poll_receive(cx, &mut ReadBuf::new(&mut [])).map(drop)
    }

    /// Reads decrypted data. `Ok(0)` (for a buffer that is not empty) is the end as the peer declared it
    /// by `close_notify`; an end without that is an error of kind [`io::ErrorKind::UnexpectedEof`]; a
    /// broken record is one of kind [`io::ErrorKind::InvalidData`].
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(into);
        ready!(self.poll_read_buf(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }

    /// Encrypts data and begins to send it; says how much was taken. Waits only while what was taken
    /// before is not sent. What it took is sent whole by [`Stream::poll_flush`].
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    /// [`Stream::poll_write`] of several parts in a row, as if they were one.
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.reading == Reading::Failed || self.writing == Writing::Closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.out.as_ref().is_some_and(|out| out.len() > JOINED_BYTES_MAX) {
            ready!(self.poll_drain(cx))?;
        }
        let out = self.out.get_or_insert_with(Buffer::take);
        out.make_room();
        let plain = &mut self.plain;
        let taken = self.session.encrypt(parts, self.incoming.as_mut(), out, &mut |bytes| {
            set_aside(plain, bytes);
        });
        self.settled = true;
        self.release_incoming();
        let taken = match taken {
            Ok(taken) => taken,
            Err(failure) => return Poll::Ready(Err(self.fail(failure))),
        };
        match self.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // What the socket did not take stays in `out`; the data is taken all the same.
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(taken)),
        }
    }

    /// Sends all that was taken.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_drain(cx)
    }

    /// Declares the end by `close_notify`, sends all and closes the socket's sending side. Reading can
    /// go on.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writing == Writing::Open && self.reading != Reading::Failed {
            self.writing = Writing::Closed;
            let out = self.out.get_or_insert_with(Buffer::take);
            let plain = &mut self.plain;
            let closed = self.session.close(self.incoming.as_mut(), out, &mut |bytes| {
                set_aside(plain, bytes);
            });
            self.settled = true;
            self.release_incoming();
            if let Err(failure) = closed {
                return Poll::Ready(Err(self.fail(failure)));
            }
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_read_buf(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if let Some(plain) = &mut self.plain {
            let bytes = plain.len().min(into.remaining());
            into.put_slice(&plain.filled()[..bytes]);
            plain.consume(bytes);
            if plain.is_empty() {
                self.plain = None;
            }
            return Poll::Ready(Ok(()));
        }
        self.poll_receive(cx, into)
    }

    /// Processes what is there, and receives more, until there is plaintext: in `into`, and beyond its
    /// room in `plain`.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.settle(into) {
                Ok(Event::Plaintext) => return Poll::Ready(Ok(())),
                Ok(_) => {}
                Err(failure) => return Poll::Ready(Err(self.fail(failure))),
            }
            if self.session.peer_closed() {
                return Poll::Ready(Ok(()));
            }
            match self.reading {
                Reading::Open => {}
                Reading::Truncated => return Poll::Ready(Err(truncated())),
                Reading::Failed => return Poll::Ready(Err(self.broken())),
            }
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => self.reading = Reading::Truncated,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_drain_then_wait(cx),
            }
        }
    }

    /// Processes all of `incoming` that `into` has room for, at least one record if one is there.
    fn settle(&mut self, into: &mut ReadBuf<'_>) -> Result<Event, Failure> {
        let mut found = Event::NeedsMore;
        while !self.settled && self.reading != Reading::Failed {
            let plain = &mut self.plain;
            let event = self.session.process(
                self.incoming.as_mut(),
                self.out.get_or_insert_with(Buffer::take),
                &mut |bytes| {
                    let direct = bytes.len().min(into.remaining());
                    into.put_slice(&bytes[..direct]);
                    if direct < bytes.len() {
                        set_aside(plain, &bytes[direct..]);
                    }
                },
            );
            match event {
                // What came before is good, and is read first.
                Err(failure) if found == Event::Plaintext => _ = self.fail(failure),
                Err(failure) => return Err(failure),
                Ok(Event::Progress) => {}
                Ok(Event::NeedsMore) => self.settled = true,
                Ok(Event::Plaintext) => {
                    found = Event::Plaintext;
                    if into.remaining() == 0 {
                        break;
                    }
                }
            }
        }
        self.release_incoming();
        self.release_out();
        Ok(found)
    }

    /// Receives into `incoming`. Nothing there means no buffer held.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let incoming = self.incoming.get_or_insert_with(Buffer::take);
        if incoming.spare_mut().len() < RECORD_BYTES_MAX {
            incoming.make_room();
        }
        if incoming.spare_mut().is_empty() {
            // A handshake message longer than rustls takes fails before it fills a buffer.
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let mut spare = ReadBuf::new(incoming.spare_mut());
        let polled = Pin::new(&mut self.io).poll_read(cx, &mut spare);
        let bytes = spare.filled().len();
        incoming.advance(bytes);
        if bytes > 0 {
            self.settled = false;
        }
        self.release_incoming();
        polled.map_ok(|()| bytes)
    }

    /// Sends what is in `out`. Nothing left means no buffer held.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(out) = &mut self.out {
            if out.is_empty() {
                self.out = None;
                break;
            }
            let bytes = ready!(Pin::new(&mut self.io).poll_write(cx, out.filled()))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.consume(bytes);
        }
        Poll::Ready(Ok(()))
    }

    /// Before waiting for the peer: it may itself wait for what is in `out`.
    fn poll_drain_then_wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        match self.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }

    fn fail(&mut self, failure: Failure) -> io::Error {
        self.end(None);
        self.failure = Some(Box::new(failure));
        self.broken()
    }

    fn broken(&self) -> io::Error {
        match &self.failure {
            Some(failure) => io::Error::new(io::ErrorKind::InvalidData, failure.to_string()),
            None => io::ErrorKind::InvalidData.into(),
        }
    }

    /// Ends the session and tells the peer why, as far as the socket takes it at once: by `alert`, a
    /// whole record, or else by the one rustls has.
    pub(super) fn end(&mut self, alert: Option<&[u8]>) {
        self.reading = Reading::Failed;
        self.writing = Writing::Closed;
        let out = self.out.get_or_insert_with(Buffer::take);
        match alert {
            Some(record) => _ = out.append(record),
            None => self.session.encode_alert(self.incoming.as_mut(), out),
        }
        if let Ok(bytes) = self.io.try_write(out.filled()) {
            out.consume(bytes);
        }
        self.incoming = None;
        self.plain = None;
        self.release_out();
    }

    fn can_receive(&self) -> bool {
        self.reading == Reading::Open && !self.session.peer_closed()
    }

    /// What comes after `close_notify` is ignored (RFC 8446, section 6.1).
    fn release_incoming(&mut self) {
        if self.session.peer_closed() || self.incoming.as_ref().is_some_and(Buffer::is_empty) {
            self.incoming = None;
        }
    }

    fn release_out(&mut self) {
        if self.out.as_ref().is_some_and(Buffer::is_empty) {
            self.out = None;
        }
    }
}

/// Keeps plaintext that nobody has room for yet. It always fits: `plain` and `incoming` together hold
/// what one buffer received, and plaintext is shorter than the record it came in.
fn set_aside(plain: &mut Option<Buffer>, bytes: &[u8]) {
    let plain = plain.get_or_insert_with(Buffer::take);
    if plain.spare_mut().len() < bytes.len() {
        plain.make_room();
    }
    let kept = plain.append(bytes);
    debug_assert_eq!(kept, bytes.len(), "plaintext is shorter than what was received");
}

fn truncated() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the connection ended without close_notify: what was read may be cut short",
    )
}

/// rustls writes `TLS13_` where the registry has `TLS_`.
fn iana_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or(""),
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll_read_buf(cx, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write(self.get_mut(), cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write_vectored(self.get_mut(), cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Stream::poll_flush(self.get_mut(), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Stream::poll_shutdown(self.get_mut(), cx)
    }
}
