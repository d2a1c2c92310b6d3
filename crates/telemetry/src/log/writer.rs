//! The thread that writes.
//!
//! Workers hand over whole buffers of lines through one bounded channel and never wait for it. All
//! waiting for disks, pipes and daemons is done here; while it lasts the channel fills, and then
//! workers drop lines and count them.
//!
//! A target that fails is told of once, and again when it recovers. Its lines are kept, up to
//! [`BACKLOG_BYTES_MAX`], and tried every second; beyond that the oldest are dropped and counted.
//! No line is written in parts without its rest following, and none twice.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::buffers::WorkerLogs;
use super::format::Format;
use super::privacy::Privacy;
use super::sink::{Sink, Target};
use crate::clock::Stamp;
use crate::metrics::LogCounts;
use crate::record::RequestId;

/// How many bytes of lines are kept for a target that fails.
pub const BACKLOG_BYTES_MAX: usize = 1024 * 1024;
/// How long a target that failed is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What makes a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Its name in the configuration and in metrics.
    pub name: String,
    /// Where it goes.
    pub target: Target,
    /// How its lines look.
    pub format: Format,
    /// What it keeps of people.
    pub privacy: Privacy,
    /// When a worker hands lines over.
    pub flush: Flush,
    /// Which requests it takes.
    pub sample: Sample,
    /// What it keeps of recorded requests.
    pub recording: Recording,
}

/// When a worker hands its lines to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Flush {
    /// When a buffer is full, and every [`FLUSH_EVERY`](super::FLUSH_EVERY).
    #[default]
    Batch,
    /// When the request that they tell of has ended. Costs a message between threads for each.
    Request,
}

/// Which requests a log takes: one in so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// All if it is one.
    pub one_in: u32,
}

impl Sample {
    /// All requests.
    pub const ALL: Sample = Sample { one_in: 1 };

    /// Whether a request is taken. It depends on its id alone, so logs with equal samples take the
    /// same requests.
    pub fn takes(self, id: RequestId) -> bool {
        // Ids count up; the multiplication scatters them (Knuth, TAOCP volume 3, section 6.4).
        let scattered = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.one_in <= 1 || scattered.is_multiple_of(u64::from(self.one_in))
    }
}

/// What a log of format `requests` keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Names of fields, cookies and arguments whose values are masked, beside those of secrets that
    /// everybody has.
    pub mask: Vec<String>,
    /// Bytes of a body that are kept.
    pub body_bytes_max: u64,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording { mask: Vec::new(), body_bytes_max: 64 * 1024 }
    }
}

/// An open access log.
///
/// Plans hold logs by `Arc`: a log whose settings a reload leaves as they were goes on, one that no
/// plan and no buffer holds any more is closed.
#[derive(Debug)]
pub struct Log {
    pub(super) settings: LogSettings,
    pub(super) counts: Arc<LogCounts>,
    rotation: Arc<AtomicU64>,
    #[expect(clippy::disallowed_types, reason = "only the writer thread locks it")]
    output: std::sync::Mutex<Output>,
}

/// What the writer thread knows of a log.
#[derive(Debug)]
struct Output {
    sink: Sink,
    /// The rotation that `sink` was opened after.
    rotation: u64,
    /// Lines that could not be written yet; may begin within a line.
    backlog: Vec<u8>,
    /// When to try the backlog again.
    retry_at: Stamp,
    health: Health,
    last: LastByte,
}

/// Whether the last write went through; changes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    Failing,
}

/// Where the last write stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastByte {
    EndedLine,
    WithinLine,
}

/// Lines on their way to the writer.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) log: Arc<Log>,
    pub(super) lines: Vec<u8>,
    /// Where the empty buffer goes back to.
    pub(super) recycle: SyncSender<Vec<u8>>,
}

impl Log {
    /// What made it.
    pub fn settings(&self) -> &LogSettings {
        &self.settings
    }

    /// Writes a batch, or keeps it behind an earlier one that could not be written.
    fn write(&self, lines: &[u8]) -> Health {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.follow_rotation(self);
        if output.backlog.is_empty() {
            let written = output.write(self, lines);
            output.keep(self, &lines[written..]);
        } else {
            output.keep(self, lines);
            output.retry(self);
        }
        output.health
    }

    /// Tries the backlog, if its time has come.
    fn retry(&self) -> Health {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.follow_rotation(self);
        output.retry(self);
        output.health
    }

    /// Tries the backlog for the last time.
    fn give_up(&self) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.retry_at = Stamp::UNSET;
        output.retry(self);
        output.drop_backlog(self);
    }
}

impl Output {
    /// Opens the file again if a rotation was announced. If that fails, the old file goes on.
    fn follow_rotation(&mut self, log: &Log) {
        let rotation = log.rotation.load(Ordering::Acquire);
        if self.rotation == rotation {
            return;
        }
        self.rotation = rotation;
        self.retry_at = Stamp::UNSET;
        match self.sink.reopen() {
            Ok(()) => self.last = LastByte::EndedLine,
            Err(error) => {
                log.counts.failed.fetch_add(1, Ordering::Relaxed);
                tracing::error!(log = log.settings.name, %error, "an access log cannot be reopened");
            }
        }
    }

    fn retry(&mut self, log: &Log) {
        if self.backlog.is_empty() || Stamp::now() < self.retry_at {
            return;
        }
        let backlog = std::mem::take(&mut self.backlog);
        let written = self.write(log, &backlog);
        self.backlog = backlog;
        self.backlog.drain(..written);
    }

    /// Writes what it can and returns how much that was.
    fn write(&mut self, log: &Log, lines: &[u8]) -> usize {
        let progress = self.sink.write(lines);
        let written = &lines[..progress.bytes];
        log.counts.written.fetch_add(count_lines(written), Ordering::Relaxed);
        log.counts.bytes.fetch_add(written.len() as u64, Ordering::Relaxed);
        match written.last() {
            Some(b'\n') => self.last = LastByte::EndedLine,
            Some(_) => self.last = LastByte::WithinLine,
            None => {}
        }
        match (progress.result, self.health) {
            (Ok(()), Health::Good) => {}
            (Ok(()), Health::Failing) => {
                self.health = Health::Good;
                tracing::info!(log = log.settings.name, "an access log is written again");
            }
            (Err(error), health) => {
                log.counts.failed.fetch_add(1, Ordering::Relaxed);
                self.retry_at = Stamp::now() + RETRY_AFTER;
                self.health = Health::Failing;
                if health == Health::Good {
                    tracing::error!(log = log.settings.name, %error, "an access log cannot be written");
                }
            }
        }
        progress.bytes
    }

    fn keep(&mut self, log: &Log, lines: &[u8]) {
        if self.backlog.len() + lines.len() > BACKLOG_BYTES_MAX {
            self.drop_backlog(log);
        }
        self.backlog.extend_from_slice(lines);
    }

    fn drop_backlog(&mut self, log: &Log) {
        log.counts.dropped.fetch_add(count_lines(&self.backlog), Ordering::Relaxed);
        self.backlog.clear();
        if self.last == LastByte::WithinLine {
            // The rest of that line is gone; the next one must not run on from its middle.
            self.backlog.push(b'\n');
        }
    }
}

pub(super) fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// The bounds of the way from workers to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// How many buffers may wait for the writer.
    pub queue_max: usize,
    /// How full a worker's buffer gets before it is handed over.
    pub buffer_bytes: usize,
}

impl Default for WriterSettings {
    fn default() -> WriterSettings {
        WriterSettings { queue_max: 256, buffer_bytes: 32 * 1024 }
    }
}

/// The writer thread, from the control thread's side.
#[derive(Debug)]
pub struct LogWriter {
    settings: WriterSettings,
    queue: SyncSender<Batch>,
    rotation: Arc<AtomicU64>,
    /// Disconnects when the thread has written all.
    ended: Receiver<()>,
}

/// Whether all lines were written at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// They were written, or counted as dropped.
    Complete,
    /// A target held the writer up for too long.
    TimedOut,
}

impl LogWriter {
    /// Starts the thread.
    pub fn start(settings: WriterSettings) -> io::Result<LogWriter> {
        let (queue, batches) = sync_channel(settings.queue_max);
        let (end, ended) = sync_channel(0);
        thread::Builder::new().name("tidegate-log".to_owned()).spawn(move || {
            run(&batches);
            drop::<SyncSender<()>>(end);
        })?;
        Ok(LogWriter { settings, queue, rotation: Arc::default(), ended })
    }

    /// Opens a log. `counts` come from [`Control::log`](crate::metrics::Control::log).
    pub fn open(&self, settings: LogSettings, counts: Arc<LogCounts>) -> io::Result<Arc<Log>> {
        let output = Output {
            sink: Sink::open(&settings.target)?,
            rotation: self.rotation.load(Ordering::Acquire),
            backlog: Vec::new(),
            retry_at: Stamp::UNSET,
            health: Health::Good,
            last: LastByte::EndedLine,
        };
        let rotation = Arc::clone(&self.rotation);
        Ok(Arc::new(Log { settings, counts, rotation, output: output.into() }))
    }

    /// Announces a rotation: each log opens its file again before its next write.
    pub fn reopen(&self) {
        self.rotation.fetch_add(1, Ordering::Release);
    }

    /// A worker's side of the logs.
    pub fn worker(&self) -> WorkerLogs {
        WorkerLogs::new(self.queue.clone(), self.settings.buffer_bytes)
    }

    /// Waits until all lines are written. Workers' sides ([`WorkerLogs`]) must have been dropped, in
    /// their threads or with them: as long as one lives, more lines may come.
    pub fn finish(self, within: Duration) -> Finish {
        drop(self.queue);
        match self.ended.recv_timeout(within) {
            Err(RecvTimeoutError::Timeout) => Finish::TimedOut,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Finish::Complete,
        }
    }
}

/// The thread: until every sender is gone.
fn run(batches: &Receiver<Batch>) {
    let mut failing: Vec<Arc<Log>> = Vec::new();
    loop {
        let batch = if failing.is_empty() {
            batches.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            batches.recv_timeout(RETRY_AFTER)
        };
        match batch {
            Ok(Batch { log, mut lines, recycle }) => {
                let health = log.write(&lines);
                lines.clear();
                // The worker has enough of them, or is gone.
                let _ = recycle.try_send(lines);
                if health == Health::Failing && !failing.iter().any(|one| Arc::ptr_eq(one, &log)) {
                    failing.push(log);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        failing.retain(|log| log.retry() == Health::Failing);
    }
    for log in failing {
        log.give_up();
    }
}

#[cfg(test)]
impl Log {
    /// Holds the writer up until the guard is dropped.
    pub(super) fn block(&self) -> std::sync::MutexGuard<'_, impl Sized> {
        self.output.lock().expect("not poisoned")
    }
}
