//! Is this file what LMDB once wrote? Asked before LMDB maps it.
//!
//! LMDB trusts its pages: a file that was cut short or overwritten makes it read beyond the map, and
//! the process dies. So all pages that can be reached are looked at first, by plain reads: numbers
//! within the file, offsets within the page, no page used twice, counts that add up. That the
//! entries themselves are whole is told by their own checksums (see [`super::format`]).
//!
//! The layout is that of LMDB's data version 1 on a 64-bit little-endian machine (`mdb.c`, structures
//! `MDB_page`, `MDB_meta`, `MDB_db`, `MDB_node`), as far as a file without duplicates uses it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Fault;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const PAGE_HEADER_BYTES: usize = 16;
const NODE_HEADER_BYTES: usize = 8;
const TREE_BYTES: usize = 48;
/// What a tree says whose keys are integers in the machine's order: that of free pages.
const INTEGER_KEYS: u16 = 0x08;
/// The depth of LMDB's own cursor stack.
const DEPTH_MAX: u16 = 32;
const NO_PAGE: u64 = u64::MAX;

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const META: u16 = 0x08;

const NODE_ON_OVERFLOW: u16 = 0x01;
const NODE_IS_TREE: u16 = 0x02;
const NODE_HAS_DUPLICATES: u16 = 0x04;

/// Checks the file, if there is one. A file that was never finished being made is removed.
pub(super) fn check(path: &Path) -> Result<(), Fault> {
    let refused = |cause| Fault::Refused { path: path.to_owned(), cause };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(refused(cause)),
    };
    let bytes = file.metadata().map_err(refused)?.len();
    match walk(&file, bytes) {
        Ok(()) => Ok(()),
        // LMDB writes both of its first pages at once, before anything else is in the file.
        Err(Wrong::Unfinished) => std::fs::remove_file(path).map_err(refused),
        Err(Wrong::Version(format)) => Err(Fault::Newer { path: path.to_owned(), format }),
        Err(Wrong::Unreadable(cause)) => Err(refused(cause)),
        Err(Wrong::Page(page, what)) => {
            let what = format!("page {page}: {what}");
            Err(Fault::Damaged { path: path.to_owned(), what })
        }
    }
}

#[derive(Debug)]
enum Wrong {
    /// The process was killed while it made the file.
    Unfinished,
    /// A later version of LMDB's file.
    Version(u32),
    Unreadable(io::Error),
    Page(u64, &'static str),
}

impl From<io::Error> for Wrong {
    fn from(cause: io::Error) -> Self {
        Self::Unreadable(cause)
    }
}

/// A tree's root, as `MDB_db` has it.
#[derive(Clone, Copy, Debug)]
struct Tree {
    flags: u16,
    depth: u16,
    entries: u64,
    root: u64,
}

#[derive(Debug)]
struct Meta {
    page_bytes: u32,
    /// The free pages, then the main tree.
    trees: [Tree; 2],
    last_page: u64,
    transaction: u64,
}

fn walk(file: &File, file_bytes: u64) -> Result<(), Wrong> {
    let first = read_meta(file, 0, 0)?;
    let page_bytes = first.page_bytes as usize;
    if !page_bytes.is_power_of_two() || !(512..=65_536).contains(&page_bytes) {
        return Err(Wrong::Page(0, "its page size is not one"));
    }
    if file_bytes < 2 * page_bytes as u64 {
        return Err(if first.transaction == 0 {
            Wrong::Unfinished
        } else {
            Wrong::Page(1, "the file ends before it")
        });
    }
    let second = read_meta(file, 1, page_bytes as u64)?;
    if second.page_bytes != first.page_bytes {
        return Err(Wrong::Page(1, "its page size is another"));
    }
    let meta = if first.transaction < second.transaction { second } else { first };
    let pages = file_bytes / page_bytes as u64;
    // Ends that were freed again may be missing from the file, if never so many; a page that is
    // used may not.
    let count = usize::try_from(meta.last_page).ok().filter(|_| {
        meta.last_page < pages.saturating_mul(16).saturating_add(1 << 20)
            && meta.transaction < 1 << 62
    });
    let Some(count) = count.map(|last| last + 1) else {
        return Err(Wrong::Page(0, "its last page or transaction cannot be"));
    };
    let mut walk = Walk { file, page_bytes, pages, used: vec![0; count.div_ceil(64)], count };
    walk.tree(meta.trees[1], TreeKind::Main)?;
    walk.tree(meta.trees[0], TreeKind::Free)
}

fn read_meta(file: &File, page: u64, offset: u64) -> Result<Meta, Wrong> {
    let mut bytes = [0; PAGE_HEADER_BYTES + 24 + 2 * TREE_BYTES + 16];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && page == 0 => {
            let mut byte = [0];
            return Err(match file.read_at(&mut byte, 0)? {
                0 => Wrong::Unfinished,
                _ => Wrong::Page(0, "the file ends within it"),
            });
        }
        Err(error) => return Err(error.into()),
    }
    let bytes = &bytes[..];
    let wrong = |what| Wrong::Page(page, what);
    if u16_at(bytes, 10) & META == 0 {
        return Err(wrong("it does not say that it is a meta page"));
    }
    if u32_at(bytes, 16) != MAGIC {
        return Err(wrong("it does not have LMDB's mark"));
    }
    match u32_at(bytes, 20) {
        VERSION => {}
        later if later > VERSION => return Err(Wrong::Version(later)),
        _ => return Err(wrong("its version is none")),
    }
    let tree = |at: usize| tree_at(bytes, at);
    Ok(Meta {
        page_bytes: u32_at(bytes, 40),
        trees: [tree(40), tree(40 + TREE_BYTES)],
        last_page: u64_at(bytes, 40 + 2 * TREE_BYTES),
        transaction: u64_at(bytes, 48 + 2 * TREE_BYTES),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeKind {
    /// Which pages are free.
    Free,
    /// The names of databases.
    Main,
    /// A database.
    Named,
}

struct Walk<'a> {
    file: &'a File,
    page_bytes: usize,
    /// Whole pages in the file.
    pages: u64,
    /// A bit for each page that has been reached.
    used: Vec<u64>,
    /// Pages that LMDB counts.
    count: usize,
}

impl Walk<'_> {
    fn tree(&mut self, tree: Tree, kind: TreeKind) -> Result<(), Wrong> {
        let flags = if kind == TreeKind::Free { INTEGER_KEYS } else { 0 };
        if tree.flags != flags {
            return Err(Wrong::Page(tree.root, "its tree is of another kind"));
        }
        if tree.root == NO_PAGE {
            return if tree.entries == 0 {
                Ok(())
            } else {
                Err(Wrong::Page(0, "a tree has entries, but no root"))
            };
        }
        if tree.depth == 0 || tree.depth > DEPTH_MAX {
            return Err(Wrong::Page(tree.root, "its tree is too deep"));
        }
        let entries = self.page(tree.root, tree.depth, kind)?;
        if entries == tree.entries {
            Ok(())
        } else {
            Err(Wrong::Page(tree.root, "its tree has more entries or fewer than it says"))
        }
    }

    /// Checks a page and all below it; how many entries there are.
    fn page(&mut self, number: u64, depth: u16, kind: TreeKind) -> Result<u64, Wrong> {
        let wrong = |what| Wrong::Page(number, what);
        self.reach(number, 1)?;
        let page = self.read(number, 1)?;
        if u64_at(&page, 0) != number {
            return Err(wrong("it has another number"));
        }
        let expected = if depth == 1 { LEAF } else { BRANCH };
        if u16_at(&page, 10) != expected {
            return Err(wrong("it is not of the kind that belongs there"));
        }
        let lower = usize::from(u16_at(&page, 12));
        let upper = usize::from(u16_at(&page, 14));
        if lower < PAGE_HEADER_BYTES || lower > upper || upper > page.len() || lower % 2 != 0 {
            return Err(wrong("its bounds cross"));
        }
        let count = (lower - PAGE_HEADER_BYTES) / 2;
        if count == 0 || (depth > 1 && count < 2) {
            return Err(wrong("it has too few entries"));
        }
        let mut entries = 0;
        let mut places = Vec::with_capacity(count);
        for index in 0..count {
            let at = usize::from(u16_at(&page, PAGE_HEADER_BYTES + 2 * index));
            if at < upper {
                return Err(wrong("an entry begins in free space"));
            }
            let node = page.get(at..).filter(|node| node.len() >= NODE_HEADER_BYTES);
            let node = node.ok_or_else(|| wrong("an entry begins beyond the page"))?;
            let low = u64::from(u16_at(node, 0)) | u64::from(u16_at(node, 2)) << 16;
            let flags = u16_at(node, 4);
            let key_bytes = usize::from(u16_at(node, 6));
            let rest = node
                .get(NODE_HEADER_BYTES + key_bytes..)
                .ok_or_else(|| wrong("a key reaches beyond the page"))?;
            if kind == TreeKind::Free && depth == 1 && key_bytes != 8 {
                return Err(wrong("a list of free pages has no transaction"));
            }
            let data_bytes = if depth > 1 {
                // A branch has no data, and the upper part of the child's number in the flags.
                entries += self.page(low | u64::from(flags) << 32, depth - 1, kind)?;
                0
            } else {
                entries += 1;
                self.entry(number, rest, low, flags, kind)?
            };
            places.push((at, at + NODE_HEADER_BYTES + key_bytes + data_bytes));
        }
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(wrong("entries overlap"));
        }
        Ok(entries)
    }

    /// Checks an entry of a leaf: its data, wherever it is; how many bytes it takes in the page.
    fn entry(
        &mut self,
        number: u64,
        rest: &[u8],
        data_bytes: u64,
        flags: u16,
        kind: TreeKind,
    ) -> Result<usize, Wrong> {
        let wrong = |what| Wrong::Page(number, what);
        let beyond = || wrong("an entry reaches beyond the page");
        let bytes = usize::try_from(data_bytes).map_err(|_| beyond())?;
        if flags & NODE_HAS_DUPLICATES != 0 {
            return Err(wrong("an entry has duplicates, which this file never has"));
        }
        let overflow;
        let (data, here) = if flags & NODE_ON_OVERFLOW == 0 {
            (rest.get(..bytes).ok_or_else(beyond)?, bytes)
        } else {
            let first = rest.get(..8).ok_or_else(beyond)?;
            overflow = self.overflow(u64_at(first, 0), bytes)?;
            (
                overflow
                    .get(PAGE_HEADER_BYTES..)
                    .and_then(|data| data.get(..bytes))
                    .ok_or_else(beyond)?,
                8,
            )
        };
        let is_tree = flags & NODE_IS_TREE != 0;
        match kind {
            TreeKind::Main if is_tree && data.len() == TREE_BYTES => {
                self.tree(tree_at(data, 0), TreeKind::Named)?;
            }
            TreeKind::Main => {
                return Err(wrong("an entry is not a database, which this file never has"));
            }
            TreeKind::Named | TreeKind::Free if is_tree => {
                return Err(wrong("a database stands where none belongs"));
            }
            TreeKind::Named => {}
            TreeKind::Free => self.free(number, data)?,
        }
        Ok(here)
    }

    /// Checks pages that hold one long value, and reads them.
    fn overflow(&mut self, first: u64, data_bytes: usize) -> Result<Vec<u8>, Wrong> {
        let pages = (PAGE_HEADER_BYTES + data_bytes).div_ceil(self.page_bytes);
        if pages as u64 > self.pages {
            return Err(Wrong::Page(first, "a value is longer than the file"));
        }
        self.reach(first, pages)?;
        let bytes = self.read(first, pages)?;
        let says = u32_at(&bytes, 12) as usize;
        if u64_at(&bytes, 0) != first || u16_at(&bytes, 10) != OVERFLOW || says != pages {
            return Err(Wrong::Page(first, "it is not the overflow page that belongs there"));
        }
        Ok(bytes)
    }

    /// Checks a list of free pages: its length, then their numbers.
    fn free(&mut self, number: u64, list: &[u8]) -> Result<(), Wrong> {
        let (numbers, rest) = list.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let count = numbers.next().and_then(|count| usize::try_from(count).ok());
        if !rest.is_empty() || count != Some(numbers.len()) {
            return Err(Wrong::Page(number, "a list of free pages has another length"));
        }
        numbers.try_for_each(|page| self.mark(page))
    }

    /// Notes that pages are used, which no others may do, and which must be in the file.
    fn reach(&mut self, first: u64, pages: usize) -> Result<(), Wrong> {
        for page in first..first.saturating_add(pages as u64) {
            self.mark(page)?;
            if page >= self.pages {
                return Err(Wrong::Page(page, "the file ends before it"));
            }
        }
        Ok(())
    }

    fn mark(&mut self, page: u64) -> Result<(), Wrong> {
        let index = usize::try_from(page).ok().filter(|index| (2..self.count).contains(index));
        let Some(index) = index else {
            return Err(Wrong::Page(page, "it is beyond the last page"));
        };
        let (word, bit) = (&mut self.used[index / 64], 1 << (index % 64));
        if *word & bit != 0 {
            return Err(Wrong::Page(page, "it is used twice"));
        }
        *word |= bit;
        Ok(())
    }

    fn read(&self, first: u64, pages: usize) -> Result<Vec<u8>, Wrong> {
        let mut bytes = vec![0; pages * self.page_bytes];
        self.file.read_exact_at(&mut bytes, first * self.page_bytes as u64)?;
        Ok(bytes)
    }
}

fn tree_at(bytes: &[u8], at: usize) -> Tree {
    Tree {
        flags: u16_at(bytes, at + 4),
        depth: u16_at(bytes, at + 6),
        entries: u64_at(bytes, at + 32),
        root: u64_at(bytes, at + 40),
    }
}

/// The number at `at`, or 0 beyond the end; callers have made sure of the length.
fn number_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(number_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number_at(bytes, at))
}
