//! Sequences found by their rarest few symbols in a row.
//!
//! Of each sequence the three or four places in a row are chosen that ordinary contents meet least,
//! with what is beside it when it is shorter. Every way to write them in symbols, a *gram*, leads to
//! the sequence. Grams of three are known by themselves, those of four by a hash of as many bits, so
//! that a bit for each fits in 32 KiB, which stay close, and a look-up does not depend on the one
//! before. Where a gram is known, each sequence behind it is first tested at one more place.

use std::collections::{BTreeMap, HashMap};

use super::{
    super::{Place, Requirement, Sequence, requirement::frequency::Chance},
    BLOCK_BYTES, LAYERS, Progress,
    alphabet::{self, BEYOND, Chances, SYMBOLS, Signature},
};

/// Bits of a symbol.
const SYMBOL_BITS: u32 = SYMBOLS.ilog2();
/// Bits of a gram's number.
const NUMBER_BITS: u32 = 3 * SYMBOL_BITS;
/// Grams of one length, in words of a bit set.
const WORDS: usize = 1 << (NUMBER_BITS - 6);
/// Longest gram.
const LENGTH_MAX: usize = 4;
/// How likely a place may be to make up for one way less to write a gram: each costs room.
const WAY_COST: f32 = 2e-6;
/// Most ways to write a gram; a sequence with more is not looked for.
const WAYS_MAX: u32 = 1_024;
/// Symbols beyond a content that a gram may begin with. Places are counted from there, so that they
/// are never negative.
const LEAD: usize = LENGTH_MAX - 1;

/// Which row's clause a found sequence fulfils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    /// The row's word and bit.
    pub(super) word: usize,
    pub(super) bit: u64,
    pub(super) layer: usize,
}

/// The sequences that rows ask for.
#[derive(Debug)]
pub(super) struct Grams {
    triples: Table,
    quads: Table,
    sequences: Vec<Known>,
    /// The places of all sequences, one after the other, by number.
    numbers: Vec<u32>,
    places: Vec<Place>,
    targets: Vec<Target>,
}

/// The grams of one length.
#[derive(Debug)]
struct Table {
    /// A bit for each number.
    known: Box<[u64; WORDS]>,
    /// How many are known before each word.
    before: Box<[u32; WORDS]>,
    /// Each known one's first entry, and where the last one's end.
    starts: Vec<u32>,
    entries: Vec<Entry>,
}

/// A sequence to which a gram leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Symbols of the place that is tested first.
    symbols: Signature,
    sequence: u32,
    /// Where the gram begins in the sequence, or -1 when it begins before it.
    offset: i16,
    /// The place tested first, seen from where the gram begins.
    test: i16,
}

/// A sequence: its places and what it fulfils.
#[derive(Clone, Copy, Debug)]
struct Known {
    numbers: (u32, u32),
    targets: (u32, u32),
}

/// Whether a sequence, by the symbols at its places, is narrow enough to be looked for.
pub(super) fn is_narrow(places: &[Signature]) -> bool {
    (3..=LENGTH_MAX)
        .any(|length| Gram::all(places.len(), length).any(|gram| gram.is_narrow(places)))
}

impl Grams {
    /// Compiles the sequences of each row's first clauses that have any, in [`LAYERS`]. Those that are
    /// not narrow are left out.
    pub(super) fn new(rows: &[Option<Requirement>]) -> Self {
        let mut builder = Builder::default();
        for (row, requirement) in rows.iter().enumerate() {
            let Some(requirement) = requirement else { continue };
            let clauses = requirement.clauses.iter().filter(|clause| !clause.sequences.is_empty());
            for (layer, clause) in clauses.take(LAYERS).enumerate() {
                let target = Target { word: row / 64, bit: 1 << (row % 64), layer };
                for sequence in &clause.sequences {
                    builder.add(requirement, sequence, target);
                }
            }
        }
        builder.build()
    }

    /// Looks through a content for what is still needed. `symbols` holds those of the content's last
    /// block on entry.
    pub(super) fn scan(&self, content: &[u8], symbols: &mut [u8], progress: &mut Progress<'_>) {
        let mut window = 0;
        let mut start = 0;
        let several = content.len() > BLOCK_BYTES;
        for block in content.chunks(BLOCK_BYTES) {
            if several {
                alphabet::read(block, symbols);
            }
            for part in symbols[..block.len()].chunks(64) {
                let (mut triples, mut quads) = (0u64, 0u64);
                for (at, &symbol) in part.iter().enumerate() {
                    window = window << SYMBOL_BITS | u32::from(symbol);
                    triples |= self.triples.bit(triple(window)) << at;
                    quads |= self.quads.bit(quad(window)) << at;
                }
                self.look_at_all(content, start, (triples, quads), progress);
                start += part.len();
            }
        }
        // The last grams end beyond the content.
        let (mut triples, mut quads) = (0u64, 0u64);
        for at in 0..LEAD {
            window = window << SYMBOL_BITS | u32::from(BEYOND);
            triples |= self.triples.bit(triple(window)) << at;
            quads |= self.quads.bit(quad(window)) << at;
        }
        self.look_at_all(content, start, (triples, quads), progress);
    }

    /// Looks at the places from `start` on whose bits are set: there grams end.
    #[inline]
    fn look_at_all(
        &self,
        content: &[u8],
        start: usize,
        (mut triples, mut quads): (u64, u64),
        progress: &mut Progress<'_>,
    ) {
        while triples != 0 {
            let end = start + triples.trailing_zeros() as usize;
            self.look(
                &self.triples,
                triple(window(content, end)),
                end + LEAD - 2,
                content,
                progress,
            );
            triples &= triples - 1;
        }
        while quads != 0 {
            let end = start + quads.trailing_zeros() as usize;
            self.look(&self.quads, quad(window(content, end)), end + LEAD - 3, content, progress);
            quads &= quads - 1;
        }
    }

    /// At a gram that begins at `begin`, counted with the lead.
    fn look(
        &self,
        table: &Table,
        number: usize,
        begin: usize,
        content: &[u8],
        progress: &mut Progress<'_>,
    ) {
        for entry in table.entries(number) {
            let test = begin.checked_add_signed(isize::from(entry.test)).unwrap_or(0);
            if entry.symbols >> symbol_at(content, test) & 1 == 0 {
                continue;
            }
            let Known { numbers, targets } = self.sequences[entry.sequence as usize];
            let targets = &self.targets[targets.0 as usize..targets.1 as usize];
            if !targets.iter().any(|&target| progress.needs(target)) {
                continue;
            }
            let numbers = &self.numbers[numbers.0 as usize..numbers.1 as usize];
            let first = begin.checked_add_signed(-isize::from(entry.offset));
            if first.is_some_and(|first| self.is_at(content, numbers, first)) {
                for &target in targets {
                    progress.fulfil(target);
                }
            }
        }
    }

    /// Whether a content has places from `first` on, counted with the lead.
    fn is_at(&self, content: &[u8], numbers: &[u32], first: usize) -> bool {
        // One place on either side can be asked for.
        first + 1 >= LEAD
            && first + numbers.len() <= content.len() + LEAD + 1
            && numbers.iter().enumerate().all(|(at, &number)| {
                let byte = (first + at).checked_sub(LEAD).and_then(|at| content.get(at));
                self.places[number as usize].allows(byte.copied())
            })
    }
}

impl Table {
    /// 1 if a number is known.
    #[inline]
    fn bit(&self, number: usize) -> u64 {
        self.known[number / 64] >> (number % 64) & 1
    }

    /// What a known number leads to.
    #[inline]
    fn entries(&self, number: usize) -> &[Entry] {
        let smaller = self.known[number / 64] & ((1 << (number % 64)) - 1);
        let at = (self.before[number / 64] + smaller.count_ones()) as usize;
        match self.starts.get(at..at + 2) {
            Some(&[start, end]) => &self.entries[start as usize..end as usize],
            _ => &[],
        }
    }

    #[expect(
        clippy::large_stack_arrays,
        reason = "boxed at once, and made only where programs are compiled, on a thread's full stack"
    )]
    fn new(mut grams: Vec<(u32, Entry)>) -> Self {
        grams.sort_unstable();
        grams.dedup();
        let mut known = Box::new([0u64; WORDS]);
        let mut starts = Vec::new();
        let mut last = None;
        for (at, &(number, _)) in grams.iter().enumerate() {
            if last != Some(number) {
                last = Some(number);
                known[number as usize / 64] |= 1 << (number % 64);
                starts.push(index(at));
            }
        }
        starts.push(index(grams.len()));
        let mut before = Box::new([0u32; WORDS]);
        let mut count = 0;
        for (before, word) in before.iter_mut().zip(known.iter()) {
            *before = count;
            count += word.count_ones();
        }
        let entries = grams.into_iter().map(|(_, entry)| entry).collect();
        Self { known, before, starts, entries }
    }
}

/// The number of the last three symbols of a window.
#[inline]
fn triple(window: u32) -> usize {
    window as usize & ((1 << NUMBER_BITS) - 1)
}

/// The number of its last four.
#[inline]
fn quad(window: u32) -> usize {
    // The upper bits of a product depend on all symbols.
    let symbols = window << (u32::BITS - 4 * SYMBOL_BITS);
    (symbols.wrapping_mul(0x9e37_79b1) >> (u32::BITS - NUMBER_BITS)) as usize
}

/// The symbols of a content up to the place `end`.
#[inline]
fn window(content: &[u8], end: usize) -> u32 {
    (end..end + LENGTH_MAX)
        .fold(0, |window, at| window << SYMBOL_BITS | u32::from(symbol_at(content, at)))
}

/// The symbol at a place counted with the lead.
#[inline]
fn symbol_at(content: &[u8], at: usize) -> u8 {
    let byte = at.checked_sub(LEAD).and_then(|at| content.get(at));
    byte.map_or(BEYOND, |&byte| alphabet::symbol(byte))
}

/// A stretch of a sequence.
#[derive(Clone, Copy, Debug)]
struct Gram {
    /// -1 when it begins before the sequence.
    offset: i16,
    length: usize,
}

impl Gram {
    /// The stretches of a length. A sequence shorter than that is met with anything beside it.
    fn all(places: usize, length: usize) -> impl Iterator<Item = Self> {
        let more = i16::try_from(places).unwrap_or(i16::MAX) - i16::try_from(length).unwrap_or(0);
        (more.min(0)..=more.max(0)).map(move |offset| Self { offset, length })
    }

    /// The symbols at its places.
    fn symbols(self, places: &[Signature]) -> impl Iterator<Item = Signature> {
        let at = move |at: usize| {
            let at = at.checked_add_signed(isize::from(self.offset));
            at.and_then(|at| places.get(at)).copied().unwrap_or(u64::MAX)
        };
        (0..self.length).map(at)
    }

    /// How many ways there are to write it.
    fn ways(self, places: &[Signature]) -> u32 {
        self.symbols(places).map(u64::count_ones).product()
    }

    fn is_narrow(self, places: &[Signature]) -> bool {
        self.ways(places) <= WAYS_MAX
    }

    /// The stretch that ordinary contents meet least, of those with few ways to be written.
    fn rarest(places: &[Signature], chances: &mut Chances) -> Option<Self> {
        let mut best: Option<(f32, Self)> = None;
        for gram in (3..=LENGTH_MAX).flat_map(|length| Self::all(places.len(), length)) {
            if !gram.is_narrow(places) {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "only an estimate")]
            let ways = gram.ways(places) as f32 * WAY_COST;
            let cost = Chance::in_a_row(gram.symbols(places).map(|at| chances.of(at))) + ways;
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, gram));
            }
        }
        best.map(|(_, gram)| gram)
    }
}

#[derive(Default)]
struct Builder {
    numbers: BTreeMap<Place, u32>,
    places: Vec<Place>,
    known: HashMap<Box<[u32]>, Vec<Target>>,
}

impl Builder {
    fn add(&mut self, requirement: &Requirement, sequence: &Sequence, target: Target) {
        let number = |number: &u16| {
            let place = requirement.places[usize::from(*number)];
            *self.numbers.entry(place).or_insert_with(|| {
                self.places.push(place);
                index(self.places.len() - 1)
            })
        };
        let numbers: Box<[u32]> = sequence.0.iter().map(number).collect();
        self.known.entry(numbers).or_default().push(target);
    }

    fn build(self) -> Grams {
        let Self { places, known, .. } = self;
        let symbols: Vec<Signature> = places.iter().map(alphabet::symbols_at).collect();
        let mut all: Vec<(Box<[u32]>, Vec<Target>)> = known.into_iter().collect();
        all.sort_unstable();
        let (mut sequences, mut numbers, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let (mut triples, mut quads) = (Vec::new(), Vec::new());
        let mut chances = Chances::default();
        for (sequence, fulfilled) in all {
            let written: Vec<Signature> =
                sequence.iter().map(|&number| symbols[number as usize]).collect();
            let Some(gram) = Gram::rarest(&written, &mut chances) else { continue };
            let (symbols, test) = first_test(&written, gram, &mut chances);
            let entry =
                Entry { symbols, sequence: index(sequences.len()), offset: gram.offset, test };
            let table = if gram.length == 3 { &mut triples } else { &mut quads };
            write(&written, gram, &mut |window| {
                let number = if gram.length == 3 { triple(window) } else { quad(window) };
                table.push((index(number), entry));
            });
            let (first, first_target) = (index(numbers.len()), index(targets.len()));
            numbers.extend_from_slice(&sequence);
            targets.extend(fulfilled);
            sequences.push(Known {
                numbers: (first, index(numbers.len())),
                targets: (first_target, index(targets.len())),
            });
        }
        let (triples, quads) = (Table::new(triples), Table::new(quads));
        Grams { triples, quads, sequences, numbers, places, targets }
    }
}

/// The place outside of a gram, or else in it, that is hardest to meet; seen from the gram's begin.
fn first_test(places: &[Signature], gram: Gram, chances: &mut Chances) -> (Signature, i16) {
    let inside = |at: usize| {
        let at = isize::try_from(at).unwrap_or(isize::MAX) - isize::from(gram.offset);
        (0..isize::try_from(gram.length).unwrap_or(0)).contains(&at)
    };
    let rank: Vec<(bool, f32)> =
        (0..places.len()).map(|at| (inside(at), chances.of(places[at]).alone())).collect();
    let best = (0..places.len()).min_by(|&a, &b| {
        let (a, b) = (rank[a], rank[b]);
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let at = best.unwrap_or(0);
    (places[at], i16::try_from(at).unwrap_or(0) - gram.offset)
}

/// Every way to write a gram.
fn write(places: &[Signature], gram: Gram, found: &mut impl FnMut(u32)) {
    let mut windows = vec![0u32];
    for symbols in gram.symbols(places) {
        windows = windows
            .iter()
            .flat_map(|window| members(symbols).map(move |symbol| window << SYMBOL_BITS | symbol))
            .collect();
    }
    windows.into_iter().for_each(found);
}

fn members(symbols: Signature) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |symbol| symbols >> symbol & 1 == 1)
}

#[expect(clippy::cast_possible_truncation, reason = "tables have far fewer than 2^32 entries")]
fn index(value: usize) -> u32 {
    value as u32
}
