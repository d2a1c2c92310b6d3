//! What must not be read in a log: stars in its place.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::super::Inspection;
use crate::body::urlencoded;
use crate::seclang::action::Sanitise;
use crate::secret;
use crate::variable::Variable;

/// A secret shorter than this is starred out where it stands under its name, but not looked for
/// elsewhere: every text has a `1` in it.
const SOUGHT_BYTES_MIN: usize = 3;

/// What is starred out in one transaction.
pub(super) struct Mask {
    request_fields: Vec<Vec<u8>>,
    response_fields: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
    /// The secrets themselves, decoded and as they came.
    values: Vec<Vec<u8>>,
    /// What finds them, all in one pass: a request may have a thousand.
    finder: Option<AhoCorasick>,
}

impl Mask {
    pub(super) fn of(inspection: &Inspection) -> Self {
        let state = &inspection.state;
        let lower = |name: &[u8]| name.to_ascii_lowercase();
        let mut mask = Self {
            request_fields: secret::REQUEST_FIELDS
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
            response_fields: secret::RESPONSE_FIELDS
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
            arguments: Vec::new(),
            values: Vec::new(),
            finder: None,
        };
        for what in &state.sanitise {
            match what {
                Sanitise::Arg(name) => mask.arguments.push(lower(name)),
                Sanitise::RequestHeader(name) => mask.request_fields.push(lower(name)),
                Sanitise::ResponseHeader(name) => mask.response_fields.push(lower(name)),
                Sanitise::Matched | Sanitise::MatchedBytes { .. } => {
                    let matched = state.matched_rules.iter().map(|matched| matched.value.clone());
                    mask.values.extend(matched);
                }
            }
        }
        for of in [Variable::ArgsGet, Variable::ArgsPost] {
            for named in state.values.of(of) {
                if mask.is_secret_argument(state.contents.bytes(named.name)) {
                    mask.values.push(state.contents.bytes(named.value).to_vec());
                }
            }
        }
        let fields = state.values.of(Variable::RequestHeaders);
        for named in fields {
            let name = lower(state.contents.bytes(named.name));
            if mask.request_fields.contains(&name) {
                mask.values.push(state.contents.bytes(named.value).to_vec());
            }
        }
        for named in state.values.of(Variable::RequestCookies) {
            mask.values.push(state.contents.bytes(named.value).to_vec());
        }
        mask.values.retain(|value| value.len() >= SOUGHT_BYTES_MIN);
        mask.values.sort_unstable();
        mask.values.dedup();
        // It is used for a few texts and dropped: what is built fastest serves best.
        let mut builder = AhoCorasick::builder();
        builder.kind(Some(AhoCorasickKind::NoncontiguousNFA));
        builder.match_kind(MatchKind::LeftmostLongest);
        mask.finder = builder.build(&mask.values).ok().filter(|_| !mask.values.is_empty());
        mask
    }

    fn is_secret_argument(&self, name: &[u8]) -> bool {
        let name = name.to_ascii_lowercase();
        self.arguments.contains(&name) || secret::is_argument(&name)
    }

    /// A field's value, starred out if its name says so.
    pub(super) fn field(&self, of: Variable, name: &[u8], value: &[u8]) -> Vec<u8> {
        let secrets = match of {
            Variable::ResponseHeaders => &self.response_fields,
            _ => &self.request_fields,
        };
        if secrets.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            return stars(value.len());
        }
        self.text(value)
    }

    /// Text with the secrets in it starred out, wherever they stand.
    pub(super) fn text(&self, text: &[u8]) -> Vec<u8> {
        let mut shown = text.to_vec();
        if let Some(finder) = &self.finder {
            for found in finder.find_iter(text) {
                shown[found.range()].fill(b'*');
            }
        }
        shown
    }

    /// A target or an urlencoded body: the values of secret arguments are starred out as they came,
    /// escapes and all.
    pub(super) fn urlencoded(&self, text: &[u8]) -> Vec<u8> {
        let mut shown = self.text(text);
        let begin = memchr::memchr(b'?', text).map_or(0, |at| at + 1);
        let mut start = begin;
        for pair in text[begin..].split(|&byte| byte == b'&') {
            if let Some(at) = memchr::memchr(b'=', pair) {
                let (name, _) = urlencoded::decode(&pair[..at]);
                if self.is_secret_argument(&name) {
                    shown[start + at + 1..start + pair.len()].fill(b'*');
                }
            }
            start += pair.len() + 1;
        }
        shown
    }
}

fn stars(bytes: usize) -> Vec<u8> {
    vec![b'*'; bytes]
}
