//! What somebody should look at, the worst first.

use std::time::Duration;

use tidegate_proxy::plan::Plan;
use tidegate_proxy::upstream::Group;
use tidegate_proxy::upstream::standing::Fitness;
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::record::Side;

use super::super::shown::{percent, share, span};
use super::survey::{ContextView, Limit, Survey};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gravity {
    /// Requests fail because of it.
    Failing,
    /// They will, or some do.
    Near,
    /// Somebody wanted it so, and may have forgotten.
    Note,
}

impl Gravity {
    /// As in JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Gravity::Failing => "failing",
            Gravity::Near => "near",
            Gravity::Note => "note",
        }
    }
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) gravity: Gravity,
    pub(super) what: String,
}

/// From here on a limit is near.
const LIMIT_NEAR_PERCENT: u64 = 80;
/// So small a share of failures is the weather.
const FAULTS_PER_THOUSAND: u64 = 10;
const CERTIFICATE_NEAR: i64 = 7 * 86_400;
/// How many servers are named before the rest is only counted.
const NAMED_MAX: usize = 4;

pub(super) fn find(survey: &Survey, plan: &Plan, now: Stamp) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let mut say = |gravity, what: String| troubles.push(Trouble { gravity, what });
    for group in &plan.groups {
        servers(group, now, &mut say);
    }
    survey.limits.iter().for_each(|limit| near(limit, &mut say));
    faults(survey, &mut say);
    let minute = survey.minute();
    if minute.turned_away > 0 {
        let what =
            format!("{} connections were turned away in the last minute", minute.turned_away);
        say(Gravity::Failing, what);
    }
    if minute.gave_way > 0 {
        let what = format!(
            "{} idle connections gave way to new ones in the last minute: connections or open files \
             are scarce",
            minute.gave_way
        );
        say(Gravity::Near, what);
    }
    for certificate in &survey.certificates {
        let names = certificate.names.join(", ");
        match certificate.left_seconds {
            ..=0 => say(Gravity::Failing, format!("the certificate for {names} has ended")),
            left @ 1..CERTIFICATE_NEAR => {
                let left = span(Duration::from_secs(left.unsigned_abs()));
                say(Gravity::Near, format!("the certificate for {names} ends in {left}"));
            }
            _ => {}
        }
    }
    for (name, log) in &survey.logs {
        if log.dropped > 0 {
            let what = format!(
                "access log {name}: {} lines were dropped since the start, its target did not keep up",
                log.dropped
            );
            say(Gravity::Near, what);
        }
    }
    context(&survey.context, &mut say);
    if let Some(failed) = &survey.failed_reload {
        let ago = span(failed.at.elapsed());
        say(Gravity::Near, format!("the last reload, {ago} ago, was refused: {}", failed.reason));
    }
    troubles.sort_by_key(|trouble| trouble.gravity);
    troubles
}

fn servers(group: &Group, now: Stamp, say: &mut impl FnMut(Gravity, String)) {
    let members = group.members();
    let (mut fit, mut unfit, mut draining) = (0, Vec::new(), Vec::new());
    for member in members.list() {
        let server = &member.server;
        match server.standing().fitness(now) {
            Fitness::Fit => fit += 1,
            Fitness::Down => unfit.push(format!("{} down", server.name())),
            Fitness::Ejected => unfit.push(format!("{} ejected", server.name())),
            Fitness::Draining | Fitness::Removed => draining.push(server.name().to_owned()),
        }
    }
    let (name, all) = (group.name(), members.list().len());
    let unresolved: Vec<_> = group
        .names()
        .filter(|(position, _)| !group.is_resolved(*position))
        .map(|(_, name)| name.to_owned())
        .collect();
    if !unresolved.is_empty() {
        let gravity = if fit == 0 { Gravity::Failing } else { Gravity::Near };
        say(gravity, format!("{name}: {} does not resolve", named(unresolved)));
    }
    if fit == 0 && all > 0 {
        let left_out = unfit.into_iter().chain(draining.iter().map(|it| format!("{it} draining")));
        let what = format!("{name}: no server is fit to be asked: {}", named(left_out.collect()));
        say(Gravity::Failing, what);
        return;
    }
    if !unfit.is_empty() {
        say(Gravity::Near, format!("{name}: {} of {all} servers: {}", unfit.len(), named(unfit)));
    }
    if !draining.is_empty() {
        say(Gravity::Note, format!("{name}: draining: {}", named(draining)));
    }
}

fn context(context: &ContextView, say: &mut impl FnMut(Gravity, String)) {
    let counters = &context.counters;
    if counters.evicted > 0 {
        let what = format!(
            "context: {} variables were forgotten before their time since the start: a full store \
             evicts what would expire soonest; raise `entries_max` or `memory_max`",
            counters.evicted
        );
        say(Gravity::Near, what);
    }
    if let Some(sync) = context.sync.as_ref().filter(|sync| !sync.connected) {
        let what = format!(
            "context: not shared with other gates for {}: {}: {}",
            span(sync.lag),
            sync.server,
            sync.error.as_deref().unwrap_or("not connected yet")
        );
        say(Gravity::Failing, what);
    }
    if counters.batch_failures > 0 {
        let what = format!(
            "context: {} batches could not be written to disk since the start, and {} variables wait",
            counters.batch_failures, counters.unwritten
        );
        say(Gravity::Near, what);
    }
}

fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let named = names.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

fn near(limit: &Limit, say: &mut impl FnMut(Gravity, String)) {
    let used = percent(limit.used, limit.max);
    if used >= LIMIT_NEAR_PERCENT {
        let gravity = if limit.used >= limit.max { Gravity::Failing } else { Gravity::Near };
        say(gravity, format!("{}: {used} % used; at the limit {}", limit.what, limit.then));
    }
}

fn faults(survey: &Survey, say: &mut impl FnMut(Gravity, String)) {
    let minute = survey.minute();
    let causes =
        [(Side::Upstream, "because of servers"), (Side::Gate, "because of the gate itself")];
    for (side, because) in causes {
        let faults = minute.faults_of(side);
        if faults.saturating_mul(1000) > minute.requests.saturating_mul(FAULTS_PER_THOUSAND) {
            let share = share(faults, minute.requests);
            let what = format!("{share} of the requests of the last minute failed {because}");
            say(Gravity::Failing, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_of_before_it_is_reached() {
        let check = |used, expected: Option<Gravity>| {
            let limit = Limit { what: "open files".into(), used, max: 1000, then: "it ends" };
            let mut said = None;
            near(&limit, &mut |gravity, _| said = Some(gravity));
            assert_eq!(said, expected, "{used}");
        };
        check(0, None);
        check(799, None);
        check(800, Some(Gravity::Near));
        check(999, Some(Gravity::Near));
        check(1000, Some(Gravity::Failing));
    }

    #[test]
    fn few_names_are_told_and_the_rest_counted() {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect();
        assert_eq!(named(names(2)), "0, 1");
        assert_eq!(named(names(6)), "0, 1, 2, 3 and 2 more");
    }
}
