//! The admin API from the other side, for the commands of the program.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tidegate_proxy::settings::{Address, Admin};
use tokio::net::{TcpStream, UnixStream};

use super::body::Body;
use super::guard::CLIENT_HEADER;
use crate::serve::sockets::Shown;

/// For a whole exchange. An upgrade takes longest, and the gate itself gives it less.
const EXCHANGE_MAX: Duration = Duration::from_secs(90);
/// A plan of ten thousand sites is some megabytes.
const BODY_MAX: usize = 256 << 20;

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

/// Why nothing came back.
#[derive(Debug)]
pub(crate) enum Unreachable {
    /// The admin listener is turned off.
    Off,
    /// Nobody answers there.
    Connect(Address, io::Error),
    /// The exchange broke off.
    Broken(String),
}

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreachable::Off => formatter.write_str(
                "the admin listener is turned off (`[admin] listen`); SIGHUP reloads nevertheless",
            ),
            Unreachable::Connect(address, error) => {
                write!(formatter, "no gate answers at {}: {error}", Shown(address))?;
                match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => formatter
                        .write_str(
                            "; is it running? `--config FILE` or `--admin ADDRESS` say where",
                        ),
                    io::ErrorKind::PermissionDenied => {
                        formatter.write_str("; the socket is for the gate's own user and root")
                    }
                    _ => Ok(()),
                }
            }
            Unreachable::Broken(reason) => write!(formatter, "the gate did not answer: {reason}"),
        }
    }
}

/// What is asked.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) body: Body,
    /// How long it may take.
    pub(crate) patience: Patience,
}

/// How long an exchange may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as what takes longest of what has an end soon: an upgrade.
    Usual,
    /// As long as the gate gives it.
    Gates,
}

impl<'a> Ask<'a> {
    /// A request without a body.
    pub(crate) fn new(method: &'a str, path: &'a str, accept: &'a str) -> Ask<'a> {
        Ask { method, path, accept, body: Body::Whole(None), patience: Patience::Usual }
    }
}

/// Asks the admin listener.
pub(crate) fn ask(admin: &Admin, ask: Ask<'_>) -> Result<Reply, Unreachable> {
    run(async {
        let patience = ask.patience;
        let exchange = async {
            let response = begin(admin, ask).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), BODY_MAX).collect().await;
            let body = body.map_err(|error| Unreachable::Broken(error.to_string()))?.to_bytes();
            Ok(Reply { status, text: String::from_utf8_lossy(&body).into_owned() })
        };
        match patience {
            Patience::Usual => {
                let late = |_| Unreachable::Broken("it took too long".into());
                tokio::time::timeout(EXCHANGE_MAX, exchange).await.map_err(late)?
            }
            Patience::Gates => exchange.await,
        }
    })
}

/// Asks for what has no end, and shows each piece as it comes, until the gate ends or `show` breaks.
/// A refusal is shown by nobody, but returned.
pub(crate) fn follow(
    admin: &Admin,
    path: &str,
    mut show: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<Reply, Unreachable> {
    run(async {
        let response = begin(admin, Ask::new("GET", path, "application/json")).await?;
        let status = response.status();
        let mut body = response.into_body();
        let mut text = String::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Unreachable::Broken(error.to_string()))?;
            let Some(data) = frame.data_ref() else { continue };
            if !status.is_success() {
                text.push_str(&String::from_utf8_lossy(data));
            } else if show(data).is_break() {
                break;
            }
        }
        Ok(Reply { status, text })
    })
}

fn run<T>(exchange: impl Future<Output = Result<T, Unreachable>>) -> Result<T, Unreachable> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Unreachable::Broken(error.to_string()))?;
    runtime.block_on(exchange)
}

async fn begin(admin: &Admin, ask: Ask<'_>) -> Result<Response<Incoming>, Unreachable> {
    let address = admin.address.as_ref().ok_or(Unreachable::Off)?;
    let unreachable = |error| Unreachable::Connect(address.clone(), error);
    match address {
        Address::Tcp(tcp) => {
            let stream = TcpStream::connect(tcp).await.map_err(unreachable)?;
            send(stream, admin, ask).await
        }
        Address::Unix(socket) => {
            let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
            send(stream, admin, ask).await
        }
    }
}

async fn send<S>(stream: S, admin: &Admin, ask: Ask<'_>) -> Result<Response<Incoming>, Unreachable>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: &dyn fmt::Display| Unreachable::Broken(error.to_string());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(HOST, "localhost")
        .header(ACCEPT, ask.accept)
        .header(CLIENT_HEADER, "cli");
    if let Some(token) = &admin.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(ask.body).map_err(|error| broken(&error))?;
    sender.send_request(request).await.map_err(|error| broken(&error))
}
