//! Parts of representations (RFC 9110, section 14): what a request asks for, how it is answered, and
//! which parts are stored.
//!
//! What makes no sense is ignored and the whole is served, as the RFC wants it; only ranges that are
//! well-formed and lie outside are refused (416).

mod multipart;
mod spans;

pub use multipart::Multipart;
pub use spans::{SPANS_MAX, SpanSet, SpansError};

use crate::entity::{Strength, TagRef};
use crate::stored::Stored;
use tidegate_http::field::{self, Known};
use tidegate_http::{Headers, Method, date, write};

/// How many ranges a request may ask for. Whoever asks for more gets the whole (RFC 9110, section
/// 14.2).
pub const RANGES_MAX: usize = 16;

/// Bytes of a representation, from `first` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSpan {
    /// The first byte's place.
    pub first: u64,
    /// The place behind the last byte.
    pub end: u64,
}

impl ByteSpan {
    /// The number of bytes.
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.end <= self.first
    }

    /// Whether all of another span's bytes are in it.
    pub const fn holds(&self, other: ByteSpan) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// Whether the two make one without a gap.
    const fn meets(&self, other: ByteSpan) -> bool {
        self.first <= other.end && other.first <= self.end
    }

    /// Writes the `Content-Range` of it, in a representation of so many bytes.
    pub fn write_content_range(&self, complete: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        write::decimal(out, self.first);
        out.push(b'-');
        write::decimal(out, self.end.saturating_sub(1));
        out.push(b'/');
        write::decimal(out, complete);
    }
}

/// Writes the `Content-Range` of a 416: `bytes */length`.
pub fn write_unsatisfied(complete: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes */");
    write::decimal(out, complete);
}

/// One range as a request gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spec {
    /// `first-last`, or `first-`, whose last is the largest number.
    From {
        /// The first byte's place.
        first: u64,
        /// The last byte's place.
        last: u64,
    },
    /// `-length`: the last bytes.
    Last(u64),
}

/// The ranges a request asks for: well-formed, not yet held against a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    specs: [Spec; RANGES_MAX],
    count: usize,
}

/// What is sent of a representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of it, with 200.
    Whole,
    /// This part, with 206. It is not empty.
    Part(ByteSpan),
    /// These parts, in this order, with 206. None is empty, and no two overlap.
    Parts(Box<[ByteSpan]>),
    /// Nothing: 416.
    Unsatisfiable,
}

impl Ranges {
    /// The ranges of a request, if it is a `GET` and has a `Range` that can be understood (RFC 9110,
    /// section 14.2).
    pub fn of(method: Method, request: &Headers) -> Option<Ranges> {
        if method != Method::Get {
            return None;
        }
        let mut lines = request.all(Known::Range);
        let ranges = Ranges::read(lines.next()?);
        if lines.next().is_some() { None } else { ranges }
    }

    /// Reads the value of a `Range` field (RFC 9110, section 14.1.2).
    pub fn read(value: &[u8]) -> Option<Ranges> {
        let (unit, set) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let mut ranges = Ranges { specs: [Spec::Last(0); RANGES_MAX], count: 0 };
        for member in field::tokens(set) {
            *ranges.specs.get_mut(ranges.count)? = spec(member)?;
            ranges.count += 1;
        }
        (ranges.count > 0).then_some(ranges)
    }

    /// The ranges as they were given.
    pub fn specs(&self) -> &[Spec] {
        &self.specs[..self.count]
    }

    /// What of a representation of so many bytes is sent. Ranges that overlap or touch become one, and
    /// all are in order then.
    pub fn select(&self, length: u64) -> Selection {
        let (mut spans, mut count) = ([ByteSpan::default(); RANGES_MAX], 0);
        for spec in self.specs() {
            let span = match *spec {
                Spec::From { first, last } => {
                    ByteSpan { first, end: last.saturating_add(1).min(length) }
                }
                Spec::Last(bytes) if bytes > 0 && length == 0 => return Selection::Whole,
                Spec::Last(bytes) => ByteSpan { first: length.saturating_sub(bytes), end: length },
            };
            if !span.is_empty() {
                spans[count] = span;
                count += 1;
            }
        }
        match coalesced(&mut spans[..count]) {
            [] => Selection::Unsatisfiable,
            [span] => Selection::Part(*span),
            spans => Selection::Parts(Box::from(&*spans)),
        }
    }
}

fn spec(member: &[u8]) -> Option<Spec> {
    let dash = member.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (&member[..dash], &member[dash + 1..]);
    match (first, last) {
        ([], last) => Some(Spec::Last(number(last)?)),
        (first, []) => Some(Spec::From { first: number(first)?, last: u64::MAX }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From { first, last })
        }
    }
}

/// Digits; a number that is too large is as good as the largest.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits.iter().fold(0_u64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        })
    })
}

/// The spans without those that overlap or touch: in order, if there are such, else as they are.
fn coalesced(spans: &mut [ByteSpan]) -> &mut [ByteSpan] {
    let meets_any = (1..spans.len()).any(|at| spans[..at].iter().any(|one| one.meets(spans[at])));
    if !meets_any {
        return spans;
    }
    spans.sort_unstable();
    let mut last = 0;
    for at in 1..spans.len() {
        let span = spans[at];
        if spans[last].meets(span) {
            spans[last].end = spans[last].end.max(span.end);
        } else {
            last += 1;
            spans[last] = span;
        }
    }
    &mut spans[..=last]
}

/// Whether the parts may be sent, or the whole has to be: what `If-Range` says (RFC 9110, section
/// 13.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfRange {
    /// There is no such field, or what the client has is of this representation.
    Holds,
    /// The client has parts of another one.
    Fails,
}

/// Holds `If-Range` against a stored response: its strong entity tag, or its very `Last-Modified` if
/// that is strong.
pub fn if_range(request: &Headers, stored: &Stored, now_seconds: u64) -> IfRange {
    let Some(value) = request.first(Known::IfRange) else { return IfRange::Holds };
    let holds = match date::parse(value, now_seconds) {
        Some(seconds) => {
            stored.last_modified() == Some(seconds)
                && stored.last_modified_strength() == Some(Strength::Strong)
        }
        None => match (TagRef::of(value), stored.etag()) {
            (Some(asked), Some(etag)) => asked.is_same(etag.borrow()),
            _ => false,
        },
    };
    if holds { IfRange::Holds } else { IfRange::Fails }
}

/// What is sent of a stored representation of so many bytes, by `Range` and `If-Range`. Only a 200
/// has ranges.
pub fn select(
    method: Method,
    request: &Headers,
    stored: &Stored,
    length: u64,
    now_seconds: u64,
) -> Selection {
    if !request.has(Known::Range) || !matches!(stored.status(), 200 | 206) {
        return Selection::Whole;
    }
    match Ranges::of(method, request) {
        Some(ranges) if if_range(request, stored, now_seconds) == IfRange::Holds => {
            ranges.select(length)
        }
        _ => Selection::Whole,
    }
}

/// Which part of a representation a 206 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte's place.
    pub first: u64,
    /// The last byte's place.
    pub last: u64,
    /// The length of the whole, if it is known.
    pub complete: Option<u64>,
}

impl ContentRange {
    /// Reads the value of a `Content-Range` field (RFC 9110, section 14.4). `None` if it is not of
    /// bytes, contradicts itself or is that of a 416.
    pub fn read(value: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let (range, complete) = (&rest[..slash], &rest[slash + 1..]);
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let (first, last) = (exact(&range[..dash])?, exact(&range[dash + 1..])?);
        let complete = if complete == b"*" { None } else { Some(exact(complete)?) };
        let fits = first <= last && complete.is_none_or(|complete| last < complete);
        fits.then_some(ContentRange { first, last, complete })
    }

    /// The bytes it says it is.
    pub const fn span(&self) -> ByteSpan {
        // Reading leaves no `last` that has no successor.
        ByteSpan { first: self.first, end: self.last.saturating_add(1) }
    }

    /// The bytes it is when so many came: origins that miscount their last byte exist, and bytes that
    /// did not come are not stored.
    pub fn span_of(&self, bytes: u64) -> ByteSpan {
        let span = self.span();
        ByteSpan { first: span.first, end: span.first.saturating_add(bytes).min(span.end) }
    }
}

/// A number that fits.
fn exact(digits: &[u8]) -> Option<u64> {
    number(digits).filter(|&number| number < u64::MAX)
}

/// The `Content-Range` of a response. `None` where there is not exactly one that makes sense.
pub fn content_range(response: &Headers) -> Option<ContentRange> {
    let mut lines = response.all(Known::ContentRange);
    let range = ContentRange::read(lines.next()?);
    if lines.next().is_some() { None } else { range }
}

/// Whether parts of two responses may be put together: only with the same strong validator (RFC 9111,
/// section 3.4).
pub fn may_combine(one: &Stored, other: &Stored) -> bool {
    match (one.etag(), other.etag()) {
        (Some(first), Some(second)) => first.borrow().is_same(second.borrow()),
        (None, None) => {
            let strong =
                |stored: &Stored| stored.last_modified_strength() == Some(Strength::Strong);
            strong(one) && strong(other) && one.last_modified() == other.last_modified()
        }
        _ => false,
    }
}

/// Writes the `Range` that asks for a span; for all that follows its first byte where it reaches to
/// the end.
pub fn write_range(span: ByteSpan, complete: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes=");
    write::decimal(out, span.first);
    out.push(b'-');
    if complete.is_none_or(|complete| span.end < complete) {
        write::decimal(out, span.end.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests;
