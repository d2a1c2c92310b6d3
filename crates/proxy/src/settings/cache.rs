//! Settings of the cache.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tidegate_cache::policy::Policy;

/// What all sites share of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Memory for stored responses, in bytes.
    pub memory_bytes_max: u64,
    /// Where responses lie that outlive memory and process, if they do.
    pub disk: Option<CacheDisk>,
}

/// The disk tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDisk {
    /// Its directory.
    pub directory: PathBuf,
    /// Most bytes of all its files.
    pub bytes_max: u64,
}

/// How the responses of a route are cached.
#[derive(Clone, Debug, PartialEq)]
pub struct Caching {
    /// What is stored, for how long, and what it is served for.
    pub policy: Arc<Policy>,
    /// How long a request waits for what another one fetches.
    pub wait_max: Duration,
    /// How long it is remembered that a response was not to be stored.
    pub pass_kept: Duration,
    /// Whether answers have the field `X-Cache-Status`.
    pub x_cache_status: bool,
    /// Whose requests with the method PURGE purge.
    pub purge_from: Arc<[IpNet]>,
}
