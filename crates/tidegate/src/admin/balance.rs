//! `/lb-status`: groups and their servers, what is wrong first.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::Role;
use tidegate_proxy::upstream::standing::{Admin, Fitness, Health};
use tidegate_proxy::upstream::{Group, Member};
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Snapshot, TargetTotals};

use super::answer::Answer;
use super::shown::{Table, count, span};
use crate::control::Gate;

/// The servers now.
pub(super) fn answer(gate: &Gate) -> Answer {
    let plan = std::sync::Arc::clone(&gate.running.borrow().plan);
    let groups = survey(&plan, &gate.metrics.snapshot(), Stamp::now());
    let json = json!({ "groups": groups.iter().map(GroupView::json).collect::<Vec<_>>() });
    Answer::ok(text(&groups), json)
}

struct GroupView {
    name: String,
    servers: Vec<ServerView>,
    unresolved: Vec<String>,
}

struct ServerView {
    name: String,
    host: String,
    fitness: Fitness,
    health: Health,
    admin: Admin,
    ejected_for: Duration,
    weight: u32,
    role: Role,
    in_flight: u32,
    connections: u32,
    connections_max: Option<u32>,
    totals: TargetTotals,
}

fn survey(plan: &Plan, snapshot: &Snapshot, now: Stamp) -> Vec<GroupView> {
    let mut groups: Vec<GroupView> = plan
        .groups
        .iter()
        .map(|group| GroupView {
            name: group.name().to_owned(),
            servers: servers(group, snapshot, now),
            unresolved: group
                .names()
                .filter(|(position, _)| !group.is_resolved(*position))
                .map(|(_, name)| name.to_owned())
                .collect(),
        })
        .collect();
    // A stable sort: groups without trouble stay as the configuration has them.
    groups.sort_by_key(|group| {
        let fit = group.servers.iter().filter(|server| server.fitness == Fitness::Fit).count();
        match (fit, group.servers.len() - fit + group.unresolved.len()) {
            (0, _) => 0,
            (_, 1..) => 1,
            (_, 0) => 2,
        }
    });
    groups
}

fn servers(group: &Group, snapshot: &Snapshot, now: Stamp) -> Vec<ServerView> {
    let totals = |server: &str| {
        let mut targets = snapshot.targets.iter();
        let found = targets
            .find(|target| &*target.names.whole == group.name() && &*target.names.part == server);
        found.map(|target| target.totals.clone()).unwrap_or_default()
    };
    let view = |member: &std::sync::Arc<Member>| {
        let server = &member.server;
        let standing = server.standing();
        ServerView {
            name: server.name().to_owned(),
            host: member.host.to_string(),
            fitness: standing.fitness(now),
            health: standing.health,
            admin: standing.admin,
            ejected_for: standing.ejected_until.since(now),
            weight: member.weight,
            role: member.role,
            in_flight: server.in_flight(),
            connections: server.connections(),
            connections_max: member.connections_max,
            totals: totals(server.name()),
        }
    };
    let mut servers: Vec<ServerView> = group.members().list().iter().map(view).collect();
    servers.sort_by_key(|server| match server.fitness {
        Fitness::Down => 0,
        Fitness::Ejected => 1,
        Fitness::Draining | Fitness::Removed => 2,
        Fitness::Fit => 3,
    });
    servers
}

impl ServerView {
    fn state(&self) -> &'static str {
        match self.fitness {
            Fitness::Fit => "up",
            Fitness::Ejected => "ejected",
            Fitness::Down => "down",
            Fitness::Draining => "draining",
            Fitness::Removed => "removed",
        }
    }

    fn role(&self) -> &'static str {
        match self.role {
            Role::Primary => "primary",
            Role::Backup => "backup",
        }
    }

    fn health(&self) -> &'static str {
        match self.health {
            Health::Unknown => "unknown",
            Health::Up => "up",
            Health::Down => "down",
        }
    }

    fn failures(&self) -> u64 {
        self.totals.failures.iter().sum()
    }

    fn json(&self) -> Value {
        let totals = &self.totals;
        let first_byte = |quantile| {
            totals.first_byte.quantile(quantile).map(|duration: Duration| duration.as_secs_f64())
        };
        json!({
            "server": self.name,
            "host": self.host,
            "state": self.state(),
            "health": self.health(),
            "draining": self.admin == Admin::Draining,
            "ejected_for_seconds": self.ejected_for.as_secs(),
            "weight": self.weight,
            "role": self.role(),
            "in_flight": self.in_flight,
            "connections": self.connections,
            "connections_max": self.connections_max,
            "responses": totals.responses.iter().sum::<u64>(),
            "failures": self.failures(),
            "retries": totals.retries,
            "connects": totals.connects,
            "reuses": totals.reuses,
            "checks_passed": totals.checks_passed,
            "checks_failed": totals.checks_failed,
            "bytes_in": totals.bytes_in,
            "bytes_out": totals.bytes_out,
            "first_byte_p50_seconds": first_byte(0.5),
            "first_byte_p99_seconds": first_byte(0.99),
        })
    }

    fn row(&self) -> Vec<String> {
        let state = match self.fitness {
            Fitness::Ejected => format!("ejected, {} more", span(self.ejected_for)),
            Fitness::Down if self.admin == Admin::Draining => "down, draining".into(),
            _ => self.state().to_owned(),
        };
        let role = match self.role {
            Role::Primary => self.weight.to_string(),
            Role::Backup => format!("{} backup", self.weight),
        };
        let connections = match self.connections_max {
            Some(max) => format!("{}/{}", self.connections, max),
            None => self.connections.to_string(),
        };
        let quantile =
            |quantile| self.totals.first_byte.quantile(quantile).map_or_else(|| "-".into(), span);
        vec![
            format!("  {}", self.name),
            state,
            role,
            self.in_flight.to_string(),
            connections,
            count(self.totals.responses.iter().sum()),
            count(self.failures()),
            quantile(0.5),
            quantile(0.99),
        ]
    }
}

impl GroupView {
    fn json(&self) -> Value {
        json!({
            "group": self.name,
            "servers": self.servers.iter().map(ServerView::json).collect::<Vec<_>>(),
            "unresolved": self.unresolved,
        })
    }
}

fn text(groups: &[GroupView]) -> String {
    let headings = [
        "server",
        "state",
        "weight",
        "in flight",
        "connections",
        "responses",
        "failures",
        "p50",
        "p99",
    ];
    let mut table = Table::new(2, headings);
    for group in groups {
        table.row(vec![group.name.clone()]);
        for name in &group.unresolved {
            table.row(vec![format!("  {name}"), "does not resolve".into()]);
        }
        group.servers.iter().for_each(|server| table.row(server.row()));
    }
    if table.is_empty() {
        return "no groups: every route answers by itself\n".into();
    }
    let mut out = String::new();
    table.write(&mut out);
    out.trim_start().to_owned()
}
