//! Stop 4, inspect: the WAF looks at the request before anything goes on.
//!
//! Phase 1 sees the head. If rules want the body, it is read, fed to the engine as it comes and held
//! back ([`Held`]); phase 2 sees both. What is let through goes on exactly as it came. The same
//! inspection sees the response ([`response`]) and is ended at stop 8; between the stops it lies in
//! the exchange, as an [`Inspecting`].
//!
//! A request whose route is not inspected never comes here. One that was refused before comes at its
//! very end, for the log's sake ([`refused`]).

mod audit;
mod body;
mod challenge;
mod phase;
mod recorded;
pub(super) mod refused;
pub(super) mod response;

pub(super) use audit::Audit;
pub(super) use recorded::Recorded;

use tidegate_http::field;
use tidegate_telemetry::log::{RuleEffect, RuleView};
use tidegate_telemetry::record::{WafMode, WafVerdict};
use tidegate_telemetry::{Outcome, Side, Stamp};
use tidegate_waf::inspection::{Connection, Effect, Inspection, MatchedRule, Mode};
use tidegate_waf::variable::Phase;

use super::answer::Answer;
use super::route::Routed;
use super::{Exchange, Refusal, Stop, Surroundings, admit};
use crate::connection::Downstream;
use crate::inspection::view::{self, NOBODY};
use crate::settings::Inspect;

/// A request's inspection on its way from stop to stop.
pub(crate) struct Inspecting {
    inspection: Option<Inspection>,
    /// Bytes of the message that the next phase looks at, to judge what it may cost.
    weight: u64,
    /// What is done about matches, as of the last phase.
    mode: Mode,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Phases are run.
    Active,
    /// The pool was full and the route lets such requests pass: no further phase is run.
    Skipped,
}

impl std::fmt::Debug for Inspecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspecting").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Why a request does not go on.
pub(super) enum Stopped {
    /// It is answered with an error.
    Refused(Refusal),
    /// It is answered with a redirect.
    Redirected { status: u16, location: Vec<u8> },
    /// Its connection, or its stream, is closed without an answer.
    Dropped,
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Stopped {
    /// The stop that follows.
    pub(super) fn stop<'p>(
        self,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Stop<'p> {
        match self {
            Self::Refused(refusal) => Stop::Refuse(refusal),
            Self::Redirected { status, location } => {
                exchange.record.end(Outcome::Denied, Side::Downstream, "waf_redirect");
                Stop::Answer(Answer::redirect_to(status, location, exchange))
            }
            Self::Dropped => {
                exchange.record.end(Outcome::Denied, Side::Downstream, "waf_drop");
                downstream.abort();
                Stop::Finish
            }
        }
    }
}

/// Looks at the request; what is not stopped goes on to be served.
pub(super) async fn inspect<'p>(
    around: &Surroundings<'p>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    routed: Routed<'p>,
) -> Stop<'p> {
    let Some(inspect) = &routed.route.settings.inspect else {
        return admit::serve(around, exchange, routed);
    };
    if challenge::under_pressure(around, exchange, &routed, inspect) {
        exchange.record.stamps.inspected = Stamp::now();
        return Stop::Answer(challenge::answer(around, exchange, &routed, inspect));
    }
    let judged = request(around, downstream, exchange, &routed, inspect).await;
    exchange.record.stamps.inspected = Stamp::now();
    match judged {
        Ok(()) if challenge::for_score(around, exchange, &routed, inspect) => {
            Stop::Answer(challenge::answer(around, exchange, &routed, inspect))
        }
        Ok(()) => admit::serve(around, exchange, routed),
        Err(stopped) => stopped.stop(downstream, exchange),
    }
}

async fn request(
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    routed: &Routed<'_>,
    inspect: &Inspect,
) -> Result<(), Stopped> {
    let protocol = exchange.record.protocol.as_str();
    let mut inspection = begin(around, exchange, inspect, protocol);
    if let Some(outside) = &around.worker.facilities().outside {
        inspection.set_outside(std::sync::Arc::clone(outside));
    }
    keep(exchange, inspection);
    phase::run(around, downstream, exchange, inspect, Phase::RequestHeaders).await?;
    body::take(around, downstream, exchange, routed).await?;
    phase::run(around, downstream, exchange, inspect, Phase::RequestBody).await
}

/// Begins the inspection with what is known of the connection, and the request's head.
fn begin(
    around: &Surroundings<'_>,
    exchange: &mut Exchange,
    inspect: &Inspect,
    protocol: &str,
) -> Inspection {
    let worker = around.worker;
    let context = worker.facilities().context.clone();
    let mut inspection = Inspection::begin(&inspect.policy, context, &mut worker.inspector());
    let every = u64::from(around.plan.waf.rule_times);
    if every > 0 && exchange.record.id.0.is_multiple_of(every) {
        inspection.measure_rules(|| Stamp::now().as_nanos());
    }
    let client = around.client;
    inspection.connection(&Connection {
        client: exchange.client_addr.unwrap_or(NOBODY),
        client_port: client.port,
        server: client.local.map_or(NOBODY, |local| local.ip()),
        server_port: client.local.map_or(0, |local| local.port()),
    });
    let id = exchange.record.id.hex();
    let scratch = &mut exchange.scratch;
    view::request_head(&mut inspection, &exchange.request, protocol, &id, scratch);
    inspection
}

/// Leaves an inspection in the exchange, for the stops to come.
fn keep(exchange: &mut Exchange, inspection: Inspection) {
    let mode = inspection.mode();
    exchange.record.waf.mode = match mode {
        Mode::Off => WafMode::Off,
        Mode::Detect => WafMode::Detect,
        Mode::Block => WafMode::Block,
    };
    exchange.record.waf.verdict = WafVerdict::Pass;
    exchange.inspecting = Some(Box::new(Inspecting {
        weight: exchange.record.bytes.head_in,
        inspection: Some(inspection),
        mode,
        state: State::Active,
    }));
}

/// Runs phase 5 and takes into the record what the inspection came to. Stop 8 logs what it leaves and
/// calls [`end`].
pub(super) async fn finish(
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    inspect: &Inspect,
) {
    // Nothing can be stopped any more, whatever this phase says.
    let _ = phase::run(around, downstream, exchange, inspect, Phase::Logging).await;
    let Some(inspection) = exchange.inspecting.as_ref().and_then(|it| it.inspection.as_ref())
    else {
        return;
    };
    let waf = &mut exchange.record.waf;
    waf.score = score(inspection);
    let matched = inspection.matched_rules();
    waf.matches =
        u32::try_from(matched.iter().filter(|rule| rule.logged.log).count()).unwrap_or(u32::MAX);
    let would = matched.iter().find(|rule| rule.effect == Effect::WouldDecide);
    if let (Some(would), WafVerdict::Pass) = (would, waf.verdict) {
        waf.verdict = WafVerdict::WouldDeny;
        waf.rule = would.rule.id;
    }
    if let Some(counts) = &around.plan.rule_counts {
        for rule in matched {
            counts.add(rule.rule.id);
        }
        for (rule, time) in inspection.rule_times() {
            counts.took(rule, time, around.plan.waf.rule_times);
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            if nanos > waf.slowest_nanos {
                (waf.slowest_rule, waf.slowest_nanos) = (rule, nanos);
            }
        }
    }
}

/// The inbound anomaly score so far, as version 4 or version 3 of the Core Rule Set keeps it.
fn score(inspection: &Inspection) -> u32 {
    let score = ["blocking_inbound_anomaly_score", "anomaly_score"]
        .into_iter()
        .find_map(|name| inspection.tx_number(name));
    score.map_or(0, |score| u32::try_from(score.max(0)).unwrap_or(u32::MAX))
}

/// The rules that matched and are to be logged.
pub(super) fn rules(inspecting: Option<&Inspecting>) -> Vec<RuleView<'_>> {
    let inspection = inspecting.and_then(|inspecting| inspecting.inspection.as_ref());
    let matched = inspection.map_or(&[][..], Inspection::matched_rules);
    matched.iter().filter(|rule| rule.logged.log).map(view).collect()
}

fn view(matched: &MatchedRule) -> RuleView<'_> {
    let rule = &matched.rule;
    RuleView {
        id: rule.id,
        file: &rule.place.file,
        line: rule.place.line,
        phase: matched.phase.number(),
        message: &matched.message,
        data: &matched.data,
        severity: rule.severity.map_or("", |severity| severity.name()),
        tags: &rule.tags,
        version: &rule.version,
        variable: &matched.variable,
        value: &matched.value,
        operator: &rule.operator,
        effect: match matched.effect {
            Effect::Noted => RuleEffect::Noted,
            Effect::Decided => RuleEffect::Stopped,
            Effect::WouldDecide => RuleEffect::WouldStop,
        },
    }
}

/// Ends the inspection; its memory is used again.
pub(super) fn end(around: &Surroundings<'_>, exchange: &mut Exchange) {
    if let Some(mut inspection) =
        exchange.inspecting.take().and_then(|inspecting| inspecting.inspection)
    {
        // Their files go with them.
        if let Some(uploads) = inspection.take_uploads() {
            tokio::task::spawn_blocking(move || drop(uploads));
        }
        inspection.end(&mut around.worker.inspector());
    }
}

/// A redirect's target as a rule has put it together, or a refusal where it is no field value.
fn redirected(status: u16, location: Vec<u8>) -> Stopped {
    if field::is_value(&location) && !location.is_empty() {
        Stopped::Redirected { status, location }
    } else {
        Stopped::Refused(Refusal::Denied(403))
    }
}
