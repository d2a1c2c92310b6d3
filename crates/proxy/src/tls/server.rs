//! TLS as a listener has it.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::Versions;
use super::certificate::{Certificate, CertificateSettings};
use super::clock::WallClock;
use super::error::{Expected, TlsError};
use super::files::Files;
use super::hello::prefers_chacha;
use super::names::Names;
use super::pem::Pem;
use super::provider::provider;
use super::tickets::{Scope, ScopedTickets, TicketKeys};
use crate::settings::Protocols;

/// Tickets sent after a full or resumed TLS 1.3 handshake. Each is for one use, and browsers open
/// several connections at once.
const TICKETS_SENT: usize = 2;

/// What a listener's TLS is built from.
#[derive(Clone, Debug)]
pub struct ServerTlsSettings {
    /// Its certificates; the first is shown to clients that send no name.
    pub certificates: Vec<CertificateSettings>,
    /// What is offered by ALPN (RFC 7301).
    pub protocols: Protocols,
    /// Which versions of TLS are spoken.
    pub versions: Versions,
    /// What a client gets that asks for a name without a certificate.
    pub unknown_name: UnknownName,
    /// Whether clients are asked for certificates.
    pub client_auth: ClientAuth,
    /// The process's ticket keys.
    pub tickets: Arc<TicketKeys>,
}

/// What a client gets that asks for a name without a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownName {
    /// The default certificate, which it will not believe, but which tells a person what is wrong.
    #[default]
    Default,
    /// The alert `unrecognized_name` (RFC 6066, section 3). Clients without a name are still served.
    Refuse,
}

/// Whether clients are asked for certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not.
    #[default]
    Off,
    /// They are; those without are served too, those with one that does not verify are not.
    Optional(ClientAuthorities),
    /// They are; only those with one that verifies are served.
    Required(ClientAuthorities),
}

/// Who certifies clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// Their certificates.
    pub certificates: Pem,
    /// What they revoked. With this, every certificate of a client's chain must have a current list:
    /// one that is missing or past its `nextUpdate` refuses the client.
    pub revoked: Option<Pem>,
}

/// TLS of a listener, built from its certificates. Shared by all workers.
pub struct ServerTls {
    /// With our order of cipher suites.
    config: Arc<ServerConfig>,
    /// The same, with the client's order.
    clients_order: Arc<ServerConfig>,
    names: Arc<Names>,
    certificates: Vec<Certificate>,
    files: Files,
    /// What it was built from.
    settings: ServerTlsSettings,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Reads the certificates and builds TLS from them.
    pub fn build(settings: &ServerTlsSettings) -> Result<ServerTls, TlsError> {
        let mut files = Files::default();
        let certificates: Vec<Certificate> = settings
            .certificates
            .iter()
            .map(|certificate| Certificate::load(certificate, &mut files))
            .collect::<Result<_, _>>()?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let names = Arc::new(Names::new(&certificates, settings.unknown_name));
        let (verifier, scope) = client_verifier(&settings.client_auth, &mut files)?;

        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(settings.versions.supported())
            .map_err(|error| TlsError::Refused {
                place: "TLS versions".to_owned(),
                reason: error.to_string(),
            })?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&names) as _);
        config.alpn_protocols = alpn(settings.protocols);
        // All clients of the last twenty years take tickets; a table of sessions would be a lock and
        // memory for each of them.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Arc::new(ScopedTickets { keys: Arc::clone(&settings.tickets), scope });
        config.send_tls13_tickets = TICKETS_SENT;
        config.time_provider = Arc::new(WallClock);
        config.ignore_client_order = false;
        let clients_order = Arc::new(config.clone());
        config.ignore_client_order = true;
        Ok(ServerTls {
            config: Arc::new(config),
            clients_order,
            names,
            certificates,
            files,
            settings: settings.clone(),
        })
    }

    /// The configuration for a client whose hello begins so.
    pub(super) fn config_for(&self, received: &[u8]) -> Arc<ServerConfig> {
        Arc::clone(if prefers_chacha(received) { &self.clients_order } else { &self.config })
    }

    /// Its certificates, the default first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Every name it has a certificate for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.certificates.iter().flat_map(Certificate::names).map(String::as_str)
    }

    /// The earliest end of a certificate, in seconds since 1970.
    pub fn not_after(&self) -> i64 {
        self.certificates.iter().map(Certificate::not_after).min().unwrap_or(i64::MAX)
    }

    /// Whether one of its certificates is for this host, in lower case; `*.example.org` asks for a
    /// wildcard.
    pub fn covers(&self, host: &str) -> bool {
        self.names.covers(host)
    }

    /// Builds it again, from the files as they are now.
    pub fn rebuild(&self) -> Result<ServerTls, TlsError> {
        ServerTls::build(&self.settings)
    }

    /// Whether a file it was built from is another now, so that it should be built again.
    pub fn changed(&self) -> bool {
        self.files.changed()
    }
}

/// What is offered by ALPN, the preferred first. `http/1.0` is what curl asks for by `--http1.0`: with
/// a list that has nothing of the client's, the handshake fails (RFC 7301, section 3.2).
fn alpn(protocols: Protocols) -> Vec<Vec<u8>> {
    let names: &[&[u8]] = match protocols {
        Protocols::Http1 => &[b"http/1.1", b"http/1.0"],
        Protocols::Http2 => &[b"h2"],
        Protocols::Both => &[b"h2", b"http/1.1", b"http/1.0"],
    };
    names.iter().map(|name| name.to_vec()).collect()
}

/// The verifier of client certificates, and the scope that binds tickets to it: a change of the
/// authorities or of what they revoked ends resumption, and every client is verified anew.
fn client_verifier(
    auth: &ClientAuth,
    files: &mut Files,
) -> Result<(Arc<dyn ClientCertVerifier>, Scope), TlsError> {
    let authorities = match auth {
        ClientAuth::Off => return Ok((WebPkiClientVerifier::no_client_auth(), Scope::default())),
        ClientAuth::Optional(authorities) | ClientAuth::Required(authorities) => authorities,
    };
    let certificates = authorities.certificates.certificates(Expected::Authorities, files)?;
    let revoked = match &authorities.revoked {
        Some(pem) => pem.revocation_lists(files)?,
        None => Vec::new(),
    };
    let place = authorities.certificates.place();
    let scope = scope(matches!(auth, ClientAuth::Required(_)), &certificates, &revoked);
    let roots = root_store(&certificates, &place)?;
    let mut builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).with_crls(revoked);
    if authorities.revoked.is_some() {
        builder = builder.enforce_revocation_expiration();
    }
    if matches!(auth, ClientAuth::Optional(_)) {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build().map_err(|error| TlsError::Refused {
        place: authorities.revoked.as_ref().map_or(place, Pem::place).into_owned(),
        reason: error.to_string(),
    })?;
    Ok((verifier, scope))
}

/// The authorities of a PEM text. One that cannot be used is an error: it was put there to be used.
pub(super) fn root_store(
    certificates: &[CertificateDer<'static>],
    place: &str,
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| TlsError::Unexpected {
            place: place.to_owned(),
            expected: Expected::Authorities,
            found: error.to_string(),
        })?;
    }
    Ok(roots)
}

fn scope(
    required: bool,
    certificates: &[CertificateDer<'_>],
    revoked: &[CertificateRevocationListDer<'_>],
) -> Scope {
    let mut context = Context::new(&SHA256);
    context.update(if required { b"required" } else { b"optional" });
    let parts = certificates.iter().map(AsRef::as_ref).chain(revoked.iter().map(AsRef::as_ref));
    for part in parts {
        context.update(&part.len().to_be_bytes());
        context.update(part);
    }
    let mut scope = Scope::default();
    scope.copy_from_slice(context.finish().as_ref());
    scope
}
