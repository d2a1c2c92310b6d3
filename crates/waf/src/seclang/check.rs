//! What a whole rule set must fulfil: checks over a document that need no compiler.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use super::action::Action;
use super::control::Control;
use super::diagnostic::{Code, Diagnostic, Report};
use super::document::{Directive, Document};
use super::location::{Located, Location};
use super::read::shown;
use super::rule::{Rule, Target, TargetKind, Test};
use super::suggestion::did_you_mean;
use crate::variable::Phase;

/// With how many markers a misspelt one is compared.
const CANDIDATES_MAX: usize = 1_000;

/// Checks the document.
pub(super) fn check(document: &Document, report: &mut Report) {
    let index = Index::new(document, report);
    let mut defaults: HashMap<Phase, &Location> = HashMap::new();
    for (at, directive) in document.directives.iter().enumerate() {
        if report.is_full() {
            break;
        }
        match &directive.value {
            Directive::Rule(rule) => {
                known_variables(rule, report);
                timely_controls(rule, report);
                index.skips(rule, at, report);
            }
            Directive::DefaultAction { phase, .. } => {
                if let Some(before) = defaults.insert(*phase, &directive.location) {
                    let message = format!(
                        "this replaces the default of phase {phase} that stands at {before}, for \
                         the rules that follow"
                    );
                    report.note(directive.location.clone(), message);
                }
            }
            Directive::RemoveById(ids) | Directive::UpdateTargetById { ids, .. } => {
                for range in ids {
                    index.rule_exists(range, &directive.location, report);
                }
            }
            Directive::UpdateActionById { id, link, .. } => {
                index.rule_exists(&(*id..=*id), &directive.location, report);
                index.link_exists(*id, *link, &directive.location, report);
            }
            Directive::Marker(_)
            | Directive::RemoveByTag(_)
            | Directive::RemoveByMsg(_)
            | Directive::UpdateTargetByTag { .. }
            | Directive::UpdateTargetByMsg { .. }
            | Directive::ComponentSignature(_)
            | Directive::Setting(_) => {}
        }
    }
}

/// Where things stand that are spoken of by name.
struct Index<'d> {
    /// Rules by number.
    rules: Vec<(u64, &'d Rule)>,
    /// The last place of each marker and rule in the document.
    places: BTreeMap<Vec<u8>, usize>,
}

impl<'d> Index<'d> {
    fn new(document: &'d Document, report: &mut Report) -> Self {
        let mut places = BTreeMap::new();
        let mut seen: HashMap<u64, &Rule> = HashMap::new();
        for (at, directive) in document.directives.iter().enumerate() {
            match &directive.value {
                Directive::Marker(name) => {
                    places.insert(name.to_vec(), at);
                }
                Directive::Rule(rule) if rule.id > 0 => {
                    places.insert(rule.id.to_string().into_bytes(), at);
                    if let Some(first) = seen.insert(rule.id, rule) {
                        let message = format!("two rules have the `id` {}", rule.id);
                        let hint = format!("the other one stands at {}", first.location);
                        report.error(
                            Diagnostic::new(rule.location.clone(), Code::Conflict, message)
                                .hint(hint),
                        );
                    }
                }
                _ => {}
            }
        }
        let mut rules: Vec<_> = seen.into_iter().collect();
        rules.sort_unstable_by_key(|&(id, _)| id);
        Self { rules, places }
    }

    fn rule_exists(&self, ids: &RangeInclusive<u64>, location: &Location, report: &mut Report) {
        let first = self.rules.partition_point(|(id, _)| id < ids.start());
        if self.rules.get(first).is_none_or(|(id, _)| id > ids.end()) {
            let (start, end) = (ids.start(), ids.end());
            let which =
                if start == end { format!("{start}") } else { format!("from {start} to {end}") };
            let message = format!("no rule has the `id` {which}, so this has no effect");
            report.note(location.clone(), message);
        }
    }

    fn link_exists(&self, id: u64, link: usize, location: &Location, report: &mut Report) {
        let Ok(at) = self.rules.binary_search_by_key(&id, |&(id, _)| id) else { return };
        let links = self.rules[at].1.links.len();
        if link >= links {
            let message =
                format!("the rule {id} has no link {link}: the last one is {}", links - 1);
            report.error(Diagnostic::new(location.clone(), Code::Value, message));
        }
    }

    /// A marker must stand behind the rule that skips to it.
    fn skips(&self, rule: &Rule, at: usize, report: &mut Report) {
        for action in rule.links.iter().flat_map(|link| &link.actions) {
            let Action::SkipAfter(name) = &action.value else { continue };
            match self.places.get(&**name) {
                Some(&place) if place > at => {}
                Some(_) => {
                    let message = format!("the marker {} stands before this rule", shown(name));
                    let diagnostic =
                        Diagnostic::new(action.location.clone(), Code::Conflict, message);
                    report.error(diagnostic.hint("rules are skipped forwards only"));
                }
                None => {
                    let message = format!("there is no marker {}", shown(name));
                    let names = self.places.keys().filter_map(|it| std::str::from_utf8(it).ok());
                    let names = names.take(CANDIDATES_MAX);
                    let hint = did_you_mean(name, names).unwrap_or_else(|| {
                        format!(
                            "write `SecMarker {}` where rules go on",
                            String::from_utf8_lossy(name)
                        )
                    });
                    let diagnostic =
                        Diagnostic::new(action.location.clone(), Code::Conflict, message);
                    report.error(diagnostic.hint(hint));
                }
            }
        }
    }
}

/// Notes variables that have no value yet when the rule runs.
fn known_variables(rule: &Rule, report: &mut Report) {
    for link in &rule.links {
        let Test::Match { targets, .. } = &link.test else { continue };
        for Target { location, kind, variable, .. } in targets {
            let known_from = variable.known_from();
            if known_from > rule.phase && *kind != TargetKind::Exclude {
                let message = format!(
                    "`{}` is not known before phase {known_from}, and this rule runs in phase {}",
                    variable.name(),
                    rule.phase
                );
                report.note(location.clone(), message);
            }
        }
    }
}

/// Notes options of `ctl` that come too late to change anything.
fn timely_controls(rule: &Rule, report: &mut Report) {
    for Located { location, value } in rule.links.iter().flat_map(|link| &link.actions) {
        let Action::Control(control) = value else { continue };
        let (last, what) = match control {
            Control::RequestBodyAccess(_)
            | Control::RequestBodyLimit(_)
            | Control::RequestBodyProcessor(_)
            | Control::ForceRequestBodyVariable(_) => (Phase::RequestHeaders, "the request's"),
            Control::ResponseBodyAccess(_) | Control::ResponseBodyLimit(_) => {
                (Phase::ResponseHeaders, "the response's")
            }
            _ => continue,
        };
        if rule.phase > last {
            let message = format!(
                "this comes too late: {what} body has been read when phase {} begins",
                rule.phase
            );
            report.note(location.clone(), message);
        }
    }
}
