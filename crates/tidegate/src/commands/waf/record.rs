//! Requests as `format = "requests"` records them: one JSON object a line.

use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tidegate_http::target::{self, Scheme};
use tidegate_http::{Request, Version};

use super::subject::{Extent, Subject};

/// Whether a file's content begins as a record does.
pub(super) fn is_record(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

/// The request of this id, or the first one.
pub(super) fn find(bytes: &[u8], id: Option<&str>) -> Result<Subject, String> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
        let subject = read(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        if id.is_none_or(|id| subject.id == id) {
            return Ok(subject);
        }
    }
    Err(match id {
        Some(id) => format!("no request of the file has the id `{}`", id.escape_debug()),
        None => "there is no request in the file".into(),
    })
}

/// One line; the words of what is wrong with it otherwise.
pub(super) fn read(line: &[u8]) -> Result<Subject, String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let record = Record(&value);
    let mut request = Request::new();
    request.set_method(&record.required("method")?);
    request.set_path_and_query(&record.required("target")?);
    let host = record.bytes("host")?.unwrap_or_default();
    let mut own = Vec::new();
    request.port = target::host(&host, &mut own).map_err(|error| format!("`host`: {error}"))?;
    request.host = own;
    request.version = match record.text("protocol")? {
        "HTTP/1.0" => Version::Http10,
        "HTTP/1.1" => Version::Http11,
        "HTTP/2.0" => Version::Http2,
        "HTTP/3.0" => Version::Http3,
        other => return Err(format!("`{}` is no protocol", other.escape_debug())),
    };
    let fields = record.0.get("headers").and_then(Value::as_array);
    for field in fields.ok_or("`headers` is no list")? {
        let name = field.get(0).and_then(Value::as_str).ok_or("a field has no name")?;
        let value = match field.get(1) {
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(Value::Object(_)) => {
                Record(&field[1]).bytes("value")?.ok_or("a field has no value")?
            }
            _ => return Err(format!("the field `{}` has no value", name.escape_debug())),
        };
        request.headers.push(name.as_bytes(), &value);
    }
    if record.0.get("absolute") == Some(&Value::Bool(true)) {
        request.scheme = record.text("scheme")?.as_bytes().to_vec();
    }
    let id = record.text("id")?.to_owned();
    let mut subject = Subject::new(&id, request);
    subject.scheme = match record.text("scheme")? {
        "https" => Scheme::Https,
        _ => Scheme::Http,
    };
    let number = |name: &str| record.0.get(name).and_then(Value::as_u64);
    if let Some(port) = number("port").and_then(|port| u16::try_from(port).ok()) {
        subject.port = port;
    }
    let client = record.0.get("client").and_then(Value::as_str);
    if let Some(client) = client.and_then(|text| text.parse::<IpAddr>().ok()) {
        subject.peer = client;
    }
    subject.unix_millis = number("unix_ms").unwrap_or(subject.unix_millis);
    subject.body = record.bytes("body")?.unwrap_or_default();
    if number("body_bytes").is_some_and(|bytes| bytes > subject.body.len() as u64) {
        subject.extent = Extent::Beginning;
        subject.remarks.push("only the beginning of the body was recorded".into());
    }
    Ok(subject)
}

struct Record<'a>(&'a Value);

impl<'a> Record<'a> {
    fn text(&self, name: &str) -> Result<&'a str, String> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("there is no `{name}`"))
    }

    /// Bytes: a string, or one in Base64 under a name that says so.
    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let coded = self.0.get(format!("{name}_base64")).and_then(Value::as_str);
        if let Some(coded) = coded {
            let decoded = BASE64_STANDARD.decode(coded);
            return decoded.map(Some).map_err(|error| format!("`{name}_base64`: {error}"));
        }
        Ok(self.0.get(name).and_then(Value::as_str).map(|text| text.as_bytes().to_vec()))
    }

    fn required(&self, name: &str) -> Result<Vec<u8>, String> {
        self.bytes(name)?.ok_or_else(|| format!("there is no `{name}`"))
    }
}
