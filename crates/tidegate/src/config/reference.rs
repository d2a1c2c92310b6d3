//! The reference of the configuration, from the option table: for the terminal, as Markdown, as a
//! commented file.

use std::fmt::Write as _;

use super::diagnostic::{self, Severity};
use super::options::{self, Absence, Declared, Reach, Section, Shape};
use super::suggest;

/// Columns of the terminal's text.
const COLUMNS: usize = 96;

/// The whole reference for the terminal.
pub(crate) fn terminal() -> String {
    let mut out = String::new();
    for section in options::table() {
        let _ = writeln!(out, "{}", title(section));
        out.push_str(&wrapped(section.doc, 2));
        out.push('\n');
        for option in section.own {
            option_text(&mut out, *option);
            out.push('\n');
        }
        borrowed_text(&mut out, section);
    }
    out
}

/// An option, a section or a kind of mistake; the words to say if there is none.
pub(crate) fn entry(name: &str) -> Result<String, String> {
    let mut out = String::new();
    let plain = plain(name);
    for code in diagnostic::code::ALL {
        if code.number.eq_ignore_ascii_case(&plain) || code.name == plain {
            let severity = match code.severity {
                Severity::Error => "error: the configuration cannot be used",
                Severity::Warning => "warning: `tidegate check --strict` fails on it",
                Severity::Note => "note: it stops nothing",
            };
            let _ = writeln!(
                out,
                "{} {}\n{}  ({severity})",
                code.number,
                code.name,
                wrapped(code.doc, 2)
            );
        }
    }
    for section in options::table() {
        let path = self::plain(section.path);
        if path == plain || section.key == plain {
            let _ = writeln!(out, "{}", title(section));
            let _ = writeln!(out, "{}", wrapped(section.doc, 2));
            let _ = writeln!(out, "{}", indented(section.example, 4));
            for option in section.own {
                option_text(&mut out, *option);
                out.push('\n');
            }
            borrowed_text(&mut out, section);
        }
        for option in section.own {
            if option.key() == plain || format!("{path}.{}", option.key()) == plain {
                let _ = writeln!(out, "{}", title(section));
                option_text(&mut out, *option);
                let _ = writeln!(out, "      example: {} = {}\n", option.key(), option.example());
            }
        }
    }
    if out.is_empty() {
        let sections = options::table();
        let keys = sections.iter().flat_map(|section| {
            std::iter::once(section.key).chain(section.own.iter().map(|option| option.key()))
        });
        let guess = suggest::did_you_mean(&plain, keys);
        return Err(format!(
            "there is no option, section or mistake `{name}`{}\n",
            guess.map(|guess| format!("; {guess}")).unwrap_or_default()
        ));
    }
    Ok(out)
}

/// `[group.NAME.tls]` as it may be asked for: `group.tls`.
fn plain(path: &str) -> String {
    path.replace(['[', ']'], "").replace(".NAME", "")
}

fn title(section: &Section) -> String {
    match section.shape {
        Shape::Root => "At the top of the file".into(),
        Shape::One | Shape::Many | Shape::Named => section.path.into(),
        Shape::Inline => format!("{} = {{ .. }}", section.path),
        Shape::InlineMany => format!("{} = [..]", section.path),
    }
}

fn option_text(out: &mut String, option: &dyn Declared) {
    let _ = writeln!(out, "  {}", option.key());
    out.push_str(&wrapped(option.doc(), 6));
    out.push_str(&wrapped(&format!("{}{}.", capital(&option.kind()), absence(option)), 6));
    for (name, doc) in option.choices().iter().filter(|(_, doc)| !doc.is_empty()) {
        out.push_str(&wrapped(&format!("`{name}`: {doc}."), 8));
    }
    if !option.danger().is_empty() {
        out.push_str(&wrapped(&format!("Danger: {}", option.danger()), 6));
    }
}

fn absence(option: &dyn Declared) -> String {
    let reach = match option.reach() {
        Reach::Here => "",
        Reach::Site => ". Also in [[site]]",
        Reach::Defaults => ". Also in [defaults]",
        Reach::Waf => ". Also in [waf]",
        Reach::Cache => ". Also in [cache]",
    };
    match option.absence() {
        Absence::Default(default) => format!("; default {default}{reach}"),
        Absence::Means(words) => format!("; if absent: {words}{reach}"),
        Absence::Mistake => format!("; required{reach}"),
    }
}

fn borrowed_text(out: &mut String, section: &Section) {
    let borrowed = borrowed(section);
    if !borrowed.is_empty() {
        out.push_str(&wrapped(&format!("Also: {}.", borrowed.join(", ")), 2));
        out.push('\n');
    }
}

/// Keys that may stand in a section besides its own.
fn borrowed(section: &Section) -> Vec<&'static str> {
    let own: Vec<&str> = section.own.iter().map(|option| option.key()).collect();
    section.options().map(Declared::key).filter(|key| !own.contains(key)).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A text in lines that fit the terminal.
fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

fn indented(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
    out
}

/// The reference as Markdown: `docs/configuration.md`.
pub(crate) fn markdown() -> String {
    let mut out = String::from(
        "# Reference of the configuration\n\n\
        <!-- Generated from crates/tidegate/src/config/options; \
        UPDATE=1 cargo test -p tidegate --test config writes it. -->\n\n\
        `docs/guide-configuration.md` shows how a file grows from three lines. `tidegate config NAME` \
        prints any entry of this page, `tidegate check FILE` holds a file against it.\n\n\
        ## Values\n\n\
        - Durations have a unit: `500ms`, `5s`, `2m`, `1h`, `1d`, or a sum such as `1m30s`.\n\
        - Sizes: `512` or `512B`, `16KB`, `10MB`, `1GB`; 1KB is 1024 bytes.\n\
        - Shares: `20%`.\n\
        - `${NAME}`, in capitals, in any string is replaced by the environment variable of that \
        name; `$${NAME}` stays as it is. A variable that is not set is a mistake. Placeholders in \
        small letters (`$host`) are for redirects, header values and log formats.\n\
        - Secrets may also say `file:/path`, such as `file:${CREDENTIALS_DIRECTORY}/token` for \
        systemd's credentials.\n\
        - Paths are relative to the file they stand in.\n\
        - Where a list is wanted, a single value will do.\n\n\
        ## Sections\n\n",
    );
    for section in options::table() {
        let _ = writeln!(out, "- [{}](#{})", code_text(&title(section)), anchor(section));
    }
    out.push_str("- [Placeholders](#placeholders)\n- [Mistakes](#mistakes)\n");
    for section in options::table() {
        let _ = write!(
            out,
            "\n<a id=\"{}\"></a>\n\n### {}\n\n{}\n\n```toml\n{}\n```\n",
            anchor(section),
            code_text(&title(section)),
            section.doc.trim(),
            section.example
        );
        for option in section.own {
            option_markdown(&mut out, *option);
        }
        let borrowed = borrowed(section);
        if !borrowed.is_empty() {
            let keys: Vec<String> = borrowed.iter().map(|key| format!("`{key}`")).collect();
            let _ = write!(out, "\nAlso here, for all below: {}.\n", keys.join(", "));
        }
    }
    placeholders_markdown(&mut out);
    codes_markdown(&mut out);
    out
}

fn option_markdown(out: &mut String, option: &dyn Declared) {
    let _ = write!(out, "\n#### `{}`\n\n{}\n\n", option.key(), option.doc());
    let _ = writeln!(out, "- {}", capital(&option.kind()));
    match option.absence() {
        Absence::Default(default) => {
            let _ = writeln!(out, "- Default: `{default}`");
        }
        Absence::Means(words) => {
            let _ = writeln!(out, "- If absent: {words}");
        }
        Absence::Mistake => out.push_str("- Required\n"),
    }
    for (name, doc) in option.choices().iter().filter(|(_, doc)| !doc.is_empty()) {
        let _ = writeln!(out, "- `{name}`: {doc}");
    }
    match option.reach() {
        Reach::Here => {}
        Reach::Site => out.push_str("- Also in `[[site]]`\n"),
        Reach::Defaults => out.push_str("- Also in `[defaults]`\n"),
        Reach::Waf => out.push_str("- Also in `[waf]`\n"),
        Reach::Cache => out.push_str("- Also in `[cache]`\n"),
    }
    if option.absence() != Absence::Default(option.example()) {
        let _ = writeln!(out, "- Example: `{} = {}`", option.key(), option.example());
    }
    if !option.danger().is_empty() {
        let _ = writeln!(out, "- **Danger**: {}", option.danger());
    }
}

fn placeholders_markdown(out: &mut String) {
    out.push_str(
        "\n### Placeholders\n\nIn values of header fields; in targets of redirects only `$host`, \
        `$path`, `$query` and `$uri`. `${name}` is the same as `$name`, and `$$` is a dollar sign. \
        Access logs have fields of their own: `docs/logs.md`.\n\n| placeholder | meaning |\n|---|---|\n",
    );
    for (_, name, doc) in tidegate_proxy::template::Variable::ALL {
        let _ = writeln!(out, "| `${name}` | {} |", doc.trim());
    }
}

fn codes_markdown(out: &mut String) {
    out.push_str(
        "\n### Mistakes\n\n`tidegate check` reports all of them at once. Errors keep a file from being \
        used; warnings do not, unless `--strict` is given; notes never do.\n\n| code | name | meaning |\n|---|---|---|\n",
    );
    for code in diagnostic::code::ALL {
        let _ = writeln!(out, "| {} | `{}` | {} |", code.number, code.name, code.doc.trim());
    }
}

fn code_text(title: &str) -> String {
    if title.starts_with("At the top") { title.into() } else { format!("`{title}`") }
}

fn anchor(section: &Section) -> String {
    match section.shape {
        Shape::Root => "top".into(),
        _ => plain(section.path).replace('.', "-"),
    }
}

/// A file with every option at its default, commented out.
pub(crate) fn toml() -> String {
    let mut out = String::from(
        "# Every option of Tidegate, commented out, at its default or with an example.\n\
         # `tidegate config NAME` tells more of one.\n\n",
    );
    for section in options::table() {
        for line in wrapped(section.doc, 0).lines() {
            let _ = writeln!(out, "# {line}");
        }
        match section.shape {
            Shape::Root => {}
            Shape::One | Shape::Many | Shape::Named => {
                let _ = writeln!(out, "# {}", section.path);
            }
            Shape::Inline | Shape::InlineMany => {
                let _ = writeln!(out, "# {}", section.example);
            }
        }
        for option in section.own {
            let value = match option.absence() {
                Absence::Default(default) => default,
                Absence::Means(_) | Absence::Mistake => option.example(),
            };
            let inline = matches!(section.shape, Shape::Inline | Shape::InlineMany);
            let name = if inline { format!("`{}`: ", option.key()) } else { String::new() };
            let kind = format!("{}{}", capital(&option.kind()), absence(*option));
            out.push_str("#\n");
            for line in wrapped(&format!("{name}{} {kind}.", option.doc()), 0).lines() {
                let _ = writeln!(out, "#   {line}");
            }
            // Those of values stand within their braces, in the example above.
            if !inline {
                let _ = writeln!(out, "# {} = {value}", option.key());
            }
        }
        out.push('\n');
    }
    out
}
