//! Metrics of the cache.

use super::super::control::CacheTotals;
use super::super::snapshot::Snapshot;
use super::super::text::{Kind, Samples};
use super::{Family, PLACE, places};
use crate::record::CacheResult;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "tidegate_cache_requests_total",
        kind: Kind::Counter,
        unit: "",
        labels: &["site", "route", "result"],
        help: "Requests that the cache was asked for, by what it made of them.",
        samples: |all, out| {
            for ([site, route], row) in places(all) {
                for (result, count) in CacheResult::ALL.iter().zip(row.cache).skip(1) {
                    out.put_nonzero(&[site, route, result.as_str()], count);
                }
            }
        },
    },
    Family {
        name: "tidegate_cache_saved_bytes_total",
        kind: Kind::Counter,
        unit: "bytes",
        labels: PLACE,
        help: "Bytes of bodies that clients got from the cache.",
        samples: |all, out| {
            for (names, row) in places(all) {
                if row.cache.iter().skip(1).any(|count| *count > 0) {
                    out.put(&names, row.cache_bytes);
                }
            }
        },
    },
    Family {
        name: "tidegate_cache_entries",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Keys that the memory tier holds something for.",
        samples: |all, out| put(all, out, |cache| cache.entries),
    },
    Family {
        name: "tidegate_cache_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Memory that stored responses take.",
        samples: |all, out| put(all, out, |cache| cache.bytes),
    },
    Family {
        name: "tidegate_cache_limit_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Most memory that stored responses may take.",
        samples: |all, out| put(all, out, |cache| cache.bytes_max),
    },
    Family {
        name: "tidegate_cache_fills",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Fetches under way that others may read along with.",
        samples: |all, out| put(all, out, |cache| cache.fills),
    },
    Family {
        name: "tidegate_cache_stored_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Responses stored.",
        samples: |all, out| put(all, out, |cache| cache.stored),
    },
    Family {
        name: "tidegate_cache_evicted_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Keys that gave way to others.",
        samples: |all, out| put(all, out, |cache| cache.evicted),
    },
    Family {
        name: "tidegate_cache_purges_total",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Purges, whatever they named.",
        samples: |all, out| put(all, out, |cache| cache.purges),
    },
];

fn put(all: &Snapshot, out: &mut Samples<'_>, value: fn(&CacheTotals) -> u64) {
    if let Some(cache) = &all.control.cache {
        out.put(&[], value(cache));
    }
}
