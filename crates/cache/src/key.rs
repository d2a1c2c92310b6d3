//! The primary key: what two requests must have in common to share a response (RFC 9111, section 2).
//!
//! It is text that begins as the URI does, so that what lies under one prefix of URIs lies under one
//! prefix of keys, and behind it come fields and cookies:
//!
//! ```text
//! https://example.org:8443/path?query NUL h accept-currency : EUR NUL c group = 7
//! ```
//!
//! Two requests have the same text only if they are the same in all that counts: NUL, which is
//! between the parts, and SOH stand for themselves nowhere. `GET` and `HEAD` share a key, and no other
//! method has one. Hashing is the store's.

use crate::policy::{KeyPolicy, Order, Part, Query, Select, cookies};
use std::ops::Range;
use tidegate_http::target::Scheme;
use tidegate_http::{Method, Request};

/// A place to write keys into, again and again.
#[derive(Clone, Debug, Default)]
pub struct KeyBuffer {
    text: Vec<u8>,
    parameters: Vec<Range<usize>>,
}

/// What a key's URI part is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uri<'a> {
    /// The scheme the client used.
    pub scheme: Scheme,
    /// The host in its one spelling.
    pub host: &'a [u8],
    /// The port beside it, if one is written.
    pub port: Option<u16>,
    /// The path.
    pub path: &'a [u8],
    /// The query without its `?`.
    pub query: Option<&'a [u8]>,
}

impl<'a> Uri<'a> {
    /// The target of a request.
    pub fn of(scheme: Scheme, request: &'a Request) -> Uri<'a> {
        Uri {
            scheme,
            host: &request.host,
            port: request.port,
            path: request.path(),
            query: request.query(),
        }
    }

    /// Its port, written or not.
    pub fn port_number(&self) -> u16 {
        self.port.unwrap_or(self.scheme.default_port())
    }
}

/// Whether responses to this method are looked up.
pub const fn has_key(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head)
}

impl KeyBuffer {
    /// An empty buffer; allocates nothing.
    pub fn new() -> KeyBuffer {
        KeyBuffer::default()
    }

    /// Writes the key of a request.
    pub fn write(&mut self, scheme: Scheme, request: &Request, policy: &KeyPolicy) -> &[u8] {
        self.write_uri(&Uri::of(scheme, request), request, policy)
    }

    /// Writes the key that a request for another URI would have, were it the same in the rest.
    pub fn write_uri(&mut self, uri: &Uri<'_>, request: &Request, policy: &KeyPolicy) -> &[u8] {
        self.text.clear();
        if policy.scheme == Part::Counts {
            self.text.extend_from_slice(uri.scheme.name().as_bytes());
            self.text.push(b':');
        }
        self.text.extend_from_slice(b"//");
        if policy.host == Part::Counts {
            push(&mut self.text, uri.host);
            if let Some(port) = uri.port.filter(|&port| port != uri.scheme.default_port()) {
                self.text.push(b':');
                tidegate_http::write::decimal(&mut self.text, port.into());
            }
        }
        push(&mut self.text, uri.path);
        if let Some(query) = uri.query {
            self.write_query(query, &policy.query);
        }
        for name in &policy.headers {
            for value in request.headers.named(name) {
                push_part(&mut self.text, b'h', name, b':', value);
            }
        }
        for name in &policy.cookies {
            for (_, value) in cookies(request).filter(|(cookie, _)| *cookie == &**name) {
                push_part(&mut self.text, b'c', name, b'=', value);
            }
        }
        &self.text
    }

    /// The key that was written last.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn write_query(&mut self, query: &[u8], policy: &Query) {
        match policy {
            Query::LeftOut => {}
            Query::Whole => {
                self.text.push(b'?');
                push(&mut self.text, query);
            }
            Query::Parameters { select, order } => {
                self.choose(query, select, *order);
                let mut before = b'?';
                for range in self.parameters.drain(..) {
                    self.text.push(before);
                    push(&mut self.text, &query[range]);
                    before = b'&';
                }
            }
        }
    }

    /// Finds the parameters that count. Those with one name keep their order: it may mean something.
    fn choose(&mut self, query: &[u8], select: &Select, order: Order) {
        self.parameters.clear();
        let mut start = 0;
        for parameter in query.split(|&byte| byte == b'&') {
            let range = start..start + parameter.len();
            start = range.end + 1;
            if !parameter.is_empty() && select.takes(name_of(parameter)) {
                self.parameters.push(range);
            }
        }
        if order == Order::Sorted {
            let name = |range: &Range<usize>| name_of(&query[range.clone()]);
            self.parameters.sort_by(|one, other| name(one).cmp(name(other)));
        }
    }
}

fn name_of(parameter: &[u8]) -> &[u8] {
    let end = parameter.iter().position(|&byte| byte == b'=').unwrap_or(parameter.len());
    &parameter[..end]
}

fn push_part(out: &mut Vec<u8>, kind: u8, name: &[u8], between: u8, value: &[u8]) {
    out.extend_from_slice(&[0, kind]);
    let start = out.len();
    push(out, name);
    out[start..].make_ascii_lowercase();
    out.push(between);
    push(out, value);
}

/// Adds text in which NUL and SOH are escaped. No parser lets them through; this holds nevertheless.
pub(crate) fn push(out: &mut Vec<u8>, text: &[u8]) {
    const ESCAPE: u8 = 1;
    let is_special = |byte: &u8| *byte <= ESCAPE;
    // Without a branch per byte this becomes a few vector instructions.
    if !text.iter().fold(false, |any, byte| any | is_special(byte)) {
        out.extend_from_slice(text);
        return;
    }
    for byte in text {
        if is_special(byte) {
            out.push(ESCAPE);
        }
        out.push(if is_special(byte) { byte + 2 } else { *byte });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Case, Pattern};
    use std::collections::HashMap;

    fn request(host: &str, port: Option<u16>, target: &str, fields: &[(&str, &str)]) -> Request {
        let mut request = Request::new();
        request.host.extend_from_slice(host.as_bytes());
        request.port = port;
        request.set_path_and_query(target.as_bytes());
        for (name, value) in fields {
            request.headers.push(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn key(scheme: Scheme, request: &Request, policy: &KeyPolicy) -> String {
        let mut buffer = KeyBuffer::new();
        String::from_utf8(buffer.write(scheme, request, policy).to_vec()).unwrap()
    }

    fn patterns(names: &[&str]) -> Vec<Pattern> {
        names.iter().map(|name| Pattern::new(name.as_bytes(), Case::Sensitive)).collect()
    }

    #[test]
    fn a_key_begins_as_its_uri_does() {
        let check = |scheme, port, target: &str, expected: &str| {
            let request = request("a.example", port, target, &[("Cookie", "a=b"), ("X", "y")]);
            assert_eq!(key(scheme, &request, &KeyPolicy::default()), expected);
        };
        check(Scheme::Https, None, "/", "https://a.example/");
        check(Scheme::Http, None, "/a?b=c", "http://a.example/a?b=c");
        check(Scheme::Http, None, "/a?", "http://a.example/a?");
        check(Scheme::Http, Some(80), "/", "http://a.example/");
        check(Scheme::Https, Some(443), "/", "https://a.example/");
        check(Scheme::Http, Some(443), "/", "http://a.example:443/");
    }

    #[test]
    fn parts_are_left_out_on_demand() {
        let policy = KeyPolicy {
            scheme: Part::LeftOut,
            host: Part::LeftOut,
            query: Query::LeftOut,
            ..KeyPolicy::default()
        };
        assert_eq!(key(Scheme::Http, &request("a", Some(1), "/p?q", &[]), &policy), "///p");
    }

    #[test]
    fn parameters_are_chosen_and_sorted() {
        let check = |target: &str, select: &Select, order, expected: &str| {
            let query = Query::Parameters { select: select.clone(), order };
            let policy = KeyPolicy { query, ..KeyPolicy::default() };
            let key = key(Scheme::Http, &request("a", None, target, &[]), &policy);
            assert_eq!(key.strip_prefix("http://a").unwrap(), expected, "{target}");
        };
        let all = Select::All;
        check("/?b=1&a=2&b=0", &all, Order::AsSent, "/?b=1&a=2&b=0");
        check("/?b=1&a=2&b=0", &all, Order::Sorted, "/?a=2&b=1&b=0");
        check("/?a=1&&b", &all, Order::Sorted, "/?a=1&b");
        check("/?", &all, Order::Sorted, "/");
        check("/", &all, Order::Sorted, "/");
        let only = Select::Only(patterns(&["a", "p*"]));
        check("/?page=2&x=1&a=3&ab=4", &only, Order::AsSent, "/?page=2&a=3");
        let without = Select::Without(patterns(&["utm_*", "fbclid"]));
        check("/?utm_source=x&a=1&fbclid=2&b", &without, Order::AsSent, "/?a=1&b");
        check("/?utm_source=x", &without, Order::AsSent, "/");
    }

    #[test]
    fn fields_and_cookies_follow() {
        let policy = KeyPolicy {
            headers: vec![Box::from(&b"X-Currency"[..])],
            cookies: vec![Box::from(&b"group"[..])],
            ..KeyPolicy::default()
        };
        let key =
            |fields: &[(&str, &str)]| key(Scheme::Http, &request("a", None, "/", fields), &policy);
        assert_eq!(key(&[]), "http://a/");
        assert_eq!(key(&[("x-currency", "EUR")]), "http://a/\0hx-currency:EUR");
        assert_eq!(key(&[("x-currency", "")]), "http://a/\0hx-currency:");
        assert_eq!(
            key(&[("Cookie", "a=1; group=7"), ("X-Currency", "EUR")]),
            "http://a/\0hx-currency:EUR\0cgroup=7"
        );
        assert_eq!(key(&[("Cookie", "Group=7")]), "http://a/");
    }

    #[test]
    fn different_requests_have_different_keys() {
        let policy = KeyPolicy {
            headers: vec![Box::from(&b"h"[..]), Box::from(&b"i"[..])],
            cookies: vec![Box::from(&b"c"[..])],
            ..KeyPolicy::default()
        };
        let pieces = ["", "a", "\0", "\x01", "\0hi:a", "\x01\x02", "?", "&", "/", "\0cc=a"];
        let mut seen: HashMap<String, (usize, usize, usize, usize)> = HashMap::new();
        for (at_path, path) in pieces.iter().enumerate() {
            for (at_query, query) in pieces.iter().enumerate() {
                for (at_first, first) in pieces.iter().enumerate() {
                    for (at_second, second) in pieces.iter().enumerate() {
                        // The first `?` parts path and query, and so a path has none.
                        let path = path.replace('?', "%3F");
                        let request = request(
                            "a",
                            None,
                            &format!("/{path}?{query}"),
                            &[("h", first), ("i", second)],
                        );
                        let key = key(Scheme::Http, &request, &policy);
                        let at = (at_path, at_query, at_first, at_second);
                        assert_eq!(seen.insert(key.clone(), at), None, "{key:?} {at:?}");
                    }
                }
            }
        }
    }
}
