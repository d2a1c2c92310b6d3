//! The access logs of the process and the thread that writes them.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_telemetry::log::{Finish, Log, LogSettings, LogWriter, WorkerLogs, WriterSettings};
use tidegate_telemetry::metrics::Metrics;

use super::Obstacle;

/// How long a process that ends waits for its last lines to be written.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// The log writer, from the control thread's side. It is `None` once all has been written.
#[derive(Debug)]
pub(crate) struct Logs(RefCell<Option<LogWriter>>);

impl Logs {
    /// Starts the thread that writes.
    pub(crate) fn start() -> io::Result<Logs> {
        let writer = LogWriter::start(WriterSettings::default())?;
        Ok(Logs(RefCell::new(Some(writer))))
    }

    /// Opens the logs of a plan. One that is open already with the same settings goes on.
    pub(crate) fn open(
        &self,
        settings: &[LogSettings],
        running: &[Arc<Log>],
        metrics: &Metrics,
    ) -> Result<Vec<Arc<Log>>, Obstacle> {
        let writer = self.0.borrow();
        let Some(writer) = writer.as_ref() else { return Ok(Vec::new()) };
        let open = |settings: &LogSettings| {
            if let Some(same) = running.iter().find(|log| log.settings() == settings) {
                return Ok(Arc::clone(same));
            }
            writer
                .open(settings.clone(), metrics.control().log(&settings.name))
                .map_err(|error| Obstacle::Log { name: settings.name.clone(), error })
        };
        settings.iter().map(open).collect()
    }

    /// A worker's side; `None` at the end.
    pub(crate) fn worker(&self) -> Option<WorkerLogs> {
        self.0.borrow().as_ref().map(LogWriter::worker)
    }

    /// Lets each log open its file again, after a rotation.
    pub(crate) fn reopen(&self) {
        if let Some(writer) = self.0.borrow().as_ref() {
            writer.reopen();
        }
    }

    /// Waits for the last lines. All workers have ended.
    pub(crate) fn finish(&self) {
        let writer = self.0.borrow_mut().take();
        if writer.map(|writer| writer.finish(FINISH_MAX)) == Some(Finish::TimedOut) {
            tracing::warn!("the last lines of an access log could not be written in time");
        }
    }
}
