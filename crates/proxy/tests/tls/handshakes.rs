//! What is agreed: versions, names, protocols, groups.

use std::net::SocketAddr;

use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use tidegate_proxy::settings::Protocols;
use tidegate_proxy::settings::UpstreamProtocol;
use tidegate_proxy::tls::{
    ClientTls, ClientTlsSettings, HandshakeFailure, ServerTls, TlsError, UnknownName, Validity,
    Verify, Versions, connect,
};
use tokio::net::TcpStream;

use crate::certificates::{Authority, Identity, text, write};
use crate::gate::{Gate, describe, run, settings};
use crate::peers::{curl, s_client};

#[test]
fn both_versions_are_spoken_and_each_can_be_the_only_one() {
    let identity = Authority::new("CA").server(&["a.example"]);
    let check = |versions: Versions, client: &str, expected: Option<&str>| {
        let mut settings = settings(&[&identity]);
        settings.versions = versions;
        let gate = Gate::start(&settings);
        let said = s_client(gate.address, [client]);
        match (gate.outcome(), expected) {
            (Ok(agreed), Some(version)) => {
                assert!(agreed.starts_with(&format!("version={version} ")), "{agreed}");
                said.has(&format!("version={version} "));
            }
            (Err(HandshakeFailure::NoSharedVersion), None) => {
                said.has("protocol version");
            }
            (outcome, _) => panic!("{versions:?}, {client}: {outcome:?}"),
        }
    };
    check(Versions::Tls12AndTls13, "-tls1_3", Some("TLSv1.3"));
    check(Versions::Tls12AndTls13, "-tls1_2", Some("TLSv1.2"));
    check(Versions::Tls13, "-tls1_3", Some("TLSv1.3"));
    check(Versions::Tls13, "-tls1_2", None);
    check(Versions::Tls12, "-tls1_2", Some("TLSv1.2"));
    check(Versions::Tls12, "-tls1_3", None);
}

#[test]
fn a_client_is_shown_the_certificate_for_the_name_it_asks_for() {
    let authority = Authority::new("CA");
    let default = authority.server(&["default.example"]);
    let exact = authority.server(&["www.example.org", "example.org"]);
    let wildcard = authority.server(&["*.example.org"]);
    let deeper = authority.server(&["*.b.example.org"]);
    let all = [&default, &exact, &wildcard, &deeper];
    let gate = Gate::start(&settings(&all));
    let check = |asked: Option<&str>, expected: &Identity| {
        let arguments = match asked {
            Some(name) => vec!["-servername", name],
            None => vec!["-noservername"],
        };
        s_client(gate.address, arguments).has(body_of(&expected.chain));
        let agreed = gate.outcome().unwrap();
        let name = asked.map_or("-".to_owned(), str::to_ascii_lowercase);
        assert!(agreed.contains(&format!("name={name} ")), "{agreed}");
    };
    check(Some("www.example.org"), &exact);
    check(Some("EXAMPLE.org"), &exact);
    check(Some("other.example.org"), &wildcard);
    check(Some("a.b.example.org"), &deeper);
    // A wildcard is for one label, not for more and not for none.
    check(Some("a.c.example.org"), &default);
    check(Some("b.example.org"), &wildcard);
    check(Some("unknown.example"), &default);
    check(None, &default);
}

/// The base64 of a PEM text's first line, which identifies it in what OpenSSL prints.
fn body_of(pem: &str) -> &str {
    pem.lines().nth(3).unwrap()
}

#[test]
fn an_unknown_name_is_refused_where_that_is_set() {
    let identity = Authority::new("CA").server(&["a.example"]);
    let mut settings = settings(&[&identity]);
    settings.unknown_name = UnknownName::Refuse;
    let gate = Gate::start(&settings);

    s_client(gate.address, ["-servername", "b.example"]).has("unrecognized name");
    match gate.failure() {
        HandshakeFailure::UnknownName(name) => assert_eq!(&*name, "b.example"),
        other => panic!("{other:?}"),
    }
    s_client(gate.address, ["-servername", "a.example"]).has("name=a.example ");
    s_client(gate.address, ["-noservername"]).has("name=- ");
}

#[test]
fn a_name_with_two_keys_serves_the_one_the_client_can_verify() {
    let authority = Authority::new("CA");
    let p256 = authority.server(&["a.example"]);
    let ed25519 = authority.server_ed25519(&["a.example"]);
    let gate = Gate::start(&settings(&[&ed25519, &p256]));
    s_client(gate.address, ["-servername", "a.example", "-sigalgs", "ecdsa_secp256r1_sha256"])
        .has(body_of(&p256.chain));
    s_client(gate.address, ["-servername", "a.example", "-sigalgs", "ed25519"])
        .has(body_of(&ed25519.chain));
    gate.outcome().unwrap();
    gate.outcome().unwrap();

    s_client(gate.address, ["-servername", "a.example", "-sigalgs", "rsa_pss_rsae_sha256"])
        .has("handshake failure");
    assert!(matches!(gate.failure(), HandshakeFailure::NoSharedCryptography(_)));
}

#[test]
fn alpn_agrees_on_what_the_listener_speaks() {
    let identity = Authority::new("CA").server(&["a.example"]);
    let check = |protocols: Protocols, offered: &str, expected: Option<&str>| {
        let mut settings = settings(&[&identity]);
        settings.protocols = protocols;
        let gate = Gate::start(&settings);
        let arguments: Vec<&str> = if offered.is_empty() { vec![] } else { vec!["-alpn", offered] };
        let said = s_client(gate.address, arguments);
        match (gate.outcome(), expected) {
            (Ok(agreed), Some(alpn)) => {
                assert!(agreed.contains(&format!("alpn={alpn} ")), "{agreed}");
            }
            (Err(HandshakeFailure::NoSharedProtocol), None) => {
                said.has("no application protocol");
            }
            (outcome, _) => panic!("{protocols:?}, {offered}: {outcome:?}"),
        }
    };
    check(Protocols::Both, "http/1.1,h2", Some("Http2"));
    check(Protocols::Both, "http/1.1", Some("Http1"));
    check(Protocols::Both, "http/1.0", Some("Http1"));
    check(Protocols::Both, "", Some("None"));
    check(Protocols::Both, "spdy/3", None);
    check(Protocols::Http1, "h2,http/1.1", Some("Http1"));
    check(Protocols::Http1, "h2", None);
    check(Protocols::Http2, "h2", Some("Http2"));
    check(Protocols::Http2, "http/1.1", None);
}

#[test]
fn curl_is_served_and_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("CA");
    let trusted = write(dir.path(), "ca.pem", &authority.pem);
    let gate = Gate::start(&settings(&[&authority.server(&["a.example", "*.b.example"])]));
    curl(gate.address, "a.example", &trusted, &["--http1.1"]).has("alpn=Http1").has("TLSv1.3");
    curl(gate.address, "x.b.example", &trusted, &["--http1.0"]).has("name=x.b.example");
    curl(gate.address, "a.example", &trusted, &["--http1.1", "--tls-max", "1.2"]).has("TLSv1.2");
    curl(gate.address, "c.example", &trusted, &["--http1.1"]).has("SSL").lacks("version=");
}

#[test]
fn old_versions_and_weak_ciphers_are_refused() {
    let gate = Gate::start(&settings(&[&Authority::new("CA").server(&["a.example"])]));
    s_client(gate.address, ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]).lacks("version=");
    let failure = gate.failure();
    assert!(matches!(failure, HandshakeFailure::NoSharedVersion), "{failure:?}");
    // Key exchange without forward secrecy, and CBC.
    for cipher in ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA"] {
        s_client(gate.address, ["-tls1_2", "-cipher", cipher]).has("handshake failure");
        assert!(matches!(gate.failure(), HandshakeFailure::NoSharedCryptography(_)), "{cipher}");
    }
}

#[test]
fn aes_128_is_chosen_unless_a_client_has_no_aes_in_hardware() {
    let gate = Gate::start(&settings(&[&Authority::new("CA").server(&["a.example"])]));
    let check = |arguments: &[&str], expected: &str| {
        s_client(gate.address, arguments).has(&format!("cipher={expected} "));
    };
    // OpenSSL's own order: AES-256, ChaCha20, AES-128.
    check(&["-tls1_3"], "TLS_AES_128_GCM_SHA256");
    check(&["-tls1_2"], "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    let chacha_first = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
    check(&["-tls1_3", "-ciphersuites", chacha_first], "TLS_CHACHA20_POLY1305_SHA256");
    let chacha_first = "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256";
    check(&["-tls1_2", "-cipher", chacha_first], "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    check(&["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"], "TLS_AES_256_GCM_SHA384");
}

#[test]
fn the_hybrid_group_is_taken_from_clients_that_offer_it() {
    let authority = Authority::new("CA");
    let gate = Gate::start(&settings(&[&authority.server(&["a.example"])]));
    // The gate's own client offers it first, with a share.
    let client = ClientTls::build(&ClientTlsSettings {
        verify: Verify::Authorities(text(&authority.pem)),
        server_name: None,
        certificate: None,
        protocol: UpstreamProtocol::Http1,
        versions: Versions::Tls12AndTls13,
    })
    .unwrap();
    let agreed = run(async {
        let socket = TcpStream::connect(gate.address).await.unwrap();
        describe(&connect(socket, &client, "a.example").await.unwrap())
    });
    assert!(agreed.contains("group=X25519MLKEM768 "), "{agreed}");

    let check = |groups: Vec<&'static dyn SupportedKxGroup>, expected: &str| {
        let agreed = with_groups(gate.address, &authority, groups);
        assert_eq!(agreed, expected);
    };
    check(vec![kx_group::X25519MLKEM768, kx_group::X25519], "X25519MLKEM768");
    check(vec![kx_group::X25519], "X25519");
    check(vec![kx_group::SECP384R1], "secp384r1");
    // OpenSSL 3.0 does not know the hybrid, and sends a share of X25519 only.
    s_client(gate.address, ["-groups", "X25519:P-256"]).has("group=X25519 ");
    // No share of a group we know: a second hello (HelloRetryRequest).
    s_client(gate.address, ["-groups", "P-521:P-256"]).has("group=secp256r1 ");
}

/// The group that rustls' buffered client agrees on, offering these.
fn with_groups(
    address: SocketAddr,
    authority: &Authority,
    kx_groups: Vec<&'static dyn SupportedKxGroup>,
) -> String {
    let provider = CryptoProvider { kx_groups, ..default_provider() };
    let mut connection = crate::traffic::buffered_client(authority, provider, "a.example");
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).unwrap();
    }
    let group = connection.negotiated_key_exchange_group().unwrap();
    group.name().as_str().unwrap().to_owned()
}

#[test]
fn what_a_listener_serves_can_be_asked() {
    let authority = Authority::new("CA");
    let valid = authority.server(&["a.example", "*.B.example"]);
    let expired = authority.expired(&["old.example"]);
    let tls = ServerTls::build(&settings(&[&valid, &expired])).unwrap();

    assert_eq!(tls.names().collect::<Vec<_>>(), ["a.example", "*.b.example", "old.example"]);
    assert_eq!(tls.not_after(), 1_009_843_200, "2002-01-01");
    assert_eq!(tls.certificates()[0].validity(), Validity::Valid);
    assert_eq!(tls.certificates()[1].validity(), Validity::Expired);
    for (host, covered) in [
        ("a.example", true),
        ("x.b.example", true),
        ("*.b.example", true),
        ("b.example", false),
        ("x.y.b.example", false),
        ("*.a.example", false),
        ("*.example", false),
    ] {
        assert_eq!(tls.covers(host), covered, "{host}");
    }
}

#[test]
fn a_renewed_certificate_is_noticed_and_served_after_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("CA");
    let (chain, key) = authority.server(&["a.example"]).write(dir.path(), "site");
    let mut settings = settings(&[]);
    settings.certificates = vec![tidegate_proxy::tls::CertificateSettings {
        chain: tidegate_proxy::tls::Pem::File(chain),
        key: tidegate_proxy::tls::Pem::File(key),
    }];
    let tls = ServerTls::build(&settings).unwrap();
    assert!(!tls.changed());

    authority.server(&["a.example", "b.example"]).write(dir.path(), "site");
    assert!(tls.changed());
    let rebuilt = ServerTls::build(&settings).unwrap();
    assert!(rebuilt.covers("b.example") && !rebuilt.changed());
}

#[test]
fn a_key_of_another_certificate_is_an_error() {
    let authority = Authority::new("CA");
    let mixed = Identity {
        chain: authority.server(&["a.example"]).chain,
        key: authority.server(&["a.example"]).key,
    };
    let error = ServerTls::build(&settings(&[&mixed])).unwrap_err();
    assert!(matches!(error, TlsError::KeyMismatch { .. }), "{error}");
    assert!(matches!(ServerTls::build(&settings(&[])).unwrap_err(), TlsError::NoCertificate));
}
