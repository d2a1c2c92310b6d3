//! What a match does besides deciding: `setvar`, `ctl`, and the collections.

use super::Trace;
use super::evaluate::Run;
use super::values::TxValue;
use crate::program::{Act, Assign, Control, TxName};
use crate::seclang::setting::AuditPartsChange;

impl Run<'_> {
    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::SetTx { name, value } => self.set_tx(name, value),
            Act::SetKept { collection, name, value } => self.set_kept(*collection, name, value),
            Act::SetEnv { name, value } => {
                let (mut key, mut text) = (Vec::new(), Vec::new());
                self.expand(name, &mut key);
                if let Some(value) = value {
                    self.expand(value, &mut text);
                }
                self.state.env.retain(|(known, _)| **known != *key);
                if value.is_some() && self.state.env.len() < ENV_MAX {
                    self.state.env.push((key.into(), text.into()));
                }
            }
            Act::Expire { collection, name, seconds } => {
                self.expire_kept(*collection, name, seconds);
            }
            Act::Deprecate { collection, name, amount, period_s } => {
                self.deprecate_kept(*collection, name, *amount, *period_s);
            }
            Act::Open { collection, key } => self.open(*collection, key),
            Act::Control(control) => self.control(control),
            Act::Sanitise(what) => {
                if !self.state.sanitise.contains(what) {
                    self.state.sanitise.push(what.clone());
                }
            }
        }
    }

    fn set_tx(&mut self, name: &TxName, value: &Assign) {
        let before = |run: &mut Self| match name {
            TxName::Slot(slot) => (None, run.state.tx.slot(*slot)),
            TxName::Text(text) => {
                let mut name = Vec::new();
                run.expand(text, &mut name);
                name.make_ascii_lowercase();
                let value = run.tx_named(&name);
                (Some(name), value)
            }
        };
        let (dynamic, old) = before(self);
        let new = match value {
            Assign::Number(number) => TxValue::Number(*number),
            Assign::Remove => TxValue::Absent,
            Assign::Text(text) => {
                if let Some(bytes) = text.constant() {
                    self.state.tx.store(bytes)
                } else {
                    let mut expanded = Vec::new();
                    self.expand(text, &mut expanded);
                    self.state.tx.store(&expanded)
                }
            }
            Assign::Add(text) => {
                let sum = self.state.tx.number(old).saturating_add(self.amount(text));
                TxValue::Number(sum)
            }
            Assign::Subtract(text) => {
                let difference = self.state.tx.number(old).saturating_sub(self.amount(text));
                TxValue::Number(difference)
            }
        };
        if self.state.trace == Trace::All {
            let name = match name {
                TxName::Slot(slot) => self.program.tx_slots.name(*slot).to_vec(),
                TxName::Text(_) => dynamic.clone().unwrap_or_default(),
            };
            self.trace_change(name, old, new);
        }
        match (name, dynamic) {
            (TxName::Slot(slot), _) => self.state.tx.set_slot(*slot, new),
            (TxName::Text(_), dynamic) => {
                let name = dynamic.unwrap_or_default();
                if let Some(slot) = self.program.tx_slots.find(&name) {
                    self.state.tx.set_slot(slot, new);
                } else {
                    let name = self.state.contents.intern(&name);
                    self.state.tx.set_other(name, new);
                }
            }
        }
    }

    fn amount(&mut self, text: &crate::program::Text) -> i64 {
        if let [crate::program::Piece::Slot(slot)] = &*text.pieces {
            return self.state.tx.number(self.state.tx.slot(*slot));
        }
        let mut expanded = Vec::new();
        self.expand(text, &mut expanded);
        crate::operator::number::parse(&expanded)
    }

    fn control(&mut self, control: &Control) {
        let state = &mut *self.state;
        match control {
            Control::Mode(mode) => state.mode = *mode,
            Control::RemoveRules(rules) => {
                for &rule in rules {
                    state.remove(rule);
                }
            }
            Control::RemoveTargets { rules, part } => {
                for &rule in rules {
                    if state.removed_targets.len() < REMOVED_TARGETS_MAX {
                        state.removed_targets.push((rule, part.clone()));
                    }
                }
            }
            Control::BodyProcessor(processor) => state.body_processor = Some(*processor),
            Control::RequestBodyAccess(access) => state.request_body.access = *access,
            Control::RequestBodyLimit(bytes) => state.request_body.bytes_max = *bytes,
            Control::ForceRequestBodyVariable(access) => state.force_request_body = *access,
            Control::ResponseBodyAccess(access) => state.response_body.access = *access,
            Control::ResponseBodyLimit(bytes) => state.response_body.bytes_max = *bytes,
            Control::AuditEngine(mode) => state.audit_engine = *mode,
            Control::AuditLogParts(change) => {
                state.audit_parts = match *change {
                    AuditPartsChange::Set(parts) => parts,
                    AuditPartsChange::Add(parts) => state.audit_parts.with(parts),
                    AuditPartsChange::Remove(parts) => state.audit_parts.without(parts),
                };
            }
        }
    }
}

/// Values of `ENV` one transaction may set.
const ENV_MAX: usize = 100;
/// Targets that one transaction may take out of rules.
const REMOVED_TARGETS_MAX: usize = 10_000;
