//! The options of `ctl`.

use std::ops::RangeInclusive;

use super::passage::Snippet;
use super::target::targets;
use super::text::unknown;
use crate::seclang::control::{BodyProcessor, Control, ControlName};
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::rule::{Target, TargetKind};
use crate::seclang::setting::{AuditMode, AuditParts, AuditPartsChange, EngineMode, Switch};
use crate::seclang::support::Support;

/// Reads `option=value`. Some options yield several changes, one for each number or target.
pub(super) fn controls(source: Snippet<'_>, report: &mut Report) -> Vec<Control> {
    let Some((word, value)) = source.split_once(b'=') else {
        let message = format!("`ctl` takes `option=value`, found {}", source.shown());
        report.error(Diagnostic::new(source.location(), Code::Value, message));
        return Vec::new();
    };
    let (word, value) = (word.trim(), value.trim());
    let Some(name) = ControlName::named(word.bytes()) else {
        let names = ControlName::ALL.iter().map(|it| it.description().name);
        unknown("`ctl` option", word, names, None, report);
        return Vec::new();
    };
    if let Support::Refused(reason) = name.description().support {
        let message = format!("`ctl:{}` is not supported", name.description().name);
        report.error(Diagnostic::new(word.location(), Code::Unsupported, message).hint(reason));
        return Vec::new();
    }
    read(name, value, report).unwrap_or_else(|| {
        let description = name.description();
        let (name, expected) = (description.name, description.expected);
        let message = format!("`ctl:{name}` takes {expected}, found {}", value.shown());
        report.error(Diagnostic::new(value.location(), Code::Value, message));
        Vec::new()
    })
}

/// None if the value is not what the option takes, which is not reported yet.
fn read(name: ControlName, value: Snippet<'_>, report: &mut Report) -> Option<Vec<Control>> {
    let bytes = value.bytes();
    let one = |control| Some(vec![control]);
    let tag = || (!bytes.is_empty()).then(|| bytes.into());
    match name {
        ControlName::AuditEngine => one(Control::AuditEngine(AuditMode::named(bytes)?)),
        ControlName::AuditLogParts => one(Control::AuditLogParts(parts(bytes)?)),
        ControlName::DebugLogLevel => match bytes {
            [digit @ b'0'..=b'9'] => one(Control::DebugLogLevel(digit - b'0')),
            _ => None,
        },
        ControlName::ForceRequestBodyVariable => {
            one(Control::ForceRequestBodyVariable(Switch::named(bytes)?))
        }
        ControlName::RequestBodyAccess => one(Control::RequestBodyAccess(Switch::named(bytes)?)),
        ControlName::RequestBodyLimit => one(Control::RequestBodyLimit(value.number()?)),
        ControlName::RequestBodyProcessor => {
            one(Control::RequestBodyProcessor(BodyProcessor::named(bytes)?))
        }
        ControlName::ResponseBodyAccess => one(Control::ResponseBodyAccess(Switch::named(bytes)?)),
        ControlName::ResponseBodyLimit => one(Control::ResponseBodyLimit(value.number()?)),
        ControlName::RuleEngine => one(Control::RuleEngine(EngineMode::named(bytes)?)),
        ControlName::RuleRemoveById => {
            Some(ranges(value)?.into_iter().map(Control::RuleRemoveById).collect())
        }
        ControlName::RuleRemoveByMsg => one(Control::RuleRemoveByMsg(tag()?)),
        ControlName::RuleRemoveByTag => one(Control::RuleRemoveByTag(tag()?)),
        ControlName::RuleRemoveTargetById => {
            let (rules, list) = value.split_once(b';')?;
            let ids = ranges(rules)?;
            let removed = removed(list, report);
            let pairs = removed.iter().flat_map(|target| {
                let control = |ids: &RangeInclusive<u64>| Control::RuleRemoveTargetById {
                    ids: ids.clone(),
                    target: target.clone(),
                };
                ids.iter().map(control)
            });
            Some(pairs.collect())
        }
        ControlName::RuleRemoveTargetByMsg => {
            let (msg, list) = by_text(value)?;
            let control = |target| Control::RuleRemoveTargetByMsg { msg: msg.into(), target };
            Some(removed(list, report).into_iter().map(control).collect())
        }
        ControlName::RuleRemoveTargetByTag => {
            let (tag, list) = by_text(value)?;
            let control = |target| Control::RuleRemoveTargetByTag { tag: tag.into(), target };
            Some(removed(list, report).into_iter().map(control).collect())
        }
        // Never let through to here.
        ControlName::ForceResponseBodyVariable
        | ControlName::HashEnforcement
        | ControlName::HashEngine
        | ControlName::ResponseBodyProcessor => None,
    }
}

fn by_text(value: Snippet<'_>) -> Option<(&[u8], Snippet<'_>)> {
    let (text, list) = value.split_once(b';')?;
    let text = text.trim();
    (!text.is_empty()).then(|| (text.bytes(), list))
}

fn parts(bytes: &[u8]) -> Option<AuditPartsChange> {
    match bytes {
        [b'+', letters @ ..] => AuditParts::lettered(letters).map(AuditPartsChange::Add),
        [b'-', letters @ ..] => AuditParts::lettered(letters).map(AuditPartsChange::Remove),
        letters => AuditParts::lettered(letters).map(AuditPartsChange::Set),
    }
}

/// Numbers and ranges of them, `1` or `1-5`, parted by white space or commas. None if there is none
/// or one is not well formed.
pub(super) fn ranges(list: Snippet<'_>) -> Option<Vec<RangeInclusive<u64>>> {
    let separates = |byte: u8| byte == b',' || byte.is_ascii_whitespace();
    let ranges: Option<Vec<_>> = list.split(separates).map(range).collect();
    ranges.filter(|ranges| !ranges.is_empty())
}

fn range(text: Snippet<'_>) -> Option<RangeInclusive<u64>> {
    let (first, last) = text.split_once(b'-').unwrap_or((text, text));
    let (first, last) = (first.number()?, last.number()?);
    (first <= last).then_some(first..=last)
}

/// Targets that are taken away: named as if they were looked at, kept as exclusions.
fn removed(list: Snippet<'_>, report: &mut Report) -> Vec<Target> {
    let mut targets = targets(list, report);
    for target in &mut targets {
        if target.kind != TargetKind::Value {
            let message = "a target that is taken away is named without `!` or `&`";
            report.error(Diagnostic::new(target.location.clone(), Code::Syntax, message));
        }
        target.kind = TargetKind::Exclude;
    }
    targets
}
