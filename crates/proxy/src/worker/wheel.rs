//! Deadlines of everything a worker waits for, and the order in which idle connections give way.
//!
//! Each connection (and each HTTP/2 stream) holds one [`Slot`] for its whole life. A deadline is set
//! by writing a number; the slot stays where it is filed until the wheel comes by, and is filed again
//! if its deadline has moved on by then. So the deadlines of a request cost a store each, and ten
//! thousand idle connections cost one visit every [`HORIZON_TICKS`]. The idea is Varghese and Lauck's
//! hashed wheel ("Hashed and Hierarchical Timing Wheels", 1987) with lazy re-filing.
//!
//! The same slot links idle connections from the oldest to the youngest, so that the oldest can be
//! asked to give way when connections become scarce.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Length of a tick: no deadline is met later than this after its time, none before it.
pub const TICK: Duration = Duration::from_millis(50);

/// Ticks of a revolution. Later deadlines are filed again once a revolution.
pub const HORIZON_TICKS: u64 = HORIZON as u64;
const HORIZON: usize = 256;

const NONE: u32 = u32::MAX;
const NEVER: u64 = u64::MAX;

/// What a slot's owner is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The deadline has passed.
    Expired,
    /// Connections are scarce and this is the oldest idle one.
    GiveWay,
    /// The worker is draining: finish and close.
    Drain,
}

/// A worker's wheel; clones are the same wheel.
#[derive(Clone, Default)]
pub struct Wheel(Rc<RefCell<Inner>>);

/// A place in the wheel, given back when dropped.
pub struct Slot {
    wheel: Wheel,
    key: u32,
}

struct Inner {
    now: u64,
    entries: Vec<Entry>,
    free: u32,
    heads: [u32; HORIZON],
    idle_oldest: u32,
    idle_youngest: u32,
    idle_len: usize,
    draining: bool,
}

struct Entry {
    deadline: u64,
    waker: Option<Waker>,
    /// Neighbours in the tick's list, and which tick that is. `next` also links free entries.
    next: u32,
    previous: u32,
    filed: u16,
    is_filed: bool,
    idle: Idle,
    idle_older: u32,
    idle_younger: u32,
    expired: bool,
    give_way: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Idle {
    Yes,
    No,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            now: 0,
            entries: Vec::new(),
            free: NONE,
            heads: [NONE; HORIZON],
            idle_oldest: NONE,
            idle_youngest: NONE,
            idle_len: 0,
            draining: false,
        }
    }
}

impl Wheel {
    /// A place without a deadline.
    pub fn slot(&self) -> Slot {
        let key = self.0.borrow_mut().allocate();
        Slot { wheel: self.clone(), key }
    }

    /// Moves time on by one tick and wakes those whose deadline has passed.
    pub fn tick(&self) {
        let mut inner = self.0.borrow_mut();
        inner.now += 1;
        let now = inner.now;
        let mut key = std::mem::replace(&mut inner.heads[list(now)], NONE);
        while key != NONE {
            let entry = &mut inner.entries[key as usize];
            let next = entry.next;
            entry.is_filed = false;
            if entry.deadline <= now {
                entry.deadline = NEVER;
                entry.expired = true;
                inner.wake(key);
            } else if entry.deadline != NEVER {
                inner.file(key);
            }
            key = next;
        }
    }

    /// Ticks that have passed.
    pub fn now(&self) -> u64 {
        self.0.borrow().now
    }

    /// Asks the connection that has been idle longest to close. Says whether there was one.
    pub fn give_way(&self) -> Option<()> {
        let mut inner = self.0.borrow_mut();
        let oldest = inner.idle_oldest;
        (oldest != NONE).then(|| {
            inner.unlink_idle(oldest);
            inner.entries[oldest as usize].give_way = true;
            inner.wake(oldest);
        })
    }

    /// Connections that are idle now.
    pub fn idle_len(&self) -> usize {
        self.0.borrow().idle_len
    }

    /// Tells all, now and later, to finish and close.
    pub fn drain(&self) {
        let mut inner = self.0.borrow_mut();
        inner.draining = true;
        inner.entries.iter().filter_map(|entry| entry.waker.as_ref()).for_each(Waker::wake_by_ref);
    }

    /// Whether all were told to finish and close.
    pub fn is_draining(&self) -> bool {
        self.0.borrow().draining
    }
}

impl Slot {
    /// Sets the deadline to `after` from now, in place of the one before.
    pub fn set(&self, after: Duration) {
        let ticks = after.as_nanos().div_ceil(TICK.as_nanos());
        let ticks = u64::try_from(ticks).unwrap_or(NEVER >> 1);
        let mut inner = self.wheel.0.borrow_mut();
        // One more tick, because part of the present one has passed already.
        let deadline = inner.now + ticks + 1;
        let entry = &mut inner.entries[self.key as usize];
        entry.deadline = deadline;
        entry.expired = false;
        let filed = u64::from(entry.filed);
        let is_filed = entry.is_filed;
        if is_filed {
            let now = inner.now;
            let filed_in = (filed + HORIZON_TICKS - now % HORIZON_TICKS) % HORIZON_TICKS;
            let filed_in = if filed_in == 0 { HORIZON_TICKS } else { filed_in };
            if now + filed_in <= deadline {
                return;
            }
            inner.unfile(self.key);
        }
        inner.file(self.key);
    }

    /// Takes the deadline away.
    pub fn clear(&self) {
        let mut inner = self.wheel.0.borrow_mut();
        let entry = &mut inner.entries[self.key as usize];
        entry.deadline = NEVER;
        entry.expired = false;
    }

    /// Ready once something is to be told. An expiry is told once, the others remain.
    pub fn poll_signal(&self, cx: &mut Context<'_>) -> Poll<Signal> {
        if self.poll_expired(cx).is_ready() {
            return Poll::Ready(Signal::Expired);
        }
        let inner = self.wheel.0.borrow();
        if inner.entries[self.key as usize].give_way {
            return Poll::Ready(Signal::GiveWay);
        }
        if inner.draining {
            return Poll::Ready(Signal::Drain);
        }
        Poll::Pending
    }

    /// Ready once the deadline has passed, whatever else there is to tell.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.wheel.0.borrow_mut();
        let entry = &mut inner.entries[self.key as usize];
        if std::mem::take(&mut entry.expired) {
            return Poll::Ready(());
        }
        match &mut entry.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// What a future comes to, if it does so within a time.
    pub(crate) async fn within<T>(
        &self,
        time: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, ()> {
        let mut future = pin!(future);
        self.set(time);
        poll_fn(|cx| {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(value));
            }
            self.poll_expired(cx).map(Err)
        })
        .await
    }

    /// Joins the idle connections as the youngest of them.
    pub fn idle(&self) {
        self.wheel.0.borrow_mut().link_idle(self.key);
    }

    /// Leaves the idle connections.
    pub fn busy(&self) {
        self.wheel.0.borrow_mut().unlink_idle(self.key);
    }

    /// The wheel this slot is in.
    pub fn wheel(&self) -> &Wheel {
        &self.wheel
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Slot").field(&self.key).finish()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.wheel.0.borrow_mut().release(self.key);
    }
}

impl Inner {
    fn allocate(&mut self) -> u32 {
        let entry = Entry {
            deadline: NEVER,
            waker: None,
            next: NONE,
            previous: NONE,
            filed: 0,
            is_filed: false,
            idle: Idle::No,
            idle_older: NONE,
            idle_younger: NONE,
            expired: false,
            give_way: false,
        };
        if self.free == NONE {
            self.entries.push(entry);
            return u32::try_from(self.entries.len() - 1).unwrap_or(NONE);
        }
        let key = self.free;
        self.free = self.entries[key as usize].next;
        self.entries[key as usize] = entry;
        key
    }

    fn release(&mut self, key: u32) {
        self.unfile(key);
        self.unlink_idle(key);
        let entry = &mut self.entries[key as usize];
        entry.waker = None;
        entry.next = self.free;
        self.free = key;
    }

    fn wake(&self, key: u32) {
        if let Some(waker) = &self.entries[key as usize].waker {
            waker.wake_by_ref();
        }
    }

    /// Puts an entry into the list of its deadline's tick, or of the last tick before the horizon.
    fn file(&mut self, key: u32) {
        let at = list(self.entries[key as usize].deadline.min(self.now + HORIZON_TICKS - 1));
        let next = std::mem::replace(&mut self.heads[at], key);
        if next != NONE {
            self.entries[next as usize].previous = key;
        }
        let entry = &mut self.entries[key as usize];
        entry.next = next;
        entry.previous = NONE;
        entry.filed = u16::try_from(at).unwrap_or(0);
        entry.is_filed = true;
    }

    fn unfile(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        if !entry.is_filed {
            return;
        }
        entry.is_filed = false;
        let (previous, next, filed) = (entry.previous, entry.next, usize::from(entry.filed));
        match previous {
            NONE => self.heads[filed] = next,
            previous => self.entries[previous as usize].next = next,
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
    }

    fn link_idle(&mut self, key: u32) {
        self.unlink_idle(key);
        let older = std::mem::replace(&mut self.idle_youngest, key);
        match older {
            NONE => self.idle_oldest = key,
            older => self.entries[older as usize].idle_younger = key,
        }
        let entry = &mut self.entries[key as usize];
        entry.idle = Idle::Yes;
        entry.idle_older = older;
        entry.idle_younger = NONE;
        self.idle_len += 1;
    }

    fn unlink_idle(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        if entry.idle == Idle::No {
            return;
        }
        entry.idle = Idle::No;
        let (older, younger) = (entry.idle_older, entry.idle_younger);
        match older {
            NONE => self.idle_oldest = younger,
            older => self.entries[older as usize].idle_younger = younger,
        }
        match younger {
            NONE => self.idle_youngest = older,
            younger => self.entries[younger as usize].idle_older = older,
        }
        self.idle_len -= 1;
    }
}

fn list(tick: u64) -> usize {
    usize::try_from(tick % HORIZON_TICKS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn signalled(slot: &Slot) -> Option<Signal> {
        match slot.poll_signal(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(signal) => Some(signal),
            Poll::Pending => None,
        }
    }

    fn ticks_until(wheel: &Wheel, slot: &Slot, bound: u64) -> Option<u64> {
        (1..=bound).find(|_| {
            wheel.tick();
            signalled(slot) == Some(Signal::Expired)
        })
    }

    #[test]
    fn a_deadline_is_met_within_a_tick_near_and_beyond_the_horizon() {
        for ticks in [1, 2, 100, 255, 256, 257, 1000, 5000] {
            let wheel = Wheel::default();
            let slot = wheel.slot();
            for _ in 0..77 {
                wheel.tick();
            }
            slot.set(TICK * u32::try_from(ticks).unwrap());
            assert_eq!(ticks_until(&wheel, &slot, 10_000), Some(ticks + 1), "{ticks}");
        }
    }

    #[test]
    fn a_deadline_can_move_later_and_earlier() {
        let wheel = Wheel::default();
        let slot = wheel.slot();
        slot.set(TICK * 10);
        slot.set(TICK * 50);
        assert_eq!(ticks_until(&wheel, &slot, 100), Some(51));
        slot.set(TICK * 200);
        slot.set(TICK * 3);
        assert_eq!(ticks_until(&wheel, &slot, 100), Some(4));
    }

    #[test]
    fn a_cleared_or_dropped_deadline_is_silent() {
        let wheel = Wheel::default();
        let slot = wheel.slot();
        slot.set(TICK);
        slot.clear();
        assert_eq!(ticks_until(&wheel, &slot, 600), None);
        slot.set(TICK);
        drop(slot);
        let other = wheel.slot();
        assert_eq!(ticks_until(&wheel, &other, 600), None);
    }

    #[test]
    fn the_oldest_idle_gives_way_first() {
        let wheel = Wheel::default();
        let slots = [wheel.slot(), wheel.slot(), wheel.slot()];
        slots.iter().for_each(Slot::idle);
        slots[0].busy();
        assert_eq!(wheel.give_way(), Some(()));
        assert_eq!(signalled(&slots[1]), Some(Signal::GiveWay));
        assert_eq!(signalled(&slots[2]), None);
        assert_eq!(wheel.idle_len(), 1);
        assert_eq!(wheel.give_way(), Some(()));
        assert_eq!(wheel.give_way(), None);
    }

    #[test]
    fn deadlines_agree_with_a_sorted_list_under_random_operations() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |bound: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % bound
        };
        let wheel = Wheel::default();
        let slots: Vec<Slot> = (0..50).map(|_| wheel.slot()).collect();
        let mut due = vec![None; slots.len()];
        for _ in 0..20_000 {
            let at = usize::try_from(random(50)).unwrap();
            match random(4) {
                0 => {
                    let ticks = random(700);
                    slots[at].set(TICK * u32::try_from(ticks).unwrap());
                    due[at] = Some(wheel.now() + ticks + 1);
                }
                1 => {
                    slots[at].clear();
                    due[at] = None;
                }
                _ => {
                    wheel.tick();
                    for (slot, due) in slots.iter().zip(&mut due) {
                        let expected = due.is_some_and(|due| due <= wheel.now());
                        assert_eq!(signalled(slot).is_some(), expected);
                        if expected {
                            *due = None;
                        }
                    }
                }
            }
        }
    }
}
