//! Sessions that are resumed, and those that are not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_proxy::tls::{ServerTlsSettings, TicketKeys};

use crate::certificates::Authority;
use crate::gate::{Gate, settings};
use crate::peers::s_client;

/// Ticket keys whose clock stands at what the counter says.
fn keys_by_hand() -> (Arc<TicketKeys>, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(1_700_000_000));
    let read = Arc::clone(&time);
    let keys = TicketKeys::with_clock(move || read.load(Ordering::Relaxed)).unwrap();
    (Arc::new(keys), time)
}

fn with_keys(keys: &Arc<TicketKeys>) -> ServerTlsSettings {
    let identity = Authority::new("CA").server(&["a.example", "b.example"]);
    ServerTlsSettings { tickets: Arc::clone(keys), ..settings(&[&identity]) }
}

/// Begins a session and keeps it in a file.
fn begin(gate: &Gate, version: &str, session: &Path) {
    let session = session.to_str().unwrap();
    s_client(gate.address, [version, "-servername", "a.example", "-sess_out", session])
        .has(" Full ");
    assert!(gate.outcome().unwrap().contains(" Full "));
}

/// Comes back with the session of the file; whether it is resumed, as both sides agree.
fn comes_back(gate: &Gate, version: &str, name: &str, session: &Path) -> bool {
    let session = session.to_str().unwrap();
    let said = s_client(gate.address, [version, "-servername", name, "-sess_in", session]);
    let resumed = gate.outcome().unwrap().contains(" Resumed ");
    said.has(if resumed { "Reused, " } else { "New, " });
    resumed
}

#[test]
fn a_session_is_resumed_also_by_what_a_reload_built_and_by_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let (keys, time) = keys_by_hand();
    let settings = with_keys(&keys);
    for version in ["-tls1_3", "-tls1_2"] {
        let session = dir.path().join(version);
        let gate = Gate::start(&settings);
        begin(&gate, version, &session);
        assert!(comes_back(&gate, version, "a.example", &session), "{version}");
        assert!(comes_back(&gate, version, "a.example", &session), "{version}, again");

        assert!(comes_back(&Gate::start(&settings), version, "a.example", &session), "{version}");

        let time = Arc::clone(&time);
        let next = TicketKeys::with_clock(move || time.load(Ordering::Relaxed)).unwrap();
        next.import(&keys.export()).unwrap();
        let upgraded = ServerTlsSettings { tickets: Arc::new(next), ..settings.clone() };
        assert!(comes_back(&Gate::start(&upgraded), version, "a.example", &session), "{version}");

        let stranger =
            ServerTlsSettings { tickets: Arc::new(TicketKeys::new().unwrap()), ..settings.clone() };
        assert!(!comes_back(&Gate::start(&stranger), version, "a.example", &session), "{version}");
    }
}

#[test]
fn a_session_is_for_the_name_it_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::start(&with_keys(&keys_by_hand().0));
    for version in ["-tls1_3", "-tls1_2"] {
        let session = dir.path().join(version);
        begin(&gate, version, &session);
        assert!(!comes_back(&gate, version, "b.example", &session), "{version}");
    }
}

#[test]
fn a_session_outlives_one_rotation_and_not_two() {
    let dir = tempfile::tempdir().unwrap();
    for version in ["-tls1_3", "-tls1_2"] {
        let (keys, time) = keys_by_hand();
        let gate = Gate::start(&with_keys(&keys));
        let session = dir.path().join(version);
        begin(&gate, version, &session);
        time.fetch_add(TicketKeys::ROTATION_SECONDS, Ordering::Relaxed);
        assert!(comes_back(&gate, version, "a.example", &session), "{version}, one rotation");
        time.fetch_add(TicketKeys::ROTATION_SECONDS, Ordering::Relaxed);
        assert!(!comes_back(&gate, version, "a.example", &session), "{version}, two rotations");
    }
}
