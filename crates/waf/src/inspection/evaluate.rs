//! The rules of one phase, run in their order.
//!
//! A rule over values that stand before its phase asks its lane first: unless some value of the lane
//! is a candidate for the rule's pattern, the rule is done in one test of a bit. Otherwise each
//! distinct content is asked once, and only if one of them matches are the values gone through, in
//! the order of the rule's targets, to do what the rule does for each match.

use super::contents::{ContentId, Work};
use super::state::{Inspector, State};
use super::times::Lap;
use super::values::Found;
use super::verdict::{Effect, MatchedRule, Mode, VALUE_BYTES_MAX, Verdict};
use super::{ChainId, Half, KeptKeys, Moment, Trace};
use crate::Outside;
use crate::program::{
    Capture, Decision, Flow, Gate, Kind, LaneId, NumberTest, Polarity, Program, Remembers, Rule,
    SetId, Targets,
};
use crate::seclang::action::Allowance;
use crate::seclang::setting::Switch;
use crate::variable::{Phase, Variable};

/// Whether rules use the prefilter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Evaluation {
    /// Only candidates are searched.
    #[default]
    Prefiltered,
    /// Every pattern is searched for in every value; the same verdicts, much slower. What the
    /// prefiltered evaluation is tested against.
    Plain,
}

/// One phase of one transaction under way.
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    pub(super) state: &'a mut State,
    pub(super) worker: &'a mut Inspector,
    pub(super) kept: &'a mut KeptKeys,
    pub(super) outside: Option<&'a dyn Outside>,
    pub(super) moment: Moment,
    pub(super) half: Half,
    pub(super) phase: Phase,
    pub(super) evaluation: Evaluation,
    /// The rule that runs, for `RULE` and the macros of its texts.
    pub(super) rule: Option<&'a Rule>,
}

/// How a phase ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All its rules ran, or were skipped.
    Passed,
    /// A rule ended the transaction.
    Decided(Verdict),
    /// There is more work than was allowed for; the rule at `next` comes next.
    Paused { next: usize },
    /// A rule allowed it.
    Allowed(Allowance),
}

/// Whether a rule or a value matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

impl Answer {
    pub(super) fn under(self, polarity: Polarity) -> Answer {
        match (self, polarity) {
            (answer, Polarity::Matches) => answer,
            (Answer::Yes, Polarity::MatchesNot) => Answer::No,
            (Answer::No, Polarity::MatchesNot) => Answer::Yes,
        }
    }
}

impl<'a> Run<'a> {
    /// Runs the phase's rules from the one at `next` on, until the work done exceeds `until`.
    pub(super) fn phase(&mut self, mut next: usize, until: Work) -> Ended {
        let program: &'a Program = self.program;
        let (rules, gates) = (program.phase(self.phase), program.gates(self.phase));
        let mut lap = self.state.times.clock.map(Lap::begin);
        while let Some(&gate) = gates.get(next) {
            if self.state.contents.work() > until {
                return Ended::Paused { next };
            }
            let rule = &rules[next];
            next += 1;
            if self.state.mode == Mode::Off {
                break;
            }
            let ended = self.step(gate, rule, &mut next);
            // One loop for both: with two, what a rule does would be called and not be part of them,
            // which takes a hundredth of a request.
            if let Some(lap) = &mut lap {
                self.state.times.add(rule.number, lap.end());
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
        Ended::Passed
    }

    /// One rule, and where the phase goes on after it.
    #[inline]
    fn step(&mut self, gate: Gate, rule: &'a Rule, next: &mut usize) -> Option<Ended> {
        if self.is_shut(gate, rule)
            || self.state.is_removed(rule.number)
            || self.whole(rule) == Answer::No
        {
            return None;
        }
        let ended = self.conclude(rule);
        if let (None, Flow::Jump(to)) = (&ended, rule.flow) {
            *next = to as usize;
        }
        ended
    }

    /// Whether a rule behind this gate matches nothing.
    fn is_shut(&mut self, gate: Gate, rule: &Rule) -> bool {
        match gate {
            Gate::Open => false,
            Gate::Number(test) => self.compare(test) == Answer::No,
            Gate::Kept => {
                matches!(&rule.targets, Targets::Kept(target) if self.surely_not(rule, target))
            }
            Gate::Candidate { group, pattern } => {
                self.evaluation == Evaluation::Prefiltered && !self.may_match(group, pattern)
            }
        }
    }

    /// What a comparison of a `TX` variable comes to, its polarity included.
    fn compare(&self, test: NumberTest) -> Answer {
        let value = self.state.tx.slot(test.slot);
        let absent = value == super::values::TxValue::Absent;
        let number = match test.kind {
            // What is not there is not asked, whatever the polarity.
            Kind::Value if absent => return Answer::No,
            Kind::Value => self.state.tx.number(value),
            Kind::Count => i64::from(!absent),
        };
        Answer::from(test.comparison.holds(number, test.number)).under(test.polarity)
    }

    /// A rule with its chain.
    fn whole(&mut self, rule: &'a Rule) -> Answer {
        self.state.matched.clear();
        if let Some(tracing) = self.state.tracing() {
            tracing.clear();
        }
        self.rule = Some(rule);
        if self.link(rule) == Answer::No {
            return Answer::No;
        }
        for link in &rule.links {
            if self.link(link) == Answer::No {
                return Answer::No;
            }
        }
        Answer::Yes
    }

    /// One link of a chain; does what the link does for each match.
    fn link(&mut self, rule: &'a Rule) -> Answer {
        match &rule.targets {
            Targets::Slot { slot, kind } => {
                if let Some(test) = NumberTest::of(rule) {
                    if self.compare(test) == Answer::No {
                        return Answer::No;
                    }
                    let remembers =
                        rule.remembers == Remembers::Match || self.state.trace == Trace::All;
                    if !remembers && !self.has_removed_targets(rule.number) {
                        self.matched(rule, None);
                        return Answer::Yes;
                    }
                }
                self.slot(rule, *slot, *kind)
            }
            Targets::Kept(target) => {
                if self.surely_not(rule, target) {
                    return Answer::No;
                }
                let mut found = Vec::new();
                self.resolve(&target.set, &mut found);
                self.each(rule, found)
            }
            Targets::Nothing => {
                self.matched(rule, None);
                Answer::Yes
            }
            Targets::Stable(sets) if rule.steps.is_empty() => self.lanes(rule, sets),
            Targets::Stable(sets) => {
                let mut found = Vec::new();
                for &set in sets {
                    self.resolve_set(set);
                    if self.matches_at_a_step(rule, set) {
                        found.extend_from_slice(&self.state.sets[set.0 as usize].found);
                    }
                }
                self.each(rule, found)
            }
            Targets::Volatile(set) => {
                let mut found = Vec::new();
                self.resolve(set, &mut found);
                self.each(rule, found)
            }
        }
    }

    fn slot(&mut self, rule: &'a Rule, slot: crate::program::TxSlot, kind: Kind) -> Answer {
        let value = self.state.tx.slot(slot);
        let absent = value == super::values::TxValue::Absent;
        let value = match kind {
            Kind::Value if absent => return Answer::No,
            Kind::Value => self.tx_content(value),
            Kind::Count => self.state.contents.intern(if absent { b"0" } else { b"1" }),
        };
        let name = self.state.contents.intern(self.program.tx_slots.name(slot));
        self.each(rule, vec![Found { variable: Variable::Tx, name, value }])
    }

    /// A rule over values that stand: distinct contents first, values on a hit.
    fn lanes(&mut self, rule: &'a Rule, sets: &[SetId]) -> Answer {
        let pattern = rule.test.prefiltered().filter(|_| {
            rule.polarity == Polarity::Matches && self.evaluation == Evaluation::Prefiltered
        });
        let mut hits = Vec::new();
        for (&set, &lane) in sets.iter().zip(&rule.lanes) {
            self.resolve_lane(lane);
            let may = &self.state.lanes[lane.0 as usize].candidates;
            if pattern.is_none_or(|pattern| may.contains(pattern)) {
                self.lane(rule, set, lane, &mut hits);
            }
        }
        if self.has_removed_targets(rule.number) {
            self.keep_allowed(rule.number, &mut hits);
        }
        for &found in &hits {
            self.matched(rule, Some(found));
        }
        if hits.is_empty() { Answer::No } else { Answer::Yes }
    }

    fn lane(&mut self, rule: &Rule, set: SetId, lane: LaneId, hits: &mut Vec<Found>) {
        let at = lane.0 as usize;
        self.state.marks.clear();
        let mut hit = Answer::No;
        for n in 0..self.state.lanes[at].distinct.len() {
            let content = self.state.lanes[at].distinct[n];
            if self.ask(&rule.test, rule.chain, content).under(rule.polarity) == Answer::Yes {
                let _ = self.state.marks.set(content);
                hit = Answer::Yes;
            }
        }
        if hit == Answer::No {
            return;
        }
        let state = &mut *self.state;
        for found in &state.sets[set.0 as usize].found {
            let content = state.contents.transform(self.program, rule.chain, found.value);
            if state.marks.is_set(content) {
                let hit = Found { value: content, ..*found };
                hits.push(hit);
                if state.trace == Trace::All {
                    state.tracing.origin(hit, found.value);
                }
            }
        }
    }

    /// Whether any distinct content of a set matches at any step, which is soon asked.
    fn matches_at_a_step(&mut self, rule: &Rule, set: SetId) -> bool {
        let (set, program) = (set.0 as usize, self.program);
        // What no step changes is asked once, as it is.
        let makeup = self.state.sets[set].makeup;
        let changing = |chain: &&ChainId| makeup.meets(program.changes(**chain));
        let chains = || std::iter::once(&ChainId::NONE).chain(rule.steps.iter().filter(changing));
        (0..self.state.sets[set].distinct.len()).any(|n| {
            let content = self.state.sets[set].distinct[n];
            let mut before = None;
            chains().any(|&chain| {
                let content = self.state.contents.transform(program, chain, content);
                before.replace(content) != Some(content)
                    && self.ask(&rule.test, rule.chain, content).under(rule.polarity) == Answer::Yes
            })
        })
    }

    /// A rule over values one by one: those that rules change, and those asked at each step.
    fn each(&mut self, rule: &'a Rule, mut found: Vec<Found>) -> Answer {
        if self.has_removed_targets(rule.number) {
            self.keep_allowed(rule.number, &mut found);
        }
        let program = self.program;
        let mut hit = Answer::No;
        for found in found {
            let chains =
                if rule.steps.is_empty() { std::slice::from_ref(&rule.chain) } else { &rule.steps };
            let mut before = None;
            for &chain in chains {
                let content = self.state.contents.transform(program, chain, found.value);
                // A step that changes nothing is not asked again.
                if before.replace(content) == Some(content) {
                    continue;
                }
                if self.ask(&rule.test, rule.chain, content).under(rule.polarity) == Answer::Yes {
                    let transformed = Found { value: content, ..found };
                    if let Some(tracing) = self.state.tracing() {
                        tracing.origin(transformed, found.value);
                    }
                    self.matched(rule, Some(transformed));
                    hit = Answer::Yes;
                }
            }
        }
        hit
    }

    /// What a link does for each value that matches.
    fn matched(&mut self, rule: &'a Rule, found: Option<Found>) {
        self.rule = Some(rule);
        if let Some(found) = found {
            self.state.matched.push(found);
            if self.state.trace == Trace::All {
                self.trace_hit(rule, found);
            }
            if rule.capture == Capture::Groups {
                self.capture(&rule.test, found.value);
            }
        }
        if let Some(severity) = rule.severity {
            self.state.highest_severity =
                Some(self.state.highest_severity.map_or(severity, |highest| highest.min(severity)));
        }
        for act in &rule.acts {
            self.act(act);
        }
    }

    /// What follows from the match of a rule with its whole chain.
    fn conclude(&mut self, rule: &'a Rule) -> Option<Ended> {
        self.worker.count(rule.number);
        self.rule = Some(rule);
        let effect = match (&rule.decision, self.state.mode, self.phase) {
            // What is over cannot be stopped.
            (Decision::Pass | Decision::Allow(_), ..)
            | (_, Mode::Block, Phase::Logging)
            | (_, Mode::Off, _) => Effect::Noted,
            (_, Mode::Block, _) => Effect::Decided,
            (_, Mode::Detect, _) => Effect::WouldDecide,
        };
        let logs = rule.logged.log || rule.logged.audit || self.state.trace == Trace::All;
        if logs || effect != Effect::Noted {
            let record = self.record(rule, effect);
            self.state.matched_rules.push(record);
        }
        if rule.logged.audit {
            self.state.audit_relevant = Switch::On;
        }
        match (effect, &rule.decision) {
            (Effect::Decided, decision) => {
                let id = self.program.rules[rule.number.index()].id;
                let verdict = match decision {
                    Decision::Deny { status } => Verdict::Deny { status: *status, rule: id },
                    Decision::Drop => Verdict::Drop { rule: id },
                    Decision::Redirect { status, location } => {
                        let mut expanded = Vec::new();
                        self.expand(location, &mut expanded);
                        Verdict::Redirect { status: *status, location: expanded, rule: id }
                    }
                    Decision::Pass | Decision::Allow(_) => Verdict::Pass,
                };
                Some(Ended::Decided(verdict))
            }
            (_, Decision::Allow(scope)) if self.state.mode == Mode::Block => {
                Some(Ended::Allowed(*scope))
            }
            _ => None,
        }
    }

    fn record(&mut self, rule: &'a Rule, effect: Effect) -> MatchedRule {
        // The texts stand where the rule set's author put them: mostly at the starter.
        let with = |pick: fn(&Rule) -> bool| {
            std::iter::once(rule).chain(&rule.links).find(|link| pick(link)).unwrap_or(rule)
        };
        let (message_of, data_of) =
            (with(|link| !link.message.is_empty()), with(|link| !link.data.is_empty()));
        let (mut message, mut data, mut variable) = (Vec::new(), Vec::new(), Vec::new());
        self.expand(&message_of.message, &mut message);
        self.expand(&data_of.data, &mut data);
        let last = self.state.matched.last().copied();
        let mut value = Vec::new();
        if let Some(last) = last {
            self.write_full_name(last, &mut variable);
            let bytes = self.state.contents.bytes(last.value);
            value.extend_from_slice(&bytes[..bytes.len().min(VALUE_BYTES_MAX)]);
        }
        MatchedRule {
            rule: self.program.rules[rule.number.index()].clone(),
            phase: self.phase,
            message,
            data,
            variable,
            value,
            logged: rule.logged,
            effect,
            traced: self.state.tracing().map(|tracing| Box::new(tracing.take())),
        }
    }

    pub(super) fn write_full_name(&self, found: Found, out: &mut Vec<u8>) {
        out.extend_from_slice(found.variable.name().as_bytes());
        if found.name != ContentId::EMPTY {
            out.push(b':');
            out.extend_from_slice(self.state.contents.bytes(found.name));
        }
    }
}
