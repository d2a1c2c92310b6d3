//! Rules as written: links of a chain, each with what it looks at, its test and its actions.

use super::action::Action;
use super::location::{Located, Location};
use super::operator::OperatorName;
use super::text::Text;
use crate::variable::{Phase, Variable};

/// A `SecRule` or `SecAction` with the rules chained to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where the first directive stands.
    pub location: Location,
    /// Unique in the rule set.
    pub id: u64,
    /// When it runs; all links run in it.
    pub phase: Phase,
    /// The starter, then the chained rules in their order; never empty. The starter's actions hold
    /// the disruptive ones; `id`, `phase` and `chain` are not among them, having been read into this
    /// structure.
    pub links: Vec<Link>,
}

/// One directive of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where the directive stands.
    pub location: Location,
    /// When it matches.
    pub test: Test,
    /// What it does, in the order written.
    pub actions: Vec<Located<Action>>,
}

/// When a link matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `SecAction`: always.
    Always,
    /// `SecRule`: when the operator matches a value of the targets.
    Match {
        /// What it looks at, exclusions among them, in the order written; never empty.
        targets: Vec<Target>,
        /// What it asks of each value.
        operator: OperatorCall,
    },
}

/// A variable that a rule looks at, or must not look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is written.
    pub location: Location,
    /// What is taken from the variable.
    pub kind: TargetKind,
    /// The variable.
    pub variable: Variable,
    /// Which of its values.
    pub selector: Selector,
}

/// What a target takes from its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// `ARGS`: the values.
    Value,
    /// `&ARGS`: how many values there are.
    Count,
    /// `!ARGS:x`: these values are left out.
    Exclude,
}

/// Which values of a collection.
#[derive(Clone, PartialEq, Eq)]
pub enum Selector {
    /// All of them; the only one for a scalar.
    All,
    /// Those of this name, as written. For `XML`, an `XPath`.
    Name(Box<[u8]>),
    /// Those whose name matches this regular expression; the slashes around it are gone.
    Pattern(Box<[u8]>),
}

impl std::fmt::Debug for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Name(name) => write!(f, "Name({})", name.escape_ascii()),
            Self::Pattern(source) => write!(f, "Pattern({})", source.escape_ascii()),
        }
    }
}

/// An operator with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCall {
    /// Where its argument begins, or its name if it has none: the place for what is found wrong with
    /// the argument later, and the directory for the data file that it may name.
    pub location: Location,
    /// Whether a match or its absence is asked for.
    pub sense: Sense,
    /// The operator; `rx` where the rule names none.
    pub name: OperatorName,
    /// The argument, empty if there is none. Macros are read only for operators that expand them
    /// ([`ArgumentKind::expands`](super::operator::ArgumentKind::expands)).
    pub argument: Text,
}

/// Whether an operator is negated with `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// The rule matches where the operator does.
    Plain,
    /// `!@rx`: the rule matches where the operator does not.
    Negated,
}
