//! What becomes of stored responses when the origin has been asked about them: by a conditional
//! request (RFC 9111, section 4.3.4) or by `HEAD` (section 4.3.5).

use crate::entity::{Strength, TagRef};
use crate::freshness;
use crate::policy::Policy;
use crate::stored::{Arrival, Stored};
use crate::storing::{NotStored, Omitted, may_be_stored};
use crate::targeted::Control;
use crate::time::Time;
use tidegate_http::field::{self, Known};
use tidegate_http::headers::FieldRef;
use tidegate_http::{Headers, Response, framing};

/// How far the validators of an answer are those of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// They are others: it is about something else.
    Contradicted,
    /// The answer has none.
    Silent,
    /// They are like each other.
    Weak,
    /// They are the same strong one.
    Strong,
}

/// Holds the validators of a 304, or of the answer to a `HEAD`, against a stored response.
pub fn agreement(answer: &Headers, stored: &Stored, now: Time) -> Agreement {
    if let Some(new) = answer.first(Known::Etag).and_then(TagRef::of) {
        return match stored.etag().map(crate::entity::EntityTag::borrow) {
            Some(old) if new.is_same(old) => Agreement::Strong,
            // Origins that weaken tags when they compress do not weaken them in a 304, which has
            // nothing to compress. They compared weakly, and so do we.
            Some(old) if new.is_like(old) => Agreement::Weak,
            _ => Agreement::Contradicted,
        };
    }
    match freshness::date_of(answer, Known::LastModified, now) {
        None => Agreement::Silent,
        Some(seconds) if stored.last_modified() == Some(seconds) => {
            match stored.last_modified_strength() {
                Some(Strength::Strong) => Agreement::Strong,
                _ => Agreement::Weak,
            }
        }
        Some(_) => Agreement::Contradicted,
    }
}

/// The places of those among the stored responses that a 304 updates (RFC 9111, section 4.3.4). The
/// candidates are those whose validators were sent.
///
/// - With a strong validator it updates all that have the same one.
/// - With a weak one, the most recent of those that have one like it.
/// - Without any it can only be about the one that was asked about. (The RFC says so only where that
///   one has no validator either; but it was sent alone, and origins do leave it out.)
///
/// If none is left, the 304 is of no use: the request has to be sent again, without conditions.
pub fn selected(answer: &Headers, candidates: &[&Stored], now: Time) -> Vec<usize> {
    let agreements: Vec<_> =
        candidates.iter().map(|stored| agreement(answer, stored, now)).collect();
    let with = |wanted| {
        let places = agreements.iter().enumerate();
        places.filter(move |(_, seen)| **seen == wanted).map(|(place, _)| place)
    };
    let strong: Vec<_> = with(Agreement::Strong).collect();
    if !strong.is_empty() {
        return strong;
    }
    let by_date = |&place: &usize| (candidates[place].date(), candidates[place].received());
    if let Some(latest) = with(Agreement::Weak).max_by_key(by_date) {
        return vec![latest];
    }
    if agreements == [Agreement::Silent] { vec![0] } else { Vec::new() }
}

/// A stored response after an update.
#[derive(Clone, Debug)]
pub struct Freshened {
    /// Its fields.
    pub head: Headers,
    /// What is known of it now.
    pub stored: Stored,
    /// Whether it may stay in the store. The update may forbid it, and then it serves this request
    /// alone.
    pub stays: Result<(), NotStored>,
}

/// Updates a stored response by a 304 that [`selected`] it, by the answer to a `HEAD` that
/// [`head_update`] lets do so, or by another part of it that [`crate::range::may_combine`] allows
/// (RFC 9111, sections 3.2 and 3.4).
pub fn freshen(
    stored: &Stored,
    head: &Headers,
    answer: &Response,
    policy: &Policy,
    arrival: Arrival,
) -> Freshened {
    let answered = Control::of(&answer.headers);
    let omitted = Omitted::of(answered, policy.set_cookie);
    // A tag that is only like ours may be that of another coding.
    let agreement = agreement(&answer.headers, stored, arrival.received);
    let merged = merge(head, &answer.headers, |field| {
        omitted.keeps(field) && (field.known != Known::Etag || agreement != Agreement::Weak)
    });
    let response = Response { status: stored.status(), headers: merged, ..Response::new() };
    let control = Control::of(&response.headers);
    let lifetime = freshness::lifetime(&response, &control, &policy.lifetimes, arrival.received);
    let mut renewed = Stored::new(&response, &control, lifetime, arrival);
    // `Age` is not kept with the head: it is the answer's.
    let age = freshness::initial_age(&answer.headers, arrival.asked, arrival.received);
    renewed.set_age(age, arrival.received, lifetime.span);
    let stays = may_be_stored(&response, &control);
    Freshened { head: response.headers, stored: renewed, stays }
}

/// The stored fields, with those of the update in the place of the ones that have the same names.
///
/// What says how the stored bytes are to be read stays as it is: they did not change (section 3.2).
fn merge(head: &Headers, update: &Headers, takes: impl Fn(&FieldRef<'_>) -> bool) -> Headers {
    let mut merged = head.clone();
    let describes_bytes = |known: Known| {
        matches!(known, Known::ContentLength | Known::ContentEncoding | Known::ContentRange)
    };
    let fields =
        || field::end_to_end(update).filter(|field| !describes_bytes(field.known) && takes(field));
    for field in fields() {
        merged.remove_named(field.name);
    }
    for field in fields() {
        merged.push(field.name, field.value);
    }
    merged
}

/// What the answer to a `HEAD` means for a stored response to `GET` (RFC 9111, section 4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadUpdate {
    /// It is the same representation: [`freshen`] it.
    Freshen,
    /// It has changed: the stored one is stale from now on.
    Expire,
    /// Nothing.
    Nothing,
}

/// Holds the answer to a `HEAD` against the stored response that the request selects. `length` is
/// that of the stored body, if it is whole.
pub fn head_update(
    answer: &Response,
    stored: &Stored,
    length: Option<u64>,
    now: Time,
) -> HeadUpdate {
    if answer.status != 200 || !matches!(stored.status(), 200 | 206) {
        return HeadUpdate::Nothing;
    }
    let said = framing::content_length(&answer.headers).ok().flatten();
    let is_as_long = match (said, length) {
        (Some(said), Some(length)) => said == length,
        _ => true,
    };
    match agreement(&answer.headers, stored, now) {
        Agreement::Contradicted => HeadUpdate::Expire,
        _ if !is_as_long => HeadUpdate::Expire,
        Agreement::Silent | Agreement::Weak | Agreement::Strong => HeadUpdate::Freshen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Lifetimes;
    use crate::time::Span;

    /// 2026-09-21 14:13:20 UTC
    const NOW: Time = Time::from_millis(1_790_000_000_000);
    const ARRIVAL: Arrival = Arrival { asked: NOW, received: NOW };
    const MODIFIED: (&str, &str) = ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT");
    const CHANGED: (&str, &str) = ("Last-Modified", "Wed, 01 Jan 2020 00:00:01 GMT");
    const DATE: (&str, &str) = ("Date", "Mon, 21 Sep 2026 14:13:20 GMT");

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn response(status: u16, fields: Fields<'_>) -> Response {
        let mut response = Response::new();
        response.status = status;
        for (name, value) in fields {
            response.headers.push(name.as_bytes(), value.as_bytes());
        }
        response
    }

    fn stored_at(fields: Fields<'_>, received: Time) -> Stored {
        let response = response(200, fields);
        let control = Control::of(&response.headers);
        let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), received);
        Stored::new(&response, &control, lifetime, Arrival { asked: received, received })
    }

    fn stored(fields: Fields<'_>) -> Stored {
        stored_at(fields, NOW)
    }

    #[test]
    fn validators_agree_or_contradict() {
        let check = |answer: Fields<'_>, kept: Fields<'_>, expected| {
            let seen = agreement(&response(304, answer).headers, &stored(kept), NOW);
            assert_eq!(seen, expected, "{answer:?} {kept:?}");
        };
        let (a, b, weak) = (("ETag", "\"a\""), ("ETag", "\"b\""), ("ETag", "W/\"a\""));
        check(&[a], &[a], Agreement::Strong);
        check(&[a, CHANGED], &[a, MODIFIED], Agreement::Strong);
        check(&[b], &[a], Agreement::Contradicted);
        check(&[a], &[weak], Agreement::Weak);
        check(&[weak], &[a], Agreement::Weak);
        check(&[weak], &[weak], Agreement::Weak);
        check(&[a], &[], Agreement::Contradicted);
        check(&[], &[a], Agreement::Silent);
        check(&[MODIFIED], &[a, MODIFIED], Agreement::Weak);
        check(&[MODIFIED], &[MODIFIED, DATE], Agreement::Strong);
        check(&[CHANGED], &[MODIFIED], Agreement::Contradicted);
        check(&[("Last-Modified", "x")], &[MODIFIED], Agreement::Silent);
    }

    #[test]
    fn a_304_selects_what_it_updates() {
        // RFC 9111, section 4.3.4
        let (a, b, weak) = (("ETag", "\"a\""), ("ETag", "\"b\""), ("ETag", "W/\"a\""));
        let (one, again, other) = (stored(&[a]), stored(&[a]), stored(&[b]));
        let later = stored_at(&[weak], NOW + Span::from_seconds(5));
        let check = |answer: Fields<'_>, candidates: &[&Stored], expected: &[usize]| {
            let seen = selected(&response(304, answer).headers, candidates, NOW);
            assert_eq!(seen, expected, "{answer:?}");
        };
        check(&[a], &[&one, &other, &again], &[0, 2]);
        check(&[a], &[&other], &[]);
        check(&[a], &[&later, &one], &[1]);
        check(&[weak], &[&one, &later, &other], &[1]);
        check(&[weak], &[&later, &one], &[0]);
        check(&[], &[&one], &[0]);
        check(&[], &[&one, &other], &[]);
        check(&[], &[], &[]);
    }

    fn freshened(kept: Fields<'_>, answer: Fields<'_>) -> Freshened {
        let head = response(200, kept).headers;
        let answer = response(304, answer);
        freshen(&stored(kept), &head, &answer, &Policy::default(), ARRIVAL)
    }

    #[test]
    fn an_update_replaces_what_it_names() {
        // RFC 9111, section 3.2
        let check = |name: &str, updated: bool| {
            let fresh = freshened(
                &[(name, "old"), ("Other", "1"), ("Other", "2")],
                &[(name, "new"), ("Connection", "x"), ("X", "y")],
            );
            let seen = fresh.head.named(name.as_bytes()).collect::<Vec<_>>();
            assert_eq!(seen, [if updated { &b"new"[..] } else { b"old" }], "{name}");
            assert_eq!(fresh.head.named(b"other").count(), 2);
            assert_eq!(fresh.head.named(b"x").count() + fresh.head.named(b"connection").count(), 0);
        };
        for name in [
            "Test-Header",
            "X-Test-Header",
            "Content-Foo",
            "Cache-Control",
            "Content-Type",
            "Content-Location",
            "Content-Security-Policy",
            "ETag",
            "Expires",
            "X-Frame-Options",
        ] {
            check(name, true);
        }
        for name in ["Content-Length", "Content-Encoding", "Content-Range"] {
            check(name, false);
        }
        let several = freshened(&[("A", "1"), ("A", "2")], &[("a", "3"), ("A", "4")]);
        assert_eq!(several.head.named(b"a").collect::<Vec<_>>(), [b"3", b"4"]);
        let weak = freshened(&[("ETag", "W/\"a\"")], &[("ETag", "\"a\""), ("A", "b")]);
        assert_eq!(weak.head.first(Known::Etag), Some(&b"W/\"a\""[..]));
        assert_eq!(weak.head.named(b"a").count(), 1);
        let cookie = freshened(&[], &[("Set-Cookie", "a=b")]);
        assert_eq!(cookie.head.len(), 0);
    }

    #[test]
    fn an_update_makes_it_fresh_again() {
        let max_age = ("Cache-Control", "max-age=10");
        let fresh = freshened(&[max_age, MODIFIED], &[("Cache-Control", "max-age=20"), DATE]);
        assert_eq!((fresh.stored.age(NOW), fresh.stored.ttl(NOW)), (0, 20));
        assert_eq!(fresh.stays, Ok(()));
        let fresh = freshened(&[max_age, MODIFIED], &[("Age", "4")]);
        assert_eq!((fresh.stored.age(NOW), fresh.stored.ttl(NOW)), (4, 6));
        let gone = freshened(&[max_age], &[("Cache-Control", "no-store")]);
        assert_eq!(gone.stays, Err(NotStored::NoStore));
        let private = freshened(&[max_age], &[("Cache-Control", "private")]);
        assert_eq!(private.stays, Err(NotStored::Private));
    }

    #[test]
    fn a_head_tells_whether_it_changed() {
        // RFC 9111, section 4.3.5
        let kept = stored(&[("ETag", "\"a\""), MODIFIED]);
        let check = |status, answer: Fields<'_>, length, expected| {
            let seen = head_update(&response(status, answer), &kept, length, NOW);
            assert_eq!(seen, expected, "{status} {answer:?} {length:?}");
        };
        check(200, &[], None, HeadUpdate::Freshen);
        check(200, &[("ETag", "\"a\"")], Some(5), HeadUpdate::Freshen);
        check(200, &[("ETag", "\"b\"")], Some(5), HeadUpdate::Expire);
        check(200, &[CHANGED], Some(5), HeadUpdate::Expire);
        check(200, &[("Content-Length", "5")], Some(5), HeadUpdate::Freshen);
        check(200, &[("Content-Length", "6")], Some(5), HeadUpdate::Expire);
        check(200, &[("Content-Length", "6")], None, HeadUpdate::Freshen);
        check(410, &[("ETag", "\"b\"")], Some(5), HeadUpdate::Nothing);
        check(304, &[], Some(5), HeadUpdate::Nothing);
    }
}
