//! Context: what rules remember between requests, shared by all workers.
//!
//! `SecLang`'s persistent collections ([`Collection`]) hold records under keys, and records hold
//! variables under names. Time is always an argument, in milliseconds since the Unix epoch; nothing
//! here reads a clock.
//!
//! - A record is forgotten a timeout after its last write (`SecCollectionTimeout`, per record by
//!   [`Context::set_timeout`]); a variable with a [`Lifetime`] of its own keeps to that instead.
//! - What has expired is never seen again, whether or not it has been cleared away yet.
//! - A number that is incremented by many at once loses no increment.
//! - Limits are [`Settings`]; a full store forgets what would expire soonest, and counts it.

mod address;
mod settings;
mod value;

pub use address::{Collection, Record};
pub use settings::{Damaged, Settings};
pub use value::{Digits, NUMBER_MAX, Value};

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

/// What a variable costs beyond the bytes of its key, name and value.
pub const ENTRY_BYTES: usize = 256;

/// The store: shared by reference count, used by any number of threads.
#[derive(Debug)]
pub struct Context {
    settings: Settings,
    records: RwLock<BTreeMap<(Collection, Vec<u8>), Kept>>,
}

#[derive(Debug, Clone)]
struct Kept {
    about: About,
    variables: BTreeMap<Vec<u8>, Variable>,
}

#[derive(Debug, Clone)]
struct Variable {
    value: Vec<u8>,
    lifetime: Lifetime,
    decayed_ms: u64,
}

/// How long a variable is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as its record: until the record's timeout after the record's last write.
    Record,
    /// Until this time (milliseconds since the epoch), whatever happens to its record's other
    /// variables.
    Until(u64),
    /// Until it is removed.
    Forever,
}

/// What a record knows of itself; `SecLang` shows it as `CREATE_TIME`, `LAST_UPDATE_TIME`,
/// `TIMEOUT`, `UPDATE_COUNTER` and `UPDATE_RATE`. `IS_NEW` is that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// When it was first written, in milliseconds since the epoch.
    pub created_ms: u64,
    /// When it was last written, in milliseconds since the epoch.
    pub updated_ms: u64,
    /// How long it is kept after its last write, in seconds.
    pub timeout_s: u32,
    /// How often it has been written.
    pub updates: u64,
}

/// Why a write was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key of the record is longer than `key_bytes_max`.
    KeyTooLong,
    /// The name is longer than `name_bytes_max`.
    NameTooLong,
    /// The value is longer than `value_bytes_max`.
    ValueTooLong,
    /// The store is full, and nothing in it could be forgotten in favour of this.
    NoRoom,
}

impl Context {
    /// A store that lives as long as the process.
    pub fn in_memory(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings, records: RwLock::default() })
    }

    /// Visits the value of a variable. `visit` has to be short: memory that others free is held
    /// back while it runs.
    pub fn get<R>(
        &self,
        record: Record<'_>,
        name: &[u8],
        now_ms: u64,
        visit: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let kept = records.get(&(record.collection, record.key.to_vec()))?;
        let variable = kept.variables.get(name)?;
        kept.lives(variable, now_ms).then(|| visit(Value::of(&variable.value)))
    }

    /// Visits the variables of a record in the order of their names, until `visit` breaks.
    pub fn each(
        &self,
        record: Record<'_>,
        now_ms: u64,
        visit: impl FnMut(&[u8], Value<'_>) -> ControlFlow<()>,
    ) {
        self.each_named(record, b"", now_ms, visit);
    }

    /// Visits the variables of a record whose names begin with `prefix`, in the order of their
    /// names, until `visit` breaks. Costs what it visits, not what the store holds.
    pub fn each_named(
        &self,
        record: Record<'_>,
        prefix: &[u8],
        now_ms: u64,
        mut visit: impl FnMut(&[u8], Value<'_>) -> ControlFlow<()>,
    ) {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = records.get(&(record.collection, record.key.to_vec())) else { return };
        for (name, variable) in kept.variables.range(prefix.to_vec()..) {
            if !name.starts_with(prefix) {
                break;
            }
            if kept.lives(variable, now_ms) && visit(name, Value::of(&variable.value)).is_break() {
                break;
            }
        }
    }

    /// Visits the variables of all records of `collection` whose keys begin with `prefix`, in the
    /// order of keys and names, until `visit` breaks. Costs what it visits.
    pub fn each_keyed(
        &self,
        collection: Collection,
        prefix: &[u8],
        now_ms: u64,
        mut visit: impl FnMut(Record<'_>, &[u8], Value<'_>) -> ControlFlow<()>,
    ) {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        for ((its, key), kept) in records.range((collection, prefix.to_vec())..) {
            if *its != collection || !key.starts_with(prefix) {
                break;
            }
            for (name, variable) in &kept.variables {
                let value = Value::of(&variable.value);
                if kept.lives(variable, now_ms)
                    && visit(Record::new(collection, key), name, value).is_break()
                {
                    return;
                }
            }
        }
    }

    /// What a record knows of itself; `None` if there is none (`IS_NEW`).
    pub fn about(&self, record: Record<'_>, now_ms: u64) -> Option<About> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let kept = records.get(&(record.collection, record.key.to_vec()))?;
        kept.variables.values().any(|variable| kept.lives(variable, now_ms)).then_some(kept.about)
    }

    /// Gives a variable a value (`setvar:ip.x=y`). A variable that exists keeps its lifetime.
    pub fn set(
        &self,
        record: Record<'_>,
        name: &[u8],
        value: &[u8],
        now_ms: u64,
    ) -> Result<(), Refused> {
        self.write(record, name, now_ms, |_| value.to_vec())
    }

    /// Adds to a variable (`setvar:ip.x=+1`, `=-1`) and returns the sum. What is not there counts
    /// as 0, a text as [`Value::number`] says.
    pub fn add(
        &self,
        record: Record<'_>,
        name: &[u8],
        delta: i64,
        now_ms: u64,
    ) -> Result<i64, Refused> {
        let mut sum = 0;
        self.write(record, name, now_ms, |old| {
            sum = Value::of(old).number().saturating_add(delta).clamp(-NUMBER_MAX, NUMBER_MAX);
            sum.to_string().into_bytes()
        })?;
        Ok(sum)
    }

    /// Removes a variable (`setvar:!ip.x`); whether there was one.
    pub fn remove(&self, record: Record<'_>, name: &[u8], now_ms: u64) -> bool {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = records.get_mut(&(record.collection, record.key.to_vec())) else {
            return false;
        };
        let lived = kept.variables.get(name).is_some_and(|variable| kept.lives(variable, now_ms));
        kept.variables.remove(name);
        lived
    }

    /// Gives a variable a lifetime of its own (`expirevar:ip.x=60`); whether there is one.
    pub fn expire(&self, record: Record<'_>, name: &[u8], lifetime: Lifetime, now_ms: u64) -> bool {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = records.get_mut(&(record.collection, record.key.to_vec())) else {
            return false;
        };
        let lives = kept.variables.get(name).is_some_and(|variable| kept.lives(variable, now_ms));
        if lives && let Some(variable) = kept.variables.get_mut(name) {
            variable.lifetime = lifetime;
        }
        lives
    }

    /// Takes `amount` off a variable for each whole `period_s` that has passed since it was made or
    /// last lowered (`deprecatevar:session.score=60/300`), but never below zero, and returns what
    /// it is now. Unlike `ModSecurity`, which counts from the collection's last write, a client
    /// that keeps sending does not keep its score from falling.
    pub fn deprecate(
        &self,
        record: Record<'_>,
        name: &[u8],
        amount: u32,
        period_s: u32,
        now_ms: u64,
    ) -> Option<i64> {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let kept = records.get_mut(&(record.collection, record.key.to_vec()))?;
        kept.variables.get(name).filter(|variable| kept.lives(variable, now_ms))?;
        let variable = kept.variables.get_mut(name)?;
        let old = Value::of(&variable.value).number();
        let period_ms = u64::from(period_s) * 1000;
        let periods = now_ms.saturating_sub(variable.decayed_ms).checked_div(period_ms)?;
        if periods == 0 || old <= 0 {
            return Some(old);
        }
        let fall = i64::try_from(periods).unwrap_or(i64::MAX).saturating_mul(i64::from(amount));
        let new = old.saturating_sub(fall).max(0);
        variable.value = new.to_string().into_bytes();
        variable.decayed_ms =
            if new == 0 { now_ms } else { variable.decayed_ms + periods * period_ms };
        kept.about.updated_ms = now_ms;
        kept.about.updates += 1;
        Some(new)
    }

    /// Sets how long a record is kept after its last write (`setvar:ip.timeout=60`); whether there
    /// is one.
    pub fn set_timeout(&self, record: Record<'_>, timeout_s: u32, now_ms: u64) -> bool {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = records.get_mut(&(record.collection, record.key.to_vec())) else {
            return false;
        };
        let lives = kept.variables.values().any(|variable| kept.lives(variable, now_ms));
        if lives {
            kept.about.timeout_s = timeout_s;
        }
        lives
    }

    fn write(
        &self,
        record: Record<'_>,
        name: &[u8],
        now_ms: u64,
        change: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<(), Refused> {
        if record.key.len() > self.settings.key_bytes_max {
            return Err(Refused::KeyTooLong);
        }
        if name.len() > self.settings.name_bytes_max {
            return Err(Refused::NameTooLong);
        }
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let fresh = About {
            created_ms: now_ms,
            updated_ms: now_ms,
            timeout_s: self.settings.timeout_s,
            updates: 0,
        };
        let kept = records
            .entry((record.collection, record.key.to_vec()))
            .or_insert_with(|| Kept { about: fresh, variables: BTreeMap::new() });
        let about = kept.about;
        kept.variables.retain(|_, variable| lives(about, variable, now_ms));
        if kept.variables.is_empty() {
            kept.about = fresh;
        }
        let old = kept.variables.get(name).map_or(&b""[..], |variable| &variable.value);
        let value = change(old);
        if value.len() > self.settings.value_bytes_max {
            return Err(Refused::ValueTooLong);
        }
        kept.about.updated_ms = now_ms;
        kept.about.updates += 1;
        kept.variables
            .entry(name.to_vec())
            .or_insert(Variable {
                value: Vec::new(),
                lifetime: Lifetime::Record,
                decayed_ms: now_ms,
            })
            .value = value;
        Ok(())
    }
}

impl Kept {
    fn lives(&self, variable: &Variable, now_ms: u64) -> bool {
        lives(self.about, variable, now_ms)
    }
}

fn lives(about: About, variable: &Variable, now_ms: u64) -> bool {
    match variable.lifetime {
        Lifetime::Record => now_ms < about.updated_ms + u64::from(about.timeout_s) * 1000,
        Lifetime::Until(deadline_ms) => now_ms < deadline_ms,
        Lifetime::Forever => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_kept_until_its_record_times_out() {
        let context = Context::in_memory(Settings { timeout_s: 10, ..Settings::default() });
        let record = Record::new(Collection::Ip, b"203.0.113.7");
        assert_eq!(context.add(record, b"hits", 2, 1_000), Ok(2));
        assert_eq!(context.add(record, b"hits", 3, 5_000), Ok(5));
        let read = |now_ms| context.get(record, b"hits", now_ms, |value| value.number());
        assert_eq!(read(14_999), Some(5));
        assert_eq!(read(15_000), None);
        assert!(context.about(record, 15_000).is_none());
    }
}
