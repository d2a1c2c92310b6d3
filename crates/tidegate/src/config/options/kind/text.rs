//! Texts with a meaning of their own, and secrets.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::super::super::diagnostic::{Code, Diagnostic, code};
use super::super::super::environment::{Placeholders, Secret};
use super::super::super::node::{Node, Value};
use super::super::super::reader::{Reading, Text};
use super::Kind;

/// What is wrong with a text, where in it, and what to do.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: &'static Code,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) hint: Option<String>,
    pub(crate) part: Option<std::ops::Range<usize>>,
}

impl Fault {
    /// A fault of the whole text.
    pub(crate) fn new(code: &'static Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), label: String::new(), hint: None, part: None }
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// Says something beside the place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Fault {
        self.label = label.into();
        self
    }

    /// Points at a part of the text.
    pub(crate) fn at(mut self, part: std::ops::Range<usize>) -> Fault {
        self.part = Some(part);
        self
    }

    /// As a diagnostic about this text. What came from outside may be a secret in the wrong place, so
    /// nothing that was said about its content is repeated.
    pub(crate) fn about(self, text: &Text) -> Diagnostic {
        if text.is_from_outside() {
            let doc = self.code.doc.trim().trim_end_matches('.');
            let message = format!("{} cannot be used: {}", text.shown(), uncapitalised(doc));
            return Diagnostic::new(self.code, text.span, message);
        }
        let place = self.part.map_or(text.span, |part| text.part(&part));
        Diagnostic::new(self.code, place, self.message).label(self.label).hint_if(self.hint)
    }
}

fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// A text with a meaning of its own, read by a function.
pub(crate) struct Parsed<T: 'static> {
    /// What it is, in words.
    pub(crate) what: &'static str,
    /// Whether it has placeholders.
    pub(crate) placeholders: Placeholders,
    /// Reads it.
    pub(crate) parse: fn(&Text) -> Result<T, Fault>,
}

/// A text read by a function.
pub(crate) const fn parsed_text<T>(
    what: &'static str,
    parse: fn(&Text) -> Result<T, Fault>,
) -> Parsed<T> {
    Parsed { what, placeholders: Placeholders::None, parse }
}

/// A text with placeholders, read by a function.
pub(crate) const fn template<T>(
    what: &'static str,
    parse: fn(&Text) -> Result<T, Fault>,
) -> Parsed<T> {
    Parsed { what, placeholders: Placeholders::Later, parse }
}

impl<T> Kind for Parsed<T> {
    type Value = T;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<T> {
        if !matches!(node.value, Value::Text(_)) {
            reading.wrong_type(node, self.what);
            return None;
        }
        let text = reading.text_with(node, self.placeholders)?;
        match (self.parse)(&text) {
            Ok(value) => Some(value),
            Err(fault) => {
                reading.report(fault.about(&text));
                None
            }
        }
    }

    fn describe(&self) -> String {
        self.what.into()
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}

/// A secret: a text, a variable, or `file:` and a path.
pub(crate) struct SecretText {
    /// The least length in bytes.
    pub(crate) bytes_min: usize,
}

/// A secret and whether the file itself holds it.
#[derive(Clone, Debug)]
pub(crate) struct FoundSecret {
    pub(crate) secret: Secret,
    pub(crate) written: Written,
}

/// Where a secret stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// In the configuration file.
    Here,
    /// In the environment or a file of its own.
    Elsewhere,
}

/// No secret is longer; a longer file is the wrong one.
const BYTES_MAX: usize = 4096;

fn read_secret(path: &Path) -> std::io::Result<String> {
    let mut content = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX as u64 + 2).read_to_string(&mut content)?;
    Ok(content)
}

impl Kind for SecretText {
    type Value = FoundSecret;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<FoundSecret> {
        let text = reading.text(node)?;
        let from_file = text.value.strip_prefix("file:");
        if from_file.is_none() && !text.is_from_outside() {
            reading.diagnostics.secrets.push(text.span);
        }
        let secret = match from_file {
            None => text.value.clone(),
            Some(path) => match read_secret(&reading.path(path, node.span)) {
                Ok(content) => content.trim_end_matches(['\n', '\r']).to_owned(),
                Err(error) => {
                    let message = format!("the secret's file cannot be read: {}", reason(&error));
                    reading.report(Diagnostic::new(&code::SECRET_FILE, text.span, message));
                    return None;
                }
            },
        };
        let complaint = if secret.is_empty() {
            Some("the secret is empty".to_owned())
        } else if secret.len() < self.bytes_min {
            Some(format!("the secret is shorter than {} bytes", self.bytes_min))
        } else if secret.len() > BYTES_MAX {
            Some(format!("the secret is longer than {BYTES_MAX} bytes"))
        } else if secret.bytes().any(|byte| !(0x21..=0x7e).contains(&byte)) {
            Some("the secret holds spaces, controls or characters beyond ASCII".to_owned())
        } else {
            None
        };
        if let Some(message) = complaint {
            reading.report(
                Diagnostic::new(&code::INVALID_VALUE, text.span, message)
                    .hint("make one with `openssl rand -hex 32`"),
            );
            return None;
        }
        let elsewhere = from_file.is_some() || text.is_from_outside();
        let written = if elsewhere { Written::Elsewhere } else { Written::Here };
        Some(FoundSecret { secret: Secret::new(secret), written })
    }

    fn describe(&self) -> String {
        format!("a secret of at least {} characters: `${{NAME}}` or `file:/path`", self.bytes_min)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}

/// An error of the system without the number that nobody looks up.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        std::io::ErrorKind::IsADirectory => "it is a directory".into(),
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        _ => error.to_string(),
    }
}
