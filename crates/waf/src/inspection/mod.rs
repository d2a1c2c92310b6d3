//! One transaction's way through the five phases.
//!
//! An [`Inspection`] is told what arrives, in borrowed views, and asked for a verdict after each
//! phase. It holds everything of its transaction and nothing of its worker: what searches write to
//! comes in as an [`Inspector`], of which each thread has one, so that an inspection may go on on
//! another thread.

mod act;
mod ask;
mod audit;
mod clock;
mod contents;
mod evaluate;
mod expand;
mod kept;
mod message;
mod request_body;
mod resolve;
mod response_body;
mod state;
mod times;
mod trace;
mod uploads;
mod values;
mod verdict;

use std::sync::Arc;

pub use audit::{AuditClient, AuditContext, AuditKeeps};
pub use clock::Moment;
pub use contents::Work;
pub use evaluate::Evaluation;
pub use message::{Connection, Fields, RequestHead, ResponseHead};
pub use response_body::Extent;
pub use state::Inspector;
pub use times::MonotonicClock;
pub use trace::{Change, Hit, Trace, Traced};
pub use uploads::Uploads;
pub use verdict::{Effect, Logged, MatchedRule, Mode, VALUE_BYTES_MAX, Verdict};

pub(crate) use contents::{ChainId, Half};
use kept::KeptKeys;
pub(crate) use kept::collection_of;

use crate::Outside;
use crate::context::Context;
use crate::program::{Policy, Program};
use crate::seclang::action::Allowance;
use crate::variable::Phase;
use evaluate::{Ended, Run};
use state::State;
use values::TxValue;

/// One transaction under inspection.
pub struct Inspection {
    program: Arc<Program>,
    policy: Arc<Policy>,
    opened: Opened,
    state: Box<State>,
    kept: KeptKeys,
    evaluation: Evaluation,
    outside: Option<Arc<dyn Outside>>,
    allowed: Option<Allowance>,
    paused: Option<(Phase, usize)>,
    content_type: Vec<u8>,
    /// The codings of the request's body, fields of several joined by commas.
    content_encoding: Vec<u8>,
    arguments_bytes: u64,
    request_body: Option<request_body::RequestBody>,
    uploads: Option<Uploads>,
    response_body: response_body::ResponseBody,
    response_extent: Extent,
}

/// How far a run came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The phase is over.
    Done(Verdict),
    /// The work allowed for is done, and there is more.
    Paused,
}

/// Whether a policy's opening actions were done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    No,
    Yes,
}

impl Inspection {
    /// Begins a transaction under a policy.
    pub fn begin(
        policy: &Arc<Policy>,
        context: Option<Arc<Context>>,
        inspector: &mut Inspector,
    ) -> Self {
        let program = Arc::clone(&policy.program);
        inspector.serve(&program);
        let mut state = inspector.state();
        state.begin(&program, policy.mode);
        Self {
            program,
            policy: Arc::clone(policy),
            opened: Opened::No,
            state,
            kept: KeptKeys::new(context),
            evaluation: Evaluation::Prefiltered,
            outside: None,
            allowed: None,
            paused: None,
            content_type: Vec::new(),
            content_encoding: Vec::new(),
            arguments_bytes: 0,
            request_body: None,
            uploads: None,
            response_body: response_body::ResponseBody::default(),
            response_extent: Extent::Fits,
        }
    }

    /// Stops nothing, whatever the policy says: what is looked at has been decided already.
    pub fn detect_only(&mut self) {
        if self.state.mode == Mode::Block {
            self.state.mode = Mode::Detect;
        }
    }

    /// Chooses how patterns are searched for; verdicts do not depend on it.
    pub fn set_evaluation(&mut self, evaluation: Evaluation) {
        self.evaluation = evaluation;
    }

    /// Lets rules ask beyond the transaction. Without it, what only outside knows does not match.
    pub fn set_outside(&mut self, outside: Arc<dyn Outside>) {
        self.outside = Some(outside);
    }

    /// Chooses which matches are remembered.
    pub fn set_trace(&mut self, trace: Trace) {
        self.state.trace = trace;
    }

    /// The value of a `TX` variable, such as a score, as text; nothing if it is not set.
    pub fn tx(&self, name: &str) -> Option<Vec<u8>> {
        let slot = self.program.tx_slots.find(name.to_ascii_lowercase().as_bytes())?;
        let value = self.state.tx.slot(slot);
        let mut text = Vec::new();
        self.state.tx.write(value, &mut text);
        (value != values::TxValue::Absent).then_some(text)
    }

    /// What is done about matches; rules may have changed it (`ctl:ruleEngine`).
    pub fn mode(&self) -> Mode {
        self.state.mode
    }

    /// The rules that matched so far and have something to say, in the order of their matching.
    pub fn matched_rules(&self) -> &[MatchedRule] {
        &self.state.matched_rules
    }

    /// A variable of `TX` as a number; `None` if it is not set. The name is in lower case, without
    /// `tx.`.
    pub fn tx_number(&self, name: &str) -> Option<i64> {
        match self.state.tx.slot(self.program.tx_slots.find(name.as_bytes())?) {
            TxValue::Absent => None,
            value => Some(self.state.tx.number(value)),
        }
    }

    /// Runs the rules of a phase. Phases are run once each, in their order; those whose message never
    /// came may be left out.
    pub fn run(&mut self, phase: Phase, moment: Moment, inspector: &mut Inspector) -> Verdict {
        match self.run_within(Work::UNBOUNDED, phase, moment, inspector) {
            Step::Done(verdict) => verdict,
            Step::Paused => unreachable!("there is no bound to the work"),
        }
    }

    /// As [`run`](Self::run), but stops between two rules when it has done more than this work. Called
    /// again for the same phase, it goes on where it stopped, on this thread or on another.
    pub fn run_within(
        &mut self,
        work: Work,
        phase: Phase,
        moment: Moment,
        inspector: &mut Inspector,
    ) -> Step {
        inspector.serve(&self.program);
        if self.passes_over(phase) {
            return Step::Done(Verdict::Pass);
        }
        let until = Work(self.state.contents.work().0.saturating_add(work.0));
        let next = match std::mem::take(&mut self.paused) {
            Some((paused, next)) if paused == phase => next,
            _ => 0,
        };
        let program = Arc::clone(&self.program);
        let opening = match std::mem::replace(&mut self.opened, Opened::Yes) {
            Opened::No => Some(Arc::clone(&self.policy)),
            Opened::Yes => None,
        };
        let mut run = Run {
            program: &program,
            state: &mut self.state,
            worker: inspector,
            kept: &mut self.kept,
            outside: self.outside.as_deref(),
            moment,
            half: Half::of(phase),
            phase,
            evaluation: self.evaluation,
            rule: None,
        };
        for act in opening.iter().flat_map(|policy| &policy.opening) {
            run.act(act);
        }
        match run.phase(next, until) {
            // What could not be looked at must not pass for clean.
            Ended::Passed if self.state.contents.is_full() && self.mode() == Mode::Block => {
                Step::Done(Verdict::Deny { status: 413, rule: 0 })
            }
            Ended::Passed => Step::Done(Verdict::Pass),
            Ended::Allowed(scope) => {
                self.allowed = Some(scope);
                Step::Done(Verdict::Pass)
            }
            Ended::Decided(verdict) => Step::Done(verdict),
            Ended::Paused { next } => {
                self.paused = Some((phase, next));
                Step::Paused
            }
        }
    }

    fn passes_over(&self, phase: Phase) -> bool {
        let allowed = match self.allowed {
            None | Some(Allowance::Phase) => false,
            Some(Allowance::Request) => phase <= Phase::RequestBody,
            Some(Allowance::Transaction) => phase < Phase::Logging,
        };
        allowed || self.state.mode == Mode::Off
    }

    /// Ends the transaction and gives its memory back for the next one.
    pub fn end(self, inspector: &mut Inspector) {
        inspector.take_back(self.state);
    }
}
