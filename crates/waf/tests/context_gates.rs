//! Gates that share context: what one changes and another applies makes them agree.

#[path = "context/model.rs"]
#[expect(dead_code, reason = "the steps name it")]
mod model;
#[path = "context/steps.rs"]
#[expect(dead_code, reason = "only the choices are used here")]
mod steps;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use steps::{Choices, Seeded};
use tidegate_waf::context::{
    Applied, Collection, Context, Entry, Forgotten, Lifetime, Record, Scope, Settings, Source,
    Update, Watch,
};

struct Gate {
    context: Arc<Context>,
    watch: Watch,
    now_ms: u64,
}

impl Gate {
    fn new(origin: u16) -> Self {
        let settings = Settings { origin, removed_kept_s: 3_600, ..Settings::default() };
        let context = Context::in_memory(&settings);
        let watch = context.watch(100_000);
        // Clocks differ, as clocks do.
        Self { context, watch, now_ms: 1_000_000 + u64::from(origin) * 70 }
    }

    /// Sends up to `count` changes to another gate, as a program does over the wire.
    fn send(&self, to: &Self, count: usize) -> usize {
        let mut sent = 0;
        while sent < count
            && let Some(change) = self.watch.try_next()
        {
            if change.source == Source::Local
                && let Some(update) = change.update()
            {
                to.context.apply(change.record(), change.name(), &update, to.now_ms).expect("room");
                sent += 1;
            }
        }
        assert_eq!(self.watch.take_lost(), 0);
        sent
    }

    fn all(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.context.snapshot(self.now_ms, |record, name, update| {
            if !matches!(update, Update::Remove { .. }) {
                all.push(format!("{record:?} {name:?} {update:?}"));
            }
            ControlFlow::Continue(())
        });
        all
    }
}

const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];

fn change(gate: &mut Gate, choices: &mut Seeded) -> Option<()> {
    let keys: [&[u8]; 2] = [b"1", b"2"];
    let record = Record::new(Collection::User, keys[usize::from(choices.below(2)?)]);
    let name = NAMES[usize::from(choices.below(3)?)];
    gate.now_ms += u64::from(choices.below(3)?);
    let now_ms = gate.now_ms;
    match choices.below(10)? {
        0..=4 => {
            let delta = i64::from(choices.below(9)?) - 2;
            gate.context.add(record, name, delta, now_ms).expect("room");
        }
        5..=6 => {
            let values: [&[u8]; 3] = [b"text", b"40", b"a text that does not fit in its place"];
            let value = values[usize::from(choices.below(3)?)];
            gate.context.set(record, name, value, now_ms).expect("room");
        }
        7 => drop(gate.context.remove(record, name, now_ms)),
        8 => {
            let lifetime = match choices.below(3)? {
                0 => Lifetime::Forever,
                // Far enough that no clock of these gates reaches it.
                _ => Lifetime::Until(9_000_000 + u64::from(choices.below(100)?)),
            };
            gate.context.expire(record, name, lifetime, now_ms);
        }
        _ => {
            let entries = NAMES[..usize::from(choices.below(3)?)].iter().map(|name| Entry {
                record,
                name,
                value: b"loaded",
                lifetime: Lifetime::Forever,
            });
            let entries: Vec<_> = entries.collect();
            gate.context.replace(Scope::Record(record), entries, now_ms).expect("room");
        }
    }
    Some(())
}

#[test]
fn two_gates_agree_in_the_end() {
    for seed in 1..=300_u64 {
        let mut choices = Seeded(seed * 0x9e37_79b9);
        let mut gates = [Gate::new(1), Gate::new(2)];
        println!("seed {seed}");
        for _ in 0..200 {
            let [one, two] = &mut gates;
            let count = usize::from(choices.below(4).expect("no end"));
            match choices.below(4).expect("no end") {
                0 => change(one, &mut choices).expect("no end"),
                1 => change(two, &mut choices).expect("no end"),
                2 => drop(one.send(two, count)),
                _ => drop(two.send(one, count)),
            }
        }
        let [one, two] = &gates;
        one.send(two, usize::MAX);
        two.send(one, usize::MAX);
        // Nothing bounces back.
        assert_eq!((one.send(two, usize::MAX), two.send(one, usize::MAX)), (0, 0));
        assert_eq!(one.all(), two.all());
    }
}

#[test]
fn increments_of_both_gates_add_up() {
    let gates = [Gate::new(1), Gate::new(2)];
    let [one, two] = &gates;
    let record = Record::new(Collection::Ip, b"203.0.113.7");
    for round in 0..10 {
        for gate in &gates {
            for _ in 0..=round {
                gate.context.add(record, b"hits", 1, gate.now_ms).expect("room");
            }
        }
        one.send(two, usize::MAX);
        two.send(one, usize::MAX);
    }
    for gate in &gates {
        let hits = gate.context.get(record, b"hits", gate.now_ms, |value| value.number());
        assert_eq!(hits, Some(110));
    }
}

#[test]
fn a_gate_that_comes_late_starts_from_a_snapshot() {
    let mut one = Gate::new(1);
    let mut choices = Seeded(7);
    for _ in 0..300 {
        change(&mut one, &mut choices).expect("no end");
    }
    let late = Gate::new(2);
    one.context.snapshot(one.now_ms, |record, name, update| {
        late.context.apply(record, name, &update, late.now_ms).expect("room");
        ControlFlow::Continue(())
    });
    assert_eq!(one.all(), late.all());
    // The same again changes nothing.
    one.context.snapshot(one.now_ms, |record, name, update| {
        let applied = late.context.apply(record, name, &update, late.now_ms);
        assert_eq!(applied, Ok(Applied::Outdated), "{update:?}");
        ControlFlow::Continue(())
    });
}

#[test]
fn a_watcher_that_does_not_keep_up_is_told_how_much_it_lost() {
    let context = Context::in_memory(&Settings::default());
    let record = Record::new(Collection::Global, b"global");
    context.set(record, b"before", b"x", 1_000).expect("room");
    let (quick, slow) = (context.watch(100), context.watch(3));
    for number in 0..10 {
        context.add(record, b"n", number, 1_000).expect("room");
    }
    let quick_saw: Vec<u64> =
        std::iter::from_fn(|| quick.try_next()).map(|change| change.sequence).collect();
    assert_eq!(quick_saw, (1..=10).collect::<Vec<_>>());
    assert_eq!(std::iter::from_fn(|| slow.try_next()).count(), 3);
    assert_eq!((quick.take_lost(), slow.take_lost(), slow.take_lost()), (0, 7, 0));
    assert_eq!(context.counters().lost, 7);
    // It goes on with what comes next; the gap can be seen.
    context.add(record, b"n", 1, 1_000).expect("room");
    assert_eq!(slow.next(Duration::from_secs(5)).map(|change| change.sequence), Some(11));
    // Who has gone is told nothing more.
    drop(slow);
    for _ in 0..10 {
        context.add(record, b"n", 1, 1_000).expect("room");
    }
    assert_eq!(context.counters().lost, 7);
}

#[test]
fn watchers_hear_why_a_variable_went() {
    let settings = Settings { entries_max: 2, ..Settings::default() };
    let context = Context::in_memory(&settings);
    let watch = context.watch(100);
    let record = |key| Record::new(Collection::Ip, key);
    context.set(record(b"1"), b"v", b"x", 1_000).expect("room");
    context.expire(record(b"1"), b"v", Lifetime::Until(2_000), 1_000);
    context.sweep(2_000);
    context.set(record(b"2"), b"v", b"x", 2_000).expect("room");
    context.set(record(b"3"), b"v", b"x", 3_000).expect("room");
    context.set(record(b"4"), b"v", b"x", 4_000).expect("room");
    let forgotten: Vec<_> = std::iter::from_fn(|| watch.try_next())
        .filter_map(|change| Some((change.record().key.to_vec(), change.forgotten()?)))
        .collect();
    let expected = [(b"1".to_vec(), Forgotten::Expired), (b"2".to_vec(), Forgotten::Evicted)];
    assert_eq!(forgotten, expected);
}
