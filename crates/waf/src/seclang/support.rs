//! Whether the engine has what a table lists.

/// Whether the engine has what the language names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does what the reference says.
    Full,
    /// It may be switched off, which it is; switching it on is an error. The reason.
    OffOnly(&'static str),
    /// It is read, has no effect, and is noted; the reason.
    Noted(&'static str),
    /// It is an error; the reason and what serves instead.
    Refused(&'static str),
}
