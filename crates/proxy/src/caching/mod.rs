//! What all workers share of the cache: stored responses, the fills under way, and what was purged.
//!
//! What may be stored and served is decided by `tidegate_cache`; the stops that ask are in `request`:
//! `look_up` finds or fetches, `fill` is the way of a fetch whose response is stored, `serve` sends
//! what was found. Here is what lies between: the store with its keys and variants ([`Cache`]), what
//! it holds ([`object`]), and the client that a fill's request sees ([`Filling`]).

mod disk;
mod filling;
pub(crate) mod keys;
mod object;
mod purging;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aws_lc_rs::rand;
use tidegate_cache::fill::Flights;
use tidegate_cache::hash::Seed;
use tidegate_cache::status::CacheName;
use tidegate_cache::store::Key;
use tidegate_cache::store::disk::{Disk, State, Stats as DiskStats};
use tidegate_cache::store::memory::Memory;
use tidegate_cache::store::purge::{self, Purge, Purges, Scope, Standing};
use tidegate_cache::time::Time;
use tidegate_cache::vary::{self, Vary, VarySet};
use tidegate_http::Headers;
use tidegate_telemetry::clock;
use tidegate_telemetry::metrics::CacheTotals;

pub(crate) use filling::{Filling, Order};
pub(crate) use keys::Keys;
pub(crate) use object::{Arrived, Final, Head, Kept, Named, Object};
pub use purging::{NotPurged, What};
pub use tidegate_cache::store::purge::Force;

use crate::request::Refusal;
use crate::settings;

/// How caches of this kind call themselves.
const NAME: &str = "tidegate";

/// The part of the tier's memory that fills under way may take besides: one in so many. Beyond it,
/// responses pass without being stored.
const FILLS_PART: u64 = 2;

/// What entries without a body are taken to weigh.
const NOTE_BYTES: u64 = 64;

/// Counters of changes. Keys share them: what is being fetched for one is not stored if another one
/// with the same counter changes meanwhile.
const CHANGES: usize = 4096;

/// The cache of a process.
pub struct Cache {
    name: CacheName,
    seed: Seed,
    memory: Memory<Kept>,
    memory_bytes_max: AtomicU64,
    disk: Option<Disk>,
    flights: Arc<Flights<Arrived, Refusal>>,
    purges: Purges,
    stored: AtomicU64,
    /// Bytes of bodies that fills under way keep.
    filling: AtomicU64,
    /// Whether the disk tier is left to another process.
    leaves: AtomicBool,
    /// How often what lies under a key was forgotten, as it had changed.
    changes: Box<[AtomicU64]>,
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
    /// Nothing in memory, but perhaps on disk.
    OnDisk,
    /// Nothing; so often it was asked for before.
    Nothing { asked: u32 },
}

/// Where is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In memory; what may be on disk is said.
    Tiers,
    /// In memory alone.
    Memory,
}

impl Cache {
    /// One with nothing in memory, and on disk what is there. Fails if the system gives no random bytes
    /// or the directory cannot be used.
    pub fn open(settings: &settings::Cache) -> io::Result<Self> {
        let mut seed = [0; 16];
        rand::fill(&mut seed).map_err(|_| io::Error::other("no random bytes"))?;
        let mut seed = Seed::new(seed);
        let name = CacheName::new(NAME).map_err(|_| io::Error::other("a bad name"))?;
        let mut purges = Purges::new(purge::Settings::default());
        let mut disk = None;
        if let Some(on_disk) = &settings.disk {
            let (opened, found) = open_disk(on_disk, &seed).map_err(io::Error::other)?;
            seed = *opened.seed();
            let journal = on_disk.directory.join("purges");
            let kept = Purges::open(&journal, &seed, purge::Settings::default());
            let (kept, state) = kept.map_err(io::Error::other)?;
            if state == purge::Found::Damaged {
                tracing::warn!("the journal of purges was damaged: what lies on disk is not used");
            }
            tracing::info!(objects = found.entries, segments = found.segments, "cache on disk");
            (disk, purges) = (Some(opened), kept);
        }
        Ok(Self {
            name,
            seed,
            memory: Memory::new(settings.memory_bytes_max),
            memory_bytes_max: AtomicU64::new(settings.memory_bytes_max),
            disk,
            flights: Arc::default(),
            purges,
            stored: AtomicU64::new(0),
            filling: AtomicU64::new(0),
            leaves: AtomicBool::new(false),
            changes: (0..CHANGES).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Takes other settings; the directory stays. Takes as long as what goes takes: not for a worker's
    /// loop.
    pub fn adopt(&self, settings: &settings::Cache) {
        let bytes_max = settings.memory_bytes_max;
        if self.memory_bytes_max.swap(bytes_max, Ordering::Relaxed) != bytes_max {
            self.memory.resize(bytes_max);
        }
        if let (Some(disk), Some(on_disk)) = (&self.disk, &settings.disk)
            && let Err(fault) = disk.resize(on_disk.bytes_max)
        {
            tracing::warn!(%fault, "the size of the cache on disk stays as it is");
        }
    }

    /// Takes the disk tier over from a process that has left it, and learns what that one purged. Waits
    /// for the disk.
    pub fn tend(&self, now: Time) {
        let Some(disk) = &self.disk else { return };
        if disk.stats().state == State::ReadOnly && !self.leaves.load(Ordering::Relaxed) {
            match disk.take_over(now) {
                Ok(Some(found)) => {
                    let objects = found.entries;
                    tracing::info!(objects, "the cache on disk is this process' own from now on");
                }
                Ok(None) => {}
                Err(fault) => tracing::warn!(%fault, "the cache on disk cannot be written"),
            }
        }
        if let Err(fault) = self.purges.refresh() {
            tracing::warn!(%fault, "purges of another process cannot be read");
        }
    }

    /// Writes what waits to be written, and leaves the disk tier to the next process.
    pub fn let_go(&self) {
        self.leaves.store(true, Ordering::Relaxed);
        if let Some(disk) = &self.disk {
            disk.let_go();
        }
    }

    /// What the disk tier holds, if there is one.
    pub fn disk_stats(&self) -> Option<DiskStats> {
        self.disk.as_ref().map(Disk::stats)
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

    /// Counts bytes that a fill is going to keep, and says whether there is room for them. They count in
    /// either case.
    fn reserve(&self, bytes: u64) -> bool {
        let before = self.filling.fetch_add(bytes, Ordering::Relaxed);
        before + bytes <= self.memory_bytes_max.load(Ordering::Relaxed) / FILLS_PART
    }

    /// A fill keeps so many bytes no longer, or they count as stored.
    fn give_back(&self, bytes: u64) {
        self.filling.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What is there for a request, and which variant of the key it is looking for. `text` is a place
    /// to work in.
    pub(crate) fn find(
        &self,
        key: &Key<'_>,
        request: &Headers,
        now: Time,
        text: &mut Vec<u8>,
        reach: Reach,
    ) -> (Found, u64) {
        let may_be_on_disk = |key: &Key<'_>| {
            let disk = self.disk.as_ref().filter(|_| reach == Reach::Tiers);
            disk.is_some_and(|disk| disk.look_up(key, now).is_some())
        };
        let found = match self.memory.get(key) {
            Some(Kept::Pass(until)) if now < until => Found::Pass,
            None if may_be_on_disk(key) => Found::OnDisk,
            None | Some(Kept::Pass(_)) => Found::Nothing { asked: 0 },
            Some(Kept::Asked(asked)) => Found::Nothing { asked },
            Some(Kept::Object(object)) => {
                let found = self.standing(object, key, now);
                found.map_or(Found::Nothing { asked: 0 }, Found::Object)
            }
            Some(Kept::Varies(set)) => {
                let (mut first, mut on_disk) = (None, false);
                let variants = set.variants(request, &self.seed, text);
                let objects = variants.filter_map(|variant| {
                    first.get_or_insert(variant);
                    let key = key.variant(variant);
                    if let Some(Kept::Object(object)) = self.memory.get(&key) {
                        return self.standing(object, &key, now);
                    }
                    on_disk |= may_be_on_disk(&key);
                    None
                });
                let found = vary::most_recent(objects, |object| &object.stored);
                let found = match found {
                    Some(object) => Found::Object(object),
                    None if on_disk => Found::OnDisk,
                    None => Found::OtherVariants,
                };
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

    /// Brings what a request may select from disk into memory. Waits for the disk.
    pub(crate) fn bring_back(&self, text: &[u8], request: &Headers, now: Time) {
        let Some(disk) = &self.disk else { return };
        let key = Key::new(text, &self.seed);
        let known = self.memory.peek(&key);
        let found = known.or_else(|| {
            let kept = disk::read(disk, &key, now)?;
            self.hold(&key, kept.clone());
            Some(kept)
        });
        if let Some(Kept::Varies(set)) = found {
            for variant in set.variants(request, &self.seed, &mut Vec::new()) {
                let key = key.variant(variant);
                if self.memory.peek(&key).is_none()
                    && let Some(kept) = disk::read(disk, &key, now)
                {
                    self.hold(&key, kept);
                }
            }
        }
    }

    /// Puts into memory what came from disk.
    fn hold(&self, key: &Key<'_>, kept: Kept) {
        let weight = match &kept {
            Kept::Object(object) => object.weight(),
            Kept::Varies(_) | Kept::Pass(_) | Kept::Asked(_) => NOTE_BYTES,
        };
        drop(self.memory.insert(key, kept, weight));
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

    /// Stores a response under its key; `varies` is by what of which request, and `change` is what
    /// [`Cache::change`] said before the server was asked: what has changed since is not stored.
    pub(crate) fn store(
        self: &Arc<Self>,
        key: &Key<'_>,
        varies: Option<&(Vary, Headers)>,
        object: Arc<Object>,
        life: Life,
        change: u64,
    ) {
        if self.change(key) != change {
            return;
        }
        let (weight, url) = (object.weight(), object.named.url);
        let (constant, nothing) = (Vary::default(), Headers::new());
        let (vary, request) =
            varies.map_or((&constant, &nothing), |(vary, request)| (vary, request));
        let set = match self.memory.peek(key) {
            Some(Kept::Varies(set)) => Some(set.with(vary).map_or(set, Arc::new)),
            _ if varies.is_none() => None,
            _ => Some(Arc::new(VarySet::new(vary.clone()))),
        };
        let variant = match &set {
            Some(_) => key.variant(vary.variant(request, &self.seed, &mut Vec::new())),
            None => *key,
        };
        self.write(&variant, &object, life);
        drop(self.memory.insert(&variant, Kept::Object(object), weight));
        if let Some(set) = set {
            if let Some(disk) = &self.disk {
                disk::put_varies(disk, key, &set, Time::NEVER, life.now);
            }
            drop(self.memory.insert(key, Kept::Varies(set), NOTE_BYTES));
        }
        self.stored.fetch_add(1, Ordering::Relaxed);
        // Looked at once more: who forgets it counts first, and this may have come in between.
        if self.change(key) != change {
            self.discard(key, url);
        }
    }

    /// Has a response written to disk, if there is one.
    fn write(&self, key: &Key<'_>, object: &Object, life: Life) {
        if let Some(disk) = &self.disk {
            disk::put_object(disk, key, object, life.expires, life.now);
        }
    }

    /// Puts a freshened response in the place of the one before, if that is still there.
    pub(crate) fn refresh(
        &self,
        key: &Key<'_>,
        request: &Headers,
        before: &Object,
        object: &Arc<Object>,
        life: Life,
    ) {
        let weight = object.weight();
        let is_it = |kept: &Kept| match kept {
            Kept::Object(kept) => Arc::ptr_eq(&kept.body, &before.body),
            Kept::Varies(_) | Kept::Pass(_) | Kept::Asked(_) => false,
        };
        let kept = || Kept::Object(Arc::clone(object));
        let Some(Kept::Varies(set)) = self.memory.peek(key) else {
            if self.memory.replace(key, kept(), weight, is_it).is_ok() {
                self.write(key, object, life);
            }
            return;
        };
        for variant in set.variants(request, &self.seed, &mut Vec::new()) {
            let key = key.variant(variant);
            if self.memory.replace(&key, kept(), weight, is_it).is_ok() {
                self.write(&key, object, life);
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

    /// Forgets what is stored under a key, all variants with it, and what is being fetched for it:
    /// that may be from before the change. `url` is the hash of its URL.
    pub(crate) fn forget(self: &Arc<Self>, key: &Key<'_>, url: u64) {
        self.counter(key).fetch_add(1, Ordering::SeqCst);
        self.discard(key, url);
    }

    fn discard(self: &Arc<Self>, key: &Key<'_>, url: u64) {
        let now = now();
        let on_disk = self.disk.as_ref().is_some_and(|disk| disk.look_up(key, now).is_some());
        match self.memory.remove(key) {
            Some(Kept::Object(_)) => {
                if let Some(disk) = &self.disk {
                    disk.remove(key, now);
                }
            }
            // Variants lie under keys that are not known here.
            Some(Kept::Varies(_)) => self.purge_url(url, now),
            _ if on_disk => self.purge_url(url, now),
            None | Some(Kept::Pass(_) | Kept::Asked(_)) => {}
        }
    }

    fn purge_url(self: &Arc<Self>, url: u64, now: Time) {
        let purge = move |cache: &Self| {
            let purge = Purge { scope: Scope::Url(url), force: Force::Hard };
            if let Err(fault) = cache.purges.purge(&[purge], now) {
                tracing::warn!(%fault, "what a request has changed may be there after a restart");
            }
        };
        if self.disk.is_none() {
            return purge(self);
        }
        // It waits for the disk. A fetch that begins meanwhile may be purged with the rest.
        let cache = Arc::clone(self);
        tokio::task::spawn_blocking(move || purge(&cache));
    }

    /// How often a key was forgotten.
    pub(crate) fn change(&self, key: &Key<'_>) -> u64 {
        self.counter(key).load(Ordering::SeqCst)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the remainder is less than the counters")]
    fn counter(&self, key: &Key<'_>) -> &AtomicU64 {
        // The key itself: its variants change with it.
        &self.changes[(key.variant(0).hash() % CHANGES as u64) as usize]
    }
}

fn now() -> Time {
    Time::from_millis(i64::try_from(clock::unix_millis()).unwrap_or(i64::MAX))
}

/// Opens the disk tier.
fn open_disk(
    settings: &settings::CacheDisk,
    fresh: &Seed,
) -> Result<(Disk, tidegate_cache::store::disk::Loaded), tidegate_cache::store::disk::Fault> {
    let bounds = tidegate_cache::store::disk::Settings::for_bytes(settings.bytes_max);
    Disk::open(&settings.directory, fresh, bounds, now())
}

/// How long something is of use, for the disk tier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) now: Time,
    /// Beyond freshness and every grace.
    pub(crate) expires: Time,
}
