//! `[cache]` and `cache` of sites and routes.

use std::sync::Arc;

use tidegate_cache::policy::{
    self, ClientBounds, ClientControl, Grace, Heuristic, KeyPolicy, Lifetimes, Order, Policy,
    Query, Select, StatusTable,
};
use tidegate_cache::tags::TagLimits;
use tidegate_proxy::settings::{Cache, CacheDisk, Caching};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::{CacheMode, ClientRule, QueryRule, cache, caching, part, span};
use super::super::reader::{Located, Reading, Scope};
use super::tls;

/// What all sites share of the cache.
pub(super) fn settings(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Cache {
    let memory_bytes_max = scope.read(&cache::MEMORY_MAX, reading).value;
    let path = scope.find(&cache::PATH, reading);
    let disk_max = scope.read(&cache::DISK_MAX, reading);
    if let (None, Some(span)) = (&path, disk_max.span) {
        let message = "`disk_max` has no effect: there is no disk tier";
        let hint = "say where with `path`";
        reading.report(Diagnostic::new(&code::NO_EFFECT, span, message).hint(hint));
    }
    let disk = path
        .map(|path| CacheDisk { directory: tls::path(&path, reading), bytes_max: disk_max.value });
    Cache { memory_bytes_max, disk }
}

/// How a route is cached, if it is; `whole` is `[cache]`, `levels` are the route's, its site's and
/// wider scopes.
pub(super) fn caching(
    whole: &Scope<'_>,
    levels: &[Scope<'_>],
    reading: &mut Reading<'_>,
) -> Option<Caching> {
    let site = levels.get(1).map_or(*whole, |site| site.child(&caching::SECTION));
    let site = if levels.len() > 1 { site.under(whole) } else { site };
    let scope = levels.first()?.child(&caching::SECTION).under(&site);
    // `[cache]` alone says how large the cache is, not that everything is to be cached.
    let nearer = scope.levels();
    let written = nearer.iter().take(nearer.len().saturating_sub(1)).any(Scope::is_written);
    let mode = scope.find(&caching::MODE, reading).map(|found| found.value);
    let policy = policy(&scope, reading);
    let settings = Caching {
        policy: Arc::new(policy),
        wait_max: scope.read(&caching::WAIT_MAX, reading).value,
        pass_kept: scope.read(&caching::PASS_KEPT, reading).value,
        purge_from: values(scope.find(&caching::PURGE_FROM, reading)).into(),
        x_cache_status: scope.read(&caching::X_CACHE_STATUS, reading).value,
    };
    let is_on = mode.unwrap_or(if written { CacheMode::On } else { CacheMode::Off });
    (is_on == CacheMode::On).then_some(settings)
}

fn policy(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Policy {
    let grace = span(scope.read(&caching::GRACE, reading).value);
    let while_updating = span(scope.read(&caching::GRACE_UPDATING, reading).value);
    let tags_max = scope.read(&caching::TAGS_MAX, reading).value;
    Policy {
        caching: policy::Caching::On,
        lifetimes: lifetimes(scope, reading),
        client: client(scope, reading),
        bypass: values(scope.find(&caching::BYPASS, reading)),
        session_cookies: values(scope.find(&caching::SESSION_COOKIES, reading)),
        request_cookies: scope.read(&caching::REQUEST_COOKIES, reading).value,
        set_cookie: scope.read(&caching::SET_COOKIE, reading).value,
        post: policy::Post::default(),
        uses_min: scope.read(&caching::USES_MIN, reading).value,
        object_bytes_max: scope.read(&caching::OBJECT_MAX, reading).value,
        grace: Grace { on_error: grace, on_timeout: grace, while_updating },
        keep: span(scope.read(&caching::KEEP, reading).value),
        key: key(scope, reading),
        tags: TagLimits { tags_max, ..TagLimits::default() },
    }
}

fn lifetimes(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Lifetimes {
    let percent = scope.read(&caching::HEURISTIC, reading).value;
    let lifetime_max = span(scope.read(&caching::HEURISTIC_MAX, reading).value);
    Lifetimes {
        overrides: StatusTable::new(values(scope.find(&caching::LIFETIME_OVERRIDE, reading))),
        defaults: StatusTable::new(values(scope.find(&caching::LIFETIME, reading))),
        heuristic: Heuristic { percent, lifetime_max },
    }
}

fn client(scope: &Scope<'_>, reading: &mut Reading<'_>) -> ClientControl {
    let age_min = scope.read(&caching::CLIENT_AGE_MIN, reading);
    let seconds = u32::try_from(age_min.value.as_secs()).unwrap_or(u32::MAX);
    match scope.read(&caching::CLIENT_CONTROL, reading).value {
        ClientRule::Obey => {
            ClientControl::Obeyed(ClientBounds { age_min: seconds, ..ClientBounds::default() })
        }
        ClientRule::Ignore => ClientControl::Ignored,
    }
}

fn key(scope: &Scope<'_>, reading: &mut Reading<'_>) -> KeyPolicy {
    let rule = scope.read(&caching::QUERY, reading).value;
    let keep = scope.find(&caching::QUERY_KEEP, reading);
    let drop = scope.find(&caching::QUERY_DROP, reading);
    let both = keep.is_some() && drop.is_some();
    if let Some(span) = drop.as_ref().and_then(|drop| drop.span)
        && (both || rule == QueryRule::LeftOut)
    {
        let message = "`query_drop` has no effect here";
        let hint = "`query_keep` names all that count already, and `query = \"none\"` leaves none";
        reading.report(Diagnostic::new(&code::NO_EFFECT, span, message).hint(hint));
    }
    let select = match (keep, drop) {
        (Some(keep), _) => Select::Only(values(Some(keep))),
        (None, Some(drop)) => Select::Without(values(Some(drop))),
        (None, None) => Select::All,
    };
    let order = if rule == QueryRule::Sorted { Order::Sorted } else { Order::AsSent };
    let query = match rule {
        QueryRule::LeftOut => Query::LeftOut,
        QueryRule::Whole if select == Select::All => Query::Whole,
        QueryRule::Whole | QueryRule::Sorted => Query::Parameters { select, order },
    };
    let names = |found: Option<Located<Vec<Located<String>>>>| {
        values(found).into_iter().map(|name: String| name.into_bytes().into()).collect()
    };
    KeyPolicy {
        scheme: part(scope.read(&caching::KEY_SCHEME, reading).value),
        host: part(scope.read(&caching::KEY_HOST, reading).value),
        query,
        headers: names(scope.find(&caching::KEY_HEADERS, reading)),
        cookies: names(scope.find(&caching::KEY_COOKIES, reading)),
    }
}

fn values<T>(found: Option<Located<Vec<Located<T>>>>) -> Vec<T> {
    let list = found.map(|found| found.value).unwrap_or_default();
    list.into_iter().map(|item| item.value).collect()
}
