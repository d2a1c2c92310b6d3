//! Paths of routes and prefixes.

use std::fmt::Write as _;

use tidegate_http::target::{self, PathForm};

use super::super::diagnostic::code;
use super::super::options::kind::Fault;
use super::super::reader::Text;

/// A path in the normal form that requests are compared in.
pub(crate) fn normal(text: &Text) -> Result<String, Fault> {
    let value = text.value.as_str();
    let bad = |message: &str| Fault::new(&code::INVALID_PATH, message);
    if !value.starts_with('/') {
        let fault = bad("a path begins with `/`").at(0..value.len().max(1));
        return Err(match value {
            "" | "*" => fault.hint("for all paths, write `/`"),
            _ if value.starts_with('^') || value.starts_with('~') => {
                fault.hint("paths are prefixes or exact, not patterns")
            }
            _ => fault.hint(format!("write `/{value}`")),
        });
    }
    if let Some(at) = value.find('?') {
        return Err(bad("routes are chosen by path; a query cannot be matched")
            .at(at..value.len())
            .hint(format!("write `{}`", &value[..at])));
    }
    if let Some(at) = value.find('#') {
        return Err(bad("a fragment never reaches a server").at(at..value.len()));
    }
    if let Some(at) = value.find('*') {
        return Err(bad("paths have no wildcards")
            .at(at..at + 1)
            .hint("`path` covers all that is below it, `exact` only itself"));
    }
    if let Some((at, odd)) = value.char_indices().find(|(_, c)| !c.is_ascii_graphic() || *c == '\\')
    {
        return Err(bad("paths are compared as they travel: ASCII, the rest percent-encoded")
            .at(at..at + odd.len_utf8())
            .hint(format!("write `{}` for it", encoded(odd))));
    }
    let mut out = Vec::new();
    match target::normalize_path(value.as_bytes(), &mut out) {
        Ok(PathForm::Normal) => Ok(value.into()),
        Ok(PathForm::Rewritten) => {
            let normal = String::from_utf8_lossy(&out).into_owned();
            Err(bad("requests are compared in normal form, so this would match none")
                .hint(format!("write `{normal}`")))
        }
        Err(error) => Err(bad(&format!("no request has such a path: {error}"))),
    }
}

fn encoded(c: char) -> String {
    let mut out = String::new();
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(out, "%{byte:02X}");
    }
    out
}

/// A path that a health check asks for, perhaps with a query.
pub(crate) fn probe(text: &Text) -> Result<String, Fault> {
    let value = text.value.as_str();
    let bad = |message: &str| Fault::new(&code::INVALID_PATH, message);
    if !value.starts_with('/') {
        let hint = match value.split_once("://") {
            Some((_, rest)) => format!(
                "each server is asked itself: write `/{}`",
                rest.split_once('/').map_or("", |(_, path)| path)
            ),
            None => format!("write `/{value}`"),
        };
        return Err(bad("the path of a check begins with `/`").hint(hint));
    }
    match target::form(value.as_bytes()) {
        Ok(_) => Ok(value.into()),
        Err(error) => Err(bad(&format!("no server takes this path: {error}"))),
    }
}
