//! Clauses while they are found: numbered, each with how likely ordinary contents fulfil it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ByteSet, Clause, Place, Sequence, frequency,
    text::{Mark, Symbols, Text},
};

/// A clause with sequences that ordinary contents fulfil more often than this is not worth its test.
const WORTHLESS: f32 = 0.97;

/// A sequence more makes up for so much likelihood: each costs room and comparisons.
const SEQUENCE_COST: f32 = 1e-6;

/// A clause's number. Lower is not better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NeedId(u32);

/// All clauses found in one pattern.
#[derive(Default)]
pub(super) struct Needs {
    needs: Vec<Need>,
}

struct Need {
    clause: Clause,
    /// How likely it is at a place of an ordinary content, as a sum over its ways.
    at_a_place: f32,
}

impl Needs {
    fn add(&mut self, clause: Clause, sequences_at_a_place: f32) -> NeedId {
        // Several bytes of a class are about as likely as one of a class so much rarer.
        #[expect(clippy::cast_precision_loss, reason = "only an estimate")]
        let class = frequency::byte_is_in(&clause.class) / clause.times.min(1_000) as f32;
        self.needs.push(Need { clause, at_a_place: class + sequences_at_a_place });
        #[expect(clippy::cast_possible_truncation, reason = "far fewer clauses are ever made")]
        NeedId(self.needs.len() as u32 - 1)
    }

    fn need(&self, id: NeedId) -> &Need {
        &self.needs[id.0 as usize]
    }

    /// The clause.
    pub(super) fn clause(&self, id: NeedId) -> &Clause {
        &self.need(id).clause
    }

    /// Whether a clause asks for bytes of a class only.
    pub(super) fn is_class(&self, id: NeedId) -> bool {
        self.clause(id).sequences.is_empty()
    }

    /// How likely a clause is at a place of an ordinary content.
    pub(super) fn at_a_place(&self, id: NeedId) -> f32 {
        self.need(id).at_a_place
    }

    /// The clauses that are worth a test, the most selective first, `most` at most.
    pub(super) fn ranked(&self, mut ids: Vec<NeedId>, most: usize) -> Vec<NeedId> {
        ids.retain(|&id| {
            let Need { clause, at_a_place } = self.need(id);
            if clause.sequences.is_empty() {
                clause.class != ByteSet::ALL || clause.times > 1
            } else {
                frequency::somewhere(*at_a_place) < WORTHLESS
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "only an estimate")]
        let cost = |id: NeedId| {
            self.at_a_place(id) + self.clause(id).sequences.len() as f32 * SEQUENCE_COST
        };
        ids.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(a.cmp(&b)));
        ids.dedup();
        ids.truncate(most);
        ids
    }

    /// One clause that is fulfilled when one of these is; none if one of them is unknown.
    pub(super) fn union(&mut self, ids: impl Iterator<Item = Option<NeedId>>) -> Option<NeedId> {
        let mut ids = ids.collect::<Option<Vec<NeedId>>>()?;
        ids.sort_unstable();
        ids.dedup();
        if let [only] = ids[..] {
            return Some(only);
        }
        let mut union = Clause { times: usize::MAX, ..Clause::default() };
        let mut at_a_place = 0.0;
        for id in ids {
            let Need { clause, at_a_place: more } = self.need(id);
            union.class |= clause.class;
            union.times = union.times.min(clause.times);
            union.sequences.extend(clause.sequences.iter().cloned());
            if !clause.sequences.is_empty() {
                at_a_place += more;
            }
        }
        if !union.sequences.is_empty() {
            union.times = 1;
        }
        Some(self.add(union, at_a_place))
    }

    /// A class's bytes, so many times as often: each of several texts side by side has some.
    pub(super) fn repeated(&mut self, id: NeedId, times: usize) -> NeedId {
        let clause = self.clause(id);
        let times = clause.times.saturating_mul(times);
        let clause = Clause { times, ..clause.clone() };
        self.add(clause, 0.0)
    }

    /// Clauses that a content with one of these texts fulfils: one of sequences, one of classes; none
    /// when one of the texts says nothing. `before` and `after` are what may stand beside the texts.
    pub(super) fn of_texts(
        &mut self,
        texts: &[Text],
        symbols: &mut Symbols,
        before: Place,
        after: Place,
    ) -> Vec<NeedId> {
        let (mut classes, mut mixed) = (Some(Clause::default()), Some(Clause::default()));
        let mut at_a_place = 0.0;
        let mut taken: Vec<NeedId> = Vec::new();
        for text in texts {
            let rarest = text.rarest(symbols);
            match (&mut classes, rarest) {
                (Some(classes), Some((rarest, _))) => classes.class |= rarest,
                _ => classes = None,
            }
            let Some(clause) = &mut mixed else { continue };
            let mark = text.mark(symbols, before, after);
            let likelihood = match &mark {
                Mark::Never => continue,
                Mark::Sequence(_, likelihood) => *likelihood,
                Mark::None => rarest.map_or(1.0, |(_, likelihood)| likelihood),
            };
            match (text.also, mark, rarest) {
                (Some(also), ..) if self.at_a_place(also) < likelihood => {
                    if !taken.contains(&also) {
                        taken.push(also);
                        let need = self.need(also);
                        clause.class |= need.clause.class;
                        clause.sequences.extend(need.clause.sequences.iter().cloned());
                        at_a_place += need.at_a_place;
                    }
                }
                (_, Mark::Sequence(sequence, likelihood), _) => {
                    clause.sequences.push(sequence);
                    at_a_place += likelihood;
                }
                (_, _, Some((rarest, _))) => clause.class |= rarest,
                (_, _, None) => mixed = None,
            }
        }
        let classes = classes.map(|classes| self.add(classes, 0.0));
        let mixed = mixed.map(|mixed| self.add(mixed, at_a_place));
        [mixed, classes].into_iter().flatten().collect()
    }
}

/// The same clause without sequences that imply another of its ways.
pub(super) fn reduced(mut clause: Clause, symbols: &mut Symbols) -> Clause {
    let class = clause.class;
    clause.sequences.retain(|sequence| !symbols.has_byte_of(sequence, class));
    // Those that differ at one end only are one with either there.
    for end in [End::Last, End::First] {
        let mut known: BTreeMap<(Box<[u16]>, usize), Sequence> = BTreeMap::new();
        for sequence in std::mem::take(&mut clause.sequences) {
            let at = match end {
                End::First => 0,
                End::Last => sequence.0.len() - 1,
            };
            let mut rest = sequence.0.clone();
            rest[at] = u16::MAX;
            match known.get_mut(&(rest.clone(), at)) {
                None => drop(known.insert((rest, at), sequence)),
                Some(known) => match symbols.merged(known, &sequence, at) {
                    Some(merged) => *known = merged,
                    None => clause.sequences.push(sequence),
                },
            }
        }
        clause.sequences.extend(known.into_values());
    }
    let known: BTreeSet<Box<[u16]>> =
        clause.sequences.iter().map(|sequence| sequence.0.clone()).collect();
    clause.sequences.retain(|sequence| !contains_shorter(sequence, &known));
    clause
}

/// Whether another of these sequences is within this one.
fn contains_shorter(sequence: &Sequence, known: &BTreeSet<Box<[u16]>>) -> bool {
    let length = sequence.0.len();
    (0..length).any(|start| {
        (start + 2..=length)
            .filter(|end| end - start < length)
            .any(|end| known.contains(&sequence.0[start..end]))
    })
}

#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}
