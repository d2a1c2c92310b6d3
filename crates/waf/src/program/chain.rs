//! Chains of transformations, each made once and numbered.

use std::collections::HashMap;

use crate::inspection::{ChainId, ChainLink};
use crate::transformation::Transformation;

/// The chains of a program as a tree: a chain is another chain and one transformation more, so that
/// what two chains begin with in common is computed once.
#[derive(Debug, Default)]
pub(crate) struct ChainTable {
    pub(crate) links: Vec<ChainLink>,
    known: HashMap<(ChainId, Transformation), ChainId>,
}

/// The longest chain, in transformations. The longest of the Core Rule Set has nine.
pub(crate) const CHAIN_MAX: usize = 64;

impl ChainTable {
    /// The chain of these transformations and those of its beginnings, the empty one first.
    /// `None` when there would be too many.
    pub(crate) fn steps(&mut self, transformations: &[Transformation]) -> Option<Vec<ChainId>> {
        if transformations.len() > CHAIN_MAX {
            return None;
        }
        let mut steps = vec![ChainId::NONE];
        let mut before = ChainId::NONE;
        for &last in transformations {
            let next = u16::try_from(self.links.len() + 1).ok().map(ChainId);
            let chain = if let Some(&known) = self.known.get(&(before, last)) {
                known
            } else {
                let next = next?;
                self.links.push(ChainLink { before, last });
                self.known.insert((before, last), next);
                next
            };
            steps.push(chain);
            before = chain;
        }
        Some(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Transformation as T;

    #[test]
    fn common_beginnings_are_shared() {
        let mut table = ChainTable::default();
        let a = table.steps(&[T::UrlDecodeUni, T::Lowercase]);
        let b = table.steps(&[T::UrlDecodeUni, T::HtmlEntityDecode]);
        assert_eq!(a, Some(vec![ChainId(0), ChainId(1), ChainId(2)]));
        assert_eq!(b, Some(vec![ChainId(0), ChainId(1), ChainId(3)]));
        assert_eq!(table.steps(&[]), Some(vec![ChainId(0)]));
        assert_eq!(table.steps(&[T::Trim; CHAIN_MAX + 1]), None);
    }
}
