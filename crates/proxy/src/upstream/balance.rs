//! The choice of a server, as one worker makes it.
//!
//! A worker keeps tables over the servers that may serve now. They stand until the group's epoch
//! moves (members or their standing changed) or until time alone changes something (an ejection ends,
//! a slow start takes a step); then they are made anew. In between a choice costs O(log n) at most,
//! takes no lock and writes to nothing that another worker writes to, but for least requests, where
//! all workers count in one place because each wants to see the others' requests.
//!
//! Who may serve: the primaries that are fit; if there is none, the backups that are fit; if there is
//! none either, those that are only ejected, primaries first. The last is the panic rule: passive
//! ejection judges by a few requests and is often wrong when everything seems to fail at once, so it
//! alone never leaves a group without servers. Active checks can.

use std::sync::Arc;

use tidegate_telemetry::clock::Stamp;

use super::budget::Tally;
use super::group::Group;
use super::members::Members;
use super::ring::KeyHash;
use super::schedule::{Draw, Random, Turns};
use super::server::{Counting, InFlight, Seat, ServerId};
use super::standing::{FULL, Fitness};
use super::sticky::Tag;
use crate::settings::{Balance, Role};

/// What a choice depends on; made by [`Group::choice`].
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// What a consistent hash is made of, in a group that balances by one.
    pub hash_input: HashInput<'a>,
    /// The value of the group's sticky cookie, if the request has it.
    pub sticky: Option<&'a [u8]>,
    /// Servers that failed this request already.
    pub tried: &'a [ServerId],
    /// The time.
    pub now: Stamp,
}

/// What a consistent hash is made of.
#[derive(Clone, Copy, Debug)]
pub enum HashInput<'a> {
    /// The group balances otherwise, or the request lacks the field: round robin.
    None,
    /// The client's address, IPv4 ones mapped (RFC 4291, section 2.5.5.2).
    Address([u8; 16]),
    /// A field's value, a cookie's, or path and query.
    Bytes(&'a [u8]),
}

/// A chosen server.
#[derive(Debug)]
pub struct Pick {
    /// The server, with this request counted.
    pub in_flight: InFlight,
    /// How it was chosen.
    pub way: Way,
    /// Out of which servers it was chosen.
    pub tier: Tier,
    /// The cookie value to give to the client, where the group has a sticky cookie and the request
    /// did not bring this one.
    pub set_cookie: Option<Tag>,
}

/// How a server was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The client's cookie named it.
    Sticky,
    /// The hash named it, or it was next to those who could not.
    Hash,
    /// It was its turn.
    Turn,
    /// It had fewer requests than another.
    LessBusy,
}

/// Out of which servers one was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Fit primaries.
    Primary,
    /// Fit backups: no primary is fit.
    Backup,
    /// Ejected servers: no server is fit.
    Panic,
}

/// Why there is no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoServer {
    /// The group has none: none is configured, all were removed, or no name has an address.
    Empty,
    /// All are drained.
    Drained,
    /// Active checks find all down that are not drained.
    Down,
    /// All that may serve have failed this request already.
    Tried,
    /// All that may serve and have not failed this request are at their limit of connections.
    AtLimit,
}

impl NoServer {
    /// One word for metrics and logs.
    pub const fn code(self) -> &'static str {
        match self {
            NoServer::Empty => "group_empty",
            NoServer::Drained => "servers_drained",
            NoServer::Down => "servers_down",
            NoServer::Tried => "servers_tried",
            NoServer::AtLimit => "servers_at_limit",
        }
    }
}

/// What one worker keeps of one group.
#[derive(Debug)]
pub struct WorkerBalance {
    worker: usize,
    random: Random,
    pub(super) tally: Tally,
    members: Arc<Members>,
    seats: Vec<Arc<Seat>>,
    tables: Tables,
}

/// What is made anew when epoch or time make it stale.
#[derive(Debug, Default)]
struct Tables {
    /// The epoch they were made in; `None` before the first time.
    epoch: Option<u64>,
    /// When they are stale by time alone; unset if never.
    stale_at: Stamp,
    tier: Option<Tier>,
    /// The role of the ring to walk.
    role: Option<Role>,
    fitness: Vec<Fitness>,
    /// The share of each slot's weight that its ramp allows, of [`FULL`]; 0 if it may not serve.
    shares: Vec<u32>,
    /// The effective weight of each slot; 0 if it may not serve.
    weights: Vec<u32>,
    /// The slots that may serve.
    serving: Vec<u32>,
    turns: Turns,
    draw: Draw,
}

impl WorkerBalance {
    /// What worker number `worker` keeps of a group. Each worker has its own `seed`; tests repeat one.
    pub fn new(worker: usize, seed: u64) -> WorkerBalance {
        WorkerBalance {
            worker,
            random: Random::seeded(seed),
            tally: Tally::default(),
            members: Arc::default(),
            seats: Vec::new(),
            tables: Tables::default(),
        }
    }

    /// The members as this worker sees them now, by slot.
    pub fn seats(&mut self, group: &Group, now: Stamp) -> &[Arc<Seat>] {
        self.refresh(group, now);
        &self.seats
    }

    pub(super) fn choose(&mut self, group: &Group, choice: &Choice<'_>) -> Result<Pick, NoServer> {
        self.refresh(group, choice.now);
        if let Some(slot) = choice.sticky.and_then(|value| self.kept(value, choice.tried)) {
            return Ok(self.pick(slot, Way::Sticky));
        }
        let chosen = match (&group.settings().balance, hash(choice.hash_input)) {
            (Balance::Hash(_), Some(key)) => self.on_ring(key, choice.tried),
            (Balance::LeastRequests, _) => self.less_busy(choice.tried),
            (Balance::Hash(_) | Balance::RoundRobin, _) => self.in_turn(choice.tried),
        };
        match chosen {
            Some((slot, way)) => Ok(self.pick(slot, way)),
            None => Err(self.why_none(choice.tried)),
        }
    }

    /// The slot that a cookie names, if it may still serve its clients: draining ones do, and a
    /// backup only while backups serve, so that clients return with the primaries.
    fn kept(&self, value: &[u8], tried: &[ServerId]) -> Option<u32> {
        let slot = self.members.slot_of(value)?;
        let serves = self.tables.weights[slot as usize] > 0
            || self.tables.fitness[slot as usize] == Fitness::Draining;
        (serves && usable(&self.seats, tried, slot)).then_some(slot)
    }

    fn on_ring(&self, key: KeyHash, tried: &[ServerId]) -> Option<(u32, Way)> {
        let tables = &self.tables;
        let ring = self.members.ring(tables.role?);
        let may = |slot: u32| tables.weights[slot as usize] > 0;
        let ready = |slot: u32| key.within(tables.shares[slot as usize], FULL);
        let usable = |slot: u32| usable(&self.seats, tried, slot);
        let found = ring.walk(key).find(|slot| may(*slot) && ready(*slot) && usable(*slot));
        // All that are left may be at the foot of their ramps.
        let found = found.or_else(|| ring.walk(key).find(|slot| may(*slot) && usable(*slot)));
        found.map(|slot| (slot, Way::Hash))
    }

    fn in_turn(&mut self, tried: &[ServerId]) -> Option<(u32, Way)> {
        let slot = self.tables.turns.next(|slot| usable(&self.seats, tried, slot))?;
        Some((slot, Way::Turn))
    }

    fn less_busy(&mut self, tried: &[ServerId]) -> Option<(u32, Way)> {
        /// Draws before all are looked at: enough unless most servers are unusable.
        const DRAWS: usize = 4;
        let WorkerBalance { tables, seats, random, .. } = self;
        let mut drawn = None;
        for _ in 0..DRAWS {
            let (first, second) = tables.draw.two(random)?;
            drawn = match (usable(seats, tried, first), usable(seats, tried, second)) {
                (true, true) => Some(tables.less_busy_of(seats, first, second)),
                (true, false) => Some(first),
                (false, true) => Some(second),
                (false, false) => continue,
            };
            break;
        }
        let all = || {
            let usable = tables.serving.iter().copied().filter(|slot| usable(seats, tried, *slot));
            usable.reduce(|best, slot| tables.less_busy_of(seats, best, slot))
        };
        Some((drawn.or_else(all)?, Way::LessBusy))
    }

    fn pick(&self, slot: u32, way: Way) -> Pick {
        let set_cookie = match way {
            Way::Sticky => None,
            Way::Hash | Way::Turn | Way::LessBusy => self.members.tag_of(slot),
        };
        Pick {
            in_flight: self.seats[slot as usize].begin(),
            way,
            tier: self.tables.tier.unwrap_or(Tier::Primary),
            set_cookie,
        }
    }

    #[cold]
    fn why_none(&self, tried: &[ServerId]) -> NoServer {
        let any = |fitness| self.tables.fitness.contains(&fitness);
        let untried = |slot: &u32| !tried.contains(&self.seats[*slot as usize].server().id());
        if self.tables.serving.iter().any(untried) {
            NoServer::AtLimit
        } else if !self.tables.serving.is_empty() {
            NoServer::Tried
        } else if any(Fitness::Down) {
            NoServer::Down
        } else if any(Fitness::Draining) {
            NoServer::Drained
        } else {
            NoServer::Empty
        }
    }

    #[inline]
    fn refresh(&mut self, group: &Group, now: Stamp) {
        let epoch = group.epoch();
        let tables = &self.tables;
        let stale = tables.stale_at.is_set() && tables.stale_at <= now;
        if tables.epoch != Some(epoch) || stale {
            self.rebuild(group, epoch, now);
        }
    }

    #[cold]
    fn rebuild(&mut self, group: &Group, epoch: u64, now: Stamp) {
        // The epoch was read before the members: a change in between shows in the next comparison.
        let members = group.members();
        if !Arc::ptr_eq(&members, &self.members) {
            let counting = match group.settings().balance {
                Balance::LeastRequests => Counting::Shared,
                Balance::RoundRobin | Balance::Hash(_) => Counting::PerWorker,
            };
            let seat = |member| Arc::new(Seat::new(Arc::clone(member), self.worker, counting));
            self.seats = members.list().iter().map(seat).collect();
            self.members = members;
        }
        let random = self.random.next();
        self.tables.rebuild(&self.members, group, random, now);
        self.tables.epoch = Some(epoch);
    }
}

impl Tables {
    fn rebuild(&mut self, members: &Members, group: &Group, random: u64, now: Stamp) {
        let slow_start = group.settings().slow_start;
        self.fitness.clear();
        self.shares.clear();
        self.stale_at = Stamp::UNSET;
        for member in members.list() {
            let standing = member.server.standing();
            self.fitness.push(standing.fitness(now));
            self.shares.push(standing.ramp(slow_start, now));
            let change = standing.changes_at(slow_start, now);
            if change.is_set() && (!self.stale_at.is_set() || change < self.stale_at) {
                self.stale_at = change;
            }
        }

        let best = tier(members, &self.fitness);
        self.tier = best.map(|(tier, _)| tier);
        self.role = best.map(|(_, role)| role);
        self.weights.clear();
        self.serving.clear();
        for ((member, share), slot) in members.list().iter().zip(&mut self.shares).zip(0..) {
            let serves = best.is_some_and(|(tier, role)| {
                let wanted = match tier {
                    Tier::Primary | Tier::Backup => Fitness::Fit,
                    Tier::Panic => Fitness::Ejected,
                };
                member.role == role && self.fitness[self.weights.len()] == wanted
            });
            *share = if serves { *share } else { 0 };
            self.weights.push(member.weight * *share);
            if serves {
                self.serving.push(slot);
            }
        }
        match group.settings().balance {
            Balance::LeastRequests => self.draw.rebuild(&self.serving, &self.weights),
            Balance::RoundRobin | Balance::Hash(_) => {
                self.turns.rebuild(&self.serving, &self.weights, random);
            }
        }
    }

    /// The one with fewer requests for its weight; the first if they are equal, so that an idle group
    /// is balanced by the draw's weights alone.
    fn less_busy_of(&self, seats: &[Arc<Seat>], first: u32, second: u32) -> u32 {
        let load = |slot: u32| u64::from(seats[slot as usize].server().in_flight_shared());
        let weight = |slot: u32| u64::from(self.weights[slot as usize]);
        let second_is_less = load(second) * weight(first) < load(first) * weight(second);
        if second_is_less { second } else { first }
    }
}

/// The best tier that has a server, and the role of its servers.
fn tier(members: &Members, fitness: &[Fitness]) -> Option<(Tier, Role)> {
    let any = |role, wanted| {
        members
            .list()
            .iter()
            .zip(fitness)
            .any(|(it, fitness)| it.role == role && *fitness == wanted)
    };
    [
        (Tier::Primary, Role::Primary, Fitness::Fit),
        (Tier::Backup, Role::Backup, Fitness::Fit),
        (Tier::Panic, Role::Primary, Fitness::Ejected),
        (Tier::Panic, Role::Backup, Fitness::Ejected),
    ]
    .into_iter()
    .find(|(_, role, wanted)| any(*role, *wanted))
    .map(|(tier, role, _)| (tier, role))
}

/// Whether a request could go to this slot now.
#[inline]
fn usable(seats: &[Arc<Seat>], tried: &[ServerId], slot: u32) -> bool {
    let seat = &seats[slot as usize];
    seat.has_room() && (tried.is_empty() || !tried.contains(&seat.server().id()))
}

fn hash(input: HashInput<'_>) -> Option<KeyHash> {
    match input {
        HashInput::None => None,
        HashInput::Address(octets) => Some(KeyHash::of(&octets)),
        HashInput::Bytes(bytes) => Some(KeyHash::of(bytes)),
    }
}

#[cfg(test)]
mod tests;
