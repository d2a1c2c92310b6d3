//! The small gate: a map, and the decisions in the order in which a gate makes them.

use crate::{Fields, Origin, Step};
use std::collections::HashMap;
use tidegate_cache::conditional::{self, Precondition, Validators};
use tidegate_cache::hash::Seed;
use tidegate_cache::key::{KeyBuffer, Uri};
use tidegate_cache::lookup::{self, Decision, Demand, Failure, Fallback};
use tidegate_cache::policy::Policy;
use tidegate_cache::stored::{Arrival, Stored};
use tidegate_cache::storing::{self, Storing};
use tidegate_cache::time::{Span, Time};
use tidegate_cache::vary::{self, VarySet};
use tidegate_cache::{invalidation, validation};
use tidegate_http::field::Known;
use tidegate_http::target::Scheme;
use tidegate_http::{Headers, Method, Request, Response, date};

const START: Time = Time::from_millis(1_790_000_000_000);
const SEED: Seed = Seed::new([3; 16]);

/// Where a response came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The gate alone.
    Cached,
    /// The origin, or an error in its place.
    Fetched,
    /// The gate, after the origin said 304 to an `If-None-Match`.
    ValidatedByTag,
    /// The same with `If-Modified-Since`.
    ValidatedByDate,
}

/// What the client sees.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) outcome: Outcome,
    pub(crate) status: u16,
}

struct Object {
    variant: u64,
    stored: Stored,
    head: Headers,
}

#[derive(Default)]
struct Entry {
    specs: VarySet,
    objects: Vec<Object>,
}

pub(crate) struct Gate {
    policy: Policy,
    entries: HashMap<Vec<u8>, Entry>,
    keys: KeyBuffer,
}

impl Gate {
    pub(crate) fn new(policy: Policy) -> Gate {
        Gate { policy, entries: HashMap::new(), keys: KeyBuffer::new() }
    }

    pub(crate) fn ask(&mut self, step: &Step<'_>) -> Seen {
        let now = START + Span::from_seconds(step.at.into());
        let mut request = Request::new();
        request.set_method(step.method.as_bytes());
        request.host.extend_from_slice(b"a.example");
        request.set_path_and_query(step.target.as_bytes());
        request.headers = headers(step.ask);
        if lookup::bypass(&request, &self.policy).is_some() {
            return self.pass(&request, step, now);
        }
        let key = self.keys.write(Scheme::Http, &request, &self.policy.key).to_vec();
        let demand = Demand::of(&request.headers, &self.policy.client);
        let found = self.entries.get(&key).and_then(|entry| find(entry, &request));
        let object = found.map(|at| &self.entries[&key].objects[at]);
        let decision =
            lookup::decide(object.map(|it| &it.stored), &demand, &self.policy.grace, now);
        match (decision, object) {
            (Decision::OnlyIfCached, _) => Seen { outcome: Outcome::Cached, status: 504 },
            (Decision::Fresh, Some(object)) => serve(object, &request, Outcome::Cached, now),
            (Decision::Stale(stale), Some(object)) => {
                let seen = serve(object, &request, Outcome::Cached, now);
                if stale.refreshes() {
                    self.fetch(&request, &key, found, &demand, step, now);
                }
                seen
            }
            (Decision::Validate(_) | Decision::Miss, _) => {
                self.fetch(&request, &key, found, &demand, step, now)
            }
            (Decision::Fresh | Decision::Stale(_), None) => unreachable!("nothing was found"),
        }
    }

    /// Past the cache.
    fn pass(&mut self, request: &Request, step: &Step<'_>, now: Time) -> Seen {
        let Some(response) = origin(step.origin, request) else {
            return Seen { outcome: Outcome::Fetched, status: 502 };
        };
        let uri = Uri::of(Scheme::Http, request);
        if invalidation::invalidates(request, response.status) {
            let own = self.keys.write_uri(&uri, request, &self.policy.key).to_vec();
            self.entries.remove(&own);
            for reference in invalidation::references(&uri, &response) {
                let key = self.keys.write_uri(&reference.uri(&uri), request, &self.policy.key);
                self.entries.remove(key);
            }
        }
        let arrival = Arrival { asked: now, received: now };
        if let Ok(storing) = storing::decide_post(&uri, request, &response, &self.policy, arrival) {
            let key = self.keys.write_uri(&uri, request, &self.policy.key).to_vec();
            self.put(&key, request, storing, &response);
        }
        Seen { outcome: Outcome::Fetched, status: response.status }
    }

    fn fetch(
        &mut self,
        request: &Request,
        key: &[u8],
        found: Option<usize>,
        demand: &Demand,
        step: &Step<'_>,
        now: Time,
    ) -> Seen {
        let mut sent = request.clone();
        let stored = found.map(|at| &self.entries[key].objects[at]);
        match stored {
            Some(object) => Validators::of(&object.stored).put(&mut sent),
            None => conditional::NOT_FOR_FILLS.iter().for_each(|known| sent.headers.remove(*known)),
        }
        let response = origin(step.origin, &sent);
        let failure = match &response {
            None => Some(Failure::Unreachable),
            Some(response) => Failure::of(response.status),
        };
        if let (Some(failure), Some(object)) = (failure, stored) {
            let grace = &self.policy.grace;
            match lookup::on_failure(&object.stored, demand, grace, failure, now) {
                Fallback::Fresh | Fallback::Stale(_) => {
                    return serve(object, request, Outcome::Cached, now);
                }
                Fallback::GatewayTimeout => {
                    return Seen { outcome: Outcome::Fetched, status: 504 };
                }
                Fallback::Failure => {}
            }
        }
        let Some(response) = response else {
            return Seen { outcome: Outcome::Fetched, status: 502 };
        };
        let arrival = Arrival { asked: now, received: now };
        if let (304, Some(at)) = (response.status, found) {
            let object = &mut self.entries.get_mut(key).unwrap().objects[at];
            assert_eq!(validation::selected(&response.headers, &[&object.stored], now), [0]);
            let fresh =
                validation::freshen(&object.stored, &object.head, &response, &self.policy, arrival);
            assert_eq!(fresh.stays, Ok(()));
            (object.stored, object.head) = (fresh.stored, fresh.head);
            let by_tag = sent.headers.has(Known::IfNoneMatch);
            let outcome = if by_tag { Outcome::ValidatedByTag } else { Outcome::ValidatedByDate };
            return serve(object, request, outcome, now);
        }
        if let Ok(storing) = storing::decide(request, &response, &self.policy, arrival, 1) {
            self.put(key, request, storing, &response);
        }
        Seen { outcome: Outcome::Fetched, status: response.status }
    }

    fn put(&mut self, key: &[u8], request: &Request, storing: Storing, response: &Response) {
        let entry = self.entries.entry(key.to_vec()).or_default();
        if let Some(specs) = entry.specs.with(&storing.vary) {
            entry.specs = specs;
        }
        let variant = storing.vary.variant(&request.headers, &SEED, &mut Vec::new());
        let mut head = Headers::new();
        storing.omitted.kept(&response.headers).for_each(|it| head.push(it.name, it.value));
        entry.objects.retain(|object| object.variant != variant);
        entry.objects.push(Object { variant, stored: storing.stored, head });
    }
}

fn find(entry: &Entry, request: &Request) -> Option<usize> {
    let mut text = Vec::new();
    let variants: Vec<_> = entry.specs.variants(&request.headers, &SEED, &mut text).collect();
    let places = entry.objects.iter().enumerate();
    let candidates = places.filter(|(_, object)| variants.contains(&object.variant));
    vary::most_recent(candidates, |(_, object)| &object.stored).map(|(at, _)| at)
}

fn serve(object: &Object, request: &Request, outcome: Outcome, now: Time) -> Seen {
    assert!(request.method != Method::Post);
    let status = match conditional::evaluate(request.method, &request.headers, &object.stored, now)
    {
        Precondition::Holds => object.stored.status(),
        Precondition::NotModified => 304,
    };
    Seen { outcome, status }
}

fn origin(origin: Origin<'_>, request: &Request) -> Option<Response> {
    let Origin::Answers(status, fields) = origin else { return None };
    let mut response = Response { status, headers: headers(fields), ..Response::new() };
    let validates =
        [(Known::IfNoneMatch, Known::Etag), (Known::IfModifiedSince, Known::LastModified)];
    let is_known = |(asked, own)| {
        request.headers.first(asked).is_some()
            && request.headers.first(asked) == response.headers.first(own)
    };
    if validates.into_iter().any(is_known) {
        response.status = 304;
    }
    Some(response)
}

fn headers(fields: Fields<'_>) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in fields {
        match value.strip_prefix('@') {
            Some(offset) => {
                let seconds = START.seconds().saturating_add_signed(offset.parse().unwrap());
                headers.push(name.as_bytes(), &date::imf_fixdate(seconds));
            }
            None => headers.push(name.as_bytes(), value.as_bytes()),
        }
    }
    headers
}
