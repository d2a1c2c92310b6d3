//! What would happen to a request, stop by stop.

use std::fmt::Write as _;

use tidegate_http::field::{self, Known};
use tidegate_http::target::{self, PathForm, Scheme};
use tidegate_http::{Method, Request};
use tidegate_proxy::forwarded::{Origin, Peer, Trust, TrustedProxies};
use tidegate_proxy::plan::{HostMatch, RouteMatch, RouteTable, SiteTable};
use tidegate_proxy::settings::{
    Action, Address, Balance, Group, HashKey, HeaderEdit, Host, HttpsRedirect, Listener, Probe,
    RetryWhen, Role, Route, Settings, Site, Trace, UpstreamHost, UpstreamProtocol,
};

use super::super::question::Question;
use super::report::Report;
use crate::config::Loaded;
use crate::config::options::{group, listen, redirect, route, site};
use crate::config::reader::Owner;
use crate::config::resolve::group::endpoint_text;
use crate::config::resolve::site::host_text;
use crate::config::value::{show_duration, show_size};

/// Others that lost are told of up to this many.
const LOSERS_MAX: usize = 8;

/// Tells what would happen.
pub(super) fn tell(question: &Question, loaded: &Loaded) -> String {
    let mut report = Report::new(&loaded.warnings.sources, &loaded.origins);
    let request = &question.request;
    report.title(&format!(
        "{} {}://{}{}",
        text(request.method_bytes()),
        question.scheme.name(),
        text(&request.host),
        text(&request.path_and_query)
    ));
    let story = Story { question, settings: &loaded.settings };
    story.listeners(&mut report);
    report.gap();
    let peer = question.from.map_or_else(Peer::unix, Peer::new);
    let scheme = story.client(&peer, &mut report);
    report.gap();
    story.site(scheme, &mut report);
    report.finish()
}

struct Story<'a> {
    question: &'a Question,
    settings: &'a Settings,
}

impl Story<'_> {
    fn listeners(&self, report: &mut Report<'_>) {
        let mut topic = "listener";
        let listeners = self.settings.listeners.iter().enumerate();
        let (fit, other): (Vec<_>, Vec<_>) =
            listeners.partition(|(_, listener)| self.misfit(listener).is_none());
        for (index, listener) in &fit {
            report.topic(topic, &listener.name, Some(Owner::Listener(*index)));
            topic = "";
        }
        if fit.is_empty() {
            report.topic(
                topic,
                &format!(
                    "none takes {} on port {}",
                    self.question.scheme.name(),
                    self.question.port
                ),
                None,
            );
        }
        for (index, listener) in other.iter().take(LOSERS_MAX) {
            let why = self.misfit(listener).unwrap_or_default();
            report.topic(
                "",
                &format!("not {}: {why}", listener.name),
                Some(Owner::Listener(*index)),
            );
        }
    }

    /// Why a listener does not get the request; `None` if it may.
    fn misfit(&self, listener: &Listener) -> Option<String> {
        let is_tls = listener.tls.is_some();
        match (&listener.address, self.question.scheme) {
            (Address::Tcp(address), _) if address.port() != self.question.port => {
                Some(format!("the request goes to port {}", self.question.port))
            }
            (_, Scheme::Https) if !is_tls => Some("it speaks no TLS".into()),
            (_, Scheme::Http) if is_tls => Some("it speaks only TLS".into()),
            _ => None,
        }
    }

    /// Who the client is taken to be, and the scheme it is taken to have used.
    fn client(&self, peer: &Peer, report: &mut Report<'_>) -> Scheme {
        let question = self.question;
        let Some(from) = question.from else {
            report.topic("client", "not said (--from ADDRESS)", None);
            return question.scheme;
        };
        let trusted = TrustedProxies::new(&self.settings.trusted_proxies);
        let origin = Origin::of(peer, question.scheme, &question.request, &trusted);
        let client = origin.client.map_or_else(|| "unknown".into(), |client| client.to_string());
        let why = match origin.trust {
            Trust::Untrusted => "the peer itself; what it says of others is not believed",
            Trust::Trusted if origin.client == Some(from) => "the peer itself, a trusted proxy",
            Trust::Trusted => "as the trusted proxy says",
            Trust::Conflict => "the trusted proxy itself: its fields disagree, so none is believed",
        };
        report.topic("client", &client, None);
        report.more(why);
        if origin.scheme != question.scheme {
            report.more(&format!("it used {}, says the proxy", origin.scheme.name()));
        }
        origin.scheme
    }

    fn site(&self, scheme: Scheme, report: &mut Report<'_>) {
        let request = &self.question.request;
        let table = SiteTable::new(self.settings.sites.iter().map(|site| site.hosts.as_slice()));
        let Some((index, how)) = table.explain(&request.host) else {
            report.topic("site", "none: the answer is 404", None);
            report.more(&format!(
                "no site lists `{}`, a wildcard above it, or `*`",
                text(&request.host)
            ));
            return;
        };
        let site = &self.settings.sites[index];
        report.topic("site", &site.name, Some(Owner::Site(index)));
        report.more(&match &how {
            HostMatch::Exact => format!("it lists `{}`", text(&request.host)),
            HostMatch::Below(parent) => {
                format!("its `*.{parent}` is the longest wildcard that fits")
            }
            HostMatch::Any => "its `*` takes what no other site lists".to_owned(),
        });
        self.losing_sites(index, &how, report);
        let look_alike = |name: &[u8]| field::look_alike(name);
        if let Some(field) = request.headers.iter().find(|f| look_alike(f.name).is_some()) {
            report.more(&format!("refused: `{}` passes for another field", text(field.name)));
            return;
        }
        let mut normal = Vec::new();
        let path = match target::normalize_path(request.path(), &mut normal) {
            Ok(PathForm::Normal) => request.path(),
            Ok(PathForm::Rewritten) => normal.as_slice(),
            Err(error) => {
                report.gap();
                report.topic("route", &format!("none: the answer is 400: {error}"), None);
                return;
            }
        };
        report.gap();
        if site_redirect(index, site, request, scheme, report) {
            return;
        }
        self.route(index, path, report);
    }

    /// Hosts of other sites that would have fitted too.
    fn losing_sites(&self, winner: usize, how: &HostMatch, report: &mut Report<'_>) {
        let host = text(&self.question.request.host);
        let mut told = 0;
        for (index, site) in self.settings.sites.iter().enumerate() {
            if index == winner {
                continue;
            }
            for pattern in &site.hosts {
                let why = match (pattern, how) {
                    (Host::Below(parent), _) if is_below(&host, parent) => match how {
                        HostMatch::Exact => "a wildcard gives way to a name",
                        HostMatch::Below(_) | HostMatch::Any => "it gives way to a longer wildcard",
                    },
                    (Host::Any, HostMatch::Exact | HostMatch::Below(_)) => "it is the default site",
                    _ => continue,
                };
                if told < LOSERS_MAX {
                    let lost = format!("not `{}`: {why}", host_text(pattern));
                    report.topic("", &lost, Some(Owner::Site(index)));
                }
                told += 1;
            }
        }
    }

    fn route(&self, site_index: usize, path: &[u8], report: &mut Report<'_>) {
        let site = &self.settings.sites[site_index];
        let request = &self.question.request;
        if path != request.path() {
            report.topic("path", &format!("{} in normal form", text(path)), None);
        }
        let table = RouteTable::new(&site.routes);
        let found = table.find(path, request.method, request.method_bytes());
        let candidates = table.candidates(path);
        let index = match found {
            RouteMatch::Found(index) => {
                let owner = Owner::Route(site_index, index);
                let span = report.place_of(owner, &[route::PATH.key, route::EXACT.key]);
                let name = &site.routes[index].name;
                match span {
                    Some(_) => report.topic("route", name, Some(owner)),
                    None => report.topic(
                        "route",
                        &format!("{name}, what the site says for all that no route takes"),
                        None,
                    ),
                }
                Some(index)
            }
            RouteMatch::MethodNotAllowed => {
                let allowed = table.allowed(path).join(", ");
                report.topic("route", &format!("none: the answer is 405, Allow: {allowed}"), None);
                None
            }
            RouteMatch::NotFound => {
                report.topic("route", "none: the answer is 404", None);
                report.more(&format!("no route of this site covers `{}`", text(path)));
                None
            }
        };
        let mut before = true;
        for candidate in candidates.iter().take(LOSERS_MAX) {
            let owner = Owner::Route(site_index, *candidate);
            let name = &site.routes[*candidate].name;
            let span = report.place_of(owner, &[route::PATH.key, route::EXACT.key]);
            if Some(*candidate) == index {
                before = false;
                continue;
            }
            let why = if before {
                format!("it does not take {}", text(request.method_bytes()))
            } else {
                "it is less specific".to_owned()
            };
            report.more_at(&format!("not `{name}`: {why}"), span);
        }
        let elsewhere = site.routes.len() - candidates.len();
        if elsewhere > 0 {
            report.more(&format!("{elsewhere} others do not cover this path"));
        }
        if let Some(index) = index {
            self.action(site_index, index, path, report);
        }
    }

    fn action(&self, site_index: usize, route_index: usize, path: &[u8], report: &mut Report<'_>) {
        let site = &self.settings.sites[site_index];
        let route = &site.routes[route_index];
        let owner = Owner::Route(site_index, route_index);
        report.gap();
        match &route.action {
            Action::Answer { status, body, content_type } => {
                report.topic(
                    "answer",
                    &format!("{status}, {content_type}, {} bytes", body.len()),
                    None,
                );
            }
            Action::Redirect { status, to } => {
                let to = report.shown(owner, &[redirect::TO.key], to).to_owned();
                report.topic("redirect", &format!("{status} to {to}"), None);
            }
            Action::Group(_) if self.is_refused_trace(route) => {
                report.topic("answer", "405: TRACE is refused", None);
                report.setting(owner, route::TRACE.key, "refuse");
            }
            Action::Group(index) => {
                let group = &self.settings.groups[*index];
                self.group(*index, group, report);
                report.gap();
                self.upstream(owner, route, group, path, report);
                report.gap();
                self.policies(owner, route, *index, report);
            }
        }
        edits("response", owner, &route.response_headers, report);
        if let (Some(hsts), Scheme::Https) = (&site.hsts, self.question.scheme) {
            report.more(&format!("set Strict-Transport-Security: {hsts}"));
        }
        report.gap();
        let logs: Vec<&str> =
            site.logs.iter().map(|log| self.settings.logs[*log].name.as_str()).collect();
        let logs = if logs.is_empty() { "none".to_owned() } else { logs.join(", ") };
        report.topic("logs", &logs, None);
    }

    fn is_refused_trace(&self, route: &Route) -> bool {
        self.question.request.method == Method::Trace && route.trace == Trace::Refuse
    }

    fn group(&self, index: usize, group: &Group, report: &mut Report<'_>) {
        let owner = Owner::Group(index);
        report.topic("group", &group.name, Some(owner).filter(|_| is_named(group)));
        let balance = match &group.balance {
            Balance::RoundRobin => "round_robin: in turn, by weight".to_owned(),
            Balance::LeastRequests => {
                "least_requests: the less busy of two drawn by weight".to_owned()
            }
            Balance::Hash(key) => self.hash(key),
        };
        report.setting(owner, group::BALANCE.key, &balance);
        if let Some(sticky) = &group.sticky {
            let has = has_cookie(&self.question.request, &sticky.cookie);
            let what = if has {
                "it is there and decides, if its server can"
            } else {
                "it is not there and will be set"
            };
            report.setting(owner, group::STICKY_COOKIE.key, &format!("{}: {what}", sticky.cookie));
        }
        for role in [Role::Primary, Role::Backup] {
            for server in group.servers.iter().filter(|server| server.role == role) {
                let mut line = endpoint_text(&server.endpoint);
                if server.weight != 1 {
                    let _ = write!(line, ", weight {}", server.weight);
                }
                if let Some(max) = server.connections_max {
                    let _ = write!(line, ", at most {max} connections");
                }
                if role == Role::Backup {
                    line.push_str(", only while no other can");
                }
                report.more(&format!("server {line}"));
            }
        }
        match group.health.as_ref().map(|health| (&health.probe, health.interval)) {
            None => {}
            Some((Probe::Tcp, interval)) => {
                report.more(&format!("checked every {} by a connection", show_duration(interval)));
            }
            Some((Probe::Http { path, .. }, interval)) => {
                report.more(&format!("checked every {} by GET {path}", show_duration(interval)));
            }
        }
        report.more("which of them are fit only the running gate knows: `tidegate status`");
    }

    fn hash(&self, key: &HashKey) -> String {
        let request = &self.question.request;
        let (by, there) = match key {
            HashKey::ClientAddress => ("the client's address".to_owned(), true),
            HashKey::Uri => ("path and query".to_owned(), true),
            HashKey::Header(name) => {
                let there = request.headers.named(name.as_bytes()).next().is_some();
                (format!("the field {name}"), there)
            }
            HashKey::Cookie(name) => (format!("the cookie {name}"), has_cookie(request, name)),
        };
        if there {
            format!("hash of {by}")
        } else {
            format!("hash of {by}; it is not there, so in turn")
        }
    }

    /// What goes upstream.
    fn upstream(
        &self,
        owner: Owner,
        route: &Route,
        group: &Group,
        path: &[u8],
        report: &mut Report<'_>,
    ) {
        let request = &self.question.request;
        let mut target = Vec::new();
        route.upstream_target(path, request.query(), &mut target);
        let version = match group.protocol {
            UpstreamProtocol::Http1 => "HTTP/1.1",
            UpstreamProtocol::Http2 => "HTTP/2",
        };
        let security = match &group.tls {
            None => "",
            Some(tls) if tls.verifies() => " over TLS",
            Some(_) => " over TLS, not verified",
        };
        let method = text(request.method_bytes());
        report.topic("upstream", &format!("{method} {} {version}{security}", text(&target)), None);
        report.more(&match &route.upstream_host {
            UpstreamHost::Client => match request.port {
                Some(port) => format!("Host: {}:{port}", text(&request.host)),
                None => format!("Host: {}", text(&request.host)),
            },
            UpstreamHost::Server => "Host: the server's own".to_owned(),
            UpstreamHost::Fixed(host) => format!("Host: {host}"),
        });
        edits("", owner, &route.request_headers, report);
        if request.headers.has(Known::Upgrade) {
            let asked = request.headers.first(Known::Upgrade).map(text).unwrap_or_default();
            let allowed = route.upgrades.iter().any(|name| name.eq_ignore_ascii_case(&asked));
            let what = if allowed { "passed on" } else { "not passed on" };
            report.more(&format!("the upgrade to `{asked}` is {what}"));
        }
    }

    /// The limits and time-outs of listener, group and route, in the order in which they bite.
    fn policies(&self, owner: Owner, route: &Route, index: usize, report: &mut Report<'_>) {
        report.topic("policies", "", None);
        let mut listeners = self.settings.listeners.iter().enumerate();
        if let Some((at, used)) = listeners.find(|(_, listener)| self.misfit(listener).is_none()) {
            let on = Owner::Listener(at);
            let head_max = show_size(used.limits.head_bytes_max as u64);
            report.setting(on, listen::HEAD_BYTES_MAX.key, &head_max);
            report.setting(on, listen::HEAD_TIMEOUT.key, &show_duration(used.timeouts.head));
            report.setting(
                on,
                listen::BODY_READ_TIMEOUT.key,
                &show_duration(used.timeouts.body_read),
            );
            report.setting(on, listen::WRITE_TIMEOUT.key, &show_duration(used.timeouts.write));
        }
        let group = &self.settings.groups[index];
        let to = Owner::Group(index);
        let body_max = route.body_bytes_max.map_or_else(|| "none".into(), show_size);
        report.setting(owner, route::BODY_MAX.key, &body_max);
        report.setting(to, group::CONNECT_TIMEOUT.key, &show_duration(group.connect_timeout));
        let timeouts = &route.timeouts;
        let whole = timeouts.whole.map_or_else(|| "none".into(), show_duration);
        report.setting(owner, route::FIRST_BYTE_TIMEOUT.key, &show_duration(timeouts.first_byte));
        report.setting(
            owner,
            route::BETWEEN_BYTES_TIMEOUT.key,
            &show_duration(timeouts.between_bytes),
        );
        report.setting(owner, route::WHOLE_TIMEOUT.key, &whole);
        let when = match route.retry.when {
            RetryWhen::Never => "never",
            RetryWhen::Unseen => "unseen",
            RetryWhen::Idempotent => "idempotent",
        };
        report.setting(owner, route::RETRY.key, when);
        report.setting(owner, route::RETRY_ATTEMPTS.key, &route.retry.attempts_max.to_string());
        let budget = format!("{:.0}%", group.retry_budget * 100.0);
        report.setting(to, group::RETRY_BUDGET.key, &budget);
        let upgrades =
            if route.upgrades.is_empty() { "none".into() } else { route.upgrades.join(", ") };
        report.setting(owner, route::UPGRADES.key, &upgrades);
        report.setting(owner, route::TUNNEL_IDLE_TIMEOUT.key, &show_duration(timeouts.tunnel_idle));
    }
}

/// The redirects that a whole site asks for.
fn site_redirect(
    index: usize,
    site: &Site,
    request: &Request,
    scheme: Scheme,
    report: &mut Report<'_>,
) -> bool {
    let owner = Owner::Site(index);
    let host = text(&request.host);
    let canonical = site.canonical_host.as_ref().filter(|canonical| **canonical != host);
    let rest = text(&request.path_and_query);
    if let (HttpsRedirect::To(port), Scheme::Http) = (site.https, scheme) {
        let host = canonical.unwrap_or(&host);
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        report.topic("redirect", &format!("308 to https://{host}{port}{rest}"), None);
        report.setting(owner, site::HTTPS_REDIRECT.key, "plain text is sent to https");
        return true;
    }
    let Some(canonical) = canonical else { return false };
    let port = request.port.map(|port| format!(":{port}")).unwrap_or_default();
    let to = format!("308 to {}://{canonical}{port}{rest}", scheme.name());
    report.topic("redirect", &to, None);
    report.setting(owner, site::CANONICAL_HOST.key, canonical);
    true
}

fn edits(topic: &str, owner: Owner, edits: &[HeaderEdit], report: &mut Report<'_>) {
    let mut topic = topic;
    if !topic.is_empty() && !edits.is_empty() {
        report.gap();
    }
    for edit in edits {
        let shown = |value| report.shown(owner, &["set", "add"], value);
        let line = match edit {
            HeaderEdit::Set(name, value) => format!("set {name}: {}", shown(value)),
            HeaderEdit::Add(name, value) => format!("add {name}: {}", shown(value)),
            HeaderEdit::Remove(name) => format!("remove {name}"),
        };
        report.topic(topic, &line, None);
        topic = "";
    }
}

/// Whether a group was given a name; that of a short upstream holds its servers.
fn is_named(group: &Group) -> bool {
    !group.name.contains([':', '/'])
}

fn is_below(host: &str, parent: &str) -> bool {
    host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

fn has_cookie(request: &Request, name: &str) -> bool {
    request
        .headers
        .all(Known::Cookie)
        .any(|value| text(value).split(';').any(|pair| pair.trim().split('=').next() == Some(name)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
