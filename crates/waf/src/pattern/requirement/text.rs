//! A short text as a pattern knows it: sets of bytes in a row, with assertions between them.

use std::collections::HashMap;

use super::{ByteSet, Place, Sequence, WORD, frequency::Chance, hash::Quick, needs::NeedId};

/// Most symbols of a text: of longer ones only an end is known.
pub(super) const TEXT_LENGTH_MAX: usize = 14;
/// Most places of a sequence. More are hardly more selective.
const SEQUENCE_LENGTH_MAX: usize = 12;
/// A place that is met more often than this does not begin or end a sequence.
const WIDE: f32 = 0.8;
/// A byte that is met so seldom says much already.
const RARE: f32 = 0.01;
/// A sequence is only worth looking for when three of its places in a row are no likelier than this.
const TRIPLE_LIKELY: f32 = 0.01;

/// An element of a text: an assertion, or the number of a place among [`Symbols`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Symbol(u16);

impl Symbol {
    /// The content's beginning.
    pub(super) const START: Self = Self(u16::MAX);
    /// The content's end.
    pub(super) const END: Self = Self(u16::MAX - 1);
    /// Between a byte of a word and one of none, or the edge.
    pub(super) const WORD_EDGE: Self = Self(u16::MAX - 2);
    /// Everywhere else.
    pub(super) const NO_WORD_EDGE: Self = Self(u16::MAX - 3);
    /// Those from here on are assertions.
    const ASSERTIONS: u16 = u16::MAX - 3;
}

/// The places that occur in one pattern, each once, with how likely it is.
#[derive(Default)]
pub(super) struct Symbols {
    numbers: HashMap<Place, u16, Quick>,
    places: Vec<(Place, Chance)>,
    sequences: Vec<Sequence>,
    sequence_numbers: HashMap<Sequence, SequenceId, Quick>,
    /// What texts are looked for by that may have anything beside them: the same are asked for again
    /// and again while parts are put together.
    marks: HashMap<Text, Mark, Quick>,
}

/// A sequence's number among [`Symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SequenceId(u32);

impl Symbols {
    /// The symbol of a set of bytes; `None` when there are too many to tell apart.
    pub(super) fn byte(&mut self, bytes: ByteSet) -> Option<Symbol> {
        self.number(Place::byte(bytes)).map(Symbol)
    }

    fn number(&mut self, place: Place) -> Option<u16> {
        if let Some(&number) = self.numbers.get(&place) {
            return Some(number);
        }
        let number = u16::try_from(self.places.len()).ok()?;
        if number >= Symbol::ASSERTIONS {
            return None;
        }
        self.places.push((place, Chance::of(&place)));
        self.numbers.insert(place, number);
        Some(number)
    }

    /// A symbol's place and its likelihood; none for an assertion.
    fn place(&self, symbol: Symbol) -> Option<&(Place, Chance)> {
        self.places.get(usize::from(symbol.0))
    }

    /// Whether a symbol is a byte that belongs to no word.
    pub(super) fn is_noise(&self, symbol: Symbol) -> bool {
        self.place(symbol).is_some_and(|(place, _)| !place.bytes.meets(&WORD))
    }

    /// Symbols of which one stands at a place, with those that are bytes as one.
    pub(super) fn united(&mut self, symbols: &[Symbol]) -> Vec<Symbol> {
        let is_byte = |symbol: &&Symbol| symbol.0 < Symbol::ASSERTIONS;
        let bytes = symbols.iter().filter(is_byte).filter_map(|&symbol| self.place(symbol));
        let bytes = bytes.fold(ByteSet::NONE, |bytes, (place, _)| bytes.or(place.bytes));
        let Some(united) = self.byte(bytes) else { return symbols.to_vec() };
        let assertions = symbols.iter().filter(|symbol| !is_byte(symbol)).copied();
        let some = symbols.iter().any(|symbol| is_byte(&symbol));
        assertions.chain(some.then_some(united)).collect()
    }

    /// The places by their numbers.
    pub(super) fn places(&self) -> Vec<Place> {
        self.places.iter().map(|(place, _)| *place).collect()
    }

    /// A sequence by its number.
    pub(super) fn sequence(&self, id: SequenceId) -> &Sequence {
        &self.sequences[id.0 as usize]
    }

    fn sequence_number(&mut self, sequence: Sequence) -> SequenceId {
        if let Some(&id) = self.sequence_numbers.get(&sequence) {
            return id;
        }
        #[expect(clippy::cast_possible_truncation, reason = "far fewer sequences are ever made")]
        let id = SequenceId(self.sequences.len() as u32);
        self.sequences.push(sequence.clone());
        self.sequence_numbers.insert(sequence, id);
        id
    }

    /// Two sequences as one, when they differ at this place only.
    pub(super) fn merged(&mut self, a: &Sequence, b: &Sequence, at: usize) -> Option<Sequence> {
        let place = |sequence: &Sequence| {
            self.places.get(usize::from(*sequence.0.get(at)?)).map(|(place, _)| *place)
        };
        let number = place(a)?.or(place(b)?);
        let mut merged = a.clone();
        merged.0[at] = self.number(number)?;
        Some(merged)
    }

    /// Whether a sequence has a byte of this class wherever it is.
    pub(super) fn has_byte_of(&self, sequence: &Sequence, class: ByteSet) -> bool {
        let class = Place::byte(class);
        sequence.0.iter().any(|&number| self.places[usize::from(number)].0.is_within(&class))
    }
}

/// Symbols in a row. A content "has" it when its bytes are somewhere in a row, each of its set, and
/// the assertions hold between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Text {
    symbols: [Symbol; TEXT_LENGTH_MAX],
    length: u8,
    /// Whether this is all of what a part matches, or only its front or its back.
    pub(super) whole: bool,
    /// A clause that is fulfilled whenever a part begins or ends like this.
    pub(super) also: Option<NeedId>,
}

/// A side of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// What a text is looked for by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    /// It never occurs.
    Never,
    /// By a sequence that is in it, with its likelihood at a place.
    Sequence(SequenceId, f32),
    /// Not in a row.
    None,
}

impl Text {
    /// The empty text, all of what a part matches.
    pub(super) const EMPTY: Self =
        Self { symbols: [Symbol(0); TEXT_LENGTH_MAX], length: 0, whole: true, also: None };

    /// The first symbols (or, cut before, the last), whole if they are all.
    pub(super) fn of(symbols: impl IntoIterator<Item = Symbol>) -> Self {
        let mut text = Self::EMPTY;
        for symbol in symbols {
            if text.len() == TEXT_LENGTH_MAX {
                text.whole = false;
                break;
            }
            text.symbols[text.len()] = symbol;
            text.length += 1;
        }
        text
    }

    /// Its symbols.
    pub(super) fn symbols(&self) -> &[Symbol] {
        &self.symbols[..self.len()]
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// The same cut on one side, if it is longer than this.
    pub(super) fn cut(self, length: usize, side: Side) -> Self {
        let more = self.len().saturating_sub(length);
        if more == 0 {
            return self;
        }
        let kept = match side {
            Side::After => &self.symbols()[..length],
            Side::Before => &self.symbols()[more..],
        };
        Self { whole: false, also: self.also, ..Self::of(kept.iter().copied()) }
    }

    /// This text and then another, which it touches; cut on one side if that is too long.
    pub(super) fn then(&self, next: &Self, cut: Side) -> Self {
        let length = self.len() + next.len();
        let skipped = match cut {
            Side::After => 0,
            Side::Before => length.saturating_sub(TEXT_LENGTH_MAX),
        };
        let symbols = self.symbols().iter().chain(next.symbols()).skip(skipped).copied();
        let whole = self.whole && next.whole && length <= TEXT_LENGTH_MAX;
        Self { whole, also: self.also.or(next.also), ..Self::of(symbols) }
    }

    /// Without the last symbol (or the first), and that symbol.
    pub(super) fn split(&self, side: Side) -> Option<(Self, Symbol)> {
        let symbols = self.symbols();
        let (rest, symbol) = match side {
            Side::After => symbols.split_last().map(|(last, rest)| (rest, last))?,
            Side::Before => symbols.split_first().map(|(first, rest)| (rest, first))?,
        };
        Some((
            Self { whole: self.whole, also: self.also, ..Self::of(rest.iter().copied()) },
            *symbol,
        ))
    }

    /// With a symbol more at the end (or before).
    pub(super) fn joined(&self, symbol: Symbol, side: Side) -> Self {
        let (before, after) = match side {
            Side::After => (None, Some(symbol)),
            Side::Before => (Some(symbol), None),
        };
        let symbols = before.into_iter().chain(self.symbols().iter().copied()).chain(after);
        Self { whole: self.whole, also: self.also, ..Self::of(symbols) }
    }

    /// The set of which it is hardest to find a byte, and how likely one is at a place.
    pub(super) fn rarest(&self, symbols: &Symbols) -> Option<(ByteSet, f32)> {
        self.symbols()
            .iter()
            .filter_map(|&symbol| symbols.place(symbol))
            .map(|(place, chance)| (place.bytes, chance.alone()))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// A sequence that every content with this text has. `before` and `after` are what may stand
    /// beside the whole text.
    pub(super) fn mark(&self, symbols: &mut Symbols, before: Place, after: Place) -> Mark {
        if before != Place::ANY || after != Place::ANY {
            return self.find_mark(symbols, before, after);
        }
        let key = Self { also: None, ..*self };
        if let Some(&mark) = symbols.marks.get(&key) {
            return mark;
        }
        let mark = self.find_mark(symbols, before, after);
        symbols.marks.insert(key, mark);
        mark
    }

    fn find_mark(&self, symbols: &mut Symbols, before: Place, after: Place) -> Mark {
        // Where a text was cut behind a byte of no word, the last two are as good as the whole front
        // of the word, and the same for many words.
        if let [.., letter, noise] = *self.symbols()
            && !self.whole
            && self.len() > 2
            && symbols.is_noise(noise)
            && !symbols.is_noise(letter)
            && symbols.place(noise).is_some_and(|(_, chance)| chance.alone() < RARE)
        {
            let short = Self { whole: false, ..Self::of([letter, noise]) };
            return short.find_mark(symbols, Place::ANY, after);
        }
        let mut places = self.places(symbols, before, after);
        if places.iter().any(|(place, _)| place.is_none()) {
            return Mark::Never;
        }
        while places.last().is_some_and(|(_, chance)| chance.alone() > WIDE) {
            places.pop();
        }
        let wide = places.iter().take_while(|(_, chance)| chance.alone() > WIDE).count();
        let places = &places[wide..];
        let of =
            |places: &[(Place, Chance)]| Chance::in_a_row(places.iter().map(|&(_, chance)| chance));
        let triple = places.windows(3.min(places.len().max(1))).map(of).fold(1.0, f32::min);
        if places.len() < 2 || triple > TRIPLE_LIKELY {
            return Mark::None;
        }
        let length = places.len().min(SEQUENCE_LENGTH_MAX);
        let windows = places.windows(length).map(|window| (window, of(window)));
        let Some((window, likelihood)) = windows.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Mark::None;
        };
        let numbers = window.iter().map(|&(place, _)| symbols.number(place)).collect();
        match numbers {
            Some(numbers) => Mark::Sequence(symbols.sequence_number(Sequence(numbers)), likelihood),
            None => Mark::None,
        }
    }

    /// Its places with those on both sides, narrowed by the assertions between them.
    fn places(&self, symbols: &Symbols, before: Place, after: Place) -> Vec<(Place, Chance)> {
        let mut places = Vec::with_capacity(self.len() + 2);
        places.push((before, Chance::of(&before)));
        let mut assertions = 0;
        for (at, &symbol) in self.symbols().iter().enumerate() {
            let Some(&place) = symbols.place(symbol) else {
                assertions += 1;
                continue;
            };
            push(&mut places, &self.symbols()[at - assertions..at], place);
            assertions = 0;
        }
        let last = &self.symbols()[self.len() - assertions..];
        push(&mut places, last, (after, Chance::of(&after)));
        places
    }

    /// What may stand right behind (or before) a part whose back (or front) this is.
    pub(super) fn beside(&self, symbols: &Symbols, side: Side) -> Place {
        let nearest = match side {
            Side::Before => self.symbols().last(),
            Side::After => self.symbols().first(),
        };
        match nearest {
            Some(&Symbol::START) if side == Side::Before => Place::BEYOND,
            Some(&Symbol::END) if side == Side::After => Place::BEYOND,
            Some(&symbol) => symbols.place(symbol).map_or(Place::ANY, |(place, _)| *place),
            None => Place::ANY,
        }
    }
}

/// Adds a place, with assertions between it and the last one.
fn push(places: &mut Vec<(Place, Chance)>, assertions: &[Symbol], mut place: (Place, Chance)) {
    if let Some(left) = places.last_mut() {
        for &assertion in assertions {
            narrow(assertion, left, &mut place);
        }
    }
    places.push(place);
}

/// Leaves to the places left and right of an assertion only what it allows.
fn narrow(assertion: Symbol, left: &mut (Place, Chance), right: &mut (Place, Chance)) {
    let only = |side: &mut (Place, Chance), allowed: Place| {
        let place = side.0.and(allowed);
        *side = (place, Chance::of(&place));
    };
    match assertion {
        Symbol::START => only(left, Place::BEYOND),
        Symbol::END => only(right, Place::BEYOND),
        _ => {
            let differ = assertion == Symbol::WORD_EDGE;
            let beside =
                |in_word: bool| if in_word == differ { Place::NO_WORD } else { Place::WORD };
            if let Some(in_word) = is_word(&right.0) {
                only(left, beside(in_word));
            }
            if let Some(in_word) = is_word(&left.0) {
                only(right, beside(in_word));
            }
        }
    }
}

/// Whether what stands at a place belongs to a word, when that is certain. Beyond the content no
/// words are.
fn is_word(place: &Place) -> Option<bool> {
    if place.is_within(&Place::WORD) {
        Some(true)
    } else if place.bytes.meets(&WORD) {
        None
    } else {
        Some(false)
    }
}
