//! When something was given, in an order that all gates agree on.

/// A time and the gate that gave it. Of two gates that write the same variable, the later stamp
/// wins; stamps of different gates are never equal. A gate's stamps rise even if its clock does not
/// (hybrid logical clocks, Kulkarni and others 2014, with the counter folded into the time).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub(super) u64);

const ORIGIN_BITS: u32 = 16;

impl Stamp {
    /// Before all others: what nobody has given a value, such as a counter that began with an
    /// increment.
    pub const NONE: Self = Self(0);

    /// The stamp of what gate `origin` gives at `now_ms` in place of what was given at `older`.
    pub fn after(older: Self, now_ms: u64, origin: u16) -> Self {
        let time_ms = now_ms.max((older.0 >> ORIGIN_BITS) + 1);
        Self(time_ms << ORIGIN_BITS | u64::from(origin))
    }

    /// The next of the same gate.
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1 << ORIGIN_BITS))
    }

    /// As a number, for the wire; in the same order.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// From the number.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_stamps_are_greater_and_tell_gates_apart() {
        let first = Stamp::after(Stamp::NONE, 1_000, 7);
        assert!(first > Stamp::NONE);
        assert!(Stamp::after(first, 900, 0) > first, "a clock that lags still comes after");
        assert!(Stamp::after(first, 1_000, 0) > first, "so does the same millisecond");
        assert_ne!(Stamp::after(Stamp::NONE, 1_000, 8), first);
        assert_eq!(Stamp::from_bits(first.to_bits()), first);
    }
}
