//! Stop 2, route: the site by host, the route by path and method.

use tidegate_http::target;
use tidegate_http::target::Scheme;
use tidegate_telemetry::Stamp;

use super::answer::Answer;
use super::{Exchange, Place, Refusal, Stop, Surroundings, forward};
use crate::plan::{Route, RouteMatch, Site};
use crate::settings::{Action, HttpsRedirect};

/// A request whose site and route are known.
pub(crate) struct Routed<'p> {
    pub(crate) site: &'p Site,
    pub(crate) route: &'p Route,
}

impl Routed<'_> {
    /// The group the route passes to, by index.
    pub(crate) fn group(&self) -> Option<usize> {
        match self.route.settings.action {
            Action::Group(index) => Some(index),
            Action::Answer { .. } | Action::Redirect { .. } => None,
        }
    }
}

/// Finds site and route, and leaves both in `place` as far as they were found.
pub(super) fn route<'p>(
    around: &Surroundings<'p>,
    exchange: &mut Exchange,
    place: &mut Option<Place<'p>>,
) -> Stop<'p> {
    let found = find(around, exchange, place);
    exchange.record.stamps.routed = Stamp::now();
    match found {
        Ok(stop) => stop,
        Err(refusal) => Stop::Refuse(refusal),
    }
}

fn find<'p>(
    around: &Surroundings<'p>,
    exchange: &mut Exchange,
    place: &mut Option<Place<'p>>,
) -> Result<Stop<'p>, Refusal> {
    let origin = forward::origin(around, exchange);
    (exchange.client_addr, exchange.scheme) = (origin.client, origin.scheme);
    let site = around.plan.site_for(&exchange.request.host).ok_or(Refusal::NoSite)?;
    *place = Some(Place { site, route: None });
    exchange.record.site = site.label;

    let request = &exchange.request;
    if request.headers.look_alike().is_some() {
        return Err(Refusal::LookAlike);
    }
    let form = target::normalize_path(request.path(), &mut exchange.normal_path);
    exchange.path_form = Some(form.map_err(Refusal::Path)?);

    if let Some(redirect) = site_redirect(exchange, site) {
        return Ok(Stop::Answer(redirect));
    }
    let request = &exchange.request;
    let path = exchange.path();
    match site.route_table.find(path, request.method, request.method_bytes()) {
        RouteMatch::Found(index) => {
            let route = &site.routes[index];
            *place = Some(Place { site, route: Some(route) });
            exchange.record.route = route.label;
            Ok(Stop::Admit(Routed { site, route }))
        }
        RouteMatch::MethodNotAllowed => {
            Err(Refusal::MethodNotAllowed(site.route_table.allowed(path)))
        }
        RouteMatch::NotFound => Err(Refusal::NoRoute),
    }
}

/// The redirects a whole site can ask for: to https, to its canonical host.
fn site_redirect(exchange: &Exchange, site: &Site) -> Option<Answer> {
    let settings = &site.settings;
    let host = settings.canonical_host.as_deref().map(str::as_bytes);
    let other_host = host.filter(|host| **host != *exchange.request.host);
    if let (HttpsRedirect::To(port), Scheme::Http) = (settings.https, exchange.scheme) {
        let host = other_host.unwrap_or(&exchange.request.host);
        let port = Some(port).filter(|port| *port != Scheme::Https.default_port());
        return Some(Answer::redirect_site(b"https", host, port, exchange));
    }
    let scheme = exchange.scheme.name().as_bytes();
    Some(Answer::redirect_site(scheme, other_host?, exchange.request.port, exchange))
}
