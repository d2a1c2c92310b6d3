//! Variables in pages: those of a collection, or of one record.
//!
//! A page costs what it shows, wherever it begins, so a store of a million is read to its end by
//! asking for one page after another. What is written meanwhile may be seen or not; what stays is
//! seen once.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value as Json, json};
use tidegate_telemetry::clock;
use tidegate_waf::context::{Collection, Context, Record, Value};

use super::{bad, text, text_of};
use crate::admin::answer::Answer;
use crate::admin::query::Query;
use crate::admin::shown::span;

/// Variables on a page, unless more are asked for, and at most.
const PAGE: usize = 1000;
pub(super) const PAGE_MAX: usize = 100_000;

/// What the list of a collection knows.
pub(super) const OF_COLLECTION: [&str; 4] = ["prefix", "limit", "after", "after_name"];
/// What the list of a record knows.
pub(super) const OF_RECORD: [&str; 3] = ["prefix", "limit", "after_name"];

/// A page while it fills.
struct Page<'a> {
    query: &'a Query,
    limit: usize,
    now_ms: u64,
    lines: String,
    variables: Vec<Json>,
    /// The last variable that has found room, once another has not.
    last: Option<(Vec<u8>, Vec<u8>)>,
    more: bool,
}

impl<'a> Page<'a> {
    fn begin(query: &'a Query) -> Result<Self, Answer> {
        let limit = query.find("limit").map_or(Some(PAGE), |limit| {
            str::from_utf8(limit).ok()?.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit))
        });
        let limit =
            limit.ok_or_else(|| bad(format!("`limit` must be a number from 1 to {PAGE_MAX}")))?;
        let now_ms = clock::unix_millis();
        let (lines, variables) = (String::new(), Vec::new());
        Ok(Self { query, limit, now_ms, lines, variables, last: None, more: false })
    }

    /// Takes a variable, or finds that the page is full.
    fn take(
        &mut self,
        key: Option<&[u8]>,
        name: &[u8],
        value: Value<'_>,
        until_ms: Option<u64>,
    ) -> ControlFlow<()> {
        if self.variables.len() == self.limit {
            self.more = true;
            return ControlFlow::Break(());
        }
        let left = until_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(self.now_ms)));
        let value = text_of(value);
        let shown = left.map_or_else(|| "for ever".into(), |left| format!("for {}", span(left)));
        if let Some(key) = key {
            self.lines.push_str(&text(key));
            self.lines.push_str("  ");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "{} = {}  ({shown})", text(name), value.escape_debug());
        let mut variable = json!({
            "name": text(name),
            "value": value,
            "seconds_left": left.map(|left| left.as_secs()),
        });
        if let Some(key) = key {
            variable["key"] = text(key).into();
        }
        self.variables.push(variable);
        if self.variables.len() == self.limit {
            self.last = Some((key.unwrap_or_default().to_vec(), name.to_vec()));
        }
        ControlFlow::Continue(())
    }

    /// Where the next page is, if there is one. Says so in the text, too.
    fn next(&mut self, path: &str) -> Option<String> {
        let (key, name) = self.last.take().filter(|_| self.more)?;
        let encoded = |bytes: &[u8]| percent_encode(bytes, NON_ALPHANUMERIC).to_string();
        let mut next = format!("{path}?limit={}", self.limit);
        let mut parameter = |name: &str, value: &[u8]| {
            let _ = write!(next, "&{name}={}", encoded(value));
        };
        if let Some(prefix) = self.query.find("prefix") {
            parameter("prefix", prefix);
        }
        let key_shown = if key.is_empty() {
            String::new()
        } else {
            parameter("after", &key);
            format!("`{}` ", text(&key))
        };
        parameter("after_name", &name);
        let _ = writeln!(self.lines, "and more, after {key_shown}`{}`", text(&name));
        Some(next)
    }
}

/// What follows these bytes next in their order.
fn behind(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0]].concat()
}

/// Variables of a collection, in the order of keys and names.
pub(super) fn of_collection(
    context: &Context,
    collection: Collection,
    query: &Query,
) -> Result<Answer, Answer> {
    let mut page = Page::begin(query)?;
    let prefix = query.find("prefix").unwrap_or_default();
    let (key, name) = match (query.find("after"), query.find("after_name")) {
        (Some(key), Some(name)) => (key.to_vec(), behind(name)),
        (Some(key), None) => (behind(key), Vec::new()),
        (None, Some(_)) => return Err(bad("`after_name` wants `after`, the key of its record")),
        (None, None) => (Vec::new(), Vec::new()),
    };
    // Nothing before the prefix begins with it.
    let from = if key.as_slice() < prefix { (prefix.to_vec(), Vec::new()) } else { (key, name) };
    let record = Record::new(collection, &from.0);
    context.each_from(record, &from.1, page.now_ms, |record, name, value, until_ms| {
        if record.collection != collection || !record.key.starts_with(prefix) {
            return ControlFlow::Break(());
        }
        page.take(Some(record.key), name, value, until_ms)
    });
    let next = page.next(&format!("/context/{collection}"));
    let json = json!({
        "collection": collection.name(),
        "variables": page.variables,
        "next": next,
    });
    Ok(Answer::ok(page.lines, json))
}

/// Variables of a record, in the order of names; `None` if there is none.
pub(super) fn of_record(
    context: &Context,
    record: Record<'_>,
    query: &Query,
) -> Result<Option<Answer>, Answer> {
    let mut page = Page::begin(query)?;
    // Rules do not care for the case of names.
    let lower = |name: &str| query.find(name).map(<[u8]>::to_ascii_lowercase);
    let prefix = lower("prefix").unwrap_or_default();
    let from =
        lower("after_name").map(|name| behind(&name)).unwrap_or_default().max(prefix.clone());
    context.each_from(record, &from, page.now_ms, |other, name, value, until_ms| {
        if other != record || !name.starts_with(&prefix) {
            return ControlFlow::Break(());
        }
        page.take(None, name, value, until_ms)
    });
    if page.variables.is_empty() {
        return Ok(None);
    }
    let key = percent_encode(record.key, NON_ALPHANUMERIC);
    let next = page.next(&format!("/context/{}/{key}", record.collection));
    Ok(Some(shown(context, record, page, next.as_deref())))
}

/// One variable of a record; `None` if it is not there.
pub(super) fn of_name(
    context: &Context,
    record: Record<'_>,
    name: &[u8],
    query: &Query,
) -> Result<Option<Answer>, Answer> {
    let mut page = Page::begin(query)?;
    context.each_from(record, name, page.now_ms, |other, own, value, until_ms| {
        if other == record && own == name {
            let _ = page.take(None, own, value, until_ms);
        }
        ControlFlow::Break(())
    });
    Ok((!page.variables.is_empty()).then(|| shown(context, record, page, None)))
}

fn shown(context: &Context, record: Record<'_>, page: Page<'_>, next: Option<&str>) -> Answer {
    let about = context.about(record, page.now_ms).map(|about| {
        json!({
            "created_ms": about.created_ms,
            "updated_ms": about.updated_ms,
            "timeout_seconds": about.timeout_s,
            "updates": about.updates,
        })
    });
    let json = json!({
        "collection": record.collection.name(),
        "key": text(record.key),
        "record": about,
        "variables": page.variables,
        "next": next,
    });
    Answer::ok(page.lines, json)
}
