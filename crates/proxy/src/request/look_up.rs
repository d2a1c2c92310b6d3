//! Stop 5, look up: what the cache has for a request, or who fetches it.
//!
//! A fresh response is served at once. One that has to be validated, and one that is not there, is
//! fetched by a fill (see [`super::fill`]) which the first request begins and others join. What must
//! not be stored, or was not the last time, goes straight on to be fetched.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tidegate_cache::fill::{Begin, Reader, Sink, Told};
use tidegate_cache::invalidation;
use tidegate_cache::key::{KeyBuffer, Uri};
use tidegate_cache::lookup::{self, Bypass, Decision, Demand, Doubt, Failure, Fallback};
use tidegate_cache::status::{self, Forward, Handling, Member};
use tidegate_cache::store::Key;
use tidegate_cache::store::purge::Sequence;
use tidegate_cache::time::Time;
use tidegate_http::Method;
use tidegate_telemetry::Stamp;
use tidegate_telemetry::record::CacheResult;

use super::fill::{self, Story};
use super::route::Routed;
use super::serve::{From, Serving};
use super::{Exchange, Refusal, Stop, Surroundings};
use crate::caching::{
    Arrived, Cache, Filling, Final, Found, Head, Keys, Object, Order, Reach, keys,
};
use crate::connection::Downstream;
use crate::settings::Caching;

/// Looks a request up, and says where its response comes from.
pub(super) async fn look_up<'p>(
    around: &Surroundings<'p>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    routed: Routed<'p>,
) -> Stop<'p> {
    let Some(caching) = &routed.route.settings.caching else { return Stop::Fetch(routed) };
    let mut found = find(around, downstream, exchange, &routed, caching, Reach::Tiers);
    if let Next::BringBack(key) = found {
        bring_back(around, exchange, key).await;
        found = find(around, downstream, exchange, &routed, caching, Reach::Memory);
    }
    exchange.record.stamps.looked_up = Stamp::now();
    match found {
        Next::Past(why) => past(exchange, routed, why),
        // It was brought back, as far as it was there.
        Next::BringBack(_) => past(exchange, routed, Past::NotStored),
        Next::Serve(object, result) => {
            let now = now(around);
            if result == CacheResult::Updating {
                refresh(around, exchange, &routed, caching, &object);
            }
            exchange.record.cache.result = result;
            let ttl = Some(object.stored.ttl(now));
            exchange.cached = Some(Member { ttl, ..Member::new(Handling::Hit) });
            Stop::Serve(Serving::new(routed, From::Object(object), None, exchange, now))
        }
        Next::Refuse(refusal) => Stop::Refuse(refusal),
        Next::Fetch(wanted) => {
            exchange.record.cache.result = wanted.result();
            exchange.cached = Some(Member::new(Handling::Forwarded(wanted.forward)));
            if exchange.request.method == Method::Head {
                return Stop::Fetch(routed);
            }
            let waiting = Box::pin(wanted.fetch(around, downstream, exchange, &routed, caching));
            match waiting.await {
                Ok((from, story)) => {
                    Stop::Serve(Serving::new(routed, from, story, exchange, now(around)))
                }
                Err(Alone::Fetch(why)) => {
                    exchange.record.cache.reason = why;
                    Stop::Fetch(routed)
                }
                Err(Alone::Refuse(refusal)) => Stop::Refuse(refusal),
            }
        }
    }
}

/// What follows from a look-up.
enum Next {
    /// The cache is not asked.
    Past(Past),
    /// This is served.
    Serve(Arc<Object>, CacheResult),
    /// This is fetched.
    Fetch(Box<Wanted>),
    /// There is nothing, and nothing may be fetched.
    Refuse(Refusal),
    /// What lies on disk under this key is read first.
    BringBack(Box<[u8]>),
}

/// Reads what lies on disk under a key, on a thread that may wait.
async fn bring_back(around: &Surroundings<'_>, exchange: &Exchange, key: Box<[u8]>) {
    let (cache, now) = (Arc::clone(around.worker.cache()), now(around));
    let fields = exchange.request.headers.clone();
    let reading = tokio::task::spawn_blocking(move || cache.bring_back(&key, &fields, now));
    // A panic in it has been told of; what is not there is fetched.
    let _ = reading.await;
}

/// Why a request goes past the cache.
#[derive(Clone, Copy)]
enum Past {
    /// It is not to be looked up.
    Bypass(Bypass),
    /// Its response was not to be stored the last time.
    NotStored,
}

fn past<'p>(exchange: &mut Exchange, routed: Routed<'p>, why: Past) -> Stop<'p> {
    let cache = &mut exchange.record.cache;
    cache.result = CacheResult::Bypass;
    let (forward, reason) = match why {
        Past::Bypass(Bypass::Method) => (Forward::Method, Bypass::Method.name()),
        Past::Bypass(why) => (Forward::Bypass, why.name()),
        Past::NotStored => (Forward::UriMiss, "not-stored-before"),
    };
    cache.reason = reason;
    let member = Member::new(Handling::Forwarded(forward));
    exchange.cached = Some(Member { detail: Some(reason), ..member });
    Stop::Fetch(routed)
}

/// The time of day as the cache counts it.
fn now(around: &Surroundings<'_>) -> Time {
    Time::from_millis(i64::try_from(around.worker.unix_millis()).unwrap_or(i64::MAX))
}

fn find(
    around: &Surroundings<'_>,
    downstream: &Downstream<'_>,
    exchange: &Exchange,
    routed: &Routed<'_>,
    caching: &Caching,
    reach: Reach,
) -> Next {
    let (request, policy) = (&exchange.request, &*caching.policy);
    if let Some(why) = lookup::bypass(request, policy) {
        return Next::Past(Past::Bypass(why));
    }
    // HTTP/2 tells of no body in its head.
    if !downstream.body_is_done() || exchange.held.is_some() {
        return Next::Past(Past::Bypass(Bypass::Body));
    }
    let (cache, now) = (around.worker.cache(), now(around));
    let mut keys = around.worker.keys();
    let keys = &mut *keys;
    write_key(&mut keys.buffer, &mut keys.text, exchange, routed, caching, None);
    let key = Key::new(&keys.text, cache.seed());
    let (since, change) = (cache.purges().sequence(), cache.change(&key));
    let (found, variant) = cache.find(&key, &request.headers, now, &mut keys.variant, reach);
    let demand = Demand::of(&request.headers, &policy.client);
    let (object, absent, uses) = match found {
        Found::Pass if demand.is_only_if_cached() => {
            return Next::Refuse(Refusal::OnlyIfCached);
        }
        Found::Pass => return Next::Past(Past::NotStored),
        Found::OnDisk => return Next::BringBack(keys.text.as_slice().into()),
        Found::Object(object) => (Some(object), Forward::Miss, 1),
        Found::OtherVariants => (None, Forward::VaryMiss, 1),
        Found::Nothing { asked } => (None, Forward::UriMiss, asked.saturating_add(1)),
    };
    let stored = object.as_ref().map(|object| &object.stored);
    let decision = lookup::decide(stored, &demand, &policy.grace, now);
    let (forward, before) = match (decision, object) {
        (Decision::Fresh, Some(object)) => return Next::Serve(object, CacheResult::Hit),
        (Decision::Stale(stale), Some(object)) => {
            let result = if stale.refreshes() { CacheResult::Updating } else { CacheResult::Stale };
            return Next::Serve(object, result);
        }
        (Decision::OnlyIfCached, _) => return Next::Refuse(Refusal::OnlyIfCached),
        (Decision::Validate(Doubt::Stale | Doubt::NoCache), object) => (Forward::Stale, object),
        (Decision::Validate(Doubt::Request), object) => (Forward::Request, object),
        (Decision::Miss | Decision::Fresh | Decision::Stale(_), object) => (absent, object),
    };
    Next::Fetch(Box::new(Wanted {
        key: keys.text.as_slice().into(),
        variant,
        uses,
        since,
        change,
        before,
        forward,
        demand,
        asked: now,
    }))
}

/// Writes the text of a key: that of the request, or that of another URI of its origin.
fn write_key(
    buffer: &mut KeyBuffer,
    text: &mut Vec<u8>,
    exchange: &Exchange,
    routed: &Routed<'_>,
    caching: &Caching,
    uri: Option<&Uri<'_>>,
) {
    let (request, policy) = (&exchange.request, &caching.policy.key);
    // The path in normal form: what goes upstream is that, however it was written.
    let own = Uri { path: exchange.path(), ..Uri::of(exchange.scheme, request) };
    let name = &routed.site.settings.name;
    keys::write(buffer, text, name, uri.unwrap_or(&own), request, policy);
}

/// A response that is to be fetched.
struct Wanted {
    /// The text of its key.
    key: Box<[u8]>,
    /// The variant that is looked for, as far as is known what responses vary by.
    variant: u64,
    /// How often it was asked for, this time included.
    uses: u32,
    /// How far purges had come.
    since: Sequence,
    /// How often the key had changed.
    change: u64,
    /// What is stored of it.
    before: Option<Arc<Object>>,
    /// Why that is not served, or that there is nothing.
    forward: Forward,
    demand: Demand,
    asked: Time,
}

/// Why a request does not read along.
enum Alone {
    /// It has to fetch for itself.
    Fetch(&'static str),
    /// There is no response.
    Refuse(Refusal),
}

impl Wanted {
    fn result(&self) -> CacheResult {
        if self.before.is_some() { CacheResult::Expired } else { CacheResult::Miss }
    }

    /// Begins the fill or joins it, and waits for what comes of it.
    async fn fetch(
        &self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        routed: &Routed<'_>,
        caching: &Caching,
    ) -> Result<(From, Option<Story>), Alone> {
        let cache = around.worker.cache();
        let key = self.flight(cache);
        exchange.record.stamps.fill_wait.begin();
        let (mut reader, story) = match cache.flights().begin(&key, Refusal::UpstreamBroken) {
            Begin::Lead(sink, reader) => {
                let story = self.begin(around, exchange, routed, caching, sink);
                (reader, Some(story))
            }
            Begin::Join(reader) => (reader, None),
        };
        let wait_max = story.is_none().then_some(caching.wait_max);
        let told = poll_fn(|cx| {
            match reader.poll_head(cx) {
                Poll::Ready(Told::Head(Arrived::Interim(response))) => {
                    downstream.interim(&exchange.request, &response);
                    let _ = downstream.poll_flush(cx);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Told::Head(Arrived::Final(answer))) => {
                    return Poll::Ready(Ok(Told::Head(answer)));
                }
                Poll::Ready(Told::Alone) => return Poll::Ready(Ok(Told::Alone)),
                Poll::Ready(Told::Failed(refusal)) => {
                    return Poll::Ready(Ok(Told::Failed(refusal)));
                }
                Poll::Pending => {}
            }
            if downstream.poll_gone(cx).is_ready() {
                return Poll::Ready(Err(Alone::Refuse(Refusal::ClientClosed)));
            }
            let Some(wait_max) = wait_max else { return Poll::Pending };
            let waited = Stamp::now().since(exchange.record.stamps.fill_wait.start);
            downstream.slot().set(wait_max.saturating_sub(waited));
            downstream.slot().poll_expired(cx).map(|()| Err(Alone::Fetch("fill-late")))
        })
        .await;
        exchange.record.stamps.fill_wait.finish();
        let told = match told {
            Ok(told) => told,
            Err(alone) => {
                tell(exchange, story.as_ref());
                return Err(alone);
            }
        };
        let from = match told {
            Told::Head(answer) if story.is_some() => Ok(self.own(exchange, answer, reader)),
            Told::Head(answer) => self.joined(around, exchange, caching, answer, reader),
            Told::Alone => Err(Alone::Fetch("not-shared")),
            Told::Failed(refusal) => self.failed(around, exchange, caching, refusal),
        };
        if from.is_err() {
            tell(exchange, story.as_ref());
        }
        from.map(|from| (from, story))
    }

    /// What a fill is found by. Who asks after a change does not join one from before.
    fn flight(&self, cache: &Cache) -> Key<'_> {
        Key::new(&self.key, cache.seed()).variant(self.variant ^ self.change)
    }

    /// Begins the fill, for everybody who asks from now on.
    fn begin(
        &self,
        around: &Surroundings<'_>,
        exchange: &Exchange,
        routed: &Routed<'_>,
        caching: &Caching,
        sink: Sink<Arrived, Refusal>,
    ) -> Story {
        let cache = around.worker.cache();
        let order = Order {
            key: self.key.clone(),
            site: cache.site_hash(routed.site),
            url: cache.seed().hash(keys::url_of(&self.key, &caching.policy.key)),
            path: exchange.path().into(),
            caching: caching.clone(),
            edited: routed.route.request_edits.iter().map(|edit| edit.name().into()).collect(),
            before: self.before.clone(),
            uses: self.uses,
            since: self.since,
            change: self.change,
            asked: self.asked,
        };
        fill::begin(around, exchange, Filling::new(around.worker, sink, order))
    }

    /// What came of the fill that this very request began.
    fn own(
        &self,
        exchange: &mut Exchange,
        answer: Final,
        reader: Reader<Arrived, Refusal>,
    ) -> From {
        let cache = &mut exchange.record.cache;
        let mut member = Member::new(Handling::Forwarded(self.forward));
        let from = match answer {
            Final::Confirmed(object) => {
                cache.result = CacheResult::Revalidated;
                member.forward_status = Some(304);
                member.stored = status::Stored::Yes;
                member.ttl = Some(object.stored.ttl(self.asked));
                From::Object(object)
            }
            Final::Response(head) => {
                match &head.storing {
                    Ok(stored) => {
                        member.stored = status::Stored::Yes;
                        member.ttl = Some(stored.ttl(self.asked));
                    }
                    Err(why) => {
                        cache.reason = why.name();
                        member.detail = Some(why.name());
                    }
                }
                From::Fill { head, reader }
            }
        };
        exchange.cached = Some(member);
        from
    }

    /// What came of a fill that another request began: of use only if it would be as a stored
    /// response.
    fn joined(
        &self,
        around: &Surroundings<'_>,
        exchange: &mut Exchange,
        caching: &Caching,
        answer: Final,
        reader: Reader<Arrived, Refusal>,
    ) -> Result<From, Alone> {
        // Who came after a purge gets nothing that was fetched before it.
        if answer.is_purged(around.worker.cache().purges()) {
            return Err(Alone::Fetch("purged"));
        }
        let (request, now) = (&exchange.request, now(around));
        let stored = match &answer {
            // What the one selects the other may not: several things may be varied by.
            Final::Confirmed(object) if self.asks_about(object) => Some(&object.stored),
            Final::Response(head) if selects(head, exchange) => head.storing.as_ref().ok(),
            Final::Confirmed(_) | Final::Response(_) => {
                return Err(Alone::Fetch("other-variant"));
            }
        };
        let demand = Demand::of(&request.headers, &caching.policy.client);
        match lookup::decide(stored, &demand, &caching.policy.grace, now) {
            Decision::Fresh | Decision::Stale(_) => {}
            Decision::Validate(_) | Decision::Miss | Decision::OnlyIfCached => {
                return Err(Alone::Fetch("not-reusable"));
            }
        }
        exchange.record.cache.result = CacheResult::Joined;
        let member = Member::new(Handling::Forwarded(self.forward));
        let ttl = stored.map(|stored| stored.ttl(now));
        exchange.cached = Some(Member { ttl, collapsed: status::Collapsed::Yes, ..member });
        Ok(match answer {
            Final::Confirmed(object) => From::Object(object),
            Final::Response(head) => From::Fill { head, reader },
        })
    }

    /// Whether this is what was found, perhaps freshened.
    fn asks_about(&self, object: &Object) -> bool {
        self.before.as_ref().is_some_and(|before| Arc::ptr_eq(&before.body, &object.body))
    }

    /// The fetch failed: what is stored may be good enough.
    fn failed(
        &self,
        around: &Surroundings<'_>,
        exchange: &mut Exchange,
        caching: &Caching,
        refusal: Refusal,
    ) -> Result<From, Alone> {
        let Some(before) = &self.before else { return Err(Alone::Refuse(refusal)) };
        let grace = &caching.policy.grace;
        let failure = failure(&refusal);
        match lookup::on_failure(&before.stored, &self.demand, grace, failure, now(around)) {
            Fallback::Fresh => exchange.record.cache.result = CacheResult::Hit,
            Fallback::Stale(_) => exchange.record.cache.result = CacheResult::Stale,
            Fallback::Failure => return Err(Alone::Refuse(refusal)),
            Fallback::GatewayTimeout => return Err(Alone::Refuse(Refusal::NotValidated)),
        }
        let reason = refusal.verdict().reason;
        exchange.record.cache.reason = reason;
        let ttl = Some(before.stored.ttl(self.asked));
        exchange.cached = Some(Member { ttl, detail: Some(reason), ..Member::new(Handling::Hit) });
        Ok(From::Object(Arc::clone(before)))
    }
}

fn tell(exchange: &mut Exchange, story: Option<&Story>) {
    if let Some(story) = story {
        story.tell(&mut exchange.record);
    }
}

/// Whether a request selects the response that a fill has brought for another one.
fn selects(head: &Head, exchange: &Exchange) -> bool {
    let selects = |(vary, asked): &(_, _)| {
        tidegate_cache::vary::Vary::is_same(vary, asked, &exchange.request.headers)
    };
    head.varies.as_ref().is_none_or(selects)
}

/// What a refusal means for the cache.
fn failure(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::ServerError(status) => Failure::Status(*status),
        refusal if matches!(refusal.verdict().outcome, tidegate_telemetry::Outcome::Timeout(_)) => {
            Failure::Timeout
        }
        _ => Failure::Unreachable,
    }
}

/// Fetches anew what is served stale meanwhile, unless somebody does already.
fn refresh(
    around: &Surroundings<'_>,
    exchange: &Exchange,
    routed: &Routed<'_>,
    caching: &Caching,
    object: &Arc<Object>,
) {
    if exchange.request.method != Method::Get {
        return;
    }
    let cache = around.worker.cache();
    let wanted = {
        let mut keys = around.worker.keys();
        let keys = &mut *keys;
        write_key(&mut keys.buffer, &mut keys.text, exchange, routed, caching, None);
        let key = Key::new(&keys.text, cache.seed());
        Wanted {
            change: cache.change(&key),
            variant: cache.variant(&key, &exchange.request.headers, &mut keys.variant),
            key: keys.text.as_slice().into(),
            uses: caching.policy.uses_min,
            since: cache.purges().sequence(),
            before: Some(Arc::clone(object)),
            forward: Forward::Stale,
            demand: Demand::default(),
            asked: now(around),
        }
    };
    if let Begin::Lead(sink, _) =
        cache.flights().begin(&wanted.flight(cache), Refusal::UpstreamBroken)
    {
        wanted.begin(around, exchange, routed, caching, sink);
    }
}

/// Forgets what an unsafe request has changed, once its response says that it did (RFC 9111, section
/// 4.4).
pub(super) fn invalidate(around: &Surroundings<'_>, exchange: &Exchange, routed: &Routed<'_>) {
    let Some(caching) = &routed.route.settings.caching else { return };
    let (request, response) = (&exchange.request, &exchange.response);
    if !invalidation::invalidates(request, response.status) {
        return;
    }
    let cache = around.worker.cache();
    let mut keys = around.worker.keys();
    let Keys { buffer, text, .. } = &mut *keys;
    let mut forget = |uri: &Uri<'_>| {
        write_key(buffer, text, exchange, routed, caching, Some(uri));
        let url = cache.seed().hash(keys::url_of(text, &caching.policy.key));
        cache.forget(&Key::new(text, cache.seed()), url);
    };
    let own = Uri { path: exchange.path(), ..Uri::of(exchange.scheme, request) };
    forget(&own);
    for reference in invalidation::references(&own, response) {
        forget(&reference.uri(&own));
    }
}
