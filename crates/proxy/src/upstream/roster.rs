//! Who is in a group, and the ways in which that changes: a plan, DNS, and the operator.
//!
//! All of it happens on the control thread, under one lock that workers never take; each change
//! publishes new [`Members`]. Servers are known by their address, so one that stays keeps its state.
//!
//! The configuration is the truth about who belongs to a group. What the operator adds or removes
//! holds until the next reload; what he drains stays drained as long as the server is configured.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, MutexGuard, PoisonError};

use tidegate_http::target::Scheme;
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::Labels;

use super::group::Group;
use super::members::{Member, Members};
use super::server::Server;
use super::standing::{Admin, Health};
use crate::settings::{self, Endpoint, PeerAddress};

/// Who is to be in a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster {
    /// The addresses of each configured server that is a name; `None` until it resolved once.
    resolved: Vec<Option<Vec<IpAddr>>>,
    /// Added by the operator.
    added: Vec<settings::Server>,
    /// Removed by the operator.
    removed: HashSet<PeerAddress>,
}

/// Why a change by the operator is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosterError {
    /// No server of the group has this name.
    Unknown,
    /// A server with this address is in the group already.
    Present,
    /// A DNS name: only addresses and Unix sockets can be added while running.
    Name,
    /// More servers than a group may have.
    TooMany,
}

/// Servers of one group: enough for any pool, few enough for a table to be made in milliseconds.
const SERVERS_MAX: usize = 4096;

impl Roster {
    /// The roster of a plan's group. What names resolved to under the last plan is kept, so that a
    /// reload does not wait for DNS.
    pub(super) fn new(settings: &settings::Group, previous: Option<&Group>) -> Roster {
        let mut known = HashMap::new();
        if let Some(previous) = previous {
            let roster = previous.roster();
            for (server, addresses) in previous.settings().servers.iter().zip(&roster.resolved) {
                if let (Endpoint::Name(name, _), Some(addresses)) = (&server.endpoint, addresses) {
                    known.insert(name.clone(), addresses.clone());
                }
            }
        }
        let resolved = settings.servers.iter().map(|server| match &server.endpoint {
            Endpoint::Name(name, _) => known.get(name).cloned(),
            Endpoint::Address(_) | Endpoint::Unix(_) => None,
        });
        Roster { resolved: resolved.collect(), ..Roster::default() }
    }

    /// Every address that is to be a server, with the settings it comes from; the first that names
    /// an address decides its terms.
    fn wanted<'a>(
        &'a self,
        settings: &'a settings::Group,
    ) -> Vec<(PeerAddress, &'a settings::Server)> {
        let mut seen = HashSet::new();
        let configured = settings.servers.iter().zip(&self.resolved);
        let added = self.added.iter().map(|server| (server, &None));
        let mut wanted = Vec::new();
        for (server, resolved) in configured.chain(added) {
            for address in addresses(&server.endpoint, resolved.as_deref()) {
                let new = !self.removed.contains(&address) && seen.insert(address.clone());
                if new && wanted.len() < SERVERS_MAX {
                    wanted.push((address, server));
                }
            }
        }
        wanted
    }
}

fn addresses(endpoint: &Endpoint, resolved: Option<&[IpAddr]>) -> Vec<PeerAddress> {
    match endpoint {
        Endpoint::Address(address) => vec![PeerAddress::Tcp(address.ip(), address.port())],
        Endpoint::Unix(path) => vec![PeerAddress::Unix(path.clone())],
        Endpoint::Name(_, port) => {
            let resolved = resolved.unwrap_or_default().iter();
            resolved.map(|address| PeerAddress::Tcp(*address, *port)).collect()
        }
    }
}

impl Group {
    /// Makes the first members, with the servers of the group that this one follows.
    pub(super) fn fill(&self, previous: Option<&Group>, labels: &Labels, now: Stamp) {
        let before = previous.map(Group::members).unwrap_or_default();
        let joining = if before.list().is_empty() { Joining::AtStart } else { Joining::Later(now) };
        self.publish(&self.roster(), &before, labels, joining);
    }

    /// Called when this group's plan has been replaced: connections to servers that the successor
    /// does not have are not kept any longer, and where it does not check its servers, what checks
    /// found is forgotten, because nobody would find a server up again that was down.
    pub fn retire(&self, successor: Option<&Group>) {
        let successors = successor.map(Group::members).unwrap_or_default();
        let stays: HashSet<_> = successors.list().iter().map(|it| it.server.id()).collect();
        let checked = successor.is_some_and(|group| group.settings().health.is_some());
        for member in self.members().list() {
            if !stays.contains(&member.server.id()) {
                member.server.retire();
            } else if !checked {
                member.server.forget_health();
            }
        }
    }

    /// The DNS names among its configured servers, with their positions.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.settings().servers.iter().enumerate().filter_map(|(position, server)| {
            match &server.endpoint {
                Endpoint::Name(name, _) => Some((position, name.as_str())),
                Endpoint::Address(_) | Endpoint::Unix(_) => None,
            }
        })
    }

    /// Takes what the name at this position resolves to; says what changed.
    pub fn set_addresses(
        &self,
        position: usize,
        found: &[IpAddr],
        labels: &Labels,
        now: Stamp,
    ) -> Resolution {
        let mut roster = self.roster();
        let Some(slot) = roster.resolved.get_mut(position) else { return Resolution::Same };
        let before = slot.replace(found.to_vec());
        let set = |addresses: &[IpAddr]| addresses.iter().copied().collect::<HashSet<_>>();
        if before.as_deref().map(set) == Some(set(found)) {
            return Resolution::Same;
        }
        let joining = if before.is_some() { Joining::Later(now) } else { Joining::AtStart };
        self.publish(&roster, &self.members(), labels, joining);
        Resolution::Changed
    }

    /// Whether the name at this position has ever resolved.
    pub fn is_resolved(&self, position: usize) -> bool {
        self.roster().resolved.get(position).is_some_and(Option::is_some)
    }

    /// The member with this name (`10.0.0.1:80`, `[::1]:80`, `unix:/path`).
    pub fn member(&self, name: &str) -> Result<Arc<Member>, RosterError> {
        let members = self.members();
        let mut list = members.list().iter();
        list.find(|member| member.server.name() == name).cloned().ok_or(RosterError::Unknown)
    }

    /// Gives a server no more requests but those of clients that a cookie binds to it.
    pub fn drain(&self, name: &str) -> Result<(), RosterError> {
        self.member(name)?.server.set_admin(Admin::Draining);
        tracing::info!(group = self.name(), server = name, "server drained");
        Ok(())
    }

    /// Gives a drained server requests again.
    pub fn undrain(&self, name: &str) -> Result<(), RosterError> {
        self.member(name)?.server.set_admin(Admin::Serving);
        tracing::info!(group = self.name(), server = name, "server serves again");
        Ok(())
    }

    /// Takes it from the process before this one that checks found a server down. Where nothing
    /// checks, nobody would find it up again, and it stays as it is.
    pub fn presume_down(&self, name: &str, now: Stamp) -> Result<(), RosterError> {
        let member = self.member(name)?;
        if self.settings().health.is_some() {
            member.server.set_health(Health::Down, now);
        }
        Ok(())
    }

    /// Adds a server until the next reload, or brings a removed one back.
    pub fn add(
        &self,
        server: settings::Server,
        labels: &Labels,
        now: Stamp,
    ) -> Result<(), RosterError> {
        let Some(address) = addresses(&server.endpoint, None).pop() else {
            return Err(RosterError::Name);
        };
        let mut roster = self.roster();
        let members = self.members();
        if members.list().iter().any(|member| *member.server.address() == address) {
            return Err(RosterError::Present);
        }
        if members.list().len() >= SERVERS_MAX {
            return Err(RosterError::TooMany);
        }
        roster.removed.remove(&address);
        roster.added.retain(|other| other.endpoint != server.endpoint);
        roster.added.push(server);
        self.publish(&roster, &members, labels, Joining::Later(now));
        tracing::info!(group = self.name(), server = %address, "server added");
        Ok(())
    }

    /// Takes a server out until the next reload, even if DNS still has it. Requests under way
    /// finish; its cookies mean nothing any more.
    pub fn remove(&self, name: &str, labels: &Labels, now: Stamp) -> Result<(), RosterError> {
        let mut roster = self.roster();
        let member = self.member(name)?;
        let address = member.server.address().clone();
        roster.added.retain(|server| !addresses(&server.endpoint, None).contains(&address));
        roster.removed.insert(address);
        let members = self.members();
        self.publish(&roster, &members, labels, Joining::Later(now));
        tracing::info!(group = self.name(), server = name, "server removed");
        Ok(())
    }

    /// Makes the members that the roster wants out of those there were, and shows them to workers.
    fn publish(&self, roster: &Roster, before: &Members, labels: &Labels, joining: Joining) {
        let wanted = roster.wanted(self.settings());
        let known: HashMap<_, _> =
            before.list().iter().map(|member| (member.server.address(), &member.server)).collect();
        let list: Vec<_> = wanted
            .into_iter()
            .map(|(address, terms)| {
                let server = match known.get(&address) {
                    Some(server) => Arc::clone(server),
                    None => self.new_server(address, labels, joining),
                };
                let (host, authority) = self.host_and_authority(&terms.endpoint);
                Arc::new(Member {
                    server,
                    weight: terms.weight.clamp(1, 1000),
                    role: terms.role,
                    connections_max: terms.connections_max,
                    host: host.into(),
                    authority: authority.into(),
                })
            })
            .collect();
        let after = Members::new(list, self.settings());
        let stays: HashSet<_> = after.list().iter().map(|member| member.server.id()).collect();
        let published = self.members.swap(Arc::new(after));
        self.epoch.fetch_add(1, Release);
        self.queue.call();
        self.changed.notify_one();
        // Those of `published`, not of `before`: what a plan leaves out is retired with the plan.
        for member in published.list() {
            if !stays.contains(&member.server.id()) {
                member.server.set_admin(Admin::Removed);
            }
        }
    }

    fn new_server(&self, address: PeerAddress, labels: &Labels, joining: Joining) -> Arc<Server> {
        let label = labels.server(self.name(), &address.to_string());
        let server = Server::new(
            address,
            label,
            self.workers,
            Arc::clone(&self.epoch),
            Arc::clone(&self.queue),
        );
        if let Joining::Later(now) = joining {
            server.set_back(now);
        }
        Arc::new(server)
    }

    /// The host of an endpoint, and the same with its port unless that is the scheme's.
    fn host_and_authority(&self, endpoint: &Endpoint) -> (String, String) {
        let scheme = if self.settings().tls.is_some() { Scheme::Https } else { Scheme::Http };
        let with_port = |host: String, port: u16| match port {
            port if port == scheme.default_port() => host,
            port => format!("{host}:{port}"),
        };
        match endpoint {
            Endpoint::Name(name, port) => (name.clone(), with_port(name.clone(), *port)),
            Endpoint::Address(address) => {
                let host = address.ip().to_string();
                let bracketed = if address.is_ipv6() { format!("[{host}]") } else { host.clone() };
                (host, with_port(bracketed, address.port()))
            }
            // A socket has no host of its own; RFC 9112, section 3.2 wants one nevertheless.
            Endpoint::Unix(_) => ("localhost".into(), "localhost".into()),
        }
    }

    pub(super) fn roster(&self) -> MutexGuard<'_, Roster> {
        // Each change is one assignment and one swap, so a roster is whole even after a panic.
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a server joins its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// With the others, or as soon as its name was known.
    AtStart,
    /// While others serve: it is cold, as one that comes back is.
    Later(Stamp),
}

/// What a DNS answer changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Nothing.
    Same,
    /// The group's members.
    Changed,
}

impl fmt::Display for RosterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RosterError::Unknown => "no server of the group has this name",
            RosterError::Present => "a server with this address is in the group already",
            RosterError::Name => "only addresses and Unix sockets can be added while running",
            RosterError::TooMany => "the group has as many servers as it may",
        })
    }
}

impl std::error::Error for RosterError {}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, choice, metrics, server, settings, weighted, worker};
    use super::super::standing::Health;
    use super::*;
    use crate::settings::{Balance, HealthCheck, Probe, Role};

    fn names(group: &Group) -> Vec<String> {
        let members = group.members();
        members.list().iter().map(|member| member.server.name().to_owned()).collect()
    }

    fn group(servers: &[&str]) -> Group {
        let servers = servers.iter().map(|address| server(address)).collect();
        super::super::fixture::group(settings(Balance::RoundRobin, servers))
    }

    fn ips(addresses: &[&str]) -> Vec<IpAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn each_address_of_a_name_is_a_server_and_keeps_its_state() {
        let metrics = metrics();
        let labels = metrics.labels();
        let group = group(&["app.test:80", "10.0.0.9:80"]);
        assert_eq!(names(&group), ["10.0.0.9:80"]);
        assert_eq!(group.names().collect::<Vec<_>>(), [(0, "app.test")]);
        assert!(!group.is_resolved(0));

        let found = ips(&["10.0.0.1", "10.0.0.2", "2001:db8::1"]);
        assert_eq!(group.set_addresses(0, &found, labels, at(2)), Resolution::Changed);
        assert_eq!(
            names(&group),
            ["10.0.0.1:80", "10.0.0.2:80", "[2001:db8::1]:80", "10.0.0.9:80"]
        );
        let stays = group.member("10.0.0.2:80").unwrap();
        let goes = group.member("10.0.0.1:80").unwrap();
        stays.server.set_health(Health::Down, at(2));

        let reordered = ips(&["2001:db8::1", "10.0.0.2", "10.0.0.1"]);
        assert_eq!(group.set_addresses(0, &reordered, labels, at(3)), Resolution::Same);

        let found = ips(&["10.0.0.3", "10.0.0.2"]);
        assert_eq!(group.set_addresses(0, &found, labels, at(4)), Resolution::Changed);
        assert_eq!(names(&group), ["10.0.0.3:80", "10.0.0.2:80", "10.0.0.9:80"]);
        let still = group.member("10.0.0.2:80").unwrap();
        assert_eq!(still.server.id(), stays.server.id());
        assert_eq!(still.server.standing().health, Health::Down);
        assert!(goes.server.is_removed() && !still.server.is_removed());
        // One of the name's first addresses starts with the group, one that came later is cold.
        let back_since = |name| group.member(name).unwrap().server.standing().back_since;
        assert_eq!(stays.server.standing().back_since, Stamp::UNSET);
        assert_eq!(back_since("10.0.0.3:80"), at(4));
        assert!(group.is_resolved(0));
    }

    #[test]
    fn the_first_to_name_an_address_decides_its_terms() {
        let mut servers = vec![server("app.test:80"), server("10.0.0.1:80")];
        servers[0].weight = 7;
        let group = super::super::fixture::group(settings(Balance::RoundRobin, servers));
        let metrics = metrics();
        group.set_addresses(0, &ips(&["10.0.0.1", "10.0.0.1"]), metrics.labels(), at(1));
        assert_eq!(names(&group), ["10.0.0.1:80"]);
        assert_eq!(group.member("10.0.0.1:80").unwrap().weight, 7);
    }

    #[test]
    fn hosts_and_authorities_are_those_configured() {
        let check = |address: &str, host: &str, authority: &str| {
            let group = group(&[address]);
            let metrics = metrics();
            group.set_addresses(0, &ips(&["10.0.0.1"]), metrics.labels(), at(1));
            let members = group.members();
            let member = &members.list()[0];
            assert_eq!((&*member.host, &*member.authority), (host, authority));
        };
        check("app.test:80", "app.test", "app.test");
        check("app.test:8080", "app.test", "app.test:8080");
        check("10.0.0.1:80", "10.0.0.1", "10.0.0.1");
        check("10.0.0.1:443", "10.0.0.1", "10.0.0.1:443");
        check("[2001:db8::1]:8080", "2001:db8::1", "[2001:db8::1]:8080");
        check("unix:/run/app.sock", "localhost", "localhost");
    }

    #[test]
    fn the_operator_adds_and_removes() {
        let metrics = metrics();
        let labels = metrics.labels();
        let group = group(&["10.0.0.1:80", "app.test:80"]);
        group.set_addresses(1, &ips(&["10.0.0.2"]), labels, at(1));

        assert_eq!(group.add(server("10.0.0.2:80"), labels, at(2)), Err(RosterError::Present));
        assert_eq!(group.add(server("b.test:80"), labels, at(2)), Err(RosterError::Name));
        assert_eq!(group.remove("10.0.0.7:80", labels, at(2)), Err(RosterError::Unknown));
        assert_eq!(group.drain("10.0.0.7:80"), Err(RosterError::Unknown));

        let added = settings::Server { role: Role::Backup, ..server("unix:/run/app.sock") };
        group.add(added, labels, at(2)).unwrap();
        assert_eq!(names(&group), ["10.0.0.1:80", "10.0.0.2:80", "unix:/run/app.sock"]);
        assert_eq!(group.member("unix:/run/app.sock").unwrap().role, Role::Backup);

        // What is removed stays away, whatever DNS says.
        let removed = group.member("10.0.0.2:80").unwrap();
        group.remove("10.0.0.2:80", labels, at(3)).unwrap();
        group.set_addresses(1, &ips(&["10.0.0.2", "10.0.0.3"]), labels, at(4));
        assert_eq!(names(&group), ["10.0.0.1:80", "10.0.0.3:80", "unix:/run/app.sock"]);
        assert!(removed.server.is_removed());

        group.remove("unix:/run/app.sock", labels, at(5)).unwrap();
        group.remove("10.0.0.1:80", labels, at(5)).unwrap();
        group.add(server("10.0.0.1:80"), labels, at(6)).unwrap();
        assert_eq!(names(&group), ["10.0.0.1:80", "10.0.0.3:80"]);
    }

    #[test]
    fn a_group_has_a_largest_size() {
        let metrics = metrics();
        let group = group(&["app.test:80"]);
        let many: Vec<_> =
            (0..u32::try_from(SERVERS_MAX + 10).unwrap()).map(|it| IpAddr::V4(it.into())).collect();
        group.set_addresses(0, &many, metrics.labels(), at(1));
        assert_eq!(names(&group).len(), SERVERS_MAX);
        let more = group.add(server("10.9.9.9:80"), metrics.labels(), at(1));
        assert_eq!(more, Err(RosterError::TooMany));
    }

    #[test]
    fn a_new_plan_takes_servers_over_and_retires_the_others() {
        let metrics = metrics();
        let labels = metrics.labels();
        let plan = |servers: &[&str]| {
            let servers = servers.iter().map(|address| server(address)).collect();
            settings(Balance::RoundRobin, servers)
        };
        let old = Group::new(
            plan(&["10.0.0.1:80", "10.0.0.2:80", "app.test:80"]),
            labels,
            2,
            None,
            at(1),
        );
        old.set_addresses(2, &ips(&["10.0.1.1"]), labels, at(1));
        old.add(server("10.0.0.8:80"), labels, at(1)).unwrap();
        old.drain("10.0.0.2:80").unwrap();
        let mut worker_of_old = worker();
        old.choose(&choice(at(2), &[]), &mut worker_of_old).unwrap();

        // A plan that is built and thrown away leaves no trace.
        drop(Group::new(plan(&["10.0.0.7:80"]), labels, 2, Some(&old), at(2)));
        assert!(!old.members().list().iter().any(|member| member.server.is_removed()));

        let settings = plan(&["app.test:80", "10.0.0.2:80", "10.0.0.3:80"]);
        let new = Group::new(settings, labels, 2, Some(&old), at(2));
        old.retire(Some(&new));
        assert_eq!(names(&new), ["10.0.1.1:80", "10.0.0.2:80", "10.0.0.3:80"]);
        for name in ["10.0.0.2:80", "10.0.1.1:80"] {
            let (before, after) = (old.member(name).unwrap(), new.member(name).unwrap());
            assert_eq!(before.server.id(), after.server.id());
            assert!(!after.server.is_removed());
        }
        assert_eq!(new.member("10.0.0.2:80").unwrap().server.standing().admin, Admin::Draining);
        assert!(new.member("10.0.0.3:80").unwrap().server.standing().back_since.is_set());
        for name in ["10.0.0.1:80", "10.0.0.8:80"] {
            assert!(old.member(name).unwrap().server.is_removed());
        }

        // Requests under the old plan still find its servers, and hear of what the new one learns.
        let mut seen = HashSet::new();
        for _ in 0..30 {
            let pick = old.choose(&choice(at(3), &[]), &mut worker_of_old).unwrap();
            seen.insert(pick.in_flight.server().name().to_owned());
        }
        assert_eq!(seen.len(), 3, "{seen:?}");
        new.undrain("10.0.0.2:80").unwrap();
        for _ in 0..30 {
            let pick = old.choose(&choice(at(3), &[]), &mut worker_of_old).unwrap();
            seen.insert(pick.in_flight.server().name().to_owned());
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
    }

    #[test]
    fn a_plan_without_checks_forgets_what_checks_found() {
        let metrics = metrics();
        let mut checked = settings(Balance::RoundRobin, weighted(&[1]));
        checked.health = Some(HealthCheck {
            probe: Probe::Tcp,
            interval: std::time::Duration::from_secs(1),
            timeout: std::time::Duration::from_secs(1),
            fall: 1,
            rise: 1,
        });
        let unchecked = settings::Group { health: None, ..checked.clone() };
        let mut running = Group::new(checked.clone(), metrics.labels(), 1, None, at(1));
        running.members().list()[0].server.set_health(Health::Down, at(1));

        for (settings, expected) in [(checked, Health::Down), (unchecked, Health::Unknown)] {
            let next = Group::new(settings, metrics.labels(), 1, Some(&running), at(2));
            running.retire(Some(&next));
            running = next;
            assert_eq!(running.members().list()[0].server.standing().health, expected);
        }
    }
}
