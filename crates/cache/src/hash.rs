//! Hashes of what strangers choose: keys, variants, tags.
//!
//! They are keyed, so that nobody outside can make many texts share one. The key has to be the same
//! wherever a hash is kept (the disk tier outlives the process), so it is an argument and not drawn
//! here.

use siphasher::sip::SipHasher13;
use std::hash::Hasher as _;

/// The secret that hashes depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 16]);

impl Seed {
    /// A seed from sixteen random bytes.
    pub const fn new(random: [u8; 16]) -> Seed {
        Seed(random)
    }

    /// Its bytes, to be kept beside what was hashed with it.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The hash of a text.
    pub fn hash(&self, text: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(text);
        hasher.finish()
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_text_and_seed_alone() {
        let (one, two) = (Seed::new([1; 16]), Seed::new([2; 16]));
        assert_eq!(one.hash(b"a"), one.hash(b"a"));
        assert_ne!(one.hash(b"a"), one.hash(b"b"));
        assert_ne!(one.hash(b"a"), two.hash(b"a"));
    }

    #[test]
    fn a_seed_is_not_printed() {
        assert_eq!(format!("{:?}", Seed::new([7; 16])), "Seed(..)");
    }
}
