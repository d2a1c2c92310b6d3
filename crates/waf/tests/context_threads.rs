//! Many threads at one store: no increment is lost, loads are seen whole, limits hold.
#![expect(clippy::cast_possible_truncation, reason = "small numbers of threads and rounds")]

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use tidegate_waf::context::{
    Collection, Context, Entry, Lifetime, LoadRefused, Record, Refused, Scope, Settings,
};

const THREADS: i64 = 4;

fn number(context: &Context, record: Record<'_>, name: &[u8], now_ms: u64) -> Option<i64> {
    context.get(record, name, now_ms, |value| value.number())
}

#[test]
fn increments_sum_up_exactly() {
    const EACH: i64 = 20_000;
    let context = Context::in_memory(&Settings::default());
    let record = Record::new(Collection::Ip, b"203.0.113.7");
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (context, barrier) = (&context, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for step in 0..EACH {
                    context.add(record, b"hits", 1, 1_000).expect("there is room");
                    // Counters come and go beside it.
                    let name = format!("other {}", (thread + step) % 7);
                    context.add(record, name.as_bytes(), 1, 1_000).expect("there is room");
                }
            });
        }
    });
    assert_eq!(number(&context, record, b"hits", 1_000), Some(THREADS * EACH));
    let mut others = 0;
    context.each_named(record, b"other", 1_000, |_, value| {
        others += value.number();
        ControlFlow::Continue(())
    });
    assert_eq!(others, THREADS * EACH);
}

#[test]
fn an_increment_is_made_on_what_was_there_or_on_what_replaced_it() {
    // Whoever removes a counter learns nothing of its value, but who takes it away by replacing a
    // record does not lose what comes after: sums that were returned are all accounted for.
    let context = Context::in_memory(&Settings::default());
    let record = Record::new(Collection::Session, b"s");
    let (done, ones) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        let adders: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut ones_seen = 0;
                    for _ in 0..20_000 {
                        // A sum of 1 is the first increment of a fresh counter.
                        let sum = context.add(record, b"n", 1, 1_000).expect("there is room");
                        ones_seen += i64::from(sum == 1);
                    }
                    ones.fetch_add(ones_seen, Ordering::Relaxed);
                })
            })
            .collect();
        let remover = scope.spawn(|| {
            let mut removed = 0;
            while !done.load(Ordering::Relaxed) {
                removed += i64::from(context.remove(record, b"n", 1_000));
                thread::yield_now();
            }
            removed
        });
        for adder in adders {
            adder.join().expect("no panic");
        }
        done.store(true, Ordering::Relaxed);
        let removed = remover.join().expect("no panic");
        let left = i64::from(number(&context, record, b"n", 1_000).is_some());
        assert_eq!(ones.load(Ordering::Relaxed), removed + left, "each life begins with one 1");
    });
}

#[test]
fn a_load_is_seen_whole_and_loses_no_increment_beside_it() {
    let context = Context::in_memory(&Settings::default());
    let list = Record::new(Collection::Global, b"list");
    let names: Vec<String> = (0..200).map(|number| format!("entry {number}")).collect();
    let load = |version: i64| {
        let value = version.to_string();
        let entries = names.iter().map(|name| Entry {
            record: list,
            name: name.as_bytes(),
            value: value.as_bytes(),
            lifetime: Lifetime::Forever,
        });
        context.replace(Scope::Record(list), entries, 1_000).expect("there is room");
    };
    load(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                // A version is shown at once: who saw it in the first entry sees it, or a later
                // one, in the last.
                let first = number(&context, list, names[0].as_bytes(), 1_000).expect("a list");
                let end = number(&context, list, names[199].as_bytes(), 1_000).expect("a list");
                assert!(last <= first && first <= end, "{last} {first} {end}");
                last = end;
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let hits = Record::new(Collection::Global, b"hits");
                context.add(hits, b"n", 1, 1_000).expect("there is room");
                context.add(list, b"entry 7", 1_000_000, 1_000).expect("there is room");
            }
        });
        for version in 1..=60 {
            load(version);
        }
        done.store(true, Ordering::Relaxed);
    });
    load(61);
    let mut count = 0;
    context.each(list, 1_000, |_, value| {
        assert_eq!(value.number(), 61);
        count += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(count, 200);
}

#[test]
fn a_full_store_forgets_what_would_expire_soonest_and_counts_it() {
    let settings = Settings { entries_max: 100, ..Settings::default() };
    let context = Context::in_memory(&settings);
    let key = |number: u64| format!("10.0.0.{number}").into_bytes();
    // Later ones expire sooner.
    for number in 0..100 {
        let (key, now_ms) = (key(number), 1_000);
        let record = Record::new(Collection::Ip, &key);
        context.set(record, b"seen", b"yes", now_ms).expect("there is room");
        let until = Lifetime::Until(1_000_000 - number * 1000);
        assert!(context.expire(record, b"seen", until, now_ms));
    }
    assert_eq!((context.counters().entries, context.counters().evicted), (100, 0));
    for number in 100..130 {
        let key = key(number);
        let record = Record::new(Collection::Ip, &key);
        context.set(record, b"seen", b"yes", 1_000).expect("others give way");
    }
    let counters = context.counters();
    assert_eq!((counters.entries, counters.records, counters.evicted), (100, 100, 30));
    for number in 0..130 {
        let key = key(number);
        let kept = context.get(Record::new(Collection::Ip, &key), b"seen", 1_000, |_| ());
        assert_eq!(kept.is_some(), !(70..100).contains(&number), "{number}");
    }
    // What never expires gives way last, and of it what was written longest ago.
    for number in 0..100 {
        let key = key(number);
        let record = Record::new(Collection::User, &key);
        let now_ms = 2_000 + (number * 37) % 100;
        context.set(record, b"seen", b"yes", now_ms).expect("others give way");
        context.expire(record, b"seen", Lifetime::Forever, now_ms);
    }
    let more = Record::new(Collection::User, b"one more");
    context.set(more, b"seen", b"yes", 3_000).expect("one gives way");
    context.expire(more, b"seen", Lifetime::Forever, 3_000);
    let kept = |number: u64| {
        let key = key(number);
        context.get(Record::new(Collection::User, &key), b"seen", 3_000, |_| ()).is_some()
    };
    assert!(!kept(0), "written first");
    assert!((1..100).all(kept));
}

#[test]
fn bytes_stay_within_their_limit() {
    let settings = Settings { bytes_max: 100_000, ..Settings::default() };
    let context = Context::in_memory(&settings);
    let long = [b'x'; 5_000];
    for number in 0..1_000_u64 {
        let key = number.to_string();
        let record = Record::new(Collection::Ip, key.as_bytes());
        let value = &long[..number as usize % long.len()];
        context.set(record, b"v", value, number).expect("others give way");
        context.set(record, b"v", &long, number).expect("others give way");
        assert!(context.counters().bytes <= 100_000);
    }
    assert!(context.counters().evicted > 900);
    // What is more than everything is refused, and costs nobody their place.
    let before = context.counters();
    let record = Record::new(Collection::Ip, b"big");
    let entries =
        (0..100).map(|_| Entry { record, name: b"v", value: &long, lifetime: Lifetime::Forever });
    let refused = LoadRefused { entry: 18, why: Refused::NoRoom };
    assert_eq!(context.load(entries, 2_000), Err(refused));
    assert_eq!(context.counters(), before);
    // All gone again, all bytes are given back.
    for number in 0..1_000_u64 {
        let key = number.to_string();
        context.remove(Record::new(Collection::Ip, key.as_bytes()), b"v", 2_000);
    }
    let counters = context.counters();
    assert_eq!((counters.entries, counters.records, counters.bytes), (0, 0, 0));
}

#[test]
fn limits_of_length_are_refusals() {
    let settings =
        Settings { key_bytes_max: 3, name_bytes_max: 4, value_bytes_max: 5, ..Settings::default() };
    let context = Context::in_memory(&settings);
    let check = |key: &[u8], name: &[u8], value: &[u8], expected| {
        assert_eq!(context.set(Record::new(Collection::Ip, key), name, value, 0), expected);
    };
    check(b"123", b"1234", b"12345", Ok(()));
    check(b"1234", b"1234", b"12345", Err(Refused::KeyTooLong));
    check(b"123", b"12345", b"12345", Err(Refused::NameTooLong));
    check(b"123", b"1234", b"123456", Err(Refused::ValueTooLong));
    assert_eq!(context.counters().refused, 3);
}

#[test]
fn what_has_expired_is_cleared_away_without_being_asked_for() {
    let settings = Settings { timeout_s: 10, ..Settings::default() };
    let context = Context::in_memory(&settings);
    for number in 0..1_000_u64 {
        let key = number.to_string();
        let record = Record::new(Collection::Ip, key.as_bytes());
        context.add(record, b"n", 1, 1_000).expect("there is room");
    }
    assert_eq!(context.sweep(10_999), 0);
    assert_eq!(context.sweep(11_000), 1_000);
    let counters = context.counters();
    assert_eq!((counters.entries, counters.bytes, counters.expired), (0, 0, 1_000));

    // Without a sweep, writes do it on the side.
    for number in 0..3_000_u64 {
        let key = number.to_string();
        let record = Record::new(Collection::Ip, key.as_bytes());
        context.add(record, b"n", 1, 100_000 + number * 100).expect("there is room");
    }
    assert!(context.counters().entries < 200, "{:?}", context.counters());
}

#[test]
fn a_store_under_pressure_keeps_its_books() {
    // Everything at once in a store that is always full: no panic, no deadlock, exact books at the end.
    let settings = Settings { entries_max: 300, timeout_s: 1, ..Settings::default() };
    let context = Context::in_memory(&settings);
    thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let context = &context;
            scope.spawn(move || {
                let mut state = thread + 1;
                for step in 0..20_000_u64 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let key = ((state >> 33) % 200).to_string();
                    let record = Record::new(Collection::Ip, key.as_bytes());
                    // Loads write to two of them, so that others cross what is staged.
                    let name = [b"a", b"b", b"c", b"d"][(state >> 50) as usize % 4];
                    let now_ms = step / 10;
                    match (state >> 40) % 12 {
                        0 => _ = context.remove(record, name, now_ms),
                        1 => _ = context.set(record, name, b"some text", now_ms),
                        2 => _ = context.expire(record, name, Lifetime::Forever, now_ms),
                        3 => _ = context.deprecate(record, name, 1, 1, now_ms),
                        4 if step % 5 == 0 => {
                            let value: &[u8] = b"a value that does not fit in its place";
                            let entries = [b"c", b"d"].map(|name| Entry {
                                record,
                                name: &name[..],
                                value,
                                lifetime: Lifetime::Record,
                            });
                            _ = context.replace(Scope::Record(record), entries, now_ms);
                        }
                        5 => _ = context.sweep(now_ms),
                        _ => _ = context.add(record, name, 1, now_ms),
                    }
                }
            });
        }
    });
    assert!(context.counters().entries <= 300);
    for collection in Collection::ALL {
        context.replace(Scope::Collection(collection), [], 0).expect("nothing to refuse");
    }
    context.sweep(u64::MAX / 4);
    let counters = context.counters();
    assert_eq!((counters.entries, counters.records, counters.bytes), (0, 0, 0));
}
