//! The reference of the language, as Markdown: `docs/waf-language.md`.

use std::fmt::Write as _;

use super::action::{self, ActionName};
use super::control::ControlName;
use super::directive::DirectiveName;
use super::operator::OperatorName;
use super::support::Support;
use crate::transformation::Transformation;
use crate::variable::{Variable, foreign};

/// The reference of everything that the tables list.
pub fn reference() -> String {
    let mut out = String::from(HEAD);
    directives(&mut out);
    variables(&mut out);
    operators(&mut out);
    actions(&mut out);
    out
}

const HEAD: &str = "# The WAF's language\n\n\
    <!-- Generated from crates/waf/src/seclang and crates/waf/src/variable; \
    UPDATE=1 cargo test -p tidegate-waf writes it. -->\n\n\
    Rules are written in SecLang, the language of ModSecurity, as its version 3 describes it and \
    the OWASP Core Rule Set and its plugins use it. What is listed here is read; a word that is not \
    listed, or listed as not supported, is a mistake, and a rule set with a mistake is not loaded: \
    all of its mistakes are told at once, each with file, line and column.\n\n\
    ## Writing\n\n\
    - A directive stands on a line of its own. A backslash at the end of a line continues it in the \
    next one, whose indentation does not count. Lines that begin with `#` are comments, between \
    continued lines too; a comment that itself ends in a backslash takes the next line with it.\n\
    - White space parts words. In double quotes, a word may hold white space; `\\\"` stands for a \
    quote there, and every other backslash for itself, so that patterns are written as they are. \
    Single quotes do the same, with `\\'`.\n\
    - Names of directives, variables, operators, actions and transformations have no case.\n\
    - Files are bytes: text that is not UTF-8 reaches the rules as it is. Line ends are LF or CRLF.\n\
    - Paths are relative to the file in which they stand, those of data files too.\n\
    - `%{VARIABLE}` and `%{COLLECTION.name}` in texts stand for a value of the transaction.\n\
    - Limits: files 16 deep, 2000 files, 64 MiB together; 200000 directives of 1 MiB; 256 rules in a \
    chain, 4096 targets in a rule.\n\n";

/// The last columns of a table: what there is to know beyond the description.
fn support(support: Support) -> String {
    match support {
        Support::Full => String::new(),
        Support::OffOnly(reason) => format!(" Only `Off`: {reason}."),
        Support::Noted(reason) => format!(" No effect: {reason}."),
        Support::Refused(reason) => format!(" **Not supported**: {reason}."),
    }
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn directives(out: &mut String) {
    out.push_str("## Directives\n\n| directive | meaning |\n|---|---|\n");
    for name in DirectiveName::ALL {
        let it = name.description();
        let code = match it.syntax {
            "" => format!("`{}`", it.name),
            // A backtick is code only between two of them.
            syntax if syntax.contains('`') => format!("`` {} {} ``", it.name, cell(syntax)),
            syntax => format!("`{} {}`", it.name, cell(syntax)),
        };
        let _ = writeln!(out, "| {code} | {}{} |", cell(it.doc), cell(&support(it.support)));
    }
    out.push_str(
        "\nDirectives of the web server, and sections such as `<IfModule>`, are mistakes.\n\n",
    );
}

fn variables(out: &mut String) {
    out.push_str(
        "## Variables\n\n\
        A rule looks at targets, parted by `|`: `ARGS` means all values, `ARGS:name` those of this \
        name, `ARGS:/pattern/` those whose names match, `&ARGS` how many there are, and `!ARGS:name` \
        leaves values out. A name that holds `|` or white space is written in single quotes. Behind \
        `XML:` stands a path.\n\n\
        A kept collection lives longer than a transaction. The phase is the first one in which a \
        variable can have a value; a rule that looks earlier is noted.\n\n\
        | variable | kind | phase | meaning |\n|---|---|---|---|\n",
    );
    for variable in Variable::ALL {
        let it = variable.description();
        let mut names = format!("`{}`", it.name);
        for alias in it.aliases {
            let _ = write!(names, ", `{alias}`");
        }
        let (shape, phase) = (it.shape.name(), it.known_from);
        let _ = writeln!(out, "| {names} | {shape} | {phase} | {} |", cell(it.doc));
    }
    out.push_str("\n### Variables that are not supported\n\n| variable | reason |\n|---|---|\n");
    for foreign in foreign() {
        let _ = writeln!(out, "| `{}` | {} |", foreign.name, cell(foreign.reason));
    }
    out.push('\n');
}

fn operators(out: &mut String) {
    out.push_str(
        "## Operators\n\n\
        Written `\"@name argument\"`; `!` before the `@` asks for the opposite. Text without an \
        operator is a pattern for `rx`.\n\n\
        | operator | argument | macros | matches if |\n|---|---|---|---|\n",
    );
    for name in OperatorName::ALL {
        let it = name.description();
        let mut names = format!("`@{}`", it.name);
        for alias in it.aliases {
            let _ = write!(names, ", `@{alias}`");
        }
        let macros = if it.argument.expands() { "yes" } else { "" };
        let (argument, doc) = (it.argument.expected(), cell(it.doc));
        let _ = writeln!(out, "| {names} | {argument} | {macros} | {doc}{} |", support(it.support));
    }
    out.push('\n');
}

fn actions(out: &mut String) {
    out.push_str(
        "## Actions\n\n\
        Parted by commas, a value behind a colon; a value that holds a comma is written in single \
        quotes.\n\n\
        | action | value | group | meaning |\n|---|---|---|---|\n",
    );
    for name in ActionName::ALL {
        let it = name.description();
        let mut names = format!("`{}`", it.name);
        for alias in it.aliases {
            let _ = write!(names, ", `{alias}`");
        }
        let value = match it.value {
            action::Value::None => "",
            action::Value::Optional => "may have one",
            action::Value::Required(expected) => expected,
        };
        let (group, doc) = (it.group.name(), cell(it.doc));
        let _ = writeln!(out, "| {names} | {value} | {group} | {doc}{} |", support(it.support));
    }
    out.push_str("\n### Options of `ctl`\n\n| option | value | meaning |\n|---|---|---|\n");
    for name in ControlName::ALL {
        let it = name.description();
        let (expected, doc) = (cell(it.expected), cell(it.doc));
        let _ = writeln!(out, "| `{}` | {expected} | {doc}{} |", it.name, support(it.support));
    }
    out.push_str("\n### Transformations of `t`\n\n`none` drops those before it. The others: ");
    for (at, transformation) in Transformation::ALL.iter().enumerate() {
        let _ = write!(out, "{}`{}`", if at == 0 { "" } else { ", " }, transformation.name());
    }
    out.push_str(".\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/waf-language.md");
        let generated = reference();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &generated).unwrap();
        }
        let present = std::fs::read_to_string(path).unwrap_or_default();
        let hint = "UPDATE=1 cargo test -p tidegate-waf writes it";
        assert!(present == generated, "docs/waf-language.md is not current; {hint}");
    }

    #[test]
    fn every_row_has_the_cells_of_its_head() {
        let reference = reference();
        for table in reference.split("\n\n").filter(|block| block.starts_with('|')) {
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            let mut rows = table.lines();
            let head = rows.next().map(cells);
            for row in rows {
                assert_eq!(Some(cells(row)), head, "{row}");
            }
        }
    }

    #[test]
    fn every_name_is_found_by_itself() {
        let same = |found: Option<usize>, at: usize, name: &str| {
            assert_eq!(found, Some(at), "{name} is listed twice or not found");
        };
        for (at, it) in Variable::ALL.iter().enumerate() {
            for name in it.description().aliases.iter().chain([&it.name()]) {
                same(Variable::named(name.as_bytes()).map(Variable::index), at, name);
            }
        }
        for (at, it) in OperatorName::ALL.iter().enumerate() {
            for name in it.description().aliases.iter().chain([&it.name()]) {
                same(OperatorName::named(name.as_bytes()).map(|it| it as usize), at, name);
            }
        }
        for (at, it) in ActionName::ALL.iter().enumerate() {
            for name in it.description().aliases.iter().chain([&it.name()]) {
                same(ActionName::named(name.as_bytes()).map(|it| it as usize), at, name);
            }
        }
        for (at, it) in DirectiveName::ALL.iter().enumerate() {
            same(DirectiveName::named(it.name().as_bytes()).map(|it| it as usize), at, it.name());
        }
        for (at, it) in ControlName::ALL.iter().enumerate() {
            let name = it.description().name;
            same(ControlName::named(name.as_bytes()).map(|it| it as usize), at, name);
        }
        for foreign in foreign() {
            assert_eq!(Variable::named(foreign.name.as_bytes()), None, "{}", foreign.name);
        }
    }
}
