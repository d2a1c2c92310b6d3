//! Targets: what a rule looks at.

use super::passage::{Passage, Snippet};
use super::text::{known_field, name_len, no_selector, variable};
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::location::Location;
use crate::seclang::rule::{Selector, Target, TargetKind};
use crate::variable::{Shape, Variable};

/// How many targets a list may have.
const TARGETS_MAX: usize = 4_096;
/// How long the pattern of a selector may be.
const PATTERN_BYTES_MAX: usize = 8_192;

/// Reads a list of targets, parted by bars. A comma parts them too if a target follows it, as
/// `SecRuleUpdateTargetById` is often written; otherwise it belongs to a name. Targets with mistakes
/// are left out.
pub(super) fn targets(list: Snippet<'_>, report: &mut Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut rest = list.trim();
    let mut read = 0;
    loop {
        match target(&mut rest, report) {
            Ok(target) => targets.extend(target),
            Err(diagnostic) => {
                report.error(diagnostic);
                break;
            }
        }
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        if !matches!(rest.bytes(), [b'|' | b',', ..]) {
            let message = format!("expected `|` between targets, found {}", rest.shown());
            report.error(Diagnostic::new(rest.location(), Code::Syntax, message));
            break;
        }
        rest = rest.from(1).trim_start();
        read += 1;
        if read >= TARGETS_MAX {
            let message = format!("a list has at most {TARGETS_MAX} targets");
            report.error(Diagnostic::new(rest.location(), Code::Limit, message));
            break;
        }
    }
    targets
}

/// Reads one target and leaves what follows it in `rest`. None if it has a mistake behind which the
/// list can be read on.
fn target(rest: &mut Snippet<'_>, report: &mut Report) -> Result<Option<Target>, Diagnostic> {
    let location = rest.location();
    let kind = match rest.bytes() {
        [b'!', ..] => TargetKind::Exclude,
        [b'&', ..] => TargetKind::Count,
        _ => TargetKind::Value,
    };
    if kind != TargetKind::Value {
        *rest = rest.from(1).trim_start();
    }
    let (name, behind) = rest.split_at(name_len(rest.bytes()));
    if name.is_empty() {
        return Err(missing_name(*rest, kind));
    }
    let variable = variable(name, report);
    *rest = behind;
    // ModSecurity 3 takes a dot too where values are named as `setvar` names them.
    let is_set = variable.is_some_and(|it| it == Variable::Tx || it.shape() == Shape::Kept);
    let dotted = behind.strip_prefix(b'.').filter(|_| is_set);
    let Some(behind) = behind.strip_prefix(b':').or(dotted) else {
        return Ok(variable.map(|variable| {
            let selector = Selector::All;
            Target { location, kind, variable, selector }
        }));
    };
    let written = written_selector(behind, variable, rest)?;
    let Some(variable) = variable else { return Ok(None) };
    if variable.shape() == Shape::Scalar {
        report.error(no_selector(variable, written.text()));
        return Ok(None);
    }
    let selector = selector(&written, variable, report);
    Ok(selector.map(|selector| Target { location, kind, variable, selector }))
}

fn missing_name(rest: Snippet<'_>, kind: TargetKind) -> Diagnostic {
    let error = |message: String| Diagnostic::new(rest.location(), Code::Syntax, message);
    match (rest.bytes(), kind) {
        ([b'&' | b'!', ..], TargetKind::Count | TargetKind::Exclude) => {
            error("a target is counted with `&` or left out with `!`, not both".into())
        }
        ([], _) => error("a target is missing".into()),
        _ => error(format!("expected a variable, found {}", rest.shown())),
    }
}

/// A selector as it is written.
enum Written<'p> {
    /// Without quotes, up to the next target.
    Bare(Snippet<'p>),
    /// In single quotes, which are gone.
    Quoted(Passage),
    /// Between slashes, which are gone.
    Slashed(Snippet<'p>),
}

impl Written<'_> {
    fn text(&self) -> Snippet<'_> {
        match self {
            Self::Bare(text) | Self::Slashed(text) => *text,
            Self::Quoted(passage) => passage.whole(),
        }
    }
}

/// Cuts the selector off that begins with `text`, and leaves what follows it in `rest`.
fn written_selector<'p>(
    text: Snippet<'p>,
    variable: Option<Variable>,
    rest: &mut Snippet<'p>,
) -> Result<Written<'p>, Diagnostic> {
    if let Some(inside) = text.strip_prefix(b'\'') {
        let Some(end) = inside.closing(b'\'') else {
            return Err(unclosed(text.location()));
        };
        *rest = inside.from(end + 1);
        return Ok(Written::Quoted(inside.slice(0..end).unescaped(b'\'')));
    }
    // A path expression begins with a slash and is no pattern.
    if variable != Some(Variable::Xml)
        && let Some(inside) = text.strip_prefix(b'/')
        && let Some(end) = closing_slash(inside.bytes())
    {
        *rest = inside.from(end + 1);
        return Ok(Written::Slashed(inside.slice(0..end)));
    }
    let (bare, behind) = text.split_at(bare_end(text.bytes()));
    *rest = behind;
    Ok(Written::Bare(bare.trim()))
}

fn unclosed(location: Location) -> Diagnostic {
    let message = "the single quote that opens here is never closed";
    Diagnostic::new(location, Code::Syntax, message)
        .hint("inside of single quotes, a single quote is written `\\'`")
}

/// Where the pattern ends: at the first slash without a backslash before it behind which the target
/// ends. Slashes within the pattern need no backslash.
fn closing_slash(bytes: &[u8]) -> Option<usize> {
    let searched = &bytes[..bytes.len().min(PATTERN_BYTES_MAX)];
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'/', b'\\', &searched[from..]) {
        let at = from + found;
        let behind = bytes[at + 1..].trim_ascii_start();
        if bytes[at] == b'/' && matches!(behind, [] | [b'|' | b',', ..]) {
            return Some(at);
        }
        let step = if bytes[at] == b'\\' { 2 } else { 1 };
        from = (at + step).min(searched.len());
    }
    None
}

/// Where a selector without quotes ends: at a bar, or at a comma with a target behind it.
fn bare_end(bytes: &[u8]) -> usize {
    memchr::memchr2_iter(b'|', b',', bytes)
        .find(|&at| bytes[at] == b'|' || begins_target(&bytes[at + 1..]))
        .unwrap_or(bytes.len())
}

fn begins_target(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    let bytes = bytes.strip_prefix(b"!").or_else(|| bytes.strip_prefix(b"&")).unwrap_or(bytes);
    let (name, behind) = bytes.split_at(name_len(bytes));
    let ends = behind.first().is_none_or(|byte| b":|, ".contains(byte));
    ends && Variable::named(name).is_some()
}

fn selector(written: &Written<'_>, variable: Variable, report: &mut Report) -> Option<Selector> {
    let text = written.text();
    let is_pattern = |bytes: &[u8]| bytes.len() > 1 && bytes[0] == b'/' && bytes.ends_with(b"/");
    let pattern = match written {
        Written::Slashed(pattern) => Some(*pattern),
        Written::Quoted(_) if variable != Variable::Xml && is_pattern(text.bytes()) => {
            Some(text.slice(1..text.len() - 1))
        }
        _ => None,
    };
    match pattern {
        Some(pattern) if pattern.is_empty() => {
            let message = "the pattern between the slashes is empty";
            let hint = format!("write `{}` alone to mean all of its values", variable.name());
            report.error(Diagnostic::new(text.location(), Code::Value, message).hint(hint));
            None
        }
        Some(pattern) => Some(Selector::Pattern(pattern.bytes().into())),
        None if text.is_empty() => {
            let message = format!("expected a name behind `{}:`", variable.name());
            report.error(Diagnostic::new(text.location(), Code::Value, message));
            None
        }
        None => {
            if variable == Variable::Rule && !known_field(text, report) {
                return None;
            }
            if variable != Variable::Xml && text.bytes()[0] == b'/' {
                let message =
                    format!("{} is taken as a name: a pattern ends in a slash", text.shown());
                report.note(text.location(), message);
            }
            Some(Selector::Name(text.bytes().into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn check(source: &str, expected: &[&str], remarks: &[&str]) {
        let mut passage = Passage::new(&Arc::from("f"));
        passage.push(source.as_bytes(), 1, 1);
        let mut report = Report::default();
        let show = |target: Target| {
            let kind = match target.kind {
                TargetKind::Value => "",
                TargetKind::Count => "&",
                TargetKind::Exclude => "!",
            };
            format!("{kind}{} {:?}", target.variable.name(), target.selector)
        };
        let found: Vec<_> = targets(passage.whole(), &mut report).into_iter().map(show).collect();
        assert_eq!(found, expected, "{source}");
        let found: Vec<_> = match report.finish(&[]) {
            Ok(notes) => notes.iter().map(ToString::to_string).collect(),
            Err(diagnostics) => diagnostics.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found, remarks, "{source}");
    }

    #[test]
    fn lists_are_read() {
        check("ARGS", &["ARGS All"], &[]);
        check(" args | &TX:a|!ARGS:b ", &["ARGS All", "&TX Name(a)", "!ARGS Name(b)"], &[]);
        check("ARGS:a,b", &["ARGS Name(a,b)"], &[]);
        check("!ARGS:a,!ARGS:b", &["!ARGS Name(a)", "!ARGS Name(b)"], &[]);
        check("!ARGS:a, ARGS_NAMES", &["!ARGS Name(a)", "ARGS_NAMES All"], &[]);
        check("ARGS:a b|TX:c", &["ARGS Name(a b)", "TX Name(c)"], &[]);
        check("ARGS:json.a[0][b]", &["ARGS Name(json.a[0][b])"], &[]);
        check("TX.a|ip.b", &["TX Name(a)", "IP Name(b)"], &[]);
    }

    #[test]
    fn patterns_reach_from_slash_to_slash() {
        check("ARGS:/^a|b$/", &["ARGS Pattern(^a|b$)"], &[]);
        check("ARGS:/a\\/|b/|TX:c", &["ARGS Pattern(a\\\\/|b)", "TX Name(c)"], &[]);
        check("ARGS:/a/b/", &["ARGS Pattern(a/b)"], &[]);
        check("ARGS:'/a|b/'|TX:'c|d'", &["ARGS Pattern(a|b)", "TX Name(c|d)"], &[]);
        check("ARGS:'it\\'s'", &["ARGS Name(it\\'s)"], &[]);
        let note = "f:1:6: `/a` is taken as a name: a pattern ends in a slash";
        check("ARGS:/a", &["ARGS Name(/a)"], &[note]);
    }

    #[test]
    fn xml_takes_paths() {
        check("XML:/*|XML://@*", &["XML Name(/*)", "XML Name(//@*)"], &[]);
        check("XML:/a/b/|ARGS", &["XML Name(/a/b/)", "ARGS All"], &[]);
        check("XML:'/a[@b=\"|\"]/'", &["XML Name(/a[@b=\\\"|\\\"]/)"], &[]);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let check_one =
            |source, expected: &[&str], mistake: &str| check(source, expected, &[mistake]);
        check_one("", &[], "f:1:1: [syntax] a target is missing");
        check_one("ARGS|", &["ARGS All"], "f:1:6: [syntax] a target is missing");
        check_one("ARGS|:a", &["ARGS All"], "f:1:6: [syntax] expected a variable, found `:a`");
        check_one(
            "ARGS|ARG:x|TX:y",
            &["ARGS All", "TX Name(y)"],
            "f:1:6: [unknown] there is no variable `ARG`; did you mean `ARGS`?",
        );
        check_one(
            "&!ARGS",
            &[],
            "f:1:2: [syntax] a target is counted with `&` or left out with `!`, not both",
        );
        check_one(
            "REQUEST_URI:a",
            &[],
            "f:1:13: [value] `REQUEST_URI` is one value, so `a` cannot be selected; write `REQUEST_URI` alone",
        );
        check_one("ARGS:", &[], "f:1:6: [value] expected a name behind `ARGS:`");
        check_one("ARGS:''|TX:a", &["TX Name(a)"], "f:1:7: [value] expected a name behind `ARGS:`");
        check_one(
            "ARGS://",
            &[],
            "f:1:7: [value] the pattern between the slashes is empty; write `ARGS` alone to mean all of its values",
        );
        check_one(
            "ARGS:'a",
            &[],
            "f:1:6: [syntax] the single quote that opens here is never closed; inside of single quotes, a single quote is written `\\'`",
        );
        check_one(
            "ARGS:'a'b",
            &["ARGS Name(a)"],
            "f:1:9: [syntax] expected `|` between targets, found `b`",
        );
        check_one(
            "ARGS TX",
            &["ARGS All"],
            "f:1:6: [syntax] expected `|` between targets, found `TX`",
        );
        check_one(
            "STREAM_INPUT_BODY",
            &[],
            "f:1:1: [unsupported] the variable `STREAM_INPUT_BODY` is not supported; bodies are inspected as `REQUEST_BODY` and `RESPONSE_BODY`",
        );
        check_one(
            "RULE:name",
            &[],
            "f:1:6: [unknown] `RULE` has no `name`; it has `id`, `rev`, `severity`, `logdata` and `msg`",
        );
    }
}
