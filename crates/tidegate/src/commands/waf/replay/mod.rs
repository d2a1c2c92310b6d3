//! `tidegate waf replay`: recorded requests run through the rules of two configurations.
//!
//! One thread reads lines, all cores run them, and nothing is kept of a request but what differs. A
//! verdict that differs is run once more with a trace, for the rules behind it, and where the new
//! rules stop what the old ones let pass, for the exclusion that mends it.

mod changes;
mod crew;
mod report;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tidegate_telemetry::Stamp;

use super::trial::Rules;
use super::{STOPPED, load, refuse};
use crate::cli;
use crate::commands::terminal;
use crate::config::Loaded;
use changes::Changes;
use crew::Crew;

/// The longest line that is read; a record holds at most `body_max` of a body, twice as long in
/// escapes.
const LINE_BYTES_MAX: usize = 64 << 20;
/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// The rules on both sides.
pub(super) struct Sides {
    old: Rules,
    new: Rules,
}

pub(super) fn run(arguments: &cli::WafReplay) -> ExitCode {
    let (old, new) = match (load(&arguments.old), load(&arguments.new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(code), _) | (_, Err(code)) => return code,
    };
    let Loaded { settings, warnings, origins, .. } = new;
    let sides = Sides { old: Rules::new(old.settings), new: Rules::new(settings) };
    let changes = match replay(&arguments.logs, &sides) {
        Ok(changes) => changes,
        Err(complaint) => return refuse(&complaint),
    };
    let page = report::Page {
        changes: &changes,
        new: &sides.new,
        sources: &warnings.sources,
        origins: &origins,
    };
    terminal::print(&if arguments.json { page.json() } else { page.text() });
    if changes.differs() { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS }
}

/// Runs all requests; the words of what cannot be read otherwise.
fn replay(logs: &[std::path::PathBuf], sides: &Sides) -> Result<Changes, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let mut crew = Crew::start(scope, sides, threads);
        let mut progress = Progress::start();
        for path in logs {
            let told = |error: io::Error| format!("`{}`: {error}", path.display());
            let mut input = open(path).map_err(told)?;
            let mut number = 0;
            loop {
                let mut line = Vec::new();
                let bytes = read_line(&mut input, &mut line).map_err(told)?;
                if bytes == 0 {
                    break;
                }
                number += 1;
                if !line.trim_ascii().is_empty() {
                    crew.take(format!("{}:{number}", path.display()), line);
                    progress.tell(crew.taken());
                }
            }
        }
        progress.end();
        Ok(crew.finish())
    })
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    Ok(Box::new(BufReader::with_capacity(1 << 20, File::open(path)?)))
}

/// Reads a line; what is longer than any record is an error.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let bytes = io::Read::take(input, LINE_BYTES_MAX as u64).read_until(b'\n', line)?;
    if bytes == LINE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 64 MiB"));
    }
    Ok(bytes)
}

/// What is told on standard error while it runs, if that is a terminal.
struct Progress {
    wanted: Wanted,
    last: Stamp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
}

impl Progress {
    fn start() -> Self {
        let wanted = if io::stderr().is_terminal() { Wanted::Yes } else { Wanted::No };
        Self { wanted, last: Stamp::now() }
    }

    fn tell(&mut self, taken: u64) {
        if self.wanted == Wanted::Yes && self.last.elapsed() >= PROGRESS_EVERY {
            self.last = Stamp::now();
            terminal::print_error(&format!("\r{taken} requests"));
        }
    }

    fn end(&self) {
        if self.wanted == Wanted::Yes {
            terminal::print_error("\r\u{1b}[K");
        }
    }
}
