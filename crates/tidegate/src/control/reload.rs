//! Taking the configuration anew: all of it or nothing.
//!
//! Everything that can fail comes first: reading, opening logs, binding, handing the plan to every
//! worker at once. Whatever fails, the running plan is as it was. Requests under way end under the
//! plan they began with.

use std::fmt;
use std::sync::Arc;

use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::{Listener, Settings};
use tidegate_proxy::upstream::{Group, Watch, dns};
use tidegate_telemetry::clock::{self, Stamp};

use super::{FailedReload, Gate, Phase, systemd};
use crate::config::Loaded;
use crate::config::diagnostic::Diagnostics;
use crate::config::render;
use crate::serve::sockets::{self, Inherited, Shown};
use crate::serve::{self, Obstacle, RESOLVE_MAX};

/// A new plan is in service.
#[derive(Debug)]
pub(crate) struct Reloaded {
    /// The plan's number.
    pub(crate) generation: u64,
    /// What it consists of.
    pub(crate) contents: Contents,
    /// What is dubious in its configuration.
    pub(crate) warnings: Diagnostics,
    /// What the configuration says and only a restart or an upgrade brings about.
    pub(crate) postponed: Vec<String>,
}

/// How much a plan consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) sites: usize,
    pub(crate) routes: usize,
    pub(crate) groups: usize,
    pub(crate) listeners: usize,
}

impl Contents {
    /// The sums of a plan.
    pub(crate) fn of(plan: &Plan) -> Contents {
        Contents {
            sites: plan.sites.len(),
            routes: plan.sites.iter().map(|site| site.routes.len()).sum(),
            groups: plan.groups.len(),
            listeners: plan.listeners.len(),
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}, {}, {}, {}",
            render::plural(self.sites, "site"),
            render::plural(self.routes, "route"),
            render::plural(self.groups, "group"),
            render::plural(self.listeners, "listener")
        )
    }
}

impl Gate {
    /// Reads the configuration and puts it into service, or says what is in the way.
    pub(crate) async fn reload(&self) -> Result<Reloaded, Obstacle> {
        let _changing = self.changing.lock().await;
        if self.phase.get() == Phase::Draining {
            return Err(Obstacle::Leaving);
        }
        systemd::notify_reloading();
        let result = self.take_configuration().await;
        systemd::notify("READY=1");
        match &result {
            Ok(reloaded) => {
                let Reloaded { generation, contents, warnings, postponed } = reloaded;
                serve::tell(warnings);
                for what in postponed {
                    tracing::warn!("{what}");
                }
                tracing::info!("plan {generation} is in service: {contents}");
                *self.failed_reload.borrow_mut() = None;
            }
            Err(obstacle) => {
                self.metrics.control().reload_failed();
                let failed = FailedReload { at: Stamp::now(), reason: obstacle.to_string() };
                *self.failed_reload.borrow_mut() = Some(failed);
                if let Obstacle::Configuration { diagnostics, .. } = obstacle {
                    serve::tell(diagnostics);
                }
                let generation = self.running.borrow().plan.generation;
                tracing::error!("not reloaded, plan {generation} stays in service: {obstacle}");
            }
        }
        result
    }

    async fn take_configuration(&self) -> Result<Reloaded, Obstacle> {
        let (file, tickets) = (self.file.clone(), Arc::clone(&self.tickets));
        // Ten thousand sites take a moment to read, and health checks should not wait for it.
        let reading = tokio::task::spawn_blocking(move || serve::load(&file, &tickets));
        let loaded = reading.await.map_err(|panic| Obstacle::Thread(panic.into()))??;
        let Loaded { mut settings, context, beyond, warnings, .. } = loaded;
        let mut postponed = self.keep_what_cannot_change(&mut settings);
        let plan = self.adopt(settings).await?;
        postponed.extend(self.context.adopt(&context));
        self.outside.adopt(beyond);
        let contents = Contents::of(&plan);
        Ok(Reloaded { generation: plan.generation, contents, warnings, postponed })
    }

    /// Leaves as it is what is fixed for the life of a process, and says so.
    fn keep_what_cannot_change(&self, settings: &mut Settings) -> Vec<String> {
        let mut postponed = Vec::new();
        let running = self.running.borrow();
        let workers = self.crew.borrow().len();
        if settings.process.workers != workers {
            postponed.push(format!(
                "`workers` stays at {workers}: `tidegate upgrade` or a restart makes it {}",
                settings.process.workers
            ));
            settings.process.workers = workers;
        }
        let queue_max = running.plan.waf.pool_queue_max;
        if settings.waf.pool_queue_max != queue_max {
            postponed.push(format!(
                "`pool_queue` stays at {queue_max}: `tidegate upgrade` or a restart makes it {}",
                settings.waf.pool_queue_max
            ));
            settings.waf.pool_queue_max = queue_max;
        }
        if settings.waf.pool_threads < running.plan.waf.pool_threads {
            postponed.push(format!(
                "`pool_threads` stays at {}: `tidegate upgrade` or a restart makes it {}",
                running.plan.waf.pool_threads, settings.waf.pool_threads
            ));
            settings.waf.pool_threads = running.plan.waf.pool_threads;
        }
        if settings.admin.address != running.admin.address {
            let shown = |address: &Option<_>| {
                address.as_ref().map_or("off".into(), |address| Shown(address).to_string())
            };
            postponed.push(format!(
                "the admin listener stays at {}: `tidegate upgrade` or a restart makes it {}",
                shown(&running.admin.address),
                shown(&settings.admin.address)
            ));
            // The token belongs to the address: a new one without need of it must not open the old.
            settings.admin = running.admin.clone();
        }
        postponed
    }

    async fn adopt(&self, settings: Settings) -> Result<Arc<Plan>, Obstacle> {
        let before = Arc::clone(&self.running.borrow().plan);
        let logs = self.logs.open(&settings.logs, &before.logs, &self.metrics)?;
        let sockets = {
            let crew = self.crew.borrow();
            let is_new = |listener: &&Listener| !crew.listens_on(&listener.address);
            let new: Vec<_> = settings.listeners.iter().filter(is_new).cloned().collect();
            sockets::bind(&new, crew.len(), &mut Inherited::default())?
        };
        let (admin, trusted_proxies) = (settings.admin.clone(), settings.trusted_proxies.clone());
        let labels = self.metrics.labels();
        let plan = Arc::new(Plan::build(settings, Some(&before), logs, labels, Stamp::now()));
        let unresolved =
            dns::resolve_first(&plan.groups, &self.resolver, &self.metrics, RESOLVE_MAX).await;
        serve::tell_unresolved(&unresolved);
        let adopted = self.crew.borrow_mut().adopt(&plan, sockets);
        match adopted {
            Ok(gone) => gone.iter().for_each(sockets::remove_file),
            Err(obstacle) => return Err(obstacle),
        }
        self.replace_running(&plan);
        let mut running = self.running.borrow_mut();
        running.admin = admin;
        running.trusted_proxies = trusted_proxies;
        Ok(plan)
    }

    /// Takes note that workers serve under this plan now.
    pub(super) fn replace_running(&self, plan: &Arc<Plan>) {
        let mut running = self.running.borrow_mut();
        let before = std::mem::replace(&mut running.plan, Arc::clone(plan));
        // The old watch goes before the new one comes.
        running.watch = None;
        running.watch = Some(Watch::start(&plan.groups, &self.resolver, &self.metrics));
        running.since = Stamp::now();
        self.metrics.control().plan_loaded(plan.generation, clock::unix_seconds());
        for group in &before.groups {
            let successor = plan.group_named(group.name()).map(Arc::as_ref);
            Group::retire(group, successor);
        }
    }
}
