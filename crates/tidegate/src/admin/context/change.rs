//! A change of context as a JSON object.

use serde_json::{Value as Json, json};
use tidegate_waf::context::{Change, Forgotten, Lifetime, Source, Update};

use super::{text, text_of};

/// What has changed, for those who watch.
pub(crate) fn json(change: &Change) -> Json {
    let record = change.record();
    let mut json = json!({
        "at_ms": change.at_ms,
        "by": match change.source {
            Source::Local => "this",
            Source::Remote => "another",
        },
        "collection": record.collection.name(),
        "key": text(record.key),
        "name": text(change.name()),
    });
    let (kind, more) = match (change.update(), change.forgotten()) {
        (Some(Update::Set { value, lifetime, .. }), _) => {
            ("set", json!({ "value": text_of(value), "until_ms": until(lifetime) }))
        }
        (Some(Update::Add { delta, sum, .. }), _) => {
            ("add", json!({ "delta": delta, "value": sum.to_string() }))
        }
        (Some(Update::Keep { lifetime, .. }), _) => {
            ("keep", json!({ "until_ms": until(lifetime) }))
        }
        (Some(Update::Remove { .. }), _) => ("remove", json!({})),
        (None, Some(Forgotten::Evicted)) => ("evicted", json!({})),
        (None, Some(Forgotten::Expired) | None) => ("expired", json!({})),
    };
    json["change"] = kind.into();
    if let (Some(json), Some(more)) = (json.as_object_mut(), more.as_object()) {
        json.extend(more.clone());
    }
    json
}

/// The end of a lifetime of its own, in milliseconds since the epoch; `forever`, or null for that of
/// the record.
fn until(lifetime: Lifetime) -> Json {
    match lifetime {
        Lifetime::Record => Json::Null,
        Lifetime::Until(due_ms) => due_ms.into(),
        Lifetime::Forever => "forever".into(),
    }
}
