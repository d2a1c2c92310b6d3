//! `/context/watch`: changes as they are made, a JSON object on each line.
//!
//! A thread waits for changes and writes lines; one that does not find a reader for its lines does
//! not hold any writer up. A reader that is too slow learns how many changes it has missed
//! (`{"lost": 3}`). Every quarter of a minute an empty line asks whether the reader is still there.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use serde_json::json;
use tidegate_telemetry::clock::Stamp;
use tidegate_waf::context::{Change, Collection};
use tokio::sync::mpsc;

use super::{Seats, change};
use crate::admin::answer::{Answer, Sent, streamed};
use crate::admin::query::Query;
use crate::control::Gate;

/// Watchers at once.
const WATCHERS_MAX: usize = 16;
/// Changes that may wait for one watcher.
const CHANGES_MAX: usize = 65_536;
/// Pieces that may wait for the network.
const PIECES_MAX: usize = 16;
/// Bytes of lines that are sent together.
const PIECE_BYTES: usize = 16 << 10;
const LOOKED_EVERY: Duration = Duration::from_millis(100);
const ASKED_EVERY: Duration = Duration::from_secs(15);

static WATCHERS: Seats = Seats::new(WATCHERS_MAX);

/// Which changes are wanted.
struct Wanted {
    collection: Option<Collection>,
    prefix: Vec<u8>,
}

impl Wanted {
    fn has(&self, change: &Change) -> bool {
        let record = change.record();
        self.collection.is_none_or(|collection| record.collection == collection)
            && record.key.starts_with(&self.prefix)
    }
}

/// Begins to watch; the answer goes on until the client has enough or the gate ends.
pub(super) fn begin(gate: &Gate, query: Option<&str>) -> Result<Sent, Answer> {
    let query = Query::of(query, &["collection", "prefix"])?;
    let collection = query.collection("collection")?;
    let prefix = query.find("prefix").unwrap_or_default().to_vec();
    let wanted = Wanted { collection, prefix };
    let Some(seat) = WATCHERS.take() else {
        let reason = format!("there are {WATCHERS_MAX} watchers already");
        return Err(Answer::failure(StatusCode::SERVICE_UNAVAILABLE, reason));
    };
    let (lines, pieces) = mpsc::channel(PIECES_MAX);
    let context = Arc::clone(&gate.context.context);
    let watch = context.watch(CHANGES_MAX);
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            let _seat = seat;
            write(&watch, &wanted, &lines);
        })
        .map_err(|error| {
            Answer::failure(StatusCode::SERVICE_UNAVAILABLE, format!("no thread: {error}"))
        })?;
    Ok(streamed("application/x-ndjson", pieces))
}

/// Writes lines until nobody reads them any more.
fn write(
    watch: &tidegate_waf::context::Watch,
    wanted: &Wanted,
    lines: &mpsc::Sender<io::Result<Bytes>>,
) {
    let mut sent = Stamp::now();
    while !lines.is_closed() {
        let mut piece = Vec::new();
        let mut next = watch.next(LOOKED_EVERY);
        while let Some(found) = next {
            if wanted.has(&found) {
                piece.extend_from_slice(change::json(&found).to_string().as_bytes());
                piece.push(b'\n');
            }
            next = if piece.len() < PIECE_BYTES { watch.try_next() } else { None };
        }
        match watch.take_lost() {
            0 => {}
            lost => piece.extend_from_slice(format!("{}\n", json!({ "lost": lost })).as_bytes()),
        }
        if piece.is_empty() && sent.elapsed() > ASKED_EVERY {
            piece.push(b'\n');
        }
        if !piece.is_empty() {
            sent = Stamp::now();
            if lines.blocking_send(Ok(piece.into())).is_err() {
                return;
            }
        }
    }
}
