//! The requirements of many patterns, tested in one pass over a content.

use super::{CandidateSet, PatternId, Requirement};

/// What a pass writes to: one for each worker, used with any prefilter.
#[derive(Debug, Default)]
pub struct Scratch {}

/// Many requirements, compiled together; immutable, shared by all workers.
#[derive(Debug)]
pub struct Prefilter {
    patterns: Vec<PatternId>,
}

impl Prefilter {
    /// Compiles requirements. A pattern may come several times: it is a candidate when one of its
    /// requirements is met.
    pub fn new(requirements: Vec<(PatternId, Requirement)>) -> Self {
        Self { patterns: requirements.into_iter().map(|(id, _)| id).collect() }
    }

    /// How many patterns a [`CandidateSet`] for this prefilter needs room for.
    pub fn patterns(&self) -> usize {
        self.patterns.iter().map(|id| id.index() + 1).max().unwrap_or(0)
    }

    /// Writes to `out` which patterns may match the content, and no others; what was in it is gone.
    pub fn candidates(&self, content: &[u8], scratch: &mut Scratch, out: &mut CandidateSet) {
        let _ = (content, scratch);
        out.clear();
        for &id in &self.patterns {
            out.insert(id);
        }
    }
}
