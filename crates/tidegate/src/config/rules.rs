//! Rule sets of the WAF, compiled once and kept as long as nothing has changed that they are made of.
//!
//! Compiling takes a good part of a second of CPU. A reload that changes something else takes the
//! program that is there, after having read all files of the rule set again and compared.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, PoisonError};

use tidegate_waf::program::{Program, compile};
use tidegate_waf::seclang::{
    self, Action, Directive, Disk, Document, Entry, FileError, Files, Note,
};

/// What the text is called that includes all others; nothing lies in a file of this name.
pub(super) const RULE_SET: &str = "[waf]";

/// A compiled rule set.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) program: Arc<Program>,
    pub(super) notes: Arc<[Note]>,
    pub(super) names: Arc<Names>,
}

/// By what the rules of a rule set can be named, those that it takes out itself among them.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) ids: BTreeSet<u64>,
    pub(super) tags: BTreeSet<Box<[u8]>>,
}

impl Names {
    fn of(document: &Document) -> Self {
        let mut names = Self::default();
        for directive in &document.directives {
            let Directive::Rule(rule) = &directive.value else { continue };
            names.ids.insert(rule.id);
            for action in rule.links.iter().flat_map(|link| &link.actions) {
                if let Action::Tag(tag) = &action.value {
                    names.tags.extend(tag.literal().map(Into::into));
                }
            }
        }
        names
    }
}

/// A rule set with all that it was made of.
struct Kept {
    text: String,
    seen: Vec<Seen>,
    compiled: Compiled,
}

/// Something that was looked at on disk, and what was found.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    File(String, Result<u64, FileError>),
    Names(String, Result<Vec<String>, FileError>),
}

/// The last rule set that was right. A process has one, and a reload that is refused leaves it.
#[expect(clippy::disallowed_types, reason = "only whoever reads a configuration locks it")]
static LAST: std::sync::Mutex<Option<Kept>> = std::sync::Mutex::new(None);

/// The program of a rule set, compiled if it is not known yet.
pub(super) fn program(text: &str) -> Result<Compiled, Vec<seclang::Diagnostic>> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = last.as_ref().filter(|kept| kept.text == text && kept.is_current()) {
        return Ok(kept.compiled.clone());
    }
    let files = Recorder::default();
    let entry = Entry::Text { path: RULE_SET, text: text.as_bytes() };
    let (document, mut notes) = seclang::parse(&files, entry)?;
    let compiled = compile(&document, &files)?;
    notes.extend(compiled.notes);
    let compiled = Compiled {
        program: Arc::new(compiled.program),
        notes: notes.into(),
        names: Arc::new(Names::of(&document)),
    };
    let seen = files.seen.into_inner();
    *last = Some(Kept { text: text.to_owned(), seen, compiled: compiled.clone() });
    Ok(compiled)
}

impl Kept {
    /// Whether all files are as they were.
    fn is_current(&self) -> bool {
        let disk = Disk::default();
        self.seen.iter().all(|seen| match seen {
            Seen::File(path, found) => *found == disk.read(path).map(|bytes| digest(&bytes)),
            Seen::Names(pattern, found) => *found == disk.glob(pattern),
        })
    }
}

/// A file's content in short. Files are told apart from their own earlier state only, and nobody
/// gains by two of them being alike.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The files of this machine, with a note of what was looked at.
#[derive(Default)]
struct Recorder {
    disk: Disk,
    seen: RefCell<Vec<Seen>>,
}

impl Files for Recorder {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let found = self.disk.read(path);
        let digest = found.as_ref().map(|bytes| digest(bytes)).map_err(Clone::clone);
        self.seen.borrow_mut().push(Seen::File(path.to_owned(), digest));
        found
    }

    fn glob(&self, pattern: &str) -> Result<Vec<String>, FileError> {
        let found = self.disk.glob(pattern);
        self.seen.borrow_mut().push(Seen::Names(pattern.to_owned(), found.clone()));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_set_is_compiled_again_when_a_file_of_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let rule =
            |id: u32| format!("SecRule ARGS \"@pmFromFile words.data\" \"id:{id},phase:2,deny\"\n");
        std::fs::write(path("a.conf"), rule(1)).unwrap();
        std::fs::write(path("words.data"), "evil\n").unwrap();
        let text = format!("Include \"{}\"\n", path("*.conf"));
        let compiled = || program(&text).unwrap().program;
        let first = compiled();
        assert!(Arc::ptr_eq(&first, &compiled()));
        std::fs::write(path("words.data"), "worse\n").unwrap();
        let second = compiled();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &compiled()));
        std::fs::write(path("b.conf"), rule(2)).unwrap();
        let third = compiled();
        assert_eq!((second.rules().len(), third.rules().len()), (1, 2));
        std::fs::write(path("b.conf"), "SecRool\n").unwrap();
        assert!(program(&text).is_err());
        std::fs::write(path("b.conf"), rule(2)).unwrap();
        assert!(Arc::ptr_eq(&third, &compiled()), "a refused rule set is not kept");
    }
}
