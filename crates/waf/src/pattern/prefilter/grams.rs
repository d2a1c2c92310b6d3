//! Sequences found by their rarest few symbols in a row.
//!
//! Of each sequence three to five places in a row are chosen that ordinary contents meet least, with
//! what is beside it when it is shorter. Every way to write them in symbols, a *gram*, leads to the
//! sequence. Grams of three are known by themselves, longer ones by a hash of as many bits, so that a
//! bit for each fits in 32 KiB, which stay close, and a look-up does not depend on the one
//! before. Where a gram is known, each sequence behind it is first tested at one more place.

use std::collections::HashMap;

use super::{
    super::{
        Place, Sequence,
        requirement::{frequency::Chance, hash::Quick},
    },
    LAYERS, Progress, Row,
    alphabet::{self, BEYOND, SYMBOLS, Signature},
    profile::Profiles,
};

/// Bits of a symbol.
const SYMBOL_BITS: u32 = SYMBOLS.ilog2();
const SYMBOL_MASK: u32 = (1 << SYMBOL_BITS) - 1;
/// Bits of a gram's number.
const NUMBER_BITS: u32 = 3 * SYMBOL_BITS;
/// Grams of one length, in words of a bit set.
const WORDS: usize = 1 << (NUMBER_BITS - 6);
/// The shortest gram, and how many lengths there are.
const LENGTH_MIN: usize = 3;
const LENGTHS: usize = 3;
/// Longest gram.
const LENGTH_MAX: usize = LENGTH_MIN + LENGTHS - 1;
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
    /// The symbols that contents may have, and what is beyond them.
    symbols: Signature,
    /// By length: of three symbols, of four, of five.
    tables: [Table; LENGTHS],
    sequences: Vec<Known>,
    /// The places of all sequences, one after the other, by number.
    numbers: Vec<u32>,
    places: Vec<Place>,
    targets: Vec<Target>,
    /// Each row with each sequence that it asks for, in order.
    of_rows: Vec<(u32, u32)>,
}

/// The grams of one length.
#[derive(Debug)]
struct Table {
    /// A bit for each number.
    known: Box<[u64; WORDS]>,
    /// How many are known before each word.
    before: Box<[u32; WORDS]>,
    /// One for each known number, and one for where the last one's entries end.
    buckets: Vec<Bucket>,
    entries: Vec<Entry>,
}

/// What a gram leads to.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The symbols behind the gram in any of the sequences.
    after: Signature,
    /// The rows that ask for any of them, by their bits within their words.
    rows: u64,
    /// The first of its entries.
    entries: u32,
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
    /// What it is found by.
    gram: Gram,
}

/// How grams end: the symbols that may come last, by the two before them, as
/// [`before_last`] numbers those.
pub(super) type Ends = [Signature; BEFORE_LAST];

/// Numbers of two symbols, which some have in common so that all ends fit in 4 KiB.
const BEFORE_LAST: usize = 512;

/// The number of the last two symbols of a window.
#[inline]
fn before_last(window: u32) -> usize {
    (window >> (SYMBOL_BITS - 3) ^ window) as usize % BEFORE_LAST
}

/// Most sequences whose ends are put together, and most ways that one may end, so that preparing a
/// question takes no longer than answering it a few times.
const ENDING_MAX: usize = 512;
const ENDS_OF_ONE_MAX: u32 = 64;
/// Most ends that are worth being looked for by themselves, of 32,768.
const ENDS_MAX: u32 = 2_048;

/// Whether a sequence, by the symbols at its places, is narrow enough to be looked for.
pub(super) fn is_narrow(places: &[Signature]) -> bool {
    (LENGTH_MIN..=LENGTH_MAX)
        .any(|length| Gram::all(places.len(), length).any(|gram| gram.is_narrow(places, u64::MAX)))
}

impl Grams {
    /// Compiles the sequences of each row's first clauses that have any, in [`LAYERS`], for contents
    /// that have none but these symbols. Those that are not narrow are left out.
    pub(super) fn new(rows: &[Option<Row>], symbols: Signature, profiles: &Profiles) -> Self {
        let mut builder = Builder::default();
        for (number, row) in rows.iter().enumerate() {
            let Some(row) = row.as_ref().filter(|_| profiles.allows(number, symbols)) else {
                continue;
            };
            let clauses = row.clauses().iter().filter(|clause| !clause.sequences.is_empty());
            let places = builder.numbered(&row.requirement.places);
            for (layer, clause) in clauses.take(LAYERS).enumerate() {
                let target = Target { word: number / 64, bit: 1 << (number % 64), layer };
                for sequence in &clause.sequences {
                    builder.add(&places, sequence, target);
                }
            }
        }
        builder.build(symbols | 1 << BEYOND)
    }

    /// How the grams end that lead to what these rows ask for. `None` if there are so many ends that
    /// most contents have some.
    pub(super) fn ends(&self, rows: &[usize]) -> Option<Box<Ends>> {
        let mut ends: Box<Ends> = Box::new([0; BEFORE_LAST]);
        let (mut windows, mut count) = (Vec::new(), 0);
        let asked = rows.iter().flat_map(|&row| {
            let first = self.of_rows.partition_point(|&(of, _)| of < index(row));
            self.of_rows[first..].iter().take_while(move |(of, _)| *of == index(row))
        });
        if asked.clone().count() > ENDING_MAX {
            return None;
        }
        for known in asked.map(|&(_, sequence)| &self.sequences[sequence as usize]) {
            let place = |&number: &u32| alphabet::symbols_at(&self.places[number as usize]);
            let places = self.numbers_of(known).iter().map(place);
            let places: Vec<Signature> = places.map(|symbols| symbols & self.symbols).collect();
            if known.gram.last_three().ways(&places, self.symbols) > ENDS_OF_ONE_MAX {
                return None;
            }
            write(known.gram.last_three().symbols(&places, self.symbols), &mut windows);
            for &window in &windows {
                let last = &mut ends[before_last(window >> SYMBOL_BITS)];
                count += u32::from(*last >> (window & SYMBOL_MASK) & 1 == 0);
                *last |= 1 << (window & SYMBOL_MASK);
            }
            if count > ENDS_MAX {
                return None;
            }
        }
        Some(ends)
    }

    fn targets_of(&self, known: &Known) -> &[Target] {
        &self.targets[known.targets.0 as usize..known.targets.1 as usize]
    }

    fn numbers_of(&self, known: &Known) -> &[u32] {
        &self.numbers[known.numbers.0 as usize..known.numbers.1 as usize]
    }

    /// Reads a block of a content: notes in `found` where grams end, or just
    /// beyond the content if this is its last block. `window` holds the symbols before the block.
    #[inline]
    pub(super) fn read(&self, block: &[u8], is_last: bool, window: &mut u32, found: &mut Vec<u64>) {
        let mut before = *window;
        note(block, is_last, found, |symbol| {
            let [three, four, five] = positions(before);
            let [threes, fours, fives] = &self.tables;
            let known = threes.known[three.word]
                | fours.known[four.word].rotate_right(four.turn)
                | fives.known[five.word].rotate_right(five.turn);
            before = before << SYMBOL_BITS | u32::from(symbol);
            known >> (symbol & 63) & 1 == 1
        });
        *window = before;
    }

    /// As [`read`](Self::read), where grams may end that end so.
    #[inline]
    pub(super) fn read_ends(
        ends: &Ends,
        block: &[u8],
        is_last: bool,
        window: &mut u32,
        found: &mut Vec<u64>,
    ) {
        let mut before = *window;
        note(block, is_last, found, |symbol| {
            let last = ends[before_last(before)];
            before = before << SYMBOL_BITS | u32::from(symbol);
            last >> (symbol & 63) & 1 == 1
        });
        *window = before;
    }

    /// Looks for what is still needed where grams were found, in a block that begins at `start`.
    pub(super) fn look_at_all(
        &self,
        content: &[u8],
        start: usize,
        found: &[u64],
        progress: &mut Progress<'_>,
    ) {
        for (part, &ends) in found.iter().enumerate() {
            if progress.is_complete() {
                return;
            }
            let mut ends = ends;
            while ends != 0 {
                let at = ends.leading_zeros();
                ends ^= 1 << (63 - at);
                let end = start + part * 64 + at as usize;
                let (window, last, after) = around(content, end);
                for (longer, position) in positions(window).into_iter().enumerate() {
                    let entries = self.tables[longer].entries(position, last, after, progress.rows);
                    let begin = end + LEAD + 1 - LENGTH_MIN - longer;
                    self.look(entries, begin, content, progress);
                }
            }
        }
    }

    /// Looks at what a gram leads to that begins at `begin`, counted with the lead.
    #[inline]
    fn look(&self, entries: &[Entry], begin: usize, content: &[u8], progress: &mut Progress<'_>) {
        for entry in entries {
            let test = begin.checked_add_signed(isize::from(entry.test)).unwrap_or(0);
            if entry.symbols >> symbol_at(content, test) & 1 == 0 {
                continue;
            }
            let known = &self.sequences[entry.sequence as usize];
            let targets = self.targets_of(known);
            if !targets.iter().any(|&target| progress.needs(target)) {
                continue;
            }
            let numbers = self.numbers_of(known);
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
    /// What a gram leads to, if it is known, the symbol behind it fits any of it, and one of `rows`
    /// asks for any of it.
    #[inline]
    fn entries(&self, position: Position, last: u32, after: u8, rows: u64) -> &[Entry] {
        let Position { word, turn } = position;
        let bit = (last + turn) & SYMBOL_MASK;
        let known = self.known[word];
        if known >> bit & 1 == 0 {
            return &[];
        }
        let at = (self.before[word] + (known & ((1 << bit) - 1)).count_ones()) as usize;
        match self.buckets.get(at..at + 2) {
            Some([this, next]) if this.after >> after & 1 == 1 && this.rows & rows != 0 => {
                &self.entries[this.entries as usize..next.entries as usize]
            }
            _ => &[],
        }
    }

    fn new(mut grams: Vec<(u32, Signature, u64, Entry)>) -> Self {
        // Of one sequence there is one gram, so what has both numbers in common is the same.
        let numbers =
            |gram: &(u32, _, _, Entry)| u64::from(gram.0) << 32 | u64::from(gram.3.sequence);
        grams.sort_unstable_by_key(numbers);
        grams.dedup_by_key(|gram| numbers(gram));
        let mut known = vec![0u64; WORDS];
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut last = None;
        for (at, &(number, after, rows, _)) in grams.iter().enumerate() {
            if last != Some(number) {
                last = Some(number);
                known[number as usize / 64] |= 1 << (number % 64);
                buckets.push(Bucket { after: 0, rows: 0, entries: index(at) });
            }
            if let Some(bucket) = buckets.last_mut() {
                bucket.after |= after;
                bucket.rows |= rows;
            }
        }
        buckets.push(Bucket { after: 0, rows: 0, entries: index(grams.len()) });
        let mut count = 0;
        let before: Vec<u32> = known
            .iter()
            .map(|word| {
                count += word.count_ones();
                count - word.count_ones()
            })
            .collect();
        Self {
            before: boxed(before),
            known: boxed(known),
            buckets,
            entries: grams.into_iter().map(|(.., entry)| entry).collect(),
        }
    }
}

/// A word for each number's word, on the heap from the start; the length is known to the compiler,
/// so that looking up needs no check.
fn boxed<T: Copy + Default>(words: Vec<T>) -> Box<[T; WORDS]> {
    let words: Result<Box<[T; WORDS]>, _> = words.into_boxed_slice().try_into();
    words.unwrap_or_else(|_| Box::new([T::default(); WORDS]))
}

/// Notes in `found` which symbols of a block are `ends`, of the last block also those just beyond the
/// content, where its last grams end: 64 to a word, the first in the highest bit.
#[inline]
fn note(block: &[u8], is_last: bool, found: &mut Vec<u64>, mut ends: impl FnMut(u8) -> bool) {
    found.clear();
    let (parts, rest) = block.as_chunks::<64>();
    let mut join = |bits: u64, symbol| bits << 1 | u64::from(ends(symbol));
    for part in parts {
        found.push(part.iter().fold(0, |bits, &byte| join(bits, alphabet::symbol(byte))));
    }
    let mut bits = rest.iter().fold(0, |bits, &byte| join(bits, alphabet::symbol(byte)));
    let mut count = rest.len();
    for _ in 0..if is_last { LEAD } else { 0 } {
        if count == 64 {
            found.push(bits);
            (bits, count) = (0, 0);
        }
        bits = join(bits, BEYOND);
        count += 1;
    }
    if count > 0 {
        found.push(bits << (64 - count));
    }
}

/// Where in a table the grams are that consist of a window's last symbols and one more.
#[derive(Clone, Copy)]
struct Position {
    word: usize,
    /// By how much the last symbol's bit is turned in the word.
    turn: u32,
}

/// The positions for grams of each length.
///
/// Those of three have a bit each. Longer ones share them by a hash, of which word and turn depend on
/// all symbols before the last: if the word alone did, the letters that end many words would meet.
#[inline]
fn positions(window: u32) -> [Position; LENGTHS] {
    let hashed = |symbols: u32| {
        let before = window << (u32::BITS - symbols * SYMBOL_BITS);
        let hash = before.wrapping_mul(0x9e37_79b1);
        let word = hash >> (u32::BITS - WORDS.ilog2());
        let turn = hash >> (u32::BITS - NUMBER_BITS) & SYMBOL_MASK;
        Position { word: word as usize % WORDS, turn }
    };
    [Position { word: window as usize % WORDS, turn: 0 }, hashed(3), hashed(4)]
}

/// The symbols before a place, its own, and the one behind it.
#[inline]
fn around(content: &[u8], at: usize) -> (u32, u32, u8) {
    let join = |window: u32, symbol: u8| window << SYMBOL_BITS | u32::from(symbol);
    // Nearly always all of it lies within the content.
    if let Some(&[a, b, c, d, last, after]) =
        at.checked_sub(LEAD).and_then(|start| content.get(start..start + LENGTH_MAX + 1))
    {
        let before = [a, b, c, d].into_iter().map(alphabet::symbol).fold(0, join);
        return (before, u32::from(alphabet::symbol(last)), alphabet::symbol(after));
    }
    let symbol = |at: usize| symbol_at(content, at);
    let before = (at..at + LEAD).map(symbol).fold(0, join);
    (before, u32::from(symbol(at + LEAD)), symbol(at + LEAD + 1))
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

    /// The symbols at its places; those in `any` where it is beside the sequence.
    fn symbols(self, places: &[Signature], any: Signature) -> impl Iterator<Item = Signature> {
        let at = move |at: usize| {
            let at = at.checked_add_signed(isize::from(self.offset));
            at.and_then(|at| places.get(at)).copied().unwrap_or(any)
        };
        (0..self.length).map(at)
    }

    /// The symbols behind it.
    fn after(self, places: &[Signature]) -> Signature {
        let longer = Self { length: self.length + 1, ..self };
        longer.symbols(places, u64::MAX).last().unwrap_or(u64::MAX)
    }

    /// How many ways there are to write it.
    fn ways(self, places: &[Signature], any: Signature) -> u32 {
        self.symbols(places, any).map(u64::count_ones).product()
    }

    fn last_three(self) -> Self {
        let before = self.length - LENGTH_MIN;
        Self { offset: self.offset + i16::try_from(before).unwrap_or(0), length: LENGTH_MIN }
    }

    fn is_narrow(self, places: &[Signature], any: Signature) -> bool {
        self.ways(places, any) <= WAYS_MAX
    }

    /// The stretch that ordinary contents meet least, of those with few ways to be written; `chances`
    /// are those of the places.
    fn rarest(places: &[Signature], chances: &[Chance], any: Signature) -> Option<Self> {
        let mut best: Option<(f32, Self)> = None;
        for gram in (LENGTH_MIN..=LENGTH_MAX).flat_map(|length| Self::all(places.len(), length)) {
            let ways = gram.ways(places, any);
            if ways > WAYS_MAX {
                continue;
            }
            // What is beside the sequence may be anything, which makes nothing rarer.
            let first = usize::try_from(gram.offset).unwrap_or(0);
            let within = &chances[first..places.len().min(first + gram.length)];
            #[expect(clippy::cast_precision_loss, reason = "only an estimate")]
            let cost = Chance::in_a_row(within.iter().copied()) + ways as f32 * WAY_COST;
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, gram));
            }
        }
        best.map(|(_, gram)| gram)
    }
}

#[derive(Default)]
struct Builder {
    numbers: HashMap<Place, u32, Quick>,
    places: Vec<Place>,
    known: HashMap<Box<[u32]>, Vec<Target>, Quick>,
}

impl Builder {
    /// The numbers of a requirement's places among those of all requirements.
    fn numbered(&mut self, places: &[Place]) -> Vec<u32> {
        let number = |place: &Place| {
            *self.numbers.entry(*place).or_insert_with(|| {
                self.places.push(*place);
                index(self.places.len() - 1)
            })
        };
        places.iter().map(number).collect()
    }

    fn add(&mut self, places: &[u32], sequence: &Sequence, target: Target) {
        let numbers = sequence.0.iter().map(|&number| places[usize::from(number)]).collect();
        self.known.entry(numbers).or_default().push(target);
    }

    /// For contents that have none but these symbols, what is beyond them among those.
    fn build(self, any: Signature) -> Grams {
        let Self { places, known: looked_for, .. } = self;
        let symbols: Vec<Signature> =
            places.iter().map(|place| alphabet::symbols_at(place) & any).collect();
        // Many places look alike in symbols.
        let mut known: HashMap<Signature, Chance, Quick> = HashMap::default();
        let likely: Vec<Chance> = symbols
            .iter()
            .map(|&symbols| *known.entry(symbols).or_insert_with(|| alphabet::chance(symbols)))
            .collect();
        let mut all: Vec<(Box<[u32]>, Vec<Target>)> = looked_for.into_iter().collect();
        all.sort_unstable();
        let (mut sequences, mut numbers, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let mut grams: [Vec<_>; LENGTHS] = Default::default();
        let mut windows = Vec::new();
        for (sequence, fulfilled) in all {
            // What only an empty content has is decided by the signature.
            if sequence.iter().all(|&number| places[number as usize].bytes.is_empty()) {
                continue;
            }
            let written: Vec<Signature> =
                sequence.iter().map(|&number| symbols[number as usize]).collect();
            if written.contains(&0) {
                continue;
            }
            let chances: Vec<Chance> =
                sequence.iter().map(|&number| likely[number as usize]).collect();
            let Some(gram) = Gram::rarest(&written, &chances, any) else { continue };
            let (symbols, test) = first_test(&written, &chances, gram);
            let entry =
                Entry { symbols, sequence: index(sequences.len()), offset: gram.offset, test };
            let longer = gram.length - LENGTH_MIN;
            let after = gram.after(&written);
            let rows = fulfilled.iter().fold(0, |rows, target| rows | target.bit);
            write(gram.symbols(&written, any), &mut windows);
            grams[longer].extend(windows.iter().map(|&window: &u32| {
                let Position { word, turn } = positions(window >> SYMBOL_BITS)[longer];
                let bit = (window + turn) & SYMBOL_MASK;
                (index(word) << SYMBOL_BITS | bit, after, rows, entry)
            }));
            let (first, first_target) = (index(numbers.len()), index(targets.len()));
            numbers.extend_from_slice(&sequence);
            targets.extend(fulfilled);
            sequences.push(Known {
                numbers: (first, index(numbers.len())),
                targets: (first_target, index(targets.len())),
                gram,
            });
        }
        let tables = grams.map(Table::new);
        let each = (0..).zip(&sequences).flat_map(|(number, known): (u32, &Known)| {
            let (first, end) = known.targets;
            let targets = targets[first as usize..end as usize].iter();
            targets.map(move |target: &Target| {
                (index(target.word * 64) + target.bit.trailing_zeros(), number)
            })
        });
        let mut of_rows: Vec<(u32, u32)> = each.collect();
        of_rows.sort_unstable();
        Grams { symbols: any, tables, sequences, numbers, places, targets, of_rows }
    }
}

/// The place outside of a gram, or else in it, that is hardest to meet; seen from the gram's begin.
fn first_test(places: &[Signature], chances: &[Chance], gram: Gram) -> (Signature, i16) {
    let inside = |at: usize| {
        let at = isize::try_from(at).unwrap_or(isize::MAX) - isize::from(gram.offset);
        (0..isize::try_from(gram.length).unwrap_or(0)).contains(&at)
    };
    let rank = |at: usize| (inside(at), chances[at].alone());
    let best = (0..places.len()).min_by(|&a, &b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let at = best.unwrap_or(0);
    (places[at], i16::try_from(at).unwrap_or(0) - gram.offset)
}

/// Every way to write a gram of these symbols.
fn write(gram: impl Iterator<Item = Signature>, windows: &mut Vec<u32>) {
    windows.clear();
    windows.push(0);
    for symbols in gram {
        // The first member takes the place of what it makes longer.
        for at in 0..windows.len() {
            let before = windows[at] << SYMBOL_BITS;
            let mut members = members(symbols);
            let Some(first) = members.next() else { continue };
            windows[at] = before | first;
            windows.extend(members.map(|symbol| before | symbol));
        }
    }
}

fn members(symbols: Signature) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |symbol| symbols >> symbol & 1 == 1)
}

#[expect(clippy::cast_possible_truncation, reason = "tables have far fewer than 2^32 entries")]
fn index(value: usize) -> u32 {
    value as u32
}
