//! Collections kept between transactions, as the rules of one transaction see them.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::contents::ContentId;
use super::evaluate::Run;
use super::values::Found;
use crate::context::{Collection, Context, Lifetime, Record};
use crate::program::{Assign, Part, Selector, Text};
use crate::variable::Variable;

/// Which records this transaction has opened, and where they are kept.
#[derive(Default)]
pub(super) struct KeptKeys {
    context: Option<Arc<Context>>,
    keys: [Option<Box<[u8]>>; Collection::ALL.len()],
}

impl KeptKeys {
    pub(super) fn new(context: Option<Arc<Context>>) -> Self {
        Self { context, keys: Default::default() }
    }

    pub(super) fn key(&self, collection: Collection) -> Option<&[u8]> {
        self.keys[collection as usize].as_deref()
    }

    fn record(&self, collection: Collection) -> Option<(&Context, Record<'_>)> {
        Some((self.context.as_deref()?, Record::new(collection, self.key(collection)?)))
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
            self.kept.keys[collection as usize] = Some(expanded.into());
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
        let number = || crate::operator::number::parse(&text);
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
        let seconds = u64::try_from(crate::operator::number::parse(&text)).unwrap_or(0);
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
