//! Options of upstream groups.

use tidegate_proxy::settings::{Endpoint, HashKey, SendProxyProtocol, UpstreamProtocol};

use super::super::parse;
use super::kind::{
    Choice, Count, DAY, Fault, Flag, HOUR, KB, List, MB, MILLISECOND, MINUTE, Or, Parsed, Percent,
    SECOND, SecretText, Size, Time, count, or_none, parsed_text, percent, size, time,
};
use super::listeners::{TLS_VERSIONS, TlsVersion};
use super::{
    Optional, Reach, Required, Section, Setting, Shape, optional, required, section, setting,
};
use crate::config::diagnostic::code;
use crate::config::reader::Text;

/// How a server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    RoundRobin,
    LeastRequests,
    Hash,
}

section! {
    /// A set of equivalent servers, under a name that routes refer to.
    group = Section::new("group", "[group.NAME]", Shape::Named)
        .example("[group.app]\nservers = [\"10.0.0.1:8080\", \"10.0.0.2:8080\"]\nbalance = \"least_requests\"")
        .sections(&[&server::SECTION, &group_tls::SECTION, &health::SECTION, &ejection::SECTION]);

    /// How a server is chosen.
    BALANCE: Setting<Choice<Balance>> = setting(
        "balance",
        Choice(&[
            ("round_robin", Balance::RoundRobin, "in turn, by weight"),
            ("least_requests", Balance::LeastRequests, "the less busy of two drawn by weight"),
            ("hash", Balance::Hash, "always the same for the same `hash_by`"),
        ]),
        "\"round_robin\"",
    )
    .reaches(Reach::Defaults);

    /// What `balance = "hash"` looks at: `client_address`, `uri` (path and query), `header:NAME` or
    /// `cookie:NAME`. Requests without the field or cookie go round robin.
    HASH_BY: Optional<Parsed<HashKey>> = optional(
        "hash_by",
        parsed_text("`client_address`, `uri`, `header:NAME` or `cookie:NAME`", parse::field::hash_key),
        "needed for `balance = \"hash\"`",
        "\"client_address\"",
    );

    /// The name of a cookie that the gate sets to keep a client on its server.
    STICKY_COOKIE: Optional<Parsed<String>> = optional(
        "sticky_cookie",
        parsed_text("the name of a cookie", parse::field::cookie_name),
        "clients are not kept",
        "\"srv\"",
    );

    /// How long the client keeps that cookie.
    STICKY_MAX_AGE: Optional<Time> =
        optional("sticky_max_age", time(SECOND, DAY.saturating_mul(400)), "until the browser is closed", "\"1h\"");

    /// The key behind that cookie's value, so that it tells nobody which servers there are. Several
    /// gates in front of one group need the same.
    STICKY_SECRET: Optional<SecretText> = optional(
        "sticky_secret",
        SecretText { bytes_min: 16 },
        "it is derived from the group's name",
        "\"${STICKY_SECRET}\"",
    );

    /// What is spoken to the servers.
    PROTOCOL: Setting<Choice<UpstreamProtocol>> = setting(
        "protocol",
        Choice(&[
            ("http1", UpstreamProtocol::Http1, "HTTP/1.1"),
            ("http2", UpstreamProtocol::Http2, "HTTP/2, as gRPC needs it: by ALPN over TLS, with prior knowledge in plain text"),
        ]),
        "\"http1\"",
    );

    /// Whether a PROXY protocol header opens each connection. Such a connection is not shared by
    /// clients, so each client has its own.
    SEND_PROXY_PROTOCOL: Setting<Choice<SendProxyProtocol>> = setting(
        "send_proxy_protocol",
        Choice(&[
            ("off", SendProxyProtocol::Off, "none"),
            ("v1", SendProxyProtocol::V1, "version 1, text"),
            ("v2", SendProxyProtocol::V2, "version 2, binary"),
        ]),
        "\"off\"",
    );

    /// For a TCP connection, and as long again for a TLS handshake.
    CONNECT_TIMEOUT: Setting<Time> =
        setting("connect_timeout", time(MILLISECOND.saturating_mul(10), MINUTE.saturating_mul(5)), "\"5s\"")
            .reaches(Reach::Defaults);

    /// Idle connections that each worker keeps to each server.
    KEEP_ALIVE_MAX: Setting<Count<usize>> =
        setting("keep_alive_max", count(0, 100_000), "64").reaches(Reach::Defaults);

    /// How long an idle connection is kept. Best a little shorter than the server's own.
    KEEP_ALIVE_IDLE: Setting<Time> =
        setting("keep_alive_idle", time(MILLISECOND.saturating_mul(100), HOUR), "\"30s\"").reaches(Reach::Defaults);

    /// Requests on one connection before it is closed.
    KEEP_ALIVE_REQUESTS: Setting<Count<u32>> =
        setting("keep_alive_requests", count(1, 1_000_000_000), "100_000").reaches(Reach::Defaults);

    /// How long a server that comes back takes to reach its full share.
    SLOW_START: Setting<Or<Time>> =
        setting("slow_start", or_none("it has its full share at once", time(SECOND, HOUR)), "\"none\"")
            .example("\"30s\"")
            .reaches(Reach::Defaults);

    /// Retries may be at most this share of the requests of the last ten seconds, and always a few.
    RETRY_BUDGET: Setting<Percent> = setting("retry_budget", percent(0, 100), "\"20%\"")
        .reaches(Reach::Defaults)
        .danger("Retries multiply the load on servers that fail under load.");

    /// Bytes of a response head. More are a bad response (502).
    RESPONSE_HEAD_BYTES_MAX: Setting<Size> =
        setting("response_head_bytes_max", size(KB, MB), "\"64KB\"").reaches(Reach::Defaults);
}

section! {
    /// A server of a group; a text stands for its address.
    server = Section::new("servers", "group.NAME.servers", Shape::InlineMany)
        .example("servers = [\"10.0.0.1:8080\", { address = \"10.0.0.2:8080\", weight = 2 }, \"unix:/run/app.sock\"]")
        .shorthand("address");

    /// An address and a port, a DNS name and a port (looked up again on its TTL; each of its addresses
    /// is a server), or `unix:` and a path.
    ADDRESS: Required<Parsed<Endpoint>> = required(
        "address",
        parsed_text("an address and a port, a name and a port, or `unix:` and a path", parse::address::server),
        "\"10.0.0.1:8080\"",
    );

    /// Its share beside the others'.
    WEIGHT: Setting<Count<u32>> = setting("weight", count(1, 1000), "1");

    /// Whether it serves only while no other can.
    BACKUP: Setting<Flag> = setting("backup", Flag, "false");

    /// Connections to it over all workers.
    CONNECTIONS_MAX: Setting<Or<Count<u32>>> = setting(
        "connections_max",
        or_none("there is no limit", count(1, 1_000_000)),
        "\"none\"",
    )
    .example("100");
}

/// The name that a server's certificate is for.
fn server_name(text: &Text) -> Result<String, Fault> {
    parse::host::single(text)
}

section! {
    /// TLS towards the servers of a group. The section being there turns it on. Certificates are
    /// verified, against the authorities that the system trusts unless `ca` says otherwise.
    group_tls = Section::new("tls", "[group.NAME.tls]", Shape::One)
        .example("[group.app.tls]\nname = \"app.internal\"\nca = \"internal-ca.pem\"");

    /// The name to ask for and to verify.
    NAME: Optional<Parsed<String>> = optional(
        "name",
        parsed_text("a host name", server_name),
        "the server's own name or address",
        "\"app.internal\"",
    );

    /// A PEM file of the authorities to verify against, instead of the system's.
    CA: Optional<Parsed<String>> = optional(
        "ca",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "those that the system trusts",
        "\"internal-ca.pem\"",
    );

    /// Whether certificates are verified.
    VERIFY: Setting<Flag> = setting("verify", Flag, "true")
        .danger("With `false`, whoever sits between gate and server reads and changes everything. Name the server's own certificate as `ca` instead.");

    /// Which versions are spoken.
    VERSIONS: Setting<List<Choice<TlsVersion>>> =
        setting("versions", TLS_VERSIONS, "[\"1.2\", \"1.3\"]");

    /// A PEM file of the chain that the gate shows to servers that ask for one.
    CHAIN: Optional<Parsed<String>> = optional(
        "chain",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "none is shown",
        "\"gate.pem\"",
    );

    /// A PEM file of the private key of `chain`.
    KEY: Optional<Parsed<String>> = optional(
        "key",
        parsed_text("the path of a PEM file", |text| Ok(text.value.clone())),
        "none; needed for `chain`",
        "\"gate.key\"",
    );
}

/// Statuses of a healthy server, both ends inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statuses {
    pub(crate) min: u16,
    pub(crate) max: u16,
}

fn statuses(text: &Text) -> Result<Statuses, Fault> {
    let (min, max) = text.value.split_once('-').unwrap_or((&text.value, &text.value));
    let read = |status: &str| status.trim().parse().ok().filter(|s: &u16| (100..=599).contains(s));
    match (read(min), read(max)) {
        (Some(min), Some(max)) if min <= max => Ok(Statuses { min, max }),
        _ => Err(Fault::new(
            &code::INVALID_VALUE,
            format!("expected a status or a range of them, found {}", text.shown()),
        )
        .hint("write it like `\"200\"` or `\"200-399\"`")),
    }
}

section! {
    /// Active checks of a group's servers. The section being there turns them on.
    health = Section::new("health", "[group.NAME.health]", Shape::One)
        .example("[group.app.health]\npath = \"/healthz\"\ninterval = \"2s\"");

    /// The path that is asked for.
    PATH: Optional<Parsed<String>> = optional(
        "path",
        parsed_text("a path", parse::path::probe),
        "a connection is opened and closed",
        "\"/healthz\"",
    );

    /// The `Host` of the request.
    HOST: Optional<Parsed<String>> = optional(
        "host",
        parsed_text("a host name", parse::host::single),
        "the server's own name or address",
        "\"example.org\"",
    );

    /// Which statuses are good.
    STATUS: Setting<Parsed<Statuses>> =
        setting("status", parsed_text("a status or a range of them", statuses), "\"200-399\"");

    /// Between two checks.
    INTERVAL: Setting<Time> = setting("interval", time(MILLISECOND.saturating_mul(100), HOUR), "\"5s\"");

    /// For one check.
    TIMEOUT: Setting<Time> = setting("timeout", time(MILLISECOND.saturating_mul(10), MINUTE), "\"2s\"");

    /// Failures in a row that take a server out.
    FALL: Setting<Count<u32>> = setting("fall", count(1, 100), "3");

    /// Successes in a row that bring it back.
    RISE: Setting<Count<u32>> = setting("rise", count(1, 100), "2");
}

section! {
    /// Passive ejection: a server whose connections or responses fail is left out for a while. It is
    /// on for every group, and a group never ejects so many that it has too few left.
    ejection = Section::new("ejection", "[group.NAME.ejection]", Shape::One)
        .example("[group.app.ejection]\nfailures = 3\ntime = \"30s\"");

    /// Failures in a row (no connection, reset, time-out, invalid response) that eject a server.
    FAILURES: Setting<Or<Count<u32>>> =
        setting("failures", or_none("no server is ejected", count(1, 1000)), "5");

    /// How long it is left out at first. Each further time is twice as long, up to ten times this.
    TIME: Setting<Time> = setting("time", time(SECOND, HOUR), "\"10s\"");

    /// The share of a group that is ejected at once, at most.
    SHARE_MAX: Setting<Percent> = setting("share_max", percent(1, 100), "\"50%\"");
}
