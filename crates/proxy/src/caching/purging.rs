//! Purges as operators ask for them: by URL, prefix, tag, site, or everything.
//!
//! What is asked for is text, and the same text means the same on every gate; which hashes it comes
//! to is found here, by the sites and routes of the plan in service. A URL is written as the keys of
//! its routes are, so parameters that do not count do not count here either. It is purged under `http`
//! and `https`, with all variants, and whatever fields and cookies its key has besides: too much
//! rather than too little.

use std::fmt;

use tidegate_cache::key::{KeyBuffer, Uri};
use tidegate_cache::store::Key;
use tidegate_cache::store::purge::{self, Fault, Force, PREFIX_BYTES_MAX, Scope};
use tidegate_cache::tags::Tag;
use tidegate_cache::time::Time;
use tidegate_http::Request;
use tidegate_http::error::{HostError, TargetError};
use tidegate_http::target::{self, Form, PathForm, Scheme};

use super::{Cache, Kept, keys};
use crate::plan::{Plan, Site};

/// What is to be purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A URL with all its variants: `https://example.org/a?b=c`. The scheme may be missing.
    Url(Vec<u8>),
    /// All below a path of the site that serves a host: `https://example.org/blog/`.
    Prefix(Vec<u8>),
    /// All that has a tag, on one site or on all.
    Tag {
        /// The tag.
        tag: Vec<u8>,
        /// The name of the site.
        site: Option<String>,
    },
    /// All of the site with this name.
    Site(String),
    /// All there is.
    Everything,
}

/// Why something was not purged.
#[derive(Debug)]
pub enum NotPurged {
    /// It is no URL with a host.
    Url(TargetError),
    /// Its host is none.
    Host(HostError),
    /// No site serves its host.
    NoSite(String),
    /// No site has this name.
    NoSuchSite(String),
    /// No cached route covers its path.
    NotCached,
    /// A prefix has no query.
    Query,
    /// A tag is empty, or has white space or commas in it.
    Tag,
    /// A prefix is longer than [`PREFIX_BYTES_MAX`].
    TooLong,
    /// It is purged, but could not be written: it may be there again after a restart.
    Unwritten(Fault),
}

impl fmt::Display for NotPurged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => write!(f, "not a URL with a host: {error}"),
            Self::Host(error) => write!(f, "not a URL with a host: {error}"),
            Self::NoSite(host) => write!(f, "no site serves the host `{host}`"),
            Self::NoSuchSite(name) => write!(f, "there is no site `{name}`"),
            Self::NotCached => write!(f, "no route with a cache covers its path"),
            Self::Query => write!(f, "a prefix ends before the query"),
            Self::Tag => write!(f, "a tag has at least one letter, and no white space or commas"),
            Self::TooLong => write!(f, "a prefix may have {PREFIX_BYTES_MAX} bytes"),
            Self::Unwritten(fault) => {
                write!(f, "purged, but perhaps not after a restart: {fault}")
            }
        }
    }
}

impl std::error::Error for NotPurged {}

impl Cache {
    /// Purges all of `whats`, or, where one of them cannot be, nothing, and says which. Once this
    /// returns no worker serves any of it as fresh, and what is being fetched does not survive either.
    /// Returns the number of the last purge.
    ///
    /// May wait for the disk: not for a worker's loop.
    pub fn purge(
        &self,
        plan: &Plan,
        whats: &[What],
        force: Force,
        now: Time,
    ) -> Result<u64, (usize, NotPurged)> {
        let mut meant = Vec::with_capacity(whats.len());
        for (at, what) in whats.iter().enumerate() {
            self.resolve(plan, what, &mut meant).map_err(|why| (at, why))?;
        }
        let purges: Vec<_> =
            meant.iter().map(|meant| purge::Purge { scope: meant.scope(), force }).collect();
        let last = self.purges.purge(&purges, now);
        last.map(purge::Sequence::number).map_err(|fault| (0, NotPurged::Unwritten(fault)))
    }

    /// What a purge means under this plan.
    fn resolve(&self, plan: &Plan, what: &What, out: &mut Vec<Meant>) -> Result<(), NotPurged> {
        match what {
            What::Everything => out.push(Meant::Hashed(Scope::Everything)),
            What::Site(name) => out.push(Meant::Hashed(Scope::Site(self.site(plan, name)?))),
            What::Tag { tag, site } => {
                let separates = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
                if tag.is_empty() || tag.iter().any(separates) {
                    return Err(NotPurged::Tag);
                }
                let tag = Tag::of(tag, &self.seed);
                out.push(Meant::Hashed(match site {
                    Some(name) => Scope::SiteTag { site: self.site(plan, name)?, tag },
                    None => Scope::Tag(tag),
                }));
            }
            What::Prefix(url) => {
                let target = Target::of(url)?;
                if target.request.query().is_some() {
                    return Err(NotPurged::Query);
                }
                let site = target.site(plan)?;
                let path = target.path.into_boxed_slice();
                if path.len() > PREFIX_BYTES_MAX {
                    return Err(NotPurged::TooLong);
                }
                out.push(Meant::Prefix { site: self.site_hash(site), path });
            }
            What::Url(url) => self.resolve_url(plan, url, out)?,
        }
        Ok(())
    }

    fn resolve_url(&self, plan: &Plan, url: &[u8], out: &mut Vec<Meant>) -> Result<(), NotPurged> {
        let target = Target::of(url)?;
        let site = target.site(plan)?;
        let first = out.len();
        let (mut buffer, mut text) = (KeyBuffer::new(), Vec::new());
        // Routes of one path differ by method, and perhaps by what counts for their keys.
        for route in site.route_table.candidates(&target.path) {
            let Some(caching) = &site.routes[route].settings.caching else { continue };
            let policy = &caching.policy.key;
            for scheme in [Scheme::Http, Scheme::Https] {
                let own = Uri::of(scheme, &target.request);
                let uri = Uri { path: &target.path, port: target.port, ..own };
                let name = &site.settings.name;
                keys::write(&mut buffer, &mut text, name, &uri, &target.request, policy);
                let key = Key::new(keys::url_of(&text, policy), &self.seed);
                // Whoever purges may have mended what kept it from being stored.
                let is_note = |kept: &Kept| matches!(kept, Kept::Pass(_));
                drop(self.memory.remove_if(&key, is_note));
                let meant = Meant::Hashed(Scope::Url(key.hash()));
                if !out[first..].contains(&meant) {
                    out.push(meant);
                }
            }
        }
        if out.len() == first { Err(NotPurged::NotCached) } else { Ok(()) }
    }

    fn site(&self, plan: &Plan, name: &str) -> Result<u64, NotPurged> {
        let site = plan.sites.iter().find(|site| site.settings.name == name);
        let site = site.ok_or_else(|| NotPurged::NoSuchSite(name.to_owned()))?;
        Ok(self.site_hash(site))
    }

    /// By which number purges know a site.
    pub(crate) fn site_hash(&self, site: &Site) -> u64 {
        self.seed.hash(site.settings.name.as_bytes())
    }
}

/// A purge as the store takes it, with what it would borrow.
#[derive(Debug, PartialEq, Eq)]
enum Meant {
    Hashed(Scope<'static>),
    Prefix { site: u64, path: Box<[u8]> },
}

impl Meant {
    fn scope(&self) -> Scope<'_> {
        match self {
            Meant::Hashed(scope) => *scope,
            Meant::Prefix { site, path } => Scope::Prefix { site: *site, path },
        }
    }
}

/// A URL, taken apart as a request's target is.
#[derive(Debug)]
pub(super) struct Target {
    /// A request for it, without fields.
    pub(super) request: Request,
    /// Its path in normal form.
    pub(super) path: Vec<u8>,
    /// The port, if one is written that its scheme does not mean anyway.
    pub(super) port: Option<u16>,
}

impl Target {
    pub(super) fn of(url: &[u8]) -> Result<Target, NotPurged> {
        let whole;
        let with_scheme = match url {
            [b'/', b'/', ..] => {
                whole = [b"http:", url].concat();
                &whole
            }
            [b'/', ..] => return Err(NotPurged::Url(TargetError::Form)),
            _ if memchr::memmem::find(url, b"://").is_none() => {
                whole = [b"http://", url].concat();
                &whole
            }
            _ => url,
        };
        let form = target::form(with_scheme).map_err(NotPurged::Url)?;
        let Form::Absolute { scheme, authority, path_and_query } = form else {
            return Err(NotPurged::Url(TargetError::Form));
        };
        let mut request = Request::new();
        let port = target::host(authority, &mut request.host).map_err(NotPurged::Host)?;
        match path_and_query {
            [b'/', ..] => request.set_path_and_query(path_and_query),
            rest => request.set_path_and_query(&[b"/", rest].concat()),
        }
        let mut path = Vec::new();
        match target::normalize_path(request.path(), &mut path).map_err(NotPurged::Url)? {
            PathForm::Rewritten => {}
            PathForm::Normal => request.path().clone_into(&mut path),
        }
        let port = port.filter(|port| *port != scheme.default_port());
        Ok(Target { request, path, port })
    }

    pub(super) fn site<'p>(&self, plan: &'p Plan) -> Result<&'p Site, NotPurged> {
        let host = &self.request.host;
        plan.site_for(host)
            .ok_or_else(|| NotPurged::NoSite(String::from_utf8_lossy(host).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_with_and_without_a_scheme() {
        let check = |url: &str, host: &str, path: &str, query: Option<&str>, port| {
            let target = Target::of(url.as_bytes()).unwrap();
            assert_eq!(target.request.host, host.as_bytes(), "{url}");
            assert_eq!(target.path, path.as_bytes(), "{url}");
            assert_eq!(target.request.query(), query.map(str::as_bytes), "{url}");
            assert_eq!(target.port, port, "{url}");
        };
        check("https://Example.org/a/../b?c", "example.org", "/b", Some("c"), None);
        check("https://example.org:443", "example.org", "/", None, None);
        check("http://example.org:443/", "example.org", "/", None, Some(443));
        check("//example.org:8080/a", "example.org", "/a", None, Some(8080));
        check("example.org/a?u=b", "example.org", "/a", Some("u=b"), None);
        check("example.org:8080", "example.org", "/", None, Some(8080));
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in ["", "/path", "ftp://a/", "http://", "http://a b/", "http://u@a/", "a/#b"] {
            assert!(Target::of(url.as_bytes()).is_err(), "{url}");
        }
    }
}
