//! Handing over to a new process.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Gate, Phase, systemd};
use crate::upgrade::successor::{self, Estate};
use crate::upgrade::{Failed, Successor};

impl Gate {
    /// Starts a new process on this one's sockets, and lets this one drain once the other serves.
    /// If that fails, this one goes on as if nothing had happened.
    pub(crate) async fn upgrade(&self, binary: Option<PathBuf>) -> Result<Successor, Failed> {
        let _changing = self.changing.lock().await;
        if self.phase.get() == Phase::Draining {
            return Err(Failed::Leaving);
        }
        let binary = binary.unwrap_or_else(successor::installed);
        tracing::info!(binary = %binary.display(), "upgrading: a new process is started");
        let result = self.start_successor(binary).await;
        match &result {
            Ok(successor) => {
                self.phase.set(Phase::Draining);
                systemd::notify(&format!("MAINPID={}", successor.pid));
                tracing::info!(
                    pid = successor.pid,
                    "the new process serves; requests under way here are finished"
                );
                self.leave.notify_one();
            }
            Err(failed) => {
                tracing::error!("not upgraded, this process goes on: {}", failed.in_short());
            }
        }
        result
    }

    async fn start_successor(&self, binary: PathBuf) -> Result<Successor, Failed> {
        let estate = Estate::of(self, self.admin.borrow().as_ref()).map_err(Failed::Gone)?;
        let arguments: Vec<OsString> =
            vec!["serve".into(), "--take-over".into(), self.file.clone().into()];
        let start = move || successor::start(&binary, &arguments, &estate);
        let started = tokio::task::spawn_blocking(start).await;
        started.unwrap_or_else(|panic| Err(Failed::Gone(panic.into())))
    }
}
