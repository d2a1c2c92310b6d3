//! Handshakes, from a connected socket to a [`Stream`].
//!
//! What fails says why in [`HandshakeFailure`] and gives the socket back. By then the peer has been
//! told by an alert, unless it does not speak TLS at all: then nothing was sent, and the caller may
//! answer in what it does speak. There are no deadlines here.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::{CertificateError, Error, PeerIncompatible};
use tokio::io::{AsyncRead, ReadBuf};

use super::certificate::{Validity, validity_of};
use super::client::ClientTls;
use super::identity::ClientCertificate;
use super::names::Asked;
use super::server::ServerTls;
use super::session::{Event, Failure, Session};
use super::stream::{Alpn, Facts, Stream};
use crate::settings::UpstreamProtocol;
use crate::socket::Socket;
use crate::worker::buffers::Buffer;

/// The fatal alert `unrecognized_name` (RFC 6066, section 3) as a plaintext record. rustls has no way
/// to ask for it: a resolver without a certificate makes it say `access_denied`.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Content types of records (RFC 8446, section 5.1).
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=23;

/// Reads that look for what a refused peer has sent, before its socket is closed.
const LEFTOVER_READS_MAX: usize = 4;

/// A handshake that failed.
#[derive(Debug)]
pub struct HandshakeError {
    /// Why.
    pub failure: HandshakeFailure,
    /// The socket.
    pub io: Socket,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeFailure {
    /// The peer speaks plain HTTP. Nothing was sent; what it sent is given back.
    PlainHttp(Vec<u8>),
    /// The peer speaks something else than TLS. Nothing was sent.
    NotTls,
    /// The peer closed the connection.
    PeerClosed,
    /// The socket failed.
    Io(io::Error),
    /// There is no version of TLS that both speak.
    NoSharedVersion,
    /// There is no cipher suite, key exchange group or signature scheme that both know.
    NoSharedCryptography(String),
    /// There is no protocol that both speak (ALPN).
    NoSharedProtocol,
    /// The client asked for a name without a certificate, and such are refused.
    UnknownName(Box<str>),
    /// The client has no certificate, and one is required.
    ClientCertificateMissing,
    /// The client's certificate does not verify.
    ClientCertificateInvalid(String),
    /// The server's certificate does not verify.
    ServerCertificateInvalid(String),
    /// The server's name is neither a DNS name nor an address.
    BadServerName,
    /// The peer refused, by this alert.
    AlertReceived(String),
    /// The peer broke the protocol.
    Protocol(String),
}

impl HandshakeFailure {
    /// One word for metrics and logs.
    pub const fn code(&self) -> &'static str {
        match self {
            HandshakeFailure::PlainHttp(_) => "tls_plain_http",
            HandshakeFailure::NotTls => "tls_not_tls",
            HandshakeFailure::PeerClosed => "tls_peer_closed",
            HandshakeFailure::Io(_) => "tls_io",
            HandshakeFailure::NoSharedVersion => "tls_no_shared_version",
            HandshakeFailure::NoSharedCryptography(_) => "tls_no_shared_cryptography",
            HandshakeFailure::NoSharedProtocol => "tls_no_shared_protocol",
            HandshakeFailure::UnknownName(_) => "tls_unknown_name",
            HandshakeFailure::ClientCertificateMissing => "tls_client_certificate_missing",
            HandshakeFailure::ClientCertificateInvalid(_) => "tls_client_certificate_invalid",
            HandshakeFailure::ServerCertificateInvalid(_) => "tls_server_certificate_invalid",
            HandshakeFailure::BadServerName => "tls_bad_server_name",
            HandshakeFailure::AlertReceived(_) => "tls_alert_received",
            HandshakeFailure::Protocol(_) => "tls_protocol",
        }
    }
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeFailure::PlainHttp(_) => f.write_str("plain HTTP where TLS is spoken"),
            HandshakeFailure::NotTls => f.write_str("the peer does not speak TLS"),
            HandshakeFailure::PeerClosed => f.write_str("the peer closed during the handshake"),
            HandshakeFailure::Io(error) => error.fmt(f),
            HandshakeFailure::NoSharedVersion => f.write_str("no shared version of TLS"),
            HandshakeFailure::NoSharedCryptography(detail) => {
                write!(f, "no shared cryptography: {detail}")
            }
            HandshakeFailure::NoSharedProtocol => f.write_str("no shared protocol (ALPN)"),
            HandshakeFailure::UnknownName(name) => write!(f, "no certificate for `{name}`"),
            HandshakeFailure::ClientCertificateMissing => f.write_str("no client certificate"),
            HandshakeFailure::ClientCertificateInvalid(detail) => {
                write!(f, "the client's certificate does not verify: {detail}")
            }
            HandshakeFailure::ServerCertificateInvalid(detail) => {
                write!(f, "the server's certificate does not verify: {detail}")
            }
            HandshakeFailure::BadServerName => {
                f.write_str("the server's name is neither a DNS name nor an address")
            }
            HandshakeFailure::AlertReceived(alert) => write!(f, "the peer refused: {alert}"),
            HandshakeFailure::Protocol(detail) => f.write_str(detail),
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl std::error::Error for HandshakeError {}

/// Accepts TLS from a client.
pub async fn accept(io: impl Into<Socket>, tls: &Arc<ServerTls>) -> Result<Stream, HandshakeError> {
    accept_after(io, tls, &[]).await
}

/// Accepts TLS from a client of which the first bytes were `received` already, as happens behind a PROXY
/// protocol header.
pub async fn accept_after(
    io: impl Into<Socket>,
    tls: &Arc<ServerTls>,
    received: &[u8],
) -> Result<Stream, HandshakeError> {
    let mut io = io.into();
    // A client that says nothing holds a socket and nothing else.
    let incoming = match first_bytes(&mut io, received).await {
        Ok(incoming) => incoming,
        Err(failure) => return Err(HandshakeError { failure, io }),
    };
    let connection = match UnbufferedServerConnection::new(tls.config_for(incoming.filled())) {
        Ok(connection) => connection,
        Err(error) => return Err(HandshakeError { failure: refused(&error), io }),
    };
    let mut stream = Stream::new(io, Session::server(connection), Some(incoming));
    let mut asked = Asked::Nothing;
    match drive(&mut stream, &mut asked).await.and_then(|()| client_of(&stream)) {
        Ok(client) => {
            let server_name = match asked {
                Asked::Name(name) | Asked::Refused(name) => Some(name),
                Asked::Nothing => None,
            };
            if server_name.is_some() || client.is_some() {
                stream.set_facts(Facts { server_name, client });
            }
            Ok(stream)
        }
        Err(failure) => Err(give_up(stream, failure)),
    }
}

/// Begins TLS with the server `host`, which is a name or an address.
pub async fn connect(
    io: impl Into<Socket>,
    tls: &ClientTls,
    host: &str,
) -> Result<Stream, HandshakeError> {
    let io = io.into();
    let Some(name) = tls.name_for(host) else {
        return Err(HandshakeError { failure: HandshakeFailure::BadServerName, io });
    };
    let connection = match UnbufferedClientConnection::new(Arc::clone(&tls.config), name) {
        Ok(connection) => connection,
        Err(error) => return Err(HandshakeError { failure: refused(&error), io }),
    };
    let mut stream = Stream::new(io, Session::client(connection), None);
    let outcome = drive(&mut stream, &mut Asked::Nothing).await.and_then(|()| {
        // A server may pass over ALPN. For HTTP/1 that is the same as agreeing to it; HTTP/2 over TLS
        // exists only by agreement (RFC 9113, section 3.2).
        match (tls.protocol(), stream.alpn()) {
            (UpstreamProtocol::Http2, Alpn::None | Alpn::Http1) => {
                Err(HandshakeFailure::NoSharedProtocol)
            }
            _ => Ok(()),
        }
    });
    match outcome {
        Ok(()) => Ok(stream),
        Err(failure) => Err(give_up(stream, failure)),
    }
}

/// What a client begins with, which has to look like TLS.
async fn first_bytes(io: &mut Socket, received: &[u8]) -> Result<Buffer, HandshakeFailure> {
    let incoming = poll_fn(|cx| {
        let mut incoming = Buffer::take();
        if incoming.append(received) == 0 {
            let mut spare = ReadBuf::new(incoming.spare_mut());
            ready!(Pin::new(&mut *io).poll_read(cx, &mut spare))?;
            let bytes = spare.filled().len();
            incoming.advance(bytes);
        }
        Poll::Ready(Ok(incoming))
    });
    let incoming = incoming.await.map_err(broken)?;
    if incoming.is_empty() {
        return Err(HandshakeFailure::PeerClosed);
    }
    not_tls(incoming.filled())?;
    Ok(incoming)
}

/// Takes a stream through its handshake. What remains to be sent at its end (a server's tickets, a
/// client's Finished) is left to go with the first data, or before the first wait.
async fn drive(stream: &mut Stream, asked: &mut Asked) -> Result<(), HandshakeFailure> {
    // A client's first bytes were looked at before there was a session.
    let mut unseen = !stream.session().is_server();
    loop {
        if !stream.has_room_for_record() {
            flush(stream).await?;
        }
        let event = stream.handshake_step();
        match Asked::take() {
            Asked::Nothing => {}
            now => *asked = now,
        }
        match event {
            Ok(Event::Progress | Event::Plaintext) => continue,
            Ok(Event::NeedsMore) => {}
            Err(failure) => return Err(classify(failure, stream.session(), asked)),
        }
        if !stream.session().common().is_handshaking() {
            return Ok(());
        }
        flush(stream).await?;
        match poll_fn(|cx| stream.poll_fill(cx)).await {
            Ok(0) => return Err(HandshakeFailure::PeerClosed),
            Ok(_) if std::mem::take(&mut unseen) => not_tls(stream.received())?,
            Ok(_) => {}
            Err(error) => return Err(broken(error)),
        }
    }
}

async fn flush(stream: &mut Stream) -> Result<(), HandshakeFailure> {
    poll_fn(|cx| stream.poll_flush(cx)).await.map_err(broken)
}

fn broken(error: io::Error) -> HandshakeFailure {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => HandshakeFailure::PeerClosed,
        _ => HandshakeFailure::Io(error),
    }
}

/// The first byte tells TLS from everything that people send to a TLS port by mistake: it is a record's
/// content type, and no text begins with those.
fn not_tls(received: &[u8]) -> Result<(), HandshakeFailure> {
    match received.first() {
        Some(first) if first.is_ascii_uppercase() => {
            Err(HandshakeFailure::PlainHttp(received.to_vec()))
        }
        Some(first) if !CONTENT_TYPES.contains(first) => Err(HandshakeFailure::NotTls),
        _ => Ok(()),
    }
}

/// The client by its certificate. One that verified when the session began may have ended since.
fn client_of(stream: &Stream) -> Result<Option<ClientCertificate>, HandshakeFailure> {
    let Some([own, ..]) = stream.session().common().peer_certificates() else {
        return Ok(None);
    };
    if validity_of(own) != Validity::Valid {
        let detail = "it has expired since the session began".to_owned();
        return Err(HandshakeFailure::ClientCertificateInvalid(detail));
    }
    ClientCertificate::read(own).map(Some).ok_or_else(|| {
        HandshakeFailure::ClientCertificateInvalid("its subject cannot be read".to_owned())
    })
}

/// Tells the peer, and reads what it has sent: closing a socket with unread bytes makes the kernel send
/// a reset, which can overtake the alert.
fn give_up(mut stream: Stream, failure: HandshakeFailure) -> HandshakeError {
    match &failure {
        HandshakeFailure::PlainHttp(_) | HandshakeFailure::NotTls => {
            return HandshakeError { failure, io: stream.into_transport() };
        }
        HandshakeFailure::UnknownName(_) => stream.end(Some(&UNRECOGNIZED_NAME)),
        _ => stream.end(None),
    }
    let io = stream.into_transport();
    let mut scratch = Buffer::take();
    for _ in 0..LEFTOVER_READS_MAX {
        if !matches!(io.try_read(scratch.spare_mut()), Ok(1..)) {
            break;
        }
    }
    HandshakeError { failure, io }
}

fn refused(error: &Error) -> HandshakeFailure {
    HandshakeFailure::Protocol(error.to_string())
}

fn classify(failure: Failure, session: &Session, asked: &mut Asked) -> HandshakeFailure {
    let error = match failure {
        Failure::Tls(error) => error,
        other => return HandshakeFailure::Protocol(other.to_string()),
    };
    match error {
        // The resolver gives no certificate only for a name that is refused.
        Error::General(detail) => match std::mem::take(asked) {
            Asked::Refused(name) => HandshakeFailure::UnknownName(name),
            Asked::Name(_) | Asked::Nothing => HandshakeFailure::Protocol(detail),
        },
        Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            // Every TLS 1.2 client sends it; TLS 1.1 does not have it.
            | PeerIncompatible::SignatureAlgorithmsExtensionRequired,
        ) => HandshakeFailure::NoSharedVersion,
        Error::PeerIncompatible(detail) => {
            HandshakeFailure::NoSharedCryptography(format!("{detail:?}"))
        }
        Error::NoApplicationProtocol => HandshakeFailure::NoSharedProtocol,
        Error::NoCertificatesPresented if session.is_server() => {
            HandshakeFailure::ClientCertificateMissing
        }
        Error::InvalidCertificate(detail) if session.is_server() => {
            HandshakeFailure::ClientCertificateInvalid(describe(&detail))
        }
        Error::InvalidCertificate(detail) => {
            HandshakeFailure::ServerCertificateInvalid(describe(&detail))
        }
        Error::AlertReceived(alert) => HandshakeFailure::AlertReceived(format!("{alert:?}")),
        other => HandshakeFailure::Protocol(other.to_string()),
    }
}

/// What is wrong with a certificate, for the person who has to put it right.
fn describe(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::UnknownIssuer => "its authority is not trusted".to_owned(),
        CertificateError::Revoked => "it is revoked".to_owned(),
        CertificateError::UnknownRevocationStatus => {
            "no revocation list of its authority is at hand".to_owned()
        }
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "the revocation list of its authority is past its nextUpdate".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            // webpki gives each name in the form `DnsName("a.example")`.
            let names = presented.iter().map(|name| name.split('"').nth(1).unwrap_or(name));
            format!("it is for other names: {}", names.collect::<Vec<_>>().join(", "))
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for no name".to_owned()
        }
        // webpki's `CaUsedAsEndEntity` comes as text only.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "it certifies itself; given as the authority, it would be believed".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_tls_is_known_by_its_first_byte() {
        fn check(received: &[u8], expected: Option<&str>) {
            let found = not_tls(received).err().map(|failure| failure.to_string());
            assert_eq!(found.as_deref(), expected, "{received:?}");
        }
        check(&[22, 3, 1, 0, 1], None);
        check(&[21, 3, 3], None);
        check(b"GET / HTTP/1.1\r\n", Some("plain HTTP where TLS is spoken"));
        check(b"HTTP/1.1 400 Bad Request\r\n", Some("plain HTTP where TLS is spoken"));
        check(b"\x80\x2e\x01\x03\x01", Some("the peer does not speak TLS"));
        check(b"\r\n", Some("the peer does not speak TLS"));
        check(&[], None);
    }
}
