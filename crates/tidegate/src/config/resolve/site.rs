//! `[[site]]`: its hosts, its routes, and what it writes to which logs.

use std::collections::HashMap;

use tidegate_proxy::settings::{Host, HttpsRedirect, PathRule, Route, Site};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::{Https, route as route_options, site};
use super::super::reader::{Owner, Reading, Scope};
use super::super::source::Span;
use super::super::suggest;
use super::group::Groups;
use super::log::Logs;
use super::route;
use super::waf::Firewall;

/// A site and what later checks want to know of it.
pub(super) struct Found {
    pub(super) site: Site,
    /// Where each host stands.
    pub(super) hosts: Vec<Span>,
    /// Where each route stands.
    pub(super) routes: Vec<Span>,
    /// Where it asks for https on a listener of this gate, if it does.
    pub(super) https: Option<Span>,
    /// Where it sends `Strict-Transport-Security`, if it does.
    pub(super) hsts: Option<Span>,
}

/// What all sites share while they are resolved.
pub(super) struct Shared<'a, 'n> {
    pub(super) groups: &'a mut Groups<'n>,
    pub(super) firewall: &'a mut Firewall<'n>,
    /// `[cache]`.
    pub(super) cache: Scope<'n>,
    pub(super) logs: &'a mut Logs,
    /// The port of the first TLS listener.
    pub(super) https_port: u16,
    /// Which site has a host, and where it says so.
    pub(super) hosts: HashMap<Host, Span>,
    /// Names given to sites.
    pub(super) names: HashMap<String, Span>,
}

pub(super) fn resolve(
    root: &Scope<'_>,
    defaults: &Scope<'_>,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> Vec<Found> {
    let scopes = root.children(&site::SECTION);
    if scopes.is_empty() {
        reading.report(
            Diagnostic::nowhere(
                &code::NO_SITES,
                "there is no site: every request would be answered with 404",
            )
            .hint(
                "add `[[site]]` with `host = \"example.org\"` and `upstream = \"127.0.0.1:3000\"`",
            ),
        );
    }
    let scopes = scopes.into_iter().enumerate();
    scopes
        .filter(|(_, scope)| scope.is_table())
        .map(|(index, scope)| {
            one(index, &scope.of(Owner::Site(index)).under(defaults), shared, reading)
        })
        .collect()
}

fn one(
    index: usize,
    scope: &Scope<'_>,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> Found {
    let (hosts, host_spans) = hosts(scope, shared, reading);
    let name = scope.find(&site::NAME, reading);
    if let Some(name) = &name
        && let Some(span) = name.span
    {
        if let Some(first) = shared.names.get(&name.value) {
            let message = format!("another site has the name {}", reading.shown(&name.value, span));
            reading.report(
                Diagnostic::new(&code::DUPLICATE_NAME, span, message)
                    .beside(*first, "the other one"),
            );
        }
        shared.names.entry(name.value.clone()).or_insert(span);
    }
    let name = name.map(|name| name.value).or(hosts.first().map(host_text));

    let https_redirect = scope.read(&site::HTTPS_REDIRECT, reading);
    let https = match https_redirect.value {
        Https::Off => HttpsRedirect::Off,
        Https::ListenerPort => HttpsRedirect::To(shared.https_port),
        Https::Port(port) => HttpsRedirect::To(port),
    };
    let canonical_host = scope.find(&site::CANONICAL_HOST, reading);
    if let Some(canonical) = &canonical_host
        && !hosts.is_empty()
        && !hosts.iter().any(|host| holds(host, &canonical.value))
    {
        let span = canonical.span.unwrap_or(scope.place());
        let first = host_spans.first().copied().unwrap_or(span);
        let shown = reading.shown(&canonical.value, span);
        reading.report(
            Diagnostic::new(
                &code::CANONICAL_HOST,
                span,
                format!("{shown} is not a host of this site, so the redirect would leave it"),
            )
            .beside(first, "its hosts")
            .hint("add it to `hosts`"),
        );
    }
    let hsts = scope.find(&site::HSTS, reading);
    let logs = logs(scope, shared.logs, reading);
    let (routes, route_spans) = routes(index, scope, shared, reading);
    let site = Site {
        name: name.unwrap_or_else(|| format!("site {}", index + 1)),
        hosts,
        https,
        canonical_host: canonical_host.map(|host| host.value),
        hsts: hsts.as_ref().map(|hsts| hsts.value.clone()),
        routes,
        logs,
    };
    Found {
        https: https_redirect.span.filter(|_| https_redirect.value == Https::ListenerPort),
        hsts: hsts.and_then(|hsts| hsts.span),
        site,
        hosts: host_spans,
        routes: route_spans,
    }
}

fn hosts(
    scope: &Scope<'_>,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> (Vec<Host>, Vec<Span>) {
    let single = scope.find(&site::HOST, reading);
    let several = scope.find(&site::HOSTS, reading);
    match (scope.key_span(site::HOST.key), scope.key_span(site::HOSTS.key)) {
        (Some(host), Some(hosts)) => reading.report(
            Diagnostic::new(&code::CONTRADICTION, hosts, "`host` and `hosts` say the same thing")
                .beside(host, "the other one")
                .hint("put all hosts into `hosts`"),
        ),
        (None, None) => reading.report_missing(
            scope,
            Diagnostic::new(&code::MISSING_OPTION, scope.place(), "[[site]] has no host")
                .hint("add `host = \"example.org\"`, or `host = \"*\"` for the default site"),
        ),
        (None, Some(hosts)) if several.as_ref().is_some_and(|list| list.value.is_empty()) => {
            let is_empty = scope.node(site::HOSTS.key).is_some_and(|node| {
                matches!(&node.value, super::super::node::Value::Array(list) if list.is_empty())
            });
            if is_empty {
                reading.report(
                    Diagnostic::new(&code::MISSING_OPTION, hosts, "the list of hosts is empty")
                        .hint("name a host, or `\"*\"` for the default site"),
                );
            }
        }
        _ => {}
    }
    let mut hosts = Vec::new();
    let mut spans = Vec::new();
    for found in single.into_iter().chain(several.into_iter().flat_map(|list| list.value)) {
        let span = found.span.unwrap_or(scope.place());
        if let Some(first) = shared.hosts.get(&found.value) {
            let whose = if hosts.contains(&found.value) { "this site" } else { "another site" };
            let host = reading.shown(&host_text(&found.value), span);
            let message = format!("{whose} has the host {host} already");
            reading.report(
                Diagnostic::new(&code::DUPLICATE_HOST, span, message)
                    .beside(*first, "first listed here"),
            );
            continue;
        }
        shared.hosts.insert(found.value.clone(), span);
        hosts.push(found.value);
        spans.push(span);
    }
    (hosts, spans)
}

/// A host as it is written.
pub(crate) fn host_text(host: &Host) -> String {
    match host {
        Host::Exact(name) => name.clone(),
        Host::Below(name) => format!("*.{name}"),
        Host::Any => "*".into(),
    }
}

/// Whether a host of a site covers a name.
fn holds(host: &Host, name: &str) -> bool {
    match host {
        Host::Exact(exact) => exact == name,
        Host::Below(parent) => {
            name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        }
        Host::Any => true,
    }
}

fn logs(scope: &Scope<'_>, logs: &mut Logs, reading: &mut Reading<'_>) -> Vec<usize> {
    let Some(named) = scope.find(&site::LOGS, reading) else {
        return logs.all();
    };
    let mut indices = Vec::new();
    for name in named.value {
        let span = name.span.unwrap_or(scope.place());
        match logs.named(&name.value) {
            Some(index) if indices.contains(&index) => {
                let message = format!("the log `{}` is listed twice", name.value);
                reading.report(Diagnostic::new(&code::NO_EFFECT, span, message));
            }
            Some(index) => indices.push(index),
            None => {
                let shown = reading.shown(&name.value, span);
                let message = format!("there is no log {shown}");
                let guess = reading.guess(&name.value, logs.names());
                reading.report(
                    Diagnostic::new(&code::UNKNOWN_LOG, span, message).label(guess).hint(
                        match logs.names().next() {
                            Some(_) => format!("known are {}", suggest::one_of(logs.names())),
                            None => "make it: `[[log]]` with `name` and `path`".into(),
                        },
                    ),
                );
            }
        }
    }
    indices
}

fn routes(
    site_index: usize,
    scope: &Scope<'_>,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> (Vec<Route>, Vec<Span>) {
    let mut own = route::SiteAction::of(scope, shared.groups, reading);
    let mut routes = Vec::new();
    let mut spans = Vec::new();
    let scopes = scope.children(&route_options::SECTION);
    for route_scope in scopes.iter().filter(|scope| scope.is_table()) {
        let owner = Owner::Route(site_index, routes.len());
        let route_scope = route_scope.of(owner).under(scope);
        if let Some(route) = route::resolve(&route_scope, &mut own, shared, reading) {
            routes.push(route);
            spans.push(route_scope.place());
        }
    }
    let covers_all =
        |route: &Route| route.path == PathRule::Prefix("/".into()) && route.methods.is_empty();
    if !routes.iter().any(covers_all) {
        let owner = Owner::Route(site_index, routes.len());
        let rest = Scope::new(&route_options::SECTION, owner, None, None).under(scope);
        if let Some(route) = route::rest(&rest, &mut own, shared, reading) {
            routes.push(route);
            spans.push(scope.place());
        } else if scopes.is_empty() && own.is_absent() {
            reading.report_missing(
                scope,
                Diagnostic::new(&code::NO_ACTION, scope.place(), "this site does not say what to do with requests")
                    .hint("add `upstream = \"127.0.0.1:3000\"`, `group`, `answer` or `redirect`, or routes"),
            );
        }
    }
    own.check_used(reading);
    route::check_conflicts(&routes, &spans, reading);
    (routes, spans)
}
