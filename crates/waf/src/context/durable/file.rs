//! The LMDB file: three databases, `about` (the format), `records` and `variables`, both by number.
//!
//! Numbers are given in rising order and never again, so new entries are appended, which is the
//! fastest and densest way into a B+ tree, and a key of any length is a key of eight bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use heed::byteorder::BigEndian;
use heed::types::{Bytes as Raw, Str, U64};
use heed::{CommitOrAbort, Database, Env, PutFlags, WithoutTls};

use super::super::cell::Plain;
use super::super::settings::Settings;
use super::super::slot::{Kept, Slot};
use super::super::store::Store;
use super::writer::Still;
use super::{Fault, format, sys};

type Numbered<'e> = Database<'e, U64<BigEndian>, Raw>;

/// LMDB reserves this much address space at least; the file only grows as it is filled.
const MAP_BYTES_MIN: usize = 256 << 20;

pub(super) struct StoreFile {
    directory: PathBuf,
    path: PathBuf,
    env: Env<WithoutTls>,
    last_record: u64,
    last_variable: u64,
    /// Records that were found without a variable, to be deleted with the next batch.
    orphans: Vec<u64>,
    /// Whether the next batch replaces all that is in the file.
    anew: bool,
}

impl StoreFile {
    pub(super) fn open(directory: &Path, path: &Path, settings: &Settings) -> Result<Self, Fault> {
        // Twice what is kept, as a transaction leaves the old pages alone, and twice that for pages
        // that are half full.
        let map_bytes = settings.bytes_max.saturating_mul(4).max(MAP_BYTES_MIN);
        // LMDB wants whole pages.
        let map_bytes = map_bytes.next_multiple_of(1 << 20);
        let fault = |error: heed::Error| fault(directory, path, &error);
        let env = sys::open(directory, map_bytes, 3).map_err(fault)?;
        match known_format(&env).map_err(fault)? {
            Format::Known => Ok(Self {
                directory: directory.to_owned(),
                path: path.to_owned(),
                env,
                last_record: 0,
                last_variable: 0,
                orphans: Vec::new(),
                anew: false,
            }),
            Format::Newer(format) => {
                env.prepare_for_closing().wait();
                Err(Fault::Newer { path: path.to_owned(), format })
            }
            Format::Foreign => {
                env.prepare_for_closing().wait();
                let what = "it holds something else".to_owned();
                Err(Fault::Damaged { path: path.to_owned(), what })
            }
        }
    }

    /// Lets the next batch replace all that is in the file.
    pub(super) fn begin_anew(&mut self) {
        self.anew = true;
    }

    /// Closes the file, so that it can be moved.
    pub(super) fn close(self) {
        self.env.prepare_for_closing().wait();
    }

    /// Puts everything into `store`. What has expired meanwhile is left out, and marked for the
    /// next batch to delete.
    pub(super) fn read_into(&mut self, store: &Store, now_ms: u64) -> Result<(), Fault> {
        let lmdb = |error: heed::Error| fault(&self.directory, &self.path, &error);
        let damaged = |what: String| Fault::Damaged { path: self.path.clone(), what };
        let databases = databases(&self.env).map_err(lmdb)?;
        let txn = self.env.read_txn().map_err(lmdb)?;
        let mut records = Records::default();
        for entry in databases.records.iter(&txn).map_err(lmdb)? {
            let (id, bytes) = entry.map_err(lmdb)?;
            let read = format::read_record(id, bytes)
                .ok_or_else(|| damaged(format!("record {id} does not match its checksum")))?;
            records.list.push((id, Arc::new(Kept::new(read.record, id, read.about))));
            self.last_record = id;
        }
        let mut variables: Vec<(Arc<Slot>, Plain)> = Vec::new();
        for entry in databases.variables.iter(&txn).map_err(lmdb)? {
            let (id, bytes) = entry.map_err(lmdb)?;
            let read = format::read_variable(id, bytes)
                .ok_or_else(|| damaged(format!("variable {id} does not match its checksum")))?;
            let kept = records
                .find(read.record)
                .ok_or_else(|| damaged(format!("variable {id} has no record")))?;
            let slot = Slot::new(Arc::clone(kept), read.name, id, read.written_ms);
            variables.push((Arc::new(slot), read.plain));
            self.last_variable = id;
        }
        store.ids_given(self.last_record.max(self.last_variable));
        store.index.reserve(variables.len(), records.list.len());
        // Each beside the one before: see the same for loads.
        variables.sort_unstable_by(|(one, _), (other, _)| one.place().cmp(&other.place()));
        for (slot, plain) in variables {
            store.restore(&slot, plain, now_ms);
        }
        let without = |kept: &Kept| kept.slots.load(Ordering::Relaxed) == 0;
        let orphans = records.list.iter().filter(|(_, kept)| without(kept));
        self.orphans = orphans.map(|(id, _)| *id).collect();
        Ok(())
    }

    /// Whether there is something to clear away that no slot stands for.
    pub(super) fn has_leftovers(&self) -> bool {
        self.anew || !self.orphans.is_empty()
    }

    /// Writes what these slots hold by now, or deletes them, in one transaction. `slots` is put in
    /// order; `still` is given back before the disk is waited for.
    pub(super) fn write(
        &mut self,
        store: &Store,
        slots: &mut [Arc<Slot>],
        still: Still<'_>,
    ) -> Result<(), Fault> {
        match self.try_write(store, slots, still) {
            Ok((last_record, last_variable)) => {
                self.last_record = last_record;
                self.last_variable = last_variable;
                self.orphans.clear();
                self.anew = false;
                Ok(())
            }
            Err(error) => Err(fault(&self.directory, &self.path, &error)),
        }
    }

    fn try_write(
        &self,
        store: &Store,
        slots: &mut [Arc<Slot>],
        still: Still<'_>,
    ) -> heed::Result<(u64, u64)> {
        let (mut last_record, mut last_variable) = (self.last_record, self.last_variable);
        let mut bytes = Vec::new();
        let mut records = Vec::new();
        slots.sort_unstable_by_key(|slot| slot.id);
        let Databases { records: record_base, variables } = databases(&self.env)?;
        let mut txn = self.env.write_txn()?;
        if self.anew {
            record_base.clear(&mut txn)?;
            variables.clear(&mut txn)?;
        }
        for slot in slots {
            // From here on, who changes it puts it in the queue again.
            slot.unwritten.swap(false, Ordering::AcqRel);
            bytes.clear();
            if let Some((found, cell)) = store.index.cells().get_key_value(&slot.place())
                && Arc::ptr_eq(&found.0, slot)
                && let Some(plain) = cell.seen()
            {
                format::write_variable(slot, plain, &mut bytes);
            }
            if bytes.is_empty() {
                variables.delete(&mut txn, &slot.id)?;
            } else {
                let flags = append_after(&mut last_variable, slot.id);
                variables.put_with_flags(&mut txn, flags, &slot.id, &bytes)?;
            }
            if records.last().is_none_or(|last| !Arc::ptr_eq(last, &slot.kept)) {
                records.push(Arc::clone(&slot.kept));
            }
        }
        records.sort_unstable_by_key(|kept| kept.id);
        records.dedup_by_key(|kept| kept.id);
        for kept in records {
            // One without slots has been dropped; with its last slot, which is in the queue again.
            if kept.slots.load(Ordering::Acquire) > 0 {
                format::write_record(&kept, &mut bytes);
                let flags = append_after(&mut last_record, kept.id);
                record_base.put_with_flags(&mut txn, flags, &kept.id, &bytes)?;
            } else {
                record_base.delete(&mut txn, &kept.id)?;
            }
        }
        for id in &self.orphans {
            record_base.delete(&mut txn, id)?;
        }
        drop(still);
        txn.commit()?;
        Ok((last_record, last_variable))
    }
}

/// Records as they are read, by their numbers.
#[derive(Default)]
struct Records {
    /// In the order of numbers.
    list: Vec<(u64, Arc<Kept>)>,
    /// Where the last was found.
    last: usize,
}

impl Records {
    /// A record by its number. Variables mostly come in the order of their records.
    fn find(&mut self, id: u64) -> Option<&Arc<Kept>> {
        let mut near = self.last..self.last + 2;
        let found = near.find(|at| self.list.get(*at).is_some_and(|(own, _)| *own == id));
        self.last = match found {
            Some(at) => at,
            None => self.list.binary_search_by_key(&id, |(own, _)| *own).ok()?,
        };
        self.list.get(self.last).map(|(_, kept)| kept)
    }
}

/// How to put an entry: at the end, if its number is the highest so far.
fn append_after(last: &mut u64, id: u64) -> PutFlags {
    if id > *last {
        *last = id;
        PutFlags::APPEND
    } else {
        PutFlags::empty()
    }
}

struct Databases<'e> {
    records: Numbered<'e>,
    variables: Numbered<'e>,
}

fn databases(env: &Env<WithoutTls>) -> heed::Result<Databases<'_>> {
    let opened = env.create_databases_and_commit(env.write_txn()?, |opener, txn| {
        let records = opener.create_database::<U64<BigEndian>, Raw>(txn, Some("records"))?;
        let variables = opener.create_database::<U64<BigEndian>, Raw>(txn, Some("variables"))?;
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((records, variables)))
    })?;
    let (records, variables) = opened.unwrap_commit();
    Ok(Databases { records, variables })
}

enum Format {
    Known,
    Newer(u32),
    /// Not a context store.
    Foreign,
}

/// Reads the format; gives one to a file that is new.
fn known_format(env: &Env<WithoutTls>) -> heed::Result<Format> {
    // Whatever was ever written to the file has made a database.
    let new = env.unnamed_database_stat().entries == 0;
    let mut found = None;
    env.create_databases_and_commit(env.write_txn()?, |opener, txn| {
        let about = match opener.open_database::<Str, Raw>(txn, Some("about"))? {
            None if new => {
                let about = opener.create_database::<Str, Raw>(txn, Some("about"))?;
                about.put(txn, "format", &format::FORMAT.to_le_bytes())?;
                Some(about)
            }
            about => about,
        };
        if let Some(about) = &about {
            found = about.get(txn, "format")?.and_then(|bytes| bytes.try_into().ok());
        }
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(about))
    })?;
    Ok(match found.map(u32::from_le_bytes) {
        Some(format::FORMAT) => Format::Known,
        Some(format) if format > format::FORMAT => Format::Newer(format),
        _ => Format::Foreign,
    })
}

/// Tells a damaged file from a disk that does not do its part.
fn fault(directory: &Path, path: &Path, error: &heed::Error) -> Fault {
    use heed::MdbError::{Corrupted, Invalid, PageNotFound, VersionMismatch};
    match error {
        heed::Error::Mdb(Corrupted | Invalid | PageNotFound | VersionMismatch)
        | heed::Error::Decoding(_) => {
            Fault::Damaged { path: path.to_owned(), what: error.to_string() }
        }
        other => Fault::Disk { directory: directory.to_owned(), what: other.to_string() },
    }
}
