//! Under what a response is stored.

use crate::hash::Seed;

/// The key of a stored response, of one of its variants, or of a slice of either.
///
/// Bytes, variant and slice tell keys apart; the hash is made of all three. It is keyed with a
/// [`Seed`], so whoever chooses URLs cannot choose hashes, and the bytes are hashed once however
/// many variants and slices are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    bytes: &'a [u8],
    /// The hash of the bytes alone.
    primary: u64,
    hash: u64,
    variant: u64,
    slice: Option<Slice>,
}

/// Which part of a large response lies under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// What its response calls itself (any number that no other response of this key has), so that
    /// slices of an old and a new response are never taken for one.
    pub object: u64,
    /// Its number, from 0.
    pub number: u32,
}

impl<'a> Key<'a> {
    /// The key with these bytes.
    pub fn new(bytes: &'a [u8], seed: &Seed) -> Key<'a> {
        let primary = seed.hash(bytes);
        Key { bytes, primary, hash: primary, variant: 0, slice: None }
    }

    /// The same response in the variant with this hash; 0 is the key itself.
    #[must_use]
    pub fn variant(self, variant: u64) -> Key<'a> {
        Key { variant, ..self }.hashed()
    }

    /// A slice of the response.
    #[must_use]
    pub fn slice(self, slice: Slice) -> Key<'a> {
        Key { slice: Some(slice), ..self }.hashed()
    }

    /// Its bytes, without variant and slice.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its hash.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The hash of the variant, 0 where there is none.
    pub fn variant_hash(&self) -> u64 {
        self.variant
    }

    /// The slice that is meant, if not the whole.
    pub fn slice_of(&self) -> Option<Slice> {
        self.slice
    }

    fn hashed(self) -> Key<'a> {
        let mut hash = self.primary;
        if self.variant != 0 {
            hash = mixed(hash, self.variant);
        }
        if let Some(Slice { object, number }) = self.slice {
            hash = mixed(mixed(hash, object), u64::from(number) + 1);
        }
        Key { hash, ..self }
    }
}

/// Mixes a number into a hash that is secret already: a permutation for each number.
fn mixed(hash: u64, number: u64) -> u64 {
    // The finalizer of MurmurHash3, after an odd multiple that keeps small numbers apart.
    let mut mixed = hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn variants_and_slices_have_hashes_of_their_own() {
        let key = Key::new(b"https://example.org/", &Seed::new([3; 16]));
        let mut hashes = HashSet::new();
        for variant in 0..10 {
            let key = key.variant(variant);
            assert!(hashes.insert(key.hash()));
            for object in 0..10 {
                for number in 0..10 {
                    assert!(hashes.insert(key.slice(Slice { object, number }).hash()));
                }
            }
        }
        assert_eq!(key.variant(7).variant(0), key);
    }

    #[test]
    fn the_order_in_which_a_key_is_made_does_not_matter() {
        let key = Key::new(b"k", &Seed::new([3; 16]));
        let slice = Slice { object: 5, number: 2 };
        assert_eq!(key.slice(slice).variant(9), key.variant(9).slice(slice));
    }
}
