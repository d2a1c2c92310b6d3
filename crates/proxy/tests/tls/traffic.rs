//! Data in both directions, in every cut, and how it ends.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::Poll;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tidegate_proxy::settings::UpstreamProtocol;
use tidegate_proxy::tls::{
    ClientTls, ClientTlsSettings, ServerTls, Stream, Verify, Versions, accept, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::certificates::{Authority, text};
use crate::gate::{Gate, run, settings};

/// Bytes that each direction carries.
const MEGABYTES: usize = 10 * 1024 * 1024;

/// rustls' buffered client, which shares no code with the stream under test but the protocol.
pub(crate) fn buffered_client(
    authority: &Authority,
    provider: CryptoProvider,
    name: &str,
) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), name.to_owned().try_into().unwrap()).unwrap()
}

type Client = StreamOwned<ClientConnection, TcpStream>;

fn client(authority: &Authority, address: SocketAddr) -> Client {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    StreamOwned::new(buffered_client(authority, default_provider(), "a.example"), socket)
}

/// Bytes that are at no two places the same for long.
fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Sizes that fit nothing: primes, one byte, just around a record.
const PIECES: [usize; 9] = [1, 7, 1009, 16_383, 16_384, 16_385, 40_009, 131_071, 3];

fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    PIECES.iter().cycle().map_while(move |size| {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[test]
fn ten_megabytes_come_in_whatever_the_pieces() {
    let authority = Authority::new("CA");
    for versions in [Versions::Tls13, Versions::Tls12] {
        let (send, received) = sync_channel(1);
        let mut settings = settings(&[&authority.server(&["a.example"])]);
        settings.versions = versions;
        let gate = Gate::with(&settings, move |mut stream| {
            let send = send.clone();
            async move {
                let mut data = Vec::new();
                let mut sizes = PIECES.iter().cycle();
                let mut piece = vec![0; 131_071];
                loop {
                    let size = *sizes.next().unwrap();
                    match stream.read(&mut piece[..size]).await.unwrap() {
                        0 => break,
                        bytes => data.extend_from_slice(&piece[..bytes]),
                    }
                }
                send.send(data).unwrap();
            }
        });
        let data = pattern(MEGABYTES);
        let mut client = client(&authority, gate.address);
        for piece in pieces(&data) {
            client.write_all(piece).unwrap();
        }
        client.conn.send_close_notify();
        client.flush().unwrap();
        assert!(received.recv_timeout(Duration::from_secs(20)).unwrap() == data, "{versions:?}");
    }
}

#[test]
fn ten_megabytes_go_out_whatever_the_pieces() {
    let authority = Authority::new("CA");
    for versions in [Versions::Tls13, Versions::Tls12] {
        let mut settings = settings(&[&authority.server(&["a.example"])]);
        settings.versions = versions;
        let gate = Gate::with(&settings, |mut stream| async move {
            let data = pattern(MEGABYTES);
            // Three parts at a time, which end anywhere in a record.
            let all: Vec<&[u8]> = pieces(&data).collect();
            for parts in all.chunks(3) {
                write_parts(&mut stream, parts).await;
            }
            stream.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        client(&authority, gate.address).read_to_end(&mut received).unwrap();
        assert!(received == pattern(MEGABYTES), "{versions:?}");
    }
}

async fn write_parts(stream: &mut Stream, parts: &[&[u8]]) {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let taken = stream.write_vectored(rest).await.unwrap();
        IoSlice::advance_slices(&mut rest, taken);
    }
}

#[test]
fn a_full_socket_holds_writes_back_and_loses_nothing() {
    let authority = Authority::new("CA");
    let (send, taken) = sync_channel(1);
    let gate = Gate::with(&settings(&[&authority.server(&["a.example"])]), move |mut stream| {
        let send = send.clone();
        async move {
            if let tidegate_proxy::socket::Socket::Tcp(socket) = stream.transport() {
                socket2::SockRef::from(socket).set_send_buffer_size(4096).unwrap();
            }
            let data = pattern(MEGABYTES);
            // How much is taken while the client does not read.
            let mut at = 0;
            std::future::poll_fn(|cx| {
                while at < data.len() {
                    match stream.poll_write(cx, &data[at..]) {
                        Poll::Ready(bytes) => at += bytes.unwrap(),
                        Poll::Pending => break,
                    }
                }
                Poll::Ready(())
            })
            .await;
            send.send(at).unwrap();
            stream.write_all(&data[at..]).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&gate.address.into()).unwrap();
    let connection = buffered_client(&authority, default_provider(), "a.example");
    let mut client = StreamOwned::new(connection, TcpStream::from(socket));
    client.flush().unwrap();

    let taken = taken.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(taken < 1024 * 1024, "{taken} bytes taken, as if the client had read them");
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert!(received == pattern(MEGABYTES));
}

/// Both ends of a connection under test, over a Unix socket.
async fn both_ends() -> (Stream, Stream) {
    let authority = Authority::new("CA");
    let server = ServerTls::build(&settings(&[&authority.server(&["a.example"])])).unwrap();
    let client = ClientTls::build(&ClientTlsSettings {
        verify: Verify::Authorities(text(&authority.pem)),
        server_name: None,
        certificate: None,
        protocol: UpstreamProtocol::Http1,
        versions: Versions::Tls12AndTls13,
    })
    .unwrap();
    let server = Arc::new(server);
    let (left, right) = UnixStream::pair().unwrap();
    let connecting = async {
        let mut stream = connect(right, &client, "a.example").await.unwrap();
        // The end of its handshake would otherwise wait for its first data.
        stream.flush().await.unwrap();
        stream
    };
    let (left, right) = tokio::join!(accept(left, &server), connecting);
    (left.unwrap(), right)
}

#[test]
fn both_directions_flow_at_once() {
    run(async {
        let (server, client) = both_ends().await;
        let data = pattern(MEGABYTES);
        tokio::join!(exchange(server, &data), exchange(client, &data));
    });
}

async fn exchange(stream: Stream, data: &[u8]) {
    let (mut read, mut write) = tokio::io::split(stream);
    let sending = async {
        for piece in pieces(data) {
            write.write_all(piece).await.unwrap();
        }
        write.shutdown().await.unwrap();
    };
    let receiving = async {
        let mut received = Vec::new();
        read.read_to_end(&mut received).await.unwrap();
        assert!(received == data);
    };
    tokio::join!(sending, receiving);
}

/// A socket that keeps what it receives.
struct Recorded {
    socket: TcpStream,
    received: Vec<u8>,
}

impl Read for Recorded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.socket.read(into)?;
        self.received.extend_from_slice(&into[..bytes]);
        Ok(bytes)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ciphertext lengths of the application data records in a recording of TLS 1.2.
fn data_records(mut recording: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = recording {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind == 23 {
            lengths.push(length);
        }
        recording = &rest[length..];
    }
    lengths
}

#[test]
fn parts_share_records_and_records_are_full() {
    /// What AES-GCM adds in TLS 1.2: an explicit nonce and a tag.
    const ADDED: usize = 8 + 16;
    let authority = Authority::new("CA");
    let check = |parts: &'static [usize], expected: &[usize]| {
        let mut settings = settings(&[&authority.server(&["a.example"])]);
        settings.versions = Versions::Tls12;
        let gate = Gate::with(&settings, move |mut stream| async move {
            let parts: Vec<Vec<u8>> = parts.iter().map(|bytes| pattern(*bytes)).collect();
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            write_parts(&mut stream, &parts).await;
            stream.shutdown().await.unwrap();
        });
        let socket = TcpStream::connect(gate.address).unwrap();
        let connection = buffered_client(&authority, default_provider(), "a.example");
        let mut client = StreamOwned::new(connection, Recorded { socket, received: Vec::new() });
        client.read_to_end(&mut Vec::new()).unwrap();
        let lengths: Vec<usize> = data_records(&client.sock.received);
        let expected: Vec<usize> = expected.iter().map(|bytes| bytes + ADDED).collect();
        assert_eq!(lengths, expected, "{parts:?}");
    };
    check(&[5], &[5]);
    check(&[300, 1000], &[1300]);
    check(&[0, 300, 0, 1000, 0], &[1300]);
    check(&[16_384], &[16_384]);
    check(&[16_385], &[16_384, 1]);
    check(&[300, 62_000], &[16_384, 16_384, 16_384, 13_148]);
    // More than one buffer holds: the second call begins a new record.
    check(&[9, 16_384, 9, 16_384, 9, 16_384, 9, 16_384], &[16_384, 16_384, 16_384, 16_384, 36]);
}

/// Answers what comes, until the end; the end is told to the test.
fn echo(authority: &Authority) -> (Gate, std::sync::mpsc::Receiver<io::Result<()>>) {
    let (send, ends) = sync_channel(1);
    let gate = Gate::with(&settings(&[&authority.server(&["a.example"])]), move |mut stream| {
        let send = send.clone();
        async move {
            let mut piece = [0; 4000];
            let end = loop {
                match stream.read(&mut piece).await {
                    Ok(0) => break Ok(()),
                    Ok(bytes) => stream.write_all(&piece[..bytes]).await.unwrap(),
                    Err(error) => break Err(error),
                }
            };
            if end.is_ok() {
                stream.write_all(b"bye").await.unwrap();
                stream.shutdown().await.unwrap();
            }
            send.send(end).unwrap();
        }
    });
    (gate, ends)
}

#[test]
fn a_declared_end_is_told_from_a_cut() {
    let authority = Authority::new("CA");
    let (gate, ends) = echo(&authority);
    let end = || ends.recv_timeout(Duration::from_secs(10)).unwrap();

    // Declared: reading ends well, and writing goes on.
    let mut declared = client(&authority, gate.address);
    declared.write_all(b"hello ").unwrap();
    declared.conn.send_close_notify();
    declared.flush().unwrap();
    let mut answer = String::new();
    declared.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "hello bye");
    end().unwrap();

    // Cut: between records, and within one.
    let mut cut = client(&authority, gate.address);
    cut.write_all(b"hello ").unwrap();
    cut.sock.shutdown(Shutdown::Write).unwrap();
    assert_eq!(end().unwrap_err().kind(), ErrorKind::UnexpectedEof);

    let mut cut = client(&authority, gate.address);
    cut.write_all(b"hello ").unwrap();
    cut.sock.write_all(&[23, 3, 3, 0, 100, 1, 2, 3]).unwrap();
    cut.sock.shutdown(Shutdown::Write).unwrap();
    assert_eq!(end().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn keys_are_updated_when_the_client_asks() {
    let authority = Authority::new("CA");
    let (gate, ends) = echo(&authority);
    let mut client = client(&authority, gate.address);
    for round in 0..20 {
        let sent = pattern(1000 + round);
        client.write_all(&sent).unwrap();
        // From the second round on, so that the first proves the keys before.
        client.conn.refresh_traffic_keys().unwrap();
        let mut received = vec![0; sent.len()];
        client.read_exact(&mut received).unwrap();
        assert!(received == sent, "round {round}");
    }
    client.conn.send_close_notify();
    client.flush().unwrap();
    ends.recv_timeout(Duration::from_secs(10)).unwrap().unwrap();
}

#[test]
fn tickets_come_to_a_client_that_says_nothing() {
    let authority = Authority::new("CA");
    let (gate, _ends) = echo(&authority);
    let mut client = client(&authority, gate.address);
    client.flush().unwrap();
    while client.conn.tls13_tickets_received() < 2 {
        client.conn.complete_io(&mut client.sock).unwrap();
    }
}

#[test]
fn an_idle_connection_is_disturbed_by_data_and_by_its_end_and_not_by_tickets() {
    run(async {
        let (mut server, mut client) = both_ends().await;
        // The tickets are on their way, and are taken in.
        assert!(server.flush().await.is_ok());
        let quiet = tokio::time::timeout(
            Duration::from_millis(50),
            std::future::poll_fn(|cx| client.poll_disturbed(cx)),
        );
        assert!(quiet.await.is_err(), "disturbed by tickets");

        server.write_all(b"uncalled for").await.unwrap();
        std::future::poll_fn(|cx| client.poll_disturbed(cx)).await;
        let mut read = [0; 100];
        assert_eq!(client.read(&mut read).await.unwrap(), 12);

        server.shutdown().await.unwrap();
        std::future::poll_fn(|cx| client.poll_disturbed(cx)).await;
        assert_eq!(client.read(&mut read).await.unwrap(), 0);
        assert_eq!(client.read(&mut read).await.unwrap(), 0, "and it stays the end");
    });
}

#[test]
fn decrypted_data_counts_as_readable() {
    run(async {
        let (mut server, mut client) = both_ends().await;
        client.write_all(b"0123456789").await.unwrap();
        client.write_all(b"abc").await.unwrap();
        let mut read = [0; 4];
        let mut all = Vec::new();
        while all.len() < 13 {
            std::future::poll_fn(|cx| server.poll_read_ready(cx)).await.unwrap();
            let bytes = server.read(&mut read).await.unwrap();
            all.extend_from_slice(&read[..bytes]);
        }
        assert_eq!(all, b"0123456789abc");
        let nothing = tokio::time::timeout(
            Duration::from_millis(50),
            std::future::poll_fn(|cx| server.poll_read_ready(cx)),
        );
        assert!(nothing.await.is_err(), "readable without data");
    });
}

#[test]
fn nothing_is_written_after_the_end() {
    run(async {
        let (mut server, _client) = both_ends().await;
        server.shutdown().await.unwrap();
        let error = server.write(b"late").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}
