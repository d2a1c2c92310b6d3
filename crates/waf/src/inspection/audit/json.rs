//! The audit log as JSON, one line a transaction, with the members that ModSecurity 3 gives it.

use super::{Entry, Shown};
use crate::inspection::Mode;
use crate::seclang::setting::Switch;
use crate::variable::Variable;

pub(super) fn write(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.begin_member("transaction");
    {
        let mut transaction = Object::begin(object.out);
        let (client, port) = entry.client();
        transaction.text("client_ip", client);
        transaction.text("time_stamp", super::native::time(entry.context.epoch_ms).as_bytes());
        transaction.text("server_id", entry.inspection.program.settings.sensor_id.as_bytes());
        transaction.number("client_port", port);
        transaction.text("host_ip", entry.value(Variable::ServerAddr));
        transaction.number("host_port", entry.value(Variable::ServerPort));
        transaction.text("unique_id", entry.value(Variable::UniqueId));
        let intercepted = entry.context.intercepted == Switch::On;
        transaction.literal("is_interrupted", if intercepted { b"true" } else { b"false" });
        request(entry, &mut transaction);
        response(entry, &mut transaction);
        transaction.begin_member("producer");
        let mut producer = Object::begin(transaction.out);
        producer.text("modsecurity", entry.context.producer.as_bytes());
        let mode: &[u8] = match entry.inspection.mode() {
            Mode::Block => b"Enabled",
            Mode::Detect => b"DetectionOnly",
            Mode::Off => b"Disabled",
        };
        producer.text("secrules_engine", mode);
        producer.begin_member("components");
        let components = &entry.inspection.program.settings.components;
        strings(producer.out, components.iter().map(String::as_bytes));
        producer.end();
        if entry.has_part(b'H') {
            messages(entry, &mut transaction);
        }
        transaction.end();
    }
    object.end();
    out.push(b'\n');
}

fn request(entry: &Entry<'_>, transaction: &mut Object<'_>) {
    transaction.begin_member("request");
    let mut request = Object::begin(transaction.out);
    request.text("method", entry.value(Variable::RequestMethod));
    let protocol = entry.value(Variable::RequestProtocol);
    request.text("http_version", protocol.strip_prefix(b"HTTP/").unwrap_or(protocol));
    request.text("uri", &entry.target());
    if entry.has_part(b'C') || entry.has_part(b'I') {
        request.text("body", &entry.body(Variable::RequestBody));
    }
    if entry.has_part(b'B') {
        fields(&mut request, entry.fields(Variable::RequestHeaders));
    }
    request.end();
}

fn response(entry: &Entry<'_>, transaction: &mut Object<'_>) {
    transaction.begin_member("response");
    let mut response = Object::begin(transaction.out);
    if entry.has_part(b'E') {
        response.text("body", &entry.body(Variable::ResponseBody));
    }
    response.literal("http_code", itoa::Buffer::new().format(entry.context.status).as_bytes());
    if entry.has_part(b'F') {
        fields(&mut response, entry.fields(Variable::ResponseHeaders));
    }
    response.end();
}

fn messages(entry: &Entry<'_>, transaction: &mut Object<'_>) {
    transaction.begin_member("messages");
    transaction.out.push(b'[');
    for (at, matched) in entry.messages().enumerate() {
        if at > 0 {
            transaction.out.push(b',');
        }
        let rule = &matched.rule;
        let mut message = Object::begin(transaction.out);
        message.text("message", &entry.mask.text(&matched.message));
        message.begin_member("details");
        let mut details = Object::begin(message.out);
        let matching = [rule.operator.as_bytes(), b" at ", &matched.variable].concat();
        details.text("match", &entry.mask.text(&matching));
        details.text("ruleId", itoa::Buffer::new().format(rule.id).as_bytes());
        details.text("file", rule.place.file.as_bytes());
        details.text("lineNumber", itoa::Buffer::new().format(rule.place.line).as_bytes());
        details.text("data", &entry.found(&matched.data));
        details.text("value", &entry.found(&matched.value));
        let severity =
            rule.severity.map_or(String::new(), |severity| severity.number().to_string());
        details.text("severity", severity.as_bytes());
        details.text("ver", rule.version.as_bytes());
        details.text("rev", rule.revision.as_bytes());
        details.begin_member("tags");
        strings(details.out, rule.tags.iter().map(String::as_bytes));
        details.text("maturity", rule.maturity.to_string().as_bytes());
        details.text("accuracy", rule.accuracy.to_string().as_bytes());
        details.end();
        message.end();
    }
    transaction.out.push(b']');
}

fn fields(object: &mut Object<'_>, fields: Vec<Shown>) {
    object.begin_member("headers");
    let mut headers = Object::begin(object.out);
    for field in fields {
        headers.named(&field.name, &field.value);
    }
    headers.end();
}

fn strings<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = &'a [u8]>) {
    out.push(b'[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, value);
    }
    out.push(b']');
}

/// An object being written; members are parted as they come.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn begin_member(&mut self, name: &str) {
        self.begin_named(name.as_bytes());
    }

    fn begin_named(&mut self, name: &[u8]) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
        string(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &[u8]) {
        self.named(name.as_bytes(), value);
    }

    fn named(&mut self, name: &[u8], value: &[u8]) {
        self.begin_named(name);
        string(self.out, value);
    }

    /// A number written in digits; 0 where there is none.
    fn number(&mut self, name: &str, digits: &[u8]) {
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        self.literal(name, if is_number { digits } else { b"0" });
    }

    fn literal(&mut self, name: &str, value: &[u8]) {
        self.begin_member(name);
        self.out.extend_from_slice(value);
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// A string of RFC 8259 section 7. What is not UTF-8 is shown as the character of its bytes' number, so
/// that nothing of an attack is lost and the line is always JSON.
fn string(out: &mut Vec<u8>, value: &[u8]) {
    use std::io::Write as _;
    out.push(b'"');
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                // Writing to a vector cannot fail.
                control if control.is_control() => {
                    let _ = write!(out, "\\u{:04x}", u32::from(control));
                }
                character => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\u00{byte:02x}");
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_json_whatever_they_hold() {
        let check = |value: &[u8], expected: &str| {
            let mut out = Vec::new();
            string(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        };
        check(b"plain", "\"plain\"");
        check(b"a\"b\\c\n", "\"a\\\"b\\\\c\\n\"");
        check(b"\0\x1f", "\"\\u0000\\u001f\"");
        check("gr\u{fc}n".as_bytes(), "\"gr\u{fc}n\"");
        check(b"\xff\xfe", "\"\\u00ff\\u00fe\"");
    }
}
