//! The one call into LMDB that Rust cannot vouch for.

use std::path::Path;

use heed::{Env, EnvOpenOptions, WithoutTls};

/// Opens the LMDB environment in `directory`, of at most `map_bytes` bytes, with room for
/// `databases` databases.
pub(super) fn open(
    directory: &Path,
    map_bytes: usize,
    databases: u32,
) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes).max_dbs(databases);
    #[expect(unsafe_code, reason = "LMDB maps its file, so heed's `open` is unsafe to call")]
    // SAFETY: the map must not change under LMDB's readers but by LMDB, and not be opened twice by
    // one process. The caller holds the store's owner lock, so no other gate writes the file and
    // this process opens it once; whoever else edits files below the gate's state directory could
    // as well edit the gate. The file's pages have been checked to be within its bounds.
    unsafe {
        options.open(directory)
    }
}
