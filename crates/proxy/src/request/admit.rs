//! Stop 3, admit: what a route lets in. The fair queue and the waiting room have their place here.

use tidegate_http::{Method, framing};

use super::answer::Answer;
use super::route::Routed;
use super::{Exchange, Refusal, Stop, Surroundings, purge};
use crate::connection::Downstream;
use crate::settings::{Action, Trace};

/// Checks a routed request against its route's limits and says what is to be done with it.
pub(super) fn admit<'p>(
    around: &Surroundings<'p>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    routed: Routed<'p>,
) -> Stop<'p> {
    let judged = judge(exchange, &routed);
    // Nothing was waited for since.
    exchange.record.stamps.admitted = exchange.record.stamps.routed;
    if around.worker.is_draining() {
        downstream.close_after();
    }
    if let Err(refusal) = judged {
        return Stop::Refuse(refusal);
    }
    if routed.route.settings.inspect.is_some() {
        return Stop::Inspect(routed);
    }
    serve(around, exchange, routed)
}

/// What is done with a request that was let in and not stopped.
pub(super) fn serve<'p>(
    around: &Surroundings<'p>,
    exchange: &Exchange,
    routed: Routed<'p>,
) -> Stop<'p> {
    match &routed.route.settings.action {
        Action::Group(_) => match &routed.route.settings.caching {
            Some(caching) if purge::asks(&exchange.request, caching) => Stop::Purge(routed),
            Some(_) => Stop::LookUp(routed),
            None => Stop::Fetch(routed),
        },
        Action::Answer { status, body, content_type } => {
            Stop::Answer(Answer::fixed(*status, content_type, body))
        }
        Action::Redirect { status, .. } => {
            Stop::Answer(Answer::redirect(*status, around, exchange, &routed))
        }
    }
}

fn judge(exchange: &Exchange, routed: &Routed<'_>) -> Result<(), Refusal> {
    let request = &exchange.request;
    let settings = &routed.route.settings;
    if request.method == Method::Trace && settings.trace == Trace::Refuse {
        return Err(Refusal::Trace);
    }
    framing::expects_continue(request).map_err(Refusal::Malformed)?;
    if let Some(max) = settings.body_bytes_max {
        let length = framing::content_length(&request.headers).unwrap_or(None);
        if length.is_some_and(|length| length > max) {
            return Err(Refusal::BodyTooLarge);
        }
    }
    Ok(())
}
