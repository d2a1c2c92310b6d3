//! The hash under which places are found, in two parts that are taken once each: a record's and a
//! name's.
//!
//! A request opens a record once and looks up many names in it, and a rule's names never change. So
//! the tables take a number that is ready (see [`Taken`]), and slots and records keep theirs. It is
//! `SipHash` under a random key of this process: clients choose keys and names, and must not be able
//! to choose collisions.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::LazyLock;

use super::address::Record;

static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(super) fn of_record(record: Record<'_>) -> u64 {
    KEYED.hash_one(record)
}

pub(super) fn of_name(name: &[u8]) -> u64 {
    KEYED.hash_one(name)
}

/// Of a place, from that of its record and that of its name. Turned, so that no name undoes a key.
pub(super) const fn of_place(record: u64, name: u64) -> u64 {
    record ^ name.rotate_left(29)
}

/// Makes hashers for keys that have their hash with them.
pub(super) type Taken = BuildHasherDefault<TakenHasher>;

/// Gives back the number that a key writes.
#[derive(Default)]
pub(super) struct TakenHasher(u64);

impl Hasher for TakenHasher {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    /// No key of these tables does this.
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= KEYED.hash_one(bytes);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Collection;
    use super::*;

    #[test]
    fn keys_and_names_do_not_stand_for_each_other() {
        let place = |key: &[u8], name: &[u8]| {
            of_place(of_record(Record::new(Collection::Ip, key)), of_name(name))
        };
        assert_eq!(place(b"a", b"b"), place(b"a", b"b"));
        for (key, name) in [(&b"b"[..], &b"a"[..]), (b"a", b"a"), (b"ab", b""), (b"", b"ab")] {
            assert_ne!(place(key, name), place(b"a", b"b"), "{key:?} {name:?}");
            assert_ne!(place(key, name), 0);
        }
        let user = of_record(Record::new(Collection::User, b"a"));
        assert_ne!(of_place(user, of_name(b"b")), place(b"a", b"b"));
    }
}
