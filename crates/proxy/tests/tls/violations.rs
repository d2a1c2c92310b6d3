//! Peers that break the rules.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rustls::StreamOwned;
use rustls::crypto::aws_lc_rs::default_provider;
use tidegate_proxy::tls::{HandshakeFailure, ServerTls, accept, accept_after};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::certificates::Authority;
use crate::gate::{Gate, run, settings};
use crate::traffic::buffered_client;

/// Sends bytes and the end of the connection; what comes back.
fn send(gate: &Gate, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(gate.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => answer,
        // The gate closed with bytes unread.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => answer,
        Err(error) => panic!("{error}"),
    }
}

/// A real client hello for `name`.
fn hello(authority: &Authority, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    buffered_client(authority, default_provider(), name).write_tls(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_not_tls_gets_no_answer_and_is_recognized() {
    let gate = Gate::start(&settings(&[&Authority::new("CA").server(&["a.example"])]));
    let request = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    assert!(send(&gate, request).is_empty());
    let HandshakeFailure::PlainHttp(received) = gate.failure() else { panic!("not recognized") };
    assert_eq!(received, request);

    for garbage in [&b"\0\0\0\0"[..], b"\x80\x2e\x01\x03\x01", b"\xff", b"\r\n\r\n"] {
        assert!(send(&gate, garbage).is_empty());
        let failure = gate.failure();
        assert!(matches!(failure, HandshakeFailure::NotTls), "{garbage:?}: {failure:?}");
    }
    assert!(send(&gate, b"").is_empty());
    assert!(matches!(gate.failure(), HandshakeFailure::PeerClosed));
}

#[test]
fn a_bad_hello_is_answered_by_an_alert() {
    let gate = Gate::start(&settings(&[&Authority::new("CA").server(&["a.example"])]));
    let check = |bytes: &[u8], alert: u8| {
        let answer = send(&gate, bytes);
        let failure = gate.failure();
        assert!(matches!(failure, HandshakeFailure::Protocol(_)), "{failure:?}");
        assert!(matches!(answer[..], [21, 3, _, 0, 2, 2, sent] if sent == alert), "{answer:?}");
    };
    // An empty hello; another message than a hello; a record that is too long. (50: decode_error, 10:
    // unexpected_message.)
    check(&[22, 3, 1, 0, 4, 1, 0, 0, 0], 50);
    check(&[22, 3, 1, 0, 4, 20, 0, 0, 0], 10);
    check(&[&[22, 3, 1, 0x50, 0][..], &[0; 100]].concat(), 50);
}

#[test]
fn a_hello_cut_anywhere_is_a_closed_connection() {
    let authority = Authority::new("CA");
    let gate = Gate::start(&settings(&[&authority.server(&["a.example"])]));
    let hello = hello(&authority, "a.example");
    for cut in [1, 4, 5, 6, 100, hello.len() - 1] {
        assert!(send(&gate, &hello[..cut]).is_empty());
        assert!(matches!(gate.failure(), HandshakeFailure::PeerClosed), "cut at {cut}");
    }
}

#[test]
fn a_hello_may_come_byte_by_byte_and_after_a_header() {
    let authority = Authority::new("CA");
    let tls = Arc::new(ServerTls::build(&settings(&[&authority.server(&["a.example"])])).unwrap());
    run(async {
        let (near, mut far) = UnixStream::pair().unwrap();
        let hello = hello(&authority, "a.example");
        let (received, coming) = hello.split_at(50);
        let accepting = accept_after(near, &tls, received);
        let sending = async {
            for byte in coming {
                far.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            let mut answer = [0; 5];
            far.read_exact(&mut answer).await.unwrap();
            drop(far);
            answer
        };
        let (accepted, answer) = tokio::join!(accepting, sending);
        assert_eq!(answer[..3], [22, 3, 3], "a server hello");
        let failure = accepted.unwrap_err().failure;
        assert!(matches!(failure, HandshakeFailure::PeerClosed), "{failure:?}");
    });
}

#[test]
fn broken_records_end_the_connection_with_an_alert() {
    let authority = Authority::new("CA");
    let (report, ends) = sync_channel(1);
    let gate = Gate::with(&settings(&[&authority.server(&["a.example"])]), move |mut stream| {
        let report = report.clone();
        async move {
            let mut piece = [0; 100];
            let first = stream.read(&mut piece).await;
            assert_eq!(first.unwrap(), 5);
            let error = stream.read(&mut piece).await.unwrap_err();
            // It stays broken, for both directions.
            assert_eq!(stream.read(&mut piece).await.unwrap_err().kind(), ErrorKind::InvalidData);
            assert!(stream.write(b"late").await.is_err());
            let _ = stream.shutdown().await;
            report.send(error).unwrap();
        }
    });
    let check = |record: &[u8], alert: &str| {
        let socket = TcpStream::connect(gate.address).unwrap();
        let connection = buffered_client(&authority, default_provider(), "a.example");
        let mut client = StreamOwned::new(connection, socket);
        client.write_all(b"hello").unwrap();
        client.sock.write_all(record).unwrap();
        let told = client.read(&mut [0; 100]).unwrap_err().to_string();
        assert!(told.contains(alert), "{told}");
        let error = ends.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    };
    check(&[&[23, 3, 3, 0, 32][..], &[7; 32]].concat(), "BadRecordMac");
    check(&[&[23, 3, 3, 0x60, 0][..], &[7; 32]].concat(), "DecodeError");
    check(&[99, 3, 3, 0, 1, 0], "DecodeError");
}

#[test]
fn a_broken_record_after_our_close_is_an_error_and_no_more() {
    let authority = Authority::new("CA");
    let (report, ends) = sync_channel(1);
    let gate = Gate::with(&settings(&[&authority.server(&["a.example"])]), move |mut stream| {
        let report = report.clone();
        async move {
            stream.shutdown().await.unwrap();
            report.send(stream.read(&mut [0; 100]).await.unwrap_err()).unwrap();
        }
    });
    let socket = TcpStream::connect(gate.address).unwrap();
    let connection = buffered_client(&authority, default_provider(), "a.example");
    let mut client = StreamOwned::new(connection, socket);
    assert_eq!(client.read(&mut [0; 100]).unwrap(), 0);
    client.sock.write_all(&[&[23, 3, 3, 0, 32][..], &[7; 32]].concat()).unwrap();
    let error = ends.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
}

#[test]
fn renegotiation_is_refused() {
    let gate = Gate::start(&settings(&[&Authority::new("CA").server(&["a.example"])]));
    let mut child = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-connect", &gate.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    gate.outcome().unwrap();
    child.stdin.take().unwrap().write_all(b"R\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("RENEGOTIATING") && said.contains("no renegotiation"), "{said}");
}

/// Damaged flights of a whole conversation: any outcome, but no panic, no hang and nothing read that
/// was not sent.
#[test]
fn damaged_conversations_end() {
    let authority = Authority::new("CA");
    let tls = Arc::new(ServerTls::build(&settings(&[&authority.server(&["a.example"])])).unwrap());
    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % below
    };
    run(async {
        for round in 0..300 {
            let (near, far) = UnixStream::pair().unwrap();
            let serving = async {
                if let Ok(mut stream) = accept(near, &tls).await {
                    let mut all = Vec::new();
                    let _ = stream.read_to_end(&mut all).await;
                    let sent = "hello ".repeat(6);
                    assert!(sent.as_bytes().starts_with(&all), "round {round}: {all:?}");
                    let _ = stream.shutdown().await;
                }
            };
            let connection = buffered_client(&authority, default_provider(), "a.example");
            let damaging = damage(connection, far, &mut random);
            let both = async { tokio::join!(serving, damaging) };
            let ended = tokio::time::timeout(Duration::from_secs(10), both).await;
            assert!(ended.is_ok(), "round {round} hangs");
        }
    });
}

/// Plays a client, changing a byte of what it sends now and then.
async fn damage(
    mut connection: rustls::ClientConnection,
    mut socket: UnixStream,
    random: &mut impl FnMut(usize) -> usize,
) {
    let flights = 1 + random(4);
    for flight in 0.. {
        let mut bytes = Vec::new();
        if !connection.is_handshaking() && flight < 6 {
            connection.writer().write_all(b"hello ").unwrap();
        }
        while connection.wants_write() {
            connection.write_tls(&mut bytes).unwrap();
        }
        if flight >= flights || flight >= 6 {
            if !bytes.is_empty() {
                let at = random(bytes.len());
                bytes[at] ^= 1 << random(8);
                bytes.truncate(bytes.len() - random(3).min(bytes.len()));
            }
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
            let _ = socket.read_to_end(&mut Vec::new()).await;
            return;
        }
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
        if connection.is_handshaking() {
            let mut answer = vec![0; 20_000];
            let Ok(bytes @ 1..) = socket.read(&mut answer).await else { return };
            let _ = connection.read_tls(&mut &answer[..bytes]);
            let _ = connection.process_new_packets();
        }
    }
}
