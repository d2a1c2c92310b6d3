//! Stop 7, respond: the response head, edited, and its body as it comes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tidegate_cache::status::{Member, Word};
use tidegate_http::field::Known;
use tidegate_http::framing::{self, Body};
use tidegate_telemetry::record::CacheResult;
use tidegate_telemetry::{Outcome, Side, Stamp};

use super::inspect::{self, Stopped};
use super::route::Routed;
use super::transfer::{Deadline, Progress, Upload, UploadEnd, Waiting};
use super::{Exchange, Place, Refusal, Stop, Surroundings, look_up, variables};
use crate::connection::body::{BodyError, More};
use crate::connection::{Downstream, tunnel};
use crate::plan::Edit;
use crate::upstream::stream::Upstream;
use crate::upstream::{self, Group, Pick};

/// A response whose head is there and whose body can be read.
pub(super) struct Fetched<'p> {
    pub(super) routed: Routed<'p>,
    pub(super) group: &'p Arc<Group>,
    pub(super) pick: Pick,
    pub(super) upstream: Upstream,
    pub(super) body: Body,
    pub(super) upload: Upload,
    pub(super) deadline: Deadline,
    /// The protocol the client may switch to.
    pub(super) upgrade: Option<Vec<u8>>,
}

impl<'p> Fetched<'p> {
    /// Sends the response to the client.
    pub(super) async fn respond(
        mut self,
        around: &Surroundings<'p>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Stop<'p> {
        let status = exchange.response.status;
        exchange.record.upstream_status = status;
        let mut first = Vec::new();
        if let Some(settings) = &self.routed.route.settings.inspect
            && exchange.inspecting.is_some()
        {
            let looked = Box::pin(inspect::response::inspect(
                &mut self, around, downstream, exchange, settings,
            ));
            match looked.await {
                Ok(taken) => first = taken,
                Err(stopped) => return self.stop(stopped, downstream, exchange),
            }
        }
        if status == 101 {
            return self.switch(around, downstream, exchange).await;
        }
        look_up::invalidate(around, exchange, &self.routed);
        date(around, exchange);
        // What is stored is edited for each client.
        if !matches!(downstream, Downstream::Fill(_)) {
            self.edit(around, exchange);
        }
        if !downstream.body_is_done() || around.worker.is_draining() {
            // The client may never send what its body owes once it has the answer.
            downstream.close_after();
        }
        exchange.record.status = status;
        if downstream.respond(&exchange.request, &exchange.response, self.body).is_err() {
            return self.cut(
                around,
                downstream,
                exchange,
                &Refusal::UpstreamHttp2("response_field"),
            );
        }
        exchange.record.stamps.first_byte_out = Stamp::now();
        let end = self.transfer(around, downstream, exchange, &first).await;
        match end {
            Ok(()) => self.done(around, exchange),
            Err(refusal) => self.cut(around, downstream, exchange, &refusal),
        }
    }

    /// Moves the body, and what is left of the request's, until the response has been sent.
    async fn transfer(
        &mut self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        first: &[u8],
    ) -> Result<(), Refusal> {
        let route = &self.routed.route.settings;
        let client = around.listener_timeouts();
        let mut download = Download {
            first,
            state: State::Body,
            waiting: Waiting::UpstreamRead,
            progress: Progress::Made,
        };
        poll_fn(|cx| {
            if !self.upload.has_ended() {
                let max = route.body_bytes_max;
                let upstream = &mut self.upstream;
                if let Poll::Ready(UploadEnd::Client(refusal)) =
                    self.upload.poll(downstream, upstream, exchange, max, cx)
                {
                    return Poll::Ready(Err(refusal));
                }
                if self.upload.take_progress() == Progress::Made {
                    download.progress = Progress::Made;
                }
            }
            let waiting = match download.poll(&mut self.upstream, downstream, exchange, cx) {
                Ok(Some(waiting)) => waiting,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(refusal) => return Poll::Ready(Err(refusal)),
            };
            if downstream.poll_gone(cx).is_ready() {
                return Poll::Ready(Err(Refusal::ClientClosed));
            }
            let time = match waiting {
                Waiting::ClientWrite => client.write,
                _ => route.timeouts.between_bytes,
            };
            let progress = std::mem::replace(&mut download.progress, Progress::None);
            self.deadline
                .poll(downstream.slot(), waiting, time, progress, cx)
                .map(|late| Err(late.refusal()))
        })
        .await
    }

    /// The response has been sent: the connection to the server may be used again.
    fn done(self, around: &Surroundings<'_>, exchange: &mut Exchange) -> Stop<'p> {
        exchange.record.end(Outcome::Served, Side::None, "");
        self.count(exchange);
        let server = Arc::clone(self.pick.in_flight.server());
        self.group.report(&server, upstream::Outcome::Answered, exchange.record.stamps.head_up);
        if self.upload.is_done() {
            around.worker.pool().put(self.group, self.pick.in_flight.seat(), self.upstream);
        }
        Stop::Finish
    }

    /// The response breaks off, and so must what the client gets; unless nothing was sent yet.
    fn cut(
        self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        refusal: &Refusal,
    ) -> Stop<'p> {
        let verdict = refusal.verdict();
        self.count(exchange);
        if verdict.side == Side::Upstream {
            let server = self.pick.in_flight.server();
            self.group.report(server, upstream::Outcome::Failed, Stamp::now());
            around.worker.metrics().upstream_failed(server.label(), verdict.outcome);
            if downstream.retract().is_some() {
                return Stop::Refuse(refusal.clone());
            }
        }
        exchange.record.end(verdict.outcome, verdict.side, verdict.reason);
        downstream.abort();
        Stop::Finish
    }

    /// The WAF does not let the response pass, or somebody gave up while it looked.
    fn stop(
        self,
        stopped: Stopped,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Stop<'p> {
        self.count(exchange);
        let server = self.pick.in_flight.server();
        let outcome = match &stopped {
            Stopped::Refused(refusal)
                if refusal.verdict().side == Side::Upstream
                    && *refusal != Refusal::ResponseLimit =>
            {
                upstream::Outcome::Failed
            }
            _ => upstream::Outcome::Answered,
        };
        self.group.report(server, outcome, Stamp::now());
        stopped.stop(downstream, exchange)
    }

    fn count(&self, exchange: &mut Exchange) {
        let (bytes_in, bytes_out) = self.upstream.bytes();
        exchange.record.bytes.up_in = bytes_in;
        exchange.record.bytes.up_out = bytes_out;
    }

    /// The server switches protocols: judged, told to the client, and from then on a tunnel.
    async fn switch(
        self,
        around: &Surroundings<'p>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Stop<'p> {
        if let Err(error) = framing::switched(&exchange.response, self.upgrade.as_deref()) {
            let refusal = Refusal::UpstreamInvalid(error);
            let server = self.pick.in_flight.server();
            self.group.report(server, upstream::Outcome::Failed, Stamp::now());
            around.worker.metrics().upstream_failed(server.label(), refusal.verdict().outcome);
            return Stop::Refuse(refusal);
        }
        let protocol = self.upgrade.clone().unwrap_or_default();
        date(around, exchange);
        self.edit(around, exchange);
        exchange.record.status = 101;
        exchange.record.stamps.first_byte_out = Stamp::now();
        if let (Downstream::Http1(client), Upstream::Http1(server)) = (downstream, self.upstream) {
            client.switch(&protocol, &exchange.response.headers);
            let idle = self.routed.route.settings.timeouts.tunnel_idle;
            around.worker.metrics().tunnel_opened();
            let end = Box::pin(tunnel::run(client, server, idle)).await;
            around.worker.metrics().tunnel_closed();
            exchange.record.bytes.body_in = end.bytes_up;
            exchange.record.bytes.body_out = end.bytes_down;
        }
        exchange.record.end(Outcome::Tunnel, Side::None, "");
        Stop::Finish
    }

    /// Makes the response's fields what the client gets.
    fn edit(&self, around: &Surroundings<'_>, exchange: &mut Exchange) {
        let place = Place { site: self.routed.site, route: Some(self.routed.route) };
        edit(around, exchange, place);
        if let (Some(tag), Some(sticky)) = (&self.pick.set_cookie, &self.group.settings().sticky) {
            let mut cookie = Vec::new();
            tag.write_set_cookie(sticky, exchange.scheme, &mut cookie);
            exchange.response.headers.push_known(Known::SetCookie, &cookie);
        }
    }
}

/// RFC 9110, section 6.6.1: a recipient with a clock adds what is missing.
fn date(around: &Surroundings<'_>, exchange: &mut Exchange) {
    if !exchange.response.headers.has(Known::Date) {
        exchange.response.headers.push_known(Known::Date, &around.worker.date());
    }
}

/// Applies what site and route change in a response's fields, and tells what the cache did.
pub(super) fn edit(around: &Surroundings<'_>, exchange: &mut Exchange, place: Place<'_>) {
    if let Some(member) = exchange.cached.take() {
        tell_of_cache(&member, around, exchange, place);
    }
    if let (Some(hsts), true) = (&place.site.settings.hsts, around.client.tls.is_some()) {
        exchange.response.headers.set(b"Strict-Transport-Security", hsts.as_bytes());
    }
    let Some(route) = place.route else { return };
    for edit in &route.response_edits {
        let mut value = std::mem::take(&mut exchange.scratch);
        value.clear();
        if let Edit::Set(_, template) | Edit::Add(_, template) = edit {
            variables::write(template, around, exchange, Some(place), &mut value);
        }
        edit.apply(&mut exchange.response.headers, &value);
        exchange.scratch = value;
    }
}

/// What the cache did: `Cache-Status` (RFC 9211) behind those of caches before us, and the older
/// field where the route wants it.
fn tell_of_cache(
    member: &Member,
    around: &Surroundings<'_>,
    exchange: &mut Exchange,
    place: Place<'_>,
) {
    let value = &mut exchange.scratch;
    value.clear();
    member.write(around.worker.cache().name(), value);
    let headers = &mut exchange.response.headers;
    headers.push(b"Cache-Status", value);
    let caching = place.route.and_then(|route| route.settings.caching.as_ref());
    if caching.is_some_and(|caching| caching.x_cache_status) {
        let word = match exchange.record.cache.result {
            CacheResult::Hit | CacheResult::Joined => Word::Hit,
            CacheResult::Revalidated => Word::Revalidated,
            CacheResult::Updating => Word::Updating,
            CacheResult::Stale => Word::Stale,
            CacheResult::Expired => Word::Expired,
            CacheResult::Miss => Word::Miss,
            CacheResult::Bypass | CacheResult::None => Word::Bypass,
        };
        headers.set(b"X-Cache-Status", word.name().as_bytes());
    }
}

/// The response body on its way to the client.
struct Download<'f> {
    /// What was taken of it before, for an inspection.
    first: &'f [u8],
    state: State,
    waiting: Waiting,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Body,
    Flush,
}

impl Download<'_> {
    /// Moves on as far as both sides allow and says what it waits for; `None` once all was sent.
    fn poll(
        &mut self,
        upstream: &mut Upstream,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Result<Option<Waiting>, Refusal> {
        match self.poll_move(upstream, downstream, exchange, cx) {
            Poll::Ready(Ok(())) => Ok(None),
            Poll::Ready(Err(refusal)) => Err(refusal),
            Poll::Pending => Ok(Some(self.waiting)),
        }
    }

    fn poll_move(
        &mut self,
        upstream: &mut Upstream,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refusal>> {
        while !self.first.is_empty() {
            self.waiting = Waiting::ClientWrite;
            let taken = ready!(downstream.poll_write(self.first, cx));
            self.first = &self.first[taken.map_err(|_| Refusal::ClientClosed)?..];
            self.progress = Progress::Made;
        }
        while self.state == State::Body {
            match upstream.poll_body(cx) {
                Poll::Ready(Ok(More::Data)) => {
                    self.waiting = Waiting::ClientWrite;
                    let taken = ready!(downstream.poll_write(upstream.data(), cx));
                    upstream.consume(taken.map_err(|_| Refusal::ClientClosed)?);
                    self.progress = Progress::Made;
                }
                Poll::Ready(Ok(More::End)) => {
                    exchange.record.stamps.body_up_done = Stamp::now();
                    let ended = downstream.finish(upstream.trailers());
                    ended.map_err(|_| Refusal::ClientClosed)?;
                    self.state = State::Flush;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(&error))),
                Poll::Pending => {
                    // What has come goes on at once; more may be long in coming.
                    self.waiting = Waiting::ClientWrite;
                    ready!(downstream.poll_flush(cx)).map_err(|_| Refusal::ClientClosed)?;
                    self.waiting = Waiting::UpstreamRead;
                    return Poll::Pending;
                }
            }
        }
        self.waiting = Waiting::ClientWrite;
        downstream.poll_flush(cx).map_err(|_| Refusal::ClientClosed)
    }
}

/// What is the matter with a response body.
pub(super) fn broken(error: &BodyError) -> Refusal {
    match error {
        BodyError::Chunk(error) => Refusal::UpstreamChunk(*error),
        BodyError::Short | BodyError::Io => Refusal::UpstreamBroken,
    }
}
