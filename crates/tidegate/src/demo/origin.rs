//! The demo's origins: small servers on loopback, each on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::pages;

/// What `/slow` waits unless told otherwise, and at most.
const SLOW_SECONDS: u64 = 1;
const SLOW_SECONDS_MAX: u64 = 30;

/// Starts an origin with this name, and returns where it listens.
pub(super) fn start(name: &'static str) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(format!("origin-{name}")).spawn(move || {
        runtime.block_on(serve(listener, name));
    })?;
    Ok(address)
}

async fn serve(listener: std::net::TcpListener, name: &'static str) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let service =
            service_fn(
                move |request| async move { Ok::<_, Infallible>(answer(&request, name).await) },
            );
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(request: &Request<Incoming>, name: &'static str) -> Response<Full<Bytes>> {
    let (status, kind, body) = match request.uri().path() {
        "/" | "/index.html" => (200, "text/html; charset=utf-8", pages::tables().clone()),
        "/style.css" => (200, "text/css", Bytes::from_static(pages::STYLE.as_bytes())),
        "/tide.svg" => (200, "image/svg+xml", pages::curve().clone()),
        "/api/tides" => (200, "application/json", pages::data().clone()),
        "/slow" => {
            let seconds = request.uri().query().and_then(|query| query.strip_prefix("seconds="));
            let seconds = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(SLOW_SECONDS);
            tokio::time::sleep(Duration::from_secs(seconds.min(SLOW_SECONDS_MAX))).await;
            (200, "text/plain", Bytes::from_static(b"That took a while.\n"))
        }
        "/health" => (200, "text/plain", Bytes::from_static(b"well\n")),
        _ => (404, "text/plain", Bytes::from_static(b"No such page here.\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert("x-served-by", HeaderValue::from_static(name));
    response
}
