//! One test asked of one content, and what a match of it captures.

use std::ops::Range;
use std::path::Path;

use super::contents::{ChainId, ContentId};
use super::evaluate::{Answer, Evaluation, Run};
use super::values::TxValue;
use crate::libinjection;
use crate::operator::dns_list::BlockList;
use crate::operator::geo::Database;
use crate::operator::identity::Identity;
use crate::operator::inspect_file::{self, Opinion};
use crate::operator::{encoding, number};
use crate::pattern::{Match, Pattern, PatternId};
use crate::program::{Test, TxSlot};
use crate::seclang::setting::Switch;

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Answer::Yes } else { Answer::No }
    }
}

impl Run<'_> {
    /// Whether the test matches a content that came out of a chain, its polarity aside.
    pub(super) fn ask(&mut self, test: &Test, chain: ChainId, content: ContentId) -> Answer {
        if let Some(pattern) = test.prefiltered()
            && self.evaluation == Evaluation::Prefiltered
        {
            let (contents, asking) = (&mut self.state.contents, &mut self.worker.asking);
            let candidates = contents.candidates(self.program, self.half, chain, content, asking);
            if !candidates.is_some_and(|candidates| candidates.contains(pattern)) {
                return Answer::No;
            }
        }
        if test.reads() {
            self.state.contents.count(content);
        }
        match test {
            Test::Always => Answer::Yes,
            Test::Never => Answer::No,
            Test::Pattern(id, pattern) | Test::EveryMatch(id, pattern) => {
                self.search(*id, pattern, content)
            }
            Test::PatternText(source) => {
                let mut expanded = Vec::new();
                self.expand(source, &mut expanded);
                let found =
                    self.worker.expanded.is_match(&expanded, self.state.contents.bytes(content));
                self.judge(found)
            }
            Test::Phrases(_, phrases) => {
                phrases.find(self.state.contents.bytes(content)).is_some().into()
            }
            Test::Sqli => libinjection::sqli(self.state.contents.bytes(content)).is_some().into(),
            Test::Xss => libinjection::xss(self.state.contents.bytes(content)).is_some().into(),
            Test::Text(relation, argument) => {
                let mut expanded = Vec::new();
                let argument = if let Some(constant) = argument.constant() {
                    constant
                } else {
                    self.expand(argument, &mut expanded);
                    &expanded
                };
                let value = self.state.contents.bytes(content);
                relation.find(value, argument).is_some().into()
            }
            Test::Number(comparison, argument) => {
                let mut expanded = Vec::new();
                self.expand(argument, &mut expanded);
                let value = number::parse(self.state.contents.bytes(content));
                comparison.holds(value, number::parse(&expanded)).into()
            }
            Test::Constant(comparison, argument) => {
                let value = number::parse(self.state.contents.bytes(content));
                comparison.holds(value, *argument).into()
            }
            Test::Addresses(set) => set.contains_text(self.state.contents.bytes(content)).into(),
            Test::ByteRange(range) => {
                range.find(self.state.contents.bytes(content)).is_some().into()
            }
            Test::Geo(database) => self.locate(database, content),
            Test::BlockList(list) => self.is_listed(list, content),
            Test::InspectFile(inspector) => self.is_rejected(inspector, content),
            Test::UrlEncoding => {
                encoding::find_url_flaw(self.state.contents.bytes(content)).is_some().into()
            }
            Test::Utf8Encoding => {
                encoding::find_utf8_flaw(self.state.contents.bytes(content)).is_some().into()
            }
            Test::Identity(kind, id, pattern) => {
                self.identity(*kind, *id, pattern, content).is_some().into()
            }
        }
    }

    fn search(&mut self, id: PatternId, pattern: &Pattern, content: ContentId) -> Answer {
        let found =
            pattern.is_match(&mut self.worker.caches, id, self.state.contents.bytes(content));
        self.judge(found)
    }

    /// Whether the database knows where an address is; what it knows becomes `GEO`.
    fn locate(&mut self, database: &Database, content: ContentId) -> Answer {
        let text = std::str::from_utf8(self.state.contents.bytes(content)).unwrap_or_default();
        let place = text.parse().ok().and_then(|address| database.look_up(address));
        let Some(place) = place else { return Answer::No };
        self.state.geo.clear();
        for (name, value) in place.fields() {
            let value = self.state.contents.intern(value.as_bytes());
            self.state.geo.push((name, value));
        }
        Answer::Yes
    }

    fn is_listed(&self, list: &BlockList, content: ContentId) -> Answer {
        let key = self.program.settings.http_bl_key.as_deref();
        let (Some(outside), Ok(name)) =
            (self.outside, list.query(self.state.contents.bytes(content), key))
        else {
            return Answer::No;
        };
        outside.addresses(&name).into_iter().any(|address| list.interpret(address).matches()).into()
    }

    fn is_rejected(&self, inspector: &inspect_file::Inspector, content: ContentId) -> Answer {
        let path = std::str::from_utf8(self.state.contents.bytes(content));
        let (Some(outside), Ok(path)) = (self.outside, path) else { return Answer::No };
        matches!(outside.judge(inspector, Path::new(path)), Opinion::Rejected(_)).into()
    }

    fn judge(&mut self, found: Match) -> Answer {
        match found {
            Match::Yes => Answer::Yes,
            Match::No => Answer::No,
            Match::LimitsExceeded => {
                self.state.pattern_limits = Switch::On;
                Answer::No
            }
        }
    }

    /// The first number that the pattern finds and whose check digits are right.
    fn identity(
        &mut self,
        kind: Identity,
        id: PatternId,
        pattern: &Pattern,
        content: ContentId,
    ) -> Option<Range<usize>> {
        let worker = &mut *self.worker;
        let bytes = self.state.contents.bytes(content);
        kind.find(bytes, |from| {
            let found = pattern.captures(&mut worker.caches, id, bytes, from, &mut worker.captures);
            worker.captures.group(0).filter(|_| found == Match::Yes)
        })
    }

    /// Fills `TX:0` to `TX:9` with what the test matched.
    pub(super) fn capture(&mut self, test: &Test, content: ContentId) {
        let mut captured = [const { None }; TxSlot::CAPTURES];
        let bytes = self.state.contents.bytes(content);
        match test {
            Test::Pattern(id, pattern) => {
                let worker = &mut *self.worker;
                pattern.captures(&mut worker.caches, *id, bytes, 0, &mut worker.captures);
                for (group, captured) in captured.iter_mut().enumerate() {
                    *captured = worker.captures.group(group);
                }
            }
            Test::EveryMatch(id, pattern) => {
                let worker = &mut *self.worker;
                let mut from = 0;
                let mut filled = 0;
                while filled < captured.len() && from <= bytes.len() {
                    let found = pattern.captures(
                        &mut worker.caches,
                        *id,
                        bytes,
                        from,
                        &mut worker.captures,
                    );
                    let whole = worker.captures.group(0).filter(|_| found == Match::Yes);
                    let Some(whole) = whole else { break };
                    for group in 0..worker.captures.len().min(captured.len() - filled) {
                        captured[filled] = worker.captures.group(group);
                        filled += 1;
                    }
                    from = whole.end.max(whole.start + 1);
                }
            }
            Test::Phrases(_, phrases) => {
                captured[0] = phrases.find(bytes).map(|found| found.range);
            }
            Test::Identity(kind, id, pattern) => {
                captured[0] = self.identity(*kind, *id, pattern, content);
            }
            Test::Sqli => {
                if let Some(fingerprint) = libinjection::sqli(bytes) {
                    let value = self.state.tx.store(fingerprint.as_bytes());
                    self.set_captures([Some(value)].into_iter());
                }
                return;
            }
            _ => captured[0] = Some(0..bytes.len()),
        }
        let state = &mut *self.state;
        let bytes = state.contents.bytes(content);
        let tx = &mut state.tx;
        let values = captured.map(|range| range.map(|range| tx.store(&bytes[range])));
        self.set_captures(values.into_iter());
    }

    fn set_captures(&mut self, mut values: impl Iterator<Item = Option<TxValue>>) {
        for slot in 0..TxSlot::CAPTURES {
            #[expect(clippy::cast_possible_truncation, reason = "there are ten")]
            let slot = TxSlot(slot as u16);
            self.state.tx.set_slot(slot, values.next().flatten().unwrap_or_default());
        }
    }
}
