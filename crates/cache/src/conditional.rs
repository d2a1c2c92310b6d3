//! Conditional requests (RFC 9110, section 13): those that clients send, held against a stored
//! response, and those that we send to validate one (RFC 9111, section 4.3).

use crate::entity;
use crate::stored::Stored;
use crate::time::Time;
use tidegate_http::field::{self, Known};
use tidegate_http::headers::FieldRef;
use tidegate_http::{Headers, Method, Request, date};

/// What a client's conditions mean for a stored response that could be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// There are none, or they hold: the response is served.
    Holds,
    /// The client has it already: 304.
    NotModified,
}

/// Fields of a client's request that are not sent along where its response is to be stored: what
/// comes back would be an answer to the client's question and not the representation.
pub const NOT_FOR_FILLS: [Known; 6] = [
    Known::IfMatch,
    Known::IfNoneMatch,
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
    Known::IfRange,
    Known::Range,
];

/// Whether a request has conditions that only the origin can judge: it wants to know if the
/// representation is still the one it knows, and ours may be older (RFC 9111, section 4.3.2).
pub fn is_for_origin(request: &Headers) -> bool {
    request.has(Known::IfMatch) || request.has(Known::IfUnmodifiedSince)
}

/// Evaluates `If-None-Match`, or without it `If-Modified-Since` (RFC 9110, section 13.2.2).
///
/// Conditions count only where the answer would be a success otherwise (section 13.2.1).
pub fn evaluate(method: Method, request: &Headers, stored: &Stored, now: Time) -> Precondition {
    if !matches!(method, Method::Get | Method::Head) || !matches!(stored.status(), 200..=299) {
        return Precondition::Holds;
    }
    let client_has_it = if request.has(Known::IfNoneMatch) {
        has_entity(request, stored)
    } else if request.has(Known::IfModifiedSince) {
        is_since(request, stored, now)
    } else {
        false
    };
    if client_has_it { Precondition::NotModified } else { Precondition::Holds }
}

/// Whether one of the listed tags is that of the stored response, by the weak comparison (section
/// 13.1.2). `*` is any response at all.
fn has_entity(request: &Headers, stored: &Stored) -> bool {
    let stored = stored.etag().map(entity::EntityTag::borrow);
    request.all(Known::IfNoneMatch).any(|line| {
        field::trim(line) == b"*"
            || stored.is_some_and(|stored| entity::list(line).any(|tag| tag.is_like(stored)))
    })
}

/// Whether the stored response was not modified since (section 13.1.3). One without `Last-Modified`
/// is as old as its `Date` (RFC 9111, section 4.3.2).
fn is_since(request: &Headers, stored: &Stored, now: Time) -> bool {
    let mut lines = request.all(Known::IfModifiedSince);
    let since = lines.next().and_then(|line| date::parse(line, now.seconds()));
    // A list of dates is no date.
    match (since, lines.next()) {
        (Some(since), None) => stored.last_modified().unwrap_or(stored.date()) <= since,
        _ => false,
    }
}

/// Whether a stored field goes into a 304 (RFC 9110, section 15.4.5): what describes a content that is
/// not there does not, but what guides caches does.
pub fn is_in_not_modified(field: &FieldRef<'_>, stored: &Stored) -> bool {
    match field.known {
        Known::ContentLength
        | Known::ContentType
        | Known::ContentEncoding
        | Known::ContentRange
        | Known::AcceptRanges
        | Known::TransferEncoding => false,
        // Where there is no entity tag it is what the client updates by.
        Known::LastModified => stored.etag().is_none(),
        Known::Other => !field.name.eq_ignore_ascii_case(b"Content-Language"),
        _ => true,
    }
}

/// What a request carries that asks the origin whether a stored response still holds (RFC 9111,
/// section 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// For `If-None-Match`.
    pub etag: Option<&'a [u8]>,
    /// For `If-Modified-Since`, sent beside the other for origins that know only this one.
    pub last_modified: Option<[u8; 29]>,
}

impl<'a> Validators<'a> {
    /// Those of a stored response. Both are `None` if it cannot be validated.
    pub fn of(stored: &'a Stored) -> Validators<'a> {
        Validators {
            etag: stored.etag().map(entity::EntityTag::text),
            last_modified: stored.last_modified().map(date::imf_fixdate),
        }
    }

    /// Puts them in the place of the client's own conditions.
    pub fn put(&self, request: &mut Request) {
        for known in NOT_FOR_FILLS {
            request.headers.remove(known);
        }
        if let Some(etag) = self.etag {
            request.headers.push_known(Known::IfNoneMatch, etag);
        }
        if let Some(last_modified) = &self.last_modified {
            request.headers.push_known(Known::IfModifiedSince, last_modified);
        }
    }
}

/// Writes one `If-None-Match` of the entity tags of several stored responses: a request that selects
/// none of them may find that the origin chooses one all the same (RFC 9111, section 4.3.1).
pub fn write_if_none_match<'a>(stored: impl IntoIterator<Item = &'a Stored>, out: &mut Vec<u8>) {
    let start = out.len();
    for etag in stored.into_iter().filter_map(Stored::etag) {
        if out.len() > start {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(etag.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freshness;
    use crate::policy::Lifetimes;
    use crate::stored::Arrival;
    use crate::targeted::Control;
    use tidegate_http::Response;

    /// 2026-09-21 14:13:20 UTC
    const NOW: Time = Time::from_millis(1_790_000_000_000);
    const DATE: (&str, &str) = ("Date", "Mon, 21 Sep 2026 14:13:20 GMT");

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn headers(fields: Fields<'_>) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    fn stored(status: u16, fields: Fields<'_>) -> Stored {
        let response = Response { status, headers: headers(fields), ..Response::new() };
        let control = Control::of(&response.headers);
        let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), NOW);
        Stored::new(&response, &control, lifetime, Arrival { asked: NOW, received: NOW })
    }

    fn check(answered: Fields<'_>, asked: Fields<'_>, is_304: bool) {
        let expected = if is_304 { Precondition::NotModified } else { Precondition::Holds };
        for method in [Method::Get, Method::Head] {
            let seen = evaluate(method, &headers(asked), &stored(200, answered), NOW);
            assert_eq!(seen, expected, "{answered:?} {asked:?}");
        }
    }

    #[test]
    fn if_none_match_compares_weakly() {
        // RFC 9110, section 13.1.2
        let strong = [("ETag", "\"abcdef\"")];
        let asked = |value| [("If-None-Match", value)];
        check(&strong, &[], false);
        check(&strong, &asked("\"abcdef\""), true);
        check(&strong, &asked("W/\"abcdef\""), true);
        check(&strong, &asked("\"abcdef\", \"1234\", \"5678\""), true);
        check(&strong, &asked("\"1234\", \"abcdef\", \"5678\""), true);
        check(&strong, &asked("\"1234\",\"5678\",\"abcdef\""), true);
        check(&strong, &[("If-None-Match", "\"1\""), ("If-None-Match", "\"abcdef\"")], true);
        check(&strong, &asked("\"1234\""), false);
        check(&strong, &asked("\"1234, abcdef\""), false);
        check(&strong, &asked("abcdef"), false);
        check(&strong, &asked("\"\""), false);
        check(&strong, &asked(""), false);
        check(&strong, &asked("*"), true);
        check(&[], &asked("*"), true);
        check(&[], &asked("\"abcdef\""), false);
        check(&[("ETag", "W/\"abcdef\"")], &asked("W/\"abcdef\""), true);
        check(&[("ETag", "W/\"abcdef\"")], &asked("\"abcdef\""), true);
        check(&[("ETag", "\"abcdef\u{fc}\"")], &asked("\"abcdef\u{fc}\""), true);
        check(&[("ETag", "abcdef")], &asked("abcdef"), true);
        check(&[("ETag", "abcdef")], &asked("\"abcdef\""), false);
    }

    #[test]
    fn if_modified_since_compares_dates() {
        // RFC 9110, section 13.1.3
        let modified = [DATE, ("Last-Modified", "Mon, 21 Sep 2026 13:13:20 GMT")];
        let asked = |value| [("If-Modified-Since", value)];
        check(&modified, &asked("Mon, 21 Sep 2026 13:13:20 GMT"), true);
        check(&modified, &asked("Mon, 21 Sep 2026 13:13:21 GMT"), true);
        check(&modified, &asked("Mon, 21 Sep 2026 13:13:19 GMT"), false);
        check(&modified, &asked("Monday, 21-Sep-26 13:13:20 GMT"), true);
        check(&modified, &asked("Mon Sep 21 13:13:20 2026"), true);
        check(&modified, &asked("yesterday"), false);
        check(&modified, &asked(""), false);
        let twice = ("If-Modified-Since", "Mon, 21 Sep 2026 13:13:20 GMT");
        check(&modified, &[twice, twice], false);
        // Without Last-Modified by Date, and without that by when it came.
        check(&[DATE], &asked("Mon, 21 Sep 2026 14:13:20 GMT"), true);
        check(&[DATE], &asked("Mon, 21 Sep 2026 14:13:19 GMT"), false);
        check(&[], &asked("Mon, 21 Sep 2026 14:13:20 GMT"), true);
    }

    #[test]
    fn if_none_match_goes_before_if_modified_since() {
        // RFC 9110, section 13.2.2
        let answered =
            [DATE, ("Last-Modified", "Mon, 21 Sep 2026 13:13:20 GMT"), ("ETag", "\"a\"")];
        let older = ("If-Modified-Since", "Mon, 21 Sep 2026 12:13:20 GMT");
        let newer = ("If-Modified-Since", "Mon, 21 Sep 2026 14:13:20 GMT");
        check(&answered, &[("If-None-Match", "\"a\""), older], true);
        check(&answered, &[("If-None-Match", "\"b\""), newer], false);
        check(&answered, &[newer], true);
    }

    #[test]
    fn conditions_count_for_successes_alone() {
        let asked = headers(&[("If-None-Match", "*")]);
        for (status, expected) in [
            (200, Precondition::NotModified),
            (204, Precondition::NotModified),
            (301, Precondition::Holds),
            (404, Precondition::Holds),
        ] {
            let seen = evaluate(Method::Get, &asked, &stored(status, &[]), NOW);
            assert_eq!(seen, expected, "{status}");
        }
        let seen = evaluate(Method::Post, &asked, &stored(200, &[]), NOW);
        assert_eq!(seen, Precondition::Holds);
    }

    #[test]
    fn some_conditions_are_the_origins() {
        assert!(is_for_origin(&headers(&[("If-Match", "*")])));
        assert!(is_for_origin(&headers(&[("If-Unmodified-Since", "x")])));
        assert!(!is_for_origin(&headers(&[("If-None-Match", "*"), ("If-Range", "x")])));
    }

    #[test]
    fn a_304_has_what_guides_caches() {
        // RFC 9110, section 15.4.5
        let fields = [
            ("Cache-Control", "x"),
            ("Content-Location", "x"),
            ("Date", "x"),
            ("ETag", "\"x\""),
            ("Expires", "x"),
            ("Vary", "x"),
            ("Content-Security-Policy", "x"),
            ("Content-Length", "1"),
            ("Content-Type", "x"),
            ("Content-Encoding", "x"),
            ("Content-Language", "x"),
            ("Content-Range", "x"),
            ("Last-Modified", "Mon, 21 Sep 2026 13:13:20 GMT"),
        ];
        let count = |fields: Fields<'_>| {
            let stored = stored(200, fields);
            headers(fields).iter().filter(|field| is_in_not_modified(field, &stored)).count()
        };
        assert_eq!(count(&fields), 7);
        assert_eq!(count(&fields[12..]), 1);
    }

    #[test]
    fn a_validation_carries_the_stored_validators_alone() {
        let stored = stored(
            200,
            &[("ETag", "W/\"a\""), ("Last-Modified", "Monday, 21-Sep-26 13:13:20 GMT")],
        );
        let mut request = Request::new();
        for known in NOT_FOR_FILLS {
            request.headers.push_known(known, b"x");
        }
        request.headers.push(b"Abc", b"123");
        Validators::of(&stored).put(&mut request);
        let seen: Vec<_> = request.headers.iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(
            seen,
            [
                (&b"Abc"[..], &b"123"[..]),
                (b"If-None-Match", b"W/\"a\""),
                (b"If-Modified-Since", b"Mon, 21 Sep 2026 13:13:20 GMT"),
            ]
        );
    }

    #[test]
    fn several_tags_are_asked_for_at_once() {
        let all = [
            stored(200, &[("ETag", "\"a\"")]),
            stored(200, &[]),
            stored(200, &[("ETag", "W/\"b\"")]),
        ];
        let mut out = Vec::new();
        write_if_none_match(&all, &mut out);
        assert_eq!(out, b"\"a\", W/\"b\"");
    }
}
