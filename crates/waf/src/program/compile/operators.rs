//! Operators: arguments read, patterns and phrase lists numbered for the prefilter.

use std::sync::Arc;

use super::Compiler;
use crate::inspection::Half;
use crate::operator::Fault as OperatorFault;
use crate::operator::address::Addresses;
use crate::operator::byte_range::ByteRange;
use crate::operator::dns_list::BlockList;
use crate::operator::geo::Database;
use crate::operator::identity::Identity;
use crate::operator::inspect_file;
use crate::operator::number::{self, Comparison};
use crate::operator::phrases::Phrases;
use crate::operator::text::Relation;
use crate::pattern::{Options, Pattern, PatternId, Requirement};
use crate::program::Test;
use crate::seclang::{Code, Location, OperatorCall, OperatorName};

impl Compiler<'_> {
    /// The test of an operator; [`Test::Never`] after a mistake, which is then among the diagnostics.
    pub(super) fn test(&mut self, call: &OperatorCall, half: Half) -> Test {
        use OperatorName as O;
        let at = &call.location;
        let literal = call.argument.literal();
        let text =
            |kind| move |compiler: &mut Self| Test::Text(kind, compiler.text(at, &call.argument));
        match call.name {
            O::UnconditionalMatch => Test::Always,
            O::Rx | O::RxGlobal => match literal {
                Some(source) => match self.pattern(at, source, half) {
                    Some((id, pattern)) if call.name == O::Rx => Test::Pattern(id, pattern),
                    Some((id, pattern)) => Test::EveryMatch(id, pattern),
                    None => Test::Never,
                },
                None => Test::PatternText(self.text(at, &call.argument)),
            },
            O::Pm => self.phrases(at, literal, half, Phrases::parse),
            O::PmFromFile => match self.data_file(at, literal) {
                Some(data) => self.phrases(at, Some(&data), half, |data| Phrases::read([data])),
                None => Test::Never,
            },
            O::DetectSqli => Test::Sqli,
            O::DetectXss => Test::Xss,
            O::StrEq => text(Relation::Equal)(self),
            O::Contains | O::StrMatch => text(Relation::Containing)(self),
            O::ContainsWord => text(Relation::ContainingWord)(self),
            O::Within => text(Relation::Within)(self),
            O::BeginsWith => text(Relation::Beginning)(self),
            O::EndsWith => text(Relation::Ending)(self),
            O::Eq => self.comparison(call, Comparison::Equal),
            O::Gt => self.comparison(call, Comparison::Greater),
            O::Ge => self.comparison(call, Comparison::AtLeast),
            O::Lt => self.comparison(call, Comparison::Less),
            O::Le => self.comparison(call, Comparison::AtMost),
            O::IpMatch => {
                let parsed = Addresses::parse(literal.unwrap_or_default());
                self.parsed(at, parsed, Test::Addresses)
            }
            O::IpMatchFromFile => match self.data_file(at, literal) {
                Some(data) => {
                    let parsed = Addresses::read([&*data]);
                    self.parsed(at, parsed, Test::Addresses)
                }
                None => Test::Never,
            },
            O::ValidateByteRange => {
                let parsed = ByteRange::parse(literal.unwrap_or_default());
                self.parsed(at, parsed, Test::ByteRange)
            }
            O::ValidateUrlEncoding => Test::UrlEncoding,
            O::ValidateUtf8Encoding => Test::Utf8Encoding,
            O::VerifyCc => self.identity(at, literal, half, Identity::PaymentCard),
            O::VerifyCpf => self.identity(at, literal, half, Identity::Cpf),
            O::VerifySsn => self.identity(at, literal, half, Identity::Ssn),
            O::VerifySvnr => self.identity(at, literal, half, Identity::Svnr),
            // The reader has refused all of these but the first.
            O::NoMatch
            | O::FuzzyHash
            | O::GsbLookup
            | O::IpMatchFromDataset
            | O::PmFromDataset
            | O::RestPath
            | O::Rsub
            | O::ValidateDtd
            | O::ValidateHash
            | O::ValidateNid
            | O::ValidateSchema => Test::Never,
            O::Rbl => {
                let parsed = BlockList::parse(literal.unwrap_or_default());
                self.parsed(at, parsed, Test::BlockList)
            }
            O::InspectFile => {
                let parsed = inspect_file::Inspector::parse(literal.unwrap_or_default());
                self.parsed(at, parsed, Test::InspectFile)
            }
            O::GeoLookup => {
                if let Some(database) = &self.geo {
                    return Test::Geo(Arc::clone(database));
                }
                // As in ModSecurity. Version 3.3 of the Core Rule Set has such a rule for those who ask
                // for it, and has to load for those who do not.
                let message = "this never matches: `SecGeoLookupDb` names no database before it";
                self.note(at, message.to_owned());
                Test::Never
            }
        }
    }

    fn comparison(&mut self, call: &OperatorCall, comparison: Comparison) -> Test {
        match call.argument.literal() {
            Some(bytes) => Test::Constant(comparison, number::parse(bytes)),
            None => Test::Number(comparison, self.text(&call.location, &call.argument)),
        }
    }

    fn parsed<T>(
        &mut self,
        at: &Location,
        parsed: Result<T, OperatorFault>,
        test: impl FnOnce(T) -> Test,
    ) -> Test {
        match parsed {
            Ok(argument) => test(argument),
            Err(fault) => {
                self.refuse(at, Code::Value, fault.message, fault.hint.map(Into::into));
                Test::Never
            }
        }
    }

    /// A pattern and its number; equal sources share both.
    fn pattern(
        &mut self,
        at: &Location,
        source: &[u8],
        half: Half,
    ) -> Option<(PatternId, Arc<Pattern>)> {
        if let Some(known) = self.patterns.get(&(half, source.into())) {
            return Some(known.clone());
        }
        match Pattern::compile(source, &self.pattern_options()) {
            Ok((pattern, notes)) => {
                for note in notes {
                    self.note(at, note.to_string());
                }
                let id = self.next_pattern();
                self.requirements[half as usize].push((id, pattern.requirement().clone()));
                let shared = (id, Arc::new(pattern));
                self.patterns.insert((half, source.into()), shared.clone());
                Some(shared)
            }
            Err(fault) => {
                let message = format!("this is not a regular expression: {fault}");
                self.refuse(at, Code::Value, message, fault.hint.map(str::to_owned));
                None
            }
        }
    }

    fn pattern_options(&self) -> Options {
        Options { steps_max: self.pattern_steps_max, ..Options::default() }
    }

    fn phrases(
        &mut self,
        at: &Location,
        source: Option<&[u8]>,
        half: Half,
        read: impl FnOnce(&[u8]) -> Result<Phrases, OperatorFault>,
    ) -> Test {
        let source = source.unwrap_or_default();
        if let Some((id, phrases)) = self.phrases.get(&(half, source.into())) {
            return Test::Phrases(*id, Arc::clone(phrases));
        }
        match read(source) {
            Ok(phrases) => {
                let id = self.next_pattern();
                let needs = Requirement::phrases(phrases.phrases().iter().map(|phrase| &**phrase));
                self.requirements[half as usize].push((id, needs));
                let shared = Arc::new(phrases);
                self.phrases.insert((half, source.into()), (id, Arc::clone(&shared)));
                Test::Phrases(id, shared)
            }
            Err(fault) => {
                self.refuse(at, Code::Value, fault.message, fault.hint.map(Into::into));
                Test::Never
            }
        }
    }

    fn identity(
        &mut self,
        at: &Location,
        source: Option<&[u8]>,
        half: Half,
        kind: Identity,
    ) -> Test {
        match self.pattern(at, source.unwrap_or_default(), half) {
            Some((id, pattern)) => Test::Identity(kind, id, pattern),
            None => Test::Never,
        }
    }

    /// Reads `SecGeoLookupDb`'s file.
    pub(super) fn geo_database(&mut self, at: &Location, path: &str) {
        let Some(content) = self.data_file(at, Some(path.as_bytes())) else { return };
        match Database::read(content) {
            Ok(database) => self.geo = Some(Arc::new(database)),
            Err(fault) => {
                self.refuse(at, Code::Value, fault.message, fault.hint.map(Into::into));
            }
        }
    }

    /// The content of a data file, which is named relative to the rule's file.
    fn data_file(&mut self, at: &Location, name: Option<&[u8]>) -> Option<Vec<u8>> {
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        let directory = at.directory();
        let path = if name.starts_with('/') || directory.is_empty() {
            name.into_owned()
        } else {
            format!("{}/{name}", directory.trim_end_matches('/'))
        };
        match self.files.read(&path) {
            Ok(data) => Some(data),
            Err(error) => {
                let message = format!("cannot read `{path}`: {error}");
                let hint = "data files are looked for beside the rule's own file".to_owned();
                self.refuse(at, Code::File, message, Some(hint));
                None
            }
        }
    }
}
