//! Text with macros, and the slots of `TX` variables.

use std::collections::HashMap;

use crate::variable::Variable;

/// Text whose macros are expanded when it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) pieces: Box<[Piece]>,
}

/// A stretch of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(Box<[u8]>),
    /// `%{tx.name}` with a name that has a slot.
    Slot(TxSlot),
    /// `%{VARIABLE.name}`; the first value of that name, or of the whole collection without one.
    Macro {
        variable: Variable,
        name: Option<Box<[u8]>>,
    },
}

impl Text {
    /// The text, if nothing in it needs a transaction.
    pub(crate) fn constant(&self) -> Option<&[u8]> {
        match &*self.pieces {
            [] => Some(b""),
            [Piece::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// The place of a `TX` variable that some rule names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct TxSlot(pub(crate) u16);

impl TxSlot {
    /// The slots of `TX:0` to `TX:9`, which captures fill.
    pub(crate) const CAPTURES: usize = 10;

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The `TX` variables that rules name, in lower case: names are the same in any case.
#[derive(Clone, Debug)]
pub(crate) struct TxSlots {
    names: Vec<Box<[u8]>>,
    slots: HashMap<Box<[u8]>, TxSlot>,
}

impl TxSlots {
    /// The captures only.
    pub(crate) fn new() -> Self {
        let mut slots = Self { names: Vec::new(), slots: HashMap::new() };
        for digit in b'0'..=b'9' {
            slots.assign(&[digit]);
        }
        slots
    }

    /// The slot of a name, new or known. `None` when there are 65,536 already.
    pub(crate) fn assign(&mut self, name: &[u8]) -> Option<TxSlot> {
        let name: Box<[u8]> = name.to_ascii_lowercase().into();
        if let Some(&slot) = self.slots.get(&name) {
            return Some(slot);
        }
        let slot = TxSlot(u16::try_from(self.names.len()).ok()?);
        self.names.push(name.clone());
        self.slots.insert(name, slot);
        Some(slot)
    }

    /// The slot of a name in lower case, if it has one.
    pub(crate) fn find(&self, name: &[u8]) -> Option<TxSlot> {
        self.slots.get(name).copied()
    }

    pub(crate) fn name(&self, slot: TxSlot) -> &[u8] {
        &self.names[slot.index()]
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
