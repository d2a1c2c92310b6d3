//! A group: equivalent servers, how one of them is chosen, and what became of the choice.
//!
//! Workers share it by reference. They read its members through their [`WorkerBalance`]; the control
//! thread changes them (see [`super::roster`]) without a new plan. A new plan makes new groups that
//! take over the servers, the retry budget and the resolved names of the old ones.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

use arc_swap::ArcSwap;
use tidegate_http::Request;
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Label, Labels};

use super::balance::{Choice, HashInput, NoServer, Pick, WorkerBalance};
use super::budget::Budget;
use super::ejection::{self, History, Share, Verdict};
use super::members::Members;
use super::roster::Roster;
use super::server::{Epoch, Server, ServerId};
use super::sticky;
use crate::settings::{self, Balance, HashKey};

/// A set of equivalent servers.
#[derive(Debug)]
pub struct Group {
    settings: settings::Group,
    label: Label,
    pub(super) workers: usize,
    pub(super) epoch: Epoch,
    pub(super) members: ArcSwap<Members>,
    budget: Arc<Budget>,
    #[expect(clippy::disallowed_types, reason = "for the control thread; workers never lock it")]
    pub(super) roster: std::sync::Mutex<Roster>,
    #[expect(clippy::disallowed_types, reason = "only tried, never waited for")]
    ejecting: std::sync::Mutex<()>,
}

/// The groups of the running plan, which those of the next take over from.
#[derive(Debug)]
pub struct Groups {
    workers: usize,
    running: HashMap<String, Arc<Group>>,
}

impl Groups {
    /// None yet, for a process with so many workers.
    pub fn new(workers: usize) -> Groups {
        Groups { workers, running: HashMap::new() }
    }

    /// The groups of a plan, in order. Nothing that requests see changes by this.
    pub fn resolve(&self, settings: &[settings::Group], labels: &Labels) -> Vec<Arc<Group>> {
        let now = Stamp::now();
        let resolve = |settings: &settings::Group| {
            let previous = self.running.get(&settings.name).map(Arc::as_ref);
            Arc::new(Group::new(settings.clone(), labels, self.workers, previous, now))
        };
        settings.iter().map(resolve).collect()
    }

    /// The groups of a plan that has been swapped in; those before are retired.
    pub fn replace(&mut self, groups: &[Arc<Group>]) {
        let next = groups.iter().map(|group| (group.name().to_owned(), Arc::clone(group)));
        let before = std::mem::replace(&mut self.running, next.collect());
        for (name, group) in before {
            group.retire(self.running.get(&name).map(Arc::as_ref));
        }
    }
}

/// How a request to a server ended, as far as it speaks about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It answered.
    Answered,
    /// It failed in a way that [`super::retry::Failure::blame`] puts on the server.
    Failed,
}

impl Group {
    /// A group as a plan says, with the servers of the group that it follows. Nothing that requests
    /// see changes until the plan is swapped in; then [`Group::retire`] the old one.
    pub fn new(
        settings: settings::Group,
        labels: &Labels,
        workers: usize,
        previous: Option<&Group>,
        now: Stamp,
    ) -> Group {
        let share = settings.retry_budget;
        let budget = previous
            .filter(|group| group.settings.retry_budget.to_bits() == share.to_bits())
            .map_or_else(|| Arc::new(Budget::new(share)), |group| Arc::clone(&group.budget));
        let group = Group {
            label: labels.group(&settings.name),
            workers,
            epoch: previous
                .map_or_else(|| Arc::new(AtomicU64::new(0)), |group| Arc::clone(&group.epoch)),
            members: ArcSwap::from_pointee(Members::default()),
            budget,
            roster: Roster::new(&settings, previous).into(),
            ejecting: ().into(),
            settings,
        };
        group.fill(previous, labels, now);
        group
    }

    /// Its settings.
    pub fn settings(&self) -> &settings::Group {
        &self.settings
    }

    /// Its name in logs, metrics and the admin API.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Its label in metrics, for requests that find no server.
    pub fn label(&self) -> Label {
        self.label
    }

    /// Its retry budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Its members now.
    pub fn members(&self) -> Arc<Members> {
        self.members.load_full()
    }

    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }

    /// What a choice for this request depends on. `tried` holds the servers that failed it already.
    pub fn choice<'a>(
        &self,
        client: Option<IpAddr>,
        request: &'a Request,
        tried: &'a [ServerId],
        now: Stamp,
    ) -> Choice<'a> {
        let sticky = self.settings.sticky.as_ref();
        Choice {
            hash_input: match &self.settings.balance {
                Balance::RoundRobin | Balance::LeastRequests => HashInput::None,
                Balance::Hash(key) => hash_input(key, client, request),
            },
            sticky: sticky
                .and_then(|sticky| sticky::cookie(&request.headers, sticky.cookie.as_bytes())),
            tried,
            now,
        }
    }

    /// Chooses a server and counts the request on it.
    pub fn choose(
        &self,
        choice: &Choice<'_>,
        worker: &mut WorkerBalance,
    ) -> Result<Pick, NoServer> {
        if choice.tried.is_empty() {
            self.budget.count_request(&mut worker.tally, choice.now);
        }
        worker.choose(self, choice)
    }

    /// Takes note of how a request ended, and ejects a server that failed too many in a row.
    #[inline]
    pub fn report(&self, server: &Server, outcome: Outcome, now: Stamp) {
        match outcome {
            Outcome::Answered => server.forget_failures(),
            Outcome::Failed => self.failed(server, now),
        }
    }

    #[cold]
    fn failed(&self, server: &Server, now: Stamp) {
        let Some(ejection) = &self.settings.ejection else { return };
        let failures = server.count_failure();
        if failures < ejection.failures {
            return;
        }
        // One at a time, or two servers together could exceed the share. Whoever finds another at it
        // leaves: the next failure decides.
        let Ok(_guard) = self.ejecting.try_lock() else { return };
        let history = History {
            failures,
            ejections: server.ejections(),
            ejected_until: server.standing().ejected_until,
        };
        match ejection::judge(history, self.share(now), ejection, now) {
            Verdict::Keep | Verdict::ShareReached => {}
            Verdict::Eject { until, ejections } => {
                server.eject(until, ejections);
                tracing::warn!(
                    group = self.name(),
                    server = server.name(),
                    failures,
                    seconds = until.since(now).as_secs(),
                    "server ejected: it failed several requests in a row"
                );
            }
        }
    }

    fn share(&self, now: Stamp) -> Share {
        let members = self.members.load();
        let ejected = members.list().iter().filter(|member| {
            // The stamp, not the fitness: one that is ejected and down counts as ejected.
            member.server.standing().ejected_until > now
        });
        Share { ejected: ejected.count(), servers: members.list().len() }
    }
}

fn hash_input<'a>(key: &HashKey, client: Option<IpAddr>, request: &'a Request) -> HashInput<'a> {
    let bytes = match key {
        HashKey::ClientAddress => {
            return client.map_or(HashInput::None, |address| HashInput::Address(mapped(address)));
        }
        HashKey::Header(name) => {
            let name = name.as_bytes();
            let mut fields = request.headers.iter();
            fields.find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
        }
        HashKey::Cookie(name) => sticky::cookie(&request.headers, name.as_bytes()),
        HashKey::Uri => Some(request.path_and_query.as_slice()),
    };
    bytes.map_or(HashInput::None, HashInput::Bytes)
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
