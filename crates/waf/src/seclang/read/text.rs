//! Text with macros, and the variables that macros and targets name.

use super::passage::Snippet;
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::suggestion::did_you_mean;
use crate::seclang::text::Text;
use crate::variable::{Foreign, Shape, Variable};

/// What `%{...}` is where it names no variable.
#[derive(Clone, Copy)]
enum Otherwise {
    /// A mistake.
    Mistake,
    /// Literal text: in a pattern, `%{` need not begin a macro.
    Literal,
}

/// Reads text in which every well-formed `%{...}` must be a macro.
pub(super) fn text(snippet: Snippet<'_>, report: &mut Report) -> Text {
    read(snippet, Otherwise::Mistake, report)
}

/// Reads a pattern, in which `%{...}` is a macro if it names a variable.
pub(super) fn pattern(snippet: Snippet<'_>, report: &mut Report) -> Text {
    read(snippet, Otherwise::Literal, report)
}

fn read(snippet: Snippet<'_>, otherwise: Otherwise, report: &mut Report) -> Text {
    let mut text = Text::default();
    let bytes = snippet.bytes();
    let finder = memchr::memmem::Finder::new(b"%{");
    // `literal` is where the literal begins that is not yet in `text`.
    let (mut literal, mut from) = (0, 0);
    while let Some(found) = finder.find(&bytes[from..]) {
        let at = from + found;
        from = at + 2;
        let Some((inside, end)) = braced(snippet, from) else { continue };
        if let Some((variable, selector)) = expansion(inside, otherwise, report) {
            text.push_literal(&bytes[literal..at]);
            text.push_macro(variable, selector.map(Snippet::bytes));
            literal = end;
        }
        from = end;
    }
    text.push_literal(&bytes[literal..]);
    text
}

/// What is in the braces that begin before `from`, if it begins as a variable's name does, and the
/// offset behind them.
fn braced(snippet: Snippet<'_>, from: usize) -> Option<(Snippet<'_>, usize)> {
    snippet.bytes().get(from).filter(|byte| byte.is_ascii_alphabetic())?;
    let rest = snippet.from(from);
    let inside = rest.slice(0..memchr::memchr2(b'}', b'{', rest.bytes())?);
    (rest.bytes()[inside.len()] == b'}').then_some((inside, from + inside.len() + 1))
}

fn expansion<'p>(
    inside: Snippet<'p>,
    otherwise: Otherwise,
    report: &mut Report,
) -> Option<(Variable, Option<Snippet<'p>>)> {
    let end = name_len(inside.bytes());
    let (name, behind) = inside.split_at(end);
    let selector = match behind.bytes() {
        [] => None,
        [b'.' | b':', _, ..] => Some(behind.from(1)),
        _ if matches!(otherwise, Otherwise::Literal) => return None,
        _ => {
            let message =
                format!("expected `%{{VARIABLE.name}}`, found `%{{` and {}", inside.shown());
            report.error(Diagnostic::new(behind.location(), Code::Syntax, message));
            return None;
        }
    };
    if matches!(otherwise, Otherwise::Literal) && Variable::named(name.bytes()).is_none() {
        let message = format!(
            "{} is no variable, so `%{{` stands for itself in this pattern; `%\\{{` says so",
            name.shown()
        );
        report.note(name.location(), message);
        return None;
    }
    let variable = variable(name, report)?;
    match (variable.shape(), selector) {
        (Shape::Scalar, Some(selector)) => {
            report.error(no_selector(variable, selector));
            None
        }
        (_, Some(selector)) if variable == Variable::Rule => {
            known_field(selector, report).then_some((variable, Some(selector)))
        }
        _ => Some((variable, selector)),
    }
}

/// `RULE` has few values, so a misspelt one is found here.
pub(super) fn known_field(selector: Snippet<'_>, report: &mut Report) -> bool {
    const FIELDS: [&str; 5] = ["id", "rev", "severity", "logdata", "msg"];
    let known = FIELDS.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(selector.bytes()));
    if !known {
        let message = format!("`RULE` has no {}", selector.shown());
        report.error(
            Diagnostic::new(selector.location(), Code::Unknown, message)
                .hint("it has `id`, `rev`, `severity`, `logdata` and `msg`"),
        );
    }
    known
}

pub(super) fn no_selector(variable: Variable, selector: Snippet<'_>) -> Diagnostic {
    let name = variable.name();
    let message = format!("`{name}` is one value, so {} cannot be selected", selector.shown());
    Diagnostic::new(selector.location(), Code::Value, message).hint(format!("write `{name}` alone"))
}

/// How long the name is with which these bytes begin.
pub(super) fn name_len(bytes: &[u8]) -> usize {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.iter().position(|byte| !is_name(byte)).unwrap_or(bytes.len())
}

/// The variable of this name.
pub(super) fn variable(name: Snippet<'_>, report: &mut Report) -> Option<Variable> {
    let found = Variable::named(name.bytes());
    if found.is_some() {
        return found;
    }
    if let Some(foreign) = Foreign::named(name.bytes()) {
        let message = format!("the variable `{}` is not supported", foreign.name);
        let diagnostic = Diagnostic::new(name.location(), Code::Unsupported, message);
        report.error(diagnostic.hint(foreign.reason));
    } else {
        unknown("variable", name, Variable::ALL.iter().map(|it| it.name()), None, report);
    }
    None
}

/// Reports a name that no table has, with what was probably meant, or else with this hint.
pub(super) fn unknown<'c>(
    kind: &str,
    name: Snippet<'_>,
    candidates: impl IntoIterator<Item = &'c str>,
    otherwise: Option<&str>,
    report: &mut Report,
) {
    if report.is_full() {
        return;
    }
    let message = format!("there is no {kind} {}", name.shown());
    let hint = did_you_mean(name.bytes(), candidates).or_else(|| otherwise.map(str::to_owned));
    report.error(Diagnostic { hint, ..Diagnostic::new(name.location(), Code::Unknown, message) });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::passage::Passage;
    use super::*;

    fn check(
        read: fn(Snippet<'_>, &mut Report) -> Text,
        source: &str,
        expected: &str,
        mistakes: &[&str],
    ) {
        let mut passage = Passage::new(&Arc::from("f"));
        passage.push(source.as_bytes(), 1, 1);
        let mut report = Report::default();
        let text = read(passage.whole(), &mut report);
        assert_eq!(format!("{text:?}"), format!("\"{expected}\""), "{source}");
        let found: Vec<_> = match report.finish(&[]) {
            Ok(notes) => notes.iter().map(ToString::to_string).collect(),
            Err(diagnostics) => diagnostics.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found, mistakes, "{source}");
    }

    #[test]
    fn macros_are_found() {
        check(text, "", "", &[]);
        check(text, "a%b{c}", "a%b{c}", &[]);
        check(text, "%{tx.a}%{TX:b} %{remote_addr}", "%{TX.a}%{TX.b} %{REMOTE_ADDR}", &[]);
        check(text, "%%{tx.x.y-z}%", "%%{TX.x.y-z}%", &[]);
        check(text, "%{rule.msg}", "%{RULE.msg}", &[]);
        check(text, "%{tx.a", "%{tx.a", &[]);
        check(text, "%{2,3}%{}%{ tx.a}", "%{2,3}%{}%{ tx.a}", &[]);
        check(text, "%{tx.%{tx.a}}", "%{tx.%{TX.a}}", &[]);
    }

    #[test]
    fn macros_that_name_nothing_are_mistakes_in_text() {
        let unknown = "f:1:4: [unknown] there is no variable `ARG`; did you mean `ARGS`?";
        check(text, "a%{ARG.x}b", "a%{ARG.x}b", &[unknown]);
        let scalar = "f:1:15: [value] `REMOTE_ADDR` is one value, so `x` cannot be selected; \
                      write `REMOTE_ADDR` alone";
        check(text, "%{remote_addr.x}", "%{remote_addr.x}", &[scalar]);
        let rule = "f:1:8: [unknown] `RULE` has no `message`; it has `id`, `rev`, `severity`, \
                    `logdata` and `msg`";
        check(text, "%{RULE.message}", "%{RULE.message}", &[rule]);
        let syntax = "f:1:5: [syntax] expected `%{VARIABLE.name}`, found `%{` and `tx a`";
        check(text, "%{tx a}", "%{tx a}", &[syntax]);
        check(text, "%{tx.}", "%{tx.}", &[&syntax.replace("`tx a`", "`tx.`")]);
    }

    #[test]
    fn braces_of_patterns_stay() {
        check(pattern, "^%{tx.a}$", "^%{TX.a}$", &[]);
        check(pattern, "[%{}]%{1,2}%{x y}", "[%{}]%{1,2}%{x y}", &[]);
        let note = "f:1:3: `foo` is no variable, so `%{` stands for itself in this pattern; \
                    `%\\{` says so";
        check(pattern, "%{foo}", "%{foo}", &[note]);
    }
}
