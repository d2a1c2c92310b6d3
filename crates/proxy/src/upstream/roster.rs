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
use super::standing::Admin;
use crate::settings::{self, Endpoint, PeerAddress};

/// Who is to be in a group.
#[derive(Debug, Default)]
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
        let before = previous.map(|group| group.members()).unwrap_or_default();
        self.publish(&self.roster(), &before, labels, now);
    }

    /// Called when this group's plan has been replaced: connections to servers that the successor
    /// does not have are not kept any longer.
    pub fn retire(&self, successor: Option<&Group>) {
        let stays: HashSet<_> = successor
            .map(|group| group.members().list().iter().map(|it| it.server.id()).collect())
            .unwrap_or_default();
        for member in self.members().list() {
            if !stays.contains(&member.server.id()) {
                member.server.retire();
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
        let members = self.members();
        self.publish(&roster, &members, labels, now);
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
        self.publish(&roster, &members, labels, now);
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
        self.publish(&roster, &members, labels, now);
        tracing::info!(group = self.name(), server = name, "server removed");
        Ok(())
    }

    /// Makes the members that the roster wants out of those there were, and shows them to workers.
    fn publish(&self, roster: &Roster, before: &Members, labels: &Labels, now: Stamp) {
        let wanted = roster.wanted(self.settings());
        let known: HashMap<_, _> =
            before.list().iter().map(|member| (member.server.address(), &member.server)).collect();
        let list: Vec<_> = wanted
            .into_iter()
            .map(|(address, terms)| {
                let server = match known.get(&address) {
                    Some(server) => Arc::clone(server),
                    None => self.new_server(address, before, labels, now),
                };
                Arc::new(Member {
                    server,
                    weight: terms.weight.clamp(1, 1000),
                    role: terms.role,
                    connections_max: terms.connections_max,
                    authority: self.authority(&terms.endpoint).into(),
                })
            })
            .collect();
        let after = Members::new(list, self.settings());
        let stays: HashSet<_> = after.list().iter().map(|member| member.server.id()).collect();
        let published = self.members.swap(Arc::new(after));
        self.epoch.fetch_add(1, Release);
        // Those of `published`, not of `before`: what a plan leaves out is retired with the plan.
        for member in published.list() {
            if !stays.contains(&member.server.id()) {
                member.server.set_admin(Admin::Removed);
            }
        }
    }

    fn new_server(
        &self,
        address: PeerAddress,
        before: &Members,
        labels: &Labels,
        now: Stamp,
    ) -> Arc<Server> {
        let label = labels.server(self.name(), &address.to_string());
        let server = Server::new(address, label, self.workers, Arc::clone(&self.epoch));
        // Who joins a group that serves already is cold, as one that comes back is.
        if !before.list().is_empty() {
            server.set_back(now);
        }
        Arc::new(server)
    }

    fn authority(&self, endpoint: &Endpoint) -> String {
        let scheme = if self.settings().tls.is_some() { Scheme::Https } else { Scheme::Http };
        let with_port = |host: String, port: u16| match port {
            port if port == scheme.default_port() => host,
            port => format!("{host}:{port}"),
        };
        match endpoint {
            Endpoint::Name(name, port) => with_port(name.clone(), *port),
            Endpoint::Address(address) => match address.ip() {
                IpAddr::V4(ip) => with_port(ip.to_string(), address.port()),
                IpAddr::V6(ip) => with_port(format!("[{ip}]"), address.port()),
            },
            // A socket has no host of its own; RFC 9112, section 3.2 wants one nevertheless.
            Endpoint::Unix(_) => "localhost".into(),
        }
    }

    pub(super) fn roster(&self) -> MutexGuard<'_, Roster> {
        // Each change is one assignment and one swap, so a roster is whole even after a panic.
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
