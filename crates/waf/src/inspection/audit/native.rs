//! The audit log in ModSecurity's native format: sections between boundaries, each part a letter.

use std::io::Write as _;

use super::{Entry, MatchedRule, Shown};
use crate::inspection::{Effect, Mode, Moment};
use crate::seclang::setting::Switch;
use crate::variable::Variable;

pub(super) fn write(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let boundary = boundary(entry.value(Variable::UniqueId), entry.context.epoch_ms);
    let part = |out: &mut Vec<u8>, letter: char| {
        // Writing to a vector cannot fail.
        let _ = writeln!(out, "--{boundary}-{letter}--");
    };
    part(out, 'A');
    let _ = write!(out, "[{}] ", time(entry.context.epoch_ms));
    let (client, port) = entry.client();
    let (gate, gate_port) = (Variable::ServerAddr, Variable::ServerPort);
    let ends =
        [entry.value(Variable::UniqueId), client, port, entry.value(gate), entry.value(gate_port)];
    for (at, end) in ends.into_iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        line(out, if end.is_empty() { b"-" } else { end });
    }
    out.push(b'\n');
    if entry.has_part(b'B') {
        part(out, 'B');
        line(out, entry.value(Variable::RequestMethod));
        out.push(b' ');
        line(out, &entry.target());
        out.push(b' ');
        line(out, entry.value(Variable::RequestProtocol));
        out.push(b'\n');
        fields(out, entry.fields(Variable::RequestHeaders));
    }
    let has_body = entry.has_part(b'C') || entry.has_part(b'I');
    for (letter, variable, shows) in [
        ('C', Variable::RequestBody, has_body),
        ('E', Variable::ResponseBody, entry.has_part(b'E')),
    ] {
        let body = if shows { entry.body(variable) } else { Vec::new() };
        if !body.is_empty() {
            part(out, letter);
            out.extend_from_slice(&body);
            out.push(b'\n');
        }
    }
    if entry.has_part(b'F') && entry.context.status != 0 {
        part(out, 'F');
        let _ = writeln!(out, "HTTP/1.1 {}", entry.context.status);
        fields(out, entry.fields(Variable::ResponseHeaders));
    }
    if entry.has_part(b'H') {
        part(out, 'H');
        for matched in entry.messages() {
            message(entry, matched, out);
        }
        if entry.context.intercepted == Switch::On {
            let phase = entry.messages().find(|matched| matched.effect == Effect::Decided);
            let phase = phase.map_or(2, |matched| matched.phase.number());
            let _ = writeln!(out, "Action: Intercepted (phase {phase})");
        }
        let _ = writeln!(out, "Producer: {}.", entry.producer());
        let mode = match entry.inspection.mode() {
            Mode::Block => "ENABLED",
            Mode::Detect => "DETECTION_ONLY",
            Mode::Off => "DISABLED",
        };
        let _ = writeln!(out, "Engine-Mode: \"{mode}\"\n");
    }
    part(out, 'Z');
    out.push(b'\n');
}

fn message(entry: &Entry<'_>, matched: &MatchedRule, out: &mut Vec<u8>) {
    let rule = &matched.rule;
    let begin = match matched.effect {
        Effect::Decided => "Access denied",
        Effect::Noted | Effect::WouldDecide => "Warning",
    };
    let _ = write!(out, "Message: {begin}. Matched \"");
    line(out, rule.operator.as_bytes());
    out.extend_from_slice(b"\" at ");
    line(out, &entry.mask.text(&matched.variable));
    let _ = write!(
        out,
        ". [file \"{}\"] [line \"{}\"] [id \"{}\"]",
        rule.place.file, rule.place.line, rule.id
    );
    let message = entry.mask.text(&matched.message);
    for (name, value) in [("msg", message), ("data", entry.found(&matched.data))] {
        if !value.is_empty() {
            let _ = write!(out, " [{name} \"");
            line(out, &value);
            out.extend_from_slice(b"\"]");
        }
    }
    if let Some(severity) = rule.severity {
        let _ = write!(out, " [severity \"{}\"]", severity.name());
    }
    if !rule.version.is_empty() {
        let _ = write!(out, " [ver \"{}\"]", rule.version);
    }
    for tag in &rule.tags {
        let _ = write!(out, " [tag \"{tag}\"]");
    }
    out.push(b'\n');
}

fn fields(out: &mut Vec<u8>, fields: Vec<Shown>) {
    for field in fields {
        line(out, &field.name);
        out.extend_from_slice(b": ");
        line(out, &field.value);
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Text within a line: control bytes and quotes are escaped, so that no request can write lines of its
/// own into the log.
fn line(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 | 0x7f => {
                let _ = write!(out, "\\x{byte:02x}");
            }
            _ => out.push(byte),
        }
    }
}

/// Eight hexadecimal digits that a reader finds the sections of one transaction by.
fn boundary(id: &[u8], epoch_ms: u64) -> String {
    // FNV-1a: short, and different for neighbouring transactions.
    let hash = id
        .iter()
        .chain(&epoch_ms.to_le_bytes())
        .fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// `21/Nov/2026:05:46:16 +0000`.
pub(super) fn time(epoch_ms: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let clock = Moment { epoch_ms, elapsed_us: 0 }.clock();
    let month =
        usize::try_from(clock.month() - 1).ok().and_then(|at| MONTHS.get(at)).unwrap_or(&"Jan");
    format!("{:02}/{month}/{}:{} +0000", clock.day(), clock.year(), clock.time_of_day())
}
