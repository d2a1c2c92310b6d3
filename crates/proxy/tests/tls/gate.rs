//! The side under test: a listener that answers each request with what TLS says of the connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tidegate_proxy::settings::Protocols;
use tidegate_proxy::tls::{
    ClientAuth, HandshakeFailure, ServerTls, ServerTlsSettings, Stream, TicketKeys, UnknownName,
    Versions, accept,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::certificates::Identity;

/// Connections whose outcome a test may leave unread.
const OUTCOMES_MAX: usize = 64;

pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    outcomes: Receiver<Outcome>,
}

/// How a handshake ended: what was agreed, as text, or why it failed.
pub(crate) type Outcome = Result<String, HandshakeFailure>;

pub(crate) fn settings(certificates: &[&Identity]) -> ServerTlsSettings {
    ServerTlsSettings {
        certificates: certificates.iter().map(|identity| identity.settings()).collect(),
        protocols: Protocols::Both,
        versions: Versions::Tls12AndTls13,
        unknown_name: UnknownName::Default,
        client_auth: ClientAuth::Off,
        tickets: Arc::new(TicketKeys::new().unwrap()),
    }
}

impl Gate {
    /// Accepts connections and answers one HTTP/1 request on each.
    pub(crate) fn start(settings: &ServerTlsSettings) -> Gate {
        Gate::with(settings, |mut stream| async move {
            if read_head(&mut stream).await {
                let body = describe(&stream);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes()).await;
            }
            let _ = stream.shutdown().await;
        })
    }

    /// Accepts connections and hands them to `serve`, one at a time.
    pub(crate) fn with<F>(
        settings: &ServerTlsSettings,
        serve: impl Fn(Stream) -> F + Send + 'static,
    ) -> Gate
    where
        F: Future<Output = ()>,
    {
        let tls = Arc::new(ServerTls::build(settings).unwrap());
        let (ready, address) = sync_channel(1);
        let (outcome, outcomes) = sync_channel(OUTCOMES_MAX);
        std::thread::spawn(move || {
            run(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    handle(socket, &tls, &outcome, &serve).await;
                }
            });
        });
        Gate { address: address.recv().unwrap(), outcomes }
    }

    /// How the next handshake ended.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcomes.recv_timeout(Duration::from_secs(10)).expect("a handshake")
    }

    /// Why the next handshake failed.
    pub(crate) fn failure(&self) -> HandshakeFailure {
        self.outcome().expect_err("a handshake that fails")
    }
}

async fn handle<F: Future<Output = ()>>(
    socket: TcpStream,
    tls: &Arc<ServerTls>,
    outcome: &SyncSender<Outcome>,
    serve: &impl Fn(Stream) -> F,
) {
    match accept(socket, tls).await {
        Ok(stream) => {
            let _ = outcome.send(Ok(describe(&stream)));
            serve(stream).await;
        }
        Err(error) => {
            let _ = outcome.send(Err(error.failure));
        }
    }
}

/// What was agreed, as `key=value` words.
pub(crate) fn describe(stream: &Stream) -> String {
    let info = stream.info();
    format!(
        "version={} cipher={} group={} alpn={:?} {:?} name={} subject={} fingerprint={}",
        info.version,
        info.cipher,
        info.group.unwrap_or("-"),
        info.alpn,
        info.resumption,
        info.server_name.unwrap_or("-"),
        info.client.map_or("-", |client| client.subject.as_str()),
        info.client.map_or("-", |client| client.fingerprint.as_str()),
    )
}

/// Reads to the end of a request head; `false` if the connection ends first.
pub(crate) async fn read_head(stream: &mut Stream) -> bool {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return false,
            Ok(bytes) => head.extend_from_slice(&piece[..bytes]),
        }
    }
    true
}

/// Runs a future on a thread-local runtime, as a worker does.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
