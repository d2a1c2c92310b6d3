//! Which cryptography is spoken, and in which order.
//!
//! **Key exchange**: X25519MLKEM768, X25519, P-256, P-384. As a server, the first group of the
//! *client's* list that we know is taken: a client that knows the hybrid lists it first (and sends a
//! share of it), so its traffic cannot be recorded today and read by a quantum computer later. As a
//! client this is the order we list, and rustls sends shares of the first two: a server without the
//! hybrid answers with the X25519 share, without a second round trip. P-384 comes last: it costs ten
//! times as much as X25519 and is for peers that must have it.
//!
//! **Cipher suites**: only AEADs with forward secrecy, AES-128-GCM first: all are good enough, and it
//! costs least. A client that has no AES in hardware gets `ChaCha20` (see [`super::hello`]).

use std::sync::{Arc, OnceLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite as suite, kx_group};

/// The process's provider.
pub(super) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| {
        Arc::new(CryptoProvider {
            cipher_suites: vec![
                suite::TLS13_AES_128_GCM_SHA256,
                suite::TLS13_AES_256_GCM_SHA384,
                suite::TLS13_CHACHA20_POLY1305_SHA256,
                suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            ],
            kx_groups: vec![
                kx_group::X25519MLKEM768,
                kx_group::X25519,
                kx_group::SECP256R1,
                kx_group::SECP384R1,
            ],
            ..aws_lc_rs::default_provider()
        })
    }))
}
