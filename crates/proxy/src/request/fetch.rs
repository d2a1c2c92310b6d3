//! Stop 6, fetch: a server, a connection, the request on its way, the head of the response.
//!
//! The request body streams while the response is awaited: an origin may answer before it has read
//! all, and its answer counts. What fails before a byte of the response may be tried again where
//! [`retry`] says that this is safe.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_http::framing::{self, Body};
use tidegate_http::{Method, parse::HeadLimits};
use tidegate_telemetry::Stamp;
use tidegate_telemetry::record::UpstreamConnection;

use super::respond::Fetched;
use super::route::Routed;
use super::transfer::{Deadline, Upload, UploadEnd, Waiting};
use super::{Exchange, Refusal, Stop, Surroundings, forward};
use crate::connection::Downstream;
use crate::inspection::held::Held;
use crate::settings::Retry as RetrySettings;
use crate::upstream::connect::{self, ConnectError};
use crate::upstream::retry::{self, Attempt, Failure, Retry};
use crate::upstream::stream::{HeadError, Upstream};
use crate::upstream::{Group, NoServer, Outcome, Pick, Place, Seat};

/// Fields of a response head.
const RESPONSE_FIELDS_MAX: usize = 256;

/// Interim responses before a final one. Real ones send one or two.
const INTERIMS_MAX: u32 = 32;

/// How often one that waits for a place looks for it without having been called.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// A failed attempt: what it means for a further one, and what the client is told if there is none.
struct Failed {
    failure: Failure,
    refusal: Refusal,
}

/// Why there is no response head.
enum FetchError {
    /// An attempt failed on the server's side.
    Failed(Failed),
    /// The client is at fault or gone; there is nothing to try again.
    Client(Refusal),
}

/// Asks the group's servers until one answers or none is left to ask.
pub(super) async fn fetch<'p>(
    around: &Surroundings<'p>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    routed: Routed<'p>,
) -> Stop<'p> {
    let Some(index) = routed.group() else { return Stop::Finish };
    let group = &around.plan.groups[index];
    exchange.record.group = group.label();
    let upgrade = forward::upgrade(&exchange.request, &routed.route.settings.upgrades);
    let mut deadline =
        Deadline::new(&routed.route.settings.timeouts, exchange.record.stamps.head_in);
    let mut tried = Vec::new();
    let mut same: Option<Pick> = None;
    let mut approach = Approach::Try;
    loop {
        let pick = match same.take() {
            Some(pick) => Ok(pick),
            None => {
                choose(around, downstream, exchange, index, &tried, approach, &mut deadline).await
            }
        };
        let pick = match pick {
            Ok(pick) => pick,
            Err(refusal) => return Stop::Refuse(refusal),
        };
        approach = Approach::Try;
        let server = Arc::clone(pick.in_flight.server());
        exchange.record.server = server.label();
        exchange.server = Some(Arc::clone(&server));
        let fresh = if exchange.record.retries == 0 { Fresh::No } else { Fresh::Yes };
        let attempt =
            Try { around, routed: &routed, group, pick: &pick, upgrade: upgrade.as_deref() };
        let error = match attempt.run(downstream, exchange, &mut deadline, fresh).await {
            Ok((upstream, body, upload)) => {
                return Stop::Respond(Fetched {
                    routed,
                    group,
                    pick,
                    upstream,
                    body,
                    upload,
                    deadline,
                    upgrade,
                });
            }
            Err(error) => error,
        };
        let Failed { failure, refusal } = match error {
            FetchError::Failed(failed) => failed,
            FetchError::Client(refusal) => {
                return Stop::Refuse(refusal);
            }
        };
        if failure == Failure::AtLimit {
            // Another worker was faster. Nothing was tried, so nothing is spent: wait for a place.
            approach = Approach::Wait;
            continue;
        }
        let now = Stamp::now();
        if failure.blame() == retry::Blame::Server {
            group.report(&server, Outcome::Failed, now);
        }
        let verdict = refusal.verdict();
        around.worker.metrics().upstream_failed(server.label(), verdict.outcome);
        let attempt = Attempt {
            failure,
            method: exchange.request.method,
            body: body_state(downstream, exchange),
            earlier: exchange.record.retries,
        };
        let settings: &RetrySettings = &routed.route.settings.retry;
        match retry::after(attempt, settings, group.budget(), now) {
            Retry::Next => tried.push(server.id()),
            Retry::Same => same = Some(pick),
            Retry::GiveUp(_) => return Stop::Refuse(refusal),
        }
        exchange.record.retries += 1;
        around.worker.metrics().upstream_retried(server.label());
    }
}

/// Whether the request body can be sent once more: only if nothing of it was taken yet.
fn body_state(downstream: &Downstream<'_>, exchange: &Exchange) -> retry::Body {
    let held = exchange.held.as_ref().map_or(0, Held::len);
    if exchange.record.bytes.body_in > held {
        retry::Body::Streamed
    } else if downstream.body_is_done() && exchange.held.is_none() {
        retry::Body::None
    } else {
        retry::Body::Buffered
    }
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approach {
    /// At once, if nobody waits.
    Try,
    /// Not before something has changed: the server chosen had no place after all.
    Wait,
}

/// Chooses a server; where all are at their limits, waits for a place as long as a connect may take.
/// Who comes while others wait does so behind them.
async fn choose(
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    group_index: usize,
    tried: &[crate::upstream::ServerId],
    approach: Approach,
    deadline: &mut Deadline,
) -> Result<Pick, Refusal> {
    let group = &around.plan.groups[group_index];
    let first = exchange.record.retries == 0;
    let mut now = if first { exchange.record.stamps.admitted } else { Stamp::now() };
    // A retry may not go everywhere. In front, it would keep others from servers with room.
    let is_retry = !tried.is_empty();
    let mut may_look = approach == Approach::Try;
    let mut place: Option<Place> = match approach {
        Approach::Wait if !is_retry => Some(group.queue().join(around.worker.id())),
        Approach::Wait | Approach::Try => None,
    };
    loop {
        let is_next = match &place {
            Some(place) => place.is_first(),
            None => is_retry || group.queue().is_empty(),
        };
        if is_next && may_look {
            let choice = group.choice(exchange.client_addr, &exchange.request, tried, now);
            let chosen = {
                let mut balance = around.plan.balances[group_index].borrow_mut();
                group.choose(&choice, &mut balance)
            };
            match chosen {
                Ok(pick) => {
                    exchange.record.stamps.pool_wait.finish();
                    return Ok(pick);
                }
                Err(NoServer::AtLimit) => {}
                Err(why) => return Err(Refusal::NoServer(why)),
            }
        }
        if place.is_none() && !is_retry {
            // Looks once more from there: a place may have come free in between.
            place = Some(group.queue().join(around.worker.id()));
            continue;
        }
        exchange.record.stamps.pool_wait.begin();
        deadline.pause();
        let waited = Stamp::now().since(exchange.record.stamps.pool_wait.start);
        let left = group.settings().connect_timeout.saturating_sub(waited);
        if left.is_zero() {
            return Err(Refusal::PoolLate);
        }
        downstream.slot().set(left.min(LOOK_AGAIN));
        poll_fn(|cx| match &place {
            Some(place) if place.poll_called(cx).is_ready() => Poll::Ready(()),
            _ => downstream.slot().poll_expired(cx),
        })
        .await;
        may_look = true;
        now = Stamp::now();
    }
}

/// Whether a kept connection may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fresh {
    /// A retry: whatever was wrong with the kept one, a new one has not.
    Yes,
    No,
}

/// One attempt at one server.
struct Try<'t, 'p> {
    around: &'t Surroundings<'p>,
    routed: &'t Routed<'p>,
    group: &'t Arc<Group>,
    pick: &'t Pick,
    upgrade: Option<&'t [u8]>,
}

impl Try<'_, '_> {
    async fn run(
        &self,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        deadline: &mut Deadline,
        fresh: Fresh,
    ) -> Result<(Upstream, Body, Upload), FetchError> {
        let mut upstream = self.connection(downstream, exchange, deadline, fresh).await?;
        let body = request_body(downstream, exchange);
        forward::begin(
            &mut upstream,
            self.around,
            exchange,
            self.routed,
            self.pick,
            body,
            self.upgrade,
        )
        .map_err(|reason| FetchError::Client(Refusal::Http2(reason)))?;
        exchange.record.stamps.request_out = Stamp::UNSET;
        let mut upload = Upload::new();
        if let Some(held) = &mut exchange.held {
            held.rewind();
        }
        let head = self.head(&mut upstream, downstream, exchange, &mut upload, deadline).await;
        let (bytes_in, bytes_out) = upstream.bytes();
        exchange.record.bytes.up_in = bytes_in;
        exchange.record.bytes.up_out = bytes_out;
        let body = head.map_err(|error| {
            let stale = exchange.record.connection == UpstreamConnection::Reused;
            failed(error, stale, upstream.was_written())
        })?;
        Ok((upstream, body, upload))
    }

    /// A connection out of the pool, or a new one.
    async fn connection(
        &self,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        deadline: &mut Deadline,
        fresh: Fresh,
    ) -> Result<Upstream, FetchError> {
        let worker = self.around.worker;
        let seat: &Arc<Seat> = self.pick.in_flight.seat();
        let stamps = &mut exchange.record.stamps;
        // A retry overwrites what the attempt before left.
        (stamps.connect_start, stamps.connected, stamps.upstream_tls_done) = Default::default();
        if fresh == Fresh::No {
            let pooled = poll_fn(|cx| Poll::Ready(worker.pool().take(self.group, seat, cx))).await;
            if let Some(upstream) = pooled {
                exchange.record.connection = UpstreamConnection::Reused;
                worker.metrics().upstream_reused(seat.server().label());
                return Ok(upstream);
            }
        }
        exchange.record.connection = UpstreamConnection::Fresh;
        stamps.connect_start = Stamp::now();
        deadline.pause();
        let client = self.around.client;
        let address = exchange.client_addr;
        let slot = downstream.slot();
        // Rare, and far larger than the rest of a request: it is given memory of its own.
        let opened =
            Box::pin(connect::open(worker, self.group, seat, client, address, slot, stamps));
        let upstream = opened.await.map_err(|error| FetchError::Failed(connect_failed(error)))?;
        let label = seat.server().label();
        worker.metrics().upstream_opened(label, Stamp::now().since(stamps.connect_start));
        Ok(upstream)
    }

    /// Sends the request and awaits the final response head.
    async fn head(
        &self,
        upstream: &mut Upstream,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        upload: &mut Upload,
        deadline: &mut Deadline,
    ) -> Result<Body, HeadFailure> {
        let limits = HeadLimits {
            head_bytes_max: self.group.settings().head_bytes_max,
            target_bytes_max: 0,
            fields_max: RESPONSE_FIELDS_MAX,
        };
        let method = exchange.request.method;
        let timeouts = &self.routed.route.settings.timeouts;
        let client_read = self.around.listener_timeouts().body_read;
        let mut interims = 0;
        poll_fn(|cx| {
            let mut step = HeadStep {
                upstream,
                downstream,
                exchange,
                upload,
                deadline,
                limits,
                method,
                interims: &mut interims,
            };
            let max = self.routed.route.settings.body_bytes_max;
            match step.poll(max, cx) {
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {}
            }
            let (waiting, time) = match upload.waiting() {
                Some(Waiting::Client) => (Waiting::Client, client_read),
                Some(waiting) => (waiting, timeouts.between_bytes),
                None => (Waiting::FirstByte, timeouts.first_byte),
            };
            deadline
                .poll(downstream.slot(), waiting, time, upload.take_progress(), cx)
                .map(|late| Err(HeadFailure::Late(late)))
        })
        .await
    }
}

/// Why no response head came in one attempt.
enum HeadFailure {
    Client(Refusal),
    Late(super::transfer::Late),
    Upstream(HeadError),
}

/// What is moved on while the head is awaited.
struct HeadStep<'s, 'd> {
    upstream: &'s mut Upstream,
    downstream: &'s mut Downstream<'d>,
    exchange: &'s mut Exchange,
    upload: &'s mut Upload,
    deadline: &'s mut Deadline,
    limits: HeadLimits,
    method: Method,
    interims: &'s mut u32,
}

impl HeadStep<'_, '_> {
    fn poll(
        &mut self,
        body_max: Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Body, HeadFailure>> {
        match self.upload.poll(self.downstream, self.upstream, self.exchange, body_max, cx) {
            // A server that stops reading may have answered already: its answer is awaited.
            Poll::Ready(UploadEnd::Done | UploadEnd::UpstreamClosed) | Poll::Pending => {}
            Poll::Ready(UploadEnd::Client(refusal)) => {
                return Poll::Ready(Err(HeadFailure::Client(refusal)));
            }
        }
        loop {
            let response = &mut self.exchange.response;
            match self.upstream.poll_head(self.method, &self.limits, response, cx) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(HeadFailure::Upstream(error))),
                Poll::Ready(Ok(body)) if self.exchange.response.status >= 200 => {
                    self.stamp_head();
                    return Poll::Ready(Ok(body));
                }
                Poll::Ready(Ok(body)) if self.exchange.response.status == 101 => {
                    self.stamp_head();
                    return Poll::Ready(Ok(body));
                }
                Poll::Ready(Ok(_)) => {
                    *self.interims += 1;
                    if *self.interims > INTERIMS_MAX {
                        let error = HeadFailure::Upstream(HeadError::Interims);
                        return Poll::Ready(Err(error));
                    }
                    self.upload.note_progress();
                    self.downstream.interim(&self.exchange.request, &self.exchange.response);
                }
            }
        }
        if self.downstream.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(HeadFailure::Client(Refusal::ClientClosed)));
        }
        // Interim responses that the client does not take wait for the final one.
        let _ = self.downstream.poll_flush(cx);
        Poll::Pending
    }

    fn stamp_head(&mut self) {
        let now = Stamp::now();
        let stamps = &mut self.exchange.record.stamps;
        stamps.first_byte_up = now;
        stamps.head_up = now;
        self.deadline.pause();
    }
}

/// How the request body is framed towards the server.
fn request_body(downstream: &Downstream<'_>, exchange: &Exchange) -> Body {
    if downstream.body_is_done() && exchange.held.is_none() {
        return Body::None;
    }
    match framing::content_length(&exchange.request.headers) {
        Ok(Some(length)) => Body::Length(length),
        Ok(None) | Err(_) => Body::Chunked,
    }
}

/// What a failed attempt means.
fn failed(error: HeadFailure, reused: bool, written: bool) -> FetchError {
    let (failure, refusal) = match error {
        HeadFailure::Client(refusal) => return FetchError::Client(refusal),
        HeadFailure::Late(late) => match late.refusal() {
            refusal @ (Refusal::FirstByteLate | Refusal::UpstreamWriteLate) => {
                (Failure::FirstByteTimeout, refusal)
            }
            refusal => return FetchError::Client(refusal),
        },
        HeadFailure::Upstream(HeadError::Closed) => {
            let failure = match (reused, written) {
                (true, true) => Failure::StaleWritten,
                (true, false) => Failure::StaleUnwritten,
                (false, _) => Failure::Reset,
            };
            (failure, Refusal::UpstreamClosed)
        }
        HeadFailure::Upstream(HeadError::NotProcessed) => {
            (Failure::NotProcessed, Refusal::UpstreamClosed)
        }
        HeadFailure::Upstream(HeadError::Interims) => {
            (Failure::InvalidResponse, Refusal::UpstreamInterims)
        }
        HeadFailure::Upstream(HeadError::Broken) => (Failure::Reset, Refusal::UpstreamBroken),
        HeadFailure::Upstream(HeadError::Invalid(error)) => {
            (Failure::InvalidResponse, Refusal::UpstreamInvalid(error))
        }
        HeadFailure::Upstream(HeadError::Http2(reason)) => {
            (Failure::Reset, Refusal::UpstreamHttp2(reason))
        }
    };
    FetchError::Failed(Failed { failure, refusal })
}

fn connect_failed(error: ConnectError) -> Failed {
    let (failure, refusal) = match error {
        ConnectError::AtLimit => (Failure::AtLimit, Refusal::PoolLate),
        ConnectError::Io(error) => {
            tracing::debug!(%error, "a server refused a connection");
            (Failure::ConnectRefused, Refusal::Connect)
        }
        ConnectError::Late => (Failure::ConnectTimeout, Refusal::ConnectLate),
        ConnectError::Tls(reason) => (Failure::Tls, Refusal::UpstreamTls(reason)),
        ConnectError::Http2(reason) => (Failure::Tls, Refusal::UpstreamHttp2(reason)),
    };
    Failed { failure, refusal }
}
