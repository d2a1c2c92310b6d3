//! From targets to values: sets, lanes, and the variables that rules themselves change.

use super::Half;
use super::contents::{ChainId, ContentId};
use super::evaluate::Run;
use super::state::Newness;
use super::values::{Found, TxValue, sources};
use crate::pattern::{Makeup, Match, PatternId};
use crate::program::{GroupId, Kind, LaneId, Part, RuleNumber, Selector, SetId, TargetSet, TxSlot};
use crate::seclang::setting::Switch;
use crate::variable::Variable;

impl Run<'_> {
    /// Makes sure that a set's values are those of now.
    pub(super) fn resolve_set(&mut self, id: SetId) {
        let at = id.0 as usize;
        let generation = self.state.values.generation();
        if self.state.sets[at].generation == generation {
            return;
        }
        let mut found = std::mem::take(&mut self.state.sets[at].found);
        found.clear();
        let program = self.program;
        self.resolve(&program.sets[at], &mut found);
        let set = &mut self.state.sets[at];
        set.generation = generation;
        set.found = found;
        set.distinct.clear();
        self.state.marks.clear();
        set.makeup = Makeup::NOTHING;
        for found in &set.found {
            if self.state.marks.set(found.value) == Newness::New {
                set.distinct.push(found.value);
                set.makeup = set.makeup.or(self.state.contents.makeup(found.value));
            }
        }
    }

    /// Makes sure that it is known what may match a resolved set's values as they are.
    fn ask_of_set(&mut self, id: SetId, half: Half) {
        let set = &mut self.state.sets[id.0 as usize];
        let (asked, candidates) = &mut set.candidates[half as usize];
        if *asked == set.generation {
            return;
        }
        *asked = set.generation;
        candidates.clear();
        let (contents, asking) = (&mut self.state.contents, &mut self.worker.asking);
        for &content in &set.distinct {
            let may = contents.candidates(self.program, half, ChainId::NONE, content, asking);
            if let Some(may) = may {
                candidates.union(may);
            }
        }
    }

    /// Whether anything in the lanes of a group may match a pattern.
    pub(super) fn may_match(&mut self, group: GroupId, pattern: PatternId) -> bool {
        let at = group.0 as usize;
        let generation = self.state.values.generation();
        if self.state.groups[at].generation != generation {
            let mut resolved = std::mem::take(&mut self.state.groups[at]);
            resolved.generation = generation;
            resolved.candidates.clear();
            for &lane in &self.program.groups[at] {
                // Most of what rules look at, a request has nothing of.
                let set = self.program.lanes[lane.0 as usize].set;
                self.resolve_set(set);
                if self.state.sets[set.0 as usize].distinct.is_empty() {
                    continue;
                }
                self.resolve_lane(lane);
                resolved.candidates.union(&self.state.lanes[lane.0 as usize].candidates);
            }
            self.state.groups[at] = resolved;
        }
        self.state.groups[at].candidates.contains(pattern)
    }

    /// Makes sure that a lane's values and candidates are those of now.
    pub(super) fn resolve_lane(&mut self, id: LaneId) {
        let at = id.0 as usize;
        let generation = self.state.values.generation();
        if self.state.lanes[at].generation == generation {
            return;
        }
        let program = self.program;
        let key = program.lanes[at];
        self.resolve_set(key.set);
        self.ask_of_set(key.set, key.half);
        let set = &self.state.sets[key.set.0 as usize];
        let own = &set.candidates[key.half as usize].1;
        let mut lane = std::mem::take(&mut self.state.lanes[at]);
        lane.generation = generation;
        lane.distinct.clear();
        lane.candidates.clear();
        let changes = program.changes(key.chain);
        if !set.makeup.meets(changes) {
            lane.distinct.extend_from_slice(&set.distinct);
            lane.candidates.union(own);
            self.state.lanes[at] = lane;
            return;
        }
        self.state.marks.clear();
        let (contents, asking) = (&mut self.state.contents, &mut self.worker.asking);
        for &before in &set.distinct {
            let content = contents.transform(program, key.chain, before);
            if self.state.marks.set(content) == Newness::Known {
                continue;
            }
            lane.distinct.push(content);
            if let Some(may) = contents.candidates(program, key.half, key.chain, content, asking) {
                lane.candidates.union(may);
            }
        }
        self.state.lanes[at] = lane;
    }

    /// The values of a target set, in the order of its targets.
    pub(super) fn resolve(&mut self, set: &TargetSet, out: &mut Vec<Found>) {
        for part in &set.parts {
            match part.kind {
                Kind::Value => self.each_value(part, &set.exclusions, out),
                Kind::Count => {
                    let mut members = Vec::new();
                    self.each_value(part, &set.exclusions, &mut members);
                    let value = self.number(members.len());
                    let name = match &part.selector {
                        Selector::Name(name) => self.state.contents.intern(name),
                        Selector::Slot(slot) => {
                            self.state.contents.intern(self.program.tx_slots.name(*slot))
                        }
                        Selector::All | Selector::Pattern(_) | Selector::Source(_) => {
                            ContentId::EMPTY
                        }
                    };
                    out.push(Found { variable: part.variable, name, value });
                }
            }
        }
    }

    fn number(&mut self, number: usize) -> ContentId {
        self.state.contents.intern(itoa::Buffer::new().format(number).as_bytes())
    }

    fn each_value(&mut self, part: &Part, exclusions: &[Part], out: &mut Vec<Found>) {
        let variable = part.variable;
        if let Some(collection) = super::collection_of(variable) {
            return self.each_kept(variable, collection, part, exclusions, out);
        }
        match variable {
            Variable::Tx => self.each_tx(part, exclusions, out),
            Variable::MatchedVars | Variable::MatchedVarsNames => {
                self.each_matched(part, exclusions, out);
            }
            Variable::Env => {
                for at in 0..self.state.env.len() {
                    let (name, value) = &self.state.env[at];
                    let name = self.state.contents.intern(name);
                    let value = self.state.contents.intern(value);
                    self.offer(part, exclusions, Found { variable, name, value }, out);
                }
            }
            Variable::Rule => {
                for (name, value) in self.rule_members() {
                    self.offer(part, exclusions, Found { variable, name, value }, out);
                }
            }
            Variable::Geo => {
                for at in 0..self.state.geo.len() {
                    let (name, value) = self.state.geo[at];
                    let name = self.state.contents.intern(name.as_bytes());
                    self.offer(part, exclusions, Found { variable, name, value }, out);
                }
            }
            _ if !crate::program::is_stable(variable) => {
                let mut text = std::mem::take(&mut self.state.text);
                text.clear();
                let known = self.write_scalar(variable, &mut text);
                if known == Switch::On {
                    let value = self.state.contents.intern(&text);
                    out.push(Found { variable, name: ContentId::EMPTY, value });
                }
                self.state.text = text;
            }
            _ => {
                let (of, view) = sources(variable);
                let takes_all = part.selector == Selector::All
                    && exclusions.iter().all(|exclusion| exclusion.variable != variable);
                if takes_all {
                    let values = of.iter().flat_map(|&source| self.state.values.of(source));
                    out.extend(values.map(|named| Found {
                        variable,
                        name: named.name,
                        value: view.of(*named),
                    }));
                    return;
                }
                for &source in of {
                    for at in 0..self.state.values.of(source).len() {
                        let named = self.state.values.of(source)[at];
                        let value = view.of(named);
                        let found = Found { variable, name: named.name, value };
                        self.offer(part, exclusions, found, out);
                    }
                }
            }
        }
    }

    fn each_tx(&mut self, part: &Part, exclusions: &[Part], out: &mut Vec<Found>) {
        let program = self.program;
        let slots: &[TxSlot] = match &part.selector {
            Selector::Slot(slot) => std::slice::from_ref(slot),
            Selector::Pattern(selector) => &program.selectors[usize::from(selector.0)].slots,
            Selector::All | Selector::Name(_) | Selector::Source(_) => &program.tx_all,
        };
        for &slot in slots {
            let value = self.state.tx.slot(slot);
            if value != TxValue::Absent {
                let name = self.state.contents.intern(program.tx_slots.name(slot));
                let value = self.tx_content(value);
                self.offer(part, exclusions, Found { variable: Variable::Tx, name, value }, out);
            }
        }
        if let Selector::Slot(_) = part.selector {
            return;
        }
        for at in 0..self.state.tx.others().len() {
            let (name, value) = self.state.tx.others()[at];
            if value != TxValue::Absent {
                let value = self.tx_content(value);
                self.offer(part, exclusions, Found { variable: Variable::Tx, name, value }, out);
            }
        }
    }

    pub(super) fn tx_content(&mut self, value: TxValue) -> ContentId {
        let mut text = std::mem::take(&mut self.state.text);
        text.clear();
        self.state.tx.write(value, &mut text);
        let content = self.state.contents.intern(&text);
        self.state.text = text;
        content
    }

    fn each_matched(&mut self, part: &Part, exclusions: &[Part], out: &mut Vec<Found>) {
        for at in 0..self.state.matched.len() {
            let matched = self.state.matched[at];
            let mut text = std::mem::take(&mut self.state.text);
            text.clear();
            self.write_full_name(matched, &mut text);
            let name = self.state.contents.intern(&text);
            self.state.text = text;
            let value = match part.variable {
                Variable::MatchedVarsNames => name,
                _ => matched.value,
            };
            let found = Found { variable: part.variable, name, value };
            self.offer(part, exclusions, found, out);
        }
    }

    /// Adds a value if the target selects it and nothing excludes it.
    pub(super) fn offer(
        &mut self,
        part: &Part,
        exclusions: &[Part],
        found: Found,
        out: &mut Vec<Found>,
    ) {
        if self.selects(&part.selector, found.name)
            && !exclusions.iter().any(|part| self.excludes(part, found))
        {
            out.push(found);
        }
    }

    fn excludes(&mut self, exclusion: &Part, found: Found) -> bool {
        exclusion.variable == found.variable && self.selects(&exclusion.selector, found.name)
    }

    fn selects(&mut self, selector: &Selector, name: ContentId) -> bool {
        match selector {
            Selector::All => true,
            Selector::Name(wanted) => self.state.contents.bytes(name).eq_ignore_ascii_case(wanted),
            Selector::Slot(slot) => {
                let wanted = self.program.tx_slots.name(*slot);
                self.state.contents.bytes(name).eq_ignore_ascii_case(wanted)
            }
            Selector::Pattern(selector) => {
                let selector = &self.program.selectors[usize::from(selector.0)];
                let name = self.state.contents.bytes(name);
                let caches = &mut self.worker.caches;
                selector.pattern.is_match(caches, selector.id, name) == Match::Yes
            }
            Selector::Source(source) => {
                let name = self.state.contents.bytes(name);
                self.worker.expanded.is_match(source, name) == Match::Yes
            }
        }
    }

    /// Takes out what `ctl:ruleRemoveTarget*` has excluded from this rule.
    pub(super) fn keep_allowed(&mut self, rule: RuleNumber, found: &mut Vec<Found>) {
        let removed = std::mem::take(&mut self.state.removed_targets);
        found.retain(|&found| {
            !removed.iter().any(|(of, part)| *of == rule && self.excludes(part, found))
        });
        self.state.removed_targets = removed;
    }

    pub(super) fn has_removed_targets(&self, rule: RuleNumber) -> bool {
        self.state.removed_targets.iter().any(|(of, _)| *of == rule)
    }
}
