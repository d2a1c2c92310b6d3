//! One pattern: compiled from its source, searched for in bytes.

use std::fmt;

use regex_automata::{Input, meta, nfa::thompson::WhichCaptures, util::syntax};

use super::{PatternId, Requirement};

/// How a source is read, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether upper and lower case ASCII letters are the same from the first byte on, as if the
    /// source began with `(?i)`.
    pub case_insensitive: bool,
    /// Most bytes of a compiled automaton; a source that needs more is refused.
    pub automaton_bytes_max: usize,
    /// Most steps that a pattern with look-around or back-references may take in one search.
    pub steps_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { case_insensitive: false, automaton_bytes_max: 4 << 20, steps_max: 1_000_000 }
    }
}

/// Why a source is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the source, in bytes from its beginning.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, when that is known.
    pub hint: Option<&'static str>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.offset)
    }
}

impl std::error::Error for Fault {}

/// Something worth saying about a pattern that compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where in the source, in bytes from its beginning.
    pub offset: usize,
    /// What is said.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.offset)
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
    slots: Vec<Option<regex_automata::util::primitives::NonMaxUsize>>,
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
    pub fn group(&self, group: usize) -> Option<std::ops::Range<usize>> {
        let start = self.slots.get(group * 2).copied().flatten()?;
        let end = self.slots.get(group * 2 + 1).copied().flatten()?;
        Some(start.get()..end.get())
    }
}

/// What searches write to: one for each worker and program, by [`PatternId`]; each is made when its
/// pattern is first run.
#[derive(Debug, Default)]
pub struct Caches {
    caches: Vec<Option<Box<meta::Cache>>>,
}

impl Caches {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn of(&mut self, id: PatternId, pattern: &Pattern) -> &mut meta::Cache {
        if id.index() >= self.caches.len() {
            self.caches.resize_with(id.index() + 1, || None);
        }
        self.caches[id.index()].get_or_insert_with(|| Box::new(pattern.regex.create_cache()))
    }
}

/// A compiled pattern; immutable, shared by all workers.
#[derive(Debug)]
pub struct Pattern {
    regex: meta::Regex,
}

impl Pattern {
    /// Compiles PCRE as SecLang writes it. Bytes in, bytes matched: `.` matches every byte, `^` and
    /// `$` only at the content's beginning and end (`$` not before a last line feed).
    pub fn compile(source: &[u8], options: &Options) -> Result<(Self, Vec<Note>), Fault> {
        let text = std::str::from_utf8(source).map_err(|error| Fault {
            offset: error.valid_up_to(),
            message: "a byte that is not UTF-8".to_owned(),
            hint: None,
        })?;
        let syntax = syntax::Config::new()
            .unicode(false)
            .utf8(false)
            .dot_matches_new_line(true)
            .case_insensitive(options.case_insensitive);
        let config = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(options.automaton_bytes_max))
            .which_captures(WhichCaptures::All);
        meta::Builder::new()
            .configure(config)
            .syntax(syntax)
            .build(text)
            .map(|regex| (Self { regex }, Vec::new()))
            .map_err(|error| Fault { offset: 0, message: error.to_string(), hint: None })
    }

    /// Whether the content has a match. `id` says which of the caches is this pattern's.
    pub fn is_match(&self, caches: &mut Caches, id: PatternId, content: &[u8]) -> Match {
        let cache = caches.of(id, self);
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
        let cache = caches.of(id, self);
        let input = Input::new(content).range(from..);
        captures.slots.clear();
        captures.slots.resize(self.groups() * 2, None);
        if self.regex.search_slots_with(cache, &input, &mut captures.slots).is_some() {
            return Match::Yes;
        }
        captures.slots.clear();
        Match::No
    }

    /// How many groups it has, the whole match (0) included.
    pub fn groups(&self) -> usize {
        self.regex.group_info().group_len(regex_automata::PatternID::ZERO)
    }

    /// What a content needs to match.
    pub fn requirement(&self) -> Requirement {
        Requirement::none()
    }
}
