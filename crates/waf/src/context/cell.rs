//! What a variable holds at one time.
//!
//! A cell is shared with readers as it stands in the index; it is replaced, not changed, but for
//! what is atomic in it: a number, and how long it is kept. Before a number is replaced it is
//! *frozen* under its shard's lock: from then on no increment succeeds on it, so the number that
//! the replacement is made from is final, and an increment that came too late is made on the
//! replacement instead. This is why no increment is ever lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

use super::bytes::Bytes;
use super::value::{NUMBER_MAX, Value};
use super::{Lifetime, Stamp};

/// A cell: what is seen of a variable now, and during a bulk load what will be seen after it.
#[derive(Debug)]
pub(super) enum Cell {
    Plain(Plain),
    /// What a load brought to a place that was empty: seen from when the load is shown, and as good
    /// as plain from then on.
    Loaded(Arc<Load>, Plain),
    Staged(Box<Staged>),
}

/// A value, with when it was given and how long it is kept.
#[derive(Debug)]
pub(super) struct Plain {
    /// When the value was given, for the last writer to win among gates; a counter that began by
    /// being incremented has [`Stamp::NONE`].
    pub(super) stamp: Stamp,
    /// [`Lifetime`], packed.
    until_ms: AtomicU64,
    /// When the lifetime was given.
    until_stamp: AtomicU64,
    pub(super) holds: Holds,
}

#[derive(Debug)]
pub(super) enum Holds {
    /// No value: the mark that one was removed, for gates that have not heard of it yet.
    Nothing,
    Number(Number),
    Text(Bytes),
}

/// A number that many increment at once.
#[derive(Debug)]
pub(super) struct Number {
    /// The number in the upper 63 bits, whether it is frozen in the lowest.
    word: AtomicI64,
    /// Up to when time has been let to lower it (`deprecatevar`).
    pub(super) lowered_ms: AtomicU64,
}

/// The two sides of a bulk load; the load's state tells which is seen.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) load: Arc<Load>,
    pub(super) before: Option<Plain>,
    pub(super) after: Option<Plain>,
}

/// What a load that has not ended yet holds of a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staging<'a> {
    pub(super) load: &'a Arc<Load>,
    pub(super) before: Option<&'a Plain>,
    pub(super) after: Option<&'a Plain>,
}

/// A bulk load. One store to `state` shows all of its cells at once.
#[derive(Debug, Default)]
pub(super) struct Load {
    state: AtomicU8,
    /// Whether somebody wrote to a place that it had staged, before it ended. Set under the lock of
    /// the place's shard.
    crossed: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LoadState {
    Staging,
    Shown,
    GivenUp,
}

impl Load {
    pub(super) fn state(&self) -> LoadState {
        match self.state.load(Ordering::Acquire) {
            0 => LoadState::Staging,
            1 => LoadState::Shown,
            _ => LoadState::GivenUp,
        }
    }

    pub(super) fn end(&self, state: LoadState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Notes that somebody writes to a place that it has staged.
    pub(super) fn cross(&self) {
        self.crossed.store(true, Ordering::Relaxed);
    }

    /// Whether somebody wrote to a place that it had staged; of a place whose shard is locked, this
    /// is final once the load has ended.
    pub(super) fn is_crossed(&self) -> bool {
        self.crossed.load(Ordering::Relaxed)
    }
}

impl Cell {
    /// What is seen now.
    pub(super) fn seen(&self) -> Option<&Plain> {
        match self {
            Self::Plain(plain) => Some(plain),
            Self::Loaded(load, plain) => (load.state() == LoadState::Shown).then_some(plain),
            Self::Staged(staged) => match staged.load.state() {
                LoadState::Shown => staged.after.as_ref(),
                LoadState::Staging | LoadState::GivenUp => staged.before.as_ref(),
            },
        }
    }

    fn load(&self) -> Option<&Arc<Load>> {
        match self {
            Self::Plain(_) => None,
            Self::Loaded(load, _) => Some(load),
            Self::Staged(staged) => Some(&staged.load),
        }
    }

    /// Whether a load that has not ended yet holds this cell.
    pub(super) fn is_staging(&self) -> bool {
        self.load().is_some_and(|load| load.state() == LoadState::Staging)
    }

    /// What a load that has not ended yet holds here.
    pub(super) fn staging(&self) -> Option<Staging<'_>> {
        let load = self.load().filter(|load| load.state() == LoadState::Staging)?;
        let (before, after) = match self {
            Self::Plain(_) => return None,
            Self::Loaded(_, plain) => (None, Some(plain)),
            Self::Staged(staged) => (staged.before.as_ref(), staged.after.as_ref()),
        };
        Some(Staging { load, before, after })
    }

    /// Whether it is part of `load`.
    pub(super) fn belongs_to(&self, load: &Arc<Load>) -> bool {
        self.load().is_some_and(|own| Arc::ptr_eq(own, load))
    }

    /// What its texts cost on the heap, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Plain(plain) | Self::Loaded(_, plain) => plain.heap_bytes(),
            Self::Staged(staged) => {
                staged.before.as_ref().map_or(0, Plain::heap_bytes)
                    + staged.after.as_ref().map_or(0, Plain::heap_bytes)
            }
        }
    }
}

impl Plain {
    pub(super) fn new(stamp: Stamp, lifetime: Lifetime, holds: Holds) -> Self {
        Self {
            stamp,
            until_ms: AtomicU64::new(lifetime.pack()),
            until_stamp: AtomicU64::new(stamp.0),
            holds,
        }
    }

    /// Lets no more increments succeed, if it is a number.
    pub(super) fn stop(&self) {
        if let Holds::Number(number) = &self.holds {
            number.stop();
        }
    }

    /// Freezes the number, if it is one, and copies all.
    pub(super) fn freeze(&self) -> Self {
        let holds = match &self.holds {
            Holds::Nothing => Holds::Nothing,
            Holds::Number(number) => Holds::Number(number.freeze()),
            Holds::Text(text) => Holds::Text(text.clone()),
        };
        self.with(self.stamp, holds)
    }

    /// The same lifetime around another value.
    pub(super) fn with(&self, stamp: Stamp, holds: Holds) -> Self {
        Self {
            stamp,
            until_ms: AtomicU64::new(self.until_ms.load(Ordering::Relaxed)),
            until_stamp: AtomicU64::new(self.until_stamp.load(Ordering::Relaxed)),
            holds,
        }
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        Lifetime::unpack(self.until_ms.load(Ordering::Relaxed))
    }

    pub(super) fn lifetime_stamp(&self) -> Stamp {
        Stamp(self.until_stamp.load(Ordering::Relaxed))
    }

    /// Gives another lifetime; only under the lock of the shard.
    pub(super) fn set_lifetime(&self, lifetime: Lifetime, stamp: Stamp) {
        self.until_ms.store(lifetime.pack(), Ordering::Relaxed);
        self.until_stamp.store(stamp.0, Ordering::Relaxed);
    }

    /// The value, unless it is the mark of a removed one.
    pub(super) fn value(&self) -> Option<Value<'_>> {
        match &self.holds {
            Holds::Nothing => None,
            Holds::Number(number) => Some(Value::Number(number.read())),
            Holds::Text(text) => Some(Value::Text(text)),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match &self.holds {
            Holds::Text(text) => Bytes::heap_bytes(text.len()),
            Holds::Nothing | Holds::Number(_) => 0,
        }
    }
}

impl Holds {
    /// What to hold for `value`, given at `now_ms`.
    pub(super) fn of(value: Value<'_>, now_ms: u64) -> Self {
        match value {
            Value::Number(number) => Self::Number(Number::new(number, now_ms)),
            Value::Text(text) => Self::Text(Bytes::from(text)),
        }
    }
}

impl Number {
    pub(super) fn new(number: i64, lowered_ms: u64) -> Self {
        Self {
            word: AtomicI64::new(number.clamp(-NUMBER_MAX, NUMBER_MAX) << 1),
            lowered_ms: AtomicU64::new(lowered_ms),
        }
    }

    pub(super) fn read(&self) -> i64 {
        self.word.load(Ordering::Relaxed) >> 1
    }

    /// Puts `change` of the number in its place and returns what was and what is; `None` if it is
    /// frozen, and another has taken its place or is about to.
    pub(super) fn update(&self, change: impl Fn(i64) -> i64) -> Option<(i64, i64)> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & 1 != 0 {
                return None;
            }
            let was = word >> 1;
            let is = change(was).clamp(-NUMBER_MAX, NUMBER_MAX);
            match self.word.compare_exchange_weak(
                word,
                is << 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some((was, is)),
                Err(other) => word = other,
            }
        }
    }

    /// Lets no more updates succeed.
    pub(super) fn stop(&self) {
        self.word.fetch_or(1, Ordering::AcqRel);
    }

    fn freeze(&self) -> Self {
        let word = self.word.fetch_or(1, Ordering::AcqRel);
        Self {
            word: AtomicI64::new(word & !1),
            lowered_ms: AtomicU64::new(self.lowered_ms.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_number_takes_no_increment() {
        let number = Number::new(40, 0);
        assert_eq!(number.update(|was| was + 2), Some((40, 42)));
        let heir = number.freeze();
        assert_eq!(number.update(|was| was + 1), None);
        assert_eq!((number.read(), heir.read()), (42, 42));
        assert_eq!(heir.update(|was| was - 50), Some((42, -8)));
    }

    #[test]
    fn sums_stop_at_the_largest_number() {
        let number = Number::new(NUMBER_MAX - 1, 0);
        let check = |delta: i64, was: i64, is: i64| {
            assert_eq!(number.update(|was| was.saturating_add(delta)), Some((was, is)));
        };
        check(i64::MAX, NUMBER_MAX - 1, NUMBER_MAX);
        check(i64::MIN, NUMBER_MAX, -NUMBER_MAX);
        check(-1, -NUMBER_MAX, -NUMBER_MAX);
        check(2, -NUMBER_MAX, 2 - NUMBER_MAX);
    }

    #[test]
    fn a_load_shows_its_side_only_once_it_is_shown() {
        let plain =
            |number| Plain::new(Stamp::NONE, Lifetime::Record, Holds::of(Value::Number(number), 0));
        let seen = |cell: &Cell| cell.seen().and_then(Plain::value).map(|value| value.number());
        for (end, expected) in [(LoadState::Shown, Some(2)), (LoadState::GivenUp, Some(1))] {
            let load = Arc::new(Load::default());
            let cell = Cell::Staged(Box::new(Staged {
                load: Arc::clone(&load),
                before: Some(plain(1)),
                after: Some(plain(2)),
            }));
            assert_eq!((seen(&cell), cell.is_staging()), (Some(1), true));
            let fresh = Cell::Loaded(Arc::clone(&load), plain(3));
            assert_eq!((seen(&fresh), fresh.is_staging()), (None, true));
            let staging = fresh.staging().unwrap();
            assert!(staging.before.is_none() && staging.after.is_some());
            load.end(end);
            assert_eq!((seen(&cell), cell.is_staging()), (expected, false));
            let expected = expected.filter(|seen| *seen == 2).map(|_| 3);
            assert_eq!((seen(&fresh), fresh.staging().is_none()), (expected, true));
            assert!(fresh.belongs_to(&load));
        }
    }
}
