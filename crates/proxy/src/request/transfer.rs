//! Moving a body from one side to the other, and the deadlines while it moves.

use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_telemetry::{Record, Stamp};

use super::{Exchange, Refusal};
use crate::connection::Downstream;
use crate::connection::body::{BodyError, More};
use crate::inspection::held::Held;
use crate::settings::RouteTimeouts;
use crate::upstream::stream::Upstream;
use crate::worker::wheel::Slot;

/// What a transfer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The client's next bytes.
    Client,
    /// The server to take bytes.
    UpstreamWrite,
    /// The first byte of the response.
    FirstByte,
    /// The server's next bytes.
    UpstreamRead,
    /// The client to take bytes.
    ClientWrite,
}

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// The wait for this.
    Waiting(Waiting),
    /// The request as a whole.
    Whole,
}

impl Late {
    /// What the client is told.
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            Self::Waiting(Waiting::Client) => Refusal::BodyLate,
            Self::Waiting(Waiting::UpstreamWrite) => Refusal::UpstreamWriteLate,
            Self::Waiting(Waiting::FirstByte) => Refusal::FirstByteLate,
            Self::Waiting(Waiting::UpstreamRead) => Refusal::BetweenBytesLate,
            Self::Waiting(Waiting::ClientWrite) => Refusal::WriteLate,
            Self::Whole => Refusal::WholeLate,
        }
    }
}

/// The deadline of whatever a request waits for now, and of the request as a whole.
#[derive(Debug)]
pub(crate) struct Deadline {
    waiting: Option<Waiting>,
    whole_end: Stamp,
}

/// Whether anything has moved since the deadline was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Something has.
    Made,
    /// Nothing has.
    None,
}

impl Deadline {
    pub(crate) fn new(timeouts: &RouteTimeouts, begin: Stamp) -> Self {
        let whole_end = timeouts.whole.map_or(Stamp::UNSET, |whole| begin + whole);
        Self { waiting: None, whole_end }
    }

    /// Forgets the present wait: somebody else uses the slot, or something new is waited for.
    pub(crate) fn pause(&mut self) {
        self.waiting = None;
    }

    /// Ready once the wait has taken longer than `time`, counted from when it began or something last
    /// moved.
    pub(crate) fn poll(
        &mut self,
        slot: &Slot,
        waiting: Waiting,
        time: Duration,
        progress: Progress,
        cx: &mut Context<'_>,
    ) -> Poll<Late> {
        if progress == Progress::Made || self.waiting != Some(waiting) {
            self.waiting = Some(waiting);
            slot.set(self.within_whole(time));
        }
        slot.poll_expired(cx).map(|()| match self.whole_end.get() {
            Some(end) if Stamp::now() >= end => Late::Whole,
            _ => Late::Waiting(waiting),
        })
    }

    fn within_whole(&self, time: Duration) -> Duration {
        match self.whole_end.get() {
            Some(end) => time.min(end.since(Stamp::now())),
            None => time,
        }
    }
}

/// The request body on its way to the server.
#[derive(Debug)]
pub(crate) struct Upload {
    state: State,
    waiting: Option<Waiting>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Body,
    Flush,
    Done,
    /// The server takes no more; what the client sends is left.
    Abandoned,
}

/// How an upload ended.
#[derive(Debug)]
pub(crate) enum UploadEnd {
    /// All was sent.
    Done,
    /// The server takes no more.
    UpstreamClosed,
    /// The client is at fault, or gone.
    Client(Refusal),
}

impl Upload {
    pub(crate) fn new() -> Self {
        Self { state: State::Body, waiting: None, progress: Progress::Made }
    }

    /// What it waits for; `None` once it has ended.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        self.waiting.filter(|_| !self.has_ended())
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Done | State::Abandoned)
    }

    /// Whether all of the request was sent.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub(crate) fn note_progress(&mut self) {
        self.progress = Progress::Made;
    }

    /// Whether anything has moved since this was last asked.
    pub(crate) fn take_progress(&mut self) -> Progress {
        std::mem::replace(&mut self.progress, Progress::None)
    }

    /// Moves on as far as both sides allow.
    pub(crate) fn poll(
        &mut self,
        downstream: &mut Downstream<'_>,
        upstream: &mut Upstream,
        exchange: &mut Exchange,
        body_max: Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<UploadEnd> {
        let record = &mut exchange.record;
        loop {
            match (self.state, &mut exchange.held) {
                (State::Body, Some(held)) if !held.is_read() => {
                    match self.poll_held(held, upstream, cx) {
                        Poll::Ready(None) => {}
                        Poll::Ready(Some(end)) => return Poll::Ready(end),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                (State::Body, _) => match poll_body(downstream, record, body_max, cx) {
                    Poll::Ready(Ok(More::Data)) => {
                        let data = downstream.data();
                        let Poll::Ready(taken) = upstream.poll_write(data, cx) else {
                            return self.wait(Waiting::UpstreamWrite);
                        };
                        let Ok(taken) = taken else { return self.abandon() };
                        downstream.consume(taken);
                        record.bytes.body_in += taken as u64;
                        self.progress = Progress::Made;
                    }
                    Poll::Ready(Ok(More::End)) => {
                        if upstream.finish(downstream.trailers()).is_err() {
                            return self.abandon();
                        }
                        if record.bytes.body_in > 0 {
                            record.stamps.body_in_done = Stamp::now();
                        }
                        self.state = State::Flush;
                    }
                    Poll::Ready(Err(refusal)) => {
                        return Poll::Ready(UploadEnd::Client(refusal));
                    }
                    Poll::Pending => {
                        return match upstream.poll_flush(cx) {
                            Poll::Ready(Err(_)) => self.abandon(),
                            Poll::Ready(Ok(())) => self.wait(Waiting::Client),
                            Poll::Pending => self.wait(Waiting::UpstreamWrite),
                        };
                    }
                },
                (State::Flush, _) => match upstream.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {
                        self.state = State::Done;
                        self.progress = Progress::Made;
                        record.stamps.request_out = Stamp::now();
                    }
                    Poll::Ready(Err(_)) => return self.abandon(),
                    Poll::Pending => return self.wait(Waiting::UpstreamWrite),
                },
                (State::Done, _) => return Poll::Ready(UploadEnd::Done),
                (State::Abandoned, _) => return Poll::Ready(UploadEnd::UpstreamClosed),
            }
        }
    }

    /// Sends on what was held back; `None` as long as that goes well.
    fn poll_held(
        &mut self,
        held: &mut Held,
        upstream: &mut Upstream,
        cx: &mut Context<'_>,
    ) -> Poll<Option<UploadEnd>> {
        match held.poll_data(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                tracing::error!(%error, "a request's body cannot be read back");
                return Poll::Ready(Some(UploadEnd::Client(Refusal::Spool)));
            }
            Poll::Pending => return self.wait(Waiting::Client).map(Some),
        }
        match upstream.poll_write(held.data(), cx) {
            Poll::Ready(Ok(taken)) => {
                held.consume(taken);
                self.progress = Progress::Made;
                Poll::Ready(None)
            }
            Poll::Ready(Err(_)) => self.abandon().map(Some),
            Poll::Pending => self.wait(Waiting::UpstreamWrite).map(Some),
        }
    }

    fn wait(&mut self, waiting: Waiting) -> Poll<UploadEnd> {
        self.waiting = Some(waiting);
        Poll::Pending
    }

    fn abandon(&mut self) -> Poll<UploadEnd> {
        self.state = State::Abandoned;
        Poll::Ready(UploadEnd::UpstreamClosed)
    }
}

/// Sees to it that there is data or its end is known, and that it is not too much: a chunk counts from
/// its size line on.
pub(super) fn poll_body(
    downstream: &mut Downstream<'_>,
    record: &Record,
    body_max: Option<u64>,
    cx: &mut Context<'_>,
) -> Poll<Result<More, Refusal>> {
    let more = downstream.poll_body(cx);
    let coming = record.bytes.body_in.saturating_add(downstream.announced());
    if body_max.is_some_and(|max| coming > max) {
        return Poll::Ready(Err(Refusal::BodyTooLarge));
    }
    more.map_err(|error| broken(&error))
}

/// What is the matter with a request body.
fn broken(error: &BodyError) -> Refusal {
    match error {
        BodyError::Chunk(error) => Refusal::BodyMalformed(*error),
        BodyError::Short | BodyError::Io => Refusal::BodyBroken,
    }
}
