//! What waits to be written, bounded in bytes and in number, in the order in which it came.
//!
//! Putting something in never waits: what finds no room is not stored. Removals always find room up
//! to a bound of their own, as a removal that was lost would let something rise again.

use std::collections::{HashMap, VecDeque};
#[expect(clippy::disallowed_types, reason = "a queue of a thread; held to push or pop")]
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::format::Head;
use crate::time::Time;

/// Most removals that wait to be written, beyond the objects.
const REMOVALS_MAX: usize = 1 << 16;

/// What an object in the queue is taken to cost beyond its bytes.
const OBJECT_BYTES: u64 = 512;

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    #[expect(clippy::disallowed_types, reason = "held to push or pop")]
    waiting: Mutex<Waiting>,
    /// Something came, or the queue was closed.
    came: Condvar,
    /// All that came is done.
    idle: Condvar,
    bytes_max: u64,
    objects_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    orders: VecDeque<(u64, Order)>,
    /// The last order about each hash that is not done: older ones have no effect.
    last: HashMap<u64, u64>,
    turn: u64,
    bytes: u64,
    objects: usize,
    /// Orders that were taken and are not done.
    taken: usize,
    closed: bool,
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Order {
    /// Write an object.
    Write(Box<Object>),
    /// Write that what has this hash is removed.
    Remove { hash: u64, at: Time },
    /// See to the bounds, which have changed.
    Trim,
}

/// An object to be written.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) head: Head,
    pub(super) key: Box<[u8]>,
    pub(super) metadata: Box<[u8]>,
    pub(super) body: Vec<Bytes>,
    /// When it was put in.
    pub(super) now: Time,
}

/// An order and its turn.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) turn: u64,
    pub(super) order: Order,
    bytes: u64,
}

/// Why something was not put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Too much waits.
    Queue,
    /// Nobody takes anything out any more.
    Closed,
}

impl Order {
    fn hash(&self) -> Option<u64> {
        match self {
            Order::Write(object) => Some(object.head.hash),
            Order::Remove { hash, .. } => Some(*hash),
            Order::Trim => None,
        }
    }

    /// What it costs of the bounds.
    fn bytes(&self) -> u64 {
        match self {
            Order::Write(object) => {
                object.head.body_bytes + object.head.front_bytes() as u64 + OBJECT_BYTES
            }
            Order::Remove { .. } | Order::Trim => 0,
        }
    }
}

impl Queue {
    /// A queue that is closed.
    pub(super) fn new(bytes_max: u64, objects_max: usize) -> Self {
        Queue {
            #[expect(clippy::disallowed_types, reason = "held to push or pop")]
            waiting: Mutex::new(Waiting { closed: true, ..Waiting::default() }),
            came: Condvar::new(),
            idle: Condvar::new(),
            bytes_max,
            objects_max,
        }
    }

    /// Lets orders in.
    pub(super) fn open(&self) {
        self.lock().closed = false;
    }

    /// Lets nothing in any more. What is in it is still taken out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.came.notify_all();
    }

    /// Puts an order at the end. `enter` runs if there is room, before the order can be taken and
    /// while no other is being ended.
    pub(super) fn push(&self, order: Order, enter: impl FnOnce()) -> Result<(), Full> {
        let bytes = order.bytes();
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Full::Closed);
        }
        let room = match order {
            Order::Write(_) => {
                waiting.objects < self.objects_max && waiting.bytes + bytes <= self.bytes_max
            }
            Order::Remove { .. } | Order::Trim => waiting.orders.len() < REMOVALS_MAX,
        };
        if !room {
            return Err(Full::Queue);
        }
        waiting.turn += 1;
        let turn = waiting.turn;
        if let Some(hash) = order.hash() {
            waiting.last.insert(hash, turn);
        }
        waiting.objects += usize::from(matches!(order, Order::Write(_)));
        waiting.bytes += bytes;
        waiting.orders.push_back((turn, order));
        enter();
        drop(waiting);
        self.came.notify_one();
        Ok(())
    }

    /// Takes the next order out; waits for one. `None` when the queue is closed and empty. Each is
    /// to be followed by [`Queue::done`].
    pub(super) fn take(&self) -> Option<Taken> {
        let mut waiting = self.lock();
        loop {
            if let Some((turn, order)) = waiting.orders.pop_front() {
                waiting.taken += 1;
                let bytes = order.bytes();
                return Some(Taken { turn, order, bytes });
            }
            if waiting.closed {
                return None;
            }
            waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether an order still counts: nothing that came later is about the same hash.
    pub(super) fn counts(&self, taken: &Taken) -> bool {
        let hash = taken.order.hash();
        hash.is_none_or(|hash| self.lock().last.get(&hash) == Some(&taken.turn))
    }

    /// Ends an order. `enter` runs if it still counts, and before anything later can be put in.
    pub(super) fn done(&self, taken: &Taken, enter: impl FnOnce()) {
        let mut waiting = self.lock();
        if let Some(hash) = taken.order.hash()
            && waiting.last.get(&hash) == Some(&taken.turn)
        {
            waiting.last.remove(&hash);
            enter();
        }
        waiting.objects -= usize::from(matches!(taken.order, Order::Write(_)));
        waiting.bytes -= taken.bytes;
        waiting.taken -= 1;
        if waiting.taken == 0 && waiting.orders.is_empty() {
            self.idle.notify_all();
        }
    }

    /// Whether an order about a hash is not done yet.
    pub(super) fn is_about(&self, hash: u64) -> bool {
        self.lock().last.contains_key(&hash)
    }

    /// Waits until all that came is done.
    pub(super) fn wait(&self) {
        let mut waiting = self.lock();
        while waiting.taken > 0 || !waiting.orders.is_empty() {
            waiting = self.idle.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many objects wait or are being written.
    pub(super) fn objects(&self) -> usize {
        self.lock().objects
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(hash: u64, body: usize) -> Order {
        let head = Head {
            kind: super::super::format::Kind::Whole,
            body_bytes: body as u64,
            ..Head::removal(hash, Time::default())
        };
        let body = vec![Bytes::from(vec![0; body])];
        let (key, metadata) = (Box::default(), Box::default());
        Order::Write(Box::new(Object { head, key, metadata, body, now: Time::default() }))
    }

    #[test]
    fn what_finds_no_room_is_refused_until_something_is_done() {
        let queue = Queue::new(10_000, 3);
        assert_eq!(queue.push(write(1, 0), || {}), Err(Full::Closed));
        queue.open();
        assert_eq!(queue.push(write(1, 9_000), || {}), Ok(()));
        assert_eq!(queue.push(write(2, 9_000), || {}), Err(Full::Queue));
        assert_eq!(queue.push(Order::Remove { hash: 3, at: Time::default() }, || {}), Ok(()));
        let taken = queue.take().unwrap();
        assert_eq!(queue.push(write(2, 9_000), || {}), Err(Full::Queue), "it is still in memory");
        queue.done(&taken, || {});
        for hash in 4..7 {
            assert_eq!(queue.push(write(hash, 0), || {}), Ok(()));
        }
        assert_eq!(queue.push(write(7, 0), || {}), Err(Full::Queue));
        queue.close();
        assert_eq!(queue.push(Order::Trim, || {}), Err(Full::Closed));
        for _ in 0..4 {
            let taken = queue.take().unwrap();
            queue.done(&taken, || {});
        }
        assert!(queue.take().is_none());
        queue.wait();
    }

    #[test]
    fn only_the_last_order_about_something_has_an_effect() {
        let queue = Queue::new(1 << 20, 10);
        queue.open();
        queue.push(write(1, 0), || {}).unwrap();
        queue.push(write(2, 0), || {}).unwrap();
        queue.push(write(1, 0), || {}).unwrap();
        let taken = queue.take().unwrap();
        assert!(!queue.counts(&taken));
        queue.done(&taken, || panic!("another came"));
        let taken = queue.take().unwrap();
        assert!(queue.counts(&taken));
        queue.push(Order::Remove { hash: 2, at: Time::default() }, || {}).unwrap();
        queue.done(&taken, || panic!("it was removed meanwhile"));
        assert!(queue.is_about(1));
        let taken = queue.take().unwrap();
        let mut entered = false;
        queue.done(&taken, || entered = true);
        assert!(entered && !queue.is_about(1));
    }
}
