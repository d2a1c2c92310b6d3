//! The five phases in which rules run.

use std::fmt;

/// When a rule runs, in the order of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    /// Phase 1: the request's head is known.
    RequestHeaders = 1,
    /// Phase 2: the request's body is known. Rules that name no phase run here.
    RequestBody = 2,
    /// Phase 3: the response's head is known.
    ResponseHeaders = 3,
    /// Phase 4: the response's body is known.
    ResponseBody = 4,
    /// Phase 5: the response is sent; nothing can be stopped any more.
    Logging = 5,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Self; 5] = [
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
        Self::Logging,
    ];

    /// 1 to 5, as rules write it.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// 0 to 4, for tables with a row per phase.
    pub const fn index(self) -> usize {
        self as usize - 1
    }

    /// Reads `1` to `5`, or `request`, `response`, `logging` in any case, which stand for 2, 4 and 5.
    pub fn named(word: &[u8]) -> Option<Self> {
        match word {
            b"1" => Some(Self::RequestHeaders),
            b"2" => Some(Self::RequestBody),
            b"3" => Some(Self::ResponseHeaders),
            b"4" => Some(Self::ResponseBody),
            b"5" => Some(Self::Logging),
            name if name.eq_ignore_ascii_case(b"request") => Some(Self::RequestBody),
            name if name.eq_ignore_ascii_case(b"response") => Some(Self::ResponseBody),
            name if name.eq_ignore_ascii_case(b"logging") => Some(Self::Logging),
            _ => None,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}
