//! `/cache/purge`: what the cache is to forget, by parameters, or as JSON for many at once.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use serde_json::{Value, json};
use tidegate_cache::time::Time;
use tidegate_proxy::caching::{Force, NotPurged, What};
use tidegate_proxy::plan::Plan;
use tidegate_telemetry::clock;

use super::answer::Answer;
use super::query::Query;
use super::shown::count;
use crate::control::Gate;

/// What a request says, in the query or in its JSON.
const NAMES: [&str; 6] = ["url", "prefix", "tag", "site", "all", "soft"];

/// Purges in one request.
const PURGES_MAX: usize = 10_000;
/// So many of them, as JSON.
const BODY_BYTES_MAX: usize = 4 << 20;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    whats: Vec<What>,
    force: Force,
}

/// Purges what the request names, all of it or nothing.
pub(super) async fn answer<B>(gate: &Gate, request: Request<B>) -> Answer
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    purge(gate, request).await.unwrap_or_else(|refusal| refusal)
}

async fn purge<B>(gate: &Gate, request: Request<B>) -> Result<Answer, Answer>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (head, body) = request.into_parts();
    let query = Query::of(head.uri.query(), &NAMES)?;
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| {
        let max = count(BODY_BYTES_MAX as u64);
        Answer::bad_request(format!("the body cannot be taken: {error}; it may have {max} bytes"))
    })?;
    let mut fields = Vec::new();
    for name in NAMES {
        if let Some(value) = query.find(name) {
            let value = String::from_utf8_lossy(value).into_owned();
            fields.push((name, vec![value]));
        }
    }
    read_json(&body.to_bytes(), &mut fields)?;
    let Asked { whats, force } = Asked::of(fields)?;
    let (plan, cache) =
        (Arc::clone(&gate.running.borrow().plan), Arc::clone(gate.crew.borrow().cache()));
    let now = Time::from_millis(i64::try_from(clock::unix_millis()).unwrap_or(i64::MAX));
    // It may wait for the disk.
    let purging = tokio::task::spawn_blocking(move || {
        let done = cache.purge(&plan, &whats, force, now);
        done.map(|_| whats.len()).map_err(|(at, why)| refused(&plan, whats.get(at), &why))
    });
    let purged = purging.await.unwrap_or_else(|panic| {
        let reason = format!("the purge failed: {panic}");
        Err(Answer::failure(StatusCode::INTERNAL_SERVER_ERROR, reason))
    })?;
    let (said, force) = match force {
        Force::Hard => ("purged", "hard"),
        Force::Soft => ("stale from now on", "soft"),
    };
    Ok(Answer::ok(
        format!("{said}: {}\n", count(purged as u64)),
        json!({ "purged": purged, "force": force }),
    ))
}

/// Reads `{"url": ["..", ".."], "soft": true}`: what parameters say, and lists of it.
fn read_json(body: &[u8], fields: &mut Vec<(&'static str, Vec<String>)>) -> Result<(), Answer> {
    if body.is_empty() {
        return Ok(());
    }
    let read: Value = serde_json::from_slice(body)
        .map_err(|error| Answer::bad_request(format!("the body is not JSON: {error}")))?;
    let Value::Object(members) = read else {
        return Err(Answer::bad_request("the body is not an object: `{\"tag\": [\"news\"]}`"));
    };
    for (name, value) in members {
        let Some(name) = NAMES.into_iter().find(|known| *known == name) else {
            let (name, known) = (name.escape_debug(), NAMES.join("`, `"));
            return Err(Answer::bad_request(format!(
                "`{name}` is not known here: there are `{known}`"
            )));
        };
        if fields.iter().any(|(other, _)| *other == name) {
            return Err(Answer::bad_request(format!("`{name}` is given twice")));
        }
        let list = match value {
            Value::String(text) => Some(vec![text]),
            Value::Bool(flag) => Some(vec![flag.to_string()]),
            Value::Array(list) => {
                let texts = list.into_iter().map(|item| match item {
                    Value::String(text) => Some(text),
                    _ => None,
                });
                texts.collect()
            }
            _ => None,
        };
        let list = list.ok_or_else(|| {
            Answer::bad_request(format!("`{name}` is neither a text nor a list of texts"))
        })?;
        fields.push((name, list));
    }
    Ok(())
}

impl Asked {
    fn of(fields: Vec<(&'static str, Vec<String>)>) -> Result<Asked, Answer> {
        let (mut whats, mut sites, mut tags, mut force) = (vec![], vec![], vec![], Force::Hard);
        for (name, values) in fields {
            let bytes = || values.iter().map(|value| value.clone().into_bytes());
            match name {
                "url" => whats.extend(bytes().map(What::Url)),
                "prefix" => whats.extend(bytes().map(What::Prefix)),
                "tag" => tags.extend(bytes()),
                "site" => sites = values,
                "all" if is_true(name, &values)? => whats.push(What::Everything),
                "soft" if is_true(name, &values)? => force = Force::Soft,
                _ => {}
            }
        }
        // A site says where tags are meant, or else is meant as a whole.
        if tags.is_empty() {
            whats.extend(sites.into_iter().map(What::Site));
        } else if sites.is_empty() {
            whats.extend(tags.into_iter().map(|tag| What::Tag { tag, site: None }));
        } else {
            let pairs = tags.iter().flat_map(|tag| sites.iter().map(move |site| (tag, site)));
            whats.extend(
                pairs.map(|(tag, site)| What::Tag { tag: tag.clone(), site: Some(site.clone()) }),
            );
        }
        match whats.len() {
            0 => Err(Answer::bad_request(
                "nothing is named: `url`, `prefix`, `tag`, `site` or `all=true` say what to purge",
            )),
            1..=PURGES_MAX => Ok(Asked { whats, force }),
            _ => {
                let max = count(PURGES_MAX as u64);
                Err(Answer::bad_request(format!("one request may name {max} things to purge")))
            }
        }
    }
}

fn is_true(name: &str, values: &[String]) -> Result<bool, Answer> {
    match values {
        [value] if value == "true" => Ok(true),
        [value] if value == "false" => Ok(false),
        _ => Err(Answer::bad_request(format!("`{name}` is `true` or `false`"))),
    }
}

/// Why nothing was purged, and what would be.
fn refused(plan: &Plan, what: Option<&What>, why: &NotPurged) -> Answer {
    if let NotPurged::Unwritten(_) = why {
        return Answer::failure(StatusCode::INSUFFICIENT_STORAGE, why.to_string());
    }
    let named = match what {
        Some(What::Url(text) | What::Prefix(text) | What::Tag { tag: text, .. }) => {
            format!("`{}`: ", String::from_utf8_lossy(text).escape_debug())
        }
        Some(What::Site(_) | What::Everything) | None => String::new(),
    };
    let sites = || {
        let names: Vec<_> =
            plan.sites.iter().take(20).map(|site| site.settings.name.as_str()).collect();
        format!("; there are: {}", names.join(", "))
    };
    let (status, hint) = match why {
        NotPurged::Url(_) | NotPurged::Host(_) => {
            (StatusCode::BAD_REQUEST, "; write `https://example.org/path`".into())
        }
        NotPurged::Query => (StatusCode::BAD_REQUEST, "; with a query it is a URL to purge".into()),
        NotPurged::Tag | NotPurged::TooLong => (StatusCode::BAD_REQUEST, String::new()),
        NotPurged::NoSite(_) | NotPurged::NoSuchSite(_) => (StatusCode::NOT_FOUND, sites()),
        NotPurged::NotCached => {
            (StatusCode::NOT_FOUND, "; `tidegate explain` tells its route".into())
        }
        NotPurged::Unwritten(_) => (StatusCode::INSUFFICIENT_STORAGE, String::new()),
    };
    Answer::failure(status, format!("{named}{why}{hint}; nothing was purged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Asked, String> {
        let mut fields = Vec::new();
        let asked = read_json(body.as_bytes(), &mut fields).and_then(|()| Asked::of(fields));
        asked.map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn what_is_named_is_purged() {
        let check = |body: &str, force, expected: &[What]| {
            let expected = Asked { whats: expected.to_vec(), force };
            assert_eq!(read(body), Ok(expected), "{body}");
        };
        let url = |url: &str| What::Url(url.into());
        let tag = |tag: &str, site: Option<&str>| What::Tag {
            tag: tag.into(),
            site: site.map(str::to_owned),
        };
        check(r#"{"url": "a.example/"}"#, Force::Hard, &[url("a.example/")]);
        check(
            r#"{"url": ["a.example/", "b.example/"], "soft": true}"#,
            Force::Soft,
            &[url("a.example/"), url("b.example/")],
        );
        check(r#"{"tag": ["a", "b"]}"#, Force::Hard, &[tag("a", None), tag("b", None)]);
        check(r#"{"tag": "a", "site": "shop"}"#, Force::Hard, &[tag("a", Some("shop"))]);
        check(r#"{"site": "shop"}"#, Force::Hard, &[What::Site("shop".into())]);
        check(r#"{"all": true, "soft": false}"#, Force::Hard, &[What::Everything]);
        check(r#"{"prefix": "a/b/"}"#, Force::Hard, &[What::Prefix("a/b/".into())]);
    }

    #[test]
    fn what_is_not_understood_purges_nothing() {
        let check = |body: &str, expected: &str| {
            let refusal = read(body).unwrap_err();
            assert!(refusal.contains(expected), "{body}: {refusal}");
        };
        check("", "nothing is named");
        check("{}", "nothing is named");
        check(r#"{"all": false}"#, "nothing is named");
        check(r#"{"soft": true}"#, "nothing is named");
        check(r#"{"urls": []}"#, "`urls` is not known here");
        check(r#"{"url": 7}"#, "neither a text nor a list");
        check(r#"{"url": ["a", 7]}"#, "neither a text nor a list");
        check(r#"{"all": "yes"}"#, "`true` or `false`");
        check("[1]", "not an object");
        check("{", "not JSON");
    }
}
