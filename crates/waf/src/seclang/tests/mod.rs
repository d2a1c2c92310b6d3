//! Whole rule sets: what they are read as, and what is told about them.

mod document;
mod told;

use super::{Document, Entry, Memory, parse};

/// The files that the rule sets of these tests include.
fn files() -> Memory {
    [
        ("/etc/waf/one.conf", "SecMarker ONE\n"),
        ("/etc/waf/rules/a.conf", "SecMarker A\nInclude one.conf\n"),
        ("/etc/waf/rules/one.conf", "SecMarker ONE-BELOW\n"),
        ("/etc/waf/rules/b.conf", "SecMarker B\nInclude b.d/*.conf\n"),
        ("/etc/waf/rules/b.d/c.conf", "SecMarker C\n"),
        ("/etc/waf/rules/x.data", "not a rule"),
        ("/etc/waf/loop.conf", "Include loop.conf\n"),
        ("/etc/waf/wrong.conf", "SecRuleEngine Maybe\nSecRule ARGS x \"id:7,dney\"\n"),
    ]
    .into_iter()
    .collect()
}

/// Reads a rule set as if it were `/etc/waf/main.conf`, whose name is left out of what is told.
fn read(text: &[u8]) -> Result<(Document, Vec<String>), Vec<String>> {
    let shorten = |told: String| told.replace("/etc/waf/main.conf:", "");
    match parse(&files(), Entry::Text { path: "/etc/waf/main.conf", text }) {
        Ok((document, notes)) => {
            Ok((document, notes.iter().map(|note| shorten(note.to_string())).collect()))
        }
        Err(diagnostics) => Err(diagnostics.iter().map(|it| shorten(it.to_string())).collect()),
    }
}
