//! The gate as a client of servers that are not its own.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tidegate_proxy::settings::UpstreamProtocol;
use tidegate_proxy::tls::{
    ClientAuth, ClientAuthorities, ClientTls, ClientTlsSettings, HandshakeFailure, Resumption,
    Stream, TlsError, Verify, Versions, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::{Authority, Identity, text, write};
use crate::gate::{Gate, run, settings};
use crate::peers::Server;

fn believing(verify: Verify) -> ClientTlsSettings {
    ClientTlsSettings {
        verify,
        server_name: None,
        certificate: None,
        protocol: UpstreamProtocol::Http1,
        versions: Versions::Tls12AndTls13,
    }
}

fn trusting(authority: &Authority) -> ClientTlsSettings {
    believing(Verify::Authorities(text(&authority.pem)))
}

/// A server of OpenSSL's with this certificate, which answers any request.
fn server(identity: &Identity, arguments: &[&str]) -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (chain, key) = identity.write(dir.path(), "server");
    let base = ["-www", "-cert", chain.to_str().unwrap(), "-key", key.to_str().unwrap()];
    (Server::start(base.iter().chain(arguments)), dir)
}

async fn reach(
    address: SocketAddr,
    tls: &ClientTls,
    host: &str,
) -> Result<Stream, HandshakeFailure> {
    let socket = TcpStream::connect(address).await.unwrap();
    connect(socket, tls, host).await.map_err(|error| error.failure)
}

/// Sends a request and reads the answer to its end.
async fn ask(stream: &mut Stream) -> std::io::Result<String> {
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[test]
fn a_verified_server_is_asked_and_its_answer_read_to_the_declared_end() {
    let authority = Authority::new("CA");
    let identity = authority.server(&["a.example"]);
    for (version, argument) in [("TLSv1.3", "-tls1_3"), ("TLSv1.2", "-tls1_2")] {
        let (server, _dir) = server(&identity, &[argument]);
        let tls = ClientTls::build(&trusting(&authority)).unwrap();
        assert!(tls.verifies());
        run(async {
            let mut stream = reach(server.address, &tls, "a.example").await.unwrap();
            assert_eq!(stream.info().version, version);
            let answer = ask(&mut stream).await.unwrap();
            assert!(answer.starts_with("HTTP/1.0 200 ok"), "{answer}");
            assert!(answer.contains("s_server"), "{answer}");
        });
    }
}

#[test]
fn a_server_that_does_not_verify_is_not_asked() {
    let authority = Authority::new("CA");
    let check = |identity: &Identity, settings: &ClientTlsSettings, expected: &str| {
        let (server, _dir) = server(identity, &[]);
        let tls = ClientTls::build(settings).unwrap();
        let failure = run(reach(server.address, &tls, "a.example")).unwrap_err();
        let HandshakeFailure::ServerCertificateInvalid(detail) = failure else {
            panic!("{failure:?}");
        };
        assert!(detail.contains(expected), "{detail}");
    };
    check(&authority.expired(&["a.example"]), &trusting(&authority), "it has expired");
    check(
        &authority.server(&["b.example"]),
        &trusting(&authority),
        "it is for other names: b.example",
    );
    check(&Authority::new("X").server(&["a.example"]), &trusting(&authority), "not trusted");
    check(&Identity::self_signed("a.example"), &trusting(&authority), "certifies itself");
}

#[test]
fn the_systems_authorities_do_not_vouch_for_strangers() {
    let (server, _dir) = server(&Authority::new("CA").server(&["a.example"]), &[]);
    match ClientTls::build(&believing(Verify::SystemRoots)) {
        Ok(tls) => {
            let failure = run(reach(server.address, &tls, "a.example")).unwrap_err();
            assert!(matches!(failure, HandshakeFailure::ServerCertificateInvalid(_)));
        }
        Err(error) => assert!(matches!(error, TlsError::NoSystemRoots { .. }), "{error}"),
    }
}

#[test]
fn a_self_signed_certificate_given_as_authority_is_believed_for_its_name() {
    let identity = Identity::self_signed("a.example");
    let (server, _dir) = server(&identity, &[]);
    let tls = ClientTls::build(&believing(Verify::Authorities(text(&identity.chain)))).unwrap();
    run(async {
        let mut stream = reach(server.address, &tls, "a.example").await.unwrap();
        assert!(ask(&mut stream).await.unwrap().contains("200 ok"));
        // `s_server` serves one connection after the other.
        drop(stream);
        let failure = reach(server.address, &tls, "b.example").await.unwrap_err();
        assert!(matches!(failure, HandshakeFailure::ServerCertificateInvalid(_)), "{failure:?}");
    });
}

#[test]
fn verification_that_is_turned_off_believes_anything_and_says_so() {
    let (server, _dir) = server(&Authority::new("CA").expired(&["b.example"]), &[]);
    let tls = ClientTls::build(&believing(Verify::DangerouslyNothing)).unwrap();
    assert!(!tls.verifies());
    run(async {
        let mut stream = reach(server.address, &tls, "a.example").await.unwrap();
        assert!(ask(&mut stream).await.unwrap().contains("200 ok"));
    });
}

#[test]
fn a_server_is_asked_for_by_its_endpoint_or_by_the_name_set() {
    let authority = Authority::new("CA");
    let gate = Gate::start(&settings(&[&authority.server(&["a.example", "127.0.0.1"])]));
    let check = |name: Option<&str>, host: &str, expected: &str| {
        let mut settings = trusting(&authority);
        settings.server_name = name.map(str::to_owned);
        let tls = ClientTls::build(&settings).unwrap();
        run(async { ask(&mut reach(gate.address, &tls, host).await.unwrap()).await.unwrap() });
        let agreed = gate.outcome().unwrap();
        assert!(agreed.contains(&format!("name={expected} ")), "{agreed}");
    };
    check(None, "a.example", "a.example");
    check(Some("a.example"), "10.0.0.1", "a.example");
    // An address is verified, but never sent as a name (RFC 6066, section 3).
    check(None, "127.0.0.1", "-");

    let tls = ClientTls::build(&trusting(&authority)).unwrap();
    let failure = run(reach(gate.address, &tls, "no name")).unwrap_err();
    assert!(matches!(failure, HandshakeFailure::BadServerName));
    let mut settings = trusting(&authority);
    settings.server_name = Some("no name".to_owned());
    assert!(matches!(ClientTls::build(&settings).unwrap_err(), TlsError::BadServerName { .. }));
}

#[test]
fn a_server_is_shown_the_clients_certificate_when_it_asks() {
    let authority = Authority::new("CA");
    let clients = Authority::new("Clients");
    let mut settings = settings(&[&authority.server(&["a.example"])]);
    settings.client_auth =
        ClientAuth::Required(ClientAuthorities { certificates: text(&clients.pem), revoked: None });
    let gate = Gate::start(&settings);
    let mut shown = trusting(&authority);
    shown.certificate = Some(clients.client("gate", 1).settings());
    run(async {
        let tls = ClientTls::build(&shown).unwrap();
        let mut stream = reach(gate.address, &tls, "a.example").await.unwrap();
        assert!(ask(&mut stream).await.unwrap().contains("subject=CN=gate "));

        // In TLS 1.3 a client learns only after its handshake that it was refused.
        let tls = ClientTls::build(&trusting(&authority)).unwrap();
        let mut stream = reach(gate.address, &tls, "a.example").await.unwrap();
        let error = ask(&mut stream).await.unwrap_err();
        assert!(error.to_string().contains("CertificateRequired"), "{error}");

        let mut old = trusting(&authority);
        old.versions = Versions::Tls12;
        let tls = ClientTls::build(&old).unwrap();
        let failure = reach(gate.address, &tls, "a.example").await.unwrap_err();
        assert!(matches!(failure, HandshakeFailure::AlertReceived(_)), "{failure:?}");
    });
}

#[test]
fn http2_is_spoken_only_by_agreement() {
    let authority = Authority::new("CA");
    let identity = authority.server(&["a.example"]);
    let mut settings = trusting(&authority);
    settings.protocol = UpstreamProtocol::Http2;
    let tls = ClientTls::build(&settings).unwrap();
    let (agrees, _dir) = server(&identity, &["-alpn", "h2"]);
    let (passes_over, _dir) = server(&identity, &[]);
    run(async {
        reach(agrees.address, &tls, "a.example").await.unwrap();
        let failure = reach(passes_over.address, &tls, "a.example").await.unwrap_err();
        assert!(matches!(failure, HandshakeFailure::NoSharedProtocol), "{failure:?}");
    });
}

#[test]
fn sessions_with_a_server_are_resumed() {
    let authority = Authority::new("CA");
    let identity = authority.server(&["a.example"]);
    for version in ["-tls1_3", "-tls1_2"] {
        let (server, _dir) = server(&identity, &[version]);
        let tls = ClientTls::build(&trusting(&authority)).unwrap();
        run(async {
            for expected in [Resumption::Full, Resumption::Resumed, Resumption::Resumed] {
                let mut stream = reach(server.address, &tls, "a.example").await.unwrap();
                assert_eq!(stream.info().resumption, expected, "{version}");
                ask(&mut stream).await.unwrap();
            }
        });
    }
}

#[test]
fn a_server_without_tls_is_recognized() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail.example ESMTP\r\n"] {
            let (mut socket, _) = listener.accept().unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let tls = ClientTls::build(&trusting(&Authority::new("CA"))).unwrap();
    run(async {
        let failure = reach(address, &tls, "a.example").await.unwrap_err();
        let HandshakeFailure::PlainHttp(received) = failure else { panic!("{failure:?}") };
        assert!(received.starts_with(b"HTTP/1.1 400"));
        let failure = reach(address, &tls, "a.example").await.unwrap_err();
        assert!(matches!(failure, HandshakeFailure::NotTls), "{failure:?}");
    });
}

#[test]
fn unusable_authorities_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let empty = write(dir.path(), "empty.pem", "");
    let settings = believing(Verify::Authorities(tidegate_proxy::tls::Pem::File(empty.clone())));
    let error = ClientTls::build(&settings).unwrap_err().to_string();
    assert!(error.starts_with(empty.to_str().unwrap()), "{error}");
    assert!(error.contains("it is empty; expected certificates of authorities"), "{error}");
}
