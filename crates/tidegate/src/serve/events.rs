//! What happens in the process, as lines on standard error.
//!
//! On a terminal or in a file a line begins with the time in UTC and the level. Where standard error
//! goes to the journal, which keeps the time itself, it begins with the level as sd-daemon(3) writes
//! it. Control characters in values are escaped, so that no value can forge a line.

use std::env;
use std::fmt::{self, Write as _};
use std::io::Write as _;

use rustix::fs::fstat;
use tidegate_telemetry::clock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The variable that holds the lowest level shown: `error`, `warn`, `info` (the default), `debug`.
const LEVEL_VARIABLE: &str = "TIDEGATE_LOG";

/// Shows the events of this process from now on.
pub(super) fn install() {
    let level = env::var(LEVEL_VARIABLE).ok().and_then(|level| level.parse().ok());
    let lines = Lines { level: level.unwrap_or(LevelFilter::INFO), style: Style::of_stderr() };
    // Set already: nothing else in the program does that, and the first would be as good.
    let _ = tracing::subscriber::set_global_default(lines);
}

/// How a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Time and level.
    Timed,
    /// The level for the journal.
    Journal,
}

impl Style {
    /// The journal says which file it reads from; only then is standard error this file
    /// (systemd.exec(5), `$JOURNAL_STREAM`).
    fn of_stderr() -> Style {
        let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
        let same = fstat(std::io::stderr())
            .is_ok_and(|stat| format!("{}:{}", stat.st_dev, stat.st_ino) == stream);
        if same { Style::Journal } else { Style::Timed }
    }
}

#[derive(Debug)]
struct Lines {
    level: LevelFilter,
    style: Style,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // What libraries have to tell below a warning is for those who work on them.
        let ours = metadata.target().starts_with("tidegate");
        *metadata.level() <= self.level && (ours || *metadata.level() <= Level::WARN)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event, self.style, clock::unix_millis());
        // A standard error that is closed or full leaves nobody to tell.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn line(event: &Event<'_>, style: Style, unix_millis: u64) -> String {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let mut line = String::with_capacity(128);
    let level = *event.metadata().level();
    // Writing to a string cannot fail.
    let _ = match style {
        Style::Journal => write!(line, "<{}>", priority(level)),
        Style::Timed => {
            // At an upgrade two processes write here.
            write!(line, "{} {level:<5} [{}] ", Utc(unix_millis), std::process::id())
        }
    };
    let _ = write!(Escaped(&mut line), "{}", fields.message);
    line.push_str(&fields.rest);
    line.push('\n');
    line
}

/// The priority of syslog (RFC 5424, section 6.2.1).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// The message of an event, and its other fields as ` name=value`.
#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(Escaped(&mut self.rest), " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let bare = !value.is_empty() && !value.contains([' ', '"', '=']);
        if bare || field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }
}

/// Writes control characters as Rust does in literals.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if character.is_control() {
                self.0.extend(character.escape_default());
            } else {
                self.0.push(character);
            }
        }
        Ok(())
    }
}

/// Milliseconds since 1970 as RFC 3339 writes them.
struct Utc(u64);

impl fmt::Display for Utc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0 / 1000, self.0 % 1000);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        // Days since 0000-03-01, in eras of 400 years; a year that begins in March has its leap day
        // at the end.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        write!(
            formatter,
            "{:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
            era * 400 + year + next_year,
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        let check = |unix_millis, expected: &str| {
            assert_eq!(Utc(unix_millis).to_string(), expected);
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_001, "2000-02-29T00:00:00.001Z");
        check(951_868_800_000, "2000-03-01T00:00:00.000Z");
        check(1_767_225_599_999, "2025-12-31T23:59:59.999Z");
        check(4_107_542_399_000, "2100-02-28T23:59:59.000Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut line = String::new();
        write!(Escaped(&mut line), "a\nb\x1b[31m ü").expect("a string takes all");
        assert_eq!(line, "a\\nb\\u{1b}[31m ü");
    }
}
