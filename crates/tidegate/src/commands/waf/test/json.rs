//! What became of a request, as one JSON object.

use serde_json::{Value, json};
use tidegate_waf::inspection::{Effect, MatchedRule};
use tidegate_waf::seclang::action::Severity;

use super::super::exclusion::Line;
use super::super::shown;
use super::super::subject::Subject;
use super::super::trial::{Decision, How, Rules, Unseen};
use super::{Told, Tried};

/// All of it.
pub(super) fn tell(tried: &Tried<'_>, told: Told) -> String {
    let outcome = &tried.outcome;
    let site = tried.rules.site(tried.place);
    let (status, location) = match &outcome.decision {
        Decision::Stopped(stop, _) => match &stop.how {
            How::Deny(status) => (Some(status), None),
            How::Redirect(status, to) => (Some(status), Some(shown(to))),
            How::Drop => (None, None),
        },
        Decision::Pass | Decision::Would(..) | Decision::Challenged => (None, None),
    };
    let phase = match &outcome.decision {
        Decision::Stopped(_, phase) | Decision::Would(_, phase) => Some(phase.number()),
        Decision::Pass | Decision::Challenged => None,
    };
    let rules = outcome.rules.iter();
    let rules: Vec<Value> = rules
        .filter(|rule| told == Told::All || rule.logged.log || rule.effect != Effect::Noted)
        .map(rule)
        .collect();
    let lines = |lines: &[Line]| lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
    page(&json!({
        "request": tried.subject.title(),
        "id": tried.subject.id,
        "remarks": tried.subject.remarks,
        "site": site.name,
        "route": site.routes[tried.place.route].name,
        "mode": format!("{:?}", outcome.mode).to_lowercase(),
        "verdict": outcome.decision.word(),
        "rule": outcome.decision.rule(),
        "phase": phase,
        "status": status,
        "location": location,
        "score": { "inbound": outcome.inbound.score, "outbound": outcome.outbound.score },
        "threshold": { "inbound": outcome.inbound.from, "outbound": outcome.outbound.from },
        "rules": rules,
        "exclude": tried.proposal.as_ref().map(|proposal| lines(&proposal.lines)),
        "exclude_by_tag": tried.proposal.as_ref()
            .and_then(|proposal| proposal.tagged.as_deref().map(lines)),
    }))
}

/// Why no rule looks at the request.
pub(super) fn unseen(subject: &Subject, rules: &Rules, unseen: &Unseen) -> String {
    let (site, route, why) = match unseen {
        Unseen::Answered(words) => (None, None, words.clone()),
        Unseen::Off(place) => {
            let site = rules.site(*place);
            let route = &site.routes[place.route].name;
            (Some(&site.name), Some(route), "the firewall is off here".to_owned())
        }
    };
    page(&json!({
        "request": subject.title(),
        "id": subject.id,
        "remarks": subject.remarks,
        "site": site,
        "route": route,
        "verdict": Value::Null,
        "why": why,
    }))
}

fn page(value: &Value) -> String {
    format!("{value:#}\n")
}

fn rule(matched: &MatchedRule) -> Value {
    let meta = &matched.rule;
    let traced = matched.traced.as_deref();
    let hits = traced.map_or(&[][..], |traced| &traced.hits);
    let changes = traced.map_or(&[][..], |traced| &traced.changes);
    json!({
        "id": meta.id,
        "phase": matched.phase.number(),
        "message": shown(&matched.message),
        "data": shown(&matched.data),
        "severity": meta.severity.map(Severity::name),
        "tags": meta.tags,
        "file": meta.place.file,
        "line": meta.place.line,
        "operator": meta.operator,
        "effect": match matched.effect {
            Effect::Noted => "noted",
            Effect::Decided => "stopped",
            Effect::WouldDecide => "would_stop",
        },
        "matches": hits.iter().map(|hit| json!({
            "link": hit.link,
            "variable": shown(&hit.variable),
            "value": shown(&hit.value),
            "transformations": hit.transformations,
            "transformed": shown(&hit.transformed),
        })).collect::<Vec<_>>(),
        "changes": changes.iter().map(|change| json!({
            "variable": format!("tx.{}", shown(&change.name)),
            "before": change.before.as_deref().map(shown),
            "after": change.after.as_deref().map(shown),
        })).collect::<Vec<_>>(),
    })
}
