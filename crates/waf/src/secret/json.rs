//! Secrets in JSON, found by their keys. What is no JSON is masked as far as it reads like it.

use super::{Names, shape};

/// Masks the values of secret keys, those of objects and arrays under them too.
pub(super) fn mask(names: &Names<'_>, body: &mut [u8]) {
    let mut scan = Scan { at: 0, depth: 0, secret: Secret::No };
    while let Some(&byte) = body.get(scan.at) {
        match byte {
            b'"' => scan.string(names, body),
            b'{' | b'[' => {
                scan.depth += 1;
                if scan.secret == Secret::Value {
                    scan.secret = Secret::Within(scan.depth);
                }
                scan.at += 1;
            }
            b'}' | b']' => {
                if scan.secret == Secret::Within(scan.depth) || scan.secret == Secret::Value {
                    scan.secret = Secret::No;
                }
                scan.depth = scan.depth.saturating_sub(1);
                scan.at += 1;
            }
            b',' => {
                if scan.secret == Secret::Value {
                    scan.secret = Secret::No;
                }
                scan.at += 1;
            }
            b'0'..=b'9' if scan.secret != Secret::No => {
                body[scan.at] = b'9';
                scan.at += 1;
            }
            _ => scan.at += 1,
        }
    }
}

/// Where a scan stands.
struct Scan {
    at: usize,
    depth: usize,
    secret: Secret,
}

/// Whether values are secret here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secret {
    No,
    /// The value of the last key is.
    Value,
    /// Everything is, until the container at this depth ends.
    Within(usize),
}

impl Scan {
    /// A string: a key if a colon follows, else a value.
    fn string(&mut self, names: &Names<'_>, body: &mut [u8]) {
        let start = self.at + 1;
        let mut end = start;
        while let Some(&byte) = body.get(end) {
            match byte {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let end = end.min(body.len());
        let rest = body.get(end + 1..).unwrap_or_default();
        self.at = (end + 1).min(body.len());
        if rest.trim_ascii_start().starts_with(b":") {
            if let Secret::No | Secret::Value = self.secret {
                let is_secret = names.is_argument(&body[start..end]);
                self.secret = if is_secret { Secret::Value } else { Secret::No };
            }
        } else if self.secret != Secret::No {
            shape::mask_json(&mut body[start..end]);
        }
    }
}
