//! A request given on the command line: a method, a URL and fields.

use std::net::IpAddr;

use tidegate_http::field::{self, Known};
use tidegate_http::target::{self, Form, Scheme};
use tidegate_http::{Method, Request};

/// A request, and where it comes from.
#[derive(Debug)]
pub(super) struct Question {
    /// As the gate would have parsed it.
    pub(super) request: Request,
    /// The scheme of the connection.
    pub(super) scheme: Scheme,
    /// The port it was sent to.
    pub(super) port: u16,
    /// The address it comes from.
    pub(super) from: Option<IpAddr>,
}

impl Question {
    /// Reads what was given; the words of what is wrong with it otherwise.
    pub(super) fn of(
        method: &str,
        url: &str,
        headers: &[String],
        from: Option<IpAddr>,
    ) -> Result<Question, String> {
        let mut request = Request::new();
        if !field::is_name(method.as_bytes()) {
            return Err(format!("`{}` is not a method", method.escape_debug()));
        }
        if Method::of(method.as_bytes()) == Method::Other
            && Method::of(method.to_ascii_uppercase().as_bytes()) != Method::Other
        {
            return Err(format!(
                "methods are told apart by case: `{}`",
                method.to_ascii_uppercase()
            ));
        }
        request.set_method(method.as_bytes());

        let form = target::form(url.as_bytes()).map_err(|error| format!("`{url}`: {error}"))?;
        let Form::Absolute { scheme, authority, path_and_query } = form else {
            return Err(format!(
                "`{url}` is not a URL with scheme and host, such as `https://example.org/`"
            ));
        };
        let mut host = Vec::new();
        let port =
            target::host(authority, &mut host).map_err(|error| format!("`{url}`: {error}"))?;
        (request.host, request.port) = (host, port);
        match path_and_query {
            [b'/', ..] => request.set_path_and_query(path_and_query),
            rest => request.set_path_and_query(&[b"/", rest].concat()),
        }
        for header in headers {
            push_header(&mut request, header)?;
        }
        if !request.headers.has(Known::Host) {
            let host = authority.to_vec();
            request.headers.push_known(Known::Host, &host);
        }
        Ok(Question { port: port.unwrap_or(scheme.default_port()), request, scheme, from })
    }
}

fn push_header(request: &mut Request, header: &str) -> Result<(), String> {
    let Some((name, value)) = header.split_once(':') else {
        return Err(format!("`{}` is not `Name: value`", header.escape_debug()));
    };
    let value = value.trim();
    if !field::is_name(name.as_bytes()) || !field::is_value(value.as_bytes()) {
        return Err(format!("`{}` is not a field", header.escape_debug()));
    }
    if Known::of(name.as_bytes()) == Known::Host {
        let mut host = Vec::new();
        request.port = target::host(value.as_bytes(), &mut host)
            .map_err(|error| format!("`{}`: {error}", header.escape_debug()))?;
        request.host = host;
    }
    request.headers.push(name.as_bytes(), value.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, url: &str, headers: &[&str]) -> Result<Question, String> {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        Question::of(method, url, &headers, None)
    }

    #[test]
    fn urls_and_fields_are_read_as_requests_are() {
        let question = ask("GET", "https://Example.org:8443/a?b", &["X-A: b"]).unwrap();
        assert_eq!(question.request.host, b"example.org");
        assert_eq!(question.port, 8443);
        assert_eq!(question.request.path(), b"/a");
        assert_eq!(question.request.query(), Some(&b"b"[..]));
        let question = ask("GET", "http://192.0.2.1?x", &["host: www.example.org"]).unwrap();
        assert_eq!(question.request.host, b"www.example.org");
        assert_eq!(question.request.path(), b"/");
        assert_eq!(question.port, 80);
    }

    #[test]
    fn what_no_request_can_be_is_refused() {
        let check = |method: &str, url: &str, headers: &[&str], expected: &str| {
            let complaint = ask(method, url, headers).unwrap_err();
            assert!(complaint.contains(expected), "{complaint}");
        };
        check("get", "http://example.org/", &[], "`GET`");
        check("G T", "http://example.org/", &[], "not a method");
        check("GET", "/path", &[], "scheme and host");
        check("GET", "ftp://example.org/", &[], "ftp://example.org/");
        check("GET", "http://example.org/a b", &[], "a b");
        check("GET", "http://exa mple/", &[], "exa mple");
        check("GET", "http://example.org/", &["X-A"], "Name: value");
        check("GET", "http://example.org/", &["X A: b"], "not a field");
    }
}
