//! What a rule asks about a value: its operator, compiled.

use std::sync::Arc;

use super::Text;
use crate::operator::address::Addresses;
use crate::operator::byte_range::ByteRange;
use crate::operator::dns_list::BlockList;
use crate::operator::geo::Database;
use crate::operator::identity::Identity;
use crate::operator::inspect_file;
use crate::operator::number::Comparison;
use crate::operator::phrases::Phrases;
use crate::operator::text::Relation;
use crate::pattern::{Pattern, PatternId};

/// Whether a rule matches where its operator does, or where it does not (`!@`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polarity {
    Matches,
    MatchesNot,
}

/// An operator with its argument.
#[derive(Debug)]
pub(crate) enum Test {
    Always,
    Never,
    /// `rx`; the pattern has its number in the prefilter too.
    Pattern(PatternId, Arc<Pattern>),
    /// `rxGlobal`: every match, not only the first.
    EveryMatch(PatternId, Arc<Pattern>),
    /// `rx` with macros: compiled when its argument is known.
    PatternText(Text),
    /// `pm`, `pmFromFile`; numbered like a pattern for the prefilter.
    Phrases(PatternId, Arc<Phrases>),
    Sqli,
    Xss,
    Text(Relation, Text),
    Number(Comparison, Text),
    /// A numeric comparison with a number that is known now.
    Constant(Comparison, i64),
    Addresses(Addresses),
    ByteRange(ByteRange),
    UrlEncoding,
    Geo(Arc<Database>),
    BlockList(BlockList),
    InspectFile(inspect_file::Inspector),
    Utf8Encoding,
    Identity(Identity, PatternId, Arc<Pattern>),
}

impl Test {
    /// Whether asking goes through the whole value.
    pub(crate) fn reads(&self) -> bool {
        !matches!(self, Test::Always | Test::Never | Test::Constant(..) | Test::Number(..))
    }

    /// Whether the answer comes from outside, and so may take long.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Test::BlockList(_) | Test::InspectFile(_))
    }

    /// The number under which the prefilter knows what this test needs, if it does.
    pub(crate) fn prefiltered(&self) -> Option<PatternId> {
        match self {
            Test::Pattern(id, _)
            | Test::EveryMatch(id, _)
            | Test::Phrases(id, _)
            | Test::Identity(_, id, _) => Some(*id),
            _ => None,
        }
    }
}
