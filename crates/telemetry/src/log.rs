//! Access logs: a record and some borrowed text become a line, a thread writes it.

mod view;

pub use view::LogView;
