//! Rules before they are compiled: removals and updates applied, defaults known, numbers given.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Compiler;
use crate::pattern::{Caches, Match, Options, Pattern, PatternId};
use crate::program::{Place, RuleMeta, RuleNumber};
use crate::seclang::action::Transform;
use crate::seclang::{
    self, Action, Code, Directive, Document, Link, Located, Location, Piece, Sense, TargetUpdate,
    Test, Text,
};
use crate::variable::Phase;

/// All rules of a rule set that are left, in the order of the rule set.
pub(super) struct Drafts {
    rules: Vec<Draft>,
    markers: Vec<Marker>,
}

/// One rule that will be compiled.
pub(super) struct Draft {
    pub(super) rule: seclang::Rule,
    pub(super) number: RuleNumber,
    /// What `SecDefaultAction` said for its phase where the rule stands.
    pub(super) defaults: Arc<[Located<Action>]>,
    /// Its place among the rules of its phase.
    index: u32,
    meta: Arc<RuleMeta>,
}

struct Marker {
    name: Box<[u8]>,
    /// How many rules of each phase stand before it.
    indexes: [u32; 5],
}

impl Drafts {
    pub(super) fn of(document: &Document, compiler: &mut Compiler<'_>) -> Self {
        let mut defaults: [Arc<[Located<Action>]>; 5] = std::array::from_fn(|_| Arc::from([]));
        let mut entries: Vec<(seclang::Rule, Arc<[Located<Action>]>)> = Vec::new();
        // Markers as the number of entries before them, until it is known which entries stay.
        let mut markers: Vec<(Box<[u8]>, usize)> = Vec::new();
        let mut removed: Vec<Removal> = Vec::new();
        let mut updates: Vec<&Located<Directive>> = Vec::new();
        for directive in &document.directives {
            match &directive.value {
                Directive::Rule(rule) => {
                    entries.push((rule.clone(), Arc::clone(&defaults[rule.phase.index()])));
                }
                Directive::Marker(name) => markers.push((name.clone(), entries.len())),
                Directive::DefaultAction { phase, actions } => {
                    defaults[phase.index()] = actions.clone().into();
                }
                Directive::RemoveById(ids) => removed.push(Removal::Ids(ids.clone())),
                Directive::RemoveByTag(source) => {
                    removed.extend(compiler.matcher(&directive.location, source).map(Removal::Tag));
                }
                Directive::RemoveByMsg(source) => {
                    removed.extend(compiler.matcher(&directive.location, source).map(Removal::Msg));
                }
                Directive::UpdateTargetById { .. }
                | Directive::UpdateTargetByTag { .. }
                | Directive::UpdateTargetByMsg { .. }
                | Directive::UpdateActionById { .. } => updates.push(directive),
                Directive::ComponentSignature(name) => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    compiler.settings.components.push(name);
                }
                Directive::Setting(setting) => compiler.set(&directive.location, setting),
            }
        }
        for update in updates {
            compiler.update(&mut entries, update);
        }
        let mut drafts = Self { rules: Vec::new(), markers: Vec::new() };
        let mut counts = [0_u32; 5];
        let mut markers = markers.into_iter().peekable();
        for (at, (rule, defaults)) in entries.into_iter().enumerate() {
            while let Some((name, _)) = markers.next_if(|(_, before)| *before <= at) {
                drafts.markers.push(Marker { name, indexes: counts });
            }
            // A rule can be named by its number in `skipAfter`: the place behind it.
            let id_marker = rule.id.to_string().into_bytes().into();
            let phase = rule.phase;
            if !removed.iter_mut().any(|removal| removal.hits(&rule)) {
                let number = RuleNumber(u32::try_from(drafts.rules.len()).unwrap_or(u32::MAX));
                let meta = Arc::new(meta_of(&rule));
                let index = counts[phase.index()];
                counts[phase.index()] += 1;
                drafts.rules.push(Draft { rule, number, defaults, index, meta });
            }
            drafts.markers.push(Marker { name: id_marker, indexes: counts });
        }
        for (name, _) in markers {
            drafts.markers.push(Marker { name, indexes: counts });
        }
        drafts
    }

    pub(super) fn metas(&self) -> Vec<Arc<RuleMeta>> {
        self.rules.iter().map(|draft| Arc::clone(&draft.meta)).collect()
    }

    pub(super) fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &Draft> {
        self.rules.iter().filter(move |draft| draft.rule.phase == phase)
    }

    /// Where `skipAfter` leads: the first marker of that name behind the rule.
    pub(super) fn behind(&self, draft: &Draft, name: &[u8]) -> Option<u32> {
        let phase = draft.rule.phase.index();
        self.markers
            .iter()
            .filter(|marker| *marker.name == *name)
            .map(|marker| marker.indexes[phase])
            .find(|&index| index > draft.index)
    }

    /// The rule `count` rules further on in the same phase.
    pub(super) fn further(draft: &Draft, count: u32) -> u32 {
        draft.index.saturating_add(count).saturating_add(1)
    }
}

enum Removal {
    Ids(Vec<RangeInclusive<u64>>),
    Tag(Matcher),
    Msg(Matcher),
}

impl Removal {
    fn hits(&mut self, rule: &seclang::Rule) -> bool {
        match self {
            Removal::Ids(ids) => ids.iter().any(|range| range.contains(&rule.id)),
            Removal::Tag(matcher) => tags_of(rule).any(|tag| matcher.hits(&source_of(tag))),
            Removal::Msg(matcher) => messages_of(rule).any(|text| matcher.hits(&source_of(text))),
        }
    }
}

/// A pattern over tags or messages.
pub(super) struct Matcher {
    pattern: Pattern,
    caches: Caches,
}

impl Matcher {
    pub(super) fn hits(&mut self, text: &[u8]) -> bool {
        self.pattern.is_match(&mut self.caches, PatternId(0), text) == Match::Yes
    }
}

impl Compiler<'_> {
    pub(super) fn matcher(&mut self, location: &Location, source: &[u8]) -> Option<Matcher> {
        match Pattern::compile(source, &Options::default()) {
            Ok((pattern, _)) => Some(Matcher { pattern, caches: Caches::new() }),
            Err(fault) => {
                let message = format!("this is not a regular expression: {fault}");
                self.refuse(location, Code::Value, message, fault.hint.map(str::to_owned));
                None
            }
        }
    }

    fn update(
        &mut self,
        entries: &mut [(seclang::Rule, Arc<[Located<Action>]>)],
        directive: &Located<Directive>,
    ) {
        let at = &directive.location;
        let mut hits = 0;
        let mut retarget = |rule: &mut seclang::Rule, update: &TargetUpdate| {
            hits += 1;
            if let Some(link) = rule.links.first_mut() {
                change_targets(link, update);
            }
        };
        let rules = entries.iter_mut().map(|(rule, _)| rule);
        match &directive.value {
            Directive::UpdateTargetById { ids, targets } => {
                rules
                    .filter(|rule| ids.iter().any(|range| range.contains(&rule.id)))
                    .for_each(|rule| retarget(rule, targets));
            }
            Directive::UpdateTargetByTag { tag, targets } => {
                let Some(mut matcher) = self.matcher(at, tag) else { return };
                rules
                    .filter(|rule| tags_of(rule).any(|tag| matcher.hits(&source_of(tag))))
                    .for_each(|rule| retarget(rule, targets));
            }
            Directive::UpdateTargetByMsg { msg, targets } => {
                let Some(mut matcher) = self.matcher(at, msg) else { return };
                rules
                    .filter(|rule| messages_of(rule).any(|text| matcher.hits(&source_of(text))))
                    .for_each(|rule| retarget(rule, targets));
            }
            Directive::UpdateActionById { id, link, actions } => {
                for rule in rules.filter(|rule| rule.id == *id) {
                    if let Some(link) = rule.links.get_mut(*link) {
                        hits += 1;
                        change_actions(link, actions);
                    }
                }
            }
            _ => return,
        }
        if hits == 0 {
            self.note(at, "no rule of the rule set is meant by this".to_owned());
        }
    }
}

fn change_targets(link: &mut Link, update: &TargetUpdate) {
    let Test::Match { targets, .. } = &mut link.test else { return };
    if let Some(replaced) = &update.replaced {
        targets.retain(|target| {
            (target.kind, target.variable, &target.selector)
                != (replaced.kind, replaced.variable, &replaced.selector)
        });
    }
    targets.extend(update.targets.iter().cloned());
}

/// What comes new takes the place of what there may be only one of.
fn change_actions(link: &mut Link, actions: &[Located<Action>]) {
    for action in actions {
        let new = &action.value;
        link.actions.retain(|old| !replaces(new, &old.value));
        link.actions.push(action.clone());
    }
}

fn replaces(new: &Action, old: &Action) -> bool {
    use Action as A;
    let disruptive = |action: &Action| {
        matches!(action, A::Allow(_) | A::Block | A::Deny | A::Drop | A::Pass | A::Redirect(_))
    };
    let logs = |action: &Action| matches!(action, A::Log | A::NoLog);
    let audits = |action: &Action| matches!(action, A::AuditLog | A::NoAuditLog);
    let single = matches!(
        new,
        A::Msg(_) | A::LogData(_) | A::Severity(_) | A::Rev(_) | A::Ver(_) | A::Status(_)
    );
    (disruptive(new) && disruptive(old))
        || (logs(new) && logs(old))
        || (audits(new) && audits(old))
        || (single && std::mem::discriminant(new) == std::mem::discriminant(old))
}

fn tags_of(rule: &seclang::Rule) -> impl Iterator<Item = &Text> {
    actions_of(rule).filter_map(|action| match action {
        Action::Tag(text) => Some(text),
        _ => None,
    })
}

fn messages_of(rule: &seclang::Rule) -> impl Iterator<Item = &Text> {
    actions_of(rule).filter_map(|action| match action {
        Action::Msg(text) => Some(text),
        _ => None,
    })
}

fn actions_of(rule: &seclang::Rule) -> impl Iterator<Item = &Action> {
    rule.links.iter().flat_map(|link| &link.actions).map(|action| &action.value)
}

/// The text as it was written, macros and all.
pub(super) fn source_of(text: &Text) -> Vec<u8> {
    let mut source = Vec::new();
    for piece in text.pieces() {
        match piece {
            Piece::Literal(bytes) => source.extend_from_slice(bytes),
            Piece::Macro { variable, selector } => {
                source.extend_from_slice(b"%{");
                source.extend_from_slice(variable.name().as_bytes());
                if let Some(selector) = selector {
                    source.push(b'.');
                    source.extend_from_slice(selector);
                }
                source.push(b'}');
            }
        }
    }
    source
}

fn meta_of(rule: &seclang::Rule) -> RuleMeta {
    let shown = |text: &Text| String::from_utf8_lossy(&source_of(text)).into_owned();
    let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut meta = RuleMeta {
        id: rule.id,
        place: Place { file: rule.location.file.to_string(), line: rule.location.line },
        phase: rule.phase,
        message: messages_of(rule).next().map(shown).unwrap_or_default(),
        tags: tags_of(rule).map(shown).collect(),
        severity: None,
        revision: String::new(),
        version: String::new(),
        maturity: 0,
        accuracy: 0,
        operator: String::new(),
        transformations: Vec::new(),
    };
    for action in rule.links.iter().flat_map(|link| &link.actions) {
        match &action.value {
            Action::Severity(severity) => meta.severity = Some(*severity),
            Action::Rev(revision) => meta.revision = plain(revision),
            Action::Ver(version) => meta.version = plain(version),
            Action::Maturity(maturity) => meta.maturity = *maturity,
            Action::Accuracy(accuracy) => meta.accuracy = *accuracy,
            Action::Transform(Transform::Apply(applied)) => {
                meta.transformations.push(applied.name());
            }
            Action::Transform(Transform::Reset) => meta.transformations.clear(),
            _ => {}
        }
    }
    if let Some(Link { test: Test::Match { operator, .. }, .. }) = rule.links.first() {
        let negation = if operator.sense == Sense::Negated { "!" } else { "" };
        let argument = shown(&operator.argument);
        meta.operator = format!("{negation}@{} {argument}", operator.name.name());
    }
    meta
}
