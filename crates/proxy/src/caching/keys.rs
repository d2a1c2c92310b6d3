//! Where a worker writes keys, again and again in the same memory.

use tidegate_cache::key::KeyBuffer;

/// The places in which a key is written.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Where its parts are put together.
    pub(crate) buffer: KeyBuffer,
    /// The whole of it.
    pub(crate) text: Vec<u8>,
    /// The text of a variant.
    pub(crate) variant: Vec<u8>,
}
