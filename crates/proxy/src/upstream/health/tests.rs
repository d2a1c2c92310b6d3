//! Checks of real servers on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use super::super::dns::Resolver;
use super::super::fixture::{metrics, server, settings};
use super::super::standing::Fitness;
use super::super::watch::Watch;
use super::*;
use crate::settings::{self, Balance, Probe, Protocols, SendProxyProtocol, UpstreamProtocol};
use crate::tls::{
    self, CertificateSettings, ClientAuth, ClientTls, ClientTlsSettings, Pem, ServerTls,
    ServerTlsSettings, TicketKeys, UnknownName, Verify, Versions,
};

fn check_settings(probe: Probe) -> HealthCheck {
    HealthCheck {
        probe,
        interval: Duration::from_millis(20),
        timeout: Duration::from_millis(200),
        fall: 2,
        rise: 2,
    }
}

fn http(path: &str) -> Probe {
    Probe::Http { path: path.into(), host: None, status_min: 200, status_max: 399 }
}

fn group_of(address: &str, probe: Probe) -> settings::Group {
    let mut settings = settings(Balance::RoundRobin, vec![server(address)]);
    settings.health = Some(check_settings(probe));
    settings
}

fn watched(settings: settings::Group) -> (Arc<Group>, Arc<Metrics>, Watch) {
    let group = Arc::new(super::super::fixture::group(settings));
    let metrics = Arc::new(metrics());
    let watch = Watch::start(&[Arc::clone(&group)], &Arc::new(Resolver::system()), &metrics);
    (group, metrics, watch)
}

fn health(group: &Group) -> Health {
    group.members().list()[0].server.standing().health
}

async fn until(group: &Group, expected: Health) {
    let waiting = async {
        while health(group) != expected {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = time::timeout(Duration::from_secs(10), waiting).await;
    assert!(waited.is_ok(), "{:?} instead of {expected:?}", health(group));
}

/// One check of one server.
async fn once(settings: &settings::Group) -> Result<(), String> {
    let group = super::super::fixture::group(settings.clone());
    let checks = settings.health.clone().unwrap();
    let members = group.members();
    let probe = probe::probe(settings, &checks.probe, &members.list()[0]);
    let result = time::timeout(checks.timeout, probe).await.unwrap_or(Err(Failed::Late));
    result.map_err(|reason| reason.to_string())
}

/// A server that answers each connection with these bytes once it has read a whole head, and keeps
/// what it read.
async fn answering(response: &'static [u8]) -> (SocketAddr, tokio::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (send, heads) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_head(&mut stream).await;
            let _: Result<(), _> = stream.write_all(response).await;
            let _: Result<(), _> = send.try_send(head);
        }
    });
    (address, heads)
}

async fn read_head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap_or(0) > 0 {}
    head
}

#[test]
fn rows_decide() {
    let settings = HealthCheck { fall: 3, rise: 2, ..check_settings(Probe::Tcp) };
    let run = |mut health: Health, checks: &str| -> String {
        let mut row = Row::default();
        let step = |check: char| {
            let check = if check == '+' { Check::Passed } else { Check::Failed };
            health = row.judge(health, check, &settings).unwrap_or(health);
            match health {
                Health::Unknown => '?',
                Health::Up => 'u',
                Health::Down => 'd',
            }
        };
        checks.chars().map(step).collect()
    };
    assert_eq!(run(Health::Unknown, "+--+---"), "uuuuuud");
    assert_eq!(run(Health::Unknown, "--+"), "??u");
    assert_eq!(run(Health::Unknown, "---+-++"), "??ddddu");
    assert_eq!(run(Health::Up, "--+--+---+"), "uuuuuuuudd");
}

#[tokio::test]
async fn a_server_goes_down_and_comes_back() {
    let status = Arc::new(AtomicU16::new(200));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = Arc::clone(&status);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            let response = format!("HTTP/1.1 {} Any\r\n\r\n", served.load(Relaxed));
            let _: Result<(), _> = stream.write_all(response.as_bytes()).await;
        }
    });
    let (group, metrics, watch) = watched(group_of(&address, http("/up")));
    assert_eq!(health(&group), Health::Unknown);
    until(&group, Health::Up).await;
    status.store(503, Relaxed);
    until(&group, Health::Down).await;
    let standing = group.members().list()[0].server.standing();
    assert_eq!(standing.fitness(Stamp::now()), Fitness::Down);
    status.store(302, Relaxed);
    until(&group, Health::Up).await;
    assert!(group.members().list()[0].server.standing().back_since.is_set());

    let snapshot = metrics.snapshot();
    assert_eq!(snapshot.control.servers.len(), 1);
    drop(watch);
    // The tasks end at their next turn.
    time::sleep(Duration::from_millis(50)).await;
    assert_eq!(metrics.snapshot().control.servers.len(), 0);
}

#[tokio::test]
async fn a_tcp_check_opens_a_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let settings = group_of(&listener.local_addr().unwrap().to_string(), Probe::Tcp);
    assert_eq!(once(&settings).await, Ok(()));
    drop(listener);
    assert!(once(&settings).await.unwrap_err().contains("refused"));
}

#[tokio::test]
async fn an_http_check_wants_a_good_status_in_a_valid_response_in_time() {
    let check = async |response: &'static [u8], expected: Result<(), &str>| {
        let (address, _heads) = answering(response).await;
        let got = once(&group_of(&address.to_string(), http("/"))).await;
        match (&got, expected) {
            (Ok(()), Ok(())) => {}
            (Err(got), Err(expected)) if got.contains(expected) => {}
            _ => panic!("{got:?} instead of {expected:?}"),
        }
    };
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Ok(())).await;
    check(b"HTTP/1.0 204 None\r\n\r\n", Ok(())).await;
    check(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(())).await;
    check(b"HTTP/1.1 404 Gone\r\n\r\n", Err("status 404")).await;
    check(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Err("invalid response")).await;
    check(b"", Err("end of file")).await;
    check(b"HTTP/1.1 200 OK\r\n", Err("end of file")).await;
    check(b"HTTP/1.1 103 Early\r\n\r\n".repeat(20).leak(), Err("too much")).await;
    let long = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &vec![b'x'; 20_000]].concat();
    check(long.leak(), Err("too")).await;

    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let got = once(&group_of(&silent.local_addr().unwrap().to_string(), http("/"))).await;
    assert_eq!(got, Err("it took too long".to_owned()));
}

#[tokio::test]
async fn the_request_is_a_plain_one() {
    let (address, mut heads) = answering(b"HTTP/1.1 200 OK\r\n\r\n").await;
    let mut settings = group_of(&address.to_string(), http("/up?x=1"));
    settings.proxy_protocol = SendProxyProtocol::V1;
    once(&settings).await.unwrap();
    let head = String::from_utf8(heads.recv().await.unwrap()).unwrap();
    assert_eq!(
        head,
        format!(
            "PROXY UNKNOWN\r\nGET /up?x=1 HTTP/1.1\r\nHost: {address}\r\n\
             User-Agent: tidegate-health-check\r\nConnection: close\r\n\r\n"
        )
    );

    settings.proxy_protocol = SendProxyProtocol::Off;
    let named = Probe::Http {
        path: "/".into(),
        host: Some("app.test".into()),
        status_min: 200,
        status_max: 200,
    };
    settings.health = Some(check_settings(named));
    once(&settings).await.unwrap();
    let head = String::from_utf8(heads.recv().await.unwrap()).unwrap();
    assert!(head.contains("\r\nHost: app.test\r\n"), "{head}");

    settings.health = Some(check_settings(http("/a b\r\nX: y")));
    assert!(once(&settings).await.unwrap_err().contains("not valid"));
}

#[tokio::test]
async fn unix_sockets_and_http2_are_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        }
    });
    let settings = group_of(&format!("unix:{}", path.display()), http("/"));
    assert_eq!(once(&settings).await, Ok(()));

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve_http2(stream));
        }
    });
    let mut settings = group_of(&address, http("/good"));
    settings.protocol = UpstreamProtocol::Http2;
    assert_eq!(once(&settings).await, Ok(()));
    settings.health = Some(check_settings(http("/bad")));
    assert_eq!(once(&settings).await, Err("status 500".into()));
}

async fn serve_http2(stream: TcpStream) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let status = if request.uri().path() == "/good" { 200 } else { 500 };
        let response = http::Response::builder().status(status).body(()).unwrap();
        respond.send_response(response, true).unwrap();
    }
}

#[tokio::test]
async fn tls_is_verified_as_for_requests() {
    let certified = rcgen::generate_simple_self_signed(vec!["app.test".to_owned()]).unwrap();
    let text = |text: String| Pem::Text { name: "test".into(), bytes: text.into_bytes() };
    let certificate = CertificateSettings {
        chain: text(certified.cert.pem()),
        key: text(certified.signing_key.serialize_pem()),
    };
    let server_tls = ServerTls::build(&ServerTlsSettings {
        certificates: vec![certificate],
        protocols: Protocols::Http1,
        versions: Versions::default(),
        unknown_name: UnknownName::default(),
        client_auth: ClientAuth::Off,
        tickets: Arc::new(TicketKeys::new().unwrap()),
    });
    let server_tls = Arc::new(server_tls.unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = tls::accept(stream, &server_tls).await else { continue };
            read_head(&mut stream).await;
            let _: Result<(), _> = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            let _: Result<(), _> = stream.flush().await;
        }
    });
    let check = async |name: &str| {
        let mut settings = group_of(&format!("{name}:{port}"), http("/"));
        let client_tls = ClientTls::build(&ClientTlsSettings {
            verify: Verify::Authorities(text(certified.cert.pem())),
            server_name: None,
            certificate: None,
            protocol: UpstreamProtocol::Http1,
            versions: Versions::default(),
        });
        settings.tls = Some(Arc::new(client_tls.unwrap()));
        let group = super::super::fixture::group(settings.clone());
        let found = [Ipv4Addr::LOCALHOST.into()];
        group.set_addresses(0, &found, metrics().labels(), Stamp::now());
        let probe = probe::probe(&settings, &http("/"), &group.members().list()[0]).await;
        probe.map_err(|reason| reason.to_string())
    };
    assert_eq!(check("app.test").await, Ok(()));
    let refused = check("other.test").await.unwrap_err();
    assert!(refused.starts_with("TLS: "), "{refused}");
}

#[tokio::test]
async fn servers_that_join_are_checked_and_those_that_leave_are_not() {
    let connections = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Relaxed);
        }
    });
    let mut settings = group_of("127.0.0.1:1", Probe::Tcp);
    settings.servers.clear();
    let (group, metrics, _watch) = watched(settings);
    group.add(server(&address), metrics.labels(), Stamp::now()).unwrap();
    until(&group, Health::Up).await;
    group.remove(&address, metrics.labels(), Stamp::now()).unwrap();
    time::sleep(Duration::from_millis(50)).await;
    let before = connections.load(Relaxed);
    time::sleep(Duration::from_millis(150)).await;
    assert_eq!(connections.load(Relaxed), before);
}
