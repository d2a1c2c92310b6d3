//! What a content must have so that a pattern can match it.

use regex_syntax::hir::Hir;

use super::ByteSet;

/// One way to fulfil a clause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alternative {
    /// The content has these bytes in a row, ASCII letters in either case; written in lower case.
    Literal(Box<[u8]>),
    /// The content has a byte of this set.
    Class(ByteSet),
}

/// Ways of which one is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// The ways. With none of them the clause is never fulfilled.
    pub alternatives: Vec<Alternative>,
}

/// What every content that matches has: all of it together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Fewest bytes.
    pub length_min: usize,
    /// Most bytes, for a pattern that must reach from the content's beginning to its end.
    pub length_max: Option<usize>,
    /// What the first byte is one of, for a pattern that must begin where the content does.
    pub first: ByteSet,
    /// What the last byte is one of, for a pattern that must end where the content does.
    pub last: ByteSet,
    /// What each byte is one of, for a pattern that must cover the content.
    pub every: ByteSet,
    /// Clauses, each of which must be fulfilled.
    pub clauses: Vec<Clause>,
}

impl Requirement {
    /// What every content meets.
    pub fn none() -> Self {
        Self {
            length_min: 0,
            length_max: None,
            first: ByteSet::ALL,
            last: ByteSet::ALL,
            every: ByteSet::ALL,
            clauses: Vec::new(),
        }
    }

    /// What a lowered pattern needs.
    pub(super) fn of(hir: &Hir) -> Self {
        let _ = hir;
        Self::none()
    }

    /// One of these phrases somewhere, in any case: `@pm`, `@pmFromFile`, and `@contains` with one.
    /// Phrases may be empty (then every content meets it).
    pub fn phrases<'a>(phrases: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut requirement = Self::none();
        let mut alternatives = Vec::new();
        let mut length_min = usize::MAX;
        for phrase in phrases {
            length_min = length_min.min(phrase.len());
            match phrase {
                [] => return requirement,
                [byte] => {
                    let mut set = ByteSet::NONE;
                    set.insert(byte.to_ascii_lowercase());
                    set.insert(byte.to_ascii_uppercase());
                    alternatives.push(Alternative::Class(set));
                }
                _ => alternatives.push(Alternative::Literal(phrase.to_ascii_lowercase().into())),
            }
        }
        requirement.length_min = if alternatives.is_empty() { 0 } else { length_min };
        requirement.clauses.push(Clause { alternatives });
        requirement
    }
}
