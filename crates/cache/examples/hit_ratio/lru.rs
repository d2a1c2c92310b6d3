//! Least recently used, by bytes.

use std::collections::{BTreeMap, HashMap};

use super::Policy;
use super::trace::Request;

/// Objects in the order of their last use.
#[derive(Default)]
pub(crate) struct Lru {
    turns: BTreeMap<u64, Request>,
    objects: HashMap<u64, u64>,
    turn: u64,
    bytes: u64,
    bytes_max: u64,
}

impl Lru {
    pub(crate) fn new(bytes_max: u64) -> Lru {
        Lru { bytes_max, ..Lru::default() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Uses an object, if it is there.
    pub(crate) fn touch(&mut self, object: u64) -> bool {
        let Some(turn) = self.objects.get_mut(&object) else { return false };
        self.turn += 1;
        if let Some(request) = self.turns.remove(turn) {
            self.turns.insert(self.turn, request);
        }
        *turn = self.turn;
        true
    }

    pub(crate) fn add(&mut self, request: Request) {
        self.turn += 1;
        self.objects.insert(request.object, self.turn);
        self.turns.insert(self.turn, request);
        self.bytes += request.bytes;
    }

    pub(crate) fn remove(&mut self, object: u64) -> Option<Request> {
        let request = self.turns.remove(&self.objects.remove(&object)?)?;
        self.bytes -= request.bytes;
        Some(request)
    }

    /// The least recently used object.
    pub(crate) fn last(&self) -> Option<Request> {
        self.turns.first_key_value().map(|(_, &request)| request)
    }

    /// Takes the least recently used object out if there are too many bytes.
    pub(crate) fn overflow(&mut self) -> Option<Request> {
        if self.bytes > self.bytes_max { self.remove(self.last()?.object) } else { None }
    }
}

impl Policy for Lru {
    fn request(&mut self, request: Request) -> bool {
        let hit = self.touch(request.object);
        if !hit {
            self.add(request);
            while self.overflow().is_some() {}
        }
        hit
    }
}
