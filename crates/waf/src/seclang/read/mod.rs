//! The reader: files into lines, lines into directives, directives into a document.
//!
//! The reader goes on behind each mistake at the next place that makes sense, so that a rule set's
//! mistakes are told together: the next action, the next target, the next directive.

mod action;
mod assignment;
mod control;
mod items;
mod lines;
mod operator;
mod passage;
mod rule;
mod setting;
mod target;
mod text;
mod words;

use std::sync::Arc;

use self::control::ranges;
use self::lines::Lines;
use self::passage::Snippet;
pub(super) use self::passage::shown;
use self::rule::{OpenChain, Read, broken_chain, end, missing};
use self::target::targets;
use self::text::unknown;
use self::words::{Word, Words};
use super::Entry;
use super::diagnostic::{Code, Diagnostic, Report};
use super::directive::DirectiveName;
use super::document::{Directive, Document, TargetUpdate};
use super::files::{FileError, Files};
use super::location::{Located, Location};
use super::rule::TargetKind;
use super::support::Support;

/// How deep files may include files.
const DEPTH_MAX: usize = 16;
/// How many files a rule set may have.
const FILES_MAX: usize = 2_000;
/// How many bytes its files may have together; the Core Rule Set has fewer than one million.
const BYTES_MAX: usize = 64 << 20;
/// How many bytes a directive may have, its continued lines together.
const DIRECTIVE_BYTES_MAX: usize = 1 << 20;
/// How many directives a rule set may have; the whole Core Rule Set has fewer than a thousand.
const DIRECTIVES_MAX: usize = 200_000;

/// Reads a rule set.
pub(super) fn document(files: &dyn Files, entry: Entry<'_>, report: &mut Report) -> Document {
    let document = Document::default();
    let mut reader = Reader { files, document, open: Vec::new(), bytes: 0, chain: None, report };
    match entry {
        Entry::Text { path, text } => reader.file(path, text),
        Entry::File(path) => {
            let at = Location { file: Arc::from(path), line: 1, column: 1 };
            reader.open_file(path, &at);
        }
    }
    reader.document
}

struct Reader<'r> {
    files: &'r dyn Files,
    document: Document,
    /// The files being read, each included by the one before it.
    open: Vec<Arc<str>>,
    /// How many bytes have been read.
    bytes: usize,
    chain: Option<OpenChain>,
    report: &'r mut Report,
}

/// Where the reader stands among lines that may not be directives.
#[derive(Clone, Copy)]
enum Footing {
    /// Behind a directive.
    Firm,
    /// Behind a mistake: what does not look like a directive belongs to it.
    Lost,
}

impl Reader<'_> {
    /// Reads the file at this path; `at` names it.
    fn open_file(&mut self, path: &str, at: &Location) {
        match self.files.read(path) {
            Ok(text) => self.file(path, &text),
            Err(error) => self.unreadable(path, &error, at),
        }
    }

    fn unreadable(&mut self, path: &str, error: &FileError, at: &Location) {
        let message = format!("{} cannot be read: {error}", shown(path.as_bytes()));
        self.report.error(Diagnostic::new(at.clone(), Code::File, message));
    }

    fn file(&mut self, path: &str, text: &[u8]) {
        let file: Arc<str> = Arc::from(path);
        self.document.files.push(Arc::clone(&file));
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES_MAX {
            let at = Location { file, line: 1, column: 1 };
            let message = format!("a rule set has at most {BYTES_MAX} bytes");
            self.report.error(Diagnostic::new(at, Code::Limit, message));
            return;
        }
        self.open.push(Arc::clone(&file));
        let mut lines = Lines::new(file, text);
        let mut footing = Footing::Firm;
        while let Some(line) = lines.next(self.report) {
            footing = self.line(line.whole(), footing);
            if self.report.is_full() {
                break;
            }
        }
        // A chain does not reach into another file: nobody could see it.
        self.end_chain();
        self.open.pop();
    }

    fn line(&mut self, line: Snippet<'_>, footing: Footing) -> Footing {
        if line.len() > DIRECTIVE_BYTES_MAX {
            let message = format!("a directive has at most {DIRECTIVE_BYTES_MAX} bytes");
            self.report.error(Diagnostic::new(line.location(), Code::Limit, message));
            return Footing::Lost;
        }
        let (word, rest) = line.split_at(directive_len(line.bytes()));
        let name = DirectiveName::named(word.bytes());
        if name.is_none() && matches!(footing, Footing::Lost) && !looks_like_a_directive(word) {
            return Footing::Lost;
        }
        let errors = self.report.errors();
        let result = match name {
            Some(name) => self.supported(name, word, rest),
            None => not_a_directive(line, word, self.report),
        };
        if let Err(diagnostic) = result {
            self.report.error(diagnostic);
        }
        // A word that is no directive's name stands alone; all other mistakes may have a tail.
        let alone = name.is_none() && word.bytes()[0].is_ascii_alphabetic();
        if self.report.errors() > errors && !alone { Footing::Lost } else { Footing::Firm }
    }

    fn supported(
        &mut self,
        name: DirectiveName,
        word: Snippet<'_>,
        rest: Snippet<'_>,
    ) -> Result<(), Diagnostic> {
        let location = word.location();
        let continues = matches!(name, DirectiveName::Rule | DirectiveName::Action);
        if !continues {
            self.end_chain();
        }
        if self.document.directives.len() >= DIRECTIVES_MAX {
            let message = format!("a rule set has at most {DIRECTIVES_MAX} directives");
            return Err(Diagnostic::new(location, Code::Limit, message));
        }
        let mut words = Words::new(rest);
        match name.description().support {
            Support::Full => self.directive(name, location, &mut words),
            Support::Noted(reason) => {
                let message = format!("`{}` has no effect: {reason}", name.name());
                self.report.note(location, message);
                Ok(())
            }
            Support::Refused(reason) => {
                let message = format!("`{}` is not supported", name.name());
                Err(Diagnostic::new(location, Code::Unsupported, message).hint(reason))
            }
            Support::OffOnly(reason) => off_only(name, &location, &mut words, reason),
        }
    }

    fn directive(
        &mut self,
        name: DirectiveName,
        location: Location,
        words: &mut Words<'_>,
    ) -> Result<(), Diagnostic> {
        let at = location.clone();
        let directive = match name {
            DirectiveName::Rule | DirectiveName::Action => {
                return self.rule(name, location, words);
            }
            DirectiveName::Include | DirectiveName::IncludeOptional => {
                return self.include(name, &location, words);
            }
            DirectiveName::Marker => {
                let word = only_word(name, &location, words)?;
                Directive::Marker(word.text().bytes().into())
            }
            DirectiveName::ComponentSignature => {
                let word = only_word(name, &location, words)?;
                Directive::ComponentSignature(word.text().bytes().into())
            }
            DirectiveName::DefaultAction => rule::default_action(location, words, self.report)?,
            DirectiveName::RuleUpdateActionById => {
                rule::update_action(location, words, self.report)?
            }
            DirectiveName::RuleRemoveById => {
                let mut ids = id_ranges(&word(name, &location, words)?)?;
                while let Some(word) = words.next()? {
                    ids.extend(id_ranges(&word)?);
                }
                Directive::RemoveById(ids)
            }
            DirectiveName::RuleRemoveByTag => {
                Directive::RemoveByTag(only_word(name, &location, words)?.text().bytes().into())
            }
            DirectiveName::RuleRemoveByMsg => {
                Directive::RemoveByMsg(only_word(name, &location, words)?.text().bytes().into())
            }
            DirectiveName::RuleUpdateTargetById => {
                let mut ids = id_ranges(&word(name, &location, words)?)?;
                // Coraza takes several numbers and ranges, as `SecRuleRemoveById` does.
                while words.rest().bytes().first().is_some_and(u8::is_ascii_digit) {
                    ids.extend(id_ranges(&word(name, &location, words)?)?);
                }
                let targets = self.target_update(name, &location, words)?;
                Directive::UpdateTargetById { ids, targets }
            }
            DirectiveName::RuleUpdateTargetByTag => {
                let tag = word(name, &location, words)?.text().bytes().into();
                let targets = self.target_update(name, &location, words)?;
                Directive::UpdateTargetByTag { tag, targets }
            }
            DirectiveName::RuleUpdateTargetByMsg => {
                let msg = word(name, &location, words)?.text().bytes().into();
                let targets = self.target_update(name, &location, words)?;
                Directive::UpdateTargetByMsg { msg, targets }
            }
            _ => match setting::setting(name, location, words, self.report)? {
                Some(setting) => Directive::Setting(setting),
                None => return Ok(()),
            },
        };
        self.document.directives.push(Located { location: at, value: directive });
        Ok(())
    }

    fn rule(
        &mut self,
        name: DirectiveName,
        location: Location,
        words: &mut Words<'_>,
    ) -> Result<(), Diagnostic> {
        let rest = words.rest();
        let chain = self.chain.take();
        let parts = match name {
            DirectiveName::Action => rule::action(location, words, self.report),
            _ => rule::rule(location, words, self.report),
        };
        match parts {
            Ok(parts) => {
                let read = rule::join(parts, chain, self.report);
                self.joined(read);
                Ok(())
            }
            Err(diagnostic) => {
                if rule::may_chain(rest) {
                    self.chain = chain.or_else(|| Some(OpenChain::lost(rest.location())));
                }
                Err(diagnostic)
            }
        }
    }

    fn joined(&mut self, read: Read) {
        match read {
            Read::Open(chain) => self.chain = Some(chain),
            Read::Complete(rule) => {
                let location = rule.location.clone();
                let value = Directive::Rule(rule);
                self.document.directives.push(Located { location, value });
            }
        }
    }

    fn end_chain(&mut self) {
        if let Some(chain) = self.chain.take() {
            let rule = broken_chain(chain, self.report);
            self.joined(Read::Complete(rule));
        }
    }

    /// Reads `TARGETS [REPLACED]`.
    fn target_update(
        &mut self,
        name: DirectiveName,
        location: &Location,
        words: &mut Words<'_>,
    ) -> Result<TargetUpdate, Diagnostic> {
        let list = word(name, location, words)?;
        let replaced = words.next()?;
        end(name.name(), words)?;
        let targets = targets(list.text(), self.report);
        let replaced = replaced.and_then(|word| {
            let mut replaced = target::targets(word.text(), self.report);
            if replaced.len() > 1 || replaced.iter().any(|it| it.kind == TargetKind::Exclude) {
                let message = "one target is replaced, named as the rule names it";
                let location = word.text().location();
                self.report.error(Diagnostic::new(location, Code::Value, message));
            }
            replaced.pop()
        });
        Ok(TargetUpdate { targets, replaced })
    }

    fn include(
        &mut self,
        name: DirectiveName,
        location: &Location,
        words: &mut Words<'_>,
    ) -> Result<(), Diagnostic> {
        let word = only_word(name, location, words)?;
        let written = word.text();
        let path = std::str::from_utf8(written.bytes()).map_err(|_| {
            let message = format!("the path {} is not UTF-8", written.shown());
            Diagnostic::new(written.location(), Code::Value, message)
        })?;
        let at = written.location();
        let optional = name == DirectiveName::IncludeOptional;
        if !path.contains(['*', '?', '[']) {
            let path = location.resolve(path);
            self.may_open(&path, &at)?;
            match self.files.read(&path) {
                Ok(text) => self.file(&path, &text),
                Err(FileError::Missing) if optional => {}
                Err(error) => self.unreadable(&path, &error, &at),
            }
            return Ok(());
        }
        // The directory that is put in front is no pattern, whatever it is called.
        let directory = if path.starts_with('/') { String::new() } else { location.resolve("") };
        let path = glob::Pattern::escape(&directory) + path;
        let found = self.files.glob(&path).map_err(|error| {
            let message = format!("{} cannot be read: {error}", shown(path.as_bytes()));
            Diagnostic::new(at.clone(), Code::File, message)
        })?;
        if found.is_empty() && !optional {
            let message = format!("no file matches {}", shown(path.as_bytes()));
            self.report.note(at.clone(), message);
        }
        for path in found {
            self.may_open(&path, &at)?;
            self.open_file(&path, &at);
        }
        Ok(())
    }

    /// Sees to it that includes come to an end.
    fn may_open(&self, path: &str, at: &Location) -> Result<(), Diagnostic> {
        let error = |code, message| Err(Diagnostic::new(at.clone(), code, message));
        if self.open.iter().any(|open| &**open == path) {
            error(Code::Conflict, format!("{} includes itself", shown(path.as_bytes())))
        } else if self.open.len() >= DEPTH_MAX {
            error(Code::Limit, format!("files are included more than {DEPTH_MAX} deep"))
        } else if self.document.files.len() >= FILES_MAX {
            error(Code::Limit, format!("a rule set has at most {FILES_MAX} files"))
        } else {
            Ok(())
        }
    }
}

/// How long the first word of a line is.
fn directive_len(line: &[u8]) -> usize {
    line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len())
}

/// Whether a word that names no directive was meant to be one, and is no lost part of another.
fn looks_like_a_directive(word: Snippet<'_>) -> bool {
    let begins = |prefix: &[u8]| {
        word.bytes().get(..prefix.len()).is_some_and(|it| it.eq_ignore_ascii_case(prefix))
    };
    begins(b"Sec") || begins(b"Include") || begins(b"<")
}

fn not_a_directive(
    line: Snippet<'_>,
    word: Snippet<'_>,
    report: &mut Report,
) -> Result<(), Diagnostic> {
    match word.bytes() {
        // What a section begins with has been reported.
        [b'<', b'/', ..] => Ok(()),
        [b'<', ..] => {
            let message = format!("sections such as {} are Apache's own", line.shown());
            let diagnostic = Diagnostic::new(line.location(), Code::Unsupported, message);
            Err(diagnostic.hint("take both lines away; sites and routes choose their rule sets"))
        }
        [b'"' | b'\'', ..] => {
            let message = format!("expected a directive, found {}", line.shown());
            let diagnostic = Diagnostic::new(line.location(), Code::Syntax, message);
            Err(diagnostic
                .hint("a directive goes on here only if the line above ends in a backslash"))
        }
        _ => {
            let names = DirectiveName::ALL.iter().map(|it| it.name());
            let otherwise = "rule files hold SecLang's directives only, none of the web server's";
            unknown("directive", word, names, Some(otherwise), report);
            Ok(())
        }
    }
}

fn off_only(
    name: DirectiveName,
    location: &Location,
    words: &mut Words<'_>,
    reason: &str,
) -> Result<(), Diagnostic> {
    let word = only_word(name, location, words)?;
    if word.text().bytes().eq_ignore_ascii_case(b"off") {
        return Ok(());
    }
    let (name, value) = (name.name(), String::from_utf8_lossy(word.text().bytes()).into_owned());
    let message = format!("{} is not supported", shown(format!("{name} {value}").as_bytes()));
    Err(Diagnostic::new(word.text().location(), Code::Unsupported, message).hint(reason))
}

/// The next word of a directive, which must be there.
fn word(
    name: DirectiveName,
    location: &Location,
    words: &mut Words<'_>,
) -> Result<Word, Diagnostic> {
    let word = words.next()?.filter(|word| !word.text().is_empty());
    word.ok_or_else(|| {
        let message = format!("`{}` takes `{}`", name.name(), name.description().syntax);
        missing(location.clone(), &message)
    })
}

/// The word of a directive that takes one.
fn only_word(
    name: DirectiveName,
    location: &Location,
    words: &mut Words<'_>,
) -> Result<Word, Diagnostic> {
    let word = word(name, location, words)?;
    end(name.name(), words)?;
    Ok(word)
}

fn id_ranges(word: &Word) -> Result<Vec<std::ops::RangeInclusive<u64>>, Diagnostic> {
    ranges(word.text()).ok_or_else(|| {
        let message = format!("expected a rule's number or a range, found {}", word.text().shown());
        Diagnostic::new(word.text().location(), Code::Value, message)
    })
}
