//! `/context`: what rules remember, read, written, loaded and watched from outside.

mod change;
mod listing;
mod watch;

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};
use tidegate_telemetry::clock;
use tidegate_waf::context::{
    Collection, Context, Entry, LoadRefused, Loaded, Record, Refused, Scope, Value,
};

use super::answer::{Answer, Form, Sent};
use super::query::Query;
use super::shown::count;
use crate::context::lines::{Lines, Mistake, collection_named, lifetime};
use crate::control::Gate;

/// How long a bulk load may take to come in.
pub(super) const LOAD_MAX: Duration = Duration::from_mins(10);
/// Bulk loads at once: each holds its lines until all of them are there.
const LOADS_MAX: usize = 4;

static LOADS: Seats = Seats::new(LOADS_MAX);

/// Answers what is asked of `/context`; `path` is what follows it.
pub(super) async fn answer<B>(gate: &Gate, request: Request<B>, path: &[&str], form: Form) -> Sent
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (head, body) = request.into_parts();
    let query = head.uri.query();
    let get = matches!(head.method, Method::GET | Method::HEAD);
    let answer = match (path, &head.method) {
        ([], _) if get => Query::of(query, &[]).map(|_| summary(gate)),
        (["watch"], _) if get => match watch::begin(gate, query) {
            Ok(sent) => return sent,
            Err(refusal) => Err(refusal),
        },
        (["load"], &Method::POST) => load(gate, body, query).await,
        ([segment], _) if get => collection(segment).and_then(|collection| {
            let query = Query::of(query, &listing::OF_COLLECTION)?;
            listing::of_collection(&gate.context.context, collection, &query)
        }),
        ([collection, key], _) if get => one(gate, collection, key, None, query),
        ([collection, key, name], _) if get => one(gate, collection, key, Some(name), query),
        ([collection, key, name], &Method::PUT) => {
            put(gate, [collection, key, name], body, query).await
        }
        ([collection, key], &Method::DELETE) => delete(gate, collection, key, None, query).await,
        ([collection, key, name], &Method::DELETE) => {
            delete(gate, collection, key, Some(name), query).await
        }
        _ => Err(bad(
            "variables are at /context/COLLECTION/KEY/NAME (GET, PUT, DELETE), records at \
             /context/COLLECTION/KEY (GET, DELETE), lists at /context/COLLECTION (GET); there are \
             /context/load (POST) and /context/watch (GET) besides",
        )),
    };
    answer.unwrap_or_else(|refusal| refusal).send(form)
}

fn bad(reason: impl Into<String>) -> Answer {
    Answer::bad_request(reason)
}

/// A part of the path: any bytes but none at all.
fn part(segment: &str) -> Result<Vec<u8>, Answer> {
    let bytes: Vec<u8> = percent_decode_str(segment).collect();
    if bytes.is_empty() { Err(bad("a key or a name is empty")) } else { Ok(bytes) }
}

fn name_of(segment: &str) -> Result<Vec<u8>, Answer> {
    // Rules do not care for the case of names.
    part(segment).map(|name| name.to_ascii_lowercase())
}

fn collection(segment: &str) -> Result<Collection, Answer> {
    collection_named(segment.as_bytes())
        .map_err(|what| Answer::failure(StatusCode::NOT_FOUND, what))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text_of(value: Value<'_>) -> String {
    let mut bytes = Vec::new();
    value.append_to(&mut bytes);
    text(&bytes)
}

fn summary(gate: &Gate) -> Answer {
    let counters = gate.context.context.counters();
    let (entries, records) = (counters.entries, counters.records);
    Answer::ok(
        format!("{} variables in {} records\n", count(entries as u64), count(records as u64)),
        json!({ "entries": entries, "records": records, "bytes": counters.bytes }),
    )
}

/// A record, or one variable of it.
fn one(
    gate: &Gate,
    collection_segment: &str,
    key: &str,
    name: Option<&str>,
    query: Option<&str>,
) -> Result<Answer, Answer> {
    let (collection, key) = (collection(collection_segment)?, part(key)?);
    let name = name.map(name_of).transpose()?;
    let (context, record) = (&gate.context.context, Record::new(collection, &key));
    let found = match &name {
        Some(name) => listing::of_name(context, record, name, &Query::of(query, &[])?),
        None => listing::of_record(context, record, &Query::of(query, &listing::OF_RECORD)?),
    };
    found?.ok_or_else(|| none(record, name.as_deref()))
}

fn none(record: Record<'_>, name: Option<&[u8]>) -> Answer {
    let (collection, key) = (record.collection, text(record.key));
    let reason = match name {
        Some(name) => format!("{collection} {key} has no variable `{}`", text(name)),
        None => format!("{collection} has no record `{key}`"),
    };
    Answer::failure(StatusCode::NOT_FOUND, reason)
}

async fn put<B>(
    gate: &Gate,
    [collection_segment, key, name]: [&str; 3],
    body: B,
    query: Option<&str>,
) -> Result<Answer, Answer>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (collection, key, name) = (collection(collection_segment)?, part(key)?, name_of(name)?);
    let now_ms = clock::unix_millis();
    let query = Query::of(query, &["ttl"])?;
    let ttl = query.find("ttl").map(|ttl| lifetime(ttl, now_ms).map_err(bad)).transpose()?;
    let value_max = gate.context.settings.limits.value_bytes_max;
    let body = Limited::new(body, value_max).collect().await;
    let value = body.map_err(|error| {
        bad(format!(
            "the value cannot be taken: {error}; `value_max` of [context] allows {} bytes",
            count(value_max as u64)
        ))
    })?;
    let value = value.to_bytes();
    let context = Arc::clone(&gate.context.context);
    let (own_key, own_name) = (key.clone(), name.clone());
    let written = tokio::task::spawn_blocking(move || {
        let record = Record::new(collection, &own_key);
        match ttl {
            // A load of one shows value and lifetime at once. It waits for other loads.
            Some(lifetime) => {
                let entry = Entry { record, name: &own_name, value: &value, lifetime };
                context.load([entry], now_ms).map(drop).map_err(|refused| refused.why)
            }
            None => context.set(record, &own_name, &value, now_ms),
        }
    });
    let written = written.await.unwrap_or(Err(Refused::NoRoom));
    written.map_err(|why| Answer::failure(StatusCode::INSUFFICIENT_STORAGE, reason(why)))?;
    let (key, name) = (text(&key), text(&name));
    Ok(Answer::ok(
        format!("{collection} {key} {name} is written\n"),
        json!({ "collection": collection.name(), "key": key, "name": name, "done": "written" }),
    ))
}

async fn delete(
    gate: &Gate,
    collection_segment: &str,
    key: &str,
    name: Option<&str>,
    query: Option<&str>,
) -> Result<Answer, Answer> {
    let (collection, key) = (collection(collection_segment)?, part(key)?);
    let name = name.map(name_of).transpose()?;
    Query::of(query, &[])?;
    let context = Arc::clone(&gate.context.context);
    // A record may have very many variables.
    let removing = tokio::task::spawn_blocking(move || {
        let (record, now_ms) = (Record::new(collection, &key), clock::unix_millis());
        let removed = match &name {
            Some(name) => usize::from(context.remove(record, name, now_ms)),
            None => remove_all(&context, record, now_ms),
        };
        if removed == 0 {
            return Err(none(record, name.as_deref()));
        }
        let key = text(&key);
        Ok(Answer::ok(
            format!("{collection} {key}: {} removed\n", count(removed as u64)),
            json!({ "collection": collection.name(), "key": key, "removed": removed }),
        ))
    });
    removing.await.unwrap_or_else(|panic| Err(broken("the removal", &panic)))
}

fn broken(what: &str, panic: &tokio::task::JoinError) -> Answer {
    Answer::failure(StatusCode::INTERNAL_SERVER_ERROR, format!("{what} failed: {panic}"))
}

fn remove_all(context: &Context, record: Record<'_>, now_ms: u64) -> usize {
    let mut names = Vec::new();
    context.each(record, now_ms, |name, _| {
        names.push(name.to_vec());
        ControlFlow::Continue(())
    });
    names.iter().filter(|name| context.remove(record, name, now_ms)).count()
}

fn reason(why: Refused) -> &'static str {
    match why {
        Refused::KeyTooLong => "the key is longer than `key_max` of [context]",
        Refused::NameTooLong => "the name is longer than `name_max` of [context]",
        Refused::ValueTooLong => "the value is longer than `value_max` of [context]",
        Refused::NoRoom => "the store is full, and nothing in it could give way",
    }
}

/// Takes lines as they come in, and shows all of them at once, or none.
async fn load<B>(gate: &Gate, mut body: B, query: Option<&str>) -> Result<Answer, Answer>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    let replaced = Query::of(query, &["replace"])?.collection("replace")?;
    let Some(_seat) = LOADS.take() else {
        let reason = format!("{LOADS_MAX} loads are coming in already; try again when one is done");
        return Err(Answer::failure(StatusCode::SERVICE_UNAVAILABLE, reason));
    };
    let mut lines = Lines::new(&gate.context.settings.limits, clock::unix_millis());
    // All of it is read even after a mistake: a client that is still sending hears nothing.
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| bad(format!("the lines broke off: {error}")))?;
        if let Some(data) = frame.data_ref() {
            lines.feed(data);
        }
    }
    let mistakes = lines.finish();
    if !mistakes.is_empty() {
        return Err(mistaken(mistakes));
    }
    let context = Arc::clone(&gate.context.context);
    // A million takes seconds, and waits for another load.
    let loading = tokio::task::spawn_blocking(move || {
        let now_ms = clock::unix_millis();
        let loaded = match replaced {
            Some(collection) => {
                context.replace(Scope::Collection(collection), lines.entries(), now_ms)
            }
            None => context.load(lines.entries(), now_ms),
        };
        loaded.map_err(|LoadRefused { entry, why }| (lines.line_of(entry), why))
    });
    match loading.await {
        Ok(Ok(Loaded { written, removed })) => Ok(Answer::ok(
            format!(
                "{} variables are written, {} removed\n",
                count(written as u64),
                count(removed as u64)
            ),
            json!({ "written": written, "removed": removed }),
        )),
        Ok(Err((line, why))) => {
            let what = reason(why).to_owned();
            Err(mistaken(&[Mistake { line, column: 1, what }]))
        }
        Err(panic) => Err(broken("the load", &panic)),
    }
}

/// Each mistake on a line of its own, as `LINE:COLUMN: what`.
fn mistaken(mistakes: &[Mistake]) -> Answer {
    let mut lines = String::new();
    for Mistake { line, column, what } in mistakes {
        let _ = writeln!(lines, "{line}:{column}: {what}");
    }
    let list: Vec<Json> = mistakes
        .iter()
        .map(|it| json!({ "line": it.line, "column": it.column, "message": it.what }))
        .collect();
    let json = json!({ "error": "nothing is loaded", "mistakes": list });
    Answer::detailed_failure(StatusCode::UNPROCESSABLE_ENTITY, lines, json)
}

/// How many may do something at once.
struct Seats {
    taken: AtomicUsize,
    max: usize,
}

/// One of them, given back when it is dropped.
struct Seat(&'static Seats);

impl Seats {
    const fn new(max: usize) -> Seats {
        Seats { taken: AtomicUsize::new(0), max }
    }

    fn take(&'static self) -> Option<Seat> {
        let seat = Seat(self);
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.max).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
