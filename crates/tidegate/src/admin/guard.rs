//! Who may ask the admin listener.
//!
//! With a token, whoever knows it. Without one, whoever reaches the listener, which is then on
//! loopback or a Unix socket; but a web page in the operator's browser reaches loopback, too. It
//! cannot say `Host: localhost` (its name is in the way, whatever DNS says of it), and it cannot
//! send [`CLIENT_HEADER`] across origins without asking first, which nobody here answers.

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode};
use subtle::ConstantTimeEq as _;

use super::answer::Answer;

/// What a request that changes something must carry, with any value, unless it has a token.
pub(crate) const CLIENT_HEADER: HeaderName = HeaderName::from_static("tidegate-client");

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Over TCP.
    Network,
    /// Over a Unix socket, which browsers do not reach.
    UnixSocket,
}

/// Lets a request in, or says why not.
pub(super) fn admit<B>(request: &Request<B>, way: Way, token: Option<&str>) -> Result<(), Answer> {
    let headers = request.headers();
    if let Some(token) = token {
        return match bearer(headers) {
            Some(given) if bool::from(given.as_bytes().ct_eq(token.as_bytes())) => Ok(()),
            _ => Err(Answer::failure(
                StatusCode::UNAUTHORIZED,
                "the admin listener wants its token: `Authorization: Bearer ...`, or \
                 TIDEGATE_ADMIN_TOKEN in the environment of `tidegate`",
            )),
        };
    }
    if way == Way::Network && !names_no_domain(headers) {
        return Err(Answer::failure(
            StatusCode::FORBIDDEN,
            "without a token, `Host` must be `localhost` or an address",
        ));
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if changes && !headers.contains_key(CLIENT_HEADER) {
        return Err(Answer::failure(
            StatusCode::FORBIDDEN,
            "a request that changes something must carry `Tidegate-Client: ` and any value",
        ));
    }
    Ok(())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether `Host` is what no web page elsewhere can have: DNS rebinding needs a name of its own.
fn names_no_domain(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(way: Way, token: Option<&str>, method: &str, fields: &[(&str, &str)], expected: u16) {
        let mut request = Request::builder().method(method).uri("/status");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let status = match admit(&request, way, token) {
            Ok(()) => 200,
            Err(answer) => answer.status().as_u16(),
        };
        assert_eq!(status, expected, "{method} {fields:?} {way:?} {token:?}");
    }

    #[test]
    fn hosts_that_a_web_page_could_have_are_refused() {
        let check = |host: &str, expected| {
            check(Way::Network, None, "GET", &[("Host", host)], expected);
        };
        check("localhost", 200);
        check("LOCALHOST:9180", 200);
        check("127.0.0.1:9180", 200);
        check("[::1]:9180", 200);
        check("[::1]", 200);
        check("192.0.2.7:9180", 200);
        check("evil.example", 403);
        check("evil.example:9180", 403);
        check("localhost.evil.example", 403);
        check("127.0.0.1.evil.example:9180", 403);
        check("", 403);
        check("::1", 403);
    }

    #[test]
    fn a_request_without_host_is_refused_on_tcp_only() {
        check(Way::Network, None, "GET", &[], 403);
        check(Way::UnixSocket, None, "GET", &[], 200);
    }

    #[test]
    fn changes_need_a_header_that_pages_cannot_send() {
        let host = ("Host", "localhost");
        let client = ("Tidegate-Client", "curl");
        check(Way::Network, None, "POST", &[host], 403);
        check(Way::Network, None, "POST", &[host, client], 200);
        check(Way::Network, None, "DELETE", &[host], 403);
        check(Way::UnixSocket, None, "PUT", &[], 403);
        check(Way::UnixSocket, None, "PUT", &[client], 200);
    }

    #[test]
    fn a_token_is_wanted_for_everything_and_enough_for_everything() {
        let token = Some("correct horse battery");
        let given = ("Authorization", "Bearer correct horse battery");
        check(Way::Network, token, "GET", &[("Host", "localhost")], 401);
        check(Way::Network, token, "GET", &[("Authorization", "Bearer correct horse")], 401);
        check(Way::Network, token, "GET", &[("Authorization", "Basic correct horse battery")], 401);
        check(Way::Network, token, "GET", &[("Host", "gate.example"), given], 200);
        check(Way::Network, token, "POST", &[("Host", "gate.example"), given], 200);
        check(Way::UnixSocket, token, "GET", &[], 401);
    }
}
