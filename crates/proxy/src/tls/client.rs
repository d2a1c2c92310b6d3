//! TLS as an upstream group has it.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionMemoryCache, Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::Versions;
use super::certificate::{Certificate, CertificateSettings};
use super::clock::WallClock;
use super::error::{Expected, TlsError};
use super::files::Files;
use super::pem::Pem;
use super::pinned::{BelievesAnything, GivenAuthorities};
use super::provider::provider;
use super::server::root_store;
use crate::settings::UpstreamProtocol;

/// Server names whose sessions are kept for resumption.
const SESSIONS_MAX: usize = 256;

/// What a group's TLS is built from.
#[derive(Clone, Debug)]
pub struct ClientTlsSettings {
    /// How servers are verified.
    pub verify: Verify,
    /// The name to ask for (SNI) and to verify, if it is not that of the server's endpoint.
    pub server_name: Option<String>,
    /// What is shown to a server that asks for a certificate.
    pub certificate: Option<CertificateSettings>,
    /// What is spoken, for ALPN.
    pub protocol: UpstreamProtocol,
    /// Which versions of TLS are spoken.
    pub versions: Versions,
}

/// How servers are verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Against the authorities that the system trusts.
    #[default]
    SystemRoots,
    /// Against these authorities only; one may be the server's own self-signed certificate.
    Authorities(Pem),
    /// Not at all: whoever sits between the gate and the server reads and changes everything.
    DangerouslyNothing,
}

/// TLS of an upstream group. Shared by all workers.
pub struct ClientTls {
    pub(super) config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
    protocol: UpstreamProtocol,
    verifies: bool,
    certificate: Option<Certificate>,
    files: Files,
    /// What it was built from.
    settings: ClientTlsSettings,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("server_name", &self.server_name)
            .field("protocol", &self.protocol)
            .field("verifies", &self.verifies)
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Reads authorities and certificate and builds TLS from them.
    pub fn build(settings: &ClientTlsSettings) -> Result<ClientTls, TlsError> {
        let mut files = Files::default();
        let verifier = verifier(&settings.verify, &mut files)?;
        let server_name = settings.server_name.as_deref().map(parse_name).transpose()?;
        let certificate = match &settings.certificate {
            Some(certificate) => Some(Certificate::load(certificate, &mut files)?),
            None => None,
        };
        let refused = |error: rustls::Error| TlsError::Refused {
            place: "upstream TLS".to_owned(),
            reason: error.to_string(),
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(settings.versions.supported())
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &certificate {
            Some(certificate) => builder.with_client_cert_resolver(Arc::new(
                rustls::sign::SingleCertAndKey::from(Arc::clone(certificate.key())),
            )),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = match settings.protocol {
            UpstreamProtocol::Http1 => vec![b"http/1.1".to_vec()],
            UpstreamProtocol::Http2 => vec![b"h2".to_vec()],
        };
        config.resumption =
            Resumption::store(Arc::new(ClientSessionMemoryCache::new(SESSIONS_MAX)));
        config.time_provider = Arc::new(WallClock);
        Ok(ClientTls {
            config: Arc::new(config),
            server_name,
            protocol: settings.protocol,
            verifies: settings.verify != Verify::DangerouslyNothing,
            certificate,
            files,
            settings: settings.clone(),
        })
    }

    /// Whether servers are verified.
    pub fn verifies(&self) -> bool {
        self.verifies
    }

    /// What is shown to a server that asks for a certificate.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Builds it again, from the files as they are now.
    pub fn rebuild(&self) -> Result<ClientTls, TlsError> {
        ClientTls::build(&self.settings)
    }

    /// Whether a file it was built from is another now, so that it should be built again.
    pub fn changed(&self) -> bool {
        self.files.changed()
    }

    /// What is spoken with the servers.
    pub(super) fn protocol(&self) -> UpstreamProtocol {
        self.protocol
    }

    /// The name to ask for and to verify on a connection to the server `host`.
    pub(super) fn name_for(&self, host: &str) -> Option<ServerName<'static>> {
        match &self.server_name {
            Some(name) => Some(name.clone()),
            None => parse_name(host).ok(),
        }
    }
}

fn parse_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    ServerName::try_from(bare.to_owned())
        .map_err(|_| TlsError::BadServerName { name: name.to_owned() })
}

fn verifier(verify: &Verify, files: &mut Files) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    match verify {
        Verify::SystemRoots => Ok(webpki(system_roots()?, "the system's trusted authorities")?),
        Verify::Authorities(pem) => {
            let certificates = pem.certificates(Expected::Authorities, files)?;
            let place = pem.place();
            let webpki = webpki(root_store(&certificates, &place)?, &place)?;
            Ok(Arc::new(GivenAuthorities { webpki, certificates }))
        }
        Verify::DangerouslyNothing => Ok(Arc::new(BelievesAnything {
            schemes: provider().signature_verification_algorithms.supported_schemes(),
        })),
    }
}

fn webpki(roots: RootCertStore, place: &str) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| TlsError::Refused { place: place.to_owned(), reason: error.to_string() })
}

/// The system's authorities. A few that webpki cannot parse are left out, as everybody does; none at
/// all is an error.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let detail = loaded.errors.first().map_or_else(
            || "there are none (is the package `ca-certificates` installed?)".to_owned(),
            ToString::to_string,
        );
        return Err(TlsError::NoSystemRoots { detail });
    }
    Ok(roots)
}
