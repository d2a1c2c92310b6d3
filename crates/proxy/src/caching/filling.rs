//! The client of a fill's request: it takes the response for everybody who reads along, and stores
//! it if it may.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tidegate_cache::conditional::{NOT_FOR_FILLS, Validators};
use tidegate_cache::fill::{Audience, Sink};
use tidegate_cache::lookup::{self, Demand, Failure, Fallback};
use tidegate_cache::store::Key;
use tidegate_cache::store::purge::{Mark, Sequence};
use tidegate_cache::stored::{Arrival, Stored};
use tidegate_cache::storing::{self, NotStored, Storing};
use tidegate_cache::tags;
use tidegate_cache::time::{Span, Time};
use tidegate_cache::validation;
use tidegate_cache::vary::Vary;
use tidegate_http::field::Known;
use tidegate_http::framing::Body;
use tidegate_http::{Headers, Request, Response};

use super::{Arrived, Cache, Final, Head, Life, Named, Object};
use crate::forwarded;
use crate::request::Refusal;
use crate::settings::Caching;
use crate::worker::Worker;
use crate::worker::wheel::Slot;

/// Bodies up to this size are stored in one piece, whatever pieces they came in.
const JOINED_BYTES_MAX: u64 = 4 << 20;

/// What is to be fetched, and what is done with it.
#[derive(Debug)]
pub(crate) struct Order {
    /// The text of the key.
    pub(crate) key: Box<[u8]>,
    pub(crate) caching: Caching,
    /// Fields that the route edits in requests.
    pub(crate) edited: Vec<Box<[u8]>>,
    /// What is stored already, to be validated or to be served if the fetch fails.
    pub(crate) before: Option<Arc<Object>>,
    /// How often the key was asked for, this time included.
    pub(crate) uses: u32,
    /// What [`Cache::change`] said before anybody was asked.
    pub(crate) change: u64,
    /// How far purges had come before anybody was asked.
    pub(crate) since: Sequence,
    /// The hash of the site's name.
    pub(crate) site: u64,
    /// The hash of the URL.
    pub(crate) url: u64,
    /// The path in normal form.
    pub(crate) path: Box<[u8]>,
    pub(crate) asked: Time,
}

/// What a fill's request sees as its client.
#[derive(Debug)]
pub(crate) struct Filling {
    worker: Worker,
    cache: Arc<Cache>,
    slot: Slot,
    sink: Sink<Arrived, Refusal>,
    order: Order,
    state: State,
    /// Bytes of the body that count as memory of fills.
    reserved: u64,
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[derive(Debug)]
enum State {
    /// No head has come.
    Waiting,
    /// The response is being stored.
    Storing(Box<Keeping>),
    /// It goes to those who read along, and nowhere else.
    Passing,
    /// The server has confirmed another response than the one it was asked about: it is asked once
    /// more, without conditions.
    Mistaken,
    /// What follows is of no use to anybody.
    Ended,
}

/// A response that is being stored.
#[derive(Debug)]
struct Keeping {
    head: Arc<Head>,
    stored: Stored,
    named: Arc<Named>,
}

impl Filling {
    pub(crate) fn new(worker: &Worker, sink: Sink<Arrived, Refusal>, order: Order) -> Self {
        Self {
            worker: worker.clone(),
            cache: Arc::clone(worker.cache()),
            slot: worker.wheel().slot(),
            sink,
            order,
            state: State::Waiting,
            reserved: 0,
        }
    }

    /// Makes a client's request the fill's: for the whole, and for a change if something is stored.
    pub(crate) fn ask(&self, request: &mut Request) {
        if let Some(before) = &self.order.before {
            Validators::of(&before.stored).put(request);
        } else {
            for known in NOT_FOR_FILLS {
                request.headers.remove(known);
            }
        }
    }

    /// Whether the server has to be asked once more; the request is made anew for that.
    pub(crate) fn asks_again(&mut self, request: &mut Request) -> bool {
        let again = matches!(self.state, State::Mistaken);
        if again {
            self.order.before = None;
            self.state = State::Waiting;
            self.ask(request);
        }
        again
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Body bytes taken so far.
    pub(crate) fn written(&self) -> u64 {
        self.sink.written()
    }

    /// Ready once nobody wants the response any more.
    pub(crate) fn poll_unwanted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sink.poll_unwanted(cx)
    }

    /// Passes an interim response on to the one whose request began the fill. It is not stored.
    pub(crate) fn interim(&mut self, response: &Response) {
        self.sink.interim(Arrived::Interim(Arc::new(response.clone())));
    }

    /// Takes the head, decides what becomes of the response, and tells those who wait.
    pub(crate) fn respond(&mut self, request: &Request, response: &Response, body: Body) {
        let received = Time::from_millis(i64::try_from(self.worker.unix_millis()).unwrap_or(0));
        let arrival = Arrival { asked: self.order.asked, received };
        if let Some(before) = self.order.before.clone() {
            if response.status == 304 {
                let about = [&before.stored];
                if validation::selected(&response.headers, &about, received).is_empty() {
                    self.state = State::Mistaken;
                    return;
                }
                return self.confirm(request, response, &before, arrival);
            }
            if self.is_spared(&before, response.status, received) {
                return self.fail(Refusal::ServerError(response.status));
            }
        }
        let policy = &self.order.caching.policy;
        let storing = storing::decide(request, response, policy, arrival, self.order.uses)
            .and_then(|storing| self.tells_apart(&storing.vary).map(|()| storing))
            .and_then(|storing| self.fits(body).map(|()| storing))
            .and_then(|storing| Ok((self.named(response)?, storing)));
        match storing {
            Ok((named, storing)) => self.keep(request, response, body, storing, named),
            Err(why) => self.pass(response, body, why, received),
        }
    }

    /// Whether clients get what is stored rather than this failure.
    fn is_spared(&self, before: &Object, status: u16, now: Time) -> bool {
        let Some(failure) = Failure::of(status) else { return false };
        let (demand, grace) = (Demand::default(), &self.order.caching.policy.grace);
        let fallback = lookup::on_failure(&before.stored, &demand, grace, failure, now);
        matches!(fallback, Fallback::Fresh | Fallback::Stale(_))
    }

    /// Whether what clients send tells apart what the response varies by. It does not where the server
    /// gets fields that the gate has written: the client's address, and what the route edits.
    fn tells_apart(&self, vary: &Vary) -> Result<(), NotStored> {
        let is_written = |name: &[u8]| match Known::of(name) {
            // Both are parts of the key, unless the operator says that they do not matter.
            Known::XForwardedProto | Known::XForwardedHost => false,
            known => {
                forwarded::is_forwarding(known)
                    || self.order.edited.iter().any(|edited| edited.eq_ignore_ascii_case(name))
            }
        };
        if vary.names().any(is_written) { Err(NotStored::VaryAny) } else { Ok(()) }
    }

    /// Whether memory has room for a body of this length.
    fn fits(&self, body: Body) -> Result<(), NotStored> {
        match body {
            Body::Length(length) if length > self.body_bytes_max() => Err(NotStored::TooLarge),
            _ => Ok(()),
        }
    }

    fn body_bytes_max(&self) -> u64 {
        self.order.caching.policy.object_bytes_max.min(self.cache.body_bytes_max())
    }

    /// What purges will know it by.
    fn named(&self, response: &Response) -> Result<Arc<Named>, NotStored> {
        let mut tags = Vec::new();
        let limits = &self.order.caching.policy.tags;
        tags::read(&response.headers, self.cache.seed(), limits, &mut tags)?;
        let Order { site, url, ref path, .. } = self.order;
        Ok(Arc::new(Named { site, url, path: path.clone(), tags: tags.into() }))
    }

    fn keep(
        &mut self,
        request: &Request,
        response: &Response,
        body: Body,
        storing: Storing,
        named: Arc<Named>,
    ) {
        let mut headers = Headers::new();
        let mut kept = 0;
        for field in storing.omitted.kept(&response.headers) {
            headers.push(field.name, field.value);
            kept += 1;
        }
        let head = Arc::new(Head {
            status: response.status,
            headers,
            body,
            storing: Ok(storing.stored.clone()),
            varies: (!storing.vary.is_empty()).then(|| (storing.vary, request.headers.clone())),
            first: (kept < response.headers.len()).then(|| response.headers.clone()),
            named: Some(Arc::clone(&named)),
            since: self.order.since,
        });
        let length = if let Body::Length(length) = body { Some(length) } else { None };
        self.sink.head(Arrived::Final(Final::Response(Arc::clone(&head))), Audience::All, length);
        self.state = State::Storing(Box::new(Keeping { head, stored: storing.stored, named }));
    }

    fn pass(&mut self, response: &Response, body: Body, why: NotStored, now: Time) {
        let key = Key::new(&self.order.key, self.cache.seed());
        if why == NotStored::TooFewUses {
            self.cache.note_asked(&key, self.order.uses);
        } else if why.is_lasting() {
            let millis = i64::try_from(self.order.caching.pass_kept.as_millis());
            let until = now + millis.map_or(Span::FOREVER, Span::from_millis);
            self.cache.note_pass(&key, until);
        }
        let head = Head {
            status: response.status,
            headers: response.headers.clone(),
            body,
            storing: Err(why),
            varies: None,
            first: None,
            named: None,
            since: self.order.since,
        };
        self.sink.head(Arrived::Final(Final::Response(Arc::new(head))), Audience::First, None);
        self.state = State::Passing;
    }

    /// The stored response still holds: it is freshened (RFC 9111, section 4.3.4).
    fn confirm(
        &mut self,
        request: &Request,
        response: &Response,
        before: &Arc<Object>,
        arrival: Arrival,
    ) {
        let policy = &self.order.caching.policy;
        let fresh = validation::freshen(&before.stored, &before.headers, response, policy, arrival);
        let object = Arc::new(before.freshened(fresh.head, fresh.stored, self.order.since));
        let key = Key::new(&self.order.key, self.cache.seed());
        let audience = if fresh.stays.is_ok() {
            if self.cache.change(&key) == self.order.change {
                let life = self.life(&object.stored);
                self.cache.refresh(&key, &request.headers, before, &object, life);
            }
            Audience::All
        } else {
            // It has become this one client's.
            self.cache.forget(&key, self.order.url);
            Audience::First
        };
        self.sink.head(Arrived::Final(Final::Confirmed(object)), audience, None);
        self.state = State::Ended;
    }

    /// How long it will be of use.
    fn life(&self, stored: &Stored) -> Life {
        let now = Time::from_millis(i64::try_from(self.worker.unix_millis()).unwrap_or(i64::MAX));
        Life { now, expires: lookup::useful_until(stored, &self.order.caching.policy) }
    }

    /// Takes body bytes.
    pub(crate) fn poll_write(&mut self, data: &[u8], cx: &mut Context<'_>) -> Poll<usize> {
        if matches!(self.state, State::Ended | State::Mistaken) {
            return Poll::Ready(data.len());
        }
        ready!(self.sink.poll_ready(cx));
        if matches!(self.state, State::Storing(_)) {
            self.reserved += data.len() as u64;
            let has_room = self.cache.reserve(data.len() as u64);
            if !has_room || self.sink.written() + data.len() as u64 > self.body_bytes_max() {
                self.sink.keep_no_more();
                self.state = State::Passing;
                self.give_back();
            }
        }
        self.sink.write(data);
        Poll::Ready(data.len())
    }

    /// Gives back what was reserved of the memory for fills.
    fn give_back(&mut self) {
        self.cache.give_back(std::mem::take(&mut self.reserved));
    }

    /// Shows readers what has come.
    pub(crate) fn publish(&mut self) {
        self.sink.publish();
    }

    /// The response is complete: what is to be stored is found from now on.
    pub(crate) fn finish(&mut self) {
        // What has failed, or was confirmed, has told so already.
        if !matches!(self.state, State::Storing(_) | State::Passing) {
            return;
        }
        let Some(chunks) = self.sink.complete() else { return };
        if let State::Storing(keeping) = std::mem::replace(&mut self.state, State::Ended) {
            let Keeping { head, stored, named } = *keeping;
            let length = self.sink.written();
            let object = Object {
                status: head.status,
                headers: head.headers.clone(),
                stored,
                body: joined(chunks, length),
                length,
                named,
                mark: Mark::new(self.order.since),
            };
            let key = Key::new(&self.order.key, self.cache.seed());
            let (life, change) = (self.life(&object.stored), self.order.change);
            self.cache.store(&key, head.varies.as_ref(), Arc::new(object), life, change);
        }
    }

    /// The response broke off.
    pub(crate) fn abort(&mut self) {
        self.fail(Refusal::UpstreamBroken);
    }

    /// There is no response, or no more of it.
    pub(crate) fn fail(&mut self, refusal: Refusal) {
        if !matches!(self.state, State::Ended) {
            self.sink.fail(refusal);
            self.state = State::Ended;
        }
    }
}

/// The pieces of a body as they are stored: in one, unless that would copy much.
fn joined(chunks: Vec<Bytes>, length: u64) -> Arc<[Bytes]> {
    if chunks.len() < 2 || length > JOINED_BYTES_MAX {
        return chunks.into();
    }
    let mut whole = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    for chunk in chunks {
        whole.extend_from_slice(&chunk);
    }
    Arc::new([whole.freeze()])
}
