//! What the kernel tells of the process, read from `/proc` when metrics are read.

use std::fs;

/// The process's resources. What cannot be read (another kernel, `/proc` hidden) is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// CPU time, user and system, in clock ticks of [`TICKS_PER_SECOND`].
    pub cpu_ticks: Option<u64>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
    /// The limit on them.
    pub open_fds_max: Option<u64>,
}

/// The kernel's `USER_HZ`, which is 100 towards user space on all architectures we build for.
pub const TICKS_PER_SECOND: u64 = 100;

impl Process {
    /// Reads them now.
    pub fn read() -> Process {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Process {
            cpu_ticks: cpu_ticks(&stat),
            resident_bytes: first_number(&status, "VmRSS:").map(|kib| kib * 1024),
            open_fds: fs::read_dir("/proc/self/fd").ok().and_then(|dir| {
                // The directory handle itself is one of them, for the moment of counting.
                u64::try_from(dir.count().saturating_sub(1)).ok()
            }),
            open_fds_max: first_number(&limits, "Max open files"),
        }
    }
}

/// `utime` and `stime`, fields 14 and 15 of `/proc/pid/stat`. The command's name before them may
/// hold spaces and parentheses, so counting starts after the last one.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The first number in the line that starts with `label`.
fn first_number(text: &str, label: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_after_the_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 3 0 99";
        assert_eq!(cpu_ticks(stat), Some(200));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
        assert_eq!(cpu_ticks(""), None);
    }

    #[test]
    fn lines_are_found_by_label() {
        let check = |text: &str, expected| {
            assert_eq!(first_number(text, "Max open files"), expected, "{text}");
        };
        check("Limit\nMax open files            1024                 4096   files", Some(1024));
        check("Max open files            unlimited            unlimited", None);
        check("", None);
    }

    #[test]
    fn this_process_has_resources() {
        let process = Process::read();
        assert!(process.cpu_ticks.is_some());
        assert!(process.resident_bytes > Some(100_000));
        assert!(process.open_fds >= Some(3));
        assert!(process.open_fds_max >= process.open_fds);
    }
}
