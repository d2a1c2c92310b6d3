//! A worker's side: lines are formatted into buffers, and full buffers handed over.
//!
//! Nothing here waits. Where the writer does not keep up, buffers stay until they are full and then
//! lines are dropped before they are formatted, so that an overload gets cheaper, not dearer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use super::field::Line;
use super::time::Times;
use super::view::LogView;
use super::writer::{Batch, Flush, Log, count_lines};
use crate::clock::Stamp;
use crate::record::Record;

/// How often a worker calls [`WorkerLogs::flush`] at least.
pub const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// Room for the line that fills a buffer.
const LINE_BYTES_USUAL: usize = 4 * 1024;
/// How many empty buffers a worker keeps.
const SPARE_MAX: usize = 16;
/// How long an ending worker waits for room in the queue.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// A worker's logs.
#[derive(Debug)]
pub struct WorkerLogs {
    queue: SyncSender<Batch>,
    spare: Receiver<Vec<u8>>,
    recycle: SyncSender<Vec<u8>>,
    /// One for each log in use, few enough to look through.
    buffers: Vec<Buffer>,
    buffer_bytes: usize,
    times: Times,
}

#[derive(Debug)]
struct Buffer {
    log: Arc<Log>,
    lines: Vec<u8>,
}

/// What became of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandOver {
    Done,
    QueueFull,
}

impl WorkerLogs {
    pub(super) fn new(queue: SyncSender<Batch>, buffer_bytes: usize) -> WorkerLogs {
        let (recycle, spare) = sync_channel(SPARE_MAX);
        WorkerLogs { queue, spare, recycle, buffers: Vec::new(), buffer_bytes, times: Times::new() }
    }

    /// Logs a request.
    pub fn write(&mut self, log: &Arc<Log>, record: &Record, view: &LogView<'_>) {
        if !log.settings.sample.takes(record.id) {
            return;
        }
        let known = self.buffers.iter().position(|buffer| Arc::ptr_eq(&buffer.log, log));
        let at = known.unwrap_or_else(|| {
            self.buffers.push(Buffer { log: Arc::clone(log), lines: Vec::new() });
            self.buffers.len() - 1
        });
        if self.buffers[at].lines.len() >= self.buffer_bytes
            && self.hand_over(at) == HandOver::QueueFull
        {
            log.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }

        let lines = &mut self.buffers[at].lines;
        if lines.capacity() == 0 {
            // One that grew for extraordinary lines is not kept.
            let spare = self.spare.try_recv().ok();
            let spare = spare.filter(|buffer| buffer.capacity() <= 4 * self.buffer_bytes);
            *lines = spare.unwrap_or_default();
            lines.reserve(self.buffer_bytes + LINE_BYTES_USUAL);
        }
        let line = Line::new(record, view, &log.settings.privacy, &log.settings.recording);
        log.settings.format.write(&line, &mut self.times, lines);
        let is_due = lines.len() >= self.buffer_bytes || log.settings.flush == Flush::Request;
        if is_due && !lines.is_empty() {
            // If the queue is full now, the next line tries again.
            self.hand_over(at);
        }
    }

    /// Hands over all lines so far; from the worker's tick, every [`FLUSH_EVERY`].
    pub fn flush(&mut self) {
        for at in 0..self.buffers.len() {
            if !self.buffers[at].lines.is_empty() && self.hand_over(at) == HandOver::QueueFull {
                break;
            }
        }
        // Logs that no plan holds any more are closed once they are written.
        self.buffers
            .retain(|buffer| !buffer.lines.is_empty() || Arc::strong_count(&buffer.log) > 1);
    }

    fn hand_over(&mut self, at: usize) -> HandOver {
        let buffer = &mut self.buffers[at];
        let batch = Batch {
            log: Arc::clone(&buffer.log),
            lines: std::mem::take(&mut buffer.lines),
            recycle: self.recycle.clone(),
        };
        match self.queue.try_send(batch) {
            Ok(()) => HandOver::Done,
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                buffer.lines = batch.lines;
                HandOver::QueueFull
            }
        }
    }
}

/// A worker that ends hands over all it has, and for that it may wait a little.
impl Drop for WorkerLogs {
    fn drop(&mut self) {
        let deadline = Stamp::now() + END_WAIT_MAX;
        for at in 0..self.buffers.len() {
            while !self.buffers[at].lines.is_empty() && self.hand_over(at) == HandOver::QueueFull {
                if Stamp::now() >= deadline {
                    let Buffer { log, lines } = &mut self.buffers[at];
                    log.counts.dropped.fetch_add(count_lines(lines), Ordering::Relaxed);
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[cfg(test)]
mod tests;
