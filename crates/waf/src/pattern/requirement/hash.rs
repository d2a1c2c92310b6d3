//! Hashing of small keys, for tables that no traffic fills.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes [`Words`].
pub(in super::super) type Quick = BuildHasherDefault<Words>;

/// A hash that multiplies and turns a word at a time.
#[derive(Default)]
pub(in super::super) struct Words(u64);

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // The tables take the lower bits, which a product mixes least.
        self.0 ^ self.0 >> 32
    }
}
