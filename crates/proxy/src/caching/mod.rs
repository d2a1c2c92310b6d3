//! What all workers share of the cache: stored responses, the fills under way, and what was purged.
//!
//! What may be stored and served is decided by `tidegate_cache`; the stops that ask are in `request`:
//! `look_up` finds or fetches, `fill` is the way of a fetch whose response is stored, `serve` sends
//! what was found. Here is what lies between: the store with its keys and variants ([`Cache`]), what
//! it holds ([`object`]), and the client that a fill's request sees ([`Filling`]).

mod filling;
mod keys;
mod object;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::rand;
use tidegate_cache::fill::Flights;
use tidegate_cache::hash::Seed;
use tidegate_cache::status::CacheName;
use tidegate_cache::store::Key;
use tidegate_cache::store::memory::Memory;
use tidegate_cache::store::purge::{self, Purges, Standing};
use tidegate_cache::time::Time;
use tidegate_cache::vary::{self, Vary, VarySet};
use tidegate_http::Headers;
use tidegate_telemetry::metrics::CacheTotals;

pub(crate) use filling::{Filling, Order};
pub(crate) use keys::Keys;
pub(crate) use object::{Arrived, Final, Head, Kept, Named, Object};

use crate::request::Refusal;
use crate::settings;

/// How caches of this kind call themselves.
const NAME: &str = "tidegate";

/// What entries without a body are taken to weigh.
const NOTE_BYTES: u64 = 64;

/// The cache of a process.
pub struct Cache {
    name: CacheName,
    seed: Seed,
    memory: Memory<Kept>,
    flights: Arc<Flights<Arrived, Refusal>>,
    purges: Purges,
    stored: AtomicU64,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("memory", &self.memory.stats()).finish_non_exhaustive()
    }
}

/// What is found under a key.
pub(crate) enum Found {
    /// A response that the request selects.
    Object(Arc<Object>),
    /// Responses, but none that the request selects.
    OtherVariants,
    /// The response is not to be stored.
    Pass,
    /// Nothing; so often it was asked for before.
    Nothing { asked: u32 },
}

impl Cache {
    /// An empty one. Fails if the system gives no random bytes.
    pub fn new(settings: settings::Cache) -> std::io::Result<Self> {
        let mut seed = [0; 16];
        rand::fill(&mut seed).map_err(|_| std::io::Error::other("no random bytes"))?;
        let name = CacheName::new(NAME).map_err(|_| std::io::Error::other("a bad name"))?;
        Ok(Self {
            name,
            seed: Seed::new(seed),
            memory: Memory::new(settings.memory_bytes_max),
            flights: Arc::default(),
            purges: Purges::new(purge::Settings::default()),
            stored: AtomicU64::new(0),
        })
    }

    /// Takes other settings. Takes as long as what goes takes: not for a worker's loop.
    pub fn adopt(&self, settings: settings::Cache) {
        if self.memory.stats().bytes_max != settings.memory_bytes_max {
            self.memory.resize(settings.memory_bytes_max);
        }
    }

    /// What it holds and has done.
    pub fn totals(&self) -> CacheTotals {
        let memory = self.memory.stats();
        CacheTotals {
            entries: memory.entries,
            bytes: memory.bytes,
            bytes_max: memory.bytes_max,
            fills: self.flights.len() as u64,
            stored: self.stored.load(Ordering::Relaxed),
            evicted: memory.evicted,
            purges: self.purges.stats().sequence.number(),
        }
    }

    /// How it calls itself in `Cache-Status`.
    pub(crate) fn name(&self) -> &CacheName {
        &self.name
    }

    pub(crate) fn seed(&self) -> &Seed {
        &self.seed
    }

    pub(crate) fn flights(&self) -> &Arc<Flights<Arrived, Refusal>> {
        &self.flights
    }

    pub(crate) fn purges(&self) -> &Purges {
        &self.purges
    }

    /// The largest body that is kept in memory.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        // Some of it is the head's.
        self.memory.value_bytes_max() / 8 * 7
    }

    /// What is there for a request, and which variant of the key it is looking for. `text` is a place
    /// to work in.
    pub(crate) fn find(
        &self,
        key: &Key<'_>,
        request: &Headers,
        now: Time,
        text: &mut Vec<u8>,
    ) -> (Found, u64) {
        let found = match self.memory.get(key) {
            Some(Kept::Pass(until)) if now < until => Found::Pass,
            None | Some(Kept::Pass(_)) => Found::Nothing { asked: 0 },
            Some(Kept::Asked(asked)) => Found::Nothing { asked },
            Some(Kept::Object(object)) => {
                let found = self.standing(object, key, now);
                found.map_or(Found::Nothing { asked: 0 }, Found::Object)
            }
            Some(Kept::Varies(set)) => {
                let mut first = None;
                let variants = set.variants(request, &self.seed, text);
                let objects = variants.filter_map(|variant| {
                    first.get_or_insert(variant);
                    let key = key.variant(variant);
                    match self.memory.get(&key) {
                        Some(Kept::Object(object)) => self.standing(object, &key, now),
                        _ => None,
                    }
                });
                let found = vary::most_recent(objects, |object| &object.stored);
                let found = found.map_or(Found::OtherVariants, Found::Object);
                return (found, first.unwrap_or(0));
            }
        };
        (found, 0)
    }

    /// The variant of a key that a request looks for, as far as is known what its responses vary by.
    pub(crate) fn variant(&self, key: &Key<'_>, request: &Headers, text: &mut Vec<u8>) -> u64 {
        match self.memory.peek(key) {
            Some(Kept::Varies(set)) => set.variants(request, &self.seed, text).next().unwrap_or(0),
            _ => 0,
        }
    }

    /// The object as far as purges have left it.
    fn standing(&self, object: Arc<Object>, key: &Key<'_>, now: Time) -> Option<Arc<Object>> {
        match self.purges.standing(&object.names(), &object.mark) {
            Standing::Stale { since } if object.stored.is_fresh(now) => {
                let mut stored = object.stored.clone();
                stored.expire(since.min(now));
                // It stays what it was stored as: asked again, it is as stale again.
                let stale =
                    object.freshened(object.headers.clone(), stored, object.mark.sequence());
                Some(Arc::new(stale))
            }
            Standing::Current | Standing::Stale { .. } => Some(object),
            Standing::Gone => {
                let is_it =
                    |kept: &Kept| matches!(kept, Kept::Object(it) if Arc::ptr_eq(it, &object));
                drop(self.memory.remove_if(key, is_it));
                None
            }
        }
    }

    /// Stores a response under its key; `varies` is by what of which request.
    pub(crate) fn store(
        &self,
        key: &Key<'_>,
        varies: Option<&(Vary, Headers)>,
        object: Arc<Object>,
    ) {
        let weight = object.weight();
        let kept = Kept::Object(object);
        let (constant, nothing) = (Vary::default(), Headers::new());
        let (vary, request) =
            varies.map_or((&constant, &nothing), |(vary, request)| (vary, request));
        let set = match self.memory.peek(key) {
            Some(Kept::Varies(set)) => Some(set.with(vary).map_or(set, Arc::new)),
            _ if varies.is_none() => None,
            _ => Some(Arc::new(VarySet::new(vary.clone()))),
        };
        if let Some(set) = set {
            let variant = vary.variant(request, &self.seed, &mut Vec::new());
            drop(self.memory.insert(&key.variant(variant), kept, weight));
            drop(self.memory.insert(key, Kept::Varies(set), NOTE_BYTES));
        } else {
            drop(self.memory.insert(key, kept, weight));
        }
        self.stored.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a freshened response in the place of the one before, if that is still there.
    pub(crate) fn refresh(
        &self,
        key: &Key<'_>,
        request: &Headers,
        before: &Object,
        object: &Arc<Object>,
    ) {
        let weight = object.weight();
        let is_it = |kept: &Kept| match kept {
            Kept::Object(kept) => Arc::ptr_eq(&kept.body, &before.body),
            Kept::Varies(_) | Kept::Pass(_) | Kept::Asked(_) => false,
        };
        let kept = || Kept::Object(Arc::clone(object));
        let Some(Kept::Varies(set)) = self.memory.peek(key) else {
            drop(self.memory.replace(key, kept(), weight, is_it));
            return;
        };
        for variant in set.variants(request, &self.seed, &mut Vec::new()) {
            if self.memory.replace(&key.variant(variant), kept(), weight, is_it).is_ok() {
                return;
            }
        }
    }

    /// Remembers how often a key was asked for that nothing is stored for.
    pub(crate) fn note_asked(&self, key: &Key<'_>, asked: u32) {
        drop(self.memory.insert(key, Kept::Asked(asked), NOTE_BYTES));
    }

    /// Remembers that the response of a key is not to be stored.
    pub(crate) fn note_pass(&self, key: &Key<'_>, until: Time) {
        // What is stored under it may still serve when the server fails.
        if !matches!(self.memory.peek(key), Some(Kept::Object(_) | Kept::Varies(_))) {
            drop(self.memory.insert(key, Kept::Pass(until), NOTE_BYTES));
        }
    }

    /// Forgets what is stored under a key, all variants with it.
    pub(crate) fn forget(&self, key: &Key<'_>) {
        drop(self.memory.remove(key));
    }
}
