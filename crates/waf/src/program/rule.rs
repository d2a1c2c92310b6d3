//! One compiled rule: where it looks, what it asks, what it does.

use super::{LaneId, Part, Polarity, Targets, Test, Text, TxSlot};
use crate::context::Collection;
use crate::inspection::{ChainId, Logged, Mode};
use crate::seclang::action::{Allowance, Sanitise, Severity};
use crate::seclang::control::BodyProcessor;
use crate::seclang::setting::{AuditMode, AuditPartsChange, Switch};
use crate::variable::Phase;

/// Where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The file's name as it was given or included.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// What never changes about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMeta {
    /// Its `id`; 0 for a rule without one (markers and old actions).
    pub id: u64,
    /// Where it stands.
    pub place: Place,
    /// Its phase.
    pub phase: Phase,
    /// `msg` as written.
    pub message: String,
    /// Its tags, as written.
    pub tags: Vec<String>,
    /// Its severity, if it has one.
    pub severity: Option<Severity>,
    /// `rev`.
    pub revision: String,
    /// `ver`.
    pub version: String,
    /// `maturity`, 1 to 9, 0 if not given.
    pub maturity: u8,
    /// `accuracy`, 1 to 9, 0 if not given.
    pub accuracy: u8,
    /// Operator and argument as written, for reports.
    pub operator: String,
    /// The transformations of the starter, in order.
    pub transformations: Vec<&'static str>,
}

/// A rule's place among all rules of the program, chained rules counted with their starter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(crate) struct RuleNumber(pub(crate) u32);

impl RuleNumber {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a match fills `TX:0` to `TX:9`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    Groups,
    Nothing,
}

/// Whether a match is remembered as `MATCHED_VAR` and `MATCHED_VARS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remembers {
    Match,
    Nothing,
}

/// A rule, or one link of a chain.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) number: RuleNumber,
    pub(crate) targets: Targets,
    pub(crate) test: Test,
    pub(crate) polarity: Polarity,
    /// The lane of each target's values, if all of them are known before the phase begins; with
    /// `multiMatch` the lanes of each target, one for each step.
    pub(crate) lanes: Box<[LaneId]>,
    pub(crate) chain: ChainId,
    /// With `multiMatch`: each step of the chain on the way, the untransformed value first.
    pub(crate) steps: Box<[ChainId]>,
    pub(crate) capture: Capture,
    /// Whether anything asks what it was that matched.
    pub(crate) remembers: Remembers,
    /// What a match does besides deciding, in the order of writing.
    pub(crate) acts: Box<[Act]>,
    pub(crate) message: Text,
    pub(crate) data: Text,
    pub(crate) severity: Option<Severity>,
    pub(crate) logged: Logged,
    /// What the whole chain decides; held by the starter.
    pub(crate) decision: Decision,
    pub(crate) flow: Flow,
    /// The links after the starter; empty for a rule of its own.
    pub(crate) links: Box<[Rule]>,
}

/// What a match of the whole chain decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    Allow(Allowance),
    Deny { status: u16 },
    Drop,
    Redirect { status: u16, location: Text },
}

/// Which rule of the phase comes next after a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// The rule at this index of the phase (`skip`, `skipAfter`); past the end means none.
    Jump(u32),
}

/// One effect of a match.
#[derive(Debug)]
pub(crate) enum Act {
    SetTx { name: TxName, value: Assign },
    SetKept { collection: Collection, name: Text, value: Assign },
    SetEnv { name: Text, value: Option<Text> },
    Expire { collection: Collection, name: Text, seconds: Text },
    Deprecate { collection: Collection, name: Text, amount: u32, period_s: u32 },
    Open { collection: Collection, key: Text },
    Control(Control),
    Sanitise(Sanitise),
}

/// A `TX` variable that is written.
#[derive(Debug)]
pub(crate) enum TxName {
    Slot(TxSlot),
    Text(Text),
}

/// What `setvar` does to a variable.
#[derive(Debug)]
pub(crate) enum Assign {
    /// A number whose decimal form is what was written.
    Number(i64),
    Text(Text),
    Add(Text),
    Subtract(Text),
    Remove,
}

/// What `ctl` changes for the rest of the transaction.
#[derive(Debug)]
pub(crate) enum Control {
    Mode(Mode),
    RemoveRules(Box<[RuleNumber]>),
    RemoveTargets { rules: Box<[RuleNumber]>, part: Part },
    BodyProcessor(BodyProcessor),
    RequestBodyAccess(Switch),
    RequestBodyLimit(u64),
    ForceRequestBodyVariable(Switch),
    ResponseBodyAccess(Switch),
    ResponseBodyLimit(u64),
    AuditEngine(AuditMode),
    AuditLogParts(AuditPartsChange),
}
