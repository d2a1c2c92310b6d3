//! The response's part of an inspection: phase 3 on its head, phase 4 on its body.
//!
//! A body that rules want is held back in memory, up to the engine's limit; what comes behind it
//! streams as ever. Others pass untouched.

use std::future::poll_fn;
use std::task::Poll;

use tidegate_http::framing::Body;
use tidegate_waf::inspection::{Extent, Inspection, Mode, ResponseHead};
use tidegate_waf::seclang::setting::Switch;
use tidegate_waf::variable::Phase;

use super::{Exchange, Stopped, phase};
use crate::connection::Downstream;
use crate::connection::body::More;
use crate::inspection::contain;
use crate::request::respond::{Fetched, broken};
use crate::request::transfer::{Progress, UploadEnd, Waiting};
use crate::request::{Refusal, Surroundings};
use crate::settings::Inspect;

/// Looks at a response. What of its body was taken for that comes back, to be sent first.
pub(in crate::request) async fn inspect(
    fetched: &mut Fetched<'_>,
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    inspect: &Inspect,
) -> Result<Vec<u8>, Stopped> {
    let Some(inspecting) = exchange.inspecting.as_deref_mut() else { return Ok(Vec::new()) };
    let Some(inspection) = &mut inspecting.inspection else { return Ok(Vec::new()) };
    let response = &exchange.response;
    let head =
        ResponseHead { status: response.status, protocol: response.version.name().as_bytes() };
    let fields = response.headers.iter().map(|field| (field.name, field.value));
    inspection.response_head(head, fields);
    inspecting.weight = 0;
    phase::run(around, downstream, exchange, inspect, Phase::ResponseHeaders).await?;
    if exchange.response.status == 101 {
        return Ok(Vec::new());
    }
    let mut taken = Vec::new();
    if wants_body(fetched, exchange) {
        taken = take(fetched, downstream, exchange).await?;
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
    fetched.deadline.pause();
    Ok(taken)
}

/// Whether the body is to be held back.
fn wants_body(fetched: &Fetched<'_>, exchange: &Exchange) -> bool {
    let Some(inspecting) = exchange.inspecting.as_deref() else { return false };
    let Some(inspection) = &inspecting.inspection else { return false };
    fetched.body != Body::None
        && inspecting.mode != Mode::Off
        && inspection.wants_response_body() == Switch::On
}

/// Takes the body, as far as the engine's limit. What is left of the request goes up meanwhile.
async fn take(
    fetched: &mut Fetched<'_>,
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
    let route = &fetched.routed.route.settings;
    let mut taken = Vec::new();
    let end = poll_fn(|cx| {
        let mut progress = Progress::None;
        if !fetched.upload.has_ended() {
            if let Poll::Ready(UploadEnd::Client(refusal)) = fetched.upload.poll(
                downstream,
                &mut fetched.upstream,
                exchange,
                route.body_bytes_max,
                cx,
            ) {
                return Poll::Ready(Err(refusal));
            }
            progress = fetched.upload.take_progress();
        }
        while taken.len() < limit {
            match fetched.upstream.poll_body(cx) {
                Poll::Ready(Ok(More::Data)) => {
                    let data = fetched.upstream.data();
                    let n = data.len().min(limit - taken.len());
                    taken.extend_from_slice(&data[..n]);
                    fetched.upstream.consume(n);
                    progress = Progress::Made;
                }
                Poll::Ready(Ok(More::End)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(&error))),
                Poll::Pending => {
                    if downstream.poll_gone(cx).is_ready() {
                        return Poll::Ready(Err(Refusal::ClientClosed));
                    }
                    let time = route.timeouts.between_bytes;
                    return fetched
                        .deadline
                        .poll(downstream.slot(), Waiting::UpstreamRead, time, progress, cx)
                        .map(|late| Err(late.refusal()));
                }
            }
        }
        Poll::Ready(Ok(()))
    });
    end.await?;
    Ok(taken)
}
