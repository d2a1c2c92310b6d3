//! `@unconditionalMatch` and `@noMatch`: the value does not matter.

/// The answer to every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconditional {
    /// `@unconditionalMatch`.
    Always,
    /// `@noMatch`.
    Never,
}

impl Unconditional {
    /// Whether it matches; no value is looked at.
    pub fn matches(self) -> bool {
        self == Self::Always
    }
}
