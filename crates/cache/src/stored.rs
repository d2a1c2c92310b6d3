//! What is known of a stored response: all that deciding about a request needs, worked out once.

use crate::directive::Flag;
use crate::entity::{EntityTag, Strength};
use crate::freshness::{self, Lifetime};
use crate::targeted::Control;
use crate::time::{Span, Time};
use tidegate_http::Response;
use tidegate_http::field::Known;

/// What a stored response says of itself, beside its head and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    status: u16,
    rules: u8,
    /// When its age was zero.
    born: Time,
    /// When it stops being fresh.
    fresh_until: Time,
    received: Time,
    /// Seconds since 1970: `Date`, or when it came.
    date: u64,
    /// Seconds since 1970.
    last_modified: Option<u64>,
    while_revalidate: Option<u32>,
    if_error: Option<u32>,
    etag: Option<EntityTag>,
}

/// A rule about reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Rule {
    /// `no-cache`: not without validation (RFC 9111, section 5.2.2.4).
    NoCache,
    /// `must-revalidate` or `proxy-revalidate`: never stale (sections 5.2.2.2 and 5.2.2.8).
    MustRevalidate,
    /// `s-maxage`, which means as much (section 5.2.2.10) where nothing in the response itself
    /// allows it to be stale.
    SharedLifetime,
    /// `immutable` (RFC 8246).
    Immutable,
    /// `Last-Modified` is a strong validator (RFC 9110, section 8.8.2.2).
    StrongDate,
    /// It is a part (206).
    Partial,
}

/// Whether a response may be served when it is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// Where the operator, the client or the origin allows it.
    Allowed,
    /// Only where the response itself allows it, with `stale-while-revalidate` or `stale-if-error`.
    /// `s-maxage` alone forbids it, but origins that send both mean what they say.
    OwnWindowsOnly,
    /// Never (RFC 9111, section 4.2.4).
    Forbidden,
}

/// When a response came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When its request was sent.
    pub asked: Time,
    /// When its head came.
    pub received: Time,
}

impl Stored {
    /// Reads a response that is going to be stored.
    pub fn new(
        response: &Response,
        control: &Control,
        lifetime: Lifetime,
        arrival: Arrival,
    ) -> Stored {
        let headers = &response.headers;
        let received = arrival.received;
        let born = received - freshness::initial_age(headers, arrival.asked, received);
        let date = freshness::made(headers, received).seconds();
        let last_modified = freshness::date_of(headers, Known::LastModified, received);
        let directives = &control.directives;
        let mut rules = 0;
        let mut set = |rule: Rule, holds: bool| rules |= u8::from(holds) << rule as u8;
        set(Rule::NoCache, directives.no_cache.is_response());
        set(
            Rule::MustRevalidate,
            directives.has(Flag::MustRevalidate) || directives.has(Flag::ProxyRevalidate),
        );
        set(Rule::SharedLifetime, directives.s_maxage.seconds().is_some());
        set(Rule::Immutable, directives.has(Flag::Immutable));
        // At least a second earlier, by the same clock, and so there was no change within it.
        set(
            Rule::StrongDate,
            headers.has(Known::Date) && last_modified.is_some_and(|modified| modified < date),
        );
        set(Rule::Partial, response.status == 206);
        Stored {
            status: response.status,
            rules,
            born,
            fresh_until: born + lifetime.span,
            received,
            date,
            last_modified,
            while_revalidate: directives.stale_while_revalidate.seconds(),
            if_error: directives.stale_if_error.seconds(),
            etag: headers.first(Known::Etag).and_then(EntityTag::of),
        }
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules & (1 << rule as u8) != 0
    }

    /// Its status code. A part, which came as 206, has that one.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Its age in seconds (RFC 9111, section 4.2.3), for the field `Age`: never less than it had when
    /// it came, though the clock of whoever asks may be a little behind.
    pub fn age(&self, now: Time) -> u64 {
        u64::try_from((now.max(self.received) - self.born).seconds()).unwrap_or(0)
    }

    /// Seconds for which it is still fresh; below zero once it is stale (RFC 9211, section 2.3).
    pub fn ttl(&self, now: Time) -> i64 {
        (self.fresh_until - now).seconds()
    }

    /// Whether it is fresh.
    pub fn is_fresh(&self, now: Time) -> bool {
        now.max(self.received) < self.fresh_until
    }

    /// When it stops being fresh.
    pub const fn fresh_until(&self) -> Time {
        self.fresh_until
    }

    /// When its age was zero.
    pub const fn born(&self) -> Time {
        self.born
    }

    /// When it came, or was last validated.
    pub const fn received(&self) -> Time {
        self.received
    }

    /// When it was made, in seconds since 1970: its `Date`, or when it came.
    pub const fn date(&self) -> u64 {
        self.date
    }

    /// Its `Last-Modified`, in seconds since 1970.
    pub const fn last_modified(&self) -> Option<u64> {
        self.last_modified
    }

    /// How much its `Last-Modified` promises, if it has one.
    pub fn last_modified_strength(&self) -> Option<Strength> {
        let strong = self.has(Rule::StrongDate);
        self.last_modified.map(|_| if strong { Strength::Strong } else { Strength::Weak })
    }

    /// Its entity tag.
    pub const fn etag(&self) -> Option<&EntityTag> {
        self.etag.as_ref()
    }

    /// Whether the origin can be asked if it still holds.
    pub const fn has_validator(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// Whether it may not be used without asking the origin (`no-cache`).
    pub fn needs_validation(&self) -> bool {
        self.has(Rule::NoCache)
    }

    /// Whether it will not change while it is fresh (RFC 8246): a client that reloads need not make
    /// us ask.
    pub fn is_immutable(&self) -> bool {
        self.has(Rule::Immutable)
    }

    /// Whether it is a part of a representation.
    pub fn is_partial(&self) -> bool {
        self.has(Rule::Partial)
    }

    /// Whether it may be served stale (RFC 9111, section 4.2.4).
    pub fn staleness(&self) -> Staleness {
        if self.has(Rule::NoCache) || self.has(Rule::MustRevalidate) {
            Staleness::Forbidden
        } else if self.has(Rule::SharedLifetime) {
            Staleness::OwnWindowsOnly
        } else {
            Staleness::Allowed
        }
    }

    /// Until when the response itself allows to serve it while it is validated (RFC 5861, section 3).
    pub fn stale_while_revalidate_until(&self) -> Option<Time> {
        self.while_revalidate.map(|seconds| self.stale_until(seconds))
    }

    /// Until when the response itself allows to serve it in the place of an error (RFC 5861, section 4).
    pub fn stale_if_error_until(&self) -> Option<Time> {
        self.if_error.map(|seconds| self.stale_until(seconds))
    }

    fn stale_until(&self, seconds: u32) -> Time {
        self.fresh_until + Span::from_seconds(seconds.into())
    }

    /// It was so old at a moment, and is fresh for so long from its birth on.
    pub(crate) fn set_age(&mut self, age: Span, at: Time, lifetime: Span) {
        self.born = at - age;
        self.fresh_until = self.born + lifetime;
    }

    /// All parts of it are there: it is the whole representation from now on, as a 200 (RFC 9111,
    /// section 3.4).
    pub fn complete(&mut self) {
        if self.has(Rule::Partial) {
            self.rules &= !(1 << Rule::Partial as u8);
            self.status = 200;
        }
    }

    /// It was purged softly: it is stale from now on, and serves where stale responses do.
    pub fn expire(&mut self, now: Time) {
        self.fresh_until = self.fresh_until.min(now);
    }

    /// Its bytes, to be kept.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(FORMAT);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.push(self.rules);
        for time in [self.born, self.fresh_until, self.received] {
            out.extend_from_slice(&time.millis().to_le_bytes());
        }
        out.extend_from_slice(&self.date.to_le_bytes());
        // What is not there is a number that is never reached.
        out.extend_from_slice(&self.last_modified.unwrap_or(u64::MAX).to_le_bytes());
        for window in [self.while_revalidate, self.if_error] {
            out.extend_from_slice(&window.unwrap_or(u32::MAX).to_le_bytes());
        }
        out.extend_from_slice(self.etag.as_ref().map_or(&[], EntityTag::text));
    }

    /// What [`Stored::encode`] wrote; `None` if it did not. The etag reaches to the end.
    pub fn decode(bytes: &[u8]) -> Option<Stored> {
        let mut rest = bytes;
        let [FORMAT] = take(&mut rest)? else { return None };
        let status = u16::from_le_bytes(take(&mut rest)?);
        let [rules] = take(&mut rest)?;
        let mut time = || Some(Time::from_millis(i64::from_le_bytes(take(&mut rest)?)));
        let (born, fresh_until, received) = (time()?, time()?, time()?);
        let date = u64::from_le_bytes(take(&mut rest)?);
        let last_modified = Some(u64::from_le_bytes(take(&mut rest)?)).filter(|&it| it != u64::MAX);
        let mut window =
            || Some(Some(u32::from_le_bytes(take(&mut rest)?)).filter(|&it| it != u32::MAX));
        let (while_revalidate, if_error) = (window()?, window()?);
        Some(Stored {
            status,
            rules,
            born,
            fresh_until,
            received,
            date,
            last_modified,
            while_revalidate,
            if_error,
            etag: EntityTag::of(rest),
        })
    }
}

const FORMAT: u8 = 1;

// There are as many of them as there are objects in memory.
const _: () = assert!(size_of::<Stored>() <= 96);

fn take<const LEN: usize>(rest: &mut &[u8]) -> Option<[u8; LEN]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Lifetimes;

    const NOW: Time = Time::from_millis(1_790_000_000_000);

    fn stored(fields: &[(&str, &str)]) -> Stored {
        let mut response = Response::new();
        for (name, value) in fields {
            response.headers.push(name.as_bytes(), value.as_bytes());
        }
        let control = Control::of(&response.headers);
        let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), NOW);
        Stored::new(&response, &control, lifetime, Arrival { asked: NOW, received: NOW })
    }

    #[test]
    fn age_and_lifetime_count_from_birth() {
        let stored = stored(&[("Cache-Control", "max-age=10"), ("Age", "4")]);
        let at = |millis: i64| NOW + Span::from_millis(millis);
        assert_eq!((stored.age(at(0)), stored.ttl(at(0))), (4, 6));
        assert_eq!((stored.age(at(5999)), stored.ttl(at(5999))), (9, 0));
        assert!(stored.is_fresh(at(5999)));
        assert!(!stored.is_fresh(at(6000)));
        assert_eq!((stored.age(at(8500)), stored.ttl(at(8500))), (12, -3));
        // A clock that was set back makes nothing younger than it came.
        assert_eq!(stored.age(at(-60_000)), 4);
    }

    #[test]
    fn an_age_beyond_our_own_is_kept() {
        let stored = stored(&[("Cache-Control", "max-age=2147483648"), ("Age", "99999999999")]);
        assert_eq!(stored.age(NOW), 1 << 31);
        assert!(!stored.is_fresh(NOW));
    }

    #[test]
    fn staleness_is_what_the_response_says() {
        // RFC 9111, section 4.2.4
        let check = |control: &str, expected| {
            assert_eq!(stored(&[("Cache-Control", control)]).staleness(), expected, "{control}");
        };
        check("max-age=1", Staleness::Allowed);
        check("max-age=1, no-cache=\"a\"", Staleness::Allowed);
        check("max-age=1, s-maxage=2", Staleness::OwnWindowsOnly);
        check("max-age=1, must-revalidate", Staleness::Forbidden);
        check("max-age=1, proxy-revalidate", Staleness::Forbidden);
        check("max-age=1, no-cache", Staleness::Forbidden);
        check("s-maxage=1, must-revalidate", Staleness::Forbidden);
    }

    #[test]
    fn a_date_is_strong_where_nothing_can_have_changed_since() {
        // RFC 9110, section 8.8.2.2
        let date = ("Date", "Mon, 21 Sep 2026 14:13:20 GMT");
        let earlier = ("Last-Modified", "Mon, 21 Sep 2026 14:13:19 GMT");
        let same = ("Last-Modified", "Mon, 21 Sep 2026 14:13:20 GMT");
        let check = |fields: &[(&str, &str)], expected| {
            assert_eq!(stored(fields).last_modified_strength(), expected, "{fields:?}");
        };
        check(&[date, earlier], Some(Strength::Strong));
        check(&[date, same], Some(Strength::Weak));
        check(&[earlier], Some(Strength::Weak));
        check(&[date], None);
        check(&[date, ("Last-Modified", "yesterday")], None);
    }

    #[test]
    fn parts_become_the_whole() {
        let mut part = stored(&[("Cache-Control", "max-age=1")]);
        part.status = 206;
        part.rules |= 1 << Rule::Partial as u8;
        let rest = part.rules & !(1 << Rule::Partial as u8);
        part.complete();
        assert_eq!((part.status(), part.is_partial(), part.rules), (200, false, rest));
        part.status = 404;
        part.complete();
        assert_eq!(part.status(), 404);
    }

    #[test]
    fn a_soft_purge_makes_it_stale() {
        let mut stored = stored(&[("Cache-Control", "max-age=100, stale-if-error=50")]);
        let later = NOW + Span::from_seconds(10);
        stored.expire(later);
        assert!(!stored.is_fresh(later));
        assert_eq!(stored.stale_if_error_until(), Some(later + Span::from_seconds(50)));
        stored.expire(later + Span::from_seconds(10));
        assert_eq!(stored.fresh_until(), later);
    }

    #[test]
    fn what_is_kept_comes_back() {
        for fields in [
            &[][..],
            &[("Cache-Control", "max-age=100, stale-if-error=50, stale-while-revalidate=0")],
            &[("ETag", "W/\"a\""), ("Last-Modified", "Mon, 21 Sep 2026 14:13:20 GMT")],
            &[("ETag", "a"), ("Cache-Control", "immutable, no-cache, must-revalidate")],
            &[("Cache-Control", "max-age=1"), ("Age", "99999999999")],
        ] {
            let stored = stored(fields);
            let mut bytes = Vec::new();
            stored.encode(&mut bytes);
            assert_eq!(Stored::decode(&bytes), Some(stored.clone()), "{fields:?}");
            let head = bytes.len() - stored.etag().map_or(0, |etag| etag.text().len());
            for len in 0..head {
                assert_eq!(Stored::decode(&bytes[..len]), None);
            }
        }
        assert_eq!(Stored::decode(&[2; 64]), None);
    }
}
