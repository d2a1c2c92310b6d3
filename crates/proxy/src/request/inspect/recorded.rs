//! A request as it is recorded: one JSON object, with its secrets masked, from which it can be run
//! through rules again.
//!
//! Names of members are those that `tidegate waf test` and `replay` read. What is no UTF-8 is written
//! in Base64, under the member's name with `_base64` behind it.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tidegate_http::field::Known;
use tidegate_http::{framing, write};
use tidegate_telemetry::log::{Entry, Keep, Keeps};
use tidegate_waf::secret::{Masked, Names};

use super::Exchange;
use crate::connection::Client;
use crate::inspection::held::Held;

/// A request to be recorded.
pub(in crate::request) struct Recorded<'a> {
    exchange: &'a Exchange,
    client: &'a Client,
}

impl<'a> Recorded<'a> {
    /// What is recorded of a request; nothing if it has not come to stop 4, where the WAF looks at
    /// requests that may go on.
    pub(in crate::request) fn of(exchange: &'a Exchange, client: &'a Client) -> Option<Self> {
        let came = exchange.inspecting.is_some() && exchange.record.stamps.inspected.is_set();
        came.then_some(Self { exchange, client })
    }

    /// The beginning of the body, masked; nothing where nobody knows where its secrets are.
    fn body(&self, names: &Names<'_>, bytes_max: u64) -> Option<Vec<u8>> {
        let headers = &self.exchange.request.headers;
        let held = self.exchange.held.as_ref().map(Held::beginning).unwrap_or_default();
        let max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let mut body = held[..held.len().min(max)].to_vec();
        let content_type = headers.first(Known::ContentType).unwrap_or_default();
        let is_plain = !headers.has(Known::ContentEncoding);
        let masked = !body.is_empty()
            && is_plain
            && names.mask_body(content_type, &mut body) == Masked::Done;
        masked.then_some(body)
    }
}

impl std::fmt::Debug for Recorded<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").finish_non_exhaustive()
    }
}

impl Entry for Recorded<'_> {
    fn write(&self, keeps: &Keeps<'_>, out: &mut Vec<u8>) {
        let Exchange { request, record, .. } = self.exchange;
        let names = Names::with(&keeps.recording.mask);
        let mut text = String::new();
        let mut host = Vec::new();
        write::host(&mut host, &request.host, request.port);
        let mut target = request.path_and_query.clone();
        match keeps.query {
            Keep::Yes => names.mask_target(&mut target),
            Keep::No => target.truncate(request.path_len),
        }
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{{\"id\":\"{}\",\"unix_ms\":{},\"protocol\":\"{}\",\"scheme\":\"{}\"",
            record.id,
            record.began_millis(),
            record.protocol.as_str(),
            self.exchange.scheme.name(),
        );
        if !request.scheme.is_empty() {
            text.push_str(",\"absolute\":true");
        }
        if let Some(local) = self.client.local {
            let _ = write!(text, ",\"port\":{}", local.port());
        }
        if let Some(client) = keeps.client {
            member(&mut text, "client", client);
        }
        member(&mut text, "host", &host);
        member(&mut text, "method", request.method_bytes());
        member(&mut text, "target", &target);
        text.push_str(",\"headers\":[");
        let kept = request.headers.iter().filter(|field| keeps.field(field.name) == Keep::Yes);
        for (at, field) in kept.enumerate() {
            let mut value = field.value.to_vec();
            names.mask_field(field.name, &mut value);
            text.push_str(if at > 0 { ",[" } else { "[" });
            string(&mut text, &String::from_utf8_lossy(field.name));
            match std::str::from_utf8(&value) {
                Ok(value) => {
                    text.push(',');
                    string(&mut text, value);
                }
                Err(_) => {
                    let _ = write!(
                        text,
                        ",{{\"value_base64\":\"{}\"}}",
                        BASE64_STANDARD.encode(&value)
                    );
                }
            }
            text.push(']');
        }
        text.push(']');
        // A body that was refused before it came has a length all the same.
        let announced = framing::content_length(&request.headers).ok().flatten().unwrap_or(0);
        let _ = write!(text, ",\"body_bytes\":{}", record.bytes.body_in.max(announced));
        let bytes_max = if keeps.query == Keep::Yes { keeps.recording.body_bytes_max } else { 0 };
        if let Some(body) = self.body(&names, bytes_max) {
            member(&mut text, "body", &body);
        }
        let _ = write!(
            text,
            ",\"status\":{},\"verdict\":\"{}\",\"rule\":{}}}",
            record.status,
            record.waf.verdict.as_str(),
            record.waf.rule
        );
        text.push('\n');
        out.extend_from_slice(text.as_bytes());
    }
}

/// A member behind others: as text if it is some, else in Base64.
fn member(out: &mut String, name: &str, value: &[u8]) {
    match std::str::from_utf8(value) {
        Ok(value) => {
            let _ = write!(out, ",\"{name}\":");
            string(out, value);
        }
        Err(_) => {
            let _ = write!(out, ",\"{name}_base64\":\"{}\"", BASE64_STANDARD.encode(value));
        }
    }
}

/// A string of RFC 8259, section 7.
fn string(out: &mut String, value: &str) {
    out.push('"');
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() || matches!(control, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            character => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_json_whatever_they_hold() {
        let check = |value: &[u8], expected: &str| {
            let mut out = String::new();
            member(&mut out, "x", value);
            assert_eq!(out, expected);
        };
        check(b"a\"b\\\n\x7f", ",\"x\":\"a\\\"b\\\\\\u000a\\u007f\"");
        check("\u{fc}".as_bytes(), ",\"x\":\"\u{fc}\"");
        check(b"\xff", ",\"x_base64\":\"/w==\"");
    }
}
