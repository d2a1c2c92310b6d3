//! What one transaction holds while it is inspected, and what a worker keeps between them.

use super::contents::{Asking, ContentId, Contents};
use super::times::RuleTimes;
use super::trace::{Trace, Tracing};
use super::values::{Found, Tx, Values};
use super::verdict::{MatchedRule, Mode};
use crate::pattern::{Caches, CandidateSet, Captures, Makeup, Match, Pattern, PatternId};
use crate::program::{Part, Program, RuleNumber};
use crate::seclang::action::{Sanitise, Severity};
use crate::seclang::control::BodyProcessor;
use crate::seclang::setting::{AuditMode, AuditParts, Switch};

/// What a worker keeps between transactions: search caches, counters, and spare memory. One for each
/// thread that inspects; never shared.
#[derive(Default)]
pub struct Inspector {
    pub(super) caches: Caches,
    pub(super) captures: Captures,
    /// Of the prefilter for requests, and of the one for responses.
    pub(super) asking: [Asking; 2],
    /// Patterns whose source has macros, compiled for the text they last expanded to.
    pub(super) expanded: ExpandedPatterns,
    #[expect(clippy::vec_box, reason = "a state is handed out as the box it is")]
    spare: Vec<Box<State>>,
    /// The memory that they hold.
    spare_bytes: usize,
    /// How often each rule matched, by rule number.
    hits: Vec<u64>,
    /// The program that caches and counters belong to.
    program: u64,
}

/// Emptied states kept for the next transactions.
const SPARE_STATES_MAX: usize = 64;
/// Most memory that they hold for contents: those of a few large bodies.
const SPARE_BYTES_MAX: usize = 8 << 20;

impl Inspector {
    /// Nothing yet; everything grows on use.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often each rule matched since the program came, indexed like [`Program::rules`].
    pub fn hits(&self) -> &[u64] {
        &self.hits
    }

    /// Makes sure that what is kept belongs to this program.
    pub(super) fn serve(&mut self, program: &Program) {
        if self.program != program.identity {
            self.program = program.identity;
            self.caches = Caches::new();
            self.expanded = ExpandedPatterns::default();
            self.hits = vec![0; program.rules.len()];
        }
    }

    pub(super) fn state(&mut self) -> Box<State> {
        let Some(state) = self.spare.pop() else { return Box::new(State::new()) };
        self.spare_bytes = self.spare_bytes.saturating_sub(state.contents.memory());
        state
    }

    pub(super) fn take_back(&mut self, state: Box<State>) {
        let bytes = self.spare_bytes + state.contents.memory();
        if self.spare.len() < SPARE_STATES_MAX && bytes <= SPARE_BYTES_MAX {
            self.spare_bytes = bytes;
            self.spare.push(state);
        }
    }

    pub(super) fn count(&mut self, rule: RuleNumber) {
        if let Some(hits) = self.hits.get_mut(rule.index()) {
            *hits += 1;
        }
    }
}

/// A few patterns made from expanded macros, the oldest going first.
#[derive(Default)]
pub(super) struct ExpandedPatterns {
    known: std::collections::VecDeque<(Box<[u8]>, Option<Pattern>, Caches)>,
}

/// Rules with macros in a pattern are rare, and their text seldom changes.
const EXPANDED_PATTERNS_MAX: usize = 32;

impl ExpandedPatterns {
    /// Whether the pattern of this source matches. A source that is no pattern matches nothing.
    pub(super) fn is_match(&mut self, source: &[u8], content: &[u8]) -> Match {
        let at = self.known.iter().position(|(known, ..)| **known == *source);
        let at = at.unwrap_or_else(|| {
            if self.known.len() == EXPANDED_PATTERNS_MAX {
                self.known.pop_front();
            }
            let pattern = Pattern::compile(source, &crate::pattern::Options::default()).ok();
            self.known.push_back((source.into(), pattern.map(|(p, _)| p), Caches::new()));
            self.known.len() - 1
        });
        match &mut self.known[at] {
            (_, Some(pattern), caches) => pattern.is_match(caches, PatternId(0), content),
            (_, None, _) => Match::No,
        }
    }
}

/// A target set resolved: the values it stands for now.
pub(super) struct ResolvedSet {
    pub(super) generation: u32,
    pub(super) found: Vec<Found>,
    /// Their contents without repetitions.
    pub(super) distinct: Vec<ContentId>,
    /// What bytes those have, all together.
    pub(super) makeup: Makeup,
    /// Which patterns of each half may match any of them as it is, and since which generation.
    pub(super) candidates: [(u32, CandidateSet); 2],
}

impl Default for ResolvedSet {
    fn default() -> Self {
        Self {
            generation: 0,
            found: Vec::new(),
            distinct: Vec::new(),
            makeup: Makeup::NOTHING,
            candidates: Default::default(),
        }
    }
}

/// A lane's values, and which patterns may match any of them.
#[derive(Default)]
pub(super) struct ResolvedLane {
    pub(super) generation: u32,
    /// The transformed contents of the set, without repetitions.
    pub(super) distinct: Vec<ContentId>,
    pub(super) candidates: CandidateSet,
}

/// What may match in any lane of a group.
#[derive(Default)]
pub(super) struct ResolvedGroup {
    pub(super) generation: u32,
    pub(super) candidates: CandidateSet,
}

/// Everything of one transaction.
pub(super) struct State {
    pub(super) contents: Contents,
    pub(super) values: Values,
    pub(super) tx: Tx,
    pub(super) sets: Vec<ResolvedSet>,
    pub(super) lanes: Vec<ResolvedLane>,
    pub(super) groups: Vec<ResolvedGroup>,
    /// What matched in the rule that runs: `MATCHED_VARS`; the last is `MATCHED_VAR`.
    pub(super) matched: Vec<Found>,
    /// `Marks::is_set` answers in one comparison whether a content is among a lane's hits.
    pub(super) marks: Marks,
    pub(super) mode: Mode,
    pub(super) removed: Vec<u64>,
    pub(super) removed_targets: Vec<(RuleNumber, Part)>,
    pub(super) highest_severity: Option<Severity>,
    pub(super) env: Vec<EnvValue>,
    pub(super) geo: Vec<(&'static str, ContentId)>,
    pub(super) pattern_limits: Switch,
    pub(super) body_processor: Option<BodyProcessor>,
    pub(super) request_body: BodyAccess,
    pub(super) response_body: BodyAccess,
    pub(super) force_request_body: Switch,
    pub(super) audit_engine: AuditMode,
    pub(super) audit_parts: AuditParts,
    pub(super) sanitise: Vec<Sanitise>,
    pub(super) matched_rules: Vec<MatchedRule>,
    pub(super) audit_relevant: Switch,
    pub(super) trace: Trace,
    pub(super) tracing: Tracing,
    pub(super) times: RuleTimes,
    pub(super) text: Vec<u8>,
}

/// A value of `ENV`, with its name.
pub(super) type EnvValue = (Box<[u8]>, Box<[u8]>);

/// Whether a body is looked at, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyAccess {
    pub(super) access: Switch,
    pub(super) bytes_max: u64,
}

impl State {
    fn new() -> Self {
        Self {
            contents: Contents::new(),
            values: Values::new(),
            tx: Tx::new(),
            sets: Vec::new(),
            lanes: Vec::new(),
            groups: Vec::new(),
            matched: Vec::new(),
            marks: Marks::default(),
            mode: Mode::Off,
            removed: Vec::new(),
            removed_targets: Vec::new(),
            highest_severity: None,
            env: Vec::new(),
            geo: Vec::new(),
            pattern_limits: Switch::Off,
            body_processor: None,
            request_body: BodyAccess { access: Switch::Off, bytes_max: 0 },
            response_body: BodyAccess { access: Switch::Off, bytes_max: 0 },
            force_request_body: Switch::Off,
            audit_engine: AuditMode::Off,
            audit_parts: AuditParts::default(),
            sanitise: Vec::new(),
            matched_rules: Vec::new(),
            audit_relevant: Switch::Off,
            trace: Trace::Logged,
            tracing: Tracing::default(),
            times: RuleTimes::default(),
            text: Vec::new(),
        }
    }

    /// Makes an emptied or used state one for a transaction that begins.
    pub(super) fn begin(&mut self, program: &Program, mode: Mode) {
        self.contents.begin(program);
        self.values.clear();
        self.tx.clear(&program.tx_slots);
        self.sets.resize_with(program.sets.len(), ResolvedSet::default);
        self.lanes.resize_with(program.lanes.len(), ResolvedLane::default);
        self.groups.resize_with(program.groups.len(), ResolvedGroup::default);
        self.matched.clear();
        self.mode = mode;
        self.removed.clear();
        self.removed.resize(program.rules.len().div_ceil(64), 0);
        self.removed_targets.clear();
        self.highest_severity = None;
        self.env.clear();
        self.geo.clear();
        self.pattern_limits = Switch::Off;
        self.body_processor = None;
        let settings = &program.settings;
        self.request_body = BodyAccess {
            access: settings.request_body_access,
            bytes_max: settings.request_body_bytes_max,
        };
        self.response_body = BodyAccess {
            access: settings.response_body_access,
            bytes_max: settings.response_body_bytes_max,
        };
        self.force_request_body = Switch::Off;
        self.audit_engine = settings.audit_engine;
        self.audit_parts = settings.audit_parts;
        self.sanitise.clear();
        self.matched_rules.clear();
        self.audit_relevant = Switch::Off;
        self.trace = Trace::Logged;
        self.times.clear();
    }

    pub(super) fn is_removed(&self, rule: RuleNumber) -> bool {
        self.removed[rule.index() / 64] >> (rule.index() % 64) & 1 == 1
    }

    pub(super) fn remove(&mut self, rule: RuleNumber) {
        self.removed[rule.index() / 64] |= 1 << (rule.index() % 64);
    }
}

/// A set of contents that is emptied in constant time.
#[derive(Default)]
pub(super) struct Marks {
    rounds: Vec<u32>,
    round: u32,
}

impl Marks {
    pub(super) fn clear(&mut self) {
        if self.round == u32::MAX {
            self.rounds.fill(0);
            self.round = 0;
        }
        self.round += 1;
    }

    /// Adds a content; says whether it was new.
    pub(super) fn set(&mut self, content: ContentId) -> Newness {
        if self.rounds.len() <= content.index() {
            self.rounds.resize(content.index() + 1, 0);
        }
        let mark = &mut self.rounds[content.index()];
        if std::mem::replace(mark, self.round) == self.round {
            Newness::Known
        } else {
            Newness::New
        }
    }

    pub(super) fn is_set(&self, content: ContentId) -> bool {
        self.rounds.get(content.index()) == Some(&self.round)
    }
}

/// Whether a content was marked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newness {
    New,
    Known,
}
