//! Bounded label sets: names of the configuration, resolved once per plan to small dense numbers.
//!
//! Two sets exist. *Places* are where requests arrive: a site and one of its routes. *Targets* are
//! where they go: a group and one of its servers. A site without a route, and a group without a
//! server, are members of the same sets, so that what never found a route or a server is counted too.
//!
//! A name keeps its number for the life of the process, over all reloads, so counters never jump.
//! Numbers are therefore not given back, and each set has a limit: names beyond it share
//! [`Label::OTHER`].
//!
//! Only the control thread and readers of metrics come here; a worker sees nothing but numbers.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::rule_counts::{AllRules, RuleCounts};

/// A member of one of the label sets, as a small dense number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

impl Label {
    /// No site, route, group or server: the request did not get that far.
    pub const NONE: Label = Label(0);
    /// One of those beyond the limit.
    pub const OTHER: Label = Label(1);

    /// The label at a position in the set.
    pub(super) fn at(index: usize) -> Label {
        Label(u32::try_from(index).unwrap_or(Label::OTHER.0))
    }

    /// The position in the set.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// This label, or `other` if this one is [`Label::NONE`].
    #[inline]
    #[must_use]
    pub const fn or(self, other: Label) -> Label {
        if self.0 == Label::NONE.0 { other } else { self }
    }
}

/// What stands in an exposition for an absent name.
const ABSENT: &str = "";
/// What stands in an exposition for names beyond the limit.
const OTHER: &str = "other";

/// The two names behind a label: site and route, or group and server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Names {
    /// Site or group.
    pub whole: Box<str>,
    /// Route or server; empty where there is none.
    pub part: Box<str>,
}

/// The label sets of a process.
#[derive(Debug)]
pub struct Labels {
    places: RwLock<Set>,
    targets: RwLock<Set>,
    rules: AllRules,
}

impl Labels {
    /// Sets that hold at most `places_max` sites and routes, and `targets_max` groups and servers.
    pub(super) fn new(places_max: usize, targets_max: usize) -> Labels {
        Labels {
            places: RwLock::new(Set::new(places_max)),
            targets: RwLock::new(Set::new(targets_max)),
            rules: AllRules::default(),
        }
    }

    /// The counts of the WAF rules with these ids, the same over reloads.
    pub fn rules(&self, ids: impl Iterator<Item = u64>) -> RuleCounts {
        self.rules.of(ids)
    }

    pub(super) fn rule_times(&self) -> Vec<(u64, u64)> {
        self.rules.times()
    }

    pub(super) fn rule_totals(&self) -> Vec<(u64, u64)> {
        self.rules.totals()
    }

    /// The label of a site, for requests that find no route in it.
    pub fn site(&self, site: &str) -> Label {
        resolve(&self.places, site, ABSENT)
    }

    /// The label of a route in a site.
    pub fn route(&self, site: &str, route: &str) -> Label {
        resolve(&self.places, site, route)
    }

    /// The label of an upstream group, for requests that find no server in it.
    pub fn group(&self, group: &str) -> Label {
        resolve(&self.targets, group, ABSENT)
    }

    /// The label of a server in a group.
    pub fn server(&self, group: &str, server: &str) -> Label {
        resolve(&self.targets, group, server)
    }

    /// Site and route names, by label index.
    pub fn places(&self) -> Vec<Names> {
        self.places.read().unwrap_or_else(PoisonError::into_inner).names.clone()
    }

    /// Group and server names, by label index.
    pub fn targets(&self) -> Vec<Names> {
        self.targets.read().unwrap_or_else(PoisonError::into_inner).names.clone()
    }
}

fn resolve(set: &RwLock<Set>, whole: &str, part: &str) -> Label {
    // A panic between the two insertions cannot happen, so a poisoned set is still whole.
    set.write().unwrap_or_else(PoisonError::into_inner).resolve(whole, part)
}

#[derive(Debug)]
struct Set {
    names: Vec<Names>,
    index: HashMap<Names, Label>,
    len_max: usize,
}

impl Set {
    fn new(len_max: usize) -> Set {
        let mut set = Set { names: Vec::new(), index: HashMap::new(), len_max: len_max.max(2) };
        set.resolve(ABSENT, ABSENT);
        set.resolve(OTHER, OTHER);
        set
    }

    fn resolve(&mut self, whole: &str, part: &str) -> Label {
        let names = Names { whole: whole.into(), part: part.into() };
        if let Some(label) = self.index.get(&names) {
            return *label;
        }
        let Some(next) = u32::try_from(self.names.len()).ok().filter(|_| self.has_room()) else {
            return Label::OTHER;
        };
        self.names.push(names.clone());
        self.index.insert(names, Label(next));
        Label(next)
    }

    fn has_room(&self) -> bool {
        self.names.len() < self.len_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_label() {
        let labels = Labels::new(16, 16);
        let api = labels.route("shop", "/api");
        let site = labels.site("shop");
        let group = labels.group("shop");
        assert_ne!(api, site);
        assert_eq!(labels.route("shop", "/api"), api);
        assert_eq!(labels.site("shop"), site);
        assert_eq!(&*labels.places()[api.index()].part, "/api");
        assert_eq!(&*labels.targets()[group.index()].whole, "shop");
        assert_eq!(labels.site(""), Label::NONE);
    }

    #[test]
    fn names_beyond_the_limit_share_one_label() {
        let labels = Labels::new(4, 2);
        let first = labels.site("a");
        let second = labels.site("b");
        assert_eq!(labels.site("c"), Label::OTHER);
        assert_eq!(labels.site("d"), Label::OTHER);
        assert_eq!((labels.site("a"), labels.site("b")), (first, second));
        assert_eq!(labels.group("g"), Label::OTHER);
        assert_eq!(labels.places().len(), 4);
    }

    #[test]
    fn absent_labels_fall_back() {
        let labels = Labels::new(16, 16);
        let site = labels.site("a");
        assert_eq!(Label::NONE.or(site), site);
        assert_eq!(site.or(Label::OTHER), site);
    }
}
