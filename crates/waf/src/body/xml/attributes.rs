//! The attributes of the current start tag: only their names, to see that none repeats.

use std::ops::Range;

use super::fault::Reason;

/// The names of the current start tag's attributes.
#[derive(Debug)]
pub(super) struct Attributes {
    names: Vec<u8>,
    ranges: Vec<Range<usize>>,
    count_max: usize,
}

impl Attributes {
    pub(super) fn new(count_max: u32) -> Self {
        Self { names: Vec::new(), ranges: Vec::new(), count_max: count_max as usize }
    }

    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.ranges.clear();
    }

    pub(super) fn push(&mut self, name: &[u8]) -> Result<(), Reason> {
        if self.ranges.len() == self.count_max {
            return Err(Reason::Attributes);
        }
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.ranges.push(start..self.names.len());
        Ok(())
    }

    /// Whether the last one declares a namespace, which makes it no attribute to an `XPath`.
    pub(super) fn last_is_namespace(&self) -> bool {
        self.ranges.last().is_some_and(|last| {
            let name = &self.names[last.clone()];
            name == b"xmlns" || name.starts_with(b"xmlns:")
        })
    }

    /// Makes sure that no name repeats. Sorts, so that many attributes cost little more than few.
    pub(super) fn check(&mut self) -> Result<(), Reason> {
        let Self { names, ranges, .. } = self;
        let name = |range: &Range<usize>| &names[range.clone()];
        ranges.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        if ranges.windows(2).any(|pair| name(&pair[0]) == name(&pair[1])) {
            return Err(Reason::AttributeRepeated);
        }
        Ok(())
    }
}
