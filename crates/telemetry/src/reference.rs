//! Keeps generated documents current: a test compares, `UPDATE=1` writes.

use std::path::Path;

/// Compares `docs/<name>` with its generated text, or writes it where `UPDATE` is set.
pub(crate) fn check(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, generated).expect("docs can be written");
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    let hint = "UPDATE=1 cargo test -p tidegate-telemetry writes it";
    assert!(present == generated, "docs/{name} is not current; {hint}");
}
