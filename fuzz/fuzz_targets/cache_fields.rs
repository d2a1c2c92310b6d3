//! Fields that speak to caches. The input is the fields of a request, an empty line, and those of a
//! response.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_cache::directive::{DELTA_SECONDS_MAX, Delta, Flag, ResponseDirectives};
use tidegate_cache::hash::Seed;
use tidegate_cache::key::{KeyBuffer, Uri};
use tidegate_cache::lookup::{self, Decision, Demand, Failure};
use tidegate_cache::policy::{KeyPolicy, Order, Policy, Query, Select};
use tidegate_cache::range::{self, ByteSpan, ContentRange, Ranges, Selection, SpanSet};
use tidegate_cache::stored::{Arrival, Stored};
use tidegate_cache::targeted::{self, Control};
use tidegate_cache::time::{Span, Time};
use tidegate_cache::vary::Vary;
use tidegate_cache::{conditional, entity, freshness, invalidation, storing, tags, validation};
use tidegate_http::field::{self, Known};
use tidegate_http::target::{self, Scheme};
use tidegate_http::{Headers, Request, Response};

const NOW: Time = Time::from_millis(1_790_000_000_000);
const SEED: Seed = Seed::new([7; 16]);

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|&byte| byte == b'\n');
    let mut request = Request::new();
    request.host.extend_from_slice(b"a.example");
    request.set_path_and_query(b"/dir/file?x=1");
    request.headers = headers(lines.by_ref().take_while(|line| !line.is_empty()));
    let response = Response { headers: headers(lines), ..Response::new() };
    for message in [&request.headers, &response.headers] {
        directives(message);
        ranges(message);
        content_ranges(message);
        entity_tags(message);
    }
    varies(&request.headers, &response.headers);
    keys(&request);
    stores(&request, &response);
    references(&response);
    let _ = tags::read(&response.headers, &SEED, &tags::TagLimits::default(), &mut Vec::new());
});

fn headers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Headers {
    let mut headers = Headers::new();
    for line in lines.take(100) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], field::trim(&line[colon + 1..]));
        if field::is_name(name) && field::is_value(value) {
            headers.push(name, value);
        }
    }
    headers
}

fn directives(headers: &Headers) {
    let check = |read: &ResponseDirectives| {
        for delta in [read.max_age, read.s_maxage, read.stale_while_revalidate, read.stale_if_error]
        {
            assert!(delta.seconds().is_none_or(|seconds| seconds <= DELTA_SECONDS_MAX));
            assert!(delta != Delta::Invalid || delta.seconds().is_none());
        }
    };
    check(&ResponseDirectives::of(headers));
    check(&Control::of(headers).directives);
    assert!(freshness::age(headers) <= DELTA_SECONDS_MAX);
    for name in targeted::TARGETS {
        let lines: Vec<_> = headers.named(name.as_bytes()).collect();
        let joined = lines.join(&b", "[..]);
        let whole = targeted::read(lines.iter().copied());
        if !lines.is_empty() {
            assert_eq!(whole, targeted::read([&*joined].into_iter()));
        }
    }
}

fn ranges(headers: &Headers) {
    for value in headers.all(Known::Range) {
        let Some(ranges) = Ranges::read(value) else { continue };
        for length in [0, 1, 10, 1000, u64::MAX] {
            let spans = match ranges.select(length) {
                Selection::Part(span) => vec![span],
                Selection::Parts(spans) => {
                    assert!(spans.len() > 1);
                    spans.to_vec()
                }
                Selection::Whole | Selection::Unsatisfiable => continue,
            };
            let mut set = SpanSet::new();
            for span in &spans {
                assert!(!span.is_empty() && span.end <= length);
                assert!(set.insert(*span).is_ok());
                assert!(set.holds(*span));
            }
            // Nothing is sent twice, and what is there and what is missing are the whole.
            let sent: u64 = spans.iter().map(ByteSpan::len).sum();
            assert_eq!(set.bytes(), sent);
            let missing = set.missing(ByteSpan { first: 0, end: length });
            assert_eq!(missing.map(|gap| gap.len()).sum::<u64>() + sent, length);
        }
    }
}

fn content_ranges(headers: &Headers) {
    for value in headers.all(Known::ContentRange) {
        let Some(range) = ContentRange::read(value) else { continue };
        assert!(range.first <= range.last && !range.span().is_empty());
        if let Some(complete) = range.complete {
            assert!(range.last < complete);
            let mut text = Vec::new();
            range.span().write_content_range(complete, &mut text);
            assert_eq!(ContentRange::read(&text), Some(range));
        }
        for bytes in [0, 1, range.span().len(), u64::MAX] {
            assert!(
                range.span().holds(range.span_of(bytes)) && range.span_of(bytes).len() <= bytes
            );
        }
    }
}

fn entity_tags(headers: &Headers) {
    for value in headers.all(Known::IfNoneMatch) {
        for tag in entity::list(value) {
            assert!(!tag.opaque.is_empty() && tag.is_like(tag));
        }
    }
    if let Some(tag) = headers.first(Known::Etag).and_then(entity::EntityTag::of) {
        assert!(tag.borrow().is_like(tag.borrow()));
    }
}

/// A list selects the same, however its members are spread over lines.
fn varies(request: &Headers, response: &Headers) {
    let Ok(vary) = Vary::of(response, request) else { return };
    let mut kept = Vec::new();
    vary.encode(&mut kept);
    assert_eq!(Vary::decode(&kept).as_ref(), Some(&vary));
    let mut spread = Headers::new();
    for named in request.iter() {
        let is_tokens = matches!(named.known, Known::AcceptEncoding | Known::AcceptLanguage);
        let before = spread.len();
        if is_tokens && named.value.contains(&b'"') {
            // Whether its commas part members depends on the form in which it counts.
            spread.push(named.name, named.value);
        } else if is_tokens {
            field::tokens(named.value).for_each(|member| spread.push(named.name, member));
        } else {
            field::list(named.value).for_each(|member| spread.push(named.name, member));
        }
        if spread.len() == before {
            spread.push(named.name, b"");
        }
    }
    let (mut one, mut other) = (Vec::new(), Vec::new());
    assert_eq!(vary.variant(request, &SEED, &mut one), vary.variant(&spread, &SEED, &mut other));
    assert_eq!(one, other);
}

/// Sorting parameters is idempotent.
fn keys(request: &Request) {
    let sorted = KeyPolicy {
        query: Query::Parameters { select: Select::All, order: Order::Sorted },
        ..KeyPolicy::default()
    };
    let Some(query) = request.headers.first(Known::Referer) else { return };
    let mut asked = Request::new();
    asked.set_path_and_query(&[b"/?", query].concat());
    let (mut first, mut second) = (KeyBuffer::new(), KeyBuffer::new());
    let once = first.write(Scheme::Http, &asked, &sorted).to_vec();
    asked.set_path_and_query(&once[b"http://".len()..]);
    assert_eq!(second.write(Scheme::Http, &asked, &sorted), once);
}

fn stores(request: &Request, response: &Response) {
    let policy = Policy::default();
    let arrival = Arrival { asked: NOW, received: NOW };
    let decision = storing::decide(request, response, &policy, arrival, 1);
    let Ok(storing) = decision else { return };
    let control = Control::of(&response.headers).directives;
    assert!(!control.has(Flag::NoStore) || control.has(Flag::MustUnderstand));
    assert!(!control.private.is_response());
    let stored = storing.stored;
    let mut kept = Vec::new();
    stored.encode(&mut kept);
    assert_eq!(Stored::decode(&kept).as_ref(), Some(&stored));
    // What is stale once stays so, and what forbids to be served stale never is.
    let demand = Demand::of(&request.headers, &policy.client);
    let mut was_fresh = true;
    for seconds in [0, 1, 60, 86_400, u64::from(DELTA_SECONDS_MAX) + 1] {
        let now = NOW + Span::from_seconds(seconds);
        let decision = lookup::decide(Some(&stored), &demand, &policy.grace, now);
        let is_fresh = stored.is_fresh(now);
        assert!(was_fresh || !is_fresh);
        was_fresh = is_fresh;
        assert!(stored.ttl(now) >= 0 || !is_fresh);
        match decision {
            Decision::Fresh => assert!(is_fresh && !stored.needs_validation()),
            Decision::Stale(_) => {
                assert!(!is_fresh && !control.has(Flag::MustRevalidate));
                assert!(!control.no_cache.is_response());
            }
            Decision::Validate(_) | Decision::OnlyIfCached => {}
            Decision::Miss => panic!("something was found"),
        }
        lookup::on_failure(&stored, &demand, &policy.grace, Failure::Unreachable, now);
        conditional::evaluate(request.method, &request.headers, &stored, now);
        range::select(request.method, &request.headers, &stored, 1000, now.seconds());
    }
    // Its own head as a 304 is about it, and changes nothing but its age.
    let head = {
        let mut head = Headers::new();
        storing
            .omitted
            .kept(&response.headers)
            .for_each(|field| head.push(field.name, field.value));
        head
    };
    assert!(validation::agreement(&head, &stored, NOW) > validation::Agreement::Contradicted);
    let answer = Response { status: 304, headers: head.clone(), ..Response::new() };
    let fresh = validation::freshen(&stored, &head, &answer, &policy, arrival);
    // A response may forbid to store even its tag.
    if head.has(Known::Etag) {
        assert_eq!(fresh.stored.etag(), stored.etag());
    }
    assert_eq!(fresh.head.len(), head.len());
}

/// What is pointed to is a target in its normal form, and points to itself.
fn references(response: &Response) {
    let base = Uri {
        scheme: Scheme::Https,
        host: b"a.example",
        port: None,
        path: b"/dir/file",
        query: None,
    };
    for found in invalidation::references(&base, response) {
        let uri = found.uri(&base);
        assert!(uri.path.starts_with(b"/"));
        let mut normal = Vec::new();
        let form = target::normalize_path(uri.path, &mut normal);
        assert_eq!(form, Ok(target::PathForm::Normal));
    }
}
