//! Which site a host belongs to.
//!
//! A look-up hashes the host once, and once more for each of its labels where wildcards exist, so ten
//! thousand sites cost what one costs. The most specific name wins: an exact one before
//! a wildcard, a longer wildcard before a shorter one, the default site last.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::settings::Host;

/// Hosts to sites, by index.
#[derive(Debug, Default)]
pub struct SiteTable {
    exact: HashMap<Box<[u8]>, u32, RandomState>,
    below: HashMap<Box<[u8]>, u32, RandomState>,
    any: Option<u32>,
}

/// How a host was found to belong to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMatch {
    /// It is listed by name.
    Exact,
    /// A wildcard covers it: the part behind `*.`.
    Below(String),
    /// No name covers it; this is the default site.
    Any,
}

impl SiteTable {
    /// A table of what each site lists; where two list the same host, the first has it.
    pub fn new<'a>(sites: impl Iterator<Item = &'a [Host]>) -> Self {
        let mut table = Self::default();
        for (index, hosts) in sites.enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            for host in hosts {
                match host {
                    Host::Exact(name) => {
                        table.exact.entry(name.as_bytes().into()).or_insert(index);
                    }
                    Host::Below(name) => {
                        table.below.entry(name.as_bytes().into()).or_insert(index);
                    }
                    Host::Any => {
                        table.any.get_or_insert(index);
                    }
                }
            }
        }
        table
    }

    /// The site of a host in lower case without port. A trailing dot is the same host without
    /// (RFC 3986, section 3.2.2).
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        let host = host.strip_suffix(b".").unwrap_or(host);
        let index = self.exact.get(host).or_else(|| self.find_below(host).map(|(_, site)| site));
        index.copied().or(self.any).map(|index| index as usize)
    }

    /// How [`SiteTable::find`] comes to its answer.
    pub fn explain(&self, host: &[u8]) -> Option<(usize, HostMatch)> {
        let host = host.strip_suffix(b".").unwrap_or(host);
        let (index, how) = if let Some(index) = self.exact.get(host) {
            (*index, HostMatch::Exact)
        } else if let Some((name, index)) = self.find_below(host) {
            (*index, HostMatch::Below(String::from_utf8_lossy(name).into_owned()))
        } else {
            (self.any?, HostMatch::Any)
        };
        Some((index as usize, how))
    }

    fn find_below<'a>(&'a self, host: &'a [u8]) -> Option<(&'a [u8], &'a u32)> {
        if self.below.is_empty() {
            return None;
        }
        memchr::memchr_iter(b'.', host).find_map(|dot| {
            let parent = &host[dot + 1..];
            self.below.get(parent).map(|site| (parent, site))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sites: &[&[Host]], host: &str, expected: Option<usize>) {
        let table = SiteTable::new(sites.iter().copied());
        assert_eq!(table.find(host.as_bytes()), expected, "{host}");
        assert_eq!(table.explain(host.as_bytes()).map(|(site, _)| site), expected, "{host}");
    }

    #[test]
    fn the_most_specific_name_wins() {
        let exact = |name: &str| Host::Exact(name.into());
        let below = |name: &str| Host::Below(name.into());
        let sites: &[&[Host]] = &[
            &[below("example.org")],
            &[exact("www.example.org"), exact("example.org")],
            &[below("a.example.org")],
            &[Host::Any],
        ];
        check(sites, "www.example.org", Some(1));
        check(sites, "www.example.org.", Some(1));
        check(sites, "example.org", Some(1));
        check(sites, "x.example.org", Some(0));
        check(sites, "a.example.org", Some(0));
        check(sites, "x.a.example.org", Some(2));
        check(sites, "x.y.a.example.org", Some(2));
        check(sites, "notexample.org", Some(3));
        check(sites, "", Some(3));
        check(&sites[..3], "other.net", None);
    }
}
