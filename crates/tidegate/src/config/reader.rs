//! Reading options out of the tree.
//!
//! A [`Scope`] is one table read as one [`Section`]; options that are not in it are looked for in the
//! scopes above (a route's in its site's, a site's in `[defaults]`). Each read says where the value
//! came from, which is what `tidegate explain` shows. Mistakes go to [`Reading::report`], and reading
//! goes on with the default.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, Diagnostics, code};
use super::environment::{self, Environment, Missing, Placeholders, ProblemKind};
use super::node::{Node, Table, Value};
use super::options::kind::Kind;
use super::options::{Optional, Reach, Required, Section, Setting, Spec};
use super::source::Span;
use super::suggest;

/// What is being read: the mistakes so far, the outside world, and where values came from.
pub(crate) struct Reading<'e> {
    /// The mistakes, with the texts.
    pub(crate) diagnostics: Diagnostics,
    /// Where `${NAME}` looks.
    pub(crate) environment: &'e dyn Environment,
    /// Where each value came from.
    pub(crate) origins: Origins,
    /// Sections that hold names which do not exist.
    pub(crate) misspelt: HashSet<Span>,
}

/// Whose setting a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// Of the process, the admin listener or the trusted proxies.
    Process,
    /// Of a listener, by index.
    Listener(usize),
    /// Of a log, by index.
    Log(usize),
    /// Of a group, by index.
    Group(usize),
    /// Of a site, by index.
    Site(usize),
    /// Of a route, by the indices of site and route.
    Route(usize, usize),
}

/// Where values came from.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// By owner, each key with its place in a file, or `None` for the default.
    values: BTreeMap<Owner, Vec<(&'static str, Option<Span>)>>,
    /// Where owners stand themselves.
    owners: BTreeMap<Owner, Span>,
}

impl Origins {
    /// Where a value came from; `None` for the default.
    pub(crate) fn of(&self, owner: Owner, key: &str) -> Option<Span> {
        let values = self.values.get(&owner)?;
        values.iter().find(|(known, _)| *known == key).and_then(|(_, span)| *span)
    }

    /// Where all values of a key came from, from its own section and those above.
    pub(crate) fn all<'o>(
        &'o self,
        owner: Owner,
        key: &'static str,
    ) -> impl Iterator<Item = Span> + 'o {
        let values = self.values.get(&owner).into_iter().flatten();
        values.filter(move |(known, _)| *known == key).filter_map(|(_, span)| *span)
    }

    /// Where somebody stands; `None` for one that is there without being written.
    pub(crate) fn owner(&self, owner: Owner) -> Option<Span> {
        self.owners.get(&owner).copied()
    }
}

/// A value and where it stands; `None` if it is the default.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    /// The value.
    pub(crate) value: T,
    /// Where it stands.
    pub(crate) span: Option<Span>,
}

/// A string of the configuration with its variables replaced.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// The text.
    pub(crate) value: String,
    /// Where the whole of it stands.
    pub(crate) span: Span,
    /// The variables it took; if any, the text is not shown.
    variables: Vec<String>,
    /// Where its first byte stands, if the file holds it as it is, without escapes or variables.
    verbatim: Option<u32>,
}

impl Text {
    /// The text as a message may show it.
    pub(crate) fn shown(&self) -> String {
        match self.variables.first() {
            None => format!("`{}`", self.value.escape_debug()),
            Some(name) => format!("the value with `${{{name}}}`"),
        }
    }

    /// Where a part of it stands; the whole if that cannot be told.
    pub(crate) fn part(&self, range: &std::ops::Range<usize>) -> Span {
        match self.verbatim {
            Some(start) => {
                let start = start as usize;
                Span::new(self.span.file, &(start + range.start..start + range.end))
            }
            None => self.span,
        }
    }

    /// A text that stands nowhere.
    pub(crate) fn plain(value: &str) -> Text {
        let span = Span::new(0, &(0..0));
        Text { value: value.to_owned(), span, variables: Vec::new(), verbatim: None }
    }

    /// Whether a variable is in it.
    pub(crate) fn is_from_outside(&self) -> bool {
        !self.variables.is_empty()
    }
}

impl<'e> Reading<'e> {
    /// Begins with what parsing has found.
    pub(crate) fn new(diagnostics: Diagnostics, environment: &'e dyn Environment) -> Self {
        Reading { diagnostics, environment, origins: Origins::default(), misspelt: HashSet::new() }
    }

    /// A value as a message may show it: as it is written, if a variable brought it in.
    pub(crate) fn shown(&self, value: &str, span: Span) -> String {
        let written = self.diagnostics.sources.text(span);
        if written.contains("${") {
            return format!("`{}`", written.trim_matches(['"', '\'']));
        }
        format!("`{}`", value.escape_debug())
    }

    /// What a misspelt name may be meant to be; only while there are few mistakes, since with thousands
    /// of names it takes long.
    pub(crate) fn guess<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> String {
        const MISTAKES_MAX: usize = 100;
        if self.diagnostics.list.len() > MISTAKES_MAX {
            return String::new();
        }
        suggest::did_you_mean(word, candidates).unwrap_or_default()
    }

    /// A path of the configuration, relative to the file it stands in.
    pub(crate) fn path(&self, path: &str, span: Span) -> PathBuf {
        self.diagnostics.sources.of(span).path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// Reports that something is missing in a section, unless a name in it is misspelt: that may be
    /// what is missing.
    pub(crate) fn report_missing(&mut self, scope: &Scope<'_>, diagnostic: Diagnostic) {
        let misspelt = scope
            .levels()
            .iter()
            .any(|scope| scope.span.is_some_and(|span| self.misspelt.contains(&span)));
        if !misspelt {
            self.report(diagnostic);
        }
    }

    /// Adds a mistake.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.list.push(diagnostic);
    }

    /// A string without placeholders of its own.
    pub(crate) fn text(&mut self, node: &Node) -> Option<Text> {
        self.text_with(node, Placeholders::None)
    }

    /// A string; reports it if it is none or a variable in it has no value.
    pub(crate) fn text_with(&mut self, node: &Node, placeholders: Placeholders) -> Option<Text> {
        let Value::Text(raw) = &node.value else {
            self.wrong_type(node, "a string");
            return None;
        };
        let verbatim = self.verbatim(node.span, raw);
        let whole = Text { value: raw.clone(), span: node.span, variables: Vec::new(), verbatim };
        match environment::expand(raw, placeholders, self.environment) {
            Ok(expanded) if expanded.variables.is_empty() => {
                Some(Text { value: expanded.text, ..whole })
            }
            Ok(expanded) => Some(Text {
                value: expanded.text,
                variables: expanded.variables,
                verbatim: None,
                ..whole
            }),
            Err(problems) => {
                for problem in problems {
                    let place = whole.part(&problem.range);
                    self.report(variable_problem(place, problem.kind));
                }
                None
            }
        }
    }

    /// Where the first byte of a string stands, if quotes are all that the file adds to it.
    fn verbatim(&self, span: Span, raw: &str) -> Option<u32> {
        let written = self.diagnostics.sources.text(span);
        let quotes = written.len().checked_sub(raw.len())? / 2;
        let inside = written.get(quotes..written.len() - quotes)?;
        (inside == raw).then(|| span.start + u32::try_from(quotes).unwrap_or(0))
    }

    /// Reports a value of another type than the one wanted.
    pub(crate) fn wrong_type(&mut self, node: &Node, wanted: &str) {
        let found = node.value.what();
        let hint = match (&node.value, wanted) {
            (Value::Text(text), "a boolean") => match text.as_str() {
                "true" | "yes" | "on" => Some("write `true`, without quotes".into()),
                "false" | "no" | "off" => Some("write `false`, without quotes".into()),
                _ => None,
            },
            (Value::Text(text), _) if wanted.starts_with("a whole number") => {
                text.parse::<i64>().is_ok().then(|| format!("write `{text}`, without quotes"))
            }
            (Value::Text(_), "a list") => Some("put it in brackets: `[..]`".into()),
            (Value::Array(list), _) if list.len() == 1 => {
                Some("it takes one value, not a list".into())
            }
            _ => None,
        };
        self.report(
            Diagnostic::new(
                &code::WRONG_TYPE,
                node.span,
                format!("expected {wanted}, found {found}"),
            )
            .hint_if(hint),
        );
    }
}

fn variable_problem(place: Span, kind: ProblemKind) -> Diagnostic {
    match kind {
        ProblemKind::Unclosed => {
            Diagnostic::new(&code::ENVIRONMENT, place, "`${` begins a variable and is never closed")
                .hint("close it with `}`, or write `$${` for the two characters themselves")
        }
        ProblemKind::BadName(name) => {
            let diagnostic = Diagnostic::new(
                &code::ENVIRONMENT,
                place,
                format!("`{name}` is not the name of an environment variable"),
            );
            if name.chars().any(|c| c.is_ascii_lowercase()) {
                diagnostic.hint(
                    "environment variables are written in capitals; placeholders such as `$host` \
                 only work in redirects, header values and log formats",
                )
            } else {
                diagnostic.hint("names hold capitals, digits and `_`")
            }
        }
        ProblemKind::Missing(name, Missing::NotSet) => Diagnostic::new(
            &code::ENVIRONMENT,
            place,
            format!("the environment variable `{name}` is not set"),
        )
        .hint(
            "set it where the gate is started (in the systemd unit: `EnvironmentFile=`); \
             `tidegate check` looks at its own environment",
        ),
        ProblemKind::Missing(name, Missing::NotText) => Diagnostic::new(
            &code::ENVIRONMENT,
            place,
            format!("the environment variable `{name}` is not UTF-8"),
        ),
    }
}

/// One table, read as one section.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'n> {
    /// What is read.
    pub(crate) section: &'static Section,
    /// Whose settings these are.
    pub(crate) owner: Owner,
    /// The table, or a value that stands for its shorthand option; `None` if the section is absent.
    node: Option<&'n Node>,
    /// Where to point when something is missing: the header's key, or the value.
    pub(crate) span: Option<Span>,
    /// Where options are looked for that are not here.
    above: Option<&'n Scope<'n>>,
}

impl<'n> Scope<'n> {
    /// A section's table.
    pub(crate) fn new(
        section: &'static Section,
        owner: Owner,
        node: Option<&'n Node>,
        span: Option<Span>,
    ) -> Self {
        Scope { section, owner, node, span, above: None }
    }

    /// The same, with options that are not here looked for above.
    pub(crate) fn under(self, above: &'n Scope<'n>) -> Self {
        Scope { above: Some(above), ..self }
    }

    /// The same settings for somebody else.
    pub(crate) fn of(self, owner: Owner) -> Self {
        Scope { owner, ..self }
    }

    /// Whether the section was written at all.
    pub(crate) fn is_written(&self) -> bool {
        self.node.is_some()
    }

    /// Whether it was written as a table.
    pub(crate) fn is_table(&self) -> bool {
        self.table().is_some()
    }

    /// It and the scopes above it, the nearest first.
    pub(crate) fn levels(&self) -> Vec<Scope<'n>> {
        std::iter::successors(Some(*self), |scope| scope.above.copied()).collect()
    }

    /// The table, or the value that stands for it, if it is written.
    pub(crate) fn written_node(&self) -> Option<&'n Node> {
        self.node
    }

    /// A place to point at.
    pub(crate) fn place(&self) -> Span {
        self.span.or(self.above.and_then(|above| above.span)).unwrap_or(Span::new(0, &(0..0)))
    }

    fn table(&self) -> Option<&'n Table> {
        match self.node.map(|node| &node.value) {
            Some(Value::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// The value of a key in this very table.
    pub(crate) fn node(&self, key: &str) -> Option<&'n Node> {
        match self.node {
            Some(Node { value: Value::Table(table), .. }) => {
                table.entry(key).map(|entry| &entry.node)
            }
            other if self.section.shorthand == Some(key) => other,
            _ => None,
        }
    }

    /// Where a key of this very table stands.
    pub(crate) fn key_span(&self, key: &str) -> Option<Span> {
        self.table()?.entry(key).map(|entry| entry.key_span)
    }

    /// The value of an option, here or above where the option may stand there.
    fn look_up<K, A>(&self, spec: &Spec<K, A>) -> Option<&'n Node> {
        match spec.reach {
            Reach::Here => self.node(spec.key),
            // A section that may not hold the option has none: the check of names has said so.
            Reach::Site | Reach::Defaults | Reach::Waf | Reach::Cache => self.look_up_key(spec.key),
        }
    }

    fn look_up_key(&self, key: &str) -> Option<&'n Node> {
        self.node(key).or_else(|| self.above.and_then(|above| above.look_up_key(key)))
    }

    /// A section below this one: `[listen.tls]` of `[[listen]]`.
    pub(crate) fn child(&self, section: &'static Section) -> Scope<'n> {
        let entry = self.table().and_then(|table| table.entry(section.key));
        let node = entry.map(|entry| &entry.node);
        Scope::new(section, self.owner, node, entry.map(|entry| entry.key_span).or(self.span))
    }

    /// The members of a list of sections below this one: all `[[site.route]]` of a `[[site]]`. A
    /// single table or value stands for a list of one.
    pub(crate) fn children(&self, section: &'static Section) -> Vec<Scope<'n>> {
        let Some(entry) = self.table().and_then(|table| table.entry(section.key)) else {
            return Vec::new();
        };
        let scope = |node: &'n Node, span| Scope::new(section, self.owner, Some(node), Some(span));
        match &entry.node.value {
            Value::Array(list) => list.iter().map(|node| scope(node, node.span)).collect(),
            _ => vec![scope(&entry.node, entry.key_span)],
        }
    }

    /// The named sections below this one, with their names: all `[group.NAME]`.
    pub(crate) fn named(&self, section: &'static Section) -> Vec<(&'n str, Scope<'n>)> {
        match self.node(section.key).map(|node| &node.value) {
            Some(Value::Table(table)) => table
                .entries
                .iter()
                .map(|entry| {
                    let scope =
                        Scope::new(section, self.owner, Some(&entry.node), Some(entry.key_span));
                    (entry.key.as_str(), scope)
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// An option with a default.
    pub(crate) fn read<K: Kind>(
        &self,
        spec: &'static Setting<K>,
        reading: &mut Reading<'_>,
    ) -> Located<K::Value> {
        let found = self.look_up(spec);
        self.note(spec.key, found, reading);
        let value = found.and_then(|node| {
            Some(Located { value: spec.kind.read(node, reading)?, span: Some(node.span) })
        });
        value.unwrap_or_else(|| Located { value: spec.default_value(), span: None })
    }

    /// An option that may be absent.
    pub(crate) fn find<K: Kind>(
        &self,
        spec: &'static Optional<K>,
        reading: &mut Reading<'_>,
    ) -> Option<Located<K::Value>> {
        let node = self.look_up(spec);
        self.note(spec.key, node, reading);
        let node = node?;
        Some(Located { value: spec.kind.read(node, reading)?, span: Some(node.span) })
    }

    /// An option that must be there; reports it if it is not.
    pub(crate) fn require<K: Kind>(
        &self,
        spec: &'static Required<K>,
        reading: &mut Reading<'_>,
    ) -> Option<Located<K::Value>> {
        let Some(node) = self.look_up(spec) else {
            let message = format!("{} has no `{}`", self.section.path, spec.key);
            reading.report_missing(
                self,
                Diagnostic::new(&code::MISSING_OPTION, self.place(), message)
                    .hint(format!("add for example `{} = {}`", spec.key, spec.example)),
            );
            return None;
        };
        self.note(spec.key, Some(node), reading);
        Some(Located { value: spec.kind.read(node, reading)?, span: Some(node.span) })
    }

    fn note(&self, key: &'static str, node: Option<&Node>, reading: &mut Reading<'_>) {
        let place = node.map(|node| node.span);
        reading.origins.values.entry(self.owner).or_default().push((key, place));
        if let Some(span) = self.span.filter(|_| self.section.is_owner()) {
            reading.origins.owners.entry(self.owner).or_insert(span);
        }
    }
}
