//! The admin API from the other side, for the commands of the program.

use std::fmt;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tidegate_proxy::settings::{Address, Admin};
use tokio::net::{TcpStream, UnixStream};

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

/// Asks the admin listener.
pub(crate) fn ask(
    admin: &Admin,
    method: &str,
    path: &str,
    accept: &str,
) -> Result<Reply, Unreachable> {
    let address = admin.address.as_ref().ok_or(Unreachable::Off)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Unreachable::Broken(error.to_string()))?;
    runtime.block_on(async {
        let unreachable = |error| Unreachable::Connect(address.clone(), error);
        let exchange = async {
            match address {
                Address::Tcp(tcp) => {
                    let stream = TcpStream::connect(tcp).await.map_err(unreachable)?;
                    exchange(stream, admin, method, path, accept).await
                }
                Address::Unix(socket) => {
                    let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
                    exchange(stream, admin, method, path, accept).await
                }
            }
        };
        let late = |_| Unreachable::Broken("it took too long".into());
        tokio::time::timeout(EXCHANGE_MAX, exchange).await.map_err(late)?
    })
}

async fn exchange<S>(
    stream: S,
    admin: &Admin,
    method: &str,
    path: &str,
    accept: &str,
) -> Result<Reply, Unreachable>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: &dyn fmt::Display| Unreachable::Broken(error.to_string());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "localhost")
        .header(ACCEPT, accept)
        .header(CLIENT_HEADER, "cli");
    if let Some(token) = &admin.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| broken(&error))?;
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_MAX);
    let body = body.collect().await.map_err(|error| broken(&error))?.to_bytes();
    Ok(Reply { status, text: String::from_utf8_lossy(&body).into_owned() })
}
