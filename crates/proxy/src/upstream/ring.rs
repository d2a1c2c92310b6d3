//! Consistent hashing: a key keeps its server while servers come and go.
//!
//! A ring of points (Karger et al., "Consistent Hashing and Random Trees", STOC 1997): each server
//! has points in proportion to its weight, and a key belongs to the first point at or behind its own
//! hash. A Maglev table (Eisenbud et al., NSDI 2016) would be a little more even, but moves more keys
//! than those of the server that left; here exactly those move, and they spread over all others.
//!
//! The points depend on the servers' addresses and weights alone: not on their order, not on the
//! process. So restarts and several gates agree on where a key belongs. A ring has at most
//! [`POINTS_MAX`] points, and an index by the leading bits makes a look-up O(1) on average.

use siphasher::sip::SipHasher13;

/// Points of the heaviest server of a group; the load of equal servers then differs by about 6 %.
const POINTS_PER_SERVER: usize = 256;
/// Points of a ring; a group of more than a thousand servers has fewer for each.
const POINTS_MAX: usize = 1 << 18;

/// The ring of a group.
#[derive(Debug, Default)]
pub(super) struct Ring {
    points: Vec<Point>,
    /// Position of the first point at or behind each leading bit pattern.
    index: Vec<u32>,
    shift: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    hash: u32,
    slot: u32,
}

/// The hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// Hashes a key. The hash is the same in all processes, so it cannot be secret; a client that
    /// aims its keys at one server gains no more than by repeating one key.
    #[inline]
    pub(super) fn of(key: &[u8]) -> KeyHash {
        KeyHash(SipHasher13::new_with_keys(0, 0).hash(key))
    }

    /// Where on the ring it lies.
    fn position(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Whether a server that has climbed so many parts of `full` of its ramp takes this key. A key
    /// that is taken once stays taken as the ramp goes up.
    pub(super) fn within(self, share: u32, full: u32) -> bool {
        (self.0 & 0xFFFF_FFFF) * u64::from(full) < u64::from(share) << 32
    }
}

/// A server on the ring.
pub(super) struct RingServer<'a> {
    pub(super) slot: u32,
    pub(super) name: &'a str,
    pub(super) weight: u32,
}

impl Ring {
    /// The ring of these servers.
    pub(super) fn new(servers: &[RingServer<'_>]) -> Ring {
        let heaviest = servers.iter().map(|server| server.weight).max().unwrap_or(1).max(1);
        // Halved, not divided: the count for a server changes at few sizes of the group only, and
        // each change would move keys.
        let mut most = POINTS_PER_SERVER;
        while most > 1 && most * servers.len() > POINTS_MAX {
            most /= 2;
        }
        let mut points: Vec<(u32, &str, u32)> = Vec::with_capacity(servers.len() * most);
        for server in servers {
            // Relative to the heaviest, so that one more server of usual weight changes no count.
            let count = (most as u64 * u64::from(server.weight)).div_ceil(u64::from(heaviest));
            let hashes = (0..count).map(|number| point(server.name, number));
            points.extend(hashes.map(|hash| (hash, server.name, server.slot)));
        }
        // Equal hashes are ordered by name, so that the order of the servers does not matter.
        points.sort_unstable();
        let points: Vec<Point> =
            points.into_iter().map(|(hash, _, slot)| Point { hash, slot }).collect();
        let (index, shift) = index(&points);
        Ring { points, index, shift }
    }

    /// The slots in the order in which they are to take this key. A slot can come more than once.
    pub(super) fn walk(&self, key: KeyHash) -> impl Iterator<Item = u32> {
        let start = self.first_at_or_behind(key.position());
        let (before, from) = self.points.split_at(start);
        from.iter().chain(before).map(|point| point.slot)
    }

    fn first_at_or_behind(&self, position: u32) -> usize {
        // The only bucket of a single point has no leading bits at all.
        let bucket = position.checked_shr(self.shift).unwrap_or(0);
        let start = self.index.get(bucket as usize).map_or(0, |start| *start as usize);
        let behind = self.points[start..].iter().position(|point| point.hash >= position);
        behind.map_or(self.points.len(), |steps| start + steps)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "32 of 64 hash bits are enough for a point")]
fn point(name: &str, number: u64) -> u32 {
    SipHasher13::new_with_keys(number, 1).hash(name.as_bytes()) as u32
}

/// One bucket per point or a little more, so that a look-up steps over about one point.
fn index(points: &[Point]) -> (Vec<u32>, u32) {
    let buckets = points.len().next_power_of_two();
    let shift = 32 - buckets.trailing_zeros();
    let mut index = Vec::with_capacity(buckets);
    let mut position = 0;
    for bucket in 0..buckets as u64 {
        while points.get(position).is_some_and(|point| u64::from(point.hash) >> shift < bucket) {
            position += 1;
        }
        index.push(u32::try_from(position).unwrap_or(u32::MAX));
    }
    (index, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: u32 = 20_000;

    fn names(count: usize) -> Vec<(String, u32)> {
        (1..=count).map(|number| (format!("10.0.0.{number}:80"), 1)).collect()
    }

    fn ring(servers: &[(String, u32)]) -> Ring {
        let servers: Vec<_> = servers
            .iter()
            .zip(0..)
            .map(|((name, weight), slot)| RingServer { slot, name, weight: *weight })
            .collect();
        Ring::new(&servers)
    }

    fn owner<'a>(ring: &Ring, servers: &'a [(String, u32)], key: u32) -> &'a str {
        let slot = ring.walk(KeyHash::of(&key.to_le_bytes())).next().unwrap();
        &servers[slot as usize].0
    }

    fn moved(before: &[(String, u32)], after: &[(String, u32)]) -> f64 {
        let (old, new) = (ring(before), ring(after));
        let moved =
            (0..KEYS).filter(|key| owner(&old, before, *key) != owner(&new, after, *key)).count();
        f64::from(u32::try_from(moved).unwrap()) / f64::from(KEYS)
    }

    #[test]
    fn adding_one_of_n_moves_about_one_nth() {
        for count in [1_u16, 2, 3, 9, 50] {
            let servers = usize::from(count);
            let moved = moved(&names(servers), &names(servers + 1));
            let expected = 1.0 / (f64::from(count) + 1.0);
            assert!((moved / expected - 1.0).abs() < 0.25, "{count}: {moved} for {expected}");
        }
    }

    #[test]
    fn only_the_keys_of_a_lost_server_move_and_they_spread() {
        let before = names(10);
        let mut after = before.clone();
        let lost = after.remove(3).0;
        let (old, new) = (ring(&before), ring(&after));
        let mut heirs = std::collections::HashMap::new();
        for key in 0..KEYS {
            let (was, is) = (owner(&old, &before, key), owner(&new, &after, key));
            if was == lost {
                *heirs.entry(is).or_insert(0) += 1;
            } else {
                assert_eq!(was, is);
            }
        }
        assert_eq!(heirs.len(), 9);
        assert!(heirs.values().all(|keys| *keys < KEYS / 10 / 9 * 3), "{heirs:?}");
    }

    #[test]
    fn falling_through_is_what_losing_the_server_would_do() {
        let before = names(5);
        let after = &before[1..];
        let (old, new) = (ring(&before), ring(after));
        for key in 0..KEYS {
            let hash = KeyHash::of(&key.to_le_bytes());
            let next = old.walk(hash).find(|slot| *slot != 0).unwrap();
            assert_eq!(before[next as usize].0, owner(&new, after, key));
        }
    }

    #[test]
    fn the_order_of_the_servers_does_not_matter() {
        let mut reversed = names(7);
        reversed.reverse();
        assert!(moved(&names(7), &reversed) == 0.0);
    }

    #[test]
    fn keys_follow_the_weights() {
        let servers = [("a".into(), 1), ("b".into(), 3), ("c".into(), 6)];
        let ring = ring(&servers);
        let mut counts = std::collections::HashMap::new();
        for key in 0..KEYS {
            *counts.entry(owner(&ring, &servers, key)).or_insert(0_u32) += 1;
        }
        for (name, weight) in &servers {
            let share = f64::from(counts[name.as_str()]) / f64::from(KEYS);
            let expected = f64::from(*weight) / 10.0;
            assert!((share / expected - 1.0).abs() < 0.25, "{name}: {share}");
        }
    }

    #[test]
    fn equal_servers_get_about_equal_shares() {
        let servers = names(20);
        let ring = ring(&servers);
        let mut counts = std::collections::HashMap::new();
        for key in 0..KEYS {
            *counts.entry(owner(&ring, &servers, key)).or_insert(0_u32) += 1;
        }
        let mean = KEYS / 20;
        assert!(counts.values().all(|keys| keys.abs_diff(mean) < mean / 3), "{counts:?}");
    }

    #[test]
    fn the_index_finds_what_a_search_finds() {
        for count in [1, 2, 3, 100] {
            let ring = ring(&names(count));
            for key in 0..2_000_u32 {
                let position = KeyHash::of(&key.to_le_bytes()).position();
                let expected = ring.points.partition_point(|point| point.hash < position);
                assert_eq!(ring.first_at_or_behind(position), expected);
            }
            for position in [0, u32::MAX] {
                let expected = ring.points.partition_point(|point| point.hash < position);
                assert_eq!(ring.first_at_or_behind(position), expected);
            }
        }
    }

    #[test]
    fn size_is_bounded_and_an_empty_ring_has_no_server() {
        assert_eq!(ring(&names(2_000)).points.len(), 2_000 * 128);
        assert_eq!(Ring::new(&[]).walk(KeyHash::of(b"key")).next(), None);
        assert_eq!(Ring::default().walk(KeyHash::of(b"key")).next(), None);
        let light = [("a".into(), 1), ("b".into(), 1000)];
        assert!(ring(&light).points.iter().any(|point| point.slot == 0));
    }

    #[test]
    fn a_ramp_takes_its_share_of_keys_and_keeps_them() {
        let taken = |share: u32| {
            (0..KEYS).filter(move |key| KeyHash::of(&key.to_le_bytes()).within(share, 256))
        };
        let quarter: std::collections::HashSet<_> = taken(64).collect();
        assert!(quarter.len().abs_diff(KEYS as usize / 4) < 400, "{}", quarter.len());
        let half: std::collections::HashSet<_> = taken(128).collect();
        assert!(quarter.is_subset(&half));
        assert_eq!(taken(256).count(), KEYS as usize);
    }
}
