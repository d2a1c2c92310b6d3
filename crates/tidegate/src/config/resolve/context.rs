//! `[context]`: what rules remember between requests.

use tidegate_waf::context::{Damaged, Settings as Limits};

use super::super::options::{context, context_sync};
use super::super::reader::{Reading, Scope};
use super::{process, tls};
use crate::context::{Settings, sync};

/// Resolves it; `rules_timeout_s` is what the rules say of records (`SecCollectionTimeout`).
pub(super) fn context(
    scope: &Scope<'_>,
    rules_timeout_s: u64,
    reading: &mut Reading<'_>,
) -> Settings {
    let path = scope.find(&context::PATH, reading);
    let sync = sync(scope, reading);
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
        removed_kept_s: sync.as_ref().map_or(0, |(_, seconds)| *seconds),
        // What cannot be read is no reason not to serve; it is told, and the file stays beside.
        damaged: Damaged::SetAside,
    };
    let directory = path.map(|path| tls::path(&path, reading));
    Settings { directory, limits, sync: sync.map(|(settings, _)| settings) }
}

/// With whom it is shared, and how long removals are remembered, in seconds.
fn sync(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<(sync::Settings, u32)> {
    let scope = scope.child(&context_sync::SECTION);
    if !scope.is_written() {
        return None;
    }
    let server = scope.require(&context_sync::SERVER, reading).map(|found| found.value.0);
    let user = scope.find(&context_sync::USER, reading);
    let password = scope.find(&context_sync::PASSWORD, reading);
    if let Some(password) = &password {
        process::check_readable(password, reading);
    }
    let prefix = scope.read(&context_sync::PREFIX, reading).value;
    let stream_max = scope.read(&context_sync::STREAM_MAX, reading).value;
    let removed_kept = scope.read(&context_sync::REMOVED_KEPT, reading).value.as_secs();
    let server = server?;
    let shown = server.addr().to_string();
    let mut login = server.redis_settings().clone();
    if let Some(user) = user {
        login = login.set_username(user.value);
    }
    if let Some(password) = password {
        login = login.set_password(password.value.secret.reveal());
    }
    let server = server.set_redis_settings(login);
    let settings = sync::Settings { server, shown, prefix, stream_max };
    Some((settings, u32::try_from(removed_kept).unwrap_or(u32::MAX)))
}
