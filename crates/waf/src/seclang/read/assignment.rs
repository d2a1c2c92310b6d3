//! Actions that set values: `setvar` and its kin.

use super::operator::may_be_number;
use super::passage::Snippet;
use super::text::{name_len, text, variable};
use crate::seclang::action::{Action, Change, SetVar};
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::text::Text;
use crate::variable::{Shape, Variable};

/// `setvar`: `collection.name=value`, with `=+` or `=-`, without a value, or `!collection.name`.
pub(super) fn set_var(source: Snippet<'_>, report: &mut Report) -> Option<SetVar> {
    if let Some(removed) = source.strip_prefix(b'!') {
        let (collection, name) = place("setvar", removed, report)?;
        return Some(SetVar { collection, name, change: Change::Unset });
    }
    let Some((written, value)) = split_assignment(source) else {
        let (collection, name) = place("setvar", source, report)?;
        return Some(SetVar { collection, name, change: Change::Set(Text::plain(b"1")) });
    };
    let (collection, name) = place("setvar", written, report)?;
    let change = match value.bytes() {
        [b'+', ..] => Change::Add(amount(value.from(1), "=+", report)?),
        [b'-', ..] => Change::Subtract(amount(value.from(1), "=-", report)?),
        _ => Change::Set(text(value, report)),
    };
    Some(SetVar { collection, name, change })
}

/// `expirevar`: `collection.name=seconds`.
pub(super) fn expire_var(source: Snippet<'_>, report: &mut Report) -> Option<Action> {
    let (written, value) = assignment("expirevar", "`collection.name=seconds`", source, report)?;
    let (collection, name) = place("expirevar", written, report)?;
    let seconds = text(value.trim(), report);
    if !may_be_number(&seconds) {
        let message = format!("`expirevar` takes a number of seconds, found {}", value.shown());
        report.error(Diagnostic::new(value.location(), Code::Value, message));
        return None;
    }
    Some(Action::ExpireVar { collection, name, seconds })
}

/// `deprecatevar`: `collection.name=amount/seconds`.
pub(super) fn deprecate_var(source: Snippet<'_>, report: &mut Report) -> Option<Action> {
    let expected = "`collection.name=amount/seconds`";
    let (written, value) = assignment("deprecatevar", expected, source, report)?;
    let (collection, name) = place("deprecatevar", written, report)?;
    let rate = value.trim().split_once(b'/').and_then(|(amount, period)| {
        let period = period.trim().number().filter(|&seconds| seconds > 0);
        amount.trim().number().zip(period)
    });
    let Some((amount, period_s)) = rate else {
        let message = format!("`deprecatevar` takes `amount/seconds`, found {}", value.shown());
        report.error(Diagnostic::new(value.location(), Code::Value, message));
        return None;
    };
    Some(Action::DeprecateVar { collection, name, amount, period_s })
}

/// `initcol`: `collection=key`.
pub(super) fn init_col(source: Snippet<'_>, report: &mut Report) -> Option<Action> {
    let (written, key) = assignment("initcol", "`collection=key`", source, report)?;
    let written = written.trim();
    let collection = variable(written, report)?;
    if collection.shape() != Shape::Kept {
        let message = format!("`{}` is no collection that can be opened", collection.name());
        let diagnostic = Diagnostic::new(written.location(), Code::Value, message);
        report.error(diagnostic.hint(format!("these can: {}", kept_names())));
        return None;
    }
    Some(Action::InitCol { collection, key: text(key, report) })
}

/// `setenv`: `name=value`, a name alone, or `!name`.
pub(super) fn set_env(source: Snippet<'_>, report: &mut Report) -> Option<Action> {
    let (name, value) = match source.strip_prefix(b'!') {
        Some(name) => (name, None),
        None => match split_assignment(source) {
            Some((name, value)) => (name, Some(text(value, report))),
            None => (source, Some(Text::plain(b"1"))),
        },
    };
    let name = name.trim();
    if name.is_empty() {
        let message = "`setenv` takes `name=value`, and the name is missing";
        report.error(Diagnostic::new(name.location(), Code::Value, message));
        return None;
    }
    Some(Action::SetEnv { name: text(name, report), value })
}

/// Cuts at the first `=` that is not in a macro.
fn split_assignment(source: Snippet<'_>) -> Option<(Snippet<'_>, Snippet<'_>)> {
    let bytes = source.bytes();
    // Behind the last closing brace no macro ends, so none is looked for.
    let last_brace = memchr::memrchr(b'}', bytes).unwrap_or(0);
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'=' {
            return Some((source.slice(0..at), source.from(at + 1)));
        }
        if at < last_brace
            && bytes[at..].starts_with(b"%{")
            && let Some(end) = memchr::memchr(b'}', &bytes[at..])
        {
            at += end;
        }
        at += 1;
    }
    None
}

fn assignment<'p>(
    action: &str,
    expected: &str,
    source: Snippet<'p>,
    report: &mut Report,
) -> Option<(Snippet<'p>, Snippet<'p>)> {
    let parts = split_assignment(source);
    if parts.is_none() {
        let message = format!("`{action}` takes {expected}, found {}", source.shown());
        report.error(Diagnostic::new(source.location(), Code::Value, message));
    }
    parts
}

/// Reads `collection.name`, where the collection is one whose values can be set.
fn place(action: &str, source: Snippet<'_>, report: &mut Report) -> Option<(Variable, Text)> {
    let source = source.trim();
    let (word, behind) = source.split_at(name_len(source.bytes()));
    let Some(name) = behind.strip_prefix(b'.').filter(|name| !name.is_empty()) else {
        let message = format!("`{action}` takes `collection.name`, found {}", source.shown());
        let diagnostic = Diagnostic::new(source.location(), Code::Value, message);
        let plain = behind.is_empty() && Variable::named(word.bytes()).is_none();
        report.error(if plain && !word.is_empty() {
            diagnostic.hint(format!("did you mean `tx.{}`?", String::from_utf8_lossy(word.bytes())))
        } else {
            diagnostic
        });
        return None;
    };
    let collection = variable(word, report)?;
    if collection != Variable::Tx && collection.shape() != Shape::Kept {
        let message = format!("values of `{}` cannot be set", collection.name());
        let diagnostic = Diagnostic::new(word.location(), Code::Value, message);
        report.error(diagnostic.hint(format!("those of these can: TX, {}", kept_names())));
        return None;
    }
    Some((collection, text(name, report)))
}

fn amount(source: Snippet<'_>, sign: &str, report: &mut Report) -> Option<Text> {
    let amount = text(source.trim(), report);
    if !may_be_number(&amount) {
        let message = format!("`{sign}` takes a number, found {}", source.shown());
        let diagnostic = Diagnostic::new(source.location(), Code::Value, message);
        report.error(diagnostic.hint("a text that begins with a sign cannot be set"));
        return None;
    }
    Some(amount)
}

fn kept_names() -> String {
    let kept = Variable::ALL.iter().filter(|it| it.shape() == Shape::Kept);
    kept.map(|it| it.name()).collect::<Vec<_>>().join(", ")
}
