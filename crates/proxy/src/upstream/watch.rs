//! What watches over the groups of a plan while it runs: DNS, active checks, and the states that
//! metrics show. All of it runs as tasks on the control thread's runtime and ends with the
//! [`Watch`].

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Label, Metrics, ServerState};
use tokio::task::JoinSet;
use tokio::time;

use super::dns::{self, Resolver};
use super::group::Group;
use super::health;
use super::standing::Fitness;

/// The number under which the control thread counts in metrics that workers have by themselves.
pub(super) const CONTROL: u16 = u16::MAX;

/// How often the states of servers are told to metrics.
const STATES_EVERY: Duration = Duration::from_secs(1);

/// The tasks that watch the groups of one plan; dropping it ends them. When a plan is replaced, the
/// old watch goes before the new one comes.
#[derive(Debug)]
#[must_use = "nothing is watched once this is dropped"]
pub struct Watch {
    _tasks: JoinSet<()>,
}

impl Watch {
    /// Starts to watch these groups. Called on the control thread, within its runtime.
    pub fn start(groups: &[Arc<Group>], resolver: &Arc<Resolver>, metrics: &Arc<Metrics>) -> Watch {
        let mut tasks = JoinSet::new();
        for group in groups {
            for (position, _) in group.names() {
                let resolver = Arc::clone(resolver);
                let metrics = Arc::clone(metrics);
                tasks.spawn(dns::keep(Arc::clone(group), position, resolver, metrics));
            }
            if group.settings().health.is_some() {
                tasks.spawn(health::check(Arc::clone(group), Arc::clone(metrics)));
            }
        }
        tasks.spawn(tell(groups.to_vec(), Arc::clone(metrics)));
        Watch { _tasks: tasks }
    }
}

/// Tells metrics how servers stand.
async fn tell(groups: Vec<Arc<Group>>, metrics: Arc<Metrics>) {
    let mut told = Told { metrics, labels: HashSet::new() };
    loop {
        told.tell(&groups, Stamp::now());
        time::sleep(STATES_EVERY).await;
    }
}

/// The servers that metrics know a state of, by this watch.
struct Told {
    metrics: Arc<Metrics>,
    labels: HashSet<Label>,
}

impl Told {
    fn tell(&mut self, groups: &[Arc<Group>], now: Stamp) {
        let control = self.metrics.control();
        let mut labels = HashSet::new();
        for group in groups {
            for member in group.members().list() {
                let state = match member.server.standing().fitness(now) {
                    Fitness::Fit => ServerState::Up,
                    Fitness::Ejected => ServerState::Ejected,
                    Fitness::Down => ServerState::Down,
                    Fitness::Draining | Fitness::Removed => ServerState::Draining,
                };
                control.server_state(member.server.label(), state);
                labels.insert(member.server.label());
            }
        }
        for gone in self.labels.difference(&labels) {
            control.server_gone(*gone);
        }
        self.labels = labels;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        for label in &self.labels {
            self.metrics.control().server_gone(*label);
        }
    }
}
