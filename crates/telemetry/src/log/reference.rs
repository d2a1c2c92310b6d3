//! The reference of access logs, as Markdown: `docs/logs.md`.

use std::fmt::Write as _;

use super::buffers::FLUSH_EVERY;
use super::escape::TEXT_BYTES_MAX;
use super::field::FIELDS;
use super::format::{COMBINED, JSON, PRIVACY};
use super::writer::BACKLOG_BYTES_MAX;
use crate::record::{CacheResult, Outcome, WafVerdict};

/// The reference of formats, fields and privacy.
pub fn reference() -> String {
    let mut out = String::from(
        "# Access logs\n\n\
        <!-- Generated from crates/telemetry/src/log; \
        UPDATE=1 cargo test -p tidegate-telemetry writes it. -->\n\n\
        Every request ends in exactly one record, and each access log writes one line of it. There \
        can be several logs at once, for all sites or for some, each with its own format, target \
        and privacy.\n\n\
        ## Formats\n\n\
        - `combined` is Apache's combined log format:\n  ",
    );
    let _ = write!(
        out,
        "`{COMBINED}`.\n  The third column, the user, is not known to the gate. Times are in UTC.\n\
        - `json` is one JSON object a line, with these fields in this order: "
    );
    for (index, name) in JSON.iter().enumerate() {
        let _ = write!(out, "{}`{name}`", if index == 0 { "" } else { ", " });
    }
    let _ = write!(
        out,
        ".\n  A field that a request does not have is left out. A list of fields in place of the \
        name makes an object of those.\n\
        - `privacy` tells nothing of a person, neither address nor agent, query, referrer or \
        certificate:\n  `{PRIVACY}`.\n  A path that names a person is still a path: sites that put \
        names in paths need a template of their own.\n\
        - A template is text with fields: `$name`, or `${{name}}` where a letter follows, and `$$` \
        for a dollar. A field that a request does not have is a hyphen. A name that is no field is \
        a mistake that `tidegate check` reports, with its place.\n\
        - `waf` writes a line for each rule of the WAF that matched and logs, and none for other \
        requests. It words them as ModSecurity's error log does, so that programs that read those \
        can read these: `[id \"942100\"] [msg \"..\"] [data \"..\"]`.\n\
        - `waf_json` writes the same as JSON objects. Where queries are not kept, neither format \
        keeps anything of what a rule found.\n\
        - `audit` is the WAF's audit log: what of which requests stands in it, and whether each is a \
        line of JSON or in ModSecurity's native sections, the rule set says (docs/waf.md). What the log \
        keeps of people holds here too: the client's address and the fields that name it, the user \
        agent, the referrer; without queries, neither arguments nor bodies nor what a rule found.\n\
        - `requests` records the requests that the WAF has looked at, one JSON object a line, for \
        `tidegate waf test` and `tidegate waf replay`. Secrets in them are masked; `client_address` is \
        `truncate` there unless it says otherwise. Bodies are recorded where it is known how to read \
        them (forms, JSON, XML), up to `body_max`.\n\n\
        `sample` makes a log take one in so many requests. Logs with equal samples take the same ones.\n\n\
        ## Fields\n\n\
        | field | unit | example | meaning |\n|---|---|---|---|\n"
    );
    for field in FIELDS {
        let _ = writeln!(
            out,
            "| `{}` | {} | `{}` | {} |",
            field.name, field.unit, field.example, field.doc
        );
    }
    out.push_str(
        "\nDurations that end in `_ms` have microseconds behind the point. A phase that a request \
        did not have is absent: one on a reused connection has no `connect_ms`. After a retry, the \
        upstream's fields tell of the last attempt.\n\n\
        ### Values of `outcome`\n\n| value | meaning |\n|---|---|\n",
    );
    for (name, doc) in Outcome::REFERENCE {
        let _ = writeln!(out, "| `{name}` | {doc} |");
    }
    out.push_str("\n### Values of `cache`\n\n| value | meaning |\n|---|---|\n");
    for result in &CacheResult::ALL[1..] {
        let _ = writeln!(out, "| `{}` | {} |", result.as_str(), result.doc());
    }
    out.push_str("\n### Values of `waf_verdict`\n\n| value | meaning |\n|---|---|\n");
    for verdict in &WafVerdict::ALL[1..] {
        let _ = writeln!(out, "| `{}` | {} |", verdict.as_str(), verdict.doc());
    }
    let _ = write!(
        out,
        "\n## Privacy\n\n\
        Each log chooses what it keeps. The choice is applied before any formatting, so it holds \
        for every format and template.\n\n\
        | choice | effect |\n|---|---|\n\
        | address `keep` | `client_addr` and `peer_addr` are written as they are |\n\
        | address `drop` | both are absent |\n\
        | address `truncate` | the network is written: /24 for IPv4, /48 for IPv6 |\n\
        | address `hash` | 32 hex digits: SipHash-2-4-128 of the address under a secret key |\n\
        | query dropped | `query` is absent; `uri`, `request_line`, `referer` and `location` end \
        before their `?` |\n\
        | user agent dropped | `user_agent` is absent |\n\
        | referrer dropped | `referer` is absent |\n\n\
        Unless addresses are kept, `client_port` and `tls_client_subject` are absent too. An IPv4 \
        address that came in over an IPv6 socket is treated as the IPv4 address it is, so it is \
        truncated to /24 and has one hash.\n\n\
        A hashed address is a pseudonym: lines of one client can be joined, and whoever has the \
        key can test addresses against it. Without the key nobody can, although there are only \
        four billion IPv4 addresses: SipHash is a keyed pseudo-random function with a key of 128 \
        bits. It is preferred to HMAC-SHA-256 because it costs a fraction of it for each line and \
        gives the same guarantee here. `openssl rand -hex 16` makes a key; without one in the \
        configuration, each run of the gate makes its own and forgets it at its end. To make old \
        logs anonymous, delete the key.\n\n\
        ## What a line can hold\n\n\
        A client cannot forge lines or fields. In text, quotes and backslashes get a backslash, \
        and control bytes and bytes beyond ASCII are written as C does (`\\n`, `\\x1b`). JSON \
        strings are always valid UTF-8: bytes that are none become U+FFFD; control characters, \
        separators and marks of direction are written as `\\uXXXX`. In a template, put text that \
        may hold spaces in quotes. Text is cut after {TEXT_BYTES_MAX} bytes.\n\n\
        ## Writing\n\n\
        Workers hand lines to one writer thread, when a buffer is full or after {} ms (with \
        `flush = \"request\"`, when a request has ended), and never wait for it. If it cannot keep up, lines are dropped and counted \
        (`tidegate_log_lines_dropped_total`).\n\n\
        - A file is created if need be, with mode 0640, and appended to. After rotating it, tell \
        the gate to reopen its logs; each log does so before its next write.\n\
        - `stdout` and `stderr` are written past any buffering.\n\
        - `syslog` sends one RFC 5424 message for each line to a Unix datagram socket such as \
        `/dev/log`, with severity `info`.\n\n\
        A target that cannot be written is reported once and tried again every second. Its lines \
        are kept, up to {} KiB, then the oldest are dropped and counted. At shutdown all lines are \
        written.\n",
        FLUSH_EVERY.as_millis(),
        BACKLOG_BYTES_MAX / 1024,
    );
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_is_current() {
        crate::reference::check("logs.md", &super::reference());
    }
}
