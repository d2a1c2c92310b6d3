//! The inspection pool: threads for phases that would hold a worker's loop up.
//!
//! The queue is bounded. A worker never waits for it: it offers a job, and where there is no room the
//! route says what becomes of the request. A job carries its inspection with it and brings it back;
//! whoever has given up meanwhile is noticed by then.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use tidegate_telemetry::Stamp;
use tidegate_telemetry::metrics::PoolGauge;
use tidegate_waf::inspection::{Inspection, Inspector, Moment, Step, Verdict, Work};
use tidegate_waf::variable::Phase;
use tokio::sync::{mpsc, oneshot};

use super::{Lost, run};

/// Only the pool's threads wait for it, each for its next job.
#[expect(clippy::disallowed_types, reason = "no worker ever takes this lock")]
type Queue = std::sync::Mutex<mpsc::Receiver<Job>>;

/// The pool.
#[derive(Debug)]
pub struct Pool {
    jobs: mpsc::Sender<Job>,
    queue: Arc<Queue>,
    gauge: Arc<PoolGauge>,
    threads: AtomicUsize,
}

/// A phase to be run.
pub(crate) struct Job {
    pub(crate) inspection: Inspection,
    pub(crate) phase: Phase,
    pub(crate) moment: Moment,
    /// Since when it waits.
    pub(crate) since: Stamp,
    pub(crate) reply: oneshot::Sender<Result<Done, Lost>>,
}

/// A phase that was run.
pub(crate) struct Done {
    pub(crate) inspection: Inspection,
    pub(crate) verdict: Verdict,
    /// How long it waited.
    pub(crate) waited: Duration,
    /// How long it took.
    pub(crate) took: Duration,
}

/// A job that found the queue full.
pub(crate) struct NoRoom(pub(crate) Box<Job>);

impl Pool {
    /// A pool without threads; `queue_max` jobs may wait, at least one.
    pub fn new(queue_max: usize, gauge: Arc<PoolGauge>) -> Arc<Self> {
        let (jobs, queue) = mpsc::channel(queue_max.max(1));
        let queue = Arc::new(Queue::new(queue));
        Arc::new(Self { jobs, queue, gauge, threads: AtomicUsize::new(0) })
    }

    /// Sees to it that so many threads work. They end with the pool.
    pub fn start(&self, threads: usize) -> io::Result<()> {
        while self.threads.load(Ordering::Relaxed) < threads {
            let number = self.threads.fetch_add(1, Ordering::Relaxed);
            let (queue, gauge) = (Arc::clone(&self.queue), Arc::clone(&self.gauge));
            thread::Builder::new()
                .name(format!("inspect-{number}"))
                .spawn(move || work(&queue, &gauge))?;
        }
        Ok(())
    }

    /// Gives a job to the pool, if there is room.
    pub(crate) fn offer(&self, job: Job) -> Result<(), NoRoom> {
        // Counted before it is there, lest a thread takes it off the count first.
        self.gauge.queued.fetch_add(1, Ordering::Relaxed);
        self.jobs.try_send(job).map_err(|refused| {
            self.gauge.queued.fetch_sub(1, Ordering::Relaxed);
            let (mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) =
                refused;
            NoRoom(Box::new(job))
        })
    }

    /// Waits for room and gives the job to the pool; first come, first served.
    pub(crate) async fn submit(&self, job: Job) {
        // Room is always found some time: the queue is not closed while the pool lives.
        if let Ok(room) = self.jobs.reserve().await {
            self.gauge.queued.fetch_add(1, Ordering::Relaxed);
            room.send(job);
        }
    }
}

/// One thread's life.
fn work(queue: &Queue, gauge: &PoolGauge) {
    let mut inspector = Inspector::new();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(job) = next else { return };
        gauge.queued.fetch_sub(1, Ordering::Relaxed);
        gauge.running.fetch_add(1, Ordering::Relaxed);
        inspect(job, &mut inspector);
        gauge.running.fetch_sub(1, Ordering::Relaxed);
        gauge.done.fetch_add(1, Ordering::Relaxed);
    }
}

fn inspect(job: Job, inspector: &mut Inspector) {
    let Job { inspection, phase, moment, since, reply } = job;
    if reply.is_closed() {
        return inspection.end(inspector);
    }
    let began = Stamp::now();
    let done =
        run(inspection, Work::UNBOUNDED, phase, moment, inspector).map(|(inspection, step)| {
            let verdict = match step {
                Step::Done(verdict) => verdict,
                // There is no bound to the work.
                Step::Paused => Verdict::Pass,
            };
            Done { inspection, verdict, waited: began.since(since), took: began.elapsed() }
        });
    if let Err(Ok(done)) = reply.send(done) {
        done.inspection.end(inspector);
    }
}
