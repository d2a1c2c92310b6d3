//! A rule set as read: every directive in its order, includes resolved.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::action::Action;
use super::location::Located;
use super::rule::{Rule, Target};
use super::setting::Setting;
use crate::variable::Phase;

/// A rule set as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// All directives in the order in which they take effect.
    pub directives: Vec<Located<Directive>>,
    /// Every file that was read, in the order of reading.
    pub files: Vec<Arc<str>>,
}

/// Something that a rule set says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `SecRule` or `SecAction`, with its chain.
    Rule(Rule),
    /// `SecMarker`: a place for `skipAfter`.
    Marker(Box<[u8]>),
    /// `SecDefaultAction`: what rules of this phase that follow do unless they say otherwise.
    DefaultAction {
        /// The phase.
        phase: Phase,
        /// The actions but `phase`; one disruptive action is among them.
        actions: Vec<Located<Action>>,
    },
    /// `SecRuleRemoveById`.
    RemoveById(Vec<RangeInclusive<u64>>),
    /// `SecRuleRemoveByTag`, with its pattern.
    RemoveByTag(Box<[u8]>),
    /// `SecRuleRemoveByMsg`, with its pattern.
    RemoveByMsg(Box<[u8]>),
    /// `SecRuleUpdateTargetById`.
    UpdateTargetById {
        /// The rules meant.
        ids: Vec<RangeInclusive<u64>>,
        /// The targets added and excluded.
        targets: TargetUpdate,
    },
    /// `SecRuleUpdateTargetByTag`.
    UpdateTargetByTag {
        /// The tag's pattern.
        tag: Box<[u8]>,
        /// The targets added and excluded.
        targets: TargetUpdate,
    },
    /// `SecRuleUpdateTargetByMsg`.
    UpdateTargetByMsg {
        /// The message's pattern.
        msg: Box<[u8]>,
        /// The targets added and excluded.
        targets: TargetUpdate,
    },
    /// `SecRuleUpdateActionById`.
    UpdateActionById {
        /// The rule meant.
        id: u64,
        /// Which link of its chain; 0 is the starter.
        link: usize,
        /// The actions that replace those of their kind or are added.
        actions: Vec<Located<Action>>,
    },
    /// `SecComponentSignature`: names a part of the rule set in the audit log.
    ComponentSignature(Box<[u8]>),
    /// A setting of the engine.
    Setting(Setting),
}

/// What `SecRuleUpdateTargetBy*` does to the targets of the rules that it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUpdate {
    /// Added to the rules' targets, exclusions among them; never empty.
    pub targets: Vec<Target>,
    /// The target that they replace, if a third argument names one.
    pub replaced: Option<Target>,
}
