//! Reading a directory: at the start, when another process wrote it meanwhile, and when its right to
//! write comes over.
//!
//! A sealed segment is believed by its footer, and costs one read of it. A segment without one is
//! the one that was being written when its process ended: its owner reads it record by record, cuts
//! off what is torn, and seals it. Who does not own the directory leaves it to the one who does.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::format::{
    FooterEntry, HEAD_BYTES, HEADER_BYTES, Head, Header, HeaderError, Trailer, is_sealed,
};
use super::ownership::Ownership;
use super::segment::{self, Segment, read_some};
use super::settings::{Fault, Loaded};
use super::tier::Tier;
use crate::time::Time;

/// What is read of a record at first: most fronts are shorter.
const WINDOW_BYTES: usize = 4 << 10;

/// Learns which segments came and went. `owner` is there if this process writes.
pub(super) fn load(tier: &Tier, owner: Option<&Ownership>, now: Time) -> Result<Loaded, Fault> {
    let mut ids = list(&tier.directory).map_err(|error| tier.fault(error))?;
    ids.sort_unstable();
    let known = tier.segments.all();
    for gone in known.iter().filter(|segment| ids.binary_search(&segment.id).is_err()) {
        forget(tier, gone);
    }
    let last_known = known.last().map_or(0, |segment| segment.id);
    let mut loaded = Loaded::default();
    for id in ids {
        if known.is_empty() || id > last_known {
            load_segment(tier, owner, id, now, &mut loaded)?;
        } else if owner.is_some() && !known.iter().any(|segment| segment.id == id) {
            // It could not be read while newer ones could. What it holds may have been replaced or
            // removed by them, which is not known any more.
            discard(tier, id, &mut loaded)?;
        }
    }
    Ok(loaded)
}

/// Takes a segment and what it holds out of sight. Who reads it goes on reading.
pub(super) fn forget(tier: &Tier, segment: &Segment) {
    tier.index.remove_segment(segment.slot);
    tier.segments.remove(segment.slot);
}

fn list(directory: &Path) -> io::Result<Vec<u32>> {
    let mut ids = Vec::new();
    for file in fs::read_dir(directory)? {
        ids.extend(segment::id_of(Path::new(&file?.file_name())));
    }
    Ok(ids)
}

/// Removes a file whose bytes are in nobody's books.
fn discard(tier: &Tier, id: u32, loaded: &mut Loaded) -> Result<(), Fault> {
    let path = tier.directory.join(segment::file_name(id));
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {
            fs::remove_file(&path).map_err(|error| Fault::disk(&path, error))?;
            loaded.foreign += 1;
            Ok(())
        }
        // Nothing of ours ever is anything but a plain file.
        _ => Ok(()),
    }
}

fn load_segment(
    tier: &Tier,
    owner: Option<&Ownership>,
    id: u32,
    now: Time,
    loaded: &mut Loaded,
) -> Result<(), Fault> {
    let path = tier.directory.join(segment::file_name(id));
    let fault = |error| Fault::disk(&path, error);
    // Looked at before it is opened, as opening some things waits.
    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    let file = match OpenOptions::new().read(true).write(owner.is_some()).open(&path) {
        Ok(file) => file,
        // Another process has evicted it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fault(error)),
    };
    let mut header = [0; HEADER_BYTES];
    let whole = segment::read_whole(&file, &mut header, 0).map_err(fault)?;
    match Header::read(&header) {
        Err(HeaderError::Newer(format)) if whole => return Err(Fault::Newer { path, format }),
        Ok(header) if whole && header.id == id && header.seed_check == tier.seed_check() => {}
        _ => {
            // Another process may be about to write its header.
            return if owner.is_some() { discard(tier, id, loaded) } else { Ok(()) };
        }
    }
    let listed = match segment::footer(&file).map_err(fault)? {
        Some(listed) => {
            loaded.segments += 1;
            listed
        }
        None if owner.is_some() => {
            loaded.scanned += 1;
            match mend(&file, loaded).map_err(fault)? {
                listed if listed.is_empty() => return fs::remove_file(&path).map_err(fault),
                listed => listed,
            }
        }
        None => return Ok(()),
    };
    let bytes = file.metadata().map_err(fault)?.len();
    if let Some(segment) = tier.segments.add(id, file, bytes) {
        loaded.entries += tier.enter(&segment, &listed, now);
    }
    Ok(())
}

/// Cuts a segment behind its last whole record and seals it.
fn mend(file: &File, loaded: &mut Loaded) -> io::Result<Vec<FooterEntry>> {
    let length = file.metadata()?.len();
    let (listed, end) = scan(file, length)?;
    loaded.cut_bytes += length - end;
    if !listed.is_empty() {
        file.set_len(end)?;
        let sealed = file.write_all_at(&Trailer::write(&listed, end), end);
        if sealed.is_err() {
            // No room for a footer: the next start scans again. Half of one is no record.
            file.set_len(end)?;
        }
    }
    Ok(listed)
}

/// All whole records of a file, and where they end.
fn scan(file: &File, length: u64) -> io::Result<(Vec<FooterEntry>, u64)> {
    let mut listed = Vec::new();
    let mut end = HEADER_BYTES as u64;
    let mut window = vec![0; WINDOW_BYTES];
    loop {
        window.resize(WINDOW_BYTES, 0);
        let read = read_some(file, &mut window, end)?;
        let head = window[..read].first_chunk::<HEAD_BYTES>().and_then(Head::read);
        let Some(head) = head else { break };
        let front_bytes = head.front_bytes();
        if front_bytes > read {
            window.resize(front_bytes, 0);
            if read_some(file, &mut window, end)? < front_bytes {
                break;
            }
        }
        let next = end + head.record_bytes();
        if !is_sealed(&window[..front_bytes]) || next > length {
            break;
        }
        listed.push(FooterEntry::of(&head, end));
        end = next;
    }
    Ok((listed, end))
}
