//! What a log line needs beyond the record: text that the request still holds.

use std::net::IpAddr;

use super::entry::Entry;
use crate::labelled::labelled;

/// The text of a request, lent for the moment of logging.
///
/// Nothing is copied before it is formatted, and absent text is empty. Text comes from clients and
/// servers and may hold any byte; formatting escapes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogView<'a> {
    /// The client's address; behind trusted proxies the one they tell. `None` on a Unix socket.
    pub client_addr: Option<IpAddr>,
    /// The client's port; zero if not known.
    pub client_port: u16,
    /// The address of the peer that connected, which may be a trusted proxy.
    pub peer_addr: Option<IpAddr>,
    /// The address the connection came in on, as configured, such as `[::]:443`.
    pub listener: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The method's text.
    pub method: &'a [u8],
    /// The host asked for, without port.
    pub host: &'a [u8],
    /// The path as received, without query.
    pub path: &'a [u8],
    /// The query without its question mark.
    pub query: &'a [u8],
    /// `Referer`
    pub referer: &'a [u8],
    /// `User-Agent`
    pub user_agent: &'a [u8],
    /// The `Content-Type` of the response.
    pub content_type: &'a [u8],
    /// `Location` of the response.
    pub location: &'a [u8],
    /// The site's name.
    pub site: &'a str,
    /// The route's name.
    pub route: &'a str,
    /// The upstream group's name.
    pub group: &'a str,
    /// The server's name as configured.
    pub server: &'a str,
    /// The server's address as connected to.
    pub upstream_addr: &'a str,
    /// The cipher suite of the client's TLS.
    pub tls_cipher: &'a str,
    /// The server name of the client's TLS handshake.
    pub sni: &'a str,
    /// The subject of the client's certificate.
    pub tls_client_subject: &'a str,
    /// A request id that came from a trusted proxy, if one did.
    pub forwarded_id: &'a [u8],
    /// The WAF rules that matched and are to be logged.
    pub rules: &'a [RuleView<'a>],
    /// The request's entry in the audit log, if it has one.
    pub audit: Option<&'a dyn Entry>,
    /// The request itself, to be recorded.
    pub recorded: Option<&'a dyn Entry>,
}

/// A WAF rule that matched, lent for the moment of logging.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleView<'a> {
    /// Its id.
    pub id: u64,
    /// The file it stands in.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// The phase it ran in, 1 to 5.
    pub phase: u8,
    /// What it says, with its macros expanded.
    pub message: &'a [u8],
    /// What it adds to that.
    pub data: &'a [u8],
    /// `CRITICAL` and the like; empty if it has none.
    pub severity: &'a str,
    /// Its tags.
    pub tags: &'a [String],
    /// The version of its rule set.
    pub version: &'a str,
    /// What it looked at last.
    pub variable: &'a [u8],
    /// What it found there.
    pub value: &'a [u8],
    /// Its operator, as written.
    pub operator: &'a str,
    /// What came of the match.
    pub effect: RuleEffect,
}

labelled! {
    /// What came of a rule's match.
    #[derive(Default)]
    pub enum RuleEffect {
        /// It was noted.
        #[default]
        Noted = "noted",
        /// It stopped the request.
        Stopped = "stopped",
        /// It would have stopped the request, had the mode been `block`.
        WouldStop = "would_stop",
    }
}
