//! Options of sites and their routes.

use tidegate_proxy::settings::{Host, MethodName, RetryWhen, Trace, UpstreamHost};

use super::super::diagnostic::{Diagnostic, code};
use super::super::node::{Node, Value};
use super::super::parse;
use super::super::parse::address::Upstream;
use super::super::parse::field::Side;
use super::super::reader::{Located, Reading, Text};
use super::kind::{
    Choice, Count, DAY, Fault, KB, Kind, List, MILLISECOND, Or, Parsed, SECOND, Size, TB, Time,
    count, list, or_none, parsed_text, size, template, time,
};
use super::{
    Optional, Reach, Required, Section, Setting, Shape, caching, inspect, optional, required,
    section, setting,
};

/// A name that logs, metrics and other options use.
pub(crate) fn name(text: &Text) -> Result<String, Fault> {
    let fault = |message| Err(Fault::new(&code::INVALID_VALUE, message));
    match text.value.as_str() {
        "" => fault("a name is not empty".to_owned()),
        long if long.len() > 100 => fault("a name has at most 100 bytes".to_owned()),
        odd if odd.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) => {
            fault(format!("{} holds quotes, backslashes or controls", text.shown()))
        }
        name => Ok(name.into()),
    }
}

section! {
    /// Host names served together. Without routes, everything goes to its `upstream` or `group`, or is
    /// answered by its `answer` or `redirect`. All that a route may set, except path and methods, may
    /// stand here too, for all of its routes.
    site = Section::new("site", "[[site]]", Shape::Many)
        .example("[[site]]\nhosts = [\"example.org\", \"*.example.org\"]\nupstream = \"127.0.0.1:3000\"\nhttps_redirect = true")
        .borrows(&[(&route::SECTION, Reach::Site)])
        .sections(&[&route::SECTION, &answer::SECTION, &redirect::SECTION, &inspect::SECTION, &caching::SECTION, &request_headers::SECTION, &response_headers::SECTION]);

    /// The host it serves: a name, `*.example.org` for all names below, or `*` for all that no other
    /// site serves.
    HOST: Optional<Parsed<Host>> = optional(
        "host",
        parsed_text("a host name, `*.` and a host name, or `*`", parse::host::pattern),
        "`hosts` says it",
        "\"example.org\"",
    );

    /// The hosts it serves, if there are several.
    HOSTS: Optional<List<Parsed<Host>>> = optional(
        "hosts",
        list("a list of hosts", parsed_text("a host name, `*.` and a host name, or `*`", parse::host::pattern)),
        "`host` says it",
        "[\"example.org\", \"www.example.org\"]",
    );

    /// Its name in logs and metrics.
    NAME: Optional<Parsed<String>> =
        optional("name", parsed_text("a name", name), "its first host", "\"shop\"");

    /// Whether plain-text requests are sent to https: `true`, or the port if it is not that of the
    /// first TLS listener.
    HTTPS_REDIRECT: Setting<HttpsPort> = setting("https_redirect", HttpsPort, "false")
        .example("true")
        .reaches(Reach::Defaults);

    /// The one of its hosts that requests for the others are redirected to.
    CANONICAL_HOST: Optional<Parsed<String>> = optional(
        "canonical_host",
        parsed_text("a host name", parse::host::single),
        "each host is served",
        "\"www.example.org\"",
    );

    /// The value of `Strict-Transport-Security`, sent over TLS (RFC 6797).
    HSTS: Optional<Parsed<String>> = optional(
        "hsts",
        parsed_text("the value of the field", hsts),
        "the field is not sent",
        "\"max-age=31536000; includeSubDomains\"",
    )
    .reaches(Reach::Defaults)
    .danger("Browsers refuse plain text for that long, even if you change your mind.");

    /// The access logs that its requests go to.
    LOGS: Optional<List<Parsed<String>>> = optional(
        "logs",
        list("a list of names of logs", parsed_text("the name of a log", name)),
        "all logs",
        "[\"access\"]",
    )
    .reaches(Reach::Defaults);
}

/// Where plain text is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Https {
    /// It is served.
    Off,
    /// To the port of the first TLS listener.
    ListenerPort,
    /// To this port.
    Port(u16),
}

/// `true`, `false` or a port.
pub(crate) struct HttpsPort;

impl Kind for HttpsPort {
    type Value = Https;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Https> {
        match &node.value {
            Value::Boolean(true) => Some(Https::ListenerPort),
            Value::Boolean(false) => Some(Https::Off),
            Value::Integer(Some(port)) => {
                if let Ok(port @ 1..) = u16::try_from(*port) {
                    Some(Https::Port(port))
                } else {
                    let message = "a port is a number from 1 to 65535";
                    reading.report(Diagnostic::new(&code::OUT_OF_RANGE, node.span, message));
                    None
                }
            }
            _ => {
                reading.wrong_type(node, "a boolean");
                None
            }
        }
    }

    fn describe(&self) -> String {
        "`true`, `false` or a port".into()
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({ "anyOf": [
            { "type": "boolean" },
            { "type": "integer", "minimum": 1, "maximum": 65535 },
        ] })
    }
}

/// RFC 6797, section 6.1, as far as browsers look.
fn hsts(text: &Text) -> Result<String, Fault> {
    let mut max_age = false;
    for part in text.value.split(';') {
        let trimmed = part.trim();
        let (name, value) = trimmed.split_once('=').unwrap_or((trimmed, ""));
        match name.to_ascii_lowercase().as_str() {
            "max-age" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                max_age = true;
            }
            "max-age" => {
                return Err(Fault::new(&code::INVALID_VALUE, "`max-age` is a number of seconds"));
            }
            "includesubdomains" | "preload" if value.is_empty() => {}
            other => {
                return Err(Fault::new(
                    &code::INVALID_VALUE,
                    format!(
                        "`{}` is no directive of Strict-Transport-Security",
                        other.escape_debug()
                    ),
                )
                .hint("known are `max-age=SECONDS`, `includeSubDomains` and `preload`"));
            }
        }
    }
    if max_age {
        Ok(text.value.clone())
    } else {
        Err(Fault::new(&code::INVALID_VALUE, "Strict-Transport-Security needs a `max-age`")
            .hint("write it like `max-age=31536000`"))
    }
}

section! {
    /// A path rule of a site and what is done there. Their order does not matter: an exact path wins
    /// over a prefix, a longer prefix over a shorter one, one that lists the method over one that
    /// takes all.
    route = Section::new("route", "[[site.route]]", Shape::Many)
        .example("[[site.route]]\npath = \"/api/\"\ngroup = \"app\"\nstrip_prefix = \"/api\"")
        .sections(&[&answer::SECTION, &redirect::SECTION, &inspect::SECTION, &caching::SECTION, &request_headers::SECTION, &response_headers::SECTION]);

    /// This path and everything below it: `/a` serves `/a` and `/a/b`, not `/ab`; `/a/` serves `/a/`
    /// and `/a/b`, not `/a`.
    PATH: Optional<Parsed<String>> = optional(
        "path",
        parsed_text("a path", parse::path::normal),
        "`exact` says it",
        "\"/api/\"",
    );

    /// This path only.
    EXACT: Optional<Parsed<String>> = optional(
        "exact",
        parsed_text("a path", parse::path::normal),
        "`path` says it",
        "\"/robots.txt\"",
    );

    /// The methods it serves. If no route takes a path's method, the answer is 405.
    METHODS: Optional<List<Parsed<MethodName>>> = optional(
        "methods",
        list("a list of methods", parsed_text("a method", parse::field::method)),
        "all methods",
        "[\"GET\", \"HEAD\"]",
    );

    /// Its name in logs and metrics.
    NAME: Optional<Parsed<String>> =
        optional("name", parsed_text("a name", name), "its path", "\"api\"");

    /// The group that requests go to.
    GROUP: Optional<Parsed<String>> = optional(
        "group",
        parsed_text("the name of a group", |text| Ok(text.value.clone())),
        "`upstream`, `answer` or `redirect` says what to do",
        "\"app\"",
    )
    .reaches(Reach::Site);

    /// The server, or the servers, that requests go to: short for a group. `https://` speaks TLS and
    /// verifies it.
    UPSTREAM: Optional<List<Parsed<Upstream>>> = optional(
        "upstream",
        list("an address and a port, a URL without path, or a list of them", parsed_text("an address and a port, or a URL without path", parse::address::upstream)),
        "`group`, `answer` or `redirect` says what to do",
        "\"127.0.0.1:3000\"",
    )
    .reaches(Reach::Site);

    /// What is taken from the front of the path before it goes upstream.
    STRIP_PREFIX: Optional<Parsed<String>> = optional(
        "strip_prefix",
        parsed_text("a path", parse::path::normal),
        "nothing is taken",
        "\"/api\"",
    );

    /// What is put in front of the path before it goes upstream.
    ADD_PREFIX: Optional<Parsed<String>> = optional(
        "add_prefix",
        parsed_text("a path", parse::path::normal),
        "nothing is put",
        "\"/v2\"",
    )
    .reaches(Reach::Site);

    /// The `Host` that the server sees: `client` (as the client sent it), `server` (the server's own
    /// name or address), or a host.
    UPSTREAM_HOST: Setting<Parsed<UpstreamHost>> = setting(
        "upstream_host",
        parsed_text("`client`, `server` or a host", upstream_host),
        "\"client\"",
    )
    .reaches(Reach::Defaults);

    /// From the request written to the first byte of the response. Later is answered with 504.
    FIRST_BYTE_TIMEOUT: Setting<Time> =
        setting("first_byte_timeout", time(MILLISECOND.saturating_mul(10), DAY), "\"60s\"").reaches(Reach::Defaults);

    /// Between two reads of the response.
    BETWEEN_BYTES_TIMEOUT: Setting<Time> =
        setting("between_bytes_timeout", time(MILLISECOND.saturating_mul(10), DAY), "\"60s\"").reaches(Reach::Defaults);

    /// From the request head received to the response written.
    WHOLE_TIMEOUT: Setting<Or<Time>> = setting(
        "whole_timeout",
        or_none("a request may take as long as bytes flow", time(MILLISECOND.saturating_mul(10), DAY)),
        "\"none\"",
    )
    .example("\"5m\"")
    .reaches(Reach::Defaults);

    /// Without a byte in either direction of an upgraded connection (WebSocket).
    TUNNEL_IDLE_TIMEOUT: Setting<Time> =
        setting("tunnel_idle_timeout", time(SECOND, DAY.saturating_mul(7)), "\"10m\"").reaches(Reach::Defaults);

    /// Bytes of a request body. More are answered with 413.
    BODY_MAX: Setting<Or<Size>> = setting(
        "body_max",
        or_none("there is no limit", size(0, TB)),
        "\"16MB\"",
    )
    .reaches(Reach::Defaults)
    .danger("Without a limit, one client can fill the disk or memory of a server.");

    /// Which failures are tried again with another server.
    RETRY: Setting<Choice<RetryWhen>> = setting(
        "retry",
        Choice(&[
            ("never", RetryWhen::Never, "none"),
            ("unseen", RetryWhen::Unseen, "those after which no server can have seen the request, or only one with an idempotent method on a kept connection"),
            ("idempotent", RetryWhen::Idempotent, "also any failure before a byte of the response, if the method is idempotent (GET, PUT, DELETE, ..; never POST)"),
        ]),
        "\"unseen\"",
    )
    .reaches(Reach::Defaults);

    /// Attempts beyond the first.
    RETRY_ATTEMPTS: Setting<Count<u8>> =
        setting("retry_attempts", count(0, 10), "2").reaches(Reach::Defaults);

    /// Protocols that a client may upgrade to.
    UPGRADES: Setting<List<Parsed<String>>> = setting(
        "upgrades",
        list("a list of protocols", parsed_text("the name of a protocol", parse::field::protocol)),
        "[\"websocket\"]",
    )
    .reaches(Reach::Defaults);

    /// Whether TRACE, which sends a request's fields back, is passed on.
    TRACE: Setting<Choice<Trace>> = setting(
        "trace",
        Choice(&[
            ("refuse", Trace::Refuse, "it is answered with 405"),
            ("pass", Trace::Pass, "it goes upstream as any other method"),
        ]),
        "\"refuse\"",
    )
    .reaches(Reach::Defaults)
    .danger("TRACE shows fields that the gate added.");
}

fn upstream_host(text: &Text) -> Result<UpstreamHost, Fault> {
    match text.value.as_str() {
        "client" => Ok(UpstreamHost::Client),
        "server" => Ok(UpstreamHost::Server),
        value => {
            let (host, port) = match value.rsplit_once(':') {
                Some((host, port)) if port.parse::<u16>().is_ok() => (host, Some(port)),
                _ => (value, None),
            };
            let host = parse::host::name(host).map_err(|message| {
                Fault::new(&code::INVALID_HOST, message)
                    .hint("write `client`, `server`, or a host with or without port")
            })?;
            Ok(UpstreamHost::Fixed(port.map_or(host.clone(), |port| format!("{host}:{port}"))))
        }
    }
}

/// A status code within bounds that make sense where it stands.
pub(crate) struct Status {
    what: &'static str,
    allowed: fn(i64) -> bool,
}

impl Kind for Status {
    type Value = u16;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u16> {
        let Value::Integer(number) = node.value else {
            reading.wrong_type(node, &format!("a whole number: {}", self.what));
            return None;
        };
        let status = number.filter(|number| (self.allowed)(*number));
        if status.is_none() {
            let hint = match number {
                Some(304) => Some("304 answers a condition; only a server can tell"),
                Some(100..=199) => Some("1xx announce another response"),
                _ => None,
            };
            let message = format!("expected {}", self.what);
            reading.report(
                Diagnostic::new(&code::INVALID_STATUS, node.span, message)
                    .hint_if(hint.map(str::to_owned)),
            );
        }
        status.and_then(|status| u16::try_from(status).ok())
    }

    fn describe(&self) -> String {
        self.what.into()
    }

    fn schema(&self) -> serde_json::Value {
        let statuses: Vec<i64> = (100..=599).filter(|status| (self.allowed)(*status)).collect();
        match statuses.len() {
            0..=10 => serde_json::json!({ "enum": statuses }),
            _ => serde_json::json!({
                "type": "integer",
                "minimum": statuses.first(),
                "maximum": statuses.last(),
            }),
        }
    }
}

section! {
    /// An answer that the gate gives itself.
    answer = Section::new("answer", "answer", Shape::Inline)
        .example("answer = { status = 200, body = \"User-agent: *\\n\", content_type = \"text/plain\" }");

    /// Its status.
    STATUS: Setting<Status> = setting(
        "status",
        Status {
            what: "a status from 200 to 599 but 304",
            allowed: |status| (200..=599).contains(&status) && status != 304,
        },
        "200",
    );

    /// Its body.
    BODY: Setting<Parsed<String>> =
        setting("body", parsed_text("a text", |text| Ok(text.value.clone())), "\"\"");

    /// Its `Content-Type`.
    CONTENT_TYPE: Setting<Parsed<String>> = setting(
        "content_type",
        parsed_text("a media type", content_type),
        "\"text/plain; charset=utf-8\"",
    );
}

fn content_type(text: &Text) -> Result<String, Fault> {
    let essence = text.value.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| tidegate_http::field::is_name(part.as_bytes());
    let good = essence.split_once('/').is_some_and(|(a, b)| is_token(a) && is_token(b))
        && tidegate_http::field::is_value(text.value.as_bytes());
    if good {
        return Ok(text.value.clone());
    }
    Err(Fault::new(&code::INVALID_VALUE, format!("{} is not a media type", text.shown()))
        .hint("write it like `text/html; charset=utf-8`"))
}

/// What a redirect's target may hold.
const REDIRECT_PLACEHOLDERS: [&str; 4] = ["host", "path", "query", "uri"];

fn redirect_target(text: &Text) -> Result<String, Fault> {
    let fault = |message: &str| Fault::new(&code::INVALID_VALUE, message);
    let value = text.value.as_str();
    parse::field::placeholders(text, &REDIRECT_PLACEHOLDERS)?;
    if value.is_empty() {
        return Err(fault("a redirect leads somewhere").hint("write it like `https://$host$uri`"));
    }
    if let Some(at) = value.find(|c: char| !c.is_ascii_graphic()) {
        let end = at + value[at..].chars().next().map_or(1, char::len_utf8);
        return Err(fault("a URL holds no spaces, controls or characters beyond ASCII")
            .at(at..end)
            .hint("percent-encode them"));
    }
    if value.starts_with("//") {
        return Err(fault("a target that begins with `//` leads to another host")
            .at(0..2)
            .hint("write the scheme: `https://..`"));
    }
    let absolute = value.starts_with("http://") || value.starts_with("https://");
    // `$path` and `$uri` begin with a slash of their own.
    let relative =
        value.starts_with('/') || value.starts_with("$path") || value.starts_with("$uri");
    if !absolute && !relative {
        return Err(fault("a redirect leads to `https://..`, `http://..` or `/..`")
            .hint(format!("write `https://{value}` or `/{value}`")));
    }
    if absolute {
        let host = value.split_once("://").map_or("", |(_, rest)| rest);
        if host.is_empty()
            || host.starts_with('/')
            || host.starts_with('$') && !host.starts_with("$host") && !host.starts_with("$$")
        {
            return Err(fault("the host of a redirect is fixed, or `$host`")
                .hint("a host taken from the path or query would be an open redirect"));
        }
    }
    Ok(text.value.clone())
}

section! {
    /// A redirect; a text stands for its target.
    redirect = Section::new("redirect", "redirect", Shape::Inline)
        .example("redirect = { status = 301, to = \"https://www.example.org$uri\" }")
        .shorthand("to");

    /// Its status. 301 and 308 are kept by browsers; 307 and 308 keep method and body.
    STATUS: Setting<Status> = setting(
        "status",
        Status {
            what: "301, 302, 303, 307 or 308",
            allowed: |status| matches!(status, 301 | 302 | 303 | 307 | 308),
        },
        "307",
    );

    /// Where it leads, with the placeholders `$host`, `$path`, `$query` (with its `?`) and `$uri`
    /// (path and query).
    TO: Required<Parsed<String>> = required(
        "to",
        template("a URL or a path, with placeholders", redirect_target),
        "\"https://$host$uri\"",
    );
}

/// A table of field names and values.
pub(crate) struct Fields(Side);

/// A field's name and value, and where the name stands.
pub(crate) type Field = Located<(String, String)>;

impl Kind for Fields {
    type Value = Vec<Field>;

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<Field>> {
        let Value::Table(table) = &node.value else {
            reading.wrong_type(node, "a table of fields: `{ Name = \"value\" }`");
            return None;
        };
        let value_kind = template("a field's value", parse::field::value);
        let fields = table.entries.iter().filter_map(|entry| {
            if let Err(fault) = parse::field::name(&entry.key, self.0) {
                let diagnostic = Diagnostic::new(fault.code, entry.key_span, fault.message);
                reading.report(diagnostic.hint_if(fault.hint));
                return None;
            }
            let value = value_kind.read(&entry.node, reading)?;
            Some(Located { value: (entry.key.clone(), value), span: Some(entry.key_span) })
        });
        Some(fields.collect())
    }

    fn describe(&self) -> String {
        "a table of fields and values".into()
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({ "type": "object", "additionalProperties": { "type": "string" } })
    }
}

fn request_name(text: &Text) -> Result<String, Fault> {
    parse::field::name(&text.value, Side::Request).map(|()| text.value.clone())
}

fn response_name(text: &Text) -> Result<String, Fault> {
    parse::field::name(&text.value, Side::Response).map(|()| text.value.clone())
}

section! {
    /// Changes to a request's fields before it goes upstream; those of `[defaults]` and of the site
    /// come first. Values may hold placeholders.
    request_headers = Section::new("request_headers", "request_headers", Shape::Inline)
        .example("request_headers = { set = { X-Request-Id = \"$request_id\" }, remove = [\"X-Debug\"] }");

    /// Fields that are replaced, or added if they are not there.
    SET: Optional<Fields> =
        optional("set", Fields(Side::Request), "none", "{ X-Client = \"$client_addr\" }");

    /// Fields that are added beside those of the same name.
    ADD: Optional<Fields> =
        optional("add", Fields(Side::Request), "none", "{ X-Via = \"tidegate\" }");

    /// Fields that are removed.
    REMOVE: Optional<List<Parsed<String>>> = optional(
        "remove",
        list("a list of field names", parsed_text("a field's name", request_name)),
        "none",
        "[\"X-Debug\"]",
    );
}

section! {
    /// Changes to a response's fields before it goes to the client; those of `[defaults]` and of the
    /// site come first. Values may hold placeholders.
    response_headers = Section::new("response_headers", "response_headers", Shape::Inline)
        .example("response_headers = { set = { X-Frame-Options = \"DENY\" }, remove = [\"X-Powered-By\"] }");

    /// Fields that are replaced, or added if they are not there.
    SET: Optional<Fields> =
        optional("set", Fields(Side::Response), "none", "{ X-Frame-Options = \"DENY\" }");

    /// Fields that are added beside those of the same name.
    ADD: Optional<Fields> =
        optional("add", Fields(Side::Response), "none", "{ Link = \"</style.css>; rel=preload\" }");

    /// Fields that are removed.
    REMOVE: Optional<List<Parsed<String>>> = optional(
        "remove",
        list("a list of field names", parsed_text("a field's name", response_name)),
        "none",
        "[\"X-Powered-By\"]",
    );
}

/// Bytes that an answer's body may have: it is kept in memory by each worker.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 * KB;
