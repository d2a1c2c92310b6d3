//! The values of one transaction: what each variable holds.
//!
//! Values that stand before a phase begins are kept by variable, as numbers of contents. What rules
//! write while they run (`TX`) has slots, so that reading and writing one is an array access.

use hashbrown::HashMap;

use super::contents::ContentId;
use crate::program::{TxSlot, TxSlots};
use crate::variable::Variable;

/// A value with its name in a collection; scalars have the empty name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) name: ContentId,
    pub(crate) value: ContentId,
}

/// A value that a target stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) variable: Variable,
    pub(crate) name: ContentId,
    pub(crate) value: ContentId,
}

/// What the variables hold that do not change while a phase runs.
pub(crate) struct Values {
    of: Vec<Vec<Named>>,
    /// Changes whenever a value comes or goes, so that what was derived is known to be old.
    generation: u32,
}

impl Values {
    pub(crate) fn new() -> Self {
        Self { of: vec![Vec::new(); Variable::COUNT], generation: 1 }
    }

    pub(crate) fn clear(&mut self) {
        for values in &mut self.of {
            values.clear();
        }
        self.generation = self.generation.wrapping_add(1);
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn of(&self, variable: Variable) -> &[Named] {
        &self.of[variable.index()]
    }

    /// Adds a member to a collection.
    pub(crate) fn push(&mut self, variable: Variable, name: ContentId, value: ContentId) {
        self.of[variable.index()].push(Named { name, value });
        self.generation = self.generation.wrapping_add(1);
    }

    /// Gives a member of a collection another value.
    pub(crate) fn replace(&mut self, variable: Variable, at: usize, value: ContentId) {
        self.of[variable.index()][at].value = value;
        self.generation = self.generation.wrapping_add(1);
    }

    /// Sets a scalar.
    pub(crate) fn set(&mut self, variable: Variable, value: ContentId) {
        let values = &mut self.of[variable.index()];
        values.clear();
        values.push(Named { name: ContentId::EMPTY, value });
        self.generation = self.generation.wrapping_add(1);
    }
}

/// Where a collection's values are kept: some variables are views of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Values,
    Names,
}

impl View {
    /// What is shown of a value.
    pub(crate) fn of(self, named: Named) -> ContentId {
        match self {
            View::Values => named.value,
            View::Names => named.name,
        }
    }
}

/// The variables whose values make up this one, and what of them is shown.
pub(crate) fn sources(variable: Variable) -> (&'static [Variable], View) {
    use Variable as V;
    match variable {
        V::Args => (&[V::ArgsGet, V::ArgsPost], View::Values),
        V::ArgsNames => (&[V::ArgsGet, V::ArgsPost], View::Names),
        V::ArgsGetNames => (&[V::ArgsGet], View::Names),
        V::ArgsPostNames => (&[V::ArgsPost], View::Names),
        V::RequestHeadersNames => (&[V::RequestHeaders], View::Names),
        V::RequestCookiesNames => (&[V::RequestCookies], View::Names),
        V::ResponseHeadersNames => (&[V::ResponseHeaders], View::Names),
        V::FilesNames => (&[V::Files], View::Names),
        // One-element slices of each variable, so that the caller has one way to go.
        other => (std::slice::from_ref(&Variable::ALL[other.index()]), View::Values),
    }
}

/// The value of a `TX` variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum TxValue {
    #[default]
    Absent,
    Number(i64),
    /// Bytes of the transaction's own store.
    Bytes {
        start: u32,
        end: u32,
    },
}

/// The `TX` collection.
pub(crate) struct Tx {
    slots: Vec<TxValue>,
    /// Variables whose names came from macros: by name, in the order of their coming.
    others: Vec<(ContentId, TxValue)>,
    index: HashMap<ContentId, u32>,
    bytes: Vec<u8>,
}

/// What all `TX` values of a transaction may take together, in bytes; what is written beyond it is
/// written as empty. 16 MiB.
const TX_BYTES_MAX: usize = 16 << 20;

impl Tx {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), others: Vec::new(), index: HashMap::new(), bytes: Vec::new() }
    }

    pub(crate) fn clear(&mut self, slots: &TxSlots) {
        self.slots.clear();
        self.slots.resize(slots.len(), TxValue::Absent);
        self.others.clear();
        self.index.clear();
        self.bytes.clear();
        self.bytes.shrink_to(64 << 10);
    }

    pub(crate) fn slot(&self, slot: TxSlot) -> TxValue {
        self.slots[slot.index()]
    }

    pub(crate) fn set_slot(&mut self, slot: TxSlot, value: TxValue) {
        self.slots[slot.index()] = value;
    }

    /// The value under a lower-case name that has no slot.
    pub(crate) fn other(&self, name: ContentId) -> TxValue {
        self.index.get(&name).map_or(TxValue::Absent, |&at| self.others[at as usize].1)
    }

    pub(crate) fn set_other(&mut self, name: ContentId, value: TxValue) {
        if let Some(&at) = self.index.get(&name) {
            self.others[at as usize].1 = value;
            return;
        }
        let Ok(at) = u32::try_from(self.others.len()) else { return };
        self.others.push((name, value));
        self.index.insert(name, at);
    }

    /// Keeps bytes as a value.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> TxValue {
        let start = self.bytes.len();
        if start + bytes.len() > TX_BYTES_MAX {
            return TxValue::Bytes { start: 0, end: 0 };
        }
        self.bytes.extend_from_slice(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "TX_BYTES_MAX is below 2^32")]
        TxValue::Bytes { start: start as u32, end: self.bytes.len() as u32 }
    }

    /// The value as text, appended to `out`; nothing for an absent one.
    pub(crate) fn write(&self, value: TxValue, out: &mut Vec<u8>) {
        match value {
            TxValue::Absent => {}
            TxValue::Number(number) => {
                let mut buffer = itoa::Buffer::new();
                out.extend_from_slice(buffer.format(number).as_bytes());
            }
            TxValue::Bytes { start, end } => {
                out.extend_from_slice(&self.bytes[start as usize..end as usize]);
            }
        }
    }

    /// The value as a number: what its text begins with, 0 if it is none.
    pub(crate) fn number(&self, value: TxValue) -> i64 {
        match value {
            TxValue::Absent => 0,
            TxValue::Number(number) => number,
            TxValue::Bytes { start, end } => {
                crate::operator::number::parse(&self.bytes[start as usize..end as usize])
            }
        }
    }

    /// The variables without slots, in the order of their coming, removed ones too.
    pub(crate) fn others(&self) -> &[(ContentId, TxValue)] {
        &self.others
    }
}
