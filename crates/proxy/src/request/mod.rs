//! A request's way: eight stops, one loop.
//!
//! ```text
//!   receive ─▶ route ─▶ admit ─▶ inspect ─▶ look up ─▶ fetch ─▶ respond ─▶ finish
//!      │         │        │         │          │         │         ▲          ▲
//!      └─────────┴────────┴─────────┴──────────┴─────────┴── answer┘──────────┘
//! ```
//!
//! Receiving is the connection's part ([`crate::connection`]): it ends in a request head, or in a
//! [`Refusal`]. From there on [`run`] walks the stops. Each owns what it needs, consumes itself and
//! returns the next; whatever the gate says by itself, a redirect or an error, takes the way of an
//! [`Answer`]. Every way ends in [`finish`], which leaves exactly one record.
//!
//! Where a route has no WAF, an admitted request is looked up at once; where it has no cache, it goes on
//! to be fetched. What the cache serves takes the way of [`serve`] in place of [`respond`], and a fill
//! of the cache ([`fill`]) walks the stops *fetch* and *respond* on behalf of those who read along.

mod admit;
mod answer;
mod exchange;
mod fetch;
mod fill;
pub(crate) mod finish;
mod forward;
mod inspect;
mod look_up;
mod pieces;
mod purge;
mod refusal;
mod respond;
mod route;
mod serve;
mod transfer;
mod variables;

pub(crate) use exchange::Exchange;
pub(crate) use inspect::Inspecting;
pub(crate) use refusal::Refusal;

use answer::Answer;
use respond::Fetched;
use route::Routed;
use serve::Serving;

use crate::connection::{Client, Downstream};
use crate::plan::{Route, Site};
use crate::worker::{Active, Worker};
use std::rc::Rc;

/// What surrounds a request and outlives its stops.
pub(crate) struct Surroundings<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) plan: &'a Rc<Active>,
    pub(crate) client: &'a Client,
}

/// Where a request is to be served.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub(crate) site: &'p Site,
    pub(crate) route: Option<&'p Route>,
}

/// The next stop.
enum Stop<'p> {
    Route,
    Admit(Routed<'p>),
    Inspect(Routed<'p>),
    LookUp(Routed<'p>),
    Purge(Routed<'p>),
    Fetch(Routed<'p>),
    Serve(Serving<'p>),
    Refuse(Refusal),
    Answer(Answer),
    Respond(Fetched<'p>),
    Finish,
}

/// Serves the request in `exchange`, or answers what made it unacceptable, and leaves its record.
pub(crate) async fn run(
    around: &Surroundings<'_>,
    downstream: &mut Downstream<'_>,
    exchange: &mut Exchange,
    refused: Option<Refusal>,
) {
    around.worker.metrics().request_started();
    let mut place = None;
    let mut stop = match refused {
        Some(refusal) => Stop::Refuse(refusal),
        None => Stop::Route,
    };
    loop {
        stop = match stop {
            Stop::Route => route::route(around, exchange, &mut place),
            Stop::Admit(routed) => admit::admit(around, downstream, exchange, routed),
            // Boxed, so that requests without a WAF are not as large as those with one.
            Stop::Inspect(routed) => {
                Box::pin(inspect::inspect(around, downstream, exchange, routed)).await
            }
            Stop::LookUp(routed) => look_up::look_up(around, downstream, exchange, routed).await,
            // Boxed, as it is rare.
            Stop::Purge(routed) => Box::pin(purge::purge(around, exchange, routed)).await,
            Stop::Serve(serving) => serving.respond(around, downstream, exchange).await,
            Stop::Fetch(routed) => fetch::fetch(around, downstream, exchange, routed).await,
            Stop::Refuse(refusal) => Stop::Answer(Answer::refuse(&refusal, exchange)),
            Stop::Answer(answer) => answer.send(around, downstream, exchange, place).await,
            Stop::Respond(fetched) => fetched.respond(around, downstream, exchange).await,
            Stop::Finish => break,
        };
    }
    finish::finish(around, downstream, exchange, place).await;
}
