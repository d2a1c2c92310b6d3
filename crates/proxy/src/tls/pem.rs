//! PEM texts: where they come from and what is in them.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use rustls::pki_types::pem::{Error as PemError, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::error::{Expected, TlsError};
use super::files::Files;

/// Bytes of a PEM file. Chains and bundles stay far below; a wrong path to something huge does not
/// fill the memory.
const PEM_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A PEM text, or the file that holds it.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// A file.
    File(PathBuf),
    /// A text from elsewhere (an environment variable, a test).
    Text {
        /// What it is called in messages.
        name: String,
        /// The text.
        bytes: Vec<u8>,
    },
}

/// The place, never the text: it may be a key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pem({})", self.place())
    }
}

impl Pem {
    /// What it is called in messages.
    pub fn place(&self) -> Cow<'_, str> {
        match self {
            Pem::File(path) => path.to_string_lossy(),
            Pem::Text { name, .. } => Cow::Borrowed(name),
        }
    }

    /// The certificates in it, at least one.
    pub(super) fn certificates(
        &self,
        expected: Expected,
        files: &mut Files,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.sections(expected, files)
    }

    /// The revocation lists in it, at least one.
    pub(super) fn revocation_lists(
        &self,
        files: &mut Files,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        self.sections(Expected::RevocationLists, files)
    }

    /// The first private key in it.
    pub(super) fn key(&self, files: &mut Files) -> Result<PrivateKeyDer<'static>, TlsError> {
        let bytes = self.read(Expected::Key, files)?;
        PrivateKeyDer::from_pem_slice(&bytes)
            .map_err(|error| self.unexpected(Expected::Key, describe(&error, &bytes)))
    }

    fn sections<T: PemObject>(
        &self,
        expected: Expected,
        files: &mut Files,
    ) -> Result<Vec<T>, TlsError> {
        let bytes = self.read(expected, files)?;
        let items: Result<Vec<T>, PemError> = T::pem_slice_iter(&bytes).collect();
        match items {
            Ok(items) if items.is_empty() => {
                Err(self.unexpected(expected, describe(&PemError::NoItemsFound, &bytes)))
            }
            Ok(items) => Ok(items),
            Err(error) => Err(self.unexpected(expected, describe(&error, &bytes))),
        }
    }

    fn read(&self, expected: Expected, files: &mut Files) -> Result<Cow<'_, [u8]>, TlsError> {
        let path = match self {
            Pem::Text { bytes, .. } => return Ok(Cow::Borrowed(bytes)),
            Pem::File(path) => path,
        };
        files.add(path);
        let unreadable =
            |error| TlsError::Unreadable { place: self.place().into_owned(), expected, error };
        let bytes = fs::metadata(path).map_err(unreadable)?.len();
        if bytes > PEM_BYTES_MAX {
            return Err(self.unexpected(expected, format!("it has {bytes} bytes, too many")));
        }
        fs::read(path).map(Cow::Owned).map_err(unreadable)
    }

    fn unexpected(&self, expected: Expected, found: String) -> TlsError {
        TlsError::Unexpected { place: self.place().into_owned(), expected, found }
    }
}

/// What is wrong with a PEM text, in terms of what the reader sees in the file.
fn describe(error: &PemError, bytes: &[u8]) -> String {
    match error {
        PemError::NoItemsFound => what_else(bytes),
        PemError::MissingSectionEnd { .. } => "a section has no END line".to_owned(),
        PemError::IllegalSectionStart { .. } => "a BEGIN line is malformed".to_owned(),
        PemError::Base64Decode(_) => "a section is not base64".to_owned(),
        other => other.to_string(),
    }
}

fn what_else(bytes: &[u8]) -> String {
    if memchr::memmem::find(bytes, b"ENCRYPTED").is_some() {
        return "it holds an encrypted private key, and there is nobody to ask for the passphrase"
            .to_owned();
    }
    let mut kinds: Vec<&str> = <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes)
        .filter_map(Result::ok)
        .map(|(kind, _)| match kind {
            SectionKind::Certificate => "certificate",
            SectionKind::PublicKey => "public key",
            SectionKind::RsaPrivateKey | SectionKind::PrivateKey | SectionKind::EcPrivateKey => {
                "private key"
            }
            SectionKind::Crl => "revocation list",
            SectionKind::Csr => "certificate signing request",
            _ => "section of another kind",
        })
        .collect();
    kinds.dedup();
    match kinds.as_slice() {
        [] if bytes.is_empty() => "it is empty".to_owned(),
        // A DER SEQUENCE, which is how certificates and keys begin without their PEM armour.
        [] if bytes.first() == Some(&0x30) => "it is DER, not PEM".to_owned(),
        [] => "it holds no PEM section".to_owned(),
        kinds => format!("it holds only: {}", kinds.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Pem {
        Pem::Text { name: "site.pem".into(), bytes: bytes.into() }
    }

    #[test]
    fn a_wrong_file_is_described() {
        fn check(bytes: &[u8], expected: &str) {
            let error = text(bytes).key(&mut Files::default()).unwrap_err().to_string();
            assert!(error.starts_with("site.pem: ") && error.contains(expected), "{error}");
        }
        check(b"", "it is empty");
        check(b"hello", "no PEM section");
        check(b"\x30\x82\x01\x00", "DER, not PEM");
        check(
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "passphrase",
        );
        check(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "only: certificate; expected an unencrypted private key",
        );
        check(b"-----BEGIN PRIVATE KEY-----\nAAAA\n", "no END line");
        check(b"-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n", "not base64");
    }

    #[test]
    fn a_missing_file_is_named_with_what_it_should_hold() {
        let pem = Pem::File("/nonexistent/chain.pem".into());
        let error = pem.certificates(Expected::Chain, &mut Files::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("/nonexistent/chain.pem cannot be read:"), "{message}");
        assert!(message.contains("BEGIN CERTIFICATE"), "{message}");
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", text(b"secret")), "Pem(site.pem)");
    }
}
