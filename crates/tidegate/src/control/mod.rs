//! The control thread: everything that is not a request.
//!
//! It runs a loop of its own on the process's main thread: signals, the admin API, health checks and
//! DNS, certificates, reloads, upgrades. What it decides it tells the workers as commands; what it
//! does can never hold a request up. Changes of the running gate happen one after another, under
//! [`Gate::changing`].

mod certificates;
mod handover;
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
use tidegate_proxy::settings::{Address, Admin};
use tidegate_proxy::tls::TicketKeys;
use tidegate_proxy::upstream::{Resolver, Watch};
use tidegate_proxy::worker::accept::Bound;
use tidegate_telemetry::clock::{self, Stamp};
use tidegate_telemetry::metrics::{self, Metrics};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use history::History;

use crate::admin::{self, Door};
use crate::caching;
use crate::context::{self, Kept};
use crate::outside::Beyond;
use crate::serve::Obstacle;
use crate::serve::crew::{Crew, Ended, Why};
use crate::serve::logs::Logs;
use crate::serve::sockets;
use crate::upgrade::Predecessor;

/// So many failures of workers within [`FAILURES_WITHIN`] end the process: something is wrong that a
/// new thread does not mend, and whoever watches the process may do better.
const FAILURES_MAX: usize = 5;
const FAILURES_WITHIN: Duration = Duration::from_mins(1);

/// A worker that has not ended so long after its drain time is left behind.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// A process that stops, and not because another has taken over, does not wait for clients that have
/// nothing to ask: after so long without a request it closes what is open.
const QUIET_ENDS_AFTER: Duration = Duration::from_millis(500);
const QUIET_LOOKED_EVERY: Duration = Duration::from_millis(100);

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
    /// What rules remember, shared by the workers.
    pub(crate) context: Kept,
    /// Whom rules ask beyond their request.
    pub(crate) outside: Arc<Beyond>,
    /// The workers.
    pub(crate) crew: RefCell<Crew>,
    /// What they serve under.
    pub(crate) running: RefCell<Running>,
    /// Whether it accepts connections.
    pub(crate) phase: Cell<Phase>,
    /// The last minute.
    pub(crate) history: RefCell<History>,
    /// What the cache made of requests in the last hour.
    pub(crate) cache_history: RefCell<caching::History>,
    /// The bounds of the label sets.
    pub(crate) bounds: metrics::Settings,
    /// The last reload, if it was refused.
    pub(crate) failed_reload: RefCell<Option<FailedReload>>,
    /// A handle on the admin listener's socket, for the process that takes over.
    pub(crate) admin: RefCell<Option<Bound>>,
    /// Told when another process has taken over.
    pub(crate) leave: Notify,
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

impl Gate {
    /// Whether a request or a tunnel is under way.
    fn is_busy(&self) -> bool {
        let basics = self.metrics.sample().basics;
        basics.requests_active > 0 || basics.tunnels > 0
    }
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
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user: Signal,
}

impl Signals {
    /// Takes the signals over; they wait until they are asked for. Within a runtime.
    pub(crate) fn new() -> std::io::Result<Signals> {
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
    predecessor: Option<Rc<Predecessor>>,
    mut ended: mpsc::Receiver<Ended>,
    mut signals: Signals,
) -> Result<(), Obstacle> {
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
    match predecessor {
        Some(predecessor) => predecessor.tell_ready().map_err(Obstacle::Predecessor)?,
        None => systemd::notify("READY=1"),
    }
    tokio::task::spawn_local(certificates::watch(Rc::clone(&gate)));
    tokio::task::spawn_local(history::keep(Rc::clone(&gate)));
    tokio::task::spawn_local(context::keep(Rc::clone(&gate)));
    tokio::task::spawn_local(caching::keep(Rc::clone(&gate)));
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
            () = gate.leave.notified() => {
                leave(&gate, admin, &mut ended, &mut signals).await;
                return Ok(());
            }
            Some(end) = ended.recv() => replace(&gate, &end, &mut failures)?,
        }
    }
}

/// The admin listener at work. It answers until the last request is done: a drain is when people
/// want to know most.
struct Administration {
    address: Option<Address>,
    close: Rc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl Administration {
    fn begin(gate: &Rc<Gate>, door: Option<Door>) -> Administration {
        let close = Rc::new(Notify::new());
        let address = gate.admin.borrow().as_ref().map(|socket| socket.address().clone());
        let task = door.map(|door| {
            tokio::task::spawn_local(admin::serve(Rc::clone(gate), door, Rc::clone(&close)))
        });
        Administration { address, close, task }
    }

    /// Closes it, and removes its socket's file.
    async fn end(self) {
        self.address.iter().for_each(sockets::remove_file);
        self.leave().await;
    }

    /// Closes it; the file is another process's now.
    async fn leave(self) {
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
    finish(gate, ended, signals, time, Stops::Asked).await;
}

/// Lets another process serve, and finishes what is there.
async fn leave(
    gate: &Gate,
    admin: Administration,
    ended: &mut mpsc::Receiver<Ended>,
    signals: &mut Signals,
) {
    let time = gate.running.borrow().plan.process.drain_timeout;
    gate.crew.borrow_mut().drain(time);
    *gate.admin.borrow_mut() = None;
    admin.leave().await;
    finish(gate, ended, signals, time, Stops::NotAsked).await;
}

/// Whether somebody has asked the process to stop. The first time it finishes what it has, the
/// second time it ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stops {
    NotAsked,
    Asked,
}

/// Waits for all workers to end, or for the operator's patience to.
async fn finish(
    gate: &Gate,
    ended: &mut mpsc::Receiver<Ended>,
    signals: &mut Signals,
    time: Duration,
    mut stops: Stops,
) {
    if stops == Stops::NotAsked {
        caching::let_go(gate).await;
    }
    let mut working = gate.crew.borrow().len();
    let (mut quiet_since, mut hurried) = (Stamp::now(), false);
    let mut look = tokio::time::interval(QUIET_LOOKED_EVERY);
    let deadline = tokio::time::sleep(time + DRAIN_GRACE);
    tokio::pin!(deadline);
    while working > 0 {
        let cut = tokio::select! {
            Some(_) = ended.recv() => {
                working -= 1;
                Cut::No
            }
            asked = signals.next() => match (asked, stops) {
                (Asked::Stop, Stops::Asked) => Cut::Requests,
                (Asked::Stop, Stops::NotAsked) => {
                    stops = Stops::Asked;
                    Cut::No
                }
                (Asked::Reload, _) => {
                    tracing::warn!("not reloaded: this process is draining");
                    Cut::No
                }
                (Asked::ReopenLogs, _) => {
                    gate.logs.reopen();
                    Cut::No
                }
            },
            _ = look.tick(), if stops == Stops::Asked && !hurried => {
                if gate.is_busy() {
                    quiet_since = Stamp::now();
                }
                if quiet_since.elapsed() > QUIET_ENDS_AFTER { Cut::Idle } else { Cut::No }
            }
            () = &mut deadline => {
                tracing::error!(workers = working, "workers have not ended in time");
                break;
            }
        };
        if cut != Cut::No {
            if cut == Cut::Requests {
                let connections = gate.crew.borrow().connections();
                tracing::warn!(connections, "stopping at once: connections are cut");
            }
            hurried = true;
            gate.crew.borrow_mut().drain(Duration::ZERO);
            deadline.as_mut().reset(tokio::time::Instant::now() + DRAIN_GRACE);
        }
    }
    if working == 0 {
        gate.logs.finish();
    }
    caching::let_go(gate).await;
    gate.context.finish().await;
    tracing::info!("stopped");
}

/// What is closed before the drain time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    No,
    /// Connections without a request: nobody is left who would answer their next one.
    Idle,
    /// Everything.
    Requests,
}
