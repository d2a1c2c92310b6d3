//! A rule set compiled into a program: immutable, shared by all workers, swapped whole.
//!
//! Compiling decides everything that does not depend on a transaction. Rules are laid out by phase,
//! with jumps in place of markers. Their targets are resolved into *sets* (which values) and *lanes*
//! (which values, after which transformations), each stored once however many rules use it. Patterns
//! and phrase lists are numbered, and what they need to match goes into one prefilter for requests
//! and one for responses. `TX` variables that rules name get slots.

mod chain;
mod compile;
mod gate;
mod rule;
mod settings;
mod target;
mod test;
mod text;

pub use compile::{Compiled, compile, compile_policy};
pub use rule::{Place, RuleMeta};
pub use settings::{Settings, Statuses};

pub(crate) use chain::ChainTable;
pub(crate) use gate::{Gate, GroupId, NumberTest};
pub(crate) use rule::{
    Act, Assign, Capture, Control, Decision, Flow, Remembers, Rule, RuleNumber, TxName,
};
pub(crate) use target::{
    KeptTarget, Kind, LaneId, LaneKey, Part, Selector, SelectorId, SelectorPattern, SetId,
    TargetSet, Targets, is_stable,
};
pub(crate) use test::{Polarity, Test};
pub(crate) use text::{Piece, Text, TxSlot, TxSlots};

use std::sync::Arc;

use crate::inspection::{ChainId, Half, Mode};
use crate::pattern::{Asked, Makeup, Prefilter};
use crate::transformation::Transformation;
use crate::variable::{Phase, Variable};

/// A compiled rule set with its settings.
#[derive(Debug)]
pub struct Program {
    /// No two programs of a process have the same.
    pub(crate) identity: u64,
    pub(crate) settings: Settings,
    pub(crate) phases: [Vec<Rule>; 5],
    /// A gate for each rule of each phase.
    pub(crate) gates: [Vec<Gate>; 5],
    /// The lanes of each group that gates name.
    pub(crate) groups: Vec<Box<[LaneId]>>,
    pub(crate) sets: Vec<TargetSet>,
    pub(crate) lanes: Vec<LaneKey>,
    pub(crate) chains: Vec<Box<[Transformation]>>,
    /// What there is in contents that each chain changes.
    pub(crate) changes: Vec<Makeup>,
    pub(crate) selectors: Vec<SelectorPattern>,
    /// Which variables some rule or text names: what nobody asks for need not be made.
    pub(crate) used: [bool; Variable::COUNT],
    pub(crate) prefilters: [Prefilter; 2],
    /// What rules of a half ask of contents behind each chain.
    pub(crate) asked: [Vec<Asked>; 2],
    pub(crate) tx_slots: TxSlots,
    /// Every slot, for those who want all of `TX`.
    pub(crate) tx_all: Box<[TxSlot]>,
    pub(crate) rules: Arc<[Arc<RuleMeta>]>,
}

impl Program {
    /// What all rules are, in the order of their numbers; per-rule counters are indexed alike.
    pub fn rules(&self) -> &[Arc<RuleMeta>] {
        &self.rules
    }

    /// The engine's settings as the rule set's directives leave them.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether rules of this phase ask [`Outside`](crate::Outside), so that it should run where
    /// waiting holds nobody up.
    pub fn waits(&self, phase: Phase) -> bool {
        let waits =
            |rule: &Rule| rule.test.waits() || rule.links.iter().any(|link| link.test.waits());
        self.phase(phase).iter().any(waits)
    }

    pub(crate) fn chain(&self, id: ChainId) -> &[Transformation] {
        &self.chains[usize::from(id.0)]
    }

    /// What there is in a content that a chain changes; one that has nothing of it, it leaves alone.
    #[inline]
    pub(crate) fn changes(&self, id: ChainId) -> Makeup {
        self.changes[usize::from(id.0)]
    }

    pub(crate) fn phase(&self, phase: Phase) -> &[Rule] {
        &self.phases[phase.index()]
    }

    pub(crate) fn gates(&self, phase: Phase) -> &[Gate] {
        &self.gates[phase.index()]
    }

    pub(crate) fn uses(&self, variable: Variable) -> bool {
        self.used[variable.index()]
    }

    /// What rules ask of contents behind a chain; `None` for what is no chain.
    pub(crate) fn asked(&self, half: Half, chain: ChainId) -> Option<&Asked> {
        self.asked[half as usize].get(usize::from(chain.0))
    }

    pub(crate) fn prefilter(&self, half: Half) -> &Prefilter {
        &self.prefilters[half as usize]
    }
}

/// A program as one site or route uses it: what is done about matches, and what every transaction
/// begins with.
#[derive(Debug)]
pub struct Policy {
    pub(crate) program: Arc<Program>,
    pub(crate) mode: Mode,
    pub(crate) opening: Box<[Act]>,
    /// What `opening` was compiled from.
    pub(crate) actions: Box<str>,
}

impl Policy {
    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What is done about matches, unless rules decide otherwise.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The actions that every transaction begins with, as they were given to
    /// [`compile_policy`]: whoever wants a policy that does one thing more adds to them.
    pub fn actions(&self) -> &str {
        &self.actions
    }
}
