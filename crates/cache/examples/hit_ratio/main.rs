//! Hit ratios of the memory tier beside LRU and W-TinyLFU, on generated traces, and what a hit
//! costs.
//!
//! `cargo run --release -p tidegate-cache --example hit_ratio`
//!
//! With `cost` as its argument, only the latter.
//!
//! Every policy gets a tenth of the corpus in bytes and the same requests. Sizes follow a log-normal
//! distribution around 10 KB, popularity is Zipf's with exponent 0.9 and has nothing to do with
//! size. Scans are runs of objects in order: through the corpus, as a crawler does, or through
//! objects that nobody else ever asks for. The first fifth of a trace warms up and is not counted.

#![expect(clippy::print_stdout, reason = "an example's output is its purpose")]
#![expect(clippy::cast_precision_loss, reason = "ratios for people")]

mod lru;
mod tiny_lfu;
mod trace;

use std::time::Duration;

use tidegate_cache::hash::Seed;
use tidegate_cache::store::Key;
use tidegate_cache::store::memory::{ENTRY_BYTES, Memory};

use lru::Lru;
use tiny_lfu::TinyLfu;
use trace::{Request, Scan, Trace};

const SEED: Seed = Seed::new([1; 16]);

/// A cache as far as a trace is concerned.
trait Policy {
    /// Asks for an object, and stores it if it is not there. Whether it was.
    fn request(&mut self, request: Request) -> bool;
}

impl Policy for Memory<u64> {
    fn request(&mut self, request: Request) -> bool {
        let name = request.object.to_le_bytes();
        let key = Key::new(&name, &SEED);
        let hit = self.get(&key).is_some();
        if !hit {
            // The others are measured without what entries cost, so that is taken off here.
            let weight = request.bytes.saturating_sub(ENTRY_BYTES + name.len() as u64);
            drop(self.insert(&key, request.object, weight));
        }
        hit
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() != Some("cost") {
        hit_ratios();
    }
    hit_cost();
}

fn hit_ratios() {
    println!("| trace | policy | hits, % | to LRU | bytes hit, % | of the Zipf part, % |");
    println!("|---|---|---|---|---|---|");
    for scan in [Scan::None, Scan::Corpus, Scan::Strangers, Scan::Loop] {
        let trace = Trace::generate(scan);
        let room = trace::corpus_bytes() / 10;
        let lru = measure(&trace, &mut Lru::new(room));
        report(&trace, "LRU", &lru, &lru);
        report(&trace, "W-TinyLFU", &measure(&trace, &mut TinyLfu::new(room)), &lru);
        report(&trace, "Tidegate (S3-FIFO)", &measure(&trace, &mut Memory::new(room)), &lru);
    }
    println!();
}

struct Measured {
    hits: f64,
    bytes: f64,
    zipf: f64,
}

fn measure(trace: &Trace, policy: &mut impl Policy) -> Measured {
    let (mut hits, mut asked) = ([0_u64; 3], [0_u64; 3]);
    for (at, &request) in trace.requests.iter().enumerate() {
        let hit = policy.request(request);
        if at >= trace.requests.len() / 5 {
            let counts = [1, request.bytes, u64::from(!request.scan)];
            for (which, count) in counts.into_iter().enumerate() {
                asked[which] += count;
                hits[which] += if hit { count } else { 0 };
            }
        }
    }
    let percent = |which: usize| 100.0 * hits[which] as f64 / asked[which] as f64;
    Measured { hits: percent(0), bytes: percent(1), zipf: percent(2) }
}

fn report(trace: &Trace, policy: &str, measured: &Measured, lru: &Measured) {
    println!(
        "| {} | {policy} | {:.1} | {:+.1} | {:.1} | {:.1} |",
        trace.name,
        measured.hits,
        measured.hits - lru.hits,
        measured.bytes,
        measured.zipf,
    );
}

/// Nanoseconds of a look-up that hits: one thread, then two.
fn hit_cost() {
    const ENTRIES: u64 = 100_000;
    const HITS: u64 = 20_000_000;
    let memory = Memory::new(1 << 30);
    let mut name = Name::new();
    for number in 0..ENTRIES {
        let key = Key::new(name.numbered(number), &SEED);
        drop(memory.insert(&key, std::sync::Arc::new(0_u64), 1000));
    }
    // Asked for as in the first trace; which of them are asked for decides how many are in the
    // processor's caches.
    let asked: Vec<_> = Trace::generate(Scan::None).requests;
    let run = |first: usize, different: u64| {
        let mut name = Name::new();
        let mut requests = asked.iter().cycle().skip(first);
        for _ in 0..HITS {
            let Some(request) = requests.next() else { return };
            let key = Key::new(name.numbered(request.object % different), &SEED);
            assert!(std::hint::black_box(memory.get(&key)).is_some());
        }
    };
    let per_hit = |spent: Duration| spent.as_nanos() as f64 / HITS as f64;
    println!("| a hit (key, look-up, and clone of a reference count) | ns |\n|---|---|");
    for (what, different) in [("1,000 keys", 1000), ("100,000 keys", ENTRIES)] {
        println!("| one thread, {what} | {:.0} |", per_hit(trace::timed(|| run(0, different))));
        let both = trace::timed(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| run(0, different));
                scope.spawn(|| run(1_000_000, different));
            });
        });
        println!("| two threads at once, {what} | {:.0} |", per_hit(both));
    }
    let hashing = trace::timed(|| {
        let mut name = Name::new();
        for turn in 0..HITS {
            std::hint::black_box(Key::new(name.numbered(turn), &SEED));
        }
    });
    println!("| of which making the key of 40 bytes | {:.0} |", per_hit(hashing));
}

/// A key that is made anew for each request, as a gate does.
struct Name([u8; 40]);

impl Name {
    fn new() -> Name {
        Name(*b"https://example.org/article/00000?page=1")
    }

    fn numbered(&mut self, mut number: u64) -> &[u8] {
        for digit in self.0[28..33].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.0
    }
}
