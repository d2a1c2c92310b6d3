//! How old a response is, and for how long it is fresh (RFC 9111, section 4.2).

use crate::directive::{Delta, Flag, delta_seconds};
use crate::policy::Lifetimes;
use crate::targeted::{Control, Source};
use crate::time::{Span, Time};
use tidegate_http::field::{self, Known};
use tidegate_http::{Headers, Response, date};

/// For how long a response is fresh, counted from its birth, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// How long; zero where it was never fresh.
    pub span: Span,
    /// Who says so.
    pub basis: Basis,
}

/// What a lifetime is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The operator, whatever the response says.
    Override,
    /// `s-maxage`
    SMaxage,
    /// `max-age`
    MaxAge,
    /// `Expires`
    Expires,
    /// The operator, because the response says nothing.
    Default,
    /// A guess from `Last-Modified` (section 4.2.2).
    Heuristic,
    /// Nothing: there is no lifetime.
    Nothing,
}

impl Basis {
    /// Whether the response itself gives its lifetime.
    pub const fn is_explicit(self) -> bool {
        matches!(self, Basis::SMaxage | Basis::MaxAge | Basis::Expires)
    }
}

/// The freshness lifetime (section 4.2.1), as a shared cache counts it.
///
/// What is given but makes no sense is a lifetime of zero.
pub fn lifetime(
    response: &Response,
    control: &Control,
    lifetimes: &Lifetimes,
    received: Time,
) -> Lifetime {
    let of = |span, basis| Lifetime { span, basis };
    if let Some(span) = lifetimes.overrides.of(response.status) {
        return of(span, Basis::Override);
    }
    let given = |delta: Delta| match delta {
        Delta::Absent => None,
        Delta::Invalid => Some(Span::ZERO),
        Delta::Seconds(seconds) => Some(Span::from_seconds(seconds.into())),
    };
    if let Some(span) = given(control.directives.s_maxage) {
        return of(span, Basis::SMaxage);
    }
    if let Some(span) = given(control.directives.max_age) {
        return of(span, Basis::MaxAge);
    }
    if control.source == Source::CacheControl && response.headers.has(Known::Expires) {
        return of(until_expires(&response.headers, received), Basis::Expires);
    }
    if let Some(span) = lifetimes.defaults.of(response.status) {
        return of(span, Basis::Default);
    }
    if (is_heuristically_cacheable(response.status) || control.directives.has(Flag::Public))
        && let Some(span) = guess(&response.headers, lifetimes, received)
    {
        return of(span, Basis::Heuristic);
    }
    of(Span::ZERO, Basis::Nothing)
}

/// `Expires` minus `Date`. Zero where `Expires` is no date, or several different ones (sections 4.2.1
/// and 5.3).
fn until_expires(headers: &Headers, received: Time) -> Span {
    let mut lines = headers.all(Known::Expires);
    let Some(first) = lines.next() else { return Span::ZERO };
    if lines.any(|line| line != first) {
        return Span::ZERO;
    }
    match date::parse(first, received.seconds()) {
        Some(expires) => positive(Time::from_seconds(expires) - made(headers, received)),
        None => Span::ZERO,
    }
}

/// When a response was made: its `Date`, or when it came, if it has none that is valid (RFC 9110,
/// section 6.6.1).
pub fn made(headers: &Headers, received: Time) -> Time {
    let seconds = date_of(headers, Known::Date, received).unwrap_or(received.seconds());
    Time::from_seconds(seconds)
}

/// The date in a field, in seconds since 1970.
pub(crate) fn date_of(headers: &Headers, field: Known, now: Time) -> Option<u64> {
    headers.first(field).and_then(|text| date::parse(text, now.seconds()))
}

/// Statuses that may be stored without a word on caching (RFC 9110, section 15.1).
pub const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

fn guess(headers: &Headers, lifetimes: &Lifetimes, received: Time) -> Option<Span> {
    let heuristic = &lifetimes.heuristic;
    if heuristic.percent == 0 {
        return None;
    }
    let modified = Time::from_seconds(date_of(headers, Known::LastModified, received)?);
    let unchanged = positive(made(headers, received) - modified);
    let part = Span::from_millis(unchanged.millis() / 100 * i64::from(heuristic.percent));
    Some(part.min(heuristic.lifetime_max))
}

/// How old a response was when it came (section 4.2.3, `corrected_initial_age`).
///
/// `asked` is when its request was sent. `Date` has no fractions of a second, so the apparent age is
/// of whole seconds; otherwise all responses would come up to a second old.
pub fn initial_age(headers: &Headers, asked: Time, received: Time) -> Span {
    let since_made = received.seconds().saturating_sub(made(headers, received).seconds());
    let apparent = Span::from_seconds(since_made);
    let corrected = Span::from_seconds(age(headers).into()) + positive(received - asked);
    apparent.max(corrected)
}

/// What `Age` says, in seconds: the first member of the first line counts (section 5.1). Zero where
/// that is no number.
pub fn age(headers: &Headers) -> u32 {
    let first = headers.first(Known::Age).and_then(|line| field::list(line).next());
    first.and_then(delta_seconds).unwrap_or(0)
}

fn positive(span: Span) -> Span {
    span.max(Span::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{StatusSpan, StatusTable};

    /// 2026-09-21 14:13:20.250 UTC
    const NOW: Time = Time::from_millis(1_790_000_000_250);

    /// A field whose value is a date so many seconds from [`NOW`].
    fn dated(name: &str, offset: i64) -> (String, String) {
        let seconds = NOW.seconds().saturating_add_signed(offset);
        (name.into(), String::from_utf8(date::imf_fixdate(seconds).into()).unwrap())
    }

    fn text(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    fn response(status: u16, fields: &[(String, String)]) -> Response {
        let mut response = Response::new();
        response.status = status;
        for (name, value) in fields {
            response.headers.push(name.as_bytes(), value.as_bytes());
        }
        response
    }

    fn of(status: u16, fields: &[(String, String)], lifetimes: &Lifetimes) -> Lifetime {
        let response = response(status, fields);
        lifetime(&response, &Control::of(&response.headers), lifetimes, NOW)
    }

    fn check(fields: &[(String, String)], seconds: u64, basis: Basis) {
        let expected = Lifetime { span: Span::from_seconds(seconds), basis };
        assert_eq!(of(200, fields, &Lifetimes::default()), expected, "{fields:?}");
    }

    #[test]
    fn the_first_that_is_given_counts() {
        // RFC 9111, section 4.2.1
        let cc = |value| text("Cache-Control", value);
        check(&[], 0, Basis::Nothing);
        check(&[cc("max-age=1, s-maxage=9")], 9, Basis::SMaxage);
        check(&[cc("max-age=0, s-maxage=9"), dated("Expires", -10)], 9, Basis::SMaxage);
        check(&[cc("max-age=9"), cc("s-maxage=1")], 1, Basis::SMaxage);
        check(&[cc("max-age=9, s-maxage=x")], 0, Basis::SMaxage);
        check(&[cc("max-age=9"), dated("Expires", -10)], 9, Basis::MaxAge);
        check(&[cc("max-age=9"), text("Expires", "0")], 9, Basis::MaxAge);
        check(&[cc("max-age=0"), dated("Expires", 10)], 0, Basis::MaxAge);
        check(&[cc("max-age=-9"), dated("Expires", 10)], 0, Basis::MaxAge);
        check(&[cc("max-age=99999999999")], 1 << 31, Basis::MaxAge);
        check(&[dated("Expires", 30), dated("Date", 0)], 30, Basis::Expires);
    }

    #[test]
    fn expires_counts_from_date() {
        check(&[dated("Expires", 10), dated("Date", -5)], 15, Basis::Expires);
        check(&[dated("Expires", -5), dated("Date", 0)], 0, Basis::Expires);
        check(&[dated("Expires", 0), dated("Date", 0)], 0, Basis::Expires);
        check(&[dated("Expires", 300), dated("Date", 400)], 0, Basis::Expires);
        check(&[dated("Expires", 10), text("Date", "foo")], 10, Basis::Expires);
        check(&[dated("Expires", 10)], 10, Basis::Expires);
    }

    #[test]
    fn expires_that_is_no_date_is_past() {
        // RFC 9111, section 5.3
        for value in [
            "0",
            "",
            "-1",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
        ] {
            check(&[text("Expires", value), dated("Last-Modified", -1000)], 0, Basis::Expires);
        }
        let one = text("Expires", "Thu, 18 Aug 2050 02:01:18 GMT");
        let two = text("Expires", "Thu, 18 Aug 2050 02:01:19 GMT");
        check(&[one, two], 0, Basis::Expires);
    }

    #[test]
    fn expires_is_read_in_every_form() {
        // RFC 9111, section 4.2: case does not count.
        let at = |seconds: u64| seconds - NOW.seconds();
        for value in [
            "Thu, 18 Aug 2050 02:01:18 GMT",
            "Thursday, 18-Aug-50 02:01:18 GMT",
            "Thu Aug 18 02:01:18 2050",
            "THU, 18 Aug 2050 02:01:18 GMT",
            "Thu, 18 AUG 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 gMT",
        ] {
            check(&[text("Expires", value)], at(2_544_400_878), Basis::Expires);
        }
        let far = text("Expires", "Sun, 21 Nov 2286 04:46:39 GMT");
        check(&[far], at(10_000_039_599), Basis::Expires);
        check(
            &[text("Expires", "Tue, 19 Jan 2038 14:14:08 GMT")],
            at(2_147_523_248),
            Basis::Expires,
        );
    }

    #[test]
    fn targeted_fields_count_before_expires() {
        // RFC 9213, section 2.2
        let cdn = |value| text("CDN-Cache-Control", value);
        check(&[cdn("max-age=9"), dated("Expires", -10)], 9, Basis::MaxAge);
        check(&[cdn("max-age=0"), dated("Expires", 10)], 0, Basis::MaxAge);
        check(&[cdn("foo"), dated("Expires", 10)], 0, Basis::Nothing);
        check(&[cdn("&"), dated("Expires", 10)], 10, Basis::Expires);
        check(&[cdn("max-age=\"9\"")], 0, Basis::MaxAge);
    }

    #[test]
    fn a_tenth_of_the_time_without_change_is_guessed() {
        // RFC 9111, section 4.2.2, and RFC 9110, section 15.1
        let modified = [dated("Last-Modified", -24 * 3600), dated("Date", 0)];
        for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            let expected = Lifetime { span: Span::from_seconds(8640), basis: Basis::Heuristic };
            assert_eq!(of(status, &modified, &Lifetimes::default()), expected, "{status}");
        }
        for status in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599] {
            let lifetime = of(status, &modified, &Lifetimes::default());
            assert_eq!(lifetime.basis, Basis::Nothing, "{status}");
        }
        let [one, two] = modified.clone();
        let public = of(599, &[one, two, text("Cache-Control", "public")], &Lifetimes::default());
        assert_eq!(public.basis, Basis::Heuristic);
        check(&[dated("Last-Modified", -50), dated("Date", 0)], 5, Basis::Heuristic);
        check(&[dated("Last-Modified", 100), dated("Date", 0)], 0, Basis::Heuristic);
        check(&[dated("Last-Modified", -1_000_000_000)], 86_400, Basis::Heuristic);
        check(&[text("Last-Modified", "x")], 0, Basis::Nothing);
        let off = Lifetimes {
            heuristic: crate::policy::Heuristic { percent: 0, lifetime_max: Span::FOREVER },
            ..Lifetimes::default()
        };
        assert_eq!(of(200, &modified, &off).basis, Basis::Nothing);
    }

    #[test]
    fn operators_have_the_first_and_the_last_word() {
        let table = |first, last, seconds| {
            StatusTable::new(vec![StatusSpan { first, last, span: Span::from_seconds(seconds) }])
        };
        let lifetimes = Lifetimes {
            overrides: table(300, 399, 7),
            defaults: table(400, 499, 8),
            ..Lifetimes::default()
        };
        let max_age = [text("Cache-Control", "max-age=9")];
        let check = |status, fields: &[_], seconds, basis| {
            let expected = Lifetime { span: Span::from_seconds(seconds), basis };
            assert_eq!(of(status, fields, &lifetimes), expected, "{status}");
        };
        check(302, &max_age, 7, Basis::Override);
        check(404, &max_age, 9, Basis::MaxAge);
        check(404, &[], 8, Basis::Default);
        check(404, &[dated("Last-Modified", -1000)], 8, Basis::Default);
        check(500, &[], 0, Basis::Nothing);
    }

    #[test]
    fn age_is_its_first_number() {
        // RFC 9111, section 5.1
        let check = |lines: &[&str], expected: u32| {
            let fields: Vec<_> = lines.iter().map(|line| text("Age", line)).collect();
            assert_eq!(age(&response(200, &fields).headers), expected, "{lines:?}");
        };
        check(&[], 0);
        check(&["7200"], 7200);
        check(&["2147483647"], (1 << 31) - 1);
        check(&["2147483648"], 1 << 31);
        check(&["2147483649"], 1 << 31);
        check(&["7200, 0"], 7200);
        check(&["0, 7200"], 0);
        check(&["7200", "0"], 7200);
        check(&["0", "7200"], 0);
        check(&["3600", "3600"], 3600);
        for garbage in ["abc", "-7200", "7200.0", "7200;foo=bar", "7200;foo=111", "\"7200\"", ""] {
            check(&[garbage], 0);
        }
        check(&["abc, 7200"], 0);
    }

    #[test]
    fn age_counts_the_way_here() {
        // RFC 9111, section 4.2.3
        let check = |fields: &[(String, String)], waited: u64, seconds: i64| {
            let headers = response(200, fields).headers;
            let initial = initial_age(&headers, NOW - Span::from_seconds(waited), NOW);
            assert_eq!(initial.seconds(), seconds, "{fields:?}");
        };
        check(&[], 0, 0);
        check(&[dated("Date", 0)], 0, 0);
        check(&[dated("Date", -7200)], 0, 7200);
        check(&[dated("Date", 7200)], 0, 0);
        check(&[text("Age", "30")], 0, 30);
        check(&[text("Age", "30"), dated("Date", 0)], 5, 35);
        check(&[text("Age", "25"), dated("Date", -10)], 0, 25);
        check(&[text("Age", "5"), dated("Date", -10)], 2, 10);
        check(&[dated("Date", 0)], 5, 5);
        // A clock that was set back while waiting makes nothing younger.
        let headers = response(200, &[]).headers;
        assert_eq!(initial_age(&headers, NOW + Span::from_seconds(9), NOW), Span::ZERO);
    }
}
