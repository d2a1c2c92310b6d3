//! Rules and their actions.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Compiler;
use super::draft::{Draft, Drafts, Matcher};
use crate::inspection::{ChainId, Half, Logged, collection_of};
use crate::operator::number;
use crate::program::{
    Act, Assign, Capture, Control, Decision, Flow, Piece, Polarity, Remembers, Rule, RuleMeta,
    RuleNumber, Targets, Test, Text, TxName,
};
use crate::seclang::action::{Change, SetVar, Transform};
use crate::seclang::{self, Action, Code, Link, Located, Location, Sense, control};
use crate::transformation::Transformation;
use crate::variable::Variable;

/// What the actions of one link come to.
struct Gathered {
    transformations: Vec<Transformation>,
    multi_match: bool,
    capture: Capture,
    acts: Vec<Act>,
    message: Text,
    data: Text,
    severity: Option<seclang::action::Severity>,
    logged: Logged,
    disruption: Disruption,
    status: Option<u16>,
}

/// A disruptive action before its status is known.
enum Disruption {
    Pass,
    Block,
    Allow(seclang::action::Allowance),
    Deny,
    Drop,
    Redirect(Text),
}

impl Compiler<'_> {
    pub(super) fn rule(
        &mut self,
        drafts: &Drafts,
        rules: &[Arc<RuleMeta>],
        draft: &Draft,
        half: Half,
    ) -> Rule {
        let links = draft.rule.links.iter();
        let mut links = links.map(|link| self.link(drafts, rules, draft, link, half));
        let starter = links.next();
        let chained: Vec<Rule> = links.collect();
        // The reader never makes a rule without links.
        let mut starter = starter.unwrap_or_else(|| unreachable!("a rule has a starter"));
        starter.links = chained.into();
        starter
    }

    /// The acts of a list of actions that stands for itself: what a policy begins with.
    pub(super) fn acts(
        &mut self,
        rules: &[Arc<RuleMeta>],
        actions: &[Located<Action>],
    ) -> Vec<Act> {
        let mut gathered = Gathered::new();
        for action in actions {
            self.gather(&mut gathered, rules, action);
        }
        gathered.acts
    }

    fn link(
        &mut self,
        drafts: &Drafts,
        rules: &[Arc<RuleMeta>],
        draft: &Draft,
        link: &Link,
        half: Half,
    ) -> Rule {
        let mut gathered = Gathered::new();
        let mut inherited = None;
        for action in &*draft.defaults {
            self.gather(&mut gathered, rules, action);
        }
        if !draft.defaults.is_empty() {
            inherited = Some(std::mem::replace(&mut gathered.disruption, Disruption::Block));
        }
        let mut flow = Flow::Next;
        for action in &link.actions {
            match &action.value {
                Action::Skip(count) => flow = Flow::Jump(Drafts::further(draft, *count)),
                Action::SkipAfter(name) => {
                    // Where nothing of this phase stands between, the next rule is the next.
                    flow = drafts.behind(draft, name).map_or(Flow::Next, Flow::Jump);
                }
                _ => self.gather(&mut gathered, rules, action),
            }
        }
        let decision = Self::decision(&gathered, inherited.as_ref());
        let (chain, steps) = self.chain(link, &gathered);
        let (targets, test, polarity) = match &link.test {
            seclang::Test::Always => (Targets::Nothing, Test::Always, Polarity::Matches),
            seclang::Test::Match { targets, operator } => {
                let polarity = match operator.sense {
                    Sense::Plain => Polarity::Matches,
                    Sense::Negated => Polarity::MatchesNot,
                };
                (self.targets(targets), self.test(operator, half), polarity)
            }
        };
        let lanes = match &targets {
            Targets::Stable(sets) if steps.is_empty() => {
                sets.iter().map(|&set| self.lane(set, chain, half)).collect()
            }
            Targets::Stable(sets) => {
                let each = sets.iter().flat_map(|&set| steps.iter().map(move |&step| (set, step)));
                each.map(|(set, step)| self.lane(set, step, half)).collect()
            }
            _ => Box::default(),
        };
        let remembers = if draft.rule.links.len() > 1 || gathered.asks_what_matched() {
            Remembers::Match
        } else {
            Remembers::Nothing
        };
        Rule {
            number: draft.number,
            remembers,
            targets,
            test,
            polarity,
            lanes,
            chain,
            steps: steps.into(),
            capture: gathered.capture,
            acts: gathered.acts.into(),
            message: gathered.message,
            data: gathered.data,
            severity: gathered.severity,
            logged: gathered.logged,
            decision,
            flow,
            links: Box::default(),
        }
    }

    /// The chain of a link, and with `multiMatch` the steps to it.
    fn chain(&mut self, link: &Link, gathered: &Gathered) -> (ChainId, Vec<ChainId>) {
        let transformations = &gathered.transformations;
        let made = if gathered.multi_match {
            let steps = self.chains.steps(transformations);
            steps.map(|steps| (steps.last().copied().unwrap_or(ChainId::NONE), steps))
        } else {
            self.chains.chain(transformations).map(|chain| (chain, Vec::new()))
        };
        made.unwrap_or_else(|| {
            let message = "there are too many transformations".to_owned();
            let hint = "a rule may have 64, a rule set 65,535 different chains of them".to_owned();
            self.refuse(&link.location, Code::Limit, message, Some(hint));
            (ChainId::NONE, Vec::new())
        })
    }

    fn decision(gathered: &Gathered, inherited: Option<&Disruption>) -> Decision {
        let disruption = match (&gathered.disruption, inherited) {
            (Disruption::Block, Some(inherited)) => inherited,
            (own, _) => own,
        };
        let deny = gathered.status.unwrap_or(403);
        match disruption {
            Disruption::Pass | Disruption::Block => Decision::Pass,
            Disruption::Allow(scope) => Decision::Allow(*scope),
            Disruption::Deny => Decision::Deny { status: deny },
            Disruption::Drop => Decision::Drop,
            Disruption::Redirect(location) => {
                let redirects = |status: &u16| matches!(status, 301 | 302 | 303 | 307 | 308);
                let status = gathered.status.filter(redirects).unwrap_or(302);
                Decision::Redirect { status, location: location.clone() }
            }
        }
    }

    fn gather(
        &mut self,
        gathered: &mut Gathered,
        rules: &[Arc<RuleMeta>],
        action: &Located<Action>,
    ) {
        let at = &action.location;
        match &action.value {
            Action::Msg(text) => gathered.message = self.text(at, text),
            Action::LogData(text) => gathered.data = self.text(at, text),
            Action::Severity(severity) => gathered.severity = Some(*severity),
            // What only tells about the rule is in its meta data.
            Action::Tag(_)
            | Action::Rev(_)
            | Action::Ver(_)
            | Action::Maturity(_)
            | Action::Accuracy(_)
            // Where they lead depends on the rule, not on the list.
            | Action::Skip(_)
            | Action::SkipAfter(_) => {}
            Action::Allow(scope) => gathered.disruption = Disruption::Allow(*scope),
            Action::Block => gathered.disruption = Disruption::Block,
            Action::Deny => gathered.disruption = Disruption::Deny,
            Action::Drop => gathered.disruption = Disruption::Drop,
            Action::Pass => gathered.disruption = Disruption::Pass,
            Action::Redirect(location) => {
                gathered.disruption = Disruption::Redirect(self.text(at, location));
            }
            Action::Status(status) => gathered.status = Some(*status),
            Action::Capture => gathered.capture = Capture::Groups,
            Action::MultiMatch => gathered.multi_match = true,
            Action::Transform(Transform::Reset) => gathered.transformations.clear(),
            Action::Transform(Transform::Apply(transformation)) => {
                gathered.transformations.push(*transformation);
            }
            Action::Log => gathered.logged = Logged { log: true, audit: true },
            // As ModSecurity: what is not logged is not audited, unless `auditlog` follows.
            Action::NoLog => gathered.logged = Logged { log: false, audit: false },
            Action::AuditLog => gathered.logged.audit = true,
            Action::NoAuditLog => gathered.logged.audit = false,
            Action::Sanitise(what) => gathered.acts.push(Act::Sanitise(what.clone())),
            Action::SetVar(set) => gathered.acts.push(self.set_var(at, set)),
            Action::ExpireVar { collection, name, seconds } => {
                if let Some(collection) = collection_of(*collection) {
                    let (name, seconds) = (self.text(at, name), self.text(at, seconds));
                    gathered.acts.push(Act::Expire { collection, name, seconds });
                }
            }
            Action::DeprecateVar { collection, name, amount, period_s } => {
                if let Some(collection) = collection_of(*collection) {
                    let name = self.text(at, name);
                    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                    let (amount, period_s) = (small(*amount), small(*period_s));
                    gathered.acts.push(Act::Deprecate { collection, name, amount, period_s });
                }
            }
            Action::InitCol { collection, key } => self.open(gathered, at, *collection, key),
            Action::SetSid(key) => self.open(gathered, at, Variable::Session, key),
            Action::SetUid(key) => self.open(gathered, at, Variable::User, key),
            Action::SetRsc(key) => self.open(gathered, at, Variable::Resource, key),
            Action::SetEnv { name, value } => {
                let name = self.text(at, name);
                let value = value.as_ref().map(|value| self.text(at, value));
                gathered.acts.push(Act::SetEnv { name, value });
            }
            Action::Control(control) => {
                if let Some(control) = self.control(rules, at, control) {
                    gathered.acts.push(Act::Control(control));
                }
            }
        }
    }

    fn open(
        &mut self,
        gathered: &mut Gathered,
        at: &Location,
        collection: Variable,
        key: &seclang::Text,
    ) {
        if let Some(collection) = collection_of(collection) {
            let key = self.text(at, key);
            gathered.acts.push(Act::Open { collection, key });
        }
    }

    fn set_var(&mut self, at: &Location, set: &SetVar) -> Act {
        let value = match &set.change {
            Change::Unset => Assign::Remove,
            Change::Add(text) => Assign::Add(self.text(at, text)),
            Change::Subtract(text) => Assign::Subtract(self.text(at, text)),
            Change::Set(text) => {
                let number = text.literal().and_then(canonical_number);
                number.map_or_else(|| Assign::Text(self.text(at, text)), Assign::Number)
            }
        };
        if let Some(collection) = collection_of(set.collection) {
            return Act::SetKept { collection, name: self.text(at, &set.name), value };
        }
        let slot = set.name.literal().and_then(|name| self.slot(at, name));
        let name = match slot {
            Some(slot) => TxName::Slot(slot),
            None => TxName::Text(self.text(at, &set.name)),
        };
        Act::SetTx { name, value }
    }

    fn control(
        &mut self,
        rules: &[Arc<RuleMeta>],
        at: &Location,
        control: &control::Control,
    ) -> Option<Control> {
        use control::Control as C;
        Some(match control {
            C::AuditEngine(mode) => Control::AuditEngine(*mode),
            C::AuditLogParts(change) => Control::AuditLogParts(*change),
            // There is no debug log; `tidegate waf test` traces.
            C::DebugLogLevel(_) => return None,
            C::ForceRequestBodyVariable(access) => Control::ForceRequestBodyVariable(*access),
            C::RequestBodyAccess(access) => Control::RequestBodyAccess(*access),
            C::RequestBodyLimit(bytes) => Control::RequestBodyLimit(*bytes),
            C::RequestBodyProcessor(processor) => Control::BodyProcessor(*processor),
            C::ResponseBodyAccess(access) => Control::ResponseBodyAccess(*access),
            C::ResponseBodyLimit(bytes) => Control::ResponseBodyLimit(*bytes),
            C::RuleEngine(mode) => Control::Mode(super::settings::mode_of(*mode)),
            C::RuleRemoveById(ids) => Control::RemoveRules(with_id(rules, ids)),
            C::RuleRemoveByTag(tag) => {
                Control::RemoveRules(with_tag(rules, &mut self.matcher(at, tag)?))
            }
            C::RuleRemoveByMsg(msg) => {
                Control::RemoveRules(with_message(rules, &mut self.matcher(at, msg)?))
            }
            C::RuleRemoveTargetById { ids, target } => {
                Control::RemoveTargets { rules: with_id(rules, ids), part: self.part(target) }
            }
            C::RuleRemoveTargetByTag { tag, target } => {
                let rules = with_tag(rules, &mut self.matcher(at, tag)?);
                Control::RemoveTargets { rules, part: self.part(target) }
            }
            C::RuleRemoveTargetByMsg { msg, target } => {
                let rules = with_message(rules, &mut self.matcher(at, msg)?);
                Control::RemoveTargets { rules, part: self.part(target) }
            }
        })
    }
}

impl Gathered {
    fn new() -> Self {
        Self {
            transformations: Vec::new(),
            multi_match: false,
            capture: Capture::Nothing,
            acts: Vec::new(),
            message: Text::default(),
            data: Text::default(),
            severity: None,
            logged: Logged { log: true, audit: true },
            disruption: Disruption::Pass,
            status: None,
        }
    }
}

impl Gathered {
    /// Whether what is said or done about a match depends on what matched.
    fn asks_what_matched(&self) -> bool {
        let asks =
            |text: &Text| text.pieces.iter().any(|piece| matches!(piece, Piece::Macro { .. }));
        let act_asks = |act: &Act| match act {
            Act::SetTx { name, value } => {
                let name = match name {
                    TxName::Slot(_) => false,
                    TxName::Text(text) => asks(text),
                };
                name || match value {
                    Assign::Text(text) | Assign::Add(text) | Assign::Subtract(text) => asks(text),
                    Assign::Number(_) | Assign::Remove => false,
                }
            }
            Act::Control(_) => false,
            _ => true,
        };
        self.logged.log
            || self.logged.audit
            || self.capture == Capture::Groups
            || !matches!(self.disruption, Disruption::Pass | Disruption::Block)
            || self.acts.iter().any(act_asks)
    }
}

/// The rules whose numbers are in a range.
fn with_id(rules: &[Arc<RuleMeta>], ids: &RangeInclusive<u64>) -> Box<[RuleNumber]> {
    select(rules, |rule| ids.contains(&rule.id))
}

fn with_tag(rules: &[Arc<RuleMeta>], matcher: &mut Matcher) -> Box<[RuleNumber]> {
    select(rules, |rule| rule.tags.iter().any(|tag| matcher.hits(tag.as_bytes())))
}

fn with_message(rules: &[Arc<RuleMeta>], matcher: &mut Matcher) -> Box<[RuleNumber]> {
    select(rules, |rule| matcher.hits(rule.message.as_bytes()))
}

fn select(rules: &[Arc<RuleMeta>], mut keep: impl FnMut(&RuleMeta) -> bool) -> Box<[RuleNumber]> {
    let numbers = (0..).map(RuleNumber);
    rules.iter().zip(numbers).filter(|(rule, _)| keep(rule)).map(|(_, number)| number).collect()
}

/// The number whose decimal form these bytes are, so that nothing is lost by keeping it as a number.
fn canonical_number(bytes: &[u8]) -> Option<i64> {
    let value = number::parse(bytes);
    (itoa::Buffer::new().format(value).as_bytes() == bytes).then_some(value)
}
