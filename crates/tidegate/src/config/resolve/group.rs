//! `[group.NAME]`, and the groups that a short `upstream` stands for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_proxy::settings::{
    Balance, Ejection, Endpoint, Group, HashKey, HealthCheck, KeepAlive, Probe, Role, Server,
    Sticky, UpstreamProtocol,
};
use tidegate_proxy::tls::{ClientTls, ClientTlsSettings, Pem, Verify, Versions};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::{self, ejection, group, group_tls, health, server};
use super::super::parse::address::{Scheme, Upstream};
use super::super::reader::{Located, Owner, Reading, Scope};
use super::super::source::Span;
use super::listen::bytes;
use super::{process, tls};

/// The groups, by index and by name.
pub(super) struct Groups<'n> {
    defaults: &'n Scope<'n>,
    list: Vec<Found>,
    names: HashMap<String, usize>,
    short: HashMap<Vec<Upstream>, usize>,
    /// TLS to servers given as `https://`: the same for all, and the system's authorities are many.
    short_tls: Option<Arc<ClientTls>>,
}

/// A group and what later checks want to know of it.
pub(super) struct Found {
    pub(super) group: Group,
    /// Where its name, or the upstream it stands for, is written.
    pub(super) span: Span,
    /// Where each server is written.
    pub(super) servers: Vec<Span>,
    /// How many routes use it.
    pub(super) routes: usize,
}

impl<'n> Groups<'n> {
    /// All groups that have names.
    pub(super) fn resolve(
        root: &Scope<'n>,
        defaults: &'n Scope<'n>,
        reading: &mut Reading<'_>,
    ) -> Groups<'n> {
        let mut groups = Groups {
            defaults,
            list: Vec::new(),
            names: HashMap::new(),
            short: HashMap::new(),
            short_tls: None,
        };
        for (name, scope) in root.named(&group::SECTION) {
            if !scope.is_table() {
                // The check of names has reported it.
                continue;
            }
            check_name(name, &scope, reading);
            let index = groups.list.len();
            let scope = scope.of(Owner::Group(index)).under(defaults);
            let found = named(name, &scope, reading);
            groups.names.insert(name.into(), index);
            groups.list.push(found);
        }
        groups
    }

    /// The group of a name, for a route.
    pub(super) fn named(&mut self, name: &str) -> Option<usize> {
        let index = *self.names.get(name)?;
        self.list[index].routes += 1;
        Some(index)
    }

    /// The names there are.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The group that a short `upstream` stands for; equal ones are one group, so that they share
    /// connections and health.
    pub(super) fn short(
        &mut self,
        upstreams: &Located<Vec<Located<Upstream>>>,
        place: Span,
        reading: &mut Reading<'_>,
    ) -> Option<usize> {
        let key: Vec<Upstream> = upstreams.value.iter().map(|found| found.value.clone()).collect();
        let first = upstreams.value.first()?;
        if let Some(odd) = upstreams.value.iter().find(|u| u.value.scheme != first.value.scheme) {
            reading.report(
                Diagnostic::new(
                    &code::INVALID_UPSTREAM,
                    odd.span.unwrap_or(place),
                    "all servers of an upstream speak TLS, or none",
                )
                .beside(first.span.unwrap_or(place), "this one differs"),
            );
            return None;
        }
        if let Some(index) = self.short.get(&key) {
            self.list[*index].routes += 1;
            return Some(*index);
        }
        let index = self.list.len();
        let scope =
            Scope::new(&group::SECTION, Owner::Group(index), None, None).under(self.defaults);
        let servers = key.iter().map(|upstream| Server {
            endpoint: upstream.endpoint.clone(),
            weight: 1,
            role: Role::Primary,
            connections_max: None,
        });
        let tls = match first.value.scheme {
            Scheme::Http => None,
            Scheme::Https => self.short_tls(place, reading),
        };
        let mut group = common(&scope, short_name(&key), servers.collect(), reading);
        group.tls = tls;
        let spans: Vec<Span> =
            upstreams.value.iter().map(|found| found.span.unwrap_or(place)).collect();
        check_duplicates(&group.servers, &spans, reading);
        self.list.push(Found { group, span: place, servers: spans, routes: 1 });
        self.short.insert(key, index);
        Some(index)
    }

    fn short_tls(&mut self, place: Span, reading: &mut Reading<'_>) -> Option<Arc<ClientTls>> {
        if self.short_tls.is_none() {
            let settings = ClientTlsSettings {
                verify: Verify::SystemRoots,
                server_name: None,
                certificate: None,
                protocol: UpstreamProtocol::Http1,
                versions: Versions::default(),
            };
            self.short_tls = tls::build_client(&settings, None, None, place, reading).map(Arc::new);
        }
        self.short_tls.clone()
    }

    /// What was found, for the checks across sections and the settings.
    pub(super) fn list(&self) -> &[Found] {
        &self.list
    }

    /// The settings of all groups.
    pub(super) fn into_settings(self) -> Vec<Group> {
        self.list.into_iter().map(|found| found.group).collect()
    }
}

/// The name of a group that has none: its servers.
fn short_name(upstreams: &[Upstream]) -> String {
    let names = upstreams.iter().map(|upstream| {
        let scheme = match upstream.scheme {
            Scheme::Http => "",
            Scheme::Https => "https://",
        };
        format!("{scheme}{}", endpoint_text(&upstream.endpoint))
    });
    names.collect::<Vec<_>>().join(",")
}

/// An endpoint as it is written.
pub(crate) fn endpoint_text(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Address(address) => address.to_string(),
        Endpoint::Name(name, port) => format!("{name}:{port}"),
        Endpoint::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// Names of groups are short and plain, so that they never equal the name of a short upstream.
fn check_name(name: &str, scope: &Scope<'_>, reading: &mut Reading<'_>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        reading.report(
            Diagnostic::new(
                &code::INVALID_VALUE,
                scope.place(),
                format!("`{}` is not the name of a group", name.escape_debug()),
            )
            .hint("names hold letters, digits, `-`, `_` and `.`"),
        );
    }
}

fn named(name: &str, scope: &Scope<'_>, reading: &mut Reading<'_>) -> Found {
    let place = scope.place();
    let mut servers = Vec::new();
    let mut spans = Vec::new();
    let listed = scope.children(&server::SECTION);
    let any_listed = !listed.is_empty();
    for scope in listed {
        let span = scope.place();
        if let Some(server) = one_server(&scope, reading) {
            servers.push(server);
            spans.push(span);
        }
    }
    if !any_listed {
        let key = scope.key_span(server::SECTION.key);
        reading.report_missing(
            scope,
            Diagnostic::new(
                &code::NO_SERVERS,
                key.unwrap_or(place),
                format!("the group `{name}` has no server"),
            )
            .hint("add `servers = [\"10.0.0.1:8080\"]`"),
        );
    } else if !servers.is_empty() && servers.iter().all(|server| server.role == Role::Backup) {
        reading.report(
            Diagnostic::new(
                &code::ONLY_BACKUPS,
                spans[0],
                format!("all servers of the group `{name}` are backups"),
            )
            .hint("a backup serves while no other can: leave out `backup` where it is not one"),
        );
    }
    check_duplicates(&servers, &spans, reading);

    let mut group = common(scope, name.into(), servers, reading);
    group.protocol = scope.read(&group::PROTOCOL, reading).value;
    group.sticky = sticky(scope, &group, reading);
    group.proxy_protocol = scope.read(&group::SEND_PROXY_PROTOCOL, reading).value;
    group.tls = group_tls(&scope.child(&group_tls::SECTION), group.protocol, reading);
    group.health = health(&scope.child(&health::SECTION), reading);
    group.ejection = ejection(&scope.child(&ejection::SECTION), reading);
    Found { group, span: place, servers: spans, routes: 0 }
}

/// What every group has, named or short.
fn common(
    scope: &Scope<'_>,
    name: String,
    servers: Vec<Server>,
    reading: &mut Reading<'_>,
) -> Group {
    let balance = balance(scope, reading);
    let slow_start = scope.read(&group::SLOW_START, reading).value.unwrap_or(Duration::ZERO);
    let keep_alive = KeepAlive {
        connections_max: scope.read(&group::KEEP_ALIVE_MAX, reading).value,
        idle: scope.read(&group::KEEP_ALIVE_IDLE, reading).value,
        requests_max: scope.read(&group::KEEP_ALIVE_REQUESTS, reading).value,
    };
    let retry_budget = f32::from(scope.read(&group::RETRY_BUDGET, reading).value) / 100.0;
    let head = scope.read(&group::RESPONSE_HEAD_BYTES_MAX, reading).value;
    let connect_timeout = scope.read(&group::CONNECT_TIMEOUT, reading).value;
    Group {
        name,
        servers,
        balance,
        sticky: None,
        protocol: group::PROTOCOL.default_value(),
        tls: None,
        proxy_protocol: group::SEND_PROXY_PROTOCOL.default_value(),
        connect_timeout,
        keep_alive,
        health: None,
        ejection: default_ejection(),
        slow_start,
        retry_budget,
        head_bytes_max: bytes(head),
    }
}

fn balance(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Balance {
    let balance = scope.read(&group::BALANCE, reading);
    let hash_by = scope.find(&group::HASH_BY, reading);
    let wants_key = balance.value == options::BalanceOption::Hash;
    match (balance.value, hash_by) {
        (options::BalanceOption::Hash, Some(key)) => return Balance::Hash(key.value),
        (_, Some(Located { span: Some(span), .. })) if !wants_key => {
            reading.report(
                Diagnostic::new(&code::NO_EFFECT, span, "nothing is hashed")
                    .hint("write `balance = \"hash\"`"),
            );
        }
        (options::BalanceOption::Hash, _) if scope.node(group::HASH_BY.key).is_none() => {
            let span = balance.span.unwrap_or(scope.place());
            reading.report(
                Diagnostic::new(
                    &code::HASH_WITHOUT_KEY,
                    span,
                    "a hash is made of something, and `hash_by` does not say of what",
                )
                .hint("add `hash_by = \"client_address\"`, `\"uri\"`, `\"header:NAME\"` or `\"cookie:NAME\"`"),
            );
        }
        _ => {}
    }
    match balance.value {
        options::BalanceOption::RoundRobin => Balance::RoundRobin,
        options::BalanceOption::LeastRequests => Balance::LeastRequests,
        options::BalanceOption::Hash => Balance::Hash(HashKey::ClientAddress),
    }
}

fn one_server(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<Server> {
    let endpoint = scope.require(&server::ADDRESS, reading);
    let weight = scope.read(&server::WEIGHT, reading).value;
    let backup = scope.read(&server::BACKUP, reading).value;
    let connections_max = scope.read(&server::CONNECTIONS_MAX, reading).value;
    Some(Server {
        endpoint: endpoint?.value,
        weight,
        role: if backup { Role::Backup } else { Role::Primary },
        connections_max,
    })
}

fn check_duplicates(servers: &[Server], spans: &[Span], reading: &mut Reading<'_>) {
    let mut seen: HashMap<&Endpoint, Span> = HashMap::new();
    for (server, span) in servers.iter().zip(spans) {
        if let Some(first) = seen.get(&server.endpoint) {
            let shown = reading.shown(&endpoint_text(&server.endpoint), *span);
            let message = format!("{shown} is listed twice");
            reading.report(
                Diagnostic::new(&code::DUPLICATE_SERVER, *span, message)
                    .beside(*first, "first listed here")
                    .hint("for a larger share, give it a `weight`"),
            );
        }
        seen.entry(&server.endpoint).or_insert(*span);
    }
}

fn sticky(scope: &Scope<'_>, group: &Group, reading: &mut Reading<'_>) -> Option<Sticky> {
    let cookie = scope.find(&group::STICKY_COOKIE, reading);
    let max_age = scope.find(&group::STICKY_MAX_AGE, reading);
    let secret = scope.find(&group::STICKY_SECRET, reading);
    if let Some(secret) = &secret {
        process::check_readable(secret, reading);
    }
    let Some(cookie) = cookie else {
        let unused = max_age.and_then(|found| found.span).or(secret.and_then(|found| found.span));
        if let Some(span) = unused
            && scope.node(group::STICKY_COOKIE.key).is_none()
        {
            reading.report(
                Diagnostic::new(&code::NO_EFFECT, span, "no cookie keeps clients on their server")
                    .hint("add `sticky_cookie = \"srv\"`"),
            );
        }
        return None;
    };
    let is_name = |server: &Server| matches!(server.endpoint, Endpoint::Name(..));
    if group.servers.len() == 1
        && !group.servers.iter().any(is_name)
        && let Some(span) = cookie.span
    {
        reading.report(Diagnostic::new(
            &code::NO_EFFECT,
            span,
            "with one server, there is nothing to stick to",
        ));
    }
    Some(Sticky {
        cookie: cookie.value,
        max_age: max_age.map(|age| age.value),
        secret: secret.map(|found| found.value.secret.reveal().to_owned()),
    })
}

fn group_tls(
    scope: &Scope<'_>,
    protocol: UpstreamProtocol,
    reading: &mut Reading<'_>,
) -> Option<Arc<ClientTls>> {
    if !scope.is_table() {
        return None;
    }
    let verify = scope.read(&group_tls::VERIFY, reading);
    let ca = scope.find(&group_tls::CA, reading);
    if !verify.value
        && let Some(span) = verify.span
    {
        reading.report(
            Diagnostic::new(
                &code::NOT_VERIFIED,
                span,
                "whoever sits between gate and server can read and change everything",
            )
            .hint("for a self-signed certificate, name it: `ca = \"server.pem\"`"),
        );
        if let Some(ca) = ca.as_ref().and_then(|ca| ca.span) {
            let message = "`ca` has no effect: nothing is verified";
            reading.report(Diagnostic::new(&code::NO_EFFECT, ca, message));
        }
    }
    let name = scope.find(&group_tls::NAME, reading);
    let versions = scope.read(&group_tls::VERSIONS, reading);
    let versions = tls::versions(&versions, reading);
    let chain = scope.find(&group_tls::CHAIN, reading);
    let key = scope.find(&group_tls::KEY, reading);
    let pair = match (&chain, &key) {
        (Some(chain), Some(key)) => Some(tls::Pair::new(chain, key, reading)),
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => {
            let (there, missing) =
                if chain.is_some() { ("chain", "key") } else { ("key", "chain") };
            let span = one.span.unwrap_or(scope.place());
            reading.report(Diagnostic::new(
                &code::MISSING_OPTION,
                span,
                format!("a `{there}` needs its `{missing}`"),
            ));
            None
        }
    };
    let settings = ClientTlsSettings {
        verify: match (&ca, verify.value) {
            (_, false) => Verify::DangerouslyNothing,
            (Some(ca), true) => Verify::Authorities(Pem::File(tls::path(ca, reading))),
            (None, true) => Verify::SystemRoots,
        },
        server_name: name.map(|name| name.value),
        certificate: pair.as_ref().map(tls::Pair::settings),
        protocol,
        versions: versions?,
    };
    let ca = ca.and_then(|ca| ca.span);
    tls::build_client(&settings, pair.as_ref(), ca, scope.place(), reading).map(Arc::new)
}

fn health(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<HealthCheck> {
    if !scope.is_table() {
        return None;
    }
    let path = scope.find(&health::PATH, reading);
    let host = scope.find(&health::HOST, reading);
    let status = scope.read(&health::STATUS, reading);
    let interval = scope.read(&health::INTERVAL, reading).value;
    let timeout = scope.read(&health::TIMEOUT, reading);
    if timeout.value > interval
        && let Some(span) = timeout.span.or(scope.node(health::INTERVAL.key).map(|node| node.span))
    {
        reading.report(
            Diagnostic::new(
                &code::TIMEOUT_ORDER,
                span,
                "a check may take longer than the time between two, so checks come late",
            )
            .hint("let `timeout` be at most `interval`"),
        );
    }
    if scope.node(health::PATH.key).is_none() {
        for unused in [host.as_ref().and_then(|host| host.span), status.span].into_iter().flatten()
        {
            reading.report(
                Diagnostic::new(
                    &code::NO_EFFECT,
                    unused,
                    "without a `path`, a check only opens a connection",
                )
                .hint("add `path = \"/healthz\"`"),
            );
        }
    }
    let probe = match path {
        None => Probe::Tcp,
        Some(path) => Probe::Http {
            path: path.value,
            host: host.map(|host| host.value),
            status_min: status.value.min,
            status_max: status.value.max,
        },
    };
    let fall = scope.read(&health::FALL, reading).value;
    let rise = scope.read(&health::RISE, reading).value;
    Some(HealthCheck { probe, interval, timeout: timeout.value, fall, rise })
}

fn ejection(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<Ejection> {
    let failures = scope.read(&ejection::FAILURES, reading).value;
    let time = scope.read(&ejection::TIME, reading).value;
    let share_max_percent = scope.read(&ejection::SHARE_MAX, reading).value;
    Some(Ejection { failures: failures?, time, share_max_percent })
}

fn default_ejection() -> Option<Ejection> {
    Some(Ejection {
        failures: ejection::FAILURES.default_value()?,
        time: ejection::TIME.default_value(),
        share_max_percent: ejection::SHARE_MAX.default_value(),
    })
}
