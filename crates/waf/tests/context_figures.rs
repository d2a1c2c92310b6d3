//! What context costs. Each figure is a test that is run by hand, alone on the machine:
//!
//!     cargo test --release -p tidegate-waf --test context_figures -- --ignored --nocapture --test-threads 1 NAME
//!
//! They print; only what must hold on any machine is asserted.
#![expect(
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    reason = "these measure, and figures need no more digits than they have"
)]

use std::fs;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_waf::context::{Collection, Context, Entry, Lifetime, Record, Scope, Settings};

/// The gate's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOW_MS: u64 = 1_700_000_000_000;

fn addresses(count: u32) -> Vec<String> {
    // A step that is prime to the count spreads them.
    (0..count)
        .map(|number| (number * 7_919) % count)
        .map(|number| format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255))
        .collect()
}

/// The marketplace: `count` values in one record, and as many records of one value.
fn marketplace(count: u32) -> (Arc<Context>, Vec<String>) {
    let context = Context::in_memory(&Settings::default());
    let addresses = addresses(count);
    let global = Record::new(Collection::Global, b"global");
    let entries = addresses.iter().map(|address| Entry {
        record: global,
        name: address.as_bytes(),
        value: b"blocked by the feed",
        lifetime: Lifetime::Forever,
    });
    context.load(entries, NOW_MS).expect("room");
    let entries = addresses.iter().map(|address| Entry {
        record: Record::new(Collection::Ip, address.as_bytes()),
        name: b"score",
        value: b"42",
        lifetime: Lifetime::Forever,
    });
    context.load(entries, NOW_MS).expect("room");
    (context, addresses)
}

fn per(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_secs_f64() * 1e9 / count as f64
}

#[test]
#[ignore = "a measurement"]
fn look_ups() {
    for count in [100, 10_000, 1_000_000] {
        let (context, addresses) = marketplace(count);
        let global = Record::new(Collection::Global, b"global");
        let rounds = 3_000_000 / addresses.len();
        let mut found = 0_usize;
        let begin = Instant::now();
        for _ in 0..rounds {
            for address in &addresses {
                found += context
                    .get(global, address.as_bytes(), NOW_MS, |value| black_box(value).number())
                    .map_or(0, |_| 1);
            }
        }
        let named = per(begin.elapsed(), rounds * addresses.len());
        let begin = Instant::now();
        for _ in 0..rounds {
            for address in &addresses {
                let record = Record::new(Collection::Ip, address.as_bytes());
                found += context
                    .get(record, b"score", NOW_MS, |value| black_box(value).number())
                    .map_or(0, |_| 1);
            }
        }
        let keyed = per(begin.elapsed(), rounds * addresses.len());
        assert_eq!(found, 2 * rounds * addresses.len());
        let begin = Instant::now();
        for _ in 0..rounds {
            for address in &addresses {
                let record = Record::new(Collection::User, address.as_bytes());
                assert!(context.get(record, b"score", NOW_MS, |_| ()).is_none());
            }
        }
        let absent = per(begin.elapsed(), rounds * addresses.len());
        let mut matches = 0;
        let begin = Instant::now();
        for address in addresses.iter().take(1_000) {
            let prefix = &address.as_bytes()[..address.len() - 1];
            context.each_named(global, prefix, NOW_MS, |_, value| {
                black_box(value);
                matches += 1;
                ControlFlow::Continue(())
            });
        }
        let prefix = per(begin.elapsed(), addresses.len().min(1_000));
        let each = matches as f64 / addresses.len().min(1_000) as f64;
        println!(
            "{count} values: a name {named:.0} ns, a key {keyed:.0} ns, nothing {absent:.0} ns, \
             a prefix {prefix:.0} ns for {each:.1} matches"
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn readers_beside_a_writer() {
    let (context, addresses) = marketplace(10_000);
    let global = Record::new(Collection::Global, b"global");
    for writes_per_s in [0_u64, 1_000, 100_000] {
        let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut samples: Vec<u64> = Vec::with_capacity(4_000_000);
        thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                while !done.load(Ordering::Relaxed) && writes_per_s > 0 {
                    let due = begin.elapsed().as_nanos() as u64 * writes_per_s / 1_000_000_000;
                    let mut number = written.load(Ordering::Relaxed);
                    while number < due {
                        let address = addresses[number as usize * 31 % addresses.len()].as_bytes();
                        match number % 4 {
                            0 => context.set(global, address, b"blocked again", NOW_MS),
                            1 => context.set(
                                global,
                                address,
                                b"a longer reason for blocking it",
                                NOW_MS,
                            ),
                            2 => context
                                .add(Record::new(Collection::Ip, address), b"score", 1, NOW_MS)
                                .map(|_| ()),
                            _ => {
                                let record = Record::new(Collection::Session, address);
                                if !context.remove(record, b"seen", NOW_MS) {
                                    context.set(record, b"seen", b"1", NOW_MS).expect("room");
                                }
                                Ok(())
                            }
                        }
                        .expect("room");
                        number += 1;
                    }
                    written.store(number, Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(200));
                }
            });
            let begin = Instant::now();
            let mut at = 0;
            while begin.elapsed() < Duration::from_secs(5) {
                let sample = Instant::now();
                for _ in 0..50 {
                    at = (at + 37) % addresses.len();
                    let name = addresses[at].as_bytes();
                    black_box(context.get(global, name, NOW_MS, |value| black_box(value).number()));
                }
                samples.push(sample.elapsed().as_nanos() as u64);
            }
            done.store(true, Ordering::Relaxed);
        });
        samples.sort_unstable();
        let at =
            |share: f64| samples[((samples.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
        println!(
            "{writes_per_s} writes/s ({} done): 50 look-ups take {:.2} us at p50, {:.2} at p99, \
             {:.2} at p99.9, {:.1} at most ({} samples)",
            written.load(Ordering::Relaxed),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            samples.len()
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn writes() {
    let (context, addresses) = marketplace(10_000);
    let global = Record::new(Collection::Global, b"global");
    let rounds = 50;
    let time = |what: &str, write: &dyn Fn(&[u8])| {
        let begin = Instant::now();
        for _ in 0..rounds {
            for address in &addresses {
                write(address.as_bytes());
            }
        }
        println!("{what}: {:.0} ns", per(begin.elapsed(), rounds * addresses.len()));
    };
    time("increment", &|address| {
        let record = Record::new(Collection::Ip, address);
        context.add(record, b"score", 1, NOW_MS).expect("room");
    });
    time("set", &|address| context.set(global, address, b"blocked again", NOW_MS).expect("room"));
    time("make and remove", &|address| {
        let record = Record::new(Collection::Session, address);
        context.set(record, b"seen", b"1", NOW_MS).expect("room");
        context.remove(record, b"seen", NOW_MS);
    });
    let watch = context.watch(1_000_000);
    time("increment, watched", &|address| {
        let record = Record::new(Collection::Ip, address);
        context.add(record, b"score", 1, NOW_MS).expect("room");
    });
    assert_eq!(watch.take_lost(), 0);
    drop(watch);
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1_000_000 {
                    context.add(global, b"everybody's", 1, NOW_MS).expect("room");
                }
            });
        }
    });
    println!("two threads at one counter: {:.0} ns", per(begin.elapsed(), 2_000_000));
}

/// Resident memory without that of files, in bytes: pages of the store's file are the kernel's cache.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// What this thread has used of a CPU: other work on the machine is not in it.
fn cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let used = text.split(' ').next().and_then(|used| used.parse().ok()).expect("a number");
    Duration::from_nanos(used)
}

#[test]
#[ignore = "a measurement"]
fn a_million() {
    const COUNT: usize = 1_000_000;
    let directory = std::env::temp_dir().join(format!("tidegate-million-{}", std::process::id()));
    let settings = Settings { entries_max: 3 * COUNT, bytes_max: 2 << 30, ..Settings::default() };
    // Keys and values of 20 bytes, in no order.
    let numbers = (0..COUNT as u64).map(|number| number * 7_919 % COUNT as u64);
    let keys: Vec<String> = numbers.clone().map(|number| format!("key-{number:016}")).collect();
    let values: Vec<String> = numbers.map(|number| format!("value {number:014}")).collect();
    let entries = keys.iter().zip(&values).map(|(key, value)| Entry {
        record: Record::new(Collection::Ip, key.as_bytes()),
        name: b"v",
        value: value.as_bytes(),
        lifetime: Lifetime::Forever,
    });
    let context = Context::open(&directory, &settings, NOW_MS).expect("a new store");
    let before = resident();
    let (begin, used) = (Instant::now(), cpu());
    let loaded = context.load(entries.clone(), NOW_MS).expect("room");
    let (memory, used) = (begin.elapsed(), cpu().saturating_sub(used));
    context.flush().expect("written");
    let disk = begin.elapsed();
    assert_eq!(loaded.written, COUNT);
    let counters = context.counters();
    println!(
        "loaded in {memory:.2?} ({used:.2?} of CPU), on disk after {disk:.2?}; {} bytes of memory per entry, {} by the \
         store's own count; {} bytes on disk",
        (resident() - before) / COUNT,
        counters.bytes / COUNT,
        fs::metadata(directory.join("data.mdb")).expect("a file").len() / COUNT as u64,
    );
    let begin = Instant::now();
    let scope = Scope::Collection(Collection::Ip);
    let replaced = context.replace(scope, entries.clone().take(COUNT / 2), NOW_MS).expect("room");
    println!("half of it replaced and half removed in {:.2?}", begin.elapsed());
    assert_eq!(replaced.removed, COUNT / 2);
    context.load(entries, NOW_MS).expect("room");
    let begin = Instant::now();
    drop(context);
    println!("closed in {:.2?}", begin.elapsed());
    let (begin, used) = (Instant::now(), cpu());
    let context = Context::open(&directory, &settings, NOW_MS).expect("the store");
    println!("opened in {:.2?} ({:.2?} of CPU)", begin.elapsed(), cpu().saturating_sub(used));
    assert_eq!(context.counters().entries, COUNT);
    drop(context);

    let context = Context::in_memory(&settings);
    let record = Record::new(Collection::Global, b"global");
    let entries = keys.iter().zip(&values).map(|(key, value)| Entry {
        record,
        name: key.as_bytes(),
        value: value.as_bytes(),
        lifetime: Lifetime::Forever,
    });
    let before = resident();
    let (begin, used) = (Instant::now(), cpu());
    context.load(entries, NOW_MS).expect("room");
    println!(
        "in one record, in memory only: loaded in {:.2?} ({:.2?} of CPU), {} bytes per entry",
        begin.elapsed(),
        cpu().saturating_sub(used),
        resident().saturating_sub(before) / COUNT
    );
    fs::remove_dir_all(&directory).expect("removed");
}
