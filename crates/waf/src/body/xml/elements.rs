//! The open elements, and the names that they give to arguments.

use super::fault::Reason;
use crate::body::options::Limits;

/// The open elements, innermost last.
#[derive(Debug)]
pub(super) struct Elements {
    /// Their names behind each other, as the tags write them.
    names: Vec<u8>,
    open: Vec<Open>,
    /// `xml` and their local names: what an argument is called.
    path: Vec<u8>,
    seen: u32,
    depth_max: usize,
    seen_max: u32,
    path_bytes_max: usize,
}

#[derive(Debug)]
struct Open {
    /// Where its name begins in `names`.
    name: usize,
    /// Bytes of its parent's path.
    parent_path: usize,
    children: Children,
}

/// Whether an element has others in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    None,
    Some,
}

const ROOT: &[u8] = b"xml";

impl Elements {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            names: Vec::new(),
            open: Vec::new(),
            path: ROOT.to_vec(),
            seen: 0,
            depth_max: limits.xml_depth_max as usize,
            seen_max: limits.xml_elements_max,
            path_bytes_max: limits.name_bytes_max,
        }
    }

    /// Whether an element is open.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether there was any.
    pub(super) fn were_seen(&self) -> bool {
        self.seen > 0
    }

    /// The name for an argument with the innermost element's text.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Opens an element.
    pub(super) fn start(&mut self, name: &[u8]) -> Result<(), Reason> {
        if self.open.len() == self.depth_max {
            return Err(Reason::Depth);
        }
        if self.seen == self.seen_max {
            return Err(Reason::Elements);
        }
        self.seen += 1;
        if let Some(parent) = self.open.last_mut() {
            parent.children = Children::Some;
        }
        self.open.push(Open {
            name: self.names.len(),
            parent_path: self.path.len(),
            children: Children::None,
        });
        self.names.extend_from_slice(name);
        let local = name.iter().rposition(|&byte| byte == b':').map_or(0, |colon| colon + 1);
        self.path.push(b'.');
        self.path.extend_from_slice(&name[local..]);
        if self.path.len() > self.path_bytes_max {
            return Err(Reason::NameLength);
        }
        Ok(())
    }

    /// Whether the innermost element has that name.
    pub(super) fn innermost_is(&self, name: &[u8]) -> bool {
        self.open.last().is_some_and(|open| &self.names[open.name..] == name)
    }

    /// Whether the innermost element has others in it.
    pub(super) fn children(&self) -> Children {
        self.open.last().map_or(Children::None, |open| open.children)
    }

    /// Closes the innermost element.
    pub(super) fn end(&mut self) {
        if let Some(open) = self.open.pop() {
            self.names.truncate(open.name);
            self.path.truncate(open.parent_path);
        }
    }
}
