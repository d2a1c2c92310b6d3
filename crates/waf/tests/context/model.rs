//! Context as plainly as it can be said: maps in maps, everything looked at each time.

use std::collections::BTreeMap;

use tidegate_waf::context::{About, Collection, Entry, Lifetime, NUMBER_MAX, Record, Scope, Value};

/// A variable: collection, key, name, value.
pub(crate) type Row = (Collection, Vec<u8>, Vec<u8>, Vec<u8>);

/// The plain store.
#[derive(Debug, Default)]
pub(crate) struct Model {
    records: BTreeMap<(Collection, Vec<u8>), Kept>,
    timeout_s: u32,
}

#[derive(Debug)]
struct Kept {
    about: About,
    variables: BTreeMap<Vec<u8>, Variable>,
}

#[derive(Debug)]
struct Variable {
    value: Vec<u8>,
    lifetime: Lifetime,
    /// Up to when time has lowered it, if it is a number.
    lowered_ms: u64,
}

impl Model {
    pub(crate) fn new(timeout_s: u32) -> Self {
        Self { records: BTreeMap::new(), timeout_s }
    }

    /// Forgets what is over.
    fn pass(&mut self, now_ms: u64) {
        self.records.retain(|_, kept| {
            let due_ms = kept.about.updated_ms + u64::from(kept.about.timeout_s) * 1000;
            kept.variables.retain(|_, variable| match variable.lifetime {
                Lifetime::Record => now_ms < due_ms,
                Lifetime::Until(due_ms) => now_ms < due_ms,
                Lifetime::Forever => true,
            });
            !kept.variables.is_empty()
        });
    }

    fn kept(&mut self, record: Record<'_>, now_ms: u64) -> Option<&mut Kept> {
        self.pass(now_ms);
        self.records.get_mut(&(record.collection, record.key.to_vec()))
    }

    fn written(kept: &mut Kept, now_ms: u64) {
        kept.about.updated_ms = kept.about.updated_ms.max(now_ms);
        kept.about.updates += 1;
    }

    pub(crate) fn get(&mut self, record: Record<'_>, name: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        Some(self.kept(record, now_ms)?.variables.get(name)?.value.clone())
    }

    pub(crate) fn about(&mut self, record: Record<'_>, now_ms: u64) -> Option<About> {
        Some(self.kept(record, now_ms)?.about)
    }

    /// Everything, in order.
    pub(crate) fn all(&mut self, now_ms: u64) -> Vec<Row> {
        self.pass(now_ms);
        let flat = self.records.iter().flat_map(|((collection, key), kept)| {
            kept.variables.iter().map(|(name, variable)| {
                (*collection, key.clone(), name.clone(), variable.value.clone())
            })
        });
        flat.collect()
    }

    fn make(&mut self, record: Record<'_>, now_ms: u64) -> &mut Kept {
        let about =
            About { created_ms: now_ms, updated_ms: now_ms, timeout_s: self.timeout_s, updates: 0 };
        self.records
            .entry((record.collection, record.key.to_vec()))
            .or_insert_with(|| Kept { about, variables: BTreeMap::new() })
    }

    pub(crate) fn set(&mut self, record: Record<'_>, name: &[u8], value: &[u8], now_ms: u64) {
        self.pass(now_ms);
        let kept = self.make(record, now_ms);
        Self::written(kept, now_ms);
        let lifetime =
            kept.variables.get(name).map_or(Lifetime::Record, |variable| variable.lifetime);
        let variable = Variable { value: value.to_vec(), lifetime, lowered_ms: now_ms };
        kept.variables.insert(name.to_vec(), variable);
    }

    pub(crate) fn add(&mut self, record: Record<'_>, name: &[u8], delta: i64, now_ms: u64) -> i64 {
        self.pass(now_ms);
        let kept = self.make(record, now_ms);
        Self::written(kept, now_ms);
        let variable = kept.variables.entry(name.to_vec()).or_insert(Variable {
            value: Vec::new(),
            lifetime: Lifetime::Record,
            lowered_ms: now_ms,
        });
        let old = Value::of(&variable.value);
        if matches!(old, Value::Text(_)) {
            variable.lowered_ms = now_ms;
        }
        let sum = old.number().saturating_add(delta).clamp(-NUMBER_MAX, NUMBER_MAX);
        variable.value = sum.to_string().into_bytes();
        sum
    }

    pub(crate) fn remove(&mut self, record: Record<'_>, name: &[u8], now_ms: u64) -> bool {
        let Some(kept) = self.kept(record, now_ms) else { return false };
        let was = kept.variables.remove(name).is_some();
        if was {
            Self::written(kept, now_ms);
        }
        was
    }

    pub(crate) fn expire(
        &mut self,
        record: Record<'_>,
        name: &[u8],
        lifetime: Lifetime,
        now_ms: u64,
    ) -> bool {
        let Some(kept) = self.kept(record, now_ms) else { return false };
        let Some(variable) = kept.variables.get_mut(name) else { return false };
        variable.lifetime = lifetime;
        Self::written(kept, now_ms);
        true
    }

    pub(crate) fn deprecate(
        &mut self,
        record: Record<'_>,
        name: &[u8],
        amount: u32,
        period_s: u32,
        now_ms: u64,
    ) -> Option<i64> {
        let kept = self.kept(record, now_ms)?;
        let variable = kept.variables.get_mut(name)?;
        let Value::Number(was) = Value::of(&variable.value) else {
            return Some(Value::of(&variable.value).number());
        };
        let mut is = was;
        let mut lowered_ms = variable.lowered_ms;
        let mut periods = 0;
        while lowered_ms + u64::from(period_s) * 1000 <= now_ms {
            lowered_ms += u64::from(period_s) * 1000;
            periods += 1;
            if is > 0 {
                is = (is - i64::from(amount)).max(0);
            }
        }
        if periods == 0 {
            return Some(was);
        }
        variable.lowered_ms = if is > 0 { lowered_ms } else { now_ms };
        variable.value = is.to_string().into_bytes();
        if was != is {
            Self::written(kept, now_ms);
        }
        Some(is)
    }

    pub(crate) fn set_timeout(&mut self, record: Record<'_>, timeout_s: u32, now_ms: u64) -> bool {
        let Some(kept) = self.kept(record, now_ms) else { return false };
        if kept.about.timeout_s != timeout_s {
            kept.about.timeout_s = timeout_s;
            Self::written(kept, now_ms);
        }
        true
    }

    /// What of `scope` is not among `named`.
    pub(crate) fn remove_others(
        &mut self,
        scope: Scope<'_>,
        named: &[(Record<'_>, &[u8])],
        now_ms: u64,
    ) -> usize {
        let others: Vec<_> = self
            .all(now_ms)
            .into_iter()
            .filter(|(collection, key, name, _)| {
                let within = match scope {
                    Scope::Collection(its) => its == *collection,
                    Scope::Keys(its, prefix) => its == *collection && key.starts_with(prefix),
                    Scope::Record(its) => its == Record::new(*collection, key),
                };
                within && !named.contains(&(Record::new(*collection, key), name))
            })
            .collect();
        for (collection, key, name, _) in &others {
            let kept = self.kept(Record::new(*collection, key), now_ms).expect("it was found");
            kept.variables.remove(name);
        }
        self.pass(now_ms);
        others.len()
    }

    pub(crate) fn load(&mut self, entries: &[Entry<'_>], now_ms: u64) {
        self.pass(now_ms);
        for entry in entries {
            let kept = self.make(entry.record, now_ms);
            Self::written(kept, now_ms);
            let (value, lifetime) = (entry.value.to_vec(), entry.lifetime);
            let variable = Variable { value, lifetime, lowered_ms: now_ms };
            kept.variables.insert(entry.name.to_vec(), variable);
        }
    }
}
