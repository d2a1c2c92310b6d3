//! `[context]`: what rules remember between requests.

use tidegate_waf::context::{Damaged, Settings as Limits};

use super::super::options::context;
use super::super::reader::{Reading, Scope};
use super::tls;
use crate::context::Settings;

/// Resolves it; `rules_timeout_s` is what the rules say of records (`SecCollectionTimeout`).
pub(super) fn context(
    scope: &Scope<'_>,
    rules_timeout_s: u64,
    reading: &mut Reading<'_>,
) -> Settings {
    let path = scope.find(&context::PATH, reading);
    let timeout = scope.find(&context::TIMEOUT, reading).map(|found| found.value.as_secs());
    let mut bytes = |spec| {
        let bytes = scope.read(spec, reading).value;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    };
    let (bytes_max, key_bytes_max) = (bytes(&context::MEMORY_MAX), bytes(&context::KEY_MAX));
    let (name_bytes_max, value_bytes_max) = (bytes(&context::NAME_MAX), bytes(&context::VALUE_MAX));
    let limits = Limits {
        entries_max: scope.read(&context::ENTRIES_MAX, reading).value,
        bytes_max,
        key_bytes_max,
        name_bytes_max,
        value_bytes_max,
        timeout_s: u32::try_from(timeout.unwrap_or(rules_timeout_s)).unwrap_or(u32::MAX),
        batch_interval: scope.read(&context::WRITE_INTERVAL, reading).value,
        origin: 0,
        removed_kept_s: 0,
        // What cannot be read is no reason not to serve; it is told, and the file stays beside.
        damaged: Damaged::SetAside,
    };
    Settings { directory: path.map(|path| tls::path(&path, reading)), limits }
}
