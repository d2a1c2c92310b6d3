//! What the cache holds, and what it made of requests by site and route.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{CacheTotals, Snapshot};
use tidegate_telemetry::record::CacheResult;

use super::super::shown::{Table, count, share};
use crate::caching::{Counts, History};

/// Sites and routes that a person wants to see.
const ROWS_SHOWN_MAX: usize = 20;

/// The times over which ratios are told.
const TIMES: [(&str, Duration); 3] = [
    ("last_minute", Duration::from_mins(1)),
    ("last_10_minutes", Duration::from_mins(10)),
    ("last_hour", Duration::from_hours(1)),
];

/// The cache at one moment.
#[derive(Clone, Debug)]
pub(super) struct CacheView {
    pub(super) totals: CacheTotals,
    /// The most asked first.
    pub(super) rows: Vec<CacheRow>,
}

/// A site and a route.
#[derive(Clone, Debug)]
pub(super) struct CacheRow {
    pub(super) site: String,
    pub(super) route: String,
    /// Requests since the start.
    pub(super) results: [u64; CacheResult::ALL.len()],
    /// Bytes of bodies that came from the cache, since the start.
    pub(super) bytes_saved: u64,
    /// Within [`TIMES`].
    pub(super) within: [Counts; TIMES.len()],
}

impl CacheView {
    /// The cache now; `None` if no request was one for it.
    pub(super) fn of(snapshot: &Snapshot, history: &History, now: Stamp) -> Option<CacheView> {
        let places = snapshot.places.iter();
        let places = places.filter(|place| place.totals.cache.iter().any(|requests| *requests > 0));
        let mut rows: Vec<_> = places
            .map(|place| CacheRow {
                site: place.names.whole.to_string(),
                route: place.names.part.to_string(),
                results: place.totals.cache,
                bytes_saved: place.totals.cache_bytes,
                within: TIMES.map(|(_, time)| history.within(place, time, now)),
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.results.iter().sum::<u64>()));
        let totals = snapshot.control.cache?;
        (!rows.is_empty()).then_some(CacheView { totals, rows })
    }

    pub(super) fn json(&self) -> Value {
        let totals = &self.totals;
        json!({
            "entries": totals.entries,
            "bytes": totals.bytes,
            "bytes_max": totals.bytes_max,
            "fills": totals.fills,
            "stored": totals.stored,
            "evicted": totals.evicted,
            "purges": totals.purges,
            "routes": self.rows.iter().map(CacheRow::json).collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self, out: &mut String) {
        let mut table = Table::new(1, ["cache", "now"]);
        let mut row = |name: &str, number: u64| table.row(vec![name.into(), count(number)]);
        row("responses", self.totals.entries);
        row("kilobytes", self.totals.bytes / 1000);
        row("kilobytes at most", self.totals.bytes_max / 1000);
        row("fetches under way", self.totals.fills);
        row("purges since the start", self.totals.purges);
        table.write(out);
        let mut table = Table::new(1, ["hits, of what was looked up", "1 min", "10 min", "1 h"]);
        for row in self.rows.iter().take(ROWS_SHOWN_MAX) {
            let ratios = row.within.iter().map(|counts| ratio(*counts));
            table.row(std::iter::once(row.name()).chain(ratios).collect());
        }
        table.write(out);
        let headings = [
            "cache, since start",
            "hit",
            "validated",
            "stale",
            "joined",
            "miss",
            "past",
            "MB saved",
        ];
        let mut table = Table::new(1, headings);
        for row in self.rows.iter().take(ROWS_SHOWN_MAX) {
            let sum = |results: &[CacheResult]| {
                count(results.iter().map(|result| row.results[result.index()]).sum())
            };
            table.row(vec![
                row.name(),
                sum(&[CacheResult::Hit]),
                sum(&[CacheResult::Revalidated]),
                sum(&[CacheResult::Stale, CacheResult::Updating]),
                sum(&[CacheResult::Joined]),
                sum(&[CacheResult::Miss, CacheResult::Expired]),
                sum(&[CacheResult::Bypass]),
                count(row.bytes_saved / 1_000_000),
            ]);
        }
        table.write(out);
    }
}

impl CacheRow {
    fn name(&self) -> String {
        format!("{} {}", self.site, self.route)
    }

    fn json(&self) -> Value {
        let results = CacheResult::ALL.iter().zip(self.results);
        let results = results.filter(|(result, _)| **result != CacheResult::None);
        let ratios = TIMES.iter().zip(self.within);
        json!({
            "site": self.site,
            "route": self.route,
            "requests": results.map(|(result, requests)| {
                (result.as_str().to_owned(), json!(requests))
            }).collect::<Map<_, _>>(),
            "bytes_saved": self.bytes_saved,
            "hits": ratios.map(|((name, _), counts)| {
                ((*name).to_owned(), json!({ "looked_up": counts.asked, "hits": counts.hits }))
            }).collect::<Map<_, _>>(),
        })
    }
}

fn ratio(counts: Counts) -> String {
    if counts.asked == 0 { "-".into() } else { share(counts.hits, counts.asked) }
}
