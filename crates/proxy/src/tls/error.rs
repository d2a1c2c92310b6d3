//! What can be wrong with TLS settings.

use std::fmt;
use std::io;

/// What a PEM text was expected to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A certificate chain, the server's own first.
    Chain,
    /// An unencrypted private key.
    Key,
    /// Certificates of authorities.
    Authorities,
    /// Certificate revocation lists.
    RevocationLists,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Chain => {
                "a certificate chain in PEM (BEGIN CERTIFICATE), the server's own certificate first"
            }
            Expected::Key => {
                "an unencrypted private key in PEM (BEGIN PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY)"
            }
            Expected::Authorities => "certificates of authorities in PEM (BEGIN CERTIFICATE)",
            Expected::RevocationLists => "certificate revocation lists in PEM (BEGIN X509 CRL)",
        })
    }
}

/// Why TLS settings cannot be used. Every variant names the file (or the setting) at fault.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable {
        /// The file.
        place: String,
        /// What it should hold.
        expected: Expected,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// A file holds something else than it should.
    Unexpected {
        /// The file.
        place: String,
        /// What it should hold.
        expected: Expected,
        /// What is wrong with what it holds.
        found: String,
    },
    /// A private key belongs to another certificate.
    KeyMismatch {
        /// The chain's file.
        chain: String,
        /// The key's file.
        key: String,
    },
    /// A listener has no certificate at all.
    NoCertificate,
    /// The system has no trusted authorities, so nothing could be verified.
    NoSystemRoots {
        /// What went wrong on the way to them, if anything did.
        detail: String,
    },
    /// The name to verify a server against is neither a DNS name nor an address.
    BadServerName {
        /// The name.
        name: String,
    },
    /// rustls refuses the settings.
    Refused {
        /// What was being built.
        place: String,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Unreadable { place, expected, error } => {
                write!(f, "{place} cannot be read: {error}; expected {expected}")
            }
            TlsError::Unexpected { place, expected, found } => {
                write!(f, "{place}: {found}; expected {expected}")
            }
            TlsError::KeyMismatch { chain, key } => {
                write!(f, "the private key in {key} does not belong to the certificate in {chain}")
            }
            TlsError::NoCertificate => f.write_str("TLS needs at least one certificate"),
            TlsError::NoSystemRoots { detail } => {
                write!(f, "the system's trusted authorities cannot be loaded: {detail}")
            }
            TlsError::BadServerName { name } => {
                write!(f, "`{name}` is neither a DNS name nor an address")
            }
            TlsError::Refused { place, reason } => write!(f, "{place}: {reason}"),
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TlsError::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}
