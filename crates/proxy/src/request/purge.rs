//! The method PURGE on a cached route: for those whose addresses may.
//!
//! What other caches understand is understood: the URL is purged, or, if the request names tags in
//! the fields in which responses do (`Cache-Tag`, `Surrogate-Key`, `xkey`), these tags on its site;
//! `Fastly-Soft-Purge: 1` and `Soft-Purge: 1` leave what is purged to be served stale.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tidegate_cache::store::purge::Force;
use tidegate_cache::tags;
use tidegate_cache::time::Time;
use tidegate_http::{Headers, Method, Request, write};

use super::answer::Answer;
use super::route::Routed;
use super::{Exchange, Refusal, Stop, Surroundings};
use crate::caching::What;
use crate::settings::Caching;

/// Tags that one request may name.
const TAGS_MAX: usize = 256;

/// Whether a request asks for a purge of this cache. Where nobody may purge, the method means nothing
/// here and goes to the server as any other.
pub(super) fn asks(request: &Request, caching: &Caching) -> bool {
    request.method == Method::Other
        && request.method_bytes() == b"PURGE"
        && !caching.purge_from.is_empty()
}

/// Purges what the request names.
pub(super) async fn purge<'p>(
    around: &Surroundings<'p>,
    exchange: &Exchange,
    routed: Routed<'p>,
) -> Stop<'p> {
    let allowed = routed.route.settings.caching.as_ref().map_or(&[][..], |it| &*it.purge_from);
    if !may(exchange.client_addr, allowed) {
        return Stop::Refuse(Refusal::PurgeForbidden);
    }
    let Some(whats) = whats(exchange, &routed) else {
        return Stop::Answer(text(400, "too many tags in one request\n"));
    };
    let force = force(&exchange.request.headers);
    let (cache, plan) = (Arc::clone(around.worker.cache()), Arc::clone(around.plan));
    let now = Time::from_millis(i64::try_from(around.worker.unix_millis()).unwrap_or(i64::MAX));
    let done = tokio::task::spawn_blocking(move || cache.purge(&plan, &whats, force, now));
    Stop::Answer(match done.await {
        Ok(Ok(_)) if force == Force::Soft => text(200, "stale\n"),
        Ok(Ok(_)) => text(200, "purged\n"),
        Ok(Err((_, why))) => text(500, &format!("{why}\n")),
        Err(_) => text(500, "not purged\n"),
    })
}

fn text(status: u16, said: &str) -> Answer {
    Answer::fixed(status, "text/plain; charset=utf-8", said)
}

fn may(client: Option<IpAddr>, allowed: &[IpNet]) -> bool {
    let Some(client) = client.map(|client| client.to_canonical()) else { return false };
    allowed.iter().any(|network| network.contains(&client))
}

fn force(headers: &Headers) -> Force {
    let soft = [&b"fastly-soft-purge"[..], b"soft-purge"];
    let is_soft = soft.iter().flat_map(|name| headers.named(name)).any(|value| value == b"1");
    if is_soft { Force::Soft } else { Force::Hard }
}

/// The tags that the request names, or else its URL; `None` if there are too many.
fn whats(exchange: &Exchange, routed: &Routed<'_>) -> Option<Vec<What>> {
    let mut whats = Vec::new();
    for text in tags::texts(&exchange.request.headers) {
        if whats.len() == TAGS_MAX {
            return None;
        }
        let site = Some(routed.site.settings.name.clone());
        whats.push(What::Tag { tag: text.to_vec(), site });
    }
    if whats.is_empty() {
        whats.push(What::Url(url(exchange)));
    }
    Some(whats)
}

fn url(exchange: &Exchange) -> Vec<u8> {
    let request = &exchange.request;
    let mut url = Vec::with_capacity(request.path_and_query.len() + 64);
    url.extend_from_slice(exchange.scheme.name().as_bytes());
    url.extend_from_slice(b"://");
    write::host(&mut url, &request.host, request.port);
    url.extend_from_slice(&request.path_and_query);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_addresses_may_purge() {
        let allowed: Vec<IpNet> =
            ["127.0.0.1/32", "10.0.0.0/8"].iter().map(|net| net.parse().unwrap()).collect();
        let check = |client: Option<&str>, expected| {
            let client = client.map(|client| client.parse().unwrap());
            assert_eq!(may(client, &allowed), expected, "{client:?}");
        };
        check(Some("127.0.0.1"), true);
        check(Some("::ffff:10.1.2.3"), true);
        check(Some("127.0.0.2"), false);
        check(Some("::1"), false);
        check(None, false);
    }

    #[test]
    fn a_field_makes_a_purge_soft() {
        let check = |name: &str, value: &str, expected| {
            let mut headers = Headers::new();
            headers.push(name.as_bytes(), value.as_bytes());
            assert_eq!(force(&headers), expected, "{name}: {value}");
        };
        check("Fastly-Soft-Purge", "1", Force::Soft);
        check("Soft-Purge", "1", Force::Soft);
        check("Soft-Purge", "0", Force::Hard);
        check("X-Other", "1", Force::Hard);
    }
}
