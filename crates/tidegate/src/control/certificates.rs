//! Certificates that are renewed while the gate runs.
//!
//! Files that TLS was built from are looked at now and then. When they change, TLS is built anew and
//! goes into service in a plan that is otherwise the same: a configuration that is being edited at
//! that moment stays out of it, and so do changes that the operator made by hand stay in. Files that
//! cannot be used (a chain is written, its key not yet) leave the old TLS where it is.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::Listener;
use tidegate_proxy::tls::TlsError;
use tidegate_telemetry::clock::{self, Stamp};

use super::Gate;
use crate::serve::Obstacle;

/// How often files are looked at. A renewal comes weeks before the end, so this is soon enough.
const EVERY: Duration = Duration::from_secs(10);
/// Who renews certificates does it by then; later, somebody should be told.
const EXPIRY_NEAR_SECONDS: i64 = 7 * 86_400;
/// How often somebody is told.
const EXPIRY_TOLD_EVERY: Duration = Duration::from_hours(12);

/// Watches the certificates of the running plan for as long as the gate runs.
pub(super) async fn watch(gate: Rc<Gate>) {
    let mut told = Told::default();
    loop {
        tokio::time::sleep(EVERY).await;
        // Done at each use, too; here for the keys of a gate that nobody visits.
        gate.tickets.rotate_if_due();
        told.renewal(gate.renew().await);
        told.expiry(&gate.running.borrow().plan);
    }
}

/// What has been said already.
#[derive(Default)]
struct Told {
    failure: String,
    expiry: Stamp,
}

impl Told {
    fn renewal(&mut self, renewal: Result<Renewal, String>) {
        match renewal {
            Ok(Renewal::Nothing) => {}
            Ok(Renewal::Done(what)) => {
                self.failure.clear();
                tracing::info!(of = what.join(", "), "renewed certificates are in service");
            }
            Err(failure) if failure == self.failure => {}
            Err(failure) => {
                tracing::error!(
                    "changed certificates cannot be used, the old ones stay: {failure}"
                );
                self.failure = failure;
            }
        }
    }

    fn expiry(&mut self, plan: &Plan) {
        let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
        if self.expiry.is_set() && self.expiry.elapsed() < EXPIRY_TOLD_EVERY {
            return;
        }
        for listener in &plan.listeners {
            let certificates = listener.tls.iter().flat_map(|tls| tls.certificates());
            for certificate in certificates {
                let left = certificate.not_after().saturating_sub(now);
                if left < EXPIRY_NEAR_SECONDS {
                    self.expiry = Stamp::now();
                    let names = certificate.names().join(", ");
                    tracing::warn!(
                        listener = listener.name,
                        names,
                        hours_left = left.max(0) / 3600,
                        "a certificate ends soon and has not been renewed"
                    );
                }
            }
        }
    }
}

/// What a look at the files has led to.
enum Renewal {
    /// They are as they were.
    Nothing,
    /// These listeners and groups have new TLS.
    Done(Vec<String>),
}

impl Gate {
    async fn renew(&self) -> Result<Renewal, String> {
        let _changing = self.changing.lock().await;
        let plan = Arc::clone(&self.running.borrow().plan);
        let mut renewed = Vec::new();
        let listeners = plan.listeners.iter().map(|listener| {
            let Some(tls) = listener.tls.as_ref().filter(|tls| tls.changed()) else {
                return Ok(Arc::clone(listener));
            };
            let tls = tls.rebuild().map_err(|error| of(&listener.name, &error))?;
            renewed.push(listener.name.clone());
            Ok(Arc::new(Listener { tls: Some(Arc::new(tls)), ..Listener::clone(listener) }))
        });
        let listeners = listeners.collect::<Result<Vec<_>, String>>()?;
        let groups = plan.groups.iter().map(|group| {
            let Some(tls) = group.settings().tls.as_ref().filter(|tls| tls.changed()) else {
                return Ok(Arc::clone(group));
            };
            let tls = tls.rebuild().map_err(|error| of(group.name(), &error))?;
            renewed.push(group.name().to_owned());
            Ok(Arc::new(group.renewed(tls, self.metrics.labels(), Stamp::now())))
        });
        let groups = groups.collect::<Result<Vec<_>, String>>()?;
        if renewed.is_empty() {
            return Ok(Renewal::Nothing);
        }
        let plan = Arc::new(plan.renewed(listeners, groups));
        let adopted = self.crew.borrow_mut().adopt_as_it_is(&plan);
        adopted.map_err(|obstacle: Obstacle| obstacle.to_string())?;
        self.replace_running(&plan);
        Ok(Renewal::Done(renewed))
    }
}

fn of(what: &str, error: &TlsError) -> String {
    format!("{what}: {error}")
}
