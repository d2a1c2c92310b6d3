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

use std::collections::BTreeMap;

use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

use super::{
    ByteSet, Clause, Place, class, frequency,
    needs::{NeedId, Needs, reduced},
    text::{Side, Symbol, Symbols, Text},
};

/// Most texts of a front or a back. The longest list of words in the Core Rule Set has about 700.
const TEXTS_MAX: usize = 1_024;
/// More pairs than this are worth making the texts simpler first.
const TEXTS_MANY: usize = 128;
/// Longest text of a part all of whose texts are known.
const WHOLE_LENGTH_MAX: usize = 48;
/// Longest text of other parts.
const LENGTH_MAX: usize = 10;
/// Most repetitions that are looked at one by one.
const ROW_MAX: u32 = 4;
/// Most clauses carried along.
const CLAUSES_CARRIED: usize = 16;
/// Most clauses with sequences in a requirement.
const SEQUENCE_CLAUSES_MAX: usize = 3;
/// Most clauses of classes alone.
const CLASS_CLAUSES_MAX: usize = 6;
/// A second clause with more sequences than this has to be needed.
const FURTHER_SEQUENCES_MAX: usize = 48;
/// A clause that ordinary contents fulfil as often as this needs another beside it.
const WEAK: f32 = 0.25;
/// A clause less likely than this at a place of ordinary contents is better than knowing neighbours.
const STRONG: f32 = 0.001;

/// The clauses of a whole pattern, the most selective first, and the places that they number.
pub(super) fn clauses(hir: &Hir) -> (Vec<Place>, Vec<Clause>) {
    let mut analysis = Analysis::default();
    let facts = analysis.facts(hir);
    let needs = analysis.needs(&facts);
    let Analysis { mut symbols, needs: all } = analysis;
    let (mut sequences, mut classes) = (0, 0);
    // How likely ordinary contents fulfil all of those with sequences.
    let mut passing = 1.0;
    let mut clauses: Vec<Clause> = Vec::new();
    for id in all.ranked(needs, usize::MAX) {
        let is_class = all.is_class(id);
        if is_class && classes == CLASS_CLAUSES_MAX
            || !is_class && sequences == SEQUENCE_CLAUSES_MAX
        {
            continue;
        }
        let clause = reduced(all.clause(id).clone(), &mut symbols);
        // Further sequences cost more than they gain, unless they are few or what is there is weak.
        let costly = clause.sequences.len() > FURTHER_SEQUENCES_MAX;
        if costly && sequences > 0 && passing < WEAK {
            continue;
        }
        if clauses.iter().any(|known| is_much_like(known, &clause)) {
            continue;
        }
        if is_class {
            classes += 1;
        } else {
            sequences += 1;
            passing *= frequency::somewhere(all.at_a_place(id));
        }
        clauses.push(clause);
    }
    (symbols.places(), clauses)
}

/// Whether two clauses ask for nearly the same, so that having both gains nothing.
fn is_much_like(a: &Clause, b: &Clause) -> bool {
    let common = b.sequences.iter().filter(|sequence| a.sequences.contains(sequence)).count();
    let either = a.sequences.len().max(b.sequences.len());
    a.times == b.times && a.class == b.class && common * 2 >= either
}

/// What is known of a part. See the module.
struct Facts {
    front: Vec<Text>,
    /// None: the front, which lists all texts whole.
    back: Option<Vec<Text>>,
    clauses: Vec<NeedId>,
}

#[derive(Default)]
struct Analysis {
    symbols: Symbols,
    needs: Needs,
}

impl Analysis {
    fn facts(&mut self, hir: &Hir) -> Facts {
        match hir.kind() {
            HirKind::Empty => Facts::exactly(Text::empty()),
            HirKind::Literal(literal) => {
                let text = literal.0.iter().map(|&byte| self.symbols.byte(ByteSet::of(&[byte])));
                let text = text.collect::<Option<Vec<Symbol>>>();
                let facts =
                    text.map_or_else(Facts::unknown, |text| Facts::exactly(Text::whole(text)));
                self.shortened(facts)
            }
            HirKind::Class(_) => match self.symbols.byte(class(hir)) {
                Some(symbol) => Facts::exactly(Text::whole(vec![symbol])),
                None => Facts::unknown(),
            },
            HirKind::Look(look) => Facts::exactly(match assertion(*look) {
                Some(assertion) => Text::whole(vec![assertion]),
                None => Text::empty(),
            }),
            HirKind::Capture(capture) => self.facts(&capture.sub),
            HirKind::Repetition(repetition) => self.repeated(repetition),
            HirKind::Concat(parts) => {
                let mut facts = Facts::exactly(Text::empty());
                for part in parts {
                    let next = self.facts(part);
                    facts = self.then(facts, next);
                }
                facts
            }
            HirKind::Alternation(parts) => {
                let parts = parts.iter().map(|part| self.facts(part)).collect();
                self.either(parts)
            }
        }
    }

    fn repeated(&mut self, repetition: &Repetition) -> Facts {
        let Repetition { min, max, sub, .. } = repetition;
        if *max == Some(0) {
            return Facts::exactly(Text::empty());
        }
        let once = self.facts(sub);
        if *min == 0 {
            let Facts { mut front, mut back, .. } = once;
            if *max != Some(1) {
                back = Some(opened(back.unwrap_or_else(|| front.clone())));
                front = opened(front);
            }
            front.push(Text::empty());
            if let Some(back) = &mut back {
                back.push(Text::empty());
            }
            return self.shortened(Facts { front, back, clauses: Vec::new() });
        }
        let written = (*min).min(ROW_MAX);
        let mut counted = Vec::new();
        if *min > 1 {
            let needs = self.needs(&once);
            for need in self.needs.ranked(needs, CLAUSES_CARRIED) {
                if self.needs.is_class(need) {
                    counted.push(self.needs.repeated(need, *min as usize));
                }
            }
        }
        let mut row = once;
        for _ in 1..written {
            let next = self.facts(sub);
            row = self.then(row, next);
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

    fn either(&mut self, mut parts: Vec<Facts>) -> Facts {
        if parts.iter().all(|part| part.back.is_none() && part.clauses.is_empty()) {
            let front = distinct(parts.into_iter().flat_map(|part| part.front).collect());
            return self.shortened(Facts { front, back: None, clauses: Vec::new() });
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
        let best_class =
            |needs: &Needs, of: &Vec<NeedId>| of.iter().copied().find(|&need| needs.is_class(need));
        let classes: Vec<_> = needs.iter().map(|of| best_class(&self.needs, of)).collect();
        clauses.extend(self.needs.union(classes.into_iter()));
        let back = parts.iter().flat_map(|part| part.back().iter().cloned()).collect();
        let front = parts.into_iter().flat_map(|part| part.front).collect();
        self.shortened(Facts {
            front: distinct(front),
            back: Some(distinct(back)),
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
        for (ends, beginnings) in
            [(left.front.len(), right.front.len()), (left.back().len(), right.back().len())]
        {
            if ends * beginnings > TEXTS_MANY {
                left = self.simplified(left);
                right = self.simplified(right);
            }
        }
        let mut clauses = left.clauses.clone();
        clauses.extend(&right.clauses);
        if left.back.is_none()
            && right.back.is_none()
            && let Some(front) = pairs(&left.front, &right.front)
        {
            return self.shortened(Facts { front, back: None, clauses });
        }
        // Where a part lists its texts whole, the new front or back has what touches.
        let front = lengthened(&left.front, |text| pairs(std::slice::from_ref(text), &right.front));
        let back = lengthened(right.back(), |text| pairs(left.back(), std::slice::from_ref(text)));
        let lost = front.is_none() || back.is_none();
        if lost || left.back.is_some() && right.back.is_some() {
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
        if let Some(pairs) = pairs(ends, beginnings) {
            return self.of_texts(&pairs);
        }
        // Too many: what an end is marked with, or else a beginning with the end's last byte before.
        let (mut also, mut before) = (Vec::new(), Place::NONE);
        for end in ends {
            match end.also {
                Some(strong) if self.needs.at_a_place(strong) < STRONG => also.push(Some(strong)),
                _ => before = before.or(end.beside(&self.symbols, Side::Before)),
            }
        }
        let beginnings = self.needs.of_texts(beginnings, &mut self.symbols, before, Place::ANY);
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
        facts.front = self.merged(facts.front, Side::After);
        facts.back = facts.back.map(|back| self.merged(back, Side::Before));
        let fits = |text: &Text| text.symbols.len() <= WHOLE_LENGTH_MAX;
        let few = facts.front.len() <= TEXTS_MAX;
        if facts.back.is_none() && few && facts.front.iter().all(fits) {
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
            let length = text.symbols.len();
            let kept = match side {
                Side::After => text.symbols.iter().skip(1).position(is_noise),
                Side::Before => text.symbols.iter().rev().skip(1).position(is_noise),
            };
            shorten(text, kept.map_or(length, |noise| noise + 2), side);
        }
        self.merged(texts, side)
    }

    /// Texts that differ in nothing but the last byte (of a back: the first) as one with a byte of
    /// either set there.
    fn merged(&mut self, texts: Vec<Text>, side: Side) -> Vec<Text> {
        let mut known: BTreeMap<(Vec<Symbol>, bool, Option<NeedId>), Vec<Symbol>> = BTreeMap::new();
        let mut all = Vec::new();
        for mut text in texts {
            let end = match side {
                _ if text.symbols.is_empty() => None,
                Side::After => text.symbols.pop(),
                Side::Before => Some(text.symbols.remove(0)),
            };
            match end {
                Some(end) => {
                    known.entry((text.symbols, text.whole, text.also)).or_default().push(end);
                }
                None => all.push(text),
            }
        }
        for ((symbols, whole, also), ends) in known {
            for end in self.symbols.united(ends) {
                let mut symbols = symbols.clone();
                symbols.insert(if side == Side::After { symbols.len() } else { 0 }, end);
                all.push(Text { symbols, whole, also });
            }
        }
        distinct(all)
    }
}

impl Facts {
    fn exactly(text: Text) -> Self {
        Self { front: vec![text], back: None, clauses: Vec::new() }
    }

    fn unknown() -> Self {
        let front = opened(vec![Text::empty()]);
        Self { back: Some(front.clone()), front, clauses: Vec::new() }
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
fn opened(texts: Vec<Text>) -> Vec<Text> {
    distinct(texts.into_iter().map(|text| Text { whole: false, ..text }).collect())
}

/// Whole texts with what follows (or precedes) them; the others as they are. None when that makes
/// too many.
fn lengthened(texts: &[Text], longer: impl Fn(&Text) -> Option<Vec<Text>>) -> Option<Vec<Text>> {
    let mut all = Vec::new();
    for text in texts {
        if text.whole {
            all.extend(longer(text)?);
        } else {
            all.push(text.clone());
        }
        if all.len() > TEXTS_MAX {
            return None;
        }
    }
    Some(distinct(all))
}

/// All of one side's texts beside all of the other's, unless they are too many.
fn pairs(left: &[Text], right: &[Text]) -> Option<Vec<Text>> {
    if left.len() * right.len() > TEXTS_MAX {
        return None;
    }
    let pair = |left: &Text| right.iter().map(|right| left.then(right)).collect::<Vec<_>>();
    Some(distinct(left.iter().flat_map(pair).collect()))
}

fn distinct(mut texts: Vec<Text>) -> Vec<Text> {
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Texts cut short enough on one side to be few.
fn cut(mut texts: Vec<Text>, side: Side) -> Vec<Text> {
    for length in (1..=LENGTH_MAX).rev() {
        for text in &mut texts {
            shorten(text, length, side);
        }
        texts = distinct(texts);
        if texts.len() <= TEXTS_MAX {
            return texts;
        }
    }
    opened(vec![Text::empty()])
}

/// Keeps the symbols on one side of a text.
fn shorten(text: &mut Text, length: usize, cut: Side) {
    let more = text.symbols.len().saturating_sub(length);
    if more > 0 {
        text.whole = false;
        match cut {
            Side::After => text.symbols.truncate(length),
            Side::Before => drop(text.symbols.drain(..more)),
        }
    }
}
