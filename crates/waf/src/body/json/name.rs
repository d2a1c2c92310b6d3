//! The name of the current value: where it stands among the open containers.

use super::{Expect, Reason};

/// The open containers and the name that they and the last key make.
#[derive(Debug)]
pub(super) struct Name {
    bytes: Vec<u8>,
    bytes_max: usize,
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    /// Bytes of the container's own name.
    len: usize,
    container: Container,
}

#[derive(Debug)]
enum Container {
    Object,
    /// An array, and the number of its next element.
    Array {
        next: u32,
    },
}

const ROOT: &[u8] = b"json";
const ELEMENT: &[u8] = b".array_";

impl Name {
    pub(super) fn new(bytes_max: usize) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(ROOT);
        Self { bytes, bytes_max, open: Vec::with_capacity(8) }
    }

    /// The name of the current value.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn in_object(&self) -> bool {
        matches!(self.open.last(), Some(Open { container: Container::Object, .. }))
    }

    /// What may follow a value that has just ended.
    pub(super) fn after_value(&self) -> Expect {
        if self.open.is_empty() { Expect::Nothing } else { Expect::CommaOrEnd }
    }

    pub(super) fn open_object(&mut self) {
        self.open.push(Open { len: self.bytes.len(), container: Container::Object });
    }

    pub(super) fn open_array(&mut self) {
        self.open.push(Open { len: self.bytes.len(), container: Container::Array { next: 0 } });
    }

    /// Leaves the innermost container, whose own name becomes the current one.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            self.bytes.truncate(open.len);
        }
    }

    /// Names the member of the innermost object that `key` introduces.
    pub(super) fn member(&mut self, key: &[u8]) -> Result<(), Reason> {
        let Some(open) = self.open.last() else { return Ok(()) };
        let key = if key.is_empty() { b"empty-key" } else { key };
        self.bytes.truncate(open.len);
        self.bytes.push(b'.');
        self.bytes.extend_from_slice(key);
        self.check()
    }

    /// Names the next element, if the innermost container is an array.
    pub(super) fn value_begins(&mut self) -> Result<(), Reason> {
        let Some(Open { len, container: Container::Array { next } }) = self.open.last_mut() else {
            return Ok(());
        };
        self.bytes.truncate(*len);
        self.bytes.extend_from_slice(ELEMENT);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(*next).as_bytes());
        // A body long enough to overflow is beyond any limit; its last elements share a name.
        *next = next.saturating_add(1);
        self.check()
    }

    fn check(&self) -> Result<(), Reason> {
        if self.bytes.len() > self.bytes_max { Err(Reason::NameLength) } else { Ok(()) }
    }
}
