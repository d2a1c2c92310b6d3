//! What an idle TLS connection holds: proportional set size over many of them, the measure of the
//! promise in BENCHMARKING.md, here without the connection's own state around the stream.
//!
//! A test program of its own: nothing else may allocate meanwhile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as ClientSocket;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use tidegate_proxy::settings::Protocols;
use tidegate_proxy::tls::{
    CertificateSettings, ClientAuth, Pem, ServerTls, ServerTlsSettings, Stream, TicketKeys,
    UnknownName, Versions, accept,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// For each version; two descriptors each, in all below the usual limit of 1,024.
const CONNECTIONS: usize = 200;

/// Bytes of an idle connection: the promise is 10 KB in all.
const IDLE_BYTES_MAX: usize = 6 * 1024;

#[test]
fn an_idle_connection_holds_no_buffers() {
    let certified = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    let pem = |text: String| Pem::Text { name: "test".to_owned(), bytes: text.into_bytes() };
    let tls = ServerTls::build(&ServerTlsSettings {
        certificates: vec![CertificateSettings {
            chain: pem(certified.cert.pem()),
            key: pem(certified.signing_key.serialize_pem()),
        }],
        protocols: Protocols::Both,
        versions: Versions::Tls12AndTls13,
        unknown_name: UnknownName::Default,
        client_auth: ClientAuth::Off,
        tickets: Arc::new(TicketKeys::new().unwrap()),
    })
    .unwrap();
    let tls = Arc::new(tls);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Nothing is freed before the end, so that nothing is measured in the place of what was freed.
    let mut kept = Vec::new();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let config = client_config(&certified.cert.pem(), version);
        // The first ones fill pools and caches that all share.
        let warm: Vec<_> = (0..20).map(|_| runtime.block_on(idle(&tls, &config))).collect();
        let before = pss_bytes();
        let held: Vec<_> =
            (0..CONNECTIONS).map(|_| runtime.block_on(idle(&tls, &config))).collect();
        let each = pss_bytes().saturating_sub(before) / CONNECTIONS;
        println!("{:?}: {each} bytes each, of which {} the stream", version.version, size());
        assert!(each < IDLE_BYTES_MAX, "{each} bytes for each idle connection");
        kept.extend([warm, held]);
    }
}

fn size() -> usize {
    std::mem::size_of::<Stream>()
}

fn client_config(authority: &str, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

/// A connection that has answered a request and waits for the next, and the client's bare socket.
async fn idle(tls: &Arc<ServerTls>, config: &Arc<ClientConfig>) -> (Stream, ClientSocket) {
    let (near, far) = ClientSocket::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let near = UnixStream::from_std(near).unwrap();
    let name = "a.example".try_into().unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let client = std::thread::spawn(move || {
        let mut client = StreamOwned::new(connection, far);
        client.write_all(&[b'q'; 300]).unwrap();
        client.read_exact(&mut [0; 2000]).unwrap();
        client.sock
    });
    let mut stream = accept(near, tls).await.unwrap();
    stream.read_exact(&mut [0; 300]).await.unwrap();
    stream.write_all(&[b'a'; 2000]).await.unwrap();
    stream.flush().await.unwrap();
    let waits =
        std::future::poll_fn(|cx| std::task::Poll::Ready(stream.poll_read_ready(cx).is_pending()));
    // Tokio knows that nothing has come only after looking once.
    if !waits.await {
        let none = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(stream.poll_read(cx, &mut [0; 10]).is_pending())
        });
        assert!(none.await, "something to read");
    }
    (stream, client.join().unwrap())
}

/// Memory of this process, shared pages counted in proportion.
fn pss_bytes() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
