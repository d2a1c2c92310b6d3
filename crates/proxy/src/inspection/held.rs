//! A request's body held back until it has been inspected, and given on as it came.
//!
//! Its beginning stays in memory; what goes beyond a limit goes to a file without a name, which is
//! gone with the request or the process. Files are read and written by threads made for blocking, a
//! few at a time, never by a worker's loop. A held body can be read again from its beginning, so a
//! request may be sent to another server.

use std::fs::File;
use std::future::Future as _;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::JoinHandle;

/// Bytes that go to the file, or come from it, at once.
const RUN_BYTES: usize = 256 * 1024;

/// A body held back.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Vec<u8>,
    memory_bytes_max: usize,
    /// What is to go to the file next.
    pending: Vec<u8>,
    file: Option<Arc<File>>,
    /// Bytes in the file.
    spooled: u64,
    /// How far it has been read.
    read: u64,
    /// A run read back from the file, and where in the body it begins.
    run: Vec<u8>,
    run_at: u64,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl Held {
    /// An empty body, of which so many bytes may stay in memory.
    pub(crate) fn new(memory_bytes_max: usize) -> Self {
        Self {
            memory: Vec::new(),
            memory_bytes_max,
            pending: Vec::new(),
            file: None,
            spooled: 0,
            read: 0,
            run: Vec::new(),
            run_at: 0,
            reading: None,
        }
    }

    /// How many bytes are held.
    pub(crate) fn len(&self) -> u64 {
        (self.memory.len() + self.pending.len()) as u64 + self.spooled
    }

    /// What of it is in memory, from its beginning on.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.memory
    }

    /// Holds more.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = match self.spooled {
            0 if self.pending.is_empty() => self.memory_bytes_max.saturating_sub(self.memory.len()),
            _ => 0,
        };
        let (here, there) = bytes.split_at(bytes.len().min(room));
        self.memory.extend_from_slice(here);
        self.pending.extend_from_slice(there);
    }

    /// Whether enough has come together to go to the file: [`spool`](Self::spool) is due.
    pub(crate) fn is_due(&self) -> bool {
        self.pending.len() >= RUN_BYTES
    }

    /// Whether a part of it lies in the file, so that the rest has to follow it there.
    pub(crate) fn is_spooled(&self) -> bool {
        self.spooled > 0
    }

    /// Writes what waits to the file.
    pub(crate) async fn spool(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (bytes, at, file) =
            (std::mem::take(&mut self.pending), self.spooled, self.file.clone());
        let written = tokio::task::spawn_blocking(move || {
            let file = match file {
                Some(file) => file,
                None => Arc::new(tempfile::tempfile()?),
            };
            file.write_all_at(&bytes, at)?;
            Ok::<_, io::Error>((file, bytes))
        });
        let (file, mut bytes) = written.await.map_err(io::Error::other)??;
        self.spooled += bytes.len() as u64;
        self.file = Some(file);
        bytes.clear();
        self.pending = bytes;
        Ok(())
    }

    /// Goes back to the beginning.
    pub(crate) fn rewind(&mut self) {
        self.read = 0;
        self.run.clear();
        self.reading = None;
    }

    /// Whether all of it has been read.
    pub(crate) fn is_read(&self) -> bool {
        self.read == self.len()
    }

    /// Sees to it that [`data`](Self::data) has the next bytes, if not all has been read.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_read() || !self.data().is_empty() {
            return Poll::Ready(Ok(()));
        }
        let at = self.read - self.memory.len() as u64;
        if self.reading.is_none() {
            let Some(file) = self.file.clone() else {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            };
            let mut run = std::mem::take(&mut self.run);
            let left = usize::try_from(self.spooled - at).unwrap_or(RUN_BYTES);
            self.reading = Some(tokio::task::spawn_blocking(move || {
                run.resize(left.min(RUN_BYTES), 0);
                file.read_exact_at(&mut run, at)?;
                Ok(run)
            }));
        }
        if let Some(reading) = &mut self.reading {
            let run = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            self.run = run.map_err(io::Error::other)??;
            self.run_at = self.read;
        }
        Poll::Ready(Ok(()))
    }

    /// The next bytes, as far as they are at hand.
    pub(crate) fn data(&self) -> &[u8] {
        let at = |begin: u64| usize::try_from(self.read - begin).unwrap_or(usize::MAX);
        let memory = self.memory.len() as u64;
        if self.read < memory {
            return &self.memory[at(0)..];
        }
        let pending = memory + self.spooled;
        if self.read >= pending {
            return self.pending.get(at(pending)..).unwrap_or_default();
        }
        if self.read >= self.run_at {
            self.run.get(at(self.run_at)..).unwrap_or_default()
        } else {
            &[]
        }
    }

    /// Counts bytes of [`data`](Self::data) as read.
    pub(crate) fn consume(&mut self, n: usize) {
        self.read = (self.read + n as u64).min(self.len());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    async fn read_all(held: &mut Held) -> Vec<u8> {
        let mut all = Vec::new();
        while !held.is_read() {
            poll_fn(|cx| held.poll_data(cx)).await.unwrap();
            let n = held.data().len().min(10_007);
            assert!(n > 0);
            all.extend_from_slice(&held.data()[..n]);
            held.consume(n);
        }
        all
    }

    #[test]
    fn what_is_held_comes_back_as_it_was_and_again() {
        block_on(async {
            for length in [0, 1, 99, 100, 101, 5_000, 300_000, 1_000_000] {
                let body: Vec<u8> =
                    (0_u32..length).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
                let mut held = Held::new(100);
                for piece in body.chunks(4_099) {
                    held.push(piece);
                    if held.is_due() {
                        held.spool().await.unwrap();
                    }
                }
                assert_eq!(held.len(), u64::from(length));
                assert_eq!(held.file.is_some(), length >= 300_000, "{length}");
                for _ in 0..2 {
                    assert_eq!(read_all(&mut held).await, body, "{length}");
                    held.rewind();
                }
                held.consume(50);
                assert_eq!(read_all(&mut held).await, body.get(50..).unwrap_or_default());
            }
        });
    }
}
