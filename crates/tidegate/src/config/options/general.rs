//! Options of the file as a whole: process, admin listener, trusted proxies, logs, defaults.

use ipnet::IpNet;
use tidegate_proxy::settings::Address;
use tidegate_telemetry::log::{Facility, Flush, Format};

use super::super::diagnostic::code;
use super::super::parse;
use super::super::reader::Text;
use super::super::resolve::log::complaint;
use super::super::suggest;
use super::kind::{
    Choice, Count, DAY, Fault, List, MB, Or, Parsed, SECOND, SecretText, Size, Time, count, list,
    or_off, parsed_text, size, template, time,
};
use super::{
    Optional, Reach, Required, Section, Setting, Shape, optional, required, section, setting,
};
use super::{cache, context, group, listen, request_headers, response_headers, route, site, waf};

section! {
    /// The file itself. Paths in it are relative to the file they stand in; `${NAME}` in any string is
    /// replaced by the environment variable of that name.
    root = Section::new("", "the file", Shape::Root)
        .example("[[site]]\nhost = \"example.org\"\nupstream = \"127.0.0.1:3000\"")
        .sections(&[
            &process::SECTION,
            &admin::SECTION,
            &trust::SECTION,
            &defaults::SECTION,
            &waf::SECTION,
            &cache::SECTION,
            &context::SECTION,
            &log::SECTION,
            &listen::SECTION,
            &group::SECTION,
            &site::SECTION,
        ]);

    /// Files that are read too, as if they stood here: paths or patterns with `*`, `?` and `[..]`,
    /// in the order of their names. Lists of sections (`[[site]]`) are joined; an option may not be
    /// set in two files.
    INCLUDE: Optional<List<Parsed<String>>> = optional(
        "include",
        list("a list of paths or patterns", parsed_text("a path or a pattern", |text| Ok(text.value.clone()))),
        "nothing else is read",
        "[\"sites/*.toml\"]",
    );
}

section! {
    /// Limits and sizes of the process.
    process = Section::new("process", "[process]", Shape::One)
        .example("[process]\nworkers = 4\nconnections_max = 200_000");

    /// Workers, each one thread with its own listeners and upstream connections.
    WORKERS: Optional<Count<usize>> =
        optional("workers", count(1, 1024), "one for each core", "4");

    /// Connections of clients over all workers. At the limit, the idle connection that has waited
    /// longest gives way to a new one.
    CONNECTIONS_MAX: Setting<Count<usize>> =
        setting("connections_max", count(16, 10_000_000), "100_000");

    /// How long a process that is stopped or replaced waits for its last requests.
    DRAIN_TIMEOUT: Setting<Time> = setting("drain_timeout", time(SECOND, DAY), "\"30s\"");
}

section! {
    /// The admin listener: status, metrics, changes at run time.
    admin = Section::new("admin", "[admin]", Shape::One)
        .example("[admin]\nlisten = \"unix:/run/tidegate/admin.sock\"");

    /// Where it listens.
    LISTEN: Setting<Or<Parsed<Address>>> = setting(
        "listen",
        or_off("there is no admin listener", parsed_text("an address and a port, or `unix:` and a path", parse::address::listen)),
        "\"127.0.0.1:9180\"",
    )
    .example("\"unix:/run/tidegate/admin.sock\"")
    .danger("Whoever reaches it sees every site and may drain every server. Beyond loopback it wants a `token`.");

    /// The bearer token that requests must bring. Required beyond loopback and Unix sockets.
    TOKEN: Optional<SecretText> = optional(
        "token",
        SecretText { bytes_min: 16 },
        "requests need none",
        "\"${TIDEGATE_ADMIN_TOKEN}\"",
    );
}

section! {
    /// Who may say where a request comes from.
    trust = Section::new("trust", "[trust]", Shape::One)
        .example("[trust]\nproxies = [\"10.0.0.0/8\", \"::1\"]");

    /// Networks of proxies in front of the gate. Their `Forwarded`, `X-Forwarded-*` and `X-Real-IP`
    /// fields are believed; those of everybody else are replaced.
    PROXIES: Optional<List<Parsed<IpNet>>> = optional(
        "proxies",
        list("a list of networks or addresses", parsed_text("a network or an address", parse::address::network)),
        "nobody is believed",
        "[\"10.0.0.0/8\", \"::1\"]",
    )
    .danger("Whoever is listed can pretend to be any client.");
}

section! {
    /// Values for all listeners, groups, sites and routes that do not say otherwise.
    defaults = Section::new("defaults", "[defaults]", Shape::One)
        .example("[defaults]\nfirst_byte_timeout = \"20s\"\nidle_timeout = \"30s\"")
        .borrows(&[
            (&listen::SECTION, Reach::Defaults),
            (&group::SECTION, Reach::Defaults),
            (&site::SECTION, Reach::Defaults),
            (&route::SECTION, Reach::Defaults),
        ])
        .sections(&[&request_headers::SECTION, &response_headers::SECTION]);
}

/// A format's name, or a template.
fn format(text: &Text) -> Result<Format, Fault> {
    let value = text.value.as_str();
    if let Some(format) = Format::named(value) {
        return Ok(format);
    }
    let bad = |message: String| Fault::new(&code::LOG_FORMAT, message);
    if !value.contains('$') {
        let guess = suggest::did_you_mean(value, Format::NAMES.iter().copied());
        return Err(bad(format!("{} is neither a format nor a template with fields", text.shown()))
            .label(guess.unwrap_or_default())
            .hint("formats are `combined`, `json`, `privacy`, `waf`, `waf_json`, `audit` and `requests`; a template looks like `$client_addr $status`"));
    }
    Format::template(value).map_err(|error| {
        let (message, label) = complaint(&error);
        let rest = &value[error.at..];
        let name = rest.len()
            - rest
                .trim_start_matches(|c: char| {
                    matches!(c, '$' | '{' | '_') || c.is_ascii_alphanumeric()
                })
                .len();
        bad(message)
            .at(error.at..error.at + name.max(1))
            .label(label)
            .hint("docs/logs.md lists the fields")
    })
}

fn masked_name(text: &Text) -> Result<String, Fault> {
    if text.value.is_empty() || text.value.contains(char::is_control) {
        return Err(Fault::new(&code::INVALID_VALUE, "this is not a name"));
    }
    Ok(text.value.clone())
}

/// What a log keeps of the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAddress {
    Keep,
    Drop,
    Truncate,
    Hash,
}

/// Whether a log keeps something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Keep,
    Drop,
}

const KEEP: Choice<Keep> =
    Choice(&[("keep", Keep::Keep, "as it was sent"), ("drop", Keep::Drop, "left out")]);

section! {
    /// An access log. A site writes to those it names in `logs`.
    log = Section::new("log", "[[log]]", Shape::Many)
        .example("[[log]]\nname = \"access\"\npath = \"/var/log/tidegate/access.log\"\nformat = \"json\"");

    /// Its name, for `logs`.
    NAME: Required<Parsed<String>> =
        required("name", parsed_text("a name", super::super::sites::name), "\"access\"");

    /// Where lines go: a file, `stdout`, `stderr`, or `syslog`.
    PATH: Required<Parsed<String>> = required(
        "path",
        parsed_text("a path, `stdout`, `stderr` or `syslog`", |text| Ok(text.value.clone())),
        "\"/var/log/tidegate/access.log\"",
    );

    /// The facility of syslog's messages.
    FACILITY: Optional<Choice<Facility>> = optional(
        "facility",
        Choice(&[
            ("daemon", Facility::Daemon, "system daemons"),
            ("local0", Facility::Local0, ""),
            ("local1", Facility::Local1, ""),
            ("local2", Facility::Local2, ""),
            ("local3", Facility::Local3, ""),
            ("local4", Facility::Local4, ""),
            ("local5", Facility::Local5, ""),
            ("local6", Facility::Local6, ""),
            ("local7", Facility::Local7, ""),
        ]),
        "`local0`",
        "\"local1\"",
    );

    /// What a line holds: `combined` (as Apache writes it), `json`, `privacy` (neither address nor
    /// agent nor query), `waf` or `waf_json` (a line for each rule of the WAF that matched), `audit` (the
    /// WAF's audit log), `requests` (the requests themselves, for `tidegate waf replay`), or a template with fields, such as `$client_addr $status $request_time`.
    /// `docs/logs.md` lists the fields.
    FORMAT: Setting<Parsed<Format>> = setting(
        "format",
        template("`combined`, `json`, `privacy`, `waf`, `waf_json`, `audit`, `requests` or a template", format),
        "\"combined\"",
    );

    /// The fields of `format = "json"`, in this order.
    FIELDS: Optional<List<Parsed<String>>> = optional(
        "fields",
        list("a list of fields", parsed_text("the name of a field", |text| Ok(text.value.clone()))),
        "the usual ones",
        "[\"time\", \"host\", \"status\", \"request_time\"]",
    );

    /// When lines are handed to the thread that writes them.
    FLUSH: Setting<Choice<Flush>> = setting(
        "flush",
        Choice(&[
            ("batch", Flush::Batch, "many at once, after 200 milliseconds at the latest"),
            ("request", Flush::Request, "as soon as a request has ended, for who follows along: \
              a little dearer"),
        ]),
        "\"batch\"",
    );

    /// What is kept of the client's address; with `format = "requests"`, `truncate` unless something
    /// else is written.
    CLIENT_ADDRESS: Setting<Choice<ClientAddress>> = setting(
        "client_address",
        Choice(&[
            ("keep", ClientAddress::Keep, "the whole address"),
            ("drop", ClientAddress::Drop, "nothing"),
            ("truncate", ClientAddress::Truncate, "the network: /24 of IPv4, /48 of IPv6"),
            ("hash", ClientAddress::Hash, "a keyed hash, the same for the same client"),
        ]),
        "\"keep\"",
    );

    /// The key of `client_address = "hash"`: 32 hexadecimal digits. Who has it can find out which
    /// address is behind a hash.
    HASH_KEY: Optional<SecretText> =
        optional(
            "hash_key",
            SecretText { bytes_min: 16 },
            "each run of the gate draws its own and forgets it at its end",
            "\"${LOG_KEY}\"",
        );

    /// One in so many requests is written.
    SAMPLE: Setting<Count<u32>> = setting("sample", count(1, 1_000_000_000), "1");

    /// Names of fields, cookies and arguments whose values `format = "requests"` masks, beside those
    /// of secrets that everybody has (`Authorization`, cookies, names that end in `password` or
    /// `token` ..).
    MASK: Optional<List<Parsed<String>>> = optional(
        "mask",
        list("a list of names", parsed_text("a name", masked_name)),
        "no others",
        "[\"X-Session\", \"iban\"]",
    );

    /// Bytes of a request's body that `format = "requests"` records.
    BODY_MAX: Setting<Size> = setting("body_max", size(0, 16 * MB), "\"64KB\"");

    /// What is kept of the query.
    QUERY: Setting<Choice<Keep>> = setting("query", KEEP, "\"keep\"");

    /// What is kept of the user agent.
    USER_AGENT: Setting<Choice<Keep>> = setting("user_agent", KEEP, "\"keep\"");

    /// What is kept of the referrer.
    REFERRER: Setting<Choice<Keep>> = setting("referrer", KEEP, "\"keep\"");
}
