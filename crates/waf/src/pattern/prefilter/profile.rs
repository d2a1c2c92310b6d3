//! What a content's signature decides by itself.

use super::{
    super::{ByteSet, Clause, Edge, Requirement},
    LAYERS,
    alphabet::{self, LETTERS, Signature},
    grams,
};

/// How many signatures' decisions are kept.
const CACHE_LENGTH: usize = 256;
/// The symbol by which all letters are known here.
const LETTER: Signature = 1 << 1;

/// The decisions for one signature.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// `None` before the first.
    signature: Option<Signature>,
    /// A bit set of the rows all of whose classes are met; then one for each layer, of the rows whose
    /// clause is fulfilled by a class.
    decided: Box<[u64]>,
}

/// What each row asks of a signature.
#[derive(Debug)]
pub(super) struct Profiles {
    words: usize,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// One symbol of each of these.
    classes: Vec<Signature>,
    /// No symbol outside of these.
    every: Signature,
    /// Fulfils a layer by itself; all symbols where a layer has no clause.
    layers: [Signature; LAYERS],
    /// Without a requirement a row is never eligible.
    used: bool,
}

impl Profiles {
    pub(super) fn new(rows: &[Option<super::Row>], words: usize) -> Self {
        let row = |from: &Option<super::Row>| {
            let mut row =
                Row { classes: Vec::new(), every: u64::MAX, layers: [ALWAYS; LAYERS], used: false };
            let Some(from) = from else { return row };
            let requirement = &*from.requirement;
            row.used = true;
            row.every = with_letters_as_one(alphabet::signature(&requirement.every));
            let mut layers = row.layers.iter_mut();
            for clause in from.clauses() {
                let class = with_letters_as_one(bytes_of(requirement, clause));
                if clause.sequences.is_empty() {
                    row.classes.push(class);
                } else if let Some(layer) = layers.next() {
                    *layer = class;
                }
            }
            row
        };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        Self { words, rows }
    }

    /// Room for the decisions of several signatures.
    pub(super) fn cache(&self) -> Vec<Profile> {
        let decided = vec![0; self.words * (1 + LAYERS)].into_boxed_slice();
        vec![Profile { signature: None, decided }; CACHE_LENGTH]
    }

    /// Whether a row can be eligible for a content that has none but these symbols.
    pub(super) fn allows(&self, row: usize, symbols: Signature) -> bool {
        let symbols = with_letters_as_one(symbols);
        self.rows[row].classes.iter().all(|class| class & symbols != 0)
    }

    /// The decisions for a signature with letters as one, from the cache or made now.
    #[inline]
    pub(super) fn of<'a>(&self, signature: Signature, cache: &'a mut [Profile]) -> &'a [u64] {
        let profile = &mut cache[place(signature)];
        if profile.signature != Some(signature) {
            self.decide(signature, profile);
        }
        &profile.decided
    }

    #[cold]
    fn decide(&self, signature: Signature, profile: &mut Profile) {
        profile.signature = Some(signature);
        profile.decided.fill(0);
        self.decide_rows(0..self.rows.len(), signature, &mut profile.decided);
    }

    /// Decides about some of the rows only, in an empty `decided` laid out as that of a [`Profile`].
    pub(super) fn decide_rows(
        &self,
        rows: impl Iterator<Item = usize>,
        signature: Signature,
        decided: &mut [u64],
    ) {
        for at in rows {
            let row = &self.rows[at];
            let classes = row.classes.iter().all(|class| class & signature != 0);
            if !row.used || !classes || signature & !row.every != 0 {
                continue;
            }
            let (word, bit) = (at / 64, 1 << (at % 64));
            decided[word] |= bit;
            for (layer, &class) in row.layers.iter().enumerate() {
                // An empty content is beyond its edges, which sequences of nothing else ask for.
                if class == ALWAYS || class & signature != 0 || signature == 0 {
                    decided[(1 + layer) * self.words + word] |= bit;
                }
            }
        }
    }
}

/// Fulfilled even by an empty content: no clause.
const ALWAYS: Signature = u64::MAX;

/// The symbols one of which a content has when it fulfils a clause by other than a sequence that is
/// looked for.
fn bytes_of(requirement: &Requirement, clause: &Clause) -> Signature {
    let wide = clause.sequences.iter().filter(|sequence| {
        let place = |&number: &u16| alphabet::symbols_at(&requirement.places[usize::from(number)]);
        !grams::is_narrow(&sequence.0.iter().map(place).collect::<Vec<_>>())
    });
    let bytes = wide.map(|sequence| {
        // One of each of its places then, but of those that can be beyond the content.
        let places = sequence.0.iter().map(|&number| requirement.places[usize::from(number)]);
        let bytes = places.filter(|place| place.edge == Edge::Excluded).map(|place| place.bytes);
        bytes.min_by_key(ByteSet::len).map_or(ALWAYS, |bytes| alphabet::signature(&bytes))
    });
    bytes.fold(alphabet::signature(&clause.class), |all, some| all | some)
}

/// A signature in which any letter is all of them. A content with a letter of a class has "a letter",
/// and "a letter" is all that is asked of it then.
fn with_letters_as_one(signature: Signature) -> Signature {
    if signature == ALWAYS {
        return ALWAYS;
    }
    let letter = if signature & LETTERS == 0 { 0 } else { LETTER };
    signature & !LETTERS | letter
}

/// A signature's place in the cache.
#[inline]
fn place(signature: Signature) -> usize {
    // The golden ratio's bits spread what differs over the upper bits.
    let hash = signature.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(hash >> (64 - CACHE_LENGTH.ilog2())).unwrap_or(0)
}
