//! The members of a group at one moment: an immutable list with the tables that depend on nothing
//! but the list. A change makes a new one; workers notice by the group's epoch.

use std::sync::Arc;

use super::ring::{Ring, RingServer};
use super::server::Server;
use super::sticky::{Tag, TagKey};
use crate::settings::{Balance, Group, Role};

/// A server and the terms on which it is in its group.
#[derive(Debug)]
pub struct Member {
    /// The server.
    pub server: Arc<Server>,
    /// Its share beside the others, 1 to 1000.
    pub weight: u32,
    /// Whether it serves only while no other does.
    pub role: Role,
    /// Connections to it over all workers. `None`: no limit.
    pub connections_max: Option<u32>,
    /// The configured name, or the address as text without port or brackets: what a certificate is
    /// checked against unless the group's TLS settings say otherwise.
    pub host: Box<str>,
    /// `Host` of a request where the route sends the server's own: the configured name or address,
    /// with its port unless that is the scheme's.
    pub authority: Box<str>,
}

/// The members of a group.
#[derive(Debug, Default)]
pub struct Members {
    list: Vec<Arc<Member>>,
    /// The cookie value of each member; empty where the group has no sticky cookie.
    tags: Vec<Tag>,
    by_tag: Vec<(Tag, u32)>,
    primaries: Ring,
    backups: Ring,
}

impl Members {
    pub(super) fn new(list: Vec<Arc<Member>>, settings: &Group) -> Members {
        let tags: Vec<Tag> = match &settings.sticky {
            Some(sticky) => {
                let key = TagKey::of(&settings.name, sticky);
                list.iter().map(|member| key.tag(member.server.name())).collect()
            }
            None => Vec::new(),
        };
        let mut by_tag: Vec<(Tag, u32)> = tags.iter().copied().zip(0..).collect();
        by_tag.sort_unstable();
        let ring = |role| match settings.balance {
            Balance::Hash(_) => ring_of(&list, role),
            Balance::RoundRobin | Balance::LeastRequests => Ring::default(),
        };
        Members { tags, by_tag, primaries: ring(Role::Primary), backups: ring(Role::Backup), list }
    }

    /// All members.
    pub fn list(&self) -> &[Arc<Member>] {
        &self.list
    }

    pub(super) fn ring(&self, role: Role) -> &Ring {
        match role {
            Role::Primary => &self.primaries,
            Role::Backup => &self.backups,
        }
    }

    /// The slot that a cookie's value names.
    pub(super) fn slot_of(&self, value: &[u8]) -> Option<u32> {
        let tag = Tag::from_value(value)?;
        let found = self.by_tag.binary_search_by(|(other, _)| other.cmp(&tag)).ok()?;
        Some(self.by_tag[found].1)
    }

    /// The cookie value that names a slot, in a group with a sticky cookie.
    pub(super) fn tag_of(&self, slot: u32) -> Option<Tag> {
        self.tags.get(slot as usize).copied()
    }
}

fn ring_of(list: &[Arc<Member>], role: Role) -> Ring {
    let servers: Vec<_> = list
        .iter()
        .zip(0..)
        .filter(|(member, _)| member.role == role)
        .map(|(member, slot)| RingServer {
            slot,
            name: member.server.name(),
            weight: member.weight,
        })
        .collect();
    Ring::new(&servers)
}
