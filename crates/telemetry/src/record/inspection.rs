//! What the WAF made of a request, as far as it fits into a record.

use crate::labelled::labelled;

labelled! {
    /// What the WAF does about matches.
    #[derive(Default)]
    pub enum WafMode {
        /// The request was not inspected.
        #[default]
        Off = "",
        /// Matches are noted.
        Detect = "detect",
        /// What rules deny is denied.
        Block = "block",
    }
}

labelled! {
    /// How an inspection ended.
    #[derive(Default)]
    pub enum WafVerdict {
        /// There was none.
        #[default]
        None = "",
        /// Nothing was to be stopped.
        Pass = "pass",
        /// A rule would have stopped it, had the mode been `block`.
        WouldDeny = "would_deny",
        /// A rule denied it.
        Deny = "deny",
        /// The client is to prove some work first.
        Challenge = "challenge",
        /// A rule had the connection closed without an answer.
        Drop = "drop",
        /// A rule sent the client elsewhere.
        Redirect = "redirect",
        /// The inspection pool was full, and the route lets such requests pass.
        Skipped = "skipped",
        /// The inspection pool was full, and the route refuses such requests.
        Refused = "refused",
        /// The inspection failed: a bug of ours.
        Failed = "failed",
    }
}

/// The phases of an inspection.
pub const WAF_PHASES: usize = 5;

/// What the WAF made of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// What was to be done about matches.
    pub mode: WafMode,
    /// What came of it.
    pub verdict: WafVerdict,
    /// The id of the rule that decided, or would have; zero if none did.
    pub rule: u64,
    /// The inbound anomaly score of the Core Rule Set; zero without one.
    pub score: u32,
    /// How many rules matched and had something to say.
    pub matches: u32,
    /// The time that each phase took, in nanoseconds; zero where it did not run.
    pub phases_nanos: [u64; WAF_PHASES],
    /// The rule that took longest, where this inspection was measured rule by rule; zero otherwise.
    pub slowest_rule: u64,
    /// Its time in nanoseconds.
    pub slowest_nanos: u64,
    /// The time spent waiting for the inspection pool, in nanoseconds.
    pub queued_nanos: u64,
}

impl Inspection {
    /// The time that all phases took, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.phases_nanos.iter().sum()
    }
}
