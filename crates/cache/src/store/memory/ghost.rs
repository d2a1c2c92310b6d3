//! What left the cache unused, remembered by hash alone: who comes back was thrown out too early.

use std::collections::VecDeque;

use hashbrown::HashTable;

/// A queue of hashes, bounded by the bytes that their entries took.
pub(super) struct Ghost {
    /// Oldest first, those that came back included until they get to the front.
    queue: VecDeque<Gone>,
    /// The hash and its turn in the queue.
    table: HashTable<(u64, u64)>,
    /// The turn of the front of the queue.
    first: u64,
    bytes: u64,
}

struct Gone {
    hash: u64,
    bytes: u64,
}

impl Ghost {
    pub(super) const fn new() -> Self {
        Ghost { queue: VecDeque::new(), table: HashTable::new(), first: 0, bytes: 0 }
    }

    /// Remembers an entry that left, and forgets the oldest beyond `bytes_max`.
    pub(super) fn remember(&mut self, hash: u64, bytes: u64, bytes_max: u64) {
        let turn = self.first + self.queue.len() as u64;
        match self.table.find_mut(hash, |gone| gone.0 == hash) {
            Some(gone) => gone.1 = turn,
            None => {
                self.table.insert_unique(hash, (hash, turn), |gone| gone.0);
            }
        }
        self.queue.push_back(Gone { hash, bytes });
        self.bytes += bytes;
        while self.bytes > bytes_max
            && let Some(gone) = self.queue.pop_front()
        {
            let turn = self.first;
            self.first += 1;
            self.bytes -= gone.bytes;
            let same = |&(hash, at): &(u64, u64)| hash == gone.hash && at == turn;
            if let Ok(entry) = self.table.find_entry(gone.hash, same) {
                entry.remove();
            }
        }
    }

    /// Whether an entry with this hash left not long ago. It is forgotten.
    pub(super) fn came_back(&mut self, hash: u64) -> bool {
        match self.table.find_entry(hash, |gone| gone.0 == hash) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut ghost = Ghost::new();
        for hash in 0..10 {
            ghost.remember(hash, 10, 50);
        }
        for hash in 0..10 {
            assert_eq!(ghost.came_back(hash), hash >= 5, "{hash}");
            assert!(!ghost.came_back(hash));
        }
    }

    #[test]
    fn who_leaves_again_is_remembered_from_then_on() {
        let mut ghost = Ghost::new();
        ghost.remember(1, 10, 30);
        assert!(ghost.came_back(1));
        ghost.remember(2, 10, 30);
        ghost.remember(1, 10, 30);
        // The first turn of 1 falls off the front; its second stands.
        ghost.remember(3, 10, 30);
        assert!(ghost.came_back(1) && ghost.came_back(2) && ghost.came_back(3));
        assert!(ghost.queue.len() == 3 && ghost.table.is_empty());
    }
}
