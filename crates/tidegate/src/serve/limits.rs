//! Limits that the kernel sets the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_proxy::settings::Process;

/// Descriptors for anything but connections: listeners, logs, event queues, certificates.
const OTHER_FILES: u64 = 512;

/// Raises the limit of open files to the highest allowed, and returns it. The usual soft limit of
/// 1024 is there for programs that use select(2).
pub(super) fn raise_open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// Turns huge pages off. A worker's memory is many small pieces: in pages of 2 MiB some of them would
/// hold all of it resident, and an idle connection would cost a third more than it needs.
pub(super) fn disable_huge_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages cannot be turned off");
    }
}

/// Each request may need a connection to its client and one to a server.
pub(super) fn warn_of_few_files(open_files: Option<u64>, process: &Process) {
    let wanted = u64::try_from(process.connections_max).unwrap_or(u64::MAX);
    let wanted = wanted.saturating_add(OTHER_FILES);
    if let Some(limit) = open_files.filter(|limit| *limit < wanted) {
        tracing::warn!(
            limit,
            connections_max = process.connections_max,
            "the limit of open files is lower than connections_max: idle connections will give way \
             before it is reached (LimitNOFILE= in the systemd unit, or ulimit -Hn)"
        );
    }
}
