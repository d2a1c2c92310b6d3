//! What the cache made of a request.

use crate::labelled::labelled;

labelled! {
    /// How the cache answered.
    #[derive(Default)]
    pub enum CacheResult {
        /// The cache was not asked.
        #[default]
        None = "",
        /// From a stored response that was fresh.
        Hit = "hit",
        /// From a stored response that the server had just confirmed.
        Revalidated = "revalidated",
        /// From a stored response that was no longer fresh, while it was fetched anew.
        Updating = "updating",
        /// From a stored response that was no longer fresh, because the server failed.
        Stale = "stale",
        /// From a fetch that another request had begun.
        Joined = "joined",
        /// Fetched; what was stored was no longer fresh.
        Expired = "expired",
        /// Fetched; nothing stored would do.
        Miss = "miss",
        /// Fetched past the cache.
        Bypass = "bypass",
    }
}

impl CacheResult {
    /// Whether the answer came without a fetch of the request's own.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit | Self::Revalidated | Self::Updating | Self::Stale | Self::Joined)
    }

    /// Whether what the record says of servers is told by a fill, which counts it itself.
    pub(crate) const fn is_of_a_fill(self) -> bool {
        !matches!(self, Self::None | Self::Bypass)
    }
}

/// What the cache made of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// How it answered.
    pub result: CacheResult,
    /// Why it could not do better, or why the response was not stored: one word; empty where there is
    /// nothing to say. Static text only.
    pub reason: &'static str,
}
