//! One pattern: compiled from its source, searched for in bytes.
//!
//! Whether a content matches is asked for nearly all the time, so that is what is compiled at once: an
//! automaton without groups whose states are made while it runs (`regex-automata`'s lazy DFA, run
//! directly). It takes an eighth of the time and half of the memory of that crate's `meta::Regex` to
//! build, and has about 10 ns less to do before each search; the scans are equally fast. A pattern that
//! must end where the content does is searched for backwards from there, which takes it no longer than
//! the match; forwards, the end of the content would have to be tried from everywhere.
//!
//! Where groups lie is asked for after a match only; the `meta::Regex` for that is made then, or before
//! by [`Pattern::prepare`].

use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use regex_automata::{
    Anchored, Input,
    hybrid::dfa,
    meta,
    nfa::thompson::{self, WhichCaptures},
    util::primitives::NonMaxUsize,
};
use regex_syntax::hir::{Hir, Look};

use super::{
    Fault, Note, PatternId, Requirement,
    backtrack::{Memory, Outcome, Program},
    lower::{Lowered, lower},
    parse::{Parsed, parse},
};

/// Most bytes of one pattern's lazily built automaton in one worker; when it is full it starts anew.
const CACHE_BYTES_MAX: usize = 256 << 10;

/// How a source is read, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether upper and lower case ASCII letters are the same from the first byte on, as if the
    /// source began with `(?i)`.
    pub case_insensitive: bool,
    /// Most bytes of a compiled automaton; a source that needs more is refused. The largest of the
    /// Core Rule Set has about 150 KiB.
    pub automaton_bytes_max: usize,
    /// Most steps that a pattern with look-around or back-references may take in one search; a step
    /// takes some nanoseconds.
    pub steps_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { case_insensitive: false, automaton_bytes_max: 4 << 20, steps_max: 1_000_000 }
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The content has no match.
    No,
    /// The content has a match.
    Yes,
    /// A search with look-around or back-references ran out of steps: nothing is known. SecLang calls
    /// this `MSC_PCRE_LIMITS_EXCEEDED`.
    LimitsExceeded,
}

/// Where the groups of a match lie; reused from search to search.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    slots: Vec<Option<NonMaxUsize>>,
}

impl Captures {
    /// How many groups the pattern has, the whole match (0) included; 0 when nothing matched.
    pub fn len(&self) -> usize {
        self.slots.len() / 2
    }

    /// Whether nothing matched.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Where group `group` lies in the content, if it took part in the match.
    pub fn group(&self, group: usize) -> Option<Range<usize>> {
        let start = self.slots.get(group * 2).copied().flatten()?;
        let end = self.slots.get(group * 2 + 1).copied().flatten()?;
        Some(start.get()..end.get())
    }
}

/// What searches write to: one for each worker and program, by [`PatternId`]; each is made when its
/// pattern is first run, and holds at most 256 KiB or what the pattern's largest states need.
#[derive(Debug, Default)]
pub struct Caches {
    automata: Vec<Option<Box<Cache>>>,
    memory: Memory,
}

#[derive(Debug)]
struct Cache {
    /// Whose it is.
    pattern: u64,
    matches: dfa::Cache,
    groups: Option<meta::Cache>,
}

impl Caches {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn of(&mut self, id: PatternId, pattern: &Pattern) -> &mut Cache {
        if id.index() >= self.automata.len() {
            self.automata.resize_with(id.index() + 1, || None);
        }
        let slot = &mut self.automata[id.index()];
        // A cache of another pattern under the same number would mislead this one.
        if slot.as_ref().is_some_and(|cache| cache.pattern != pattern.number) {
            *slot = None;
        }
        slot.get_or_insert_with(|| {
            let matches = pattern.automaton.create_cache();
            Box::new(Cache { pattern: pattern.number, matches, groups: None })
        })
    }
}

/// A compiled pattern; immutable, shared by all workers.
#[derive(Debug)]
pub struct Pattern {
    /// Tells patterns apart.
    number: u64,
    /// Whether there is a match: exact, or an approximation from above when there is a `program`.
    automaton: dfa::DFA,
    direction: Direction,
    /// For what no automaton can do.
    program: Option<Program>,
    /// To find groups with, made from the source when it is first needed.
    finder: OnceLock<Option<meta::Regex>>,
    source: Box<[u8]>,
    /// The highest group number. The automaton does not know groups that can never be set.
    groups: u32,
    options: Options,
    requirement: Requirement,
}

/// Which way an automaton reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forwards,
    /// From the content's end, where every match ends.
    Backwards,
}

impl Pattern {
    /// Compiles PCRE as SecLang writes it. Bytes in, bytes matched: `.` matches every byte, `^` and
    /// `$` only at the content's beginning and end (`$` not before a last line feed).
    pub fn compile(source: &[u8], options: &Options) -> Result<(Self, Vec<Note>), Fault> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let Parsed { node, groups, mut notes } = parse(source, options.case_insensitive)?;
        let Lowered { hir, irregular } = lower(&node);
        let program = match irregular {
            None => None,
            Some((offset, what)) => {
                let steps = options.steps_max;
                notes.push(Note {
                    offset,
                    message: format!("{what}: searched by backtracking, in at most {steps} steps"),
                });
                Some(Program::new(&node, groups)?)
            }
        };
        let properties = hir.properties();
        let anchored_at_end_only = properties.look_set_suffix().contains(Look::End)
            && !properties.look_set_prefix().contains(Look::Start);
        let direction =
            if anchored_at_end_only { Direction::Backwards } else { Direction::Forwards };
        let pattern = Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            automaton: automaton(&hir, direction, options)?,
            direction,
            program,
            finder: OnceLock::new(),
            source: source.into(),
            groups,
            options: *options,
            requirement: Requirement::of(&hir),
        };
        Ok((pattern, notes))
    }

    /// Whether the content has a match. `id` says which of the caches is this pattern's.
    pub fn is_match(&self, caches: &mut Caches, id: PatternId, content: &[u8]) -> Match {
        match (self.automaton_matches(caches, id, content, 0), &self.program) {
            (Match::Yes, Some(program)) => self.backtrack(program, caches, content, 0),
            (found, _) => found,
        }
    }

    /// Whether the automaton finds a match at or after `from`.
    fn automaton_matches(
        &self,
        caches: &mut Caches,
        id: PatternId,
        content: &[u8],
        from: usize,
    ) -> Match {
        let cache = &mut caches.of(id, self).matches;
        let input = Input::new(content).range(from.min(content.len())..).earliest(true);
        let found = match self.direction {
            Direction::Forwards => self.automaton.try_search_fwd(cache, &input),
            Direction::Backwards => {
                self.automaton.try_search_rev(cache, &input.anchored(Anchored::Yes))
            }
        };
        match found {
            Ok(None) => Match::No,
            Ok(Some(_)) => Match::Yes,
            // It is configured never to give up, and no byte makes it quit.
            Err(_) => Match::LimitsExceeded,
        }
    }

    /// The first match at or after `from` and its groups. `from` lies within the content; what is
    /// before it is seen by `^`, `\b` and look-behind only.
    pub fn captures(
        &self,
        caches: &mut Caches,
        id: PatternId,
        content: &[u8],
        from: usize,
        captures: &mut Captures,
    ) -> Match {
        captures.slots.clear();
        if let Some(program) = &self.program {
            let found = match self.automaton_matches(caches, id, content, from) {
                Match::Yes => self.backtrack(program, caches, content, from),
                found => found,
            };
            if found == Match::Yes {
                for group in (0..self.groups()).map(|group| caches.memory.group(group)) {
                    let (start, end) = group.map_or((None, None), |group| {
                        (NonMaxUsize::new(group.start), NonMaxUsize::new(group.end))
                    });
                    captures.slots.extend([start, end]);
                }
            }
            return found;
        }
        let Some(finder) = self.finder() else { return Match::LimitsExceeded };
        captures.slots.resize(self.groups() * 2, None);
        let cache = &mut caches.of(id, self).groups;
        let cache = cache.get_or_insert_with(|| finder.create_cache());
        let input = Input::new(content).range(from.min(content.len())..);
        if finder.search_slots_with(cache, &input, &mut captures.slots).is_some() {
            return Match::Yes;
        }
        captures.slots.clear();
        Match::No
    }

    /// Makes what [`captures`](Self::captures) needs, which takes from 0.1 to some milliseconds. It is
    /// made at the first call otherwise.
    pub fn prepare(&self) {
        if self.program.is_none() {
            self.finder();
        }
    }

    fn finder(&self) -> Option<&meta::Regex> {
        let make = || {
            let parsed = parse(&self.source, self.options.case_insensitive).ok()?;
            let config = meta::Config::new()
                .utf8_empty(false)
                .nfa_size_limit(None)
                .hybrid_cache_capacity(CACHE_BYTES_MAX)
                .which_captures(WhichCaptures::All);
            meta::Builder::new().configure(config).build_from_hir(&lower(&parsed.node).hir).ok()
        };
        self.finder.get_or_init(make).as_ref()
    }

    fn backtrack(
        &self,
        program: &Program,
        caches: &mut Caches,
        content: &[u8],
        from: usize,
    ) -> Match {
        match program.search(&mut caches.memory, content, from, self.options.steps_max) {
            Outcome::Match => Match::Yes,
            Outcome::NoMatch => Match::No,
            Outcome::OutOfSteps => Match::LimitsExceeded,
        }
    }

    /// How many groups it has, the whole match (0) included.
    pub fn groups(&self) -> usize {
        self.groups as usize + 1
    }

    /// What a content needs to match.
    pub fn requirement(&self) -> &Requirement {
        &self.requirement
    }
}

fn automaton(hir: &Hir, direction: Direction, options: &Options) -> Result<dfa::DFA, Fault> {
    let config = thompson::Config::new()
        .utf8(false)
        .reverse(direction == Direction::Backwards)
        .nfa_size_limit(Some(options.automaton_bytes_max))
        .which_captures(WhichCaptures::None);
    let too_large = |limit: usize| {
        Fault::new(0, format!("the compiled pattern is larger than {limit} bytes"))
            .hint("use smaller numbers in {n,m}, or fewer alternatives")
    };
    let nfa =
        thompson::Compiler::new().configure(config).build_from_hir(hir).map_err(
            |error| match error.size_limit() {
                Some(limit) => too_large(limit),
                None => Fault::new(0, error.to_string()),
            },
        )?;
    let config = dfa::Config::new().cache_capacity(CACHE_BYTES_MAX).skip_cache_capacity_check(true);
    dfa::Builder::new()
        .configure(config)
        .build_from_nfa(nfa)
        .map_err(|error| Fault::new(0, error.to_string()))
}
