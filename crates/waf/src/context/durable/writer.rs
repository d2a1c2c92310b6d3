//! The thread that writes behind: what has changed, about once a second, in one transaction.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;

use crossbeam_queue::SegQueue;

use super::super::agenda::Lock;
use super::super::slot::{Place, Slot};
use super::super::store::Store;
use super::file::StoreFile;
use super::{Fault, Held};

/// What has changed since it was last written. A slot is in the queue at most once however often it
/// changes, so the store's limits bound the queue. What is written of it is what it holds when its
/// turn comes.
#[derive(Default)]
pub(in super::super) struct Unwritten {
    queue: SegQueue<Arc<Slot>>,
    /// Held from when a batch is cut until what its slots hold has been read, and while a load shows
    /// itself and puts all of its slots in the queue: a batch has all of a load or nothing.
    together: Lock<()>,
    batches: AtomicU64,
    failures: AtomicU64,
}

impl Unwritten {
    pub(in super::super) fn mark(&self, slot: &Arc<Slot>) {
        // Release what has changed to the writer, which acquires it as it takes the mark away.
        if !slot.unwritten.swap(true, Ordering::AcqRel) {
            self.queue.push(Arc::clone(slot));
        }
    }

    /// What `change` marks comes in one batch.
    pub(in super::super) fn together(&self, change: impl FnOnce()) {
        let _together = self.together.lock();
        change();
    }

    pub(in super::super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// How many batches have been written, and how many failed.
    pub(in super::super) fn batches(&self) -> (u64, u64) {
        (self.batches.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }

    /// What is to be written, with what keeps loads from showing themselves until it has been read.
    fn cut(&self) -> (Vec<Arc<Slot>>, Still<'_>) {
        let still = self.together.lock();
        let count = self.queue.len();
        (std::iter::from_fn(|| self.queue.pop()).take(count).collect(), still)
    }
}

impl fmt::Debug for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unwritten").field("slots", &self.queue.len()).finish_non_exhaustive()
    }
}

/// While this is held, no load shows itself.
pub(super) type Still<'a> = MutexGuard<'a, ()>;

/// The thread's handle; dropping it writes what is left and ends the thread.
#[derive(Debug)]
pub(in super::super) struct Writer {
    directory: PathBuf,
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is asked to do now; answered when it is done.
type Request = (Wish, SyncSender<Result<(), Fault>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Write a batch.
    Flush,
    /// Write a batch and leave the file to another process.
    LetGo,
    /// Have the file again.
    TakeBack,
}

impl Writer {
    pub(super) fn start(store: Arc<Store>, directory: PathBuf, held: Held) -> io::Result<Self> {
        let (requests, wishes) = sync_channel(16);
        let path = directory.clone();
        let thread = std::thread::Builder::new()
            .name("context".to_owned())
            .spawn(move || run(&store, &path, held, &wishes))?;
        Ok(Self { directory, requests: Some(requests), thread: Some(thread) })
    }

    /// Waits until all that was marked before is written; at once if the file was let go.
    pub(in super::super) fn flush(&self) -> Result<(), Fault> {
        self.ask(Wish::Flush)
    }

    /// Writes what is left and leaves the file to another process.
    pub(in super::super) fn let_go(&self) -> Result<(), Fault> {
        self.ask(Wish::LetGo)
    }

    /// Opens the file again and writes all there is to it.
    pub(in super::super) fn take_back(&self) -> Result<(), Fault> {
        self.ask(Wish::TakeBack)
    }

    fn ask(&self, wish: Wish) -> Result<(), Fault> {
        let (answer, answered) = sync_channel(1);
        let asked = self.requests.as_ref().map(|requests| requests.send((wish, answer)));
        match (asked, answered.recv()) {
            (Some(Ok(())), Ok(result)) => result,
            _ => Err(Fault::Disk {
                directory: self.directory.clone(),
                what: "its thread has ended".to_owned(),
            }),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

fn run(store: &Store, directory: &Path, held: Held, requests: &Receiver<Request>) {
    let Some(unwritten) = &store.unwritten else { return };
    // Without the file, what changes stays marked, and is written when it is had again.
    let mut held = Some(held);
    loop {
        let request = requests.recv_timeout(store.settings.batch_interval);
        let mut result = match &mut held {
            Some(held) => write(store, unwritten, &mut held.file),
            None => Ok(()),
        };
        match request {
            Ok((wish, answer)) => {
                match wish {
                    Wish::Flush => {}
                    Wish::LetGo => held.take().into_iter().for_each(Held::close),
                    Wish::TakeBack if held.is_some() => {}
                    Wish::TakeBack => {
                        result = Held::again(directory, &store.settings).and_then(|again| {
                            store.index.walk(Place::FIRST, |slot| {
                                unwritten.mark(slot);
                                ControlFlow::Continue(())
                            });
                            write(store, unwritten, &mut held.insert(again).file)
                        });
                    }
                }
                match answer.try_send(result) {
                    Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    held.into_iter().for_each(Held::close);
}

fn write(store: &Store, unwritten: &Unwritten, file: &mut StoreFile) -> Result<(), Fault> {
    let (mut slots, still) = unwritten.cut();
    if slots.is_empty() && !file.has_leftovers() {
        return Ok(());
    }
    let result = file.write(store, &mut slots, still);
    if result.is_ok() {
        unwritten.batches.fetch_add(1, Ordering::Relaxed);
    } else {
        // They stay due, however long the disk takes.
        unwritten.failures.fetch_add(1, Ordering::Relaxed);
        for slot in &slots {
            unwritten.mark(slot);
        }
    }
    result
}
