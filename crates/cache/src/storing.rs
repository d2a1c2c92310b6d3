//! Whether a response may be stored (RFC 9111, section 3), and which of its fields.

use crate::directive::{Flag, RequestDirectives, Scope};
use crate::freshness::{self, Basis};
use crate::invalidation;
use crate::key::Uri;
use crate::policy::{Caching, Policy, Post, RequestCookies, SetCookie};
use crate::range::{self, ContentRange};
use crate::stored::{Arrival, Stored};
use crate::tags::TagError;
use crate::targeted::Control;
use crate::time::Time;
use crate::vary::{Vary, VaryError};
use tidegate_http::field::{self, Known};
use tidegate_http::headers::FieldRef;
use tidegate_http::{Headers, Method, Request, Response, framing};

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotStored {
    /// There is no cache on the route.
    Off,
    /// The request was sent past the cache.
    Bypassed,
    /// The request's method: only `GET` stores.
    Method,
    /// The status: interim, 304, or 206 where nothing partial was asked for.
    Status,
    /// The request says `no-store`.
    RequestNoStore,
    /// The response says `no-store`.
    NoStore,
    /// The response says `must-understand`, and we do not understand its status.
    MustUnderstand,
    /// The response is `private`.
    Private,
    /// The request carried `Authorization`, and the response does not say that it is for others, too.
    Authorization,
    /// The response sets a cookie.
    SetCookie,
    /// The request carried cookies, and the response does not say for how long it holds.
    RequestCookies,
    /// It varies by more than its request (`Vary: *`).
    VaryAny,
    /// It varies by too many fields.
    VaryTooMany,
    /// It has more tags than can be kept.
    TagsTooMany,
    /// It has a tag that is too long to be kept.
    TagTooLong,
    /// Its body is too large.
    TooLarge,
    /// It would never be used: it is stale at once and cannot be validated.
    NoLifetime,
    /// Its `Content-Range` makes no sense.
    ContentRange,
    /// Its key was not asked for often enough yet.
    TooFewUses,
    /// Its body broke off.
    Incomplete,
    /// The store had no place for it.
    NoSpace,
}

impl NotStored {
    /// The reason in a word, for `Cache-Status` and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            NotStored::Off => "off",
            NotStored::Bypassed => "bypassed",
            NotStored::Method => "method",
            NotStored::Status => "status",
            NotStored::RequestNoStore => "request-no-store",
            NotStored::NoStore => "no-store",
            NotStored::MustUnderstand => "must-understand",
            NotStored::Private => "private",
            NotStored::Authorization => "authorization",
            NotStored::SetCookie => "set-cookie",
            NotStored::RequestCookies => "request-cookies",
            NotStored::VaryAny => "vary-any",
            NotStored::VaryTooMany => "vary-too-many",
            NotStored::TagsTooMany => "tags-too-many",
            NotStored::TagTooLong => "tag-too-long",
            NotStored::TooLarge => "too-large",
            NotStored::NoLifetime => "no-lifetime",
            NotStored::ContentRange => "content-range",
            NotStored::TooFewUses => "too-few-uses",
            NotStored::Incomplete => "incomplete",
            NotStored::NoSpace => "no-space",
        }
    }

    /// Whether the next response for this key will most likely not be stored for the same reason:
    /// then it is worth remembering, so that requests do not wait for each other in vain.
    pub const fn is_lasting(self) -> bool {
        match self {
            NotStored::NoStore
            | NotStored::MustUnderstand
            | NotStored::Private
            | NotStored::SetCookie
            | NotStored::VaryAny
            | NotStored::VaryTooMany
            | NotStored::TagsTooMany
            | NotStored::TagTooLong
            | NotStored::TooLarge
            | NotStored::NoLifetime
            | NotStored::TooFewUses => true,
            NotStored::Off
            | NotStored::Bypassed
            | NotStored::Method
            | NotStored::Status
            | NotStored::RequestNoStore
            | NotStored::Authorization
            | NotStored::RequestCookies
            | NotStored::ContentRange
            | NotStored::Incomplete
            | NotStored::NoSpace => false,
        }
    }
}

impl From<VaryError> for NotStored {
    fn from(error: VaryError) -> NotStored {
        match error {
            VaryError::Anything => NotStored::VaryAny,
            VaryError::TooMany => NotStored::VaryTooMany,
        }
    }
}

impl From<TagError> for NotStored {
    fn from(error: TagError) -> NotStored {
        match error {
            TagError::TooMany => NotStored::TagsTooMany,
            TagError::TooLong => NotStored::TagTooLong,
        }
    }
}

/// How a response is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storing {
    /// What is known of it.
    pub stored: Stored,
    /// What it varies by.
    pub vary: Vary,
    /// Which part of the representation it is, if it is one.
    pub part: Option<ContentRange>,
    /// Which fields are left out. Only the client whose request was sent gets them: others that read
    /// along get what is stored.
    pub omitted: Omitted,
}

/// Decides whether the response to a request may be stored, and how. The request is as the client
/// sent it; `uses` counts the requests for its key, this one included.
///
/// Whether its tags can be kept ([`crate::tags::read`]) and whether its body comes whole is to be
/// seen besides.
pub fn decide(
    request: &Request,
    response: &Response,
    policy: &Policy,
    arrival: Arrival,
    uses: u32,
) -> Result<Storing, NotStored> {
    if request.method != Method::Get {
        return Err(NotStored::Method);
    }
    let (storing, _) = judge(request, response, policy, arrival)?;
    if uses < policy.uses_min {
        return Err(NotStored::TooFewUses);
    }
    Ok(storing)
}

/// Decides whether the response to a `POST` of this URI may be stored as what a `GET` of it would get:
/// if it gives its lifetime itself, and says in `Content-Location` that it is that (RFC 9110, section
/// 9.3.3). What was stored for the URI before has been invalidated by then.
pub fn decide_post(
    uri: &Uri<'_>,
    request: &Request,
    response: &Response,
    policy: &Policy,
    arrival: Arrival,
) -> Result<Storing, NotStored> {
    let is_for_get = request.method == Method::Post
        && policy.post == Post::Stored
        && response.status == 200
        && invalidation::is_about_itself(uri, response);
    if !is_for_get {
        return Err(NotStored::Method);
    }
    let (storing, basis) = judge(request, response, policy, arrival)?;
    if basis.is_explicit() { Ok(storing) } else { Err(NotStored::NoLifetime) }
}

/// What does not hang on the method.
fn judge(
    request: &Request,
    response: &Response,
    policy: &Policy,
    arrival: Arrival,
) -> Result<(Storing, Basis), NotStored> {
    if policy.caching == Caching::Off {
        return Err(NotStored::Off);
    }
    if RequestDirectives::of(&request.headers).no_store {
        return Err(NotStored::RequestNoStore);
    }
    let part = part(request, response)?;
    let control = Control::of(&response.headers);
    may_be_stored(response, &control)?;
    may_be_shared(request, response, &control, policy)?;
    let vary = Vary::of(&response.headers, &request.headers)?;
    let length = framing::content_length(&response.headers).ok().flatten();
    if length.is_some_and(|bytes| bytes > policy.object_bytes_max) {
        return Err(NotStored::TooLarge);
    }
    let lifetime = freshness::lifetime(response, &control, &policy.lifetimes, arrival.received);
    if request.headers.has(Known::Cookie)
        && policy.request_cookies == RequestCookies::NeedLifetime
        && !(lifetime.basis.is_explicit() || lifetime.basis == Basis::Override)
        && !control.directives.has(Flag::Public)
    {
        return Err(NotStored::RequestCookies);
    }
    let stored = Stored::new(response, &control, lifetime, arrival);
    if !is_of_use(&stored, lifetime.basis, response.status, arrival.received) {
        return Err(NotStored::NoLifetime);
    }
    let omitted = Omitted::of(control, policy.set_cookie);
    Ok((Storing { stored, vary, part, omitted }, lifetime.basis))
}

/// Which part a 206 is. A status has to be final, and those that answer conditions and ranges fit
/// only what was asked; another range may be satisfiable where one was not.
fn part(request: &Request, response: &Response) -> Result<Option<ContentRange>, NotStored> {
    match response.status {
        0..=199 | 304 | 416 => Err(NotStored::Status),
        206 if !request.headers.has(Known::Range) => Err(NotStored::Status),
        206 => match range::content_range(&response.headers) {
            Some(part) => Ok(Some(part)),
            None => Err(NotStored::ContentRange),
        },
        _ => Ok(None),
    }
}

/// What the response says to all shared caches (RFC 9111, sections 3 and 5.2.2).
pub(crate) fn may_be_stored(response: &Response, control: &Control) -> Result<(), NotStored> {
    let directives = &control.directives;
    if directives.has(Flag::MustUnderstand) {
        // It takes the place of `no-store` for those who understand (section 5.2.2.3).
        if !is_understood(response.status) {
            return Err(NotStored::MustUnderstand);
        }
    } else if directives.has(Flag::NoStore) {
        return Err(NotStored::NoStore);
    }
    if directives.private.is_response() {
        return Err(NotStored::Private);
    }
    Ok(())
}

/// Statuses whose meaning for caches we know: the final ones of RFC 9110 and of RFC 6585.
const fn is_understood(status: u16) -> bool {
    matches!(status,
        200..=206 | 300..=303 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451
        | 500..=505 | 511)
}

/// Whether what was made for one client may be given to others (sections 3.5 and 7.3).
fn may_be_shared(
    request: &Request,
    response: &Response,
    control: &Control,
    policy: &Policy,
) -> Result<(), NotStored> {
    let directives = &control.directives;
    let is_for_others = directives.has(Flag::Public)
        || directives.has(Flag::MustRevalidate)
        || directives.s_maxage.seconds().is_some();
    if request.headers.has(Known::Authorization) && !is_for_others {
        return Err(NotStored::Authorization);
    }
    let is_omitted =
        |name: &[u8]| directives.private.names(name) || directives.no_cache.names(name);
    let sets_cookie =
        |name: &[u8]| response.headers.named(name).next().is_some() && !is_omitted(name);
    if policy.set_cookie == SetCookie::NotStored
        && COOKIE_FIELDS.iter().any(|name| sets_cookie(name))
    {
        return Err(NotStored::SetCookie);
    }
    Ok(())
}

const COOKIE_FIELDS: [&[u8]; 2] = [b"Set-Cookie", b"Set-Cookie2"];

/// Whether it can ever be used: fresh, validated, or where the origin allows it stale.
fn is_of_use(stored: &Stored, basis: Basis, status: u16, now: Time) -> bool {
    let windows = [stored.stale_while_revalidate_until(), stored.stale_if_error_until()];
    let may_be_stale = windows.into_iter().flatten().any(|until| now < until);
    // Without a word about caching, statuses other than these are not stored (section 3). An error
    // of the origin's is not asked about again: the hope is for something else.
    let has_word = basis != Basis::Nothing || freshness::is_heuristically_cacheable(status);
    let may_be_validated = stored.has_validator() && has_word && status < 500;
    stored.is_fresh(now) || may_be_stale || may_be_validated
}

/// Which fields of a response are not stored (section 3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    no_cache: Scope,
    private: Scope,
    set_cookie: SetCookie,
}

impl Omitted {
    pub(crate) fn of(control: Control, set_cookie: SetCookie) -> Omitted {
        let directives = control.directives;
        Omitted { no_cache: directives.no_cache, private: directives.private, set_cookie }
    }

    /// Whether a field is stored.
    ///
    /// Those for one connection are taken to be gone already. `Age` is not stored as it is reckoned
    /// anew each time.
    pub fn keeps(&self, field: &FieldRef<'_>) -> bool {
        match field.known {
            Known::Age | Known::ProxyAuthenticate | Known::ProxyAuthorization => false,
            _ if field.name.eq_ignore_ascii_case(b"Proxy-Authentication-Info") => false,
            _ if self.no_cache.names(field.name) || self.private.names(field.name) => false,
            _ if self.set_cookie == SetCookie::Stored => true,
            _ => !COOKIE_FIELDS.iter().any(|name| field.name.eq_ignore_ascii_case(name)),
        }
    }

    /// The fields of a response that are stored: neither those for one connection nor those left out.
    pub fn kept<'a>(&'a self, response: &'a Headers) -> impl Iterator<Item = FieldRef<'a>> {
        field::end_to_end(response).filter(|field| self.keeps(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{StatusSpan, StatusTable};
    use crate::time::Span;
    use tidegate_http::target::Scheme;

    const NOW: Time = Time::from_millis(1_790_000_000_000);
    const ARRIVAL: Arrival = Arrival { asked: NOW, received: NOW };

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn fill(headers: &mut Headers, fields: Fields<'_>) {
        for (name, value) in fields {
            headers.push(name.as_bytes(), value.as_bytes());
        }
    }

    fn exchange(status: u16, asked: Fields<'_>, answered: Fields<'_>) -> (Request, Response) {
        let (mut request, mut response) = (Request::new(), Response::new());
        response.status = status;
        fill(&mut request.headers, asked);
        fill(&mut response.headers, answered);
        (request, response)
    }

    fn with(
        policy: &Policy,
        status: u16,
        asked: Fields<'_>,
        answered: Fields<'_>,
    ) -> Result<Storing, NotStored> {
        let (request, response) = exchange(status, asked, answered);
        decide(&request, &response, policy, ARRIVAL, 1)
    }

    fn check(status: u16, asked: Fields<'_>, answered: Fields<'_>, expected: Option<NotStored>) {
        let decision = with(&Policy::default(), status, asked, answered);
        assert_eq!(decision.err(), expected, "{status} {asked:?} {answered:?}");
    }

    const FRESH: (&str, &str) = ("Cache-Control", "max-age=3600");
    const TAGGED: (&str, &str) = ("ETag", "\"a\"");

    #[test]
    fn only_get_is_stored() {
        for method in [Method::Head, Method::Post, Method::Put, Method::Options, Method::Other] {
            let (mut request, response) = exchange(200, &[], &[FRESH]);
            request.method = method;
            let decision = decide(&request, &response, &Policy::default(), ARRIVAL, 1);
            assert_eq!(decision.err(), Some(NotStored::Method), "{method:?}");
        }
    }

    #[test]
    fn a_post_is_stored_where_it_says_what_it_is() {
        // RFC 9110, section 9.3.3
        let uri =
            Uri { scheme: Scheme::Https, host: b"a.example", port: None, path: b"/a", query: None };
        let allowed = Policy { post: Post::Stored, ..Policy::default() };
        let check = |policy: &Policy, answered: Fields<'_>, expected| {
            let (mut request, response) = exchange(200, &[], answered);
            request.method = Method::Post;
            let decision = decide_post(&uri, &request, &response, policy, ARRIVAL);
            assert_eq!(decision.err(), expected, "{answered:?}");
        };
        let same = ("Content-Location", "/a");
        check(&allowed, &[FRESH, same], None);
        check(&Policy::default(), &[FRESH, same], Some(NotStored::Method));
        check(&allowed, &[FRESH], Some(NotStored::Method));
        check(&allowed, &[FRESH, ("Content-Location", "/b")], Some(NotStored::Method));
        check(&allowed, &[TAGGED, same], Some(NotStored::NoLifetime));
        check(&allowed, &[("Cache-Control", "no-store"), same], Some(NotStored::NoStore));
    }

    #[test]
    fn every_final_status_is_stored_with_a_lifetime() {
        // RFC 9111, section 3
        for status in [
            200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504,
            599, 999,
        ] {
            check(status, &[], &[FRESH], None);
        }
        for status in [100, 101, 103, 199, 304, 206, 416] {
            check(status, &[], &[FRESH], Some(NotStored::Status));
        }
    }

    #[test]
    fn what_would_never_be_used_is_not_stored() {
        let unused = Some(NotStored::NoLifetime);
        check(200, &[], &[], unused);
        check(200, &[], &[("Cache-Control", "max-age=0")], unused);
        check(200, &[], &[("Expires", "0")], unused);
        check(200, &[], &[("Cache-Control", "public")], unused);
        check(200, &[], &[FRESH, ("Age", "7200")], unused);
        check(200, &[], &[("Cache-Control", "no-cache")], unused);
        check(200, &[], &[TAGGED], None);
        check(200, &[], &[("Cache-Control", "no-cache"), TAGGED], None);
        check(200, &[], &[("Cache-Control", "max-age=0"), TAGGED], None);
        check(200, &[], &[("Cache-Control", "max-age=0, stale-while-revalidate=60")], None);
        check(200, &[], &[("Cache-Control", "max-age=0, stale-if-error=60")], None);
        check(500, &[], &[TAGGED], unused);
        check(503, &[], &[("Cache-Control", "max-age=0"), TAGGED], unused);
        check(599, &[], &[("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")], unused);
        check(404, &[], &[("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")], None);
    }

    #[test]
    fn responses_say_no() {
        // RFC 9111, sections 5.2.2.5, 5.2.2.3 and 5.2.2.7
        let no = |control: &str, expected| {
            check(
                200,
                &[],
                &[("Cache-Control", control), ("Expires", "Thu, 18 Aug 2050 02:01:18 GMT")],
                expected,
            );
        };
        no("no-store", Some(NotStored::NoStore));
        no("max-age=10000, No-StOrE", Some(NotStored::NoStore));
        no("private, max-age=3600", Some(NotStored::Private));
        no("private=\"a\", max-age=3600", None);
        no("private=\"a\", private", Some(NotStored::Private));
        no("max-age=3600, no-store, must-understand", None);
        check(
            599,
            &[],
            &[("Cache-Control", "max-age=3600, no-store, must-understand")],
            Some(NotStored::MustUnderstand),
        );
        check(
            599,
            &[],
            &[("Cache-Control", "max-age=3600, must-understand")],
            Some(NotStored::MustUnderstand),
        );
        // RFC 9213, section 2.2
        let targeted = ("CDN-Cache-Control", "max-age=10000");
        check(200, &[], &[("Cache-Control", "no-store"), targeted], None);
        check(200, &[], &[FRESH, ("CDN-Cache-Control", "no-store")], Some(NotStored::NoStore));
        check(200, &[], &[FRESH, ("CDN-Cache-Control", "private")], Some(NotStored::Private));
    }

    #[test]
    fn requests_say_no() {
        check(200, &[("Cache-Control", "no-store")], &[FRESH], Some(NotStored::RequestNoStore));
        check(200, &[("Cache-Control", "no-cache")], &[FRESH], None);
    }

    #[test]
    fn credentials_need_a_word() {
        // RFC 9111, section 3.5
        let asked = [("Authorization", "FOO")];
        let no = Some(NotStored::Authorization);
        check(200, &asked, &[FRESH], no);
        check(200, &asked, &[("Cache-Control", "max-age=3600, proxy-revalidate")], no);
        check(200, &asked, &[("Cache-Control", "max-age=3600, s-maxage=x")], no);
        check(200, &asked, &[("Cache-Control", "max-age=3600, public")], None);
        check(200, &asked, &[("Cache-Control", "max-age=3600, must-revalidate")], None);
        check(200, &asked, &[("Cache-Control", "s-maxage=3600")], None);
    }

    #[test]
    fn cookies_are_for_one() {
        let cookie = ("Set-Cookie", "a=b");
        check(200, &[], &[FRESH, cookie], Some(NotStored::SetCookie));
        check(200, &[], &[FRESH, ("Set-Cookie2", "a=b")], Some(NotStored::SetCookie));
        check(200, &[], &[("Cache-Control", "max-age=9, private=\"set-cookie\""), cookie], None);
        for set_cookie in [SetCookie::Dropped, SetCookie::Stored] {
            let policy = Policy { set_cookie, ..Policy::default() };
            let storing = with(&policy, 200, &[], &[FRESH, cookie]).unwrap();
            let (_, response) = exchange(200, &[], &[FRESH, cookie]);
            let kept = storing.omitted.kept(&response.headers).count();
            assert_eq!(kept, if set_cookie == SetCookie::Stored { 2 } else { 1 });
        }
        let asked = [("Cookie", "a=b")];
        let modified = ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT");
        check(200, &asked, &[FRESH], None);
        check(200, &asked, &[modified], Some(NotStored::RequestCookies));
        check(200, &asked, &[TAGGED], Some(NotStored::RequestCookies));
        check(200, &asked, &[modified, ("Cache-Control", "public")], None);
        let policy = Policy { request_cookies: RequestCookies::Ignored, ..Policy::default() };
        assert!(with(&policy, 200, &asked, &[modified]).is_ok());
    }

    #[test]
    fn what_varies_by_anything_is_not_stored() {
        check(200, &[], &[FRESH, ("Vary", "Foo, *")], Some(NotStored::VaryAny));
        check(200, &[], &[FRESH, ("Vary", "Foo")], None);
    }

    #[test]
    fn operators_bound_storing() {
        let policy = Policy { object_bytes_max: 10, uses_min: 2, ..Policy::default() };
        let (request, response) = exchange(200, &[], &[FRESH, ("Content-Length", "10")]);
        let decide = |uses| decide(&request, &response, &policy, ARRIVAL, uses).err();
        assert_eq!(decide(1), Some(NotStored::TooFewUses));
        assert_eq!(decide(2), None);
        let large = with(&policy, 200, &[], &[FRESH, ("Content-Length", "11")]);
        assert_eq!(large.err(), Some(NotStored::TooLarge));
        let off = Policy { caching: Caching::Off, ..Policy::default() };
        assert_eq!(with(&off, 200, &[], &[FRESH]).err(), Some(NotStored::Off));
        let entry = StatusSpan { first: 404, last: 404, span: Span::from_seconds(9) };
        let mut negative = Policy::default();
        negative.lifetimes.defaults = StatusTable::new(vec![entry]);
        assert_eq!(with(&negative, 404, &[], &[]).unwrap().stored.ttl(NOW), 9);
        assert_eq!(with(&negative, 500, &[], &[]).err(), Some(NotStored::NoLifetime));
    }

    #[test]
    fn parts_are_stored_with_their_place() {
        // RFC 9111, section 3.3
        let asked = [("Range", "bytes=4-9")];
        let part =
            |value| with(&Policy::default(), 206, &asked, &[FRESH, ("Content-Range", value)]);
        let storing = part("bytes 4-9/10").unwrap();
        let range = storing.part.unwrap();
        assert_eq!((range.first, range.last, range.complete), (4, 9, Some(10)));
        assert!(storing.stored.is_partial());
        assert_eq!(part("bytes 4-9/9").err(), Some(NotStored::ContentRange));
        assert_eq!(part("lines 4-9/10").err(), Some(NotStored::ContentRange));
        check(206, &[], &[FRESH, ("Content-Range", "bytes 4-9/10")], Some(NotStored::Status));
        check(206, &asked, &[FRESH], Some(NotStored::ContentRange));
    }

    #[test]
    fn fields_for_others_are_not_stored() {
        // RFC 9111, section 3.1
        let answered = [
            ("Connection", "close, a"),
            ("Keep-Alive", "x"),
            ("Proxy-Authenticate", "x"),
            ("Proxy-Authentication-Info", "x"),
            ("Proxy-Authorization", "x"),
            ("Proxy-Connection", "x"),
            ("TE", "x"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "x"),
            ("Age", "5"),
            ("A", "1"),
            ("B", "2"),
            ("C", "3"),
            ("D", "4"),
            ("Cache-Control", "no-cache=\"b\", private=\"C\""),
            FRESH,
            ("Content-Encoding", "x"),
            ("Content-Range", "x"),
        ];
        let storing = with(&Policy::default(), 200, &[], &answered).unwrap();
        let (_, response) = exchange(200, &[], &answered);
        let kept: Vec<_> =
            storing.omitted.kept(&response.headers).map(|field| field.name).collect();
        let expected =
            [&b"D"[..], b"Cache-Control", b"Cache-Control", b"Content-Encoding", b"Content-Range"];
        assert_eq!(kept, expected);
    }
}
