//! One pattern: compiled from its source, searched for in bytes.

use std::ops::Range;

use regex_automata::{Input, meta, nfa::thompson::WhichCaptures, util::primitives::NonMaxUsize};

use super::{
    Fault, Note, PatternId, Requirement,
    backtrack::{Memory, Outcome, Program},
    lower::{Lowered, lower},
    parse::{Parsed, parse},
};

/// How a source is read, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether upper and lower case ASCII letters are the same from the first byte on, as if the
    /// source began with `(?i)`.
    pub case_insensitive: bool,
    /// Most bytes of a compiled automaton; a source that needs more is refused.
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
/// pattern is first run.
#[derive(Debug, Default)]
pub struct Caches {
    automata: Vec<Option<Box<meta::Cache>>>,
    memory: Memory,
}

impl Caches {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn of(&mut self, id: PatternId, regex: &meta::Regex) -> &mut meta::Cache {
        if id.index() >= self.automata.len() {
            self.automata.resize_with(id.index() + 1, || None);
        }
        self.automata[id.index()].get_or_insert_with(|| Box::new(regex.create_cache()))
    }
}

/// A compiled pattern; immutable, shared by all workers.
#[derive(Debug)]
pub struct Pattern {
    /// Exact, or an approximation from above of what `program` matches.
    regex: meta::Regex,
    /// For what no automaton can do.
    program: Option<Program>,
    /// The highest group number. The automaton does not know groups that can never be set.
    groups: u32,
    steps_max: u32,
    requirement: Requirement,
}

impl Pattern {
    /// Compiles PCRE as SecLang writes it. Bytes in, bytes matched: `.` matches every byte, `^` and
    /// `$` only at the content's beginning and end (`$` not before a last line feed).
    pub fn compile(source: &[u8], options: &Options) -> Result<(Self, Vec<Note>), Fault> {
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
        let captures = if program.is_some() { WhichCaptures::Implicit } else { WhichCaptures::All };
        let config = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(options.automaton_bytes_max))
            .hybrid_cache_capacity(CACHE_BYTES_MAX)
            .which_captures(captures);
        let regex =
            meta::Builder::new().configure(config).build_from_hir(&hir).map_err(|error| {
                let message = match error.size_limit() {
                    Some(limit) => format!("the compiled pattern is larger than {limit} bytes"),
                    None => error.to_string(),
                };
                Fault::new(0, message).hint("use smaller numbers in {n,m}, or fewer alternatives")
            })?;
        let requirement = Requirement::of(&hir);
        Ok((Self { regex, program, groups, steps_max: options.steps_max, requirement }, notes))
    }

    /// Whether the content has a match. `id` says which of the caches is this pattern's.
    pub fn is_match(&self, caches: &mut Caches, id: PatternId, content: &[u8]) -> Match {
        if self.program.is_some() {
            return self.backtrack(caches, id, content, 0);
        }
        let cache = caches.of(id, &self.regex);
        let input = Input::new(content).earliest(true);
        if self.regex.search_half_with(cache, &input).is_some() { Match::Yes } else { Match::No }
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
        if self.program.is_some() {
            let found = self.backtrack(caches, id, content, from);
            if found == Match::Yes {
                for group in (0..self.groups()).map(|group| caches.memory.group(group)) {
                    captures
                        .slots
                        .push(group.as_ref().and_then(|group| NonMaxUsize::new(group.start)));
                    captures
                        .slots
                        .push(group.as_ref().and_then(|group| NonMaxUsize::new(group.end)));
                }
            }
            return found;
        }
        captures.slots.resize(self.groups() * 2, None);
        let cache = caches.of(id, &self.regex);
        let input = Input::new(content).range(from..);
        if self.regex.search_slots_with(cache, &input, &mut captures.slots).is_some() {
            return Match::Yes;
        }
        captures.slots.clear();
        Match::No
    }

    /// The approximation says in linear time where the first start can be; from there on steps count.
    fn backtrack(&self, caches: &mut Caches, id: PatternId, content: &[u8], from: usize) -> Match {
        let Some(program) = &self.program else { return Match::No };
        let input = Input::new(content).range(from..);
        let Some(found) = self.regex.search_with(caches.of(id, &self.regex), &input) else {
            return Match::No;
        };
        match program.search(&mut caches.memory, content, from, found.start(), self.steps_max) {
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

/// Most bytes of one pattern's lazily built automaton in one worker; when it is full it starts anew.
const CACHE_BYTES_MAX: usize = 256 << 10;
