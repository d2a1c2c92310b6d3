//! `Cache-Control` of responses and of requests (RFC 9111, section 5.2, RFC 5861 and RFC 8246).
//!
//! Reading is generous to what restricts and strict to what allows: `no-store=1` is `no-store`, but a
//! lifetime that is not made of digits is none, and such a response is stale (section 4.2.1). Unknown
//! directives are ignored.

use tidegate_http::Headers;
use tidegate_http::field::{self, Known};

/// More seconds than this are read as this many (RFC 9111, section 1.2.2).
pub const DELTA_SECONDS_MAX: u32 = 1 << 31;

/// How many field names a qualified directive may list; one that lists more is read as unqualified.
const SCOPE_FIELDS_MAX: usize = 32;

/// A number of seconds that a directive gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delta {
    /// There is no such directive.
    #[default]
    Absent,
    /// There is one, but it gives no number of seconds.
    Invalid,
    /// So many; at most [`DELTA_SECONDS_MAX`].
    Seconds(u32),
}

impl Delta {
    /// Reads delta-seconds: digits alone.
    pub fn of(text: &[u8]) -> Delta {
        delta_seconds(text).map_or(Delta::Invalid, Delta::Seconds)
    }

    /// The seconds, if there are any.
    pub const fn seconds(self) -> Option<u32> {
        match self {
            Delta::Seconds(seconds) => Some(seconds),
            Delta::Absent | Delta::Invalid => None,
        }
    }

    /// Both were given for one thing: the more restrictive counts (RFC 9111, section 4.2.1).
    ///
    /// Of two values the smaller one does. Until then both the first value and the rule that such
    /// a response is stale allow as much; from then on the latter does.
    pub(crate) fn and(self, other: Delta) -> Delta {
        match (self, other) {
            (Delta::Absent, delta) | (delta, Delta::Absent) => delta,
            (Delta::Seconds(one), Delta::Seconds(two)) => Delta::Seconds(one.min(two)),
            (Delta::Invalid, _) | (_, Delta::Invalid) => Delta::Invalid,
        }
    }
}

/// Delta-seconds (RFC 9111, section 1.2.2): `None` if it is not digits alone.
pub(crate) fn delta_seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let sum = text
        .iter()
        .fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    Some(sum.min(DELTA_SECONDS_MAX))
}

/// What of a response `no-cache` or `private` is about (RFC 9111, sections 5.2.2.4 and 5.2.2.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// There is no such directive.
    #[default]
    Nothing,
    /// The fields with these names, which are in small letters.
    Fields(Vec<Box<[u8]>>),
    /// The whole response.
    Response,
}

impl Scope {
    /// Whether it is about the whole response.
    pub fn is_response(&self) -> bool {
        *self == Scope::Response
    }

    /// Whether it is about the field with this name.
    pub fn names(&self, name: &[u8]) -> bool {
        match self {
            Scope::Nothing | Scope::Response => false,
            Scope::Fields(names) => names.iter().any(|listed| listed.eq_ignore_ascii_case(name)),
        }
    }

    /// Widens it to what a list of field names says; to all, if it is not such a list.
    pub(crate) fn widen(&mut self, list: &[u8]) {
        if self.is_response() {
            return;
        }
        let mut names = match std::mem::take(self) {
            Scope::Fields(names) => names,
            Scope::Nothing | Scope::Response => Vec::new(),
        };
        let before = names.len();
        names.extend(field::tokens(list).map(|name| name.to_ascii_lowercase().into_boxed_slice()));
        let is_list = names.len() > before && names.iter().all(|name| field::is_name(name));
        *self = if is_list && names.len() <= SCOPE_FIELDS_MAX {
            Scope::Fields(names)
        } else {
            Scope::Response
        };
    }
}

/// A directive of a response that has no argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flag {
    /// `no-store`
    NoStore,
    /// `public`
    Public,
    /// `must-revalidate`
    MustRevalidate,
    /// `proxy-revalidate`
    ProxyRevalidate,
    /// `must-understand`
    MustUnderstand,
    /// `no-transform`
    NoTransform,
    /// `immutable` (RFC 8246)
    Immutable,
}

impl Flag {
    /// All of them.
    pub const ALL: [Flag; 7] = [
        Flag::NoStore,
        Flag::Public,
        Flag::MustRevalidate,
        Flag::ProxyRevalidate,
        Flag::MustUnderstand,
        Flag::NoTransform,
        Flag::Immutable,
    ];

    /// The directive's name.
    pub const fn name(self) -> &'static str {
        match self {
            Flag::NoStore => "no-store",
            Flag::Public => "public",
            Flag::MustRevalidate => "must-revalidate",
            Flag::ProxyRevalidate => "proxy-revalidate",
            Flag::MustUnderstand => "must-understand",
            Flag::NoTransform => "no-transform",
            Flag::Immutable => "immutable",
        }
    }

    /// The directive with this name, in any case.
    pub fn of(name: &[u8]) -> Option<Flag> {
        Flag::ALL.into_iter().find(|flag| name.eq_ignore_ascii_case(flag.name().as_bytes()))
    }
}

/// A set of directives without arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Whether a directive is in it.
    pub const fn has(self, flag: Flag) -> bool {
        self.0 & (1 << flag as u8) != 0
    }

    /// Puts a directive into it.
    pub const fn set(&mut self, flag: Flag) {
        self.0 |= 1 << flag as u8;
    }
}

/// What a response says to caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `max-age`
    pub max_age: Delta,
    /// `s-maxage`
    pub s_maxage: Delta,
    /// `stale-while-revalidate` (RFC 5861, section 3)
    pub stale_while_revalidate: Delta,
    /// `stale-if-error` (RFC 5861, section 4)
    pub stale_if_error: Delta,
    /// `no-cache`
    pub no_cache: Scope,
    /// `private`
    pub private: Scope,
    /// Those without an argument.
    pub flags: Flags,
}

/// A directive's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument<'a> {
    /// No `=`, or nothing behind it.
    Absent,
    /// A token, or whatever is not quoted.
    Bare(&'a [u8]),
    /// What stands between quotes, escapes included.
    Quoted(&'a [u8]),
}

impl<'a> Argument<'a> {
    fn text(self) -> &'a [u8] {
        match self {
            Argument::Absent => b"",
            Argument::Bare(text) | Argument::Quoted(text) => text,
        }
    }

    fn delta(self) -> Delta {
        Delta::of(self.text())
    }
}

impl ResponseDirectives {
    /// Reads all `Cache-Control` fields of a response.
    pub fn of(headers: &Headers) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        for member in headers.all(Known::CacheControl).flat_map(field::list) {
            let (name, argument) = split(member);
            directives.take(name, argument);
        }
        directives
    }

    /// Whether a directive without an argument is there.
    pub const fn has(&self, flag: Flag) -> bool {
        self.flags.has(flag)
    }

    pub(crate) fn take(&mut self, name: &[u8], argument: Argument<'_>) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if let Some(flag) = Flag::of(name) {
            self.flags.set(flag);
        } else if is(b"max-age") {
            self.max_age = self.max_age.and(argument.delta());
        } else if is(b"s-maxage") {
            self.s_maxage = self.s_maxage.and(argument.delta());
        } else if is(b"stale-while-revalidate") {
            self.stale_while_revalidate = self.stale_while_revalidate.and(argument.delta());
        } else if is(b"stale-if-error") {
            self.stale_if_error = self.stale_if_error.and(argument.delta());
        } else if is(b"no-cache") {
            self.no_cache.widen(argument.text());
        } else if is(b"private") {
            self.private.widen(argument.text());
        }
    }
}

/// Parts a member of the list into name and argument. There is no white space around the `=`: before
/// it, it is not of the name, so that a restriction with a slip in it is one; and on either side it
/// spoils the argument.
pub(crate) fn split(member: &[u8]) -> (&[u8], Argument<'_>) {
    let Some(at) = member.iter().position(|&byte| byte == b'=') else {
        return (member, Argument::Absent);
    };
    let name = field::trim(&member[..at]);
    let argument = match &member[at + 1..] {
        _ if name.len() < at => Argument::Bare(b""),
        [] => Argument::Absent,
        [b'"', text @ .., b'"'] => Argument::Quoted(text),
        text => Argument::Bare(text),
    };
    (name, argument)
}

/// What a request says to caches (RFC 9111, section 5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `max-age`, in seconds.
    pub max_age: Option<u32>,
    /// `min-fresh`, in seconds.
    pub min_fresh: Option<u32>,
    /// `max-stale`, in seconds; [`u32::MAX`] where it gives none.
    pub max_stale: Option<u32>,
    /// `stale-if-error` (RFC 5861, section 4), in seconds.
    pub stale_if_error: Option<u32>,
    /// `no-cache`, or `Pragma: no-cache` from a client that says nothing else.
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `no-transform`
    pub no_transform: bool,
    /// `only-if-cached`
    pub only_if_cached: bool,
}

impl RequestDirectives {
    /// Reads `Cache-Control` of a request, or, where there is none, `Pragma` (RFC 9111, section 5.4).
    ///
    /// Arguments that are no numbers of seconds are ignored with their directive.
    pub fn of(headers: &Headers) -> RequestDirectives {
        let mut directives = RequestDirectives::default();
        if headers.has(Known::CacheControl) {
            for member in headers.all(Known::CacheControl).flat_map(field::list) {
                directives.take(member);
            }
        } else if headers.has(Known::Pragma) {
            directives.no_cache = headers
                .all(Known::Pragma)
                .flat_map(field::list)
                .any(|member| split(member).0.eq_ignore_ascii_case(b"no-cache"));
        }
        directives
    }

    fn take(&mut self, member: &[u8]) {
        let (name, argument) = split(member);
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let seconds = || argument.delta().seconds();
        if is(b"no-cache") {
            self.no_cache = true;
        } else if is(b"no-store") {
            self.no_store = true;
        } else if is(b"no-transform") {
            self.no_transform = true;
        } else if is(b"only-if-cached") {
            self.only_if_cached = true;
        } else if is(b"max-age") {
            self.max_age =
                seconds().map(|age| self.max_age.unwrap_or(age).min(age)).or(self.max_age);
        } else if is(b"min-fresh") {
            self.min_fresh = seconds().max(self.min_fresh);
        } else if is(b"max-stale") {
            let stale = if argument == Argument::Absent { Some(u32::MAX) } else { seconds() };
            self.max_stale =
                stale.map(|age| self.max_stale.unwrap_or(age).min(age)).or(self.max_stale);
        } else if is(b"stale-if-error") {
            self.stale_if_error = seconds().or(self.stale_if_error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(known: Known, lines: &[&str]) -> Headers {
        let mut headers = Headers::new();
        for line in lines {
            headers.push_known(known, line.as_bytes());
        }
        headers
    }

    fn of(line: &str) -> ResponseDirectives {
        ResponseDirectives::of(&headers(Known::CacheControl, &[line]))
    }

    #[test]
    fn delta_seconds_are_digits() {
        let check =
            |text: &str, expected| assert_eq!(Delta::of(text.as_bytes()), expected, "{text}");
        check("0", Delta::Seconds(0));
        check("3600", Delta::Seconds(3600));
        check("003600", Delta::Seconds(3600));
        check("2147483647", Delta::Seconds(DELTA_SECONDS_MAX - 1));
        check("2147483648", Delta::Seconds(DELTA_SECONDS_MAX));
        check("2147483649", Delta::Seconds(DELTA_SECONDS_MAX));
        check("4294967296", Delta::Seconds(DELTA_SECONDS_MAX));
        check("99999999999", Delta::Seconds(DELTA_SECONDS_MAX));
        check("18446744073709551616", Delta::Seconds(DELTA_SECONDS_MAX));
        for text in ["", "-3600", "+1", "3600.0", "3600.5", "a3600", "3600a", "'3600'", " 1", "1 "]
        {
            check(text, Delta::Invalid);
        }
    }

    #[test]
    fn max_age_is_read_in_every_form() {
        let check = |line: &str, expected| assert_eq!(of(line).max_age, expected, "{line}");
        check("max-age=3600", Delta::Seconds(3600));
        check("MaX-aGe=3600", Delta::Seconds(3600));
        check("max-age=\"3600\"", Delta::Seconds(3600));
        check("foobar, max-age=3600", Delta::Seconds(3600));
        check("max-age=1, extension=\"max-age=3600\"", Delta::Seconds(1));
        check("extension=\"max-age=3600\", max-age=1", Delta::Seconds(1));
        check("extension=\"\\\", max-age=3600\", max-age=1", Delta::Seconds(1));
        check("extension=\"max-age=3600", Delta::Absent);
        check("max-age", Delta::Invalid);
        check("max-age=", Delta::Invalid);
        check("max-age= 3600", Delta::Invalid);
        check("max-age =3600", Delta::Invalid);
        check("max-age =\"3600\"", Delta::Invalid);
        check("max-age='3600'", Delta::Invalid);
        check("max-age=3600;x", Delta::Invalid);
        check("xmax-age=3600", Delta::Absent);
        check("", Delta::Absent);
        check(", ,", Delta::Absent);
    }

    #[test]
    fn of_two_values_the_more_restrictive_counts() {
        // RFC 9111, section 4.2.1
        let check = |lines: &[&str], expected| {
            let read = ResponseDirectives::of(&headers(Known::CacheControl, lines));
            assert_eq!(read.max_age, expected, "{lines:?}");
        };
        check(&["max-age=5, max-age=5"], Delta::Seconds(5));
        check(&["max-age=1800, max-age=1"], Delta::Seconds(1));
        check(&["max-age=1, max-age=1800"], Delta::Seconds(1));
        check(&["max-age=1800", "max-age=1"], Delta::Seconds(1));
        check(&["max-age=1", "x", "max-age=1800"], Delta::Seconds(1));
        check(&["max-age=1800, max-age=x"], Delta::Invalid);
        check(&["max-age=x, max-age=1800"], Delta::Invalid);
    }

    #[test]
    fn restrictions_are_seen_in_any_dress() {
        for line in [
            "no-store",
            "No-StOrE",
            "max-age=1, no-store",
            "no-store=1",
            "no-store =",
            "x,no-store",
        ] {
            assert!(of(line).has(Flag::NoStore), "{line}");
        }
        for line in ["", "no-stores", "x=\"no-store\"", "no store"] {
            assert!(!of(line).has(Flag::NoStore), "{line}");
        }
        let all = of(
            "public, must-revalidate, proxy-revalidate, must-understand, no-transform, immutable",
        );
        for flag in [
            Flag::Public,
            Flag::MustRevalidate,
            Flag::ProxyRevalidate,
            Flag::MustUnderstand,
            Flag::NoTransform,
            Flag::Immutable,
        ] {
            assert!(all.has(flag), "{flag:?}");
        }
        assert!(!all.has(Flag::NoStore));
    }

    #[test]
    fn scopes_are_lists_of_names_or_all() {
        // RFC 9111, sections 5.2.2.4 and 5.2.2.7
        let check = |line: &str, names: Option<&[&str]>| {
            let expected = names.map_or(Scope::Response, |names| match names {
                [] => Scope::Nothing,
                _ => Scope::Fields(names.iter().map(|name| Box::from(name.as_bytes())).collect()),
            });
            assert_eq!(of(line).no_cache, expected, "{line}");
            let line = line.to_lowercase().replace("no-cache", "private");
            assert_eq!(of(&line).private, expected, "{line}");
        };
        check("x", Some(&[]));
        check("no-cache", None);
        check("No-Cache", None);
        check("no-cache=\"a\"", Some(&["a"]));
        check("no-cache=\"a, B\"", Some(&["a", "b"]));
        check("no-cache=a", Some(&["a"]));
        check("no-cache=\"a\", no-cache=\"b\"", Some(&["a", "b"]));
        check("no-cache=\"a\", no-cache", None);
        check("no-cache, no-cache=\"a\"", None);
        // What cannot be understood is read as the more restrictive form.
        check("no-cache=", None);
        check("no-cache=\"\"", None);
        check("no-cache =\"a\"", None);
        check("no-cache=\" , \"", None);
        check("no-cache=\"a b\"", None);
        check("no-cache=\"a\\\"b\"", None);
        check("no-cache=\"a", None);
        check(&format!("no-cache=\"{}\"", "a,".repeat(SCOPE_FIELDS_MAX + 1)), None);
        assert!(of("private=\"Set-Cookie\"").private.names(b"set-cookie"));
        assert!(!of("private=\"Set-Cookie\"").private.names(b"cookie"));
    }

    #[test]
    fn stale_windows_are_deltas() {
        let read = of("max-age=1, stale-while-revalidate=30, stale-if-error=60");
        assert_eq!(read.stale_while_revalidate, Delta::Seconds(30));
        assert_eq!(read.stale_if_error, Delta::Seconds(60));
        assert_eq!(of("stale-while-revalidate").stale_while_revalidate, Delta::Invalid);
    }

    #[test]
    fn requests_say_what_they_accept() {
        let check = |line: &str, expected: RequestDirectives| {
            let read = RequestDirectives::of(&headers(Known::CacheControl, &[line]));
            assert_eq!(read, expected, "{line}");
        };
        let none = RequestDirectives::default();
        check("", none);
        check("nothing-to-see-here", none);
        check("No-Cache", RequestDirectives { no_cache: true, ..none });
        check("no-store", RequestDirectives { no_store: true, ..none });
        check("no-transform", RequestDirectives { no_transform: true, ..none });
        check("only-if-cached", RequestDirectives { only_if_cached: true, ..none });
        check("max-age=0", RequestDirectives { max_age: Some(0), ..none });
        check("max-age=x", none);
        check("max-age=9, max-age=3, max-age=x", RequestDirectives { max_age: Some(3), ..none });
        check("min-fresh=9, min-fresh=3", RequestDirectives { min_fresh: Some(9), ..none });
        check("max-stale", RequestDirectives { max_stale: Some(u32::MAX), ..none });
        check("max-stale=\"7\"", RequestDirectives { max_stale: Some(7), ..none });
        check("max-stale=x", none);
        check("max-stale, max-stale=7", RequestDirectives { max_stale: Some(7), ..none });
        check("stale-if-error=7", RequestDirectives { stale_if_error: Some(7), ..none });
    }

    #[test]
    fn pragma_counts_only_alone() {
        // RFC 9111, section 5.4
        let mut request = headers(Known::Pragma, &["foo, No-Cache"]);
        assert!(RequestDirectives::of(&request).no_cache);
        request.push_known(Known::CacheControl, b"max-stale");
        assert!(!RequestDirectives::of(&request).no_cache);
        assert!(!RequestDirectives::of(&headers(Known::Pragma, &["foo"])).no_cache);
    }
}
