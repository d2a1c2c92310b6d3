//! Generated traces: the same on every machine.

use std::time::Duration;

/// Objects of the corpus.
const OBJECTS: u64 = 100_000;
/// Requests of a trace.
const REQUESTS: usize = 3_000_000;
/// Requests between two scans, and of a scan: a fifth of all.
const BETWEEN: usize = 80_000;
const SCANNED: u64 = 20_000;
const EXPONENT: f64 = 0.9;

/// What passes through in order now and then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    None,
    /// The corpus, a piece at a time, each where the last one ended.
    Corpus,
    /// Objects that are asked for this once.
    Strangers,
    /// The same piece of the corpus each time.
    Loop,
}

#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) object: u64,
    pub(crate) bytes: u64,
    pub(crate) scan: bool,
}

pub(crate) struct Trace {
    pub(crate) name: &'static str,
    pub(crate) requests: Vec<Request>,
}

impl Trace {
    pub(crate) fn generate(scan: Scan) -> Trace {
        let mut random = Random(42);
        let popularity = Zipf::new();
        let mut requests = Vec::with_capacity(REQUESTS);
        let mut scanned = 0;
        while requests.len() < REQUESTS {
            for _ in 0..BETWEEN {
                requests.push(request(popularity.object(&mut random), false));
            }
            let first = match scan {
                Scan::None => continue,
                Scan::Corpus => scanned % OBJECTS,
                Scan::Strangers => OBJECTS + scanned,
                Scan::Loop => 0,
            };
            requests.extend((first..first + SCANNED).map(|object| request(object, true)));
            scanned += SCANNED;
        }
        let name = match scan {
            Scan::None => "Zipf 0.9",
            Scan::Corpus => "with a crawler through the corpus",
            Scan::Strangers => "with scans of one-off objects",
            Scan::Loop => "with a loop over a fifth of the corpus",
        };
        Trace { name, requests }
    }
}

pub(crate) fn corpus_bytes() -> u64 {
    (0..OBJECTS).map(size).sum()
}

pub(crate) fn timed(run: impl FnOnce()) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "an example measures real time")]
    let start = std::time::Instant::now();
    run();
    start.elapsed()
}

fn request(object: u64, scan: bool) -> Request {
    Request { object, bytes: size(object), scan }
}

/// Log-normal: the sum of uniform numbers stands for the normal one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
fn size(object: u64) -> u64 {
    let mut random = Random(object ^ 0x5eed);
    let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    (10_000.0 * (1.3 * normal).exp()).clamp(300.0, 500_000.0) as u64
}

/// Objects by rank, scattered so that rank and place in a scan have nothing to do with each other.
struct Zipf {
    sums: Vec<f64>,
    objects: Vec<u64>,
}

impl Zipf {
    fn new() -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=OBJECTS)
            .map(|rank| {
                sum += (rank as f64).powf(-EXPONENT);
                sum
            })
            .collect();
        let mut random = Random(7);
        let mut objects: Vec<_> = (0..OBJECTS).collect();
        for place in (1..objects.len()).rev() {
            #[expect(clippy::cast_possible_truncation, reason = "below the length")]
            objects.swap(place, (random.next() % (place as u64 + 1)) as usize);
        }
        Zipf { sums, objects }
    }

    fn object(&self, random: &mut Random) -> u64 {
        let point = random.unit() * self.sums[self.sums.len() - 1];
        self.objects[self.sums.partition_point(|&sum| sum < point)]
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
