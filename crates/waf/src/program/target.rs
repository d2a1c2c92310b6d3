//! Where rules look: targets resolved to sets and lanes.

use super::TxSlot;
use crate::context::{Collection, Name};
use crate::inspection::{ChainId, Half};
use crate::pattern::{Pattern, PatternId};
use crate::variable::Variable;

/// One target with what is taken out of it, numbered so that all rules that look there share its
/// resolving.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SetId(pub(crate) u32);

/// The values of a set after a chain of transformations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaneId(pub(crate) u32);

/// What a lane is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaneKey {
    pub(crate) set: SetId,
    pub(crate) chain: ChainId,
    pub(crate) half: Half,
}

/// Where one rule looks.
#[derive(Debug)]
pub(crate) enum Targets {
    /// Nowhere: `SecAction`.
    Nothing,
    /// One `TX` variable that has a slot, which is what most rules of the Core Rule Set ask for.
    Slot { slot: TxSlot, kind: Kind },
    /// One variable that is kept between transactions, looked up by its name.
    Kept(KeptTarget),
    /// Values that stand before the phase begins: a set for each target.
    Stable(Box<[SetId]>),
    /// Values of which rules of the same phase may change some.
    Volatile(TargetSet),
}

/// One variable of a collection that is kept between transactions.
#[derive(Debug)]
pub(crate) struct KeptTarget {
    pub(crate) collection: Collection,
    /// In lower case, as names are kept.
    pub(crate) name: Name,
    /// The same as any rule's targets.
    pub(crate) set: TargetSet,
}

/// Targets in the order of writing, and what is taken out of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TargetSet {
    pub(crate) parts: Box<[Part]>,
    pub(crate) exclusions: Box<[Part]>,
}

/// One target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub(crate) variable: Variable,
    pub(crate) selector: Selector,
    pub(crate) kind: Kind,
}

/// Whether a target stands for its values or for their number (`&`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Value,
    Count,
}

/// Which values of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Selector {
    All,
    /// The name in any case.
    Name(Box<[u8]>),
    /// The slot of a `TX` variable.
    Slot(TxSlot),
    /// Names that a pattern matches, in any case.
    Pattern(SelectorId),
    /// The same in a policy, which has no patterns of its own: each worker compiles the source when
    /// it first needs it.
    Source(Box<[u8]>),
}

/// A pattern over names, among the program's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SelectorId(pub(crate) u16);

/// A pattern over names.
#[derive(Debug)]
pub(crate) struct SelectorPattern {
    pub(crate) id: PatternId,
    pub(crate) pattern: Pattern,
    /// The `TX` variables with slots whose names it matches, so that no transaction has to look.
    pub(crate) slots: Box<[TxSlot]>,
}

/// Whether a variable's values stand before a phase begins and stay throughout it.
pub(crate) fn is_stable(variable: Variable) -> bool {
    !matches!(
        variable,
        Variable::Tx
            | Variable::Global
            | Variable::Ip
            | Variable::Session
            | Variable::User
            | Variable::Resource
            | Variable::SessionId
            | Variable::UserId
            | Variable::MatchedVar
            | Variable::MatchedVarName
            | Variable::MatchedVars
            | Variable::MatchedVarsNames
            | Variable::Rule
            | Variable::Duration
            | Variable::Env
            | Variable::Geo
            | Variable::HighestSeverity
            | Variable::MscPcreError
            | Variable::MscPcreLimitsExceeded
            | Variable::ReqbodyProcessor
            | Variable::Time
            | Variable::TimeDay
            | Variable::TimeEpoch
            | Variable::TimeHour
            | Variable::TimeMin
            | Variable::TimeMon
            | Variable::TimeSec
            | Variable::TimeWday
            | Variable::TimeYear
    )
}
