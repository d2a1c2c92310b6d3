//! The control thread: everything that is not a request.
//!
//! It runs a loop of its own on the process's main thread: signals, the admin API, health checks and
//! DNS, certificates, reloads, upgrades. What it decides it tells the workers as commands; what it
//! does can never hold a request up. Changes of the running gate happen one after another, under
//! [`Gate::changing`].

mod certificates;
pub(crate) mod history;
pub(crate) mod reload;
mod systemd;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::Admin;
use tidegate_proxy::tls::TicketKeys;
use tidegate_proxy::upstream::{Resolver, Watch};
use tidegate_telemetry::clock::{self, Stamp};
use tidegate_telemetry::metrics::{self, Metrics};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use history::History;

use crate::admin::{self, Door};
use crate::serve::Obstacle;
use crate::serve::crew::{Crew, Ended, Why};
use crate::serve::logs::Logs;
use crate::serve::sockets;

/// So many failures of workers within [`FAILURES_WITHIN`] end the process: something is wrong that a
/// new thread does not mend, and whoever watches the process may do better.
const FAILURES_MAX: usize = 5;
const FAILURES_WITHIN: Duration = Duration::from_mins(1);

/// A worker that has not ended so long after its drain time is left behind.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// The running gate.
pub(crate) struct Gate {
    /// The configuration.
    pub(crate) file: PathBuf,
    /// When it began.
    pub(crate) started: Stamp,
    /// Everything that is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// The keys of session tickets, which outlive every plan.
    pub(crate) tickets: Arc<TicketKeys>,
    /// The access logs.
    pub(crate) logs: Logs,
    /// Who resolves the names of servers.
    pub(crate) resolver: Arc<Resolver>,
    /// The workers.
    pub(crate) crew: RefCell<Crew>,
    /// What they serve under.
    pub(crate) running: RefCell<Running>,
    /// Whether it accepts connections.
    pub(crate) phase: Cell<Phase>,
    /// The last minute.
    pub(crate) history: RefCell<History>,
    /// The bounds of the label sets.
    pub(crate) bounds: metrics::Settings,
    /// The last reload, if it was refused.
    pub(crate) failed_reload: RefCell<Option<FailedReload>>,
    /// Held by whoever changes the gate: a reload, an upgrade, the operator.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

/// Whether the gate accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It does.
    Serving,
    /// It finishes what it has, and ends.
    Draining,
}

/// A reload that was refused.
#[derive(Clone, Debug)]
pub(crate) struct FailedReload {
    /// When.
    pub(crate) at: Stamp,
    /// Why.
    pub(crate) reason: String,
}

/// What is in service.
pub(crate) struct Running {
    /// The plan.
    pub(crate) plan: Arc<Plan>,
    /// The admin listener's settings, as the plan's configuration has them.
    pub(crate) admin: Admin,
    /// The plan's trusted proxies as they were written.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Since when.
    pub(crate) since: Stamp,
    watch: Option<Watch>,
}

impl Running {
    /// A plan that workers serve under from now on.
    pub(crate) fn new(
        plan: Arc<Plan>,
        admin: Admin,
        trusted_proxies: Vec<IpNet>,
        resolver: &Arc<Resolver>,
        metrics: &Arc<Metrics>,
    ) -> Running {
        metrics.control().plan_loaded(plan.generation, clock::unix_seconds());
        let watch = Watch::start(&plan.groups, resolver, metrics);
        Running { plan, admin, trusted_proxies, since: Stamp::now(), watch: Some(watch) }
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// SIGTERM or SIGINT: finish and end; the second time, end at once.
    Stop,
    /// SIGHUP: take the configuration anew.
    Reload,
    /// SIGUSR1: open the access logs anew.
    ReopenLogs,
}

/// The signals that the process acts on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hang_up.recv() => Asked::Reload,
            _ = self.user.recv() => Asked::ReopenLogs,
        }
    }
}

/// Controls the gate until it has stopped.
pub(crate) async fn run(
    gate: Rc<Gate>,
    door: Option<Door>,
    mut ended: mpsc::Receiver<Ended>,
) -> Result<(), Obstacle> {
    let mut signals = Signals::new().map_err(Obstacle::Thread)?;
    let plan = Arc::clone(&gate.running.borrow().plan);
    for listener in &plan.listeners {
        tracing::info!(address = listener.name, "listening");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        workers = gate.crew.borrow().len(),
        sites = plan.sites.len(),
        groups = plan.groups.len(),
        "serving"
    );
    systemd::notify("READY=1");
    tokio::task::spawn_local(certificates::watch(Rc::clone(&gate)));
    tokio::task::spawn_local(history::keep(Rc::clone(&gate)));
    let admin = Administration::begin(&gate, door);
    let mut failures = Vec::new();
    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Stop => {
                    tracing::info!("stopping: requests under way are finished");
                    stop(&gate, &mut ended, &mut signals).await;
                    admin.end().await;
                    return Ok(());
                }
                Asked::Reload => {
                    let gate = Rc::clone(&gate);
                    // What came of it is logged; there is nobody else to tell.
                    tokio::task::spawn_local(async move { drop(gate.reload().await) });
                }
                Asked::ReopenLogs => {
                    tracing::info!("access logs are opened again");
                    gate.logs.reopen();
                }
            },
            Some(end) = ended.recv() => replace(&gate, &end, &mut failures)?,
        }
    }
}

/// The admin listener at work. It answers until the last request is done: a drain is when people
/// want to know most.
struct Administration {
    door: Option<Rc<Door>>,
    close: Rc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl Administration {
    fn begin(gate: &Rc<Gate>, door: Option<Door>) -> Administration {
        let close = Rc::new(Notify::new());
        let door = door.map(Rc::new);
        let task = door.as_ref().map(|door| {
            let (gate, door) = (Rc::clone(gate), Rc::clone(door));
            tokio::task::spawn_local(admin::serve(gate, door, Rc::clone(&close)))
        });
        Administration { door, close, task }
    }

    /// Closes it, and removes its socket's file.
    async fn end(self) {
        if let Some(door) = &self.door {
            sockets::remove_file(door.socket().address());
        }
        self.leave().await;
    }

    /// Closes it; the file is another process's now.
    async fn leave(self) {
        drop(self.door);
        self.close.notify_one();
        if let Some(task) = self.task {
            // It ends by itself, and a panic in it has been told of.
            let _ = task.await;
        }
    }
}

/// Puts a new worker in the place of one that failed.
fn replace(gate: &Gate, end: &Ended, failures: &mut Vec<Stamp>) -> Result<(), Obstacle> {
    let reason = match &end.why {
        Why::Failed(reason) => reason.as_str(),
        Why::Drained => "it ended unasked",
    };
    tracing::error!(worker = end.worker, reason, "a worker failed and is replaced");
    let now = Stamp::now();
    failures.retain(|failure| now.since(*failure) < FAILURES_WITHIN);
    failures.push(now);
    if failures.len() >= FAILURES_MAX {
        return Err(Obstacle::WorkersFail);
    }
    let plan = Arc::clone(&gate.running.borrow().plan);
    let mut crew = gate.crew.borrow_mut();
    crew.replace(end.worker, &plan, &gate.metrics, &gate.logs).map_err(Obstacle::Thread)
}

/// Accepts no more, waits for the requests under way, and writes the last lines of the logs.
async fn stop(gate: &Gate, ended: &mut mpsc::Receiver<Ended>, signals: &mut Signals) {
    systemd::notify("STOPPING=1");
    gate.phase.set(Phase::Draining);
    let time = gate.running.borrow().plan.process.drain_timeout;
    let addresses = gate.crew.borrow_mut().drain(time);
    addresses.iter().for_each(sockets::remove_file);
    finish(gate, ended, signals, time).await;
}

/// Waits for all workers to end, or for the operator's patience to.
async fn finish(
    gate: &Gate,
    ended: &mut mpsc::Receiver<Ended>,
    signals: &mut Signals,
    time: Duration,
) {
    let mut working = gate.crew.borrow().len();
    let deadline = tokio::time::sleep(time + DRAIN_GRACE);
    tokio::pin!(deadline);
    while working > 0 {
        tokio::select! {
            Some(_) = ended.recv() => working -= 1,
            asked = signals.next() => if asked == Asked::Stop {
                let connections = gate.crew.borrow().connections();
                tracing::warn!(connections, "stopping at once: connections are cut");
                break;
            },
            () = &mut deadline => {
                tracing::error!(workers = working, "workers have not ended in time");
                break;
            }
        }
    }
    if working == 0 {
        gate.logs.finish();
    }
    tracing::info!("stopped");
}
