//! The check of names: that every key of a configuration is an option or section of the table, in the
//! place and shape it belongs to.
//!
//! It runs over the whole tree before anything is resolved, so that a misspelt name is reported even
//! where nothing would have looked for it.

use super::diagnostic::{Diagnostic, code};
use super::node::{Entry, Node, Table, Value};
use super::options::{self, Section, Shape};
use super::reader::Reading;
use super::source::Span;
use super::suggest;

/// Whether values are looked at too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Names only: resolving will read the values.
    Names,
    /// Values too, each on its own: nothing will be resolved, because the files do not parse.
    Values,
}

/// Checks all that stands in a section; `place` is where the section stands, as its [`Scope`] says.
///
/// [`Scope`]: super::reader::Scope
pub(crate) fn check(
    section: &'static Section,
    table: &Table,
    place: Option<Span>,
    depth: Depth,
    reading: &mut Reading<'_>,
) {
    for entry in &table.entries {
        if let Some(option) = section.options().find(|option| option.key() == entry.key) {
            // `[defaults]` may hold what nobody asks for.
            if depth == Depth::Values || section.key == options::defaults::SECTION.key {
                option.check(&entry.node, reading);
            }
        } else if let Some(below) = section.section(&entry.key) {
            check_section(below, entry, depth, reading);
        } else {
            reading.misspelt.extend(place);
            reading.report(unknown(section, entry));
        }
    }
}

fn check_section(
    section: &'static Section,
    entry: &Entry,
    depth: Depth,
    reading: &mut Reading<'_>,
) {
    let place = Some(entry.key_span);
    let wrong = |message: String| Diagnostic::new(&code::WRONG_SHAPE, entry.key_span, message);
    match (section.shape, &entry.node.value) {
        (Shape::Root | Shape::One | Shape::Inline | Shape::InlineMany, Value::Table(table)) => {
            check(section, table, place, depth, reading);
        }
        (Shape::One | Shape::Inline, Value::Array(list)) if list.iter().all(is_table) => {
            reading.report(
                wrong(format!("{} is written once", section.path))
                    .hint(format!("write `{}`", heading(section))),
            );
        }
        (Shape::Many, Value::Table(table)) => {
            reading.report(
                wrong(format!("there may be many of `{}`, so it is a list", entry.key))
                    .hint(format!("write `{}` with two brackets", section.path)),
            );
            check(section, table, place, depth, reading);
        }
        (Shape::Many | Shape::InlineMany, Value::Array(list)) => {
            for item in list {
                check_item(section, item, depth, reading);
            }
        }
        (Shape::Named, Value::Table(table)) => {
            for named in &table.entries {
                check_named(section, named, depth, reading);
            }
        }
        // Read as the shorthand option when the section is resolved.
        _ if section.shorthand.is_some() => {}
        (_, value) => {
            reading.report(
                wrong(format!("`{}` is a section, found {}", entry.key, value.what()))
                    .hint(format!("write `{}`", heading(section))),
            );
        }
    }
}

fn check_item(section: &'static Section, item: &Node, depth: Depth, reading: &mut Reading<'_>) {
    match &item.value {
        Value::Table(table) => check(section, table, Some(item.span), depth, reading),
        _ if section.shorthand.is_some() => {}
        value => {
            reading.misspelt.insert(item.span);
            let message = format!("expected a table, found {}", value.what());
            reading.report(
                Diagnostic::new(&code::WRONG_TYPE, item.span, message)
                    .hint(format!("write it like `{}`", last_line(section.example))),
            );
        }
    }
}

fn check_named(section: &'static Section, entry: &Entry, depth: Depth, reading: &mut Reading<'_>) {
    match &entry.node.value {
        Value::Table(table) => check(section, table, Some(entry.key_span), depth, reading),
        _ if section.keys().any(|key| key == entry.key) => {
            reading.report(
                Diagnostic::new(
                    &code::WRONG_SHAPE,
                    entry.key_span,
                    format!("`{}` belongs to a {} with a name", entry.key, section.key),
                )
                .hint(format!("write `{}` with a name of your choice", section.path)),
            );
        }
        value => {
            reading.report(
                Diagnostic::new(
                    &code::WRONG_SHAPE,
                    entry.node.span,
                    format!("expected the table of a {}, found {}", section.key, value.what()),
                )
                .hint(format!("write it like `{}`", section.example.replace('\n', "`, `"))),
            );
        }
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

fn heading(section: &Section) -> String {
    match section.shape {
        Shape::Inline | Shape::InlineMany => last_line(section.example).into(),
        _ => section.path.into(),
    }
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text)
}

/// Words of other servers' configurations, and what they are called here.
const FOREIGN: [(&str, &str); 28] = [
    ("server_name", "write `host` or `hosts`"),
    ("domain", "write `host` or `hosts`"),
    ("domains", "write `host` or `hosts`"),
    ("server", "sites are `[[site]]`, servers of a group are `servers`"),
    ("backend", "write `upstream = \"ADDRESS:PORT\"`, or `group = \"NAME\"`"),
    ("backends", "write `servers`"),
    ("proxy_pass", "write `upstream = \"ADDRESS:PORT\"`"),
    ("location", "write `[[site.route]]` with `path`"),
    ("prefix", "write `path`"),
    ("return", "write `answer = { status = .. }` or `redirect = \"..\"`"),
    ("respond", "write `answer = { status = .., body = \"..\" }`"),
    ("rewrite", "write `strip_prefix`, `add_prefix` or `redirect`"),
    ("root", "files are not served; `upstream` names a server that does"),
    ("port", "the port stands in `address` of `[[listen]]`"),
    ("bind", "write `[[listen]]` with `address`"),
    ("cert", "write `certificates = [{ chain = \"..\", key = \"..\" }]` in `[listen.tls]`"),
    ("certificate", "write `certificates = [{ chain = \"..\", key = \"..\" }]` in `[listen.tls]`"),
    (
        "ssl_certificate",
        "write `certificates = [{ chain = \"..\", key = \"..\" }]` in `[listen.tls]`",
    ),
    ("ssl", "TLS is turned on by `[listen.tls]`"),
    (
        "timeout",
        "name the wait: `first_byte_timeout`, `between_bytes_timeout`, `whole_timeout`, `connect_timeout`",
    ),
    ("client_max_body_size", "write `body_max`"),
    ("max_body_size", "write `body_max`"),
    ("keepalive", "write `keep_alive_max`"),
    ("worker_processes", "write `workers`"),
    ("worker_connections", "write `connections_max`"),
    ("access_log", "write `[[log]]`, and `logs` in the site"),
    ("headers", "write `request_headers` or `response_headers`"),
    ("add_header", "write `response_headers = { add = { Name = \"value\" } }`"),
];

fn unknown(section: &'static Section, entry: &Entry) -> Diagnostic {
    let key = entry.key.as_str();
    let is_section = matches!(&entry.node.value, Value::Table(_))
        || matches!(&entry.node.value, Value::Array(list) if !list.is_empty() && list.iter().all(is_table));
    let what = if is_section { "section" } else { "option" };
    let diagnostic = Diagnostic::new(
        &code::UNKNOWN_OPTION,
        entry.key_span,
        match section.shape {
            Shape::Root => {
                format!("there is no {what} `{}` at the top of a file", key.escape_debug())
            }
            _ => format!("{} has no {what} `{}`", section.path, key.escape_debug()),
        },
    );
    let near = suggest::nearest(key, section.keys());
    let homes: Vec<&'static str> = options::table()
        .into_iter()
        .filter(|other| !std::ptr::eq(*other, section))
        .filter(|other| other.keys().any(|known| known == key))
        .map(|other| if other.shape == Shape::Root { "the top of the file" } else { other.path })
        .collect();
    let foreign = FOREIGN.iter().find(|(word, _)| *word == key).map(|(_, hint)| *hint);
    match (near, homes.as_slice()) {
        // A name that exists elsewhere is misplaced rather than misspelt.
        (_, [_, ..]) => diagnostic.hint(format!("`{key}` belongs to {}", suggest::one_of(homes))),
        (Some(near), _) => diagnostic.label(format!("did you mean `{near}`?")),
        _ => {
            if let Some(hint) = foreign {
                diagnostic.hint(hint)
            } else {
                let known = suggest::one_of(section.keys().take(LISTED_MAX));
                diagnostic.hint(match section.keys().count() {
                    0..=LISTED_MAX => format!("known are {known}"),
                    _ => format!("`tidegate config '{}'` lists what there is", section.path),
                })
            }
        }
    }
}

/// Longer lists of names are not repeated in messages.
const LISTED_MAX: usize = 9;
