//! A fill: one upstream fetch that writes the cache, and those who read along.
//!
//! The one that fetches holds the [`Sink`]; everybody who wants the response holds a [`Reader`], on
//! whatever thread. The fetch belongs to none of its readers: it goes on when the first of them
//! leaves. A reader learns at first what came of the fetch ([`Told`]), and then takes the body as it
//! comes, at its own pace.
//!
//! As long as the response is to be stored, all of its body is kept: nobody waits for a slow reader.
//! Once it is not (it must not be, or it has grown too large), only a window of it is kept; the
//! slowest reader sets the pace then, nobody joins any more, and without a reader the fetch is given
//! up.
//!
//! What a head is and why a fetch fails is the caller's business. Nothing here waits: polls register
//! wakers, and the locks are held to move pointers.

mod table;

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};

use table::Listed;
pub use table::{Begin, Flights};

/// Body bytes that are published at once: small enough that readers are not kept waiting, large
/// enough that a chunk is worth a system call.
const CHUNK_BYTES: usize = 64 << 10;

/// Most memory reserved for a body because its head announced that length.
const RESERVED_BYTES_MAX: u64 = 4 << 20;

/// Body bytes between the fetch and its slowest reader once they are not kept.
pub const WINDOW_BYTES: usize = 512 << 10;

/// Interim responses that wait for the first reader.
const INTERIMS_MAX: usize = 16;

/// What a reader learns of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<H, E> {
    /// This came, and the body follows.
    Head(H),
    /// The response is not for everybody who asked: this reader has to fetch for itself.
    Alone,
    /// Nothing came, for this reason.
    Failed(E),
}

/// How a body goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum More<E> {
    /// With these bytes.
    Data(Bytes),
    /// It is complete.
    End,
    /// It broke off.
    Failed(E),
}

/// For whom a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// For everybody who waits: it is being stored.
    All,
    /// For the one whose request began the fill.
    First,
}

/// A fill as everybody sees it who has to do with it.
#[derive(Debug)]
struct Shared<H, E> {
    state: Lock<State<H, E>>,
}

#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "held to move a few pointers, never while waiting")]
struct Lock<T>(std::sync::Mutex<T>);

impl<T> Lock<T> {
    /// What a panic left behind is whole enough: every change is a single assignment or push.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct State<H, E> {
    head: Option<H>,
    /// What comes before the head, for the first reader.
    interims: VecDeque<H>,
    audience: Audience,
    retention: Retention,
    /// What of the body has been published and is kept.
    chunks: Vec<Bytes>,
    /// Chunks that were let go in front of those.
    gone: usize,
    /// Bytes in `chunks`.
    kept_bytes: usize,
    end: Option<End<E>>,
    /// Places of readers, by their number; empty ones are used again.
    readers: Vec<Option<Place>>,
    sink: Option<Waker>,
}

/// Whether body bytes stay once everybody has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retention {
    All,
    Window,
}

#[derive(Clone, Debug)]
enum End<E> {
    Complete,
    Failed(E),
}

#[derive(Debug)]
struct Place {
    /// Chunks taken so far, those that were let go among them.
    taken: usize,
    rank: Rank,
    waker: Option<Waker>,
}

/// Whether a reader's request began the fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    First,
    Later,
}

impl<H, E> Default for State<H, E> {
    fn default() -> Self {
        Self {
            head: None,
            interims: VecDeque::new(),
            audience: Audience::All,
            retention: Retention::All,
            chunks: Vec::new(),
            gone: 0,
            kept_bytes: 0,
            end: None,
            readers: Vec::new(),
            sink: None,
        }
    }
}

impl<H, E> State<H, E> {
    fn wake_readers(&mut self) {
        for place in self.readers.iter_mut().flatten() {
            if let Some(waker) = place.waker.take() {
                waker.wake();
            }
        }
    }

    fn wake_sink(&mut self) {
        if let Some(waker) = self.sink.take() {
            waker.wake();
        }
    }

    /// Lets go of what no reader needs any more.
    fn let_go(&mut self) {
        if self.retention == Retention::All {
            return;
        }
        let slowest = self.readers.iter().flatten().map(|place| place.taken).min();
        let all = self.gone + self.chunks.len();
        let unneeded = slowest.unwrap_or(all).saturating_sub(self.gone);
        for chunk in self.chunks.drain(..unneeded) {
            self.kept_bytes -= chunk.len();
        }
        self.gone += unneeded;
        self.wake_sink();
    }

    fn is_wanted(&self) -> bool {
        self.retention == Retention::All || self.readers.iter().any(Option::is_some)
    }
}

/// Begins a fill that nobody else finds. If the sink is dropped before its end, readers are told what
/// is `lost`.
pub fn begin<H, E>(lost: E) -> (Sink<H, E>, Reader<H, E>) {
    let shared = Arc::new(Shared { state: Lock::default() });
    let reader = Reader::join(&shared, Rank::First);
    (Sink::new(shared, None, lost), reader)
}

/// The end of a fill that is written to. As long as it lives, others find the fill; dropped before its
/// end, it fails for all readers.
#[derive(Debug)]
pub struct Sink<H, E> {
    shared: Arc<Shared<H, E>>,
    listed: Option<Listed<H, E>>,
    /// What has come and is not published yet.
    pending: BytesMut,
    written: u64,
    /// What readers are told if it is dropped before its end.
    lost: Option<E>,
}

impl<H, E> Sink<H, E> {
    fn new(shared: Arc<Shared<H, E>>, listed: Option<Listed<H, E>>, lost: E) -> Self {
        Self { shared, listed, pending: BytesMut::new(), written: 0, lost: Some(lost) }
    }
}

impl<H: Clone, E: Clone> Sink<H, E> {
    /// Tells the first reader something before the head (an interim response, RFC 9110, section 15.2).
    /// Of more than [`INTERIMS_MAX`] that it has not taken the rest is lost.
    pub fn interim(&mut self, head: H) {
        let mut state = self.shared.state.lock();
        if state.interims.len() < INTERIMS_MAX {
            state.interims.push_back(head);
            state.wake_readers();
        }
    }

    /// Tells the head, and for whom the response is. `length` is what it says of its body.
    pub fn head(&mut self, head: H, audience: Audience, length: Option<u64>) {
        if audience == Audience::All {
            let reserved = length.unwrap_or(0).min(RESERVED_BYTES_MAX);
            self.pending.reserve(usize::try_from(reserved).unwrap_or(0));
        }
        let mut state = self.shared.state.lock();
        state.head = Some(head);
        state.audience = audience;
        if audience == Audience::First {
            state.retention = Retention::Window;
        }
        state.wake_readers();
    }

    /// Ready when more may be written: at once as long as everything is kept.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.state.lock();
        if state.retention == Retention::All || state.kept_bytes < WINDOW_BYTES {
            return Poll::Ready(());
        }
        state.sink = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready once nobody wants the response any more.
    pub fn poll_unwanted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.state.lock();
        if !state.is_wanted() {
            return Poll::Ready(());
        }
        state.sink = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes body bytes. Readers see them with the next [`Sink::publish`] at the latest.
    pub fn write(&mut self, data: &[u8]) {
        self.pending.extend_from_slice(data);
        self.written += data.len() as u64;
        if self.pending.len() >= CHUNK_BYTES {
            self.publish();
        }
    }

    /// Body bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Shows readers what was written.
    pub fn publish(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let chunk = self.pending.split().freeze();
        let mut state = self.shared.state.lock();
        state.kept_bytes += chunk.len();
        state.chunks.push(chunk);
        state.let_go();
        state.wake_readers();
    }

    /// Keeps the body no longer: it has grown too large to be stored.
    pub fn keep_no_more(&mut self) {
        let mut state = self.shared.state.lock();
        state.retention = Retention::Window;
        state.let_go();
    }

    /// Ends the body, and gives it if all of it was kept. Others find the fill until the sink is
    /// dropped: what is made of the body is to be found by then. A fill that has failed stays so.
    pub fn complete(&mut self) -> Option<Vec<Bytes>> {
        self.publish();
        let mut state = self.shared.state.lock();
        if matches!(state.end, Some(End::Failed(_))) {
            return None;
        }
        state.end = Some(End::Complete);
        state.wake_readers();
        (state.retention == Retention::All).then(|| state.chunks.clone())
    }

    /// Breaks off, before the head or behind it.
    pub fn fail(&mut self, error: E) {
        self.publish();
        let mut state = self.shared.state.lock();
        state.end = Some(End::Failed(error));
        state.wake_readers();
    }
}

impl<H, E> Drop for Sink<H, E> {
    fn drop(&mut self) {
        if let Some(listed) = &self.listed {
            listed.remove(&self.shared);
        }
        let mut state = self.shared.state.lock();
        if state.end.is_none() {
            state.end = self.lost.take().map(End::Failed);
            state.wake_readers();
        }
    }
}

/// One who wants the response of a fill.
#[derive(Debug)]
pub struct Reader<H, E> {
    shared: Arc<Shared<H, E>>,
    /// Its place among the readers.
    number: usize,
}

impl<H, E> Reader<H, E> {
    fn join(shared: &Arc<Shared<H, E>>, rank: Rank) -> Self {
        let mut state = shared.state.lock();
        let place = Some(Place { taken: 0, rank, waker: None });
        let free = state.readers.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            state.readers.push(None);
            state.readers.len() - 1
        });
        state.readers[number] = place;
        drop(state);
        Self { shared: Arc::clone(shared), number }
    }
}

impl<H: Clone, E: Clone> Reader<H, E> {
    /// Ready once it is known what came of the fetch. The first reader is told interim responses before;
    /// it asks again.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Told<H, E>> {
        let mut state = self.shared.state.lock();
        let Some(place) = &state.readers[self.number] else { return Poll::Ready(Told::Alone) };
        let is_first = place.rank == Rank::First;
        if is_first && let Some(interim) = state.interims.pop_front() {
            return Poll::Ready(Told::Head(interim));
        }
        if let Some(head) = &state.head {
            let is_for_it = is_first || (state.audience == Audience::All && state.gone == 0);
            let told = if is_for_it { Told::Head(head.clone()) } else { Told::Alone };
            return Poll::Ready(told);
        }
        if let Some(End::Failed(error)) = &state.end {
            return Poll::Ready(Told::Failed(error.clone()));
        }
        self.wait(&mut state, cx)
    }

    /// The next bytes of the body.
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<More<E>> {
        let mut state = self.shared.state.lock();
        let Some(place) = &state.readers[self.number] else { return Poll::Ready(More::End) };
        let next = place.taken.saturating_sub(state.gone);
        if let Some(chunk) = state.chunks.get(next).cloned() {
            if let Some(place) = &mut state.readers[self.number] {
                place.taken += 1;
            }
            state.let_go();
            return Poll::Ready(More::Data(chunk));
        }
        match &state.end {
            Some(End::Complete) => Poll::Ready(More::End),
            Some(End::Failed(error)) => Poll::Ready(More::Failed(error.clone())),
            None => self.wait(&mut state, cx),
        }
    }

    fn wait<T>(&self, state: &mut State<H, E>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(place) = &mut state.readers[self.number] {
            match &mut place.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }
}

impl<H, E> Drop for Reader<H, E> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.readers[self.number] = None;
        state.let_go();
        if !state.is_wanted() {
            state.wake_sink();
        }
    }
}

#[cfg(test)]
mod tests;
