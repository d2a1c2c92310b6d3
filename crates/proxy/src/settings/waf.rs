//! Settings of the WAF.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_lc_rs::{hmac, rand};
pub use tidegate_telemetry::metrics::Busy;
use tidegate_waf::program::Policy;
use tidegate_waf::variable::Phase;

/// What all inspections of a process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waf {
    /// Threads of the inspection pool, at least one.
    pub pool_threads: usize,
    /// Inspections that may wait for them, at least one.
    pub pool_queue_max: usize,
    /// Bytes of head and body from which a phase goes to the pool at once.
    pub pool_from_bytes: u64,
    /// Bytes of a held request body that stay in memory (`SecRequestBodyInMemoryLimit`).
    pub body_memory_bytes_max: usize,
    /// One in so many inspections is measured rule by rule; none if it is zero.
    pub rule_times: u32,
}

/// How the requests of a route are inspected.
#[derive(Clone, Debug)]
pub struct Inspect {
    /// The rules, and what is done about matches.
    pub policy: Arc<Policy>,
    /// What is done when the inspection pool has no room.
    pub busy: Busy,
    /// Whom a browser has to prove some work to first, if anybody.
    pub challenge: Option<Challenge>,
    /// Which phases have rules that ask beyond the request and may wait for an answer.
    waits: [bool; Phase::ALL.len()],
}

impl Inspect {
    /// Inspection under a policy.
    pub fn new(policy: Arc<Policy>, busy: Busy) -> Self {
        let waits = Phase::ALL.map(|phase| policy.program().waits(phase));
        Self { policy, busy, challenge: None, waits }
    }

    /// The same, with a challenge in front of some requests.
    #[must_use]
    pub fn with_challenge(mut self, challenge: Option<Challenge>) -> Self {
        self.challenge = challenge;
        self
    }

    /// Whether rules of this phase may wait for an answer from beyond the request.
    pub(crate) fn waits(&self, phase: Phase) -> bool {
        self.waits[phase.index()]
    }
}

/// Which requests have to come with a pass, and what a pass costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The inbound anomaly score from which one is asked for.
    pub score_from: Option<u32>,
    /// The share of the process' connections, in percent, from which one is asked of everybody.
    pub pressure_from: Option<u8>,
    /// Leading zero bits of the proof: a browser tries two to this power of hashes.
    pub bits: u8,
    /// How long a pass lasts.
    pub lifetime: Duration,
    /// What passes are signed with.
    pub key: ChallengeKey,
}

/// The key that passes are signed with. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ChallengeKey([u8; 32]);

impl ChallengeKey {
    /// The key of a secret: the same in every process that knows it.
    pub fn of_secret(secret: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hmac::sign(&key, b"tidegate challenge key").as_ref());
        Self(bytes)
    }

    /// The key of this process, drawn when it is first asked for; `None` if the system gives no random
    /// bytes.
    pub fn of_process() -> Option<Self> {
        static DRAWN: OnceLock<Option<ChallengeKey>> = OnceLock::new();
        let draw = || {
            let mut bytes = [0; 32];
            rand::fill(&mut bytes).ok().map(|()| Self(bytes))
        };
        DRAWN.get_or_init(draw).clone()
    }

    pub(crate) fn signer(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl std::fmt::Debug for ChallengeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChallengeKey(..)")
    }
}

/// Policies are compared by identity: those of equal text are one.
impl PartialEq for Inspect {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.policy, &other.policy)
            && self.busy == other.busy
            && self.challenge == other.challenge
    }
}
