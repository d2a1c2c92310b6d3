//! What the firewall decides, and what it tells about it.

use std::sync::Arc;

use super::trace::Traced;
use crate::program::RuleMeta;
use crate::variable::Phase;

/// Whether matches are acted upon (`SecRuleEngine`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Nothing is evaluated.
    Off,
    /// Rules are evaluated and reported; no request is stopped.
    #[default]
    Detect,
    /// Rules are evaluated, and what they deny is denied.
    Block,
}

/// What is to be done with the transaction after a phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Go on.
    Pass,
    /// Answer with this status; the rule is the one that decided.
    Deny {
        /// The HTTP status to answer with.
        status: u16,
        /// The id of the rule that decided.
        rule: u64,
    },
    /// Close the connection without an answer.
    Drop {
        /// The id of the rule that decided.
        rule: u64,
    },
    /// Send the client elsewhere.
    Redirect {
        /// The HTTP status to answer with, 302 unless the rule says otherwise.
        status: u16,
        /// The value of the `Location` field.
        location: Vec<u8>,
        /// The id of the rule that decided.
        rule: u64,
    },
}

/// A rule that matched and has something to say (it is not `nolog`, or it decided).
#[derive(Clone, Debug)]
pub struct MatchedRule {
    /// The rule's unchanging part: id, tags, severity, place.
    pub rule: Arc<RuleMeta>,
    /// The phase it ran in.
    pub phase: Phase,
    /// `msg` with its macros expanded.
    pub message: Vec<u8>,
    /// `logdata` with its macros expanded.
    pub data: Vec<u8>,
    /// What matched last: the variable with its selector (`ARGS:q`), empty for an unconditional action.
    pub variable: Vec<u8>,
    /// The value that matched, transformed, at most [`VALUE_BYTES_MAX`] of it.
    pub value: Vec<u8>,
    /// Whether the rule goes to the error log, the audit log, or both.
    pub logged: Logged,
    /// What was done about it.
    pub effect: Effect,
    /// What led to the match, where somebody wants to know ([`Trace::All`](super::Trace::All)).
    pub traced: Option<Box<Traced>>,
}

/// Where a matched rule is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logged {
    /// `log`: the firewall's log of matched rules.
    pub log: bool,
    /// `auditlog`: counts the transaction as relevant for the audit log.
    pub audit: bool,
}

/// What a matched rule did to the transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing: the rule passes, or the engine only detects.
    Noted,
    /// It ended the transaction.
    Decided,
    /// It would have ended the transaction, had the mode been [`Mode::Block`].
    WouldDecide,
}

/// The longest value a [`MatchedRule`] keeps, in bytes.
pub const VALUE_BYTES_MAX: usize = 512;
