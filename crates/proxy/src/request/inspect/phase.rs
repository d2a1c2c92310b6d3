//! One phase of an inspection: where it runs, and what its verdict means.
//!
//! A phase begins on the worker's loop, if little is to be looked at, and may do a millisecond's work
//! there. What is larger, and what asks beyond the request, is the inspection pool's.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_telemetry::Stamp;
use tidegate_telemetry::record::WafVerdict;
use tidegate_waf::inspection::{Inspection, Mode, Moment, Step, Verdict, Work};
use tidegate_waf::variable::Phase;
use tokio::sync::oneshot;

use super::{Exchange, State, Stopped, redirected};
use crate::connection::Downstream;
use crate::inspection::{self, Done, Job, Lost, NoRoom};
use crate::request::{Refusal, Surroundings};
use crate::settings::{Busy, Inspect};

/// What a phase may do on a worker's loop: about a millisecond's work.
pub(super) const IN_PLACE: Work = Work(1 << 20);

/// How long a request waits for room in the pool's queue, where its route lets it wait.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(10);

/// Runs a phase and does what its verdict says.
pub(super) async fn run(
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    inspect: &Inspect,
    phase: Phase,
) -> Result<(), Stopped> {
    let Some(inspecting) = exchange.inspecting.as_deref_mut() else { return Ok(()) };
    if inspecting.state == State::Skipped {
        return Ok(());
    }
    let Some(inspection) = inspecting.inspection.take() else { return Ok(()) };
    let elapsed = exchange.record.stamps.head_in.elapsed();
    let moment = Moment {
        epoch_ms: around.worker.unix_millis(),
        elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    let job = Phased { inspect, phase, moment };
    let is_small = inspecting.weight < around.plan.waf.pool_from_bytes;
    let ran = if is_small && !inspect.waits(phase) {
        job.in_place(around, downstream, exchange, inspection).await?
    } else {
        job.in_pool(around, downstream, exchange, inspection).await?
    };
    let Some((inspection, verdict)) = ran else { return Ok(()) };
    put_back(exchange, inspection);
    judge(exchange, verdict)
}

/// A phase, and what it needs.
struct Phased<'p> {
    inspect: &'p Inspect,
    phase: Phase,
    moment: Moment,
}

/// A phase that was run; `None` if it was not, and the request goes on all the same.
pub(super) type Ran = Option<(Inspection, Verdict)>;

impl Phased<'_> {
    async fn in_place(
        &self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        inspection: Inspection,
    ) -> Result<Ran, Stopped> {
        let began = Stamp::now();
        let ran = {
            let mut inspector = around.worker.inspector();
            inspection::run(inspection, IN_PLACE, self.phase, self.moment, &mut inspector)
        };
        self.took(exchange, began.elapsed());
        match ran {
            Ok((inspection, Step::Done(verdict))) => Ok(Some((inspection, verdict))),
            Ok((inspection, Step::Paused)) => {
                self.in_pool(around, downstream, exchange, inspection).await
            }
            Err(Lost) => lost(exchange),
        }
    }

    /// Runs the phase, or the rest of it, in the pool.
    async fn in_pool(
        &self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        inspection: Inspection,
    ) -> Result<Ran, Stopped> {
        let pool = &around.worker.facilities().pool;
        let (reply, answer) = oneshot::channel();
        let (phase, moment) = (self.phase, self.moment);
        let job = Job { inspection, phase, moment, since: Stamp::now(), reply };
        if let Err(NoRoom(job)) = pool.offer(job) {
            let busy = self.busy(job.inspection.mode());
            around.worker.metrics().waf_busy(busy);
            match busy {
                Busy::Wait => {
                    downstream.slot().set(ROOM_WAIT_MAX);
                    let mut room = pin!(pool.submit(*job));
                    let waited = poll_fn(|cx| {
                        if room.as_mut().poll(cx).is_ready() {
                            return Poll::Ready(Ok(()));
                        }
                        if self.is_gone(downstream, cx) {
                            return Poll::Ready(Err(Refusal::ClientClosed));
                        }
                        downstream.slot().poll_expired(cx).map(|()| Err(Refusal::InspectionBusy))
                    });
                    waited.await?;
                }
                Busy::Pass => return Ok(skip(exchange, job.inspection)),
                Busy::Refuse => {
                    skip(exchange, job.inspection);
                    exchange.record.waf.verdict = WafVerdict::Refused;
                    return Err(Refusal::InspectionBusy.into());
                }
            }
        }
        let mut answer = pin!(answer);
        let done = poll_fn(|cx| {
            if let Poll::Ready(done) = answer.as_mut().poll(cx) {
                // A pool without threads, or a thread that ended, has lost it too.
                return Poll::Ready(Ok(done.unwrap_or(Err(Lost))));
            }
            if self.is_gone(downstream, cx) {
                return Poll::Ready(Err(Refusal::ClientClosed));
            }
            Poll::Pending
        });
        match done.await? {
            Ok(Done { inspection, verdict, waited, took }) => {
                self.took(exchange, took);
                exchange.record.waf.queued_nanos += nanos(waited);
                Ok(Some((inspection, verdict)))
            }
            Err(Lost) => lost(exchange),
        }
    }

    /// What is done if the pool is full.
    fn busy(&self, mode: Mode) -> Busy {
        match (self.inspect.busy, mode) {
            // Nobody waits for what is only told, and what only detects refuses nothing.
            _ if self.phase == Phase::Logging => Busy::Pass,
            (Busy::Refuse, Mode::Detect | Mode::Off) => Busy::Pass,
            (busy, _) => busy,
        }
    }

    /// Whether the client has given up. The last phase is for those who read logs.
    fn is_gone(&self, downstream: &mut Downstream<'_>, cx: &mut Context<'_>) -> bool {
        self.phase != Phase::Logging && downstream.poll_gone(cx).is_ready()
    }

    fn took(&self, exchange: &mut Exchange, time: Duration) {
        exchange.record.waf.phases_nanos[self.phase.index()] += nanos(time);
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn put_back(exchange: &mut Exchange, inspection: Inspection) {
    if let Some(inspecting) = exchange.inspecting.as_deref_mut() {
        inspecting.mode = inspection.mode();
        inspecting.inspection = Some(inspection);
    }
}

/// Lets the request go on without further phases; what has matched so far is still told.
fn skip(exchange: &mut Exchange, inspection: Inspection) -> Ran {
    put_back(exchange, inspection);
    if let Some(inspecting) = exchange.inspecting.as_deref_mut() {
        inspecting.state = State::Skipped;
    }
    exchange.record.waf.verdict = WafVerdict::Skipped;
    None
}

/// What a verdict means for the request.
fn judge(exchange: &mut Exchange, verdict: Verdict) -> Result<(), Stopped> {
    let waf = &mut exchange.record.waf;
    let (kind, rule, stopped) = match verdict {
        Verdict::Pass => return Ok(()),
        Verdict::Deny { status, rule } => {
            (WafVerdict::Deny, rule, Stopped::Refused(Refusal::Denied(status)))
        }
        Verdict::Drop { rule } => (WafVerdict::Drop, rule, Stopped::Dropped),
        Verdict::Redirect { status, location, rule } => {
            (WafVerdict::Redirect, rule, redirected(status, location))
        }
    };
    waf.verdict = kind;
    waf.rule = rule;
    Err(stopped)
}

/// The inspection has panicked: what blocks must not let pass what nobody has looked at.
pub(super) fn lost(exchange: &mut Exchange) -> Result<Ran, Stopped> {
    exchange.record.waf.verdict = WafVerdict::Failed;
    match exchange.inspecting.as_ref().map(|inspecting| inspecting.mode) {
        Some(Mode::Block) => Err(Stopped::Refused(Refusal::InspectionFailed)),
        Some(Mode::Detect | Mode::Off) | None => Ok(None),
    }
}
