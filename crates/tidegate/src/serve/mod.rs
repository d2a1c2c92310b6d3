//! `tidegate serve`: from a configuration file to a gate that serves.
//!
//! Everything that can fail is done before the first connection is accepted, in an order that leaves
//! nothing behind: read, open logs, bind, resolve names, open context, start workers. The main thread then becomes
//! the control thread ([`crate::control`]).

pub(crate) mod crew;
mod events;
mod limits;
pub(crate) mod logs;
mod obstacle;
pub(crate) mod sockets;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::Admin;
use tidegate_proxy::tls::TicketKeys;
use tidegate_proxy::upstream::{Resolver, dns};
use tidegate_proxy::worker::accept::Bound;
use tidegate_telemetry::clock::{self, Stamp};
use tidegate_telemetry::metrics::{self, Metrics};

use crate::admin::Door;
use crate::config::diagnostic::{Diagnostics, Severity};
use crate::config::render::Colour;
use crate::config::{self, Loaded, Outside, environment};
use crate::context;
use crate::control::{self, Gate, Phase, Running, Signals};
use crate::outside;
use crate::upgrade::{Inheritance, Predecessor};
use crew::{Beyond, Crew};
use logs::Logs;
pub(crate) use obstacle::Obstacle;

/// How long a start waits for DNS. Who has not answered by then is asked again while serving.
pub(crate) const RESOLVE_MAX: Duration = Duration::from_secs(5);

/// How the process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// By itself.
    Fresh,
    /// In the place of the process that started it.
    TakeOver,
}

/// Serves until it is told to stop.
pub(crate) fn run(file: &Path, start: Start) -> Result<(), Obstacle> {
    events::install();
    if start == Start::Fresh {
        return begin(file, None, Inheritance::default());
    }
    let (predecessor, inheritance) = Predecessor::meet().map_err(Obstacle::Predecessor)?;
    let predecessor = Rc::new(predecessor);
    begin(file, Some(Rc::clone(&predecessor)), inheritance)
        .inspect_err(|obstacle| predecessor.tell_refusal(&obstacle.at_length(Colour::Off)))
}

fn begin(
    file: &Path,
    predecessor: Option<Rc<Predecessor>>,
    mut inheritance: Inheritance,
) -> Result<(), Obstacle> {
    limits::disable_huge_pages();
    let open_files = limits::raise_open_files();
    let tickets = Arc::new(TicketKeys::new().map_err(Obstacle::Tickets)?);
    inheritance.give_ticket_keys(&tickets);
    let Loaded { settings, context, beyond, warnings, .. } = load(file, &tickets)?;
    tell(&warnings);
    limits::warn_of_few_files(open_files, &settings.process);

    let bounds =
        metrics::Settings { version: env!("CARGO_PKG_VERSION"), ..metrics::Settings::default() };
    let metrics = Arc::new(Metrics::new(bounds, clock::unix_seconds()));
    let logs = Logs::start().map_err(Obstacle::Thread)?;
    let opened = logs.open(&settings.logs, &[], &metrics)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .map_err(Obstacle::Thread)?;
    runtime.block_on(async {
        // Who finds the gate listening may send it a signal: by then it knows what to do with one.
        let signals = Signals::new().map_err(Obstacle::Thread)?;
        let workers = settings.process.workers;
        let sockets = sockets::bind(&settings.listeners, workers, &mut inheritance.sockets)?;
        let admin = bind_admin(&settings.admin, inheritance.admin.take())?;
        let door = admin.as_ref().map(Door::open).transpose().map_err(Obstacle::Thread)?;
        let (settings_of_admin, trusted_proxies) =
            (settings.admin.clone(), settings.trusted_proxies.clone());
        let plan = Arc::new(Plan::build(settings, None, opened, metrics.labels(), Stamp::now()));
        let resolver = Arc::new(Resolver::system());
        tell_unresolved(&dns::resolve_first(&plan.groups, &resolver, &metrics, RESOLVE_MAX).await);
        inheritance.give_knowledge_of_servers(&plan);
        // The last thing that may fail for a reason of this machine: from here on, the process before
        // writes its context down no more.
        let left = inheritance.context.as_deref();
        let context =
            context::open(context, predecessor.as_deref(), left).map_err(Obstacle::Context)?;
        let outside = outside::Beyond::start(beyond, Arc::clone(&resolver));
        let shared = Arc::clone(&outside);
        let beyond = Beyond { context: Some(Arc::clone(&context.context)), outside: Some(shared) };
        let (crew, ended) =
            Crew::start(sockets, &plan, &metrics, &logs, beyond).map_err(Obstacle::Thread)?;
        let running = Running::new(plan, settings_of_admin, trusted_proxies, &resolver, &metrics);
        let gate = Gate {
            file: file.to_owned(),
            started: Stamp::now(),
            metrics,
            tickets,
            logs,
            resolver,
            context,
            outside,
            crew: crew.into(),
            running: running.into(),
            phase: Phase::Serving.into(),
            history: RefCell::default(),
            cache_history: RefCell::default(),
            bounds,
            failed_reload: RefCell::default(),
            admin: admin.into(),
            leave: tokio::sync::Notify::new(),
            changing: tokio::sync::Mutex::default(),
        };
        control::run(Rc::new(gate), door, predecessor, ended, signals).await
    })
}

fn bind_admin(admin: &Admin, inherited: Option<Bound>) -> Result<Option<Bound>, Obstacle> {
    let Some(address) = &admin.address else { return Ok(None) };
    match inherited {
        Some(socket) if socket.address() == address => Ok(Some(socket)),
        Some(_) | None => Door::bind(address)
            .map(Some)
            .map_err(|error| Obstacle::Listen { address: address.clone(), error }),
    }
}

/// Reads a configuration, or says all that is wrong with it.
pub(crate) fn load(file: &Path, tickets: &Arc<TicketKeys>) -> Result<Loaded, Obstacle> {
    let outside = Outside { environment: &environment::Process, tickets };
    config::load(file, &outside)
        .map_err(|diagnostics| Obstacle::Configuration { file: file.to_owned(), diagnostics })
}

pub(crate) fn tell_unresolved(names: &[(String, String)]) {
    for (group, name) in names {
        tracing::warn!(group, name, "a server's name does not resolve yet; it is asked for again");
    }
}

/// Says what is wrong or dubious in a configuration, an event for each.
pub(crate) fn tell(diagnostics: &Diagnostics) {
    for found in &diagnostics.list {
        let place = found.place.map_or_else(String::new, |span| {
            let source = diagnostics.sources.of(span);
            let at = source.position(span.start);
            format!("{}:{}:{}: ", source.path.display(), at.line, at.column)
        });
        let (code, message) = (found.code.number, &found.message);
        match found.code.severity {
            Severity::Error => tracing::error!("{place}{message} [{code}]"),
            Severity::Warning => tracing::warn!("{place}{message} [{code}]"),
            Severity::Note => tracing::info!("{place}{message} [{code}]"),
        }
    }
}
