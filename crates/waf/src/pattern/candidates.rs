//! The patterns that may match: a bit for each.

use super::PatternId;

/// A set of patterns as a bit set, made for one [`Prefilter`](super::Prefilter) and reused.
///
/// Members come out in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidateSet {
    words: Vec<u64>,
}

impl CandidateSet {
    /// An empty set with room for the patterns `0..patterns`.
    pub fn new(patterns: usize) -> Self {
        Self { words: vec![0; patterns.div_ceil(64)] }
    }

    /// Takes all members out. What is cleared for each of hundreds of lanes is not written over: words
    /// that are not there have no members.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// How many are in it.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Puts one in. The set grows when it has no room for it.
    pub fn insert(&mut self, id: PatternId) {
        let word = id.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (id.index() % 64);
    }

    /// Whether this one is in it.
    pub fn contains(&self, id: PatternId) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    /// Puts all members of another set in: the candidates of a lane are those of its contents.
    pub fn union(&mut self, other: &Self) {
        if self.words.is_empty() {
            self.words.extend_from_slice(&other.words);
            return;
        }
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, &more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Keeps only what is in the other set too, as the patterns that a lane or a phase looks for.
    pub fn intersect(&mut self, other: &Self) {
        for (index, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(index).copied().unwrap_or(0);
        }
    }

    /// Whether the two have a member in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(&word, &theirs)| word & theirs != 0)
    }

    /// The members, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = PatternId> + '_ {
        members(self.words.iter().copied())
    }

    /// The members that are in the other set too, without making a third.
    pub fn iter_common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = PatternId> + 'a {
        members(self.words.iter().zip(&other.words).map(|(&word, &theirs)| word & theirs))
    }

    /// The bits, 64 patterns a word, the lowest number in the lowest bit.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Empties it and gives it room for the patterns `0..patterns`.
    pub(super) fn reset(&mut self, patterns: usize) {
        self.words.clear();
        self.words.resize(patterns.div_ceil(64), 0);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "there are fewer patterns than 2^32")]
fn members(words: impl Iterator<Item = u64>) -> impl Iterator<Item = PatternId> {
    words.enumerate().flat_map(|(index, mut word)| {
        std::iter::from_fn(move || {
            if word == 0 {
                return None;
            }
            let bit = word.trailing_zeros();
            word &= word - 1;
            Some(PatternId(index as u32 * 64 + bit))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[u32]) -> CandidateSet {
        let mut set = CandidateSet::new(10);
        for &member in members {
            set.insert(PatternId(member));
        }
        set
    }

    fn list(set: &CandidateSet) -> Vec<u32> {
        set.iter().map(|id| id.0).collect()
    }

    #[test]
    fn members_come_in_order() {
        assert_eq!(list(&set(&[200, 3, 63, 64, 0])), [0, 3, 63, 64, 200]);
        assert_eq!(set(&[200, 3]).len(), 2);
        assert!(set(&[]).is_empty() && !set(&[64]).is_empty());
        assert!(set(&[64]).contains(PatternId(64)) && !set(&[64]).contains(PatternId(1000)));
    }

    #[test]
    fn sets_of_different_sizes_combine() {
        let mut small = set(&[1, 5]);
        small.union(&set(&[130]));
        assert_eq!(list(&small), [1, 5, 130]);
        small.intersect(&set(&[5]));
        assert_eq!(list(&small), [5]);
        assert!(small.meets(&set(&[5, 300])) && !small.meets(&set(&[6])));
        let large = set(&[5, 6, 300]);
        assert_eq!(large.iter_common(&small).map(|id| id.0).collect::<Vec<_>>(), [5]);
        small.clear();
        assert!(small.is_empty());
    }
}
