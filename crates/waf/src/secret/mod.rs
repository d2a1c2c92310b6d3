//! Secrets in requests: by which names they go, and how they are masked so that rules see no difference.
//!
//! A masked value keeps its length and the class of each character ([`shape`]): what rules look at
//! is mostly punctuation and shape, so a recorded request gets the verdict that it got, unless the
//! words of the secret itself were what a rule found.

mod json;
mod multipart;
pub mod shape;
#[cfg(test)]
mod tests;
mod xml;

use crate::body::content_type::{ContentType, essence};
use crate::body::urlencoded;

/// Arguments that hold secrets whoever wrote the application; a name that ends so counts.
const ARGUMENTS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "card_number",
    "cvv",
];

/// Fields of requests that hold secrets.
pub const REQUEST_FIELDS: &[&str] =
    &["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// Fields of responses that hold secrets.
pub const RESPONSE_FIELDS: &[&str] = &["set-cookie"];

/// Whether an argument's name, in any case, is one of a secret.
pub fn is_argument(name: &[u8]) -> bool {
    let ends_so = |secret: &str| {
        let start = name.len().checked_sub(secret.len());
        start.is_some_and(|start| name[start..].eq_ignore_ascii_case(secret.as_bytes()))
    };
    ARGUMENTS.iter().any(|secret| ends_so(secret))
}

/// The names of secrets: those that everybody has, and an operator's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    own: &'a [String],
}

/// Whether secrets in a body could be masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masked {
    /// They were, as far as names tell them.
    Done,
    /// Nobody knows where in such a body names and values are.
    Unknown,
}

impl<'a> Names<'a> {
    /// With names of an operator's own, for fields, cookies and arguments alike.
    pub fn with(own: &'a [String]) -> Self {
        Self { own }
    }

    fn is_own(&self, name: &[u8]) -> bool {
        self.own.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }

    fn is_argument(&self, name: &[u8]) -> bool {
        is_argument(name) || self.is_own(name)
    }

    /// Masks the value of a request's field, if it is or holds a secret.
    pub fn mask_field(&self, name: &[u8], value: &mut [u8]) {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        if is("cookie") {
            mask_cookies(value);
        } else if is("authorization") || is("proxy-authorization") {
            // The scheme is no secret, and rules may ask for it.
            let scheme = memchr::memchr(b' ', value).map_or(0, |at| at + 1);
            shape::mask(&mut value[scheme..]);
        } else if is("x-api-key") || self.is_own(name) {
            shape::mask(value);
        } else if is("referer") {
            self.mask_target(value);
        }
    }

    /// Masks secrets in the query of a target.
    pub fn mask_target(&self, target: &mut [u8]) {
        if let Some(question) = memchr::memchr(b'?', target) {
            self.mask_form(&mut target[question + 1..]);
        }
    }

    /// Masks secrets in `name=value` pairs.
    fn mask_form(&self, form: &mut [u8]) {
        for pair in form.split_mut(|byte| *byte == b'&') {
            let Some(at) = memchr::memchr(b'=', pair) else { continue };
            let (name, value) = pair.split_at_mut(at);
            if self.is_argument(&urlencoded::decode(name).0) {
                shape::mask_escaped(&mut value[1..]);
            }
        }
    }

    /// Masks secrets in a body without content coding.
    pub fn mask_body(&self, content_type: &[u8], body: &mut [u8]) -> Masked {
        let media_type = essence(content_type).to_ascii_lowercase();
        match media_type.as_slice() {
            b"application/x-www-form-urlencoded" => self.mask_form(body),
            b"multipart/form-data" => {
                let parsed = ContentType::parse(content_type);
                let boundary = parsed.as_ref().ok().and_then(|it| it.parameter("boundary"));
                let Some(boundary) = boundary.filter(|it| !it.is_empty()) else {
                    return Masked::Unknown;
                };
                multipart::mask(self, boundary, body);
            }
            b"application/json" | b"application/graphql" => json::mask(self, body),
            b"application/xml" | b"text/xml" => xml::mask(self, body),
            other if other.ends_with(b"+json") => json::mask(self, body),
            other if other.ends_with(b"+xml") => xml::mask(self, body),
            _ => return Masked::Unknown,
        }
        Masked::Done
    }
}

/// Masks the values of all cookies: each may be a session.
fn mask_cookies(value: &mut [u8]) {
    for cookie in value.split_mut(|byte| *byte == b';') {
        let start = memchr::memchr(b'=', cookie).map_or(0, |at| at + 1);
        shape::mask_escaped(&mut cookie[start..]);
    }
}
