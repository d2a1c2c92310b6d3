//! Clauses from a pattern's structure.
//!
//! # Why they hold
//!
//! For each part of a pattern, [`Facts`] says of every text the part matches, wherever it does:
//!
//! - *front*: it begins with one of these texts, or is one, if that is marked whole;
//! - *back*: it ends with one of these texts, or is one, if that is marked whole;
//! - *clauses*: a content around it fulfils each of these.
//!
//! By induction over the structure:
//!
//! - A literal, a class, an assertion: exactly what they say. Dropping an assertion only adds texts.
//! - A B: a text of A, then one of B beside it. If A's is known whole, the beginning of B's is known to
//!   follow. Where they touch, the content has an end of A's and a beginning of B's in a row: a
//!   clause. What A and B need by themselves is needed too.
//! - A|B: a text of either. A clause of A or a clause of B is fulfilled, so their union is.
//! - A repeated at least n times: n texts of A in a row at the front, and n at the back; in between
//!   nothing is known. If each needs a byte of a class, the content has n such bytes, as the texts do
//!   not overlap. With n = 0 it may also be empty, and nothing is needed.
//!
//! Each front and back text of one of several alternatives may be marked with a clause of that
//! alternative, which then holds too: `command .*` ends with anything, but has `command` in it.
//!
//! A content with one of some texts fulfils the clause of [`Text::mark`], and that of the rarest
//! set of each: both only name something that is in the text. Cutting a front text's end or a back
//! text's beginning (so that it is no longer whole), merging texts, and forgetting clauses make the
//! facts weaker, never wrong.
//!
//! # Ways
//!
//! A clause for several alternatives cannot say what belongs together: of `"a.*b|c.*d"` it says that
//! `a` or `c` is needed, and `b` or `d`. Where that is much weaker than the alternatives by themselves,
//! the pattern is split into *ways*, each with clauses of its own, of which one has to be fulfilled.

use std::collections::HashMap;

use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

use super::{
    ByteSet, Clause, Place, class,
    frequency::{self, Chance},
    hash::Quick,
    needs::{NeedId, Needs, reduced},
    text::{Side, Symbol, Symbols, TEXT_LENGTH_MAX, Text},
};

/// Most texts of a front or a back. The longest list of words in the Core Rule Set has about 700.
const TEXTS_MAX: usize = 1_024;
/// More pairs than this are worth making the texts simpler first.
const TEXTS_MANY: usize = 128;
/// Longest text of a part whose texts are not all known whole.
const LENGTH_MAX: usize = 10;
/// Most repetitions that are looked at one by one.
const ROW_MAX: u32 = 4;
/// Most clauses carried along.
const CLAUSES_CARRIED: usize = 16;
/// Most clauses with sequences in a way.
const SEQUENCE_CLAUSES_MAX: usize = 3;
/// Most clauses of classes alone.
const CLASS_CLAUSES_MAX: usize = 6;
/// A further clause with more sequences than this has to be needed.
const FURTHER_SEQUENCES_MAX: usize = 48;
/// What ordinary contents fulfil as often as this needs a further clause, whatever it costs.
const WEAK: f32 = 0.25;
/// What they fulfil more seldom than this needs none.
const ENOUGH: f32 = 0.002;
/// A clause less likely than this at a place is better than a neighbour that is met as often as this.
const STRONG: f32 = 0.02;
const WIDE: f32 = 0.5;
/// Most ways, and most alternatives that are looked at for them.
const WAYS_MAX: usize = 6;
const ALTERNATIVES_MAX: usize = 24;
/// A pattern is split when its ways together are that much less likely than the whole.
const WORTH_SPLITTING: f32 = 0.6;

/// The clauses of each way to match a pattern, the most selective first, and the places that they
/// number.
pub(super) fn ways(hir: &Hir) -> (Vec<Place>, Vec<Vec<Clause>>) {
    let mut analysis = Analysis::default();
    let whole = analysis.facts(hir);
    let mut ways = vec![analysis.way(&whole)];
    if ways[0].passing > ENOUGH
        && let Some(split) = analysis.split(hir)
        && split.iter().map(|way| way.passing).sum::<f32>() < ways[0].passing * WORTH_SPLITTING
    {
        ways = split;
    }
    let Analysis { mut symbols, needs, .. } = analysis;
    let mut clauses = |way: Way| -> Vec<Clause> {
        let clauses = way.needs.into_iter();
        clauses.map(|id| reduced(needs.clause(id, &symbols), &mut symbols)).collect()
    };
    let ways = ways.into_iter().map(&mut clauses).collect();
    (symbols.places(), ways)
}

/// What one way to match needs.
struct Way {
    needs: Vec<NeedId>,
    /// How likely ordinary contents fulfil all of it.
    passing: f32,
}

/// What is known of a part. See the module.
#[derive(Clone)]
struct Facts {
    front: Vec<Text>,
    /// None: the front, which lists all texts whole.
    back: Option<Vec<Text>>,
    clauses: Vec<NeedId>,
}

#[derive(Default)]
struct Analysis<'h> {
    symbols: Symbols,
    needs: Needs,
    /// The facts of the parts seen so far: what rules allow between the letters of a word is written
    /// there again and again, and the split looks at all alternatives once more.
    known: HashMap<Shape, Vec<(&'h Hir, Facts)>, Quick>,
}

/// What parts that are equal have in common, and others seldom.
#[derive(PartialEq, Eq, Hash)]
struct Shape {
    parts: usize,
    length_min: Option<usize>,
    length_max: Option<usize>,
}

impl Shape {
    /// None for what is as quickly looked at as compared.
    fn of(hir: &Hir) -> Option<Self> {
        let parts = match hir.kind() {
            HirKind::Repetition(_) => 1,
            HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.len(),
            HirKind::Empty
            | HirKind::Literal(_)
            | HirKind::Class(_)
            | HirKind::Look(_)
            | HirKind::Capture(_) => return None,
        };
        let (length_min, length_max) =
            (hir.properties().minimum_len(), hir.properties().maximum_len());
        Some(Self { parts, length_min, length_max })
    }
}

impl<'h> Analysis<'h> {
    fn facts(&mut self, hir: &'h Hir) -> Facts {
        let Some(shape) = Shape::of(hir) else { return self.found(hir) };
        let known = self.known.get(&shape).into_iter().flatten();
        if let Some((_, facts)) = known.into_iter().find(|(part, _)| *part == hir) {
            return facts.clone();
        }
        let facts = self.found(hir);
        self.known.entry(shape).or_default().push((hir, facts.clone()));
        facts
    }

    /// The facts of a part that has not been seen yet.
    fn found(&mut self, hir: &'h Hir) -> Facts {
        match hir.kind() {
            HirKind::Empty => Facts::exactly(Text::EMPTY),
            HirKind::Literal(literal) => self.literal(&literal.0),
            HirKind::Class(_) => match self.symbols.byte(class(hir)) {
                Some(symbol) => Facts::exactly(Text::of([symbol])),
                None => Facts::unknown(),
            },
            HirKind::Look(look) => Facts::exactly(match assertion(*look) {
                Some(assertion) => Text::of([assertion]),
                None => Text::EMPTY,
            }),
            HirKind::Capture(capture) => self.facts(&capture.sub),
            HirKind::Repetition(repetition) => self.repeated(repetition),
            HirKind::Concat(parts) => self.concat(Facts::exactly(Text::EMPTY), parts),
            HirKind::Alternation(parts) => {
                let parts = parts.iter().map(|part| self.facts(part)).collect();
                self.either(parts)
            }
        }
    }

    fn literal(&mut self, bytes: &[u8]) -> Facts {
        let symbols = bytes.iter().map(|&byte| self.symbols.byte(ByteSet::of(&[byte])));
        let Some(symbols) = symbols.collect::<Option<Vec<Symbol>>>() else {
            return Facts::unknown();
        };
        // Piece by piece, so that what is rare in the middle of a long literal is not lost.
        let mut facts = Facts::exactly(Text::EMPTY);
        for piece in symbols.chunks(LENGTH_MAX) {
            facts = self.then(facts, Facts::exactly(Text::of(piece.iter().copied())));
        }
        facts
    }

    fn concat(&mut self, before: Facts, parts: &'h [Hir]) -> Facts {
        let mut facts = before;
        for part in parts {
            let next = self.facts(part);
            facts = self.then(facts, next);
        }
        facts
    }

    fn repeated(&mut self, repetition: &'h Repetition) -> Facts {
        let Repetition { min, max, sub, .. } = repetition;
        if *max == Some(0) {
            return Facts::exactly(Text::EMPTY);
        }
        let once = self.facts(sub);
        if *min == 0 {
            let Facts { mut front, mut back, .. } = once;
            if *max != Some(1) {
                back = Some(opened(back.unwrap_or_else(|| front.clone())));
                front = opened(front);
            }
            front.push(Text::EMPTY);
            if let Some(back) = &mut back {
                back.push(Text::EMPTY);
            }
            return self.shortened(Facts { front, back, clauses: Vec::new() });
        }
        let written = (*min).min(ROW_MAX);
        let mut counted = Vec::new();
        if *min > 1 {
            let needs = self.needs(&once);
            for need in self.needs.ranked(needs, CLAUSES_CARRIED) {
                if self.needs.sequences(need) == 0 {
                    counted.push(self.needs.repeated(need, *min as usize));
                }
            }
        }
        let mut row = once.clone();
        for _ in 1..written {
            row = self.then(row, once.clone());
        }
        row.clauses.extend(counted);
        if *max == Some(written) {
            return row;
        }
        row.clauses.extend(self.of_texts(&row.front));
        let back = opened(row.back.unwrap_or_else(|| row.front.clone()));
        let facts = Facts { front: opened(row.front), back: Some(back), clauses: row.clauses };
        self.shortened(facts)
    }

    fn either(&mut self, parts: Vec<Facts>) -> Facts {
        // Those that list all their texts are one such list.
        let (exact, mut parts): (Vec<Facts>, Vec<Facts>) =
            parts.into_iter().partition(|part| part.back.is_none() && part.clauses.is_empty());
        if !exact.is_empty() {
            let front = exact.into_iter().flat_map(|part| part.front).collect();
            let exact = self.shortened(Facts { front, back: None, clauses: Vec::new() });
            if parts.is_empty() {
                return exact;
            }
            parts.push(exact);
        }
        let mut needs = Vec::new();
        for part in &mut parts {
            let all = self.needs(part);
            let ranked = self.needs.ranked(all, CLAUSES_CARRIED);
            if let Some(&best) = ranked.first() {
                self.mark(part, best);
            }
            needs.push(ranked);
        }
        let mut clauses = Vec::new();
        // The best clause of each part together, then the second of each, and so on.
        for rank in 0..needs.iter().map(Vec::len).max().unwrap_or(0) {
            let at_rank = |needs: &Vec<NeedId>| needs.get(rank).or(needs.last()).copied();
            clauses.extend(self.needs.union(needs.iter().map(at_rank)));
        }
        // Classes are tested almost for nothing, so they are worth a clause of their own.
        let class =
            |of: &Vec<NeedId>| of.iter().copied().find(|&need| self.needs.sequences(need) == 0);
        let classes: Vec<_> = needs.iter().map(class).collect();
        clauses.extend(self.needs.union(classes.into_iter()));
        let back = parts.iter().flat_map(|part| part.back().iter().copied()).collect();
        let front = parts.into_iter().flat_map(|part| part.front).collect();
        self.shortened(Facts {
            front,
            back: Some(back),
            clauses: self.needs.ranked(clauses, CLAUSES_CARRIED),
        })
    }

    /// Marks a part's texts with a clause of it, where that is better than what they have. A whole
    /// text says all there is to say.
    fn mark(&self, part: &mut Facts, clause: NeedId) {
        let better = |text: &Text| {
            let known = text.also.map(|also| self.needs.at_a_place(also));
            !text.whole && known.is_none_or(|known| self.needs.at_a_place(clause) < known)
        };
        for text in part.front.iter_mut().chain(part.back.iter_mut().flatten()) {
            if better(text) {
                text.also = Some(clause);
            }
        }
    }

    /// One part, then another.
    fn then(&mut self, mut left: Facts, mut right: Facts) -> Facts {
        // What most of a pattern is: a byte behind another.
        if let (Some(one), Some(other)) = (left.only_text(), right.only_text())
            && one.len() + other.len() <= TEXT_LENGTH_MAX
        {
            left.clauses.extend(right.clauses);
            left.front = vec![one.then(&other, Side::After)];
            return left;
        }
        let fronts = left.front.len() * right.front.len();
        let backs = left.back().len() * right.back().len();
        if fronts.max(backs) > TEXTS_MANY {
            left = self.simplified(left);
            right = self.simplified(right);
        }
        let mut clauses = left.clauses.clone();
        clauses.extend(&right.clauses);
        let longest = |texts: &[Text]| texts.iter().map(Text::len).max().unwrap_or(0);
        if left.back.is_none()
            && right.back.is_none()
            && longest(&left.front) + longest(&right.front) <= TEXT_LENGTH_MAX
            && let Some(front) = pairs(&left.front, &right.front, Side::After)
        {
            return self.shortened(Facts { front, back: None, clauses });
        }
        // Where a part lists its texts whole, the new front or back has what touches.
        let front = lengthened(&left.front, |text| {
            pairs(std::slice::from_ref(text), &right.front, Side::After)
        });
        let back = lengthened(right.back(), |text| {
            pairs(left.back(), std::slice::from_ref(text), Side::Before)
        });
        let lost = front.is_none() || back.is_none();
        let long = longest(left.back()) + longest(&right.front) > TEXT_LENGTH_MAX;
        if lost || long || left.back.is_some() && right.back.is_some() {
            clauses.extend(self.touching(left.back(), &right.front));
        }
        if lost {
            clauses.extend(self.of_texts(left.back()));
            clauses.extend(self.of_texts(&right.front));
        }
        let front = front.unwrap_or_else(|| opened(left.front.clone()));
        let back = back.unwrap_or_else(|| opened(right.back().to_vec()));
        let clauses = self.needs.ranked(clauses, CLAUSES_CARRIED);
        self.shortened(Facts { front, back: Some(back), clauses })
    }

    /// Clauses of an end of one part beside the beginning of another.
    fn touching(&mut self, ends: &[Text], beginnings: &[Text]) -> Vec<NeedId> {
        let says_nothing = |text: &Text| text.also.is_none() && text.len() == 0;
        if ends.iter().any(says_nothing) && beginnings.iter().any(says_nothing) {
            return Vec::new();
        }
        // Half of each side is enough where both are long.
        let half = |texts: &[Text], side| -> Vec<Text> {
            let texts = texts.iter().map(|text| text.cut(TEXT_LENGTH_MAX / 2, side));
            distinct(texts.collect())
        };
        let (ends, beginnings) = (half(ends, Side::Before), half(beginnings, Side::After));
        if let Some(pairs) = pairs(&ends, &beginnings, Side::After) {
            return self.of_texts(&distinct(pairs));
        }
        // Too many: what an end is marked with, or else a beginning with the end's last byte before.
        let (mut also, mut before) = (Vec::new(), Place::NONE);
        for end in ends {
            let beside = end.beside(&self.symbols, Side::Before);
            match end.also {
                Some(strong)
                    if self.needs.at_a_place(strong) < STRONG
                        && Chance::of(&beside).alone() > WIDE =>
                {
                    also.push(Some(strong));
                }
                _ => before = before.or(beside),
            }
        }
        let beginnings = self.needs.of_texts(&beginnings, &mut self.symbols, before, Place::ANY);
        let mut clauses = Vec::new();
        for beginning in beginnings {
            let all = also.iter().copied().chain([Some(beginning)]);
            clauses.extend(self.needs.union(all));
        }
        clauses
    }

    fn of_texts(&mut self, texts: &[Text]) -> Vec<NeedId> {
        self.needs.of_texts(texts, &mut self.symbols, Place::ANY, Place::ANY)
    }

    /// All clauses of a part, those of its front and back too.
    fn needs(&mut self, facts: &Facts) -> Vec<NeedId> {
        let mut needs = facts.clauses.clone();
        needs.extend(self.of_texts(&facts.front));
        if let Some(back) = &facts.back {
            needs.extend(self.of_texts(back));
        }
        needs
    }

    /// The same with few and short enough texts.
    fn shortened(&mut self, mut facts: Facts) -> Facts {
        facts.front = self.merged(&facts.front, Side::After);
        facts.back = facts.back.map(|back| self.merged(&back, Side::Before));
        let few = facts.front.len() <= TEXTS_MAX;
        if facts.back.is_none() && few && facts.front.iter().all(|text| text.whole) {
            return facts;
        }
        let back = facts.back.unwrap_or_else(|| facts.front.clone());
        if !few || back.len() > TEXTS_MAX {
            facts.clauses.extend(self.of_texts(&facts.front));
            facts.clauses.extend(self.of_texts(&back));
            facts.clauses = self.needs.ranked(facts.clauses, CLAUSES_CARRIED);
        }
        facts.front = cut(facts.front, Side::After);
        facts.back = Some(cut(back, Side::Before));
        facts
    }

    /// The same with texts cut behind the first byte that belongs to no word but follows one: what
    /// rules allow between the letters of a word multiplies its texts.
    fn simplified(&mut self, facts: Facts) -> Facts {
        let back = facts.back.unwrap_or_else(|| facts.front.clone());
        let front = self.cut_at_noise(facts.front, Side::After);
        let back = self.cut_at_noise(back, Side::Before);
        Facts { front, back: Some(back), clauses: facts.clauses }
    }

    fn cut_at_noise(&mut self, mut texts: Vec<Text>, side: Side) -> Vec<Text> {
        for text in &mut texts {
            let is_noise = |&symbol: &Symbol| self.symbols.is_noise(symbol);
            let noise = match side {
                Side::After => text.symbols().iter().skip(1).position(is_noise),
                Side::Before => text.symbols().iter().rev().skip(1).position(is_noise),
            };
            *text = text.cut(noise.map_or(TEXT_LENGTH_MAX, |noise| noise + 2), side);
        }
        self.merged(&texts, side)
    }

    /// Texts that differ in nothing but the last byte (of a back: the first) as one with a byte of
    /// either set there.
    fn merged(&mut self, texts: &[Text], side: Side) -> Vec<Text> {
        if texts.len() < 2 {
            return texts.to_vec();
        }
        let mut all: Vec<Text> = Vec::with_capacity(texts.len());
        let mut split: Vec<(Text, Symbol)> = Vec::with_capacity(texts.len());
        for text in texts {
            match text.split(side) {
                Some(parts) => split.push(parts),
                None if all.contains(text) => {}
                None => all.push(*text),
            }
        }
        split.sort_unstable();
        split.dedup();
        for same in split.chunk_by(|a, b| a.0 == b.0) {
            if let [(text, symbol)] = same {
                all.push(text.joined(*symbol, side));
                continue;
            }
            let symbols: Vec<Symbol> = same.iter().map(|(_, symbol)| *symbol).collect();
            let united = self.symbols.united(&symbols);
            all.extend(united.iter().map(|&symbol| same[0].0.joined(symbol, side)));
        }
        all
    }
}

impl<'h> Analysis<'h> {
    /// The clauses that are worth their test.
    fn way(&mut self, facts: &Facts) -> Way {
        let needs = self.needs(facts);
        let (mut sequences, mut classes) = (0, 0);
        // Of those with sequences only: classes are not independent of them.
        let mut passing = 1.0;
        let mut class_passing: f32 = 1.0;
        let mut chosen: Vec<NeedId> = Vec::new();
        for id in self.needs.ranked(needs, usize::MAX) {
            let is_class = self.needs.sequences(id) == 0;
            let (count, max) = if is_class {
                (&mut classes, CLASS_CLAUSES_MAX)
            } else {
                (&mut sequences, SEQUENCE_CLAUSES_MAX)
            };
            // Further sequences cost more than they gain where those before them are strong.
            let many = self.needs.sequences(id) > FURTHER_SEQUENCES_MAX;
            let enough = *count > 0 && passing < if many { WEAK } else { ENOUGH };
            let is_known = |&known: &NeedId| self.needs.are_much_alike(known, id);
            if *count == max || !is_class && enough || chosen.iter().any(is_known) {
                continue;
            }
            *count += 1;
            let fulfilled = frequency::somewhere(self.needs.at_a_place(id));
            if is_class {
                class_passing = class_passing.min(fulfilled);
            } else {
                passing *= fulfilled;
            }
            chosen.push(id);
        }
        Way { needs: chosen, passing: passing * class_passing }
    }

    /// The ways to match a pattern by its first several alternatives, if it has any.
    fn split(&mut self, hir: &'h Hir) -> Option<Vec<Way>> {
        let mut alternatives = self.alternatives(hir)?;
        if alternatives.len() > ALTERNATIVES_MAX {
            return None;
        }
        // The strong ones lose least by being taken together.
        let mut ways: Vec<(Facts, Way)> = Vec::new();
        for facts in alternatives.drain(..) {
            let way = self.way(&facts);
            ways.push((facts, way));
        }
        ways.sort_by(|a, b| b.1.passing.total_cmp(&a.1.passing));
        if ways.len() > WAYS_MAX {
            let strong = ways.split_off(WAYS_MAX - 1).into_iter().map(|(facts, _)| facts);
            let together = self.either(strong.collect());
            let way = self.way(&together);
            ways.push((together, way));
        }
        Some(ways.into_iter().map(|(_, way)| way).collect())
    }

    fn alternatives(&mut self, hir: &'h Hir) -> Option<Vec<Facts>> {
        match hir.kind() {
            HirKind::Capture(capture) => self.alternatives(&capture.sub),
            HirKind::Alternation(parts) => {
                Some(parts.iter().map(|part| self.facts(part)).collect())
            }
            HirKind::Concat(parts) => {
                let is_alternation = |part: &Hir| {
                    let mut part = part;
                    while let HirKind::Capture(capture) = part.kind() {
                        part = &capture.sub;
                    }
                    matches!(part.kind(), HirKind::Alternation(parts) if parts.len() <= ALTERNATIVES_MAX)
                };
                let at = parts.iter().position(is_alternation)?;
                let before = self.concat(Facts::exactly(Text::EMPTY), &parts[..at]);
                let after = self.concat(Facts::exactly(Text::EMPTY), &parts[at + 1..]);
                if before.back().len().max(after.front.len()) > TEXTS_MANY / 4 {
                    return None;
                }
                let mut all = Vec::new();
                for alternative in self.alternatives(&parts[at])? {
                    let front = self.then(before.clone(), alternative);
                    all.push(self.then(front, after.clone()));
                }
                Some(all)
            }
            _ => None,
        }
    }
}

impl Facts {
    fn exactly(text: Text) -> Self {
        Self { front: vec![text], back: None, clauses: Vec::new() }
    }

    fn unknown() -> Self {
        let front = opened(vec![Text::EMPTY]);
        Self { back: Some(front.clone()), front, clauses: Vec::new() }
    }

    /// The text, when it has just one.
    fn only_text(&self) -> Option<Text> {
        match (&self.front[..], &self.back) {
            ([text], None) => Some(*text),
            _ => None,
        }
    }

    fn back(&self) -> &[Text] {
        self.back.as_ref().unwrap_or(&self.front)
    }
}

/// What an assertion says, or something weaker.
fn assertion(look: Look) -> Option<Symbol> {
    match look {
        Look::Start => Some(Symbol::START),
        Look::End => Some(Symbol::END),
        Look::WordAscii | Look::WordStartAscii | Look::WordEndAscii => Some(Symbol::WORD_EDGE),
        Look::WordAsciiNegate => Some(Symbol::NO_WORD_EDGE),
        _ => None,
    }
}

/// The same texts, none known to be whole.
fn opened(mut texts: Vec<Text>) -> Vec<Text> {
    for text in &mut texts {
        text.whole = false;
    }
    texts
}

/// Whole texts with what follows (or precedes) them; the others as they are. None when that makes
/// too many.
fn lengthened(texts: &[Text], longer: impl Fn(&Text) -> Option<Vec<Text>>) -> Option<Vec<Text>> {
    let mut all = Vec::new();
    for text in texts {
        if text.whole {
            all.extend(longer(text)?);
        } else {
            all.push(*text);
        }
        if all.len() > TEXTS_MAX {
            return None;
        }
    }
    Some(all)
}

/// All of one side's texts beside all of the other's, cut on a side where they are too long, unless
/// they are too many.
fn pairs(left: &[Text], right: &[Text], cut: Side) -> Option<Vec<Text>> {
    if left.len() * right.len() > TEXTS_MAX {
        return None;
    }
    let pair = |left: &Text| right.iter().map(|right| left.then(right, cut)).collect::<Vec<_>>();
    Some(left.iter().flat_map(pair).collect())
}

fn distinct(mut texts: Vec<Text>) -> Vec<Text> {
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Texts cut short enough on one side to be few.
fn cut(mut texts: Vec<Text>, side: Side) -> Vec<Text> {
    for length in (1..=LENGTH_MAX).rev() {
        if texts.iter().any(|text| text.len() > length) {
            for text in &mut texts {
                *text = text.cut(length, side);
            }
            texts = distinct(texts);
        }
        if texts.len() <= TEXTS_MAX {
            return texts;
        }
    }
    opened(vec![Text::EMPTY])
}
