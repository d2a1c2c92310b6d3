//! From workers to files, sockets and trouble: with real files and a real socket.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use super::super::{
    Facility, Finish, Format, LogSettings, LogWriter, Privacy, Recording, Sample, Target,
    WriterSettings,
};
use super::*;
use crate::metrics::{LogCounts, LogTotals};
use crate::record::RequestId;

/// A directory of one test, which goes with it.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-telemetry-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a temporary directory");
        Dir(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn writer(queue_max: usize) -> LogWriter {
    LogWriter::start(WriterSettings { queue_max, buffer_bytes: 1024 }).expect("a thread")
}

fn to_target(writer: &LogWriter, target: Target) -> (Arc<Log>, Arc<LogCounts>) {
    let settings = LogSettings {
        name: "main".to_owned(),
        target,
        format: Format::template("$request_id $path").expect("a template"),
        privacy: Privacy::default(),
        flush: Flush::Batch,
        sample: Sample::ALL,
        recording: Recording::default(),
    };
    let counts = Arc::new(LogCounts::default());
    let log = writer.open(settings, Arc::clone(&counts)).expect("the log opens");
    (log, counts)
}

fn to_file(writer: &LogWriter, path: &Path) -> (Arc<Log>, Arc<LogCounts>) {
    to_target(writer, Target::File(path.to_owned()))
}

fn line(logs: &mut WorkerLogs, log: &Arc<Log>, id: u64) {
    let view = LogView { path: b"/a/path", ..LogView::default() };
    logs.write(log, &Record::new(RequestId(id)), &view);
}

fn ids(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).expect("the file is there");
    text.lines()
        .map(|line| {
            let (id, rest) = line.split_once(' ').expect("a whole line");
            assert_eq!(rest, "/a/path");
            u64::from_str_radix(id, 16).expect("an id")
        })
        .collect()
}

/// Waits for the writer thread to get somewhere.
fn wait_until(counts: &LogCounts, what: &str, reached: impl Fn(LogTotals) -> bool) {
    let deadline = Stamp::now() + Duration::from_secs(20);
    while !reached(counts.totals()) {
        assert!(Stamp::now() < deadline, "{what}: {:?}", counts.totals());
        thread::sleep(Duration::from_millis(2));
    }
}

fn finish(writer: LogWriter) {
    assert_eq!(writer.finish(Duration::from_secs(20)), Finish::Complete);
}

#[test]
fn no_line_is_lost_at_the_end() {
    let dir = Dir::new();
    let writer = writer(64);
    let (main, main_counts) = to_file(&writer, &dir.file("main.log"));
    let (other, _) = to_file(&writer, &dir.file("other.log"));
    thread::scope(|scope| {
        for worker in 0..3 {
            let mut logs = writer.worker();
            let (main, other) = (&main, &other);
            scope.spawn(move || {
                for n in 0..1_000 {
                    line(&mut logs, main, worker << 32 | n);
                    // The queue is small: let the writer keep up.
                    if n % 100 == 0 {
                        line(&mut logs, other, worker << 32 | n);
                        thread::sleep(Duration::from_millis(2));
                    }
                }
            });
        }
    });
    finish(writer);
    let mut seen = ids(&dir.file("main.log"));
    for worker in 0..3 {
        let of_worker: Vec<u64> = seen.iter().copied().filter(|id| id >> 32 == worker).collect();
        assert!(of_worker.is_sorted(), "lines of a worker keep their order");
    }
    seen.sort_unstable();
    let expected: Vec<u64> =
        (0..3).flat_map(|worker| (0..1_000).map(move |n| worker << 32 | n)).collect();
    assert_eq!(seen, expected);
    assert_eq!(ids(&dir.file("other.log")).len(), 30);
    let totals = main_counts.totals();
    assert_eq!((totals.written, totals.dropped, totals.failed), (3_000, 0, 0));
    assert_eq!(totals.bytes, fs::metadata(dir.file("main.log")).expect("there").len());
}

#[test]
fn a_flush_writes_what_a_buffer_does_not_fill() {
    let dir = Dir::new();
    let writer = writer(4);
    let (log, counts) = to_file(&writer, &dir.file("main.log"));
    let mode = fs::metadata(dir.file("main.log")).expect("created at once").permissions().mode();
    assert_eq!(mode & 0o137, 0, "not for others: {mode:o}");
    let mut logs = writer.worker();
    line(&mut logs, &log, 1);
    logs.flush();
    wait_until(&counts, "the line", |totals| totals.written == 1);
    assert_eq!(ids(&dir.file("main.log")), [1]);

    // A log that has left the plan stays only as long as it has lines.
    line(&mut logs, &log, 2);
    drop(log);
    logs.flush();
    wait_until(&counts, "the last line", |totals| totals.written == 2);
    let deadline = Stamp::now() + Duration::from_secs(20);
    while !logs.buffers.is_empty() {
        assert!(Stamp::now() < deadline, "the log is closed");
        logs.flush();
    }
    drop(logs);
    finish(writer);
}

#[test]
fn a_full_queue_drops_and_counts_and_never_waits() {
    let dir = Dir::new();
    let writer = writer(2);
    let (log, counts) = to_file(&writer, &dir.file("main.log"));
    let mut logs = writer.worker();
    let blocked = log.block();
    for id in 0..10_000 {
        line(&mut logs, &log, id);
    }
    let dropped = counts.totals().dropped;
    assert!(dropped > 9_000, "{dropped}");
    logs.flush();
    assert_eq!(counts.totals().dropped, dropped, "a flush drops nothing");
    drop(blocked);
    wait_until(&counts, "the queue", |totals| totals.written > 0);
    drop(logs);
    finish(writer);
    let seen = ids(&dir.file("main.log"));
    let totals = counts.totals();
    assert_eq!(totals.written, seen.len() as u64);
    assert_eq!(totals.written + totals.dropped, 10_000);
    assert!(seen.is_sorted() && seen[0] == 0, "the oldest are kept");
}

#[test]
fn a_stuck_target_does_not_hold_the_end_up_for_ever() {
    let dir = Dir::new();
    let writer = writer(2);
    let (log, _) = to_file(&writer, &dir.file("main.log"));
    let mut logs = writer.worker();
    let blocked = log.block();
    line(&mut logs, &log, 1);
    drop(logs);
    assert_eq!(writer.finish(Duration::from_millis(50)), Finish::TimedOut);
    drop(blocked);
}

#[test]
fn a_rotation_opens_the_file_again() {
    let dir = Dir::new();
    let writer = writer(4);
    let (log, counts) = to_file(&writer, &dir.file("main.log"));
    let mut logs = writer.worker();
    line(&mut logs, &log, 1);
    logs.flush();
    wait_until(&counts, "before", |totals| totals.written == 1);
    fs::rename(dir.file("main.log"), dir.file("main.log.1")).expect("rotated");
    line(&mut logs, &log, 2);
    logs.flush();
    wait_until(&counts, "between", |totals| totals.written == 2);
    writer.reopen();
    line(&mut logs, &log, 3);
    logs.flush();
    wait_until(&counts, "after", |totals| totals.written == 3);
    drop(logs);
    finish(writer);
    assert_eq!(ids(&dir.file("main.log.1")), [1, 2]);
    assert_eq!(ids(&dir.file("main.log")), [3]);
}

#[test]
fn a_rotation_that_fails_leaves_the_old_file() {
    let dir = Dir::new();
    let writer = writer(4);
    fs::create_dir(dir.file("logs")).expect("a directory");
    let (log, counts) = to_file(&writer, &dir.file("logs/main.log"));
    fs::rename(dir.file("logs"), dir.file("moved")).expect("moved away");
    writer.reopen();
    let mut logs = writer.worker();
    line(&mut logs, &log, 1);
    drop(logs);
    finish(writer);
    assert_eq!(ids(&dir.file("moved/main.log")), [1]);
    assert_eq!(counts.totals().failed, 1);
}

#[test]
fn a_full_disk_delays_lines_and_the_rest_goes_on() {
    let dir = Dir::new();
    let writer = writer(64);
    symlink("/dev/full", dir.file("main.log")).expect("a link");
    let (full, full_counts) = to_file(&writer, &dir.file("main.log"));
    let (good, good_counts) = to_file(&writer, &dir.file("good.log"));
    let mut logs = writer.worker();
    for id in 0..100 {
        line(&mut logs, &full, id);
        line(&mut logs, &good, id);
    }
    logs.flush();
    wait_until(&good_counts, "the good log", |totals| totals.written == 100);
    wait_until(&full_counts, "a failure", |totals| totals.failed >= 1);
    assert_eq!(full_counts.totals().written, 0);

    fs::remove_file(dir.file("main.log")).expect("unlinked");
    writer.reopen();
    wait_until(&full_counts, "the retry", |totals| totals.written == 100);
    drop(logs);
    finish(writer);
    assert_eq!(ids(&dir.file("main.log")), (0..100).collect::<Vec<u64>>());
    assert_eq!(full_counts.totals().dropped, 0);
}

#[test]
fn a_disk_that_stays_full_costs_lines_but_no_memory() {
    let writer = writer(4096);
    let (full, counts) = to_file(&writer, Path::new("/dev/full"));
    let mut logs = writer.worker();
    let lines_max = 3 * super::super::BACKLOG_BYTES_MAX as u64 / 25;
    for id in 0..lines_max {
        line(&mut logs, &full, id);
    }
    drop(logs);
    finish(writer);
    let totals = counts.totals();
    assert_eq!((totals.written, totals.dropped), (0, lines_max));
    assert!(totals.failed < 10, "a failing target is left alone: {totals:?}");
}

#[test]
fn syslog_gets_one_message_for_each_line() {
    let dir = Dir::new();
    let path = dir.file("log");
    let daemon = UnixDatagram::bind(&path).expect("a socket");
    daemon.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let writer = writer(4);
    let target = Target::Syslog { socket: path.clone(), facility: Facility::Local3 };
    let (log, _) = to_target(&writer, target);
    let mut logs = writer.worker();
    line(&mut logs, &log, 1);
    line(&mut logs, &log, 2);
    logs.flush();
    let receive = |daemon: &UnixDatagram| {
        let mut message = [0; 1024];
        let length = daemon.recv(&mut message).expect("a message");
        String::from_utf8(message[..length].to_vec()).expect("UTF-8")
    };
    for id in 1..=2 {
        let message = receive(&daemon);
        // RFC 5424: <priority>version, time, host, program, process, kind, no data, the line.
        let parts: Vec<&str> = message.splitn(8, ' ').collect();
        assert_eq!(parts[0], "<158>1", "19 * 8 + 6");
        assert!(parts[1].ends_with('Z') && parts[1].len() == 24, "{}", parts[1]);
        assert!(!parts[2].is_empty());
        assert_eq!(parts[3], "tidegate");
        assert_eq!(parts[4], std::process::id().to_string());
        assert_eq!(parts[5..7], ["access", "-"]);
        assert_eq!(parts[7], format!("{id:016x} /a/path"));
    }

    // The daemon restarts: the same path, another socket.
    drop(daemon);
    fs::remove_file(&path).expect("gone");
    let daemon = UnixDatagram::bind(&path).expect("a socket");
    daemon.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    line(&mut logs, &log, 3);
    drop(logs);
    finish(writer);
    assert!(receive(&daemon).ends_with(" 0000000000000003 /a/path"));
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let writer = writer(4);
    let check = |target: Target| {
        let settings = LogSettings {
            name: "main".to_owned(),
            target,
            format: Format::json(),
            privacy: Privacy::default(),
            flush: Flush::Batch,
            sample: Sample::ALL,
            recording: Recording::default(),
        };
        assert!(writer.open(settings, Arc::default()).is_err());
    };
    check(Target::File(PathBuf::from("/nonexistent/main.log")));
    check(Target::Syslog { socket: PathBuf::from("/nonexistent"), facility: Facility::Daemon });
    to_target(&writer, Target::Stdout);
    to_target(&writer, Target::Stderr);
    finish(writer);
}

#[test]
fn a_line_goes_out_at_once_where_a_log_says_so() {
    let dir = Dir::new();
    let writer = writer(4);
    let path = dir.file("main.log");
    let settings = LogSettings {
        name: "main".to_owned(),
        target: Target::File(path.clone()),
        format: Format::template("$request_id $path").expect("a template"),
        privacy: Privacy::default(),
        flush: Flush::Request,
        sample: Sample::ALL,
        recording: Recording::default(),
    };
    let counts = Arc::new(LogCounts::default());
    let log = writer.open(settings, Arc::clone(&counts)).expect("the log opens");
    let mut logs = writer.worker();
    line(&mut logs, &log, 7);
    // Nothing was flushed, and the buffer is far from full.
    wait_until(&counts, "one line", |totals| totals.written == 1);
    assert_eq!(ids(&path), [7]);
    drop(logs);
    finish(writer);
}

#[test]
fn a_log_takes_one_in_so_many_requests() {
    let count = |one_in: u32| {
        let sample = Sample { one_in };
        (0..100_000).filter(|id| sample.takes(RequestId(*id))).count()
    };
    assert_eq!(count(1), 100_000);
    assert_eq!(count(0), 100_000);
    for one_in in [2, 10, 100, 1000] {
        let expected = 100_000 / one_in as usize;
        let found = count(one_in);
        assert!(found.abs_diff(expected) * 5 < expected, "{found} for one in {one_in}");
    }
}
