//! Clients by their certificates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_proxy::tls::{
    ClientAuth, ClientAuthorities, HandshakeFailure, ServerTls, ServerTlsSettings,
};

use crate::certificates::{Authority, Identity, text};
use crate::gate::{Gate, settings};
use crate::peers::s_client;

/// A listener's authority, one for its clients, and one it does not know.
struct Cast {
    server: Identity,
    clients: Authority,
    strangers: Authority,
    dir: tempfile::TempDir,
}

impl Cast {
    fn new() -> Cast {
        Cast {
            server: Authority::new("CA").server(&["a.example"]),
            clients: Authority::new("Clients"),
            strangers: Authority::new("Strangers"),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn authorities(&self, revoked: Option<u64>) -> ClientAuthorities {
        ClientAuthorities {
            certificates: text(&self.clients.pem),
            revoked: revoked.map(|serial| text(&self.clients.revoke(serial))),
        }
    }

    fn settings(&self, client_auth: ClientAuth) -> ServerTlsSettings {
        ServerTlsSettings { client_auth, ..settings(&[&self.server]) }
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// Arguments that make `s_client` show a certificate.
fn showing(files: &(PathBuf, PathBuf)) -> Vec<&str> {
    vec!["-cert", files.0.to_str().unwrap(), "-key", files.1.to_str().unwrap()]
}

const VERSIONS: [&str; 2] = ["-tls1_3", "-tls1_2"];

#[test]
fn a_required_certificate_is_verified_and_told() {
    let cast = Cast::new();
    let gate = Gate::start(&cast.settings(ClientAuth::Required(cast.authorities(None))));
    let ann = cast.clients.client("Ann", 7).write(cast.dir(), "ann");
    let eve = cast.strangers.client("Ann", 7).write(cast.dir(), "eve");
    for version in VERSIONS {
        let said = s_client(gate.address, [showing(&ann), vec![version]].concat());
        said.has("subject=CN=Ann ").has("Acceptable client certificate CA names\nCN = Clients");
        let agreed = gate.outcome().unwrap();
        let fingerprint = agreed.split("fingerprint=").nth(1).unwrap();
        assert_eq!(fingerprint, fingerprint_by_openssl(&ann.0));

        s_client(gate.address, [version]).lacks("version=TLS").has("alert");
        let failure = gate.failure();
        assert!(matches!(failure, HandshakeFailure::ClientCertificateMissing), "{failure:?}");

        let said = s_client(gate.address, [showing(&eve), vec![version]].concat());
        said.lacks("version=TLS").has("alert unknown ca");
        let failure = gate.failure();
        assert!(matches!(failure, HandshakeFailure::ClientCertificateInvalid(_)), "{failure:?}");
    }
}

fn fingerprint_by_openssl(certificate: &Path) -> String {
    let output = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(certificate)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split('=').nth(1).unwrap().trim().replace(':', "").to_lowercase()
}

#[test]
fn an_optional_certificate_may_be_absent_but_not_wrong() {
    let cast = Cast::new();
    let gate = Gate::start(&cast.settings(ClientAuth::Optional(cast.authorities(None))));
    let ann = cast.clients.client("Ann", 7).write(cast.dir(), "ann");
    let eve = cast.strangers.client("Ann", 7).write(cast.dir(), "eve");
    for version in VERSIONS {
        s_client(gate.address, [showing(&ann), vec![version]].concat()).has("subject=CN=Ann ");
        s_client(gate.address, [version]).has("subject=- ");
        gate.outcome().unwrap();
        gate.outcome().unwrap();
        s_client(gate.address, [showing(&eve), vec![version]].concat()).has("alert unknown ca");
        assert!(matches!(gate.failure(), HandshakeFailure::ClientCertificateInvalid(_)));
    }
}

#[test]
fn a_client_that_is_not_asked_shows_nothing() {
    let cast = Cast::new();
    let gate = Gate::start(&cast.settings(ClientAuth::Off));
    let ann = cast.clients.client("Ann", 7).write(cast.dir(), "ann");
    s_client(gate.address, showing(&ann)).has("subject=- ");
}

#[test]
fn a_revoked_certificate_is_refused() {
    let cast = Cast::new();
    let gate = Gate::start(&cast.settings(ClientAuth::Required(cast.authorities(Some(7)))));
    let ann = cast.clients.client("Ann", 7).write(cast.dir(), "ann");
    let bob = cast.clients.client("Bob", 8).write(cast.dir(), "bob");
    s_client(gate.address, showing(&ann)).has("alert certificate revoked");
    assert!(matches!(gate.failure(), HandshakeFailure::ClientCertificateInvalid(_)));
    s_client(gate.address, showing(&bob)).has("subject=CN=Bob ");
}

#[test]
fn a_session_ends_with_what_its_certificate_was_verified_by() {
    let cast = Cast::new();
    let ann = cast.clients.client("Ann", 7).write(cast.dir(), "ann");
    let session = cast.dir().join("session");
    let session = session.to_str().unwrap();
    let resume = |gate: &Gate| {
        s_client(gate.address, [showing(&ann), vec!["-sess_in", session]].concat());
        gate.outcome()
    };

    let before = cast.settings(ClientAuth::Required(cast.authorities(None)));
    let gate = Gate::start(&before);
    s_client(gate.address, [showing(&ann), vec!["-sess_out", session]].concat());
    assert!(gate.outcome().unwrap().contains(" Full "));
    let resumed = resume(&gate).unwrap();
    assert!(resumed.contains(" Resumed ") && resumed.contains("subject=CN=Ann "), "{resumed}");

    // A list that revokes somebody else: all are verified anew.
    let after = ServerTlsSettings {
        client_auth: ClientAuth::Required(cast.authorities(Some(9))),
        ..before.clone()
    };
    assert!(resume(&Gate::start(&after)).unwrap().contains(" Full "));

    // A list that revokes her: her session does not outlive her certificate.
    let after = ServerTlsSettings {
        client_auth: ClientAuth::Required(cast.authorities(Some(7))),
        ..before
    };
    let outcome = resume(&Gate::start(&after));
    assert!(matches!(outcome, Err(HandshakeFailure::ClientCertificateInvalid(_))), "{outcome:?}");
}

#[test]
fn a_session_ends_with_its_certificate() {
    const VALID: Duration = Duration::from_secs(3);
    let cast = Cast::new();
    let gate = Gate::start(&cast.settings(ClientAuth::Required(cast.authorities(None))));
    let ann = cast.clients.client_for(VALID).write(cast.dir(), "ann");
    let sessions = VERSIONS.map(|version| cast.dir().join(format!("session{version}")));
    for (version, session) in VERSIONS.iter().zip(&sessions) {
        let begin = vec![version, "-sess_out", session.to_str().unwrap()];
        s_client(gate.address, [showing(&ann), begin].concat());
        assert!(gate.outcome().unwrap().contains(" Full "));
    }
    std::thread::sleep(VALID + Duration::from_secs(1));
    for (version, session) in VERSIONS.iter().zip(&sessions) {
        let resume = vec![version, "-sess_in", session.to_str().unwrap()];
        s_client(gate.address, [showing(&ann), resume].concat())
            .has("Reused, ")
            .lacks("HTTP/1.1 200");
        match gate.failure() {
            HandshakeFailure::ClientCertificateInvalid(detail) => {
                assert!(detail.contains("since the session began"), "{detail}");
            }
            other => panic!("{version}: {other:?}"),
        }
    }
}

#[test]
fn a_session_without_a_certificate_cannot_be_resumed_where_one_is_required() {
    let cast = Cast::new();
    for begun in [ClientAuth::Off, ClientAuth::Optional(cast.authorities(None))] {
        let open = cast.settings(begun);
        let session = cast.dir().join("session");
        let session = session.to_str().unwrap();
        s_client(Gate::start(&open).address, ["-sess_out", session]).has("subject=- ");
        let closed =
            ServerTlsSettings { client_auth: ClientAuth::Required(cast.authorities(None)), ..open };
        let gate = Gate::start(&closed);
        s_client(gate.address, ["-sess_in", session]).lacks("version=TLS");
        assert!(matches!(gate.failure(), HandshakeFailure::ClientCertificateMissing));
    }
}

#[test]
fn unusable_authorities_and_lists_are_errors() {
    let cast = Cast::new();
    let check = |certificates: &str, revoked: Option<&str>, expected: &str| {
        let authorities =
            ClientAuthorities { certificates: text(certificates), revoked: revoked.map(text) };
        let error =
            ServerTls::build(&cast.settings(ClientAuth::Required(authorities))).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check("", None, "it is empty; expected certificates of authorities");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    check(broken, None, "expected certificates of authorities");
    check(&cast.clients.pem, Some(&cast.clients.pem), "it holds only: certificate");
    let broken = "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";
    check(&cast.clients.pem, Some(broken), "test: ");
}
