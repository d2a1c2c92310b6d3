//! The distinct contents of one transaction: every value that rules look at, before and after
//! transformation, stored once.
//!
//! Equal byte strings have one number. A transformation chain is therefore computed once for each
//! distinct content, however many arguments carry it, and so is the set of patterns that may match
//! it. A transformation that changes nothing gives the same number back, which makes all chains share
//! the work on plain values.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::pattern::{CandidateSet, Makeup, Question, Scratch};
use crate::program::Program;
use crate::transformation::{Outcome, Transformation};
use crate::variable::Phase;

/// A distinct byte string of the transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ContentId(u32);

impl ContentId {
    /// The empty string, which every transaction has.
    pub(crate) const EMPTY: ContentId = ContentId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A chain of transformations, numbered by the program. Chain 0 is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct ChainId(pub(crate) u16);

impl ChainId {
    pub(crate) const NONE: ChainId = ChainId(0);
}

/// The message whose rules are asked: each half has a prefilter of its own, because response rules
/// never look at what request rules do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Half {
    Request,
    Response,
}

impl Half {
    pub(crate) fn of(phase: Phase) -> Self {
        if phase <= Phase::RequestBody { Half::Request } else { Half::Response }
    }
}

/// Work done, in bytes gone through: what an inspection costs without asking a clock. A megabyte is
/// about a millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Work(pub u64);

impl Work {
    /// As much as there is.
    pub const UNBOUNDED: Work = Work(u64::MAX);
}

const UNKNOWN: u32 = u32::MAX;
/// The row of contents that no pattern may match, which are most.
const EMPTY_ROW: u32 = u32::MAX - 1;

/// Where a content's candidates are.
#[derive(Clone, Copy)]
struct Row {
    row: u32,
    /// The chains whose patterns they are among.
    asked: Chains,
}

impl Row {
    const UNASKED: Self = Self { row: EMPTY_ROW, asked: Chains(0) };
}

/// A set of chains: a bit for each of the first, or every chain.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Chains(u64);

impl Chains {
    const ALL: Self = Self(u64::MAX);

    fn of(chain: ChainId) -> Self {
        if chain.0 < 63 { Self(1 << chain.0) } else { Self::ALL }
    }

    fn contains(self, chain: Self) -> bool {
        self.0 & chain.0 == chain.0
    }

    /// The chains that have a transformation; all, if there are more than there are bits.
    fn with(transformation: Transformation, program: &Program) -> Self {
        if program.chains.len() > 63 {
            return Self::ALL;
        }
        let chains = (0..).zip(&program.chains);
        let with = chains.filter(|(_, chain)| chain.contains(&transformation));
        Self(with.fold(0, |set, (number, _)| set | 1 << number))
    }

    /// Those that are in the other set, too.
    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What rules ask behind these chains; `None`: everything.
    fn question(self, program: &Program, half: Half) -> Option<Question> {
        if self == Self::ALL {
            return None;
        }
        let chains = (0..63).filter(|chain| self.0 >> chain & 1 == 1);
        let mut asked = chains.filter_map(|chain| program.asked(half, ChainId(chain)));
        let mut all = asked.next()?.clone();
        asked.for_each(|more| all.unite(more));
        Some(program.prefilter(half).question(all))
    }
}

/// What a worker asks the prefilter of one half with.
#[derive(Default)]
pub(crate) struct Asking {
    scratch: Scratch,
    /// The program that the questions are to.
    program: u64,
    /// What is asked of contents that may be looked at behind these chains: there are a dozen.
    questions: Vec<(Chains, Question)>,
}

/// Most questions that are kept.
const QUESTIONS_MAX: usize = 64;

impl Asking {
    /// The number of the question what rules ask behind these chains; `None`: everything.
    fn question(&mut self, program: &Program, half: Half, chains: Chains) -> Option<usize> {
        if self.program != program.identity || self.questions.len() == QUESTIONS_MAX {
            self.program = program.identity;
            self.questions.clear();
        }
        if let Some(known) = self.questions.iter().position(|(known, _)| *known == chains) {
            return Some(known);
        }
        self.questions.push((chains, chains.question(program, half)?));
        Some(self.questions.len() - 1)
    }
}

/// The contents of one transaction. Emptied and used again for the next one.
pub(crate) struct Contents {
    bytes: Vec<u8>,
    /// Content `n` ends where this says and begins where `n - 1` ended.
    ends: Vec<u32>,
    /// What bytes each content has, as far as that has been asked.
    makeups: Vec<Makeup>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// `columns[transformation][content]`: what the transformation makes of the content, whatever
    /// chain it is part of.
    columns: Vec<Vec<u32>>,
    rows: [CandidateRows; 2],
    /// The chains that may have a content on their way: those with the transformations that made it.
    from: Vec<Chains>,
    transformed: Vec<u8>,
    /// The program that candidates are of.
    program: u64,
    /// The program's chains that have a transformation.
    chains_with: Vec<Chains>,
    work: Work,
    full: bool,
}

#[derive(Default)]
struct CandidateRows {
    of_content: Vec<Row>,
    sets: Vec<CandidateSet>,
    used: usize,
}

impl Contents {
    /// The empty string only.
    pub(crate) fn new() -> Self {
        let mut contents = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            makeups: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            columns: vec![Vec::new(); Transformation::ALL.len()],
            rows: <[CandidateRows; 2]>::default(),
            from: Vec::new(),
            transformed: Vec::new(),
            program: 0,
            chains_with: vec![Chains::ALL; Transformation::ALL.len()],
            work: Work(0),
            full: false,
        };
        contents.clear();
        contents
    }

    /// For another transaction of this program.
    ///
    /// Most of what a request carries, others carry too: names, media types, the client's software.
    /// What is known of such contents stays known, as long as they are few: what a transaction finds
    /// depends on its values, never on which contents there are.
    pub(crate) fn begin(&mut self, program: &Program) {
        let few = self.ends.len() <= REMEMBERED_CONTENTS && self.bytes.len() <= REMEMBERED_BYTES;
        let is_other = self.program != program.identity;
        if is_other || !few || self.full {
            self.clear();
        }
        if is_other {
            self.program = program.identity;
            for (with, &transformation) in self.chains_with.iter_mut().zip(Transformation::ALL) {
                *with = Chains::with(transformation, program);
            }
        }
        self.work = Work(0);
    }

    /// The memory that it holds for bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets everything; keeps the memory, but not more than an ordinary request needs.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.ends.shrink_to(KEPT_CONTENTS);
        self.makeups.clear();
        self.makeups.shrink_to(KEPT_CONTENTS);
        self.index.clear();
        for column in &mut self.columns {
            column.clear();
            column.shrink_to(KEPT_CONTENTS);
        }
        for rows in &mut self.rows {
            rows.of_content.clear();
            rows.used = 0;
            rows.sets.truncate(KEPT_CONTENTS);
        }
        self.from.clear();
        self.full = false;
        self.ends.push(0);
        let hash = self.hasher.hash_one(b"".as_slice());
        self.index.insert_unique(hash, 0, |_| hash);
    }

    /// What has been done for this transaction so far.
    pub(crate) fn work(&self) -> Work {
        self.work
    }

    /// Counts a content as gone through once more.
    pub(crate) fn count(&mut self, content: ContentId) {
        self.work.0 += WORK_AT_LEAST + self.bytes(content).len() as u64;
    }

    /// Some content did not fit into the bytes a transaction may take.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn bytes(&self, id: ContentId) -> &[u8] {
        let start = match id.0 {
            0 => 0,
            n => self.ends[n as usize - 1] as usize,
        };
        &self.bytes[start..self.ends[id.index()] as usize]
    }

    /// What bytes a content has.
    #[inline]
    pub(crate) fn makeup(&mut self, id: ContentId) -> Makeup {
        match self.makeups.get(id.index()) {
            Some(&known) if known != Makeup::NOTHING => known,
            _ => self.note_makeup(id),
        }
    }

    fn note_makeup(&mut self, id: ContentId) -> Makeup {
        let makeup = Makeup::of(self.bytes(id));
        if self.makeups.len() <= id.index() {
            self.makeups.resize(self.ends.len(), Makeup::NOTHING);
        }
        self.makeups[id.index()] = makeup;
        makeup
    }

    /// The number of a byte string, new or known.
    pub(crate) fn intern(&mut self, value: &[u8]) -> ContentId {
        if value.is_empty() {
            return ContentId::EMPTY;
        }
        let hash = self.hasher.hash_one(value);
        let (bytes, ends) = (&self.bytes, &self.ends);
        let range = |n: u32| ends[n as usize - 1] as usize..ends[n as usize] as usize;
        if let Some(&known) = self.index.find(hash, |&n| n != 0 && bytes[range(n)] == *value) {
            return ContentId(known);
        }
        let end = self.bytes.len() + value.len();
        if end > BYTES_MAX {
            self.full = true;
            return ContentId::EMPTY;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "BYTES_MAX bounds both well below 2^32"
        )]
        let (id, end) = (self.ends.len() as u32, end as u32);
        self.bytes.extend_from_slice(value);
        self.ends.push(end);
        let (hasher, bytes, ends) = (&self.hasher, &self.bytes, &self.ends);
        self.index.insert_unique(hash, id, |&n| {
            let start = if n == 0 { 0 } else { ends[n as usize - 1] };
            hasher.hash_one(&bytes[start as usize..ends[n as usize] as usize])
        });
        ContentId(id)
    }

    /// The number of what a transformation made of a content.
    fn intern_made(&mut self, of: ContentId, with: Transformation, value: &[u8]) -> ContentId {
        let before = self.ends.len();
        let id = self.intern(value);
        if self.ends.len() > before {
            let from = self.from.get(of.index()).copied().unwrap_or(Chains::ALL);
            self.from.resize(self.ends.len(), Chains::ALL);
            self.from[id.index()] = from.and(self.chains_with[with as usize]);
        }
        id
    }

    /// What a chain makes of a content.
    #[inline]
    pub(crate) fn transform(
        &mut self,
        program: &Program,
        chain: ChainId,
        content: ContentId,
    ) -> ContentId {
        if !self.makeup(content).meets(program.changes(chain)) {
            return content;
        }
        let chain = program.chain(chain);
        chain.iter().fold(content, |content, &transformation| self.apply(transformation, content))
    }

    fn apply(&mut self, transformation: Transformation, content: ContentId) -> ContentId {
        if !self.makeup(content).meets(transformation.changes()) {
            return content;
        }
        let column = transformation as usize;
        if let Some(&known) = self.columns[column].get(content.index())
            && known != UNKNOWN
        {
            return ContentId(known);
        }
        self.count(content);
        let mut transformed = std::mem::take(&mut self.transformed);
        let after = match transformation.apply(self.bytes(content), &mut transformed) {
            Outcome::Unchanged => content,
            Outcome::Written => self.intern_made(content, transformation, &transformed),
        };
        self.transformed = transformed;
        let column = &mut self.columns[column];
        if column.len() <= content.index() {
            column.resize(self.ends.len(), UNKNOWN);
        }
        column[content.index()] = after.0;
        after
    }

    /// The patterns of one half that may match a content, if there are any. Whatever rules that look at
    /// it behind this chain ask for and is not among them does not match.
    ///
    /// A value as it came is looked at by most rules, so it is tested for all patterns at once. What
    /// a transformation made is mostly looked at behind one chain, by few rules.
    pub(crate) fn candidates(
        &mut self,
        program: &Program,
        half: Half,
        chain: ChainId,
        content: ContentId,
        asking: &mut [Asking; 2],
    ) -> Option<&CandidateSet> {
        let known = self.rows[half as usize].of_content.get(content.index()).copied();
        let known = known.unwrap_or(Row::UNASKED);
        let chain = Chains::of(chain);
        let row = if known.asked.contains(chain) {
            known.row
        } else {
            let from = self.from.get(content.index()).copied().unwrap_or(Chains::ALL);
            let asked = if from.contains(chain) { from } else { Chains::ALL };
            self.ask_prefilter(program, half, asked, content, &mut asking[half as usize])
        };
        (row != EMPTY_ROW).then(|| &self.rows[half as usize].sets[row as usize])
    }

    fn ask_prefilter(
        &mut self,
        program: &Program,
        half: Half,
        chains: Chains,
        content: ContentId,
        asking: &mut Asking,
    ) -> u32 {
        let known = asking.question(program, half, chains);
        let prefilter = program.prefilter(half);
        let question = known.map_or(prefilter.every(), |known| &asking.questions[known].1);
        let makeup = self.makeup(content);
        if !question.is_nothing() {
            self.work.0 += WORK_AT_LEAST + length(&self.ends, content);
        }
        let start = match content.0 {
            0 => 0,
            n => self.ends[n as usize - 1] as usize,
        };
        let bytes = &self.bytes[start..self.ends[content.index()] as usize];
        let rows = &mut self.rows[half as usize];
        if rows.sets.len() == rows.used {
            rows.sets.push(CandidateSet::new(prefilter.patterns()));
        }
        let set = &mut rows.sets[rows.used];
        if question.is_nothing() {
            set.clear();
        } else {
            prefilter.candidates_among(question, bytes, makeup, &mut asking.scratch, set);
        }
        let row = if set.is_empty() {
            EMPTY_ROW
        } else {
            rows.used += 1;
            u32::try_from(rows.used - 1).unwrap_or(EMPTY_ROW - 1)
        };
        if rows.of_content.len() <= content.index() {
            rows.of_content.resize(self.ends.len(), Row::UNASKED);
        }
        rows.of_content[content.index()] = Row { row, asked: chains };
        row
    }
}

/// How many bytes a content has.
fn length(ends: &[u32], content: ContentId) -> u64 {
    let start = if content.0 == 0 { 0 } else { ends[content.index() - 1] };
    u64::from(ends[content.index()] - start)
}

/// How much work going through a content is, however short it is.
const WORK_AT_LEAST: u64 = 64;

/// All contents of one transaction together. A body is bounded long before (`SecRequestBodyLimit`,
/// `SecRequestBodyNoFilesLimit`); this bounds what transformations make of it.
const BYTES_MAX: usize = 512 << 20;
/// Of a store with more contents or bytes than this, nothing is remembered for the next transaction.
/// A browser's request has about 150 contents, transformed ones included.
const REMEMBERED_CONTENTS: usize = 512;
const REMEMBERED_BYTES: usize = 32 << 10;

/// What an emptied store keeps, so that one large body does not hold memory for ever.
const KEPT_BYTES: usize = 1 << 20;
const KEPT_CONTENTS: usize = 16_384;
