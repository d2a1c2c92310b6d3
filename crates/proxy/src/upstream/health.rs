//! Active checks: servers are probed again and again, and go out and come back by what is found.
//!
//! Runs on the control thread's runtime, never on a worker. Each server has a task of its own, which
//! starts at a random moment so that checks do not come in bursts, and ends with the server's
//! membership. A change is one event; a check that changes nothing is only counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Check, Metrics};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time;

use super::group::Group;
use super::members::Member;
use super::probe::{self, Failed};
use super::schedule::Random;
use super::server::ServerId;
use super::standing::Health;
use super::watch::CONTROL;
use crate::settings::HealthCheck;

/// The longest a server's first check waits.
const START_MAX: Duration = Duration::from_secs(1);

/// Checks the servers of a group for as long as it is polled.
pub(super) async fn check(group: Arc<Group>, metrics: Arc<Metrics>) {
    let Some(settings) = group.settings().health.clone() else { return };
    let mut tasks = JoinSet::new();
    let mut checked: HashMap<ServerId, AbortHandle> = HashMap::new();
    loop {
        let members = group.members();
        checked.retain(|id, task| {
            let stays = members.list().iter().any(|member| member.server.id() == *id);
            if !stays {
                task.abort();
            }
            stays
        });
        for member in members.list() {
            checked.entry(member.server.id()).or_insert_with(|| {
                let task = check_server(
                    Arc::clone(&group),
                    Arc::clone(member),
                    settings.clone(),
                    Arc::clone(&metrics),
                );
                tasks.spawn(task)
            });
        }
        while tasks.try_join_next().is_some() {}
        group.changed.notified().await;
    }
}

async fn check_server(
    group: Arc<Group>,
    member: Arc<Member>,
    settings: HealthCheck,
    metrics: Arc<Metrics>,
) {
    let server = &member.server;
    let mut random =
        Random::seeded(Stamp::now().as_nanos() ^ u64::from(server.id().number()) << 32);
    time::sleep(random.part_of(settings.interval.min(START_MAX))).await;
    let mut row = Row::default();
    loop {
        let probe = probe::probe(group.settings(), &settings.probe, &member);
        let result = time::timeout(settings.timeout, probe).await.unwrap_or(Err(Failed::Late));
        let check = if result.is_ok() { Check::Passed } else { Check::Failed };
        metrics.worker(CONTROL).health_checked(server.label(), check);
        let before = server.standing().health;
        if let Some(after) = row.judge(before, check, &settings) {
            server.set_health(after, Stamp::now());
            report(&group, &member, before, &result);
        }
        // Up to a tenth more or less, or gates that start together would check together.
        let interval = settings.interval * 9 / 10;
        time::sleep(interval + random.part_of(settings.interval / 5)).await;
    }
}

fn report(group: &Group, member: &Member, before: Health, result: &Result<(), Failed>) {
    let (group, server) = (group.name(), member.server.name());
    match (before, result) {
        (_, Err(reason)) => tracing::warn!(group, server, %reason, "server down: checks fail"),
        (Health::Down, Ok(())) => tracing::info!(group, server, "server up: checks succeed again"),
        (Health::Unknown | Health::Up, Ok(())) => {
            tracing::debug!(group, server, "server up: its first check succeeded");
        }
    }
}

/// Results in a row.
#[derive(Debug, Default)]
struct Row {
    passed: u32,
    failed: u32,
}

impl Row {
    /// What a check makes of a server; `None` if it stays what it was. The first success of a server
    /// that was never checked is enough.
    fn judge(&mut self, before: Health, check: Check, settings: &HealthCheck) -> Option<Health> {
        *self = match check {
            Check::Passed => Row { passed: self.passed.saturating_add(1), failed: 0 },
            Check::Failed => Row { passed: 0, failed: self.failed.saturating_add(1) },
        };
        match (before, check) {
            (Health::Unknown, Check::Passed) => Some(Health::Up),
            (Health::Down, Check::Passed) if self.passed >= settings.rise => Some(Health::Up),
            (Health::Unknown | Health::Up, Check::Failed) if self.failed >= settings.fall => {
                Some(Health::Down)
            }
            (Health::Down | Health::Up, Check::Passed)
            | (Health::Unknown | Health::Up | Health::Down, Check::Failed) => None,
        }
    }
}

#[cfg(test)]
mod tests;
