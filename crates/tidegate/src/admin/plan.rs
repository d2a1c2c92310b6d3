//! `/plan`: what is in service, as it was resolved.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tidegate_proxy::plan::{Plan, Route, Site};
use tidegate_proxy::settings::{Action, Host, Listener, PathRule, Protocols};

use super::answer::Answer;
use crate::control::Gate;
use crate::control::reload::Contents;

/// The plan in service.
pub(super) fn answer(gate: &Gate) -> Answer {
    let plan = std::sync::Arc::clone(&gate.running.borrow().plan);
    Answer::ok(text(&plan), json(&plan))
}

fn text(plan: &Plan) -> String {
    let mut out = format!("plan {}: {}\n", plan.generation, Contents::of(plan));
    // Writing to a string cannot fail.
    for listener in &plan.listeners {
        let _ = writeln!(out, "\nlisten {}  {}", listener.name, spoken(listener));
    }
    for site in plan.sites.iter() {
        let hosts: Vec<_> = site.settings.hosts.iter().map(host).collect();
        let _ = writeln!(out, "\nsite {}  {}", site.settings.name, hosts.join(" "));
        for route in &site.routes {
            let _ = writeln!(out, "  {}  {}", rule(route), action(plan, route));
        }
    }
    for group in &plan.groups {
        let members = group.members();
        let servers: Vec<_> = members.list().iter().map(|member| member.server.name()).collect();
        let _ = writeln!(out, "\ngroup {}  {}", group.name(), servers.join(" "));
    }
    out
}

fn json(plan: &Plan) -> Value {
    json!({
        "generation": plan.generation,
        "listeners": plan.listeners.iter().map(|listener| json!({
            "address": listener.name,
            "speaks": spoken(listener),
        })).collect::<Vec<_>>(),
        "sites": plan.sites.iter().map(|site| site_json(plan, site)).collect::<Vec<_>>(),
        "groups": plan.groups.iter().map(|group| json!({
            "name": group.name(),
            "servers": group.members().list().iter()
                .map(|member| member.server.name().to_owned())
                .collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn site_json(plan: &Plan, site: &Site) -> Value {
    json!({
        "name": site.settings.name,
        "hosts": site.settings.hosts.iter().map(host).collect::<Vec<_>>(),
        "routes": site.routes.iter().map(|route| json!({
            "name": route.settings.name,
            "matches": rule(route),
            "action": action(plan, route),
        })).collect::<Vec<_>>(),
    })
}

fn spoken(listener: &Listener) -> String {
    let versions = match listener.protocols {
        Protocols::Http1 => "HTTP/1",
        Protocols::Http2 => "HTTP/2",
        Protocols::Both => "HTTP/1 HTTP/2",
    };
    match &listener.tls {
        None => versions.into(),
        Some(tls) => {
            let names: Vec<_> = tls.names().collect();
            format!("{versions} TLS for {}", names.join(" "))
        }
    }
}

fn host(host: &Host) -> String {
    match host {
        Host::Exact(name) => name.clone(),
        Host::Below(name) => format!("*.{name}"),
        Host::Any => "*".into(),
    }
}

fn rule(route: &Route) -> String {
    let methods: Vec<_> =
        route.settings.methods.iter().map(|method| method.text.as_str()).collect();
    let path = match &route.settings.path {
        PathRule::Exact(path) => format!("= {path}"),
        PathRule::Prefix(path) => path.clone(),
    };
    if methods.is_empty() { path } else { format!("{} {path}", methods.join("|")) }
}

fn action(plan: &Plan, route: &Route) -> String {
    match &route.settings.action {
        Action::Group(_) => {
            let group = plan.group_of(route).map_or("", |group| group.name());
            format!("-> {group}")
        }
        Action::Answer { status, .. } => format!("answer {status}"),
        Action::Redirect { status, to } => format!("redirect {status} {to}"),
    }
}
