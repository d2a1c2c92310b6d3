//! Chains of transformations, each numbered once.

use std::collections::HashMap;

use crate::inspection::ChainId;
use crate::pattern::Makeup;
use crate::transformation::Transformation;

/// The chains of a program; equal ones have one number.
#[derive(Debug)]
pub(crate) struct ChainTable {
    pub(crate) chains: Vec<Box<[Transformation]>>,
    known: HashMap<Box<[Transformation]>, ChainId>,
}

impl Default for ChainTable {
    fn default() -> Self {
        let none: Box<[Transformation]> = Box::default();
        Self { chains: vec![none.clone()], known: HashMap::from([(none, ChainId::NONE)]) }
    }
}

/// The longest chain, in transformations. The longest of the Core Rule Set has nine.
pub(crate) const CHAIN_MAX: usize = 64;

impl ChainTable {
    /// The chains of the beginnings of these transformations, the empty one first and the whole one
    /// last. `None` when there would be too many.
    pub(crate) fn steps(&mut self, transformations: &[Transformation]) -> Option<Vec<ChainId>> {
        if transformations.len() > CHAIN_MAX {
            return None;
        }
        (0..=transformations.len()).map(|count| self.chain(&transformations[..count])).collect()
    }

    /// What there is in contents that each chain changes.
    pub(crate) fn changes(&self) -> Vec<Makeup> {
        let changes = |chain: &[Transformation]| {
            let each = chain.iter().map(|transformation| transformation.changes());
            each.fold(Makeup::NOTHING, Makeup::or)
        };
        self.chains.iter().map(|chain| changes(chain)).collect()
    }

    /// The chain of these transformations.
    pub(crate) fn chain(&mut self, transformations: &[Transformation]) -> Option<ChainId> {
        if let Some(&known) = self.known.get(transformations) {
            return Some(known);
        }
        if transformations.len() > CHAIN_MAX {
            return None;
        }
        let id = ChainId(u16::try_from(self.chains.len()).ok()?);
        self.chains.push(transformations.into());
        self.known.insert(transformations.into(), id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Transformation as T;

    #[test]
    fn equal_chains_have_one_number() {
        let mut table = ChainTable::default();
        let a = table.chain(&[T::UrlDecodeUni, T::Lowercase]);
        assert_eq!(a, Some(ChainId(1)));
        assert_eq!(table.chain(&[T::UrlDecodeUni, T::Lowercase]), a);
        assert_eq!(table.chain(&[]), Some(ChainId::NONE));
        let steps = table.steps(&[T::UrlDecodeUni, T::Lowercase]);
        assert_eq!(steps, Some(vec![ChainId::NONE, ChainId(2), ChainId(1)]));
        assert_eq!(table.chain(&[T::Trim; CHAIN_MAX + 1]), None);
    }
}
