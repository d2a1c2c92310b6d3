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
//! The place of *look up* (the cache) is between inspect and fetch; until it is built, an inspected
//! request goes straight on to be fetched. Where a route has no WAF, so does an admitted one.

mod admit;
mod answer;
mod exchange;
mod fetch;
pub(crate) mod finish;
mod forward;
mod inspect;
mod refusal;
mod respond;
mod route;
mod transfer;
mod variables;

pub(crate) use exchange::Exchange;
pub(crate) use inspect::Inspecting;
pub(crate) use refusal::Refusal;

use answer::Answer;
use respond::Fetched;
use route::Routed;

use crate::connection::{Client, Downstream};
use crate::plan::{Route, Site};
use crate::worker::{Active, Worker};

/// What surrounds a request and outlives its stops.
pub(crate) struct Surroundings<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) plan: &'a Active,
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
    Fetch(Routed<'p>),
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
        Some(refusal) => Stop::Answer(Answer::refuse(&refusal, exchange)),
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
            Stop::Fetch(routed) => fetch::fetch(around, downstream, exchange, routed).await,
            Stop::Answer(answer) => answer.send(around, downstream, exchange, place).await,
            Stop::Respond(fetched) => fetched.respond(around, downstream, exchange).await,
            Stop::Finish => break,
        };
    }
    finish::finish(around, downstream, exchange, place).await;
}
