//! Counts by reason: the static codes that records and connections end with.
//!
//! Codes are declared where errors are (the HTTP codec, TLS, HTTP/2), so there is no list of them
//! here. A worker's table takes up each code when it first comes; it has a limit, and only requests
//! and connections that went wrong come here.

use std::sync::OnceLock;

use super::cell::{Counter, Tally};
use crate::record::Side;

const REASONS_MAX: usize = 256;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// What it went wrong for: an outcome's name, or a protocol's.
    pub subject: &'static str,
    /// Whose fault.
    pub side: &'static str,
    /// The code.
    pub code: &'static str,
}

impl Reason {
    pub(super) const fn new(subject: &'static str, side: Side, code: &'static str) -> Reason {
        Reason { subject, side: side.as_str(), code }
    }

    const OTHER: Reason = Reason { subject: "other", side: "other", code: "other" };
}

/// One worker's counts.
#[derive(Debug)]
pub(super) struct Reasons {
    slots: Box<[(OnceLock<Reason>, Counter)]>,
    other: Counter,
}

impl Reasons {
    pub(super) fn new() -> Reasons {
        let slots = (0..REASONS_MAX).map(|_| (OnceLock::new(), Counter::new())).collect();
        Reasons { slots, other: Counter::new() }
    }

    /// Counts one.
    #[cold]
    pub(super) fn add(&self, reason: Reason) {
        let start = hash(reason) % REASONS_MAX;
        let (before, after) = self.slots.split_at(start);
        for (key, count) in after.iter().chain(before) {
            if *key.get_or_init(|| reason) == reason {
                return count.add(1);
            }
        }
        self.other.add(1);
    }

    /// Adds the counts to `totals`, which is sorted by reason.
    pub(super) fn add_to(&self, totals: &mut Vec<(Reason, u64)>) {
        let known = self.slots.iter().filter_map(|(key, count)| Some((*key.get()?, count)));
        for (reason, count) in known.chain([(Reason::OTHER, &self.other)]) {
            let count = count.value();
            match totals.binary_search_by(|(other, _)| other.cmp(&reason)) {
                Ok(at) => totals[at].1 += count,
                Err(at) if count > 0 => totals.insert(at, (reason, count)),
                Err(_) => {}
            }
        }
    }
}

/// FNV-1a over the code; subjects and sides of one code are neighbours, which is fine.
fn hash(reason: Reason) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in reason.code.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n: usize) -> &'static str {
        Box::leak(format!("code_{n}").into_boxed_str())
    }

    #[test]
    fn reasons_are_told_apart_and_summed() {
        let (first, second) = (Reasons::new(), Reasons::new());
        let client = Reason::new("h1", Side::Downstream, "bare_cr");
        let server = Reason::new("h1", Side::Upstream, "bare_cr");
        first.add(client);
        first.add(server);
        second.add(client);
        let mut totals = Vec::new();
        first.add_to(&mut totals);
        second.add_to(&mut totals);
        assert_eq!(totals, [(client, 2), (server, 1)]);
    }

    #[test]
    fn a_full_table_counts_the_rest_together() {
        let reasons = Reasons::new();
        for n in 0..REASONS_MAX + 10 {
            reasons.add(Reason::new("h1", Side::Downstream, numbered(n)));
        }
        let mut totals = Vec::new();
        reasons.add_to(&mut totals);
        assert_eq!(totals.len(), REASONS_MAX + 1);
        assert!(totals.contains(&(Reason::OTHER, 10)));
    }
}
