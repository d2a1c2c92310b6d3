//! What a request that changes something makes of what is stored (RFC 9111, section 4.4).

use crate::key::Uri;
use tidegate_http::field::Known;
use tidegate_http::target::{self, PathForm};
use tidegate_http::{Method, Request, Response};

/// Whether the answer to this request invalidates what is stored for its URI: the method is not known
/// to be safe, and it succeeded, or points elsewhere.
pub fn invalidates(request: &Request, status: u16) -> bool {
    !is_safe(request) && matches!(status, 200..=399)
}

/// Methods that are registered as safe, beyond those with names of their own here.
fn is_safe(request: &Request) -> bool {
    const SAFE: [&[u8]; 6] =
        [b"PROPFIND", b"REPORT", b"SEARCH", b"QUERY", b"PRI", b"BASELINE-STATUS"];
    request.method.is_safe()
        || (request.method == Method::Other && SAFE.contains(&&*request.method_text))
}

/// A URI of this origin that a response points to, in the form in which requests have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    path: Vec<u8>,
    query: Option<Vec<u8>>,
}

impl Reference {
    /// It as a URI of the same origin as another one.
    pub fn uri<'a>(&'a self, base: &Uri<'a>) -> Uri<'a> {
        Uri { path: &self.path, query: self.query.as_deref(), ..*base }
    }
}

/// What `Location` and `Content-Location` point to, as far as it is of the same origin as the request;
/// what others own is not for this response to invalidate. Its own URI is not among them.
pub fn references<'a>(
    base: &'a Uri<'a>,
    response: &'a Response,
) -> impl Iterator<Item = Reference> + 'a {
    let named = |known| response.headers.all(known);
    named(Known::Location)
        .chain(response.headers.named(b"Content-Location"))
        .filter_map(|value| resolve(base, value))
        .filter(|found| found.path != base.path || found.query.as_deref() != base.query)
}

/// Whether a response says that it is what a `GET` of the request's URI would give (RFC 9110, section
/// 8.7).
pub fn is_about_itself(base: &Uri<'_>, response: &Response) -> bool {
    let mut lines = response.headers.named(b"Content-Location");
    let found = lines.next().and_then(|value| resolve(base, value));
    let is_it = |found: Reference| found.path == base.path && found.query.as_deref() == base.query;
    lines.next().is_none() && found.is_some_and(is_it)
}

/// Resolves a reference (RFC 3986, section 5.2). `None` if it leads to another origin, or is one that
/// no request could have for its target.
fn resolve(base: &Uri<'_>, value: &[u8]) -> Option<Reference> {
    let end = value.iter().position(|&byte| byte == b'#').unwrap_or(value.len());
    let mut rest = without_scheme(base, &value[..end])?;
    if let Some(behind) = rest.strip_prefix(b"//") {
        let end =
            behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
        if !is_same_host(base, &behind[..end]) {
            return None;
        }
        rest = &behind[end..];
        let rooted = [b"/", rest].concat();
        return finish(base, if rest.starts_with(b"/") { rest } else { &rooted });
    }
    finish(base, rest)
}

/// A reference without scheme and authority: its path, merged with the base's, and its query.
fn finish(base: &Uri<'_>, rest: &[u8]) -> Option<Reference> {
    let at = rest.iter().position(|&byte| byte == b'?');
    let (path, query) = match at {
        Some(at) => (&rest[..at], Some(rest[at + 1..].to_vec())),
        None => (rest, None),
    };
    let (path, query) = match path {
        [] if query.is_none() => (base.path.to_vec(), base.query.map(<[u8]>::to_vec)),
        [] => (base.path.to_vec(), query),
        [b'/', ..] => (path.to_vec(), query),
        _ => {
            let slash = base.path.iter().rposition(|&byte| byte == b'/')?;
            ([&base.path[..=slash], path].concat(), query)
        }
    };
    let mut normal = Vec::new();
    match target::normalize_path(&path, &mut normal).ok()? {
        PathForm::Normal => Some(Reference { path, query }),
        PathForm::Rewritten => Some(Reference { path: normal, query }),
    }
}

/// A reference without its scheme: what follows the colon where that is the base's scheme, all of it
/// where there is none, and nothing where it is another (RFC 3986, section 3.1).
fn without_scheme<'a>(base: &Uri<'_>, reference: &'a [u8]) -> Option<&'a [u8]> {
    let end = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'));
    let Some(colon) = end.filter(|&end| reference[end] == b':') else { return Some(reference) };
    let behind = &reference[colon + 1..];
    let is_ours = reference[..colon].eq_ignore_ascii_case(base.scheme.name().as_bytes());
    (is_ours && behind.starts_with(b"//")).then_some(behind)
}

fn is_same_host(base: &Uri<'_>, authority: &[u8]) -> bool {
    let mut host = Vec::new();
    match target::host(authority, &mut host) {
        Ok(port) => {
            host == base.host && port.unwrap_or(base.scheme.default_port()) == base.port_number()
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_http::target::Scheme;

    const BASE: Uri<'_> = Uri {
        scheme: Scheme::Https,
        host: b"a.example",
        port: None,
        path: b"/dir/file",
        query: Some(b"x=1"),
    };

    #[test]
    fn unsafe_methods_that_succeed_invalidate() {
        let check = |method: &str, status: u16, expected: bool| {
            let mut request = Request::new();
            request.set_method(method.as_bytes());
            assert_eq!(invalidates(&request, status), expected, "{method} {status}");
        };
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "PURGE", "propfind"] {
            for status in [200, 201, 204, 301, 303, 399] {
                check(method, status, true);
            }
            for status in [100, 400, 404, 500, 503] {
                check(method, status, false);
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"] {
            check(method, 200, false);
        }
    }

    #[test]
    fn references_are_resolved_within_the_origin() {
        // RFC 3986, section 5.4
        let check = |value: &str, expected: Option<&str>| {
            let seen = resolve(&BASE, value.as_bytes()).map(|found| {
                let mut text = String::from_utf8(found.path).unwrap();
                if let Some(query) = found.query {
                    text.push('?');
                    text.push_str(&String::from_utf8(query).unwrap());
                }
                text
            });
            assert_eq!(seen.as_deref(), expected, "{value}");
        };
        check("", Some("/dir/file?x=1"));
        check("#top", Some("/dir/file?x=1"));
        check("?y", Some("/dir/file?y"));
        check("other", Some("/dir/other"));
        check("other?y#z", Some("/dir/other?y"));
        check("./other", Some("/dir/other"));
        check("../other", Some("/other"));
        check("../../other", None);
        check("/other", Some("/other"));
        check("/a/../b", Some("/b"));
        check("/%7Ea", Some("/~a"));
        check("https://a.example/other", Some("/other"));
        check("HTTPS://A.EXAMPLE:443/other", Some("/other"));
        check("https://a.example", Some("/"));
        check("https://a.example?y", Some("/?y"));
        check("//a.example/other", Some("/other"));
        check("http://a.example/other", None);
        check("https://b.example/other", None);
        check("//b.example/other", None);
        check("https://a.example:8443/other", None);
        check("https:/other", None);
        check("https://user@a.example/other", None);
        check("https:other", None);
        check("mailto:a@a.example", None);
        check("a:b", None);
        check("./a:b", Some("/dir/a:b"));
        check("?a:b", Some("/dir/file?a:b"));
    }

    #[test]
    fn own_and_foreign_uris_are_left_out() {
        let mut response = Response::new();
        response.headers.push(b"Location", b"/new");
        response.headers.push(b"Content-Location", b"other");
        response.headers.push(b"Content-Location", b"https://b.example/");
        response.headers.push(b"Content-Location", b"file?x=1");
        let found: Vec<_> = references(&BASE, &response).collect();
        let paths: Vec<_> = found.iter().map(|found| found.uri(&BASE).path).collect();
        assert_eq!(paths, [&b"/new"[..], b"/dir/other"]);
        assert_eq!(found[0].uri(&BASE), Uri { path: b"/new", query: None, ..BASE });
    }

    #[test]
    fn a_response_may_be_about_its_own_uri() {
        let check = |lines: &[&str], expected: bool| {
            let mut response = Response::new();
            for line in lines {
                response.headers.push(b"Content-Location", line.as_bytes());
            }
            assert_eq!(is_about_itself(&BASE, &response), expected, "{lines:?}");
        };
        check(&["/dir/file?x=1"], true);
        check(&["https://a.example/dir/file?x=1"], true);
        check(&[""], true);
        check(&["/dir/file"], false);
        check(&["https://b.example/dir/file?x=1"], false);
        check(&[], false);
        check(&["", ""], false);
    }
}
