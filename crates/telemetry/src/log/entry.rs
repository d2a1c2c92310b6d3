//! Entries that others write: what a log holds whole, such as the firewall's audit log.
//!
//! Whoever writes one is told what the log keeps, and answers for keeping nothing else.

use std::fmt;

use super::field::Line;
use super::privacy::{AddressPrivacy, Keep, Privacy};
use super::time::Times;
use super::writer::Recording;

/// Fields in which others have written the client's address (RFC 7239 and its forerunners).
const ADDRESS_FIELDS: &[&str] = &[
    "forwarded",
    "x-forwarded-for",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];

/// Something that is written whole, with its line ends.
pub trait Entry: fmt::Debug {
    /// Appends it, as far as the log keeps it; nothing if there is nothing to tell.
    fn write(&self, keeps: &Keeps<'_>, out: &mut Vec<u8>);
}

/// What a log keeps of a request.
#[derive(Clone, Debug)]
pub struct Keeps<'a> {
    /// The client's address as it may be told: itself, its network, or its hash; nothing if it is
    /// left out.
    pub client: Option<&'a [u8]>,
    /// Whether queries are kept, and with them everything that a rule found in the request.
    pub query: Keep,
    /// What is kept of a recorded request.
    pub recording: &'a Recording,
    privacy: &'a Privacy,
}

impl Keeps<'_> {
    /// Whether the client's address is kept as it is, and with it the port.
    pub fn address(&self) -> Keep {
        match self.privacy.address {
            AddressPrivacy::Keep => Keep::Yes,
            AddressPrivacy::Drop | AddressPrivacy::Truncate | AddressPrivacy::Hash(_) => Keep::No,
        }
    }

    /// Whether a field of the request is kept.
    pub fn field(&self, name: &[u8]) -> Keep {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        if is("user-agent") {
            self.privacy.user_agent
        } else if is("referer") {
            match (self.privacy.referer, self.query) {
                // A referrer holds a query as often as not.
                (Keep::Yes, Keep::Yes) => Keep::Yes,
                (Keep::Yes | Keep::No, Keep::Yes | Keep::No) => Keep::No,
            }
        } else if ADDRESS_FIELDS.iter().any(|field| is(field)) {
            self.address()
        } else {
            Keep::Yes
        }
    }
}

/// Writes an entry of a request, if there is one.
pub(super) fn write(
    entry: Option<&dyn Entry>,
    line: &Line<'_>,
    times: &mut Times,
    out: &mut Vec<u8>,
) {
    let Some(entry) = entry else { return };
    let privacy = line.privacy();
    let mut address = Vec::new();
    let client = line.client();
    if !client.is_absent() {
        client.text(&mut address, times);
    }
    let client = (!address.is_empty()).then_some(address.as_slice());
    let keeps = Keeps { client, query: privacy.query, recording: line.recording(), privacy };
    entry.write(&keeps, out);
}
