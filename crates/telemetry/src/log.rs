//! Access logs: a record and some borrowed text become a line, a thread writes it.
//!
//! A [`Format`] is compiled once, from a name or a template. When a request ends, its worker lends
//! the text it still holds as a [`LogView`], and [`WorkerLogs::write`] formats the line straight into
//! a buffer: nothing is copied before, and nothing is allocated once buffers go round. A
//! [`LogWriter`]'s thread does all writing. What a log may tell of people ([`Privacy`]) is decided
//! where a value is taken, so formats cannot get around it.
//!
//! Fields are declared once, in `field`; `docs/logs.md` is their [`reference()`].

mod buffers;
mod entry;
mod escape;
mod field;
mod format;
mod number;
mod privacy;
mod reference;
mod rules;
mod sink;
#[cfg(test)]
mod tests;
mod time;
mod value;
mod view;
mod writer;

pub use buffers::{FLUSH_EVERY, WorkerLogs};
pub use entry::{Entry, Keeps};
pub use format::{Content, Format, FormatError, FormatProblem};
pub use privacy::{AddressPrivacy, HashKey, Keep, Privacy};
pub use reference::reference;
pub use sink::{Facility, Target};
pub use view::{LogView, RuleEffect, RuleView};
pub use writer::{
    BACKLOG_BYTES_MAX, Finish, Flush, Log, LogSettings, LogWriter, Recording, Sample,
    WriterSettings,
};
