//! One active check: a connection made as requests would make it, and perhaps a request.
//!
//! A probe uses a connection of its own, which it closes. It opens with the same PROXY protocol
//! version, TLS settings and HTTP version as the group's requests, so it finds what they would find.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use tidegate_http::error::ResponseError;
use tidegate_http::parse::{self, HeadLimits, HeadScan};
use tidegate_http::{Response, write};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::members::Member;
use crate::proxy_protocol;
use crate::settings::{Group, PeerAddress, Probe, SendProxyProtocol, UpstreamProtocol};
use crate::socket::Socket;
use crate::tls;

/// Bytes of a response head; a health page has no need of more.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Fields of a response.
const FIELDS_MAX: usize = 128;
/// Interim responses before the final one (RFC 9110, section 15.2).
const INTERIM_MAX: usize = 8;

/// Why a check failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// It took too long.
    Late,
    /// The connection could not be opened, or broke.
    Io(io::Error),
    /// TLS could not be established.
    Tls(String),
    /// The response is not valid.
    Response(ResponseError),
    /// More interim responses than anyone needs.
    TooMuch,
    /// HTTP/2 failed.
    Http2(h2::Error),
    /// The request cannot be written for this server: a path or host that is none.
    Unsendable,
    /// The status is not one of those wanted.
    Status(u16),
}

/// Checks a server once. The caller limits the time.
pub(super) async fn probe(group: &Group, probe: &Probe, member: &Member) -> Result<(), Failed> {
    let stream = open(group, member).await?;
    let Probe::Http { path, host, status_min, status_max } = probe else { return Ok(()) };
    let host = host.as_deref().unwrap_or(&member.authority);
    let status = match group.protocol {
        UpstreamProtocol::Http1 => http1(stream, path, host).await?,
        UpstreamProtocol::Http2 => {
            let scheme = if group.tls.is_some() { "https" } else { "http" };
            http2(stream, scheme, path, host).await?
        }
    };
    if (*status_min..=*status_max).contains(&status) { Ok(()) } else { Err(Failed::Status(status)) }
}

/// A stream of any kind: checks are few, so an allocation and a virtual call do not matter.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn open(group: &Group, member: &Member) -> Result<Box<dyn Stream>, Failed> {
    match member.server.address() {
        PeerAddress::Tcp(ip, port) => {
            let mut stream = TcpStream::connect(SocketAddr::new(*ip, *port)).await?;
            introduce(&mut stream, group.proxy_protocol).await?;
            secure(stream, group, member).await
        }
        PeerAddress::Unix(path) => {
            let mut stream = UnixStream::connect(path).await?;
            introduce(&mut stream, group.proxy_protocol).await?;
            secure(stream, group, member).await
        }
    }
}

/// A check is the gate's own connection: it stands for nobody's.
async fn introduce(
    stream: &mut (impl AsyncWrite + Unpin),
    version: SendProxyProtocol,
) -> io::Result<()> {
    let mut header = Vec::new();
    match version {
        SendProxyProtocol::Off => return Ok(()),
        SendProxyProtocol::V1 => proxy_protocol::write_v1(&mut header, None),
        SendProxyProtocol::V2 => proxy_protocol::write_v2(&mut header, None),
    }
    stream.write_all(&header).await
}

async fn secure(
    stream: impl Stream + Into<Socket> + 'static,
    group: &Group,
    member: &Member,
) -> Result<Box<dyn Stream>, Failed> {
    let Some(tls) = &group.tls else { return Ok(Box::new(stream)) };
    match tls::connect(stream, tls, &member.host).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(Failed::Tls(error.failure.to_string())),
    }
}

async fn http1(mut stream: Box<dyn Stream>, path: &str, host: &str) -> Result<u16, Failed> {
    let sendable = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    if !sendable || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failed::Unsendable);
    }
    let mut request = Vec::new();
    write::request_line(&mut request, b"GET", path.as_bytes());
    write::field(&mut request, b"Host", host.as_bytes());
    write::field(&mut request, b"User-Agent", USER_AGENT.as_bytes());
    write::field(&mut request, b"Connection", b"close");
    write::end(&mut request);
    stream.write_all(&request).await?;
    stream.flush().await?;

    let limits =
        HeadLimits { head_bytes_max: HEAD_BYTES_MAX, target_bytes_max: 0, fields_max: FIELDS_MAX };
    let mut input = Vec::new();
    let mut response = Response::new();
    for _ in 0..=INTERIM_MAX {
        let length = head(&mut stream, &mut input, &limits).await?;
        parse::response(&input[..length], &limits, &mut response).map_err(Failed::Response)?;
        if response.status >= 200 {
            return Ok(response.status);
        }
        input.drain(..length);
    }
    Err(Failed::TooMuch)
}

/// Reads until a whole head is there, within the limits; returns its length.
async fn head(
    stream: &mut Box<dyn Stream>,
    input: &mut Vec<u8>,
    limits: &HeadLimits,
) -> Result<usize, Failed> {
    let mut scan = HeadScan::default();
    loop {
        if let Some(length) = scan.find_response(input, limits).map_err(Failed::Response)? {
            return Ok(length);
        }
        if stream.read_buf(input).await? == 0 {
            return Err(Failed::Io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

async fn http2(
    stream: Box<dyn Stream>,
    scheme: &str,
    path: &str,
    host: &str,
) -> Result<u16, Failed> {
    let uri = http::Uri::builder().scheme(scheme).authority(host).path_and_query(path).build();
    let request = http::Request::get(uri.map_err(|_| Failed::Unsendable)?)
        .version(http::Version::HTTP_2)
        .header(http::header::USER_AGENT, USER_AGENT)
        .body(())
        .map_err(|_| Failed::Unsendable)?;
    let (mut send, connection) =
        h2::client::Builder::new().enable_push(false).handshake::<_, Bytes>(stream).await?;
    let exchange = async {
        let (response, _) = send.send_request(request, true)?;
        Ok::<_, h2::Error>(response.await?.status().as_u16())
    };
    // Whichever ends first: the connection makes the exchange move, and dropping it closes it.
    tokio::select! {
        biased;
        status = exchange => Ok(status?),
        ended = connection => match ended {
            Ok(()) => Err(Failed::Io(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(error.into()),
        },
    }
}

const USER_AGENT: &str = "tidegate-health-check";

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

impl From<h2::Error> for Failed {
    fn from(error: h2::Error) -> Failed {
        Failed::Http2(error)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Late => formatter.write_str("it took too long"),
            Failed::Io(error) => write!(formatter, "{error}"),
            Failed::Tls(reason) => write!(formatter, "TLS: {reason}"),
            Failed::Response(error) => write!(formatter, "invalid response: {error}"),
            Failed::TooMuch => formatter.write_str("too much comes before the response"),
            Failed::Http2(error) => write!(formatter, "HTTP/2: {error}"),
            Failed::Unsendable => formatter.write_str("the check's path or host is not valid"),
            Failed::Status(status) => write!(formatter, "status {status}"),
        }
    }
}
