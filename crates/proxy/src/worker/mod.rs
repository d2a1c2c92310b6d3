//! A worker: one thread, one event loop, its own listeners and upstream connections.
//!
//! Everything a request touches belongs to its worker and is reached without a lock. What workers
//! share is the plan, swapped by pointer, the servers' state, and counters that each writes for
//! itself. The control thread speaks to a worker through a bounded queue of [`Command`]s.

pub mod accept;
pub mod buffers;
pub mod wheel;

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tidegate_http::date;
use tidegate_telemetry::log::{Log, LogView, WorkerLogs};
use tidegate_telemetry::metrics;
use tidegate_telemetry::record::{RequestId, RequestIds};
use tidegate_telemetry::{Record, Stamp, clock};
use tidegate_waf::inspection::Inspector;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use self::accept::Bound;
use self::wheel::{TICK, Wheel};
use crate::caching::{Cache, Keys};
use crate::connection::body;
use crate::inspection::Facilities;
use crate::plan::Plan;
use crate::request::Exchange;
use crate::settings::Address;
use crate::upstream::WorkerBalance;
use crate::upstream::pool::{Pool, PoolRef};

/// Exchanges a worker keeps for reuse.
const EXCHANGES_KEPT_MAX: usize = 256;

/// Threads that write and read files for one worker.
const BLOCKING_THREADS_MAX: usize = 2;

/// Ticks between two flushes of the log buffers, and between two sweeps of the pool.
const FLUSH_TICKS: u64 = 4;
const SWEEP_TICKS: u64 = 20;

/// What the control thread asks of a worker.
#[derive(Debug)]
pub enum Command {
    /// Serve under this plan from now on. Listeners that are new in it come along, bound; those that
    /// it no longer has are closed.
    Plan(Arc<Plan>, Vec<Bound>),
    /// Accept no more, finish what is there, and end when all is done or the time is over. Said again,
    /// it sets another time.
    Drain(Duration),
}

/// What all workers of a process share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Downstream connections open over all workers.
    pub connections: Arc<AtomicUsize>,
    /// What inspections share.
    pub facilities: Facilities,
    /// The cache.
    pub cache: Arc<Cache>,
}

/// What a worker is made of.
pub struct Parts {
    /// Its number, from zero.
    pub id: u16,
    /// Where it counts.
    pub metrics: metrics::Worker,
    /// Where it logs.
    pub logs: WorkerLogs,
    /// What it shares with the others.
    pub shared: Shared,
    /// Where it is told what to do.
    pub commands: mpsc::Receiver<Command>,
}

/// A handle on the worker this thread runs; clones are the same worker.
#[derive(Clone)]
pub struct Worker(Rc<Inner>);

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Worker").field(&self.0.id).finish()
    }
}

struct Inner {
    id: u16,
    metrics: metrics::Worker,
    shared: Shared,
    wheel: Wheel,
    active: RefCell<Rc<Active>>,
    pool: RefCell<Pool>,
    ids: RefCell<RequestIds>,
    logs: RefCell<WorkerLogs>,
    #[expect(
        clippy::vec_box,
        reason = "boxes move between requests and here; exchanges are large"
    )]
    exchanges: RefCell<Vec<Box<Exchange>>>,
    inspector: RefCell<Inspector>,
    keys: RefCell<Keys>,
    connections: Cell<usize>,
    wall: Cell<Wall>,
    /// More than one of an address where a process before this one had more workers.
    listening: RefCell<Vec<(Address, AbortHandle)>>,
}

/// The plan a worker serves under, with what it keeps for itself of each group.
pub(crate) struct Active {
    plan: Arc<Plan>,
    pub(crate) balances: Vec<RefCell<WorkerBalance>>,
}

/// The wall clock as of the last tick.
#[derive(Clone, Copy)]
struct Wall {
    unix_millis: u64,
    date: [u8; 29],
}

impl Deref for Active {
    type Target = Arc<Plan>;

    fn deref(&self) -> &Arc<Plan> {
        &self.plan
    }
}

/// Runs a worker on this thread until it is drained. `plan` and `listeners` are what it begins with.
pub fn run(parts: Parts, plan: Arc<Plan>, listeners: Vec<Bound>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        // Bodies under inspection that are too large for memory go to files, and nothing else blocks.
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build_local(tokio::runtime::LocalOptions::default())?;
    runtime.block_on(async move {
        let mut commands = parts.commands;
        let worker = Worker::new(parts.id, parts.metrics, parts.logs, parts.shared, plan);
        worker.listen(listeners);
        tokio::task::spawn_local(tick(worker.clone()));
        while let Some(command) = commands.recv().await {
            match command {
                Command::Plan(plan, listeners) => worker.adopt(&plan, listeners),
                Command::Drain(time) => {
                    worker.drain(time, &mut commands).await;
                    break;
                }
            }
        }
        worker.0.logs.borrow_mut().flush();
    });
    Ok(())
}

impl Worker {
    fn new(
        id: u16,
        metrics: metrics::Worker,
        logs: WorkerLogs,
        shared: Shared,
        plan: Arc<Plan>,
    ) -> Self {
        let wheel = Wheel::default();
        Self(Rc::new(Inner {
            id,
            metrics,
            shared,
            active: RefCell::new(Rc::new(Active::new(plan, id))),
            pool: RefCell::new(Pool::new(wheel.clone())),
            wheel,
            ids: RefCell::new(RequestIds::new(id, clock::unix_millis())),
            logs: RefCell::new(logs),
            exchanges: RefCell::default(),
            inspector: RefCell::default(),
            keys: RefCell::default(),
            connections: Cell::new(0),
            wall: Cell::new(Wall::now()),
            listening: RefCell::default(),
        }))
    }

    /// Its number, from zero.
    pub(crate) fn id(&self) -> usize {
        usize::from(self.0.id)
    }

    /// Where this worker counts.
    pub(crate) fn metrics(&self) -> &metrics::Worker {
        &self.0.metrics
    }

    pub(crate) fn wheel(&self) -> &Wheel {
        &self.0.wheel
    }

    /// The plan that new requests are served under.
    pub(crate) fn active(&self) -> Rc<Active> {
        Rc::clone(&self.0.active.borrow())
    }

    pub(crate) fn pool(&self) -> PoolRef<'_> {
        PoolRef { pool: self.0.pool.borrow_mut(), metrics: &self.0.metrics }
    }

    /// Whether connections are to end with their next response.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.wheel.is_draining()
    }

    /// The `Date` field's value now.
    pub(crate) fn date(&self) -> [u8; 29] {
        self.0.wall.get().date
    }

    /// Wall time in milliseconds since 1970, as of the last tick.
    pub(crate) fn unix_millis(&self) -> u64 {
        self.0.wall.get().unix_millis
    }

    pub(crate) fn next_id(&self) -> RequestId {
        self.0.ids.borrow_mut().next_id()
    }

    /// What inspections on this thread search with.
    pub(crate) fn inspector(&self) -> RefMut<'_, Inspector> {
        self.0.inspector.borrow_mut()
    }

    /// What all workers share of the cache.
    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.0.shared.cache
    }

    /// Where keys of the cache are written.
    pub(crate) fn keys(&self) -> RefMut<'_, Keys> {
        self.0.keys.borrow_mut()
    }

    /// What all inspections share.
    pub(crate) fn facilities(&self) -> &Facilities {
        &self.0.shared.facilities
    }

    /// A cleared exchange.
    pub(crate) fn exchange(&self) -> Box<Exchange> {
        self.0.exchanges.borrow_mut().pop().unwrap_or_default()
    }

    /// Frees half of what is kept for reuse and not in use.
    fn trim(&self) {
        buffers::trim();
        body::trim_outboxes();
        let mut kept = self.0.exchanges.borrow_mut();
        let half = kept.len() / 2;
        kept.truncate(half);
    }

    /// Takes an exchange back for reuse.
    pub(crate) fn recycle(&self, mut exchange: Box<Exchange>) {
        let mut kept = self.0.exchanges.borrow_mut();
        if kept.len() < EXCHANGES_KEPT_MAX {
            exchange.clear();
            kept.push(exchange);
        }
    }

    /// Writes a record to an access log.
    pub(crate) fn log(&self, log: &Arc<Log>, record: &Record, view: &LogView<'_>) {
        self.0.logs.borrow_mut().write(log, record, view);
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn count_connection(&self) -> Counted {
        self.0.connections.set(self.0.connections.get() + 1);
        self.0.shared.connections.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    /// Downstream connections open over all workers.
    pub(crate) fn connections_open(&self) -> usize {
        self.0.shared.connections.load(Ordering::Relaxed)
    }

    fn adopt(&self, plan: &Arc<Plan>, listeners: Vec<Bound>) {
        *self.0.active.borrow_mut() = Rc::new(Active::new(Arc::clone(plan), self.0.id));
        self.0.listening.borrow_mut().retain(|(address, task)| {
            let stays = plan.listeners.iter().any(|listener| listener.address == *address);
            if !stays {
                task.abort();
            }
            stays
        });
        self.listen(listeners);
    }

    fn listen(&self, listeners: Vec<Bound>) {
        for bound in listeners {
            let address = bound.address().clone();
            let task = tokio::task::spawn_local(accept::run(self.clone(), bound));
            self.0.listening.borrow_mut().push((address, task.abort_handle()));
        }
    }

    /// A further [`Command::Drain`] sets another time.
    async fn drain(&self, time: Duration, commands: &mut mpsc::Receiver<Command>) {
        self.0.listening.borrow_mut().drain(..).for_each(|(_, task)| task.abort());
        self.0.wheel.drain();
        let mut end = Stamp::now() + time;
        while self.0.connections.get() > 0 && Stamp::now() < end {
            tokio::time::sleep(TICK).await;
            while let Ok(command) = commands.try_recv() {
                if let Command::Drain(time) = command {
                    end = Stamp::now() + time;
                }
            }
        }
    }

    fn tick(&self) {
        self.0.wall.set(Wall::now());
        self.0.wheel.tick();
        let now = self.0.wheel.now();
        if now.is_multiple_of(FLUSH_TICKS) {
            self.0.logs.borrow_mut().flush();
        }
    }
}

/// Moves the worker's time on. After a stall it catches up, so that deadlines stay true.
async fn tick(worker: Worker) {
    let mut interval = tokio::time::interval(TICK);
    loop {
        interval.tick().await;
        worker.tick();
        if worker.wheel().now().is_multiple_of(SWEEP_TICKS) {
            poll_fn(|cx| {
                worker.pool().sweep(cx);
                worker.trim();
                Poll::Ready(())
            })
            .await;
        }
    }
}

impl Active {
    fn new(plan: Arc<Plan>, worker: u16) -> Self {
        let seed = Stamp::now().as_nanos().rotate_left(17) ^ u64::from(worker);
        let balances = (0_u64..)
            .zip(&plan.groups)
            .map(|(index, _)| {
                let seed = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                RefCell::new(WorkerBalance::new(usize::from(worker), seed))
            })
            .collect();
        Self { plan, balances }
    }
}

impl Wall {
    fn now() -> Self {
        let unix_millis = clock::unix_millis();
        Self { unix_millis, date: date::imf_fixdate(unix_millis / 1000) }
    }
}

/// A downstream connection, counted as long as this lives.
pub(crate) struct Counted(Worker);

impl Counted {
    /// The worker it belongs to.
    pub(crate) fn worker(&self) -> &Worker {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let inner = &self.0.0;
        inner.connections.set(inner.connections.get().saturating_sub(1));
        inner.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
