//! Clauses while they are found: numbered, each with how likely ordinary contents fulfil it.

use std::collections::{HashMap, HashSet};

use super::{
    ByteSet, Clause, Place, Sequence, frequency,
    hash::Quick,
    text::{Mark, SequenceId, Symbols, Text},
};

/// A clause with sequences that ordinary contents fulfil more often than this is not worth its test.
const WORTHLESS: f32 = 0.97;

/// A sequence more makes up for so much likelihood: each costs room and comparisons.
const SEQUENCE_COST: f32 = 1e-6;

/// A clause's number. Lower is not better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NeedId(u32);

/// All clauses found in one pattern.
#[derive(Default)]
pub(super) struct Needs {
    needs: Vec<Need>,
}

/// A clause, its sequences by number.
struct Need {
    class: ByteSet,
    times: usize,
    sequences: Vec<SequenceId>,
    /// How likely it is at a place of an ordinary content, as a sum over its ways.
    at_a_place: f32,
}

impl Needs {
    fn add(
        &mut self,
        class: ByteSet,
        times: usize,
        sequences: Vec<SequenceId>,
        sequences_at_a_place: f32,
    ) -> NeedId {
        // Several bytes of a class are about as likely as one of a class so much rarer.
        #[expect(clippy::cast_precision_loss, reason = "only an estimate")]
        let at_a_place = frequency::byte_is_in(&class) / times.min(1_000) as f32;
        let at_a_place = at_a_place + sequences_at_a_place;
        self.needs.push(Need { class, times, sequences, at_a_place });
        #[expect(clippy::cast_possible_truncation, reason = "far fewer clauses are ever made")]
        NeedId(self.needs.len() as u32 - 1)
    }

    fn need(&self, id: NeedId) -> &Need {
        &self.needs[id.0 as usize]
    }

    /// The clause.
    pub(super) fn clause(&self, id: NeedId, symbols: &Symbols) -> Clause {
        let Need { class, times, sequences, .. } = self.need(id);
        let sequences = sequences.iter().map(|&id| symbols.sequence(id).clone()).collect();
        Clause { class: *class, times: *times, sequences }
    }

    /// How many sequences it has; with none it asks for bytes of a class only.
    pub(super) fn sequences(&self, id: NeedId) -> usize {
        self.need(id).sequences.len()
    }

    /// Whether two clauses ask for nearly the same, so that having both gains nothing.
    pub(super) fn are_much_alike(&self, a: NeedId, b: NeedId) -> bool {
        let (a, b) = (self.need(a), self.need(b));
        // Both are sorted.
        let common = b.sequences.iter().filter(|id| a.sequences.binary_search(id).is_ok()).count();
        let either = a.sequences.len().max(b.sequences.len());
        a.times == b.times && a.class == b.class && common * 2 >= either
    }

    /// How likely a clause is at a place of an ordinary content.
    pub(super) fn at_a_place(&self, id: NeedId) -> f32 {
        self.need(id).at_a_place
    }

    /// The clauses that are worth a test, the most selective first, `most` at most.
    pub(super) fn ranked(&self, mut ids: Vec<NeedId>, most: usize) -> Vec<NeedId> {
        ids.retain(|&id| {
            let Need { class, times, sequences, at_a_place } = self.need(id);
            if sequences.is_empty() {
                *class != ByteSet::ALL || *times > 1
            } else {
                frequency::somewhere(*at_a_place) < WORTHLESS
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "only an estimate")]
        let cost = |id: NeedId| self.at_a_place(id) + self.sequences(id) as f32 * SEQUENCE_COST;
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
        let (mut class, mut times) = (ByteSet::NONE, usize::MAX);
        let mut sequences = Vec::new();
        let mut at_a_place = 0.0;
        for id in ids {
            let need = self.need(id);
            class |= need.class;
            times = times.min(need.times);
            sequences.extend_from_slice(&need.sequences);
            if !need.sequences.is_empty() {
                at_a_place += need.at_a_place;
            }
        }
        sequences.sort_unstable();
        sequences.dedup();
        let times = if sequences.is_empty() { times } else { 1 };
        Some(self.add(class, times, sequences, at_a_place))
    }

    /// A class's bytes, so many times as often: each of several texts side by side has some.
    pub(super) fn repeated(&mut self, id: NeedId, times: usize) -> NeedId {
        let Need { class, times: once, .. } = *self.need(id);
        self.add(class, once.saturating_mul(times), Vec::new(), 0.0)
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
        // A text that says nothing leaves nothing to say about all of them.
        if texts.iter().any(|text| text.also.is_none() && text.rarest(symbols).is_none()) {
            return Vec::new();
        }
        let mut classes = Some(ByteSet::NONE);
        // Of the clause with sequences: those, and the class of what no sequence is good for.
        let mut mixed = Some((ByteSet::NONE, Vec::new()));
        let mut at_a_place = 0.0;
        let mut taken: Vec<NeedId> = Vec::new();
        for text in texts {
            let rarest = text.rarest(symbols);
            match (&mut classes, rarest) {
                (Some(classes), Some((rarest, _))) => *classes |= rarest,
                _ => classes = None,
            }
            let Some((class, sequences)) = &mut mixed else { continue };
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
                        *class |= need.class;
                        sequences.extend_from_slice(&need.sequences);
                        at_a_place += need.at_a_place;
                    }
                }
                (_, Mark::Sequence(sequence, likelihood), _) => {
                    sequences.push(sequence);
                    at_a_place += likelihood;
                }
                (_, _, Some((rarest, _))) => *class |= rarest,
                (_, _, None) => mixed = None,
            }
        }
        let mixed = mixed.map(|(class, mut sequences)| {
            sequences.sort_unstable();
            sequences.dedup();
            self.add(class, 1, sequences, at_a_place)
        });
        let classes = classes.map(|classes| self.add(classes, 1, Vec::new(), 0.0));
        [mixed, classes].into_iter().flatten().collect()
    }
}

/// The same clause without sequences that imply another of its ways.
pub(super) fn reduced(mut clause: Clause, symbols: &mut Symbols) -> Clause {
    let class = clause.class;
    clause.sequences.retain(|sequence| !symbols.has_byte_of(sequence, class));
    // Those that differ at one end only are one with either there.
    for end in [End::Last, End::First] {
        let mut known: HashMap<(Box<[u16]>, usize), Sequence, Quick> = HashMap::default();
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
        // So that the same pattern gives the same clause.
        clause.sequences.sort_unstable();
    }
    let known: HashSet<&[u16], Quick> =
        clause.sequences.iter().map(|sequence| &*sequence.0).collect();
    let is_needed: Vec<bool> =
        clause.sequences.iter().map(|sequence| !contains_shorter(sequence, &known)).collect();
    let mut is_needed = is_needed.into_iter();
    clause.sequences.retain(|_| is_needed.next().unwrap_or(true));
    clause
}

/// Whether another of these sequences is within this one.
fn contains_shorter(sequence: &Sequence, known: &HashSet<&[u16], Quick>) -> bool {
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
