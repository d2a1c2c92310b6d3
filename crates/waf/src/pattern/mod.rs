//! Patterns: PCRE as rules write it, compiled to linear-time automata, and what each needs to match.
//!
//! Three parts, each usable without the others:
//!
//! - [`Pattern`]: one `@rx` argument, compiled. It is immutable and shared by all workers; what a
//!   search writes to lives in [`Caches`], of which each worker owns one, so that no search takes a
//!   lock.
//! - [`Requirement`]: what every content that matches a pattern must have. It is a sound
//!   approximation: a content that does not meet it never matches; one that meets it may.
//! - [`Prefilter`]: the requirements of many patterns, tested in one pass over a content. It yields
//!   a [`CandidateSet`]; a pattern outside of it never matches that content.
//!
//! Everything works on bytes. There is no Unicode here: `.` is a byte, `(?i)` folds ASCII letters,
//! as with ModSecurity's PCRE without `PCRE_UTF8`.

mod backtrack;
mod byte_set;
mod candidates;
mod compile;
mod fault;
mod lower;
mod parse;
mod prefilter;
mod requirement;
mod syntax;

pub use byte_set::ByteSet;
pub use candidates::CandidateSet;
pub use compile::{Caches, Captures, Match, Options, Pattern};
pub use fault::{Fault, Note};
pub use prefilter::{Asked, Makeup, Prefilter, Question, Scratch};
pub use requirement::{Clause, Edge, Place, Requirement, Sequence};

/// A pattern's place in a program: dense, from 0, chosen by whoever builds the program. It indexes
/// [`Caches`] and [`CandidateSet`]s, so numbers should be given without gaps, patterns that are
/// looked for in the same contents next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatternId(pub u32);

impl PatternId {
    /// The place as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
