//! TLS for both sides: certificates, session tickets, handshakes and the encrypted stream.
//!
//! [`ServerTls`] and [`ClientTls`] are what a listener and an upstream group have of TLS: built once
//! from settings, immutable, shared by all workers and replaced whole at a reload. [`Stream`] is a
//! connection under one of them. Only [`TicketKeys`] outlives a reload, so that clients resume.
//!
//! Invariants:
//! - A stream holds a buffer only while bytes are on their way through it.
//! - TLS 1.2 and 1.3 only, forward secrecy only, no early data (RFC 8446, appendix E.5), no
//!   renegotiation.
//! - A client certificate is believed only under the authorities that verified it: tickets are bound
//!   to them.
//! - Nothing here prints key material, `Debug` included.
//!
//! Deadlines are left to the caller, and so is what to answer to a client that does not speak TLS.

mod certificate;
mod client;
mod clock;
mod error;
mod files;
mod handshake;
mod hello;
mod identity;
mod names;
mod pem;
mod pinned;
mod provider;
mod server;
mod session;
mod stream;
mod tickets;

pub use certificate::{Certificate, CertificateSettings, Validity};
pub use client::{ClientTls, ClientTlsSettings, Verify};
pub use error::{Expected, TlsError};
pub use handshake::{HandshakeError, HandshakeFailure, accept, accept_after, connect};
pub use identity::ClientCertificate;
pub use pem::Pem;
pub use server::{ClientAuth, ClientAuthorities, ServerTls, ServerTlsSettings, UnknownName};
pub use stream::{Alpn, Info, Resumption, Stream};
pub use tickets::TicketKeys;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

/// Which versions of TLS are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// 1.3, and 1.2 for peers that have nothing newer.
    #[default]
    Tls12AndTls13,
    /// 1.3 only.
    Tls13,
    /// 1.2 only, for peers that break on 1.3.
    Tls12,
}

impl Versions {
    fn supported(self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        match self {
            Versions::Tls12AndTls13 => &BOTH,
            Versions::Tls13 => &BOTH[..1],
            Versions::Tls12 => &BOTH[1..],
        }
    }
}
