//! Whole exchanges: a client, an origin, and between them a gate so small that it has nothing but the
//! decisions. What real gates owe their clients is asked of it, step by step.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

mod gate;

use gate::{Gate, Outcome};
use std::fmt::Debug;
use tidegate_cache::policy::{Grace, Policy, Post, SetCookie};
use tidegate_cache::time::Span;

/// Names and values; a value `@n` is the date `n` seconds from the start of the exchange.
type Fields<'a> = &'a [(&'a str, &'a str)];

/// One request and what the origin says to it.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    /// Seconds since the exchange began.
    at: u32,
    method: &'a str,
    target: &'a str,
    ask: Fields<'a>,
    origin: Origin<'a>,
    outcome: Outcome,
    status: u16,
}

/// What the origin does, if it is asked.
#[derive(Clone, Copy, Debug)]
enum Origin<'a> {
    /// It answers; with 304 where the request has a validator of this very answer.
    Answers(u16, Fields<'a>),
    /// It closes the connection.
    Closes,
}

const FRESH: Step<'_> = Step {
    at: 0,
    method: "GET",
    target: "/a",
    ask: &[],
    origin: Origin::Answers(200, &[("Cache-Control", "max-age=1000"), ("Date", "@0")]),
    outcome: Outcome::Fetched,
    status: 200,
};

fn first(answer: Fields<'_>) -> Step<'_> {
    Step { origin: Origin::Answers(200, answer), ..FRESH }
}

fn again(at: u32, outcome: Outcome) -> Step<'static> {
    Step { at, outcome, origin: Origin::Answers(200, &[]), ..FRESH }
}

#[track_caller]
fn run(policy: &Policy, steps: &[Step<'_>]) {
    let mut gate = Gate::new(policy.clone());
    for (number, step) in steps.iter().enumerate() {
        let seen = gate.ask(step);
        assert_eq!(
            (seen.outcome, seen.status),
            (step.outcome, step.status),
            "step {number}: {step:#?}"
        );
    }
}

#[track_caller]
fn check(steps: &[Step<'_>]) {
    run(&no_grace(), steps);
}

fn no_grace() -> Policy {
    let none = Span::ZERO;
    Policy {
        grace: Grace { on_error: none, on_timeout: none, while_updating: none },
        ..Policy::default()
    }
}

/// A response with these fields serves a second request three seconds later, or does not.
#[track_caller]
fn reused(answer: Fields<'_>, outcome: Outcome) {
    check(&[first(answer), again(3, outcome)]);
}

use Outcome::{Cached, Fetched, ValidatedByDate, ValidatedByTag};

#[test]
fn lifetimes() {
    // RFC 9111, section 4.2
    reused(&[], Fetched);
    for control in [
        "max-age=3600",
        "MaX-aGe=3600",
        "max-age=003600",
        "foobar, max-age=3600",
        "max-age=2147483647",
        "max-age=2147483648",
        "max-age=99999999999",
        "s-maxage=3600",
        "max-age=1, s-maxage=3600",
        "max-age=3600, no-store, must-understand",
        "max-age=3600, must-revalidate",
        "max-age=3600, no-cache=\"a\"",
    ] {
        reused(&[("Cache-Control", control)], Cached);
        reused(&[("Cache-Control", control), ("Expires", "@-7200"), ("Date", "@0")], Cached);
        reused(&[("Cache-Control", control), ("Expires", "0")], Cached);
    }
    for control in [
        "max-age=2",
        "max-age=0",
        "max-age=-3600",
        "max-age='3600'",
        "max-age= 3600",
        "max-age =3600",
        "max-age=3600, s-maxage=1",
        "s-maxage=1, max-age=3600",
        "extension=\"max-age=3600\", max-age=1",
        "max-age=1, extension=\"max-age=3600\"",
        "no-store",
        "max-age=3600, nO-sToRe",
        "max-age=3600, no-cache",
        "private, max-age=3600",
    ] {
        reused(&[("Cache-Control", control)], Fetched);
        reused(&[("Cache-Control", control), ("Expires", "@3600"), ("Date", "@0")], Fetched);
    }
    reused(&[("Cache-Control", "max-age=3600"), ("Cache-Control", "s-maxage=1")], Fetched);
    reused(&[("Expires", "@3600"), ("Date", "@0")], Cached);
    reused(&[("Expires", "@10"), ("Date", "foo")], Cached);
    reused(&[("Expires", "@0"), ("Date", "@0")], Fetched);
    reused(&[("Expires", "@300"), ("Date", "@400")], Fetched);
    reused(&[("Expires", "0"), ("Date", "@0")], Fetched);
    reused(&[("Last-Modified", "@-86400"), ("Date", "@0")], Cached);
}

#[test]
fn ages() {
    // RFC 9111, sections 4.2.3 and 5.1
    let aged = |lines: &[&str], outcome| {
        let mut fields = vec![("Cache-Control", "max-age=3600"), ("Date", "@0")];
        fields.extend(lines.iter().map(|line| ("Age", *line)));
        reused(&fields, outcome);
    };
    for fresh in [&["abc"][..], &["-7200"], &["7200.0"], &["0, 7200"], &["0", "7200"], &["0, 0"]] {
        aged(fresh, Cached);
    }
    for stale in [&["7200"][..], &["2147483647"], &["2147483649"], &["7200, 0"], &["7200", "0"]] {
        aged(stale, Fetched);
    }
    reused(&[("Cache-Control", "max-age=3600"), ("Date", "@-7200")], Fetched);
    reused(&[("Expires", "@10"), ("Date", "@-10"), ("Age", "25")], Fetched);
    reused(&[("Expires", "@20"), ("Date", "@10"), ("Age", "15")], Fetched);
}

#[test]
fn statuses() {
    // RFC 9110, section 15.1
    let reused = |status, answer: Fields<'_>, outcome| {
        check(&[
            Step { origin: Origin::Answers(status, answer), status, ..FRESH },
            Step {
                at: 3,
                outcome,
                status: if outcome == Cached { status } else { 200 },
                ..first(&[])
            },
        ]);
    };
    let modified: Fields<'_> = &[("Last-Modified", "@-86400"), ("Date", "@0")];
    let stale: Fields<'_> = &[("Expires", "@-5000"), ("Last-Modified", "@-100000"), ("Date", "@0")];
    for status in
        [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599]
    {
        reused(status, &[("Cache-Control", "max-age=3600")], Cached);
        reused(status, stale, Fetched);
    }
    for status in [200, 203, 204, 404, 405, 410, 414, 501] {
        reused(status, modified, Cached);
    }
    for status in [201, 202, 403, 502, 503, 504, 599] {
        reused(status, modified, Fetched);
    }
    reused(599, &[("Last-Modified", "@-86400"), ("Cache-Control", "public")], Cached);
    reused(599, &[("Cache-Control", "max-age=3600, no-store, must-understand")], Fetched);
}

#[test]
fn targeted_fields() {
    // RFC 9213
    let own = "CDN-Cache-Control";
    reused(&[(own, "max-age=3600")], Cached);
    reused(&[(own, "max-age=99999999999")], Cached);
    reused(&[(own, "foobar, max-age=3600")], Cached);
    reused(&[(own, "max-age=3600"), ("Expires", "@-10000")], Cached);
    reused(&[(own, "max-age=3600"), ("Expires", "0")], Cached);
    reused(&[(own, "max-age=3600"), ("Cache-Control", "max-age=1")], Cached);
    reused(&[(own, "max-age=10000"), ("Cache-Control", "no-store")], Cached);
    reused(&[(own, "max-age=3600"), ("Age", "7200")], Fetched);
    reused(&[(own, "max-age=0"), ("Expires", "@10000")], Fetched);
    reused(&[(own, "max-age=1"), ("Cache-Control", "max-age=3600")], Fetched);
    for directive in ["private", "no-cache", "no-store"] {
        reused(
            &[(own, directive), ("Cache-Control", "max-age=10000"), ("Expires", "@10000")],
            Fetched,
        );
    }
    reused(&[(own, "max-age=10000, &&&&&"), ("Cache-Control", "no-store")], Fetched);
    reused(&[(own, "max-age=\"10000\""), ("Cache-Control", "no-store")], Fetched);
    for spaced in ["max-age =100", "max-age= 100"] {
        reused(&[(own, spaced), ("Cache-Control", "max-age=1")], Fetched);
    }
}

#[test]
fn credentials_and_cookies() {
    // RFC 9111, sections 3.5 and 7.3
    let authorized = |control, outcome| {
        let answer = [("Cache-Control", control)];
        let step = Step { ask: &[("Authorization", "FOO")], ..first(&answer) };
        check(&[step, again(3, outcome)]);
    };
    authorized("max-age=3600", Fetched);
    authorized("max-age=3600, public", Cached);
    authorized("max-age=3600, must-revalidate", Cached);
    authorized("s-maxage=3600", Cached);
    check(&[FRESH, Step { ask: &[("Cookie", "a=b")], ..again(3, Cached) }]);
    let sets = first(&[("Cache-Control", "max-age=3600"), ("Set-Cookie", "a=b")]);
    check(&[sets, again(3, Fetched)]);
    run(&Policy { set_cookie: SetCookie::Stored, ..no_grace() }, &[sets, again(3, Cached)]);
}

#[test]
fn variants() {
    // RFC 9111, section 4.1
    let varied = |vary: &str, one: Fields<'_>, other: Fields<'_>, outcome| {
        let answer = [("Cache-Control", "max-age=5000"), ("Vary", vary)];
        check(&[Step { ask: one, ..first(&answer) }, Step { ask: other, ..again(3, outcome) }]);
    };
    varied("Foo", &[("Foo", "1")], &[("Foo", "1"), ("Other", "2")], Cached);
    varied("Foo", &[("Foo", "1")], &[("Foo", "2")], Fetched);
    varied("Foo", &[], &[("Foo", "1")], Fetched);
    varied("Foo", &[("Foo", "1")], &[], Fetched);
    varied("Foo", &[("Foo", "1, 2")], &[("Foo", "1"), ("Foo", "2")], Cached);
    varied("Foo, Bar, Baz", &[("Foo", "1"), ("Baz", "2")], &[("Baz", "2"), ("Foo", "1")], Cached);
    varied(
        "Accept-Language",
        &[("Accept-Language", "en, de")],
        &[("Accept-Language", "De ,eN")],
        Cached,
    );
    varied(
        "Accept-Encoding",
        &[("Accept-Encoding", "gzip, br")],
        &[("Accept-Encoding", "br,gzip,x")],
        Cached,
    );
    for star in ["*", "*, *", ", *", "*, Foo", "Foo, *"] {
        varied(star, &[("Foo", "1")], &[("Foo", "1")], Fetched);
    }
    // Two of them are kept beside each other.
    let answer = [("Cache-Control", "max-age=5000"), ("Vary", "Foo")];
    check(&[
        Step { ask: &[("Foo", "1")], ..first(&answer) },
        Step { ask: &[("Foo", "2")], ..first(&answer) },
        Step { ask: &[("Foo", "1")], ..again(3, Cached) },
        Step { ask: &[("Foo", "2")], ..again(3, Cached) },
        Step { ask: &[("Foo", "3")], ..again(3, Fetched) },
    ]);
}

#[test]
fn keys() {
    check(&[
        Step { target: "/a?test=1", ..FRESH },
        Step { target: "/a?test=2", ..again(1, Fetched) },
        Step { target: "/a?test=1", ..again(1, Cached) },
        Step { target: "/b", ..again(1, Fetched) },
    ]);
    check(&[FRESH, Step { method: "HEAD", ..again(3, Cached) }]);
}

#[test]
fn validation() {
    // RFC 9111, section 4.3
    let tagged = [("Cache-Control", "max-age=2"), ("ETag", "\"a\"")];
    let weak = [("Cache-Control", "max-age=2"), ("ETag", "W/\"a\"")];
    let dated = [("Cache-Control", "max-age=2"), ("Last-Modified", "@-100")];
    for (answer, outcome) in
        [(&tagged[..], ValidatedByTag), (&weak, ValidatedByTag), (&dated, ValidatedByDate)]
    {
        check(&[
            first(answer),
            Step { at: 1, outcome: Cached, ..first(answer) },
            Step { at: 3, outcome, ..first(answer) },
            Step { at: 4, outcome: Cached, ..first(answer) },
            Step { at: 6, outcome, ..first(answer) },
        ]);
    }
    let no_cache = [("Cache-Control", "no-cache, max-age=100"), ("ETag", "\"a\"")];
    check(&[first(&no_cache), Step { at: 1, outcome: ValidatedByTag, ..first(&no_cache) }]);
    // What changed is fetched, and takes the other's place.
    let changed = [("Cache-Control", "max-age=2"), ("ETag", "\"b\"")];
    check(&[
        first(&tagged),
        Step { at: 3, ..first(&changed) },
        Step { at: 4, outcome: Cached, ..first(&tagged) },
        Step { at: 6, outcome: ValidatedByTag, ..first(&changed) },
    ]);
    // Fields of the 304 count from then on.
    let longer = [("Cache-Control", "max-age=3600"), ("ETag", "\"a\"")];
    check(&[
        first(&tagged),
        Step { at: 3, outcome: ValidatedByTag, ..first(&longer) },
        again(100, Cached),
    ]);
}

#[test]
fn conditional_requests() {
    // RFC 9110, section 13.2.2
    let answer = [
        ("Cache-Control", "max-age=1000"),
        ("Last-Modified", "@-5000"),
        ("ETag", "\"abcdef\""),
        ("Date", "@0"),
    ];
    let asked = |ask: Fields<'_>, status| {
        check(&[first(&answer), Step { ask, status, ..again(3, Cached) }]);
    };
    asked(&[("If-None-Match", "\"abcdef\"")], 304);
    asked(&[("If-None-Match", "\"1\", W/\"abcdef\"")], 304);
    asked(&[("If-None-Match", "*")], 304);
    asked(&[("If-None-Match", "\"1\"")], 200);
    asked(&[("If-None-Match", "\"abcdef\""), ("If-Modified-Since", "@-10000")], 304);
    asked(&[("If-None-Match", "\"1\""), ("If-Modified-Since", "@-10")], 200);
    asked(&[("If-Modified-Since", "@-5000")], 304);
    asked(&[("If-Modified-Since", "@-4000")], 304);
    asked(&[("If-Modified-Since", "@-6000")], 200);
    check(&[first(&answer), Step { ask: &[("If-Match", "*")], ..again(3, Fetched) }]);
    let stale = [("Cache-Control", "max-age=2"), ("Last-Modified", "@-3000"), ("Date", "@0")];
    check(&[
        first(&stale),
        Step {
            at: 3,
            ask: &[("If-Modified-Since", "@-3000")],
            outcome: ValidatedByDate,
            status: 304,
            ..first(&stale)
        },
    ]);
}

#[test]
fn demands() {
    // RFC 9111, section 5.2.1
    let asked = |control, outcome| {
        check(&[FRESH, Step { ask: &[("Cache-Control", control)], ..again(3, outcome) }]);
    };
    asked("nothing-to-see-here", Cached);
    asked("max-age=0", Fetched);
    asked("max-age=1", Fetched);
    asked("max-age=600", Cached);
    asked("min-fresh=2000", Fetched);
    asked("no-cache", Fetched);
    asked("no-store", Fetched);
    check(&[FRESH, Step { ask: &[("Pragma", "no-cache")], ..again(3, Fetched) }]);
    let short = first(&[("Cache-Control", "max-age=2")]);
    check(&[short, Step { ask: &[("Cache-Control", "max-stale=1000")], ..again(3, Cached) }]);
    let only = Step { ask: &[("Cache-Control", "only-if-cached")], ..again(0, Cached) };
    check(&[Step { status: 504, ..only }]);
    check(&[FRESH, only]);
}

#[test]
fn stale_responses() {
    // RFC 5861, and RFC 9111, section 4.2.4
    let closed = |control: &str, policy: &Policy, outcome, status| {
        let answer = [("Cache-Control", control)];
        let step = Step { at: 3, origin: Origin::Closes, outcome, status, ..FRESH };
        run(policy, &[first(&answer), step]);
    };
    let none = no_grace();
    closed("max-age=2", &none, Fetched, 502);
    closed("max-age=2", &Policy::default(), Cached, 200);
    closed("max-age=2, stale-if-error=60", &none, Cached, 200);
    let refreshed = Origin::Answers(200, &[("Cache-Control", "no-cache"), ("ETag", "\"b\"")]);
    let revalidating = first(&[("Cache-Control", "max-age=1, stale-while-revalidate=3600")]);
    check(&[revalidating, Step { origin: refreshed, ..again(3, Cached) }]);
    check(&[
        revalidating,
        Step { origin: refreshed, ..again(3, Cached) },
        Step { at: 6, origin: refreshed, outcome: ValidatedByTag, ..FRESH },
    ]);
    let windowed = first(&[("Cache-Control", "max-age=1, stale-while-revalidate=4")]);
    check(&[windowed, again(6, Fetched)]);
    for rule in ["must-revalidate", "proxy-revalidate", "s-maxage=2"] {
        closed(&format!("max-age=2, {rule}"), &Policy::default(), Fetched, 504);
        closed(&format!("max-age=2, {rule}"), &none, Fetched, 504);
    }
    let tagged = [("Cache-Control", "max-age=2, no-cache"), ("ETag", "\"a\"")];
    run(
        &Policy::default(),
        &[
            first(&tagged),
            Step { at: 3, origin: Origin::Closes, outcome: Fetched, status: 504, ..FRESH },
        ],
    );
    let failing = |policy: &Policy, outcome, status| {
        let answer = [("Cache-Control", "max-age=2")];
        let origin = Origin::Answers(503, &[]);
        run(policy, &[first(&answer), Step { at: 3, origin, outcome, status, ..FRESH }]);
    };
    failing(&none, Fetched, 503);
    failing(&Policy::default(), Cached, 200);
}

#[test]
fn invalidation() {
    // RFC 9111, section 4.4
    for method in ["POST", "PUT", "DELETE", "M-SEARCH"] {
        let change = |status| Step {
            method,
            status,
            origin: Origin::Answers(status, &[("Location", "/new"), ("Content-Location", "b")]),
            ..FRESH
        };
        check(&[FRESH, change(200), again(1, Fetched)]);
        check(&[FRESH, change(500), Step { status: 200, ..again(1, Cached) }]);
        for other in ["/new", "/b"] {
            check(&[
                Step { target: other, ..FRESH },
                change(200),
                Step { target: other, ..again(1, Fetched) },
            ]);
        }
        check(&[
            Step { target: "/c", ..FRESH },
            change(200),
            Step { target: "/c", ..again(1, Cached) },
        ]);
    }
    let answer = [("Cache-Control", "max-age=3600"), ("Content-Location", "/a")];
    let post = Step { method: "POST", ..first(&answer) };
    run(&Policy { post: Post::Stored, ..no_grace() }, &[post, again(3, Cached)]);
    check(&[post, again(3, Fetched)]);
}

#[test]
fn an_older_response_stays_when_a_newer_one_is_not_stored() {
    check(&[
        FRESH,
        Step {
            ask: &[("Cache-Control", "no-cache")],
            origin: Origin::Answers(200, &[("Cache-Control", "no-store")]),
            ..again(1, Fetched)
        },
        again(3, Cached),
    ]);
}
