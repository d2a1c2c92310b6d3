//! Context shared by several gates: what another gate changed, applied here.
//!
//! A gate sends the [`Update`]s of its feed, those of [`super::Source::Local`]; another applies
//! them. They agree in the end if each applies all of another's updates in their order:
//!
//! - A value is a register: the later [`Stamp`] wins, a removal counts as a value. So that a removal
//!   can win against a value that comes late, marks of removed variables have to be kept for longer
//!   than updates take (`removed_kept_s`).
//! - Increments are added to what they were made on, in any order; an increment of a value that has
//!   been replaced since goes with it. One of a value that was never heard of brings its sum along.
//! - A lifetime is a register beside the value that it was given to, and goes with it.
//!
//! Not told to others: that time lowered a counter (`deprecatevar`: each gate lets the same time do
//! the same), timeouts of records, and what was forgotten because its time was over or the store
//! full.

use std::ops::ControlFlow;

use super::address::Record;
use super::cell::{Holds, Number, Plain};
use super::clearing::Shortage;
use super::feed::{Event, Source};
use super::slot::Place;
use super::store::Store;
use super::value::Value;
use super::writing::Writing;
use super::{Lifetime, Refused, Stamp};

/// A change of one variable, as it travels between gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'a> {
    /// It was given a value.
    Set {
        /// The value.
        value: Value<'a>,
        /// When it was given.
        stamp: Stamp,
        /// How long it is kept.
        lifetime: Lifetime,
        /// When the lifetime was given.
        lifetime_stamp: Stamp,
    },
    /// It was added to.
    Add {
        /// What was added.
        delta: i64,
        /// What it was then.
        sum: i64,
        /// When what it was added to was given.
        onto: Stamp,
    },
    /// It was given another lifetime.
    Keep {
        /// The lifetime.
        lifetime: Lifetime,
        /// When what is to be kept was given.
        of: Stamp,
        /// When the lifetime was given.
        stamp: Stamp,
    },
    /// It was removed.
    Remove {
        /// When.
        stamp: Stamp,
    },
}

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It changed something.
    Taken,
    /// A later change is known, or it changes nothing.
    Outdated,
}

impl Store {
    pub(super) fn apply(
        &self,
        place: Place<'_>,
        update: &Update<'_>,
        now_ms: u64,
    ) -> Result<Applied, Refused> {
        let value_bytes = match update {
            Update::Set { value: Value::Text(text), .. } => text.len(),
            _ => 0,
        };
        self.check(place, value_bytes)?;
        self.retry(now_ms, || {
            let mut writing = Writing::begin(self, place, now_ms);
            match *update {
                Update::Set { value, stamp, lifetime, lifetime_stamp } => {
                    let plain = Plain::new(stamp, lifetime, Holds::of(value, now_ms));
                    plain.set_lifetime(lifetime, lifetime_stamp);
                    writing.apply_set(plain)
                }
                Update::Add { delta, sum, onto } => writing.apply_add(delta, sum, onto, now_ms),
                Update::Keep { lifetime, of, stamp } => Ok(writing.apply_keep(lifetime, of, stamp)),
                Update::Remove { stamp } => writing.apply_remove(stamp),
            }
        })
    }

    /// Visits everything that is kept, marks of removed variables too, as updates for a gate that
    /// knows nothing yet.
    pub(super) fn snapshot(
        &self,
        now_ms: u64,
        mut visit: impl FnMut(Record<'_>, &[u8], Update<'_>) -> ControlFlow<()>,
    ) {
        self.walk(Place::FIRST, now_ms, |slot, plain| {
            let Some(plain) = plain else { return ControlFlow::Continue(()) };
            let stamp = plain.stamp;
            let update = match plain.value() {
                Some(value) => Update::Set {
                    value,
                    stamp,
                    lifetime: plain.lifetime(),
                    lifetime_stamp: plain.lifetime_stamp(),
                },
                None => Update::Remove { stamp },
            };
            visit(slot.kept.record(), &slot.name, update)
        });
    }
}

impl Writing<'_> {
    fn apply_set(&mut self, plain: Plain) -> Result<Applied, Shortage> {
        if self.living().is_some_and(|here| here.stamp >= plain.stamp) {
            // Of the same value the lifetime may be news.
            return Ok(self.apply_keep(plain.lifetime(), plain.stamp, plain.lifetime_stamp()));
        }
        let event = plain.event();
        self.put(plain, Source::Remote, event)?;
        Ok(Applied::Taken)
    }

    fn apply_add(
        &mut self,
        delta: i64,
        sum: i64,
        onto: Stamp,
        now_ms: u64,
    ) -> Result<Applied, Shortage> {
        let base = self.base();
        if onto < base {
            return Ok(Applied::Outdated);
        }
        if onto == base
            && let Some((was, is)) =
                self.number().and_then(|number| number.update(|was| was.saturating_add(delta)))
        {
            self.touched(Source::Remote, Event::Added { delta: is - was, sum: is, onto });
            return Ok(Applied::Taken);
        }
        let was = self.seen().and_then(Plain::value).map_or(0, |value| value.number());
        let is = if onto == base { was.saturating_add(delta) } else { sum };
        let number = Holds::Number(Number::new(is, now_ms));
        let plain = match self.seen() {
            Some(seen) => seen.with(onto, number),
            None => Plain::new(onto, Lifetime::Record, number),
        };
        let event = Event::Added { delta: is.saturating_sub(was), sum: is, onto };
        self.put(plain, Source::Remote, event)?;
        Ok(Applied::Taken)
    }

    fn apply_keep(&mut self, lifetime: Lifetime, of: Stamp, stamp: Stamp) -> Applied {
        let news = |seen: &&Plain| seen.stamp == of && seen.lifetime_stamp() < stamp;
        let Some(seen) = self.seen().filter(news) else { return Applied::Outdated };
        seen.set_lifetime(lifetime, stamp);
        self.touched(Source::Remote, Event::Kept { lifetime, of, stamp });
        Applied::Taken
    }

    fn apply_remove(&mut self, stamp: Stamp) -> Result<Applied, Shortage> {
        if self.living().is_some_and(|here| here.stamp >= stamp) {
            return Ok(Applied::Outdated);
        }
        if self.living().is_some() {
            self.remove(stamp, Source::Remote);
        } else if let Some(mark) = self.store.removal_mark(stamp, self.now_ms) {
            self.put(mark, Source::Remote, Event::Removed { stamp })?;
        }
        Ok(Applied::Taken)
    }
}
