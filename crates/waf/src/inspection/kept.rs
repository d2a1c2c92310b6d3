//! Collections kept between transactions, as the rules of one transaction see them.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::contents::{ChainId, ContentId};
use super::evaluate::{Answer, Run};
use super::values::Found;
use crate::context::{Collection, Context, Digits, Lifetime, Opened, Record, Value};
use crate::operator::number;
use crate::operator::text::Relation;
use crate::program::{Assign, KeptTarget, Kind, Part, Rule, Selector, Test, Text};
use crate::variable::Variable;

/// Which records this transaction has opened, and where they are kept.
#[derive(Default)]
pub(super) struct KeptKeys {
    context: Option<Arc<Context>>,
    opened: [Option<Opened>; Collection::ALL.len()],
}

impl KeptKeys {
    pub(super) fn new(context: Option<Arc<Context>>) -> Self {
        Self { context, opened: Default::default() }
    }

    pub(super) fn key(&self, collection: Collection) -> Option<&[u8]> {
        Some(self.opened(collection)?.record().key)
    }

    fn opened(&self, collection: Collection) -> Option<&Opened> {
        self.opened[collection as usize].as_ref()
    }

    fn record(&self, collection: Collection) -> Option<(&Context, Record<'_>)> {
        Some((self.context.as_deref()?, self.opened(collection)?.record()))
    }
}

/// The variable under which rules see a collection.
pub(crate) fn collection_of(variable: Variable) -> Option<Collection> {
    Some(match variable {
        Variable::Global => Collection::Global,
        Variable::Ip => Collection::Ip,
        Variable::Resource => Collection::Resource,
        Variable::Session => Collection::Session,
        Variable::User => Collection::User,
        _ => return None,
    })
}

impl KeptTarget {
    fn kind(&self) -> Kind {
        self.set.parts.first().map_or(Kind::Value, |part| part.kind)
    }
}

/// Values that are looked at where they are kept: longer ones are copied first, because what others
/// free is held back meanwhile.
const GLANCE_BYTES_MAX: usize = 256;

/// What a test says of a value where it is kept; `None` if that takes more than a glance.
fn glance(test: &Test, value: Value<'_>) -> Option<Answer> {
    let mut digits = Digits::default();
    Some(match (test, value) {
        (Test::Always, _) => Answer::Yes,
        (Test::Never, _) => Answer::No,
        (Test::Constant(comparison, argument), Value::Number(number)) => {
            comparison.holds(number, *argument).into()
        }
        (_, Value::Text(text)) if text.len() > GLANCE_BYTES_MAX => return None,
        (Test::Constant(comparison, argument), Value::Text(text)) => {
            comparison.holds(number::parse(text), *argument).into()
        }
        // Text that is the usual spelling of a number is kept as the number.
        (Test::Text(Relation::Equal, argument), Value::Number(_)) => {
            (Value::of(argument.constant()?) == value).into()
        }
        (Test::Text(relation, argument), value) => {
            relation.find(value.bytes(&mut digits), argument.constant()?).is_some().into()
        }
        _ => return None,
    })
}

impl Run<'_> {
    /// Opens a record under a key. An empty key opens nothing, as a client that has no session has none.
    pub(super) fn open(&mut self, collection: Collection, key: &Text) {
        let mut expanded = Vec::new();
        // `SecWebAppId` keeps the sessions and users of applications apart, as ModSecurity does.
        if matches!(collection, Collection::Session | Collection::User) {
            let app = &self.program.settings.web_app_id;
            if **app != *"default" {
                expanded.extend_from_slice(app.as_bytes());
                expanded.push(b'_');
            }
        }
        let before = expanded.len();
        self.expand(key, &mut expanded);
        if expanded.len() > before {
            self.kept.opened[collection as usize] = Some(Opened::new(collection, expanded));
        }
    }

    /// Whether a rule cannot match what it looks up, as a glance at the store says. Most look-ups
    /// find nothing that a rule is after, and then no value is copied and no list is made.
    pub(super) fn surely_not(&self, rule: &Rule, target: &KeptTarget) -> bool {
        let opened = self.kept.context.as_deref().zip(self.kept.opened(target.collection));
        let Some((context, opened)) = opened else { return target.kind() == Kind::Value };
        let is_plain = rule.chain == ChainId::NONE && rule.steps.is_empty();
        let now_ms = self.moment.epoch_ms;
        let glance = |value: Value<'_>| {
            let answer = glance(&rule.test, value).filter(|_| is_plain)?;
            Some(answer.under(rule.polarity))
        };
        match target.kind() {
            // What is not there is not asked.
            Kind::Value => context
                .look_up(opened, &target.name, now_ms, glance)
                .is_none_or(|answer| answer == Some(Answer::No)),
            Kind::Count => {
                let found = context.look_up(opened, &target.name, now_ms, |_| ()).is_some();
                glance(Value::Number(i64::from(found))) == Some(Answer::No)
            }
        }
    }

    pub(super) fn each_kept(
        &mut self,
        variable: Variable,
        collection: Collection,
        part: &Part,
        exclusions: &[Part],
        out: &mut Vec<Found>,
    ) {
        let mut members: Vec<(ContentId, ContentId)> = Vec::new();
        {
            let Some((context, record)) = self.kept.record(collection) else { return };
            let contents = &mut self.state.contents;
            let mut text = Vec::new();
            if let Selector::Name(name) = &part.selector {
                let name = name.to_ascii_lowercase();
                if context
                    .get(record, &name, self.moment.epoch_ms, |v| v.append_to(&mut text))
                    .is_some()
                {
                    members.push((contents.intern(&name), contents.intern(&text)));
                }
            } else {
                context.each(record, self.moment.epoch_ms, |name, value| {
                    text.clear();
                    value.append_to(&mut text);
                    members.push((contents.intern(name), contents.intern(&text)));
                    ControlFlow::Continue(())
                });
            }
        }
        for (name, value) in members {
            self.offer(part, exclusions, Found { variable, name, value }, out);
        }
    }

    pub(super) fn write_kept(&self, collection: Collection, name: &[u8], out: &mut Vec<u8>) {
        if let Some((context, record)) = self.kept.record(collection) {
            let name = name.to_ascii_lowercase();
            context.get(record, &name, self.moment.epoch_ms, |value| value.append_to(out));
        }
    }

    pub(super) fn set_kept(&mut self, collection: Collection, name: &Text, value: &Assign) {
        let name = self.lower_name(name);
        let mut text = Vec::new();
        match value {
            Assign::Number(number) => {
                text.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
            }
            Assign::Text(value) | Assign::Add(value) | Assign::Subtract(value) => {
                self.expand(value, &mut text);
            }
            Assign::Remove => {}
        }
        let now = self.moment.epoch_ms;
        let Some((context, record)) = self.kept.record(collection) else { return };
        let number = || number::parse(&text);
        // A full store refuses and counts it; rules have no way to know.
        let _refused = match value {
            Assign::Number(_) | Assign::Text(_) if *name == *b"timeout" => {
                context.set_timeout(record, u32::try_from(number()).unwrap_or(0), now);
                None
            }
            Assign::Number(_) | Assign::Text(_) => context.set(record, &name, &text, now).err(),
            Assign::Add(_) => context.add(record, &name, number(), now).err(),
            Assign::Subtract(_) => context.add(record, &name, number().saturating_neg(), now).err(),
            Assign::Remove => {
                context.remove(record, &name, now);
                None
            }
        };
    }

    pub(super) fn expire_kept(&mut self, collection: Collection, name: &Text, seconds: &Text) {
        let name = self.lower_name(name);
        let mut text = Vec::new();
        self.expand(seconds, &mut text);
        let seconds = u64::try_from(number::parse(&text)).unwrap_or(0);
        let now = self.moment.epoch_ms;
        if let Some((context, record)) = self.kept.record(collection) {
            let until = now.saturating_add(seconds.saturating_mul(1000));
            context.expire(record, &name, Lifetime::Until(until), now);
        }
    }

    pub(super) fn deprecate_kept(
        &mut self,
        collection: Collection,
        name: &Text,
        amount: u32,
        period_s: u32,
    ) {
        let name = self.lower_name(name);
        let now = self.moment.epoch_ms;
        if let Some((context, record)) = self.kept.record(collection) {
            context.deprecate(record, &name, amount, period_s, now);
        }
    }

    fn lower_name(&mut self, name: &Text) -> Vec<u8> {
        let mut expanded = Vec::new();
        self.expand(name, &mut expanded);
        expanded.make_ascii_lowercase();
        expanded
    }
}
