//! Operators with their arguments.

use super::passage::Snippet;
use super::text::{pattern, text, unknown};
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::operator::{ArgumentKind, OperatorName};
use crate::seclang::rule::{OperatorCall, Sense};
use crate::seclang::support::Support;
use crate::seclang::text::{Piece, Text};

/// Reads the operator of a rule. A text that names none is a pattern for `rx`.
pub(super) fn operator(source: Snippet<'_>, report: &mut Report) -> Option<OperatorCall> {
    let source = source.trim_start();
    let (sense, source) = match source.strip_prefix(b'!') {
        Some(behind) => (Sense::Negated, behind.trim_start()),
        None => (Sense::Plain, source),
    };
    let Some(named) = source.strip_prefix(b'@') else {
        let argument = pattern(source, report);
        let location = source.location();
        return Some(OperatorCall { location, sense, name: OperatorName::Rx, argument });
    };
    let end = named.bytes().iter().position(u8::is_ascii_whitespace).unwrap_or(named.len());
    let (word, rest) = named.split_at(end);
    let name = name(word, report)?;
    let written = rest.trim_start();
    let location = if written.is_empty() { word.location() } else { written.location() };
    let argument = argument(name, word, written, report)?;
    Some(OperatorCall { location, sense, name, argument })
}

fn name(word: Snippet<'_>, report: &mut Report) -> Option<OperatorName> {
    let Some(name) = OperatorName::named(word.bytes()) else {
        let candidates = OperatorName::ALL.iter().map(|it| it.name());
        let otherwise = "a pattern that begins with `@` is written behind `@rx`";
        unknown("operator", word, candidates, Some(otherwise), report);
        return None;
    };
    if let Support::Refused(reason) = name.description().support {
        let message = format!("the operator `@{}` is not supported", name.name());
        report.error(Diagnostic::new(word.location(), Code::Unsupported, message).hint(reason));
        return None;
    }
    Some(name)
}

fn argument(
    name: OperatorName,
    word: Snippet<'_>,
    written: Snippet<'_>,
    report: &mut Report,
) -> Option<Text> {
    let kind = name.argument();
    if kind.required() && written.trim().is_empty() {
        let message = format!("`@{}` takes {}, and has none", name.name(), kind.expected());
        report.error(Diagnostic::new(word.location(), Code::Value, message));
        return None;
    }
    match kind {
        ArgumentKind::None => {
            if !written.is_empty() {
                let message = format!("`@{}` takes no argument, and ignores this", name.name());
                report.note(written.location(), message);
            }
            Some(Text::default())
        }
        ArgumentKind::Pattern => Some(pattern(written, report)),
        ArgumentKind::Text => Some(text(written, report)),
        ArgumentKind::Number => {
            let number = text(written.trim(), report);
            if !may_be_number(&number) {
                let message =
                    format!("`@{}` takes a number, found {}", name.name(), written.shown());
                report.error(Diagnostic::new(written.location(), Code::Value, message));
                return None;
            }
            Some(number)
        }
        ArgumentKind::File
        | ArgumentKind::Addresses
        | ArgumentKind::ByteRanges
        | ArgumentKind::Domain
        | ArgumentKind::Script => Some(Text::plain(written.trim().bytes())),
        ArgumentKind::PlainPattern | ArgumentKind::Phrases => Some(Text::plain(written.bytes())),
    }
}

/// The whole number that these bytes write, with a sign or not.
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Whether a text can be a number: it is one, or has macros that may yield one.
pub(super) fn may_be_number(text: &Text) -> bool {
    match text.literal() {
        Some(literal) => integer(literal).is_some(),
        None => text.pieces().iter().any(|piece| matches!(piece, Piece::Macro { .. })),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::passage::Passage;
    use super::*;

    fn check(source: &str, expected: &str, remarks: &[&str]) {
        let mut passage = Passage::new(&Arc::from("f"));
        passage.push(source.as_bytes(), 1, 1);
        let mut report = Report::default();
        let found = operator(passage.whole(), &mut report).map_or("-".into(), |call| {
            let sense = if call.sense == Sense::Negated { "!" } else { "" };
            format!("{sense}{} {:?} {}", call.name.name(), call.argument, call.location.column)
        });
        assert_eq!(found, expected, "{source}");
        let found: Vec<_> = match report.finish(&[]) {
            Ok(notes) => notes.iter().map(ToString::to_string).collect(),
            Err(diagnostics) => diagnostics.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found, remarks, "{source}");
    }

    #[test]
    fn operators_are_read() {
        check("foo|bar", "rx \"foo|bar\" 1", &[]);
        check("", "rx \"\" 1", &[]);
        check("!^a b$", "!rx \"^a b$\" 2", &[]);
        check("@rx  a b ", "rx \"a b \" 6", &[]);
        check("! @StrEq %{tx.a}b", "!streq \"%{TX.a}b\" 10", &[]);
        check("@eq 0", "eq \"0\" 5", &[]);
        check("@gt -1 ", "gt \"-1\" 5", &[]);
        check("@lt %{tx.a}", "lt \"%{TX.a}\" 5", &[]);
        check("@pm %{tx.a} b", "pm \"%{tx.a} b\" 5", &[]);
        check("@pmf x.data ", "pmFromFile \"x.data\" 6", &[]);
        check("@detectSQLi", "detectSQLi \"\" 2", &[]);
        check("@streq", "streq \"\" 2", &[]);
        let note = "f:1:13: `@detectXSS` takes no argument, and ignores this";
        check("@detectXSS  x", "detectXSS \"\" 13", &[note]);
    }

    #[test]
    fn mistakes_are_told() {
        let check_one = |source, mistake: &str| check(source, "-", &[mistake]);
        check_one("@rex a", "f:1:2: [unknown] there is no operator `rex`; did you mean `rx`?");
        check_one(
            "@foo.com",
            "f:1:2: [unknown] there is no operator `foo.com`; a pattern that begins with `@` is written behind `@rx`",
        );
        check_one("@eq", "f:1:2: [value] `@eq` takes a number, and has none");
        check_one("@eq x", "f:1:5: [value] `@eq` takes a number, found `x`");
        check_one("@pm  ", "f:1:2: [value] `@pm` takes phrases parted by spaces, and has none");
        check_one(
            "@pmFromFile",
            "f:1:2: [value] `@pmFromFile` takes the path of a file, and has none",
        );
        check_one(
            "@rsub s/a/b/",
            "f:1:2: [unsupported] the operator `@rsub` is not supported; bodies are inspected here, never rewritten",
        );
    }
}
