//! The values of fields, and how they stand in a line.

use super::escape;
use super::number;
use super::privacy::Shown;
use super::time::{self, Times};
use super::view::{LogView, RuleView};
use crate::record::{Protocol, RequestId};

/// A field's value, not yet formatted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// The request did not have it, or the log does not keep it.
    Absent,
    /// Text that may hold any byte; empty text is absent.
    Text(&'a [u8]),
    /// Text of our own, which needs no escaping; empty text is absent.
    Token(&'static str),
    /// A path and a query, joined by a question mark where there is a query.
    Uri(&'a [u8], &'a [u8]),
    /// Method and path of the request, what is shown of its query, and its protocol.
    RequestLine(&'a LogView<'a>, &'a [u8], Protocol),
    Number(u64),
    /// The ids of WAF rules, with commas between them.
    Rules(&'a [RuleView<'a>]),
    Id(RequestId),
    Address(Shown),
    /// A duration in nanoseconds, told in milliseconds.
    Millis(u64),
    /// A duration in nanoseconds, told in seconds.
    Seconds(u64),
    /// Wall times in milliseconds since 1970.
    TimeIso(u64),
    TimeClf(u64),
    TimeUnix(u64),
}

/// The ids of matched rules that stand in one line.
const RULES_SHOWN_MAX: usize = 32;

/// What stands in a line of text for an absent value.
pub(super) const ABSENT: &[u8] = b"-";

impl Value<'_> {
    #[inline]
    pub(super) fn is_absent(&self) -> bool {
        match self {
            Value::Absent | Value::Address(Shown::Nothing) => true,
            Value::Text(text) => text.is_empty(),
            Value::Token(text) => text.is_empty(),
            Value::Uri(path, query) => path.is_empty() && query.is_empty(),
            Value::RequestLine(view, ..) => view.method.is_empty(),
            Value::Rules(rules) => rules.is_empty(),
            _ => false,
        }
    }

    /// Appends the value to a line of text.
    #[inline]
    pub(super) fn text(self, out: &mut Vec<u8>, times: &mut Times) {
        if self.is_absent() {
            out.extend_from_slice(ABSENT);
        } else {
            self.write(out, times, escape::text);
        }
    }

    /// Appends the value, which is not absent, to a line of JSON.
    #[inline]
    pub(super) fn json(self, out: &mut Vec<u8>, times: &mut Times) {
        if let Value::Number(_) | Value::Millis(_) | Value::Seconds(_) | Value::TimeUnix(_) = self {
            self.write(out, times, escape::json);
        } else {
            out.push(b'"');
            self.write(out, times, escape::json);
            out.push(b'"');
        }
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>, times: &mut Times, escape: impl Fn(&mut Vec<u8>, &[u8])) {
        let uri = |out: &mut Vec<u8>, path: &[u8], query: &[u8]| {
            escape(out, path);
            if !query.is_empty() {
                out.push(b'?');
                escape(out, query);
            }
        };
        match self {
            Value::Absent | Value::Address(Shown::Nothing) => {}
            Value::Text(text) => escape(out, text),
            Value::Token(text) => out.extend_from_slice(text.as_bytes()),
            Value::Uri(path, query) => uri(out, path, query),
            Value::RequestLine(view, query, protocol) => {
                escape(out, view.method);
                out.push(b' ');
                uri(out, view.path, query);
                out.push(b' ');
                out.extend_from_slice(protocol.as_str().as_bytes());
            }
            Value::Number(number) => number::decimal(out, number),
            Value::Rules(rules) => {
                for (at, rule) in rules.iter().take(RULES_SHOWN_MAX).enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    number::decimal(out, rule.id);
                }
            }
            Value::Id(id) => out.extend_from_slice(&id.hex()),
            Value::Address(Shown::Address(address)) => number::address(out, address),
            Value::Address(Shown::Hash(hash)) => {
                out.extend_from_slice(hash.to_be_bytes().map(number::hex).as_flattened());
            }
            Value::Millis(nanos) => number::thousandths(out, nanos / 1_000),
            Value::Seconds(nanos) => number::thousandths(out, nanos / 1_000_000),
            Value::TimeIso(unix_millis) => times.iso(out, unix_millis),
            Value::TimeClf(unix_millis) => times.clf(out, unix_millis),
            Value::TimeUnix(unix_millis) => time::unix(out, unix_millis),
        }
    }
}
