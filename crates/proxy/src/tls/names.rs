//! Which certificate a client is shown: look-up by SNI (RFC 6066, section 3).
//!
//! Two hash maps: one of whole names, one of what follows a wildcard. A wildcard stands for exactly
//! one label, the leftmost (RFC 9525, section 6.3), so a name is looked up at most twice, with any
//! number of certificates. A name may have certificates of several key types; the first listed that
//! the client can verify is shown.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::server::UnknownName;

type Keys = Vec<Arc<CertifiedKey>>;

thread_local! {
    /// What the last hello on this thread asked for. rustls calls the resolver from within
    /// `process_tls_records` and tells nobody the name afterwards (its unbuffered connections have no
    /// `server_name`), so it is kept here until that call returns.
    static ASKED: Cell<Asked> = const { Cell::new(Asked::Nothing) };
}

/// What a client hello asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Asked {
    /// There was no hello, or no name in it.
    #[default]
    Nothing,
    /// A name, for which a certificate was found (perhaps the default one).
    Name(Box<str>),
    /// A name that is refused.
    Refused(Box<str>),
}

impl Asked {
    /// Takes what the last hello on this thread asked for.
    pub(super) fn take() -> Asked {
        ASKED.take()
    }
}

/// Certificates by name.
#[derive(Debug)]
pub(super) struct Names {
    exact: HashMap<Box<str>, Keys, foldhash::fast::RandomState>,
    /// Keyed by what follows the `*.`.
    wildcard: HashMap<Box<str>, Keys, foldhash::fast::RandomState>,
    /// For clients that send no name, and for unknown names unless they are refused.
    default: Keys,
    unknown: UnknownName,
}

impl Names {
    /// A table of `certificates`; the first is the default, with those of the same names beside it.
    pub(super) fn new(certificates: &[Certificate], unknown: UnknownName) -> Names {
        let mut names = Names {
            exact: HashMap::default(),
            wildcard: HashMap::default(),
            default: Vec::new(),
            unknown,
        };
        for certificate in certificates {
            let same = certificates.first().is_some_and(|first| {
                std::ptr::eq(first, certificate)
                    || (!first.names().is_empty() && first.names() == certificate.names())
            });
            if same {
                names.default.push(Arc::clone(certificate.key()));
            }
            for name in certificate.names() {
                let keys = match name.strip_prefix("*.") {
                    Some(parent) => names.wildcard.entry(parent.into()).or_default(),
                    None => names.exact.entry(name.as_str().into()).or_default(),
                };
                keys.push(Arc::clone(certificate.key()));
            }
        }
        names
    }

    /// Whether a certificate is for `name`, which may itself be a wildcard, in lower case.
    pub(super) fn covers(&self, name: &str) -> bool {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcard.contains_key(parent),
            None => self.find(name).is_some(),
        }
    }

    fn find(&self, name: &str) -> Option<&Keys> {
        self.exact.get(name).or_else(|| {
            let (label, parent) = name.split_once('.')?;
            if label.is_empty() { None } else { self.wildcard.get(parent) }
        })
    }

    /// The certificates for what was asked, and what to remember of it.
    fn choose(&self, name: Option<&str>) -> (Asked, Option<&Keys>) {
        let Some(name) = name else {
            return (Asked::Nothing, Some(&self.default));
        };
        // A name may be sent with the root's dot; certificates never have it.
        let plain = name.strip_suffix('.').unwrap_or(name);
        match (self.find(plain), self.unknown) {
            (Some(keys), _) => (Asked::Name(plain.into()), Some(keys)),
            (None, UnknownName::Default) => (Asked::Name(plain.into()), Some(&self.default)),
            (None, UnknownName::Refuse) => (Asked::Refused(plain.into()), None),
        }
    }
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let (asked, keys) = self.choose(hello.server_name());
        ASKED.set(asked);
        keys.and_then(|keys| verifiable(keys, hello.signature_schemes()))
    }
}

/// The first whose signatures the client can verify. If it can verify none, the first: rustls then
/// refuses with the alert for that, `handshake_failure`.
fn verifiable(keys: &Keys, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
    keys.iter().find(|key| key.key.choose_scheme(schemes).is_some()).or(keys.first()).cloned()
}
