use super::*;
use crate::freshness;
use crate::pattern::{Case, Pattern};
use crate::policy::{ClientBounds, Lifetimes};
use crate::stored::Arrival;
use crate::targeted::Control;
use tidegate_http::{Method, Response};

const NOW: Time = Time::from_millis(1_790_000_000_000);

type Fields<'a> = &'a [(&'a str, &'a str)];

fn request(fields: Fields<'_>) -> Request {
    let mut request = Request::new();
    request.set_path_and_query(b"/a");
    for (name, value) in fields {
        request.headers.push(name.as_bytes(), value.as_bytes());
    }
    request
}

fn stored(fields: Fields<'_>) -> Stored {
    let response = Response { headers: request(fields).headers, ..Response::new() };
    let control = Control::of(&response.headers);
    let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), NOW);
    Stored::new(&response, &control, lifetime, Arrival { asked: NOW, received: NOW })
}

fn cached(control: &str) -> Stored {
    stored(&[("Cache-Control", control)])
}

fn demand(control: &str) -> Demand {
    Demand::of(&request(&[("Cache-Control", control)]).headers, &ClientControl::default())
}

fn after(seconds: i64) -> Time {
    NOW + Span::from_millis(seconds * 1000)
}

const NO_GRACE: Grace =
    Grace { on_error: Span::ZERO, on_timeout: Span::ZERO, while_updating: Span::ZERO };

#[test]
fn requests_go_past_for_a_reason() {
    let pattern = |text: &str| Pattern::new(text.as_bytes(), Case::Sensitive);
    let policy = Policy {
        bypass: vec![
            Condition::Cookie(pattern("preview")),
            Condition::Header { name: Box::from(&b"X-Fresh"[..]), value: pattern("*") },
            Condition::Path(pattern("/admin/*")),
        ],
        session_cookies: vec![pattern("sess*")],
        ..Policy::default()
    };
    let check = |fields: Fields<'_>, expected| {
        assert_eq!(bypass(&request(fields), &policy), expected, "{fields:?}");
    };
    check(&[], None);
    check(&[("Authorization", "x"), ("Cookie", "a=b"), ("Range", "bytes=0-1")], None);
    check(&[("Content-Length", "0")], None);
    check(&[("Content-Length", "1")], Some(Bypass::Body));
    check(&[("Transfer-Encoding", "chunked")], Some(Bypass::Body));
    check(&[("Upgrade", "websocket")], Some(Bypass::Upgrade));
    check(&[("Upgrade", "h2c")], None);
    check(&[("If-Match", "*")], Some(Bypass::Precondition));
    check(&[("If-Unmodified-Since", "x")], Some(Bypass::Precondition));
    check(&[("Cookie", "a=b; session=1")], Some(Bypass::SessionCookie));
    check(&[("Cookie", "preview=1")], Some(Bypass::Cookie));
    check(&[("X-Fresh", "")], Some(Bypass::Header));
    check(&[("Cache-Control", "no-store")], Some(Bypass::NoStore));
    let mut other = request(&[]);
    other.set_path_and_query(b"/admin/a");
    assert_eq!(bypass(&other, &policy), Some(Bypass::Path));
    for method in [Method::Post, Method::Options, Method::Trace, Method::Other] {
        other.method = method;
        assert_eq!(bypass(&other, &policy), Some(Bypass::Method), "{method:?}");
    }
    let off = Policy { caching: Caching::Off, ..Policy::default() };
    assert_eq!(bypass(&request(&[]), &off), Some(Bypass::Off));
    let deaf = Policy { client: ClientControl::Ignored, ..Policy::default() };
    assert_eq!(bypass(&request(&[("Cache-Control", "no-store")]), &deaf), None);
}

fn check(control: &str, wanted: &str, age: i64, expected: Decision) {
    let stored = cached(control);
    let seen = decide(Some(&stored), &demand(wanted), &NO_GRACE, after(age));
    assert_eq!(seen, expected, "{control} | {wanted} | {age}");
}

#[test]
fn fresh_is_served_and_stale_is_not() {
    // RFC 9111, section 4.2
    check("max-age=10", "", 0, Decision::Fresh);
    check("max-age=10", "", 9, Decision::Fresh);
    check("max-age=10", "", 10, Decision::Validate(Doubt::Stale));
    check("max-age=10, must-revalidate", "", 9, Decision::Fresh);
    check("max-age=10, must-revalidate", "", 11, Decision::Validate(Doubt::Stale));
    check("max-age=10, immutable", "", 11, Decision::Validate(Doubt::Stale));
    check("max-age=10, no-cache", "", 0, Decision::Validate(Doubt::NoCache));
    check("max-age=10, no-cache", "max-stale", 0, Decision::Validate(Doubt::NoCache));
    check("max-age=10, no-cache=\"a\"", "", 0, Decision::Fresh);
    assert_eq!(decide(None, &demand(""), &NO_GRACE, NOW), Decision::Miss);
}

#[test]
fn clients_are_obeyed() {
    // RFC 9111, section 5.2.1
    let refused = Decision::Validate(Doubt::Request);
    check("max-age=3600", "no-cache", 0, refused);
    check("max-age=3600", "max-age=0", 3, refused);
    check("max-age=3600", "max-age=1", 3, refused);
    check("max-age=3600", "max-age=3", 3, Decision::Fresh);
    check("max-age=1500", "min-fresh=2000", 0, refused);
    check("max-age=1500", "min-fresh=500", 1001, refused);
    check("max-age=1500", "min-fresh=500", 1000, Decision::Fresh);
    check("max-age=2", "max-stale=1000", 3, Decision::Stale(Stale::Client));
    check("max-age=2", "max-stale=1000", 1002, Decision::Stale(Stale::Client));
    check("max-age=2", "max-stale=1000", 1003, Decision::Validate(Doubt::Stale));
    check("max-age=2", "max-stale", 100_000, Decision::Stale(Stale::Client));
    check("max-age=2", "max-stale, max-age=5", 4, Decision::Stale(Stale::Client));
    check("max-age=2", "max-stale, max-age=5", 6, Decision::Validate(Doubt::Stale));
    check("max-age=2, must-revalidate", "max-stale", 3, Decision::Validate(Doubt::Stale));
    check("max-age=2, proxy-revalidate", "max-stale", 3, Decision::Validate(Doubt::Stale));
    check("s-maxage=2", "max-stale", 3, Decision::Validate(Doubt::Stale));
    check("max-age=3600, immutable", "max-age=0", 3, Decision::Fresh);
    check("max-age=3600, immutable", "no-cache", 3, refused);
    check("max-age=2, immutable", "max-age=0", 3, Decision::Validate(Doubt::Stale));
    let aged = stored(&[("Cache-Control", "max-age=1500"), ("Age", "2000")]);
    let seen = decide(Some(&aged), &demand("max-stale=1000"), &NO_GRACE, NOW);
    assert_eq!(seen, Decision::Stale(Stale::Client));
    let pragma = request(&[("Pragma", "no-cache")]);
    let demand = Demand::of(&pragma.headers, &ClientControl::default());
    assert_eq!(decide(Some(&cached("max-age=9")), &demand, &NO_GRACE, NOW), refused);
}

#[test]
fn only_if_cached_asks_nobody() {
    // RFC 9111, section 5.2.1.7
    check("max-age=10", "only-if-cached", 0, Decision::Fresh);
    check("max-age=10", "only-if-cached", 10, Decision::OnlyIfCached);
    check("max-age=10", "only-if-cached, max-stale", 10, Decision::Stale(Stale::Client));
    check("no-cache", "only-if-cached", 0, Decision::OnlyIfCached);
    assert_eq!(decide(None, &demand("only-if-cached"), &NO_GRACE, NOW), Decision::OnlyIfCached);
}

#[test]
fn operators_bound_clients() {
    let bounds = ClientBounds { age_min: 5, min_fresh_max: 3, max_stale_max: 7 };
    let check = |wanted: &str, age: i64, client: ClientControl, expected| {
        let demand = Demand::of(&request(&[("Cache-Control", wanted)]).headers, &client);
        let seen = decide(Some(&cached("max-age=10")), &demand, &NO_GRACE, after(age));
        assert_eq!(seen, expected, "{wanted} {age}");
    };
    let bounded = ClientControl::Obeyed(bounds);
    let refused = Decision::Validate(Doubt::Request);
    check("no-cache", 5, bounded, Decision::Fresh);
    check("no-cache", 6, bounded, refused);
    check("max-age=0", 5, bounded, Decision::Fresh);
    check("max-age=0", 6, bounded, refused);
    check("max-age=7", 7, bounded, Decision::Fresh);
    check("min-fresh=9", 7, bounded, Decision::Fresh);
    check("min-fresh=9", 8, bounded, refused);
    check("max-stale", 17, bounded, Decision::Stale(Stale::Client));
    check("max-stale", 18, bounded, Decision::Validate(Doubt::Stale));
    check("no-cache", 9, ClientControl::Ignored, Decision::Fresh);
    check("max-stale", 11, ClientControl::Ignored, Decision::Validate(Doubt::Stale));
    check("only-if-cached", 11, ClientControl::Ignored, Decision::Validate(Doubt::Stale));
}

#[test]
fn stale_is_served_while_it_is_validated() {
    // RFC 5861, section 3
    let while_revalidate = Decision::Stale(Stale::WhileRevalidate);
    let stale = Decision::Validate(Doubt::Stale);
    check("max-age=1, stale-while-revalidate=4", "", 3, while_revalidate);
    check("max-age=1, stale-while-revalidate=4", "", 4, while_revalidate);
    check("max-age=1, stale-while-revalidate=4", "", 5, stale);
    check("max-age=1, stale-while-revalidate=x", "", 2, stale);
    check("max-age=1, stale-while-revalidate=4, must-revalidate", "", 3, stale);
    check("s-maxage=1, stale-while-revalidate=4", "", 3, while_revalidate);
    check("max-age=1, stale-while-revalidate=4", "max-age=9", 3, stale);
    check("max-age=1, stale-while-revalidate=4", "no-cache", 3, stale);
    let grace = Grace { while_updating: Span::from_seconds(5), ..NO_GRACE };
    let check = |control: &str, age: i64, expected| {
        let seen = decide(Some(&cached(control)), &demand(""), &grace, after(age));
        assert_eq!(seen, expected, "{control} {age}");
    };
    check("max-age=1", 3, Decision::Stale(Stale::WhileUpdating));
    check("max-age=1", 6, stale);
    check("s-maxage=1", 3, stale);
    check("max-age=1, must-revalidate", 3, stale);
    assert!(Stale::WhileUpdating.refreshes() && Stale::WhileRevalidate.refreshes());
    assert!(!Stale::Client.refreshes());
}

#[test]
fn stale_is_served_for_a_failure() {
    // RFC 5861, section 4, and RFC 9111, section 4.2.4
    let grace = Grace { on_error: Span::from_seconds(10), on_timeout: Span::ZERO, ..NO_GRACE };
    let check = |control: &str, wanted: &str, grace: &Grace, failure, age: i64, expected| {
        let seen = on_failure(&cached(control), &demand(wanted), grace, failure, after(age));
        assert_eq!(seen, expected, "{control} | {wanted} | {failure:?} | {age}");
    };
    let (gone, slow, error) = (Failure::Unreachable, Failure::Timeout, Failure::Status(503));
    let if_error = Fallback::Stale(Stale::IfError);
    for failure in [gone, slow, error] {
        check("max-age=2, stale-if-error=60", "", &NO_GRACE, failure, 3, if_error);
        check("max-age=2, stale-if-error=60", "", &NO_GRACE, failure, 62, Fallback::Failure);
        check("s-maxage=2, stale-if-error=60", "", &NO_GRACE, failure, 3, if_error);
        check("max-age=2", "stale-if-error=60", &NO_GRACE, failure, 3, if_error);
        check("max-age=2", "", &NO_GRACE, failure, 3, Fallback::Failure);
        check("max-age=5", "no-cache", &NO_GRACE, failure, 3, Fallback::Fresh);
    }
    for failure in [gone, error] {
        check("max-age=2", "", &grace, failure, 11, Fallback::Stale(Stale::Grace));
        check("max-age=2", "", &grace, failure, 12, Fallback::Failure);
    }
    check("max-age=2", "", &grace, slow, 3, Fallback::Failure);
    for rule in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"] {
        for wanted in ["", "stale-if-error=60"] {
            let control = format!("max-age=2, {rule}");
            check(&control, wanted, &grace, gone, 3, Fallback::GatewayTimeout);
            check(&control, wanted, &grace, slow, 3, Fallback::GatewayTimeout);
            check(&control, wanted, &grace, error, 3, Fallback::Failure);
        }
    }
    check(
        "max-age=2, must-revalidate, stale-if-error=9",
        "",
        &grace,
        gone,
        3,
        Fallback::GatewayTimeout,
    );
    check("max-age=9, no-cache", "", &grace, gone, 3, Fallback::GatewayTimeout);
    let response = Response {
        status: 503,
        headers: request(&[("Cache-Control", "max-age=2")]).headers,
        ..Response::new()
    };
    let control = Control::of(&response.headers);
    let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), NOW);
    let arrival = Arrival { asked: NOW, received: NOW };
    let old_error = Stored::new(&response, &control, lifetime, arrival);
    let seen = on_failure(&old_error, &demand(""), &grace, gone, after(3));
    assert_eq!(seen, Fallback::Failure);
    for status in [500, 502, 503, 504] {
        assert_eq!(Failure::of(status), Some(Failure::Status(status)));
    }
    for status in [200, 304, 404, 501, 505, 599] {
        assert_eq!(Failure::of(status), None);
    }
}

#[test]
fn what_can_be_of_use_is_kept() {
    let policy = Policy {
        grace: Grace { on_error: Span::from_seconds(10), ..NO_GRACE },
        keep: Span::from_seconds(100),
        ..Policy::default()
    };
    let check = |fields: Fields<'_>, seconds: i64| {
        assert_eq!(useful_until(&stored(fields), &policy), after(seconds), "{fields:?}");
    };
    let control = |value| ("Cache-Control", value);
    check(&[control("max-age=5")], 15);
    check(&[control("max-age=5, must-revalidate")], 5);
    check(&[control("s-maxage=5, stale-if-error=7")], 12);
    check(&[control("max-age=5, stale-while-revalidate=200")], 205);
    check(&[control("max-age=5"), ("ETag", "\"a\"")], 105);
    check(&[control("no-cache"), ("ETag", "\"a\"")], 100);
}
