//! Actions with their values.

use super::assignment;
use super::control::controls;
use super::items::{Item, Items, Value};
use super::passage::Snippet;
use super::text::{text, unknown};
use crate::seclang::action::{
    self, Action, ActionName, Allowance, Group, Sanitise, Severity, Transform,
};
use crate::seclang::diagnostic::{Code, Diagnostic, Report};
use crate::seclang::location::{Located, Location};
use crate::seclang::support::Support;
use crate::transformation::Transformation;
use crate::variable::Phase;

/// An action list as read.
#[derive(Default)]
pub(super) struct ActionList {
    pub(super) id: Option<Located<u64>>,
    pub(super) phase: Option<Located<Phase>>,
    /// Where `chain` stands.
    pub(super) chain: Option<(Location, Certainty)>,
    /// All other actions in their order.
    pub(super) actions: Vec<Located<Action>>,
    /// Where the first action of each group stands, to tell the place of one that may not be there.
    groups: Vec<(ActionName, Location)>,
    /// Whether it was read to its end: if not, what is missing may be in the part that was not read.
    pub(super) completeness: Completeness,
}

/// Whether an action list was read to its end.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Completeness {
    #[default]
    Whole,
    Broken,
}

/// Whether a list says `chain`, or says something like it in a part that could not be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Written,
    Guessed,
}

impl ActionList {
    /// The actions of this group, with their places, in their order.
    pub(super) fn of_group(&self, group: Group) -> impl Iterator<Item = &(ActionName, Location)> {
        self.groups.iter().filter(move |(name, _)| name.description().group == group)
    }

    /// Whether there was no action at all.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Where this action stands first.
    pub(super) fn first(&self, name: ActionName) -> Option<&Location> {
        self.groups.iter().find(|(it, _)| *it == name).map(|(_, location)| location)
    }
}

/// Reads an action list. Actions with mistakes are left out.
pub(super) fn action_list(list: Snippet<'_>, report: &mut Report) -> ActionList {
    let mut read = ActionList::default();
    let mut items = Items::new(list);
    loop {
        match items.next() {
            Ok(Some(item)) => {
                if read_item(&item, &mut read, report).is_none() {
                    read.completeness = Completeness::Broken;
                }
            }
            Ok(None) => break,
            Err(diagnostic) => {
                report.error(diagnostic);
                read.completeness = Completeness::Broken;
                break;
            }
        }
    }
    read
}

/// Reads one action into the list. None if it has a mistake.
fn read_item(item: &Item<'_>, list: &mut ActionList, report: &mut Report) -> Option<()> {
    let Some(name) = ActionName::named(item.name.bytes()) else {
        let candidates = ActionName::ALL.iter().map(|it| it.name());
        unknown("action", item.name, candidates, None, report);
        return None;
    };
    let location = item.name.location();
    match name.description().support {
        Support::Refused(reason) => {
            let message = format!("the action `{}` is not supported", name.name());
            report.error(Diagnostic::new(location, Code::Unsupported, message).hint(reason));
            return None;
        }
        Support::Noted(reason) => {
            report.note(location, format!("`{}` has no effect: {reason}", name.name()));
            return Some(());
        }
        Support::Full | Support::OffOnly(_) => {}
    }
    list.groups.push((name, location.clone()));
    let value = value(name, item, report)?;
    let errors = report.errors();
    match name {
        ActionName::Id => list.id = Some(value.located(id(value, report)?)),
        ActionName::Phase => list.phase = Some(value.located(phase(value, report)?)),
        ActionName::Chain => list.chain = Some((location, Certainty::Written)),
        ActionName::Ctl => {
            let controls = controls(value, report).into_iter();
            let located = |it| Located { location: location.clone(), value: Action::Control(it) };
            list.actions.extend(controls.map(located));
        }
        _ => {
            let value = read_action(name, value, report)?;
            list.actions.push(Located { location, value });
        }
    }
    (report.errors() == errors).then_some(())
}

/// The text of the value; the end of the name if there is none and none is needed.
fn value<'i>(name: ActionName, item: &'i Item<'_>, report: &mut Report) -> Option<Snippet<'i>> {
    let location = item.name.location();
    match (&item.value, name.description().value) {
        (Some(value), action::Value::None) => {
            let message = format!("`{}` takes no value", name.name());
            let diagnostic = Diagnostic::new(value.text().location(), Code::Value, message);
            let with_status =
                matches!(name, ActionName::Deny | ActionName::Drop | ActionName::Block);
            report.error(if with_status {
                diagnostic.hint("the status code is an action of its own, `status:403`")
            } else {
                diagnostic
            });
            None
        }
        (None, action::Value::Required(expected)) => {
            let message = format!("`{}` takes {expected}, and has none", name.name());
            report.error(Diagnostic::new(location, Code::Value, message));
            None
        }
        (Some(Value::Bare(text)), action::Value::Required(expected)) if text.is_empty() => {
            let message = format!("`{}:` takes {expected}, and has none", name.name());
            report.error(Diagnostic::new(location, Code::Value, message));
            None
        }
        (Some(value), _) => Some(value.text()),
        (None, _) => Some(item.name.from(item.name.len())),
    }
}

/// The mistake of a value that is not what its action takes.
fn not_expected(name: ActionName, value: Snippet<'_>) -> Diagnostic {
    let expected = match name.description().value {
        action::Value::Required(expected) => expected,
        action::Value::None | action::Value::Optional => "something else",
    };
    let message = format!("`{}` takes {expected}, found {}", name.name(), value.shown());
    Diagnostic::new(value.location(), Code::Value, message)
}

fn id(value: Snippet<'_>, report: &mut Report) -> Option<u64> {
    let id = value.trim().number().filter(|&id| id > 0 && i64::try_from(id).is_ok());
    if id.is_none() {
        let message = format!("`id` takes a positive number, found {}", value.shown());
        let diagnostic = Diagnostic::new(value.location(), Code::Value, message);
        let several = value.trim().bytes().iter().any(u8::is_ascii_whitespace);
        report.error(if several {
            diagnostic.hint("actions are parted by commas")
        } else {
            diagnostic
        });
    }
    id
}

fn phase(value: Snippet<'_>, report: &mut Report) -> Option<Phase> {
    let phase = Phase::named(value.trim().bytes());
    if phase.is_none() {
        report.error(not_expected(ActionName::Phase, value));
    }
    phase
}

/// Reads the actions that stand for themselves. None if the value is a mistake.
fn read_action(name: ActionName, value: Snippet<'_>, report: &mut Report) -> Option<Action> {
    let bytes: Box<[u8]> = value.bytes().into();
    let found = match name {
        ActionName::Msg => Some(Action::Msg(text(value, report))),
        ActionName::LogData => Some(Action::LogData(text(value, report))),
        ActionName::Tag => Some(Action::Tag(text(value, report))),
        ActionName::Rev => Some(Action::Rev(bytes)),
        ActionName::Ver => Some(Action::Ver(bytes)),
        ActionName::Severity => Severity::named(value.bytes()).map(Action::Severity),
        ActionName::Maturity => one_to_nine(value).map(Action::Maturity),
        ActionName::Accuracy => one_to_nine(value).map(Action::Accuracy),
        ActionName::Allow => return allow(value, report).map(Action::Allow),
        ActionName::Block => Some(Action::Block),
        ActionName::Deny => Some(Action::Deny),
        ActionName::Drop => Some(Action::Drop),
        ActionName::Pass => Some(Action::Pass),
        ActionName::Redirect => Some(Action::Redirect(text(value, report))),
        ActionName::Status => {
            let code = value.number().filter(|code| (100..=599).contains(code));
            code.and_then(|code| u16::try_from(code).ok()).map(Action::Status)
        }
        ActionName::Capture => Some(Action::Capture),
        ActionName::MultiMatch => Some(Action::MultiMatch),
        ActionName::Transform => return transform(value, report).map(Action::Transform),
        ActionName::Log => Some(Action::Log),
        ActionName::NoLog => Some(Action::NoLog),
        ActionName::AuditLog => Some(Action::AuditLog),
        ActionName::NoAuditLog => Some(Action::NoAuditLog),
        ActionName::SanitiseArg => Some(Action::Sanitise(Sanitise::Arg(bytes))),
        ActionName::SanitiseMatched => Some(Action::Sanitise(Sanitise::Matched)),
        ActionName::SanitiseMatchedBytes => {
            return matched_bytes(value, report).map(Action::Sanitise);
        }
        ActionName::SanitiseRequestHeader => Some(Action::Sanitise(Sanitise::RequestHeader(bytes))),
        ActionName::SanitiseResponseHeader => {
            Some(Action::Sanitise(Sanitise::ResponseHeader(bytes)))
        }
        ActionName::SetVar => return assignment::set_var(value, report).map(Action::SetVar),
        ActionName::ExpireVar => return assignment::expire_var(value, report),
        ActionName::DeprecateVar => return assignment::deprecate_var(value, report),
        ActionName::InitCol => return assignment::init_col(value, report),
        ActionName::SetEnv => return assignment::set_env(value, report),
        ActionName::SetSid => Some(Action::SetSid(text(value, report))),
        ActionName::SetUid => Some(Action::SetUid(text(value, report))),
        ActionName::SetRsc => Some(Action::SetRsc(text(value, report))),
        ActionName::Skip => {
            let count = value.number().and_then(|count| u32::try_from(count).ok());
            count.filter(|&count| count > 0).map(Action::Skip)
        }
        ActionName::SkipAfter => (!value.is_empty()).then_some(Action::SkipAfter(bytes)),
        // Read by the caller, or never let through to here.
        ActionName::Id
        | ActionName::Phase
        | ActionName::Chain
        | ActionName::Ctl
        | ActionName::Append
        | ActionName::Exec
        | ActionName::Pause
        | ActionName::Prepend
        | ActionName::Proxy
        | ActionName::Xmlns => None,
    };
    if found.is_none() {
        report.error(not_expected(name, value));
    }
    found
}

fn one_to_nine(value: Snippet<'_>) -> Option<u8> {
    match value.bytes() {
        [digit @ b'1'..=b'9'] => Some(digit - b'0'),
        _ => None,
    }
}

fn allow(value: Snippet<'_>, report: &mut Report) -> Option<Allowance> {
    let is = |word: &str| value.bytes().eq_ignore_ascii_case(word.as_bytes());
    if value.is_empty() {
        Some(Allowance::Transaction)
    } else if is("phase") {
        Some(Allowance::Phase)
    } else if is("request") {
        Some(Allowance::Request)
    } else {
        let message =
            format!("`allow` takes `phase`, `request` or nothing, found {}", value.shown());
        report.error(Diagnostic::new(value.location(), Code::Value, message));
        None
    }
}

fn transform(value: Snippet<'_>, report: &mut Report) -> Option<Transform> {
    if value.bytes().eq_ignore_ascii_case(b"none") {
        return Some(Transform::Reset);
    }
    let found = std::str::from_utf8(value.bytes()).ok().and_then(Transformation::named);
    if found.is_none() {
        let names = Transformation::ALL.iter().map(|it| it.name());
        unknown("transformation", value, names.chain(["none"]), None, report);
    }
    found.map(Transform::Apply)
}

fn matched_bytes(value: Snippet<'_>, report: &mut Report) -> Option<Sanitise> {
    let count = |text: Snippet<'_>| text.number().and_then(|count| u32::try_from(count).ok());
    let bounds = match value.split_once(b'/') {
        None if value.is_empty() => Some((0, 0)),
        None => count(value).map(|head| (head, 0)),
        Some((head, tail)) => count(head).zip(count(tail)),
    };
    if bounds.is_none() {
        let message = format!(
            "`sanitiseMatchedBytes` takes `head/tail`, two numbers of bytes, found {}",
            value.shown()
        );
        report.error(Diagnostic::new(value.location(), Code::Value, message));
    }
    bounds.map(|(head, tail)| Sanitise::MatchedBytes { head, tail })
}
