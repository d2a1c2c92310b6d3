//! Macros: text with the transaction's values put in.

use super::contents::ContentId;
use super::evaluate::Run;
use super::values::{TxValue, sources};
use crate::context::Collection;
use crate::program::{Piece, Text};
use crate::seclang::setting::Switch;
use crate::variable::Variable;

impl Run<'_> {
    /// Appends the text with its macros expanded; what is not there expands to nothing.
    pub(super) fn expand(&mut self, text: &Text, out: &mut Vec<u8>) {
        for piece in &text.pieces {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Slot(slot) => {
                    let value = self.state.tx.slot(*slot);
                    self.state.tx.write(value, out);
                }
                Piece::Macro { variable, name } => {
                    self.write_value(*variable, name.as_deref(), out);
                }
            }
        }
    }

    fn write_value(&mut self, variable: Variable, name: Option<&[u8]>, out: &mut Vec<u8>) {
        if let Some(kept) = super::collection_of(variable) {
            if let Some(name) = name {
                self.write_kept(kept, name, out);
            }
            return;
        }
        match (variable, name) {
            (Variable::Tx, Some(name)) => {
                let name = self.state.contents.intern(&name.to_ascii_lowercase());
                let value = self.state.tx.other(name);
                self.state.tx.write(value, out);
            }
            (Variable::Rule, Some(name)) => self.write_rule(name, out),
            (Variable::Env, Some(name)) => {
                if let Some((_, value)) = self.state.env.iter().find(|(known, _)| **known == *name)
                {
                    out.extend_from_slice(value);
                }
            }
            (Variable::Geo, Some(name)) => {
                let found = self
                    .state
                    .geo
                    .iter()
                    .find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
                if let Some(&(_, value)) = found {
                    out.extend_from_slice(self.state.contents.bytes(value));
                }
            }
            (Variable::MatchedVars, _) => {
                if let Some(first) = self.state.matched.first() {
                    out.extend_from_slice(self.state.contents.bytes(first.value));
                }
            }
            (Variable::MatchedVarsNames, _) => {
                if let Some(&first) = self.state.matched.first() {
                    self.write_full_name(first, out);
                }
            }
            _ if !crate::program::is_stable(variable) => {
                let _ = self.write_scalar(variable, out);
            }
            _ => {
                let (of, view) = sources(variable);
                let contents = &self.state.contents;
                let named =
                    of.iter().flat_map(|&source| self.state.values.of(source)).find(|named| {
                        name.is_none_or(|name| {
                            contents.bytes(named.name).eq_ignore_ascii_case(name)
                        })
                    });
                if let Some(named) = named {
                    out.extend_from_slice(contents.bytes(view.of(*named)));
                }
            }
        }
    }

    fn write_rule(&self, name: &[u8], out: &mut Vec<u8>) {
        let Some(rule) = self.rule else { return };
        let meta = &self.program.rules[rule.number.index()];
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        if is("id") {
            out.extend_from_slice(itoa::Buffer::new().format(meta.id).as_bytes());
        } else if is("msg") {
            out.extend_from_slice(meta.message.as_bytes());
        } else if is("rev") {
            out.extend_from_slice(meta.revision.as_bytes());
        } else if is("severity")
            && let Some(severity) = meta.severity
        {
            out.extend_from_slice(itoa::Buffer::new().format(severity.number()).as_bytes());
        } else if is("logdata") {
            for piece in &rule.data.pieces {
                if let Piece::Literal(bytes) = piece {
                    out.extend_from_slice(bytes);
                }
            }
        }
    }

    /// Appends the value of a scalar that changes while rules run; says whether there is one.
    pub(super) fn write_scalar(&mut self, variable: Variable, out: &mut Vec<u8>) -> Switch {
        let mut buffer = itoa::Buffer::new();
        let clock = self.moment.clock();
        let number = match variable {
            Variable::MatchedVar | Variable::MatchedVarName => {
                let Some(&last) = self.state.matched.last() else { return Switch::Off };
                if variable == Variable::MatchedVar {
                    out.extend_from_slice(self.state.contents.bytes(last.value));
                } else {
                    self.write_full_name(last, out);
                }
                return Switch::On;
            }
            Variable::ReqbodyProcessor => {
                let name = self.state.body_processor.map_or("", |processor| processor.name());
                out.extend_from_slice(name.as_bytes());
                return Switch::On;
            }
            Variable::SessionId | Variable::UserId => {
                let kept = match variable {
                    Variable::SessionId => Collection::Session,
                    _ => Collection::User,
                };
                let Some(key) = self.kept.key(kept) else { return Switch::Off };
                out.extend_from_slice(key);
                return Switch::On;
            }
            Variable::Time => {
                out.extend_from_slice(clock.time_of_day().as_bytes());
                return Switch::On;
            }
            Variable::HighestSeverity => {
                self.state.highest_severity.map_or(255, |severity| i64::from(severity.number()))
            }
            Variable::MscPcreError | Variable::MscPcreLimitsExceeded => {
                i64::from(self.state.pattern_limits == Switch::On)
            }
            Variable::Duration => i64::try_from(self.moment.elapsed_us).unwrap_or(i64::MAX),
            Variable::TimeEpoch => clock.epoch_s(),
            Variable::TimeSec => clock.second(),
            Variable::TimeMin => clock.minute(),
            Variable::TimeHour => clock.hour(),
            Variable::TimeDay => clock.day(),
            Variable::TimeMon => clock.month() - 1,
            Variable::TimeYear => clock.year(),
            Variable::TimeWday => clock.weekday(),
            _ => return Switch::Off,
        };
        out.extend_from_slice(buffer.format(number).as_bytes());
        Switch::On
    }

    /// The members of `RULE`.
    pub(super) fn rule_members(&mut self) -> Vec<(ContentId, ContentId)> {
        let mut members = Vec::new();
        for name in ["id", "msg", "rev", "severity", "logdata"] {
            let mut value = Vec::new();
            self.write_rule(name.as_bytes(), &mut value);
            if !value.is_empty() {
                let name = self.state.contents.intern(name.as_bytes());
                members.push((name, self.state.contents.intern(&value)));
            }
        }
        members
    }

    /// The `TX` value of that lower-case name.
    pub(super) fn tx_named(&mut self, name: &[u8]) -> TxValue {
        if let Some(slot) = self.program.tx_slots.find(name) {
            return self.state.tx.slot(slot);
        }
        let name = self.state.contents.intern(name);
        self.state.tx.other(name)
    }
}
