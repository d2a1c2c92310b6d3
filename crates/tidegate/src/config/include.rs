//! Reading a configuration's files and joining them to one tree.
//!
//! Paths and patterns are relative to the file they stand in. Lists of sections are joined in the
//! order of reading; an option that is set in two files is a mistake, because nobody could tell which
//! one holds.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, code};
use super::node::{self, Entry, Node, Table, Value};
use super::options::kind::reason;
use super::options::{Shape, root};
use super::reader::{Located, Reading};
use super::source::{Sources, Span};

/// How deep files may include each other.
const DEPTH_MAX: usize = 8;

/// How many files there may be in all.
const FILES_MAX: usize = 20_000;

/// Reads a file and all it includes.
pub(crate) fn read(path: &Path, reading: &mut Reading<'_>) -> Table {
    let mut joined = Table::default();
    let mut files = Files::default();
    read_one(path, None, &mut files, &mut joined, reading);
    joined
}

/// The files on the way to here, and all that were read.
#[derive(Default)]
struct Files {
    trail: Vec<PathBuf>,
    read: HashSet<PathBuf>,
}

/// `by` is where the include stands.
fn read_one(
    path: &Path,
    by: Option<Span>,
    files: &mut Files,
    joined: &mut Table,
    reading: &mut Reading<'_>,
) {
    let complain = |code, message: String| match by {
        Some(span) => Diagnostic::new(code, span, message),
        None => Diagnostic::nowhere(code, message),
    };
    let shown = path.display();
    // The same file under two names is the same file.
    let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if files.trail.contains(&identity) {
        let message = format!("`{shown}` includes itself");
        reading.report(complain(&code::INCLUDE_CYCLE, message));
        return;
    }
    if !files.read.insert(identity.clone()) {
        let message = format!("`{shown}` is included twice");
        reading.report(complain(&code::SET_TWICE, message));
        return;
    }
    if files.trail.len() >= DEPTH_MAX || files.read.len() > FILES_MAX {
        let message = if files.trail.len() >= DEPTH_MAX {
            format!("files include each other more than {DEPTH_MAX} deep")
        } else {
            format!("there are more than {FILES_MAX} files")
        };
        reading.report(complain(&code::INCLUDE_LIMIT, message));
        return;
    }
    let text = match read_text(path) {
        Ok(text) => text,
        Err(message) => {
            let message = format!("`{shown}` cannot be read: {message}");
            let mut diagnostic = complain(&code::UNREADABLE_FILE, message);
            if by.is_none() && !path.exists() {
                diagnostic =
                    diagnostic.hint("name the file behind the command: `tidegate check FILE`");
            }
            reading.report(diagnostic);
            return;
        }
    };
    let file = reading.diagnostics.sources.add(path, text.clone());
    let table = node::parse(file, &text, &mut reading.diagnostics);
    let includes = includes(&table, reading);
    join(joined, table, reading);
    files.trail.push(identity);
    let directory = path.parent().unwrap_or(Path::new(""));
    for include in includes {
        for path in matches(directory, &include, reading) {
            read_one(&path, include.span, files, joined, reading);
        }
    }
    files.trail.pop();
}

fn read_text(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| reason(&error))?;
    if size.is_dir() {
        return Err("it is a directory".into());
    }
    if size.len() > Sources::BYTES_MAX {
        return Err(format!("it is larger than {} MB", Sources::BYTES_MAX >> 20));
    }
    let bytes = std::fs::read(path).map_err(|error| reason(&error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        format!("line {line} is not UTF-8")
    })
}

fn includes(table: &Table, reading: &mut Reading<'_>) -> Vec<Located<String>> {
    use super::options::kind::Kind as _;
    let Some(entry) = table.entry(root::INCLUDE.key) else {
        return Vec::new();
    };
    root::INCLUDE.kind.read(&entry.node, reading).unwrap_or_default()
}

/// The files of an include, in the order of their names.
fn matches(directory: &Path, include: &Located<String>, reading: &mut Reading<'_>) -> Vec<PathBuf> {
    let place = include.span.unwrap_or(Span::new(0, &(0..0)));
    let is_pattern = include.value.contains(['*', '?', '[']);
    if !is_pattern {
        let path = directory.join(&include.value);
        if path.exists() {
            return vec![path];
        }
        let message = format!("there is no file `{}`", path.display());
        reading.report(
            Diagnostic::new(&code::INCLUDE_MISSING, place, message)
                .hint("paths are relative to the file that includes"),
        );
        return Vec::new();
    }
    // The directory is a name, not a pattern, whatever it holds.
    let directory = glob::Pattern::escape(&directory.to_string_lossy());
    let pattern = Path::new(&directory).join(&include.value);
    let found = match glob::glob(&pattern.to_string_lossy()) {
        Ok(found) => found,
        Err(error) => {
            let message = format!("this is not a pattern: {}", error.msg);
            reading.report(Diagnostic::new(&code::INCLUDE_MISSING, place, message));
            return Vec::new();
        }
    };
    let mut paths = Vec::new();
    for entry in found {
        match entry {
            Ok(path) => paths.push(path),
            Err(error) => {
                let message = format!(
                    "`{}` cannot be read: {}",
                    error.path().display(),
                    reason(error.error())
                );
                reading.report(Diagnostic::new(&code::UNREADABLE_FILE, place, message));
            }
        }
    }
    if paths.is_empty() {
        let message = "the pattern matches no file";
        reading.report(
            Diagnostic::new(&code::EMPTY_INCLUDE, place, message)
                .hint("patterns are relative to the file that includes"),
        );
    }
    paths.sort();
    paths
}

/// Joins a file's table to what was read before.
fn join(joined: &mut Table, table: Table, reading: &mut Reading<'_>) {
    for entry in table.entries {
        if entry.key == root::INCLUDE.key {
            continue;
        }
        let Some(there) = joined.entries.iter_mut().find(|there| there.key == entry.key) else {
            joined.entries.push(entry);
            continue;
        };
        let shape = root::SECTION.section(&entry.key).map(|section| section.shape);
        match (&mut there.node.value, entry.node.value) {
            (Value::Array(there), Value::Array(here)) if shape == Some(Shape::Many) => {
                there.extend(here);
            }
            (Value::Table(there), Value::Table(here)) => join_tables(there, here, reading),
            (_, value) => {
                let node = Node { span: entry.node.span, value };
                reading.report(twice(&Entry { node, ..entry }, there.key_span));
            }
        }
    }
}

/// Joins one section of two files: `[defaults]`, or the groups.
fn join_tables(there: &mut Table, here: Table, reading: &mut Reading<'_>) {
    let mut known: HashMap<String, Span> =
        there.entries.iter().map(|entry| (entry.key.clone(), entry.key_span)).collect();
    for entry in here.entries {
        if let Some(first) = known.get(&entry.key) {
            reading.report(twice(&entry, *first));
        } else {
            known.insert(entry.key.clone(), entry.key_span);
            there.entries.push(entry);
        }
    }
}

fn twice(entry: &Entry, first: Span) -> Diagnostic {
    let message = format!("`{}` is set in two files", entry.key);
    Diagnostic::new(&code::SET_TWICE, entry.key_span, message).beside(first, "first set here")
}
