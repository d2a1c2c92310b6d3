//! Targets and texts: names become slots, patterns become numbers, sets are shared.

use super::{Compiler, Scope};
use crate::context::Name;
use crate::inspection::{ChainId, Half, collection_of};
use crate::pattern::{Options, Pattern};
use crate::program::{
    KeptTarget, Kind, LaneId, LaneKey, Part, Piece, Selector, SelectorId, SelectorPattern, SetId,
    TargetSet, Targets, Text, TxSlot, is_stable,
};
use crate::seclang::{self, Code, Location, Target, TargetKind};
use crate::variable::Variable;

impl Compiler<'_> {
    pub(super) fn targets(&mut self, targets: &[Target]) -> Targets {
        let mut parts = Vec::new();
        let mut exclusions = Vec::new();
        for target in targets {
            let part = self.part(target);
            match target.kind {
                TargetKind::Value | TargetKind::Count => parts.push(part),
                TargetKind::Exclude => exclusions.push(part),
            }
        }
        // An exclusion without a selector takes the whole variable out.
        parts.retain(|part| {
            !exclusions
                .iter()
                .any(|out| out.variable == part.variable && out.selector == Selector::All)
        });
        exclusions.retain(|out| parts.iter().any(|part| part.variable == out.variable));
        if let ([Part { variable: Variable::Tx, selector: Selector::Slot(slot), kind }], []) =
            (&*parts, &*exclusions)
        {
            return Targets::Slot { slot: *slot, kind: *kind };
        }
        if let ([Part { variable, selector: Selector::Name(name), .. }], []) =
            (&*parts, &*exclusions)
            && let Some(collection) = collection_of(*variable)
        {
            let name = Name::new(name.to_ascii_lowercase());
            let set = TargetSet { parts: parts.into(), exclusions: Box::default() };
            return Targets::Kept(KeptTarget { collection, name, set });
        }
        let stable = parts.iter().all(|part| is_stable(part.variable));
        if !stable {
            return Targets::Volatile(TargetSet {
                parts: parts.into(),
                exclusions: exclusions.into(),
            });
        }
        let sets = parts.into_iter().map(|part| {
            let of_part = |out: &&Part| out.variable == part.variable;
            let exclusions = exclusions.iter().filter(of_part).cloned().collect();
            self.set_of(TargetSet { parts: Box::new([part]), exclusions })
        });
        Targets::Stable(sets.collect())
    }

    fn set_of(&mut self, set: TargetSet) -> SetId {
        if let Some(&known) = self.sets.known.get(&set) {
            return known;
        }
        let id = SetId(u32::try_from(self.sets.all.len()).unwrap_or(u32::MAX));
        self.sets.all.push(set.clone());
        self.sets.known.insert(set, id);
        id
    }

    pub(super) fn part(&mut self, target: &Target) -> Part {
        self.used[target.variable.index()] = true;
        let selector = match &target.selector {
            seclang::Selector::All => Selector::All,
            seclang::Selector::Name(name) if target.variable == Variable::Tx => self
                .slot(&target.location, name)
                .map_or(Selector::Name(name.clone()), Selector::Slot),
            seclang::Selector::Name(name) => Selector::Name(name.clone()),
            seclang::Selector::Pattern(source) => self.selector(&target.location, source),
        };
        let kind = match target.kind {
            TargetKind::Count => Kind::Count,
            TargetKind::Value | TargetKind::Exclude => Kind::Value,
        };
        Part { variable: target.variable, selector, kind }
    }

    fn selector(&mut self, location: &Location, source: &[u8]) -> Selector {
        if let Some(&known) = self.selectors_known.get(source) {
            return Selector::Pattern(known);
        }
        if self.scope == Scope::Policy {
            let source = [b"(?i)", source].concat();
            if let Err(fault) = Pattern::compile(&source, &Options::default()) {
                let message = format!("the selector is not a regular expression: {fault}");
                self.refuse(location, Code::Value, message, fault.hint.map(str::to_owned));
            }
            return Selector::Source(source.into());
        }
        let options = Options { case_insensitive: true, ..Options::default() };
        match (Pattern::compile(source, &options), u16::try_from(self.selectors.len())) {
            (Ok((pattern, notes)), Ok(at)) => {
                for note in notes {
                    self.note(location, note.to_string());
                }
                let id = self.next_pattern();
                self.selectors.push(SelectorPattern { id, pattern, slots: Box::default() });
                self.selectors_known.insert(source.into(), SelectorId(at));
                Selector::Pattern(SelectorId(at))
            }
            (Err(fault), _) => {
                let message = format!("the selector is not a regular expression: {fault}");
                self.refuse(location, Code::Value, message, fault.hint.map(str::to_owned));
                Selector::All
            }
            (_, Err(_)) => {
                let message = "there are more than 65,536 selectors with patterns".to_owned();
                self.refuse(location, Code::Limit, message, None);
                Selector::All
            }
        }
    }

    pub(super) fn slot(&mut self, location: &Location, name: &[u8]) -> Option<TxSlot> {
        if self.scope == Scope::Policy {
            return self.tx_slots.find(&name.to_ascii_lowercase());
        }
        let slot = self.tx_slots.assign(name);
        if slot.is_none() {
            let message = "there are more than 65,536 names of TX variables".to_owned();
            self.refuse(location, Code::Limit, message, None);
        }
        slot
    }

    /// The lane of a set after a chain.
    pub(super) fn lane(&mut self, set: SetId, chain: ChainId, half: Half) -> LaneId {
        let key = LaneKey { set, chain, half };
        let lanes = &mut self.lanes;
        let next = LaneId(u32::try_from(lanes.len()).unwrap_or(u32::MAX));
        *self.lanes_known.entry(key).or_insert_with(|| {
            lanes.push(key);
            next
        })
    }

    pub(super) fn text(&mut self, location: &Location, text: &seclang::Text) -> Text {
        let pieces = text.pieces().iter().map(|piece| match piece {
            seclang::Piece::Literal(bytes) => Piece::Literal(bytes.clone()),
            seclang::Piece::Macro { variable: Variable::Tx, selector: Some(name) } => {
                match self.slot(location, name) {
                    Some(slot) => Piece::Slot(slot),
                    None => Piece::Macro { variable: Variable::Tx, name: Some(name.clone()) },
                }
            }
            seclang::Piece::Macro { variable, selector } => {
                self.used[variable.index()] = true;
                Piece::Macro { variable: *variable, name: selector.clone() }
            }
        });
        Text { pieces: pieces.collect() }
    }
}
