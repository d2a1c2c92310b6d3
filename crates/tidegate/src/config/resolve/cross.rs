//! Checks that look across sections, once all of them are resolved.

use std::net::SocketAddr;

use tidegate_http::Method;
use tidegate_proxy::plan::{RouteMatch, RouteTable, SiteTable};
use tidegate_proxy::settings::{Action, Address, Endpoint, Host, HttpsRedirect, PathRule};
use tidegate_proxy::template::{Template, Variable};

use super::super::diagnostic::{Diagnostic, Severity, code};
use super::super::reader::Reading;
use super::group;
use super::listen::{self, Security};
use super::log::Logs;
use super::site;

/// All that was found.
pub(super) struct Everything<'a> {
    pub(super) listeners: &'a [listen::Found],
    pub(super) groups: &'a [group::Found],
    pub(super) sites: &'a [site::Found],
    pub(super) logs: &'a Logs,
}

pub(super) fn check(all: &Everything<'_>, reading: &mut Reading<'_>) {
    upstream_loops(all, reading);
    unused(all, reading);
    https_without_tls(all, reading);
    uncovered_hosts(all, reading);
    redirect_loops(all, reading);
    timeouts(all, reading);
}

/// A server that is this gate itself would get each request again and again.
fn upstream_loops(all: &Everything<'_>, reading: &mut Reading<'_>) {
    for found in all.groups {
        for (server, span) in found.group.servers.iter().zip(&found.servers) {
            let own =
                all.listeners.iter().find(|own| is_same(&own.listener.address, &server.endpoint));
            if let Some(own) = own {
                let message = "this server is the gate itself: a request would go round for ever";
                let mut diagnostic = Diagnostic::new(&code::UPSTREAM_LOOP, *span, message);
                if let Some(listener) = own.span {
                    diagnostic = diagnostic.beside(listener, "it listens here");
                }
                reading.report(diagnostic.hint("name the address of the server behind the gate"));
            }
        }
    }
}

fn is_same(listener: &Address, endpoint: &Endpoint) -> bool {
    match (listener, endpoint) {
        (Address::Unix(a), Endpoint::Unix(b)) => a == b,
        (Address::Tcp(listener), Endpoint::Address(server)) => reaches(*server, *listener),
        (Address::Tcp(listener), Endpoint::Name(name, port)) => {
            let local = listener.ip().is_loopback() || listener.ip().is_unspecified();
            name == "localhost" && *port == listener.port() && local
        }
        _ => false,
    }
}

fn reaches(server: SocketAddr, listener: SocketAddr) -> bool {
    let everywhere = listener.ip().is_unspecified()
        && listener.is_ipv4() == server.is_ipv4()
        && server.ip().is_loopback();
    server.port() == listener.port() && (server.ip() == listener.ip() || everywhere)
}

/// What nobody uses. After an error it would be told of what a misspelt name left unused.
fn unused(all: &Everything<'_>, reading: &mut Reading<'_>) {
    if reading.diagnostics.count(Severity::Error) > 0 {
        return;
    }
    for found in all.groups.iter().filter(|found| found.routes == 0) {
        let message = format!("no route uses the group `{}`", found.group.name);
        reading.report(Diagnostic::new(&code::UNUSED, found.span, message));
    }
    if !all.sites.is_empty() {
        for (name, span) in all.logs.unused() {
            let message = format!("no site writes to the log `{name}`");
            let diagnostic = Diagnostic::new(&code::UNUSED, span, message);
            reading.report(diagnostic.hint(format!("add `logs = [\"{name}\"]` to a site")));
        }
    }
}

fn has_tls(all: &Everything<'_>) -> bool {
    all.listeners.iter().any(|found| found.security == Security::Tls)
}

fn https_without_tls(all: &Everything<'_>, reading: &mut Reading<'_>) {
    if has_tls(all) {
        return;
    }
    for found in all.sites {
        if let Some(span) = found.https {
            reading.report(
                Diagnostic::new(
                    &code::NO_TLS,
                    span,
                    "plain text is redirected to https, and no listener speaks TLS",
                )
                .hint("add `[[listen]]` with `[listen.tls]`; if another gate speaks TLS, name its port: `https_redirect = 443`"),
            );
        }
        if let Some(span) = found.hsts {
            reading.report(
                Diagnostic::new(
                    &code::NO_TLS,
                    span,
                    "Strict-Transport-Security is only sent over TLS, and no listener speaks it",
                )
                .hint("add `[[listen]]` with `[listen.tls]`"),
            );
        }
    }
}

fn uncovered_hosts(all: &Everything<'_>, reading: &mut Reading<'_>) {
    let tls: Vec<_> =
        all.listeners.iter().filter(|found| found.security == Security::Tls).collect();
    // What covers what is only known if all certificates could be read.
    let built: Vec<_> = tls.iter().filter_map(|found| found.listener.tls.as_ref()).collect();
    if tls.is_empty() || built.len() < tls.len() {
        return;
    }
    for found in all.sites {
        for (host, span) in found.site.hosts.iter().zip(&found.hosts) {
            let name = match host {
                Host::Exact(name) if !is_address(name) => name.clone(),
                Host::Below(name) => format!("*.{name}"),
                Host::Exact(_) | Host::Any => continue,
            };
            if !built.iter().any(|tls| tls.covers(&name)) {
                reading.report(
                    Diagnostic::new(
                        &code::UNCOVERED_HOST,
                        *span,
                        format!("no certificate is made out to `{name}`: browsers will refuse it"),
                    )
                    .hint("add its certificate to `certificates` in `[listen.tls]`"),
                );
            }
        }
    }
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Follows each redirect once, through the look-ups that requests take: one that comes out where it
/// began never ends.
fn redirect_loops(all: &Everything<'_>, reading: &mut Reading<'_>) {
    let redirects = all.sites.iter().any(|found| {
        found.site.routes.iter().any(|route| matches!(route.action, Action::Redirect { .. }))
    });
    if !redirects {
        return;
    }
    let sites = SiteTable::new(all.sites.iter().map(|found| found.site.hosts.as_slice()));
    for (site_index, found) in all.sites.iter().enumerate() {
        let routes = RouteTable::new(&found.site.routes);
        for (route_index, route) in found.site.routes.iter().enumerate() {
            let Action::Redirect { to, .. } = &route.action else { continue };
            let sample = Sample::of(&found.site.hosts, &route.path);
            let target = sample.follow(to);
            let Some((scheme, host, path)) = split(&target, &sample.host) else { continue };
            let served = match scheme {
                None => true,
                Some("https") => has_tls(all),
                Some(_) => {
                    found.site.https == HttpsRedirect::Off
                        && all.listeners.iter().any(|found| found.security == Security::Plain)
                }
            };
            let method = route.methods.first().map_or(Method::Get, |name| name.method);
            let lands = served
                && sites.find(host.as_bytes()) == Some(site_index)
                && routes.find(path.as_bytes(), method, method.name().as_bytes())
                    == RouteMatch::Found(route_index);
            if lands {
                reading.report(
                    Diagnostic::new(
                        &code::REDIRECT_LOOP,
                        found.routes[route_index],
                        "this redirect leads to itself",
                    )
                    .label(format!("`{}{}` leads to `{target}`", sample.host, sample.path))
                    .hint("for http to https, write `https_redirect = true`; for one host, `canonical_host`"),
                );
            }
        }
    }
}

/// A request that a route serves.
struct Sample {
    host: String,
    path: String,
}

impl Sample {
    fn of(hosts: &[Host], path: &PathRule) -> Sample {
        let host = match hosts.first() {
            Some(Host::Exact(name)) => name.clone(),
            Some(Host::Below(name)) => format!("any.{name}"),
            Some(Host::Any) | None => "any.invalid".into(),
        };
        let path = match path {
            PathRule::Exact(path) => path.clone(),
            PathRule::Prefix(path) => format!("{}/any", path.trim_end_matches('/')),
        };
        Sample { host, path }
    }

    fn follow(&self, to: &str) -> String {
        let mut out = Vec::new();
        Template::parse(to).write(&mut out, |variable, out| match variable {
            Variable::Host => out.extend_from_slice(self.host.as_bytes()),
            Variable::Path | Variable::Uri => out.extend_from_slice(self.path.as_bytes()),
            _ => {}
        });
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Scheme, host and path of a redirect's target; `None` for a port of its own, which may be anybody's.
fn split<'a>(target: &'a str, own_host: &'a str) -> Option<(Option<&'a str>, &'a str, &'a str)> {
    let (scheme, rest) = match target.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, target),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = if scheme.is_some() { rest.split_at(end) } else { (own_host, rest) };
    if host.contains(':') {
        return None;
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Some((scheme, host, if path.is_empty() { "/" } else { path }))
}

/// A time-out of a route that ends before its group's connection can fail.
fn timeouts(all: &Everything<'_>, reading: &mut Reading<'_>) {
    for found in all.sites {
        for (route, span) in found.site.routes.iter().zip(&found.routes) {
            let Action::Group(index) = route.action else { continue };
            let Some(group) = all.groups.get(index) else { continue };
            if let Some(whole) = route.timeouts.whole
                && whole < group.group.connect_timeout
            {
                reading.report(
                    Diagnostic::new(
                        &code::TIMEOUT_ORDER,
                        *span,
                        "`whole_timeout` ends before an attempt to connect does, so no other server is tried",
                    )
                    .hint(format!(
                        "`whole_timeout` is {}, the group's `connect_timeout` {}",
                        super::super::value::show_duration(whole),
                        super::super::value::show_duration(group.group.connect_timeout)
                    )),
                );
            }
        }
    }
}
