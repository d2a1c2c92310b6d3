//! The store itself: how variables are read, written and forgotten.
//!
//! What changes a variable's cell, makes a slot or drops one happens under the lock of its record's
//! shard. Reading and incrementing a number that is there take no lock. Writes clear away a little
//! of what has expired as they go; a full store gives up what would expire soonest.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::address::Record;
use super::agenda::{Lock, Shards};
use super::cell::{Cell, Holds, Number, Plain};
use super::clearing::Purge;
use super::durable::Unwritten;
use super::feed::{Event, Feed, Source};
use super::index::Index;
use super::slot::{Addressed, Known, Place, Slot};
use super::value::Value;
use super::writing::Writing;
use super::{Bytes, ENTRY_BYTES, Lifetime, RECORD_BYTES, Refused, Settings, Stamp};

#[derive(Debug)]
pub(super) struct Store {
    pub(super) settings: Settings,
    pub(super) index: Index,
    pub(super) shards: Shards,
    pub(super) feed: Arc<Feed>,
    /// What waits to be written to disk, if there is one.
    pub(super) unwritten: Option<Unwritten>,
    pub(super) entries: AtomicUsize,
    pub(super) bytes: AtomicUsize,
    /// How long a new record is kept after its last write, in seconds.
    pub(super) timeout_s: AtomicU32,
    pub(super) expired: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Held during a bulk load: one at a time.
    pub(super) loading: Lock<()>,
    next_id: AtomicU64,
}

impl Store {
    pub(super) fn new(settings: Settings, unwritten: Option<Unwritten>) -> Self {
        Self {
            timeout_s: AtomicU32::new(settings.timeout_s),
            settings,
            index: Index::new(),
            shards: Shards::new(),
            feed: Arc::default(),
            unwritten,
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            expired: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            loading: Lock::default(),
            next_id: AtomicU64::new(1),
        }
    }

    /// How long a record that begins now is kept after its last write, in seconds.
    pub(super) fn timeout_s(&self) -> u32 {
        self.timeout_s.load(Ordering::Relaxed)
    }

    pub(super) fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Numbers up to `id` are given.
    pub(super) fn ids_given(&self, id: u64) {
        self.next_id.fetch_max(id.saturating_add(1), Ordering::Relaxed);
    }

    /// What a variable of this size costs, record included.
    pub(super) fn cost(place: Place<'_>, value_bytes: usize) -> usize {
        let heap = |length| Bytes::heap_bytes(length);
        ENTRY_BYTES
            + RECORD_BYTES
            + heap(place.record.key.len())
            + heap(place.name.len())
            + heap(value_bytes)
    }

    pub(super) fn check(&self, place: Place<'_>, value_bytes: usize) -> Result<(), Refused> {
        let settings = &self.settings;
        let refused = if place.record.key.len() > settings.key_bytes_max {
            Refused::KeyTooLong
        } else if place.name.len() > settings.name_bytes_max {
            Refused::NameTooLong
        } else if value_bytes > settings.value_bytes_max {
            Refused::ValueTooLong
        } else if Self::cost(place, value_bytes) > settings.bytes_max || settings.entries_max == 0 {
            Refused::NoRoom
        } else {
            return Ok(());
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(refused)
    }

    pub(super) fn get<R>(
        &self,
        place: Place<'_>,
        now_ms: u64,
        visit: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        let cells = self.index.cells();
        let (slot, cell) = cells.get_key_value(&place)?;
        living(&slot.0, cell, now_ms).and_then(Plain::value).map(visit)
    }

    pub(super) fn look_up<R>(
        &self,
        known: &Known<'_>,
        now_ms: u64,
        visit: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        let cells = self.index.cells();
        let (slot, cell) = cells.get_key_value(known)?;
        living(&slot.0, cell, now_ms).and_then(Plain::value).map(visit)
    }

    /// Visits slots with what they hold, in order from `start` on, until `visit` breaks.
    pub(super) fn walk(
        &self,
        start: Place<'_>,
        now_ms: u64,
        mut visit: impl FnMut(&Arc<Slot>, Option<&Plain>) -> ControlFlow<()>,
    ) {
        let cells = self.index.cells();
        self.index.walk(start, |slot| {
            let plain = cells.get(&slot.place()).and_then(|cell| living(slot, cell, now_ms));
            visit(slot, plain)
        });
    }

    /// Whether a record has a variable.
    pub(super) fn lives(&self, record: Record<'_>, now_ms: u64) -> bool {
        let mut lives = false;
        self.walk(Place { record, name: b"" }, now_ms, |slot, plain| {
            lives = slot.kept.record() == record && plain.and_then(Plain::value).is_some();
            if lives || slot.kept.record() != record {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        lives
    }

    pub(super) fn set(&self, place: Place<'_>, value: &[u8], now_ms: u64) -> Result<(), Refused> {
        self.check(place, value.len())?;
        let value = Value::of(value);
        self.retry(now_ms, || {
            let mut writing = Writing::begin(self, place, now_ms);
            let stamp = Stamp::after(writing.base(), now_ms, self.settings.origin);
            let holds = Holds::of(value, now_ms);
            let plain = match writing.seen() {
                Some(seen) => seen.with(stamp, holds),
                None => Plain::new(stamp, Lifetime::Record, holds),
            };
            let event = plain.event();
            writing.put(plain, Source::Local, event)
        })
    }

    /// Adds in place, without a lock, if there is a number that lives.
    fn add_in_place(&self, place: Place<'_>, delta: i64, now_ms: u64) -> Option<i64> {
        let cells = self.index.cells();
        let (slot, cell) = cells.get_key_value(&place)?;
        let slot = &slot.0;
        let plain = living(slot, cell, now_ms)?;
        if now_ms >= slot.kept.due_ms() {
            // It lives longer than its record did. What went with the record has to be cleared away
            // before a write gives the record a new term.
            return None;
        }
        let Holds::Number(number) = &plain.holds else { return None };
        let (was, is) = number.update(|was| was.saturating_add(delta))?;
        slot.touch(now_ms);
        self.wrote(slot, now_ms, Source::Local, || Event::Added {
            delta: is - was,
            sum: is,
            onto: plain.stamp,
        });
        Some(is)
    }

    pub(super) fn add(&self, place: Place<'_>, delta: i64, now_ms: u64) -> Result<i64, Refused> {
        if let Some(sum) = self.add_in_place(place, delta, now_ms) {
            return Ok(sum);
        }
        self.check(place, 0)?;
        let add = |was: i64| was.saturating_add(delta);
        self.retry(now_ms, || {
            let mut writing = Writing::begin(self, place, now_ms);
            let onto = writing.base();
            // Another may have made it meanwhile; nobody can freeze it while the lock is held.
            let changed = writing.number().and_then(|number| number.update(add));
            if let Some((was, sum)) = changed {
                writing.touched(Source::Local, Event::Added { delta: sum - was, sum, onto });
                return Ok(sum);
            }
            let seen = writing.seen();
            let was = seen.and_then(Plain::value).map_or(0, |value| value.number());
            let number = Holds::Number(Number::new(add(was), now_ms));
            let plain = match seen {
                Some(seen) => seen.with(onto, number),
                None => Plain::new(onto, Lifetime::Record, number),
            };
            let sum = plain.value().map_or(0, |value| value.number());
            writing.put(plain, Source::Local, Event::Added { delta: sum - was, sum, onto })?;
            Ok(sum)
        })
    }

    pub(super) fn remove(&self, place: Place<'_>, now_ms: u64) -> bool {
        if self.get(place, now_ms, |_| ()).is_none() {
            return false;
        }
        let mut writing = Writing::begin(self, place, now_ms);
        let was = writing.seen().is_some();
        if was {
            let stamp = Stamp::after(writing.base(), now_ms, self.settings.origin);
            writing.remove(stamp, Source::Local);
        }
        was
    }

    pub(super) fn expire(&self, place: Place<'_>, lifetime: Lifetime, now_ms: u64) -> bool {
        if self.get(place, now_ms, |_| ()).is_none() {
            return false;
        }
        let mut writing = Writing::begin(self, place, now_ms);
        let Some(seen) = writing.seen() else { return false };
        let older = seen.lifetime_stamp().max(seen.stamp);
        let stamp = Stamp::after(older, now_ms, self.settings.origin);
        seen.set_lifetime(lifetime, stamp);
        let of = seen.stamp;
        writing.touched(Source::Local, Event::Kept { lifetime, of, stamp });
        true
    }

    pub(super) fn deprecate(
        &self,
        place: Place<'_>,
        amount: u32,
        period_s: u32,
        now_ms: u64,
    ) -> Option<i64> {
        let period_ms = u64::from(period_s.max(1)) * 1000;
        let periods = |number: &Number| {
            let lowered_ms = number.lowered_ms.load(Ordering::Relaxed);
            now_ms.saturating_sub(lowered_ms) / period_ms
        };
        {
            // Mostly no period has passed since the last request, and nothing is to be written.
            let cells = self.index.cells();
            let (slot, cell) = cells.get_key_value(&place)?;
            let plain = living(&slot.0, cell, now_ms)?;
            match &plain.holds {
                Holds::Number(number) if periods(number) > 0 => {}
                _ => return Some(plain.value()?.number()),
            }
        }
        let writing = Writing::begin(self, place, now_ms);
        let number = writing.number()?;
        let periods = periods(number);
        let fall = i64::try_from(periods).unwrap_or(i64::MAX).saturating_mul(i64::from(amount));
        let lower = |was: i64| if was > 0 { was.saturating_sub(fall).max(0) } else { was };
        let (was, is) = number.update(lower)?;
        // An empty score waits for the next offence to begin a new period.
        let lowered_ms = number.lowered_ms.load(Ordering::Relaxed);
        let lowered_ms = if is > 0 { lowered_ms + periods * period_ms } else { now_ms };
        number.lowered_ms.store(lowered_ms, Ordering::Relaxed);
        let slot = writing.slot()?;
        if was != is {
            slot.touch(now_ms);
        }
        self.mark(&slot);
        Some(is)
    }

    pub(super) fn set_timeout(&self, place: Place<'_>, timeout_s: u32, now_ms: u64) -> bool {
        let addressed = Addressed::from(place.record);
        let mut locked = self.shards.lock(addressed.hash);
        let Some(kept) = self.index.kept(addressed) else { return false };
        if kept.about().timeout_s == timeout_s {
            drop(locked);
            return self.lives(place.record, now_ms);
        }
        if now_ms >= kept.due_ms() {
            self.purge(&mut locked, &kept, now_ms, Purge::Whole);
        }
        let mut slots = Vec::new();
        self.walk(place, now_ms, |slot, plain| {
            if !Arc::ptr_eq(&slot.kept, &kept) {
                return ControlFlow::Break(());
            }
            let seen = plain.filter(|plain| plain.value().is_some());
            slots.extend(seen.map(|plain| (Arc::clone(slot), plain.lifetime())));
            ControlFlow::Continue(())
        });
        if slots.is_empty() {
            return false;
        }
        kept.set_timeout(timeout_s);
        kept.touch(now_ms);
        for (slot, lifetime) in &slots {
            if *lifetime == Lifetime::Record {
                locked.enlist(slot, kept.due_ms());
            }
        }
        self.mark(&slots[0].0);
        true
    }

    /// Notes that the disk is behind on this slot.
    pub(super) fn mark(&self, slot: &Arc<Slot>) {
        if let Some(unwritten) = &self.unwritten {
            unwritten.mark(slot);
        }
    }

    pub(super) fn wrote(
        &self,
        slot: &Arc<Slot>,
        now_ms: u64,
        source: Source,
        event: impl FnOnce() -> Event,
    ) {
        self.mark(slot);
        self.feed.tell(slot, now_ms, source, event);
    }
}

/// What a slot holds, unless its time is over.
pub(super) fn living<'a>(slot: &Slot, cell: &'a Cell, now_ms: u64) -> Option<&'a Plain> {
    cell.seen().filter(|plain| now_ms < slot.due_ms(plain))
}

impl Plain {
    /// The change that gave this.
    pub(super) fn event(&self) -> Event {
        let (stamp, lifetime, lifetime_stamp) =
            (self.stamp, self.lifetime(), self.lifetime_stamp());
        match &self.holds {
            Holds::Nothing => Event::Removed { stamp },
            Holds::Number(number) => {
                Event::Number { value: number.read(), stamp, lifetime, lifetime_stamp }
            }
            Holds::Text(text) => {
                Event::Text { value: text.clone(), stamp, lifetime, lifetime_stamp }
            }
        }
    }
}
