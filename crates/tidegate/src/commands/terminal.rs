//! Writing to the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use crate::config::render::Colour;

/// Whether standard error is a terminal that wants colours (<https://no-color.org>).
pub(crate) fn colour_of_stderr() -> Colour {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && io::stderr().is_terminal() { Colour::On } else { Colour::Off }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard error.
pub(crate) fn print_error(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
