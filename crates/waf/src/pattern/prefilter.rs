//! The requirements of many patterns, tested in one pass over a content.
//!
//! # How
//!
//! Bytes are read as 64 [symbols](alphabet): letters without their case, digits as one, punctuation
//! as itself. A content's symbols fit in a word, its *signature*, which is part of its [`Makeup`].
//!
//! 1. The signature decides all that asks for bytes of a class ([`Profile`]). What it decides is kept
//!    for each signature seen lately, since contents that look alike are common: words, numbers,
//!    names. Letters count as one here, so that there are few different signatures. Where few
//!    patterns are asked for, they are decided about one by one.
//! 2. Tables say which patterns the content's length, first and last byte allow. What is left is
//!    *eligible*. Often that is nothing, or nothing that needs a sequence, and the content is not
//!    read any further.
//! 3. Every three, four and five symbols in a row are looked up among those that the sequences
//!    asked for contain ([`Grams`]); where few patterns are asked for, every two among those that
//!    their sequences end with. Where they are known, the sequences are compared with the content,
//!    but only those that an eligible pattern still needs.
//! 4. Patterns all of whose clauses are fulfilled are candidates. Those that need several bytes of a
//!    class are counted last.
//!
//! Each step only takes away patterns whose requirement is not met, so that
//! [`Requirement::is_met_by`] implies being a candidate.
//!
//! # Cost
//!
//! About 3 ns a byte for plain text plus 30 ns, whatever the number of patterns. A hostile content
//! can make every place look like a sequence; each place then costs at most the sequences that share their
//! rarest three symbols, of which there are few, so that the pass stays linear.

mod alphabet;
mod grams;
mod makeup;
mod profile;

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use self::{
    alphabet::{BEYOND, PLAIN, SYMBOLS},
    grams::{Ends, Grams, Target},
    profile::{Profile, Profiles},
};
use super::{ByteSet, CandidateSet, Clause, PatternId, Requirement};
pub use makeup::Makeup;

/// Most clauses with sequences that are tested for each requirement.
const LAYERS: usize = 3;
/// Bytes of a content whose symbols are looked at at a time.
const BLOCK_BYTES: usize = 4_096;
/// Lengths up to this one are told apart.
const LENGTHS: usize = 64;

/// Many requirements, compiled together; immutable, shared by all workers.
#[derive(Debug)]
pub struct Prefilter {
    /// Which prefilter a scratch was used with last.
    number: u64,
    /// Words of a bit set over rows.
    words: usize,
    /// Patterns a candidate set has room for.
    patterns: usize,
    profiles: Profiles,
    /// Rows that a content of this length can match, by [`length_class`].
    lengths: Vec<u64>,
    /// Rows that a content with this first symbol can match.
    firsts: Vec<u64>,
    /// Rows that a content with this last symbol can match.
    lasts: Vec<u64>,
    grams: Grams,
    /// The same for contents of plain text.
    plain: Grams,
    counted: Vec<Counted>,
    /// The rows among those.
    counting: Box<[u64]>,
    /// Each row's pattern.
    rows: Vec<PatternId>,
    /// Every pattern.
    all: Question,
}

/// Some of the patterns of one [`Prefilter`].
#[derive(Clone, Debug, Default)]
pub struct Asked {
    rows: Box<[u64]>,
}

impl Asked {
    /// Asks for those of another question to the same prefilter, too.
    pub fn unite(&mut self, other: &Self) {
        for (rows, more) in self.rows.iter_mut().zip(&other.rows) {
            *rows |= more;
        }
    }

    fn narrow(&self, eligible: &mut [u64]) {
        for (word, rows) in eligible.iter_mut().zip(&self.rows) {
            *word &= rows;
        }
    }
}

/// Which of these patterns may match, prepared to be asked of many contents: the fewer they are, the
/// sooner it is answered.
#[derive(Debug)]
pub struct Question {
    asked: Asked,
    is_nothing: bool,
    /// The rows, if they are few.
    few: Option<Box<[usize]>>,
    /// How the grams end that lead to what they ask for, if they are few and that tells contents
    /// apart.
    ends: Option<Box<Ends>>,
    /// The same for contents of plain text.
    plain: Option<Box<Ends>>,
}

impl Question {
    /// Whether it asks for no pattern.
    pub fn is_nothing(&self) -> bool {
        self.is_nothing
    }
}

/// So many rows are decided about one by one.
const FEW: usize = 32;

/// Rows that need several bytes of a class.
#[derive(Debug)]
struct Counted {
    class: Box<[bool; 256]>,
    /// How many, and which row.
    rows: Vec<(usize, usize)>,
}

/// What a pass writes to: one for each worker, used with any prefilter, best with one only. It keeps
/// about 100 KiB.
#[derive(Debug, Default)]
pub struct Scratch {
    prefilter: u64,
    /// Where grams end in a block, a bit for each byte, the first in the highest.
    found: Vec<u64>,
    profiles: Vec<Profile>,
    /// The rows that are eligible, then for each layer the rows whose clause is fulfilled.
    state: Vec<u64>,
}

impl Prefilter {
    /// Compiles requirements. A pattern may come several times: it is a candidate when one of its
    /// requirements is met. A pattern that does not come is never a candidate.
    pub fn new(requirements: Vec<(PatternId, Requirement)>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let patterns = requirements.iter().map(|(id, _)| id.index() + 1).max().unwrap_or(0);
        let rows = rows_of(requirements);
        let words = rows.len() / 64;
        let table = |size: usize, classes: &dyn Fn(&Requirement) -> Vec<usize>| {
            let mut table = vec![0; size * words];
            for (row, requirement) in rows.iter().enumerate() {
                let Some(Row { requirement, .. }) = requirement else { continue };
                for class in classes(requirement) {
                    table[class * words + row / 64] |= 1 << (row % 64);
                }
            }
            table
        };
        let lengths = table(LENGTH_CLASSES, &|requirement| {
            let Requirement { length_min, length_max, .. } = *requirement;
            let allows = |&class: &usize| {
                let (least, most) = lengths_of(class);
                length_min <= most && length_max.is_none_or(|max| least <= max)
            };
            (0..LENGTH_CLASSES).filter(allows).collect()
        });
        let edge = |requirement: &Requirement, set: &ByteSet| {
            let signature = alphabet::signature(set);
            // An empty content has no first byte; what is beyond it stands for one.
            let empty = u64::from(requirement.length_min == 0) << BEYOND;
            let allows = |&symbol: &usize| (signature | empty) >> symbol & 1 == 1;
            (0..SYMBOLS).filter(allows).collect()
        };
        let firsts = table(SYMBOLS, &|requirement| edge(requirement, &requirement.first));
        let lasts = table(SYMBOLS, &|requirement| edge(requirement, &requirement.last));
        let profiles = Profiles::new(&rows, words);
        let counted = counted(&rows);
        let mut counting = vec![0; words];
        for (_, row) in counted.iter().flat_map(|counted| &counted.rows) {
            counting[row / 64] |= 1 << (row % 64);
        }
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            words,
            patterns,
            lengths,
            firsts,
            lasts,
            grams: Grams::new(&rows, u64::MAX, &profiles),
            plain: Grams::new(&rows, PLAIN, &profiles),
            profiles,
            counting: counting.into(),
            counted,
            rows: rows.iter().map(|row| row.as_ref().map_or(NONE, |row| row.id)).collect(),
            all: Question {
                asked: Asked { rows: vec![u64::MAX; words].into_boxed_slice() },
                is_nothing: false,
                few: None,
                ends: None,
                plain: None,
            },
        }
    }

    /// How many patterns a [`CandidateSet`] for this prefilter needs room for.
    pub fn patterns(&self) -> usize {
        self.patterns
    }

    /// These patterns, to be [asked for](Self::question).
    pub fn asking(&self, patterns: impl Fn(PatternId) -> bool) -> Asked {
        let mut rows = vec![0; self.words].into_boxed_slice();
        for (row, _) in self.rows.iter().enumerate().filter(|(_, id)| patterns(**id)) {
            rows[row / 64] |= 1 << (row % 64);
        }
        Asked { rows }
    }

    /// Prepares a question to this prefilter, which takes some microseconds.
    pub fn question(&self, asked: Asked) -> Question {
        let rows = (0..self.rows.len()).filter(|row| asked.rows[row / 64] >> (row % 64) & 1 == 1);
        let rows: Box<[usize]> = rows.collect();
        let is_nothing = rows.is_empty();
        let few = (rows.len() <= FEW).then_some(rows);
        let ends = |grams: &Grams| few.as_ref().and_then(|few| grams.ends(few));
        let (ends, plain) = (ends(&self.grams), ends(&self.plain));
        Question { asked, is_nothing, few, ends, plain }
    }

    /// The question which of all patterns may match.
    pub fn every(&self) -> &Question {
        &self.all
    }

    /// Writes to `out` which patterns may match the content, and no others; what was in it is gone.
    pub fn candidates(&self, content: &[u8], scratch: &mut Scratch, out: &mut CandidateSet) {
        self.candidates_among(&self.all, content, Makeup::of(content), scratch, out);
    }

    /// As [`candidates`](Self::candidates), of those that are asked for only. `makeup` is the
    /// content's.
    pub fn candidates_among(
        &self,
        question: &Question,
        content: &[u8],
        makeup: Makeup,
        scratch: &mut Scratch,
        out: &mut CandidateSet,
    ) {
        if scratch.prefilter != self.number {
            scratch.prefilter = self.number;
            scratch.profiles = self.profiles.cache();
        }
        let Scratch { found, profiles, state, .. } = scratch;
        let signature = makeup.signature();
        state.clear();
        if let Some(few) = &question.few {
            state.resize(self.words * (1 + LAYERS), 0);
            self.profiles.decide_rows(few.iter().copied(), signature, state);
        } else {
            state.extend_from_slice(self.profiles.of(signature, profiles));
            question.asked.narrow(state);
        }
        self.narrow(content, state);
        let (grams, ends) = if signature & !PLAIN == 0 {
            (&self.plain, &question.plain)
        } else {
            (&self.grams, &question.ends)
        };
        let mut progress = Progress::of(state, self.words);
        let (mut window, mut start) = (0, 0);
        while !progress.is_complete() {
            let end = content.len().min(start + BLOCK_BYTES);
            let (block, is_last) = (&content[start..end], end == content.len());
            match ends {
                Some(ends) => Grams::read_ends(ends, block, is_last, &mut window, found),
                None => grams.read(block, is_last, &mut window, found),
            }
            grams.look_at_all(content, start, found, &mut progress);
            start = end;
            if is_last {
                break;
            }
        }
        let (eligible, layers) = state.split_at_mut(self.words);
        for (at, word) in eligible.iter_mut().enumerate() {
            *word = layers.chunks_exact(self.words).fold(*word, |word, layer| word & layer[at]);
        }
        self.count(content, eligible);
        self.write(eligible, out);
    }

    /// Leaves eligible what the content's length, first and last byte allow.
    fn narrow(&self, content: &[u8], eligible: &mut [u64]) {
        let symbol =
            |byte: Option<&u8>| usize::from(byte.map_or(BEYOND, |&byte| alphabet::symbol(byte)));
        let words = |class: usize| class * self.words..(class + 1) * self.words;
        let lengths = &self.lengths[words(length_class(content.len()))];
        let firsts = &self.firsts[words(symbol(content.first()))];
        let lasts = &self.lasts[words(symbol(content.last()))];
        let tables = lengths.iter().zip(firsts).zip(lasts);
        for (eligible, ((length, first), last)) in eligible.iter_mut().zip(tables) {
            *eligible &= length & first & last;
        }
    }

    /// Takes out the rows that need more bytes of a class than the content has.
    fn count(&self, content: &[u8], rows: &mut [u64]) {
        if rows.iter().zip(&self.counting).all(|(rows, counting)| rows & counting == 0) {
            return;
        }
        for counted in &self.counted {
            let in_question = |&&(_, row): &&(usize, usize)| rows[row / 64] >> (row % 64) & 1 == 1;
            let Some(most) = counted.rows.iter().filter(in_question).map(|row| row.0).max() else {
                continue;
            };
            let members = content.iter().filter(|&&byte| counted.class[usize::from(byte)]);
            let count = members.take(most).count();
            for &(times, row) in &counted.rows {
                if times > count {
                    rows[row / 64] &= !(1 << (row % 64));
                }
            }
        }
    }

    /// Rows to patterns.
    fn write(&self, rows: &[u64], out: &mut CandidateSet) {
        out.reset(self.patterns);
        for (first, &word) in (0..).step_by(64).zip(rows) {
            let mut word = word;
            while word != 0 {
                if let Some(&id) = self.rows.get(first + word.trailing_zeros() as usize) {
                    out.insert(id);
                }
                word &= word - 1;
            }
        }
    }
}

/// One way to match a pattern.
#[derive(Clone)]
struct Row {
    id: PatternId,
    requirement: Rc<Requirement>,
    way: usize,
}

impl Row {
    fn clauses(&self) -> &[Clause] {
        &self.requirement.ways[self.way]
    }

    /// What its bit among the words should have in common with those of other rows.
    fn kind(&self) -> (u32, ByteSet) {
        let classes = self.clauses().iter().filter(|clause| clause.sequences.is_empty());
        let classes = classes.map(|clause| (clause.class.len(), clause.class));
        classes.min().unwrap_or((u32::MAX, ByteSet::ALL))
    }
}

/// The rows of all requirements, so numbered that those with the same bit in different words need
/// similar classes: what is not eligible then tends to be so for all of a bit.
fn rows_of(requirements: Vec<(PatternId, Requirement)>) -> Vec<Option<Row>> {
    let mut rows = Vec::new();
    for (id, requirement) in requirements {
        let requirement = Rc::new(requirement);
        let ways = 0..requirement.ways.len();
        rows.extend(ways.map(|way| Row { id, requirement: Rc::clone(&requirement), way }));
    }
    rows.sort_by_cached_key(|row| (row.kind(), row.id, row.way));
    let words = rows.len().div_ceil(64).max(1);
    let mut numbered = vec![None; words * 64];
    for (at, row) in rows.into_iter().enumerate() {
        numbered[at % words * 64 + at / words] = Some(row);
    }
    numbered
}

/// What is fulfilled so far.
struct Progress<'a> {
    words: usize,
    /// The bits of the rows that still need a sequence, of all words and layers together.
    rows: u64,
    eligible: &'a [u64],
    /// One bit set after the other.
    layers: &'a mut [u64],
}

impl<'a> Progress<'a> {
    /// Of a state as in [`Scratch`].
    fn of(state: &'a mut [u64], words: usize) -> Self {
        let (eligible, layers) = state.split_at_mut(words);
        let mut progress = Self { words, rows: 0, eligible, layers };
        progress.note_rows();
        progress
    }

    fn note_rows(&mut self) {
        let waiting = |layer: &[u64]| {
            let words = self.eligible.iter().zip(layer);
            words.fold(0, |rows, (&eligible, &layer)| rows | eligible & !layer)
        };
        self.rows =
            self.layers.chunks_exact(self.words).fold(0, |rows, layer| rows | waiting(layer));
    }

    /// Whether no row needs a sequence any more.
    #[inline]
    fn is_complete(&self) -> bool {
        self.rows == 0
    }

    #[inline]
    fn needs(&self, Target { word, bit, layer }: Target) -> bool {
        self.eligible[word] & !self.layers[layer * self.words + word] & bit != 0
    }

    #[inline]
    fn fulfil(&mut self, Target { word, bit, layer }: Target) {
        self.layers[layer * self.words + word] |= bit;
        self.note_rows();
    }
}

/// Lengths up to [`LENGTHS`] each, then by powers of two.
const LENGTH_CLASSES: usize = LENGTHS + 64;

fn length_class(length: usize) -> usize {
    if length < LENGTHS { length } else { LENGTHS + length.ilog2() as usize }
}

/// The least and the greatest length of a class.
fn lengths_of(class: usize) -> (usize, usize) {
    match class.checked_sub(LENGTHS) {
        None => (class, class),
        Some(log) => (1 << log, (1 << log) - 1 + (1 << log)),
    }
}

/// The pattern of an unused row, which is never eligible.
const NONE: PatternId = PatternId(0);

fn counted(rows: &[Option<Row>]) -> Vec<Counted> {
    let mut classes: BTreeMap<ByteSet, Vec<(usize, usize)>> = BTreeMap::new();
    for (row, way) in rows.iter().enumerate() {
        for clause in way.iter().flat_map(Row::clauses) {
            if clause.times > 1 {
                classes.entry(clause.class).or_default().push((clause.times, row));
            }
        }
    }
    let table = |class: ByteSet| {
        let mut table = Box::new([false; 256]);
        class.iter().for_each(|byte| table[usize::from(byte)] = true);
        table
    };
    classes.into_iter().map(|(class, rows)| Counted { class: table(class), rows }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Pattern};
    use super::*;

    const SOURCES: &[&str] = &[
        "(?i)union.{1,9}select",
        "<script[^>]*>",
        r"^[a-z]+\.json$",
        r"\bor\s+\d+\s*=\s*\d+",
        "__proto__",
        "(?:cat|less|more) /etc/",
        "[0-9]{3}-[0-9]{4}",
        "'.*'.*'",
        "between",
        "^$",
    ];

    const CONTENTS: &[&str] = &[
        "",
        "between",
        "plain text of some words",
        "a union of workers may select its own",
        "UNION all SELECT name",
        "package.json",
        "call 555-0123",
        "it's 'quoted' twice",
        "1 or 1=1",
        "a.__proto__.b",
        "; cat /etc/passwd",
        "<SCRIPT src=x>",
        "<script>",
        "Å between Ö",
    ];

    /// Whatever is asked, and however much stands before it, what may match is a candidate; what
    /// lacks all that a pattern needs is not.
    #[test]
    fn candidates_are_what_may_match() {
        let compile = |source: &&str| {
            let pattern = Pattern::compile(source.as_bytes(), &Options::default());
            pattern.unwrap_or_else(|fault| panic!("{source}: {fault}")).0
        };
        let patterns: Vec<Pattern> = SOURCES.iter().map(compile).collect();
        let numbered = || (0..).map(PatternId).zip(&patterns);
        let requirements = numbered().map(|(id, it)| (id, it.requirement().clone())).collect();
        let prefilter = Prefilter::new(requirements);
        let (mut scratch, mut out) = (Scratch::default(), CandidateSet::default());
        let two = [PatternId(4), PatternId(8)];
        let few = prefilter.question(prefilter.asking(|id| two.contains(&id)));
        let all_as_few = prefilter.question(prefilter.asking(|_| true));
        for before in [0, 1, 63, 64, 300, BLOCK_BYTES - 3, BLOCK_BYTES, 2 * BLOCK_BYTES] {
            for content in CONTENTS {
                let content = ["x ".repeat(before).as_bytes(), content.as_bytes()].concat();
                let makeup = Makeup::of(&content);
                for (question, all) in
                    [(prefilter.every(), true), (&all_as_few, true), (&few, false)]
                {
                    prefilter.candidates_among(question, &content, makeup, &mut scratch, &mut out);
                    for (id, pattern) in numbered() {
                        let asked = all || two.contains(&id);
                        let may = asked && pattern.requirement().is_met_by(&content);
                        let shown = String::from_utf8_lossy(&content);
                        assert!(!may || out.contains(id), "{} in {shown}", SOURCES[id.index()]);
                    }
                    assert!(!out.contains(PatternId(1)) || content.contains(&b'<'));
                    assert!(!out.contains(PatternId(4)) || content.contains(&b'_'));
                }
            }
        }
    }
}
