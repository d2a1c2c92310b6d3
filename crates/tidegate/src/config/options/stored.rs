//! Options of the cache: how large it is, and how each site or route uses it.

use std::time::Duration;

use ipnet::IpNet;
use tidegate_cache::pattern::{Case, Pattern};
use tidegate_cache::policy::{Condition, Part, RequestCookies, SetCookie, StatusSpan};
use tidegate_cache::time::Span;

use super::super::diagnostic::code;
use super::super::parse;
use super::super::reader::Text;
use super::super::value;
use super::kind::{
    Choice, Count, DAY, Fault, Flag, KB, List, MB, Parsed, Percent, Size, TB, Time, count, list,
    parsed_text, percent, size, time,
};
use super::{Optional, Reach, Section, Setting, Shape, optional, section, setting};

/// A year, beyond which nothing is fresh or kept.
const YEAR: Duration = Duration::from_hours(24 * 365);

/// What of a query tells responses apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryRule {
    Whole,
    Sorted,
    LeftOut,
}

/// What clients may ask of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientRule {
    Obey,
    Ignore,
}

/// A time as the cache counts it.
pub(crate) fn span(time: Duration) -> Span {
    Span::from_millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// `404 1m`, `300-399 10m` or `5xx 10s`.
fn status_span(text: &Text) -> Result<StatusSpan, Fault> {
    let fault = |message: String| {
        Fault::new(&code::INVALID_VALUE, message)
            .hint("write a status and how long: `404 1m`, `300-399 10m` or `5xx 10s`")
    };
    let mut words = text.value.split_whitespace();
    let (Some(codes), Some(long), None) = (words.next(), words.next(), words.next()) else {
        return Err(fault(format!("{} is not a status and a duration", text.shown())));
    };
    let class = codes.strip_suffix("xx").and_then(|class| class.parse::<u16>().ok());
    let range = if let Some(class) = class {
        class.checked_mul(100).map(|first| (first, first + 99))
    } else {
        let (first, last) = codes.split_once('-').unwrap_or((codes, codes));
        first.parse().ok().zip(last.parse().ok())
    };
    let Some((first, last)) =
        range.filter(|(first, last)| *first >= 200 && last >= first && *last < 600)
    else {
        let shown = codes.escape_debug();
        return Err(fault(format!("`{shown}` is neither a final status nor a range of them")));
    };
    let long = value::parse_duration(long).map_err(fault)?;
    if long > YEAR {
        return Err(fault("a year is the longest".into()));
    }
    Ok(StatusSpan { first, last, span: span(long) })
}

/// `path:/admin/*`, `cookie:preview` or `header:X-Debug: *`.
fn condition(text: &Text) -> Result<Condition, Fault> {
    let fault = |message: String| {
        Fault::new(&code::INVALID_VALUE, message)
            .hint("write `path:/admin/*`, `cookie:preview*` or `header:X-Debug: 1`")
    };
    let pattern = |text: &str, case| Pattern::new(text.as_bytes(), case);
    match text.value.split_once(':') {
        Some(("path", path)) if path.starts_with('/') => {
            Ok(Condition::Path(pattern(path, Case::Sensitive)))
        }
        Some(("cookie", name)) if is_cookie_name(name) => {
            Ok(Condition::Cookie(pattern(name, Case::Sensitive)))
        }
        Some(("header", rest)) => {
            let (name, value) = rest.split_once(':').unwrap_or((rest, "*"));
            if !tidegate_http::field::is_name(name.as_bytes()) {
                return Err(fault(format!("`{}` is no name of a field", name.escape_debug())));
            }
            let value = pattern(value.trim(), Case::Sensitive);
            Ok(Condition::Header { name: name.to_ascii_lowercase().into_bytes().into(), value })
        }
        _ => Err(fault(format!("{} is no condition", text.shown()))),
    }
}

fn is_cookie_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte == b'*' || tidegate_http::field::is_name_byte(byte))
}

fn cookie_pattern(text: &Text) -> Result<Pattern, Fault> {
    if is_cookie_name(&text.value) {
        return Ok(Pattern::new(text.value.as_bytes(), Case::Sensitive));
    }
    let message = format!("{} is no name of a cookie", text.shown());
    Err(Fault::new(&code::INVALID_VALUE, message).hint("write a name like `session` or `wp_*`"))
}

fn cookie_name(text: &Text) -> Result<String, Fault> {
    if is_cookie_name(&text.value) && !text.value.contains('*') {
        return Ok(text.value.clone());
    }
    let message = format!("{} is no name of a cookie", text.shown());
    Err(Fault::new(&code::INVALID_VALUE, message).hint("write a name like `currency`"))
}

fn field_name(text: &Text) -> Result<String, Fault> {
    if tidegate_http::field::is_name(text.value.as_bytes()) {
        return Ok(text.value.to_ascii_lowercase());
    }
    let message = format!("{} is no name of a field", text.shown());
    Err(Fault::new(&code::INVALID_HEADER_NAME, message).hint("write a name like `X-Country`"))
}

fn directory(text: &Text) -> Result<String, Fault> {
    if text.value.is_empty() || text.value.contains('\0') {
        return Err(Fault::new(&code::INVALID_VALUE, "this is not the path of a directory"));
    }
    Ok(text.value.clone())
}

fn parameter(text: &Text) -> Result<Pattern, Fault> {
    let is_plain = |byte: u8| byte > b' ' && byte < 0x7f && !matches!(byte, b'&' | b'=' | b'#');
    if !text.value.is_empty() && text.value.bytes().all(is_plain) {
        return Ok(Pattern::new(text.value.as_bytes(), Case::Sensitive));
    }
    let message = format!("{} is no name of a parameter", text.shown());
    Err(Fault::new(&code::INVALID_VALUE, message).hint("write a name like `page` or `utm_*`"))
}

section! {
    /// How the responses of a site or a route are cached; a bare value is the mode. What a route does
    /// not say, its site does, and then `[cache]`. docs/cache.md tells what is stored and for how long.
    caching = Section::new("cache", "site.cache", Shape::Inline)
        .example("cache = { mode = \"on\", lifetime = [\"404 1m\"], query_drop = [\"utm_*\"] }")
        .shorthand("mode");

    /// Whether there is a cache.
    MODE: Optional<Choice<Mode>> = optional(
        "mode",
        Choice(&[
            ("off", Mode::Off, "nothing is looked up and nothing stored"),
            ("on", Mode::On, "what the server allows is stored and served"),
        ]),
        "`on` where something else is said about the cache, `off` where nothing is",
        "\"on\"",
    )
    .reaches(Reach::Cache);

    /// How long responses are fresh that do not say it themselves, by status; the first that fits counts.
    LIFETIME: Optional<List<Parsed<StatusSpan>>> = optional(
        "lifetime",
        list("a list of statuses and durations", parsed_text("a status and a duration", status_span)),
        "a tenth of the time since `Last-Modified`, where there is one",
        "[\"200 10m\", \"404 1m\", \"5xx 10s\"]",
    )
    .reaches(Reach::Cache);

    /// How long responses are fresh, whatever they say, by status. What is private or must not be
    /// stored is not stored nevertheless.
    LIFETIME_OVERRIDE: Optional<List<Parsed<StatusSpan>>> = optional(
        "lifetime_override",
        list("a list of statuses and durations", parsed_text("a status and a duration", status_span)),
        "what a response says counts",
        "[\"200 1h\"]",
    )
    .reaches(Reach::Cache);

    /// The share of the time since `Last-Modified` for which a response is taken to be fresh that does
    /// not say it (RFC 9111, section 4.2.2).
    HEURISTIC: Setting<Percent> = setting("heuristic", percent(0, 100), "\"10%\"").reaches(Reach::Cache);

    /// The longest time taken that way.
    HEURISTIC_MAX: Setting<Time> =
        setting("heuristic_max", time(Duration::ZERO, YEAR), "\"1d\"").reaches(Reach::Cache);

    /// What the `Cache-Control` of clients means.
    CLIENT_CONTROL: Setting<Choice<ClientRule>> = setting(
        "client_control",
        Choice(&[
            ("obey", ClientRule::Obey, "they get what they ask for (RFC 9111, section 5.2.1)"),
            ("ignore", ClientRule::Ignore, "only `no-store` counts, for what they ask for is not stored"),
        ]),
        "\"obey\"",
    )
    .reaches(Reach::Cache);

    /// The age that no client can refuse: what is younger is served even to `no-cache` and to smaller
    /// `max-age`. It keeps reloads from reaching the server.
    CLIENT_AGE_MIN: Setting<Time> =
        setting("client_age_min", time(Duration::ZERO, DAY), "\"0s\"").reaches(Reach::Cache);

    /// Requests that go past the cache.
    BYPASS: Optional<List<Parsed<Condition>>> = optional(
        "bypass",
        list("a list of conditions", parsed_text("a condition", condition)),
        "none",
        "[\"path:/admin/*\", \"cookie:preview\", \"header:X-Debug: *\"]",
    )
    .reaches(Reach::Cache);

    /// Cookies that name a session: requests with one go past the cache.
    SESSION_COOKIES: Optional<List<Parsed<Pattern>>> = optional(
        "session_cookies",
        list("a list of names of cookies", parsed_text("a name of a cookie", cookie_pattern)),
        "none",
        "[\"wordpress_logged_in_*\", \"PHPSESSID\"]",
    )
    .reaches(Reach::Cache);

    /// What other cookies of a request mean.
    REQUEST_COOKIES: Setting<Choice<RequestCookies>> = setting(
        "request_cookies",
        Choice(&[
            ("need_lifetime", RequestCookies::NeedLifetime, "a response is stored only if it says itself for how long"),
            ("ignore", RequestCookies::Ignored, "nothing"),
        ]),
        "\"need_lifetime\"",
    )
    .reaches(Reach::Cache);

    /// What becomes of a response that sets cookies.
    SET_COOKIE: Setting<Choice<SetCookie>> = setting(
        "set_cookie",
        Choice(&[
            ("refuse", SetCookie::NotStored, "it is not stored"),
            ("drop", SetCookie::Dropped, "it is stored without them; who asked first gets them"),
            ("store", SetCookie::Stored, "it is stored with them, and everybody gets the same"),
        ]),
        "\"refuse\"",
    )
    .reaches(Reach::Cache)
    .danger("With `store`, a session's cookie that slips into a cacheable response is everybody's session.");

    /// How often something has to be asked for before it is stored.
    USES_MIN: Setting<Count<u32>> = setting("uses_min", count(1, 100), "1").reaches(Reach::Cache);

    /// The largest body that is stored.
    OBJECT_MAX: Setting<Size> = setting("object_max", size(KB, TB), "\"32MB\"").reaches(Reach::Cache);

    /// How long after its lifetime a response is served because the server fails or does not answer,
    /// unless it forbids that (`must-revalidate` and the like).
    GRACE: Setting<Time> = setting("grace", time(Duration::ZERO, YEAR), "\"1h\"").reaches(Reach::Cache);

    /// How long after its lifetime a response is served while it is fetched anew, where the response
    /// does not say so itself (`stale-while-revalidate`).
    GRACE_UPDATING: Setting<Time> =
        setting("grace_updating", time(Duration::ZERO, YEAR), "\"0s\"").reaches(Reach::Cache);

    /// How long a response that can be validated is kept behind its lifetime.
    KEEP: Setting<Time> = setting("keep", time(Duration::ZERO, YEAR), "\"1d\"").reaches(Reach::Cache);

    /// How long a request waits for what another one fetches before it fetches for itself.
    WAIT_MAX: Setting<Time> =
        setting("wait_max", time(Duration::from_millis(10), DAY), "\"10s\"").reaches(Reach::Cache);

    /// How long it is remembered that a response was not to be stored, so that requests for it do not
    /// wait for each other.
    PASS_KEPT: Setting<Time> =
        setting("pass_kept", time(Duration::ZERO, DAY), "\"2m\"").reaches(Reach::Cache);

    /// What of a query tells responses apart.
    QUERY: Setting<Choice<QueryRule>> = setting(
        "query",
        Choice(&[
            ("whole", QueryRule::Whole, "all of it, as it stands"),
            ("sorted", QueryRule::Sorted, "its parameters, in whatever order"),
            ("none", QueryRule::LeftOut, "nothing"),
        ]),
        "\"whole\"",
    )
    .reaches(Reach::Cache);

    /// The only parameters that count; `*` stands for any letters.
    QUERY_KEEP: Optional<List<Parsed<Pattern>>> = optional(
        "query_keep",
        list("a list of names of parameters", parsed_text("a name of a parameter", parameter)),
        "all count",
        "[\"page\", \"sort\"]",
    )
    .reaches(Reach::Cache);

    /// Parameters that do not count; `*` stands for any letters.
    QUERY_DROP: Optional<List<Parsed<Pattern>>> = optional(
        "query_drop",
        list("a list of names of parameters", parsed_text("a name of a parameter", parameter)),
        "all count",
        "[\"utm_*\", \"fbclid\"]",
    )
    .reaches(Reach::Cache);

    /// Fields of the request that tell responses apart, besides those that `Vary` names.
    KEY_HEADERS: Optional<List<Parsed<String>>> = optional(
        "key_headers",
        list("a list of names of fields", parsed_text("a name of a field", field_name)),
        "none",
        "[\"X-Country\"]",
    )
    .reaches(Reach::Cache);

    /// Cookies that tell responses apart.
    KEY_COOKIES: Optional<List<Parsed<String>>> = optional(
        "key_cookies",
        list("a list of names of cookies", parsed_text("a name of a cookie", cookie_name)),
        "none",
        "[\"currency\"]",
    )
    .reaches(Reach::Cache);

    /// Whether the hosts of a site have responses of their own.
    KEY_HOST: Setting<Flag> = setting("key_host", Flag, "true").reaches(Reach::Cache);

    /// Whether http and https have responses of their own.
    KEY_SCHEME: Setting<Flag> = setting("key_scheme", Flag, "true").reaches(Reach::Cache);

    /// Different tags of one response (`Cache-Tag`, `Surrogate-Key`, `xkey`). One with more is not stored.
    TAGS_MAX: Setting<Count<usize>> =
        setting("tags_max", count(0, 10_000), "256").reaches(Reach::Cache);

    /// Addresses whose requests with the method `PURGE` purge a URL, or tags. Where there are none, the
    /// method goes to the server as any other.
    PURGE_FROM: Optional<List<Parsed<IpNet>>> = optional(
        "purge_from",
        list("a list of networks or addresses", parsed_text("a network or an address", parse::address::network)),
        "nobody",
        "[\"127.0.0.1\", \"10.0.0.0/8\"]",
    )
    .reaches(Reach::Cache);

    /// Whether answers say `X-Cache-Status: HIT` and the like, besides `Cache-Status` (RFC 9211).
    X_CACHE_STATUS: Setting<Flag> = setting("x_cache_status", Flag, "false").reaches(Reach::Cache);
}

/// Whether there is a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Off,
    On,
}

/// Whether a flag says that something is part of a key.
pub(crate) const fn part(counts: bool) -> Part {
    if counts { Part::Counts } else { Part::LeftOut }
}

section! {
    /// The cache: how much it holds, and how it is used where no site or route says otherwise. It is used
    /// where a site or a route says so, or `mode = "on"` stands here.
    cache = Section::new("cache", "[cache]", Shape::One)
        .example("[cache]\nmode = \"on\"\nmemory_max = \"2GB\"")
        .borrows(&[(&caching::SECTION, Reach::Cache)]);

    /// Memory for stored responses. It follows a reload.
    MEMORY_MAX: Setting<Size> = setting("memory_max", size(MB, TB), "\"256MB\"");

    /// The directory of the disk tier, where responses outlive memory, restarts and crashes. It is made if
    /// it is not there. The directory is fixed for the life of a process.
    PATH: Optional<Parsed<String>> = optional(
        "path",
        parsed_text("the path of a directory", directory),
        "responses are kept in memory alone",
        "\"/var/cache/tidegate\"",
    );

    /// Room on disk.
    DISK_MAX: Setting<Size> = setting("disk_max", size(64 * MB, 1000 * TB), "\"10GB\"");
}
