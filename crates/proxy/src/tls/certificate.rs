//! A certificate with its chain and key, and what it says of itself.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use rustls::{Error as RustlsError, InconsistentKeys};
use tidegate_telemetry::clock;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::error::{Expected, TlsError};
use super::files::Files;
use super::pem::Pem;
use super::provider::provider;

/// Where a certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The chain: the server's own certificate first, then each that certifies the one before.
    pub chain: Pem,
    /// The private key; the same file may hold both.
    pub key: Pem,
}

/// Whether a certificate is valid at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It is.
    Valid,
    /// Its `notBefore` has not come.
    NotYet,
    /// Its `notAfter` is over.
    Expired,
}

/// A certificate ready to be served or presented.
pub struct Certificate {
    place: String,
    names: Vec<String>,
    not_before: i64,
    not_after: i64,
    key: Arc<CertifiedKey>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("place", &self.place)
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads a chain and its key and makes sure that they belong together.
    pub(super) fn load(
        settings: &CertificateSettings,
        files: &mut Files,
    ) -> Result<Certificate, TlsError> {
        let place = settings.chain.place().into_owned();
        let chain = settings.chain.certificates(Expected::Chain, files)?;
        let key = settings.key.key(files)?;
        let malformed =
            |found| TlsError::Unexpected { place: place.clone(), expected: Expected::Chain, found };
        let own = chain.first().ok_or(TlsError::NoCertificate)?;
        let facts = Facts::read(own).map_err(malformed)?;
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            RustlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::KeyMismatch {
                chain: place.clone(),
                key: settings.key.place().into_owned(),
            },
            RustlsError::InvalidCertificate(reason) => malformed(reason.to_string()),
            other => TlsError::Unexpected {
                place: settings.key.place().into_owned(),
                expected: Expected::Key,
                found: other.to_string(),
            },
        })?;
        let Facts { names, not_before, not_after } = facts;
        Ok(Certificate { place, names, not_before, not_after, key: Arc::new(key) })
    }

    /// The file of its chain.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The DNS names it is for, in lower case; one may begin with `*.`. From `subjectAltName` only: a
    /// common name names no host (RFC 9525, section 2).
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its `notBefore`, in seconds since 1970.
    pub fn not_before(&self) -> i64 {
        self.not_before
    }

    /// Its `notAfter`, in seconds since 1970.
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// Whether it is valid now.
    pub fn validity(&self) -> Validity {
        validity_at(self.not_before, self.not_after, unix_seconds())
    }

    pub(super) fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }
}

/// The wall time as certificates count it: before 1970 is negative.
pub(super) fn unix_seconds() -> i64 {
    i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX)
}

fn validity_at(not_before: i64, not_after: i64, now: i64) -> Validity {
    if now < not_before {
        Validity::NotYet
    } else if now > not_after {
        Validity::Expired
    } else {
        Validity::Valid
    }
}

/// Whether a certificate from a peer is valid now; one that cannot be read is not.
pub(super) fn validity_of(der: &CertificateDer<'_>) -> Validity {
    Facts::read(der).map_or(Validity::Expired, |facts| {
        validity_at(facts.not_before, facts.not_after, unix_seconds())
    })
}

/// What a certificate says of itself.
struct Facts {
    names: Vec<String>,
    not_before: i64,
    not_after: i64,
}

impl Facts {
    fn read(der: &CertificateDer<'_>) -> Result<Facts, String> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|error| format!("a bad certificate: {error}"))?;
        let alternatives = certificate
            .subject_alternative_name()
            .map_err(|error| format!("a bad subjectAltName: {error}"))?;
        let names = alternatives.map_or_else(Vec::new, |extension| {
            let names = extension.value.general_names.iter();
            names
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                })
                .collect()
        });
        let validity = certificate.validity();
        Ok(Facts {
            names,
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_has_both_ends_inside() {
        fn check(now: i64, expected: Validity) {
            assert_eq!(validity_at(10, 20, now), expected, "at {now}");
        }
        check(9, Validity::NotYet);
        check(10, Validity::Valid);
        check(20, Validity::Valid);
        check(21, Validity::Expired);
    }
}
