//! W-TinyLFU by bytes (Einziger, Friedman, Manes, ACM Transactions on Storage 2017): a
//! window of 1 %, a main part of two LRU segments (20 and 80 %), and a sketch of frequencies that
//! decides whether who leaves the window displaces who is next to leave the main part.

use super::Policy;
use super::lru::Lru;
use super::trace::Request;

pub(crate) struct TinyLfu {
    window: Lru,
    probation: Lru,
    protected: Lru,
    main_bytes: u64,
    sketch: Sketch,
}

impl TinyLfu {
    pub(crate) fn new(bytes_max: u64) -> TinyLfu {
        let window = bytes_max / 100;
        let main = bytes_max - window;
        TinyLfu {
            window: Lru::new(window),
            probation: Lru::new(main),
            protected: Lru::new(main / 5 * 4),
            main_bytes: main,
            sketch: Sketch::new(),
        }
    }

    fn admit(&mut self, candidate: Request) {
        while self.probation.bytes() + self.protected.bytes() + candidate.bytes > self.main_bytes {
            let Some(victim) = self.probation.last().or(self.protected.last()) else { return };
            if self.sketch.count(candidate.object) <= self.sketch.count(victim.object) {
                return;
            }
            if self.probation.remove(victim.object).is_none() {
                self.protected.remove(victim.object);
            }
        }
        self.probation.add(candidate);
    }
}

impl Policy for TinyLfu {
    fn request(&mut self, request: Request) -> bool {
        self.sketch.add(request.object);
        if self.window.touch(request.object) || self.protected.touch(request.object) {
            return true;
        }
        if let Some(found) = self.probation.remove(request.object) {
            self.protected.add(found);
            while let Some(demoted) = self.protected.overflow() {
                self.probation.add(demoted);
            }
            return true;
        }
        self.window.add(request);
        while let Some(candidate) = self.window.overflow() {
            self.admit(candidate);
        }
        false
    }
}

/// A count-min sketch of four rows, halved now and then so that it forgets.
struct Sketch {
    counts: Vec<u8>,
    added: usize,
}

const ROW: usize = 1 << 17;

impl Sketch {
    fn new() -> Sketch {
        Sketch { counts: vec![0; 4 * ROW], added: 0 }
    }

    fn places(object: u64) -> impl Iterator<Item = usize> {
        (0..4).map(move |row| {
            let hash =
                (object + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (row as u64 * 0x1234_5679_a5a5));
            row * ROW + (hash >> 40) as usize % ROW
        })
    }

    fn count(&self, object: u64) -> u8 {
        Self::places(object).map(|place| self.counts[place]).min().unwrap_or(0)
    }

    fn add(&mut self, object: u64) {
        let least = self.count(object);
        for place in Self::places(object) {
            if self.counts[place] == least && least < 15 {
                self.counts[place] += 1;
            }
        }
        self.added += 1;
        // Ten times as many as the cache holds.
        if self.added == 100_000 {
            self.added = 0;
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }
}
