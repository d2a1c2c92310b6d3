//! The plan: the settings, resolved into tables made for look-ups.
//!
//! Immutable and swapped whole. A request keeps the plan it began with, so a reload changes nothing
//! under its feet. What outlives a plan (a server's health, its counters, metric labels) lies in
//! shared objects that the next plan takes over by name.

mod routes;
mod sites;

use std::sync::Arc;

use tidegate_http::Headers;
use tidegate_telemetry::Label;
use tidegate_telemetry::Stamp;
use tidegate_telemetry::log::Log;
use tidegate_telemetry::metrics::{Labels, RuleCounts};
use tidegate_waf::program::Program;

pub use routes::{RouteMatch, RouteTable};
pub use sites::{HostMatch, SiteTable};

use crate::forwarded::TrustedProxies;
use crate::settings::{self, Action, HeaderEdit, Settings};
use crate::template::Template;
use crate::upstream::Group;

/// Everything a worker needs to serve.
#[derive(Debug)]
pub struct Plan {
    /// Counts up with each reload.
    pub generation: u64,
    /// Where connections are accepted; workers name them by index.
    pub listeners: Vec<Arc<settings::Listener>>,
    /// Hosts to sites.
    pub site_table: Arc<SiteTable>,
    /// The sites.
    pub sites: Arc<[Site]>,
    /// The groups, by the index that routes name them by.
    pub groups: Vec<Arc<Group>>,
    /// Whose forwarding fields are believed.
    pub trusted_proxies: TrustedProxies,
    /// The access logs, by the index that sites name them by.
    pub logs: Vec<Arc<Log>>,
    /// Limits of the process.
    pub process: settings::Process,
    /// What all inspections share.
    pub waf: settings::Waf,
    /// What all sites share of the cache.
    pub cache: settings::Cache,
    /// Where matches of WAF rules are counted; `None` if no route is inspected.
    pub rule_counts: Option<Arc<RuleCounts>>,
}

/// A site with its tables.
#[derive(Debug)]
pub struct Site {
    /// Its settings; the routes are in [`Site::routes`] too, with what is derived from them.
    pub settings: settings::Site,
    /// Its label in metrics.
    pub label: Label,
    /// Paths to routes.
    pub route_table: RouteTable,
    /// The routes.
    pub routes: Vec<Route>,
}

/// A route with what is derived from it.
#[derive(Debug)]
pub struct Route {
    /// Its settings.
    pub settings: settings::Route,
    /// Its label in metrics.
    pub label: Label,
    /// Changes to requests, with their templates parsed.
    pub request_edits: Vec<Edit>,
    /// Changes to responses, with their templates parsed.
    pub response_edits: Vec<Edit>,
    /// Where a redirect leads, with its template parsed.
    pub redirect: Option<Template>,
}

/// A change to header fields, ready to be applied.
#[derive(Debug)]
pub enum Edit {
    /// Replace all fields of this name by one.
    Set(Box<[u8]>, Template),
    /// Add one more field.
    Add(Box<[u8]>, Template),
    /// Remove all fields of this name.
    Remove(Box<[u8]>),
}

impl Edit {
    /// The name of the field it changes.
    pub fn name(&self) -> &[u8] {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
        }
    }
}

impl Plan {
    /// Resolves settings. Groups take over the servers of the plan before, `logs` are the settings'
    /// access logs, opened, and `labels` gives metric labels.
    pub fn build(
        settings: Settings,
        previous: Option<&Plan>,
        logs: Vec<Arc<Log>>,
        labels: &Arc<Labels>,
        now: Stamp,
    ) -> Self {
        let workers = settings.process.workers;
        let groups = settings.groups.into_iter().map(|group| {
            let before = previous.and_then(|plan| plan.group_named(&group.name));
            Arc::new(Group::new(group, labels, workers, before.map(Arc::as_ref), now))
        });
        let groups = groups.collect();
        let rule_counts = rule_counts(&settings.sites, labels);
        let site_table = SiteTable::new(settings.sites.iter().map(|site| site.hosts.as_slice()));
        let sites = settings.sites.into_iter().map(|site| Site::build(site, labels)).collect();
        Self {
            generation: previous.map_or(1, |plan| plan.generation + 1),
            listeners: settings.listeners.into_iter().map(Arc::new).collect(),
            site_table: Arc::new(site_table),
            sites,
            groups,
            trusted_proxies: TrustedProxies::new(&settings.trusted_proxies),
            logs,
            process: settings.process,
            waf: settings.waf,
            cache: settings.cache,
            rule_counts,
        }
    }

    /// The same plan with other TLS in its listeners and groups.
    #[must_use]
    pub fn renewed(
        &self,
        listeners: Vec<Arc<settings::Listener>>,
        groups: Vec<Arc<Group>>,
    ) -> Self {
        Self {
            generation: self.generation + 1,
            listeners,
            site_table: Arc::clone(&self.site_table),
            sites: Arc::clone(&self.sites),
            groups,
            trusted_proxies: self.trusted_proxies.clone(),
            logs: self.logs.clone(),
            process: self.process.clone(),
            waf: self.waf,
            cache: self.cache.clone(),
            rule_counts: self.rule_counts.clone(),
        }
    }

    /// The group with this name.
    pub fn group_named(&self, name: &str) -> Option<&Arc<Group>> {
        self.groups.iter().find(|group| group.name() == name)
    }

    /// The site that serves a host.
    pub fn site_for(&self, host: &[u8]) -> Option<&Site> {
        self.site_table.find(host).map(|index| &self.sites[index])
    }

    /// The group a route passes to, if it does.
    pub fn group_of(&self, route: &Route) -> Option<&Arc<Group>> {
        match route.settings.action {
            Action::Group(index) => self.groups.get(index),
            Action::Answer { .. } | Action::Redirect { .. } => None,
        }
    }
}

/// Where the rules of all sites are counted.
fn rule_counts(sites: &[settings::Site], labels: &Labels) -> Option<Arc<RuleCounts>> {
    let inspects =
        sites.iter().flat_map(|site| &site.routes).filter_map(|route| route.inspect.as_ref());
    let mut programs: Vec<&Arc<Program>> = Vec::new();
    for inspect in inspects {
        let program = inspect.policy.program();
        if !programs.iter().any(|known| Arc::ptr_eq(known, program)) {
            programs.push(program);
        }
    }
    if programs.is_empty() {
        return None;
    }
    let ids = programs.iter().flat_map(|program| program.rules()).map(|rule| rule.id);
    Some(Arc::new(labels.rules(ids.filter(|id| *id != 0))))
}

impl Site {
    fn build(settings: settings::Site, labels: &Labels) -> Self {
        let label = labels.site(&settings.name);
        let route_table = RouteTable::new(&settings.routes);
        let routes = settings
            .routes
            .iter()
            .map(|route| Route::build(route, labels.route(&settings.name, &route.name)))
            .collect();
        Self { settings, label, route_table, routes }
    }
}

impl Route {
    fn build(settings: &settings::Route, label: Label) -> Self {
        let redirect = match &settings.action {
            Action::Redirect { to, .. } => Some(Template::parse(to)),
            Action::Group(_) | Action::Answer { .. } => None,
        };
        Self {
            label,
            request_edits: settings.request_headers.iter().map(Edit::build).collect(),
            response_edits: settings.response_headers.iter().map(Edit::build).collect(),
            redirect,
            settings: settings.clone(),
        }
    }
}

impl Edit {
    /// Makes the change; `value` is what its template came to.
    pub(crate) fn apply(&self, headers: &mut Headers, value: &[u8]) {
        match self {
            Self::Set(name, _) => headers.set(name, value),
            Self::Add(name, _) => headers.push(name, value),
            Self::Remove(name) => headers.remove_named(name),
        }
    }

    fn build(edit: &HeaderEdit) -> Self {
        match edit {
            HeaderEdit::Set(name, value) => {
                Self::Set(name.as_bytes().into(), Template::parse(value))
            }
            HeaderEdit::Add(name, value) => {
                Self::Add(name.as_bytes().into(), Template::parse(value))
            }
            HeaderEdit::Remove(name) => Self::Remove(name.as_bytes().into()),
        }
    }
}
