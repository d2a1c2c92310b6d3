//! The two schedules of a worker: turns by weight, and draws by weight.
//!
//! Both are built over the servers that are fit now and rebuilt when that changes, so a server that
//! is out leaves its share to all others alike instead of to its neighbour. Slots are positions in
//! the list of members. Each worker has its own schedules and begins at its own place, so that
//! workers do not all turn to the first server first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::standing::nanos;

/// A server in turn, by weight, in O(log n).
///
/// Earliest deadline first: each server is due again `1 / weight` after it was due last. Compared
/// with the smooth weighted round robin of nginx, which looks at every server for every request,
/// turns are spread as evenly and a group of thousands costs no more than a handful.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// When a slot is due, earliest first.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    strides: Vec<u64>,
    /// When the slot that was taken last was due.
    clock: u64,
    passed_over: Vec<(u64, u32)>,
}

/// The stride at weight 1; strides at all possible weights stay exact to 2^-22.
const STRIDE: u64 = 1 << 40;
/// The clock is set back before deadlines could overflow.
const CLOCK_MAX: u64 = 1 << 62;

impl Turns {
    /// Begins anew with these slots and weights; `random` decides where.
    pub(super) fn rebuild(&mut self, slots: &[u32], weights: &[u32], random: u64) {
        self.clock = 0;
        self.strides.clear();
        self.strides.extend(weights.iter().map(|weight| STRIDE / u64::from((*weight).max(1))));
        let mut due = std::mem::take(&mut self.due).into_vec();
        due.clear();
        // Multiples of the golden ratio spread the first turns evenly, however many there are.
        due.extend(slots.iter().zip(0_u64..).map(|(slot, position)| {
            let phase = position.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(random);
            let first = (u128::from(self.strides[*slot as usize]) * u128::from(phase)) >> 64;
            Reverse((u64::try_from(first).unwrap_or(0), *slot))
        }));
        self.due = due.into();
    }

    /// The slot whose turn it is among the usable ones. Those passed over keep their place, but
    /// save no turns up: they do not get a burst when they are usable again.
    pub(super) fn next(&mut self, mut usable: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.clock > CLOCK_MAX {
            self.set_back();
        }
        let taken = loop {
            let Some(mut first) = self.due.peek_mut() else { break None };
            let Reverse((due, slot)) = *first;
            if usable(slot) {
                self.clock = self.clock.max(due);
                *first = Reverse((self.clock + self.strides[slot as usize], slot));
                break Some(slot);
            }
            self.passed_over.push((due, slot));
            std::collections::binary_heap::PeekMut::pop(first);
        };
        self.due.extend(self.passed_over.drain(..).map(Reverse));
        taken
    }

    fn set_back(&mut self) {
        let clock = std::mem::take(&mut self.clock);
        let due = std::mem::take(&mut self.due).into_vec();
        self.due = due
            .into_iter()
            .map(|Reverse((due, slot))| Reverse((due.saturating_sub(clock), slot)))
            .collect();
    }
}

/// Slots drawn at random, by weight, in O(log n).
#[derive(Debug, Default)]
pub(super) struct Draw {
    slots: Vec<u32>,
    /// The sum of the weights up to and including each slot's.
    sums: Vec<u64>,
}

impl Draw {
    /// Begins anew with these slots, and weights by slot.
    pub(super) fn rebuild(&mut self, slots: &[u32], weights: &[u32]) {
        self.slots.clear();
        self.slots.extend_from_slice(slots);
        self.sums.clear();
        self.sums.extend(slots.iter().scan(0_u64, |sum, slot| {
            *sum += u64::from(weights[*slot as usize]);
            Some(*sum)
        }));
    }

    /// Two different slots; the same twice where there is but one.
    pub(super) fn two(&self, random: &mut Random) -> Option<(u32, u32)> {
        let total = *self.sums.last()?;
        let first = self.at(random.below(total))?;
        let before = first.checked_sub(1).map_or(0, |position| self.sums[position]);
        let weight = self.sums[first] - before;
        let first_slot = self.slots[first];
        if weight == total {
            return Some((first_slot, first_slot));
        }
        // The second is drawn from a line out of which the first has been cut.
        let point = random.below(total - weight);
        let point = if point >= before { point + weight } else { point };
        Some((first_slot, self.slots[self.at(point)?]))
    }

    fn at(&self, point: u64) -> Option<usize> {
        let position = self.sums.partition_point(|sum| *sum <= point);
        (position < self.slots.len()).then_some(position)
    }
}

/// Random numbers for balancing: fast, seeded, and nothing to keep a secret with (`SplitMix64`,
/// Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A random part of a time, none and all included.
    pub(super) fn part_of(&mut self, time: Duration) -> Duration {
        Duration::from_nanos(self.below(nanos(time).saturating_add(1)))
    }

    /// A number below `bound`, or zero. The bias is `bound / 2^64`: none that a balance could show.
    fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.next()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(weights: &[u32], random: u64) -> Turns {
        let slots: Vec<u32> = (0..u32::try_from(weights.len()).unwrap()).collect();
        let mut turns = Turns::default();
        turns.rebuild(&slots, weights, random);
        turns
    }

    fn count(turns: &mut Turns, times: usize, usable: impl Fn(u32) -> bool) -> Vec<usize> {
        let mut counts = vec![0; turns.strides.len()];
        for _ in 0..times {
            counts[turns.next(&usable).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn turns_follow_the_weights_exactly() {
        let check = |weights: &[u32]| {
            let total: usize = weights.iter().map(|weight| *weight as usize).sum();
            for seed in 0..20 {
                let mut turns = turns(weights, Random::seeded(seed).next());
                for (got, weight) in count(&mut turns, total * 10, |_| true).iter().zip(weights) {
                    let expected = *weight as usize * 10;
                    assert!(got.abs_diff(expected) <= 1, "{got} of {expected}, {weights:?} {seed}");
                }
            }
        };
        check(&[1]);
        check(&[1, 1, 1]);
        check(&[5, 1, 1]);
        check(&[1000, 1]);
        check(&[256, 128, 25, 7, 90]);
    }

    #[test]
    fn equal_servers_take_strict_turns() {
        let mut turns = turns(&[1, 1, 1, 1], 12345);
        let first: Vec<_> = (0..4).map(|_| turns.next(|_| true).unwrap()).collect();
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
        for _ in 0..5 {
            let round: Vec<_> = (0..4).map(|_| turns.next(|_| true).unwrap()).collect();
            assert_eq!(round, first);
        }
    }

    #[test]
    fn a_heavy_server_is_spread_between_the_light_ones() {
        for seed in 0..50 {
            let mut turns = turns(&[4, 1, 1, 1, 1], Random::seeded(seed).next());
            let order: Vec<_> = (0..80).map(|_| turns.next(|_| true).unwrap()).collect();
            // Alternating would be perfect; no five in a row may miss the heavy one.
            assert!(order.windows(5).all(|five| five.contains(&0)), "seed {seed}: {order:?}");
        }
    }

    #[test]
    fn workers_begin_at_different_servers() {
        let firsts: std::collections::HashSet<_> = (0..16)
            .map(|worker| turns(&[1; 8], Random::seeded(worker).next()).next(|_| true))
            .collect();
        assert!(firsts.len() >= 5, "{firsts:?}");
    }

    #[test]
    fn one_passed_over_leaves_its_share_to_all_and_saves_nothing_up() {
        let mut turns = turns(&[1, 1, 1, 1], 99);
        let counts = count(&mut turns, 3_000, |slot| slot != 1);
        assert_eq!(counts[1], 0);
        for slot in [0, 2, 3] {
            assert!(counts[slot].abs_diff(1_000) <= 1, "{counts:?}");
        }
        let counts = count(&mut turns, 40, |_| true);
        assert!(counts[1] <= 11, "no burst on return: {counts:?}");
        assert_eq!(turns.next(|_| false), None);
        assert_eq!(turns.due.len(), 4, "those passed over are still there");
    }

    #[test]
    fn the_clock_is_set_back_in_time() {
        let mut turns = turns(&[2, 1], 7);
        turns.due = [Reverse((CLOCK_MAX + 5, 0)), Reverse((CLOCK_MAX + 9, 1))].into();
        turns.clock = CLOCK_MAX + 4;
        let counts = count(&mut turns, 300, |_| true);
        assert!(turns.clock < CLOCK_MAX);
        assert!(counts[0].abs_diff(200) <= 2, "{counts:?}");
    }

    #[test]
    fn draws_follow_the_weights_and_differ() {
        let mut draw = Draw::default();
        draw.rebuild(&[0, 2, 3], &[10, 0, 20, 70]);
        let mut random = Random::seeded(42);
        let mut firsts = [0_u32; 4];
        for _ in 0..100_000 {
            let (first, second) = draw.two(&mut random).unwrap();
            assert_ne!(first, second);
            firsts[first as usize] += 1;
        }
        assert_eq!(firsts[1], 0);
        for (slot, expected) in [(0, 10_000), (2, 20_000), (3, 70_000)] {
            assert!(firsts[slot].abs_diff(expected) < 700, "{firsts:?}");
        }
    }

    #[test]
    fn the_second_draw_follows_the_weights_of_the_rest() {
        let mut draw = Draw::default();
        draw.rebuild(&[0, 1, 2], &[1, 1, 2]);
        let mut random = Random::seeded(3);
        let mut seconds = [0_u32; 3];
        for _ in 0..90_000 {
            if let Some((0, second)) = draw.two(&mut random) {
                seconds[second as usize] += 1;
            }
        }
        let share = f64::from(seconds[2]) / f64::from(seconds[1] + seconds[2]);
        assert!((share - 2.0 / 3.0).abs() < 0.02, "{seconds:?}");
    }

    #[test]
    fn one_server_or_none_can_be_drawn_too() {
        let mut draw = Draw::default();
        let mut random = Random::seeded(1);
        assert_eq!(draw.two(&mut random), None);
        draw.rebuild(&[5], &[0, 0, 0, 0, 0, 3]);
        assert_eq!(draw.two(&mut random), Some((5, 5)));
    }
}
