//! The audit log: a transaction written down, in ModSecurity's JSON or in its native sections.
//!
//! What is written comes from the inspection's own values, so nothing has to be kept for it while the
//! transaction runs. Secrets are starred out before anything is formatted ([`mask`]): those that rules
//! name (`sanitise*`), and those that everybody has. Where the text goes is others' business.

mod json;
mod mask;
mod native;
#[cfg(test)]
mod tests;

use super::{Inspection, MatchedRule};
use crate::seclang::setting::{AuditFormat, AuditMode, Switch};
use crate::variable::Variable;
use mask::Mask;

/// What the inspection does not know of its transaction.
#[derive(Clone, Copy, Debug)]
pub struct AuditContext<'a> {
    /// When the request came, in milliseconds since the Unix epoch.
    pub epoch_ms: u64,
    /// The status that the client was sent; 0 if none was.
    pub status: u16,
    /// The name and version of this program.
    pub producer: &'a str,
    /// Whether the transaction was stopped by a rule.
    pub intercepted: Switch,
}

/// The transaction with its secrets starred out.
struct Entry<'a> {
    context: AuditContext<'a>,
    inspection: &'a Inspection,
    mask: Mask,
}

/// One field of a head, shown.
struct Shown {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Inspection {
    /// Whether this transaction goes to the audit log: all do, or this one is relevant because a rule
    /// says so or because of its status.
    pub fn is_audited(&self, status: u16) -> bool {
        match self.state.audit_engine {
            AuditMode::Off => false,
            AuditMode::On => true,
            AuditMode::RelevantOnly => {
                self.state.audit_relevant == Switch::On || self.is_relevant_status(status)
            }
        }
    }

    fn is_relevant_status(&self, status: u16) -> bool {
        let Some(pattern) = &self.program.settings.audit_relevant_status else { return false };
        let mut caches = crate::pattern::Caches::new();
        let mut digits = itoa::Buffer::new();
        let text = digits.format(status).as_bytes();
        pattern.is_match(&mut caches, crate::pattern::PatternId(0), text)
            == crate::pattern::Match::Yes
    }

    /// Appends the transaction as the rule set's `SecAuditLogFormat` has it: one line of JSON, or
    /// sections, each with its line end.
    pub fn write_audit(&self, context: AuditContext<'_>, out: &mut Vec<u8>) {
        let entry = Entry { context, inspection: self, mask: Mask::of(self) };
        match self.program.settings.audit_log_format {
            AuditFormat::Json => json::write(&entry, out),
            AuditFormat::Native => native::write(&entry, out),
        }
    }
}

impl Entry<'_> {
    fn has_part(&self, letter: u8) -> bool {
        self.inspection.state.audit_parts.contains(letter)
    }

    fn value(&self, variable: Variable) -> &[u8] {
        let state = &self.inspection.state;
        state.values.of(variable).first().map_or(b"", |named| state.contents.bytes(named.value))
    }

    fn text(&self, variable: Variable) -> Vec<u8> {
        self.mask.text(self.value(variable))
    }

    fn fields(&self, variable: Variable) -> Vec<Shown> {
        let state = &self.inspection.state;
        let shown = |named: &super::values::Named| {
            let name = state.contents.bytes(named.name);
            let value = self.mask.field(variable, name, state.contents.bytes(named.value));
            Shown { name: name.to_vec(), value }
        };
        state.values.of(variable).iter().map(shown).collect()
    }

    fn messages(&self) -> impl Iterator<Item = &MatchedRule> {
        self.inspection
            .matched_rules()
            .iter()
            .filter(|matched| matched.logged.audit || matched.logged.log)
    }

    fn producer(&self) -> String {
        let mut producer = self.context.producer.to_owned();
        for component in &self.inspection.program.settings.components {
            producer.push_str("; ");
            producer.push_str(component);
        }
        producer
    }
}
