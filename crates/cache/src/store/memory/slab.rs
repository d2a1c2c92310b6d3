//! Entries in numbered slots, and queues of them.
//!
//! Slots lie in blocks that never move, so that growing costs the allocation of one block, whatever
//! is held already. Queues link slots by number in both directions: any entry leaves its queue in
//! constant time. Blocks are kept for reuse until the slab is dropped.

/// Slots of one block. A block is allocated under the shard's lock, so it is small.
const BLOCK: usize = 128;

/// The number that no slot has.
const NONE: u32 = u32::MAX;

/// Entries by slot number.
pub(super) struct Slab<T> {
    blocks: Vec<Box<[Slot<T>]>>,
    free: Vec<u32>,
}

struct Slot<T> {
    entry: Option<T>,
    newer: u32,
    older: u32,
}

/// A first-in-first-out queue of slots, and the bytes that their entries take.
#[derive(Debug)]
pub(super) struct Queue {
    newest: u32,
    oldest: u32,
    pub(super) bytes: u64,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Slab { blocks: Vec::new(), free: Vec::new() }
    }

    /// Puts an entry into a slot. `None`, with the entry lost, when all numbers are given.
    pub(super) fn insert(&mut self, entry: T) -> Option<u32> {
        if self.free.is_empty() {
            let first = u32::try_from(self.blocks.len() * BLOCK).ok()?;
            let end = first.checked_add(u32::try_from(BLOCK).ok()?)?;
            let slot = || Slot { entry: None, newer: NONE, older: NONE };
            self.blocks.push(std::iter::repeat_with(slot).take(BLOCK).collect());
            self.free.extend((first..end).rev());
        }
        let number = self.free.pop()?;
        self.slot_mut(number).entry = Some(entry);
        Some(number)
    }

    /// Takes an entry out. It must be in no queue.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let entry = self.slot_mut(number).entry.take()?;
        self.free.push(number);
        Some(entry)
    }

    pub(super) fn entry(&self, number: u32) -> Option<&T> {
        self.blocks.get(number as usize / BLOCK)?[number as usize % BLOCK].entry.as_ref()
    }

    pub(super) fn entry_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slot_mut(number).entry.as_mut()
    }

    /// How many slots there are, whether they hold entries or not.
    pub(super) fn slots(&self) -> u32 {
        u32::try_from(self.blocks.len() * BLOCK).unwrap_or(NONE)
    }

    fn slot_mut(&mut self, number: u32) -> &mut Slot<T> {
        &mut self.blocks[number as usize / BLOCK][number as usize % BLOCK]
    }
}

impl Queue {
    pub(super) const fn new() -> Self {
        Queue { newest: NONE, oldest: NONE, bytes: 0 }
    }

    /// The slot that has been in it longest.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Puts a slot that is in no queue at the end.
    pub(super) fn push<T>(&mut self, slots: &mut Slab<T>, number: u32, bytes: u64) {
        self.bytes += bytes;
        let slot = slots.slot_mut(number);
        (slot.newer, slot.older) = (NONE, self.newest);
        if self.newest == NONE {
            self.oldest = number;
        } else {
            slots.slot_mut(self.newest).newer = number;
        }
        self.newest = number;
    }

    /// Takes a slot out that is in it.
    pub(super) fn unlink<T>(&mut self, slots: &mut Slab<T>, number: u32, bytes: u64) {
        self.bytes -= bytes;
        let slot = slots.slot_mut(number);
        let (newer, older) = (slot.newer, slot.older);
        (slot.newer, slot.older) = (NONE, NONE);
        if newer == NONE {
            self.newest = older;
        } else {
            slots.slot_mut(newer).older = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            slots.slot_mut(older).newer = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_in_the_order_they_came_and_from_anywhere() {
        let (mut slab, mut queue) = (Slab::new(), Queue::new());
        let numbers: Vec<_> = (0..300).map(|entry| slab.insert(entry).unwrap()).collect();
        for &number in &numbers {
            queue.push(&mut slab, number, 2);
        }
        for entry in [0, 150, 299] {
            queue.unlink(&mut slab, numbers[entry], 2);
            assert_eq!(slab.remove(numbers[entry]), Some(entry));
            assert_eq!(slab.remove(numbers[entry]), None);
        }
        let mut left = Vec::new();
        while let Some(number) = queue.oldest() {
            queue.unlink(&mut slab, number, 2);
            left.extend(slab.remove(number));
        }
        let expected: Vec<_> = (0..300).filter(|entry| ![0, 150, 299].contains(entry)).collect();
        assert_eq!((left, queue.bytes), (expected, 0));
    }

    #[test]
    fn slots_are_used_again() {
        let mut slab = Slab::new();
        for round in 0..1000 {
            let number = slab.insert(round).unwrap();
            assert_eq!(slab.entry(number), Some(&round));
            slab.remove(number);
        }
        assert_eq!(slab.slots() as usize, BLOCK);
    }
}
