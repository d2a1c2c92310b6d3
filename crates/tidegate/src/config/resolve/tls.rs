//! Certificates: paths, building, and attributing what is wrong to the option that named the file.

use std::path::PathBuf;

use tidegate_proxy::tls::{
    Certificate, CertificateSettings, ClientTls, ClientTlsSettings, Pem, ServerTls,
    ServerTlsSettings, TlsError, Validity, Versions,
};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::TlsVersion;
use super::super::options::kind::reason;
use super::super::reader::{Located, Reading, Scope};
use super::super::source::Span;

/// A path of the configuration, relative to the file it stands in.
pub(super) fn path(path: &Located<String>, reading: &Reading<'_>) -> PathBuf {
    path.span.map_or_else(|| path.value.clone().into(), |span| reading.path(&path.value, span))
}

/// The versions of a list; reports an empty one.
pub(super) fn versions(
    list: &Located<Vec<Located<TlsVersion>>>,
    reading: &mut Reading<'_>,
) -> Option<Versions> {
    let has = |version| list.value.iter().any(|found| found.value == version);
    match (has(TlsVersion::Tls12), has(TlsVersion::Tls13)) {
        (true, true) => Some(Versions::Tls12AndTls13),
        (false, true) => Some(Versions::Tls13),
        (true, false) => Some(Versions::Tls12),
        (false, false) => {
            if let Some(span) = list.span {
                let message = "TLS needs at least one version";
                reading.report(
                    Diagnostic::new(&code::INVALID_VALUE, span, message)
                        .hint("write `versions = [\"1.2\", \"1.3\"]`"),
                );
            }
            None
        }
    }
}

/// A chain and its key, with the places that name them.
pub(super) struct Pair {
    settings: CertificateSettings,
    chain: Option<Span>,
    key: Option<Span>,
    key_path: PathBuf,
}

impl Pair {
    pub(super) fn new(
        chain: &Located<String>,
        key: &Located<String>,
        reading: &Reading<'_>,
    ) -> Pair {
        let key_path = path(key, reading);
        Pair {
            settings: CertificateSettings {
                chain: Pem::File(path(chain, reading)),
                key: Pem::File(key_path.clone()),
            },
            chain: chain.span,
            key: key.span,
            key_path,
        }
    }

    pub(super) fn settings(&self) -> CertificateSettings {
        self.settings.clone()
    }

    /// The option that an error about this pair is about.
    fn place(&self, error: &TlsError) -> Option<Span> {
        let key = self.key_path.to_string_lossy();
        match error {
            TlsError::Unreadable { expected, .. } | TlsError::Unexpected { expected, .. } => {
                match expected {
                    tidegate_proxy::tls::Expected::Key => self.key,
                    _ => self.chain,
                }
            }
            TlsError::KeyMismatch { .. } => self.key,
            TlsError::Refused { place, .. } if *place == key => self.key,
            _ => self.chain,
        }
    }
}

/// Builds a listener's TLS. If that fails, each certificate is tried alone, so that all bad ones are
/// reported.
pub(super) fn build_server(
    settings: &ServerTlsSettings,
    pairs: &[Pair],
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<ServerTls> {
    match ServerTls::build(settings) {
        Ok(tls) => {
            for (certificate, pair) in tls.certificates().iter().zip(pairs) {
                check_time(certificate, pair.chain.unwrap_or(scope.place()), reading);
            }
            Some(tls)
        }
        Err(error) => {
            if !check_pairs(settings, pairs, reading) {
                report(&error, client_ca(scope).unwrap_or(scope.place()), reading);
            }
            None
        }
    }
}

/// Tries each certificate alone; whether one was found to be bad.
pub(super) fn check_pairs(
    settings: &ServerTlsSettings,
    pairs: &[Pair],
    reading: &mut Reading<'_>,
) -> bool {
    let mut bad = false;
    for pair in pairs {
        let alone = ServerTlsSettings {
            certificates: vec![pair.settings()],
            client_auth: tidegate_proxy::tls::ClientAuth::Off,
            ..settings.clone()
        };
        if let Err(error) = ServerTls::build(&alone) {
            bad = true;
            if let Some(place) = pair.place(&error) {
                report(&error, place, reading);
            }
        }
    }
    bad
}

fn client_ca(scope: &Scope<'_>) -> Option<Span> {
    let key = super::super::options::listen_tls::CLIENT_CA.key;
    scope.node(key).map(|node| node.span)
}

/// Builds a group's TLS; `pair` is what it shows, `ca` where its authorities are named.
pub(super) fn build_client(
    settings: &ClientTlsSettings,
    pair: Option<&Pair>,
    ca: Option<Span>,
    place: Span,
    reading: &mut Reading<'_>,
) -> Option<ClientTls> {
    match ClientTls::build(settings) {
        Ok(tls) => {
            if let (Some(certificate), Some(pair)) = (tls.certificate(), pair) {
                check_time(certificate, pair.chain.unwrap_or(place), reading);
            }
            Some(tls)
        }
        Err(error) => {
            let about_ca = matches!(
                &error,
                TlsError::Unreadable { expected, .. } | TlsError::Unexpected { expected, .. }
                    if *expected == tidegate_proxy::tls::Expected::Authorities
            );
            let of_pair = pair.and_then(|pair| pair.place(&error)).filter(|_| !about_ca);
            let span = if about_ca { ca } else { of_pair };
            report(&error, span.unwrap_or(place), reading);
            None
        }
    }
}

fn report(error: &TlsError, place: Span, reading: &mut Reading<'_>) {
    let diagnostic = match error {
        TlsError::Unreadable { place: path, expected, error } => Diagnostic::new(
            &code::CERTIFICATE_FILE,
            place,
            format!("`{path}` cannot be read: {}", reason(error)),
        )
        .hint(match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "the user that runs the gate (or this check) must be able to read it".to_owned()
            }
            _ => format!("expected {expected}"),
        }),
        TlsError::Unexpected { place: path, expected, found } => Diagnostic::new(
            &code::CERTIFICATE_CONTENT,
            place,
            format!("`{path}` is not what it should be: {found}"),
        )
        .hint(format!("expected {expected}")),
        TlsError::KeyMismatch { chain, .. } => Diagnostic::new(
            &code::KEY_MISMATCH,
            place,
            format!("this key does not belong to the certificate in `{chain}`"),
        )
        .hint("a renewal made a new key, or two files were swapped"),
        TlsError::NoCertificate
        | TlsError::NoSystemRoots { .. }
        | TlsError::BadServerName { .. }
        | TlsError::Refused { .. } => {
            Diagnostic::new(&code::CERTIFICATE_CONTENT, place, error.to_string())
        }
    };
    reading.report(diagnostic);
}

fn check_time(certificate: &Certificate, place: Span, reading: &mut Reading<'_>) {
    let (message, hint) = match certificate.validity() {
        Validity::Valid => return,
        Validity::Expired => ("this certificate has expired", "renew it; clients refuse it now"),
        Validity::NotYet => (
            "this certificate is not valid yet",
            "clients refuse it until then; or is the clock wrong?",
        ),
    };
    reading.report(Diagnostic::new(&code::CERTIFICATE_TIME, place, message).hint(hint));
}
