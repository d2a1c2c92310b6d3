//! What the operator decides about context, resolved by the program.

use std::time::Duration;

/// The limits and times of a store. All limits hold for all collections together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most variables that are kept.
    pub entries_max: usize,
    /// Most bytes of memory that they may take, with what keeping them costs (see
    /// [`super::ENTRY_BYTES`]).
    pub bytes_max: usize,
    /// Longest key of a record, in bytes.
    pub key_bytes_max: usize,
    /// Longest name of a variable, in bytes.
    pub name_bytes_max: usize,
    /// Longest value, in bytes.
    pub value_bytes_max: usize,
    /// How long a record is kept after its last write, in seconds (`SecCollectionTimeout`).
    pub timeout_s: u32,
    /// How often changes are written to disk. What a crash can lose is what changed since.
    pub batch_interval: Duration,
    /// The number of this gate among those that share context: unique among them, any for one.
    pub origin: u16,
    /// How long the mark of a removed variable is kept, in seconds, so that a value given before
    /// the removal does not come back from another gate. 0 for a gate that is alone.
    pub removed_kept_s: u32,
    /// What to do with a file that cannot be read.
    pub damaged: Damaged,
}

/// What to do with a file that is damaged or written by a newer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// Say so and do not open the store.
    Refuse,
    /// Rename it, so that it can be looked at, and begin with an empty store.
    SetAside,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            entries_max: 1 << 20,
            bytes_max: 512 << 20,
            key_bytes_max: 1024,
            name_bytes_max: 512,
            value_bytes_max: 16 << 10,
            timeout_s: 3600,
            batch_interval: Duration::from_secs(1),
            origin: 0,
            removed_kept_s: 0,
            damaged: Damaged::Refuse,
        }
    }
}
