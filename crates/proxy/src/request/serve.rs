//! Stop 7 for what the cache found: conditions, ranges, and the body from memory or from a fill
//! that is under way.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tidegate_cache::conditional::{self, Precondition};
use tidegate_cache::fill::{More, Reader};
use tidegate_cache::range::{self, ByteSpan, Multipart, Selection};
use tidegate_cache::stored::Stored;
use tidegate_cache::time::Time;
use tidegate_http::field::Known;
use tidegate_http::framing::Body;
use tidegate_http::{Headers, Method, write};
use tidegate_telemetry::record::CacheResult;
use tidegate_telemetry::{Outcome, Side, Stamp};

use super::fill::Story;
use super::inspect::{self, response::Inspected};
use super::pieces::Pieces;
use super::respond;
use super::route::Routed;
use super::transfer::{Deadline, Progress, Waiting};
use super::{Exchange, Place, Refusal, Stop, Surroundings};
use crate::caching::{Arrived, Head, Object};
use crate::connection::Downstream;
use crate::connection::body;

/// Without an end of its own, a fill ends by its own deadlines; this is longer than any of them.
const FILL_WAIT: Duration = Duration::from_hours(24);

/// A response that the cache has, or is getting.
pub(crate) struct Serving<'p> {
    pub(super) routed: Routed<'p>,
    pub(super) from: From,
    /// What the fill that was begun for this very request tells.
    pub(super) story: Option<Story>,
    pub(super) now: Time,
    deadline: Deadline,
    body: Sending,
}

/// Where the body is.
pub(super) enum From {
    /// In memory.
    Object(Arc<Object>),
    /// On its way.
    Fill { head: Arc<Head>, reader: Reader<Arrived, Refusal> },
}

/// What is sent of a body.
#[derive(Default)]
struct Sending {
    /// What is at hand.
    ready: Pieces,
    /// Bytes of a fill that are passed over first.
    skip: u64,
    /// Bytes of a fill that are sent; `None` for all of them.
    left: Option<u64>,
    is_at_end: bool,
}

impl<'p> Serving<'p> {
    pub(super) fn new(
        routed: Routed<'p>,
        from: From,
        story: Option<Story>,
        exchange: &Exchange,
        now: Time,
    ) -> Self {
        let deadline =
            Deadline::new(&routed.route.settings.timeouts, exchange.record.stamps.head_in);
        Self { routed, from, story, now, deadline, body: Sending::default() }
    }

    /// Sends the response to the client.
    pub(super) async fn respond(
        mut self,
        around: &Surroundings<'p>,
        downstream: &mut Downstream<'_>,
        exchange: &mut Exchange,
    ) -> Stop<'p> {
        let length = self.fill_in(exchange);
        let mut body = self.select(around, exchange, length);
        if let Some(settings) = &self.routed.route.settings.inspect
            && exchange.inspecting.is_some()
        {
            let mut whole = Whole { serving: &mut self, body };
            let looked =
                inspect::response::inspect(&mut whole, around, downstream, exchange, settings);
            match Box::pin(looked).await {
                Ok(taken) => self.body.ready.push_front(taken.into()),
                Err(stopped) => {
                    self.tell(exchange);
                    return stopped.stop(downstream, exchange);
                }
            }
        }
        self.edit(around, exchange);
        if !downstream.body_is_done() || around.worker.is_draining() {
            downstream.close_after();
        }
        if exchange.request.method == Method::Head {
            body = Body::None;
        }
        exchange.record.status = exchange.response.status;
        if downstream.respond(&exchange.request, &exchange.response, body).is_err() {
            return Stop::Refuse(Refusal::UpstreamHttp2("response_field"));
        }
        exchange.record.stamps.first_byte_out = Stamp::now();
        let sent = if body == Body::None {
            self.finish(around, downstream).await
        } else {
            self.send(around, downstream).await
        };
        self.tell(exchange);
        match sent {
            Ok(()) => exchange.record.end(Outcome::Served, Side::None, ""),
            Err(refusal) => {
                let verdict = refusal.verdict();
                if verdict.side == Side::Upstream && downstream.retract().is_some() {
                    return Stop::Refuse(refusal);
                }
                exchange.record.end(verdict.outcome, verdict.side, verdict.reason);
                downstream.abort();
            }
        }
        Stop::Finish
    }

    /// Puts the head into the exchange, and says how long the whole body is, if that is known.
    fn fill_in(&self, exchange: &mut Exchange) -> Option<u64> {
        let response = &mut exchange.response;
        response.clear();
        match &self.from {
            From::Object(object) => {
                response.status = object.status;
                response.headers.clone_from(&object.headers);
                Some(object.length)
            }
            From::Fill { head, .. } => {
                response.status = head.status;
                let own = head.first.as_ref().filter(|_| self.story.is_some());
                response.headers.clone_from(own.unwrap_or(&head.headers));
                match head.body {
                    Body::Length(length) => Some(length),
                    Body::None => Some(0),
                    Body::Chunked | Body::UntilClose => None,
                }
            }
        }
    }

    /// What is known of the response, if it is stored.
    fn stored(&self) -> Option<&Stored> {
        match &self.from {
            From::Object(object) => Some(&object.stored),
            From::Fill { head, .. } => head.storing.as_ref().ok(),
        }
    }

    /// Looks at conditions and ranges, and makes status, fields and body what this client gets.
    fn select(
        &mut self,
        around: &Surroundings<'_>,
        exchange: &mut Exchange,
        length: Option<u64>,
    ) -> Body {
        let request = &exchange.request;
        let Some(stored) = self.stored() else {
            return self.whole(length);
        };
        let condition = conditional::evaluate(request.method, &request.headers, stored, self.now);
        if condition == Precondition::NotModified {
            let mut fields = Headers::new();
            let kept = exchange.response.headers.iter();
            for field in kept.filter(|field| conditional::is_in_not_modified(field, stored)) {
                fields.push(field.name, field.value);
            }
            exchange.response.status = 304;
            exchange.response.headers = fields;
            self.body.is_at_end = true;
            return Body::None;
        }
        let Some(length) = length else { return self.whole(None) };
        let now = self.now.seconds();
        match range::select(request.method, &request.headers, stored, length, now) {
            Selection::Whole => self.whole(Some(length)),
            Selection::Unsatisfiable => {
                exchange.response.status = 416;
                let mut value = Vec::new();
                range::write_unsatisfied(length, &mut value);
                exchange.response.headers.set_known(Known::ContentRange, &value);
                self.body.is_at_end = true;
                Body::Length(0)
            }
            Selection::Part(span) => {
                exchange.response.status = 206;
                let mut value = Vec::new();
                span.write_content_range(length, &mut value);
                exchange.response.headers.set_known(Known::ContentRange, &value);
                match &self.from {
                    From::Object(object) => {
                        self.body.ready.push_span(&object.body, span);
                        self.body.is_at_end = true;
                    }
                    From::Fill { .. } => {
                        (self.body.skip, self.body.left) = (span.first, Some(span.len()));
                    }
                }
                Body::Length(span.len())
            }
            Selection::Parts(spans) => self.parts(around, exchange, &spans, length),
        }
    }

    fn whole(&mut self, length: Option<u64>) -> Body {
        match &self.from {
            From::Object(object) => {
                for piece in &*object.body {
                    self.body.ready.push(piece.clone());
                }
                self.body.is_at_end = true;
                length.map_or(Body::Chunked, Body::Length)
            }
            From::Fill { head, .. } => head.body,
        }
    }

    /// Several parts in one body; a fill under way sends the whole instead.
    fn parts(
        &mut self,
        around: &Surroundings<'_>,
        exchange: &mut Exchange,
        spans: &[ByteSpan],
        length: u64,
    ) -> Body {
        let From::Object(object) = &self.from else { return self.whole(Some(length)) };
        let id = exchange.record.id.hex();
        let mut boundary = [0; 32];
        boundary[..16].copy_from_slice(&id);
        let hash = around.worker.cache().seed().hash(&id);
        boundary[16..].copy_from_slice(&tidegate_telemetry::record::RequestId(hash).hex());
        let content_type = object.headers.first(Known::ContentType);
        let multipart = Multipart { boundary: &boundary, content_type, complete: length };
        let mut text = Vec::new();
        let bytes = multipart.content_length(spans, &mut text);
        for span in spans {
            text.clear();
            multipart.write_part_head(*span, &mut text);
            self.body.ready.push(Bytes::copy_from_slice(&text));
            self.body.ready.push_span(&object.body, *span);
        }
        text.clear();
        multipart.write_end(&mut text);
        self.body.ready.push(Bytes::copy_from_slice(&text));
        self.body.is_at_end = true;
        text.clear();
        multipart.write_content_type(&mut text);
        exchange.response.status = 206;
        exchange.response.headers.set_known(Known::ContentType, &text);
        Body::Length(bytes)
    }

    /// Age, what the cache made of the request, and what site and route change.
    fn edit(&mut self, around: &Surroundings<'_>, exchange: &mut Exchange) {
        // What this request has fetched itself, or had confirmed, is as old as its server says.
        let is_own = matches!(
            exchange.record.cache.result,
            CacheResult::Miss | CacheResult::Expired | CacheResult::Revalidated
        );
        if let Some(stored) = self.stored().filter(|_| !is_own) {
            let age = &mut exchange.scratch;
            age.clear();
            write::decimal(age, stored.age(self.now));
            exchange.response.headers.set_known(Known::Age, age);
        }
        let place = Place { site: self.routed.site, route: Some(self.routed.route) };
        respond::edit(around, exchange, place);
    }

    fn tell(&self, exchange: &mut Exchange) {
        if let Some(story) = &self.story {
            story.tell(&mut exchange.record);
        }
    }

    async fn finish(
        &mut self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
    ) -> Result<(), Refusal> {
        self.body.ready.clear();
        self.body.is_at_end = true;
        self.send(around, downstream).await
    }

    async fn send(
        &mut self,
        around: &Surroundings<'_>,
        downstream: &mut Downstream<'_>,
    ) -> Result<(), Refusal> {
        let write = around.listener_timeouts().write;
        let mut progress = Progress::Made;
        let mut is_ended = false;
        poll_fn(|cx| {
            let waiting = match self.poll_send(downstream, &mut progress, &mut is_ended, cx) {
                Ok(None) => return Poll::Ready(Ok(())),
                Ok(Some(waiting)) => waiting,
                Err(refusal) => return Poll::Ready(Err(refusal)),
            };
            if downstream.poll_gone(cx).is_ready() {
                return Poll::Ready(Err(Refusal::ClientClosed));
            }
            let time = if waiting == Waiting::ClientWrite { write } else { FILL_WAIT };
            let progress = std::mem::replace(&mut progress, Progress::None);
            self.deadline
                .poll(downstream.slot(), waiting, time, progress, cx)
                .map(|late| Err(late.refusal()))
        })
        .await
    }

    /// Moves on as far as it goes and says what it waits for; `None` once all was sent.
    fn poll_send(
        &mut self,
        downstream: &mut Downstream<'_>,
        progress: &mut Progress,
        is_ended: &mut bool,
        cx: &mut Context<'_>,
    ) -> Result<Option<Waiting>, Refusal> {
        while !*is_ended {
            while !self.body.ready.is_empty() {
                match downstream.poll_write(self.body.ready.data(), cx) {
                    Poll::Ready(Ok(taken)) => {
                        self.body.ready.consume(taken);
                        *progress = Progress::Made;
                    }
                    Poll::Ready(Err(_)) => return Err(Refusal::ClientClosed),
                    Poll::Pending => return Ok(Some(Waiting::ClientWrite)),
                }
            }
            match self.poll_piece(cx) {
                Poll::Ready(Ok(body::More::Data)) => *progress = Progress::Made,
                Poll::Ready(Ok(body::More::End)) => {
                    downstream.finish(None).map_err(|_| Refusal::ClientClosed)?;
                    *is_ended = true;
                }
                Poll::Ready(Err(refusal)) => return Err(refusal),
                Poll::Pending => {
                    return match downstream.poll_flush(cx) {
                        Poll::Ready(Ok(())) => Ok(Some(Waiting::UpstreamRead)),
                        Poll::Ready(Err(_)) => Err(Refusal::ClientClosed),
                        Poll::Pending => Ok(Some(Waiting::ClientWrite)),
                    };
                }
            }
        }
        match downstream.poll_flush(cx) {
            Poll::Ready(Ok(())) => Ok(None),
            Poll::Ready(Err(_)) => Err(Refusal::ClientClosed),
            Poll::Pending => Ok(Some(Waiting::ClientWrite)),
        }
    }

    /// Sees to it that there is a piece to send, or that the end is known.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<body::More, Refusal>> {
        loop {
            if !self.body.ready.is_empty() {
                return Poll::Ready(Ok(body::More::Data));
            }
            let From::Fill { reader, .. } = &mut self.from else {
                return Poll::Ready(Ok(body::More::End));
            };
            if self.body.is_at_end || self.body.left == Some(0) {
                return Poll::Ready(Ok(body::More::End));
            }
            match ready!(reader.poll_body(cx)) {
                More::Data(data) => self.body.take(data),
                More::End => self.body.is_at_end = true,
                More::Failed(refusal) => return Poll::Ready(Err(refusal)),
            }
        }
    }
}

impl Sending {
    /// Takes what has come of a fill, as far as it is to be sent.
    fn take(&mut self, mut data: Bytes) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(data.len());
        data.advance(skipped);
        self.skip -= skipped as u64;
        if let Some(left) = &mut self.left {
            data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= data.len() as u64;
        }
        self.ready.push(data);
    }
}

/// The body as the WAF looks at it.
struct Whole<'s, 'p> {
    serving: &'s mut Serving<'p>,
    body: Body,
}

impl Inspected for Whole<'_, '_> {
    fn body(&self) -> Body {
        self.body
    }

    fn poll_more(
        &mut self,
        downstream: &mut Downstream<'_>,
        _exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<body::More, Refusal>> {
        let more = self.serving.poll_piece(cx);
        if more.is_pending() && downstream.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Refusal::ClientClosed));
        }
        more
    }

    fn data(&self) -> &[u8] {
        self.serving.body.ready.data()
    }

    fn consume(&mut self, n: usize) {
        self.serving.body.ready.consume(n);
    }

    fn pause(&mut self) {
        self.serving.deadline.pause();
    }
}
