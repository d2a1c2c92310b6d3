//! The worker's buffer pool.
//!
//! A connection holds a buffer only while bytes are on their way through it; between requests it
//! holds none. Buffers are recycled last-in, first-out, so that the one taken next is the one whose
//! memory is still in the processor's cache. The pool belongs to the thread: there is nothing to lock.

use std::cell::RefCell;

/// Bytes of a [`Buffer`]: room for four full TLS records with their overhead (RFC 8446, section 5.2), or for a
/// response of 64 KB in one read.
pub const BUFFER_BYTES: usize = 4 * (16_384 + 256 + 5) + 1024;

/// Buffers a thread keeps for reuse; what is returned beyond them is freed.
const KEPT_MAX: usize = 256;

thread_local! {
    static POOL: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A fixed stretch of memory with a filled part in it: bytes are received behind it and consumed from
/// its front. Goes back to its thread's pool when dropped.
#[derive(Debug)]
pub struct Buffer {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Takes an empty buffer from the pool, or makes one.
    pub fn take() -> Self {
        let pooled = POOL.with_borrow_mut(Vec::pop);
        let memory = pooled.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
        Self { memory, start: 0, end: 0 }
    }

    /// The bytes received and not yet consumed.
    pub fn filled(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// The same, to be changed in place (TLS decrypts where it lies).
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }

    /// The number of bytes received and not yet consumed.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether nothing is left to consume.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The room behind the filled part. Empty when the buffer is full; see [`Buffer::make_room`].
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.end..]
    }

    /// Counts `n` bytes of the spare part as filled.
    pub fn advance(&mut self, n: usize) {
        self.end = (self.end + n).min(self.memory.len());
    }

    /// Drops `n` bytes from the front.
    pub fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Moves the filled part to the front, so that all other bytes are spare.
    pub fn make_room(&mut self) {
        if self.start > 0 {
            self.memory.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Appends as much of `bytes` as there is room for and says how much that was.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let spare = self.spare_mut();
        let n = bytes.len().min(spare.len());
        spare[..n].copy_from_slice(&bytes[..n]);
        self.advance(n);
        n
    }
}

/// Frees half of this thread's spare buffers. Called every second or so, it forgets a rush within
/// seconds and costs a steady load next to nothing.
pub(crate) fn trim() {
    POOL.with_borrow_mut(|pool| pool.truncate(pool.len() / 2));
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        // A thread that is ending has no pool left; the memory is then freed.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < KEPT_MAX {
                pool.push(memory);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_behind_and_out_in_front() {
        let mut buffer = Buffer::take();
        assert_eq!(buffer.append(b"hello world"), 11);
        buffer.consume(6);
        assert_eq!(buffer.filled(), b"world");
        buffer.make_room();
        assert_eq!(buffer.spare_mut().len(), BUFFER_BYTES - 5);
        buffer.consume(5);
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_returned_buffer_is_taken_again_empty() {
        let mut buffer = Buffer::take();
        buffer.append(b"secret");
        let at = buffer.memory.as_ptr();
        drop(buffer);
        let again = Buffer::take();
        assert_eq!(again.memory.as_ptr(), at);
        assert!(again.is_empty());
    }
}
