//! Which route of a site a request takes.
//!
//! Paths are compared in normal form ([`tidegate_http::target`]). An exact rule wins over a prefix, a
//! longer prefix over a shorter one; among rules of one path, one that lists the method wins over one
//! that takes all. If a path is known but not with this method, less specific rules get their turn,
//! and if none takes it the answer is 405 with what would be allowed (RFC 9110, section 15.5.6).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use tidegate_http::Method;

use crate::settings::{MethodName, PathRule, Route};

/// The paths of one site.
#[derive(Debug, Default)]
pub struct RouteTable {
    exact: HashMap<Box<[u8]>, Vec<Candidate>, RandomState>,
    prefix: HashMap<Box<[u8]>, Vec<Candidate>, RandomState>,
    /// Lengths of prefixes that occur, longest first.
    prefix_lens: Vec<usize>,
}

#[derive(Debug)]
struct Candidate {
    route: usize,
    methods: Vec<MethodName>,
}

/// The outcome of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteMatch {
    /// This route, by index.
    Found(usize),
    /// Routes cover the path, but not with this method.
    MethodNotAllowed,
    /// No route covers the path.
    NotFound,
}

impl RouteTable {
    /// A table of a site's routes.
    pub fn new(routes: &[Route]) -> Self {
        let mut table = Self::default();
        for (index, route) in routes.iter().enumerate() {
            let (map, path) = match &route.path {
                PathRule::Exact(path) => (&mut table.exact, path),
                PathRule::Prefix(path) => (&mut table.prefix, path),
            };
            let candidates = map.entry(path.as_bytes().into()).or_default();
            candidates.push(Candidate { route: index, methods: route.methods.clone() });
            // Stable: routes that list methods come first, otherwise the order of the file.
            candidates.sort_by_key(|candidate| candidate.methods.is_empty());
        }
        table.prefix_lens = table.prefix.keys().map(|path| path.len()).collect();
        table.prefix_lens.sort_unstable_by(|a, b| b.cmp(a));
        table.prefix_lens.dedup();
        table
    }

    /// The route for a normalised path and a method.
    pub fn find(&self, path: &[u8], method: Method, method_text: &[u8]) -> RouteMatch {
        let mut outcome = RouteMatch::NotFound;
        for candidates in self.covering(path) {
            for candidate in candidates {
                if candidate.takes(method, method_text) {
                    return RouteMatch::Found(candidate.route);
                }
            }
            outcome = RouteMatch::MethodNotAllowed;
        }
        outcome
    }

    /// Every route whose path rule covers this path, the most specific first.
    pub fn candidates(&self, path: &[u8]) -> Vec<usize> {
        self.covering(path).flatten().map(|candidate| candidate.route).collect()
    }

    /// The methods that some route takes at this path, for `Allow`.
    pub fn allowed(&self, path: &[u8]) -> Vec<String> {
        let mut allowed: Vec<String> = Vec::new();
        for name in self.covering(path).flatten().flat_map(|candidate| &candidate.methods) {
            if !allowed.contains(&name.text) {
                allowed.push(name.text.clone());
            }
        }
        allowed
    }

    fn covering<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = &'a [Candidate]> {
        let exact = if self.exact.is_empty() { None } else { self.exact.get(path) };
        let prefixes = self.prefix_lens.iter().filter_map(move |&len| {
            if len > path.len() || !is_boundary(path, len) {
                return None;
            }
            self.prefix.get(&path[..len])
        });
        exact.into_iter().chain(prefixes).map(Vec::as_slice)
    }
}

impl Candidate {
    fn takes(&self, method: Method, text: &[u8]) -> bool {
        self.methods.is_empty()
            || self.methods.iter().any(|name| match method {
                Method::Other => name.text.as_bytes() == text,
                method => name.method == method,
            })
    }
}

/// Whether a prefix of this length ends where a segment of the path ends.
fn is_boundary(path: &[u8], len: usize) -> bool {
    len == path.len() || path[len] == b'/' || len > 0 && path[len - 1] == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::fixture;

    fn table(rules: &[(PathRule, &[(Method, &str)])]) -> RouteTable {
        let routes: Vec<Route> = rules
            .iter()
            .map(|(path, methods)| {
                let mut route = fixture::route(path.clone());
                route.methods = methods
                    .iter()
                    .map(|(method, text)| MethodName { method: *method, text: (*text).into() })
                    .collect();
                route
            })
            .collect();
        RouteTable::new(&routes)
    }

    fn prefix(path: &str) -> PathRule {
        PathRule::Prefix(path.into())
    }

    fn exact(path: &str) -> PathRule {
        PathRule::Exact(path.into())
    }

    #[test]
    fn the_most_specific_path_wins() {
        let table = table(&[
            (prefix("/"), &[]),
            (prefix("/a"), &[]),
            (prefix("/a/b/"), &[]),
            (exact("/a/b/c"), &[]),
        ]);
        let check = |path: &str, expected: usize| {
            let found = table.find(path.as_bytes(), Method::Get, b"GET");
            assert_eq!(found, RouteMatch::Found(expected), "{path}");
        };
        check("/", 0);
        check("/ab", 0);
        check("/a", 1);
        check("/a/", 1);
        check("/a/b", 1);
        check("/a/b/", 2);
        check("/a/b/x", 2);
        check("/a/b/c", 3);
        check("/a/b/c/", 2);
    }

    #[test]
    fn methods_choose_among_rules_and_fall_through_to_wider_ones() {
        let table = table(&[
            (prefix("/a"), &[]),
            (prefix("/a"), &[(Method::Post, "POST")]),
            (prefix("/b"), &[(Method::Get, "GET"), (Method::Other, "PURGE")]),
        ]);
        let check = |path: &str, method: Method, text: &str, expected: RouteMatch| {
            assert_eq!(table.find(path.as_bytes(), method, text.as_bytes()), expected, "{path}");
        };
        check("/a", Method::Post, "POST", RouteMatch::Found(1));
        check("/a", Method::Get, "GET", RouteMatch::Found(0));
        check("/b", Method::Other, "PURGE", RouteMatch::Found(2));
        check("/b", Method::Other, "BAN", RouteMatch::MethodNotAllowed);
        check("/c", Method::Get, "GET", RouteMatch::NotFound);
        assert_eq!(table.allowed(b"/b"), ["GET", "PURGE"]);
    }
}
