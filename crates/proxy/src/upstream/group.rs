//! A group: equivalent servers, how one of them is chosen, and what became of the choice.
//!
//! Workers share it by reference. They read its members through their [`WorkerBalance`]; the control
//! thread changes them (see [`super::roster`]) without a new plan. A new plan makes new groups that
//! take over the servers, the retry budget and the resolved names of the old ones.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

use arc_swap::ArcSwap;
use tidegate_http::Request;
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Label, Labels};
use tokio::sync::Notify;

use super::balance::{Choice, HashInput, NoServer, Pick, WorkerBalance};
use super::budget::Budget;
use super::ejection::{self, History, Share, Verdict};
use super::members::Members;
use super::queue::Queue;
use super::roster::Roster;
use super::server::{Epoch, Server, ServerId};
use super::sticky;
use crate::settings::{self, Balance, HashKey};
use crate::tls::ClientTls;

/// A set of equivalent servers.
#[derive(Debug)]
pub struct Group {
    settings: settings::Group,
    label: Label,
    pub(super) workers: usize,
    pub(super) epoch: Epoch,
    pub(super) queue: Arc<Queue>,
    pub(super) members: ArcSwap<Members>,
    /// Told of each change of the members; for the one task that checks them.
    pub(super) changed: Notify,
    budget: Arc<Budget>,
    #[expect(clippy::disallowed_types, reason = "for the control thread; workers never lock it")]
    pub(super) roster: std::sync::Mutex<Roster>,
    #[expect(clippy::disallowed_types, reason = "only tried, never waited for")]
    ejecting: std::sync::Mutex<()>,
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
            queue: previous.map_or_else(Arc::default, |group| Arc::clone(&group.queue)),
            members: ArcSwap::from_pointee(Members::default()),
            changed: Notify::new(),
            budget,
            roster: Roster::new(&settings, previous).into(),
            ejecting: ().into(),
            settings,
        };
        group.fill(previous, labels, now);
        group
    }

    /// The same group with other TLS, for a plan that is otherwise the same: what the operator
    /// added or removed stays so.
    #[must_use]
    pub fn renewed(&self, tls: ClientTls, labels: &Labels, now: Stamp) -> Group {
        let settings = settings::Group { tls: Some(Arc::new(tls)), ..self.settings.clone() };
        let group = Group::new(settings, labels, self.workers, Some(self), now);
        *group.roster() = self.roster().clone();
        group.fill(Some(self), labels, now);
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

    /// Those who wait for a place at one of its servers.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
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
        let pick = worker.choose(self, choice)?;
        // Once per request: not for retries, and not while it waits for a server.
        if choice.tried.is_empty() {
            self.budget.count_request(&mut worker.tally, choice.now);
        }
        Ok(pick)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_http::Request;

    use super::super::fixture::{at, choice, group, metrics, settings, weighted, worker};
    use super::*;
    use crate::settings::Ejection;

    fn with_ejection(servers: usize, share_max_percent: u8) -> Group {
        let mut settings = settings(Balance::RoundRobin, weighted(&vec![1; servers]));
        settings.ejection =
            Some(Ejection { failures: 3, time: Duration::from_secs(10), share_max_percent });
        group(settings)
    }

    fn fail(group: &Group, slot: usize, times: usize, now: Stamp) {
        for _ in 0..times {
            group.report(&group.members().list()[slot].server, Outcome::Failed, now);
        }
    }

    fn ejected(group: &Group, now: Stamp) -> Vec<usize> {
        let members = group.members();
        let list = members.list().iter().enumerate();
        list.filter(|(_, member)| member.server.standing().ejected_until > now)
            .map(|(slot, _)| slot)
            .collect()
    }

    #[test]
    fn failures_in_a_row_eject_and_an_answer_ends_the_row() {
        let group = with_ejection(3, 50);
        fail(&group, 1, 2, at(1));
        group.report(&group.members().list()[1].server, Outcome::Answered, at(1));
        fail(&group, 1, 2, at(1));
        assert_eq!(ejected(&group, at(1)), [0; 0]);
        fail(&group, 1, 1, at(2));
        assert_eq!(ejected(&group, at(2)), [1]);
        assert_eq!(ejected(&group, at(11)), [1]);
        assert_eq!(ejected(&group, at(12)), [0; 0]);
        // What was under way fails late and changes nothing; the next row lasts twice as long.
        fail(&group, 1, 3, at(13));
        assert_eq!(ejected(&group, at(32)), [1]);
        assert_eq!(ejected(&group, at(33)), [0; 0]);
    }

    #[test]
    fn no_more_than_its_share_of_a_group_is_ejected() {
        let group = with_ejection(4, 50);
        for slot in 0..4 {
            fail(&group, slot, 10, at(1));
        }
        assert_eq!(ejected(&group, at(1)), [0, 1]);
        // With the first back, the next failure of another has its consequence.
        fail(&group, 2, 1, at(11));
        assert_eq!(ejected(&group, at(11)), [2]);
    }

    #[test]
    fn no_ejection_without_settings() {
        let group = group(settings(Balance::RoundRobin, weighted(&[1, 1])));
        fail(&group, 0, 100, at(1));
        assert_eq!(ejected(&group, at(1)), [0; 0]);
    }

    #[test]
    fn workers_keep_the_share_together() {
        let group = with_ejection(8, 25);
        std::thread::scope(|scope| {
            for slot in 0..8 {
                let group = &group;
                scope.spawn(move || fail(group, slot, 1_000, at(1)));
            }
        });
        assert_eq!(ejected(&group, at(1)).len(), 2);
    }

    #[test]
    fn a_group_all_ejected_still_serves() {
        let group = with_ejection(2, 100);
        fail(&group, 0, 3, at(1));
        fail(&group, 1, 3, at(1));
        assert_eq!(ejected(&group, at(1)), [0, 1]);
        let pick = group.choose(&choice(at(1), &[]), &mut worker()).unwrap();
        assert_eq!(pick.tier, super::super::Tier::Panic);
    }

    #[test]
    fn the_budget_counts_first_attempts_and_outlives_a_plan() {
        let old = group(settings(Balance::RoundRobin, weighted(&[1, 1])));
        let mut worker = worker();
        let first = old.members().list()[0].server.id();
        for _ in 0..1_000 {
            old.choose(&choice(at(5), &[]), &mut worker).unwrap();
            old.choose(&choice(at(5), &[first]), &mut worker).unwrap();
        }
        old.choose(&choice(at(6), &[]), &mut worker).unwrap();
        let metrics = metrics();
        let new = Group::new(old.settings().clone(), metrics.labels(), 1, Some(&old), at(6));
        let allowed = (0..10_000).take_while(|_| new.budget().withdraw(at(6)).is_ok()).count();
        assert_eq!(allowed, 10 + 200);
    }

    #[test]
    fn what_is_hashed() {
        let mut request = Request::new();
        request.set_path_and_query(b"/a?b");
        request.headers.push(b"X-Tenant", b"blue");
        request.headers.push(b"cookie", b"a=1; id=77");
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let check = |key: HashKey, client, expected: Option<&[u8]>| {
            let group = group(settings(Balance::Hash(key.clone()), weighted(&[1])));
            let choice = group.choice(client, &request, &[], at(1));
            let got = match choice.hash_input {
                HashInput::None => None,
                HashInput::Address(octets) => Some(octets.to_vec()),
                HashInput::Bytes(bytes) => Some(bytes.to_vec()),
            };
            assert_eq!(got.as_deref(), expected, "{key:?}");
        };
        check(HashKey::Uri, Some(client), Some(b"/a?b"));
        check(HashKey::Header("x-tenant".into()), Some(client), Some(b"blue"));
        check(HashKey::Header("x-other".into()), Some(client), None);
        check(HashKey::Cookie("id".into()), Some(client), Some(b"77"));
        check(HashKey::Cookie("ID".into()), Some(client), None);
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1];
        check(HashKey::ClientAddress, Some(client), Some(&mapped));
        check(HashKey::ClientAddress, None, None);
    }
}
