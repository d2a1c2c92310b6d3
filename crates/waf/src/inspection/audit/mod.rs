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
    /// What the log keeps of people.
    pub keeps: AuditKeeps<'a>,
}

/// What an audit log keeps of people.
#[derive(Clone, Copy, Debug)]
pub struct AuditKeeps<'a> {
    /// What is told of the client's address.
    pub client: AuditClient<'a>,
    /// Whether queries are kept, and with them bodies and what rules found.
    pub query: Switch,
    /// Fields of the request that are left out.
    pub dropped_fields: &'a [&'a [u8]],
}

/// What an audit log tells of the client's address.
#[derive(Clone, Copy, Debug)]
pub enum AuditClient<'a> {
    /// The address and the port.
    Whole,
    /// This in place of the address, and no port; nothing leaves it out.
    Masked(&'a [u8]),
}

impl AuditKeeps<'_> {
    /// Everything.
    pub const ALL: Self =
        Self { client: AuditClient::Whole, query: Switch::On, dropped_fields: &[] };
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
                let statuses = &self.program.settings.audit_relevant_statuses;
                self.state.audit_relevant == Switch::On || statuses.contains(status)
            }
        }
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

    /// A body; nothing where the log does not keep it.
    fn body(&self, variable: Variable) -> Vec<u8> {
        match (self.context.keeps.query, variable) {
            (Switch::Off, _) => Vec::new(),
            (Switch::On, Variable::RequestBody) => self.mask.urlencoded(self.value(variable)),
            (Switch::On, _) => self.mask.text(self.value(variable)),
        }
    }

    /// What a rule found, or tells of it; nothing where the log does not keep it.
    fn found(&self, text: &[u8]) -> Vec<u8> {
        match self.context.keeps.query {
            Switch::On => self.mask.text(text),
            Switch::Off => Vec::new(),
        }
    }

    /// The request's target, without its query where the log does not keep it.
    fn target(&self) -> Vec<u8> {
        let mut target = self.mask.urlencoded(self.value(Variable::RequestUriRaw));
        if self.context.keeps.query == Switch::Off
            && let Some(question) = memchr::memchr(b'?', &target)
        {
            target.truncate(question);
        }
        target
    }

    /// The client's address and port, as far as the log keeps them.
    fn client(&self) -> (&[u8], &[u8]) {
        match self.context.keeps.client {
            AuditClient::Whole => {
                (self.value(Variable::RemoteAddr), self.value(Variable::RemotePort))
            }
            AuditClient::Masked(shown) => (shown, b""),
        }
    }

    fn fields(&self, variable: Variable) -> Vec<Shown> {
        let state = &self.inspection.state;
        let shown = |named: &super::values::Named| {
            let name = state.contents.bytes(named.name);
            let value = self.mask.field(variable, name, state.contents.bytes(named.value));
            Shown { name: name.to_vec(), value }
        };
        let is_kept = |named: &&super::values::Named| {
            let name = state.contents.bytes(named.name);
            let dropped = self.context.keeps.dropped_fields;
            variable != Variable::RequestHeaders
                || !dropped.iter().any(|dropped| dropped.eq_ignore_ascii_case(name))
        };
        state.values.of(variable).iter().filter(is_kept).map(shown).collect()
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
