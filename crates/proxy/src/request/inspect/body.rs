//! The request's body, read for the engine and held back until it may go on.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tidegate_http::field::Known;
use tidegate_http::framing::{self, Expectation};
use tidegate_telemetry::Stamp;
use tidegate_waf::body::End;
use tidegate_waf::inspection::{Inspection, Mode};
use tidegate_waf::seclang::setting::{LimitAction, Switch};

use super::{Exchange, Stopped, phase};
use crate::connection::Downstream;
use crate::connection::body::More;
use crate::inspection::contain;
use crate::inspection::held::Held;
use crate::request::route::Routed;
use crate::request::transfer::{Deadline, Progress, Waiting, poll_body};
use crate::request::{Refusal, Surroundings};

/// Reads the body as far as rules want it. What was read lies in the exchange afterwards.
pub(super) async fn take(
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    routed: &Routed<'_>,
) -> Result<(), Stopped> {
    let Some(inspecting) = exchange.inspecting.as_deref_mut() else { return Ok(()) };
    let Some(inspection) = &mut inspecting.inspection else { return Ok(()) };
    let unread = downstream.body_is_done()
        || inspecting.mode == Mode::Off
        || inspection.wants_request_body() == Switch::Off;
    if unread {
        inspection.request_body_end(End::Complete);
        return Ok(());
    }
    let limit = inspection.request_body_limit();
    let length = framing::content_length(&exchange.request.headers).unwrap_or(None);
    if limit.1 == LimitAction::Reject && length.is_some_and(|length| length > limit.0) {
        return Err(Refusal::InspectionLimit.into());
    }
    invite(downstream, exchange).await?;
    let settings = &routed.route.settings;
    let memory = around.plan.waf.body_memory_bytes_max;
    let is_coded = exchange.request.headers.has(Known::ContentEncoding);
    let mut reading = Reading {
        held: Held::new(memory),
        limit,
        deadline: Deadline::new(&settings.timeouts, exchange.record.stamps.head_in),
        body_max: settings.body_bytes_max,
        run_bytes_max: if is_coded { CODED_RUN_BYTES } else { usize::MAX },
    };
    let end = reading.run(around, downstream, exchange).await;
    exchange.held = Some(reading.held);
    let end = end?;
    let Some(inspecting) = exchange.inspecting.as_deref_mut() else { return Ok(()) };
    let Some(inspection) = &mut inspecting.inspection else { return Ok(()) };
    if contain(|| inspection.request_body_end(end)).is_err() {
        inspecting.inspection = None;
        phase::lost(exchange)?;
    }
    Ok(())
}

/// Tells a client that waits to be asked for its body that it may send it. The server is then not
/// asked again (RFC 9110, section 10.1.1).
async fn invite(downstream: &mut Downstream<'_>, exchange: &mut Exchange) -> Result<(), Stopped> {
    if framing::expects_continue(&exchange.request) != Ok(Expectation::Continue) {
        return Ok(());
    }
    exchange.request.headers.remove(Known::Expect);
    exchange.response.clear();
    exchange.response.status = 100;
    downstream.interim(&exchange.request, &exchange.response);
    let sent = poll_fn(|cx| downstream.poll_flush(cx)).await;
    sent.map_err(|_| Refusal::ClientClosed.into())
}

/// A body that is being read.
struct Reading {
    held: Held,
    /// How many bytes are looked at, and what is done with a body that has more.
    limit: (u64, LimitAction),
    deadline: Deadline,
    /// How many bytes the route takes.
    body_max: Option<u64>,
    /// How many bytes are fed at once.
    run_bytes_max: usize,
}

/// Bytes of a body with a content coding that are decoded at once. They may come to two hundred times
/// as many.
const CODED_RUN_BYTES: usize = 4096;

/// Why reading stands still.
enum Event {
    /// Enough has come together to go to a file.
    Spool,
    /// What was taken may have been a lot once decoded; others have their turn.
    Yield,
    End(End),
}

impl Reading {
    async fn run(
        &mut self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Result<End, Stopped> {
        let timeout = around.listener_timeouts().body_read;
        loop {
            let event = poll_fn(|cx| {
                let mut progress = Progress::None;
                loop {
                    match poll_body(downstream, &exchange.record, self.body_max, cx) {
                        Poll::Ready(Ok(More::Data)) => progress = Progress::Made,
                        Poll::Ready(Ok(More::End)) => {
                            return Poll::Ready(Ok(Event::End(End::Complete)));
                        }
                        Poll::Ready(Err(refusal)) => return Poll::Ready(Err(refusal.into())),
                        Poll::Pending => break,
                    }
                    match self.take(downstream, exchange) {
                        Ok(None) => {}
                        Ok(Some(event)) => return Poll::Ready(Ok(event)),
                        Err(stopped) => return Poll::Ready(Err(stopped)),
                    }
                }
                self.deadline
                    .poll(downstream.slot(), Waiting::Client, timeout, progress, cx)
                    .map(|late| Err(Stopped::Refused(late.refusal())))
            });
            match event.await? {
                Event::Spool => {
                    self.spool().await?;
                    write_uploads(exchange).await?;
                }
                Event::Yield => tokio::task::yield_now().await,
                Event::End(end) => {
                    if self.held.is_spooled() {
                        self.spool().await?;
                    }
                    write_uploads(exchange).await?;
                    if end == End::Complete {
                        exchange.record.stamps.body_in_done = Stamp::now();
                    }
                    return Ok(end);
                }
            }
        }
    }

    /// Takes what is at hand.
    fn take(
        &mut self,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Result<Option<Event>, Stopped> {
        let data = downstream.data();
        let room = self.limit.0.saturating_sub(self.held.len());
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if data.len() > room && self.limit.1 == LimitAction::Reject {
            return Err(Refusal::InspectionLimit.into());
        }
        let n = data.len().min(room).min(self.run_bytes_max);
        let data = &data[..n];
        if let Some(inspecting) = exchange.inspecting.as_deref_mut() {
            inspecting.weight += n as u64;
            if let Some(inspection) = &mut inspecting.inspection
                && contain(|| inspection.request_body(data)).is_err()
            {
                inspecting.inspection = None;
                phase::lost(exchange)?;
            }
        }
        self.held.push(data);
        let over = downstream.data().len() > room;
        downstream.consume(n);
        exchange.record.bytes.body_in += n as u64;
        let uploads_are_due = exchange
            .inspecting
            .as_ref()
            .and_then(|inspecting| inspecting.inspection.as_ref())
            .is_some_and(Inspection::uploads_are_due);
        Ok(if over && n == room {
            Some(Event::End(End::Truncated))
        } else if self.held.is_due() || uploads_are_due {
            Some(Event::Spool)
        } else if n == self.run_bytes_max {
            Some(Event::Yield)
        } else {
            None
        })
    }

    async fn spool(&mut self) -> Result<(), Stopped> {
        self.held.spool().await.map_err(|error| not_spooled(&error))
    }
}

/// Writes the body's files to where rules find them, if some rule asks for that.
async fn write_uploads(exchange: &mut Exchange) -> Result<(), Stopped> {
    let inspecting = exchange.inspecting.as_deref_mut();
    let Some(inspection) = inspecting.and_then(|inspecting| inspecting.inspection.as_mut()) else {
        return Ok(());
    };
    let Some(mut uploads) = inspection.take_uploads() else { return Ok(()) };
    let writing = tokio::task::spawn_blocking(move || uploads.write().map(|()| uploads));
    let written = writing.await.map_err(io::Error::other).flatten();
    inspection.return_uploads(written.map_err(|error| not_spooled(&error))?);
    Ok(())
}

fn not_spooled(error: &io::Error) -> Stopped {
    tracing::error!(%error, "a request's body cannot be spooled");
    Refusal::Spool.into()
}
