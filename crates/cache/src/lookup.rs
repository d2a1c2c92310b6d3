//! What a request gets: a stored response, the origin's word on one, or what the origin sends
//! (RFC 9111, section 4).
//!
//! Three questions, in the order in which they come up. Does the request look at the cache at all
//! ([`bypass`])? What becomes of the response that was found ([`decide`])? And if the origin was
//! asked and failed, may that response be served all the same ([`on_failure`])?

use crate::conditional;
use crate::directive::RequestDirectives;
use crate::key;
use crate::policy::{Caching, ClientControl, Condition, Grace, Policy, has_cookie};
use crate::stored::{Staleness, Stored};
use crate::time::{Span, Time};
use tidegate_http::field::{self, Known};
use tidegate_http::{Headers, Request, framing};

/// Why a request goes past the cache: nothing is looked up, and its response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// There is no cache on the route.
    Off,
    /// Its method is neither `GET` nor `HEAD`.
    Method,
    /// It has a body, which no key holds.
    Body,
    /// It wants another protocol.
    Upgrade,
    /// It has conditions that only the origin can judge.
    Precondition,
    /// It has a cookie that names a session.
    SessionCookie,
    /// The operator wants it so, by a cookie.
    Cookie,
    /// The operator wants it so, by a field.
    Header,
    /// The operator wants it so, by the path.
    Path,
    /// It says `no-store`.
    NoStore,
}

impl Bypass {
    /// The reason in a word, for `Cache-Status` and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Bypass::Off => "off",
            Bypass::Method => "method",
            Bypass::Body => "body",
            Bypass::Upgrade => "upgrade",
            Bypass::Precondition => "precondition",
            Bypass::SessionCookie => "session-cookie",
            Bypass::Cookie => "cookie",
            Bypass::Header => "header",
            Bypass::Path => "path",
            Bypass::NoStore => "no-store",
        }
    }
}

/// Whether a request goes past the cache, and why. What costs least is asked first.
pub fn bypass(request: &Request, policy: &Policy) -> Option<Bypass> {
    if policy.caching == Caching::Off {
        return Some(Bypass::Off);
    }
    if !key::has_key(request.method) {
        return Some(Bypass::Method);
    }
    let headers = &request.headers;
    // An HTTP/2 request may have a body without a word in its head; it is not waited for.
    if headers.has(Known::TransferEncoding)
        || framing::content_length(headers).is_ok_and(|length| length.is_some_and(|it| it > 0))
    {
        return Some(Bypass::Body);
    }
    if wants_upgrade(headers) {
        return Some(Bypass::Upgrade);
    }
    if conditional::is_for_origin(headers) {
        return Some(Bypass::Precondition);
    }
    if headers.has(Known::Cookie)
        && policy.session_cookies.iter().any(|name| has_cookie(request, name))
    {
        return Some(Bypass::SessionCookie);
    }
    if let Some(condition) = policy.bypass.iter().find(|condition| condition.holds(request)) {
        return Some(match condition {
            Condition::Cookie(_) => Bypass::Cookie,
            Condition::Header { .. } => Bypass::Header,
            Condition::Path(_) => Bypass::Path,
        });
    }
    if policy.client != ClientControl::Ignored && RequestDirectives::of(headers).no_store {
        return Some(Bypass::NoStore);
    }
    None
}

/// HTTP/2 over cleartext is only an offer, and clients make it by default.
fn wants_upgrade(headers: &Headers) -> bool {
    let offers = |line| field::tokens(line).any(|token| !token.eq_ignore_ascii_case(b"h2c"));
    headers.all(Known::Upgrade).any(offers)
}

/// What a client demands of a stored response, within the operator's bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// It is no older than so many seconds.
    age_max: Option<u32>,
    /// It is to be validated, however fresh it is.
    validated: bool,
    /// It stays fresh for so many seconds.
    min_fresh: u32,
    /// It may be stale for so many seconds.
    max_stale: Option<u32>,
    /// It may be stale for so many seconds if the origin fails.
    stale_if_error: Option<u32>,
    /// The origin is not to be asked.
    only_if_cached: bool,
}

impl Demand {
    /// Whether the origin is not to be asked.
    pub fn is_only_if_cached(&self) -> bool {
        self.only_if_cached
    }

    /// What a request demands.
    pub fn of(request: &Headers, client: &ClientControl) -> Demand {
        let ClientControl::Obeyed(bounds) = client else { return Demand::default() };
        if !request.has(Known::CacheControl) && !request.has(Known::Pragma) {
            return Demand::default();
        }
        let said = RequestDirectives::of(request);
        let mut age_max = said.max_age.map(|age| age.max(bounds.age_min));
        if said.no_cache && bounds.age_min > 0 {
            age_max = Some(bounds.age_min);
        }
        Demand {
            age_max,
            validated: said.no_cache && bounds.age_min == 0,
            min_fresh: said.min_fresh.unwrap_or(0).min(bounds.min_fresh_max),
            max_stale: said.max_stale.map(|stale| stale.min(bounds.max_stale_max)),
            stale_if_error: said.stale_if_error.map(|stale| stale.min(bounds.max_stale_max)),
            only_if_cached: said.only_if_cached,
        }
    }
}

/// What becomes of a request that looks at the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The stored response is served.
    Fresh,
    /// The stored response is served though it is stale.
    Stale(Stale),
    /// The origin is asked about the stored response; if that has no validator, for another one.
    Validate(Doubt),
    /// There is none: the origin is asked.
    Miss,
    /// There is none that may be served, and the client wants the origin not to be asked: 504 (RFC
    /// 9111, section 5.2.1.7).
    OnlyIfCached,
}

/// Who allows a stale response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// The origin, while we validate it behind the client's back (`stale-while-revalidate`).
    WhileRevalidate,
    /// The operator, likewise (grace).
    WhileUpdating,
    /// The client (`max-stale`). Nobody needs to validate it.
    Client,
    /// The origin or the client, because the origin failed (`stale-if-error`).
    IfError,
    /// The operator, because the origin failed (grace).
    Grace,
}

impl Stale {
    /// Whether a fill is to be started besides.
    pub const fn refreshes(self) -> bool {
        matches!(self, Stale::WhileRevalidate | Stale::WhileUpdating)
    }
}

/// Why a stored response is not served as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It is stale.
    Stale,
    /// It says `no-cache`.
    NoCache,
    /// The client wants it younger, fresher or validated.
    Request,
}

/// Decides about a request and the response that was found for it, if any was.
pub fn decide(found: Option<&Stored>, demand: &Demand, grace: &Grace, now: Time) -> Decision {
    let Some(stored) = found else {
        return if demand.only_if_cached { Decision::OnlyIfCached } else { Decision::Miss };
    };
    let doubt = if stored.needs_validation() {
        Doubt::NoCache
    } else if is_refused(stored, demand, now) {
        if stored.is_fresh(now) { Doubt::Request } else { Doubt::Stale }
    } else if stored.is_fresh(now) {
        return Decision::Fresh;
    } else if let Some(stale) = allowed_stale(stored, demand, grace, now) {
        return Decision::Stale(stale);
    } else {
        Doubt::Stale
    };
    if demand.only_if_cached { Decision::OnlyIfCached } else { Decision::Validate(doubt) }
}

/// Whether the client does not want it as it is (RFC 9111, section 5.2.1).
fn is_refused(stored: &Stored, demand: &Demand, now: Time) -> bool {
    if demand.validated {
        return true;
    }
    let seconds = |seconds: u32| Span::from_seconds(seconds.into());
    let is_fresh = stored.is_fresh(now);
    if let Some(age_max) = demand.age_max {
        // Who asks for an age does not want anything stale, unless it says so (section 5.2.1.1). What
        // never changes while it is fresh need not be younger (RFC 8246, section 2).
        let is_too_old = now - stored.born() > seconds(age_max);
        let is_too_stale = !is_fresh && demand.max_stale.is_none();
        if (is_too_old && !(is_fresh && stored.is_immutable())) || is_too_stale {
            return true;
        }
    }
    demand.min_fresh > 0 && stored.fresh_until() - now < seconds(demand.min_fresh)
}

/// Who allows it to be served stale before the origin was asked.
fn allowed_stale(stored: &Stored, demand: &Demand, grace: &Grace, now: Time) -> Option<Stale> {
    let staleness = stored.staleness();
    if staleness == Staleness::Forbidden {
        return None;
    }
    if stored.stale_while_revalidate_until().is_some_and(|until| now < until) {
        return Some(Stale::WhileRevalidate);
    }
    if staleness == Staleness::OwnWindowsOnly {
        return None;
    }
    let staled = now - stored.fresh_until();
    if demand.max_stale.is_some_and(|most| staled <= Span::from_seconds(most.into())) {
        return Some(Stale::Client);
    }
    (staled < grace.while_updating).then_some(Stale::WhileUpdating)
}

/// How the origin failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It cannot be reached, or broke off.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// It answered with this status.
    Status(u16),
}

impl Failure {
    /// Whether a status counts as a failure: 500, 502, 503 and 504 (RFC 5861, section 4).
    pub const fn of(status: u16) -> Option<Failure> {
        match status {
            500 | 502 | 503 | 504 => Some(Failure::Status(status)),
            _ => None,
        }
    }
}

/// What is served when the origin failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The stored response, which is still fresh; only the client wanted it validated.
    Fresh,
    /// The stored response, though it is stale.
    Stale(Stale),
    /// What there would be without a cache: the origin's answer, or the gate's own.
    Failure,
    /// 504: the stored response forbids to be served stale (RFC 9111, section 5.2.2.2).
    GatewayTimeout,
}

/// Decides what is served in the place of a failure, when this response is stored.
pub fn on_failure(
    stored: &Stored,
    demand: &Demand,
    grace: &Grace,
    failure: Failure,
    now: Time,
) -> Fallback {
    let staleness = stored.staleness();
    if stored.is_fresh(now) && !stored.needs_validation() {
        return Fallback::Fresh;
    }
    // An old error is no better than a new one.
    if Failure::of(stored.status()).is_some() {
        return Fallback::Failure;
    }
    let own = stored.stale_if_error_until().is_some_and(|until| now < until);
    let staled = now - stored.fresh_until();
    let asked = demand.stale_if_error.is_some_and(|most| staled < Span::from_seconds(most.into()));
    let allowed = match failure {
        Failure::Timeout => grace.on_timeout,
        Failure::Unreachable | Failure::Status(_) => grace.on_error,
    };
    match (staleness, failure) {
        (Staleness::Allowed | Staleness::OwnWindowsOnly, _) if own => {
            Fallback::Stale(Stale::IfError)
        }
        (Staleness::Allowed, _) if asked => Fallback::Stale(Stale::IfError),
        (Staleness::Allowed, _) if staled < allowed => Fallback::Stale(Stale::Grace),
        // An origin that answers is not one that cannot be reached (section 4.3.3).
        (_, Failure::Status(_)) | (Staleness::Allowed, _) => Fallback::Failure,
        (Staleness::OwnWindowsOnly | Staleness::Forbidden, _) => Fallback::GatewayTimeout,
    }
}

/// Until when a stored response may still be of use: fresh, stale, or to be validated.
pub fn useful_until(stored: &Stored, policy: &Policy) -> Time {
    let fresh_until = stored.fresh_until();
    let grace = &policy.grace;
    let most = match stored.staleness() {
        Staleness::Allowed => grace.on_error.max(grace.on_timeout).max(grace.while_updating),
        Staleness::OwnWindowsOnly | Staleness::Forbidden => Span::ZERO,
    };
    let validated = if stored.has_validator() { policy.keep } else { Span::ZERO };
    let own = [stored.stale_while_revalidate_until(), stored.stale_if_error_until()];
    let own = own.into_iter().flatten().max().unwrap_or(fresh_until);
    (fresh_until + most.max(validated)).max(own)
}

#[cfg(test)]
mod tests;
