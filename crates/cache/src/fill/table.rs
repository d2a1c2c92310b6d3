//! Which fills are under way: one for each key.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::{End, Lock, Rank, Reader, Retention, Shared, Sink, State};
use crate::store::Key;

const SHARDS: usize = 64;

/// The fills under way.
#[derive(Debug)]
pub struct Flights<H, E> {
    shards: Box<[Lock<Shard<H, E>>]>,
}

/// By the hash of the key: that it is secret makes two keys with one a curiosity, and then the later
/// fill takes the place of the earlier one.
type Shard<H, E> = HashMap<u64, Flight<H, E>>;

#[derive(Debug)]
struct Flight<H, E> {
    text: Box<[u8]>,
    variant: u64,
    shared: Weak<Shared<H, E>>,
}

impl<H, E> Flight<H, E> {
    fn of(&self, key: &Key<'_>) -> Option<Arc<Shared<H, E>>> {
        let is_it = self.variant == key.variant_hash() && *self.text == *key.bytes();
        if is_it { self.shared.upgrade() } else { None }
    }
}

/// Whose fill it is.
#[derive(Debug)]
pub enum Begin<H, E> {
    /// The caller's: it has to fetch. Others find the fill until the sink is dropped.
    Lead(Sink<H, E>, Reader<H, E>),
    /// Another's, to read along.
    Join(Reader<H, E>),
}

impl<H, E> Default for Flights<H, E> {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Lock::default()).collect() }
    }
}

impl<H: Clone, E: Clone> Flights<H, E> {
    /// Joins the fill of this key, or begins it; `lost` is what readers are told if its sink is
    /// dropped before its end.
    pub fn begin(self: &Arc<Self>, key: &Key<'_>, lost: E) -> Begin<H, E> {
        let mut shard = self.shard(key.hash()).lock();
        if let Some(shared) = shard.get(&key.hash()).and_then(|flight| flight.of(key))
            && shared.is_open()
        {
            return Begin::Join(Reader::join(&shared, Rank::Later));
        }
        let shared = Arc::new(Shared { state: Lock::default() });
        let (text, variant) = (key.bytes().into(), key.variant_hash());
        shard.insert(key.hash(), Flight { text, variant, shared: Arc::downgrade(&shared) });
        let reader = Reader::join(&shared, Rank::First);
        let listed = Listed { flights: Arc::clone(self), hash: key.hash() };
        Begin::Lead(Sink::new(shared, Some(listed), lost), reader)
    }

    /// Whether a fill of this key is under way.
    pub fn is_under_way(&self, key: &Key<'_>) -> bool {
        let shard = self.shard(key.hash()).lock();
        shard.get(&key.hash()).and_then(|flight| flight.of(key)).is_some_and(|it| it.is_open())
    }

    /// Fills under way.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<H, E> Flights<H, E> {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is less than the shards")]
    fn shard(&self, hash: u64) -> &Lock<Shard<H, E>> {
        &self.shards[(hash % SHARDS as u64) as usize]
    }
}

/// A fill's entry in the table, as its sink holds it.
#[derive(Debug)]
pub(super) struct Listed<H, E> {
    flights: Arc<Flights<H, E>>,
    hash: u64,
}

impl<H, E> Listed<H, E> {
    /// Takes the entry out, unless another fill has taken its place.
    pub(super) fn remove(&self, shared: &Arc<Shared<H, E>>) {
        let mut shard = self.flights.shard(self.hash).lock();
        let is_it = |found: &Flight<H, E>| found.shared.as_ptr() == Arc::as_ptr(shared);
        if shard.get(&self.hash).is_some_and(is_it) {
            shard.remove(&self.hash);
        }
    }
}

impl<H, E> Shared<H, E> {
    /// Whether one more may read along from the beginning.
    fn is_open(&self) -> bool {
        let state: &State<H, E> = &self.state.lock();
        state.retention == Retention::All && !matches!(state.end, Some(End::Failed(_)))
    }
}
