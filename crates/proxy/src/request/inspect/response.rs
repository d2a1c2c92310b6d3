//! The response's part of an inspection: phase 3 on its head, phase 4 on its body.
//!
//! A body that rules want is held back in memory, up to the engine's limit; what comes behind it
//! streams as ever. Others pass untouched.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use tidegate_http::framing::Body;
use tidegate_waf::inspection::{Extent, Inspection, Mode, ResponseHead};
use tidegate_waf::seclang::setting::Switch;
use tidegate_waf::variable::Phase;

use super::{Exchange, Stopped, phase};
use crate::connection::Downstream;
use crate::connection::body::More;
use crate::inspection::contain;
use crate::request::respond::{Fetched, broken};
use crate::request::transfer::{UploadEnd, Waiting};
use crate::request::{Refusal, Surroundings};
use crate::settings::Inspect;

/// A response whose body can be looked at, wherever it comes from.
pub(in crate::request) trait Inspected {
    /// What is known of its length.
    fn body(&self) -> Body;

    /// Sees to it that there is data or its end is known, within the deadlines of its source.
    fn poll_more(
        &mut self,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<More, Refusal>>;

    /// The data that can be taken now.
    fn data(&self) -> &[u8];

    /// Takes data.
    fn consume(&mut self, n: usize);

    /// Forgets the present wait: the slot was used for something else.
    fn pause(&mut self);
}

/// Looks at a response. What of its body was taken for that comes back, to be sent first.
pub(in crate::request) async fn inspect(
    response: &mut impl Inspected,
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    inspect: &Inspect,
) -> Result<Vec<u8>, Stopped> {
    let Some(inspecting) = exchange.inspecting.as_deref_mut() else { return Ok(Vec::new()) };
    let Some(inspection) = &mut inspecting.inspection else { return Ok(Vec::new()) };
    let told = &exchange.response;
    let head = ResponseHead { status: told.status, protocol: told.version.name().as_bytes() };
    let fields = told.headers.iter().map(|field| (field.name, field.value));
    inspection.response_head(head, fields);
    inspecting.weight = 0;
    phase::run(around, downstream, exchange, inspect, Phase::ResponseHeaders).await?;
    if exchange.response.status == 101 {
        return Ok(Vec::new());
    }
    let mut taken = Vec::new();
    if wants_body(response, exchange) {
        taken = take(response, downstream, exchange).await?;
        let Some(inspecting) = exchange.inspecting.as_deref_mut() else { return Ok(taken) };
        let Some(inspection) = &mut inspecting.inspection else { return Ok(taken) };
        inspecting.weight = taken.len() as u64;
        match contain(|| {
            let _ = inspection.response_body(&taken);
            inspection.response_body_end()
        }) {
            Ok(Extent::Fits) => {}
            Ok(Extent::Exceeds) => return Err(Refusal::ResponseLimit.into()),
            Err(_) => {
                inspecting.inspection = None;
                phase::lost(exchange)?;
            }
        }
    }
    phase::run(around, downstream, exchange, inspect, Phase::ResponseBody).await?;
    response.pause();
    Ok(taken)
}

/// Whether the body is to be held back.
fn wants_body(response: &impl Inspected, exchange: &Exchange) -> bool {
    let Some(inspecting) = exchange.inspecting.as_deref() else { return false };
    let Some(inspection) = &inspecting.inspection else { return false };
    response.body() != Body::None
        && inspecting.mode != Mode::Off
        && inspection.wants_response_body() == Switch::On
}

/// Takes the body, as far as the engine's limit.
async fn take(
    response: &mut impl Inspected,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
) -> Result<Vec<u8>, Stopped> {
    let limit = exchange
        .inspecting
        .as_ref()
        .and_then(|inspecting| inspecting.inspection.as_ref())
        .map_or(0, Inspection::response_body_limit);
    // One byte more tells that there is more.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let mut taken = Vec::new();
    let end = poll_fn(|cx| {
        while taken.len() < limit {
            match ready!(response.poll_more(downstream, exchange, cx))? {
                More::Data => {
                    let data = response.data();
                    let n = data.len().min(limit - taken.len());
                    taken.extend_from_slice(&data[..n]);
                    response.consume(n);
                }
                More::End => break,
            }
        }
        Poll::Ready(Ok::<_, Refusal>(()))
    });
    end.await?;
    Ok(taken)
}

impl Inspected for Fetched<'_> {
    fn body(&self) -> Body {
        self.body
    }

    /// What is left of the request goes up meanwhile.
    fn poll_more(
        &mut self,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<More, Refusal>> {
        let route = &self.routed.route.settings;
        if !self.upload.has_ended() {
            let (upstream, max) = (&mut self.upstream, route.body_bytes_max);
            if let Poll::Ready(UploadEnd::Client(refusal)) =
                self.upload.poll(downstream, upstream, exchange, max, cx)
            {
                return Poll::Ready(Err(refusal));
            }
        }
        match self.upstream.poll_body(cx) {
            Poll::Ready(Ok(more)) => {
                // It has moved: the next wait is a new one.
                self.deadline.pause();
                return Poll::Ready(Ok(more));
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(&error))),
            Poll::Pending => {}
        }
        if downstream.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Refusal::ClientClosed));
        }
        let (time, progress) = (route.timeouts.between_bytes, self.upload.take_progress());
        self.deadline
            .poll(downstream.slot(), Waiting::UpstreamRead, time, progress, cx)
            .map(|late| Err(late.refusal()))
    }

    fn data(&self) -> &[u8] {
        self.upstream.data()
    }

    fn consume(&mut self, n: usize) {
        self.upstream.consume(n);
    }

    fn pause(&mut self) {
        self.deadline.pause();
    }
}
