//! What a rule needs before it is worth looking at.
//!
//! Nearly all rules ask for a pattern that nothing in a request may match. Their gates lie side by side
//! and are a number or two each, so that passing such a rule by reads no more of it.

use std::collections::HashMap;

use super::{Kind, LaneId, Polarity, Rule, Targets, Test, TxSlot};
use crate::inspection::ChainId;
use crate::operator::number::Comparison;
use crate::pattern::PatternId;

/// The lanes of a rule, numbered so that all rules with the same lanes share what may match in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupId(pub(crate) u32);

/// Whether a rule has to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It has.
    Open,
    /// Only if something in these lanes may match this pattern.
    Candidate { group: GroupId, pattern: PatternId },
    /// Only if a number of `TX` compares as the rule asks.
    Number(NumberTest),
    /// Unless a glance at what it looks up says that it does not match.
    Kept,
}

/// A `TX` variable compared with a constant, as most rules that only guide others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberTest {
    pub(crate) slot: TxSlot,
    pub(crate) kind: Kind,
    pub(crate) comparison: Comparison,
    pub(crate) number: i64,
    pub(crate) polarity: Polarity,
}

impl NumberTest {
    /// What the link asks, if it asks that.
    pub(crate) fn of(link: &Rule) -> Option<Self> {
        match (&link.targets, &link.test) {
            (&Targets::Slot { slot, kind }, &Test::Constant(comparison, number))
                if link.chain == ChainId::NONE && link.steps.is_empty() =>
            {
                let polarity = link.polarity;
                Some(Self { slot, kind, comparison, number, polarity })
            }
            _ => None,
        }
    }
}

/// The groups of lanes that gates name.
#[derive(Default)]
pub(super) struct Groups {
    all: Vec<Box<[LaneId]>>,
    known: HashMap<Box<[LaneId]>, GroupId>,
}

impl Groups {
    /// The gate of a rule with its chain: without its first link nothing of it matches.
    pub(super) fn gate(&mut self, rule: &Rule) -> Gate {
        if let Some(test) = NumberTest::of(rule) {
            return Gate::Number(test);
        }
        if matches!(rule.targets, Targets::Kept(_)) {
            return Gate::Kept;
        }
        let looks_in_lanes = matches!(rule.targets, Targets::Stable(_));
        match rule.test.prefiltered() {
            Some(pattern) if looks_in_lanes && rule.polarity == Polarity::Matches => {
                Gate::Candidate { group: self.number(&rule.lanes), pattern }
            }
            _ => Gate::Open,
        }
    }

    fn number(&mut self, lanes: &[LaneId]) -> GroupId {
        if let Some(&known) = self.known.get(lanes) {
            return known;
        }
        let id = GroupId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(lanes.into());
        self.known.insert(lanes.into(), id);
        id
    }

    /// The lanes of each group.
    pub(super) fn lanes(self) -> Vec<Box<[LaneId]>> {
        self.all
    }
}
