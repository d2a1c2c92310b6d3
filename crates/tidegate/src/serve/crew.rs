//! The workers as the control thread sees them: threads that take commands and some day end.
//!
//! The control thread keeps a handle on every listening socket. So a worker that fails is replaced
//! without losing the connections that wait in its queue, and an upgrade has something to hand over.
//! It also means that a socket is only closed when the handle here goes, too.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_proxy::caching::Cache;
use tidegate_proxy::inspection::{Facilities, Pool};
use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::Address;
use tidegate_proxy::worker::accept::Bound;
use tidegate_proxy::worker::{self, Command, Parts, Shared};
use tidegate_telemetry::metrics::Metrics;
use tidegate_waf::Outside;
use tidegate_waf::context::Context;
use tokio::sync::mpsc;

use super::Obstacle;
use super::logs::Logs;

/// Commands a worker may be behind with. Each is a reload; a worker that is behind with so many
/// stands still.
const COMMANDS_MAX: usize = 8;

/// All workers of the process.
#[derive(Debug)]
pub(crate) struct Crew {
    hands: Vec<Hand>,
    shared: Shared,
    ended: mpsc::Sender<Ended>,
}

#[derive(Debug)]
struct Hand {
    commands: mpsc::Sender<Command>,
    sockets: Vec<Bound>,
}

/// A worker's thread has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Which.
    pub(crate) worker: usize,
    /// Why.
    pub(crate) why: Why,
}

/// Why a worker's thread ended.
#[derive(Debug)]
pub(crate) enum Why {
    /// It was told to, and has finished.
    Drained,
    /// It failed, and says how.
    Failed(String),
}

/// What rules know and ask beyond their request.
#[derive(Default)]
pub(crate) struct Beyond {
    /// What they remember.
    pub(crate) context: Option<Arc<Context>>,
    /// Whom they ask.
    pub(crate) outside: Option<Arc<dyn Outside>>,
}

impl Crew {
    /// Starts a worker for each list of sockets. What comes back with them tells who has ended.
    pub(crate) fn start(
        sockets: Vec<Vec<Bound>>,
        plan: &Arc<Plan>,
        metrics: &Metrics,
        logs: &Logs,
        beyond: Beyond,
    ) -> io::Result<(Crew, mpsc::Receiver<Ended>)> {
        let (ended, end) = mpsc::channel(sockets.len().max(1));
        let pool = Pool::new(plan.waf.pool_queue_max, Arc::clone(metrics.control().pool()));
        let Beyond { context, outside } = beyond;
        let facilities = Facilities { pool, context, outside };
        let cache = Arc::new(Cache::open(&plan.cache)?);
        let shared = Shared { connections: Arc::new(AtomicUsize::new(0)), facilities, cache };
        start_pool(&shared, plan)?;
        let mut crew = Crew { hands: Vec::with_capacity(sockets.len()), shared, ended };
        for (worker, sockets) in sockets.into_iter().enumerate() {
            let hand = crew.hire(worker, sockets, plan, metrics, logs)?;
            crew.hands.push(hand);
        }
        Ok((crew, end))
    }

    /// Starts a thread in the place of one that failed, on the same sockets.
    pub(crate) fn replace(
        &mut self,
        worker: usize,
        plan: &Arc<Plan>,
        metrics: &Metrics,
        logs: &Logs,
    ) -> io::Result<()> {
        let sockets = std::mem::take(&mut self.hands[worker].sockets);
        self.hands[worker] = self.hire(worker, sockets, plan, metrics, logs)?;
        Ok(())
    }

    fn hire(
        &self,
        worker: usize,
        sockets: Vec<Bound>,
        plan: &Arc<Plan>,
        metrics: &Metrics,
        logs: &Logs,
    ) -> io::Result<Hand> {
        let id = u16::try_from(worker).map_err(io::Error::other)?;
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        let logs = logs.worker().ok_or(io::ErrorKind::BrokenPipe)?;
        let shared = self.shared.clone();
        let parts = Parts { id, metrics: metrics.worker(id), logs, shared, commands };
        let listeners = sockets.iter().map(Bound::try_clone).collect::<io::Result<Vec<_>>>()?;
        let plan = Arc::clone(plan);
        let ended = self.ended.clone();
        thread::Builder::new().name(format!("worker-{worker}")).spawn(move || {
            let run = AssertUnwindSafe(|| worker::run(parts, plan, listeners));
            let why = match catch_unwind(run) {
                Ok(Ok(())) => Why::Drained,
                Ok(Err(error)) => Why::Failed(error.to_string()),
                Err(panic) => Why::Failed(format!("it panicked: {}", message(&*panic))),
            };
            // Nobody listens any more if the process ends at once.
            let _ = ended.blocking_send(Ended { worker, why });
        })?;
        Ok(Hand { commands: sender, sockets })
    }

    /// How many workers there are.
    pub(crate) fn len(&self) -> usize {
        self.hands.len()
    }

    /// Downstream connections open.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Whether there are sockets for this address.
    pub(crate) fn listens_on(&self, address: &Address) -> bool {
        self.sockets().any(|socket| socket.address() == address)
    }

    /// Every listening socket.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Bound> {
        self.hands.iter().flat_map(|hand| &hand.sockets)
    }

    /// What all workers share of the cache.
    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.shared.cache
    }

    /// Puts a plan into service with sockets for its new listeners: on all workers, or on none.
    pub(crate) fn adopt(
        &mut self,
        plan: &Arc<Plan>,
        sockets: Vec<Vec<Bound>>,
    ) -> Result<Vec<Address>, Obstacle> {
        let handles = sockets.iter().map(|list| list.iter().map(Bound::try_clone).collect());
        let handles = handles.collect::<io::Result<Vec<Vec<_>>>>().map_err(Obstacle::Thread)?;
        let permits = self.hands.iter().enumerate().map(|(worker, hand)| {
            hand.commands.clone().try_reserve_owned().map_err(|_| Obstacle::WorkerBusy(worker))
        });
        let permits = permits.collect::<Result<Vec<_>, _>>()?;
        start_pool(&self.shared, plan).map_err(Obstacle::Thread)?;
        self.shared.cache.adopt(&plan.cache);
        let mut gone = Vec::new();
        for (((hand, permit), new), handles) in
            self.hands.iter_mut().zip(permits).zip(sockets).zip(handles)
        {
            permit.send(Command::Plan(Arc::clone(plan), new));
            hand.sockets.retain(|socket| {
                let stays = plan.listeners.iter().any(|one| one.address == *socket.address());
                if !stays && !gone.contains(socket.address()) {
                    gone.push(socket.address().clone());
                }
                stays
            });
            hand.sockets.extend(handles);
        }
        Ok(gone)
    }

    /// Puts a plan with the same listeners into service.
    pub(crate) fn adopt_as_it_is(&mut self, plan: &Arc<Plan>) -> Result<(), Obstacle> {
        let none = self.hands.iter().map(|_| Vec::new()).collect();
        self.adopt(plan, none).map(drop)
    }

    /// Lets all workers finish what they have and end. Returns where they listened.
    pub(crate) fn drain(&mut self, time: Duration) -> Vec<Address> {
        let mut addresses = Vec::new();
        for hand in &mut self.hands {
            // A worker that takes no commands any more has failed, or is stuck: the time limit of
            // whoever waits for it ends that.
            let _ = hand.commands.try_send(Command::Drain(time));
            for socket in hand.sockets.drain(..) {
                if !addresses.contains(socket.address()) {
                    addresses.push(socket.address().clone());
                }
            }
        }
        addresses
    }
}

/// Sees to it that the inspection pool works, if somebody may need it.
fn start_pool(shared: &Shared, plan: &Plan) -> io::Result<()> {
    match plan.rule_counts {
        Some(_) => shared.facilities.pool.start(plan.waf.pool_threads),
        None => Ok(()),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use tidegate_proxy::tls::TicketKeys;
    use tidegate_telemetry::clock::Stamp;
    use tidegate_telemetry::metrics::Settings;

    use super::super::sockets::{self, Inherited};
    use super::*;

    fn plan(address: SocketAddr, metrics: &Metrics) -> (Arc<Plan>, Vec<Vec<Bound>>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tidegate.toml");
        let text = format!(
            "[process]\nworkers = 1\n[[listen]]\naddress = \"{address}\"\n[[site]]\nhost = \"*\"\n\
             [[site.route]]\npath = \"/\"\nanswer = {{ status = 200, body = \"hello\" }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let tickets = Arc::new(TicketKeys::new().unwrap());
        let settings = super::super::load(&file, &tickets).unwrap().settings;
        let sockets = sockets::bind(&settings.listeners, 1, &mut Inherited::default()).unwrap();
        let plan = Plan::build(settings, None, Vec::new(), metrics.labels(), Stamp::now());
        (Arc::new(plan), sockets)
    }

    fn is_answered(mut client: TcpStream) -> bool {
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello")
    }

    #[test]
    fn a_worker_that_ended_is_replaced_and_who_waited_meanwhile_is_served() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = Metrics::new(Settings::default(), 0);
        let logs = Logs::start().unwrap();
        let (plan, sockets) = plan(address, &metrics);
        let (mut crew, mut ended) =
            Crew::start(sockets, &plan, &metrics, &logs, Beyond::default()).unwrap();
        assert!(is_answered(TcpStream::connect(address).unwrap()));
        // Without anybody to command it, a worker ends.
        crew.hands[0].commands = mpsc::channel(1).0;
        let end = ended.blocking_recv().unwrap();
        assert!(matches!(end, Ended { worker: 0, why: Why::Drained }), "{end:?}");
        let waiting = TcpStream::connect(address).unwrap();
        crew.replace(0, &plan, &metrics, &logs).unwrap();
        assert!(is_answered(waiting));
        assert_eq!(crew.drain(Duration::ZERO), [Address::Tcp(address)]);
        assert!(matches!(ended.blocking_recv().unwrap().why, Why::Drained));
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_plan_goes_to_all_workers_or_to_none() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = Metrics::new(Settings::default(), 0);
        let logs = Logs::start().unwrap();
        let (plan, sockets) = plan(address, &metrics);
        let (mut crew, _ended) =
            Crew::start(sockets, &plan, &metrics, &logs, Beyond::default()).unwrap();
        // A second hand whose worker takes no commands.
        let (commands, _standing_still) = mpsc::channel(1);
        commands.try_send(Command::Drain(Duration::ZERO)).unwrap();
        crew.hands.push(Hand { commands, sockets: Vec::new() });
        let refused = crew.adopt_as_it_is(&plan).unwrap_err();
        assert!(matches!(refused, Obstacle::WorkerBusy(1)), "{refused}");
        assert_eq!(crew.hands[0].commands.capacity(), COMMANDS_MAX);
        crew.drain(Duration::ZERO);
    }
}
