//! A short text as a pattern knows it: sets of bytes in a row, with assertions between them.

use std::collections::BTreeMap;

use super::{ByteSet, Place, Sequence, WORD, frequency::Chance, needs::NeedId};

/// Most places of a sequence. More are hardly more selective.
const SEQUENCE_LENGTH_MAX: usize = 12;
/// A place that is met more often than this does not begin or end a sequence.
const WIDE: f32 = 0.8;
/// A byte that is met so seldom says much already.
const RARE: f32 = 0.01;
/// A sequence is only worth looking for when three of its places in a row are no likelier than this.
const TRIPLE_LIKELY: f32 = 0.01;

/// An element of a text: an assertion, or the number of a place among [`Symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    numbers: BTreeMap<Place, u16>,
    places: Vec<(Place, Chance)>,
}

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
    pub(super) fn united(&mut self, mut symbols: Vec<Symbol>) -> Vec<Symbol> {
        symbols.sort_unstable();
        symbols.dedup();
        let bytes = symbols.iter().filter_map(|&symbol| self.place(symbol));
        let bytes = bytes.fold(ByteSet::NONE, |bytes, (place, _)| bytes.or(place.bytes));
        let Some(united) = self.byte(bytes) else { return symbols };
        let is_byte = |symbol: &Symbol| self.place(*symbol).is_some();
        let some = symbols.iter().any(is_byte);
        symbols.retain(|symbol| !is_byte(symbol));
        symbols.extend(some.then_some(united));
        symbols
    }

    /// The places by their numbers.
    pub(super) fn places(&self) -> Vec<Place> {
        self.places.iter().map(|(place, _)| *place).collect()
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text {
    pub(super) symbols: Vec<Symbol>,
    /// Whether this is all of what a part matches, or only its front or its back.
    pub(super) whole: bool,
    /// A clause that is fulfilled whenever a part begins or ends like this.
    pub(super) also: Option<NeedId>,
}

/// What a text is looked for by.
pub(super) enum Mark {
    /// It never occurs.
    Never,
    /// By a sequence that is in it, with its likelihood at a place.
    Sequence(Sequence, f32),
    /// Not in a row.
    None,
}

impl Text {
    /// The empty text.
    pub(super) fn empty() -> Self {
        Self::whole(Vec::new())
    }

    /// A text that is all of what a part matches.
    pub(super) fn whole(symbols: Vec<Symbol>) -> Self {
        Self { symbols, whole: true, also: None }
    }

    /// This text and then another, which it touches.
    pub(super) fn then(&self, next: &Self) -> Self {
        let symbols = self.symbols.iter().chain(&next.symbols).copied().collect();
        Self { symbols, whole: self.whole && next.whole, also: self.also.or(next.also) }
    }

    /// The set of which it is hardest to find a byte, and how likely one is at a place.
    pub(super) fn rarest(&self, symbols: &Symbols) -> Option<(ByteSet, f32)> {
        self.symbols
            .iter()
            .filter_map(|&symbol| symbols.place(symbol))
            .map(|(place, chance)| (place.bytes, chance.alone()))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// A sequence that every content with this text has. `before` and `after` are what may stand
    /// beside the whole text.
    pub(super) fn mark(&self, symbols: &mut Symbols, before: Place, after: Place) -> Mark {
        // Where a text was cut behind a byte of no word, the last two are as good as the whole front
        // of the word, and the same for many words.
        if let [.., letter, noise] = self.symbols[..]
            && !self.whole
            && self.symbols.len() > 2
            && symbols.is_noise(noise)
            && !symbols.is_noise(letter)
            && symbols.place(noise).is_some_and(|(_, chance)| chance.alone() < RARE)
        {
            let short = Self { symbols: vec![letter, noise], ..self.clone() };
            return short.mark(symbols, Place::ANY, after);
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
        let least = |a: &&[(Place, Chance)], b: &&[(Place, Chance)]| of(a).total_cmp(&of(b));
        let length = places.len().min(SEQUENCE_LENGTH_MAX);
        let Some(window) = places.windows(length).min_by(least) else { return Mark::None };
        let numbers = window.iter().map(|&(place, _)| symbols.number(place)).collect();
        match numbers {
            Some(numbers) => Mark::Sequence(Sequence(numbers), of(window)),
            None => Mark::None,
        }
    }

    /// Its places with those on both sides, narrowed by the assertions between them.
    fn places(&self, symbols: &Symbols, before: Place, after: Place) -> Vec<(Place, Chance)> {
        let mut places = Vec::with_capacity(self.symbols.len() + 2);
        places.push((before, Chance::of(&before)));
        let mut between = self.symbols.iter().enumerate();
        let mut pending = 0..0;
        loop {
            let (at, right) = match between.next() {
                None => (self.symbols.len(), Some((after, Chance::of(&after)))),
                Some((at, &symbol)) => (at, symbols.place(symbol).copied()),
            };
            let Some(mut right) = right else { continue };
            pending.end = at;
            for &assertion in &self.symbols[pending.clone()] {
                if let Some(left) = places.last_mut() {
                    narrow(assertion, left, &mut right);
                }
            }
            places.push(right);
            if at == self.symbols.len() {
                return places;
            }
            pending.start = at + 1;
        }
    }

    /// What may stand right behind (or before) a part whose back (or front) this is.
    pub(super) fn beside(&self, symbols: &Symbols, side: Side) -> Place {
        let nearest = match side {
            Side::Before => self.symbols.last(),
            Side::After => self.symbols.first(),
        };
        match nearest {
            Some(&Symbol::START) if side == Side::Before => Place::BEYOND,
            Some(&Symbol::END) if side == Side::After => Place::BEYOND,
            Some(&symbol) => symbols.place(symbol).map_or(Place::ANY, |(place, _)| *place),
            None => Place::ANY,
        }
    }
}

/// A side of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
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
