//! Operations drawn from a seed or from a fuzzer's bytes, done to a store and to the model alike.

use std::ops::ControlFlow;

use tidegate_waf::context::{Collection, Context, Entry, Lifetime, Record, Scope};

use crate::model::Model;

/// Where choices come from.
pub(crate) trait Choices {
    /// A number below `limit`; `None` at the end.
    fn below(&mut self, limit: u8) -> Option<u8>;
}

/// Choices from a seed, so that a failure can be repeated (xorshift64*).
pub(crate) struct Seeded(pub(crate) u64);

impl Choices for Seeded {
    fn below(&mut self, limit: u8) -> Option<u8> {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let [.., byte, _] = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        Some(byte % limit)
    }
}

/// Choices from bytes.
#[allow(dead_code, reason = "the fuzz target's; tests draw from seeds")]
pub(crate) struct FromBytes<'a>(pub(crate) &'a [u8]);

impl Choices for FromBytes<'_> {
    fn below(&mut self, limit: u8) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte % limit)
    }
}

const KEYS: [&[u8]; 5] = [
    b"",
    b"10.0.0.1",
    b"10.0.0.11",
    b"10.0.0.1\0",
    b"a key that is longer than what fits in place",
];
const NAMES: [&[u8]; 6] =
    [b"", b"a", b"ab", b"abc", b"b", b"a name that is longer than what fits in place"];
const VALUES: [&[u8]; 7] =
    [b"", b"0", b"17", b"-3", b"007", b"text", b"a text that is longer than what fits in place"];

/// The timeout that both sides start with, in seconds.
pub(crate) const TIMEOUT_S: u32 = 20;

/// Does operations until the choices end or `steps` are done.
pub(crate) fn run(context: &Context, model: &mut Model, choices: &mut impl Choices, steps: usize) {
    let mut now_ms = 1_000_000;
    for _ in 0..steps {
        if step(context, model, choices, &mut now_ms).is_none() {
            break;
        }
    }
    compare(context, model, now_ms);
}

fn record(choices: &mut impl Choices) -> Option<Record<'static>> {
    let collection = if choices.below(3)? == 0 { Collection::Global } else { Collection::Ip };
    Some(Record::new(collection, one(choices, &KEYS)?))
}

fn one<T: Copy>(choices: &mut impl Choices, of: &[T]) -> Option<T> {
    let limit = u8::try_from(of.len()).expect("short lists");
    Some(of[usize::from(choices.below(limit)?)])
}

fn lifetime(choices: &mut impl Choices, now_ms: u64) -> Option<Lifetime> {
    Some(match choices.below(5)? {
        0 => Lifetime::Record,
        1 => Lifetime::Forever,
        _ => Lifetime::Until(now_ms + u64::from(choices.below(40)?) * 1000),
    })
}

fn step(
    context: &Context,
    model: &mut Model,
    choices: &mut impl Choices,
    now_ms: &mut u64,
) -> Option<()> {
    let now = *now_ms;
    match choices.below(16)? {
        0..=2 => {
            let (record, name) = (record(choices)?, one(choices, &NAMES)?);
            let value = one(choices, &VALUES)?;
            context.set(record, name, value, now).expect("there is room");
            model.set(record, name, value, now);
        }
        3..=5 => {
            let (record, name) = (record(choices)?, one(choices, &NAMES)?);
            let delta = i64::from(choices.below(20)?) - 5;
            let sum = context.add(record, name, delta, now).expect("there is room");
            assert_eq!(sum, model.add(record, name, delta, now), "sum");
        }
        6 => {
            let (record, name) = (record(choices)?, one(choices, &NAMES)?);
            let removed = context.remove(record, name, now);
            assert_eq!(removed, model.remove(record, name, now), "removed");
        }
        7 => {
            let (record, name) = (record(choices)?, one(choices, &NAMES)?);
            let lifetime = lifetime(choices, now)?;
            let expires = context.expire(record, name, lifetime, now);
            assert_eq!(expires, model.expire(record, name, lifetime, now), "expires");
        }
        8 => {
            let (record, name) = (record(choices)?, one(choices, &NAMES)?);
            let (amount, period_s) =
                (u32::from(choices.below(9)?), u32::from(choices.below(9)?) + 1);
            let is = context.deprecate(record, name, amount, period_s, now);
            assert_eq!(is, model.deprecate(record, name, amount, period_s, now), "deprecated");
        }
        9 => {
            let record = record(choices)?;
            let timeout_s = u32::from(choices.below(30)?) + 1;
            let known = context.set_timeout(record, timeout_s, now);
            assert_eq!(known, model.set_timeout(record, timeout_s, now), "timeout");
        }
        10 => load(context, model, choices, now)?,
        11 => {
            context.sweep(now);
        }
        12..=13 => *now_ms += u64::from(choices.below(12)?) * 1000,
        14 => {
            let record = record(choices)?;
            assert_eq!(context.about(record, now), model.about(record, now), "about");
            for name in NAMES {
                let mut read = None;
                context.get(record, name, now, |value| {
                    value.append_to(read.insert(Vec::new()));
                });
                assert_eq!(read, model.get(record, name, now), "{record:?} {name:?}");
            }
        }
        _ => compare(context, model, now),
    }
    Some(())
}

fn load(
    context: &Context,
    model: &mut Model,
    choices: &mut impl Choices,
    now_ms: u64,
) -> Option<()> {
    let mut entries = Vec::new();
    for _ in 0..choices.below(4)? {
        let record = record(choices)?;
        let (name, value) = (one(choices, &NAMES)?, one(choices, &VALUES)?);
        entries.push(Entry { record, name, value, lifetime: lifetime(choices, now_ms)? });
    }
    let scope = match choices.below(4)? {
        0 => None,
        1 => Some(Scope::Collection(Collection::Ip)),
        2 => Some(Scope::Keys(Collection::Ip, b"10.0.0.1")),
        _ => Some(Scope::Record(record(choices)?)),
    };
    let loaded = match scope {
        None => context.load(entries.iter().copied(), now_ms),
        Some(scope) => context.replace(scope, entries.iter().copied(), now_ms),
    };
    let loaded = loaded.expect("there is room");
    // Of those that name one place, the last counts.
    let same =
        |one: &Entry<'_>, other: &Entry<'_>| (one.record, one.name) == (other.record, other.name);
    let last: Vec<_> = (0..entries.len())
        .filter(|at| !entries[at + 1..].iter().any(|later| same(later, &entries[*at])))
        .map(|at| entries[at])
        .collect();
    assert_eq!(loaded.written, last.len());
    model.load(&last, now_ms);
    let named: Vec<_> = entries.iter().map(|entry| (entry.record, entry.name)).collect();
    let removed = scope.map_or(0, |scope| model.remove_others(scope, &named, now_ms));
    assert_eq!(loaded.removed, removed, "removed by a load");
    Some(())
}

/// Everything, by each way of walking.
pub(crate) fn compare(context: &Context, model: &mut Model, now_ms: u64) {
    let all = model.all(now_ms);
    let mut walked = Vec::new();
    for collection in Collection::ALL {
        context.each_keyed(collection, b"", now_ms, |record, name, value| {
            let mut text = Vec::new();
            value.append_to(&mut text);
            walked.push((record.collection, record.key.to_vec(), name.to_vec(), text));
            ControlFlow::Continue(())
        });
    }
    for (walked, expected) in walked.iter().zip(&all) {
        assert_eq!(walked, expected, "the first that differs");
    }
    assert_eq!(walked.len(), all.len(), "variables");
    for prefix in [&b"10.0.0.1"[..], b"a"] {
        let mut keys = Vec::new();
        context.each_keyed(Collection::Ip, prefix, now_ms, |record, name, _| {
            keys.push((record.key.to_vec(), name.to_vec()));
            ControlFlow::Continue(())
        });
        let expected: Vec<_> = all
            .iter()
            .filter(|(collection, key, ..)| {
                *collection == Collection::Ip && key.starts_with(prefix)
            })
            .map(|(_, key, name, _)| (key.clone(), name.clone()))
            .collect();
        assert_eq!(keys, expected, "keys that begin with {prefix:?}");
    }
    let record = Record::new(Collection::Ip, b"10.0.0.1");
    let mut names = Vec::new();
    context.each_named(record, b"ab", now_ms, |name, _| {
        names.push(name.to_vec());
        ControlFlow::Continue(())
    });
    let expected: Vec<_> = all
        .iter()
        .filter(|(collection, key, name, _)| {
            Record::new(*collection, key) == record && name.starts_with(b"ab")
        })
        .map(|(_, _, name, _)| name.clone())
        .collect();
    assert_eq!(names, expected, "names that begin with ab");
}
