//! The house's wall clock, where rustls asks for the time.

use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use tidegate_telemetry::clock;

/// Certificates are judged by the wall clock.
#[derive(Debug)]
pub(super) struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(now())
    }
}

/// The wall time, as rustls wants it.
pub(super) fn now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(clock::unix_seconds()))
}
