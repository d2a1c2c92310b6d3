//! A fill's way: stops 6 and 7 for a request of the gate's own, whose response the cache takes.
//!
//! The fetch belongs to no client: it runs as a task of its own and goes on when the client whose
//! request began it leaves. What that client's record says of servers and times is told through its
//! [`Story`].

use std::cell::Cell;
use std::rc::Rc;

use tidegate_telemetry::{Record, Stamp};

use super::route::Routed;
use super::{Exchange, Stop, Surroundings, fetch};
use crate::caching::Filling;
use crate::connection::Downstream;
use crate::plan::RouteMatch;

/// What a fill tells of itself to the request that began it, on the same thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story(Rc<Cell<Record>>);

impl Story {
    /// Takes over what is known of servers and times.
    pub(crate) fn tell(&self, record: &mut Record) {
        let told = self.0.get();
        let (stamps, from) = (&mut record.stamps, &told.stamps);
        stamps.pool_wait = from.pool_wait;
        stamps.connect_start = from.connect_start;
        stamps.connected = from.connected;
        stamps.upstream_tls_done = from.upstream_tls_done;
        stamps.request_out = from.request_out;
        stamps.first_byte_up = from.first_byte_up;
        stamps.head_up = from.head_up;
        stamps.body_up_done = from.body_up_done;
        record.group = told.group;
        record.server = told.server;
        record.connection = told.connection;
        record.upstream_status = told.upstream_status;
        record.retries = told.retries;
        record.bytes.up_in = told.bytes.up_in;
        record.bytes.up_out = told.bytes.up_out;
    }

    fn set(&self, record: &Record) {
        self.0.set(*record);
    }
}

/// Begins to fetch what `exchange` asks for, on behalf of everybody who reads along.
pub(super) fn begin(around: &Surroundings<'_>, exchange: &Exchange, filling: Filling) -> Story {
    let mut own = around.worker.exchange();
    own.request.clone_from(&exchange.request);
    own.normal_path.clone_from(&exchange.normal_path);
    own.path_form = exchange.path_form;
    own.client_addr = exchange.client_addr;
    own.scheme = exchange.scheme;
    own.record.id = exchange.record.id;
    own.record.site = exchange.record.site;
    own.record.route = exchange.record.route;
    own.record.stamps.head_in = exchange.record.stamps.head_in;
    own.record.stamps.admitted = Stamp::now();
    filling.ask(&mut own.request);

    let story = Story::default();
    let (worker, plan) = (around.worker.clone(), Rc::clone(around.plan));
    let (client, told) = (around.client.clone(), story.clone());
    tokio::task::spawn_local(async move {
        let around = Surroundings { worker: &worker, plan: &plan, client: &client };
        run(&around, filling, &mut own, &told).await;
        worker.metrics().fetched(&own.record);
        worker.recycle(own);
    });
    story
}

async fn run(
    around: &Surroundings<'_>,
    mut filling: Filling,
    exchange: &mut Exchange,
    story: &Story,
) {
    loop {
        let Some(routed) = find(around, exchange) else { return };
        let mut downstream = Downstream::Fill(&mut filling);
        let mut stop = fetch::fetch(around, &mut downstream, exchange, routed).await;
        story.set(&exchange.record);
        if let Stop::Respond(fetched) = stop {
            // Who waits may learn of the response before the next word of the story.
            exchange.record.upstream_status = exchange.response.status;
            story.set(&exchange.record);
            stop = fetched.respond(around, &mut downstream, exchange).await;
            story.set(&exchange.record);
        }
        if let Stop::Refuse(refusal) = stop {
            filling.fail(refusal);
        }
        // Without conditions the second answer is final.
        if !filling.asks_again(&mut exchange.request) {
            return;
        }
        exchange.response.clear();
    }
}

/// Site and route once more: the plan is the same, and so is the way.
fn find<'p>(around: &Surroundings<'p>, exchange: &Exchange) -> Option<Routed<'p>> {
    let request = &exchange.request;
    let site = around.plan.site_for(&request.host)?;
    match site.route_table.find(exchange.path(), request.method, request.method_bytes()) {
        RouteMatch::Found(index) => Some(Routed { site, route: &site.routes[index] }),
        RouteMatch::MethodNotAllowed | RouteMatch::NotFound => None,
    }
}
