use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::hash::Seed;

const SEED: Seed = Seed::new([9; 16]);

fn name(number: u64) -> Vec<u8> {
    format!("https://example.org/{number}").into_bytes()
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(bytes, &SEED)
}

#[test]
fn what_is_stored_is_found_until_it_is_removed() {
    let memory = Memory::new(1 << 20);
    let bytes = name(1);
    let key = key(&bytes);
    assert_eq!(memory.get(&key), None);
    let inserted = memory.insert(&key, Arc::new(1), 100);
    assert!(inserted.outcome == Outcome::Added && inserted.gone.is_empty());
    assert_eq!(memory.get(&key).as_deref(), Some(&1));
    let inserted = memory.insert(&key, Arc::new(2), 100);
    assert_eq!((inserted.outcome, &*inserted.gone[0]), (Outcome::Replaced, &1));
    assert_eq!(memory.get(&key).as_deref(), Some(&2));
    assert_eq!(memory.remove_if(&key, |value| **value == 1), None);
    assert_eq!(memory.remove(&key).as_deref(), Some(&2));
    assert_eq!((memory.remove(&key), memory.get(&key)), (None, None));
    assert_eq!(memory.stats(), Stats { bytes_max: 1 << 20, ..Stats::default() });
}

#[test]
fn variants_and_slices_lie_side_by_side() {
    let memory = Memory::new(1 << 20);
    let key = key(b"k");
    let of = |number| Slice { object: 1, number };
    let keys = [key, key.variant(1), key.variant(2), key.slice(of(0)), key.slice(of(1))];
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(memory.insert(key, number, 1).outcome, Outcome::Added);
    }
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(memory.get(key), Some(number));
    }
}

#[test]
fn the_bound_holds_for_all_that_entries_cost() {
    let memory = Memory::new(1 << 20);
    let mut sum = 0;
    for number in 0..50_000 {
        let weight = 1 + number * 37 % 9_000;
        let inserted = memory.insert(&key(&name(number)), number, weight);
        assert_eq!(inserted.outcome, Outcome::Added);
        sum += 1 - i64::try_from(inserted.gone.len()).unwrap();
        assert!(memory.stats().bytes <= 1 << 20);
    }
    let stats = memory.stats();
    assert_eq!(i64::try_from(stats.entries).unwrap(), sum);
    assert_eq!(stats.evicted + stats.entries, 50_000);
    assert!(stats.bytes > (1 << 20) - 10_000, "no more goes than must: {stats:?}");
}

#[test]
fn what_is_too_large_is_refused_and_takes_the_older_value_with_it() {
    let memory = Memory::new(1 << 20);
    let key = key(b"k");
    let _ = memory.insert(&key, 1, 100);
    let inserted = memory.insert(&key, 2, memory.value_bytes_max());
    assert_eq!((inserted.outcome, inserted.gone), (Outcome::TooLarge, vec![2, 1]));
    assert_eq!(memory.get(&key), None);
    assert_eq!(memory.insert(&key, 3, u64::MAX).outcome, Outcome::TooLarge);
}

#[test]
fn only_the_value_that_is_meant_is_replaced() {
    let memory = Memory::new(1 << 20);
    let key = key(b"k");
    assert_eq!(memory.replace(&key, 2, 10, |_| true), Err(2));
    let _ = memory.insert(&key, 1, 10);
    assert_eq!(memory.replace(&key, 3, 10, |&value| value == 2), Err(3));
    assert_eq!(memory.replace(&key, 2, 20, |&value| value == 1), Ok(1));
    assert_eq!(memory.peek(&key), Some(2));
    assert_eq!(memory.stats().bytes, 20 + 1 + ENTRY_BYTES);
}

#[test]
fn a_scan_does_not_drive_out_what_is_used() {
    let memory = Memory::new(1 << 20);
    let used = 0..100;
    for round in 0..3 {
        for number in used.clone() {
            if round == 0 {
                let _ = memory.insert(&key(&name(number)), number, 1000);
            }
            assert_eq!(memory.get(&key(&name(number))), Some(number));
        }
    }
    for number in 1000..100_000 {
        let _ = memory.insert(&key(&name(number)), number, 1000);
    }
    for number in used {
        assert_eq!(memory.get(&key(&name(number))), Some(number));
    }
}

#[test]
fn a_smaller_bound_lets_the_rest_go_and_a_larger_one_makes_room() {
    let memory = Memory::new(1 << 20);
    let fill = |from| {
        for number in from..from + 2000 {
            let _ = memory.insert(&key(&name(number)), number, 1000);
        }
    };
    fill(0);
    memory.resize(1 << 18);
    let small = memory.stats();
    assert!(small.bytes <= 1 << 18 && small.bytes > 1 << 17, "{small:?}");
    memory.resize(1 << 21);
    fill(10_000);
    assert!(memory.stats().bytes > 3 << 19);
    memory.resize(0);
    assert_eq!(memory.stats().entries, 0);
    assert_eq!(memory.insert(&key(b"k"), 1, 1).outcome, Outcome::TooLarge);
}

#[test]
fn a_visit_in_steps_sees_each_entry_once() {
    let memory = Memory::new(256 << 20);
    assert_eq!(memory.shards.len(), 4);
    for number in 0..5000 {
        let _ = memory.insert(&key(&name(number)), number, 10);
    }
    for _ in 0..3 {
        memory.get(&key(&name(77)));
    }
    let mut seen = HashMap::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        let mut step = 0;
        cursor = memory.visit(from, 100, |entry| {
            step += 1;
            assert_eq!(entry.key, name(*entry.value));
            assert_eq!(entry.bytes, 10 + entry.key.len() as u64 + ENTRY_BYTES);
            assert_eq!(seen.insert(*entry.value, entry.hits), None);
        });
        assert!(step <= 100);
    }
    assert_eq!(seen.len(), 5000);
    assert_eq!((seen[&77], seen[&78]), (3, 0));
}

/// Random operations beside a map: what is found is what was stored last, or nothing.
#[test]
fn operations_in_any_order_keep_the_books() {
    let memory = Memory::new(1 << 16);
    let mut model: HashMap<u64, u64> = HashMap::new();
    let mut state = 0x1234_5678_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for turn in 0..200_000 {
        let number = next(300);
        let bytes = name(number);
        let key = key(&bytes);
        match next(10) {
            0..=2 => {
                let weight = next(10_000);
                let inserted = memory.insert(&key, turn, weight);
                match inserted.outcome {
                    Outcome::TooLarge => model.remove(&number),
                    Outcome::Added | Outcome::Replaced => model.insert(number, turn),
                };
            }
            3 => {
                memory.remove(&key);
                model.remove(&number);
            }
            4 => {
                if memory.replace(&key, turn, next(8000), |_| true).is_ok() {
                    model.insert(number, turn);
                }
            }
            _ => {
                if let Some(found) = memory.get(&key) {
                    assert_eq!(Some(&found), model.get(&number));
                }
            }
        }
        if turn % 1000 == 0 {
            let stats = memory.stats();
            let (mut entries, mut bytes) = (0, 0);
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                cursor = memory.visit(from, 1000, |entry| {
                    (entries, bytes) = (entries + 1, bytes + entry.bytes);
                });
            }
            assert_eq!((stats.entries, stats.bytes), (entries, bytes));
            assert!(stats.bytes <= stats.bytes_max);
        }
    }
}

#[test]
fn threads_share_it() {
    let memory = Arc::new(Memory::<Arc<u64>>::new(1 << 18));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let memory = Arc::clone(&memory);
            std::thread::spawn(move || {
                for turn in 0..20_000_u64 {
                    let number = (turn * (thread + 3)) % 700;
                    let bytes = name(number);
                    match memory.get(&key(&bytes)) {
                        Some(found) => assert_eq!(*found, number, "thread {thread}"),
                        None => drop(memory.insert(&key(&bytes), Arc::new(number), 700)),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(memory.stats().bytes <= 1 << 18);
}
