//! Requests that wait for a place at the servers of a group: first come, first served, over all workers.
//!
//! Whoever gives a place back calls the first in the queue, who looks for a place and stays first if
//! it finds none. Whoever leaves from the front calls the next, so that places given back together are
//! all found. Locked only while somebody waits; else it costs a look at a counter.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// The queue of a group. It outlives plans with the group's servers.
#[derive(Debug, Default)]
pub struct Queue {
    /// How many wait: read without the lock.
    len: AtomicUsize,
    #[expect(clippy::disallowed_types, reason = "only while servers are at their limits")]
    line: std::sync::Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    tickets: u64,
    /// By ascending ticket.
    waiters: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    worker: usize,
    called: bool,
    waker: Option<Waker>,
}

/// A place in the queue, left when dropped.
#[derive(Debug)]
pub struct Place {
    queue: Arc<Queue>,
    ticket: u64,
}

impl Queue {
    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    /// Takes the last place, for a request of this worker.
    pub fn join(self: &Arc<Self>, worker: usize) -> Place {
        self.with(|line| {
            line.tickets += 1;
            let ticket = line.tickets;
            line.waiters.push_back(Waiter { ticket, worker, called: false, waker: None });
            Place { queue: Arc::clone(self), ticket }
        })
    }

    /// Calls the first: there may be a place for it.
    ///
    /// A place given back while somebody is joining may go unnoticed. So who waits also looks by
    /// itself, now and then.
    #[inline]
    pub fn call(&self) {
        if !self.is_empty() {
            self.with(Line::call_first);
        }
    }

    /// Whether the first is a request of another worker, which idle connections of this one do not help.
    pub fn is_another_workers(&self, worker: usize) -> bool {
        let others = |line: &mut Line| line.waiters.front().is_some_and(|at| at.worker != worker);
        !self.is_empty() && self.with(others)
    }

    fn with<T>(self: &Queue, change: impl FnOnce(&mut Line) -> T) -> T {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut line);
        self.len.store(line.waiters.len(), Relaxed);
        result
    }
}

impl Line {
    fn call_first(&mut self) {
        if let Some(first) = self.waiters.front_mut() {
            first.called = true;
            if let Some(waker) = first.waker.take() {
                waker.wake();
            }
        }
    }

    fn position(&self, ticket: u64) -> Option<usize> {
        self.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

impl Place {
    /// Whether nobody is in front.
    pub fn is_first(&self) -> bool {
        self.queue.with(|line| line.waiters.front().is_some_and(|at| at.ticket == self.ticket))
    }

    /// Ready once it was called. A call is told once.
    pub fn poll_called(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.queue.with(|line| {
            let at = line.position(self.ticket);
            let Some(waiter) = at.and_then(|at| line.waiters.get_mut(at)) else {
                return Poll::Ready(());
            };
            if std::mem::take(&mut waiter.called) {
                return Poll::Ready(());
            }
            waiter.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.with(|line| {
            let Some(at) = line.position(self.ticket) else { return };
            line.waiters.remove(at);
            if at == 0 {
                line.call_first();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_called(place: &Place) -> bool {
        place.poll_called(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_first_is_called_and_stays_first_until_it_leaves() {
        let queue = Arc::new(Queue::default());
        let (first, second) = (queue.join(0), queue.join(0));
        assert!(first.is_first() && !second.is_first());
        assert!(!is_called(&first));
        queue.call();
        queue.call();
        assert!(is_called(&first) && !is_called(&first), "a call is told once");
        assert!(!is_called(&second));
        drop(first);
        assert!(second.is_first() && is_called(&second));
        drop(second);
        assert!(queue.is_empty());
    }

    #[test]
    fn who_gives_up_behind_the_first_calls_nobody() {
        let queue = Arc::new(Queue::default());
        let (first, second, third) = (queue.join(0), queue.join(0), queue.join(0));
        drop(second);
        assert!(!is_called(&first) && !is_called(&third));
        drop(first);
        assert!(is_called(&third));
    }

    #[test]
    fn a_called_waiter_is_woken() {
        struct Woken(AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let queue = Arc::new(Queue::default());
        let place = queue.join(0);
        let waker = Waker::from(Arc::clone(&woken));
        assert!(place.poll_called(&mut Context::from_waker(&waker)).is_pending());
        queue.call();
        queue.call();
        assert_eq!(woken.0.load(Relaxed), 1);
    }

    #[test]
    fn whose_the_first_is() {
        let queue = Arc::new(Queue::default());
        assert!(!queue.is_another_workers(0));
        let place = queue.join(1);
        assert!(queue.is_another_workers(0) && !queue.is_another_workers(1));
        drop(place);
        assert!(!queue.is_another_workers(0));
    }
}
