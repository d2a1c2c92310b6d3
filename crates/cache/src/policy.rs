//! What an operator wants of the cache on a route: plain values, made by resolving the
//! configuration.
//!
//! Each `Default` is what a site gets that nobody configured: what the response says counts, nothing
//! personal is kept, and nothing is served stale but to spare clients an error.

use crate::pattern::Pattern;
use crate::tags::TagLimits;
use crate::time::Span;
use tidegate_http::Request;
use tidegate_http::field::Known;

/// How the cache treats the requests of a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Whether there is a cache at all.
    pub caching: Caching,
    /// For how long responses are fresh.
    pub lifetimes: Lifetimes,
    /// What clients may ask of the cache.
    pub client: ClientControl,
    /// Requests that go past the cache: nothing is looked up and nothing stored.
    pub bypass: Vec<Condition>,
    /// Cookies with such names send a request past the cache, too. They name sessions.
    pub session_cookies: Vec<Pattern>,
    /// What other cookies of a request mean for storing.
    pub request_cookies: RequestCookies,
    /// What becomes of a response that sets cookies.
    pub set_cookie: SetCookie,
    /// Whether responses to `POST` are stored.
    pub post: Post,
    /// How often a key has to be asked for before its response is stored; 1 is at once.
    pub uses_min: u32,
    /// Bytes of the largest body that is stored.
    pub object_bytes_max: u64,
    /// When stale responses are served without the origin's leave.
    pub grace: Grace,
    /// How long a stale response with a validator is kept, so that it can be validated.
    pub keep: Span,
    /// What a key is made of.
    pub key: KeyPolicy,
    /// Limits on tags; a response beyond them is not stored.
    pub tags: TagLimits,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            caching: Caching::On,
            lifetimes: Lifetimes::default(),
            client: ClientControl::default(),
            bypass: Vec::new(),
            session_cookies: Vec::new(),
            request_cookies: RequestCookies::default(),
            set_cookie: SetCookie::default(),
            post: Post::default(),
            uses_min: 1,
            object_bytes_max: 1 << 30,
            grace: Grace::default(),
            keep: Span::from_seconds(86_400),
            key: KeyPolicy::default(),
            tags: TagLimits::default(),
        }
    }
}

/// Whether there is a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// There is.
    #[default]
    On,
    /// There is none: no look-up and no storing.
    Off,
}

/// For how long responses are fresh. What counts first comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifetimes {
    /// Lifetimes that count more than what responses say. `no-store`, `private` and their like
    /// hold nevertheless.
    pub overrides: StatusTable,
    /// Lifetimes of responses that give none. Those of errors are what is called negative caching.
    pub defaults: StatusTable,
    /// What is guessed where nothing else tells.
    pub heuristic: Heuristic,
}

/// The guess at a lifetime (RFC 9111, section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// How much of the time since `Last-Modified`, in percent; 0 guesses nothing.
    pub percent: u8,
    /// The longest guess.
    pub lifetime_max: Span,
}

impl Default for Heuristic {
    fn default() -> Self {
        Heuristic { percent: 10, lifetime_max: Span::from_seconds(86_400) }
    }
}

/// Spans by status code; of several entries for a code the first counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusTable(Vec<StatusSpan>);

/// A span for a range of status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusSpan {
    /// The first code.
    pub first: u16,
    /// The last code, included.
    pub last: u16,
    /// The span.
    pub span: Span,
}

impl StatusTable {
    /// A table with these entries.
    pub fn new(entries: Vec<StatusSpan>) -> StatusTable {
        StatusTable(entries)
    }

    /// The span for a status code.
    pub fn of(&self, status: u16) -> Option<Span> {
        let covers = |entry: &&StatusSpan| (entry.first..=entry.last).contains(&status);
        self.0.iter().find(covers).map(|entry| entry.span)
    }
}

/// What clients may ask of the cache with `Cache-Control` and `Pragma`. That a response is not
/// stored they can always ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientControl {
    /// Nothing.
    Ignored,
    /// What RFC 9111, section 5.2.1, says, within bounds.
    Obeyed(ClientBounds),
}

impl Default for ClientControl {
    fn default() -> Self {
        ClientControl::Obeyed(ClientBounds::default())
    }
}

/// How far clients are obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientBounds {
    /// Seconds of age that no client can refuse: a smaller `max-age`, or `no-cache`, means this
    /// one. 0 lets them have every response validated.
    pub age_min: u32,
    /// Seconds: a larger `min-fresh` means this one.
    pub min_fresh_max: u32,
    /// Seconds: a larger `max-stale` means this one.
    pub max_stale_max: u32,
}

impl Default for ClientBounds {
    fn default() -> Self {
        ClientBounds { age_min: 0, min_fresh_max: u32::MAX, max_stale_max: u32::MAX }
    }
}

/// Something about a request that sends it past the cache.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// It has a cookie with such a name.
    Cookie(Pattern),
    /// It has a field with such a value.
    Header {
        /// The field's name.
        name: Box<[u8]>,
        /// Its value; `*` for any.
        value: Pattern,
    },
    /// It has such a path.
    Path(Pattern),
}

impl Condition {
    /// Whether it holds for a request.
    pub fn holds(&self, request: &Request) -> bool {
        match self {
            Condition::Cookie(name) => has_cookie(request, name),
            Condition::Header { name, value } => {
                request.headers.named(name).any(|line| value.matches(line))
            }
            Condition::Path(path) => path.matches(request.path()),
        }
    }
}

/// Whether a request has a cookie whose name matches.
pub(crate) fn has_cookie(request: &Request, name: &Pattern) -> bool {
    cookies(request).any(|(cookie, _)| name.matches(cookie))
}

/// A request's cookies, names and values, as they stand there (RFC 6265, section 4.2.1).
pub(crate) fn cookies(request: &Request) -> impl Iterator<Item = (&[u8], &[u8])> {
    request.headers.all(Known::Cookie).flat_map(|line| line.split(|&byte| byte == b';')).map(
        |pair| {
            let pair = tidegate_http::field::trim(pair);
            match pair.iter().position(|&byte| byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &[][..]),
            }
        },
    )
}

/// What cookies of a request, other than those that bypass the cache, mean for storing its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestCookies {
    /// It is stored only where it gives its lifetime itself: an origin that does not speak of
    /// caching may have made it for one person.
    #[default]
    NeedLifetime,
    /// Nothing.
    Ignored,
}

/// What becomes of a response with `Set-Cookie`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// It is not stored.
    #[default]
    NotStored,
    /// It is stored without the field; only the client that asked first gets the cookie.
    Dropped,
    /// It is stored with the field, and everyone gets the same cookie. RFC 9111, section 7.3,
    /// leaves it to the origin to forbid that.
    Stored,
}

/// Whether responses to `POST` are stored for later `GET`s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Post {
    /// They are not.
    #[default]
    NotStored,
    /// Those are that give their lifetime and say that they are what a `GET` would get (RFC 9110,
    /// section 9.3.3).
    Stored,
}

/// When, and for how long after its lifetime, a stale response is served without the origin's leave.
/// Responses that forbid it (`must-revalidate` and its like) are exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// The origin cannot be reached, or answers 500, 502, 503 or 504.
    pub on_error: Span,
    /// The origin does not answer in time.
    pub on_timeout: Span,
    /// While the response is being fetched anew.
    pub while_updating: Span,
}

impl Default for Grace {
    fn default() -> Self {
        Grace {
            on_error: Span::from_seconds(3600),
            on_timeout: Span::from_seconds(3600),
            while_updating: Span::ZERO,
        }
    }
}

/// What a key is made of, beside the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyPolicy {
    /// The scheme.
    pub scheme: Part,
    /// Host and port. Leaving them out makes all names of a site share their responses.
    pub host: Part,
    /// The query.
    pub query: Query,
    /// Fields of the request whose values count.
    pub headers: Vec<Box<[u8]>>,
    /// Cookies of the request whose values count.
    pub cookies: Vec<Box<[u8]>>,
}

/// Whether something is part of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// It is.
    #[default]
    Counts,
    /// It is not.
    LeftOut,
}

/// What of a query is part of a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Query {
    /// All of it, byte for byte.
    #[default]
    Whole,
    /// Nothing.
    LeftOut,
    /// Some parameters.
    Parameters {
        /// Which ones.
        select: Select,
        /// In which order.
        order: Order,
    },
}

/// A choice of parameters by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Select {
    /// All of them.
    All,
    /// These.
    Only(Vec<Pattern>),
    /// All but these.
    Without(Vec<Pattern>),
}

impl Select {
    /// Whether a parameter with this name is chosen.
    pub fn takes(&self, name: &[u8]) -> bool {
        match self {
            Select::All => true,
            Select::Only(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
            Select::Without(patterns) => !patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }
}

/// The order of parameters in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the client sent them.
    AsSent,
    /// By their bytes, so that their order does not matter.
    Sorted,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Case;

    fn request(fields: &[(&str, &str)]) -> Request {
        let mut request = Request::new();
        request.set_path_and_query(b"/a/b?c");
        for (name, value) in fields {
            request.headers.push(name.as_bytes(), value.as_bytes());
        }
        request
    }

    #[test]
    fn conditions_hold_where_they_match() {
        let pattern = |text: &str| Pattern::new(text.as_bytes(), Case::Sensitive);
        let check = |condition: &Condition, fields: &[(&str, &str)], expected: bool| {
            assert_eq!(condition.holds(&request(fields)), expected, "{condition:?} {fields:?}");
        };
        let cookie = Condition::Cookie(pattern("sess*"));
        check(&cookie, &[], false);
        check(&cookie, &[("Cookie", "a=1; session=2")], true);
        check(&cookie, &[("Cookie", "a=1"), ("Cookie", "sess")], true);
        check(&cookie, &[("Cookie", "a=sess; b=session=1")], false);
        let header = Condition::Header { name: Box::from(&b"x-debug"[..]), value: pattern("1*") };
        check(&header, &[("X-Debug", "12")], true);
        check(&header, &[("X-Debug", "0"), ("X-Debug", "1")], true);
        check(&header, &[("X-Debug", "0")], false);
        check(&header, &[], false);
        check(&Condition::Path(pattern("/a/*")), &[], true);
        check(&Condition::Path(pattern("/a")), &[], false);
    }

    #[test]
    fn the_first_entry_for_a_status_counts() {
        let entry =
            |first, last, seconds| StatusSpan { first, last, span: Span::from_seconds(seconds) };
        let table = StatusTable::new(vec![entry(404, 404, 1), entry(400, 499, 2)]);
        assert_eq!(table.of(404), Some(Span::from_seconds(1)));
        assert_eq!(table.of(499), Some(Span::from_seconds(2)));
        assert_eq!(table.of(500), None);
    }
}
