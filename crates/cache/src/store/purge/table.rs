//! What was purged by which number: looked up by those who ask, changed by one who purges.
//!
//! Tags, URLs and sites are in a hash table that is read without locks. Prefixes are a list, newest
//! first, swapped whole: who asks looks at those which are newer than the object, and at no other.
//! The horizon stands for entries that had to go.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::record::{self, Kind, Record};
use super::{Force, Names, Settings, Standing};
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Table {
    entries: papaya::HashMap<u64, Entry, BuildHasherDefault<Hashed>>,
    coarse: ArcSwap<Coarse>,
    settings: Settings,
}

/// The last purges of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    hard: u64,
    soft: u64,
    soft_at: Time,
}

/// What is not found by a number.
#[derive(Clone, Debug, Default)]
struct Coarse {
    horizon: Entry,
    /// The one that was purged last first.
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Debug)]
struct Prefix {
    site: u64,
    path: Arc<[u8]>,
    entry: Entry,
}

/// In which order entries were purged, oldest first: who goes when there are too many. An entry that
/// was purged again stands here again, and only its last turn counts.
#[derive(Debug, Default)]
pub(super) struct Order {
    entries: VecDeque<Turn>,
    prefixes: VecDeque<Turn>,
}

#[derive(Clone, Debug)]
struct Turn {
    sequence: u64,
    kind: Kind,
}

impl Entry {
    fn last(&self) -> u64 {
        self.hard.max(self.soft)
    }

    fn raise(&mut self, force: Force, sequence: u64, at: Time) {
        match force {
            Force::Hard => self.hard = self.hard.max(sequence),
            Force::Soft if sequence > self.soft => (self.soft, self.soft_at) = (sequence, at),
            Force::Soft => {}
        }
    }

    fn merge(&mut self, other: &Entry) {
        self.raise(Force::Hard, other.hard, Time::default());
        self.raise(Force::Soft, other.soft, other.soft_at);
    }
}

impl Table {
    pub(super) fn new(settings: Settings) -> Self {
        Table { entries: papaya::HashMap::default(), coarse: ArcSwap::default(), settings }
    }

    /// What became of an object that is known to have been there after purge number `marked`.
    pub(super) fn standing(&self, names: &Names<'_>, marked: u64) -> Standing {
        let mut worst = Entry::default();
        let entries = self.entries.pin();
        let mut ask = |number| {
            if let Some(entry) = entries.get(&number)
                && entry.last() > marked
            {
                worst.merge(entry);
            }
        };
        ask(record::everything());
        ask(record::site_entry(names.site));
        ask(record::url_entry(names.url));
        for &tag in names.tags {
            ask(record::tag_entry(tag));
            ask(record::site_tag_entry(names.site, tag));
        }
        // After the table: what is folded is in the horizon before it leaves the table.
        let coarse = self.coarse.load();
        worst.merge(&coarse.horizon);
        let newer = coarse.prefixes.iter().take_while(|prefix| prefix.entry.last() > marked);
        for prefix in newer {
            if prefix.site == names.site && names.path.starts_with(&prefix.path) {
                worst.merge(&prefix.entry);
            }
        }
        if worst.hard > marked {
            Standing::Gone
        } else if worst.soft > marked {
            Standing::Stale { since: worst.soft_at }
        } else {
            Standing::Current
        }
    }

    /// Enters a purge. One at a time: whoever calls has the lock for it.
    pub(super) fn apply(&self, order: &mut Order, record: Record) {
        let Record { kind, force, sequence, at } = record;
        match kind {
            Kind::Opened => return,
            Kind::Horizon => {
                self.change_coarse(|coarse| coarse.horizon.raise(force, sequence, at));
                return;
            }
            Kind::Prefix { site, ref path } => {
                self.change_coarse(|coarse| coarse.purge_prefix(site, path, force, sequence, at));
            }
            Kind::Everything
            | Kind::Site(_)
            | Kind::Url(_)
            | Kind::Tag(_)
            | Kind::SiteTag { .. } => {
                let Some(number) = kind.entry() else { return };
                let entries = self.entries.pin();
                let mut entry = entries.get(&number).copied().unwrap_or_default();
                entry.raise(force, sequence, at);
                entries.insert(number, entry);
            }
        }
        let Settings { entries_max, prefixes_max } = self.settings;
        let (turns, kept, kept_max) = if kind.entry().is_some() {
            (&mut order.entries, self.entries.len(), entries_max)
        } else {
            (&mut order.prefixes, self.coarse.load().prefixes.len(), prefixes_max)
        };
        turns.push_back(Turn { sequence, kind });
        self.fold(turns, kept, kept_max);
    }

    /// Folds the oldest of a kind into the horizon while there are too many.
    fn fold(&self, turns: &mut VecDeque<Turn>, mut kept: usize, kept_max: usize) {
        while kept > kept_max
            && let Some(turn) = turns.pop_front()
        {
            if self.is_last(&turn) {
                self.fold_one(&turn.kind);
                kept -= 1;
            }
        }
        // Those that were purged again and again leave turns behind that no longer count.
        if turns.len() > 2 * kept + 1024 {
            turns.retain(|turn| self.is_last(turn));
        }
    }

    fn fold_one(&self, kind: &Kind) {
        let entries = self.entries.pin();
        let number = kind.entry();
        let entry = match number {
            Some(number) => entries.get(&number).copied(),
            None => self.coarse.load().find(kind).map(|prefix| prefix.entry),
        };
        let Some(entry) = entry else { return };
        self.change_coarse(|coarse| {
            coarse.horizon.merge(&entry);
            coarse.remove(kind);
        });
        if let Some(number) = number {
            entries.remove(&number);
        }
    }

    /// Whether nothing newer is known of what was purged then.
    fn is_last(&self, turn: &Turn) -> bool {
        let last = match turn.kind.entry() {
            Some(number) => self.entries.pin().get(&number).map(Entry::last),
            None => self.coarse.load().find(&turn.kind).map(|prefix| prefix.entry.last()),
        };
        last == Some(turn.sequence)
    }

    fn change_coarse(&self, change: impl FnOnce(&mut Coarse)) {
        let mut coarse = Coarse::clone(&self.coarse.load());
        change(&mut coarse);
        self.coarse.store(Arc::new(coarse));
    }

    /// Everything in the table, as records that give the same table.
    pub(super) fn snapshot(&self, order: &Order, sequence: u64) -> Vec<Record> {
        let mut records = Vec::new();
        let mut add = |kind: &Kind, entry: &Entry| {
            let record = |force, sequence, at| Record { kind: kind.clone(), force, sequence, at };
            if entry.hard > 0 {
                records.push(record(Force::Hard, entry.hard, Time::default()));
            }
            if entry.soft > 0 {
                records.push(record(Force::Soft, entry.soft, entry.soft_at));
            }
        };
        let coarse = self.coarse.load();
        add(&Kind::Horizon, &coarse.horizon);
        let turns = order.entries.iter().chain(&order.prefixes);
        for turn in turns.filter(|turn| self.is_last(turn)) {
            let entry = match turn.kind.entry() {
                Some(number) => self.entries.pin().get(&number).copied(),
                None => coarse.find(&turn.kind).map(|prefix| prefix.entry),
            };
            if let Some(entry) = entry {
                add(&turn.kind, &entry);
            }
        }
        // In the order in which they happened, so that the same would be folded first.
        records.sort_by_key(|record| record.sequence);
        records.push(Record::opened(sequence));
        records
    }

    /// Entries, prefixes, and the number up to which everything counts as purged.
    pub(super) fn sizes(&self) -> (usize, usize, u64) {
        let coarse = self.coarse.load();
        (self.entries.len(), coarse.prefixes.len(), coarse.horizon.last())
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.coarse.load().prefixes.len()
    }

    /// Most entries and prefixes.
    pub(super) fn bound(&self) -> usize {
        self.settings.entries_max + self.settings.prefixes_max
    }
}

impl Coarse {
    fn purge_prefix(&mut self, site: u64, path: &[u8], force: Force, sequence: u64, at: Time) {
        let same = |prefix: &Prefix| prefix.site == site && *prefix.path == *path;
        let mut entry = Entry::default();
        if let Some(found) = self.prefixes.iter().position(same) {
            entry = self.prefixes.remove(found).entry;
        }
        entry.raise(force, sequence, at);
        let place = self.prefixes.partition_point(|prefix| prefix.entry.last() > entry.last());
        self.prefixes.insert(place, Prefix { site, path: path.into(), entry });
    }

    fn find(&self, kind: &Kind) -> Option<&Prefix> {
        self.prefixes.iter().find(|prefix| prefix.is(kind))
    }

    fn remove(&mut self, kind: &Kind) {
        self.prefixes.retain(|prefix| !prefix.is(kind));
    }
}

impl Prefix {
    fn is(&self, kind: &Kind) -> bool {
        matches!(kind, Kind::Prefix { site, path } if *site == self.site && **path == *self.path)
    }
}

/// Keeps at most `records_max` records that wait to be written: the oldest become a horizon.
pub(super) fn shorten(records: &mut Vec<Record>, records_max: usize) {
    if records.len() <= records_max.max(1) {
        return;
    }
    let older = records.len() - records_max.max(1) + 1;
    let last = records.drain(..older).next_back();
    if let Some(last) = last {
        let horizon = Record { kind: Kind::Horizon, force: Force::Hard, ..last };
        records.insert(0, horizon);
    }
}

/// Takes a hash for what it is.
#[derive(Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
impl Order {
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.prefixes.len()
    }
}
