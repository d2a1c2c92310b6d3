//! The option table: every option of the configuration, declared once.
//!
//! A declaration holds key, type with range, default, meaning, an example and what is dangerous about
//! it. From it come the reading of files, `tidegate config`, `docs/configuration.md`, the JSON schema
//! and the suggestions for misspelt names. A default stands here and nowhere else.

pub(crate) mod kind;

mod firewall;
mod general;
mod groups;
mod kept;
mod listeners;
mod sites;
mod stored;

pub(crate) use general::{ClientAddress, Keep, admin, defaults, log, process, root, trust};
pub(crate) use groups::{Balance as BalanceOption, ejection, group, group_tls, health, server};
pub(crate) use kind::FoundSecret;
pub(crate) use listeners::{
    ClientAuth as ClientAuthOption, TlsVersion, UnknownName as UnknownNameOption, certificate,
    http2, listen, listen_tls,
};
pub(crate) use sites::{
    ANSWER_BYTES_MAX, Field, Https, answer, redirect, request_headers, response_headers, route,
    site,
};

pub(crate) use firewall::{ExcludedRules, Exclusion, inspect, waf};
pub(crate) use kept::{context, context_sync};
pub(crate) use stored::{ClientRule, Mode as CacheMode, QueryRule, cache, caching, part, span};

use super::node::{self, Node};
use kind::Kind;

/// A section: a table of options.
pub(crate) struct Section {
    /// Its key in the table above.
    pub(crate) key: &'static str,
    /// How messages and the reference call it: `[[site.route]]`.
    pub(crate) path: &'static str,
    /// How it is written.
    pub(crate) shape: Shape,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// A few lines that show it.
    pub(crate) example: &'static str,
    /// The option that a bare value stands for: `servers = ["10.0.0.1:80"]`.
    pub(crate) shorthand: Option<&'static str>,
    /// Its own options.
    pub(crate) own: &'static [&'static dyn Declared],
    /// Sections whose options may stand here too, those that reach so far.
    pub(crate) borrows: &'static [(&'static Section, Reach)],
    /// The sections below it.
    pub(crate) sections: &'static [&'static Section],
}

/// How a section is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The file itself.
    Root,
    /// Once: `[process]`.
    One,
    /// Many times: `[[site]]`.
    Many,
    /// Under names of the operator's choice: `[group.NAME]`.
    Named,
    /// As a value: `answer = { status = 204 }`.
    Inline,
    /// As a list of values: `servers = [{ address = ".." }]`.
    InlineMany,
}

/// How far an option reaches: where it may stand besides its own section, for all that is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// In its own section only.
    Here,
    /// Also in `[[site]]`, for all routes of the site.
    Site,
    /// Also in `[defaults]` (and in `[[site]]`, if it is a route's).
    Defaults,
    /// Also in `[waf]`, for all sites.
    Waf,
    /// Also in `[cache]`, for all sites.
    Cache,
}

impl Section {
    /// All options that may stand in it.
    pub(crate) fn options(&self) -> impl Iterator<Item = &'static dyn Declared> {
        let borrowed = self.borrows.iter().flat_map(|(section, least)| {
            section.own.iter().copied().filter(move |option| option.reach() >= *least)
        });
        self.own.iter().copied().chain(borrowed)
    }

    /// All keys that may stand in it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.options().map(Declared::key).chain(self.sections.iter().map(|section| section.key))
    }

    /// The section of this key below it.
    pub(crate) fn section(&self, key: &str) -> Option<&'static Section> {
        self.sections.iter().find(|section| section.key == key).copied()
    }

    /// Whether it is something of its own, such as a site, rather than a part of it.
    pub(crate) fn is_owner(&self) -> bool {
        matches!(self.shape, Shape::Many | Shape::Named)
    }

    /// It and all sections below it, in the order of the table.
    pub(crate) fn walk(&'static self) -> Vec<&'static Section> {
        let mut all = vec![self];
        for section in self.sections {
            for below in section.walk() {
                // Header edits stand in several places and are told once.
                if !all.iter().any(|known| std::ptr::eq(*known, below)) {
                    all.push(below);
                }
            }
        }
        all
    }
}

/// An option: `A` says what is done when it is absent.
pub(crate) struct Spec<K, A> {
    /// Its key.
    pub(crate) key: &'static str,
    /// Its type and range.
    pub(crate) kind: K,
    /// What is done when it is absent.
    pub(crate) absence: A,
    /// An example of a value, in TOML.
    pub(crate) example: &'static str,
    /// Where it may stand.
    pub(crate) reach: Reach,
    /// What it means.
    doc: &'static str,
    /// What is dangerous about it.
    danger: &'static str,
}

/// An option with a default.
pub(crate) type Setting<K> = Spec<K, Default>;
/// An option that may be absent.
pub(crate) type Optional<K> = Spec<K, Without>;
/// An option that must be there.
pub(crate) type Required<K> = Spec<K, Always>;

/// The default, in TOML.
pub(crate) struct Default(&'static str);
/// What absence means, in words.
pub(crate) struct Without(&'static str);
/// There is no absence.
pub(crate) struct Always;

/// Declares an option with a default; the default is an example too.
pub(crate) const fn setting<K>(key: &'static str, kind: K, default: &'static str) -> Setting<K> {
    spec(key, kind, Default(default), default)
}

/// Declares an option that may be absent, what absence means, and an example.
pub(crate) const fn optional<K>(
    key: &'static str,
    kind: K,
    absent: &'static str,
    example: &'static str,
) -> Optional<K> {
    spec(key, kind, Without(absent), example)
}

/// Declares an option that must be there, and an example.
pub(crate) const fn required<K>(key: &'static str, kind: K, example: &'static str) -> Required<K> {
    spec(key, kind, Always, example)
}

const fn spec<K, A>(key: &'static str, kind: K, absence: A, example: &'static str) -> Spec<K, A> {
    Spec { key, kind, absence, example, reach: Reach::Here, doc: "", danger: "" }
}

impl<K, A> Spec<K, A> {
    /// Says what it means.
    const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Shows another example than the default.
    const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    /// Says what is dangerous about it.
    const fn danger(mut self, danger: &'static str) -> Self {
        self.danger = danger;
        self
    }

    /// Lets it stand in sections above too.
    const fn reaches(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}

impl<K: Kind> Setting<K> {
    /// The default, read as a file's value would be.
    pub(crate) fn default_value(&self) -> K::Value {
        self.kind.read_default(self.absence.0)
    }
}

/// An option seen from outside, whatever its type.
pub(crate) trait Declared: Sync {
    /// Its key.
    fn key(&self) -> &'static str;
    /// Its type and range in words: `a duration from 1s to 1h`.
    fn kind(&self) -> String;
    /// The values it knows and what they mean, if these are few.
    fn choices(&self) -> Vec<(&'static str, &'static str)>;
    /// Its JSON schema, without default and description.
    fn schema(&self) -> serde_json::Value;
    /// What is done when it is absent.
    fn absence(&self) -> Absence;
    /// An example of a value, in TOML.
    fn example(&self) -> &'static str;
    /// What it means.
    fn doc(&self) -> &'static str;
    /// What is dangerous about it; empty if nothing is.
    fn danger(&self) -> &'static str;
    /// Where it may stand.
    fn reach(&self) -> Reach;
    /// Reads a value for the mistakes in it alone.
    fn check(&self, node: &Node, reading: &mut super::reader::Reading<'_>);
}

/// What is done when an option is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// This default, in TOML, holds.
    Default(&'static str),
    /// What these words say.
    Means(&'static str),
    /// It is a mistake.
    Mistake,
}

/// What becomes of an absent option.
pub(crate) trait Absent: Sync {
    fn absence(&self) -> Absence;
}

impl Absent for Default {
    fn absence(&self) -> Absence {
        Absence::Default(self.0)
    }
}

impl Absent for Without {
    fn absence(&self) -> Absence {
        Absence::Means(self.0)
    }
}

impl Absent for Always {
    fn absence(&self) -> Absence {
        Absence::Mistake
    }
}

impl<K: Kind, A: Absent> Declared for Spec<K, A> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn kind(&self) -> String {
        self.kind.describe()
    }

    fn choices(&self) -> Vec<(&'static str, &'static str)> {
        self.kind.choices()
    }

    fn schema(&self) -> serde_json::Value {
        self.kind.schema()
    }

    fn absence(&self) -> Absence {
        self.absence.absence()
    }

    fn example(&self) -> &'static str {
        self.example
    }

    fn doc(&self) -> &'static str {
        self.doc.trim()
    }

    fn danger(&self) -> &'static str {
        self.danger
    }

    fn reach(&self) -> Reach {
        self.reach
    }

    fn check(&self, node: &Node, reading: &mut super::reader::Reading<'_>) {
        let _ = self.kind.read(node, reading);
    }
}

/// Declares a section as a module: each option a static of its own, and `SECTION` that lists them, so
/// that none can be forgotten.
macro_rules! section {
    (
        $(#[doc = $section_doc:literal])+
        $module:ident = $section:expr;
        $($(#[doc = $doc:literal])+ $option:ident: $type:ty = $value:expr;)*
    ) => {
        #[doc = concat!("The options of ", stringify!($module), ".")]
        pub(crate) mod $module {
            use super::*;

            $($(#[doc = $doc])+ pub(crate) static $option: $type =
                $value.doc(concat!($($doc,)+));)*

            /// The section.
            pub(crate) static SECTION: Section = Section {
                doc: concat!($($section_doc,)+),
                own: &[$(&$option,)*],
                ..$section
            };
        }
    };
}
use section;

impl Section {
    /// A section without options; `section!` fills them in.
    const fn new(key: &'static str, path: &'static str, shape: Shape) -> Section {
        Section {
            key,
            path,
            shape,
            doc: "",
            example: "",
            shorthand: None,
            own: &[],
            borrows: &[],
            sections: &[],
        }
    }

    const fn example(self, example: &'static str) -> Section {
        Section { example, ..self }
    }

    const fn shorthand(self, key: &'static str) -> Section {
        Section { shorthand: Some(key), ..self }
    }

    const fn borrows(self, borrows: &'static [(&'static Section, Reach)]) -> Section {
        Section { borrows, ..self }
    }

    const fn sections(self, sections: &'static [&'static Section]) -> Section {
        Section { sections, ..self }
    }
}

/// Keys of options that hold secrets.
pub(crate) const SECRET_KEYS: [&str; 5] = [
    admin::TOKEN.key,
    log::HASH_KEY.key,
    group::STICKY_SECRET.key,
    context_sync::PASSWORD.key,
    waf::CHALLENGE_SECRET.key,
];

/// The whole table.
pub(crate) fn table() -> Vec<&'static Section> {
    root::SECTION.walk()
}

/// A TOML value as JSON, for defaults and examples in the schema.
pub(crate) fn to_json(toml: &str) -> serde_json::Value {
    fn convert(node: &Node) -> serde_json::Value {
        match &node.value {
            node::Value::Text(text) => text.as_str().into(),
            node::Value::Integer(number) => (*number).into(),
            node::Value::Boolean(boolean) => (*boolean).into(),
            node::Value::Array(list) => list.iter().map(convert).collect(),
            node::Value::Table(table) => {
                let entries = table.entries.iter();
                entries.map(|entry| (entry.key.clone(), convert(&entry.node))).collect()
            }
            node::Value::Float | node::Value::Datetime => serde_json::Value::Null,
        }
    }
    node::parse_value(0, toml).map_or(serde_json::Value::Null, |node| convert(&node))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::diagnostic::Diagnostics;
    use super::super::environment::{Environment, Missing};
    use super::super::names::{self, Depth};
    use super::super::reader::Reading;
    use super::super::render::{self, Colour};
    use super::*;

    /// Any variable is a key of 32 hexadecimal digits.
    struct Anything;

    impl Environment for Anything {
        fn variable(&self, _name: &str) -> Result<String, Missing> {
            Ok("00112233445566778899aabbccddeeff".into())
        }
    }

    fn reading(text: &str) -> Reading<'static> {
        let mut diagnostics = Diagnostics::default();
        diagnostics.sources.add(Path::new("table"), text.into());
        Reading::new(diagnostics, &Anything)
    }

    fn assert_none(reading: &Reading<'_>, about: &str) {
        let found = render::text(&reading.diagnostics, Colour::Off);
        assert!(found.is_empty(), "{about}:\n{found}");
    }

    #[test]
    fn defaults_and_examples_are_values_of_their_options() {
        for section in table() {
            for option in section.own {
                let default = match option.absence() {
                    Absence::Default(default) => Some(default),
                    Absence::Means(_) | Absence::Mistake => None,
                };
                for text in default.into_iter().chain([option.example()]) {
                    let about = format!("{} {} = {text}", section.path, option.key());
                    let mut reading = reading(text);
                    let node = node::parse_value(0, text).expect(&about);
                    option.check(&node, &mut reading);
                    assert_none(&reading, &about);
                }
            }
        }
    }

    #[test]
    fn examples_of_sections_hold_known_names_and_good_values() {
        for section in table() {
            // Headers below a list belong to its last member.
            let list = match section.path.split_once('.') {
                Some(("[listen", _)) => "[[listen]]\n",
                Some(("[[site", _)) => "[[site]]\n",
                _ => "",
            };
            let text = format!("{list}{}", section.example);
            let mut reading = reading(&text);
            let parsed = node::parse(0, &text, &mut reading.diagnostics);
            let inline: &'static Section = Box::leak(Box::new(Section {
                sections: Box::leak(Box::new([section])),
                ..Section::new("", "", Shape::Root)
            }));
            let holder = match section.shape {
                Shape::Inline | Shape::InlineMany => inline,
                Shape::Root | Shape::One | Shape::Many | Shape::Named => &root::SECTION,
            };
            names::check(holder, &parsed, None, Depth::Values, &mut reading);
            assert_none(&reading, &text);
        }
    }

    #[test]
    fn every_option_and_section_is_told_of() {
        for section in table() {
            assert!(section.doc.trim().ends_with('.'), "{}", section.path);
            assert!(!section.example.is_empty(), "{}", section.path);
            let mut keys: Vec<_> = section.keys().collect();
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), count, "{} has a key twice", section.path);
            for option in section.own {
                assert!(option.doc().ends_with('.'), "{} {}", section.path, option.key());
                assert!(option.danger().is_empty() || option.danger().ends_with('.'));
            }
        }
    }

    #[test]
    fn secrets_are_known_by_their_keys() {
        for section in table() {
            for option in section.own {
                let is_secret = option.kind().starts_with("a secret");
                assert_eq!(is_secret, SECRET_KEYS.contains(&option.key()), "{}", option.key());
            }
        }
    }
}
