//! `SecRule`, `SecAction` and `SecDefaultAction`, and how chains grow.

use super::action::{ActionList, Certainty, Completeness, action_list};
use super::operator::operator;
use super::passage::Snippet;
use super::target::targets;
use super::words::{Word, Words};
use crate::seclang::action::{ActionName, Group};
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::document::Directive;
use crate::seclang::location::Location;
use crate::seclang::rule::{Link, Rule, TargetKind, Test};
use crate::variable::Phase;

/// How many rules a chain may have.
const LINKS_MAX: usize = 256;

/// A rule whose last link says `chain`: the next rule belongs to it.
pub(super) struct OpenChain {
    rule: Rule,
    /// Where the last `chain` stands.
    chain: Location,
    certainty: Certainty,
}

impl OpenChain {
    /// Stands for a chain whose beginning could not be read, so that what follows is not taken for a
    /// rule of its own.
    pub(super) fn lost(chain: Location) -> Self {
        let (location, links) = (chain.clone(), Vec::new());
        let rule = Rule { location, id: 0, phase: Phase::RequestBody, links };
        Self { rule, chain, certainty: Certainty::Guessed }
    }
}

/// What became of a rule directive.
pub(super) enum Read {
    Complete(Rule),
    Open(OpenChain),
}

/// A rule directive, before it is known whether it starts a rule or goes on with one.
pub(super) struct Parts {
    location: Location,
    test: Test,
    list: ActionList,
}

/// Reads `SecRule TARGETS OPERATOR [ACTIONS]`.
pub(super) fn rule(
    location: Location,
    words: &mut Words<'_>,
    report: &mut Report,
) -> Result<Parts, Diagnostic> {
    let (Some(list), Some(call)) = (words.next()?, words.next()?) else {
        return Err(missing(location, "`SecRule` takes targets, an operator and actions"));
    };
    let actions = words.next()?;
    end("SecRule", words)?;
    let targets = targets(list.text(), report);
    if !targets.is_empty() && targets.iter().all(|target| target.kind == TargetKind::Exclude) {
        let message = "the rule looks at nothing: all of its targets are left out";
        let diagnostic = Diagnostic::new(list.text().location(), Code::Value, message);
        report.error(
            diagnostic.hint("name what the exclusions are taken from, as in `ARGS|!ARGS:x`"),
        );
    }
    let operator = operator(call.text(), report);
    let list = actions.map_or_else(ActionList::default, |word| chainable(&word, report));
    // A rule without an operator has been reported; what it stands for here is never seen.
    let test = operator.map_or(Test::Always, |operator| Test::Match { targets, operator });
    Ok(Parts { location, test, list })
}

/// Reads `SecAction ACTIONS`.
pub(super) fn action(
    location: Location,
    words: &mut Words<'_>,
    report: &mut Report,
) -> Result<Parts, Diagnostic> {
    let Some(actions) = words.next()? else {
        return Err(missing(location, "`SecAction` takes a list of actions"));
    };
    end("SecAction", words)?;
    Ok(Parts { location, test: Test::Always, list: chainable(&actions, report) })
}

/// Reads actions. Where a mistake hid the end of the list, a `chain` that is written there counts.
fn chainable(actions: &Word, report: &mut Report) -> ActionList {
    let mut list = action_list(actions.text(), report);
    if list.completeness == Completeness::Broken && may_chain(actions.text()) {
        list.chain.get_or_insert_with(|| (actions.text().location(), Certainty::Guessed));
    }
    list
}

/// Whether this text, which could not be read, says that the rule goes on.
pub(super) fn may_chain(text: Snippet<'_>) -> bool {
    memchr::memmem::find(&text.bytes().to_ascii_lowercase(), b"chain").is_some()
}

/// Adds the directive to the chain, if one is open; else it starts a rule.
pub(super) fn join(parts: Parts, open: Option<OpenChain>, report: &mut Report) -> Read {
    let next = parts.list.chain.clone();
    // What was guessed is taken back where the rule has a number of its own.
    let is_start = parts.list.id.is_some();
    let open = open.filter(|open| open.certainty == Certainty::Written || !is_start);
    let rule = match open {
        None => start(parts, report),
        Some(OpenChain { mut rule, chain, .. }) => {
            if rule.links.len() < LINKS_MAX {
                rule.links.push(link(parts, rule.phase, report));
            } else {
                let message = format!("a chain has at most {LINKS_MAX} rules");
                report.error(Diagnostic::new(chain, Code::Limit, message));
            }
            rule
        }
    };
    match next {
        Some((chain, certainty)) => Read::Open(OpenChain { rule, chain, certainty }),
        None => Read::Complete(rule),
    }
}

fn start(parts: Parts, report: &mut Report) -> Rule {
    let Parts { location, test, list } = parts;
    if list.id.is_none() && list.completeness == Completeness::Whole {
        let diagnostic = Diagnostic::new(location.clone(), Code::Value, "the rule has no `id`");
        report.error(diagnostic.hint(if list.is_empty() {
            "if its actions stand in the next line, this one must end in a backslash"
        } else {
            "every rule has a number of its own, as in `id:10001`; those below 100000 are yours"
        }));
    }
    let mut disruptive = list.of_group(Group::Disruptive);
    if let (Some((first, _)), Some((last, location))) = (disruptive.next(), disruptive.last()) {
        let message =
            format!("`{}` counts, and `{}` before it does not", last.name(), first.name());
        report.note(location.clone(), message);
    }
    Rule {
        location: location.clone(),
        id: list.id.map_or(0, |id| id.value),
        phase: list.phase.map_or(Phase::RequestBody, |phase| phase.value),
        links: vec![Link { location, test, actions: list.actions }],
    }
}

/// A rule that goes on with a chain: the starter decides for all of it.
fn link(parts: Parts, phase: Phase, report: &mut Report) -> Link {
    let Parts { location, test, list } = parts;
    let starter = "the first rule of the chain";
    if let Some(id) = &list.id {
        let message = format!("a chained rule needs no `id`: that of {starter} counts");
        report.note(id.location.clone(), message);
    }
    if let Some(other) = list.phase.as_ref().filter(|other| other.value != phase) {
        let message = format!("a chained rule runs in the phase of {starter}, which is {phase}");
        report.error(Diagnostic::new(other.location.clone(), Code::Conflict, message));
    }
    for (name, location) in list.of_group(Group::Disruptive) {
        let message = format!("`{}` belongs to {starter}", name.name());
        report.error(Diagnostic::new(location.clone(), Code::Conflict, message));
    }
    for name in [ActionName::Skip, ActionName::SkipAfter] {
        if let Some(location) = list.first(name) {
            let message = format!("`{}` belongs to {starter}", name.name());
            report.error(Diagnostic::new(location.clone(), Code::Conflict, message));
        }
    }
    Link { location, test, actions: list.actions }
}

/// Ends a chain at something that is no rule.
pub(super) fn broken_chain(open: OpenChain, report: &mut Report) -> Rule {
    if open.certainty == Certainty::Written {
        let message = "the chain is not ended: no rule follows this one";
        let diagnostic = Diagnostic::new(open.chain, Code::Conflict, message);
        report.error(diagnostic.hint("the last rule of a chain has no `chain` action"));
    }
    open.rule
}

/// Reads `SecDefaultAction ACTIONS`.
pub(super) fn default_action(
    location: Location,
    words: &mut Words<'_>,
    report: &mut Report,
) -> Result<Directive, Diagnostic> {
    let Some(word) = words.next()? else {
        return Err(missing(location, "`SecDefaultAction` takes a list of actions"));
    };
    end("SecDefaultAction", words)?;
    let list = action_list(word.text(), report);
    let not_default = [
        ActionName::Id,
        ActionName::Rev,
        ActionName::Msg,
        ActionName::Chain,
        ActionName::Skip,
        ActionName::SkipAfter,
    ];
    for name in not_default {
        if let Some(location) = list.first(name) {
            let message = format!("`{}` belongs to a rule and cannot be a default", name.name());
            report.error(Diagnostic::new(location.clone(), Code::Conflict, message));
        }
    }
    if list.completeness == Completeness::Whole {
        if list.phase.is_none() {
            let message = "`SecDefaultAction` names no phase";
            let diagnostic = Diagnostic::new(location.clone(), Code::Value, message);
            report.error(diagnostic.hint("add `phase:1`, `phase:2`, ..."));
        }
        // `block` does what the default says, so it cannot be the default.
        if list.of_group(Group::Disruptive).all(|(name, _)| *name == ActionName::Block) {
            let message = "`SecDefaultAction` names no disruptive action";
            let diagnostic = Diagnostic::new(location, Code::Value, message);
            report.error(diagnostic.hint("add `pass` or `deny`; rules that say `block` do it"));
        }
    }
    let phase = list.phase.map_or(Phase::RequestBody, |phase| phase.value);
    Ok(Directive::DefaultAction { phase, actions: list.actions })
}

/// Reads `SecRuleUpdateActionById ID[:LINK] ACTIONS`.
pub(super) fn update_action(
    location: Location,
    words: &mut Words<'_>,
    report: &mut Report,
) -> Result<Directive, Diagnostic> {
    let (Some(place), Some(actions)) = (words.next()?, words.next()?) else {
        let message = "`SecRuleUpdateActionById` takes a rule's number and actions";
        return Err(missing(location, message));
    };
    end("SecRuleUpdateActionById", words)?;
    let (id, link) = link_of(&place)?;
    let list = action_list(actions.text(), report);
    for name in [ActionName::Id, ActionName::Phase, ActionName::Chain] {
        if let Some(location) = list.first(name) {
            let message = format!("`{}` cannot be changed", name.name());
            report.error(Diagnostic::new(location.clone(), Code::Conflict, message));
        }
    }
    Ok(Directive::UpdateActionById { id, link, actions: list.actions })
}

fn link_of(place: &Word) -> Result<(u64, usize), Diagnostic> {
    let text = place.text();
    let (id, link) = match text.split_once(b':') {
        Some((id, link)) => (id, link.number().and_then(|link| usize::try_from(link).ok())),
        None => (text, Some(0)),
    };
    id.number().zip(link).ok_or_else(|| {
        let message = format!("expected a rule's number, or `number:link`, found {}", text.shown());
        Diagnostic::new(text.location(), Code::Value, message)
    })
}

/// The mistake of a directive that lacks its words.
pub(super) fn missing(location: Location, message: &str) -> Diagnostic {
    Diagnostic::new(location, Code::Syntax, message)
}

/// Sees to it that a directive has no more words.
pub(super) fn end(directive: &str, words: &mut Words<'_>) -> Result<(), Diagnostic> {
    let rest: Snippet<'_> = words.rest();
    if rest.is_empty() {
        return Ok(());
    }
    let message = format!("expected the end of `{directive}`, found {}", rest.shown());
    let diagnostic = Diagnostic::new(rest.location(), Code::Syntax, message);
    Err(diagnostic.hint("what holds white space is written in double quotes"))
}
