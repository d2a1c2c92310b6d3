//! What rules ask beyond their request: block lists in DNS (`@rbl`) and programs that judge uploaded
//! files (`@inspectFile`).
//!
//! Only the threads of the inspection pool ask, and they wait. A look-up goes to a task on the control
//! thread, which has the resolver; its answer is kept for as long as DNS says, within bounds. A
//! program is run by the thread itself, in a process group of its own that is ended when its time is
//! up. No answer in time is no match, and is told in the event log at most once a minute.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::Timespec;
use tidegate_proxy::upstream::Resolver;
use tidegate_telemetry::clock::Stamp;
use tidegate_waf::Outside;
use tidegate_waf::operator::inspect_file::{Inspector, Opinion};
use tokio::sync::{Semaphore, mpsc};

/// Look-ups that may wait for the task. More wait than there are threads only if the control thread
/// stands still.
const ASKED_MAX: usize = 256;
/// Look-ups under way at once.
const ASKED_AT_ONCE_MAX: usize = 64;
/// How long an answer is kept at least and at most, and how long it is kept that there was none.
const LIFE_MIN: Duration = Duration::from_secs(1);
const LIFE_MAX: Duration = Duration::from_mins(10);
const LIFE_OF_NONE: Duration = Duration::from_mins(1);
/// How often the same trouble is told of.
const TOLD_EVERY_NANOS: u64 = 60_000_000_000;
/// How long a program that has said its word may take to end.
const ENDED_LOOKED_EVERY: Duration = Duration::from_millis(5);

/// What the configuration says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// For one look-up.
    pub(crate) lookup_timeout: Duration,
    /// Answers that are kept.
    pub(crate) answers_max: usize,
    /// For one run of a program.
    pub(crate) program_timeout: Duration,
}

/// Only the pool's threads take it, each for a look into a table.
#[expect(clippy::disallowed_types, reason = "no worker ever takes this lock")]
type Guarded<T> = std::sync::Mutex<T>;

/// Answers what rules ask.
#[derive(Debug)]
pub(crate) struct Beyond {
    settings: Guarded<Settings>,
    asks: mpsc::Sender<Ask>,
    answers: Guarded<Answers>,
    lookup_told: AtomicU64,
    program_told: AtomicU64,
}

/// A name whose addresses are wanted.
#[derive(Debug)]
struct Ask {
    name: String,
    time_max: Duration,
    answer: SyncSender<Answer>,
}

/// Addresses, and how long they are good for.
type Answer = io::Result<(Vec<Ipv4Addr>, Duration)>;

#[derive(Debug, Default)]
struct Answers(HashMap<String, (Arc<[Ipv4Addr]>, Stamp)>);

impl Beyond {
    /// Begins to answer; called on the control thread, within its runtime.
    pub(crate) fn start(settings: Settings, resolver: Arc<Resolver>) -> Arc<Beyond> {
        let (asks, asked) = mpsc::channel(ASKED_MAX);
        tokio::task::spawn_local(look_up(asked, resolver));
        Arc::new(Beyond {
            settings: Guarded::new(settings),
            asks,
            answers: Guarded::default(),
            lookup_told: AtomicU64::new(0),
            program_told: AtomicU64::new(0),
        })
    }

    /// Takes what a new configuration says.
    pub(crate) fn adopt(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, name: &str, time_max: Duration) -> Answer {
        let (answer, answered) = sync_channel(1);
        let ask = Ask { name: name.to_owned(), time_max, answer };
        let full = |_| io::Error::other("too many look-ups wait");
        self.asks.try_send(ask).map_err(full)?;
        // The task has the same limit; a little more leaves it the last word.
        let patience = time_max + Duration::from_millis(100);
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        answered.recv_timeout(patience).map_err(late)?
    }
}

impl Outside for Beyond {
    fn addresses(&self, name: &str) -> Vec<Ipv4Addr> {
        let Settings { lookup_timeout, answers_max, .. } = self.settings();
        let now = Stamp::now();
        let kept = self.answers.lock().unwrap_or_else(PoisonError::into_inner).find(name, now);
        if let Some(known) = kept {
            return known.to_vec();
        }
        match self.ask(name, lookup_timeout) {
            Ok((addresses, lasts)) => {
                let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.keep(name, &addresses, Stamp::now() + lasts, answers_max);
                addresses
            }
            Err(error) => {
                if is_due(&self.lookup_told) {
                    tracing::warn!(name, %error, "a block list does not answer; it does not match");
                }
                Vec::new()
            }
        }
    }

    fn judge(&self, inspector: &Inspector, file: &Path) -> Opinion {
        let time_max = self.settings().program_timeout.min(inspector.time_max);
        let printed = run(&inspector.program, file, time_max);
        printed.map_or_else(
            |error| {
                if is_due(&self.program_told) {
                    let program = inspector.program.display();
                    tracing::warn!(%program, %error, "no word on an uploaded file; it passes");
                }
                Opinion::Silent
            },
            |printed| Inspector::interpret(&printed),
        )
    }
}

impl Answers {
    fn find(&self, name: &str, now: Stamp) -> Option<Arc<[Ipv4Addr]>> {
        let (addresses, until) = self.0.get(name)?;
        (now < *until).then(|| Arc::clone(addresses))
    }

    fn keep(&mut self, name: &str, addresses: &[Ipv4Addr], until: Stamp, answers_max: usize) {
        if self.0.len() >= answers_max {
            let now = Stamp::now();
            self.0.retain(|_, (_, until)| now < *until);
        }
        // A flood of names that nobody asked for before is looked up, and not kept.
        if self.0.len() < answers_max {
            self.0.insert(name.to_owned(), (addresses.into(), until));
        }
    }
}

/// Looks names up for as long as somebody may ask.
async fn look_up(mut asked: mpsc::Receiver<Ask>, resolver: Arc<Resolver>) {
    let at_once = Arc::new(Semaphore::new(ASKED_AT_ONCE_MAX));
    while let Some(Ask { name, time_max, answer }) = asked.recv().await {
        let Ok(permit) = Arc::clone(&at_once).acquire_owned().await else { return };
        let resolver = Arc::clone(&resolver);
        tokio::task::spawn_local(async move {
            let found = tokio::time::timeout(time_max, resolver.addresses_of(&name)).await;
            let late = |_| io::Error::from(io::ErrorKind::TimedOut);
            let result = found.map_err(late).flatten().map(|(addresses, lasts)| {
                let lasts = if addresses.is_empty() { LIFE_OF_NONE } else { lasts };
                (addresses, lasts.clamp(LIFE_MIN, LIFE_MAX))
            });
            // Who has asked may have given up.
            let _ = answer.try_send(result);
            drop(permit);
        });
    }
}

/// Whether the last time was long enough ago; then it counts as this one.
fn is_due(told: &AtomicU64) -> bool {
    let now = Stamp::now().as_nanos();
    let before = told.load(Ordering::Relaxed);
    let due = before == 0 || now.saturating_sub(before) > TOLD_EVERY_NANOS;
    due && told.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// What a program prints about a file, up to [`Inspector::WORDS_BYTES_MAX`].
fn run(program: &Path, file: &Path, time_max: Duration) -> io::Result<Vec<u8>> {
    let end = Stamp::now() + time_max;
    let mut child = Command::new(program)
        .arg(file)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let result = match child.stdout.take() {
        Some(stdout) => read(stdout, end).and_then(|printed| {
            // Whoever has said nothing and is not done has not approved either.
            await_end(&mut child, end)?;
            Ok(printed)
        }),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    };
    // What it has started goes with it; of one that has ended there may be nothing left.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    result
}

fn read(mut stdout: ChildStdout, end: Stamp) -> io::Result<Vec<u8>> {
    let mut printed = Vec::new();
    let mut room = [0; 1024];
    while printed.len() < Inspector::WORDS_BYTES_MAX {
        let left = left(end)?;
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&stdout, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            result => drop(result?),
        }
        let count = stdout.read(&mut room)?;
        if count == 0 {
            break;
        }
        printed.extend_from_slice(&room[..count]);
    }
    printed.truncate(Inspector::WORDS_BYTES_MAX);
    Ok(printed)
}

fn await_end(child: &mut Child, end: Stamp) -> io::Result<()> {
    while child.try_wait()?.is_none() {
        std::thread::sleep(left(end)?.min(ENDED_LOOKED_EVERY));
    }
    Ok(())
}

fn left(end: Stamp) -> io::Result<Duration> {
    let left = end.since(Stamp::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_are_heard_within_their_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "content").unwrap();
        let program = |script: &str| {
            let path = directory.path().join("program");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let patient = Duration::from_mins(1);
        let said = |script: &str| run(&program(script), &file, patient).map_err(|it| it.kind());
        assert_eq!(said("echo 1 clean"), Ok(b"1 clean\n".to_vec()));
        assert_eq!(said("cat \"$1\"; env | grep -c HOME"), Ok(b"content0\n".to_vec()));
        assert_eq!(said("exit 3"), Ok(Vec::new()));
        let long = said("yes").map(|words| words.len());
        assert_eq!(long, Ok(Inspector::WORDS_BYTES_MAX));
        let short = Duration::from_millis(50);
        for script in ["sleep 60", "echo 1; exec >&-; sleep 60", "sleep 60 & echo 0"] {
            let late = run(&program(script), &file, short).map_err(|error| error.kind());
            assert_eq!(late, Err(io::ErrorKind::TimedOut), "{script}");
        }
        let missing = run(&directory.path().join("none"), &file, patient);
        assert_eq!(missing.map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn answers_are_kept_until_their_time_and_not_without_bound() {
        let mut answers = Answers::default();
        let now = Stamp::now();
        let address = [Ipv4Addr::new(127, 0, 0, 2)];
        let later = now + Duration::from_hours(1);
        answers.keep("a", &address, later, 2);
        answers.keep("b", &[], now, 2);
        assert_eq!(answers.find("a", now).as_deref(), Some(&address[..]));
        assert_eq!(answers.find("b", now), None);
        answers.keep("c", &[], later, 2);
        answers.keep("d", &[], later, 2);
        assert_eq!(answers.find("c", now).as_deref(), Some(&[][..]));
        assert_eq!(answers.find("d", now), None);
    }
}
