//! One upstream server: who it is, how it stands, and what is under way to it.
//!
//! A server is shared by all workers and lives as long as anything refers to it; a new plan takes
//! over the servers of the old one by group and address, so health, ejection, draining and counts
//! outlive reloads. Its state lies on lines by how it is used: what every choice reads and hardly
//! anything writes; the open connections, written where one opens or closes; and the requests in
//! flight, of which each worker counts its own unless the balance needs to see them all.
//!
//! Counts go up and down by guards ([`InFlight`], [`OpenConnection`]), so no path can leak one.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release,
};

use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::Label;

use super::members::Member;
use super::queue::Queue;
use super::standing::{Admin, Health, Standing};
use crate::settings::PeerAddress;

/// The number of a server, unique in the process and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(u32);

impl ServerId {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Counts the changes of a group's members and of their standing. Workers compare it with what
/// their tables were built from.
pub(super) type Epoch = Arc<AtomicU64>;

/// One upstream server.
pub struct Server {
    id: ServerId,
    label: Label,
    address: PeerAddress,
    name: Box<str>,
    epoch: Epoch,
    queue: Arc<Queue>,
    state: Line<State>,
    connections: Line<AtomicU32>,
    in_flight: Line<AtomicU32>,
    slots: Box<[Line<Slot>]>,
}

/// What every choice reads and hardly anything writes.
#[derive(Default)]
struct State {
    admin: AtomicU8,
    health: AtomicU8,
    retired: AtomicBool,
    back_since: AtomicU64,
    ejected_until: AtomicU64,
    ejections: AtomicU32,
    failures: AtomicU32,
}

/// What one worker counts.
#[derive(Default)]
struct Slot {
    in_flight: AtomicU32,
    idle: AtomicU32,
}

/// Keeps its content away from lines that others write. 128: x86-64 fetches lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Server {
    pub(super) fn new(
        address: PeerAddress,
        label: Label,
        workers: usize,
        epoch: Epoch,
        queue: Arc<Queue>,
    ) -> Server {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Server {
            id: ServerId(NEXT.fetch_add(1, Relaxed)),
            label,
            name: address.to_string().into(),
            address,
            epoch,
            queue,
            state: Line::default(),
            connections: Line::default(),
            in_flight: Line::default(),
            slots: (0..workers.max(1)).map(|_| Line::default()).collect(),
        }
    }

    /// Its number.
    pub fn id(&self) -> ServerId {
        self.id
    }

    /// Its label in metrics, by group and address.
    pub fn label(&self) -> Label {
        self.label
    }

    /// Where connections to it are opened.
    pub fn address(&self) -> &PeerAddress {
        &self.address
    }

    /// Its address as text: its name in logs, metrics and the admin API.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it stands now.
    pub fn standing(&self) -> Standing {
        Standing {
            admin: match self.state.admin.load(Relaxed) {
                0 => Admin::Serving,
                1 => Admin::Draining,
                _ => Admin::Removed,
            },
            health: match self.state.health.load(Relaxed) {
                0 => Health::Unknown,
                1 => Health::Up,
                _ => Health::Down,
            },
            ejected_until: Stamp::from_nanos(self.state.ejected_until.load(Relaxed)),
            back_since: Stamp::from_nanos(self.state.back_since.load(Relaxed)),
        }
    }

    /// Whether it left its group, by hand, by DNS or by a new plan: connections to it are not kept.
    pub fn is_removed(&self) -> bool {
        self.state.retired.load(Relaxed) || self.state.admin.load(Relaxed) == Admin::Removed as u8
    }

    /// The running plan does not have it any more. Requests under the old plan may still use it.
    pub(super) fn retire(&self) {
        self.state.retired.store(true, Relaxed);
    }

    pub(super) fn set_admin(&self, admin: Admin) {
        self.state.admin.store(admin as u8, Relaxed);
        self.changed();
    }

    /// Takes the verdict of active checks; a server that was down comes back by slow start.
    pub(super) fn set_health(&self, health: Health, now: Stamp) {
        let before = self.state.health.swap(health as u8, Relaxed);
        if before == Health::Down as u8 && health == Health::Up {
            self.set_back(now);
        }
        self.changed();
    }

    /// Forgets what active checks said.
    pub(super) fn forget_health(&self) {
        self.state.health.store(Health::Unknown as u8, Relaxed);
        self.changed();
    }

    /// Begins a slow start.
    pub(super) fn set_back(&self, now: Stamp) {
        self.state.back_since.store(now.as_nanos(), Relaxed);
        self.changed();
    }

    /// One more failure in a row; returns how many there are.
    pub(super) fn count_failure(&self) -> u32 {
        self.state.failures.fetch_add(1, Relaxed).saturating_add(1)
    }

    /// Ends a row of failures. Nearly always there is none, and nothing is written.
    #[inline]
    pub(super) fn forget_failures(&self) {
        if self.state.failures.load(Relaxed) != 0 {
            self.state.failures.store(0, Relaxed);
        }
    }

    /// How often in a row it was ejected.
    pub(super) fn ejections(&self) -> u32 {
        self.state.ejections.load(Relaxed)
    }

    pub(super) fn eject(&self, until: Stamp, ejections: u32) {
        self.state.failures.store(0, Relaxed);
        self.state.ejections.store(ejections, Relaxed);
        self.state.ejected_until.store(until.as_nanos(), Relaxed);
        self.changed();
    }

    fn changed(&self) {
        self.epoch.fetch_add(1, Release);
        self.queue.call();
    }

    /// Requests in flight, over all workers.
    pub fn in_flight(&self) -> u32 {
        let slots = self.slots.iter().map(|slot| slot.in_flight.load(Relaxed));
        slots.fold(self.in_flight.load(Relaxed), u32::saturating_add)
    }

    /// Requests in flight as far as they are counted for all workers in one place.
    #[inline]
    pub(super) fn in_flight_shared(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Open connections, over all workers.
    pub fn connections(&self) -> u32 {
        self.connections.load(Relaxed)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("id", &self.id.0)
            .field("name", &self.name)
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}

/// Where requests in flight are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Each worker on a line of its own: nothing contended, and summed only for people.
    PerWorker,
    /// All workers on one line, because each choice compares servers by it.
    Shared,
}

/// A member of a group as one worker sees it. Cloned by the worker's own pool and requests only, so
/// its reference count is never contended.
#[derive(Debug)]
pub struct Seat {
    member: Arc<Member>,
    worker: usize,
    counting: Counting,
}

impl Seat {
    pub(super) fn new(member: Arc<Member>, worker: usize, counting: Counting) -> Seat {
        let worker = worker % member.server.slots.len();
        Seat { member, worker, counting }
    }

    /// The server and the terms on which it is in the group.
    pub fn member(&self) -> &Arc<Member> {
        &self.member
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.member.server
    }

    /// What a certificate is checked against: see [`Member::host`].
    pub fn host(&self) -> &str {
        &self.member.host
    }

    /// `Host` where the route sends the server's own: see [`Member::authority`].
    pub fn authority(&self) -> &str {
        &self.member.authority
    }

    /// Counts a connection about to be opened, unless the server is at its limit.
    pub fn open_connection(&self) -> Result<OpenConnection, AtLimit> {
        let max = self.member.connections_max.unwrap_or(u32::MAX);
        let counted = self
            .server()
            .connections
            .fetch_update(Relaxed, Relaxed, |open| (open < max).then_some(open.saturating_add(1)));
        match counted {
            Ok(_) => Ok(OpenConnection { server: Arc::clone(self.server()) }),
            Err(_) => Err(AtLimit),
        }
    }

    /// Says how many connections of this worker could take a request now without opening one: a
    /// server at its limit can still be chosen while there is one.
    pub fn set_idle(&self, connections: usize) {
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        self.slot().idle.store(connections, Relaxed);
    }

    /// Whether a connection is better closed than kept idle: a request of another worker is the first
    /// that waits for it to be.
    pub fn is_wanted_elsewhere(&self) -> bool {
        self.member.connections_max.is_some() && self.server().queue.is_another_workers(self.worker)
    }

    /// Whether a request could be sent without going beyond the server's limit.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        let below = |max| self.server().connections.load(Relaxed) < max;
        self.member.connections_max.is_none_or(below) || self.slot().idle.load(Relaxed) > 0
    }

    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.counter().fetch_add(1, Relaxed);
        InFlight { seat: Arc::clone(self) }
    }

    #[inline]
    fn counter(&self) -> &AtomicU32 {
        match self.counting {
            Counting::PerWorker => &self.slot().in_flight,
            Counting::Shared => &self.server().in_flight,
        }
    }

    #[inline]
    fn slot(&self) -> &Slot {
        &self.server().slots[self.worker]
    }
}

/// A request under way to a server; dropping it ends the count.
#[derive(Debug)]
#[must_use = "a request is in flight as long as this lives"]
pub struct InFlight {
    seat: Arc<Seat>,
}

impl InFlight {
    /// The server as this worker sees it.
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        self.seat.server()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.seat.counter().fetch_sub(1, Relaxed);
        self.server().queue.call();
    }
}

/// A connection to a server, open or being opened; dropping it ends the count.
#[derive(Debug)]
#[must_use = "a connection is counted as long as this lives"]
pub struct OpenConnection {
    server: Arc<Server>,
}

impl OpenConnection {
    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.server.connections.fetch_sub(1, Relaxed);
        self.server.queue.call();
    }
}

/// The server has as many connections as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtLimit;
